"""MRPT's observations: what sensors saw, and when, in MRPT's ticks."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cognitive3d_ros.wire.mrpt.archive import Archive, MrptObject
from cognitive3d_ros.wire.mrpt.fields import Floats, Single, mrpt, none, optional, zeros
from cognitive3d_ros.wire.mrpt.pictures import Camera, Image
from cognitive3d_ros.wire.mrpt.poses import Pose2D, Pose3D, Pose3DGaussian


class Observation(MrptObject):
    """What a sensor saw: ``label`` is the sensor's name, ``ticks`` when."""

    label: str
    ticks: int


@mrpt('mrpt::obs::CObservationComment', 0, 1)
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


@mrpt('mrpt::obs::CObservation2DRangeScan', 7, 8)
@dataclass(slots=True, eq=False)
class RangeScan(Observation):
    """A laser scan, symmetric about the x axis of ``pose``, which is the sensor's on the robot."""

    aperture: float = 0.0
    right_to_left: bool = True
    max_range: float = 0.0
    pose: Pose3D = field(default_factory=Pose3D)
    ranges: Single = field(default_factory=partial(none, np.float32))
    valid: NDArray[np.uint8] = field(default_factory=partial(none, np.uint8))
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


@mrpt('mrpt::obs::CObservationOdometry', 2)
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
        self.encoders = optional(ar, 'i32', self.encoders, 2)
        self.velocity = optional(ar, 'f64', self.velocity, 3)


@mrpt('mrpt::obs::CObservationRobotPose', 1)
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


@mrpt('mrpt::obs::CObservationImage', 4)
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


@mrpt('mrpt::obs::CObservationPointCloud', 0)
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


@mrpt('mrpt::obs::CObservation3DRangeScan', 10)
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


@mrpt('mrpt::obs::CObservationIMU', 4)
@dataclass(slots=True)
class Imu(Observation):
    """What an IMU measured: 31 values, of which ``present`` says which are known."""

    pose: Pose3D = field(default_factory=Pose3D)
    present: list[int] = field(default_factory=lambda: [0] * 31)
    ticks: int = 0
    values: list[float] = field(default_factory=partial(zeros, 31))
    label: str = ''

    def _archive(self, ar: Archive) -> None:
        self.pose = ar.object(self.pose, Pose3D)
        self.present = ar.numbers('u8', self.present, 31)
        self.ticks = ar.number('u64', self.ticks)
        self.values = ar.numbers('f64', self.values, 31)
        self.label = ar.text(self.label)


@mrpt('mrpt::obs::CObservationRange', 3)
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


@mrpt('mrpt::obs::CObservationBatteryState', 2)
@dataclass(slots=True, eq=False)
class Battery(Observation):
    """Voltages of batteries, each with whether it is known."""

    main_volts: float = 0.0
    computer_volts: float = 0.0
    main_known: bool = False
    computer_known: bool = False
    other_volts: Floats = field(default_factory=partial(none, np.float64))
    other_known: NDArray[np.uint8] = field(default_factory=partial(none, np.uint8))
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


@mrpt('mrpt::obs::CObservationRawDAQ', 0)
@dataclass(slots=True, eq=False)
class RawDaq(Observation):
    """Analogue readings: ``analogue`` are those that are doubles; of ``others`` only the number is kept."""

    label: str = ''
    ticks: int = 0
    rate_hz: float = 0.0
    analogue: Floats = field(default_factory=partial(none, np.float64))
    others: int = 0

    def _archive(self, ar: Archive) -> None:
        self.label = ar.text(self.label)
        self.ticks = ar.number('u64', self.ticks)
        self.rate_hz = ar.number('f64', self.rate_hz)
        before = [ar.vector(dtype, np.empty(0, dtype)) for dtype in ('u1', '<u2', '<u4', '<f4')]
        self.analogue = ar.vector('<f8', self.analogue)
        ar.number('u16', len(self.analogue))
        ar.number('bool', False)  # not interleaved
        behind = [
            ar.vector(dtype, np.empty(0, dtype))
            for dtype in ('u1', '<u2', '<f4', '<f8', 'u1', 'u1', '<u4', '<f8')
        ]
        self.others = sum(len(each) for each in [*before, *behind])
