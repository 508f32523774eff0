"""A stored session: what it says of itself, its records, and what could not be read."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from configparser import ConfigParser
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from cognitive3d_ros.comments import parse_blocks
from cognitive3d_ros.conventions import Convention
from cognitive3d_ros.errors import FormatError, ReadError
from cognitive3d_ros.session import streams
from cognitive3d_ros.session.files import Listing, OpenPart, PartFile, SessionFiles, find_sessions
from cognitive3d_ros.session.finding import Bounds, PartFinder
from cognitive3d_ros.session.fixed import FixedDict
from cognitive3d_ros.session.markers import Markers, Region, read_markers
from cognitive3d_ros.session.metadata import StreamMetadata, stream_metadata
from cognitive3d_ros.session.motion import Motion
from cognitive3d_ros.session.motion import pairs as motion_pairs
from cognitive3d_ros.session.records import (
    Annotation,
    CameraFrame,
    DynamicSnapshot,
    Event,
    HealthSample,
    LaserScan,
    LidarRecord,
    PointCloud,
    PoseSample,
    PropertyValue,
    Record,
    SensorRecord,
    SeriesSample,
    axes_of,
)
from cognitive3d_ros.session.sensors import (
    CAMERA,
    LIDAR,
    Sensor,
    SensorStream,
    WireRecord,
    quick_times,
    read_records,
)
from cognitive3d_ros.session.streams import Dynamics, Poses, Series
from cognitive3d_ros.session.timeline import Run, Timeline, moment
from cognitive3d_ros.session.track import Track
from cognitive3d_ros.wire.framing import Part, PartHeader, PartName
from cognitive3d_ros.wire.identity import SessionIdentity
from cognitive3d_ros.wire.schema import JsonBody, read_body

SESSION_START, SESSION_END = 'c3d.sessionStart', 'c3d.sessionEnd'
_NS = 1_000_000_000
_HOLDS: Mapping[str, tuple[type[Record], ...]] = {
    'events': (Event, Annotation),
    'poses': (PoseSample,),
    'dynamics': (DynamicSnapshot,),
    'series': (SeriesSample, HealthSample),
    CAMERA: (CameraFrame,),
    LIDAR: (LaserScan, PointCloud),
}
"""The kinds of record that each stream holds, in the order in which those of one time come."""
_UPLOAD = {'poses': 'gaze', 'series': 'sensors'}
"""The upload streams whose names are others."""
_SLACK_S: Mapping[str, float] = {'poses': 60, 'dynamics': 60, 'series': 60}
"""How much older than those before them records may be that carry the recorder's own time: it takes them on
arrival, and they wait for tf or a worker, at the most for seconds."""
_STAMPED_SLACK_S = 3660
"""The same of records with a message's stamp, which may be an hour old (data format, Timestamps)."""
_EARLY, _FIRST_S = 200, 5
"""Records up to here, and of so many seconds, are read by themselves, before all are."""
_POSE = b'{"time":'
"""What each record of the pose timeline begins with, and no text in a body holds: it escapes quotes."""
_FEW = 32
_NEAR_S = 2, 60
"""How far around a moment is looked for what is nearest to it, before all is read."""
if TYPE_CHECKING:
    from cognitive3d_ros.session.editing import EditedSession

R = TypeVar('R', bound=Record)
T = TypeVar('T')


@dataclass(frozen=True, slots=True)
class Fault:
    """Something of a session that could not be read, and was passed over."""

    part: str
    """The name of the part's file, or of what stands for it."""
    reason: str

    def __str__(self) -> str:
        return f'{self.part}: {self.reason}'


