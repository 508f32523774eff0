"""The reader and the exports: a session of a day opened, an hour of it exported against the bare writers."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
from mcap.writer import CompressionType, Writer

from bench import day
from bench.table import Pair, Row
from cognitive3d_ros import open_session
from cognitive3d_ros.export import export_session
from cognitive3d_ros.export.job import Job
from cognitive3d_ros.export.messages import RosMessages
from cognitive3d_ros.export.parquet import _TYPES
from cognitive3d_ros.session.tables import tables

ROUNDS = 3
DAY_H, EXPORT_H = 24.0, 0.5

# Each in a process of its own: what the first reader of a session waits for, and what it takes.
_OPEN = """
import sys, time
start_s = time.perf_counter()
from cognitive3d_ros import open_session
session = open_session(sys.argv[1])
session.poses[0]
print(time.perf_counter() - start_s)
"""
_FIND = """
import sys, time
from cognitive3d_ros import open_session
from cognitive3d_ros.session.records import PoseSample
start_s = time.perf_counter()
session = open_session(sys.argv[1])
found = session.find(PoseSample, session.start + 43_200, session.start + 43_260)
assert len(found) == 600
print(time.perf_counter() - start_s)
"""
_MEMORY = """
import resource, sys
from pathlib import Path
from cognitive3d_ros import open_session
from cognitive3d_ros.export import export_session
session = open_session(sys.argv[1])
export_session(session, 'mcap', Path(sys.argv[2]))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def _alone(code: str, *arguments: Path) -> float:
    command = [sys.executable, '-c', code, *map(str, arguments)]
    return float(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def _of_a_day(code: str) -> Callable[[], Iterator[Pair]]:
    def measure() -> Iterator[Pair]:
        with tempfile.TemporaryDirectory(dir=Path.cwd()) as name:
            day.make(Path(name), DAY_H)
            for _ in range(ROUNDS):
                yield _alone(code, Path(name)), 1.0

    return measure


def _memory() -> Iterator[Pair]:
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as name:
        day.make(Path(name) / 'store', 2.0)
        yield _alone(_MEMORY, Path(name) / 'store', Path(name) / 'out.mcap'), 1.0


def _exported(to: str, bare: Callable[[Any, Path], None]) -> Callable[[], Iterator[Pair]]:
    """Export; then write what was made of the session, which is ready in memory, by the bare library."""

    def measure() -> Iterator[Pair]:
        with tempfile.TemporaryDirectory(dir=Path.cwd()) as name:
            day.make(Path(name) / 'store', EXPORT_H)
            ready = _READY[to](open_session(Path(name) / 'store'))
            for number in range(ROUNDS):
                start_s = time.perf_counter()
                session = open_session(Path(name) / 'store')
                export_session(session, to, Path(name) / f'ours.{number}')
                ours_s = time.perf_counter() - start_s
                start_s = time.perf_counter()
                bare(ready, Path(name) / f'bare.{number}')
                yield ours_s, time.perf_counter() - start_s

    return measure


def _messages(session: Any) -> Any:
    made = RosMessages(Job(session, ''))
    return made.store, list(made.messages())


def _bare_mcap(ready: Any, path: Path) -> None:
    store, messages = ready
    with path.open('wb') as file:
        writer = Writer(file, compression=CompressionType.ZSTD)
        writer.start('ros2')
        channels: dict[Any, int] = {}
        for time_ns, topic, data in messages:
            if topic not in channels:
                text = store.generate_msgdef(topic.type, ros_version=2)[0].encode()
                schema = writer.register_schema(topic.type, 'ros2msg', text)
                channels[topic] = writer.register_channel(topic.name, 'cdr', schema)
            writer.add_message(channels[topic], time_ns, data, time_ns)
        writer.finish()


def _batches(session: Any) -> Any:
    made: dict[str, list[Any]] = {}
    for table in tables(session):
        for rows in table.batches():
            columns = {k: pyarrow.array(rows[k], type=_TYPES[v]) for k, v in table.columns.items()}
            made.setdefault(table.name, []).append(pyarrow.table(columns))
    return made


def _bare_parquet(ready: Any, path: Path) -> None:
    path.mkdir()
    for name, batches in ready.items():
        with pyarrow.parquet.ParquetWriter(
            path / f'{name}.parquet', batches[0].schema, compression='zstd'
        ) as writer:
            for each in batches:
                writer.write_table(each)


_READY: dict[str, Callable[[Any], Any]] = {'mcap': _messages, 'parquet': _batches}


def rows() -> list[Row]:
    """Return the rows of this module."""
    return [
        Row('reader: a day opened, and its first pose', '', 1.0, _of_a_day(_OPEN)),
        Row('reader: a minute of poses found in a day', '', 10.0, _of_a_day(_FIND)),
        Row('export: half an hour as MCAP', 'mcap.Writer', 3.0, _exported('mcap', _bare_mcap)),
        Row(
            'export: half an hour as Parquet',
            'pyarrow.parquet.ParquetWriter',
            20.0,
            _exported('parquet', _bare_parquet),
        ),
        Row('export: memory while two hours become MCAP', '', 400.0, _memory, 'MB'),
    ]
