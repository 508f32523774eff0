"""All records of a session as one sequence in time order."""

from __future__ import annotations

import contextlib
import math
import numbers
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from cognitive3d_ros.errors import ReadError
from cognitive3d_ros.session.fixed import fixed
from cognitive3d_ros.session.records import Record
from cognitive3d_ros.session.streams import Floats

R = TypeVar('R')


@dataclass(frozen=True, slots=True)
class Run:
    """The records of one kind and stream, in the order in which they arrived."""

    kinds: Sequence[type[Record]]
    """The kind of each record, or one kind for all of them."""
    time: Floats
    record: Callable[[int], Record]


class Timeline(Sequence[Record]):
    """Records of several runs by time; those of one time by run, then by arrival.

    A record that cannot be read any more raises ReadError by its index, and is passed over elsewhere.
    """

    def __init__(self, runs: Sequence[Run]) -> None:
        self._runs = runs
        self._kinds: list[type[Record]] = []
        codes: list[NDArray[np.int16]] = [np.empty(0, np.int16)]
        for run in runs:
            each = [self._code(kind) for kind in run.kinds]  # as many as records, or one
            codes.append(np.array(np.broadcast_to(np.array(each, np.int16), len(run.time))))
        times = np.concatenate([np.empty(0), *(run.time for run in runs)])
        order = np.argsort(times, kind='stable')
        self.time: Floats = fixed(times[order])
        """(N,), the times of all records, ascending."""
        self._codes = np.concatenate(codes)[order]
        lengths = [len(run.time) for run in runs]
        self._run = np.repeat(np.arange(len(runs), dtype=np.int32), lengths)[order]
        starts = np.cumsum([0, *lengths[:-1]]) if runs else np.empty(0, np.int64)
        self._at = order - np.repeat(starts, lengths)[order]

    def __len__(self) -> int:
        return len(self.time)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return list(self.readable(range(*index.indices(len(self)))))
        return self._record(range(len(self))[index])

    def __iter__(self) -> Iterator[Record]:
        return self.readable(range(len(self)))

    def kind(self, index: int) -> type[Record]:
        """Return the kind of a record without making it."""
        return self._kinds[int(self._codes[range(len(self))[index]])]

    def find(self, kind: type[Record], start: float, end: float) -> list[Record]:
        """Return the records of a kind, subtypes too, with start <= time < end. Raises as :func:`moment`."""
        start, end = moment(start), moment(end)
        low, high = np.searchsorted(self.time, [start, end])
        return list(self.readable(low + np.flatnonzero(self._of(kind, low, high))))

    def nearest(self, kind: type[Record], time: float) -> Record | None:
        """Return the record of a kind that is nearest in time, the earlier of two; None without any.

        Raises as :func:`moment`.
        """
        time, indices = moment(time), self.indices(kind)
        if len(indices) == 0:
            return None
        times = self.time[indices]
        time = min(max(time, times[0]), times[-1])  # it may be infinite
        return self._record(int(indices[np.argmin(np.abs(times - time))]))

    def indices(self, kind: type[Record]) -> NDArray[np.intp]:
        """Return the indices of the records of a kind, subtypes too."""
        return np.flatnonzero(self._of(kind, 0, len(self)))

    def readable(self, indices: Iterable[int]) -> Iterator[Record]:
        """Give the records at indices; those that cannot be read any more are passed over."""
        return readable(self._record, indices)

    def _of(self, kind: type[Record], low: int, high: int) -> NDArray[np.bool_]:
        wanted = np.array([issubclass(known, kind) for known in self._kinds], dtype=np.bool_)
        return wanted[self._codes[low:high]]

    def _code(self, kind: type[Record]) -> int:
        if kind not in self._kinds:
            self._kinds.append(kind)
        return self._kinds.index(kind)

    def _record(self, index: int) -> Record:
        return self._runs[int(self._run[index])].record(int(self._at[index]))


def moment(time: Any) -> float:
    """Return a time that was given, in seconds since the epoch; infinities are before and after all.

    Raises TypeError for what is no number, and ValueError for NaN.
    """
    if not is_number(time):
        raise TypeError(f'a time in seconds since the epoch is wanted, not {time!r:.80}')
    try:
        moment = float(time)
    except OverflowError:  # a whole number of hundreds of digits
        return math.inf if time > 0 else -math.inf
    if math.isnan(moment):
        raise ValueError('a time in seconds since the epoch is wanted, not NaN')
    return moment


def is_number(value: object) -> bool:
    """Say whether a value is a real number; a truth value is none."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def readable(read: Callable[[int], R], indices: Iterable[int]) -> Iterator[R]:
    """Give the records at indices; those that cannot be read any more are passed over."""
    for index in indices:
        with contextlib.suppress(ReadError):  # reported where it was found
            yield read(int(index))
