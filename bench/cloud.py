"""Point clouds: the time from a message to its part, and the bytes of a sweep."""

from __future__ import annotations

import ctypes
import io
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np

from bench.table import Pair, Row
from cognitive3d_ros.conventions import Convention
from cognitive3d_ros.convert import clouds
from cognitive3d_ros.wire.capnp_codec import assemble, lidar_entry
from cognitive3d_ros.wire.identity import SessionIdentity
from cognitive3d_ros.wire.records import LidarScanRecord, Pose

ROUNDS = 150
SWEEP = Path(__file__).parents[2] / 'shared' / 'data' / 'hdl32_sweep.npz'
IDENTITY = SessionIdentity('1_bench', 'bench', 'scene', 3, '1.0.0', 10**9, 0.1)
POINT = np.dtype([(name, '<f4') for name in ('x', 'y', 'z', 'intensity')])
DEFAULT = clouds.CloudOptions(intensity='uint8')


def _sweep() -> np.ndarray:
    """Return the points of a turn of an HDL-32, or of a made one: a floor, walls, and no returns."""
    if SWEEP.is_file():
        return np.load(SWEEP)['points']
    random = np.random.default_rng(32)
    angle = np.repeat(np.linspace(0, 2 * np.pi, 2401), 32)
    slope = np.tile(np.radians(np.linspace(-30, 10, 32)), 2401)
    floor = np.where(slope < -0.02, 1.9 / np.maximum(np.sin(-slope), 1e-3), 81.0)
    reach = np.minimum(floor, 12 + 8 * np.sin(3 * angle)) + random.normal(0, 0.01, angle.size)
    reach *= random.random(angle.size) > 0.25
    points = np.zeros(angle.size, POINT)
    points['x'] = reach * np.cos(slope) * np.cos(angle)
    points['y'] = reach * np.cos(slope) * np.sin(angle)
    points['z'] = reach * np.sin(slope)
    points['intensity'] = random.integers(0, 256, angle.size)
    return points


def _message(points: np.ndarray) -> SimpleNamespace:
    """Return the points as a PointCloud2, its data as rclpy has it."""
    numbers = {'f4': 7, 'u2': 4}
    return SimpleNamespace(
        height=1,
        width=len(points),
        fields=[
            SimpleNamespace(name=name, offset=offset, datatype=numbers[kind.str[1:]], count=1)
            for name, (kind, offset) in points.dtype.fields.items()
        ],
        is_bigendian=False,
        point_step=points.dtype.itemsize,
        row_step=points.nbytes,
        data=array('B', points.tobytes()),
    )


def _part(message: Any, options: clouds.CloudOptions, convention: Convention) -> bytes:
    """Return the part of one message."""
    cloud = clouds.convert_cloud(message, options, convention)
    assert isinstance(cloud, clouds.Cloud)
    record = LidarScanRecord('roof', 1, 0, 'velodyne', Pose(), cloud.data)
    return assemble(IDENTITY, 'lidar', 'lidar', 1, [lidar_entry(record)])[0]


def _unique(planes: Sequence[np.ndarray], leaf_m: float) -> list[np.ndarray]:
    """Average by cubes as one writes it down in numpy."""
    cells = np.floor(np.stack(planes[:3]).astype(float) / leaf_m).astype(np.int64) + (1 << 20)
    _, cube = np.unique(cells[0] << 42 | cells[1] << 21 | cells[2], return_inverse=True)
    count = np.bincount(cube)
    return [np.bincount(cube, plane) / count for plane in planes]


