"""A session as a report sees it: axes, texts, and records spread over its length."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cognitive3d_ros.conventions import Convention
from cognitive3d_ros.errors import FormatError, ReadError
from cognitive3d_ros.session.markers import Region
from cognitive3d_ros.session.records import Annotation, Event, LidarRecord
from cognitive3d_ros.session.sensors import Sensor
from cognitive3d_ros.session.session import SESSION_END, SESSION_START, Session

_MOST_TEXT: Final = 200


class View:
    """What the sections of a report share."""

    own_ends: Final = (SESSION_START, SESSION_END)

    def __init__(self, session: Session) -> None:
        self.session = session
        self.start = session.start
        self.end = session.end
        self.events = sorted(session.events, key=lambda event: event.time)
        self.regions = session.regions()
        self.frame = str(session.properties.get('c3d.ros.reference_frame', ''))
        self._axes: Convention | None
        try:
            self._axes = session.axes
        except ReadError:
            self._axes = None

    @property
    def knows_axes(self) -> bool:
        """Whether the session says which axes its poses are in."""
        return self._axes is not None

    def position(self, points: ArrayLike) -> NDArray[np.float64]:
        """Return scene positions (…, 3) in REP-103 axes; where those are not known, y is taken to be up."""
        if self._axes is None:
            x, y, z = np.moveaxis(np.asarray(points, dtype=np.float64), -1, 0)
            return np.stack([x, -z, y], axis=-1)
        return self._axes.ros_position(points)

    def points(self, record: LidarRecord) -> NDArray[np.float64]:
        """Return the points of a scan or a cloud in the reference frame, (N, 3); of a damaged one none."""
        try:
            return self.position(record.scene_points())
        except FormatError:
            return np.empty((0, 3))  # the findings name it

    def spread(self, sensor: Sensor[Any], count: int) -> Iterator[Any]:
        """Give about so many records of a sensor, evenly over the session's length."""
        if not len(sensor) or count < 1:
            return
        wanted = np.linspace(sensor.time.min(), sensor.time.max(), count)
        order = np.argsort(sensor.time, kind='stable')
        times = sensor.time[order]
        after = np.clip(np.searchsorted(times, wanted), 0, len(times) - 1)
        before = np.maximum(after - 1, 0)
        nearer = np.where(wanted - times[before] < times[after] - wanted, before, after)
        yield from sensor.at(order[np.unique(nearer)])

    def event_text(self, event: Event) -> str:
        """Return an event in a line."""
        if isinstance(event, Annotation):
            of = f' (of {event.stream_name})' if event.stream_name else ''
            return _cut(f'{event.key}: {event.value}{of}')
        told = ', '.join(f'{key}={_value(value)}' for key, value in event.properties.items())
        return _cut(f'{event.name} {told}'.rstrip())

    def region_text(self, region: Region) -> str:
        """Return a region in a line."""
        name = 'region' if region.index is None else f'region {region.index}'
        stop = self.end if region.stop is None else region.stop
        said = '; '.join(each for each in (region.start_text, region.stop_text) if each)
        line = f'{name}, {region.state.value}, {stop - region.start:.1f} s'
        return _cut(f'{line}: {said}' if said else line)


def _value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _cut(line: str) -> str:
    return line if len(line) <= _MOST_TEXT else f'{line[:_MOST_TEXT]}…'
