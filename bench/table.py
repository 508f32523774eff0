"""What a row of the table is, and how it is measured.

A row is a ratio taken in one run on the machine at hand: ours against the bare library calls that no recorder
can do without, or against a peer, interleaved round by round. The table says the median ratio and its spread.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass

Pair = tuple[float, float]


@dataclass(frozen=True)
class Row:
    """One row: ``measure`` returns (ours, against) of each round, in one unit.

    ``at_most`` bounds the median ratio, or, where ``against`` is empty, the median of ours itself.
    """

    name: str
    against: str
    at_most: float
    measure: Callable[[], Iterable[Pair]]
    unit: str = 's'


def run(row: Row) -> str:
    """Measure a row and return its line of the table."""
    pairs = list(row.measure())
    ours = statistics.median(pair[0] for pair in pairs)
    figures = sorted(a / b if row.against else a for a, b in pairs)
    median = statistics.median(figures)
    verdict = 'ok' if median <= row.at_most else 'MISSED'
    spread = f'{median:.3f} ({figures[0]:.3f} to {figures[-1]:.3f}, {len(pairs)} rounds)'
    return f'| {row.name} | {row.against} | {ours:.4g} {row.unit} | {spread} | {row.at_most:g} | {verdict} |'


HEAD = '| row | against | ours, median | ratio, median (spread) | at most | |\n|---|---|---|---|---|---|'
