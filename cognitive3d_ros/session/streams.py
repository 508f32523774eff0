"""The records of the JSON streams, held as columns: a day of poses is 864,000 of them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any, Generic, NamedTuple, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from cognitive3d_ros.errors import FormatError
from cognitive3d_ros.session.fixed import FixedDict, fixed
from cognitive3d_ros.session.records import (
    Annotation,
    DynamicSnapshot,
    Event,
    HealthSample,
    PoseSample,
    PropertyValue,
    SeriesSample,
)
from cognitive3d_ros.wire import schema
from cognitive3d_ros.wire.schema import JsonBody

Floats = NDArray[np.float64]
Report = Callable[[str], None]
"""Takes what was wrong with a record that is passed over."""
Check = Callable[[object, str], None]
"""Raises FormatError where a record is not what it should be; takes where it stands."""
T = TypeVar('T')

ANNOTATION = 'c3d.annotation'
MOST_S = 2**63 / 1e9
"""What is farther from the epoch is no time: all times inside are nanoseconds in 64 bits."""
HEALTH_PREFIX = 'c3d.'

OLD_NAMES: Mapping[str, str] = {
    'c3d.ros.gaze_frame': 'c3d.ros.camera_frame',
    'c3d.ros.gaze_frame_convention': 'c3d.ros.camera_frame_convention',
    'c3d.gaze_frame_failures': 'c3d.camera_frame_failures',
}
"""What sessions from before 1.0.0 call it (data format, Sessions recorded before 1.0.0)."""


class Named(Mapping[str, T], Generic[T]):
    """Values by name as they were stored; one that is not there is looked for under its old name."""

    def __init__(self, values: Mapping[str, T]) -> None:
        self._values = values

    def __getitem__(self, name: str) -> T:
        if name not in self._values and name in OLD_NAMES:
            return self._values[OLD_NAMES[name]]
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f'{type(self).__name__}({dict(self._values)!r})'


class Column(Sequence[T], Generic[T]):
    """A sequence whose items are made of columns when they are asked for. Its arrays are read-only."""

    time: Floats

    def _item(self, index: int) -> T:
        raise NotImplementedError

    def columns(self) -> dict[str, Any]:
        """Return its columns by name, as they were recorded: scene axes, seconds since the epoch.

        Each has one value for each record; vectors are split.
        """
        raise NotImplementedError

    def to_pandas(self) -> Any:
        """Return its :meth:`columns` as a pandas DataFrame of its own: as recorded, in scene axes.

        Those of :meth:`Session.to_pandas` are in REP-103 axes. Raises ImportError where pandas is not
        installed.
        """
        import pandas

        return pandas.DataFrame(self.columns())

    def __len__(self) -> int:
        return len(self.time)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: int | slice) -> T | list[T]:
        if isinstance(index, slice):
            return [self._item(i) for i in range(*index.indices(len(self)))]
        return self._item(range(len(self))[index])

    def __iter__(self) -> Iterator[T]:
        return map(self._item, range(len(self)))


class LazyColumn(Column[T], Generic[T]):
    """A column that is read from parts: one by one in iteration, all of them where a column is asked for.

    So the first records of a day are there at once.
    """

    @property
    def loaded(self) -> bool:
        """Whether all of it was read."""
        raise NotImplementedError

    def _streamed(self) -> Iterator[T]:
        """Read the records part by part."""
        raise NotImplementedError

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: int | slice) -> T | list[T]:
        if not self.loaded:
            if isinstance(index, int) and 0 <= index < _EARLY:
                found = list(islice(self._streamed(), index, index + 1))
                if found:
                    return found[0]
            elif isinstance(index, slice) and _is_early(index):
                return list(islice(self._streamed(), index.start, index.stop, index.step))
        return super().__getitem__(index)

    def __iter__(self) -> Iterator[T]:
        return super().__iter__() if self.loaded else self._streamed()


_EARLY = 200
"""Records up to here are read by themselves, before all are."""


def _is_early(index: slice) -> bool:
    """Say whether a slice is of the first records, as Python's own sequences have it."""
    start, stop, step = index.start or 0, index.stop, index.step or 1
    return stop is not None and start >= 0 and 0 <= stop <= _EARLY and step > 0


