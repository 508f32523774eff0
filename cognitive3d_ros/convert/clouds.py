"""``sensor_msgs/PointCloud2`` to the record's point cloud.

Points go through six steps: those without a place are left out, the others are averaged by cubes, rounded
to what is stored, turned into scene axes, sorted, and packed. All of it works on *planes*, one array of
shape (N,) for each value that a point has.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cognitive3d_ros.conventions import Convention
from cognitive3d_ros.convert.outcome import (
    MALFORMED,
    MAX_RECORD_BYTES,
    Dropped,
    dropped,
    refuse,
    refuse_size,
)
from cognitive3d_ros.convert.point_fields import DATATYPES, UINT32, Field, dtype_from_fields
from cognitive3d_ros.convert.voxels import Plane, average, order
from cognitive3d_ros.wire.clouds import (
    INT16_MM,
    NONE,
    POSITION_TYPES,
    pack_colors,
    write,
)
from cognitive3d_ros.wire.records import PointCloudData

INTENSITY_NAMES: Final = (
    'intensity',
    'intensities',
    'i',
    'reflectivity',
    'reflectance',
    'remission',
    'signal',
    'amplitude',
)
"""What drivers call the intensity, in the order in which it is looked for."""

_PACKED_NAMES: Final = ('rgb', 'rgba')
_CHANNEL_NAMES: Final = (('r', 'g', 'b'), ('red', 'green', 'blue'))

_INT16_MAX: Final = 32767
# The least |coordinate| in metres that does not fit: one that rounds to 32768 mm, or from float64 to an
# infinite float32.
_BEYOND: Final = {INT16_MM: 32.7675, 'float32': 2.0**128 * (1 - 2.0**-25)}
_MAX_POINTS: Final = MAX_RECORD_BYTES // 6  # more do not go into a record, however they are stored


@dataclass(frozen=True, slots=True)
class CloudOptions:
    """What is asked of a cloud's record: the parameters ``lidar.<name>.pointcloud.*``."""

    position: str = INT16_MM
    color: str = NONE
    intensity: str = NONE
    intensity_field: str = ''  # empty: found by its usual names
    voxel_leaf_mm: int = 50  # 0: no averaging
    zstd_level: int = 3  # 0: no compression


@dataclass(frozen=True, slots=True)
class Cloud:
    """A converted point cloud.

    Of ``points`` that had a place, finite and not exactly zero, ``out_of_range`` were left out because
    the record's positions do not reach that far.
    """

    data: PointCloudData
    points: int
    out_of_range: int


def convert_cloud(message: Any, options: CloudOptions, convention: Convention) -> Cloud | Dropped:
    """Convert a point cloud (data format, Point cloud). Never raises.

    ``message`` is anything with the fields of ``sensor_msgs/PointCloud2``, its ``data`` anything with a
    buffer of bytes. Fields may lie in any order, of any type and byte order, with any padding; their
    names are compared without regard to case, and those that are not needed are not looked at. A colour
    or an intensity that is asked for and not there is stored as ``none``. The average of a cube is that of
    the colours and intensities its points would be stored with alone, before they are rounded.
    """
    try:
        with np.errstate(all='ignore'):
            return _convert(message, options, convention)
    except MALFORMED as error:
        return dropped('a point cloud', error)


