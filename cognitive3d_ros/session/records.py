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
metres and rotations quaternions x y z w, in the axes of the session's pose convention.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Vector3 = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]
PropertyValue = str | int | float | bool

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
    pose: tuple[float, float, float, float, float, float, float]


@dataclass(frozen=True, slots=True)
class CameraFrame(SensorRecord):
    """A picture, and the pose it was taken from."""


@dataclass(frozen=True, slots=True)
class LidarRecord(SensorRecord):
    """A laser scan or a point cloud, and the pose it was taken from."""


@dataclass(frozen=True, slots=True)
class LaserScan(LidarRecord):
    """A laser scan, as the sensor published it."""


@dataclass(frozen=True, slots=True)
class PointCloud(LidarRecord):
    """A point cloud, in scene axes relative to the sensor."""
