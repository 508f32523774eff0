"""The types of Rock that pocologs hold: their registry in typelib's XML, and their samples in bytes.

A sample is its C++ memory image in the order of offsets, with each string and vector as a 64-bit count and its
elements. The types here have no padding between their fields.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from xml.sax.saxutils import quoteattr

import numpy as np
from numpy.typing import NDArray

from cognitive3d_ros.quaternions import Array

_US_PER_NS: Final = 1000
_NANS: Final = np.full(9, np.nan)

_V3: Final = '/wrappers/Matrix</double,3,1>'
_M33: Final = '/wrappers/Matrix</double,3,3>'
_V4: Final = '/wrappers/Matrix</double,4,1>'
_Q: Final = '/wrappers/Quaternion</double>'
_TIME: Final = '/base/Time'
_STRING: Final = '/std/string'
_ATTRIBUTE: Final = '/base/samples/frame/frame_attrib_t'
_SIZE: Final = '/base/samples/frame/frame_size_t'
_MODE: Final = '/base/samples/frame/frame_mode_t'
_STATUS: Final = '/base/samples/frame/frame_status_t'

JPEG, VALID = 258, 1  # of frame_mode_t and frame_status_t

# Compounds: size, and (field, type, offset).
_COMPOUNDS: Final[Mapping[str, tuple[int, Sequence[tuple[str, str, int]]]]] = {
    _TIME: (8, [('microseconds', '/int64_t', 0)]),
    _V3: (24, [('data', '/double[3]', 0)]),
    _V4: (32, [('data', '/double[4]', 0)]),
    _M33: (72, [('data', '/double[9]', 0)]),
    _Q: (32, [('im', '/double[3]', 0), ('re', '/double', 24)]),
    '/logger/Annotations': (
        104,
        [
            ('time', _TIME, 0),
            ('stream_name', _STRING, 8),
            ('key', _STRING, 40),
            ('value', _STRING, 72),
        ],
    ),
    '/base/samples/RigidBodyState_m': (
        464,
        [
            ('time', _TIME, 0),
            ('sourceFrame', _STRING, 8),
            ('targetFrame', _STRING, 40),
            ('position', _V3, 72),
            ('cov_position', _M33, 96),
            ('orientation', _Q, 168),
            ('cov_orientation', _M33, 200),
            ('velocity', _V3, 272),
            ('cov_velocity', _M33, 296),
            ('angular_velocity', _V3, 368),
            ('cov_angular_velocity', _M33, 392),
        ],
    ),
    '/base/samples/LaserScan': (
        88,
        [
            ('time', _TIME, 0),
            ('start_angle', '/double', 8),
            ('angular_resolution', '/double', 16),
            ('speed', '/double', 24),
            ('ranges', '/std/vector</uint32_t>', 32),
            ('minRange', '/uint32_t', 56),
            ('maxRange', '/uint32_t', 60),
            ('remission', '/std/vector</float>', 64),
        ],
    ),
    '/base/samples/Pointcloud_m': (
        56,
        [
            ('time', _TIME, 0),
            ('points', f'/std/vector<{_V3}>', 8),
            ('colors', f'/std/vector<{_V4}>', 32),
        ],
    ),
    _ATTRIBUTE: (64, [('data_', _STRING, 0), ('name_', _STRING, 32)]),
    _SIZE: (4, [('width', '/uint16_t', 0), ('height', '/uint16_t', 2)]),
    '/base/samples/frame/Frame': (
        88,
        [
            ('time', _TIME, 0),
            ('received_time', _TIME, 8),
            ('image', '/std/vector</uint8_t>', 16),
            ('attributes', f'/std/vector<{_ATTRIBUTE}>', 40),
            ('size', _SIZE, 64),
            ('data_depth', '/uint32_t', 68),
            ('pixel_size', '/uint32_t', 72),
            ('row_size', '/uint32_t', 76),
            ('frame_mode', _MODE, 80),
            ('frame_status', _STATUS, 84),
        ],
    ),
}
_NUMBERS: Final = {
    '/double': ('float', 8),
    '/float': ('float', 4),
    '/int8_t': ('sint', 1),
    '/int64_t': ('sint', 8),
    '/uint8_t': ('uint', 1),
    '/uint16_t': ('uint', 2),
    '/uint32_t': ('uint', 4),
}
_ENUMS: Final = {
    _MODE: {
        'MODE_UNDEFINED': 0,
        'MODE_GRAYSCALE': 1,
        'MODE_RGB': 2,
        'MODE_UYVY': 3,
        'MODE_BGR': 4,
        'MODE_RGB32': 5,
        'MODE_PJPG': 257,
        'MODE_JPEG': JPEG,
        'MODE_PNG': 259,
    },
    _STATUS: {'STATUS_EMPTY': 0, 'STATUS_VALID': VALID, 'STATUS_INVALID': 2},
}


@dataclass(frozen=True, slots=True)
class RockType:
    """A type of samples: its name in the log, and that of the C++ type which it stands for."""

    name: str
    cxx_name: str


ANNOTATIONS: Final = RockType('/logger/Annotations', '/logger/Annotations')
BODY_STATE: Final = RockType('/base/samples/RigidBodyState_m', '/base/samples/RigidBodyState')
LASER_SCAN: Final = RockType('/base/samples/LaserScan', '/base/samples/LaserScan')
POINTCLOUD: Final = RockType('/base/samples/Pointcloud_m', '/base/samples/Pointcloud')
FRAME: Final = RockType('/base/samples/frame/Frame', '/base/samples/frame/Frame')
DOUBLE: Final = RockType('/double', '/double')


def registry(kind: RockType) -> str:
    """Return the registry that defines a type, in typelib's XML."""
    lines: list[str] = []
    _define(kind.name, lines, set())
    return '<?xml version="1.0"?>\n<typelib>\n' + '\n'.join(lines) + '\n</typelib>\n'


