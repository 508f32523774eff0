"""What :mod:`.main` runs once signals are in hand: the ROS context, the executor, the node, and their end."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable

import rclpy
from rclpy.exceptions import ParameterException
from rclpy.executors import Executor, ExternalShutdownException
from rclpy.signals import SignalHandlerOptions

from cognitive3d_ros.log import Complaints, Log

from .recorder_node import RecorderNode
from .stop import EXIT_FAILED, EXIT_PARAMETERS, Stop

_SPIN_S = 0.25  # rclpy can lose a SIGINT while it waits without a timeout
_AFTER_FAULT_S = 0.01  # a fault that comes at every turn must not take a whole core


def make_executor() -> Executor:
    """Return the executor that costs least: the events executor where rclpy has it (not in Humble)."""
    try:
        from rclpy.experimental import EventsExecutor
    except ImportError:
        from rclpy.executors import SingleThreadedExecutor

        return SingleThreadedExecutor()
    return EventsExecutor()


def spin(executor: Executor, done: Callable[[], bool], log: Log) -> None:
    """Spin until ``done``, or until the ROS context is shut down.

    A fault in a callback, or in rclpy itself, does not end the recording: some versions of rclpy let an
    invalid lifecycle transition, asked for by anybody, come out of here as an RCLError.
    """
    complaints = Complaints(log)
    while rclpy.ok() and not done():
        _spin_once(executor, complaints)


def _spin_once(executor: Executor, complaints: Complaints) -> None:
    try:
        executor.spin_once(timeout_sec=_SPIN_S)
    except ExternalShutdownException:
        return  # rclpy.ok() says so too
    except Exception as error:  # noqa: BLE001 - said, and gone on
        complaints.warn(type(error).__name__, f'a ROS callback failed: {error!r}')
        time.sleep(_AFTER_FAULT_S)


def run(argv: list[str], stop: Stop) -> int:
    """Run the node until it is asked to stop; return the exit code of the process."""
    try:
        rclpy.init(args=argv, signal_handler_options=SignalHandlerOptions.NO)
    except RuntimeError as error:
        return _complain(f'ROS does not take the arguments or the parameter file: {error}')
    executor = make_executor()
    stop.install()  # the events executor takes the signals for itself when it is made
    try:
        node = RecorderNode()
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
    node.end_durably()
    stop.safe = True
    stop.leave_in_a_hurry()
    node.release()
    exit_code = node.exit_code or 0
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
