"""A session as tables: one for each stream, poses and positions in REP-103 axes in the reference frame.

Each table has typed columns and is given in batches of rows, so that a day's worth of pictures can be written
without holding it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cognitive3d_ros.conventions import Convention
from cognitive3d_ros.session.records import (
    Annotation,
    CameraFrame,
    Event,
    LaserScan,
    PointCloud,
    SensorRecord,
)
from cognitive3d_ros.session.session import Session
from cognitive3d_ros.session.streams import Floats

TIME, DOUBLE, FLOAT, INTEGER, TEXT = 'time', 'double', 'float', 'integer', 'text'
BYTES, FLOATS, OCTETS = 'bytes', 'list of float', 'list of uint8'
HEAVY: Final = (BYTES, FLOATS, OCTETS)
"""The types of columns that no cell of text can hold in a useful way."""

Rows = Mapping[str, Any]
"""Columns by name: an array, or a list, of as many values as the batch has rows."""

_ROWS = 50_000
_BATCH_BYTES = 16 << 20
_US = 1_000_000

_PLACE: Final = {'x': DOUBLE, 'y': DOUBLE, 'z': DOUBLE}
_POSE: Final = {**_PLACE, 'qx': DOUBLE, 'qy': DOUBLE, 'qz': DOUBLE, 'qw': DOUBLE}
_WHEN: Final = {'time': TIME, 'seconds': DOUBLE}
_SENSOR: Final = {**_WHEN, 'sensor': TEXT, 'seq': INTEGER, 'frame_id': TEXT, **_POSE}
_SCAN_SCALARS: Final = (
    'angle_min',
    'angle_max',
    'angle_increment',
    'time_increment',
    'scan_time',
    'range_min',
    'range_max',
)


@dataclass(frozen=True, slots=True)
class Table:
    """A table: ``columns`` are the types by name; ``seconds`` are since the session's start."""

    name: str
    columns: Mapping[str, str]
    batches: Callable[[], Iterator[Rows]]
    """Gives the rows; never an empty batch."""


def tables(session: Session, axes: Convention | None) -> list[Table]:
    """Return the tables of a session, whose scene axes are given.

    If they are None, nobody knows where anything was: those of poses have no rows, and places are empty.
    """
    made = _Maker(session, axes)
    return [
        Table('properties', {'key': TEXT, 'value': TEXT, 'type': TEXT}, made.properties),
        Table('poses', {**_WHEN, **_POSE}, made.poses),
        # A table of its own: those of one name have the same columns in every session.
        Table('gaze', {**_WHEN, **_PLACE}, made.gaze),
        Table(
            'events',
            {**_WHEN, 'name': TEXT, **_PLACE, 'properties': TEXT, 'dynamic_id': TEXT},
            made.events,
        ),
        Table(
            'annotations',
            {
                **_WHEN,
                'stream_name': TEXT,
                'key': TEXT,
                'value': TEXT,
                'recorded': TIME,
                **_PLACE,
            },
            made.notes,
        ),
        Table(
            'regions',
            {
                'start': TIME,
                'stop': TIME,
                'number': INTEGER,
                'state': TEXT,
                'start_text': TEXT,
                'stop_text': TEXT,
            },
            made.regions,
        ),
        Table('series', {**_WHEN, 'name': TEXT, 'value': DOUBLE}, made.series),
        Table('dynamics', {**_WHEN, 'id': TEXT, **_POSE, 'properties': TEXT}, made.dynamics),
        Table(
            'camera',
            {
                **_SENSOR,
                'format': TEXT,
                'width': INTEGER,
                'height': INTEGER,
                'hfov_degrees': FLOAT,
                'vfov_degrees': FLOAT,
                'data': BYTES,
            },
            made.camera,
        ),
        Table(
            'scans',
            {
                **_SENSOR,
                **dict.fromkeys(_SCAN_SCALARS, FLOAT),
                'ranges': FLOATS,
                'intensities': FLOATS,
            },
            made.scans,
        ),
        Table(
            'clouds',
            {
                **_SENSOR,
                'point_count': INTEGER,
                'voxel_leaf_mm': INTEGER,
                'points_x': FLOATS,
                'points_y': FLOATS,
                'points_z': FLOATS,
                'red': OCTETS,
                'green': OCTETS,
                'blue': OCTETS,
                'intensity': OCTETS,
            },
            made.clouds,
        ),
    ]


