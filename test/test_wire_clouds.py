"""The block of a point cloud, read back by the data format's own formulas."""

from __future__ import annotations

import struct
from dataclasses import replace

import numpy as np
import pytest
import zstandard

from cognitive3d_ros.errors import FormatError
from cognitive3d_ros.wire import clouds
from cognitive3d_ros.wire.clouds import pack_colors, read, unpack_colors, write
from cognitive3d_ros.wire.records import PointCloudData

NONE = {'color': 'none', 'intensity': 'none', 'voxel_leaf_mm': 0, 'zstd_level': 0}


@pytest.mark.rule(85, 86, 90)
def test_a_block_written_by_hand() -> None:
    block = (
        struct.pack('<3h', 1, -32767, 32767)  # X
        + struct.pack('<3h', 0, 2, 3)  # Y
        + struct.pack('<3h', -1000, 1500, 7)  # Z
        + struct.pack('<3H', 0xFFFF, 0, 0b10000_100000_10000)  # C
        + bytes([0, 128, 255])  # I
    )
    cloud = PointCloudData(3, 'int16_mm', 'rgb565', 'uint8', 0, 0, block)
    points = read(cloud)
    assert points.positions.dtype == np.float32
    expected = [[0.001, 0, -1], [-32.767, 0.002, 1.5], [32.767, 0.003, 0.007]]
    assert points.positions.tolist() == np.array(expected, np.float32).tolist()
    assert points.colors is not None
    assert points.colors.tolist() == [
        [255, 255, 255],
        [0, 0, 0],
        [0b10000100, 0b10000010, 0b10000100],
    ]
    assert points.intensities is not None
    assert points.intensities.tolist() == [0, 128, 255]
    for level in (1, 3, 22):
        compressed = zstandard.ZstdCompressor(level=level).compress(block)
        again = read(replace(cloud, zstd_level=level, data=compressed))
        assert all(np.array_equal(a, b) for a, b in zip(points, again, strict=True))


@pytest.mark.rule(85, 86)
def test_float32_and_rgb888_by_hand() -> None:
    block = struct.pack('<6f', 1.5, -2.5, 40.25, 1e30, 0, -0.0) + bytes([1, 2, 3, 253, 254, 255])
    points = read(PointCloudData(2, 'float32', 'rgb888', 'none', 0, 0, block))
    assert points.positions.tolist() == [[1.5, 40.25, 0], [-2.5, np.float32(1e30), 0]]
    assert points.colors is not None
    assert points.colors.tolist() == [[1, 2, 3], [253, 254, 255]]
    assert points.intensities is None


def c_565(v: int) -> list[int]:
    """The data format's code for rgb565, in Python's integers."""
    return [
        (v >> 11) << 3 | (v >> 13),
        ((v >> 5) & 63) << 2 | ((v >> 9) & 3),
        (v & 31) << 3 | ((v >> 2) & 7),
    ]


def c_332(v: int) -> list[int]:
    """The same for rgb332."""
    return [
        (v & 0xE0) | ((v & 0xE0) >> 3) | ((v & 0xE0) >> 6),
        ((v << 3) & 0xE0) | (v & 0x1C) | ((v >> 3) & 0x03),
        ((v & 0x03) << 6) | ((v & 0x03) << 4) | ((v & 0x03) << 2) | (v & 0x03),
    ]


@pytest.mark.rule(90)
@pytest.mark.parametrize(('color', 'bits', 'code'), [('rgb565', 16, c_565), ('rgb332', 8, c_332)])
def test_every_packed_colour(color, bits, code) -> None:
    values = np.arange(1 << bits, dtype=clouds.COLOR_TYPES[color])
    unpacked = unpack_colors(values, color)
    assert unpacked.tolist() == [code(v) for v in range(1 << bits)]
    assert unpacked[0].tolist() == [0, 0, 0]
    assert unpacked[-1].tolist() == [255, 255, 255]
    np.testing.assert_array_equal(pack_colors(unpacked.T, color), values)  # high bits are kept


@pytest.mark.rule(90)
def test_packed_colours_are_the_high_bits() -> None:
    # 200 = 0b11001000, 100 = 0b01100100, 50 = 0b00110010
    rgb = np.array([[200], [100], [50]], np.uint8)
    assert pack_colors(rgb, 'rgb565').tolist() == [0b11001_011001_00110]
    assert pack_colors(rgb, 'rgb332').tolist() == [0b110_011_00]
    assert pack_colors(rgb, 'rgb888').tolist() == [[200, 100, 50]]
    greys = np.repeat(np.arange(256, dtype=np.uint8)[None], 3, axis=0)
    for color in ('rgb565', 'rgb332'):  # grey stays grey, as near as the bits allow
        back = unpack_colors(pack_colors(greys, color), color).astype(int)
        assert abs(back - greys.T).max() <= {'rgb565': 7, 'rgb332': 63}[color]
    even = unpack_colors(pack_colors(greys, 'rgb565'), 'rgb565').astype(int)
    assert np.ptp(even, axis=1).max() <= 7


@pytest.mark.rule(82, 84)
def test_written_as_asked_and_described_as_written() -> None:
    plane = np.arange(2000, dtype='<i2')
    raw = write([plane] * 3, position='int16_mm', **NONE)
    assert raw.data == plane.tobytes() * 3
    assert raw.zstd_level == 0
    level = write([plane] * 3, position='int16_mm', **{**NONE, 'zstd_level': 5})
    assert level.zstd_level == 5
    assert zstandard.ZstdDecompressor().decompress(level.data) == raw.data
    empty = write([plane[:0]] * 3, position='int16_mm', **{**NONE, 'zstd_level': 5})
    assert (empty.point_count, empty.zstd_level, empty.data) == (0, 0, b'')
    assert read(empty).positions.shape == (0, 3)


@pytest.mark.parametrize(
    ('changes', 'text'),
    [
        ({'position': 'int8'}, "'int8'"),
        ({'color': 'hsv'}, "'hsv'"),
        ({'intensity': 'uint16'}, "'uint16'"),
        ({'point_count': 3}, '3 points take 18 bytes, and the block has 12'),
        ({'point_count': 1}, '1 points take 6 bytes, and the block has 12'),
        ({'zstd_level': 3}, 'cannot be decompressed'),
        ({'zstd_level': 3, 'point_count': 2**32 - 1}, 'at most'),
        (
            {'zstd_level': 3, 'data': zstandard.ZstdCompressor().compress(bytes(100))},
            '2 points take 12 bytes, and the block has 100',
        ),
    ],
)
def test_a_block_that_does_not_fit_its_fields(changes, text: str) -> None:
    cloud = PointCloudData(2, 'int16_mm', 'none', 'none', 0, 0, bytes(12))
    with pytest.raises(FormatError, match=text):
        read(replace(cloud, **changes))


def test_a_block_whose_size_is_not_stated_is_read() -> None:
    block = struct.pack('<6h', 1, 2, 3, 4, 5, 6)
    stream = zstandard.ZstdCompressor(write_content_size=False).compress(block)
    cloud = PointCloudData(2, 'int16_mm', 'none', 'none', 0, 3, stream)
    assert (
        read(cloud).positions[1].tolist() == np.array([0.002, 0.004, 0.006], np.float32).tolist()
    )
    with pytest.raises(FormatError):
        read(replace(cloud, point_count=1))
