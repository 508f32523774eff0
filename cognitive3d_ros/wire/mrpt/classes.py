"""The classes of MRPT's objects that rawlogs of robots hold, in the versions of MRPT 2.4 to 2.14.

Layouts: MRPT's sources, each held to bytes that MRPT itself wrote. Poses are metres, angles radians, times
MRPT's ticks (:func:`~cognitive3d_ros.wire.mrpt.ticks`); covariances are the diagonal, then the upper triangle.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from cognitive3d_ros.wire.mrpt.archive import Archive, MrptObject

Floats = NDArray[np.float64]
Single = NDArray[np.float32]
K = TypeVar('K', bound=type[MrptObject])

CLASSES: Final[dict[str, type[MrptObject]]] = {}
"""All of them, by name without the namespace."""


def _mrpt(name: str, version: int, *others: int) -> Callable[[K], K]:
    """Enter a class under its name; ``others`` are further versions that are read."""

    def enter(kind: K) -> K:
        kind.NAME, kind.VERSION, kind.READS = name, version, (version, *others)
        CLASSES[name.rpartition('::')[2]] = kind
        return kind

    return enter


def _zeros(count: int) -> list[float]:
    return [0.0] * count


def _none(dtype: Any) -> NDArray[Any]:
    return np.empty(0, dtype)


# Poses


@_mrpt('mrpt::poses::CPose3D', 3)
@dataclass(slots=True, eq=False)
class Pose3D(MrptObject):
    """A pose: ``xyz``, and its rotation as a matrix (3, 3)."""

    xyz: list[float] = field(default_factory=partial(_zeros, 3))
    rotation: Floats = field(default_factory=lambda: np.eye(3))

    def _archive(self, ar: Archive) -> None:
        self.xyz = ar.numbers('f64', self.xyz, 3)
        self.rotation = ar.plane('<f8', self.rotation.ravel(), 9).reshape(3, 3)


@_mrpt('mrpt::poses::CPose2D', 1)
@dataclass(slots=True)
class Pose2D(MrptObject):
    """A pose in the plane: ``x y phi``."""

    x_y_phi: list[float] = field(default_factory=partial(_zeros, 3))

    def _archive(self, ar: Archive) -> None:
        self.x_y_phi = ar.numbers('f64', self.x_y_phi, 3)


@_mrpt('mrpt::poses::CPose3DPDFGaussian', 1)
@dataclass(slots=True)
class Pose3DGaussian(MrptObject):
    """A pose and its covariance, of x y z yaw pitch roll."""

    mean: Pose3D = field(default_factory=Pose3D)
    covariance: list[float] = field(default_factory=partial(_zeros, 21))

    def _archive(self, ar: Archive) -> None:
        self.mean = ar.object(self.mean, Pose3D)
        self.covariance = ar.numbers('f64', self.covariance, 21)


@_mrpt('mrpt::poses::CPosePDFGaussian', 2)
@dataclass(slots=True)
class Pose2DGaussian(MrptObject):
    """A pose in the plane and its covariance."""

    mean: Pose2D = field(default_factory=Pose2D)
    covariance: list[float] = field(default_factory=partial(_zeros, 6))

    def _archive(self, ar: Archive) -> None:
        self.mean = ar.object(self.mean, Pose2D)
        self.covariance = ar.numbers('f64', self.covariance, 6)


# Pictures


@_mrpt('mrpt::img::TCamera', 6)
@dataclass(slots=True)
class Camera(MrptObject):
    """A camera's parameters: ``intrinsics`` are fx fy cx cy, in pixels."""

    focal_m: float = 0.0
    distortion: list[float] = field(default_factory=partial(_zeros, 8))
    intrinsics: list[float] = field(default_factory=partial(_zeros, 4))
    rows: int = 0
    columns: int = 0
    name: str = ''
    model: int = 1
    """0 none, 1 plumb_bob, 2 kannala_brandt."""

    def _archive(self, ar: Archive) -> None:
        self.focal_m = ar.number('f64', self.focal_m)
        self.distortion = ar.numbers('f64', self.distortion, 8)
        self.intrinsics = ar.numbers('f64', self.intrinsics, 4)
        self.rows = ar.number('u32', self.rows)
        self.columns = ar.number('u32', self.columns)
        self.name = ar.text(self.name)
        self.model = ar.number('u8', self.model)


