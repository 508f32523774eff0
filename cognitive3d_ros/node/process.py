"""What :mod:`.main` runs once signals are in hand: the ROS context, the executor, the node, and their end."""

from __future__ import annotations

import contextlib
import sys
import threading

import rclpy
from rclpy.exceptions import ParameterException
from rclpy.executors import Executor
from rclpy.signals import SignalHandlerOptions

from .recorder_node import RecorderNode
from .spinning import spin
from .stop import EXIT_FAILED, EXIT_PARAMETERS, Stop


def make_executor() -> Executor:
    """Return the executor that costs least: the events executor where rclpy has it (not in Humble)."""
    try:
        from rclpy.experimental import EventsExecutor
    except ImportError:
        from rclpy.executors import SingleThreadedExecutor

        return SingleThreadedExecutor()
    return EventsExecutor()


def run(argv: list[str], stop: Stop) -> int:
    """Run the node until it is asked to stop; return the exit code of the process."""
    stop.begun = True
    try:
        rclpy.init(args=argv, signal_handler_options=SignalHandlerOptions.NO)
    except RuntimeError as error:
        return _complain(f'ROS does not take the arguments or the parameter file: {error}')
    executor = make_executor()
    stop.install()  # the events executor takes the signals for itself when it is made
    try:
        node = RecorderNode(lambda: stop.asked)
    except ParameterException as error:
        rclpy.try_shutdown()
        return _complain(f'ROS does not take a parameter: {error}')
    except RuntimeError as error:
        rclpy.try_shutdown()
        _complain(f'the node cannot be made: {error}')
        return EXIT_FAILED
    log = node.log
    threading.excepthook = lambda args: log.error(f'a thread failed: {args.exc_value!r}')
    executor.add_node(node)
    spin(executor, lambda: stop.asked or node.exit_code is not None, log)
    durable = node.end_durably()
    stop.settled = node.exit_code or (0 if durable else EXIT_FAILED)
    stop.leave_in_a_hurry()
    node.release(stop.delivery_s)
    exit_code = node.exit_code or (EXIT_FAILED if node.lost_entries else 0)
    with contextlib.suppress(RuntimeError):  # what rclpy raises where a part of it is gone already
        executor.shutdown(timeout_sec=2.0)
        node.destroy_node()
        rclpy.try_shutdown()
    # The executor gives the signals back when it goes; a second one that comes late would kill the process.
    del executor
    stop.install()
    return exit_code


def _complain(text: str) -> int:
    print(f'cognitive3d_ros recorder: {text}', file=sys.stderr)
    return EXIT_PARAMETERS
