"""The block of a point cloud: planes of points, written and read.

::

    X[N] Y[N] Z[N]   int16 millimetres ("int16_mm") or float32 metres ("float32")
    C[N]             uint16 ("rgb565"), uint8 ("rgb332"), 3 x uint8 ("rgb888"), or absent ("none")
    I[N]             uint8 ("uint8"), or absent ("none")

Little-endian, and zstd-compressed where the level is above 0 (data format, Point cloud).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import zstandard
from numpy.typing import NDArray

from cognitive3d_ros.errors import FormatError
from cognitive3d_ros.wire.records import PointCloudData

INT16_MM: Final = 'int16_mm'
NONE: Final = 'none'
POSITION_TYPES: Final[Mapping[str, np.dtype[Any]]] = {
    INT16_MM: np.dtype('<i2'),
    'float32': np.dtype('<f4'),
}
COLOR_TYPES: Final[Mapping[str, np.dtype[Any]]] = {
    'rgb565': np.dtype('<u2'),
    'rgb332': np.dtype('u1'),
    'rgb888': np.dtype(('u1', (3,))),
}

READ_LIMIT_BYTES: Final = 1 << 30
"""The largest block that is read, decompressed: a few bytes of zstd can claim to be any size."""

Bytes = NDArray[np.uint8]


class Points(NamedTuple):
    """The points of a cloud, in scene axes relative to the sensor.

    ``positions`` are metres, float32 of shape (N, 3); ``colors`` uint8 of shape (N, 3) or None,
    ``intensities`` uint8 of shape (N,) or None.
    """

    positions: NDArray[np.float32]
    colors: Bytes | None
    intensities: Bytes | None


def block_bytes(count: int, position: str, color: str, intensity: str) -> int:
    """Return the size of a block of ``count`` points before compression.

    Raises KeyError for a name that the data format does not have.
    """
    size = 3 * POSITION_TYPES[position].itemsize
    if color != NONE:
        size += COLOR_TYPES[color].itemsize
    if intensity != NONE:
        size += {'uint8': 1}[intensity]
    return count * size


def pack_colors(rgb: Bytes, color: str) -> NDArray[Any]:
    """Pack 8-bit channels, three planes of shape (3, N): the high bits of each.

    Returns shape (N,), or (N, 3) for ``rgb888``.
    """
    if color == 'rgb888':
        return np.ascontiguousarray(rgb.T)
    red, green, blue = rgb.astype('<u2')
    packed: NDArray[Any]
    if color == 'rgb565':
        packed = (red & 0xF8) << 8 | (green & 0xFC) << 3 | blue >> 3
    else:
        packed = (red & 0xE0) | (green & 0xE0) >> 3 | blue >> 6
    return packed.astype(COLOR_TYPES[color])


def unpack_colors(packed: NDArray[Any], color: str) -> Bytes:
    """Unpack to 8-bit channels of shape (N, 3), high bits repeated into the low ones.

    The formulas are the data format's, so that 0 and full scale come back exactly.
    """
    if color == 'rgb888':
        return np.array(packed, np.uint8)
    v = packed.astype(np.uint16)
    if color == 'rgb565':
        channels = (
            (v >> 11) << 3 | (v >> 13),
            ((v >> 5) & 63) << 2 | ((v >> 9) & 3),
            (v & 31) << 3 | ((v >> 2) & 7),
        )
    else:
        red, green, blue = v & 0xE0, (v << 3) & 0xE0, v & 0x03
        channels = (
            red | red >> 3 | red >> 6,
            green | (v & 0x1C) | ((v >> 3) & 0x03),
            blue << 6 | blue << 4 | blue << 2 | blue,
        )
    return np.stack(channels, axis=-1).astype(np.uint8)


def write(
    planes: Sequence[NDArray[Any]],
    *,
    position: str,
    color: str,
    intensity: str,
    voxel_leaf_mm: int,
    zstd_level: int,
) -> PointCloudData:
    """Return the record of planes that are in the block's own types and order, each N long.

    A cloud without points has no data, and is not compressed.
    """
    count = len(planes[0])
    if count == 0:
        zstd_level = 0
    data = b''.join(plane.tobytes() for plane in planes)
    if zstd_level > 0:
        data = zstandard.ZstdCompressor(level=zstd_level).compress(data)
    return PointCloudData(count, position, color, intensity, voxel_leaf_mm, zstd_level, data)


def check(cloud: PointCloudData) -> int:
    """Return the size that the block has once decompressed, as its fields say.

    It is not decompressed: this finds what cannot be read for the price of a look at its head. Raises
    FormatError where block and fields do not fit each other.
    """
    try:
        size = block_bytes(cloud.point_count, cloud.position, cloud.color, cloud.intensity)
    except KeyError as error:
        raise FormatError(f'a block with {error.args[0]!r} is unknown to this version') from None
    if cloud.zstd_level == 0:
        _check_size(cloud, size, len(cloud.data))
        return size
    if size > READ_LIMIT_BYTES:
        raise FormatError(f'a block of {size} bytes; at most {READ_LIMIT_BYTES} are read')
    try:
        stated = zstandard.frame_content_size(cloud.data)
    except zstandard.ZstdError as error:
        raise FormatError(f'the block cannot be decompressed: {error}') from None
    if stated != -1:  # -1: not stated
        _check_size(cloud, size, stated)
    return size


def read(cloud: PointCloudData) -> Points:
    """Read the points of a record; raises FormatError where block and fields do not fit each other."""
    size = check(cloud)
    block = _decompressed(cloud, size) if cloud.zstd_level > 0 else cloud.data
    _check_size(cloud, size, len(block))
    count, at = cloud.point_count, 0

    def plane(kind: np.dtype[Any]) -> NDArray[Any]:
        nonlocal at
        values = np.frombuffer(block, kind.base, count * kind.itemsize // kind.base.itemsize, at)
        at += values.nbytes
        return values.reshape(count, *kind.shape)

    kind = POSITION_TYPES[cloud.position]
    positions = np.stack([plane(kind) for _ in range(3)], axis=-1).astype(np.float32)
    if cloud.position == INT16_MM:
        positions /= np.float32(1000)
    colors = None
    if cloud.color != NONE:
        colors = unpack_colors(plane(COLOR_TYPES[cloud.color]), cloud.color)
    intensities = None if cloud.intensity == NONE else plane(np.dtype('u1')).copy()
    return Points(positions, colors, intensities)


def _decompressed(cloud: PointCloudData, size: int) -> bytes:
    try:
        return zstandard.ZstdDecompressor().decompress(cloud.data, max_output_size=size)
    except zstandard.ZstdError as error:
        raise FormatError(f'the block cannot be decompressed: {error}') from None


def _check_size(cloud: PointCloudData, expected: int, found: int) -> None:
    if found != expected:
        raise FormatError(
            f'{cloud.point_count} points take {expected} bytes, and the block has {found}'
        )
