"""Checked parameters, as the rest of the package reads them.

The fields carry the parameters' names ("." turned into "_"), and hold what is in force: where a
parameter was left empty and something else stands in for it, that is what the field holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .properties import Property


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """A topic recorded as series; ``prefix`` is what their names begin with."""

    name: str
    topic: str
    prefix: str
    rate_hz: float  # 0: every message
    fields: tuple[str, ...]
    qos: str


@dataclass(frozen=True, slots=True)
class ActionConfig:
    """An action whose outcomes are recorded; ``prefix`` is what its events' names begin with."""

    name: str
    action: str
    prefix: str


@dataclass(frozen=True, slots=True)
class SensorConfig:
    """A described sensor; keys of the other kind hold None, empty texts or their defaults."""

    name: str
    kind: str
    topic: str
    frame: str
    mount_parent: str
    mount_measured: bool
    units: str
    cone_half_angle_degrees: float | None
    range_min_centimeters: float | None
    range_max_centimeters: float | None
    mount_xyz_meters: tuple[float, float, float] | None
    mount_yaw_radians: float
    element_count: int | None
    meaning_0: str
    meaning_1: str
    qos: str

    @property
    def series(self) -> tuple[str, ...]:
        """The series that its readings are recorded under: one, or one for each element."""
        if self.element_count is None:
            return (self.name,)
        return tuple(f'{self.name}.{i}' for i in range(self.element_count))


@dataclass(frozen=True, slots=True)
class CameraConfig:
    """A camera; ``frame`` and ``encoding`` are empty where the messages' own hold."""

    name: str
    topic: str
    info_topic: str
    transport: str
    rate_hz: float  # 0: every frame
    jpeg_quality: int
    max_width: int
    encoding: str
    frame: str
    depth_range_m: tuple[float, float]
    qos: str


@dataclass(frozen=True, slots=True)
class LidarConfig:
    """A lidar; ``frame`` is empty where the messages' own holds."""

    name: str
    topic: str
    type: str
    rate_hz: float  # 0: every scan
    frame: str
    laserscan_intensities: bool
    pointcloud_position: str
    pointcloud_color: str
    pointcloud_intensity: str
    pointcloud_intensity_field: str
    pointcloud_voxel_leaf_mm: int
    pointcloud_zstd_level: int
    qos: str


@dataclass(frozen=True, slots=True)
class SpoolConfig:
    """Where and how much the spool may hold; "~" is expanded."""

    dir: Path
    max_bytes: int
    min_free_bytes: int
    flush_s: float


@dataclass(frozen=True, slots=True)
class UploadConfig:
    """How parts are delivered."""

    enabled: bool
    timeout_s: float
    max_bytes_per_s: int  # 0: no limit
    require_ack_header: bool


@dataclass(frozen=True, slots=True)
class Config:
    """All parameters of one recorder."""

    device_id: str
    scene_id: str
    scene_version: int
    autostart: bool
    auto_start_session: bool
    session_name: str  # empty: the session id
    session_properties: Mapping[str, Property]
    session_comment: str
    remote_variables: bool
    ignore_unknown_parameters: bool
    robot_frame: str
    reference_frames: tuple[str, ...]
    reference_wait_s: float  # 0: for ever
    gaze_frame: str  # empty: none is set, robot_frame stands in
    gaze_frame_convention: str
    pose_convention: str
    sample_rate_hz: float
    stale_pose_s: float
    use_sim_time: bool
    sim_time_on_wire: bool
    robot_dynamic_object: bool
    robot_object_id: str
    robot_display_name: str
    robot_mesh: str
    mesh_yaw_offset_deg: float
    topics: tuple[TopicConfig, ...]
    actions: tuple[ActionConfig, ...]
    sensors: tuple[SensorConfig, ...]
    cameras: tuple[CameraConfig, ...]
    lidars: tuple[LidarConfig, ...]
    gateway: str  # without a trailing "/"
    application_key_file: Path | None
    spool: SpoolConfig
    upload: UploadConfig
