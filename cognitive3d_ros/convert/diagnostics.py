"""``diagnostic_msgs/DiagnosticArray`` to the levels of its statuses, and to what has changed in them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from cognitive3d_ros.convert.names import BoundedNames
from cognitive3d_ros.convert.outcome import MALFORMED, Dropped, dropped
from cognitive3d_ros.convert.taken import LevelChange, Sample, Taken, number

DIAGNOSTIC_ARRAY: Final = 'diagnostic_msgs/msg/DiagnosticArray'

STALE: Final = 3
_MAX_TEXT_CHARS = 1_024  # of a message that becomes a property

Own = Callable[[str, str], bool]
"""Says whether a status is one of the recorder itself, by its name and its hardware id."""


def level_of(value: Any) -> int | None:
    """Return the level of a status, 0 to 3; None where there is none.

    It is a ``byte``: rclpy has one as ``bytes``, other readers as an int, and some drivers send the digit's
    character. What is no level at all is STALE: nothing is known of the thing any more.
    """
    level = number(value)
    if math.isnan(level):
        return None
    if ord('0') <= level <= ord('0') + STALE:
        level -= ord('0')
    return int(level) if level in (0, 1, 2, 3) else STALE


class Statuses:
    """Converts the diagnostics of one topic in one session: ``<prefix>.<status name>.level``."""

    def __init__(self, prefix: str, own: Own) -> None:
        self._names = BoundedNames(prefix, ('level',))
        self._own = own
        self._levels: dict[str, int] = {}  # by series, as bounded as they are

    def __call__(self, message: Any) -> Taken | Dropped:
        """Return the levels of an array's statuses, but for the recorder's own, and those that changed."""
        try:
            samples: list[Sample] = []
            changes: list[LevelChange] = []
            left_out = no_name = ours = 0
            for status in message.status:
                if self._own(status.name, status.hardware_id):
                    ours += 1
                    continue
                level = level_of(status.level)
                if level is None:
                    continue
                if not status.name:
                    no_name += 1
                    continue
                names = self._names.series(status.name)
                if names is None:
                    left_out += 1
                    continue
                (series,) = names
                samples.append((series, float(level)))
                if self._levels.get(series, level) != level:
                    text = status.message[:_MAX_TEXT_CHARS]
                    hardware = status.hardware_id[:_MAX_TEXT_CHARS]
                    changes.append(LevelChange(status.name, level, text, hardware))
                self._levels[series] = level
        except MALFORMED as error:
            return dropped('a diagnostic array', error)
        only_own = bool(ours) and ours == len(message.status)
        return Taken(samples, tuple(changes), left_out, no_name, only_own=only_own)