def _convert(message: Any, options: CloudOptions, convention: Convention) -> Cloud:
    layout = _layout(message.fields, options)

    def record(planes: Sequence[Plane]) -> PointCloudData:
        return write(
            planes,
            position=options.position,
            color=options.color if layout.color else NONE,
            intensity=options.intensity if layout.intensity else NONE,
            voxel_leaf_mm=options.voxel_leaf_mm,
            zstd_level=options.zstd_level,
        )

    points = _points(message, layout)
    if points is None:
        return Cloud(record([np.empty(0)]), 0, 0)
    xyz = _planes(points, layout.position, np.dtype(np.float32))
    colors, values = _planes(points, layout.color), _planes(points, layout.intensity)
    color_scale, value_scale = _scale(colors), _scale(values)  # of the whole message

    farthest = np.maximum(np.maximum(np.abs(xyz[0]), np.abs(xyz[1])), np.abs(xyz[2]))
    beyond = xyz.dtype.type(_BEYOND[options.position])
    fits = farthest < beyond  # as all comparisons false for NaN
    out_of_range = int(np.count_nonzero(np.isfinite(farthest) & ~fits))
    fits &= farthest > 0
    xyz, colors, values = (part.compress(fits, axis=1) for part in (xyz, colors, values))
    count = xyz.shape[1]

    planes = [*xyz, *_rgb(colors, color_scale), *_bytes(values, value_scale)]
    if options.voxel_leaf_mm > 0 and count:
        planes = [*average(planes, options.voxel_leaf_mm / 1000)]
    scene, keys = _in_scene_axes(_rounded(planes[:3], options.position), convention.name)
    sequence = order([scene[key] for key in keys])
    stored = [plane.take(sequence) for plane in scene]
    rest = [_uint8(plane).take(sequence) for plane in planes[3:]]
    if layout.color:
        stored.append(pack_colors(np.stack(rest[:3]), options.color))
    if layout.intensity:
        stored.append(rest[-1])
    size = sum(plane.nbytes for plane in stored)
    if size > MAX_RECORD_BYTES:
        raise refuse_size('a point cloud whose points take a block', size)
    return Cloud(record(stored), count + out_of_range, out_of_range)


@dataclass(frozen=True, slots=True)
class _Layout:
    """The fields a record is made of, under names of our own; what is missing is empty."""

    position: Sequence[Field]  # x, y, z
    color: Sequence[Field]  # one of 0x00RRGGBB, or three channels
    intensity: Sequence[Field]


def _layout(fields: Iterable[Any], options: CloudOptions) -> _Layout:
    """Find the fields that are needed; the first of a name counts."""
    named: dict[str, Any] = {}
    for field in fields:
        named.setdefault(field.name.lower(), field)
    color: Sequence[Field] = ()
    intensity: Sequence[Field] = ()
    if options.color != NONE:
        color = _packed_color(named) or _first(named, ('r', 'g', 'b'), _CHANNEL_NAMES)
    if options.intensity != NONE:
        names = (options.intensity_field.lower(),) if options.intensity_field else INTENSITY_NAMES
        intensity = _first(named, ('intensity',), [(name,) for name in names])
    return _Layout(_first(named, ('x', 'y', 'z'), [('x', 'y', 'z')]), color, intensity)


def _first(
    named: Mapping[str, Any], ours: Sequence[str], candidates: Iterable[Sequence[str]]
) -> Sequence[Field]:
    """Return the first candidates that are all there, under our names; of an array its first value."""
    for theirs in candidates:
        if all(name in named for name in theirs):
            return [
                Field(name, operator.index(field.offset), operator.index(field.datatype))
                for name, field in zip(ours, map(named.__getitem__, theirs), strict=True)
            ]
    return ()


def _packed_color(named: Mapping[str, Any]) -> Sequence[Field]:
    """Return a packed colour as the integer it is, whatever it is declared as.

    As a float it must not be touched: many colours are NaNs, of which arithmetic changes bits.
    """
    for name in _PACKED_NAMES:
        for field in _first(named, ('rgb',), [(name,)]):
            kind = DATATYPES.get(field.datatype)
            if kind is not None and kind.itemsize == DATATYPES[UINT32].itemsize:
                return [replace(field, datatype=UINT32)]
    return ()


def _points(message: Any, layout: _Layout) -> NDArray[Any] | None:
    """Return the points as a structured view of the message's bytes, (height, width); None: it has none.

    ``row_step`` counts where there are several rows, unless the bytes are just as many as the points
    without it take: drivers that crop a cloud forget it.
    """
    data = memoryview(message.data)
    size = data.nbytes
    if size > MAX_RECORD_BYTES:
        raise refuse_size('a point cloud', size)
    width, height, step, row_step = map(
        operator.index, (message.width, message.height, message.point_step, message.row_step)
    )
    if width == 0 or height == 0:
        return None
    if not layout.position:
        raise refuse('a point cloud that lacks one of the fields x, y and z')
    fields = [*layout.position, *layout.color, *layout.intensity]
    for field in fields:
        kind = DATATYPES.get(field.datatype)
        if kind is None:
            raise refuse(
                f'a point cloud whose field {field.name} is of unknown type {field.datatype}'
            )
        if not 0 <= field.offset <= step - kind.itemsize:
            raise refuse(
                f'a point cloud whose field {field.name} has {kind.itemsize} bytes from byte '
                f'{field.offset} on, of points of {step} bytes'
            )
    row = width * step
    if height == 1 or size == row * height:
        row_step = row
    needed = row_step * (height - 1) + row
    if min(width, height) < 0 or row_step < row or needed > size or width * height > _MAX_POINTS:
        raise refuse(
            f'a point cloud of {width} x {height} points of {step} bytes, in rows of {row_step}, '
            f'with {size} bytes'
        )
    point = dtype_from_fields(fields, step).newbyteorder('>' if message.is_bigendian else '<')
    points: NDArray[Any] = np.ndarray(
        (height, width), point, buffer=data.cast('B'), strides=(row_step, step)
    )
    return points