def _open3d() -> Callable[[Sequence[np.ndarray], float], list[np.ndarray]] | None:
    """Return Open3D's downsampling in our step's place, the intensity as a colour; None without it."""
    try:
        import open3d
    except ImportError:
        return None
    geometry, vectors = open3d.geometry, open3d.utility.Vector3dVector

    def average(planes: Sequence[np.ndarray], leaf_m: float) -> list[np.ndarray]:
        cloud = geometry.PointCloud(vectors(np.stack(planes[:3], axis=1).astype(float)))
        colors = np.zeros((len(planes[0]), 3))
        colors[:, 0] = planes[3]
        cloud.colors = vectors(colors)
        down = cloud.voxel_down_sample(leaf_m)
        return [*np.asarray(down.points).T, np.asarray(down.colors)[:, 0]]

    return average


def _timed(work: Callable[[], object]) -> float:
    start_s = time.perf_counter()
    work()
    return time.perf_counter() - start_s


def speed(theirs: Callable[[Sequence[np.ndarray], float], list[np.ndarray]]) -> Iterator[Pair]:
    """Convert a sweep to a part; then again with another downsampling step."""
    # As the node does at its start: memory is kept rather than given back and faulted in again.
    libc = ctypes.CDLL(None)
    libc.mallopt(-1, 256 << 20)
    libc.mallopt(-3, 32 << 20)
    message, convention = _message(_sweep()), Convention('gltf_authored')

    def work() -> bytes:
        return _part(message, DEFAULT, convention)

    for i in range(ROUNDS + 10):
        ours_s = _timed(work)
        with mock.patch.object(clouds, 'average', theirs):
            theirs_s = _timed(work)
        if i >= 10:
            yield ours_s, theirs_s


def size(convention: str) -> Iterator[Pair]:
    """Return the bytes of a sweep's part, not downsampled, and of an MCAP file with its message."""
    sweep = _sweep()
    points = np.zeros(len(sweep), POINT)
    for name in POINT.names or ():
        points[name] = sweep[name]
    message = _message(points)
    options = clouds.CloudOptions(intensity='uint8', voxel_leaf_mm=0)
    yield float(len(_part(message, options, Convention(convention)))), float(_mcap_bytes(message))


def _mcap_bytes(message: SimpleNamespace) -> int:
    from mcap.writer import CompressionType, Writer
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_HUMBLE)
    types, kind = store.types, 'sensor_msgs/msg/PointCloud2'
    stamp = types['builtin_interfaces/msg/Time'](0, 0)
    field_type = types['sensor_msgs/msg/PointField']
    cloud = types[kind](
        types['std_msgs/msg/Header'](stamp, 'velodyne'),
        message.height,
        message.width,
        [field_type(f.name, f.offset, f.datatype, f.count) for f in message.fields],
        message.is_bigendian,
        message.point_step,
        message.row_step,
        np.frombuffer(message.data, np.uint8),
        is_dense=True,
    )
    file = io.BytesIO()
    writer = Writer(file, compression=CompressionType.ZSTD)
    writer.start()
    schema = writer.register_schema(kind, 'ros2msg', store.generate_msgdef(kind)[0].encode())
    channel = writer.register_channel('/points', 'cdr', schema)
    writer.add_message(channel, 0, bytes(store.serialize_cdr(cloud, kind)), 0)
    writer.finish()
    return len(file.getvalue())


def rows() -> Iterator[Row]:
    """Return the rows of clouds."""
    open3d = _open3d()
    name = 'cloud: HDL-32 sweep, message to part: int16_mm, intensity, 50 mm voxels, zstd 3'
    if open3d is not None:
        against = "the same with Open3D's voxel_down_sample as its downsampling step"
        yield Row(name, against, 0.60, lambda: speed(open3d))
    against = 'the same with numpy.unique and bincount as its downsampling step'
    yield Row(name, against, 1.00, lambda: speed(_unique))
    for convention, at_most in (('gltf_authored', 0.42), ('rep103', 0.40)):
        yield Row(
            f'cloud: the same sweep in bytes, not downsampled, {convention}',
            'MCAP with zstd holding the PointCloud2 (x y z intensity)',
            at_most,
            lambda convention=convention: size(convention),
            unit='B',
        )