@_mrpt('mrpt::img::CImage', 9)
@dataclass(slots=True, eq=False)
class Image(MrptObject):
    """A picture: the name of a file, a JPEG, or pixels: ``rows`` of bytes (height, width · channels)."""

    file: str = ''
    jpeg: bytes = b''
    color: bool = True
    width: int = 0
    height: int = 0
    rows: NDArray[np.uint8] = field(default_factory=partial(_none, np.uint8))

    def _archive(self, ar: Archive) -> None:
        if ar.number('bool', bool(self.file)):
            self.file = ar.text(self.file)
            return
        self.color = ar.number('bool', self.color)
        if not self.color:
            self._archive_grey(ar)
            return
        # Pixels, and no JPEG, where width and height are below zero.
        sign = 1 if self.jpeg else -1
        width = ar.number('i32', sign * self.width)
        height = ar.number('i32', sign * self.height)
        self.width, self.height = abs(width), abs(height)
        if width > 0 or height > 0:
            self.jpeg = ar.data(self.jpeg)
        else:
            size = 3 * self.width * self.height
            flat = ar.plane('u1', self.rows.ravel(), size)
            self.rows = flat.reshape(self.height, 3 * self.width)

    def _archive_grey(self, ar: Archive) -> None:
        self.width = ar.number('i32', self.width)
        self.height = ar.number('i32', self.height)
        ar.number('i32', 0)  # the origin is at the top
        size = ar.number('u32', self.rows.size)
        ar.number('i32', 0)  # eight bits
        ar.number('bool', False)  # not compressed
        self.rows = ar.plane('u1', self.rows.ravel(), size).reshape(self.height, -1)


# Points


@_mrpt('mrpt::maps::TMapGenericParams', 0)
@dataclass(slots=True)
class MapParameters(MrptObject):
    """What is done with a map; of no matter to its points."""

    enabled: list[bool] = field(default_factory=lambda: [True] * 3)

    def _archive(self, ar: Archive) -> None:
        self.enabled = ar.numbers('bool', self.enabled, 3)


class _Points(MrptObject):
    """What maps of points share: columns of x, y and z, and parameters that MRPT stores with each."""

    xyz: Single

    def _archive_xyz(self, ar: Archive) -> int:
        count: int = ar.number('u32', len(self.xyz))
        columns = self.xyz.reshape(-1, 3).T if len(self.xyz) else [self.xyz] * 3
        self.xyz = np.stack([ar.plane('<f4', column, count) for column in columns], axis=-1)
        return count

    @staticmethod
    def _archive_parameters(ar: Archive, *, rendering: bool = False) -> None:
        """Write MRPT's defaults for inserting points, for likelihoods and for rendering, or pass them over."""
        ar.number('i8', 0)
        ar.number('f32', 0.02)
        ar.numbers('bool', [True, False, True, False, False], 5)
        ar.number('f32', np.float32(np.radians(0.05)))
        ar.number('f32', 2.0)
        ar.number('bool', False)
        ar.number('i8', 0)
        ar.numbers('f64', [0.0025, 1.0], 2)
        ar.number('u32', 10)
        if rendering:
            ar.number('i8', 0)
            ar.numbers('f32', [1.0, 0.0, 0.0, 1.0, 1.0], 5)
            ar.number('i8', -1)


@_mrpt('mrpt::maps::CSimplePointsMap', 10)
@dataclass(slots=True, eq=False)
class SimplePoints(_Points):
    """Points (N, 3), which every version of MRPT reads."""

    xyz: Single = field(default_factory=partial(_none, np.float32))

    def _archive(self, ar: Archive) -> None:
        self._archive_xyz(ar)
        ar.object(MapParameters(), MapParameters)
        self._archive_parameters(ar, rendering=True)


@_mrpt('mrpt::maps::CPointsMapXYZI', 0)
@dataclass(slots=True, eq=False)
class IntensityPoints(_Points):
    """Points and their intensities, 0 to 1; up to MRPT 2."""

    xyz: Single = field(default_factory=partial(_none, np.float32))
    intensity: Single = field(default_factory=partial(_none, np.float32))

    def _archive(self, ar: Archive) -> None:
        count = self._archive_xyz(ar)
        self.intensity = ar.plane('<f4', self.intensity, count)
        self._archive_parameters(ar)


