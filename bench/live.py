"""The live node under load, a minute long, against a node that writes the same topics with mcap and zstd.

CPU seconds are those of the whole process while the robot publishes; the peer cannot take all of it, and
counts as it is: what it took is printed. Where others use the machine too the row says little: the peer, which
would use a whole core, gets less, and the recorder, which does all its work, needs more for it. How much more
is seen by the robot, whose work is the same in both runs.

The same run gives the pose samples that are off their tick and the growth of resident memory after the first
20 s. That goes up and down with each part that is put together: medians of 10 s are compared, the ones after
the first 20 s and the last.
"""

from __future__ import annotations

import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.live_robot import CAMERAS, SERIES
from bench.table import Pair, Row
from cognitive3d_ros.session.session import open_session

SECONDS = float(os.environ.get('C3D_BENCH_SECONDS', '60'))
_TICKS_PER_S = os.sysconf('SC_CLK_TCK')
_PROFILE = Path(__file__).parent.parent / 'test' / 'ros_env' / 'fastdds_shm.xml'
_PARAMS = """\
/**:
  ros__parameters:
    device_id: bench
    scene_id: bench
    scene_version: 1
    spool.dir: {spool}
    spool.min_free_bytes: 0
    upload.enabled: false
    reference_frames: [map]
    topics: [{topics}]
    cameras: [front, rear]
    camera.front.topic: /front/image_raw
    camera.rear.topic: /rear/image_raw
    camera.front.rate_hz: 5
    camera.rear.rate_hz: 5
    lidars: [top]
    lidar.top.topic: /points
    lidar.top.rate_hz: 2
    lidar.top.pointcloud.intensity: uint8
{rates}
"""


@dataclass
class Run:
    """What was measured of a process while the robot published."""

    cpu_s: float
    robot_s: float
    grown_mb: float
    off_tick: float = 0.0
    lost: int = 0


def _environment(*, big: bool) -> dict[str, str]:
    environment = {
        **os.environ,
        'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST',
        'ROS_DOMAIN_ID': '77',
    }
    if big:
        environment['FASTDDS_DEFAULT_PROFILES_FILE'] = str(_PROFILE)
    return environment


def _cpu_s(pid: int) -> float:
    fields = Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S


def _rss_mb(pid: int) -> float:
    return int(Path(f'/proc/{pid}/statm').read_text().split()[1]) * resource.getpagesize() / 1e6


def _ended_s() -> float:
    """Return the CPU seconds of all processes that were run and have ended: here, of the robot."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _under_load(process: subprocess.Popen[str], seconds: float) -> Run:
    """Let the robot publish beside a process that is ready, and then end it."""
    command = [sys.executable, '-m', 'bench.live_robot', str(seconds)]
    with subprocess.Popen(command, env=_environment(big=True)) as robot:
        before_s, robot_s = _cpu_s(process.pid), _ended_s()
        held: list[tuple[float, float]] = []
        began = time.monotonic()
        while robot.poll() is None:
            held.append((time.monotonic() - began, _rss_mb(process.pid)))
            time.sleep(0.2)
    end_s = held[-1][0]
    settled_s, window_s = min(20.0, seconds / 3), min(10.0, seconds / 6)
    early = [mb for at_s, mb in held if 0 <= at_s - settled_s < window_s]
    late = [mb for at_s, mb in held if at_s > end_s - window_s]
    run = Run(
        _cpu_s(process.pid) - before_s,
        _ended_s() - robot_s,
        statistics.median(late) - statistics.median(early),
    )
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0
    return run


def recorder(seconds: float = SECONDS) -> Run:
    """Run the recorder under the load."""
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as name:
        folder = Path(name)
        topics = [f'n{index}' for index in range(SERIES)]
        rates = ''.join(
            f'    topic.{topic}.topic: /{topic}\n    topic.{topic}.rate_hz: 0\n'
            for topic in topics
        )
        text = _PARAMS.format(spool=folder / 'spool', topics=', '.join(topics), rates=rates)
        (folder / 'params.yaml').write_text(text)
        command = [sys.executable, '-m', 'cognitive3d_ros.node.main', '--ros-args']
        with (folder / 'log').open('w') as log:
            process = subprocess.Popen(
                [*command, '--params-file', str(folder / 'params.yaml')],
                env=_environment(big=False),
                stderr=log,
                text=True,
            )
        while ' started' not in (folder / 'log').read_text():
            assert process.poll() is None, (folder / 'log').read_text()
            time.sleep(0.1)
        run = _under_load(process, seconds)
        session = open_session(folder / 'spool')
        period_s = 0.1
        start_ns = session.start * 1e9
        off = [abs((pose.time_ns - start_ns) / 1e9 / period_s % 1.0) for pose in session.poses]
        late = [min(part, 1 - part) * period_s > 0.01 for part in off]
        run.off_tick = 100 * sum(late) / max(1, len(late))
        run.lost = sum(
            int(session.series[series][-1][1])
            for series in ('c3d.dropped_records', 'c3d.messages_lost')
        )
        expected = seconds * 5 * len(CAMERAS)
        stored = sum(len(session.camera(camera)) for camera in CAMERAS)
        print(
            f'  recorder: {run.cpu_s:.1f} CPU s (the robot {run.robot_s:.1f}), {stored} of about '
            f'{expected:.0f} pictures, {len(session.poses)} poses, {run.lost} lost, {run.grown_mb:+.1f} MB',
            file=sys.stderr,
        )
        return run


def peer(seconds: float = SECONDS) -> Run:
    """Run the peer under the load."""
    process = subprocess.Popen(
        [sys.executable, '-m', 'bench.live_peer'],
        env=_environment(big=False),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == 'ready\n'
    run = _under_load(process, seconds)
    pictures, clouds, numbers, transforms = process.stdout.read().split()
    print(
        f'  peer: {run.cpu_s:.1f} CPU s (the robot {run.robot_s:.1f}), {100 * run.cpu_s / seconds:.0f} % of a '
        f'core; took {pictures} of about {seconds * 30 * len(CAMERAS):.0f} pictures, {clouds} of '
        f'{seconds * 10:.0f} clouds, {numbers} of {seconds * 50 * SERIES:.0f} numbers, {transforms} of '
        f'{seconds * 100:.0f} of tf',
        file=sys.stderr,
    )
    return run


def _busy(seconds: float) -> Run:
    """Run the recorder while both cores are kept busy by others."""
    burners = [
        subprocess.Popen([sys.executable, '-c', 'while True: pass'])
        for _ in range(os.cpu_count() or 2)
    ]
    try:
        return recorder(seconds)
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


def rows() -> list[Row]:
    """Return the live rows."""
    runs: list[Run] = []

    def cpu() -> Iterator[Pair]:
        runs.append(recorder())
        yield runs[0].cpu_s, peer().cpu_s

    try:
        from rclpy.experimental import EventsExecutor  # noqa: F401 - whether it is there

        at_most = 0.30
    except ImportError:
        at_most = 0.50
    return [
        Row('live: cameras, cloud, 50 series, tf', 'rclpy, mcap and zstd', at_most, cpu),
        Row('live: poses off their tick', '', 1.0, lambda: [(runs[0].off_tick, 0.0)], '%'),
        Row('live: lost', '', 0.0, lambda: [(float(runs[0].lost), 0.0)], 'records'),
        Row('live: memory after 20 s', '', 5.0, lambda: [(runs[0].grown_mb, 0.0)], 'MB'),
        Row(
            'live: poses off their tick, cores busy',
            '',
            1.0,
            lambda: [(_busy(min(SECONDS, 20.0)).off_tick, 0.0)],
            '%',
        ),
    ]
