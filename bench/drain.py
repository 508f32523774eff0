"""How fast a backlog drains: one robot, and four at once, to one gateway; each in a process of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.table import Pair, Row
from bench.upload import KEY, PARTS, gateway, parts_of_session
from cognitive3d_ros.wire.framing import frame, part_name

ROBOTS = 4
ROUNDS = 7

_ROBOT = """
import sys, time
from cognitive3d_ros.counters import Ledger
from cognitive3d_ros.log import StderrLog
from cognitive3d_ros.spool import Spool
from cognitive3d_ros.upload.transport import RequestsTransport
from cognitive3d_ros.upload.uploader import Uploader
folder, url, key = sys.argv[1:]
ledger, transport = Ledger(), RequestsTransport()
spool = Spool.open(folder, ledger=ledger)
log = StderrLog()
uploader = Uploader(
    gateway=url, spool=spool, transport=transport, key=lambda: key, ledger=ledger, log=log
)
print('ready', flush=True)
sys.stdin.readline()
start_s = time.monotonic()
assert uploader.drain(60)
print(time.monotonic() - start_s)
"""


def _fill(folder: Path, second: int) -> None:
    for header, body in parts_of_session(second):
        session = folder / 'sessions' / header.identity.session_id
        session.mkdir(parents=True, exist_ok=True)
        name = part_name(header.stream, header.number, header.klass)
        (session / name).write_bytes(b''.join(frame(header, body)))


def drain(url: str, robots: int, second: int) -> float:
    """Let so many robots drain a hundred parts each, at once; return seconds for each part."""
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as name:
        processes = []
        for index in range(robots):
            folder = Path(name, str(index))
            _fill(folder, second + index)
            processes.append(
                subprocess.Popen(
                    [sys.executable, '-c', _ROBOT, str(folder), url, KEY],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == 'ready\n'
        for process in processes:
            assert process.stdin is not None
            process.stdin.write('go\n')
            process.stdin.flush()
        took_s = [float(process.communicate()[0]) for process in processes]
        return max(took_s) / (robots * PARTS)


def _measured() -> Iterator[tuple[float, float]]:
    """Give the milliseconds that a part takes with one robot, and with four."""
    store = Path(tempfile.mkdtemp(dir=Path.cwd()))
    try:
        with gateway(store) as url:
            for turn in range(ROUNDS + 1):
                second = 1_767_225_600 + turn * (ROBOTS + 1)
                one = drain(url, 1, second) * 1000
                four = drain(url, ROBOTS, second + 1) * 1000
                if turn:  # the first one warms up
                    yield one, four
    finally:
        shutil.rmtree(store)


def rows() -> list[Row]:
    """Return the rows of one and of four robots."""
    found: list[tuple[float, float]] = []

    def one() -> Iterator[Pair]:
        found.extend(_measured())
        return ((alone, 0.0) for alone, _ in found)

    def four() -> Iterator[Pair]:
        return ((together, alone) for alone, together in found)

    return [
        Row('drain: a part of 100 KB, one robot to one gateway', '', 25.0, one, 'ms'),
        Row('drain: the same, four robots at once', 'one robot', 1.0, four, 'ms'),
    ]
