"""The inputs of cameras and lidars: which topics, and what a worker makes of their messages."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from cognitive3d_ros.clock import NS_PER_S, Arrival
from cognitive3d_ros.conventions import Convention, resolve_gaze_convention
from cognitive3d_ros.convert.camera import (
    NOT_RECORDED,
    CameraInfos,
    FieldOfView,
    field_of_view,
    is_rectified,
)
from cognitive3d_ros.convert.clouds import Cloud, CloudOptions, convert_cloud
from cognitive3d_ros.convert.outcome import Dropped
from cognitive3d_ros.convert.scans import Scan, convert_scan
from cognitive3d_ros.counters import LeftOut
from cognitive3d_ros.errors import ParameterError
from cognitive3d_ros.parameters import CameraConfig, Config, LidarConfig
from cognitive3d_ros.recording.inputs import Input, Publication, why_silent
from cognitive3d_ros.recording.sensors import Frame, Made, Sweep
from cognitive3d_ros.tf import frame_name
from cognitive3d_ros.wire.bodies import PropertyValue

if TYPE_CHECKING:
    from cognitive3d_ros.convert.pictures import Picture, PictureOptions

IMAGE: Final = 'sensor_msgs/msg/Image'
COMPRESSED_IMAGE: Final = 'sensor_msgs/msg/CompressedImage'
CAMERA_INFO: Final = 'sensor_msgs/msg/CameraInfo'
LASER_SCAN: Final = 'sensor_msgs/msg/LaserScan'
POINT_CLOUD: Final = 'sensor_msgs/msg/PointCloud2'

_TYPES: Final = {
    'raw': IMAGE,
    'compressed': COMPRESSED_IMAGE,
    'laserscan': LASER_SCAN,
    'pointcloud': POINT_CLOUD,
}
_NO_COUNT: Final = Arrival(0, 0, 0, 0)  # of a camera info, which is no record
_MUCH: Final = 0.01  # of a cloud: when more of it is left out, somebody should know
_MAX_FRAME_CHARS: Final = 256  # of a frame's name, as a property


class Recording(Protocol):
    """What these inputs need of the recorder."""

    def due(self, source: str) -> Arrival | None:
        """Count a message that arrives now; None where it is not to be taken."""

    def capture(
        self,
        source: str,
        arrival: Arrival,
        *,
        stamp_ns: int,
        frame_id: str,
        make: Callable[[], Made],
    ) -> None:
        """Record a message that was due."""

    def know(self, properties: Mapping[str, PropertyValue]) -> None:
        """Add to the properties of this session and of all that follow."""

    def silent(self, source: str, why: str) -> None:
        """Take note of why nothing may come in on an input."""


def sensor_inputs(config: Config, recording: Recording) -> list[Input]:
    """Return the inputs of all cameras and lidars.

    Raises ParameterError where a camera is configured and OpenCV is missing.
    """
    inputs: list[Input] = []
    for camera in config.cameras:
        infos = CameraInfoInput(camera)
        inputs += (CameraInput(camera, recording, infos), infos)
    inputs += (LidarInput(lidar, recording, config.pose_convention) for lidar in config.lidars)
    return inputs


class _SensorInput:
    """What cameras and lidars share: one topic, of one of two types."""

    def __init__(
        self,
        kind: str,
        member: CameraConfig | LidarConfig,
        recording: Recording,
        types: Sequence[str],
    ) -> None:
        self.source = f'{kind}.{member.name}'
        self.topic, self.qos = member.topic, member.qos
        self.expects = types[0] if len(types) == 1 else ''
        self._recording = recording
        self._types = types
        self._frame = member.frame
        self._known_frame: str | None = None

    def found(self, publication: Publication) -> str | None:
        """Take note of a publication; return why its messages cannot be recorded, or None."""
        reason = None
        if publication.type not in self._types:
            reason = f'{publication.type} is published: {" or ".join(self._types)} is wanted'
        self._recording.silent(self.source, why_silent(publication, reason, self.qos))
        if reason is not None:
            return reason
        self._publication(publication)
        facts = {'type': publication.type}
        if publication.publisher:
            facts['publisher'] = publication.publisher
        self._know(facts)
        return None

    def due(self) -> Arrival | None:
        """Count a message that arrives now. None: it is not to be taken (no session, or decimated)."""
        return self._recording.due(self.source)

    def take(self, message: Any, arrival: Arrival) -> None:
        """Record a message that was due."""
        stamp = message.header.stamp
        # ROS 1 names them otherwise.
        nanosec = stamp.nanosec if hasattr(stamp, 'nanosec') else stamp.nsec
        stamp_ns = stamp.sec * NS_PER_S + nanosec
        frame = frame_name(self._frame or message.header.frame_id)
        if frame != self._known_frame:
            self._known_frame = frame
            self._know(self._frame_facts(frame[:_MAX_FRAME_CHARS]))
        make = functools.partial(self._make, message, stamp_ns)
        self._recording.capture(self.source, arrival, stamp_ns=stamp_ns, frame_id=frame, make=make)

    def _know(self, facts: Mapping[str, str]) -> None:
        self._recording.know({f'c3d.ros.{self.source}.{key}': fact for key, fact in facts.items()})

    def _publication(self, publication: Publication) -> None:
        raise NotImplementedError

    def _frame_facts(self, frame: str) -> dict[str, str]:
        return {'frame': frame}

    def _make(self, message: Any, stamp_ns: int) -> Made:
        raise NotImplementedError


class CameraInput(_SensorInput):
    """The pictures of a camera."""

    def __init__(self, camera: CameraConfig, recording: Recording, infos: CameraInfoInput) -> None:
        types = (
            (IMAGE, COMPRESSED_IMAGE)
            if camera.transport == 'auto'
            else (_TYPES[camera.transport],)
        )
        super().__init__('camera', camera, recording, types)
        try:
            # Only here: robots without cameras need no OpenCV.
            from cognitive3d_ros.convert.compressed import convert_compressed
            from cognitive3d_ros.convert.images import convert_image
            from cognitive3d_ros.convert.pictures import PictureOptions
        except ImportError as error:
            raise ParameterError(
                [f'cameras: OpenCV cannot be imported ({error}): apt install python3-opencv']
            ) from error
        self._converters = {IMAGE: convert_image, COMPRESSED_IMAGE: convert_compressed}
        self._convert: Callable[[Any, PictureOptions], Picture | Dropped] = self._converters[
            types[0]
        ]
        self._options = PictureOptions(
            jpeg_quality=camera.jpeg_quality,
            max_width=camera.max_width,
            encoding=camera.encoding,
            depth_range_m=camera.depth_range_m,
        )
        self._infos = infos
        self._rectified = is_rectified(camera.topic)

    def _publication(self, publication: Publication) -> None:
        self._convert = self._converters[publication.type]
        self._rectified = is_rectified(publication.topic)

    def _frame_facts(self, frame: str) -> dict[str, str]:
        return {'frame': frame, 'convention': resolve_gaze_convention(frame)}

    def _make(self, message: Any, stamp_ns: int) -> Made:
        picture = self._convert(message, self._options)
        if isinstance(picture, Dropped):
            return picture
        return Frame(
            picture.width,
            picture.height,
            picture.data,
            functools.partial(
                self._field_of_view, stamp_ns, picture.published_width, picture.published_height
            ),
        )

    def _field_of_view(
        self,
        stamp_ns: int,
        width: int,
        height: int,
        last_chance: bool,  # noqa: FBT001 - called with nothing else
    ) -> FieldOfView | None:
        infos = self._infos.infos
        if self._infos.published and not last_chance and not infos.reach(stamp_ns):
            return None
        info = infos.at(stamp_ns)
        if info is None:
            return NOT_RECORDED
        return field_of_view(info, width, height, rectified=self._rectified)


class CameraInfoInput:
    """What a camera says of itself; kept whether or not a session is active."""

    def __init__(self, camera: CameraConfig) -> None:
        self.source = f'camera.{camera.name}.info'
        self.topic, self.qos = camera.info_topic, camera.qos
        self.expects = CAMERA_INFO
        self.infos = CameraInfos()
        self.published = False  # as far as is known

    def found(self, publication: Publication) -> str | None:
        """Return why its messages cannot be used, or None."""
        if publication.type != CAMERA_INFO:
            return f'{publication.type} is published: {CAMERA_INFO} is wanted'
        self.published = True
        return None

    def due(self) -> Arrival | None:
        """Every message is taken, and none is counted."""
        return _NO_COUNT

    def take(self, message: Any, arrival: Arrival) -> None:  # noqa: ARG002 - as all inputs have it
        """Keep a message."""
        stamp = message.header.stamp
        nanosec = stamp.nanosec if hasattr(stamp, 'nanosec') else stamp.nsec
        self.infos.add(stamp.sec * NS_PER_S + nanosec, message)


class LidarInput(_SensorInput):
    """The scans or clouds of a lidar."""

    def __init__(self, lidar: LidarConfig, recording: Recording, convention: str) -> None:
        types = (LASER_SCAN, POINT_CLOUD) if lidar.type == 'auto' else (_TYPES[lidar.type],)
        super().__init__('lidar', lidar, recording, types)
        self._convention = Convention(convention)
        self._intensities = lidar.laserscan_intensities
        self._options = CloudOptions(
            position=lidar.pointcloud_position,
            color=lidar.pointcloud_color,
            intensity=lidar.pointcloud_intensity,
            intensity_field=lidar.pointcloud_intensity_field,
            voxel_leaf_mm=lidar.pointcloud_voxel_leaf_mm,
            zstd_level=lidar.pointcloud_zstd_level,
        )
        self._is_scan = types[0] == LASER_SCAN

    def _publication(self, publication: Publication) -> None:
        self._is_scan = publication.type == LASER_SCAN

    def _make(self, message: Any, stamp_ns: int) -> Made:  # noqa: ARG002 - as the cameras have it
        if self._is_scan:
            scan = convert_scan(message, intensities=self._intensities)
            return scan if isinstance(scan, Dropped) else _of_scan(scan)
        cloud = convert_cloud(message, self._options, self._convention)
        return cloud if isinstance(cloud, Dropped) else _of_cloud(cloud)


def _of_scan(scan: Scan) -> Sweep:
    if not scan.intensities_left_out:
        return Sweep(scan.data)
    warning = (
        f'stored without intensities: there was not one for each of {len(scan.data.ranges)} rays'
    )
    return Sweep(scan.data, {LeftOut.INTENSITIES: 1}, warning)


def _of_cloud(cloud: Cloud) -> Sweep:
    if not cloud.out_of_range:
        return Sweep(cloud.data)
    warning = ''
    if cloud.out_of_range > _MUCH * cloud.points:
        warning = (
            f'{cloud.out_of_range} of {cloud.points} points were left out: they are farther away than '
            f'{cloud.data.position} holds'
        )
    return Sweep(cloud.data, {LeftOut.OUT_OF_RANGE: cloud.out_of_range}, warning)