def _planes(points: NDArray[Any], fields: Sequence[Field], *kinds: np.dtype[Any]) -> NDArray[Any]:
    """Return fields as planes (fields, N), of a type that holds all of them and ``kinds``."""
    if not fields:
        return np.empty((0, points.size), np.uint8)
    kind = np.result_type(*(DATATYPES[field.datatype] for field in fields), *kinds)
    planes = np.empty((len(fields), *points.shape), kind)
    for plane, field in zip(planes, fields, strict=True):
        plane[...] = points[field.name]
    return planes.reshape(len(fields), -1)


def _scale(values: NDArray[Any]) -> float:
    """Return what takes values to 0 … 255: 255 for floats of which all that are finite are 1.0 or less."""
    if values.dtype.kind != 'f':
        return 1.0
    highest = np.fmax.reduce(values, axis=None)  # passes over NaN
    if np.isinf(highest):
        highest = np.max(values, where=np.isfinite(values), initial=-np.inf)
    return 1.0 if highest > 1.0 else 255.0


def _bytes(values: NDArray[Any], scale: float) -> NDArray[Any]:
    """Return values scaled and clamped to 0 … 255, not rounded yet; NaN becomes 0."""
    if values.dtype == np.uint8:
        return values
    scaled: NDArray[np.float64] = np.multiply(values, scale, dtype=np.float64)
    return np.fmin(np.fmax(scaled, 0), 255)


def _rgb(colors: NDArray[Any], scale: float) -> NDArray[Any]:
    """Return colours as three channels of 0 … 255, shape (3, N); (0, N) where there are none."""
    if len(colors) != 1:
        return _bytes(colors, scale)
    return np.stack([colors[0] >> 16, colors[0] >> 8, colors[0]]).astype(np.uint8)


def _uint8(plane: Plane) -> Plane:
    return plane if plane.dtype == np.uint8 else np.rint(plane).astype(np.uint8)


def _rounded(xyz: Sequence[Plane], position: str) -> list[Plane]:
    """Return metres as they are stored; 1000 p is exact in float64."""
    if position != INT16_MM:
        return [plane.astype(POSITION_TYPES[position]) for plane in xyz]
    millimetres = np.rint(np.multiply(xyz, 1000.0, dtype=np.float64))
    # All points fit; the average of several at the very edge may miss it by its last bit.
    np.clip(millimetres, -_INT16_MAX, _INT16_MAX, out=millimetres)
    return [*millimetres.astype(POSITION_TYPES[position])]


def _in_scene_axes(xyz: Sequence[Plane], convention: str) -> tuple[list[Plane], Sequence[int]]:
    """Return the planes in scene axes, and which of them sort the points: up, the later, the earlier."""
    sources, signs, keys = _axes(convention)
    turned = [xyz[source] for source in sources]
    return [plane if sign > 0 else -plane for plane, sign in zip(turned, signs, strict=True)], keys


@functools.cache
def _axes(convention: str) -> tuple[Sequence[int], Sequence[float], Sequence[int]]:
    """Return for each scene axis the ROS axis it is and its sign, and the order that sorts points.

    A convention's position map is a permutation with signs.
    """
    matrix = Convention(convention).matrix
    sources = [int(source) for source in np.abs(matrix).argmax(axis=1)]
    signs = [float(row[source]) for row, source in zip(matrix, sources, strict=True)]
    up = sources.index(2)
    earlier, later = sorted({0, 1, 2} - {up})
    return sources, signs, (up, later, earlier)
