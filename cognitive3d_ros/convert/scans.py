"""``sensor_msgs/LaserScan`` to the record's laser scan."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cognitive3d_ros.convert.outcome import (
    MALFORMED,
    MAX_RECORD_BYTES,
    Dropped,
    dropped,
    refuse,
    refuse_size,
)
from cognitive3d_ros.wire.records import LaserScanData

_NAMES = (
    'angle_min',
    'angle_max',
    'angle_increment',
    'time_increment',
    'scan_time',
    'range_min',
    'range_max',
)
_SCALARS = struct.Struct('<7f')


@dataclass(frozen=True, slots=True)
class Scan:
    """A converted laser scan.

    ``intensities_left_out``: they were asked for and published, but not one for each ray.
    """

    data: LaserScanData
    intensities_left_out: bool = False


def convert_scan(message: Any, *, intensities: bool = False) -> Scan | Dropped:
    """Convert a laser scan as published, in its own units and frame (data format, Laser scan).

    ``message`` is anything with the fields of ``sensor_msgs/LaserScan``. Nothing is computed: ranges keep
    their bits, angles may run backwards, and the number of rays is the number of ranges. Never raises.
    """
    try:
        return _convert(message, intensities=intensities)
    except MALFORMED as error:
        return dropped('a laser scan', error)


def _convert(message: Any, *, intensities: bool) -> Scan:
    published = message.intensities if intensities else ()
    size = 4 * (len(message.ranges) + len(published))
    if size > MAX_RECORD_BYTES:
        raise refuse_size('a laser scan', size)
    # Through float32 and back: what is stored.
    scalars = _SCALARS.unpack(_SCALARS.pack(*(getattr(message, name) for name in _NAMES)))
    ranges, values = np.asarray(message.ranges), np.asarray(published)
    for name, numbers in (('ranges', ranges), ('intensities', values)):
        if numbers.ndim != 1 or numbers.dtype.kind not in 'fiu':
            raise refuse(
                f'a laser scan with {name} of shape {numbers.shape} and type {numbers.dtype}; '
                'a list of numbers is expected'
            )
    left_out = len(values) not in (0, len(ranges))
    return Scan(
        LaserScanData(
            **dict(zip(_NAMES, scalars, strict=True)),
            ranges=_float32(ranges),
            intensities=_float32(values[:0] if left_out else values),
        ),
        left_out,
    )


def _float32(values: NDArray[Any]) -> NDArray[np.float32]:
    """Return a copy as float32; values that are float32 already keep every bit."""
    with np.errstate(all='ignore'):
        return np.array(values, np.float32)
