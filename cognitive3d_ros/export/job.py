"""One export: what is exported and how, and what is to be said of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from cognitive3d_ros.conventions import Convention
from cognitive3d_ros.errors import ExportError, ReadError
from cognitive3d_ros.session.records import Annotation, axes_of
from cognitive3d_ros.session.sensors import CAMERA, LIDAR
from cognitive3d_ros.session.session import Session
from cognitive3d_ros.session.streams import HEALTH_PREFIX
from cognitive3d_ros.wire.framing import PartName, part_name

Progress = Callable[[float], None]
"""Is told now and then how much is done, 0 to 1."""

_SAYS = PartName('gaze', 1, 'properties')
"""The part with the properties that a session starts with."""
_STEPS = 200  # how often progress is told


@dataclass(frozen=True, slots=True)
class Options:
    """What can be chosen.

    ``images``: a rawlog's pictures, ``external`` in a folder beside it or ``inside``; ``mrpt``: 2 or 3, the
    version that is to read a rawlog. ``robot_frame`` is what the robot's frame is called; if empty, what the
    session calls it. ``pose_convention`` is that of a session that has lost the part that says it.
    """

    images: str = 'external'
    mrpt: int = 2
    robot_frame: str = ''
    pose_convention: str = ''


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

    @property
    def axes(self) -> Convention:
        """The pose convention. Raises ReadError where neither the session nor the options say it."""
        found = self._axes()
        if found is None:
            raise ReadError(f'{self._not_said()}: if you know it, give it with --pose-convention')
        return found

    def known_axes(self) -> Convention | None:
        """Return the pose convention; None, and noted, where neither the session nor the options say it."""
        found = self._axes()
        if found is None:
            self.note(
                f'{self._not_said()}. Not in it: poses, point clouds, and where anything was; '
                '--pose-convention states it'
            )
        return found

    def _axes(self) -> Convention | None:
        told, own = self.options.pose_convention, self.session.convention
        if own:
            if told not in ('', own):
                raise ExportError(
                    f'the session says that its pose convention is {own}, not {told}'
                )
            return self.session.axes
        if not told:
            return None
        self.note(f'the session does not say its pose convention: it was taken to be {told}')
        return axes_of(told)

    def _not_said(self) -> str:
        if _SAYS not in self.session.parts:
            return f'{part_name(*_SAYS)} is missing: the pose convention is not known'
        return 'the session does not say its pose convention, c3d.ros.pose_convention'

    def note(self, text: str) -> None:
        """Say that something is not in the result; once, however often it happens."""
        if text not in self.notes:
            self.notes.append(text)

    def expect_all(self) -> None:
        """Say that all records will be counted with :meth:`step`."""
        self.total = max(1, sum(self.session.counts().values()))

    def poses_only(self) -> None:
        """Say that pose samples alone will be counted, and note what else there is.

        Of cameras and lidars only the names that are told: what they recorded may be much, and is not read.
        Raises ReadError where the pose convention is not known.
        """
        _ = self.axes
        session = self.session
        self.total = max(1, len(session.poses))
        series = [name for name in session.series if not name.startswith(HEALTH_PREFIX)]
        counts = {
            'event': sum(not isinstance(event, Annotation) for event in session.events),
            'annotation': len(session.annotations),
            'series': len(series),
            'health series': len(session.series) - len(series),
            'snapshot': len(session.dynamics),
            'session property': len(session.properties),
        }
        absent = [_counted(count, word) for word, count in counts.items() if count]
        there = {part.stream for part in session.listing.parts}
        for stream, gave, names in (
            (CAMERA, 'frames of all cameras', session.cameras),
            (LIDAR, 'scans and clouds of all lidars', session.lidars),
        ):
            if names or stream in there:  # the properties may not name all of them
                absent.append(f'{gave} ({", ".join(names)})' if names else gave)
        if absent:
            self.note(f'not in it: {", ".join(absent)}')

    def step(self, count: int = 1) -> None:
        """Count records that are done."""
        self.done += count
        if self.progress is not None and self.done * _STEPS >= (self._told + 1) * self.total:
            self._told = self.done * _STEPS // self.total
            self.progress(min(1.0, self.done / self.total))


def _counted(count: int, word: str) -> str:
    if count == 1 or word.endswith('s'):
        return f'{count} {word}'
    return f'{count} {word[:-1]}ies' if word.endswith('y') else f'{count} {word}s'
