"""Series: what the gate costs, what an hour takes on the disk, and a robot that says everything at once.

The live row is 100 topics of 10 numbers at 50 Hz each for a minute, every message wanted, beside tf at 100 Hz:
one process publishes, the recorder node is another one.
"""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from bench.table import Pair, Row
from cognitive3d_ros import open_session
from cognitive3d_ros.clock import ManualClocks
from cognitive3d_ros.counters import Ledger
from cognitive3d_ros.log import Complaints
from cognitive3d_ros.parameters import parse
from cognitive3d_ros.recording.accounts import adds_up
from cognitive3d_ros.recording.inputs import Publication
from cognitive3d_ros.recording.recorder import Host, Recorder
from cognitive3d_ros.recording.registry import inputs_of
from cognitive3d_ros.spool import Spool, SpoolLimits
from cognitive3d_ros.tf import TransformBuffer

S = 10**9
WALL_NS = 1_767_225_600 * S
TYPE = 'std_msgs/msg/Float64MultiArray'
TOPICS, FIELDS, HZ, SECONDS = 100, 10, 50, 60
NODE = 'cognitive3d'


class _Silent:
    def info(self, text: str) -> None: ...
    def warning(self, text: str) -> None: ...
    def error(self, text: str) -> None: ...


def parameters(topics: int, fields: int, rate_hz: float, spool: str) -> dict[str, object]:
    """Return the parameters of so many topics of so many series."""
    names = [f't{n}' for n in range(topics)]
    return {
        'device_id': 'bench',
        'scene_id': 'bench',
        'scene_version': 1,
        'spool.dir': spool,
        'spool.min_free_bytes': 0,
        'upload.enabled': False,
        'reference_frames': ['odom'],
        'pose_convention': 'rep103',
        'topics': names,
        **{f'topic.{name}.topic': f'/bench/{name}' for name in names},
        **{f'topic.{name}.rate_hz': rate_hz for name in names},
        **{f'topic.{name}.fields': [f'data.{n}' for n in range(fields)] for name in names},
    }


class Recording:
    """A recorder in this process, fed by hand."""

    def __init__(self, folder: str, topics: int, fields: int, rate_hz: float) -> None:
        self.folder = Path(folder)
        config = parse(parameters(topics, fields, rate_hz, folder))
        self.clocks = ManualClocks(WALL_NS, 0, WALL_NS)
        ledger = Ledger()
        self.spool = Spool.open(self.folder, ledger=ledger, limits=SpoolLimits(1 << 40, 0))
        self.recorder = Recorder(
            config,
            spool=self.spool,
            clocks=self.clocks,
            transforms=TransformBuffer(),
            ledger=ledger,
            host=Host(),
            log=_Silent(),
            live=False,
        )
        self.inputs = inputs_of(
            config, self.recorder, ledger, Complaints(_Silent()), node='cognitive3d'
        )
        for each in self.inputs:
            each.found(Publication(each.topic, TYPE))
        self.recorder.start_session()

    def send(self, messages: list[SimpleNamespace], period_ns: int) -> None:
        """Send a message on each topic, and let time pass."""
        for each, message in zip(self.inputs, messages, strict=True):
            arrival = each.due()
            if arrival is not None:
                each.take(message, arrival)
        self.clocks.advance(period_ns)

    def end(self) -> int:
        """End the session; return the bytes of its series on the disk."""
        self.recorder.end_session('bench')
        self.recorder.close()
        self.spool.close()
        return sum(path.stat().st_size for path in self.folder.rglob('*.series.c3d'))


def waves(topics: int, fields: int, step: int) -> list[SimpleNamespace]:
    """Return messages whose values all differ from those of the step before by more than 0.001."""
    values = [round(10 * math.sin(step * 0.37 + field), 6) for field in range(fields)]
    return [SimpleNamespace(data=values)] * topics