def to_pandas(session: Session) -> dict[str, Any]:
    """Return the tables that have rows as pandas DataFrames, without the columns that hold much.

    Times are aware, in UTC, as those of exported tables are.
    """
    import pandas

    frames: dict[str, Any] = {}
    for table in tables(session, session.axes):
        names = [name for name, kind in table.columns.items() if kind not in HEAVY]
        batches = [pandas.DataFrame({k: rows[k] for k in names}) for rows in table.batches()]
        if batches:
            frame = pandas.concat(batches, ignore_index=True)
            for name in names:
                if table.columns[name] == TIME:
                    frame[name] = frame[name].dt.tz_localize('UTC')
            frames[table.name] = frame
    return frames


class _Maker:
    def __init__(self, session: Session, axes: Convention | None) -> None:
        self._session = session
        self._axes = axes
        self._start = session.start

    def properties(self) -> Iterator[Rows]:
        known = sorted(self._session.properties.items())
        if known:
            yield {
                'key': [key for key, _ in known],
                'value': [property_text(value) for _, value in known],
                'type': [_TYPES[type(value)] for _, value in known],
            }

    def poses(self) -> Iterator[Rows]:
        if self._axes is None:
            return
        poses = self._session.poses
        order = np.argsort(poses.time, kind='stable')
        for rows in _slices(len(poses)):
            picked = order[rows]
            yield {
                **self._when(poses.time[picked]),
                **_columns('x y z', self._axes.ros_position(poses.p[picked])),
                **_columns('qx qy qz qw', self._axes.ros_pose_rotation(poses.r[picked])),
            }

    def gaze(self) -> Iterator[Rows]:
        """Give the gaze points of a session from before 1.0.0, of the pose samples that have one."""
        poses = self._session.poses
        if self._axes is None or poses.g is None:
            return
        order = np.argsort(poses.time, kind='stable')
        order = order[~np.isnan(poses.g[order]).any(axis=1)]
        for rows in _slices(len(order)):
            picked = order[rows]
            points = self._axes.ros_position(poses.g[picked])
            yield {**self._when(poses.time[picked]), **_columns('x y z', points)}

    def events(self) -> Iterator[Rows]:
        events = _by_time([each for each in self._session.events if type(each) is Event])
        if events:
            yield {
                **self._when(np.array([event.time for event in events])),
                'name': [event.name for event in events],
                **_columns('x y z', self._places(events)),
                'properties': [
                    json.dumps(dict(event.properties), ensure_ascii=False) for event in events
                ],
                'dynamic_id': [event.dynamic_id for event in events],
            }

    def notes(self) -> Iterator[Rows]:
        found: list[Annotation] = sorted(
            self._session.annotations, key=lambda each: each.annotation_time
        )
        if found:
            yield {
                **self._when(np.array([each.annotation_time for each in found], np.float64)),
                **{
                    name: [getattr(each, name) for each in found]
                    for name in ('stream_name', 'key', 'value')
                },
                # Where the robot was then, and when that was: the clock rule may have moved it.
                'recorded': _stamps(np.array([each.time for each in found], np.float64)),
                **_columns('x y z', self._places(found)),
            }

    def _places(self, events: Sequence[Event]) -> NDArray[np.float64]:
        """Return where events were, (N, 3); NaN where that is not known."""
        if self._axes is None:
            return np.full((len(events), 3), np.nan)
        places = self._axes.ros_position([each.point for each in events]) + 0.0
        places[[not each.is_placed for each in events]] = np.nan
        return places

    def regions(self) -> Iterator[Rows]:
        regions = self._session.regions()
        if regions:
            stops = [np.nan if each.stop is None else each.stop for each in regions]
            yield {
                'start': _stamps(np.array([each.start for each in regions])),
                'stop': _stamps(np.array(stops, np.float64)),
                'number': [each.index for each in regions],
                'state': [each.state.value for each in regions],
                'start_text': [each.start_text for each in regions],
                'stop_text': [each.stop_text for each in regions],
            }

    def series(self) -> Iterator[Rows]:
        for series in self._session.series.values():
            order = np.argsort(series.time, kind='stable')
            for rows in _slices(len(series)):
                picked = order[rows]
                yield {
                    **self._when(series.time[picked]),
                    'name': [series.name] * len(picked),
                    'value': series.value[picked],
                }

    def dynamics(self) -> Iterator[Rows]:
        if self._axes is None:
            return
        dynamics = self._session.dynamics
        order = np.argsort(dynamics.time, kind='stable')
        for rows in _slices(len(order)):
            picked = order[rows]
            yield {
                **self._when(dynamics.time[picked]),
                'id': [dynamics.ids[index] for index in picked],
                **_columns('x y z', self._axes.ros_position(dynamics.p[picked])),
                **_columns('qx qy qz qw', self._axes.ros_object_rotation(dynamics.r[picked])),
                'properties': [
                    json.dumps(dynamics.properties[index])
                    if index in dynamics.properties
                    else None
                    for index in picked.tolist()
                ],
            }

    def camera(self) -> Iterator[Rows]:
        for frames in self._records(CameraFrame, lambda frame: len(frame.data)):
            yield {
                **self._sensor(frames, [frame.camera_id for frame in frames]),
                **_fields(
                    frames, ['format', 'width', 'height', 'hfov_degrees', 'vfov_degrees', 'data']
                ),
            }

    def scans(self) -> Iterator[Rows]:
        for scans in self._records(LaserScan, lambda scan: 8 * len(scan.ranges)):
            yield {
                **self._sensor(scans, [scan.sensor_id for scan in scans]),
                **_fields(scans, [*_SCAN_SCALARS, 'ranges', 'intensities']),
            }

    def clouds(self) -> Iterator[Rows]:
        for clouds in self._records(PointCloud, lambda cloud: 16 * cloud.point_count):
            points = [
                None if self._axes is None else self._axes.ros_position(cloud.positions)
                for cloud in clouds
            ]
            colors = [cloud.colors for cloud in clouds]
            yield {
                **self._sensor(clouds, [cloud.sensor_id for cloud in clouds]),
                **_fields(clouds, ['point_count', 'voxel_leaf_mm']),
                **{
                    f'points_{name}': [
                        None if each is None else each[:, axis].astype(np.float32)
                        for each in points
                    ]
                    for axis, name in enumerate('xyz')
                },
                **{
                    name: [None if each is None else each[:, channel] for each in colors]
                    for channel, name in enumerate(('red', 'green', 'blue'))
                },
                'intensity': [cloud.intensities for cloud in clouds],
            }

    def _records(self, kind: Any, size: Callable[[Any], int]) -> Iterator[list[Any]]:
        """Give the records of a kind in time order, in batches of bounded size."""
        timeline = self._session.timeline(kind)
        held: list[Any] = []
        held_bytes = 0
        for record in timeline.readable(timeline.indices(kind)):
            held.append(record)
            held_bytes += size(record)
            if held_bytes >= _BATCH_BYTES or len(held) >= _ROWS:
                yield held
                held, held_bytes = [], 0
        if held:
            yield held

    def _when(self, times: Floats) -> dict[str, Any]:
        return {'time': _stamps(times), 'seconds': np.round(times - self._start, 5)}

    def _sensor(self, records: Sequence[SensorRecord], names: list[str]) -> dict[str, Any]:
        stored = np.array([record.pose for record in records], dtype=np.float64)
        p = r = np.full((len(records), 4), np.nan)
        if self._axes is not None:
            scan = isinstance(records[0], LaserScan)
            turn = self._axes.ros_scan_rotation if scan else self._axes.ros_object_rotation
            p, r = self._axes.ros_position(stored[:, :3]), turn(stored[:, 3:])
        return {
            **self._when(np.array([record.time for record in records])),
            'sensor': names,
            **_fields(records, ['seq', 'frame_id']),
            **_columns('x y z', p),
            **_columns('qx qy qz qw', r),
        }


