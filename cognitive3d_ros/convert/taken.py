"""What a message of a topic holds: samples of series, and what else is to be told of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from cognitive3d_ros.convert.outcome import Dropped

Sample = tuple[str, float]
"""A series by its name, and a value; NaN where the message has none."""

NAN: Final = math.nan


class LevelChange(NamedTuple):
    """A diagnostic status that has another level than before."""

    name: str
    level: int
    message: str
    hardware_id: str


class Taken(NamedTuple):
    """A converted message.

    ``left_out`` counts samples of series beyond the limit, ``no_name`` those of things without a name.
    ``only_own`` says that the recorder itself published all that is in the message.
    """

    samples: list[Sample]
    changes: tuple[LevelChange, ...] = ()
    left_out: int = 0
    no_name: int = 0
    only_own: bool = False


Converter = Callable[[Any], Taken | Dropped]
"""Converts the messages of one topic in one session; never raises."""


def number(value: Any) -> float:
    """Return what a field holds as a float; NaN where that is no number that a float can hold."""
    if isinstance(value, float):
        return float(value)
    if isinstance(value, (int, np.integer, np.floating, np.bool_)):
        try:
            return float(value)
        except OverflowError:  # an endless int
            return NAN
    if isinstance(value, (bytes, bytearray)) and len(value) == 1:  # a byte, as rclpy has it
        return float(value[0])
    return NAN
