"""Pieces of HTML and SVG, escaped: what was recorded may hold anything."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

_STEPS = (1.0, 2.0, 5.0, 10.0)


def tag(name: str, *content: str, **attributes: object) -> str:
    """Return an element; an attribute's ``_`` is ``-``, its value None leaves it out, ``class_`` is ``class``.

    ``content`` is markup: text is to be escaped by :func:`text`.
    """
    said = ''.join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f'<{name}{said}>{"".join(content)}</{name}>'


def text(value: object) -> str:
    """Return text as markup; control characters are shown as such."""
    shown = ''.join(
        c if c.isprintable() or c == '\n' else c.encode('unicode_escape').decode()
        for c in str(value)
    )
    return html.escape(shown)


def table(rows: Iterable[Sequence[object]], *, head: Sequence[str] = (), class_: str = '') -> str:
    """Return a table of texts."""
    top = tag('thead', tag('tr', *(tag('th', text(each)) for each in head))) if head else ''
    body = (tag('tr', *(tag('td', text(cell)) for cell in row)) for row in rows)
    return tag('table', top, tag('tbody', *body), class_=class_ or None)


def embedded(name: str, value: object) -> str:
    """Return data for the page's script, which no text in it can end early."""
    data = json.dumps(value, separators=(',', ':'), allow_nan=False).replace('<', '\\u003c')
    return f'<script type="application/json" id="{html.escape(name)}">{data}</script>'


def plural(count: int, word: str) -> str:
    """Return ``1 frame`` or ``2 frames``."""
    return f'{count} {word}' if count == 1 else f'{count} {word}s'


def number(value: float) -> str:
    """Return a coordinate: two decimals, no trailing zeros."""
    shown = f'{value:.2f}'.rstrip('0').rstrip('.')
    return '0' if shown in ('-0', '') else shown


def polyline(points: NDArray[np.float64]) -> str:
    """Return the data of a path through points (N, 2)."""
    return 'M' + 'L'.join(f'{number(x)} {number(y)}' for x, y in points.tolist())


def dots(points: NDArray[np.float64]) -> str:
    """Return the data of a path that is a dot at each of the points (N, 2), with round line ends."""
    return ''.join(f'M{number(x)} {number(y)}h0' for x, y in points.tolist())


def round_step(span: float, about: int) -> float:
    """Return a round step (1, 2 or 5 times a power of ten) that divides a span into about so many."""
    if span <= 0 or not math.isfinite(span):
        return 1.0
    rough = span / about
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * step for step in _STEPS if power * step >= rough * 0.999)


def clock(seconds: float, *, tenths: bool = True) -> str:
    """Return a time since the start: ``1:02:03``, or ``0:05.2`` below ten minutes if ``tenths``."""
    sign = '-' if seconds < 0 else ''
    minutes, rest = divmod(round(abs(seconds), 6), 60)
    hours, minutes = divmod(int(minutes), 60)
    if hours:
        return f'{sign}{hours}:{minutes:02d}:{int(rest):02d}'
    if tenths and minutes < 10:
        return f'{sign}{minutes}:{int(rest * 10) / 10:04.1f}'
    return f'{sign}{minutes}:{int(rest):02d}'
