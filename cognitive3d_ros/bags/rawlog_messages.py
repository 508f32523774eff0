"""Observations of MRPT as ROS messages: anything with the fields of their types.

Topics are ``/<label>/<what>``, or ``/<what>`` of an observation without a label.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, NamedTuple

import numpy as np

from cognitive3d_ros.clock import NS_PER_S
from cognitive3d_ros.errors import FormatError
from cognitive3d_ros.ros_names import topic_words
from cognitive3d_ros.spool.fs import open_file
from cognitive3d_ros.wire.mrpt import classes as mrpt

_FLOAT32: Final = 7  # of sensor_msgs/PointField
_BODY_TO_OPTICAL: Final = np.array([[0.0, 0.0, 1.0], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0]])
_DEPTH_UNIT_M: Final = 0.001
_OPTICAL: Final = '_optical_frame'


class Place(NamedTuple):
    """Where a frame is, on the robot."""

    frame: str
    xyz: tuple[float, ...]
    rotation: tuple[float, ...]
    """x y z w."""


class Made(NamedTuple):
    """A message: it is made when it is wanted."""

    topic: str
    type: str
    make: Callable[[], Any]
    place: Place | None = None
    """Of the frame that its header names."""

    def decode(self, _: bytes) -> Any:
        """Make it, as a recording's reader deserialises one."""
        return self.make()


def header(stamp_ns: int, frame: str) -> SimpleNamespace:
    """Return a std_msgs/Header."""
    sec, nanosec = divmod(stamp_ns, NS_PER_S)
    return SimpleNamespace(stamp=SimpleNamespace(sec=sec, nanosec=nanosec), frame_id=frame)


def quaternion(matrix: Any) -> tuple[float, float, float, float]:
    """Return the quaternion x y z w of a rotation matrix (3, 3); of no rotation something that is none."""
    m = np.asarray(matrix, np.float64)
    # The largest of the four is computed from the diagonal, the others from it: never a small divisor.
    squares = 1.0 + np.array(
        [
            m[0, 0] - m[1, 1] - m[2, 2],
            m[1, 1] - m[0, 0] - m[2, 2],
            m[2, 2] - m[0, 0] - m[1, 1],
            m[0, 0] + m[1, 1] + m[2, 2],
        ]
    )
    sums = np.array(
        [
            [0.0, m[0, 1] + m[1, 0], m[0, 2] + m[2, 0], m[2, 1] - m[1, 2]],
            [m[0, 1] + m[1, 0], 0.0, m[1, 2] + m[2, 1], m[0, 2] - m[2, 0]],
            [m[0, 2] + m[2, 0], m[1, 2] + m[2, 1], 0.0, m[1, 0] - m[0, 1]],
            [m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1], 0.0],
        ]
    )
    largest = int(np.argmax(squares))
    row = sums[largest]
    row[largest] = squares[largest]
    with np.errstate(all='ignore'):  # what damage has made infinite is no rotation, and tf says so
        x, y, z, w = (row / np.linalg.norm(row)).tolist()
    return (x, y, z, w)