class Poses(LazyColumn[PoseSample]):
    """The pose timeline: a sequence of :class:`PoseSample`, and its columns as arrays."""

    def __init__(self, chunks: Callable[[], Iterator[_Columns]]) -> None:
        """Take what reads it, body by body."""
        self._chunks = chunks

    @cached_property
    def _all(self) -> _Columns:
        return _joined([_EMPTY, *self._chunks()])

    @cached_property
    def time(self) -> Floats:  # type: ignore[override]
        """(N,), seconds since the epoch."""
        return self._all.time

    @property
    def p(self) -> Floats:
        """(N, 3), metres, scene axes."""
        return self._all.p

    @property
    def r(self) -> Floats:
        """(N, 4), x y z w."""
        return self._all.r

    @cached_property
    def g(self) -> Floats | None:
        """(N, 3), an old session's gaze points, NaN where a record has none; None in others."""
        gaze = self._all.g
        return None if np.isnan(gaze).all() else gaze

    def columns(self) -> dict[str, Any]:
        """Return ``time``, ``px py pz`` and ``rx ry rz rw``; of an old session ``gx gy gz`` too."""
        columns = {'time': self.time, **split('px py pz', self.p), **split('rx ry rz rw', self.r)}
        return columns if self.g is None else {**columns, **split('gx gy gz', self.g)}

    def _item(self, index: int) -> PoseSample:
        return _pose_sample(self._all, index)

    def only(self, keep: NDArray[np.bool_]) -> Poses:
        """Return some of the samples: those where ``keep`` (N,) is true."""
        kept = _Columns(*(fixed(column[keep]) for column in self._all))
        made = Poses(lambda: iter([kept]))
        made.__dict__['_all'] = kept  # they are read: nobody is to look into the parts for them
        return made

    @property
    def loaded(self) -> bool:
        """Whether all of it was read."""
        return '_all' in self.__dict__

    def _streamed(self) -> Iterator[PoseSample]:
        for chunk in self._chunks():
            yield from (_pose_sample(chunk, index) for index in range(len(chunk.time)))


def _pose_sample(columns: _Columns, index: int) -> PoseSample:
    gaze = None if np.isnan(columns.g[index, 0]) else _tuple(columns.g[index])
    p, r = _tuple(columns.p[index]), _tuple(columns.r[index])
    return PoseSample(float(columns.time[index]), p, r, gaze)


@dataclass(frozen=True, eq=False, repr=False)
class Series(Column[tuple[float, float]]):
    """A sensor series: a sequence of ``(time, value)``, and its columns as arrays."""

    name: str
    time: Floats
    """(N,), seconds since the epoch."""
    value: Floats
    """(N,)"""

    def _item(self, index: int) -> tuple[float, float]:
        return float(self.time[index]), float(self.value[index])

    def columns(self) -> dict[str, Any]:
        """Return ``time`` and ``value``."""
        return {'time': self.time, 'value': self.value}

    def only(self, keep: NDArray[np.bool_]) -> Series:
        """Return some of the samples: those where ``keep`` (N,) is true."""
        return Series(self.name, fixed(self.time[keep]), fixed(self.value[keep]))

    @property
    def kind(self) -> type[SeriesSample]:
        """The kind of its records: the recorder's own series are health."""
        return HealthSample if self.name.startswith(HEALTH_PREFIX) else SeriesSample

    def sample(self, index: int) -> SeriesSample:
        """Return a sample as a record."""
        return self.kind(float(self.time[index]), self.name, float(self.value[index]))


@dataclass(frozen=True, slots=True)
class DynamicObject:
    """What the session registered of a Dynamic Object."""

    id: str
    name: str
    mesh: str
    file_type: str = ''


