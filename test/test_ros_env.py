"""The stand-in for tf2_ros behaves as tf2 does, so that what the node does with it holds on a robot."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.ros
rclpy = pytest.importorskip('rclpy')
tf2_ros = pytest.importorskip('tf2_ros')

from geometry_msgs.msg import TransformStamped  # noqa: E402 (only where ROS is)
from rclpy.duration import Duration  # noqa: E402
from rclpy.executors import SingleThreadedExecutor  # noqa: E402
from rclpy.node import Node  # noqa: E402
from rclpy.time import Time  # noqa: E402

NEWEST = Time()


def transform(
    parent: str, child: str, at_s: float, x: float, yaw: float = 0.0
) -> TransformStamped:
    message = TransformStamped()
    message.header.frame_id, message.child_frame_id = parent, child
    message.header.stamp = Time(nanoseconds=round(at_s * 1e9)).to_msg()
    message.transform.translation.x = float(x)
    message.transform.rotation.z = math.sin(yaw / 2)
    message.transform.rotation.w = math.cos(yaw / 2)
    return message


def stamp_ns(message: TransformStamped) -> int:
    return Time.from_msg(message.header.stamp).nanoseconds


@pytest.fixture
def driving() -> tf2_ros.Buffer:
    """One metre a second along x from 10 s to 11 s, turning by a quarter; a sensor half a metre ahead."""
    buffer = tf2_ros.Buffer()
    buffer.set_transform(transform('odom', 'base_link', 10, 1), 'test')
    buffer.set_transform(transform('odom', 'base_link', 11, 2, math.pi / 2), 'test')
    buffer.set_transform_static(transform('base_link', 'laser', 0, 0.5), 'test')
    return buffer


def test_between_two_transforms_it_interpolates(driving: tf2_ros.Buffer) -> None:
    half = driving.lookup_transform('odom', 'laser', Time(seconds=10.5))
    assert (half.header.frame_id, half.child_frame_id) == ('odom', 'laser')
    assert stamp_ns(half) == 10_500_000_000
    # At 1.5 m, an eighth of a turn to the left: the sensor is half a diagonal further.
    assert half.transform.translation.x == pytest.approx(1.5 + 0.5 * math.sqrt(0.5))
    assert half.transform.translation.y == pytest.approx(0.5 * math.sqrt(0.5))
    assert half.transform.rotation.z == pytest.approx(math.sin(math.pi / 8))


def test_the_newest_has_the_stamp_of_the_newest(driving: tf2_ros.Buffer) -> None:
    newest = driving.lookup_transform('odom', 'laser', NEWEST)
    assert stamp_ns(newest) == 11_000_000_000
    fixed = driving.lookup_transform('base_link', 'laser', NEWEST)
    assert stamp_ns(fixed) == 0


@pytest.mark.parametrize(
    ('target', 'source', 'at_s', 'error', 'text'),
    [
        ('odom', 'laser', 12, 'ExtrapolationException', 'into the future'),
        ('odom', 'laser', 9, 'ExtrapolationException', 'into the past'),
        ('map', 'laser', 0, 'LookupException', '"map"'),
        ('island', 'laser', 0, 'ConnectivityException', 'island'),
        ('/odom', 'laser', 0, 'InvalidArgumentException', '/odom'),
    ],
)
def test_each_failure_has_its_exception(
    driving: tf2_ros.Buffer, target: str, source: str, at_s: int, error: str, text: str
) -> None:
    driving.set_transform_static(transform('island', 'tree', 0, 0), 'test')
    at = Time(seconds=at_s)
    with pytest.raises(getattr(tf2_ros, error), match=text):
        driving.lookup_transform(target, source, at)
    assert not driving.can_transform(target, source, at)
    assert issubclass(getattr(tf2_ros, error), tf2_ros.TransformException)


def test_clear_forgets_all_but_static_transforms(driving: tf2_ros.Buffer) -> None:
    driving.clear()
    assert driving.can_transform('base_link', 'laser', NEWEST)
    assert not driving.can_transform('odom', 'base_link', NEWEST)


def test_nonsense_and_repeated_stamps_are_passed_over_without_a_word(
    driving: tf2_ros.Buffer, capfd: pytest.CaptureFixture[str]
) -> None:
    driving.set_transform(transform('odom', 'base_link', 11, 7), 'test')
    driving.set_transform(transform('odom', 'base_link', 11.1, math.nan), 'test')
    newest = driving.lookup_transform('odom', 'base_link', NEWEST)
    assert math.isfinite(newest.transform.translation.x)
    assert capfd.readouterr() == ('', '')


def test_a_look_up_waits_as_long_as_it_is_told(driving: tf2_ros.Buffer) -> None:
    began = time.monotonic()
    with pytest.raises(tf2_ros.ExtrapolationException):
        driving.lookup_transform('odom', 'laser', Time(seconds=12), Duration(seconds=0.1))
    assert time.monotonic() - began >= 0.1


@pytest.fixture
def spin() -> Iterator[tuple[Node, Callable[[Callable[[], bool]], None]]]:
    """A node, and a function that spins it until something holds."""
    rclpy.init()
    node = rclpy.create_node('stand_in')
    executor = SingleThreadedExecutor()
    executor.add_node(node)

    def until(holds: Callable[[], bool]) -> None:
        end_s = time.monotonic() + 10
        while not holds():
            assert time.monotonic() < end_s, 'nothing came within 10 s'
            executor.spin_once(timeout_sec=0.05)

    yield node, until
    executor.shutdown()
    node.destroy_node()
    rclpy.shutdown()


def test_a_listener_that_joins_late_hears_both_topics(
    spin: tuple[Node, Callable[[Callable[[], bool]], None]],
) -> None:
    node, until = spin
    static = tf2_ros.StaticTransformBroadcaster(node)
    static.sendTransform(transform('base_link', 'laser', 0, 0.5))
    static.sendTransform([transform('base_link', 'camera', 0, 0.25)])
    buffer = tf2_ros.Buffer()
    listener = tf2_ros.TransformListener(buffer, node)
    until(lambda: buffer.can_transform('laser', 'camera', NEWEST))

    moving = tf2_ros.TransformBroadcaster(node)
    until(lambda: moving.pub_tf.get_subscription_count() > 0)
    moving.sendTransform(transform('odom', 'base_link', 5, 3))
    until(lambda: buffer.can_transform('odom', 'camera', NEWEST))
    assert buffer.lookup_transform('odom', 'camera', NEWEST).transform.translation.x == 3.25
    listener.unregister()
    assert node.count_subscribers('/tf') == 0


def test_our_tf_message_is_the_message_of_every_other_robot() -> None:
    stores = pytest.importorskip('rosbags.typesys')
    described = json.loads(Path(sys.prefix, 'share/tf2_msgs/msg/TFMessage.json').read_text())
    ours = {each['type_name']: each['hash_string'] for each in described['type_hashes']}
    store = stores.get_typestore(stores.Stores.ROS2_HUMBLE)
    assert ours['tf2_msgs/msg/TFMessage'] == store.hash_rihs01('tf2_msgs/msg/TFMessage')