class Converter:
    """Makes messages of observations; ``frames`` are the names of frames by label, where they are known."""

    def __init__(self, images: Path, frames: dict[str, str]) -> None:
        self._images = images
        self._frames = frames

    def messages(self, observation: Any, stamp_ns: int) -> Iterator[Made]:
        """Give the messages of an observation; of one that has no place among ROS's types none."""
        convert = _CONVERTERS.get(type(observation))
        if convert is not None:
            yield from convert(self, observation, stamp_ns)

    def _frame(self, label: str, usual: str) -> str:
        return self._frames.get(label) or (topic_words(label) if label else usual)

    def _optical(self, label: str) -> str:
        """Return the name of a camera's frame: one whose name says that it looks along z."""
        frame = self._frame(label, 'camera')
        return frame if frame.endswith(('_optical', _OPTICAL)) else f'{frame}{_OPTICAL}'

    def _scan(self, scan: mrpt.RangeScan, stamp_ns: int) -> Iterator[Made]:
        place = _place(self._frame(scan.label, 'laser'), scan.pose)

        def make() -> Any:
            rays = len(scan.ranges)
            sign = 1.0 if scan.right_to_left else -1.0
            half = sign * scan.aperture / 2
            limit = scan.max_range
            # A range that is marked as invalid, and lies within the limits, would be taken for one.
            within = (scan.ranges >= 0) & (scan.ranges <= limit)
            ranges = np.where((scan.valid == 0) & within, np.float32(np.nan), scan.ranges)
            intensities = np.empty(0, np.float32)
            if scan.intensities is not None:
                intensities = scan.intensities.astype(np.float32)
            return SimpleNamespace(
                header=header(stamp_ns, place.frame),
                angle_min=-half,
                angle_max=half,
                angle_increment=sign * scan.aperture / (rays - 1) if rays > 1 else 0.0,
                time_increment=0.0,
                scan_time=0.0,
                range_min=0.0,
                range_max=limit,
                ranges=ranges,
                intensities=intensities,
            )

        yield Made(_topic(scan.label, 'scan'), 'sensor_msgs/msg/LaserScan', make, place)

    def _picture(self, picture: mrpt.CameraImage, stamp_ns: int) -> Iterator[Made]:
        place = _place(self._optical(picture.label), picture.pose)
        yield from self._camera(picture.label, picture.image, picture.camera, stamp_ns, place)

    def _camera(
        self, label: str, image: mrpt.Image, camera: mrpt.Camera, stamp_ns: int, place: Place
    ) -> Iterator[Made]:
        topic = _topic(label, 'image')
        if image.file or image.jpeg:
            yield Made(
                topic,
                'sensor_msgs/msg/CompressedImage',
                lambda: SimpleNamespace(
                    header=header(stamp_ns, place.frame),
                    format='jpeg',
                    data=image.jpeg or self._external(image.file),
                ),
                place,
            )
        else:
            yield _pixels(topic, stamp_ns, place, image.rows, 'bgr8' if image.color else 'mono8')
        yield _camera_info(_topic(label, 'camera_info'), stamp_ns, place.frame, camera)

    def _external(self, name: str) -> bytes:
        path = self._images / name
        try:
            with open_file(path) as file:
                return file.read()
        except ValueError as error:  # a zero byte
            raise FormatError(f'{path}: {error}') from None
        except OSError as error:
            raise FormatError(f'{path}: {error.strerror}') from None

    def _cloud(self, cloud: mrpt.PointCloud, stamp_ns: int) -> Iterator[Made]:
        place = _place(self._frame(cloud.label, 'lidar'), cloud.pose)

        def make() -> Any:
            columns = _columns(cloud.points) if cloud.points is not None else self._binary(cloud)
            return _point_cloud(stamp_ns, place.frame, columns)

        yield Made(_topic(cloud.label, 'points'), 'sensor_msgs/msg/PointCloud2', make, place)

    def _binary(self, cloud: mrpt.PointCloud) -> list[tuple[str, Any]]:
        if cloud.storage != mrpt.KITTI_BIN:
            raise FormatError(
                f'{cloud.file}: points in a file of form {cloud.storage} are not read'
            )
        data = self._external(cloud.file)
        if len(data) % 16:
            raise FormatError(f'{cloud.file}: {len(data)} bytes are no points of 16 bytes')
        rows = np.frombuffer(data, '<f4').reshape(-1, 4)
        return [(name, rows[:, i]) for i, name in enumerate(('x', 'y', 'z', 'intensity'))]

    def _depth(self, scan: mrpt.DepthScan, stamp_ns: int) -> Iterator[Made]:
        body = _place(self._frame(scan.label, 'camera'), scan.pose)
        if scan.xyz is not None:
            columns = [(name, scan.xyz[:, i]) for i, name in enumerate('xyz')]
            yield Made(
                _topic(scan.label, 'points'),
                'sensor_msgs/msg/PointCloud2',
                lambda: _point_cloud(stamp_ns, body.frame, columns),
                body,
            )
        base = scan.pose.rotation
        if scan.depth is not None:
            pose = mrpt.Pose3D(scan.pose.xyz, base @ _BODY_TO_OPTICAL)
            place = _place(f'{body.frame}_depth{_OPTICAL}', pose)
            millimetres = np.rint(scan.depth * (scan.range_units / _DEPTH_UNIT_M)).astype('<u2')
            rows = millimetres.view(np.uint8)
            yield _pixels(_topic(scan.label, 'depth/image'), stamp_ns, place, rows, '16UC1')
            info = _topic(scan.label, 'depth/camera_info')
            yield _camera_info(info, stamp_ns, place.frame, scan.depth_camera)
        if scan.intensity is not None:
            xyz = np.array(scan.pose.xyz) + base @ np.array(scan.intensity_pose.xyz)
            pose = mrpt.Pose3D(xyz.tolist(), base @ scan.intensity_pose.rotation)
            place = _place(f'{body.frame}{_OPTICAL}', pose)
            yield from self._camera(
                scan.label, scan.intensity, scan.intensity_camera, stamp_ns, place
            )

    def _imu(self, imu: mrpt.Imu, stamp_ns: int) -> Iterator[Made]:
        place = _place(self._frame(imu.label, 'imu'), imu.pose)

        def make() -> Any:
            def vector(*at: int) -> tuple[Any, list[float]]:
                known = all(imu.present[index] for index in at)
                values = [imu.values[index] for index in at] if known else [0.0] * len(at)
                names = dict(zip('xyzw', values, strict=False))
                return SimpleNamespace(**names), [0.0 if known else -1.0] + [0.0] * 8

            acceleration, acceleration_known = vector(0, 1, 2)
            rate, rate_known = vector(5, 4, 3)  # MRPT has yaw, pitch, roll
            orientation, orientation_known = vector(21, 22, 23, 24)
            return SimpleNamespace(
                header=header(stamp_ns, place.frame),
                orientation=orientation,
                orientation_covariance=orientation_known,
                angular_velocity=rate,
                angular_velocity_covariance=rate_known,
                linear_acceleration=acceleration,
                linear_acceleration_covariance=acceleration_known,
            )

        yield Made(_topic(imu.label, 'imu'), 'sensor_msgs/msg/Imu', make, place)

    def _ranges(self, ranges: mrpt.Ranges, stamp_ns: int) -> Iterator[Made]:
        several = len(ranges.measured) > 1
        for number, pose, distance in ranges.measured:
            what = f'range_{number}' if several else 'range'
            place = _place(f'{self._frame(ranges.label, "sonar")}_{number}', pose)
            message = SimpleNamespace(
                header=header(stamp_ns, place.frame),
                radiation_type=0,
                field_of_view=ranges.cone_radians,
                min_range=ranges.min_range,
                max_range=ranges.max_range,
                range=distance,
            )
            yield _ready(_topic(ranges.label, what), 'sensor_msgs/msg/Range', message, place)

    def _battery(self, battery: mrpt.Battery, stamp_ns: int) -> Iterator[Made]:
        unknown = float('nan')
        message = SimpleNamespace(
            header=header(stamp_ns, ''),
            voltage=battery.main_volts if battery.main_known else unknown,
            current=unknown,
            charge=unknown,
            capacity=unknown,
            design_capacity=unknown,
            percentage=unknown,
            temperature=unknown,
        )
        yield _ready(_topic(battery.label, 'battery'), 'sensor_msgs/msg/BatteryState', message)

    def _readings(self, daq: mrpt.RawDaq, stamp_ns: int) -> Iterator[Made]:
        del stamp_ns
        several = len(daq.analogue) > 1
        for index, value in enumerate(daq.analogue.tolist()):
            what = f'analogue_{index}' if several else 'analogue'
            message = SimpleNamespace(data=value)
            yield _ready(_topic(daq.label, what), 'std_msgs/msg/Float64', message)


