"""The kill campaign: a real node that records at full load is killed with -9 again and again.

``python test/campaign.py --rounds 200``. In each round a node is configured on the spool that the last one
left, while a robot publishes without a pause; at a random moment, of its start or of its recording, it is
killed. Its gateway is up, down or failing in every way meanwhile, and changes at random; what is behind that is
``c3d gateway``, which is killed with -9 too, at random moments and while it has a part in hand. When all rounds
are done what is left is drained, and the gateway's store is held against the robot's own log of what it
published, and a log of what of it came in at the node (campaign_node.py):

- of each session, all events, samples and pose ticks are stored, once and in order, but those that came in
  within the window before the kill, and after the begin of the last flush that returned;
- pictures and scans are numbered without a gap, once each, and what is missing at the end fits into one open
  part; what is missing between others was counted, by its reason;
- the parts of each stream are numbered from 1 without a gap; the session begins with its start, and ends as the
  recovery ends it: abnormalEnd, at its latest record; and c3d verify finds nothing that the logs do not
  explain;
- every part that was ever sent is in the gateway's store, whatever the answer was; one that it ever
  acknowledged, to the byte. (What a process has written outlives it; that it outlives a power cut too is the
  matter of test_power_cut.py.)

The window is that of the README: ``spool.flush_s`` (1 s), and for what has a pose 0.5 s of waiting for tf.
test_campaign_check.py shows that each of these faults would be found.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from pathlib import Path

from campaign_check import FLUSH_S, POSE_HZ, Comparison, Outcome, Round
from campaign_traffic import RAYS
from failing_front import Front
from node_rig import NodeProcess, until

HERE = Path(__file__).parent
C3D = (sys.executable, '-m', 'cognitive3d_ros.cli.main')
PARAMS = {
    'sample_rate_hz': POSE_HZ,
    'pose_convention': 'rep103',
    'reference_frames': ['map'],
    'spool.flush_s': FLUSH_S,
    'upload.enabled': True,
    'topics': ['count'],
    'topic.count.topic': '/count',
    'topic.count.rate_hz': 0.0,
    'cameras': ['front'],
    'camera.front.topic': '/image/compressed',
    'camera.front.rate_hz': 0.0,
    'lidars': ['top'],
    'lidar.top.topic': '/scan',
    'lidar.top.rate_hz': 0.0,
}


def kill_rounds(
    folder: Path,
    front: Front,
    gateway: Gateway,
    chance: random.Random,
    canary: Canary,
    rounds: int,
    limit_s: float,
):
    """Give the rounds as they are done; none is begun after ``limit_s``."""
    end_s = time.monotonic() + limit_s
    for number in range(rounds):
        if time.monotonic() > end_s:
            return
        front.set(chance.choice(Front.MODES))
        begin_ns = time.time_ns()
        home = folder / f'round-{number:03d}'
        node = NodeProcess(
            home,
            command=(str(HERE / 'campaign_node.py'),),
            environment={
                'C3D_CAMPAIGN_DOOR': str(home / 'door.txt'),
                **dds_profile('short_lease.xml'),
            },
            **PARAMS,
            gateway=front.url,
            **{'spool.dir': str(folder / 'spool')},
        )
        try:
            if chance.random() < 0.85:
                until(lambda node=node: 'started' in node.text, 60, what=f'a session: {node.log}')
                live_s = (
                    chance.uniform(5.5, 8) if chance.random() < 0.1 else chance.uniform(0.2, 4)
                )
            else:
                live_s = chance.uniform(0.1, 4)
            _live(front, gateway, chance, live_s)
            alive = node.process.poll() is None
            node.kill()
        finally:
            node.close()
        assert alive, f'the node of round {number} died by itself: {node.text}'
        started = re.findall(r'session (\S+) started', node.text)
        yield Round(
            begin_ns,
            node.killed_ns,
            started[0] if started else None,
            canary.worst_s(),
            home / 'door.txt',
        )


def _live(front: Front, gateway: Gateway, chance: random.Random, live_s: float) -> None:
    """Let so much time pass; the gateway may change meanwhile, or be killed."""
    end_s = time.monotonic() + live_s
    while (left_s := end_s - time.monotonic()) > 0:
        time.sleep(min(left_s, chance.uniform(0.3, 1.5)))
        if chance.random() < 0.3:
            front.set(chance.choice(Front.MODES))
        if chance.random() < 0.1:
            gateway.kill()


def dds_profile(name: str) -> dict[str, str]:
    """Return the environment that gives a process one of our profiles of Fast DDS, old or new."""
    profiles = ('FASTDDS_DEFAULT_PROFILES_FILE', 'FASTRTPS_DEFAULT_PROFILES_FILE')
    return dict.fromkeys(profiles, str(HERE / 'ros_env' / name))


class Gateway:
    """``c3d gateway`` in a process of its own, which is killed with -9 and started again."""

    def __init__(self, folder: Path) -> None:
        self.store, self._log = folder / 'store', folder / 'gateway.txt'
        with socket.create_server(('127.0.0.1', 0)) as free:
            self._port = free.getsockname()[1]
        self.url = f'http://127.0.0.1:{self._port}'
        self.kills = 0
        self.died = ''  # what it said before it ended by itself
        self._lock = threading.Lock()
        self._over = False
        self._start()

    def _start(self) -> None:
        command = (*C3D, 'gateway', '--store', str(self.store), '--port', str(self._port))
        with self._log.open('a') as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)

    def kill(self) -> None:
        with self._lock:
            if not self._over:
                self._end(signal.SIGKILL)
                self.kills += 1
                self._start()

    def up(self) -> None:
        """Wait until it serves."""
        until(self._answers, what=f'the gateway: {self._log}')

    def _answers(self) -> bool:
        assert self._process.poll() is None, self._log.read_text()
        with contextlib.suppress(OSError), socket.create_connection(('127.0.0.1', self._port), 1):
            return True
        return False

    def stop(self) -> None:
        with self._lock:
            self._over = True
            self._end(signal.SIGTERM)

    def _end(self, number: int) -> None:
        if self._process.poll() is not None:
            self.died = self._log.read_text()[-2000:]
        self._process.send_signal(number)
        self._process.wait(20)


class Killer:
    """Kills the gateway while it has a part in hand, now and then."""

    OFTEN = 0.1
    WITHIN_S = 0.02  # about what a part takes

    def __init__(self, front: Front, gateway: Gateway, chance: random.Random) -> None:
        self._front, self._gateway, self._chance = front, gateway, chance
        self.hit = 0
        front.on_pass = self._on_pass

    def _on_pass(self) -> None:
        if self._chance.random() < self.OFTEN:
            threading.Timer(self._chance.uniform(0, self.WITHIN_S), self._kill).start()

    def _kill(self) -> None:
        self.hit += self._front.in_hand > 0
        self._gateway.kill()


class Canary:
    """A thread that does what a flush does, and notes how long that takes on this machine.

    What it is held up by holds the node up too: others that keep the cores and the disk busy.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / 'canary'
        self._stop = threading.Event()
        self._noted: deque[tuple[float, float]] = deque(maxlen=1000)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        with self._file.open('wb', buffering=0) as file:
            begin_s = time.monotonic()
            while not self._stop.wait(0.1):
                file.write(bytes(4096))
                os.fdatasync(file.fileno())
                now_s = time.monotonic()
                self._noted.append((now_s, now_s - begin_s - 0.1))
                begin_s = now_s

    def worst_s(self) -> float:
        """Return the longest that it was held up in the last four seconds."""
        now_s = time.monotonic()
        return max((held_s for at_s, held_s in list(self._noted) if at_s > now_s - 4), default=0.0)

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()


