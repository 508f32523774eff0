"""What a stored session consists of: one kind of record for each thing the data format describes.

::

    Record
    ├── PoseSample
    ├── DynamicSnapshot
    ├── Event
    │   └── Annotation
    ├── SeriesSample
    │   └── HealthSample
    └── SensorRecord
        ├── CameraFrame
        └── LidarRecord
            ├── LaserScan
            └── PointCloud

Times are wire time, in seconds since the epoch as a float; :attr:`Record.time_ns` is exact. Positions are
metres and rotations quaternions x y z w, in the axes of the session's pose convention. Where the records of
cameras and lidars lie in the scene is in their methods: the data format has a rule for each of the three
(Reading a sensor pose).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cognitive3d_ros.conventions import Convention
from cognitive3d_ros.errors import ReadError
from cognitive3d_ros.quaternions import Array, normalised_array, rotate_array
from cognitive3d_ros.session.fixed import fixed
from cognitive3d_ros.wire.placing import place, ray_points
from cognitive3d_ros.wire.records import LaserScanData, PointCloudData, Pose

if TYPE_CHECKING:
    from cognitive3d_ros.wire.clouds import Points

Vector3 = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]
PropertyValue = str | int | float | bool


def axes_of(convention: str) -> Convention:
    """Return a session's pose convention by its name; raises ReadError where it is none that is known."""
    try:
        return Convention(convention)
    except ValueError as error:
        raise ReadError(f"the session's c3d.ros.pose_convention: {error}") from None


_TICKS_PER_S = 100_000  # five decimals; whole milliseconds are among them
_NS_PER_TICK = 10_000


@dataclass(frozen=True, slots=True)
class Record:
    """Anything that has a time."""

    time: float

    @property
    def time_ns(self) -> int:
        """The time in nanoseconds, exactly as it was stored: five decimals, or whole milliseconds."""
        return round(self.time * _TICKS_PER_S) * _NS_PER_TICK


@dataclass(frozen=True, slots=True)
class PoseSample(Record):
    """A sample of the pose timeline: the gaze frame's position and rotation, forward +Z and up +Y.

    Under ``rep103`` forward is +X and up +Z. Sessions from before 1.0.0 have a gaze point ``g`` too.
    """

    p: Vector3
    r: Quaternion
    g: Vector3 | None = None


@dataclass(frozen=True, slots=True)
class DynamicSnapshot(Record):
    """Where a Dynamic Object was."""

    id: str
    p: Vector3
    r: Quaternion
    properties: tuple[Mapping[str, object], ...] = ()


@dataclass(frozen=True, slots=True)
class Event(Record):
    """A named point in time and space."""

    name: str
    point: Vector3
    properties: Mapping[str, PropertyValue] = field(default_factory=dict)
    dynamic_id: str | None = None

    @property
    def is_placed(self) -> bool:
        """Whether ``point`` is where it was: it is the origin where that was not known (rule 38)."""
        return 'c3d.position_unknown' not in self.properties


@dataclass(frozen=True, slots=True)
class Annotation(Event):
    """An event ``c3d.annotation``: a key and a value that belong to a stream, or to none.

    ``annotation_time`` is the instant it speaks of; ``time`` may have been moved by the clock rule.
    """

    annotation_time: float = 0.0
    stream_name: str = ''
    key: str = ''
    value: str = ''


@dataclass(frozen=True, slots=True)
class SeriesSample(Record):
    """A sample of a sensor series."""

    name: str
    value: float


@dataclass(frozen=True, slots=True)
class HealthSample(SeriesSample):
    """A sample of one of the recorder's own series, ``c3d.*``."""


@dataclass(frozen=True, slots=True)
class SensorRecord(Record):
    """What a camera or a lidar gave: ``pose`` is ``px py pz qx qy qz qw`` of ``frame_id``."""

    seq: int
    frame_id: str
    pose: Pose
    convention: str = field(default='', kw_only=True, repr=False)
    """The session's pose convention, by name; empty if the session does not say."""

    def direction(self, v: ArrayLike) -> Array:
        """Return where a direction in the frame's own ROS axes points in the scene, (…, 3).

        An optical frame looks along (0, 0, 1), a body frame along (1, 0, 0). Raises ReadError if the session
        does not say its pose convention.
        """
        return self._turned(np.asarray(v, dtype=np.float64) @ self._matrix.T)

    @property
    def _matrix(self) -> Array:
        """M, the session's position map."""
        return axes_of(self.convention).matrix

    def _turned(self, v: ArrayLike) -> Array:
        return rotate_array(normalised_array(self.pose[3:]), v)


