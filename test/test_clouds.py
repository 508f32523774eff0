"""Point clouds: every layout a message can have, and each rule of the record's block.

``by_hand`` is the whole conversion once more, point by point in plain Python, and what all else is held to.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from cloud_messages import cloud_message, xyz
from hypothesis import example, given, settings
from hypothesis import strategies as st
from test_scans import IDENTITY, QUATERNION, ROTATION, TRANSLATION

from cognitive3d_ros.conventions import CONVENTIONS, Convention
from cognitive3d_ros.convert.clouds import INTENSITY_NAMES, Cloud, CloudOptions, convert_cloud
from cognitive3d_ros.convert.outcome import MAX_RECORD_BYTES, Dropped
from cognitive3d_ros.convert.point_fields import (
    Field,
    dtype_from_fields,
    plain_dtype_from_fields,
)
from cognitive3d_ros.convert.voxels import average, order
from cognitive3d_ros.counters import Drop
from cognitive3d_ros.wire.capnp_codec import decode_lidar, encode_lidar
from cognitive3d_ros.wire.clouds import Points, read
from cognitive3d_ros.wire.placing import place
from cognitive3d_ros.wire.records import LidarScanRecord, Pose

REP103 = Convention('rep103')
AS_IT_IS = CloudOptions(position='float32', voxel_leaf_mm=0, zstd_level=0)
MM = replace(AS_IT_IS, position='int16_mm')


def converted(message, options=AS_IT_IS, convention=REP103) -> Cloud:
    outcome = convert_cloud(message, options, convention)
    assert isinstance(outcome, Cloud), outcome
    return outcome


def points(message, options=AS_IT_IS, convention=REP103) -> Points:
    return read(converted(message, options, convention).data)


def positions(message, options=AS_IT_IS) -> list[list[float]]:
    return points(message, options).positions.tolist()


def colors(message, color='rgb888') -> list[list[int]]:
    found = points(message, replace(AS_IT_IS, color=color)).colors
    assert found is not None
    return found.tolist()


def intensities(message, **options) -> list[int]:
    found = points(message, replace(AS_IT_IS, intensity='uint8', **options)).intensities
    assert found is not None
    return found.tolist()


def line(count: int, **more) -> np.ndarray:
    """Points 1, 2, … on the x axis, so that they are stored in their order."""
    return xyz(*((i + 1, 0, 0) for i in range(count)), **more)


# --- where the values lie in the message


THREE = [[1.5, -2.25, 3.5], [4.0, 5.0, 6.0], [-7.0, 8.0, 9.0]]
SORTED = sorted(THREE, key=lambda p: (p[2], p[1], p[0]))


@pytest.mark.parametrize('kind', ['<f4', '>f4', '<f8', '>f8'])
def test_floats_of_both_sizes_and_byte_orders(kind: str) -> None:
    assert positions(cloud_message(xyz(*THREE, kind=kind))) == SORTED


@pytest.mark.parametrize('kind', ['i1', 'u1', '<i2', '>i2', '<u2', '<i4', '<u4', '>u4'])
def test_integers(kind: str) -> None:
    assert positions(cloud_message(xyz((1, 2, 3), (100, 5, 6), kind=kind))) == [
        [1, 2, 3],
        [100, 5, 6],
    ]


def test_int32_is_not_squeezed_through_float32() -> None:
    assert positions(cloud_message(xyz((16_777_217, 0, 1), kind='<i4')), MM) == []
    assert positions(cloud_message(xyz((16_777_217, 0, 1), kind='<i4'))) == [[16_777_216, 0, 1]]


def test_an_ouster_layout_with_its_fields_in_any_order() -> None:
    layout = np.dtype(
        {
            'names': ['x', 'y', 'z', 'intensity', 't', 'reflectivity', 'ring', 'ambient', 'range'],
            'formats': ['<f4', '<f4', '<f4', '<f4', '<u4', '<u2', '<u2', '<u2', '<u4'],
            'offsets': [0, 4, 8, 16, 20, 24, 26, 28, 32],
            'itemsize': 48,
        }
    )
    cloud = np.zeros(3, layout)
    for i, name in enumerate('xyz'):
        cloud[name] = [point[i] for point in THREE]
    cloud['intensity'] = [10, 20, 30]
    message = cloud_message(cloud)
    message.fields = [message.fields[i] for i in (3, 8, 2, 0, 7, 6, 1, 5, 4)]
    assert message.point_step == 48
    found = points(message, replace(AS_IT_IS, intensity='uint8'))
    assert found.positions.tolist() == SORTED
    assert found.intensities is not None
    assert found.intensities.tolist() == [THREE.index(p) * 10 + 10 for p in SORTED]


def test_a_field_of_several_values_counts_with_its_first_and_no_count_as_one() -> None:
    message = cloud_message(xyz(*THREE))
    for field, count in zip(message.fields, (3, 0, 1), strict=True):
        field.count = count
    assert positions(message) == SORTED


def test_fields_that_are_not_needed_are_not_looked_at() -> None:
    message = cloud_message(xyz(*THREE, intensity=('<f4', [1, 2, 3])))
    odd = [('ring', 10**9, 4, 2**32 - 1), ('x', 0, 99, 1), ('', -1, 0, 0), ('intensity', 99, 7, 1)]
    message.fields[3:] = [
        SimpleNamespace(name=name, offset=offset, datatype=kind, count=count)
        for name, offset, kind, count in odd
    ]
    assert positions(message) == SORTED


@pytest.mark.parametrize('padding', [0, 7, 1000])
def test_rows_with_padding(padding: int) -> None:
    grid = np.stack([xyz(*((r + 1, c, 5) for c in range(3))) for r in range(4)])
    step = grid.dtype.itemsize
    data = b''.join(row.tobytes() + b'\xff' * padding for row in grid)
    message = cloud_message(grid, row_step=3 * step + padding, data=data)
    expected = sorted([[r + 1, c, 5] for r in range(4) for c in range(3)], key=lambda p: p[::-1])
    assert positions(message) == expected
    if padding:
        message.data = data[:-padding]  # no padding behind the last row
        assert positions(message) == expected
    message.data += bytes(10)  # and something behind all of them
    assert positions(message) == expected or padding == 0


@pytest.mark.parametrize('row_step', [0, 7, 10**6, 2**32 - 1])
def test_a_stale_row_step(row_step: int) -> None:
    grid = np.stack([xyz(*((r + 1, c, 5) for c in range(3))) for r in range(4)])
    assert len(positions(cloud_message(grid, row_step=row_step))) == 12
    flat = cloud_message(grid.reshape(-1), row_step=row_step)
    assert len(positions(flat)) == 12
    flat.data.extend(bytes(5))
    assert len(positions(flat)) == 12  # one row has no use for row_step


def test_points_need_not_be_aligned() -> None:
    data = b''.join(b'\xab' + struct.pack('<3f', *p) + b'\xcd' * 2 for p in THREE)
    fields = [
        SimpleNamespace(name=n, offset=1 + 4 * i, datatype=7, count=1) for i, n in enumerate('xyz')
    ]
    message = cloud_message(xyz(*THREE), fields=fields, point_step=15, row_step=45, data=data)
    assert positions(message) == SORTED


@pytest.mark.parametrize(
    'data', [bytes, bytearray, memoryview, lambda b: np.frombuffer(b, np.uint8)]
)
def test_any_buffer_of_bytes(data) -> None:
    message = cloud_message(xyz(*THREE))
    message.data = data(message.data.tobytes())
    assert positions(message) == SORTED


@pytest.mark.ros
def test_messages_of_ros_and_of_bags() -> None:
    ros = pytest.importorskip('sensor_msgs.msg')
    plain = cloud_message(xyz(*THREE, intensity=('<u2', [1, 2, 300])))
    names = ('height', 'width', 'is_bigendian', 'point_step', 'row_step', 'data')
    message = ros.PointCloud2(
        fields=[ros.PointField(**vars(field)) for field in plain.fields],
        **{name: getattr(plain, name) for name in names},
    )
    wanted = replace(AS_IT_IS, intensity='uint8')
    expected = converted(plain, wanted)
    assert expected.data.point_count == 3
    assert converted(message, wanted) == expected
    bags = pytest.importorskip('rosbags.typesys')
    types = bags.get_typestore(bags.Stores.ROS2_HUMBLE).types
    header = types['std_msgs/msg/Header'](types['builtin_interfaces/msg/Time'](0, 0), 'lidar')
    field_type = types['sensor_msgs/msg/PointField']
    message = types['sensor_msgs/msg/PointCloud2'](
        header,
        plain.height,
        plain.width,
        [field_type(f.name, f.offset, f.datatype, f.count) for f in plain.fields],
        plain.is_bigendian,
        plain.point_step,
        plain.row_step,
        np.frombuffer(plain.data, np.uint8),
        is_dense=True,
    )
    assert converted(message, wanted) == expected


@pytest.mark.skipif(
    dtype_from_fields is plain_dtype_from_fields, reason='no sensor_msgs_py: it comes with ROS'
)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(['', 'x', 'rgb', 'normal']),
            st.integers(0, 60),
            st.integers(0, 9),
            st.integers(0, 4),
        ),
        max_size=5,
    ),
    st.none() | st.integers(1, 100),
)
def test_the_fallback_lays_points_out_as_ros_does(fields, step) -> None:
    def outcome(function):
        try:
            return function([Field(*field) for field in fields], step)
        except (AssertionError, KeyError, ValueError) as error:
            return type(error)

    assert outcome(plain_dtype_from_fields) == outcome(dtype_from_fields)


def test_the_fallback_by_hand() -> None:
    fields = [Field('x', 4, 7), Field('', 8, 4), Field('cov', 16, 8, 2)]
    layout = plain_dtype_from_fields(fields, 40)
    assert layout.names == ('x', 'unnamed_field_1', 'cov_0', 'cov_1')
    assert layout.itemsize == 40
    assert [layout.fields[name][1] for name in layout.names] == [4, 8, 16, 24]
    assert [layout.fields[name][0].str for name in layout.names] == ['<f4', '<u2', '<f8', '<f8']
    for bad, error in [
        ([Field('x', 0, 9)], KeyError),
        ([Field('x', 0, 7, 0)], AssertionError),
        ([Field('x', 0, 7), Field('x', 4, 7)], AssertionError),
        ([Field('x', 38, 7)], ValueError),
    ]:
        with pytest.raises(error):
            plain_dtype_from_fields(bad, 40)


# --- which points are stored


@pytest.mark.rule(82)
def test_points_without_a_place_are_left_out() -> None:
    nan, inf = math.nan, math.inf
    cloud = xyz(
        (1, 1, 1), (nan, 1, 1), (1, nan, 1), (1, 1, nan), (inf, 1, 1), (1, -inf, 1), (nan, inf, 0),
        (0, 0, 0), (-0.0, 0, -0.0), (0, 0, 1e-30), (1, 0, 0),
    )  # fmt: skip
    outcome = converted(cloud_message(cloud))
    assert read(outcome.data).positions.tolist() == [
        [1, 0, 0],
        [0, 0, np.float32(1e-30)],
        [1, 1, 1],
    ]
    assert (outcome.points, outcome.out_of_range) == (3, 0)


@pytest.mark.rule(82, 84)
@pytest.mark.parametrize(
    'cloud',
    [xyz(), xyz(*[(math.nan, 0, 0)] * 5), xyz((0, 0, 0)), xyz((40, 0, 0))],
    ids=['none', 'all NaN', 'all zero', 'all too far'],
)
def test_nothing_left_is_a_record_without_points(cloud) -> None:
    outcome = converted(cloud_message(cloud), CloudOptions())
    data = outcome.data
    assert (data.point_count, data.data, data.zstd_level) == (0, b'', 0)
    assert data.position == 'int16_mm'
    assert outcome.out_of_range == int(len(cloud) == 1 and cloud['x'][0] == 40)
    assert read(data).positions.shape == (0, 3)


def test_an_empty_message_needs_no_fields() -> None:
    message = SimpleNamespace(
        width=0, height=0, point_step=0, row_step=0, is_bigendian=False, fields=[], data=b''
    )
    assert converted(message).data.point_count == 0


@pytest.mark.rule(86)
def test_points_beyond_int16_are_left_out_and_counted() -> None:
    x = [32.767, 32.7675, 32.7676, -32.767, -32.768, -32.7675, 40.0, 32.7674, 1e30]
    outcome = converted(cloud_message(xyz(*((v, 0, 1) for v in x), kind='<f8')), MM)
    assert read(outcome.data).positions[:, 0].tolist() == [
        np.float32(v) for v in (-32.767, 32.767, 32.767)
    ]
    assert (outcome.points, outcome.out_of_range) == (9, 6)
    assert converted(cloud_message(xyz(*((v, 0, 1) for v in x)))).out_of_range == 0


@pytest.mark.rule(86)
@pytest.mark.parametrize('kind', ['<f4', '<f8'])
def test_the_very_edge_of_int16(kind: str) -> None:
    """As many floats on either side of 32.7675 as it takes: |round(1000 p)| > 32767 alone decides."""
    edge = np.array(32.7675, kind)
    near = [edge]
    for towards in (0, 100):
        value = edge
        for _ in range(50):
            value = np.nextafter(value, np.array(towards, kind))
            near.append(value)
    outcome = converted(cloud_message(xyz(*((v, 0, 1) for v in near), kind=kind)), MM)
    fit = sum(abs(round(1000 * float(v))) <= 32767 for v in near)
    assert 45 < fit < 56
    assert outcome.data.point_count == fit
    assert outcome.out_of_range == len(near) - fit
    assert read(outcome.data).positions[:, 0].min() > 0  # no wrap


@pytest.mark.rule(86, 89)
def test_the_average_of_points_at_the_edge_does_not_wrap() -> None:
    last = np.nextafter(32.7675, 0)
    cloud = xyz(*((last, -last, last) for _ in range(37)), kind='<f8')
    found = points(cloud_message(cloud), replace(MM, voxel_leaf_mm=1000)).positions
    assert abs(found).tolist() == [[np.float32(32.767)] * 3]


@pytest.mark.rule(86)
def test_doubles_that_no_float32_holds_are_left_out() -> None:
    largest = float(np.finfo(np.float32).max)
    cloud = xyz((1e39, 0, 0), (largest, 0, 1), (1, 2, 3), (math.inf, 0, 0), kind='<f8')
    outcome = converted(cloud_message(cloud))
    assert read(outcome.data).positions.tolist() == [[largest, 0, 1], [1, 2, 3]]
    assert (outcome.points, outcome.out_of_range) == (3, 1)


# --- what is stored of a point


@pytest.mark.rule(86)
def test_millimetres_are_rounded_half_to_even() -> None:
    x = [0.0005, 0.0015, 0.0025, -0.0005, -0.0015, -0.0025, 1.2344999, 1.2345001]
    data = converted(cloud_message(xyz(*((v, 0, 1) for v in x), kind='<f8')), MM).data
    assert np.frombuffer(data.data, '<i2', 8).tolist() == [-2, -2, 0, 0, 2, 2, 1234, 1235]


@pytest.mark.rule(85, 86, 87, 88)
@pytest.mark.parametrize(
    ('name', 'planes'),
    [
        # ROS (1, 2, 3) and (4, -5, 6) and (4, 2, 3): sorted by the scene's up axis, then Z (or Y), then X.
        ('gltf_authored', [[-4, -1, -4], [3, 3, 6], [-2, -2, 5]]),
        ('unity', [[-2, -2, 5], [3, 3, 6], [1, 4, 4]]),
        ('rep103', [[1, 4, 4], [2, 2, -5], [3, 3, 6]]),
    ],
)
def test_planes_in_scene_axes_in_order(name: str, planes) -> None:
    cloud = cloud_message(xyz((4, -5, 6), (4, 2, 3), (1, 2, 3)))
    data = converted(cloud, MM, Convention(name)).data
    assert (data.position, data.color, data.intensity) == ('int16_mm', 'none', 'none')
    expected = (1000 * np.array(planes)).astype('<i2').tobytes()
    assert data.data == expected
    data = converted(cloud, AS_IT_IS, Convention(name)).data
    assert data.data == np.array(planes, '<f4').tobytes()


@pytest.mark.rule(82, 85)
def test_all_planes_of_a_block_by_hand() -> None:
    cloud = xyz(
        (1, 0, 2), (3, 0, 1), rgb=('<u4', [0x102030, 0xFFF8FCF8]), intensity=('u1', [7, 200])
    )
    options = replace(MM, color='rgb565', intensity='uint8')
    data = converted(cloud_message(cloud), options).data
    expected = struct.pack('<6h', 3000, 1000, 0, 0, 1000, 2000)
    expected += struct.pack('<2H', 0b11111_111111_11111, 0b00010_001000_00110) + bytes([200, 7])
    assert data.data == expected
    assert (data.color, data.intensity) == ('rgb565', 'uint8')


@pytest.mark.rule(88)
def test_equal_points_keep_the_order_of_the_message() -> None:
    cloud = xyz(*[(1, 1, 1)] * 200, (1, 1, 0.5), intensity=('<u2', [*range(200), 255]))
    for options in (MM, AS_IT_IS):
        found = points(cloud_message(cloud), replace(options, intensity='uint8')).intensities
        assert found is not None
        assert found.tolist() == [255, *range(200)]


@pytest.mark.rule(88)
@given(st.lists(st.tuples(*[st.floats(width=32, allow_nan=False)] * 3), min_size=1, max_size=30))
def test_floats_sort_as_floats(rows) -> None:
    keys = np.array(rows, np.float32).T
    assert order(list(keys)).tolist() == sorted(range(len(rows)), key=lambda i: tuple(keys[:, i]))


@pytest.mark.rule(83)
@pytest.mark.parametrize('leaf', [0, 1, 50, 65535])
@pytest.mark.parametrize('level', [0, 3, 22])
def test_leaf_and_level_are_told(leaf: int, level: int) -> None:
    options = CloudOptions(voxel_leaf_mm=leaf, zstd_level=level)
    data = converted(cloud_message(xyz(*THREE)), options).data
    assert (data.voxel_leaf_mm, data.zstd_level) == (leaf, level)


@pytest.mark.rule(89)
def test_cubes_in_the_sensor_s_axes_by_hand() -> None:
    cloud = xyz(
        (0.01, 0.02, 0.03),  # in cube (0, 0, 0) together with the next
        (0.04, 0.03, 0.04),
        (-0.01, 0.02, 0.03),  # one cube down
        (0.05, 0.01, 0.01),  # on the face: it belongs to the upper cube
        kind='<f8',
        rgb=('<u4', [0x000001, 0x040203, 0x0A0B0C, 0x00FF00]),
        intensity=('u1', [1, 4, 9, 8]),
    )
    options = CloudOptions(color='rgb888', intensity='uint8', zstd_level=0)
    found = points(cloud_message(cloud), options)
    assert (1000 * found.positions).round().tolist() == [
        [50, 10, 10],
        [-10, 20, 30],
        [25, 25, 35],
    ]
    # 2.5, 1.5 and 2.5 are rounded to even.
    assert found.colors is not None
    assert found.colors.tolist() == [[0, 255, 0], [10, 11, 12], [2, 1, 2]]
    assert found.intensities is not None
    assert found.intensities.tolist() == [8, 9, 2]


@pytest.mark.rule(89)
def test_cubes_far_apart_and_many() -> None:
    """More than 2^16 cubes along an axis, as float32 positions can have."""
    cloud = xyz((1e6, 0, 1), (1e6, 0.01, 1), (-1e6, 0, 1), (1e30, 0, 0), (-5, 0, 0), (-6, 0, 0))
    options = replace(AS_IT_IS, voxel_leaf_mm=1)
    assert len(positions(cloud_message(cloud), options)) == 6
    assert len(positions(cloud_message(cloud), replace(options, voxel_leaf_mm=50))) == 5


def test_average_says_how_many_cubes_there_are() -> None:
    planes = np.array([[0, 1, 2, 9], [0, 0, 0, 0], [0, 0, 0, 0], [5, 6, 7, 8]], float)
    assert [plane.tolist() for plane in average(planes, 3.0)] == [[1, 9], [0, 0], [0, 0], [6, 8]]


# --- colours


@pytest.mark.rule(90)
@pytest.mark.parametrize('name', ['rgb', 'rgba', 'RGB'])
@pytest.mark.parametrize('kind', ['<f4', '<u4', '<i4', '>f4', '>u4'])
def test_packed_colours_keep_their_bits(name: str, kind: str) -> None:
    """0xFF820000 as a float is a NaN, of which arithmetic would set another bit."""
    values = [0xFF820000, 0x00010203, 0x7F800001, 0xFFFFFFFF]
    packed = np.array(values, kind[0] + 'u4').view(kind)
    cloud = xyz(*((i, 0, 1) for i in range(4)), kind=kind[0] + 'f4', **{name: (kind, [0] * 4)})
    cloud[name].view(kind[0] + 'u4')[:] = packed.view(kind[0] + 'u4')
    expected = [[0x82, 0, 0], [1, 2, 3], [0x80, 0, 1], [255, 255, 255]]
    assert colors(cloud_message(cloud)) == expected


@pytest.mark.rule(90)
@pytest.mark.parametrize('color', ['rgb565', 'rgb332', 'rgb888'])
def test_colours_come_back_as_near_as_their_bits_allow(color: str) -> None:
    channels = np.array([[0, 0, 0], [255, 255, 255], [200, 100, 50], [17, 130, 240]])
    cloud = line(4, r=('u1', channels[:, 0]), g=('u1', channels[:, 1]), b=('u1', channels[:, 2]))
    bits = {'rgb565': (5, 6, 5), 'rgb332': (3, 3, 2), 'rgb888': (8, 8, 8)}[color]
    found = np.array(colors(cloud_message(cloud), color))
    for channel, kept in enumerate(bits):
        high = channels[:, channel] >> (8 - kept)
        assert (found[:, channel] >> (8 - kept)).tolist() == high.tolist()
    assert found[0].tolist() == [0, 0, 0]
    assert found[1].tolist() == [255, 255, 255]


@pytest.mark.parametrize('names', ['rgb', ('red', 'green', 'blue')])
def test_channels_apart(names) -> None:
    channels = dict(zip(names, [('u1', [1, 4]), ('u1', [2, 5]), ('u1', [3, 6])], strict=True))
    assert colors(cloud_message(line(2, **channels))) == [[1, 2, 3], [4, 5, 6]]
    floats = dict(zip(names, [('<f4', [0, 1]), ('<f4', [0.5, 1]), ('<f4', [1, 0])], strict=True))
    assert colors(cloud_message(line(2, **floats))) == [[0, 128, 255], [255, 255, 0]]


@pytest.mark.rule(82)
@pytest.mark.parametrize(
    'more', [{}, {'r': ('u1', [1]), 'g': ('u1', [1])}, {'rgb': ('<f8', [1])}, {'rgb': ('u1', [1])}]
)
def test_no_colour_to_be_had(more) -> None:
    outcome = converted(
        cloud_message(xyz((1, 2, 3), **more)), replace(AS_IT_IS, color='rgb565', intensity='uint8')
    )
    assert (outcome.data.color, outcome.data.intensity) == ('none', 'none')
    assert outcome.data.point_count == 1


# --- intensities


@pytest.mark.rule(91)
@pytest.mark.parametrize(
    ('kind', 'published', 'stored'),
    [
        ('<f4', [0, 0.5, 1.0, 0.25], [0, 128, 255, 64]),  # 127.5 and 63.75
        ('<f4', [0, 0.5, 1.0, 1.25], [0, 0, 1, 1]),  # one above 1.0: values as they are
        ('<f4', [0, 1.5, 2.5, 300], [0, 2, 2, 255]),
        ('<f4', [math.nan, -3, math.inf, 0.5], [0, 0, 255, 128]),
        ('<f4', [math.nan, -3, math.inf, 100], [0, 0, 255, 100]),
        ('<f4', [math.nan, -math.inf, math.inf, math.inf], [0, 0, 255, 255]),
        ('<f4', [math.nan] * 4, [0] * 4),
        ('<f4', [0] * 4, [0] * 4),
        ('>f4', [0, 0.5, 1.0, 0.25], [0, 128, 255, 64]),
        ('<f8', [0, 0.1, 1.0, 0.2], [0, 26, 255, 51]),  # 25.5
        ('<f8', [1e300, 0.1, 1.0, 0.2], [255, 0, 1, 0]),
        ('u1', [0, 1, 128, 255], [0, 1, 128, 255]),
        ('u1', [0, 1, 1, 0], [0, 1, 1, 0]),  # integers are never scaled
        ('i1', [-128, -1, 1, 127], [0, 0, 1, 127]),
        ('<u2', [0, 255, 256, 4095], [0, 255, 255, 255]),
        ('>u2', [0, 255, 256, 4095], [0, 255, 255, 255]),
        ('<i2', [-5, 0, 300, 7], [0, 0, 255, 7]),
        ('<u4', [0, 2**32 - 1, 3, 4], [0, 255, 3, 4]),
        ('<i4', [-(2**31), 2**31 - 1, 3, 4], [0, 255, 3, 4]),
    ],
)
def test_the_intensity_rule(kind, published, stored) -> None:
    order = '>' if kind[0] == '>' else '<'
    cloud = xyz(*((i, 0, 1) for i in range(4)), kind=order + 'f4', intensity=(kind, published))
    assert intensities(cloud_message(cloud)) == stored


@pytest.mark.rule(91)
def test_the_rule_is_decided_by_the_whole_message() -> None:
    """A value above 1.0 counts although its point is not stored."""
    cloud = xyz((1, 0, 0), (2, 0, 0), (0, 0, 0), intensity=('<f4', [0.25, 1, 80]))
    assert intensities(cloud_message(cloud)) == [0, 1]


@pytest.mark.parametrize('name', [*INTENSITY_NAMES, 'Intensity', 'Reflectivity'])
def test_usual_names_of_the_intensity(name: str) -> None:
    assert intensities(cloud_message(line(2, **{name: ('u1', [3, 4])}))) == [3, 4]


def test_the_intensity_can_be_named() -> None:
    cloud = line(2, intensity=('u1', [3, 4]), ambient=('<u2', [5, 6]))
    assert intensities(cloud_message(cloud), intensity_field='ambient') == [5, 6]
    assert intensities(cloud_message(cloud), intensity_field='x') == [1, 2]
    named = replace(AS_IT_IS, intensity='uint8', intensity_field='echo')
    assert converted(cloud_message(cloud), named).data.intensity == 'none'


@pytest.mark.rule(89, 91)
def test_an_average_is_of_what_would_be_stored() -> None:
    cloud = xyz(*[(1, 1, 1)] * 3, intensity=('<f4', [math.nan, 5, 1e9]))
    options = replace(AS_IT_IS, intensity='uint8', voxel_leaf_mm=100)
    found = points(cloud_message(cloud), options).intensities
    assert found is not None
    assert found.tolist() == [87]  # (0 + 5 + 255) / 3


# --- the whole conversion, point by point


def by_hand(rows: Sequence[Sequence[float]], options: CloudOptions, name: str) -> tuple[list, int]:
    """Rows of x, y, z, r, g, b, intensity (a float field) to the rows of the block, and the left out."""

    def fits(v: float) -> bool:
        return abs(round(1000 * v)) <= 32767 if options.position == 'int16_mm' else True

    finite = [row[6] for row in rows if math.isfinite(row[6])]
    scale = 255 if all(v <= 1 for v in finite) else 1
    placed = [row for row in rows if all(map(math.isfinite, row[:3])) and any(row[:3])]
    near = [row for row in placed if all(map(fits, row[:3]))]
    clamped = [
        [*row[:6], 0 if math.isnan(row[6]) else min(max(row[6] * scale, 0.0), 255.0)]
        for row in near
    ]
    if options.voxel_leaf_mm:
        leaf = options.voxel_leaf_mm / 1000
        cubes: dict[tuple, list] = {}
        for row in clamped:
            cubes.setdefault(tuple(math.floor(v / leaf) for v in row[:3]), []).append(row)
        clamped = [
            [reduce(add, column) / len(cube) for column in zip(*cube, strict=True)]
            for cube in cubes.values()
        ]
    stored = []
    for x, y, z, *rest in clamped:
        if options.position == 'int16_mm':
            x, y, z = (round(1000 * v) for v in (x, y, z))
        else:
            x, y, z = (float(np.float32(v)) for v in (x, y, z))
        place = {
            'gltf_authored': (-x, z, -y),
            'unity': (-y, z, x),
            'rep103': (x, y, z),
        }[name]
        stored.append((*place, *(round(v) for v in rest)))
    up, later, earlier = (2, 1, 0) if name == 'rep103' else (1, 2, 0)
    stored.sort(key=lambda p: (p[up], p[later], p[earlier]))
    return stored, len(placed) - len(near)


coordinate = st.one_of(
    st.floats(-0.25, 0.25, width=32),
    st.floats(-40, 40, width=32),
    st.integers(-5, 5).map(lambda i: float(np.float32(i * 0.05))),
    st.sampled_from([0.0, -0.0, math.nan, math.inf, -math.inf, 32.7675, 32.767, -33.0, 1e20]),
)
channel = st.integers(0, 255)
brightness = st.one_of(
    st.floats(0, 1, width=32), st.floats(-10, 400, width=32), st.sampled_from([math.nan, math.inf])
)
rows = st.lists(st.tuples(*[coordinate] * 3, *[channel] * 3, brightness), min_size=1, max_size=40)
every_option = st.builds(
    CloudOptions,
    position=st.sampled_from(['int16_mm', 'float32']),
    color=st.just('rgb888'),
    intensity=st.just('uint8'),
    voxel_leaf_mm=st.sampled_from([0, 1, 50, 333, 65535]),
    zstd_level=st.sampled_from([0, 1]),
)


@pytest.mark.rule(82, 85, 86, 87, 88, 89, 91)
@settings(max_examples=300)
@given(rows, every_option, st.sampled_from(CONVENTIONS))
@example([(0.0005, 1, 1, 0, 0, 0, math.nan)], MM, 'unity')
def test_the_whole_conversion_against_plain_python(rows, options, name) -> None:
    options = replace(options, color='rgb888', intensity='uint8')
    columns = list(zip(*rows, strict=True))
    cloud = xyz(
        *zip(*columns[:3], strict=True),
        r=('u1', columns[3]),
        g=('u1', columns[4]),
        b=('u1', columns[5]),
        intensity=('<f4', columns[6]),
    )
    as_float32 = [tuple(map(float, row)) for row in cloud.tolist()]
    expected, left_out = by_hand(as_float32, options, name)
    outcome = converted(cloud_message(cloud), options, Convention(name))
    assert outcome.out_of_range == left_out
    found = read(outcome.data)
    scale = 1000 if options.position == 'int16_mm' else 1
    assert found.positions.astype(float).tolist() == [
        [float(np.float32(v) / np.float32(scale)) for v in row[:3]] for row in expected
    ]
    assert found.colors is not None
    assert found.intensities is not None
    if not options.voxel_leaf_mm:  # cubes have no order among points of the same place
        assert found.colors.tolist() == [list(row[3:6]) for row in expected]
        assert found.intensities.tolist() == [row[6] for row in expected]
    else:
        together = np.column_stack([found.positions, found.colors, found.intensities])
        assert sorted(map(tuple, together[:, 3:].tolist())) == sorted(row[3:] for row in expected)


# --- a whole sweep


@pytest.mark.rule(83, 86, 87, 88, 89, 92)
@pytest.mark.parametrize('name', CONVENTIONS)
@pytest.mark.parametrize('position', ['int16_mm', 'float32'])
@pytest.mark.parametrize('leaf', [0, 50])
def test_a_sweep_lies_where_the_sensor_saw_it(name, position, leaf, shared_data: Path) -> None:
    """Read back and moved by the record's own pose alone, against the original moved by ROS's."""
    sweep = np.load(shared_data / 'hdl32_sweep.npz')['points']
    convention = Convention(name)
    colours = sweep['ring'].astype('<u4') * 0x020304  # each ring its own colour
    cloud = np.zeros(len(sweep), [*sweep.dtype.descr, ('rgb', '<u4')])
    for field in sweep.dtype.names:
        cloud[field] = sweep[field]
    cloud['rgb'] = colours
    options = CloudOptions(position, 'rgb888', 'uint8', '', leaf)
    outcome = converted(cloud_message(cloud), options, convention)

    pose = Pose(
        *(float(np.float32(v)) for v in convention.position(TRANSLATION)),
        *(float(np.float32(v)) for v in convention.object_rotation(QUATERNION)),
    )
    record = LidarScanRecord('roof', 1, 0, 'velodyne', pose, outcome.data)
    (record,) = decode_lidar(encode_lidar(IDENTITY, 1, [record])).scans
    found = read(record.scan)
    drawn = place(found.positions, record.pose)

    # What should be there, worked out from the sweep by other means.
    place_of = np.stack([sweep[axis] for axis in 'xyz'], axis=1).astype(np.float64)
    returns = place_of.any(axis=1)
    assert 0.24 < 1 - returns.mean() < 0.26  # the quarter that came back from nowhere
    far = (abs(place_of) > 32.7675).any(axis=1) & (position == 'int16_mm')
    assert outcome.points == returns.sum() == 57_734
    assert outcome.out_of_range == far.sum() == (464 if position == 'int16_mm' else 0)
    kept = returns & ~far
    values = np.column_stack([place_of, sweep['ring'], sweep['intensity']])[kept]
    if leaf:
        cubes = np.floor(values[:, :3] / (leaf / 1000))
        _, cube = np.unique(cubes, axis=0, return_inverse=True)
        sums = np.zeros((cube.max() + 1, 5))
        np.add.at(sums, cube.reshape(-1), values)
        values = sums / np.bincount(cube.reshape(-1))[:, None]
    assert record.scan.point_count == len(values)

    step = 1e-3 if position == 'int16_mm' else 1e-9
    in_scene = convention.position(values[:, :3])
    keys = np.rint(in_scene / step) if position == 'int16_mm' else in_scene.astype(np.float32)
    up, later, earlier = (2, 1, 0) if name == 'rep103' else (1, 2, 0)
    sequence = np.lexsort([keys[:, earlier], keys[:, later], keys[:, up]])
    truth = convention.position(values[:, :3] @ ROTATION.T + TRANSLATION)[sequence]
    off = np.linalg.norm(drawn - truth, axis=1)
    # Half a millimetre an axis, and what float32 leaves of a pose and of 81 m.
    assert off.max() < (math.sqrt(3) * 0.5e-3 if position == 'int16_mm' else 0) + 3e-5
    assert found.intensities is not None
    assert found.colors is not None
    same_place = np.abs(np.diff(keys[sequence], axis=0)).sum(axis=1) == 0
    alone = ~np.append(same_place, False) & ~np.insert(same_place, 0, False)
    assert alone.mean() > 0.95
    rings, brightness = values[sequence, 3], values[sequence, 4]
    for i, factor in enumerate((2, 3, 4)):
        assert abs(found.colors[alone, i] - factor * rings[alone]).max() <= 0.5 + 1e-9
    assert abs(found.intensities[alone] - brightness[alone]).max() <= 0.5 + 1e-9


@pytest.mark.rule(87, 90, 92)
@pytest.mark.parametrize('name', CONVENTIONS)
@pytest.mark.parametrize(('color', 'coarse'), [('rgb888', 0), ('rgb565', 7), ('rgb332', 63)])
def test_a_colour_seen_in_the_picture_sits_on_its_point(name, color, coarse, shared_data) -> None:
    """A cloud made of a colour and a depth picture; each stored point is looked up in the picture again."""
    cv2 = pytest.importorskip('cv2')
    picture = cv2.imread(str(shared_data / 'rgbd_color.png'), cv2.IMREAD_COLOR)[:, :, ::-1].astype(
        int
    )
    depth = cv2.imread(str(shared_data / 'rgbd_depth_mm.png'), cv2.IMREAD_UNCHANGED) / 1000
    v, u = np.nonzero(depth)
    z = depth[v, u]
    optical = np.stack([(u - 314.65) / 572.88 * z, (v - 240.16) / 542.74 * z, z], axis=1)

    def pixels(place) -> np.ndarray:
        """Where the colour camera, 1.6 mm beside, sees points in optical axes: columns and rows."""
        x, y, z = np.asarray(place, float).T
        columns = np.rint(521.18 * (x - 0.0016) / z + 322.52)
        rows = np.rint(493.03 * y / z + 259.06)
        return np.stack([columns, rows]).astype(int)

    inside = ((pixels(optical).T >= 0) & (pixels(optical).T < (640, 480))).all(axis=1)
    optical = np.float32(optical[inside])
    columns, rows = pixels(optical)
    rgb = picture[rows, columns]
    packed = (rgb[:, 0] << 16 | rgb[:, 1] << 8 | rgb[:, 2]).astype('<u4')
    cloud = np.zeros(len(optical), [(field, '<f4') for field in ('x', 'y', 'z', 'rgb')])
    for axis, values in zip('xyz', optical.T, strict=True):
        cloud[axis] = values
    cloud['rgb'] = packed.view('<f4')
    convention = Convention(name)
    found = points(cloud_message(cloud), replace(AS_IT_IS, color=color), convention)
    assert len(found.positions) == len(optical) > 200_000
    columns, rows = pixels(convention.ros_position(found.positions))
    assert found.colors is not None
    off = abs(found.colors - picture[rows, columns]).max(axis=1)
    assert (
        np.count_nonzero(off > coarse) < 5
    )  # a point on the border of two pixels may fall to the other


# --- messages that are none


@pytest.mark.parametrize(
    ('changes', 'reason', 'text'),
    [
        ({'width': 2**32 - 1}, Drop.BAD_MESSAGE, '4294967295 x 1 points'),
        ({'width': 2**32 - 1, 'height': 2**32 - 1}, Drop.BAD_MESSAGE, '4294967295 x 4294967295'),
        ({'height': 2**32 - 1, 'row_step': 0}, Drop.BAD_MESSAGE, 'in rows of 0, with 36 bytes'),
        ({'point_step': 2**32 - 1}, Drop.BAD_MESSAGE, 'points of 4294967295 bytes'),
        ({'point_step': 0}, Drop.BAD_MESSAGE, 'field x has 4 bytes from byte 0 on, of points of 0'),
        ({'point_step': 11}, Drop.BAD_MESSAGE, 'field z has 4 bytes from byte 8 on'),
        ({'point_step': 1, 'row_step': 3}, Drop.BAD_MESSAGE, 'field x'),
        ({'data': bytes(35)}, Drop.BAD_MESSAGE, '3 x 1 points of 12 bytes, in rows of 36, with 35'),
        ({'data': b''}, Drop.BAD_MESSAGE, 'with 0 bytes'),
        ({'height': 2, 'row_step': 40}, Drop.BAD_MESSAGE, 'rows of 40, with 36'),
        ({'height': 2, 'row_step': 35, 'data': bytes(80)}, Drop.BAD_MESSAGE, 'rows of 35'),
        ({'width': -3}, Drop.BAD_MESSAGE, '-3 x 1'),
        ({'width': -3, 'height': -1}, Drop.BAD_MESSAGE, '-3 x -1'),
        ({'width': 'many'}, Drop.BAD_MESSAGE, 'cannot be read: TypeError'),
        ({'data': None}, Drop.BAD_MESSAGE, 'cannot be read: TypeError'),
        ({'data': np.zeros((36, 2), np.uint8)[:, 0]}, Drop.BAD_MESSAGE, 'cannot be read'),
        ({'fields': []}, Drop.BAD_MESSAGE, 'fields x, y and z'),
        ({'fields': None}, Drop.BAD_MESSAGE, 'cannot be read'),
        ({'fields': [None]}, Drop.BAD_MESSAGE, 'cannot be read'),
        ({'data': bytes(MAX_RECORD_BYTES + 1)}, Drop.TOO_LARGE, '32 MiB'),
    ],
)  # fmt: skip
def test_malformed_clouds_are_an_outcome(changes, reason, text) -> None:
    outcome = convert_cloud(cloud_message(xyz(*THREE), **changes), CloudOptions(), REP103)
    assert isinstance(outcome, Dropped)
    assert outcome.reason is reason
    assert text in outcome.text


@pytest.mark.parametrize('datatype', [0, 9, 255, -1])
def test_unknown_types(datatype: int) -> None:
    message = cloud_message(xyz(*THREE))
    message.fields[1].datatype = datatype
    outcome = convert_cloud(message, CloudOptions(), REP103)
    assert isinstance(outcome, Dropped)
    assert outcome.text == f'a point cloud whose field y is of unknown type {datatype}'


def test_fields_outside_the_point() -> None:
    message = cloud_message(xyz(*THREE, intensity=('<f4', [1, 2, 3])))
    message.fields[3].offset = 13
    outcome = convert_cloud(message, replace(MM, intensity='uint8'), REP103)
    assert isinstance(outcome, Dropped)
    assert 'field intensity has 4 bytes from byte 13 on, of points of 16 bytes' in outcome.text
    assert converted(message, MM).data.point_count == 3  # not asked for, not looked at


def test_no_message_at_all_is_an_outcome() -> None:
    assert isinstance(convert_cloud(SimpleNamespace(), CloudOptions(), REP103), Dropped)


def test_a_block_over_32_mib_is_dropped() -> None:
    """The message has less, but its points share their bytes."""
    fields = [SimpleNamespace(name=n, offset=0, datatype=2, count=1) for n in 'xyz']
    count = MAX_RECORD_BYTES // 6
    message = cloud_message(
        xyz(*THREE), fields=fields, point_step=1, width=count, data=b'\1' * count
    )
    outcome = convert_cloud(message, AS_IT_IS, REP103)
    assert isinstance(outcome, Dropped)
    assert outcome.reason is Drop.TOO_LARGE
    message.width, message.data = count + 1, message.data + b'\1'
    outcome = convert_cloud(message, CloudOptions(), REP103)
    assert isinstance(outcome, Dropped)
