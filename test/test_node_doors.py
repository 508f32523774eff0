"""The small parts of the live door: clocks, host, transforms."""

import pytest

pytest.importorskip('rclpy')
pytest.importorskip('tf2_ros')

import rclpy
from node_rig import until
from rclpy.context import Context
from recording_rig import Lines

from cognitive3d_ros.clock import Reading
from cognitive3d_ros.node.clocks import LiveClocks
from cognitive3d_ros.node.host import host_of
from cognitive3d_ros.node.transforms import LiveTransforms
from cognitive3d_ros.tf import Transform

pytestmark = pytest.mark.ros


class RosClock:
    """A ROS clock that reads 5 ns, or that is the wall clock."""

    nanoseconds = 5

    def __init__(self, simulated):
        self.ros_time_is_active = simulated

    def now(self):
        return self


def test_clocks_that_were_read_far_apart_are_read_again():
    mono = iter([0, 30_000_000, 40_000_000, 40_001_000])
    wall = iter([111, 222])
    clocks = LiveClocks(RosClock(True), wall_ns=lambda: next(wall), mono_ns=lambda: next(mono))
    assert clocks.read() == Reading(222, 40_000_000, 5)


def test_a_machine_that_is_too_busy_gives_the_closest_reading():
    mono = iter([0, 30_000_000, 0, 9_000_000, 0, 50_000_000, 0, 11_000_000, 0, 12_000_000])
    wall = iter(range(5))
    clocks = LiveClocks(RosClock(True), wall_ns=lambda: next(wall), mono_ns=lambda: next(mono))
    assert clocks.read().wall_ns == 1


def test_without_sim_time_ros_time_is_exactly_the_wall_clock():
    reading = LiveClocks(RosClock(False)).read()
    assert reading.ros_ns == reading.wall_ns


@pytest.mark.rule(52, 54, 55, 56)
def test_the_host_from_the_environment():
    host = host_of(
        '/fleet', 'cognitive3d', 'rmw_x', {'ROS_DISTRO': 'kilted', 'ROS_DOMAIN_ID': '0'}
    )
    assert (host.ros_distro, host.domain_id, host.discovery_range) == ('kilted', '0', 'unset')
    assert (host.namespace, host.node, host.rmw) == ('/fleet', 'cognitive3d', 'rmw_x')
    bare = host_of('/', 'n', 'rmw_x', {})
    assert (bare.ros_distro, bare.domain_id, bare.discovery_range) == ('unknown', 'unset', 'unset')
    given = {'ROS_DISTRO': 'humble', 'ROS_AUTOMATIC_DISCOVERY_RANGE': 'SUBNET'}
    assert host_of('/', 'n', 'rmw_x', given).discovery_range is None


@pytest.mark.parametrize('prefix', ['', '/robot'])
def test_tf_waits_behind_nothing_else(peer, monkeypatch, prefix):
    """It is heard while the node's own executor does not run at all, and where /tf is another topic."""
    context = Context()
    rclpy.init(context=context)
    rules = ['-r', f'/tf:={prefix}/tf', '-r', f'/tf_static:={prefix}/tf_static']
    node = rclpy.create_node('robot', context=context, cli_args=['--ros-args', *rules])
    log = Lines()
    transforms = LiveTransforms(node, log)
    try:
        peer.tf(1.5, 10**9, topic=f'{prefix}/tf')
        until(lambda: isinstance(transforms.lookup('map', 'base_link', 10**9), Transform))
        peer.static_tf(0.5, child='laser', topic=f'{prefix}/tf_static')
        until(lambda: isinstance(transforms.lookup('map', 'laser', None), Transform))
        # A message that tf2 chokes on ends nothing.
        monkeypatch.setattr(transforms._buffer, 'set_transform', lambda *_: 1 / 0)
        peer.tf(2.0, 2 * 10**9, topic=f'{prefix}/tf')
        until(lambda: any('ZeroDivisionError' in text for _, text in log.lines))
        monkeypatch.undo()
        peer.tf(2.5, 3 * 10**9, topic=f'{prefix}/tf')
        until(lambda: isinstance(transforms.lookup('map', 'base_link', 3 * 10**9), Transform))
    finally:
        transforms.close()
        until(lambda: '_robot_tf' not in peer.node.get_node_names())
        rclpy.shutdown(context=context)
        node.destroy_node()
