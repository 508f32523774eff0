"""Log markers: the annotations that open and close regions of a session, and mark instants in it.

A region has an index or none. At most one region of an index is open at a time; regions of different indexes
may overlap in any way. Anonymous ones (without an index) are closed last in, first out.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable
from dataclasses import dataclass

from cognitive3d_ros.session.records import Annotation

START, STOP, ABORT = 'log_marker_start', 'log_marker_stop', 'log_marker_abort'
STOP_ALL, ABORT_ALL = 'log_marker_stop_all', 'log_marker_abort_all'
EVENT = 'log_marker_event'

_SHOWN_CHARS = 80  # of a value, where a fault names it

_INDEXED = re.compile(
    r'\s*(?:<\s*(-?[0-9]{1,18})\s*>|(-?[0-9]{1,18}))\s*(?:;(.*))?', re.ASCII | re.DOTALL
)


class RegionState(enum.Enum):
    """How a region ended."""

    COMPLETED = 'completed'
    ABORTED = 'aborted'
    RESTARTED = 'restarted'
    """Its index was started again while it was open."""
    OPEN = 'open'
    """Nothing had ended it when the session did."""


@dataclass(frozen=True, slots=True)
class Region:
    """A marked stretch of a session; ``stop`` is None while it is open. Times are as annotated."""

    index: int | None
    state: RegionState
    start: float
    stop: float | None
    start_text: str = ''
    stop_text: str = ''


@dataclass(frozen=True, slots=True)
class Markers:
    """What the markers of a session say."""

    regions: tuple[Region, ...]
    """By the time they were opened."""
    events: tuple[Annotation, ...]
    """The marked instants, ``log_marker_event``."""
    faults: tuple[str, ...]
    """Markers that have no meaning: a stop or an abort with nothing open."""


@dataclass(frozen=True, slots=True)
class _Open:
    order: int
    index: int | None
    time: float
    text: str


def read_markers(annotations: Iterable[Annotation]) -> Markers:
    """Read the markers among annotations, which are given in order of arrival."""
    opened = 0
    open_regions: list[_Open] = []
    closed: list[tuple[int, Region]] = []
    events: list[Annotation] = []
    faults: list[str] = []

    def close(region: _Open, state: RegionState, stop: float | None, text: str) -> None:
        open_regions.remove(region)
        made = Region(region.index, state, region.time, stop, region.text, text)
        closed.append((region.order, made))

    def latest(index: int | None) -> _Open | None:
        return next((region for region in reversed(open_regions) if region.index == index), None)

    for annotation in sorted(annotations, key=lambda item: item.annotation_time):
        time, key = annotation.annotation_time, annotation.key
        if key == EVENT:
            events.append(annotation)
        elif key in (STOP_ALL, ABORT_ALL):
            state = RegionState.COMPLETED if key == STOP_ALL else RegionState.ABORTED
            for each in tuple(open_regions):
                close(each, state, time, annotation.value)
        elif key in (START, STOP, ABORT):
            index, text = split_marker(annotation.value)
            region = latest(index)
            if key == START:
                if region is not None and index is not None:
                    close(region, RegionState.RESTARTED, time, '')
                open_regions.append(_Open(opened, index, time, text))
                opened += 1
            elif region is None:
                which = 'no anonymous region' if index is None else f'no region {index}'
                faults.append(f'{key} {_short(annotation.value)!r} at {time:.5f}: {which} is open')
            else:
                state = RegionState.COMPLETED if key == STOP else RegionState.ABORTED
                close(region, state, time, text)
    for each in tuple(open_regions):
        close(each, RegionState.OPEN, None, '')
    return Markers(
        tuple(region for _, region in sorted(closed, key=lambda pair: pair[0])),
        tuple(events),
        tuple(faults),
    )


def _short(value: str) -> str:
    return value if len(value) <= _SHOWN_CHARS else f'{value[:_SHOWN_CHARS]}…'


def split_marker(value: str) -> tuple[int | None, str]:
    """Return the index and the text of a marker: ``<3>;dock``, ``3;dock``, ``3``, or text alone."""
    match = _INDEXED.fullmatch(value)
    if match is None:
        return None, value.removeprefix(';')
    return int(match[1] or match[2]), match[3] or ''