class Session(Sequence[Record]):
    """A stored session, read as it is asked for.

    As a sequence it is all its records in time order. What cannot be read is passed over and listed in
    :attr:`faults`, for the streams that were read so far. What was on the disk when it was first looked
    at is what is seen: a session that is being recorded is opened again to see more. What it gives out is
    read-only: arrays, properties, records. :meth:`edit` gives a copy to change.
    """

    def __init__(self, files: SessionFiles, *, utf8: bool = False) -> None:
        """Take its files; ``utf8``: halves of characters, which only JSON can hold, become ``?``."""
        self.files = files
        self._utf8 = utf8
        self.faults: list[Fault] = []
        self._timelines: dict[tuple[str, ...], Timeline] = {}
        self._finders: dict[str, PartFinder] = {}

    def __repr__(self) -> str:
        return f'<Session {self.id} in {self.files.folder}>'

    # What it is

    @property
    def id(self) -> str:
        """The session id, ``<unix seconds>_<device id>``."""
        return self.files.session_id

    @property
    def device_id(self) -> str:
        """The robot's id."""
        return self.id.partition('_')[2]

    @property
    def scene_id(self) -> str:
        """The scene it was recorded in; empty if no part of it can be read."""
        return '' if self.identity is None else self.identity.scene_id

    @property
    def scene_version(self) -> int:
        """The version number of the scene; 0 if no part of it can be read."""
        return 0 if self.identity is None else self.identity.scene_version

    @property
    def parts(self) -> tuple[PartName, ...]:
        """Its part files, by stream and number."""
        return tuple(part.name for part in self.listing.parts)

    @property
    def has_journal(self) -> bool:
        """Whether its recorder has still to end it, or died before it could."""
        return self.listing.journal is not None

    @cached_property
    def listing(self) -> Listing:
        """Its files as they were when it was first looked at."""
        return self.files.listing

    @cached_property
    def properties(self) -> Mapping[str, PropertyValue]:
        """The session properties. Those of old sessions are found under their new names too."""
        return streams.read_properties(self._bodies('gaze', 'properties'), self._report)

    @property
    def convention(self) -> str:
        """The pose convention by name; empty if the session does not say."""
        return str(self.properties.get('c3d.ros.pose_convention', ''))

    @property
    def axes(self) -> Convention:
        """The pose convention, for going back to ROS axes. Raises ReadError if the session does not say."""
        return axes_of(self.convention)

    @property
    def by_recorder(self) -> bool:
        """Whether a recorder of version 1 or later recorded it: its properties say."""
        major = str(self.properties.get('c3d.version', '')).partition('.')[0]
        return major.isdecimal() and int(major) >= 1

    @property
    def comment(self) -> str:
        """The session's comment, ``c3d.ros.comment``."""
        return str(self.properties.get('c3d.ros.comment', ''))

    def comment_config(self) -> ConfigParser:
        """Return the ini blocks of the comment; lines that belong to none are passed over."""
        return parse_blocks(self.comment)

    @property
    def start(self) -> float:
        """When it started, in seconds since the epoch."""
        first = next((event for event in self.events if event.name == SESSION_START), None)
        if first is not None:
            return first.time
        return self.identity.start_ns / _NS if self.identity else float(self.id.partition('_')[0])

    @property
    def end(self) -> float:
        """When it ended, or the time of its latest record if it has no end."""
        last = self._end
        return self._latest if last is None else last.time

    @property
    def duration(self) -> float:
        """Its length in seconds."""
        return self.end - self.start

    @property
    def ended(self) -> bool:
        """Whether it has its end, ``c3d.sessionEnd``."""
        return self._end is not None

    @property
    def end_reason(self) -> str:
        """Why it ended; empty if it has no end."""
        last = self._end
        return '' if last is None else str(last.properties.get('Reason', ''))

    @property
    def recovered(self) -> bool:
        """Whether its recorder could not end it, and a later one did."""
        last = self._end
        return last is not None and last.properties.get('c3d.recovered') is True

    # What it holds

    @cached_property
    def poses(self) -> Poses:
        """The pose timeline, as it was stored."""
        return streams.read_poses(lambda: self._bodies('poses'), self._report)

    @cached_property
    def events(self) -> tuple[Event, ...]:
        """The events in the order in which they were stored, annotations among them."""
        return streams.read_events(self._bodies('events'), self._report)

    @cached_property
    def series(self) -> Mapping[str, Series]:
        """The sensor series by name, each a sequence of ``(time, value)``."""
        return streams.read_series(self._bodies('series'), self._report)

    @cached_property
    def dynamics(self) -> Dynamics:
        """The snapshots of Dynamic Objects and their manifest."""
        return streams.read_dynamics(self._bodies('dynamics'), self._report)

    @cached_property
    def streams(self) -> Mapping[str, StreamMetadata]:
        """Its streams by name, and where they come from: what does not change within a stream.

        ``pose``, ``events``, ``annotations``, ``properties``, and where there are any ``dynamics``,
        ``series/<name>``, ``camera/<name>`` and ``lidar/<name>``.
        """
        with_object = self.properties.get('c3d.ros.robot_dynamic_object') is True
        objects = with_object or len(self.dynamics) > 0
        return FixedDict(stream_metadata(self.properties, self.series, dynamics=objects))

    @property
    def annotations(self) -> tuple[Annotation, ...]:
        """The annotations in the order in which they were stored."""
        return tuple(event for event in self.events if isinstance(event, Annotation))

    @cached_property
    def markers(self) -> Markers:
        """What the log markers say: regions, instants, and markers that have no meaning."""
        return read_markers(self.annotations)

    def regions(self) -> tuple[Region, ...]:
        """Return the marked regions, by the time they were opened."""
        return self.markers.regions

    @property
    def cameras(self) -> tuple[str, ...]:
        """The names of its cameras, also of those that gave no frame.

        What is in its parts and not in ``c3d.ros.cameras`` is known, and here, once the parts were read, as
        they are for :meth:`counts` or any record of a camera: they may be much.
        """
        return self._sensor_names(CAMERA)

    @property
    def lidars(self) -> tuple[str, ...]:
        """The names of its lidars, also of those that gave no scan; as :attr:`cameras` has them."""
        return self._sensor_names(LIDAR)

    def camera(self, name: str) -> Sensor[CameraFrame]:
        """Return the frames of a camera, in the order in which they arrived.

        Raises ReadError if the session has no such camera.
        """
        return self._sensor(CAMERA, name)

    def lidar(self, name: str) -> Sensor[LidarRecord]:
        """Return the scans or clouds of a lidar, in the order in which they arrived.

        Raises ReadError if the session has no such lidar.
        """
        return self._sensor(LIDAR, name)

    @cached_property
    def track(self) -> Track:
        """The pose timeline in time order, for poses between its samples."""
        return Track(self.poses)

    def pose_at(self, time: float) -> PoseSample | None:
        """Return the pose at a time, interpolated; None before the first sample and after the last.

        Raises TypeError for what is no number, and ValueError for NaN.
        """
        time = moment(time)
        known, p, r, _ = self._track_around(time).at([time])
        if not known[0]:
            return None
        (x, y, z), (qx, qy, qz, qw) = p[0].tolist(), r[0].tolist()
        return PoseSample(time, (x, y, z), (qx, qy, qz, qw))

    def load(self, file: PartFile) -> Part:
        """Read one of its parts whole.

        Raises OSError, or FormatError if it is damaged or is not what its name says.
        """
        part = file.read()
        header = part.header
        said = (header.identity.session_id, header.stream, header.number, header.klass)
        if said != (self.id, *file.name):
            raise FormatError(f'by its header it is {said[1]} {said[3]} {said[2]} of {said[0]}')
        return part

    # All records in time order

    def __len__(self) -> int:
        return len(self.timeline())

    def __getitem__(self, index: Any) -> Any:
        if (
            isinstance(index, int)
            and 0 <= index < _EARLY
            and _names(Record) not in self._timelines
        ):
            timeline, count = self._first
            if index < count:
                return timeline[index]
        return self.timeline()[index]

    @cached_property
    def _first(self) -> tuple[Timeline, int]:
        """Records from the start on, without reading the rest, and how many of them none is missing of."""
        second = float(self.id.partition('_')[0])
        timeline = self._around(Record, -float('inf'), second + _FIRST_S)
        return timeline, int(np.searchsorted(timeline.time, second + _FIRST_S))

    def __iter__(self) -> Iterator[Record]:
        return iter(self.timeline())

    def kind(self, index: int) -> type[Record]:
        """Return the kind of the record at an index, without reading it."""
        return self.timeline().kind(index)

    def find(
        self, kind: type[R], start: float = -float('inf'), end: float = float('inf')
    ) -> list[R]:
        """Return the records of a kind, subtypes too, with start <= time < end.

        Of a long session only the parts are read that can hold them. Raises TypeError for what is no kind of
        record or no number, and ValueError for NaN.
        """
        _names(kind)
        start, end = moment(start), moment(end)
        if not start < end:
            return []
        found: Any = self._around(kind, start, end).find(kind, start, end)
        return found  # type: ignore[no-any-return]

    def nearest(self, kind: type[R], time: float) -> R | None:
        """Return the record of a kind, subtypes too, that is nearest in time; None if there is none.

        Minus infinity has the first, infinity the last. Raises TypeError for what is no kind of record or no
        number, and ValueError for NaN.
        """
        time = moment(time)
        found: Any
        for near_s in _NEAR_S:
            found = self._around(kind, time - near_s, time + near_s).nearest(kind, time)
            if found is not None and abs(found.time - time) < near_s:  # else others may be as near
                return found  # type: ignore[no-any-return]
        found = self.timeline(kind).nearest(kind, time)
        return found  # type: ignore[no-any-return]

    def pairs(self, *, bare: bool = False) -> Iterator[tuple[Motion | None, SensorRecord]]:
        """Give each sensor record with the robot's motion since the one before it, in REP-103 axes.

        Records without a motion (the first, and where no pose is known) are left out, unless ``bare``.
        """
        return motion_pairs(self, bare=bare)

    def counts(self) -> Mapping[type[Record], int]:
        """Return how many records there are of each kind; annotations and health are not counted twice."""
        counts: Counter[type[Record]] = Counter(type(event) for event in self.events)
        counts[PoseSample] += len(self.poses)
        counts[DynamicSnapshot] += len(self.dynamics)
        for series in self.series.values():
            counts[series.kind] += len(series)
        counts.update(self._camera_stream.kinds)
        counts.update(self._lidar_stream.kinds)
        return counts

    def pose_count(self) -> int:
        """Return how many pose samples there are; those of a recorder's parts are counted without making them.

        So one that cannot be read counts, and is no fault yet.
        """
        if self.poses.loaded or not self.by_recorder:
            return len(self.poses)
        count = 0
        for source in self._sources('poses'):
            if source.klass == 'pose':
                raw = self._attempt(source.label, lambda part=source: self._raw(part))  # type: ignore[misc]
                count += 0 if raw is None else raw.count(_POSE)
        return count

    def to_pandas(self) -> dict[str, Any]:
        """Return its tables by name as pandas DataFrames, without pictures and points.

        They are those that it is exported as: ``poses``, ``events``, ``series`` and so on, in REP-103 axes,
        with times in UTC. Those of a stream, ``poses.to_pandas()``, are as recorded: scene axes, and seconds
        since the epoch.

        Raises ImportError where pandas is not installed, and ReadError where the session does not say which
        axes its poses are in.
        """
        from cognitive3d_ros.session.tables import to_pandas

        return to_pandas(self)

    def damaged(self) -> tuple[Fault, ...]:
        """Return the parts of cameras and lidars that are not as long as they say, without reading them.

        A part that has its length can be damaged all the same: that is known when it is read.
        """
        found = []
        for part in self.listing.parts:
            if part.stream in (CAMERA, LIDAR):
                reason = _size_fault(part)
                if reason:
                    found.append(Fault(part.label, reason))
        return tuple(found)

    def was_read(self, stream: str) -> bool:
        """Say whether the stream ``camera`` or ``lidar`` has been read, which may be much."""
        known: SensorStream | None = self.__dict__.get(f'_{stream}_stream')
        return known is not None and known.indexed

    def sensor_stream(self, stream: str) -> SensorStream:
        """Return the records of all cameras, or of all lidars."""
        return self._camera_stream if stream == CAMERA else self._lidar_stream

    def with_records(self, **records: Any) -> Session:
        """Return the session with other records in the place of some streams', by their names."""
        made = Session(self.files, utf8=self._utf8)
        made.faults = self.faults
        made.__dict__ |= {'listing': self.listing, 'properties': self.properties}
        for name, held in records.items():
            made.__dict__[f'_{name}_stream' if name in (CAMERA, LIDAR) else name] = held
        return made

    def edit(self) -> EditedSession:
        """Return a copy whose records can be taken out and put in, and which can be saved."""
        from cognitive3d_ros.session.editing import EditedSession

        return EditedSession(self)

    def timeline(self, kind: type[Record] = Record) -> Timeline:
        """Return all records of the streams that may hold records of a kind; the others are not read."""
        names = _names(kind)
        if names not in self._timelines:
            runs = (run for name in names for run in _runs(self._whole(name)))
            self._timelines[names] = Timeline(list(runs))
        return self._timelines[names]

    # Of a while

    def _around(self, kind: type[Record], start: float, end: float) -> Timeline:
        """Return the records of a kind from start to end, and maybe others, reading no more than that needs."""
        names = _names(kind)
        if names in self._timelines:
            return self._timelines[names]
        records = [self._some(name, start, end) for name in names]
        if all(each is None for each in records):
            return self.timeline(kind)
        return Timeline(
            [
                run
                for name, some in zip(names, records, strict=True)
                for run in _runs(self._whole(name) if some is None else some)
            ]
        )

    def _track_around(self, time: float) -> Track:
        """Return the pose timeline as far as it is needed for the pose at a time."""
        start, end = time - _NEAR_S[-1], time + _NEAR_S[-1]
        poses = None if 'track' in self.__dict__ else self._some('poses', start, end)
        if poses is not None:
            within = poses.time[(poses.time >= start) & (poses.time < end)]
            if (within <= time).any() and (within >= time).any():
                return Track(poses)
        return self.track

    def _whole(self, name: str) -> Any:
        """Return all records of a stream."""
        if name in (CAMERA, LIDAR):
            return self._camera_stream if name == CAMERA else self._lidar_stream
        return getattr(self, name)

    def _some(self, name: str, start: float, end: float) -> Any:
        """Return the records of the parts that can hold a while; None where all are there, or wanted."""
        if self._was_read(name) or not self.by_recorder:
            return None
        sources = self._sources(name)
        wanted = self._finder(name).within(start, end, each=name in (CAMERA, LIDAR))
        if len(wanted) == len(sources):
            return None
        return self._read(name, [sources[part] for part in wanted])

    def _was_read(self, name: str) -> bool:
        if name in (CAMERA, LIDAR):
            return self.was_read(name)
        return self.poses.loaded if name == 'poses' else name in self.__dict__

    def _finder(self, name: str) -> PartFinder:
        if name not in self._finders:
            sources = self._sources(name)

            def bounds(part: int) -> Bounds | None:
                source = sources[part]
                if name in (CAMERA, LIDAR) and isinstance(source, PartFile):
                    quick = quick_times(source)
                    if quick is not None:
                        return Bounds(float(quick.min()), float(quick.max()))
                times = [run.time for run in _runs(self._read(name, [source]))]
                every = np.concatenate([np.empty(0), *times])
                return Bounds(float(every.min()), float(every.max())) if len(every) else None

            slack_s = _SLACK_S.get(name, _STAMPED_SLACK_S)
            self._finders[name] = PartFinder(len(sources), bounds, slack_s)
        return self._finders[name]

    def _sources(self, name: str) -> Sequence[PartFile | OpenPart]:
        """Return what the records of a stream are in, by part number; last what is journalled only."""
        return self._by_stream.get(_UPLOAD.get(name, name), [])

    @cached_property
    def _by_stream(self) -> Mapping[str, list[PartFile | OpenPart]]:
        found: dict[str, list[PartFile | OpenPart]] = {}
        every: list[PartFile | OpenPart] = [*self.listing.parts, *self.listing.open_parts]
        for source in every:
            found.setdefault(source.stream, []).append(source)
        return found

    def _read(self, name: str, sources: Sequence[PartFile | OpenPart]) -> Any:
        """Return the records of some of a stream's parts."""
        if name in (CAMERA, LIDAR):
            parts = [source for source in sources if isinstance(source, PartFile)]
            return SensorStream(parts, self._read_records, self.convention, self._report)
        bodies = self._read_bodies(sources)
        if name == 'events':
            return streams.read_events(bodies, self._report)
        if name == 'poses':
            return streams.read_poses(lambda: bodies, self._report)
        if name == 'series':
            return streams.read_series(bodies, self._report)
        return streams.read_dynamics(bodies, self._report)

    # Inside

    @property
    def _end(self) -> Event | None:
        return next((event for event in reversed(self.events) if event.name == SESSION_END), None)

    @cached_property
    def identity(self) -> SessionIdentity | None:
        """What the first part that can be read says of the session, or its journal; None if none does."""
        headers = (_header_of(part) for part in self.listing.parts)
        said = next((header.identity for header in headers if header is not None), None)
        return said or self.listing.identity

    @cached_property
    def _camera_stream(self) -> SensorStream:
        return self._read(CAMERA, self._sources(CAMERA))  # type: ignore[no-any-return]

    @cached_property
    def _lidar_stream(self) -> SensorStream:
        return self._read(LIDAR, self._sources(LIDAR))  # type: ignore[no-any-return]

    def _sensor_names(self, stream: str) -> tuple[str, ...]:
        listed = str(self.properties.get(f'c3d.ros.{stream}s', ''))
        names = tuple(name for name in listed.split(',') if name)
        if names and not self.was_read(stream):
            return names
        found = self._camera_stream if stream == CAMERA else self._lidar_stream
        return tuple(dict.fromkeys((*names, *found.names)))

    def _sensor(self, stream: str, name: str) -> Sensor[Any]:
        found = self._camera_stream if stream == CAMERA else self._lidar_stream
        known = self._sensor_names(stream)
        names = known if name in known else dict.fromkeys((*known, *found.names))
        if name not in names:
            has = f'it has {", ".join(names)}' if names else 'it has none'
            raise ReadError(f'session {self.id} has no {stream} {name!r}; {has}')
        return Sensor(name, found)

    @property
    def _latest(self) -> float:
        latest = [self._latest_of(name) for name in ('events', 'poses', 'dynamics', 'series')]
        return max([self.start, *latest])

    def _latest_of(self, name: str) -> float:
        """Return the time of the latest record of a stream, of a long one from its last parts."""
        end = float('inf')
        few = len(self._sources(name)) <= _FEW  # to look for the last of them would read all
        last = None if few else _latest_in(self._some(name, end, end))
        near = None if last is None else self._some(name, last, end)  # what may be later than that
        latest = _latest_in(self._whole(name) if near is None else near)
        return -end if latest is None else latest

    def _bodies(self, name: str, klass: str | None = None) -> Iterator[tuple[str, JsonBody]]:
        """Give the bodies of a stream, as :meth:`_sources` has them."""
        wanted = [each for each in self._sources(name) if klass in (None, each.klass)]
        return self._read_bodies(wanted)

    def _read_bodies(
        self, sources: Iterable[PartFile | OpenPart]
    ) -> Iterator[tuple[str, JsonBody]]:
        for source in sources:
            body = self._body(source)
            if body is not None:
                yield source.label, body

    def _body(self, source: PartFile | OpenPart) -> JsonBody | None:
        """Return a checked body, or report why there is none."""

        def read() -> JsonBody:
            raw = self._raw(source)
            body = read_body(source.stream, _utf8(raw) if self._utf8 else raw)
            if body.session_id != self.id:
                raise FormatError(f'its body is one of session {body.session_id}')
            return body

        return self._attempt(source.label, read)

    def _raw(self, source: PartFile | OpenPart) -> bytes:
        return source.body if isinstance(source, OpenPart) else self.load(source).body

    def _read_records(self, file: PartFile) -> Sequence[WireRecord] | None:
        """Return the records of a camera or lidar part, or report why there are none."""
        return self._attempt(
            file.label,
            lambda: read_records(file.stream, self.id, file.name.number, self.load(file).body),
        )

    def _attempt(self, label: str, read: Callable[[], T]) -> T | None:
        """Read something, or report why it cannot be read."""
        try:
            return read()
        except FileNotFoundError:
            reason = 'gone since the folder was listed: delivered, or removed'
        except OSError as error:
            reason = f'cannot be read: {error.strerror}'
        except FormatError as error:
            reason = str(error)
        self._report(f'{label}: {reason}')
        return None

    def _report(self, text: str) -> None:
        part, _, reason = text.partition(': ')
        fault = Fault(part, reason)
        if fault not in self.faults:  # gaze parts are read for properties and for poses
            self.faults.append(fault)


