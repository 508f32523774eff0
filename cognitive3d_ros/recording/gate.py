"""The change gate of the sensor series.

Source: data format, Sensor series. A sample is stored when it differs from the last stored value by more
than 0.001, or when 2 seconds or more have passed since the last stored sample: values and times as
they are stored, to five decimals.
"""

from __future__ import annotations

from collections.abc import Iterable

from cognitive3d_ros.wire.numbers import TICKS_PER_S, ticks

_CHANGE = 0.001
_SURE = 0.0001  # how near the threshold a difference must be for its last bit to matter
_KEEP_TICKS = 2 * TICKS_PER_S


class ChangeGate:
    """What was stored last of each series, fresh in each session."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[float, int]] = {}

    def passed(
        self, samples: Iterable[tuple[str, float]], wire_ns: int
    ) -> list[tuple[str, float]]:
        """Return the samples to store, rounded; finite ones of one wire time go in."""
        now = ticks(wire_ns)
        last = self._last
        passed = []
        for name, value in samples:
            before = last.get(name)
            if before is not None and now - before[1] < _KEEP_TICKS:
                # Rounding costs most: what is clearly within the threshold, or beyond it, needs little of it.
                change = abs(value - before[0])
                if change < _CHANGE - _SURE:
                    continue
                stored = round(value, 5)
                if change < _CHANGE + _SURE and not round(abs(stored - before[0]), 5) > _CHANGE:
                    continue
            else:
                stored = round(value, 5)
            last[name] = (stored, now)
            passed.append((name, stored))
        return passed