_CONVERTERS: Final[dict[type[Any], Callable[[Converter, Any, int], Iterator[Made]]]] = {
    mrpt.RangeScan: Converter._scan,
    mrpt.CameraImage: Converter._picture,
    mrpt.PointCloud: Converter._cloud,
    mrpt.DepthScan: Converter._depth,
    mrpt.Imu: Converter._imu,
    mrpt.Ranges: Converter._ranges,
    mrpt.Battery: Converter._battery,
    mrpt.RawDaq: Converter._readings,
}


def _topic(label: str, what: str) -> str:
    return f'/{topic_words(label)}/{what}' if label else f'/{what}'


def _place(frame: str, pose: mrpt.Pose3D) -> Place:
    return Place(frame, tuple(pose.xyz), quaternion(pose.rotation))


def _ready(topic: str, kind: str, message: Any, place: Place | None = None) -> Made:
    return Made(topic, kind, lambda: message, place)


def _pixels(topic: str, stamp_ns: int, place: Place, rows: Any, encoding: str) -> Made:
    """Return an image of rows of bytes."""

    def make() -> Any:
        height, step = rows.shape
        return SimpleNamespace(
            header=header(stamp_ns, place.frame),
            width=step // {'bgr8': 3, 'mono8': 1, '16UC1': 2}[encoding],
            height=height,
            encoding=encoding,
            is_bigendian=0,
            step=step,
            data=rows.tobytes(),
        )

    return Made(topic, 'sensor_msgs/msg/Image', make, place)