def _names(kind: type[Record]) -> tuple[str, ...]:
    """Return the streams that may hold records of a kind. Raises TypeError for what is none."""
    if isinstance(kind, type) and issubclass(kind, Record):
        held = [name for name, kinds in _HOLDS.items() if any(issubclass(k, kind) for k in kinds)]
        if held:
            return tuple(held)
    name = kind.__name__ if isinstance(kind, type) else repr(kind)
    raise TypeError(f'a kind of record is wanted, Record or one of its subclasses, not {name:.80}')


def _runs(records: Any) -> list[Run]:
    """Return the records of a stream, or of some of its parts, for a timeline."""
    if isinstance(records, SensorStream):
        return [Run(records.kinds, records.time, records.record)]
    if isinstance(records, tuple):
        times = np.array([event.time for event in records], dtype=np.float64)
        return [Run([type(event) for event in records], times, records.__getitem__)]
    if isinstance(
        records, Mapping
    ):  # by name: the order of their first samples is not known from a part
        return [Run([one.kind], one.time, one.sample) for _, one in sorted(records.items())]
    kind = PoseSample if isinstance(records, Poses) else DynamicSnapshot
    return [Run([kind], records.time, records.__getitem__)]


def _latest_in(records: Any) -> float | None:
    """Return the time of the latest of a stream's records; None without any."""
    times = [] if records is None else [run.time for run in _runs(records) if len(run.time)]
    return max((float(each.max()) for each in times), default=None)


