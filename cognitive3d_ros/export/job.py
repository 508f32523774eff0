"""One export: what is exported and how, and what is to be said of it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from cognitive3d_ros.session.records import (
    Annotation,
    CameraFrame,
    DynamicSnapshot,
    Event,
    HealthSample,
    LaserScan,
    PointCloud,
    PoseSample,
    Record,
    SeriesSample,
)
from cognitive3d_ros.session.session import Session

Progress = Callable[[float], None]
"""Is told now and then how much is done, 0 to 1."""

_STEPS = 200  # how often progress is told


@dataclass(frozen=True, slots=True)
class Options:
    """What can be chosen.

    ``images``: a rawlog's pictures, ``external`` in a folder beside it or ``inside``; ``mrpt``: 2 or 3, the
    version that is to read a rawlog. ``robot_frame`` is the name of the robot's frame, which a session does not
    hold.
    """

    images: str = 'external'
    mrpt: int = 2
    robot_frame: str = 'base_link'


@dataclass(slots=True)
class Job:
    """The export of one session."""

    session: Session
    name: str
    """The name of the result: of a file or a folder."""
    options: Options = field(default_factory=Options)
    progress: Progress | None = None
    notes: list[str] = field(default_factory=list)
    """What the format cannot hold, one line each."""
    total: int = 1
    done: int = 0
    _told: int = 0

    def note(self, text: str) -> None:
        """Say that something is not in the result; once, however often it happens."""
        if text not in self.notes:
            self.notes.append(text)

    def expect(self, *kinds: type[Record]) -> None:
        """Say which records will be counted with :meth:`step`, and note that the others are left out."""
        counts = self.session.counts()
        self.total = max(1, sum(counts[kind] for kind in kinds))
        self.left_out(kinds)

    def expect_all(self) -> None:
        """Say that all records will be counted with :meth:`step`."""
        self.total = max(1, sum(self.session.counts().values()))

    def left_out(self, kinds: Collection[type[Record]]) -> None:
        """Note what there is besides records of the kinds that are written."""
        counts = self.session.counts()
        absent = [
            f'{counts[kind]} {word}{"" if counts[kind] == 1 else "s"}'
            for kind, word in _WORDS.items()
            if counts[kind] and kind not in kinds
        ]
        if absent:
            self.note(f'not in it: {", ".join(absent)}')

    def step(self, count: int = 1) -> None:
        """Count records that are done."""
        self.done += count
        if self.progress is not None and self.done * _STEPS >= (self._told + 1) * self.total:
            self._told = self.done * _STEPS // self.total
            self.progress(min(1.0, self.done / self.total))


_WORDS: dict[type[Record], str] = {
    PoseSample: 'pose sample',
    Event: 'event',
    Annotation: 'annotation',
    SeriesSample: 'series sample',
    HealthSample: 'health sample',
    DynamicSnapshot: 'snapshot',
    CameraFrame: 'camera frame',
    LaserScan: 'laser scan',
    PointCloud: 'point cloud',
}
"""What people call the kinds of record."""
