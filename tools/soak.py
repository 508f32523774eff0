"""Soak: a real node records at full load, session after session; memory, open files and threads must stay flat.

``python tools/soak.py --minutes 60``. The robot is that of test/campaign_robot.py (events, series, pictures,
scans), the gateway ``c3d gateway`` in a process of its own. Prints a line each half minute, and exits with 1
where anything grew, or was not delivered. What a busy machine drops is counted, and printed.

Memory is what a process has allocated, and what it maps of DDS's shared memory. The pages of libraries and
other files are left out: the system drops and reads them as it likes. It goes up and down with each part that
is put together, so medians are compared: of the tenth of the run after the first, when caches are full, and of
the last tenth.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / 'test'))

from campaign import C3D, PARAMS, Robot
from node_rig import NodeProcess, Peer, until

from cognitive3d_ros.session.session import open_session
from cognitive3d_ros.session.verify import Kind, verify

TENTH = 0.1
LEAST_S = 60.0  # of a tenth, where the run is short
GROWTH_MB = 5.0
MORE_FILES = 2
MORE_THREADS = {'node': 0, 'gateway': 8}
LINE_S = 30.0
LOOK_S = 0.5


class Held(NamedTuple):
    """What a process holds: memory, open files, threads, and the CPU time it has used."""

    memory_mb: float
    files: float
    threads: float
    cpu_s: float

    @classmethod
    def of(cls, pid: int) -> Held:
        """Look at a process."""
        process = Path('/proc', str(pid))
        said = dict(line.split(':', 1) for line in (process / 'status').read_text().splitlines())
        times = (process / 'stat').read_text().rpartition(')')[2].split()
        return cls(
            sum(int(said[name].split()[0]) for name in ('RssAnon', 'RssShmem')) * 1024 / 1e6,
            len(list((process / 'fd').iterdir())),
            int(said['Threads']),
            sum(map(int, times[11:13])) / os.sysconf('SC_CLK_TCK'),
        )

    def __str__(self) -> str:
        return (
            f'{self.memory_mb:7.1f} MB {self.files:4.0f} files {self.threads:3.0f} threads '
            f'{self.cpu_s:6.1f} s CPU'
        )


class Look(NamedTuple):
    """Both processes, some seconds after the begin."""

    at_s: float
    node: Held
    gateway: Held


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
            looks = _run(node, peer, gateway_pid, minutes, session_s)
            for name in ('node', 'gateway'):
                wrong += _grown(name, looks, minutes * 60)
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
) -> list[Look]:
    """Let it run, a new session each ``session_s``; return what was held all the while."""
    begin_s = time.monotonic()
    looks: list[Look] = []
    next_line_s, next_session_s = 0.0, session_s
    while (now_s := time.monotonic() - begin_s) < minutes * 60:
        time.sleep(LOOK_S)
        look = Look(now_s, Held.of(node.process.pid), Held.of(gateway_pid))
        looks.append(look)
        if now_s >= next_line_s:
            print(f'{now_s:6.0f} s  node {look.node}   gateway {look.gateway}', flush=True)
            next_line_s += LINE_S
        if now_s >= next_session_s:
            assert peer.start_session().success
            next_session_s += session_s
    return looks


def _grown(name: str, looks: Sequence[Look], length_s: float) -> list[str]:
    """Print what a process held when it had settled, and at last; return what has grown."""
    tenth_s = min(max(LEAST_S, TENTH * length_s), length_s / 3)
    first, last = (
        Held(*map(statistics.median, zip(*held, strict=True)))
        for held in (
            [getattr(look, name) for look in looks if tenth_s <= look.at_s < 2 * tenth_s],
            [getattr(look, name) for look in looks if look.at_s >= length_s - tenth_s],
        )
    )
    grown_mb = last.memory_mb - first.memory_mb
    print(f'{name}, medians of {tenth_s:.0f} s: settled {first}', f'last {last}', sep='\n    ')
    print(f'    {grown_mb:+.1f} MB')
    wrong = []
    if grown_mb > GROWTH_MB:
        wrong.append(f'{name}: {grown_mb:.1f} MB more memory')
    if last.files > first.files + MORE_FILES:
        wrong.append(f'{name}: {last.files:.0f} open files, {first.files:.0f} before')
    if last.threads > first.threads + MORE_THREADS[name]:
        wrong.append(f'{name}: {last.threads:.0f} threads, {first.threads:.0f} before')
    return wrong


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
    import conftest  # noqa: F401 - gives this process, and those it starts, a DDS domain of their own

    with tempfile.TemporaryDirectory() as folder:
        wrong = soak(Path(folder), arguments.minutes, arguments.session)
    print(*(wrong or ['nothing grew, all was delivered']), sep='\n')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