def _utf8(raw: bytes) -> bytes:
    """Return JSON whose texts UTF-8 can hold; what is no JSON as it is."""
    try:
        return json.dumps(json.loads(raw), ensure_ascii=False).encode('utf-8', 'replace')
    except ValueError:
        return raw


def _header_of(part: PartFile) -> PartHeader | None:
    """Return what a part says of itself; what is wrong with it is reported when its stream is read."""
    try:
        return part.read_header()
    except (FormatError, OSError):
        return None


def _size_fault(part: PartFile) -> str:
    try:
        part.check_size()
    except (FormatError, OSError) as error:
        return str(error)
    return ''


def list_sessions(path: str | os.PathLike[str]) -> list[Session]:
    """Return the sessions in a spool, a gateway's store, a session's folder or loose parts, oldest first.

    Raises ReadError if the path is none of these.
    """
    return [Session(files) for files in find_sessions(Path(path)).values()]


def open_session(path: str | os.PathLike[str], session_id: str | None = None) -> Session:
    """Open a session in a spool, a gateway's store, a session's folder or loose part files.

    ``session_id`` chooses one; without it there must be exactly one. Raises ReadError, which lists those found.
    """
    found = find_sessions(Path(path))
    if session_id is None and len(found) == 1:
        return Session(*found.values())
    if session_id is not None and session_id in found:
        return Session(found[session_id])
    wanted = f'{path} holds no session {session_id}' if session_id else f'{path} holds'
    names = list(found)
    if not names:
        raise ReadError(f'{path} holds no sessions yet')
    shown = ', '.join(names[-10:]) + (f' and {len(names) - 10} older' if len(names) > 10 else '')
    if session_id is not None:
        raise ReadError(f'{wanted}; it has {shown}')
    raise ReadError(f'{wanted} {len(names)} sessions, choose one by its id: {shown}')