@_mrpt('mrpt::maps::CColouredPointsMap', 9)
@dataclass(slots=True, eq=False)
class ColouredPoints(_Points):
    """Points and their colours, columns of 0 to 1; up to MRPT 2."""

    xyz: Single = field(default_factory=partial(_none, np.float32))
    rgb: list[Single] = field(default_factory=lambda: [np.empty(0, np.float32)] * 3)

    def _archive(self, ar: Archive) -> None:
        self._archive_xyz(ar)
        self.rgb = [ar.vector('<f4', channel) for channel in self.rgb]
        ar.object(MapParameters(), MapParameters)
        self._archive_parameters(ar)


@_mrpt('mrpt::maps::CGenericPointsMap', 3, 4)
@dataclass(slots=True, eq=False)
class GenericPoints(_Points):
    """Points and named columns; from MRPT 2.15 on."""

    xyz: Single = field(default_factory=partial(_none, np.float32))
    fields: dict[str, NDArray[Any]] = field(default_factory=dict)

    def _archive(self, ar: Archive) -> None:
        self._archive_xyz(ar)
        mine, self.fields = self.fields, {}
        for dtype in ('<f4', '<f8', '<u2', 'u1', '<u4')[: 4 if ar.version == 3 else 5]:
            columns = [(k, v) for k, v in mine.items() if v.dtype == np.dtype(dtype)]
            count = ar.number('u32', len(columns))
            for name, values in columns or [('', np.empty(0, dtype))] * count:
                self.fields[ar.text(name)] = ar.vector(dtype, values)
        self._archive_parameters(ar)


# Observations


class Observation(MrptObject):
    """What a sensor saw: ``label`` is the sensor's name, ``ticks`` when."""

    label: str
    ticks: int


@_mrpt('mrpt::obs::CObservationComment', 0, 1)
@dataclass(slots=True)
class Comment(MrptObject):
    """The comment of a log."""

    text: str = ''
    ticks: int = 0

    def _archive(self, ar: Archive) -> None:
        self.text = ar.text(self.text)
        self.ticks = ar.number('u64', self.ticks)
        if ar.version > 0:
            ar.text('')


@_mrpt('mrpt::obs::CObservation2DRangeScan', 7, 8)
@dataclass(slots=True, eq=False)
class RangeScan(Observation):
    """A laser scan, symmetric about the x axis of ``pose``, which is the sensor's on the robot."""

    aperture: float = 0.0
    right_to_left: bool = True
    max_range: float = 0.0
    pose: Pose3D = field(default_factory=Pose3D)
    ranges: Single = field(default_factory=partial(_none, np.float32))
    valid: NDArray[np.uint8] = field(default_factory=partial(_none, np.uint8))
    std_error: float = 0.0
    ticks: int = 0
    beam_aperture: float = 0.0
    label: str = ''
    delta_pitch: float = 0.0
    intensities: NDArray[np.int32] | None = None

    def _archive(self, ar: Archive) -> None:
        self.aperture = ar.number('f32', self.aperture)
        self.right_to_left = ar.number('bool', self.right_to_left)
        self.max_range = ar.number('f32', self.max_range)
        self.pose = ar.object(self.pose, Pose3D)
        self.ranges = ar.vector('<f4', self.ranges)
        self.valid = ar.plane('u1', self.valid, len(self.ranges))
        self.std_error = ar.number('f32', self.std_error)
        self.ticks = ar.number('u64', self.ticks)
        self.beam_aperture = ar.number('f32', self.beam_aperture)
        self.label = ar.text(self.label)
        self.delta_pitch = ar.number('f64', self.delta_pitch)
        if ar.number('bool', self.intensities is not None):
            given = np.empty(0, np.int32) if self.intensities is None else self.intensities
            self.intensities = ar.plane('<i4', given, len(self.ranges))
        if ar.version > 7:
            ar.number('f64', 0.0)  # the duration of the sweep


