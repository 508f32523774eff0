"""The spool: durable parts against plain calls, and how long 50,000 parts take to open."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.table import Pair, Row
from cognitive3d_ros.spool.fs import REAL_FS
from cognitive3d_ros.spool.parts import write_part
from cognitive3d_ros.wire.framing import PartHeader, frame, part_name
from cognitive3d_ros.wire.identity import SessionIdentity

ROUNDS = 200
PART_BYTES = 1_000_000
SESSIONS, PARTS = 50, 1000
SCENE = '5b2a1f4e-0c9d-4e8a-9a53-0f6d1c2b3a4d'


def _header(second: int, number: int) -> PartHeader:
    identity = SessionIdentity(f'{second}_bench', 'bench', SCENE, 3, '1.0.0', second * 10**9, 0.1)
    return PartHeader(identity, 'gaze', number, 'pose', number, 'application/json')


def durable() -> Iterator[Pair]:
    """Write a part as the spool does; then write, sync, rename and sync the folder in plain calls."""
    body = os.urandom(PART_BYTES)
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as name:
        folder = Path(name)
        directory = os.open(folder, os.O_RDONLY)
        for number in range(1, ROUNDS + 10):
            header = _header(1, number)

            def ours(header: PartHeader = header) -> None:
                write_part(REAL_FS, folder, header, body)

            def plain(number: int = number) -> None:
                temporary, final = folder / f'{number}.tmp', folder / f'{number}.bin'
                fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
                os.write(fd, body)
                os.fsync(fd)
                os.close(fd)
                os.rename(temporary, final)  # noqa: PTH104 - the bare call
                os.fsync(directory)

            took_s = {}
            for work in (ours, plain) if number % 2 else (plain, ours):
                start_s = time.perf_counter()
                work()
                took_s[work] = time.perf_counter() - start_s
            if number >= 10:
                yield took_s[ours], took_s[plain]
            (folder / part_name('gaze', number, 'pose')).unlink()
            (folder / f'{number}.bin').unlink()
        os.close(directory)


_OPEN = """
import resource, sys, time
from cognitive3d_ros.spool import Spool
def rss_mb():
    with open('/proc/self/statm') as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 1e6
before_mb, start_s = rss_mb(), time.perf_counter()
spool = Spool.open(sys.argv[1])
took_s = time.perf_counter() - start_s
print(took_s, rss_mb() - before_mb, spool.usage().parts)
"""


def _opened(parts: int) -> Iterator[tuple[float, float]]:
    """Open a spool of so many parts in a process of its own; give seconds and megabytes."""
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as name:
        for second in range(1, SESSIONS + 1):
            folder = Path(name, 'sessions', f'{second}_bench')
            folder.mkdir(parents=True)
            for number in range(1, parts // SESSIONS + 1):
                pieces = frame(_header(second, number), b'{}')
                (folder / part_name('gaze', number, 'pose')).write_bytes(b''.join(pieces))
        for _ in range(5):
            done = subprocess.run(
                [sys.executable, '-c', _OPEN, name], capture_output=True, text=True, check=True
            )
            took_s, grown_mb, found = done.stdout.split()
            assert int(found) == parts
            yield float(took_s), float(grown_mb)


def rows() -> list[Row]:
    """Return the rows of the spool."""
    opened: list[tuple[float, float]] = []

    def times() -> Iterator[Pair]:
        opened.extend(_opened(SESSIONS * PARTS))
        return ((took_s, 0.0) for took_s, _ in opened)

    def memory() -> Iterator[Pair]:
        return ((grown_mb, 0.0) for _, grown_mb in opened)

    return [
        Row(
            'spool: durable parts of 1 MB, checksummed',
            'write, fsync, rename, fsync of the folder',
            1.10,
            durable,
        ),
        Row('spool: 50,000 parts, time to open', '', 2.0, times),
        Row('spool: 50,000 parts, memory', '', 20.0, memory, 'MB'),
    ]