def _define(name: str, lines: list[str], done: set[str]) -> None:
    """Add the definition of a type behind those that it is made of."""
    base = name.partition('[')[0]  # arrays are not declared
    if base in done:
        return
    done.add(base)
    quoted = f'name={quoteattr(base)}'
    if base in _NUMBERS:
        category, size = _NUMBERS[base]
        lines.append(f'  <numeric {quoted} category="{category}" size="{size}"/>')
    elif base in _ENUMS:
        values = [
            f'    <value symbol="{symbol}" value="{value}"/>'
            for symbol, value in _ENUMS[base].items()
        ]
        lines += [f'  <enum {quoted}>', *values, '  </enum>']
    elif base == _STRING:
        _define('/int8_t', lines, done)
        lines.append(f'  <container {quoted} of="/int8_t" size="32" kind="/std/string"/>')
    elif base.startswith('/std/vector<'):
        of = base.removeprefix('/std/vector<').removesuffix('>')
        _define(of, lines, done)
        lines.append(f'  <container {quoted} of={quoteattr(of)} size="24" kind="/std/vector"/>')
    else:
        size, fields = _COMPOUNDS[base]
        for _, kind, _ in fields:
            _define(kind, lines, done)
        members = [
            f'    <field name="{field}" type={quoteattr(kind)} offset="{offset}"/>'
            for field, kind, offset in fields
        ]
        lines += [f'  <compound {quoted} size="{size}">', *members, '  </compound>']


def text(value: str) -> bytes:
    """Return a string, as part of a sample."""
    data = value.encode('utf-8', 'replace')
    return struct.pack('<Q', len(data)) + data


def _vector(values: NDArray[Any], dtype: str) -> bytes:
    """Return a vector, as part of a sample; of rows, where ``values`` has two dimensions."""
    return struct.pack('<Q', len(values)) + np.ascontiguousarray(values, dtype).tobytes()


def _time(time_ns: int) -> bytes:
    return struct.pack('<q', time_ns // _US_PER_NS)


def annotation(time_ns: int, stream_name: str, key: str, value: str) -> bytes:
    """Return a sample of :data:`ANNOTATIONS`."""
    return _time(time_ns) + text(stream_name) + text(key) + text(value)


def body_state(time_ns: int, source: str, target: str, p: Array, r: Array) -> bytes:
    """Return a sample of :data:`BODY_STATE`: the pose of ``source`` in ``target``, the rest unknown."""
    numbers = [p, _NANS, r, _NANS, _NANS[:3], _NANS, _NANS[:3], _NANS]
    return _time(time_ns) + text(source) + text(target) + np.concatenate(numbers).tobytes()


def laser_scan(
    time_ns: int,
    *,
    start_angle: float,
    resolution: float,
    speed: float,
    ranges_mm: NDArray[np.uint32],
    limits_mm: tuple[int, int],
    remission: NDArray[np.float32],
) -> bytes:
    """Return a sample of :data:`LASER_SCAN`; ranges of 1 to 5 are codes of why there is none."""
    head = struct.pack('<ddd', start_angle, resolution, speed)
    limits = struct.pack('<II', *limits_mm)
    return _time(time_ns) + head + _vector(ranges_mm, '<u4') + limits + _vector(remission, '<f4')


def pointcloud(time_ns: int, points: Array, colors: Array) -> bytes:
    """Return a sample of :data:`POINTCLOUD`: points (N, 3), colours (N, 4) of 0 to 1 or none."""
    return _time(time_ns) + _vector(points, '<f8') + _vector(colors, '<f8')


def frame(
    time_ns: int, jpeg: bytes, width: int, height: int, attributes: Mapping[str, str]
) -> bytes:
    """Return a sample of :data:`FRAME` that holds a JPEG."""
    image = struct.pack('<Q', len(jpeg)) + jpeg
    told = [text(value) + text(name) for name, value in attributes.items()]
    tail = struct.pack('<HHIIIii', width, height, 8, 3, 0, JPEG, VALID)
    count = struct.pack('<Q', len(told))
    return _time(time_ns) + _time(time_ns) + image + count + b''.join(told) + tail


def double(value: float) -> bytes:
    """Return a sample of :data:`DOUBLE`."""
    return struct.pack('<d', value)
