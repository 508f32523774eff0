"""A session without the records whose time a format cannot hold."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cognitive3d_ros.session.records import Annotation, Event
from cognitive3d_ros.session.sensors import CAMERA, LIDAR
from cognitive3d_ros.session.session import Session
from cognitive3d_ros.session.streams import Floats, Named


def within(session: Session, low: float, high: float, *, sensors: bool) -> tuple[Session, int]:
    """Return a session with its records of low <= time < high, and how many others there are.

    It is the session itself where there are none, as nearly always. ``sensors``: look at cameras and lidars
    too, which reads all their parts.
    """
    columns: dict[str, Any] = {'poses': session.poses, 'dynamics': session.dynamics}
    if sensors:
        columns |= {name: session.sensor_stream(name) for name in (CAMERA, LIDAR)}
    good = {name: _good(each.time, low, high) for name, each in columns.items()}
    good_events = _good(_event_times(session.events), low, high)
    good_samples = {n: _good(each.time, low, high) for n, each in session.series.items()}
    left_out = sum(int((~each).sum()) for each in (*good.values(), good_events))
    left_out += sum(int((~each).sum()) for each in good_samples.values())
    if not left_out:
        return session, 0
    events = tuple(e for e, keep in zip(session.events, good_events, strict=True) if keep)
    series = Named({name: each.only(good_samples[name]) for name, each in session.series.items()})
    kept = {name: each.only(good[name]) for name, each in columns.items()}
    return session.with_records(events=events, series=series, **kept), left_out


def _good(times: Floats, low: float, high: float) -> NDArray[np.bool_]:
    good: NDArray[np.bool_] = (times >= low) & (times < high)
    return good


def _event_times(events: tuple[Event, ...]) -> Floats:
    """Return the times of events; of an annotation that which is farther from the epoch: it is told by both."""
    return np.array(
        [
            max(event.annotation_time, event.time, key=abs)
            if isinstance(event, Annotation)
            else event.time
            for event in events
        ],
        np.float64,
    )