@_mrpt('mrpt::obs::CObservationOdometry', 2)
@dataclass(slots=True)
class Odometry(Observation):
    """Where the robot is by its odometry."""

    pose: Pose2D = field(default_factory=Pose2D)
    label: str = ''
    ticks: int = 0
    encoders: list[int] | None = None
    velocity: list[float] | None = None

    def _archive(self, ar: Archive) -> None:
        self.pose = ar.object(self.pose, Pose2D)
        self.label = ar.text(self.label)
        self.ticks = ar.number('u64', self.ticks)
        self.encoders = _optional(ar, 'i32', self.encoders, 2)
        self.velocity = _optional(ar, 'f64', self.velocity, 3)


@_mrpt('mrpt::obs::CObservationRobotPose', 1)
@dataclass(slots=True)
class RobotPose(Observation):
    """Where the robot is in the map; ``sensor_pose`` is that of what found it out, on the robot."""

    pose: Pose3DGaussian = field(default_factory=Pose3DGaussian)
    label: str = ''
    ticks: int = 0
    sensor_pose: Pose3D = field(default_factory=Pose3D)

    def _archive(self, ar: Archive) -> None:
        self.pose = ar.object(self.pose, Pose3DGaussian)
        self.label = ar.text(self.label)
        self.ticks = ar.number('u64', self.ticks)
        self.sensor_pose = ar.object(self.sensor_pose, Pose3D)


@_mrpt('mrpt::obs::CObservationImage', 4)
@dataclass(slots=True)
class CameraImage(Observation):
    """A picture; ``pose`` is the camera's on the robot, z ahead and x to the right."""

    pose: Pose3D = field(default_factory=Pose3D)
    camera: Camera = field(default_factory=Camera)
    image: Image = field(default_factory=Image)
    ticks: int = 0
    label: str = ''

    def _archive(self, ar: Archive) -> None:
        self.pose = ar.object(self.pose, Pose3D)
        self.camera = ar.object(self.camera, Camera)
        self.image = ar.object(self.image, Image)
        self.ticks = ar.number('u64', self.ticks)
        self.label = ar.text(self.label)


INLINE, SERIALIZED, KITTI_BIN, TEXT_FILE = 0, 1, 2, 3


@_mrpt('mrpt::obs::CObservationPointCloud', 0)
@dataclass(slots=True)
class PointCloud(Observation):
    """A cloud, in the object or in a file: ``KITTI_BIN`` is x y z intensity as float32."""

    label: str = ''
    ticks: int = 0
    pose: Pose3D = field(default_factory=Pose3D)
    storage: int = INLINE
    file: str = ''
    points: Any = None

    def _archive(self, ar: Archive) -> None:
        self.label = ar.text(self.label)
        self.ticks = ar.number('u64', self.ticks)
        self.pose = ar.object(self.pose, Pose3D)
        self.storage = ar.number('u8', self.storage)
        if self.storage == INLINE:
            self.points = ar.object(self.points)
        else:
            self.file = ar.text(self.file)


@_mrpt('mrpt::obs::CObservation3DRangeScan', 10)
@dataclass(slots=True, eq=False)
class DepthScan(Observation):
    """What a depth camera saw: points, depths as 16 bits of ``range_units`` metres, a picture."""

    max_range: float = 0.0
    pose: Pose3D = field(default_factory=Pose3D)
    xyz: Single | None = None
    range_units: float = 0.001
    depth: NDArray[np.uint16] | None = None
    intensity: Any = None
    confidence: Any = None
    depth_camera: Camera = field(default_factory=Camera)
    intensity_camera: Camera = field(default_factory=Camera)
    intensity_pose: Pose3D = field(default_factory=Pose3D)
    std_error: float = 0.0
    ticks: int = 0
    label: str = ''
    points_file: str = ''
    depth_file: str = ''
    range_is_depth: bool = True

    def _archive(self, ar: Archive) -> None:
        self.max_range = ar.number('f32', self.max_range)
        self.pose = ar.object(self.pose, Pose3D)
        if ar.number('bool', self.xyz is not None):
            self._archive_points(ar)
        has_depth = ar.number('bool', self.depth is not None)
        self.range_units = ar.number('f32', self.range_units)
        if has_depth:
            given = np.empty((0, 0), np.uint16) if self.depth is None else self.depth
            rows, columns = ar.numbers('u32', given.shape, 2)
            flat = ar.plane('<u2', given.ravel(), rows * columns)
            self.depth = flat.reshape(rows, columns)
        if ar.number('bool', self.intensity is not None):
            self.intensity = ar.object(self.intensity, Image)
        if ar.number('bool', self.confidence is not None):
            self.confidence = ar.object(self.confidence, Image)
        self.depth_camera = ar.object(self.depth_camera, Camera)
        self.intensity_camera = ar.object(self.intensity_camera, Camera)
        self.intensity_pose = ar.object(self.intensity_pose, Pose3D)
        self.std_error = ar.number('f32', self.std_error)
        self.ticks = ar.number('u64', self.ticks)
        self.label = ar.text(self.label)
        ar.number('bool', bool(self.points_file))
        self.points_file = ar.text(self.points_file)
        ar.number('bool', bool(self.depth_file))
        self.depth_file = ar.text(self.depth_file)
        self.range_is_depth = ar.number('bool', self.range_is_depth)
        ar.number('i8', 0)  # the channel of the picture
        ar.number('bool', False)  # no labels of pixels
        ar.number('u8', 0)  # no further layers

    def _archive_points(self, ar: Archive) -> None:
        given = np.empty((0, 3), np.float32) if self.xyz is None else self.xyz
        count = ar.number('u32', len(given))
        self.xyz = np.stack([ar.plane('<f4', given[:, axis], count) for axis in range(3)], axis=-1)
        for _ in ('column', 'row'):
            ar.plane('<u2', np.zeros(count, np.uint16), count)


