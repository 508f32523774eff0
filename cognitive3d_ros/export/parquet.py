"""Tables as Parquet files, so that DuckDB, Spark, Dask and pyarrow query the sessions of a fleet in place.

``<out>/<table>/device_id=<device>/session_id=<id>/data.parquet``: the partitions are named as Hive does.
The files have no columns of these names: pyarrow refuses one of another type than it takes a folder's name for.
Which axes they are in, and the session's properties, stand in each file's metadata.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet

from cognitive3d_ros.export.job import Job
from cognitive3d_ros.export.tabular import partition, table_rows
from cognitive3d_ros.session import tables

_TYPES: Mapping[str, Any] = {
    tables.TIME: pyarrow.timestamp('us', tz='UTC'),
    tables.DOUBLE: pyarrow.float64(),
    tables.FLOAT: pyarrow.float32(),
    tables.INTEGER: pyarrow.int64(),
    tables.TEXT: pyarrow.string(),
    tables.BYTES: pyarrow.binary(),
    tables.FLOATS: pyarrow.list_(pyarrow.float32()),
    tables.OCTETS: pyarrow.list_(pyarrow.uint8()),
}


def export(job: Job, work: Path) -> None:
    """Write the tables that have rows."""
    session = job.session
    about = {
        'c3d.axes': 'REP-103',
        'c3d.reference_frame': str(session.properties.get('c3d.ros.reference_frame', '')),
        'c3d.session_id': session.id,
        'c3d.scene_id': session.scene_id,
        'c3d.scene_version': str(session.scene_version),
        'c3d.properties': json.dumps(dict(session.properties), ensure_ascii=False),
        **tables.object_facts(session),
    }
    if session.device_id.isdecimal():
        job.note(
            f'device_id={session.device_id} in the names of folders is a number to pyarrow and pandas, '
            'unless they are told that it is a text: README.md has how'
        )
    for table in table_rows(job):
        schema = pyarrow.schema(
            [(name, _TYPES[kind]) for name, kind in table.columns.items()], metadata=about
        )
        writer = None
        for rows in table.batches():
            if writer is None:
                path = partition(job, work, table.name) / 'data.parquet'
                writer = pyarrow.parquet.ParquetWriter(path, schema, compression='zstd')
            columns = [
                # What is not a number is not known, and no value.
                pyarrow.array(rows[name], type=_TYPES[kind], from_pandas=kind == tables.DOUBLE)
                for name, kind in table.columns.items()
            ]
            writer.write_table(pyarrow.Table.from_arrays(columns, schema=schema))
        if writer is not None:
            writer.close()
