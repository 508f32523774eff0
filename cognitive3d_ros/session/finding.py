"""Which parts of a stream can hold the records of a while, told from a few of them.

A recorder closes one part after the other, and what it appends is as good as ordered: wire time never steps
back (the clock rule), and a record may be only so much older than what was appended before it. That much is
the stream's *slack*. So of two parts, no record of the later one is older than any of the earlier one by more
than the slack; the parts that can hold a while are found by bisection, with the slack on both sides.

What is read on the way is held against that: first some parts that are spread over the whole stream, then
those of the bisection. Where they are not in order, nobody knows what the others hold, and all are wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

_SPREAD = 32  # how many parts are looked at before any conclusion


class Bounds(NamedTuple):
    """The times of the earliest and the latest record of a part, in seconds."""

    first: float
    last: float


class PartFinder:
    """The parts of one stream by what is known of their times; each is read for that at most once."""

    def __init__(self, count: int, read: Callable[[int], Bounds | None], slack_s: float) -> None:
        """Take how many parts there are, and what reads the bounds of one; None: it has no records."""
        self._count = count
        self._read = read
        self._slack_s = slack_s
        self._known: dict[int, Bounds | None] = {}

    def within(self, start: float, end: float, *, each: bool = False) -> Sequence[int]:
        """Return the parts that can hold records with start <= time < end; all, where that is not known.

        ``each``: the bounds of each of them are read too, and those left out that hold none.
        """
        step = max(1, -(-self._count // _SPREAD))
        for part in range(0, self._count, step):
            self._bounds(part)
        if not self._in_order():
            return range(self._count)
        found = self._between(start, end)
        if each:
            found = [part for part in found if _overlap(self._bounds(part), start, end)]
        return found if self._in_order() else range(self._count)

    def _between(self, start: float, end: float) -> Sequence[int]:
        # The last part of which it is sure that all before it are too early …
        first, last = 0, self._count - 1
        high = self._count
        while high - first > 1:
            middle = (first + high) // 2
            part, bounds = self._next(middle, high)
            if bounds is not None and bounds.first < start - self._slack_s:
                first = part
            else:
                high = middle
        # … and the first of which it is sure that all behind it are too late.
        low, high = first - 1, self._count
        while high - low > 1:
            middle = (low + high) // 2
            part, bounds = self._next(middle, high)
            if bounds is None:
                high = middle
            elif bounds.last >= end + self._slack_s:
                last, high = part, middle
            else:
                low = part
        return range(first, last + 1)

    def _next(self, part: int, end: int) -> tuple[int, Bounds | None]:
        """Return the first part from one on, before another, that has records, and its bounds."""
        found = ((each, self._bounds(each)) for each in range(part, end))
        return next((each for each in found if each[1] is not None), (end, None))

    def _bounds(self, part: int) -> Bounds | None:
        if part not in self._known:
            self._known[part] = self._read(part)
        return self._known[part]

    def _in_order(self) -> bool:
        """Say whether no part that was read is older than one before it by more than the slack."""
        latest = -float('inf')
        for _, bounds in sorted(self._known.items()):
            if bounds is not None:
                if bounds.first < latest - self._slack_s:
                    return False
                latest = max(latest, bounds.last)
        return True


def _overlap(bounds: Bounds | None, start: float, end: float) -> bool:
    """Say whether a part is of interest: one without records may be damaged, which is to be told."""
    return bounds is None or (bounds.first < end and bounds.last >= start)