def _camera_info(topic: str, stamp_ns: int, frame: str, camera: mrpt.Camera) -> Made:
    fx, fy, cx, cy = camera.intrinsics
    models = {0: '', 1: 'plumb_bob', 2: 'kannala_brandt'}
    message = SimpleNamespace(
        header=header(stamp_ns, frame),
        width=camera.columns,
        height=camera.rows,
        distortion_model=models.get(camera.model, ''),
        d=camera.distortion,
        k=[fx, 0.0, cx, 0.0, fy, cy, 0.0, 0.0, 1.0],
        r=[1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0],
        p=[fx, 0.0, cx, 0.0, 0.0, fy, cy, 0.0, 0.0, 0.0, 1.0, 0.0],
        binning_x=0,
        binning_y=0,
        roi=SimpleNamespace(x_offset=0, y_offset=0, width=0, height=0, do_rectify=False),
    )
    return _ready(topic, 'sensor_msgs/msg/CameraInfo', message)


def _columns(points: Any) -> list[tuple[str, Any]]:
    """Return the columns of a map of points, as float32, colours packed."""
    columns = [(name, points.xyz.reshape(-1, 3)[:, i]) for i, name in enumerate('xyz')]
    if isinstance(points, mrpt.IntensityPoints):
        columns.append(('intensity', points.intensity))
    if isinstance(points, mrpt.ColouredPoints):
        columns.append(_packed([np.rint(each * 255) for each in points.rgb]))
    if isinstance(points, mrpt.GenericPoints):
        named = points.fields
        if 'intensity' in named:
            columns.append(('intensity', named['intensity'].astype(np.float32)))
        for prefix, scale in (('color_', 1), ('color_', 255)):
            names = [f'{prefix}{c}{"" if scale == 1 else "f"}' for c in 'rgb']
            if all(name in named for name in names):
                columns.append(_packed([np.rint(named[name] * scale) for name in names]))
                break
    return columns


def _packed(channels: list[Any]) -> tuple[str, Any]:
    red, green, blue = (np.clip(each, 0, 255).astype(np.uint32) for each in channels)
    return 'rgb', (red << 16 | green << 8 | blue).view(np.float32)


def _point_cloud(stamp_ns: int, frame: str, columns: list[tuple[str, Any]]) -> Any:
    count = len(columns[0][1])
    data = np.empty((count, len(columns)), '<f4')
    for index, (_, values) in enumerate(columns):
        data[:, index] = values
    return SimpleNamespace(
        header=header(stamp_ns, frame),
        height=1,
        width=count,
        fields=[
            SimpleNamespace(name=name, offset=4 * index, datatype=_FLOAT32, count=1)
            for index, (name, _) in enumerate(columns)
        ],
        is_bigendian=False,
        point_step=4 * len(columns),
        row_step=4 * len(columns) * count,
        data=data.tobytes(),
        is_dense=False,
    )
