"""Messages of described sensors to their readings.

Source: data format, Described sensors. A ``cone_rangefinder`` is one distance in the unit that its parameters
name; a ``binary_array`` is so many zeros and ones.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from cognitive3d_ros.convert.outcome import MALFORMED, Dropped, dropped
from cognitive3d_ros.convert.taken import Converter, Taken, number
from cognitive3d_ros.convert.topics import SCALAR_TYPES
from cognitive3d_ros.counters import Drop
from cognitive3d_ros.parameters import SensorConfig

RANGE: Final = 'sensor_msgs/msg/Range'
ARRAY_TYPES: Final = frozenset(
    f'std_msgs/msg/{name}MultiArray'
    for name in (
        *('Byte', 'Float32', 'Float64'),
        *(f'{sign}nt{bits}' for sign in ('I', 'UI') for bits in (8, 16, 32, 64)),
    )
)

METRES: Final[Mapping[str, float]] = {
    'meters': 1.0,
    'centimeters': 0.01,
    'millimeters': 0.001,
    'inches': 0.0254,
}
"""The units of a rangefinder's series, in metres."""


def described(sensor: SensorConfig, type_name: str) -> Converter | None:
    """Return what converts the messages of a described sensor, or None where it has none of that type."""
    if sensor.element_count is not None:
        return _BinaryArray(sensor) if type_name in ARRAY_TYPES else None
    if type_name == RANGE:
        return _Range(sensor)
    return _Distance(sensor) if type_name in SCALAR_TYPES else None


def wanted_types(sensor: SensorConfig) -> str:
    """Return in words of which types the messages of a described sensor may be."""
    if sensor.element_count is not None:
        return 'any of the std_msgs multi-arrays'
    return 'sensor_msgs/msg/Range or a std_msgs number'


class _Range:
    """A distance in metres, converted to the sensor's unit."""

    def __init__(self, sensor: SensorConfig) -> None:
        self._series, self._unit_m = sensor.name, METRES[sensor.units]

    def __call__(self, message: Any) -> Taken | Dropped:
        try:
            return Taken([(self._series, number(message.range) / self._unit_m)])
        except MALFORMED as error:
            return dropped('a range', error)


class _Distance:
    """A number that is in the sensor's unit already."""

    def __init__(self, sensor: SensorConfig) -> None:
        self._series = sensor.name

    def __call__(self, message: Any) -> Taken | Dropped:
        try:
            return Taken([(self._series, number(message.data))])
        except MALFORMED as error:
            return dropped('a distance', error)


class _BinaryArray:
    """One series for each element; what is not zero is one."""

    def __init__(self, sensor: SensorConfig) -> None:
        self._name, self._series = sensor.name, sensor.series

    def __call__(self, message: Any) -> Taken | Dropped:
        try:
            data = message.data
            if len(data) != len(self._series):
                text = (
                    f'{len(data)} elements: element_count of {self._name} is {len(self._series)}'
                )
                return Dropped(Drop.WRONG_LENGTH, text)
            return Taken(
                [(series, _bit(value)) for series, value in zip(self._series, data, strict=True)]
            )
        except MALFORMED as error:
            return dropped('a multi-array', error)


def _bit(value: Any) -> float:
    value = number(value)
    return value if math.isnan(value) else float(value != 0)
