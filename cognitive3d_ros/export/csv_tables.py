"""Tables as CSV files: ``<out>/<table>/device_id=<device>/session_id=<id>/data.csv``.

The first line names the columns. Times are UTC, ``2026-01-01T00:00:00.250000Z``; what is not known is empty.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from cognitive3d_ros.export.job import Job
from cognitive3d_ros.export.tabular import partition, table_rows
from cognitive3d_ros.session.tables import DOUBLE, FLOAT, HEAVY, TIME

_ROUNDED_BELOW = 2**53 / 1e9  # larger ones have no nine decimals


def export(job: Job, work: Path) -> None:
    """Write the tables that have rows, without the columns that no cell can hold."""
    absent = (
        'the scene' if not job.session.dynamics.manifest else "the scene, Dynamic Objects' names"
    )
    job.note(f'not in it: {absent}: parquet holds them')
    for table in table_rows(job):
        columns = {name: kind for name, kind in table.columns.items() if kind not in HEAVY}
        file = None
        try:
            for rows in table.batches():
                if file is None:
                    path = partition(job, work, table.name) / 'data.csv'
                    file = path.open('w', newline='', encoding='utf-8')
                    writer = csv.writer(file)
                    writer.writerow(columns)
                    if len(columns) < len(table.columns):
                        left_out = ', '.join(name for name in table.columns if name not in columns)
                        job.note(f'{table.name} without {left_out}: parquet holds them')
                cells = [_cells(rows[name], kind) for name, kind in columns.items()]
                writer.writerows(zip(*cells, strict=True))
        finally:
            if file is not None:
                file.close()


def _cells(values: Any, kind: str) -> Iterable[object]:
    """Return a column as csv takes it."""
    if kind == TIME:
        texts: list[object] = np.datetime_as_string(values, unit='us', timezone='UTC').tolist()
        if np.isnat(values).any():
            return ['' if text == 'NaT' else text for text in texts]
        return texts
    if kind in (DOUBLE, FLOAT):
        # Nine decimals of a rotation, or of a metre, and no digits that are only noise.
        exact = np.asarray(values, np.float64)
        small = np.where(np.abs(exact) < _ROUNDED_BELOW, exact, 0.0)
        rounded = np.where(small == exact, np.round(small, 9), exact)
        if np.isnan(rounded).any():
            return ['' if math.isnan(value) else repr(value) for value in rounded.tolist()]
        return rounded.tolist()  # type: ignore[no-any-return] # the writer's own text of a float is repr
    return values  # type: ignore[no-any-return]
