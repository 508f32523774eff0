"""What was noted at the door of a node of the kill campaign (by campaign_node.py), and what follows from it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from pathlib import Path

from campaign_traffic import RATES_HZ

S = 1_000_000_000
BEAT_NS = S // 20
STOOD_NS = S // 4  # beats that are so far apart: nothing could run
TF_WAIT_S = 0.5
STALE_S = 1.0  # stale_pose_s


@dataclass
class Door:
    """What came in, by kind and number; what the node counted; its flushes (begin and end) and its beats.

    All times are wall times.
    """

    came: dict[str, dict[int, int]] = field(
        default_factory=lambda: {kind: {} for kind in RATES_HZ}
    )
    counted: list[tuple[int, str, int]] = field(default_factory=list)
    flushes: list[tuple[int, int]] = field(default_factory=list)
    flushing_ns: int = 0  # when the last flush was begun
    beats_ns: list[int] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path) -> Door:
        """Read a log: that of a node, or that of the robot."""
        door = cls()
        for line in path.read_text().splitlines() if path.exists() else []:
            kind, number, wall_ns = line.split()
            if kind == 'beat':
                door.beats_ns.append(int(wall_ns))
            elif kind == 'flushing':
                door.flushing_ns = int(number)
            elif kind == 'flush':
                door.flushes.append((int(number), int(wall_ns)))
            elif kind.startswith('count:'):
                door.counted.append((int(wall_ns), kind.removeprefix('count:'), int(number)))
            else:
                door.came[kind][int(number)] = int(wall_ns)
        return door

    def counts(self, source: str, before_ns: int) -> dict[str, int]:
        """Return what was counted of an input before a time, by reason."""
        found: dict[str, int] = {}
        for at_ns, name, n in self.counted:
            counted, _, reason = name.rpartition(':')
            if counted == source and at_ns < before_ns:
                found[reason] = found.get(reason, 0) + n
        return found

    def durable_ns(self) -> int:
        """Return since when a record is not known to be durable: the begin of the last flush that returned."""
        return self.flushes[-1][0] if self.flushes else 0

    def wrote_s(self, end_ns: int) -> float:
        """Return for how long the flush had run that the process was killed in; 0 if it was in none."""
        return (end_ns - self.flushing_ns) / S if self.flushing_ns > self.durable_ns() else 0.0

    def standstills(self, begin_ns: int, end_ns: int) -> list[tuple[int, int]]:
        """Return from when to when nothing could run, within a time that ends with the process."""
        beats_ns = [*(at for at in self.beats_ns if at <= end_ns), end_ns]
        runs = [(at + BEAT_NS, later) for at, later in pairwise(beats_ns) if later - at > STOOD_NS]
        return [(max(at, begin_ns), later) for at, later in runs if later > begin_ns]

    def stood_s(self, begin_ns: int, end_ns: int) -> float:
        """Return for how long nothing could run."""
        return sum(later - at for at, later in self.standstills(begin_ns, end_ns)) / S


class Tf:
    """What tf could answer, by what of it had come in (/tf by stamp; 0 is /tf_static)."""

    def __init__(self, came: dict[int, int]) -> None:
        moving = sorted((at_ns, stamp_ns) for stamp_ns, at_ns in came.items() if stamp_ns)
        self._at_ns = [at_ns for at_ns, _ in moving]
        self._newest_ns = list(accumulate((stamp_ns for _, stamp_ns in moving), max))
        self._first_ns = min((stamp_ns for _, stamp_ns in moving), default=0)
        self._fixed_at_ns = came.get(0)  # where the sensors are on the robot

    @property
    def came_ns(self) -> int:
        """When the first of /tf came in."""
        return self._at_ns[0] if self._at_ns else 1 << 62

    def _newest(self, at_ns: int) -> int:
        index = bisect_right(self._at_ns, at_ns)
        return self._newest_ns[index - 1] if index else 0

    def known(self, tick_ns: int) -> bool:
        """Say whether half a second after a tick what was known was not stale."""
        return self._newest(tick_ns + round(TF_WAIT_S * S)) > tick_ns - round(STALE_S * S)

    def reached_ns(self, stamp_ns: int, since_ns: int) -> int:
        """Return when what waits for a stamp since then need wait no more: tf is there, or it is too late."""
        index = bisect_left(self._newest_ns, stamp_ns)
        there_ns = self._at_ns[index] if index < len(self._at_ns) else 1 << 63
        return min(max(there_ns, since_ns), since_ns + round(TF_WAIT_S * S))

    def covered(self, tick_ns: int) -> bool:
        """Say whether tf had come in from both sides of a tick, well within half a second."""
        there_ns = self.reached_ns(tick_ns, tick_ns)
        return self._first_ns <= tick_ns and there_ns < tick_ns + round(0.8 * TF_WAIT_S * S)

    def placed(self, stamp_ns: int, at_ns: int) -> bool:
        """Say whether tf reached the stamp of what came in then, well within half a second."""
        fixed = self._fixed_at_ns is not None and self._fixed_at_ns < at_ns
        newest_ns = self._newest(at_ns + round(0.8 * TF_WAIT_S * S))
        return fixed and self._first_ns <= stamp_ns <= newest_ns
