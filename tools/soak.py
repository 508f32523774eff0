"""Soak: a real node records at full load, session after session; memory, open files and threads must stay flat.

``python tools/soak.py --minutes 60``. The robot is that of test/campaign_robot.py (events, series, pictures,
scans), the gateway ``c3d gateway`` in a process of its own. Prints a line each half minute, and exits with 1
where anything grew, or was not delivered. What a busy machine drops is counted, and printed.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / 'test'))
# As conftest.py does for the tests.
os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'
os.environ['ROS_DOMAIN_ID'] = str(1 + os.getpid() % 101)

from campaign import C3D, PARAMS, Robot
from node_rig import NodeProcess, Peer, until

from cognitive3d_ros.session.session import open_session
from cognitive3d_ros.session.verify import Kind, verify

SETTLED_S = (
    60.0  # or a tenth of the run: by then caches are full, and big parts have met at their worst
)
GROWTH_MB = 5.0
LINE_S = 30.0


@dataclass(frozen=True)
class Held:
    """What a process holds: resident memory, open files, threads, and the CPU time it has used."""

    rss_mb: float
    files: int
    threads: int
    cpu_s: float

    @classmethod
    def of(cls, pid: int) -> Held:
        """Look at a process."""
        process = Path('/proc', str(pid))
        pages = int((process / 'statm').read_text().split()[1])
        times = (process / 'stat').read_text().rpartition(')')[2].split()
        return cls(
            pages * resource.getpagesize() / 1e6,
            len(list((process / 'fd').iterdir())),
            len(list((process / 'task').iterdir())),
            sum(map(int, times[11:13])) / os.sysconf('SC_CLK_TCK'),
        )

    def __str__(self) -> str:
        return (
            f'{self.rss_mb:7.1f} MB {self.files:4d} files {self.threads:3d} threads '
            f'{self.cpu_s:6.1f} s CPU'
        )


@contextlib.contextmanager
def gateway(store: Path) -> Iterator[tuple[str, int]]:
    """Run a gateway; give its address and its process id."""
    command = [*C3D, 'gateway', '--store', str(store), '--port', '0']
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if match := re.search(rb'http://127\.0\.0\.1:\d+', line):
                    yield match.group().decode(), process.pid
                    break
        finally:
            process.terminate()
            process.communicate()


def soak(folder: Path, minutes: float, session_s: float) -> list[str]:
    """Run; return what was wrong."""
    wrong: list[str] = []
    with gateway(folder / 'store') as (url, gateway_pid):
        robot = Robot(folder)
        node = NodeProcess(folder, **PARAMS, gateway=url)
        peer = Peer()
        try:
            robot.begin()
            peer.active()
            before = _run(node, peer, gateway_pid, minutes, session_s)
            after = Held.of(node.process.pid), Held.of(gateway_pid)
            for name, first, last in zip(('node', 'gateway'), before, after, strict=True):
                grown_mb = last.rss_mb - first.rss_mb
                print(f'{name}: {grown_mb:+.1f} MB since it had settled; {last}')
                if grown_mb > GROWTH_MB:
                    wrong.append(f'{name}: {grown_mb:.1f} MB more memory')
                if name == 'node' and last.files > first.files + 2:
                    wrong.append(f'{name}: {last.files} open files, {first.files} before')
                if last.threads > first.threads + (8 if name == 'gateway' else 0):
                    wrong.append(f'{name}: {last.threads} threads, {first.threads} before')
            if node.stop() != 0:
                wrong.append('the node did not end with 0')
        finally:
            peer.close()
            node.close()
            robot.stop()
        parts = node.spool / 'sessions'
        with contextlib.suppress(AssertionError):
            until(lambda: not any(parts.iterdir()), 1)
        if left := [path.name for path in parts.iterdir()]:
            drained = subprocess.run([*C3D, 'spool', 'drain', str(node.spool), '--gateway', url])
            print(f'{len(left)} sessions were left to be drained: {drained.returncode}')
    return wrong + _verify(folder / 'store')


def _run(
    node: NodeProcess, peer: Peer, gateway_pid: int, minutes: float, session_s: float
) -> tuple[Held, Held]:
    """Let it run, a new session each ``session_s``; return what was held when it had settled."""
    begin_s = time.monotonic()
    settled: tuple[Held, Held] | None = None
    next_line_s, next_session_s = 0.0, session_s
    while (now_s := time.monotonic() - begin_s) < minutes * 60:
        time.sleep(0.5)
        held = Held.of(node.process.pid), Held.of(gateway_pid)
        if settled is None and now_s >= max(SETTLED_S, minutes * 6):
            settled = held
        if now_s >= next_line_s:
            print(f'{now_s:6.0f} s  node {held[0]}   gateway {held[1]}', flush=True)
            next_line_s += LINE_S
        if now_s >= next_session_s:
            assert peer.start_session().success
            next_session_s += session_s
    return settled or held


def _verify(store: Path) -> list[str]:
    """Return what is wrong with what was stored."""
    wrong: list[str] = []
    for folder in sorted((store / 'sessions').iterdir()):
        session = open_session(store, folder.name)
        rate_hz = len(session.poses) / session.duration
        print(
            f'{session.id}: {session.duration:.1f} s, {len(session.poses)} poses ({rate_hz:.2f} Hz), '
            f'{len(session.events)} events, {len(session.series["count"])} samples, '
            f'{len(session.camera("front"))} pictures, {len(session.lidar("top"))} scans'
        )
        for finding in verify(session):
            text = f'{session.id}: {finding.kind.value}: {finding.text}'
            if finding.kind is Kind.LOSS:
                print(text)  # by a machine that is too busy: counted, as it should be
            elif finding.kind is not Kind.NOTE:
                wrong.append(text)
    return wrong


def main() -> int:
    """Run the tool."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--minutes', type=float, default=60.0)
    parser.add_argument(
        '--session', type=float, default=60.0, help='length of a session in seconds'
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        wrong = soak(Path(folder), arguments.minutes, arguments.session)
    print(*(wrong or ['nothing grew, all was delivered']), sep='\n')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
