"""The reader and the exports: a day's session opened, half an hour of one exported against bare writers."""

from __future__ import annotations

import atexit
import functools
import gzip
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.csv
import pyarrow.parquet
from mcap.writer import CompressionType, Writer
from rosbags import rosbag2

from bench import day
from bench.table import Pair, Row
from cognitive3d_ros import open_session
from cognitive3d_ros.export import export_session
from cognitive3d_ros.export.job import Job
from cognitive3d_ros.export.kitti import matrices
from cognitive3d_ros.export.messages import RosMessages
from cognitive3d_ros.export.parquet import _TYPES
from cognitive3d_ros.export.ros import RosView
from cognitive3d_ros.session.tables import HEAVY, tables

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


@functools.cache
def _store() -> Path:
    """Return a store with the session that is exported; it is made once, and removed at the end."""
    folder = tempfile.TemporaryDirectory(dir=Path.cwd())
    atexit.register(folder.cleanup)
    day.make(Path(folder.name), EXPORT_H)
    return Path(folder.name)


def _exported(
    to: str, ready: Callable[[Any, Path], Any], bare: Callable[[Any, Path], None]
) -> Callable[[], Iterator[Pair]]:
    """Export; then write what was made of the session, which is ready in memory, by the bare library.

    ``ready`` takes the session, and what the first export has written.
    """

    def measure() -> Iterator[Pair]:
        store, made = _store(), None
        with tempfile.TemporaryDirectory(dir=Path.cwd()) as name:
            for number in range(ROUNDS):
                out = Path(name) / f'ours{number}.0.log'
                start_s = time.perf_counter()
                session = open_session(store)
                export_session(session, to, out)
                ours_s = time.perf_counter() - start_s
                if made is None:
                    made = ready(open_session(store), out)
                start_s = time.perf_counter()
                bare(made, Path(name) / f'bare{number}')
                yield ours_s, time.perf_counter() - start_s

    return measure


def _messages(session: Any, _: Path) -> Any:
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


def _bare_rosbag2(ready: Any, path: Path) -> None:
    store, messages = ready
    with rosbag2.Writer(path, version=8, storage_plugin=rosbag2.StoragePlugin.SQLITE3) as writer:
        connections: dict[Any, Any] = {}
        for time_ns, topic, data in messages:
            if topic not in connections:
                connections[topic] = writer.add_connection(topic.name, topic.type, typestore=store)
            writer.write(connections[topic], time_ns, data)


def _batches(session: Any, _: Path) -> Any:
    made: dict[str, list[Any]] = {}
    for table in tables(session, session.axes):
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


def _cells(session: Any, path: Path) -> Any:
    """Return the batches without what no cell can hold."""
    wanted = {
        table.name: [name for name, kind in table.columns.items() if kind not in HEAVY]
        for table in tables(session, session.axes)
    }
    batches = _batches(session, path).items()
    return {name: [each.select(wanted[name]) for each in some] for name, some in batches}


def _bare_csv(ready: Any, path: Path) -> None:
    path.mkdir()
    for name, batches in ready.items():
        with pyarrow.csv.CSVWriter(path / f'{name}.csv', batches[0].schema) as writer:
            for each in batches:
                writer.write_table(each)


def _path(session: Any, _: Path) -> Any:
    path = RosView(Job(session, '')).path()
    return np.column_stack([path.time_ns / 1e9, path.p, path.r])


def _bare_tum(ready: Any, path: Path) -> None:
    np.savetxt(path, ready, fmt='%.5f %.9g %.9g %.9g %.9f %.9f %.9f %.9f')


def _matrices(session: Any, _: Path) -> Any:
    path = RosView(Job(session, '')).path()
    return matrices(path.p, path.r).reshape(-1, 12)


def _bare_kitti(ready: Any, path: Path) -> None:
    np.savetxt(path, ready, fmt='%.9g')


def _log_bytes(_: Any, out: Path) -> Any:
    return out.read_bytes()


def _bare_log(ready: Any, path: Path) -> None:
    path.write_bytes(ready)


def _rawlog_bytes(_: Any, out: Path) -> Any:
    pictures = out.parent / f'{out.stem}_Images'
    return gzip.decompress(out.read_bytes()), [file.read_bytes() for file in pictures.iterdir()]


def _bare_rawlog(ready: Any, path: Path) -> None:
    objects, pictures = ready
    path.mkdir()
    with gzip.GzipFile(path / 'rawlog', 'wb', compresslevel=6) as file:
        file.write(objects)
    for number, data in enumerate(pictures):
        (path / f'{number}.jpg').write_bytes(data)


_EXPORTS: Mapping[
    str, tuple[str, float, Callable[[Any, Path], Any], Callable[[Any, Path], None]]
] = {
    'mcap': ('mcap.Writer', 3.0, _messages, _bare_mcap),
    'rosbag2': ('rosbags.rosbag2.Writer', 4.0, _messages, _bare_rosbag2),
    'parquet': ('pyarrow.parquet.ParquetWriter', 20.0, _batches, _bare_parquet),
    'csv': ('pyarrow.csv.CSVWriter', 10.0, _cells, _bare_csv),
    'tum': ('numpy.savetxt', 10.0, _path, _bare_tum),
    'kitti': ('numpy.savetxt', 10.0, _matrices, _bare_kitti),
    'rawlog': ('gzip, and plain writes of pictures', 12.0, _rawlog_bytes, _bare_rawlog),
    'pocolog': ('a plain write', 300.0, _log_bytes, _bare_log),
}
"""The bare writer of each format, the bound of its row, what makes ready what it writes, and it.

What the bare writers are given is in memory; we read it: half of the time and more goes into that.
"""


def rows() -> list[Row]:
    """Return the rows of this module."""
    return [
        Row('reader: a day opened, and its first pose', '', 1.0, _of_a_day(_OPEN)),
        Row('reader: a minute of poses found in a day', '', 1.0, _of_a_day(_FIND)),
        *(
            Row(f'export: half an hour as {to}', against, at_most, _exported(to, ready, bare))
            for to, (against, at_most, ready, bare) in _EXPORTS.items()
        ),
        Row('export: memory while two hours become MCAP', '', 400.0, _memory, 'MB'),
    ]
