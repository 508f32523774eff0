"""Clocks and tf of the live node: simulated time, jumps, latched and late transforms."""

import threading
import time
from itertools import pairwise

import pytest

pytest.importorskip('rclpy')
pytest.importorskip('cognitive3d_msgs')

from node_rig import until

pytestmark = pytest.mark.ros

S = 10**9
MS = 10**6


class Simulator:
    """A simulated robot: at simulated time t it is at x = t. /clock comes after its tf."""

    def __init__(self, peer, *, begin_s=0.0, rate=1.0, period_s=0.02):
        self.peer, self.rate, self.period_s = peer, rate, period_s
        self.now_ns = round(begin_s * S)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stopping.set()
        self._thread.join()

    def _run(self):
        due_s = time.monotonic()
        while not self._stopping.wait(max(0.0, due_s - time.monotonic())):
            due_s += self.period_s / self.rate
            self.now_ns += round(self.period_s * S)
            self.step()

    def step(self):
        self.peer.tf(self.now_ns / S, self.now_ns)
        self.peer.clock(self.now_ns)


def start_ns(session_id, stored):
    return round(stored.event('c3d.sessionStart', session_id)['time'] * S)


@pytest.mark.rule(10, 14, 18, 20)
def test_use_sim_time_keeps_the_simulated_clock_off_the_wire(start_node, peer):
    node = start_node(use_sim_time=True, pose_convention='rep103')
    peer.watch()
    peer.status('waiting')
    wall_s = time.time()
    with Simulator(peer) as simulator:
        peer.status('recording')
        until(lambda: peer.statuses[-1].pose_samples > 5)
        peer.event('then', stamp_ns=simulator.now_ns - 500 * MS)
        peer.event('now')
        until(lambda: peer.statuses[-1].events >= 3)
    assert node.stop() == 0
    assert node.text.count('no session yet') == 1
    assert '/clock' in node.text
    stored = node.stored
    assert stored.properties()['c3d.ros.use_sim_time'] is True
    assert stored.properties()['c3d.ros.sim_time_on_wire'] is False
    times = [record['time'] for record in stored.poses() + stored.events()]
    assert all(wall_s <= each <= time.time() for each in times)
    age_s = stored.event('now')['time'] - stored.event('then')['time']
    assert age_s == pytest.approx(0.5, abs=0.2)
    # The robot moves one metre per simulated second, which is a real one here.
    poses = stored.poses()
    moved = poses[-1]['p'][0] - poses[0]['p'][0]
    assert moved == pytest.approx(poses[-1]['time'] - poses[0]['time'], abs=0.2)


@pytest.mark.rule(19, 20, 27, 42)
def test_sim_time_on_wire_spaces_records_by_simulated_time(start_node, peer):
    node = start_node(use_sim_time=True, sim_time_on_wire=True, pose_convention='rep103')
    peer.watch()
    with Simulator(peer, rate=5.0):
        peer.status('recording')
        until(
            lambda: peer.statuses[-1].session_seconds > 12 and peer.statuses[-1].pose_samples > 100
        )
    assert node.stop() == 0
    stored = node.stored
    poses = stored.poses()
    start_s = stored.event('c3d.sessionStart')['time']
    assert abs(start_s - time.time()) < 30
    ticks = [round((record['time'] - start_s) * 10, 3) for record in poses]
    assert len(ticks) >= 100
    assert ticks == [float(round(tick)) for tick in ticks]
    assert ticks == sorted(set(ticks))
    # x is the simulated time, so it differs from wire time by the same amount everywhere.
    offsets = [record['time'] - record['p'][0] for record in poses]
    assert max(offsets) - min(offsets) <= 2e-5 + 1e-9
    health = [time_s - start_s for time_s, _ in stored.series('c3d.pose_failures')]
    assert health[0] >= 5
    assert all(b - a < 10 for a, b in pairwise(health))  # every 5; by the wall clock it were 25
    length_s = stored.event('c3d.sessionEnd')['properties']['sessionlength']
    assert 12 < length_s < 60