@dataclass(frozen=True, eq=False, repr=False)
class Dynamics(Column[DynamicSnapshot]):
    """Snapshots of Dynamic Objects: a sequence of :class:`DynamicSnapshot`, and its columns as arrays."""

    time: Floats
    """(N,), seconds since the epoch."""
    p: Floats
    """(N, 3), metres, scene axes."""
    r: Floats
    """(N, 4), x y z w, by the Dynamic Object rule."""
    ids: tuple[str, ...]
    manifest: Mapping[str, DynamicObject]
    """The objects, by id."""
    properties: Mapping[int, tuple[Mapping[str, object], ...]] = field(default_factory=dict)
    """The snapshots that have properties, by index."""

    def _item(self, index: int) -> DynamicSnapshot:
        return DynamicSnapshot(
            float(self.time[index]),
            self.ids[index],
            _tuple(self.p[index]),
            _tuple(self.r[index]),
            self.properties.get(index, ()),
        )

    def rows_by_id(self) -> dict[str, NDArray[np.intp]]:
        """Return where the snapshots of each object are, in one go over all of them."""
        found: dict[str, list[int]] = {}
        for row, each in enumerate(self.ids):
            found.setdefault(each, []).append(row)
        return {each: np.array(rows, np.intp) for each, rows in found.items()}

    def only(self, keep: NDArray[np.bool_]) -> Dynamics:
        """Return some of the snapshots: those where ``keep`` (N,) is true."""
        rows = np.flatnonzero(keep).tolist()
        properties = {at: self.properties[n] for at, n in enumerate(rows) if n in self.properties}
        time, p, r = (fixed(column[keep]) for column in (self.time, self.p, self.r))
        ids = tuple(self.ids[row] for row in rows)
        return Dynamics(time, p, r, ids, self.manifest, FixedDict(properties))

    def columns(self) -> dict[str, Any]:
        """Return ``time``, ``id``, ``px py pz`` and ``rx ry rz rw``."""
        where = {**split('px py pz', self.p), **split('rx ry rz rw', self.r)}
        return {'time': self.time, 'id': list(self.ids), **where}


def read_properties(
    bodies: Iterable[tuple[str, JsonBody]], report: Report
) -> Named[PropertyValue]:
    """Merge the session properties of gaze bodies, each of which has the changed ones."""
    merged: dict[str, Any] = {}
    for part, body in bodies:
        merged |= {
            key: value
            for key, value in body.properties.items()
            if _passes(schema.check_property, value, f'properties[{key!r}]', part, report)
        }
    return Named(merged)


def read_poses(bodies: Callable[[], Iterable[tuple[str, JsonBody]]], report: Report) -> Poses:
    """Read the pose timeline from gaze bodies, each with the name of its part, when it is asked for."""

    def chunks() -> Iterator[_Columns]:
        for part, body in bodies():
            yield _posed(part, body.data, _check_pose, report)[1]

    return Poses(chunks)


def read_dynamics(bodies: Iterable[tuple[str, JsonBody]], report: Report) -> Dynamics:
    """Read the Dynamic Objects from dynamics bodies."""
    runs = [_EMPTY]
    ids: list[str] = []
    properties: dict[int, tuple[Mapping[str, object], ...]] = {}
    manifest: dict[str, DynamicObject] = {}
    for part, body in bodies:
        for object_id, entry in body.manifest.items():
            where = f'manifest[{object_id!r}]'
            if _passes(schema.check_manifest_entry, entry, where, part, report):
                facts: Any = entry
                manifest[object_id] = DynamicObject(
                    object_id, facts['name'], facts['mesh'], str(facts.get('fileType', ''))
                )
        data, columns = _posed(part, body.data, _check_snapshot, report)
        runs.append(columns)
        for record in data:
            if record.get('properties'):
                properties[len(ids)] = tuple(map(FixedDict, record['properties']))
            ids.append(record['id'])
    every = _joined(runs)
    return Dynamics(
        every.time, every.p, every.r, tuple(ids), FixedDict(manifest), FixedDict(properties)
    )


def read_series(bodies: Iterable[tuple[str, JsonBody]], report: Report) -> Named[Series]:
    """Read the sensor series from sensors bodies, in the order in which they first appear."""
    runs: dict[str, list[Floats]] = {}
    for part, body in bodies:
        series = _sound(part, body.data, schema.check_series_head, report)
        found = [(record['name'], record['data']) for record in series]
        rows = [sample for _, samples in found for sample in samples]
        try:
            values = _strict(rows, 2)  # all series of a body at once: each has a few samples only
            _within(values[:, 0])
        except (TypeError, ValueError):
            found = [
                (name, _sound(f'{part}: series {name!r}', samples, _check_sample, report))
                for name, samples in found
            ]
            values = _lenient([sample for _, samples in found for sample in samples], 2)
        at = 0
        for name, samples in found:
            runs.setdefault(name, []).append(values[at : at + len(samples)])
            at += len(samples)
    return Named({name: Series(name, *fixed(np.concatenate(run)).T) for name, run in runs.items()})


def read_events(bodies: Iterable[tuple[str, JsonBody]], report: Report) -> tuple[Event, ...]:
    """Read the events, annotations among them, in the order in which they were stored."""
    events: list[Event] = []
    for part, body in bodies:
        for record in _sound(part, body.data, _check_event, report):
            event = Event(
                record['time'],
                record['name'],
                tuple(record['point']),
                FixedDict(record.get('properties', {})),
                record.get('dynamicId'),
            )
            events.append(_annotation(event, part, report) if event.name == ANNOTATION else event)
    return tuple(events)


