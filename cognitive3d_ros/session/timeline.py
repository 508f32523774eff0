"""All records of a session as one sequence in time order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cognitive3d_ros.session.records import PoseSample, Quaternion, Record
from cognitive3d_ros.session.streams import Floats, Poses


@dataclass(frozen=True, slots=True)
class Run:
    """The records of one kind and stream, in the order in which they arrived."""

    kinds: Sequence[type[Record]]
    """The kind of each record, or one kind for all of them."""
    time: Floats
    record: Callable[[int], Record]


class Timeline(Sequence[Record]):
    """Records of several runs by time; those of one time by run, then by arrival."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self._runs = runs
        self._kinds: list[type[Record]] = []
        codes: list[NDArray[np.int16]] = [np.empty(0, np.int16)]
        for run in runs:
            each = [self._code(kind) for kind in run.kinds]
            codes.append(np.array(np.broadcast_to(np.array(each, np.int16), len(run.time))))
        times = np.concatenate([np.empty(0), *(run.time for run in runs)])
        order = np.argsort(times, kind='stable')
        self._time = times[order]
        self._codes = np.concatenate(codes)[order]
        lengths = [len(run.time) for run in runs]
        self._run = np.repeat(np.arange(len(runs), dtype=np.int32), lengths)[order]
        starts = np.cumsum([0, *lengths[:-1]]) if runs else np.empty(0, np.int64)
        self._at = order - np.repeat(starts, lengths)[order]

    def __len__(self) -> int:
        return len(self._time)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self._record(i) for i in range(*index.indices(len(self)))]
        return self._record(range(len(self))[index])

    def kind(self, index: int) -> type[Record]:
        """Return the kind of a record without making it."""
        return self._kinds[int(self._codes[range(len(self))[index]])]

    def find(self, kind: type[Record], start: float, end: float) -> list[Record]:
        """Return the records of a kind, subtypes too, with start <= time < end."""
        low, high = np.searchsorted(self._time, [start, end])
        return [self._record(low + i) for i in np.flatnonzero(self._of(kind)[low:high])]

    def nearest(self, kind: type[Record], time: float) -> Record | None:
        """Return the record of a kind that is nearest in time, the earlier of two; None without any."""
        indices = np.flatnonzero(self._of(kind))
        if len(indices) == 0:
            return None
        return self._record(int(indices[np.argmin(np.abs(self._time[indices] - time))]))

    def _of(self, kind: type[Record]) -> NDArray[np.bool_]:
        wanted = [code for code, known in enumerate(self._kinds) if issubclass(known, kind)]
        return np.isin(self._codes, wanted)

    def _code(self, kind: type[Record]) -> int:
        if kind not in self._kinds:
            self._kinds.append(kind)
        return self._kinds.index(kind)

    def _record(self, index: int) -> Record:
        return self._runs[int(self._run[index])].record(int(self._at[index]))


def pose_at(poses: Poses, time: float) -> PoseSample | None:
    """Return the pose at a time: position linear, rotation by slerp; None outside the timeline."""
    order = np.argsort(poses.time, kind='stable')
    times = poses.time[order]
    if len(times) == 0 or not times[0] <= time <= times[-1]:
        return None
    later = min(int(np.searchsorted(times, time, side='right')), len(times) - 1)
    before, after = int(order[max(later - 1, 0)]), int(order[later])
    span = float(poses.time[after] - poses.time[before])
    share = 0.0 if span == 0 else min(1.0, float(time - poses.time[before]) / span)
    p = (1 - share) * poses.p[before] + share * poses.p[after]
    r = _slerp(poses.r[before], poses.r[after], share)
    return PoseSample(time, (float(p[0]), float(p[1]), float(p[2])), r)


def _slerp(a: Floats, b: Floats, share: float) -> Quaternion:
    """Turn from one rotation towards another by the shorter way."""
    cosine = float(np.dot(a, b))
    if cosine < 0:
        b, cosine = -b, -cosine
    angle = float(np.arccos(min(1.0, cosine)))
    if angle < 1e-6:
        mixed = (1 - share) * a + share * b
    else:
        mixed = (np.sin((1 - share) * angle) * a + np.sin(share * angle) * b) / np.sin(angle)
    x, y, z, w = (mixed / np.linalg.norm(mixed)).tolist()
    return (x, y, z, w)
