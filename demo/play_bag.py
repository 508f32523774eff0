"""Play a bag into ROS 2 in real time: its messages, /clock from its receive times, tf from its odometry.

A stand-in for ``ros2 bag play --clock`` where ROS is not installed; ROS 1 bags are converted on the way.
"""

from __future__ import annotations

import argparse
import importlib
import json
import signal
import sys
import threading
import time
from pathlib import Path

import rclpy
from geometry_msgs.msg import TransformStamped
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import QoSProfile
from rclpy.serialization import deserialize_message
from rclpy.signals import SignalHandlerOptions
from rosbags.highlevel import AnyReader
from rosbags.typesys import Stores, get_typestore
from rosgraph_msgs.msg import Clock
from std_msgs.msg import String
from tf2_ros import TransformBroadcaster

NS_PER_S = 1_000_000_000


def message_class(msgtype: str):
    """Return the class of a message type such as nav_msgs/msg/Odometry, or None where it is not installed."""
    package, _, name = msgtype.replace('/msg/', '/').partition('/')
    try:
        return getattr(importlib.import_module(f'{package}.msg'), name, None)
    except ImportError:
        return None


def stamp_to(message, time_ns: int) -> None:
    """Put a time into a builtin_interfaces/Time."""
    message.sec, message.nanosec = divmod(time_ns, NS_PER_S)


def main() -> int:
    """Play, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('bag', type=Path)
    parser.add_argument(
        '--seconds', type=float, default=1e9, help='play no more of the bag than this'
    )
    parser.add_argument('--rate', type=float, default=1.0, help='faster or slower than real time')
    parser.add_argument('--clock-hz', type=float, default=100.0, help='rate of /clock; 0 = none')
    parser.add_argument('--odom-tf', metavar='TOPIC', help='derive tf from this odometry')
    parser.add_argument(
        '--clock-zero',
        action='store_true',
        help='move all times so that the clock starts near zero',
    )
    parser.add_argument('--jump-after', type=float, help='start over after so many seconds, once')
    parser.add_argument(
        '--wait-for',
        metavar='NODE',
        nargs='+',
        default=[],
        help='start when these nodes are there',
    )
    parser.add_argument(
        '--sync',
        action='store_true',
        help='send those nodes an event "sync" ten times a second, stamped with the time played',
    )
    arguments = parser.parse_args()

    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    node = rclpy.create_node('play_bag')
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    clock = node.create_publisher(Clock, '/clock', QoSProfile(depth=10))
    tf = TransformBroadcaster(node)
    try:
        while not set(arguments.wait_for) <= set(node.get_node_names()) and not stop.wait(0.05):
            pass
        runs = (
            [arguments.jump_after, arguments.seconds - arguments.jump_after]
            if (arguments.jump_after)
            else [arguments.seconds]
        )
        for seconds in runs:
            play(arguments, seconds, node, clock, tf, stop)
    finally:
        executor.shutdown()
        node.destroy_node()
        rclpy.try_shutdown()
    return 0


def play(arguments, seconds: float, node, clock, tf, stop: threading.Event) -> None:
    """Play the first so many seconds of the bag."""
    store = get_typestore(Stores.ROS2_HUMBLE)
    synced = [
        node.create_publisher(String, f'/{name}/events_json', 10)
        for name in arguments.wait_for
        if arguments.sync
    ]
    next_sync = 0.0
    publishers: dict[str, object] = {}
    with AnyReader([arguments.bag], default_typestore=store) as reader:
        first_ns = reader.start_time
        shift_ns = NS_PER_S - first_ns if arguments.clock_zero else 0
        began = time.monotonic()

        def until(bag_ns: int) -> bool:
            """Wait until the bag's time has come, telling the time meanwhile; False when stopped."""
            due = began + (bag_ns - first_ns) / NS_PER_S / arguments.rate
            step = 1 / arguments.clock_hz if arguments.clock_hz else 0.1
            while True:
                now = time.monotonic()
                if arguments.clock_hz:
                    told_ns = min(
                        round((now - began) * arguments.rate * NS_PER_S), bag_ns - first_ns
                    )
                    message = Clock()
                    stamp_to(message.clock, first_ns + told_ns + shift_ns)
                    clock.publish(message)
                nonlocal next_sync
                if synced and now - began >= next_sync:
                    next_sync = now - began + 0.1
                    played_ns = round((time.monotonic() - began) * arguments.rate * NS_PER_S)
                    played_s = (first_ns + shift_ns + played_ns) / NS_PER_S
                    event = {'name': 'sync', 'stamp': played_s, 'properties': {'played': played_s}}
                    for publisher in synced:
                        publisher.publish(String(data=json.dumps(event)))
                if now >= due:
                    return not stop.is_set()
                if stop.wait(min(step, due - now)):
                    return False

        for connection, bag_ns, raw in reader.messages():
            if bag_ns - first_ns > seconds * NS_PER_S or not until(bag_ns):
                break
            kind = message_class(connection.msgtype)
            if kind is None:
                continue
            if connection.topic not in publishers:
                publishers[connection.topic] = node.create_publisher(kind, connection.topic, 10)
            if reader.is2:
                cdr = bytes(raw)
            else:
                message = reader.deserialize(raw, connection.msgtype)
                cdr = bytes(store.serialize_cdr(message, connection.msgtype))
            message = deserialize_message(cdr, kind)
            header = getattr(message, 'header', None)
            stamp_ns = 0
            if header is not None:
                stamp_ns = header.stamp.sec * NS_PER_S + header.stamp.nanosec + shift_ns
                stamp_to(header.stamp, stamp_ns)
            publishers[connection.topic].publish(message)
            if connection.topic == arguments.odom_tf:
                pose = message.pose.pose
                transform = TransformStamped()
                transform.header = header
                transform.child_frame_id = message.child_frame_id
                translation, position = transform.transform.translation, pose.position
                translation.x, translation.y, translation.z = position.x, position.y, position.z
                transform.transform.rotation = pose.orientation
                tf.sendTransform(transform)


if __name__ == '__main__':
    sys.exit(main())