_TYPES: Final = {str: 'text', bool: 'boolean', int: 'number', float: 'number'}


def object_facts(session: Session) -> dict[str, str]:
    """Return what a session registered of its Dynamic Objects, as text by name."""
    return {
        f'c3d.object.{each.id}': json.dumps(
            {'name': each.name, 'mesh': each.mesh, 'file_type': each.file_type}
        )
        for each in session.dynamics.manifest.values()
    }


def property_text(value: object) -> str:
    """Return a property as text: numbers and booleans as JSON has them."""
    return value if isinstance(value, str) else json.dumps(value)


def _by_time(events: list[Event]) -> list[Event]:
    return sorted(events, key=lambda event: event.time)


def _slices(count: int) -> Iterator[slice]:
    return (slice(at, at + _ROWS) for at in range(0, count, _ROWS))


def _columns(names: str, values: NDArray[Any]) -> dict[str, NDArray[Any]]:
    values = values + 0.0  # no −0
    return {name: values[:, index] for index, name in enumerate(names.split(' '))}


def _fields(records: Sequence[Any], names: Sequence[str]) -> dict[str, list[Any]]:
    return {name: [getattr(record, name) for record in records] for name in names}


def _stamps(times: Floats) -> NDArray[np.datetime64]:
    """Return times as microseconds since the epoch; one that is not known is "not a time"."""
    known = np.nan_to_num(np.rint(times * _US)).astype(np.int64).astype('datetime64[us]')
    known[np.isnan(times)] = np.datetime64('NaT')
    return known