@pytest.mark.parametrize('on_wire', [False, True])
def test_a_clock_that_jumps_back_to_zero(start_node, peer, on_wire):
    node = start_node(use_sim_time=True, sim_time_on_wire=on_wire, pose_convention='rep103')
    peer.watch()
    with Simulator(peer, begin_s=100.0) as simulator:
        peer.status('recording')
        before = until(lambda: [s for s in peer.statuses if s.pose_samples > 8])[0]
        simulator.now_ns = 0
        again = before.pose_samples + 15
        until(lambda: peer.statuses[-1].pose_samples > again, what='poses after the jump')
    assert node.stop() == 0
    poses = node.stored.poses()
    times = [record['time'] for record in poses]
    assert times == sorted(times)
    assert max(b - a for a, b in pairwise(times)) < 1.0
    x = [record['p'][0] for record in poses]
    (jump,) = [index for index in range(1, len(x)) if x[index] < x[index - 1]]
    assert x[jump - 1] > 100
    assert x[jump] < 1.0
    assert len(x) - jump >= 10
    assert node.stored.series('c3d.clock_resets')[-1][1] == 1
    steps = [e for e in node.stored.events() if e['name'] == 'c3d.clock_step']
    assert len(steps) == int(on_wire)
    assert node.reasons() == ['shutdown']


def test_tf_from_before_a_jump_that_comes_after_it(start_node, peer):
    """/tf and /clock are not ordered: one late transform must not shut out all that follow."""
    node = start_node(use_sim_time=True, pose_convention='rep103')
    peer.watch()
    simulator = Simulator(peer, begin_s=100.0)
    with simulator:
        peer.status('recording')
        until(lambda: peer.statuses[-1].pose_samples > 3)
    peer.clock(0 + 20 * MS)
    peer.tf(100.0, simulator.now_ns)
    simulator.now_ns = 40 * MS
    before = len(peer.statuses)
    begin_s = time.monotonic()
    while len(peer.statuses) < before + 3 and time.monotonic() < begin_s + 15:
        simulator.now_ns += 20 * MS
        simulator.step()
        time.sleep(0.02)
    assert node.stop() == 0
    assert [r for r in node.stored.poses() if r['p'][0] < 10]


@pytest.mark.rule(23, 26, 28)
def test_static_transforms_published_before_the_node_started(start_node, peer):
    peer.static_tf(7.0)
    node = start_node(pose_convention='rep103')
    peer.watch()
    until(lambda: peer.statuses and peer.statuses[-1].pose_samples > 5, what='poses')
    assert node.stop() == 0
    poses = node.stored.poses()
    assert {tuple(record['p']) for record in poses} == {(7, 0, 0)}
    gaps = [b['time'] - a['time'] for a, b in pairwise(poses)]
    assert gaps == pytest.approx([0.1] * len(gaps), abs=0.02)
    assert node.stored.properties()['c3d.ros.reference_frame'] == 'map'
    assert node.stored.series('c3d.stale_poses')[-1][1] == 0


@pytest.mark.rule(14, 27)
def test_late_transforms_are_waited_for(start_node, peer):
    """Each transform comes 80 ms after its stamp; each pose is still that of its tick."""
    node = start_node(pose_convention='rep103')
    peer.watch()
    zero_ns = time.time_ns()
    until(peer.publisher(_tf(), '/tf', 100).get_subscription_count)
    begin_s = time.monotonic()
    while not (peer.statuses and peer.statuses[-1].pose_samples > 20):
        assert time.monotonic() < begin_s + 15
        stamp_ns = time.time_ns() - 80 * MS
        peer.tf((stamp_ns - zero_ns) / S, stamp_ns)
        time.sleep(0.05)
    assert node.stop() == 0
    poses = node.stored.poses()
    reached = [record for record in poses if record['time'] * S < stamp_ns]
    assert len(reached) > 15
    off = [record['p'][0] - (record['time'] - zero_ns / S) for record in reached]
    assert max(map(abs, off)) <= 1.1e-5  # two values of five decimals
    assert node.stored.series('c3d.pose_failures')[-1][1] <= 2


@pytest.mark.rule(32, 33, 35)
def test_transforms_that_stop(start_node, peer):
    node = start_node(stale_pose_s=0.3)
    peer.watch()
    begin_s = time.monotonic()
    while not (peer.statuses and peer.statuses[-1].pose_samples > 3):
        assert time.monotonic() < begin_s + 15
        peer.tf(1.0, time.time_ns())
        time.sleep(0.02)
    stopped_s = time.time()
    until(lambda: peer.statuses[-1].session_seconds > peer.statuses[0].session_seconds + 3)
    assert node.stop() == 0
    times = [record['time'] for record in node.stored.poses()]
    assert times[-1] < stopped_s + 0.3 + 0.15
    failures = node.stored.series('c3d.pose_failures')[-1][1]
    stale = node.stored.series('c3d.stale_poses')[-1][1]
    assert failures >= stale >= 5


def _tf():
    from tf2_msgs.msg import TFMessage

    return TFMessage
