"""Serialised records by the hundred thousand: copies of one with their own numbers, and streams by time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from cognitive3d_ros.export.ros import Times

ROWS = 4096
"""How many rows of a stream are made at once."""
_ALL_ROWS = 16 * ROWS
"""How many of all streams together."""

T = TypeVar('T')


def copies(template: bytes, *columns: tuple[int, NDArray[Any]]) -> list[bytes]:
    """Return copies of some bytes with numbers put in: at a place in them, one row (N, …) for each copy."""
    size, count = len(template), len(columns[0][1])
    if not count:
        return []
    block = np.tile(np.frombuffer(template, np.uint8), (count, 1))
    for at, values in columns:
        rows = np.ascontiguousarray(values).view(np.uint8).reshape(count, -1)
        block[:, at : at + rows.shape[1]] = rows
    data = block.tobytes()
    return [data[at : at + size] for at in range(0, len(data), size)]


class Stream(NamedTuple, Generic[T]):
    """Items of one stream by time."""

    time_ns: Times
    """(N,), ascending."""
    items: Callable[[int, int], Iterable[T | None]]
    """Makes the items from one index up to another; None for one that there is not. Asked once for each."""


def merged(streams: Sequence[Stream[T]]) -> Iterator[T]:
    """Give the items of streams by time; those of one time by stream.

    A while of all streams is put in order at once, which is much faster than item by item.
    """
    at = [0] * len(streams)
    while True:
        left = [n for n, stream in enumerate(streams) if at[n] < len(stream.time_ns)]
        if not left:
            return
        upto = _upto([streams[n].time_ns[at[n] :] for n in left])
        ends = [int(np.searchsorted(stream.time_ns, upto, side='right')) for stream in streams]
        here = [n for n in left if ends[n] > at[n]]
        items = [iter(streams[n].items(at[n], ends[n])) for n in here]
        times = np.concatenate([streams[n].time_ns[at[n] : ends[n]] for n in here])
        order = np.argsort(times, kind='stable')
        turns = np.repeat(np.arange(len(here)), [ends[n] - at[n] for n in here])[order]
        for turn in turns.tolist():
            item = next(items[turn])
            if item is not None:
                yield item
        at = ends


def _upto(times: Sequence[Times]) -> int:
    """Return up to which moment rows are made at once: it takes in as many as that however many streams."""
    # The first at which a stream has given its rows, or all of them have ended …
    longer = [each[ROWS - 1] for each in times if len(each) > ROWS]
    upto = int(min(longer) if longer else max(each[-1] for each in times))
    # … and before that, where many streams have as many rows each.
    ends = [int(np.searchsorted(each, upto, side='right')) for each in times]
    if sum(ends) > _ALL_ROWS:
        here = np.concatenate([each[:end] for each, end in zip(times, ends, strict=True)])
        upto = int(np.partition(here, _ALL_ROWS - 1)[_ALL_ROWS - 1])
    return upto
