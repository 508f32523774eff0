"""The plan view: the path from above, with events, marked regions, and what lidars saw."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cognitive3d_ros.report.svg import clock, dots, number, polyline, round_step, tag, text
from cognitive3d_ros.report.view import View
from cognitive3d_ros.session.markers import Region
from cognitive3d_ros.session.records import LidarRecord
from cognitive3d_ros.session.verify import FAR_M

WIDTH: Final = 900
_LEAST_HEIGHT, _MOST_HEIGHT = 260, 700
_MARGIN: Final = 36
_LEAST_SPAN_M: Final = 2.0
_PATH_POINTS: Final = 4000
_SWEEPS, _SWEEP_POINTS = 60, 300
_EVENTS: Final = 400
_REGION_CLASSES: Final = 6


@dataclass(frozen=True)
class Scale:
    """Where metres of the reference frame are in the picture: x to the right, y up."""

    left: float
    top: float
    per_m: float
    height: float

    def __call__(self, xy: Any) -> NDArray[np.float64]:
        """Return where points (N, 2) or (N, 3) are."""
        points = np.asarray(xy, dtype=np.float64).reshape(-1, np.shape(xy)[-1])
        return np.stack(
            [
                _MARGIN + (points[:, 0] - self.left) * self.per_m,
                _MARGIN + (self.top - points[:, 1]) * self.per_m,
            ],
            axis=1,
        )


def fit(points: NDArray[np.float64]) -> Scale:
    """Return the scale in which points fill the picture."""
    low, high = points.min(axis=0)[:2], points.max(axis=0)[:2]
    middle, span = (low + high) / 2, np.maximum(high - low, _LEAST_SPAN_M) * 1.04
    per_m = min(
        (WIDTH - 2 * _MARGIN) / span[0],
        (_MOST_HEIGHT - 2 * _MARGIN) / span[1],
    )
    height = max(_LEAST_HEIGHT, span[1] * per_m + 2 * _MARGIN)
    left = middle[0] - (WIDTH - 2 * _MARGIN) / 2 / per_m
    top = middle[1] + (height - 2 * _MARGIN) / 2 / per_m
    return Scale(float(left), float(top), float(per_m), float(height))


def plan(view: View) -> tuple[str, dict[str, Any]]:
    """Return the picture, and where the robot was at which time for the page's script."""
    track = view.session.track
    known = np.flatnonzero((np.abs(track.p) <= FAR_M).all(axis=1))
    if not len(known):
        return tag('p', 'No pose was recorded.', class_='nothing'), {}
    times, path = track.time[known], view.position(track.p[known])
    seen = _seen(view)
    # What lidars saw may be far away: the picture is of the path, and some way around it.
    around = _near(path, seen)
    scale = fit(np.concatenate([path, around]))
    keep = _thinned(len(path))
    line = scale(path[keep])
    drawn = [
        _grid(scale),
        tag('path', class_='seen', d=dots(scale(around))) if len(around) else '',
        tag('path', class_='path', d=polyline(line)),
        *(_region(view, times, path, scale, each, n) for n, each in enumerate(view.regions)),
        _end(line[0], 'start', 'start'),
        _end(line[-1], 'end', 'end'),
        *_events(view, scale),
        tag('circle', class_='now', r=6),
    ]
    box = f'0 0 {WIDTH} {number(scale.height)}'
    picture = tag('svg', *drawn, viewBox=box, class_='plan', role='img', aria_label='plan view')
    seconds = np.round(times[keep] - view.start, 2)
    where = np.round(line, 1)
    return picture, {'t': seconds.tolist(), 'x': where[:, 0].tolist(), 'y': where[:, 1].tolist()}


def _thinned(count: int) -> NDArray[np.intp]:
    """Return indices of about so many samples as the eye can tell apart, both ends among them."""
    step = max(1, math.ceil(count / _PATH_POINTS))
    return np.unique(np.append(np.arange(0, count, step), count - 1))


def _seen(view: View) -> NDArray[np.float64]:
    """Return points that lidars saw, of sweeps all along the session, in the reference frame."""
    found = [np.empty((0, 3))]
    lidars = view.session.lidars
    for name in lidars:
        for record in view.spread(view.session.lidar(name), _SWEEPS // len(lidars)):
            assert isinstance(record, LidarRecord)
            points = view.points(record)
            found.append(points[:: max(1, len(points) // _SWEEP_POINTS)])
    return np.concatenate(found)


def _near(path: NDArray[np.float64], points: NDArray[np.float64]) -> NDArray[np.float64]:
    low, high = path.min(axis=0)[:2], path.max(axis=0)[:2]
    margin = max(3.0, float((high - low).max()) * 0.3)
    inside = np.all((points[:, :2] >= low - margin) & (points[:, :2] <= high + margin), axis=1)
    return points[inside]


def _grid(scale: Scale) -> str:
    """Return lines and numbers in metres."""
    right = scale.left + (WIDTH - 2 * _MARGIN) / scale.per_m
    bottom = scale.top - (scale.height - 2 * _MARGIN) / scale.per_m
    step = round_step(right - scale.left, 9)
    drawn = []
    low, high = _MARGIN, scale.height - _MARGIN
    for x in _steps(scale.left, right, step):
        at = scale([(x, 0.0)])[0][0]
        drawn.append(tag('line', x1=number(at), x2=number(at), y1=low, y2=number(high)))
        drawn.append(tag('text', text(f'{x:g}'), x=number(at), y=number(high + 16), class_='x'))
    for y in _steps(bottom, scale.top, step):
        at = scale([(0.0, y)])[0][1]
        drawn.append(tag('line', x1=_MARGIN, x2=WIDTH - _MARGIN, y1=number(at), y2=number(at)))
        drawn.append(tag('text', text(f'{y:g}'), x=_MARGIN - 6, y=number(at + 4), class_='y'))
    return tag('g', *drawn, class_='grid')


def _steps(low: float, high: float, step: float) -> list[float]:
    first = math.ceil(low / step)
    return [round(n * step, 9) for n in range(first, math.floor(high / step) + 1)]


def _region(
    view: View,
    times: NDArray[np.float64],
    path: NDArray[np.float64],
    scale: Scale,
    region: Region,
    order: int,
) -> str:
    stop = view.end if region.stop is None else region.stop
    within = np.flatnonzero((times >= region.start) & (times <= stop))
    if len(within) < 2:
        return ''
    line = scale(path[within[_thinned(len(within))]])
    return tag(
        'path',
        tag('title', text(view.region_text(region))),
        class_=f'region r{order % _REGION_CLASSES} {region.state.value}',
        d=polyline(line),
    )


def _end(at: NDArray[np.float64], class_: str, title: str) -> str:
    x, y = map(number, at)
    return tag('circle', tag('title', title), class_=class_, cx=x, cy=y, r=5)


def _events(view: View, scale: Scale) -> list[str]:
    placed: Sequence[Any] = [
        event
        for event in view.events
        if event.is_placed
        and event.name not in view.own_ends
        and max(map(abs, event.point)) <= FAR_M
    ][:_EVENTS]
    if not placed:
        return []
    where = scale(view.position([event.point for event in placed]))
    drawn = []
    for event, (x, y) in zip(placed, where.tolist(), strict=True):
        label = f'{view.event_text(event)} at {clock(event.time - view.start)}'
        title = tag('title', text(label))
        drawn.append(tag('circle', title, class_='event', cx=number(x), cy=number(y), r=4.5))
    return drawn