@_mrpt('mrpt::obs::CObservationIMU', 4)
@dataclass(slots=True)
class Imu(Observation):
    """What an IMU measured: 31 values, of which ``present`` says which are known."""

    pose: Pose3D = field(default_factory=Pose3D)
    present: list[int] = field(default_factory=lambda: [0] * 31)
    ticks: int = 0
    values: list[float] = field(default_factory=partial(_zeros, 31))
    label: str = ''

    def _archive(self, ar: Archive) -> None:
        self.pose = ar.object(self.pose, Pose3D)
        self.present = ar.numbers('u8', self.present, 31)
        self.ticks = ar.number('u64', self.ticks)
        self.values = ar.numbers('f64', self.values, 31)
        self.label = ar.text(self.label)


@_mrpt('mrpt::obs::CObservationRange', 3)
@dataclass(slots=True)
class Ranges(Observation):
    """What range finders measured: id, pose on the robot and distance of each."""

    min_range: float = 0.0
    max_range: float = 0.0
    cone_radians: float = 0.0
    measured: list[tuple[int, Pose3D, float]] = field(default_factory=list)
    label: str = ''
    ticks: int = 0

    def _archive(self, ar: Archive) -> None:
        self.min_range = ar.number('f32', self.min_range)
        self.max_range = ar.number('f32', self.max_range)
        self.cone_radians = ar.number('f32', self.cone_radians)
        count = ar.number('u32', len(self.measured))
        self.measured = [
            (
                ar.number('u16', number),
                ar.object(pose, Pose3D),
                ar.number('f32', distance),
            )
            for number, pose, distance in self.measured or [(0, Pose3D(), 0.0)] * count
        ]
        self.label = ar.text(self.label)
        self.ticks = ar.number('u64', self.ticks)


@_mrpt('mrpt::obs::CObservationBatteryState', 2)
@dataclass(slots=True, eq=False)
class Battery(Observation):
    """Voltages of batteries, each with whether it is known."""

    main_volts: float = 0.0
    computer_volts: float = 0.0
    main_known: bool = False
    computer_known: bool = False
    other_volts: Floats = field(default_factory=partial(_none, np.float64))
    other_known: NDArray[np.uint8] = field(default_factory=partial(_none, np.uint8))
    label: str = ''
    ticks: int = 0

    def _archive(self, ar: Archive) -> None:
        self.main_volts = ar.number('f64', self.main_volts)
        self.computer_volts = ar.number('f64', self.computer_volts)
        self.main_known = ar.number('bool', self.main_known)
        self.computer_known = ar.number('bool', self.computer_known)
        self.other_volts = ar.vector('<f8', self.other_volts)
        self.other_known = ar.vector('u1', self.other_known)
        self.label = ar.text(self.label)
        self.ticks = ar.number('u64', self.ticks)


