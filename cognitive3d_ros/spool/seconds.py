"""Which seconds session ids were issued for, so that none is issued twice, whatever the clock does.

The seconds lie in runs: a run covers all from the first to the last second issued in it, and a day before. A
session that would start within a run starts right after it (contract of ids: each is later than the one
before). One that would start outside of all runs is far from them: the clock was set, or ran on alone for a
while. It starts where the clock says, and begins a run of its own unless it is within a day of one. So a clock
that was once years ahead leaves a run there, and the ids come back with the clock.

What a file holds must be believed, or a robot's sessions are dated by it: it ends in a checksum, and what no
robot can have issued is garbage.
"""

from __future__ import annotations

import zlib

_DAY_S = 86_400
_MAX_RUNS = 64
MAX_SECOND = 4_102_444_799
"""The last of the year 2099: what is beyond is no second of a session."""
_MAX_RUN_S = 10**9  # a robot that is used every day makes one run of all its years, but not of 30
_CHECK = 'crc32 '

Run = tuple[int, int]
"""The first and the last second."""


class Seconds:
    """The seconds that were issued, as runs, in the order in which they were last issued in."""

    def __init__(self) -> None:
        self._runs: list[Run] = []

    def last(self, second: int) -> int:
        """Return the last second issued of the run that ``second`` falls into; 0 if it is free."""
        last = 0
        for first, end in sorted(self._runs):
            if first - _DAY_S <= max(second, last + 1) <= end:
                last = end
        return last

    @property
    def newest(self) -> int:
        """The latest second of all that was ever issued; 0 if none was."""
        return max((last for _, last in self._runs), default=0)

    def add(self, second: int, first: int | None = None) -> None:
        """Take note that a second was issued, or all from ``first`` to it; forgets the oldest of many runs."""
        if second > MAX_SECOND:
            return  # a folder's name may say anything
        start, end = second if first is None else first, second
        apart = []
        for run in self._runs:
            if run[0] - _DAY_S <= end and start <= run[1] + _DAY_S:
                start, end = min(start, run[0]), max(end, run[1])
            else:
                apart.append(run)
        self._runs = [*apart, (start, end)][-_MAX_RUNS:]

    def copy(self) -> Seconds:
        """Return another with the same runs."""
        other = Seconds()
        other._runs = list(self._runs)
        return other

    def text(self) -> str:
        """Return what :meth:`read` takes: a run a line, the newest first, its last second first; a checksum."""
        runs = ''.join(f'{last} {first}\n' for first, last in reversed(self._runs))
        return f'{runs}{_CHECK}{zlib.crc32(runs.encode()):08x}\n'

    def read(self, data: bytes) -> None:
        """Add what a file holds; one of an older version has no checksum.

        Raises:
            ValueError: it holds something else; nothing is added then.
        """
        runs = []
        text, check, checksum = data.decode('ascii', 'replace').partition(_CHECK)
        if check and checksum.strip() != f'{zlib.crc32(text.encode()):08x}':
            raise ValueError('its checksum is another')
        for line in text.splitlines():
            numbers = line.split()
            if not 1 <= len(numbers) <= 2 or not all(n.isdecimal() for n in numbers):
                raise ValueError(f'{line[:40]!r} is no second')
            last, first = int(numbers[0][:20]), int(numbers[-1][:20])
            if not 0 <= first <= last <= MAX_SECOND:
                raise ValueError(f'{line[:40]!r} is no second from 1970 to 2099')
            if last - first > _MAX_RUN_S:
                raise ValueError(f'{line[:40]!r}: no robot has issued all of these')
            runs.append((first, last))
        if not runs:
            raise ValueError('it is empty')
        for first, last in reversed(runs):
            self.add(last, first)