def gated(*, moving: bool) -> Iterator[Pair]:
    """Give the CPU seconds that a million samples cost, from a message to its entry in memory."""
    messages, samples = 2_000, 100 * FIELDS
    for _ in range(3):
        with tempfile.TemporaryDirectory() as folder:
            recording = Recording(folder, TOPICS, FIELDS, 0.0)
            sent = [waves(TOPICS, FIELDS, step if moving else 0) for step in range(50)]
            cpu_s = 0.0
            for step in range(messages // 10):
                before_s = time.process_time()
                recording.send(sent[step % 50], S // HZ)
                cpu_s += time.process_time() - before_s
                if step % HZ == 0:
                    recording.recorder.flush()
            recording.end()
        yield cpu_s / (messages // 10 * samples) * 1e6, 1.0


def hour(*, moving: bool, rate_hz: float) -> Iterator[Pair]:
    """Give the megabytes that 50 series at 50 Hz take on the disk in an hour."""
    minutes = 3
    with tempfile.TemporaryDirectory() as folder:
        recording = Recording(folder, 50, 1, rate_hz)
        for step in range(minutes * 60 * HZ):
            recording.send(waves(50, 1, step if moving else 0), S // HZ)
            if step % HZ == 0:
                recording.recorder.flush()
        yield recording.end() * 60 / minutes / 1e6, 1.0


# Live


def publish(topics: int, seconds: int, *, wait: bool) -> None:
    """Publish topics of 10 numbers at 50 Hz and tf at 100 Hz, the robot going along x with 1 m/s.

    ``wait``: not before somebody listens to all of them.
    """
    import rclpy
    from geometry_msgs.msg import TransformStamped
    from rclpy.qos import QoSProfile
    from std_msgs.msg import Float64MultiArray
    from tf2_msgs.msg import TFMessage

    rclpy.init()
    node = rclpy.create_node('bench_robot')
    qos = QoSProfile(depth=100)
    publishers = [
        node.create_publisher(Float64MultiArray, f'/bench/t{n}', qos) for n in range(topics)
    ]
    tf = node.create_publisher(TFMessage, '/tf', qos)
    transform = TransformStamped(child_frame_id='base_link')
    transform.header.frame_id = 'odom'
    transform.transform.rotation.w = 1.0
    message = Float64MultiArray(data=[0.0] * FIELDS)
    print('ready', flush=True)
    while wait and not all(each.get_subscription_count() for each in [*publishers, tf]):
        time.sleep(0.01)
    began, count, late_s = time.monotonic(), 0, 0.0
    first_s = time.time()
    for step in range(2 * HZ * seconds):
        due = began + step / (2 * HZ)
        time.sleep(max(0.0, due - time.monotonic()))
        late_s = max(late_s, time.monotonic() - due)
        now_ns = time.time_ns()
        transform.header.stamp.sec, transform.header.stamp.nanosec = divmod(now_ns, S)
        transform.transform.translation.x = now_ns / S - first_s
        tf.publish(TFMessage(transforms=[transform]))
        if step % 2 == 0:
            message.data = waves(1, FIELDS, step)[0].data
        for each in publishers[step % 2 :: 2]:
            each.publish(message)
            count += 1
    told = {'published': count, 'first_s': first_s, 'late_ms': late_s * 1000}
    print(json.dumps(told), flush=True)
    sys.stdin.readline()  # what was sent last has still to arrive
    rclpy.try_shutdown()


class Live:
    """A robot and a recorder node in processes of their own, in a folder for the spool."""

    def __init__(self, folder: str, topics: int, seconds: int, *, wait: bool) -> None:
        import yaml

        environment = {**os.environ, 'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST'}
        environment['ROS_DOMAIN_ID'] = str(1 + os.getpid() % 101)
        self.spool = Path(folder, 'spool')
        given = parameters(topics, FIELDS, 0.0, str(self.spool))
        params = Path(folder, 'params.yaml')
        params.write_text(yaml.safe_dump({'/**': {'ros__parameters': given}}))
        words = ['-m', 'bench.series', 'publish', str(topics), str(seconds), str(wait)]
        self.robot = subprocess.Popen(
            [sys.executable, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        assert self.robot.stdout is not None
        self.robot.stdout.readline()  # it is ready
        words = ['-m', 'cognitive3d_ros.node.main', '--ros-args', '--params-file', str(params)]
        self.recorder = subprocess.Popen(
            [sys.executable, *words], env=environment, stderr=subprocess.PIPE, text=True
        )

    def end(self) -> dict[str, float]:
        """Return what the robot says it has done, once both have ended."""
        assert self.robot.stdout is not None
        said = json.loads(self.robot.stdout.readline())
        time.sleep(1)
        self.recorder.send_signal(signal.SIGTERM)
        _, log = self.recorder.communicate()
        self.robot.communicate('end\n')
        assert self.recorder.returncode == 0, log
        return dict(said)

    def wait_for_session(self) -> None:
        """Wait until a session has been started."""
        end_s = time.monotonic() + 60
        while not list(self.spool.glob('sessions/*/journal')):
            assert time.monotonic() < end_s, 'no session was started'
            time.sleep(0.05)

    def cpu_s(self) -> float:
        """Return the CPU time that the recorder has taken."""
        fields = Path(f'/proc/{self.recorder.pid}/stat').read_text().rpartition(')')[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')

    def resident_mb(self) -> float:
        """Return how much memory it has."""
        text = Path(f'/proc/{self.recorder.pid}/status').read_text()
        return int(text.partition('VmRSS:')[2].split()[0]) / 1024


def minute() -> dict[str, float]:
    """Record everything for a minute; return what it took and what came of it."""
    with tempfile.TemporaryDirectory() as folder:
        live = Live(folder, TOPICS, SECONDS, wait=True)
        live.wait_for_session()
        time.sleep(20)  # until memory has settled
        cpu_s, memory_mb, began_s = live.cpu_s(), live.resident_mb(), time.monotonic()
        time.sleep(SECONDS - 25)
        took_s = time.monotonic() - began_s
        cpu_s, memory_mb = live.cpu_s() - cpu_s, live.resident_mb() - memory_mb
        said = live.end()
        return {
            'cpu_s': cpu_s / took_s * 60,
            'growth_mb': memory_mb,
            'robot_late_ms': said['late_ms'],
            **_found(live.spool, said),
        }


def _found(spool: Path, said: dict[str, float]) -> dict[str, float]:
    """Return what the session holds: messages, samples, and how far poses are from where the robot was."""
    session = open_session(spool)
    texts = [str(v) for k, v in session.properties.items() if k.startswith('c3d.account.')]
    assert all(adds_up(text) and 'dropped' not in text for text in texts)
    times, xs = session.poses.time, session.poses.p[:, 0]
    inside = (times > said['first_s'] + 1) & (times < said['first_s'] + SECONDS - 1)
    off_ms = np.abs(times[inside] - said['first_s'] - xs[inside]) * 1000
    return {
        'lost': said['published'] - sum(int(text.split()[0]) for text in texts),
        'samples': sum(len(s) for n, s in session.series.items() if not n.startswith('c3d.')),
        'poses_missing': 10 * (SECONDS - 2) - int(inside.sum()),
        'poses_off_percent': float((off_ms > 10).mean() * 100),
        'pose_off_ms': float(off_ms.max()),
    }


def first_sample() -> Iterator[Pair]:
    """Give the seconds from the session's start to the first sample of a topic that was there before."""
    for _ in range(5):
        with tempfile.TemporaryDirectory() as folder:
            live = Live(folder, 1, 8, wait=False)
            live.end()
            session = open_session(live.spool)
            yield float(session.series['bench.t0.data.0'].time[0]) - session.start, 1.0


_MINUTE: dict[str, float] = {}


def figure(name: str) -> Iterator[Pair]:
    """Give one figure of the minute, which is recorded once."""
    if not _MINUTE:
        _MINUTE.update(minute())
        print({key: round(value, 3) for key, value in _MINUTE.items()}, file=sys.stderr)
    yield _MINUTE[name], 1.0


def rows() -> list[Row]:
    """Return the rows of the series."""
    moving = 'series: an hour of 50 at 50 Hz'
    live = 'series: 1,000 at 50 Hz, a minute live'
    return [
        Row('series: a million samples, all stored', '', 4.0, lambda: gated(moving=True), 'CPU s'),
        Row('series: a million samples, all gated', '', 2.0, lambda: gated(moving=False), 'CPU s'),
        Row(
            f'{moving}, all move, all taken', '', 300, lambda: hour(moving=True, rate_hz=0.0), 'MB'
        ),
        Row(
            f'{moving}, all move, 10 Hz taken',
            '',
            60,
            lambda: hour(moving=True, rate_hz=10.0),
            'MB',
        ),
        Row(f'{moving}, all stand still', '', 3, lambda: hour(moving=False, rate_hz=10.0), 'MB'),
        Row(live, '', 60, lambda: figure('cpu_s'), 'CPU s'),
        Row(f'{live}: growth of memory', '', 5, lambda: figure('growth_mb'), 'MB'),
        Row(f'{live}: messages lost', '', 0, lambda: figure('lost'), ''),
        Row(f'{live}: poses more than 10 ms off', '', 1, lambda: figure('poses_off_percent'), '%'),
        Row(f'{live}: poses missing', '', 0, lambda: figure('poses_missing'), ''),
        Row(
            'series: from start to first sample (DDS finds others within 3 s)',
            '',
            3.5,
            first_sample,
        ),
    ]


if __name__ == '__main__' and sys.argv[1:2] == ['publish']:
    publish(int(sys.argv[2]), int(sys.argv[3]), wait=sys.argv[4] == 'True')
