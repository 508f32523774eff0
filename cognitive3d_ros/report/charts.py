"""Series over time, and the lanes of regions and events above them."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cognitive3d_ros.report.svg import clock, number, plural, polyline, round_step, tag, text
from cognitive3d_ros.report.view import View
from cognitive3d_ros.session.streams import HEALTH_PREFIX, Series

WIDTH: Final = 900
_HEIGHT: Final = 56
_PAD: Final = 4
_BINS: Final = 450
_MOST_SERIES: Final = 120
_LARGE: Final = 1e300
_MOST_LANES: Final = 12
_LANE: Final = 18
_DOT_ROW: Final = 22
_AXIS: Final = 20
_REGION_CLASSES: Final = 6


def lanes(view: View) -> str:
    """Return the axis of time, with a dot for each event and a bar for each region."""
    drawn = [_axis(view)]
    for event in view.events:
        x = _x(view, np.array([event.time]))[0]
        label = f'{view.event_text(event)} at {clock(event.time - view.start)}'
        own = ' own' if event.name in view.own_ends else ''
        title = tag('title', text(label))
        y = _AXIS + _DOT_ROW / 2
        drawn.append(tag('circle', title, class_=f'event{own}', cx=number(x), cy=y, r=4.5))
    top = _AXIS + _DOT_ROW
    for order, region in enumerate(view.regions[:_MOST_LANES]):
        stop = view.end if region.stop is None else region.stop
        left, right = _x(view, np.array([region.start, stop]))
        y = top + order * _LANE
        drawn.append(
            tag(
                'rect',
                tag('title', text(view.region_text(region))),
                class_=f'region r{order % _REGION_CLASSES} {region.state.value}',
                x=number(left),
                y=y + 3,
                width=number(max(2.0, right - left)),
                height=_LANE - 6,
                rx=2,
            )
        )
        name = region.start_text or ('' if region.index is None else f'region {region.index}')
        after = right + 5 if right < WIDTH * 0.8 else left - 5
        anchor = 'start' if right < WIDTH * 0.8 else 'end'
        drawn.append(tag('text', text(name[:60]), x=number(after), y=y + 13, text_anchor=anchor))
    height = top + len(view.regions[:_MOST_LANES]) * _LANE + 4
    return tag('svg', *drawn, viewBox=f'0 0 {WIDTH} {height}', class_='lanes time')


def charts(view: View) -> str:
    """Return a chart of each series but the recorder's own, the first of very many."""
    mine = [s for s in view.session.series.values() if not s.name.startswith(HEALTH_PREFIX)]
    if not mine:
        return tag('p', 'No series was recorded.', class_='nothing')
    drawn = [_chart(view, series) for series in mine[:_MOST_SERIES]]
    if len(mine) > _MOST_SERIES:
        drawn.append(tag('p', f'{len(mine) - _MOST_SERIES} more series are not shown.'))
    return ''.join(drawn)


def _chart(view: View, series: Series) -> str:
    order = np.argsort(series.time, kind='stable')
    times, values = series.time[order], series.value[order]
    low, high = float(values.min()), float(values.max())
    head = tag(
        'figcaption',
        tag('b', text(series.name)),
        tag(
            'span',
            text(f'{low:.6g} … {high:.6g}, mean {values.mean():.5g}, last {values[-1]:.6g}'),
        ),
        tag('span', plural(len(series), 'sample'), class_='count'),
    )
    # In a scale in which no difference is infinite.
    scale = max(1.0, -low / _LARGE, high / _LARGE)
    low, high = low / scale, high / scale
    x, y = _outline(_x(view, times), values / scale)
    span = high - low or 1.0
    at = _PAD + (high - y) / span * (_HEIGHT - 2 * _PAD) if high > low else np.full(len(y), 28.0)
    line = polyline(np.stack([x, at], axis=1))
    if len(x) == 1:
        line += 'h0'
    picture = tag(
        'svg',
        tag('path', d=line),
        viewBox=f'0 0 {WIDTH} {_HEIGHT}',
        preserveAspectRatio='none',
        class_='chart time',
    )
    return tag('figure', head, picture)


def _outline(
    x: NDArray[np.float64], values: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return a line with every peak of the series in it, but no more points than can be told apart."""
    if len(x) <= 2 * _BINS:
        return x, values
    edges = np.unique(np.linspace(0, len(x), _BINS + 1).astype(int)[:-1])
    low, high = np.minimum.reduceat(values, edges), np.maximum.reduceat(values, edges)
    return np.repeat(x[edges], 2), np.stack([low, high], axis=1).ravel()


def _axis(view: View) -> str:
    length = view.end - view.start
    step = _time_step(length)
    drawn = []
    for n in range(math.floor(length / step) + 1 if length > 0 else 1):
        at = float(_x(view, np.array([view.start + n * step]))[0])
        x = number(at)
        drawn.append(tag('line', x1=x, x2=x, y1=_AXIS - 5, y2=_AXIS))
        anchor = 'start' if n == 0 else 'end' if at > WIDTH - 20 else 'middle'
        label = clock(n * step, tenths=step < 1)
        drawn.append(tag('text', label, x=x, y=_AXIS - 8, text_anchor=anchor))
    return tag('g', *drawn, class_='axis')


def _time_step(length: float) -> float:
    for step in (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400):
        if length / step <= 10:
            return float(step)
    return round_step(length, 8)


def _x(view: View, times: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return where times are, in the width of all charts."""
    length = max(view.end - view.start, 1e-3)
    return np.clip((times - view.start) / length, 0, 1) * WIDTH