@dataclass(frozen=True, slots=True)
class CameraFrame(SensorRecord):
    """A picture, and the pose it was taken from (data format, Camera frames)."""

    camera_id: str
    format: str
    width: int
    height: int
    data: bytes = field(repr=False)
    hfov_degrees: float = 0.0
    """The horizontal field of view, a full angle; 0 when it was not recorded."""
    vfov_degrees: float = 0.0


@dataclass(frozen=True, slots=True)
class LidarRecord(SensorRecord):
    """A laser scan or a point cloud, and the pose it was taken from (data format, Lidar scans)."""

    sensor_id: str

    def scene_points(self) -> Array:
        """Return its points in the scene, (N, 3) in metres."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, eq=False)
class LaserScan(LidarRecord):
    """A laser scan, as the sensor published it: radians, seconds and metres (data format, Laser scan)."""

    angle_min: float
    angle_max: float
    angle_increment: float
    time_increment: float
    scan_time: float
    range_min: float
    range_max: float
    ranges: NDArray[np.float32] = field(repr=False)
    """(rays,), infinities and NaNs kept: no return."""
    intensities: NDArray[np.float32] = field(repr=False)
    """(rays,), or empty where none were stored."""

    @property
    def content(self) -> LaserScanData:
        """What the sensor published, as it is on the wire."""
        return LaserScanData(
            self.angle_min,
            self.angle_max,
            self.angle_increment,
            self.time_increment,
            self.scan_time,
            self.range_min,
            self.range_max,
            self.ranges,
            self.intensities,
        )

    def scene_points(self) -> Array:
        """Return the ends of its rays in the scene, (N, 3) in metres.

        Rays whose range is not finite or lies outside ``range_min`` to ``range_max`` are left out, and those
        whose angle is not finite.
        """
        return place(ray_points(self.content), self.pose)

    def direction(self, v: ArrayLike) -> Array:
        """Return where a direction in the frame's own ROS axes points in the scene, (…, 3).

        The stored rotation is that of the scan plane: where the position map is a reflection it turns the
        axis over that no ray uses.
        """
        across = np.sign(np.linalg.det(self._matrix))
        return self._turned(np.asarray(v, dtype=np.float64) * (1.0, 1.0, across))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LaserScan):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash((self.time, self.sensor_id, self.seq))

    def _key(self) -> tuple[object, ...]:
        """Return all of it as values; a NaN is the same as itself."""
        values = (getattr(self, each.name) for each in fields(self))
        return tuple(
            value.tobytes() if isinstance(value, np.ndarray) else value for value in values
        )


@dataclass(frozen=True, slots=True)
class PointCloud(LidarRecord):
    """A point cloud, in scene axes relative to the sensor (data format, Point cloud).

    ``position``, ``color`` and ``intensity`` name how ``data`` holds them; :attr:`positions`, :attr:`colors`
    and :attr:`intensities` are the points, read when they are first asked for.
    """

    point_count: int
    position: str
    color: str
    intensity: str
    voxel_leaf_mm: int
    zstd_level: int
    data: bytes = field(repr=False)
    _points: Points | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def content(self) -> PointCloudData:
        """The block of points, as it is on the wire."""
        return PointCloudData(
            self.point_count,
            self.position,
            self.color,
            self.intensity,
            self.voxel_leaf_mm,
            self.zstd_level,
            self.data,
        )

    @property
    def positions(self) -> NDArray[np.float32]:
        """(N, 3), metres. Raises FormatError where the block cannot be read."""
        return self._read().positions

    @property
    def colors(self) -> NDArray[np.uint8] | None:
        """(N, 3), or None where none are stored. Raises FormatError where the block cannot be read."""
        return self._read().colors

    @property
    def intensities(self) -> NDArray[np.uint8] | None:
        """(N,), or None where none are stored. Raises FormatError where the block cannot be read."""
        return self._read().intensities

    def scene_points(self) -> Array:
        """Return its points in the scene, (N, 3) in metres. Raises FormatError as :attr:`positions` does."""
        return place(self.positions, self.pose)

    def _read(self) -> Points:
        if self._points is None:
            from cognitive3d_ros.wire import clouds  # and zstandard with it

            points = clouds.read(self.content)
            fixed_points = clouds.Points(
                fixed(points.positions),
                None if points.colors is None else fixed(points.colors),
                None if points.intensities is None else fixed(points.intensities),
            )
            object.__setattr__(self, '_points', fixed_points)
        assert self._points is not None
        return self._points
