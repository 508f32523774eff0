"""A server of the action /count in a process of its own: goals say how long they take and how they end."""

import os
import signal
import threading
import time
import warnings

with warnings.catch_warnings():
    warnings.simplefilter('ignore', DeprecationWarning)
    import rosidl_generator_py  # noqa: F401

import rclpy
from c3d_test_msgs.action import Count
from rclpy.action import ActionServer, CancelResponse
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.executors import MultiThreadedExecutor
from rclpy.signals import SignalHandlerOptions


def execute(handle):
    """Count until the time is over or the goal is canceled."""
    goal = handle.request
    end_s = time.monotonic() + goal.seconds
    while time.monotonic() < end_s:
        if handle.is_cancel_requested:
            handle.canceled()
            return Count.Result()
        time.sleep(0.02)
    if goal.outcome == 'abort':
        handle.abort()
    else:
        handle.succeed()
    return Count.Result(counted=goal.to)


def main():
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    node = rclpy.create_node('counter')
    ActionServer(
        node,
        Count,
        'count',
        execute,
        callback_group=ReentrantCallbackGroup(),
        cancel_callback=lambda _: CancelResponse.ACCEPT,
    )
    executor = MultiThreadedExecutor(4)
    executor.add_node(node)
    print('ready', flush=True)
    while not stop.is_set():
        executor.spin_once(timeout_sec=0.1)
    node.destroy_node()
    rclpy.try_shutdown()
    os._exit(0)  # goals that still run are not waited for


if __name__ == '__main__':
    main()