class Robot:
    """The robot in a process of its own, and its log."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.log = folder / 'published.txt'
        command = [sys.executable, str(HERE / 'campaign_robot.py'), str(self.log), *arguments]
        # Of big messages the shared memory of the publisher must hold more than one.
        environment = {**os.environ, **dds_profile('fastdds_shm.xml')}
        self._process = subprocess.Popen(command, env=environment)

    def begin(self) -> None:
        until(lambda: self.log.exists() and self.log.stat().st_size > 1000, what='the robot')

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(20)
        self._process.kill()
        self._process.wait()


def run(folder: Path, *, rounds: int, seed: int, limit_s: float, slack_s: float) -> Outcome:
    """Run a campaign in a folder and return what it found."""
    chance, outcome = random.Random(seed), Outcome(seed)
    begin_s = time.monotonic()
    gateway = Gateway(folder)
    try:
        gateway.up()
        front, canary, robot = (
            Front(gateway.url, chance),
            Canary(folder),
            Robot(folder, '--rays', str(RAYS)),
        )
        killer = Killer(front, gateway, chance)
        try:
            robot.begin()
            for one in kill_rounds(folder, front, gateway, chance, canary, rounds, limit_s):
                outcome.rounds.append(one)
        finally:
            robot.stop()
            canary.stop()
            front.set('down')
        outcome.took_s = time.monotonic() - begin_s
        outcome.gateway_kills, outcome.gateway_hit = gateway.kills, killer.hit
        gateway.up()
        spool = str(folder / 'spool')
        drain = (*C3D, 'spool', 'drain', spool, '--gateway', gateway.url, '--timeout', '300')
        drained = subprocess.run(drain, capture_output=True, text=True)
    finally:
        gateway.stop()
    if gateway.died:
        outcome.problems.append(f'the gateway ended by itself: {gateway.died}')
    if drained.returncode != 0:
        outcome.problems.append(f'drain: {drained.returncode}: {drained.stdout}{drained.stderr}')
    spool = folder / 'spool'
    outcome.half_written = _half_written(spool)
    if left := [str(path) for path in spool.rglob('*.*') if path not in outcome.half_written]:
        outcome.problems.append(f'left in the spool: {left}')
    offered = dict(front.offered)
    numbered = os.environ.get('ROS_DISTRO') != 'humble'
    Comparison(gateway.store, robot.log, outcome, slack_s, offered, numbered=numbered).run()
    return outcome


def _half_written(spool: Path) -> set[Path]:
    """Return what was set aside because its process was killed while it wrote a part, and the reasons.

    It was no part yet: it has no number, and what was in it counts as lost at the kill.
    """
    found: set[Path] = set()
    for path in spool.glob('quarantine/*.tmp'):
        reason = path.with_name(f'{path.name}.reason.json')
        if 'the temporary file of a process that died: cut off' in reason.read_text():
            found |= {path, reason}
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--rounds', type=int, default=200)
    parser.add_argument('--seed', type=int, default=time.time_ns() % 10**6)
    parser.add_argument('--minutes', type=float, default=60.0, help='begin no round after these')
    parser.add_argument(
        '--slack', type=float, default=0.25, help='s beyond the window, for a busy machine'
    )
    parser.add_argument(
        '--folder', type=Path, help='keep everything there (default: nothing is kept)'
    )
    arguments = parser.parse_args()
    # As conftest.py does for the tests.
    os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'
    os.environ['ROS_DOMAIN_ID'] = str(1 + os.getpid() % 101)
    os.environ['ROS_PYTHON_CHECK_FIELDS'] = '1'
    print(f'seed {arguments.seed}', flush=True)
    with contextlib.ExitStack() as stack:
        folder = arguments.folder
        if folder is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        outcome = run(
            folder,
            rounds=arguments.rounds,
            seed=arguments.seed,
            limit_s=60 * arguments.minutes,
            slack_s=arguments.slack,
        )
    print(outcome)
    return 1 if outcome.problems else 0


if __name__ == '__main__':
    sys.exit(main())