@_mrpt('mrpt::obs::CObservationRawDAQ', 0)
@dataclass(slots=True, eq=False)
class RawDaq(Observation):
    """Analogue readings: ``analogue`` are those that are doubles; others are read and not kept."""

    label: str = ''
    ticks: int = 0
    rate_hz: float = 0.0
    analogue: Floats = field(default_factory=partial(_none, np.float64))

    def _archive(self, ar: Archive) -> None:
        self.label = ar.text(self.label)
        self.ticks = ar.number('u64', self.ticks)
        self.rate_hz = ar.number('f64', self.rate_hz)
        for dtype in ('u1', '<u2', '<u4', '<f4'):
            ar.vector(dtype, np.empty(0, dtype))
        self.analogue = ar.vector('<f8', self.analogue)
        ar.number('u16', len(self.analogue))
        ar.number('bool', False)  # not interleaved
        for dtype in ('u1', '<u2', '<f4', '<f8', 'u1', 'u1', '<u4', '<f8'):
            ar.vector(dtype, np.empty(0, dtype))


# Actions, and frames of observations


@_mrpt('mrpt::obs::CSensoryFrame', 2)
@dataclass(slots=True)
class SensoryFrame(MrptObject):
    """Observations from one place."""

    observations: list[Any] = field(default_factory=list)

    def _archive(self, ar: Archive) -> None:
        self.observations = _objects(ar, self.observations)


@_mrpt('mrpt::obs::CActionCollection', 0)
@dataclass(slots=True)
class ActionCollection(MrptObject):
    """What the robot did between two frames."""

    actions: list[Any] = field(default_factory=list)

    def _archive(self, ar: Archive) -> None:
        self.actions = _objects(ar, self.actions)


@_mrpt('mrpt::obs::CActionRobotMovement2D', 7)
@dataclass(slots=True)
class Movement2D(MrptObject):
    """A movement in the plane, by odometry or by matching scans."""

    by_scans: bool = False
    increment: Pose2D = field(default_factory=Pose2D)
    model: int = 0
    gaussian: list[float] = field(default_factory=partial(_zeros, 6))
    particles: int = 300
    thrun: list[float] = field(default_factory=partial(_zeros, 6))
    matched: Any = None
    velocity: list[float] | None = None
    encoders: list[int] | None = None
    ticks: int = 0

    def _archive(self, ar: Archive) -> None:
        self.by_scans = bool(ar.number('u32', int(self.by_scans)))
        if self.by_scans:
            self.matched = ar.object(self.matched, Pose2DGaussian)
            self.increment = self.matched.mean
        else:
            self.increment = ar.object(self.increment, Pose2D)
            self.model = ar.number('u32', self.model)
            self.gaussian = ar.numbers('f32', self.gaussian, 6)
            self.particles = ar.number('u32', self.particles)
            self.thrun = ar.numbers('f32', self.thrun, 6)
        self.velocity = _optional(ar, 'f64', self.velocity, 3)
        self.encoders = _optional(ar, 'i32', self.encoders, 2)
        self.ticks = ar.number('u64', self.ticks)


@_mrpt('mrpt::obs::CActionRobotMovement3D', 1)
@dataclass(slots=True, eq=False)
class Movement3D(MrptObject):
    """A movement in space."""

    method: int = 0
    change: Pose3DGaussian = field(default_factory=Pose3DGaussian)
    has_velocity: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(6, np.uint8))
    velocity: Single = field(default_factory=lambda: np.zeros(6, np.float32))
    ticks: int = 0

    def _archive(self, ar: Archive) -> None:
        self.method = ar.number('u32', self.method)
        self.change = ar.object(self.change, Pose3DGaussian)
        self.has_velocity = ar.vector('u1', self.has_velocity)
        self.velocity = ar.vector('<f4', self.velocity)
        self.ticks = ar.number('u64', self.ticks)


def _optional(ar: Archive, kind: str, values: list[Any] | None, count: int) -> list[Any] | None:
    """Write or read numbers that may be missing, behind a boolean that says whether they are there."""
    if not ar.number('bool', values is not None):
        return None
    return ar.numbers(kind, values or [], count)


def _objects(ar: Archive, values: list[Any]) -> list[Any]:
    count = ar.number('u32', len(values))
    return [ar.object(value) for value in values or [None] * count]