def _annotation(event: Event, part: str, report: Report) -> Event:
    """Return the annotation that an event stands for, or the event if it says none."""
    facts = event.properties
    texts = [facts.get(name, '') for name in ('stream_name', 'key', 'value')]
    time = facts.get('annotation_time', event.time)
    texts_only = all(isinstance(text, str) for text in texts)
    if not texts_only or isinstance(time, (str, bool)) or abs(time) >= MOST_S:
        report(f'{part}: an annotation at {event.time:.5f} that is none: {dict(facts)!r:.200}')
        return event
    stream_name, key, value = map(str, texts)
    return Annotation(
        event.time,
        event.name,
        event.point,
        facts,
        event.dynamic_id,
        annotation_time=time,
        stream_name=stream_name,
        key=key,
        value=value,
    )


def _timed(check: Check, time: int | str) -> Check:
    """Return a check that does not take what is no time either; ``time``: where in a record it stands."""

    def checked(record: Any, where: str) -> None:
        check(record, where)
        if abs(record[time]) >= MOST_S:
            raise FormatError(f'{where}: {record[time]!r:.40} is no time')

    return checked


def _within(times: Floats) -> None:
    """Raise ValueError unless all are times."""
    if len(times) and np.abs(times).max() >= MOST_S:
        raise ValueError


_check_pose = _timed(schema.check_pose, 'time')
_check_snapshot = _timed(schema.check_snapshot, 'time')
_check_event = _timed(schema.check_event, 'time')
_check_sample = _timed(schema.check_sample, 0)


def _sound(part: str, data: list[object], check: Check, report: Report) -> list[Any]:
    """Return the records that are as they should be, and report the others."""
    good: list[Any] = []
    for index, record in enumerate(data):
        if _passes(check, record, f'data[{index}]', part, report):
            good.append(record)
    return good


def _passes(check: Check, record: object, where: str, part: str, report: Report) -> bool:
    try:
        check(record, where)
    except FormatError as error:
        report(f'{part}: {error}')
        return False
    return True


class _Columns(NamedTuple):
    """Poses of one body."""

    time: Floats
    p: Floats
    r: Floats
    g: Floats
    """NaN where a record has none."""


def _joined(runs: Sequence[_Columns]) -> _Columns:
    return _Columns(*(fixed(np.concatenate(columns)) for columns in zip(*runs, strict=True)))


_EMPTY = _Columns(np.empty(0), np.empty((0, 3)), np.empty((0, 4)), np.empty((0, 3)))


def _posed(part: str, data: list[Any], check: Check, report: Report) -> tuple[list[Any], _Columns]:
    """Return the sound records of a body, and their poses as columns; report the others."""
    if check is _check_pose:  # many of them, and as a rule all are sound
        with contextlib.suppress(TypeError, ValueError, KeyError):
            columns = _columns(data, _strict)
            _within(columns.time)
            return data, columns
    data = _sound(part, data, check, report)
    return data, _columns(data, _lenient)


def _columns(data: list[Any], numbers: Callable[[list[Any], int], Floats]) -> _Columns:
    gaze = np.full((len(data), 3), np.nan)
    having = [index for index, record in enumerate(data) if 'g' in record]
    if having:
        gaze[having] = numbers([data[index]['g'] for index in having], 3)
    return _Columns(
        numbers([(record['time'],) for record in data], 1)[:, 0],
        numbers([record['p'] for record in data], 3),
        numbers([record['r'] for record in data], 4),
        gaze,
    )


def _strict(rows: list[Any], width: int) -> Floats:
    """Return rows as an array (n, width); raises ValueError unless all are finite numbers."""
    array = np.array(rows) if rows else np.empty((0, width))
    if array.dtype.kind not in 'fi' or array.shape != (len(rows), width):
        raise ValueError
    if not np.isfinite(array).all():
        raise ValueError
    return array.astype(np.float64)


def _lenient(rows: list[Any], width: int) -> Floats:
    """Return rows that were checked one by one as an array (n, width)."""
    return np.array(rows, dtype=np.float64).reshape(-1, width)


def split(names: str, rows: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Return the columns of an array by names, which are given with spaces between them."""
    return dict(zip(names.split(' '), rows.T, strict=True))


def _tuple(row: Floats) -> Any:
    """Return a row of an array as a tuple of Python's floats."""
    return tuple(row.tolist())
