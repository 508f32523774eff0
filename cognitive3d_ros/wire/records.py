"""Camera and lidar records as values: the fields of the data format's tables, in snake case.

A record is what one message became, with the pose it was taken from. Times are whole milliseconds here,
as they are stored; positions are metres and rotations quaternions in scene axes. 32-bit floats are held
as the Python floats they are equal to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Pose(NamedTuple):
    """A sensor's pose in the session's reference frame: metres, and a unit quaternion, w last.

    One that was never written is the identity at the origin (data format, Schemas).
    """

    px: float = 0.0
    py: float = 0.0
    pz: float = 0.0
    qx: float = 0.0
    qy: float = 0.0
    qz: float = 0.0
    qw: float = 1.0


@dataclass(frozen=True, slots=True)
class CameraFrameRecord:
    """One picture (data format, Camera frames)."""

    camera_id: str
    time_ms: int
    seq: int
    frame_id: str
    pose: Pose
    format: str
    width: int
    height: int
    data: bytes
    hfov_degrees: float = 0.0
    vfov_degrees: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class LaserScanData:
    """A laser scan as published (data format, Laser scan): radians, seconds and metres.

    ``ranges`` and ``intensities`` are float32 of shape (rays,), every bit as it came; ``intensities`` is
    empty where none are stored.
    """

    angle_min: float
    angle_max: float
    angle_increment: float
    time_increment: float
    scan_time: float
    range_min: float
    range_max: float
    ranges: NDArray[np.float32]
    intensities: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class PointCloudData:
    """A block of points (data format, Point cloud); :func:`cognitive3d_ros.wire.clouds.read` opens it."""

    point_count: int
    position: str
    color: str
    intensity: str
    voxel_leaf_mm: int
    zstd_level: int
    data: bytes


@dataclass(frozen=True, slots=True, eq=False)
class LidarScanRecord:
    """One scan: exactly one of a laser scan or a point cloud (data format, Lidar scans)."""

    sensor_id: str
    time_ms: int
    seq: int
    frame_id: str
    pose: Pose
    scan: LaserScanData | PointCloudData


@dataclass(frozen=True, slots=True)
class SensorPart:
    """What a camera or lidar part says about itself; ``part`` counts from 1 in its session."""

    session_id: str
    device_id: str
    scene_id: str
    scene_version: int
    sdk_version: str
    part: int


@dataclass(frozen=True, slots=True)
class CameraPart(SensorPart):
    """A part of the stream ``camera``."""

    frames: tuple[CameraFrameRecord, ...]


@dataclass(frozen=True, slots=True)
class LidarPart(SensorPart):
    """A part of the stream ``lidar``."""

    scans: tuple[LidarScanRecord, ...]
