"""How executors are spun here: whatever comes out of one, it goes on."""

from __future__ import annotations

import time
from collections.abc import Callable

import rclpy
from rclpy.context import Context
from rclpy.executors import Executor, ExternalShutdownException

from cognitive3d_ros.log import Complaints, Log

_SPIN_S = 0.25  # rclpy can lose a SIGINT while it waits without a timeout
_AFTER_FAULT_S = 0.01  # a fault that comes at every turn must not take a whole core


def spin(
    executor: Executor, done: Callable[[], bool], log: Log, context: Context | None = None
) -> None:
    """Spin until ``done``, or until the ROS context (None: the default one) is shut down.

    A fault in a callback, or in rclpy itself, does not end the recording: some versions of rclpy let an
    invalid lifecycle transition, asked for by anybody, come out of here as an RCLError.
    """
    complaints = Complaints(log)
    while rclpy.ok(context=context) and not done():
        _spin_once(executor, complaints)


def _spin_once(executor: Executor, complaints: Complaints) -> None:
    try:
        executor.spin_once(timeout_sec=_SPIN_S)
    except ExternalShutdownException:
        return  # rclpy.ok() says so too
    except Exception as error:  # noqa: BLE001 - said, and gone on
        complaints.warn(type(error).__name__, f'a ROS callback failed: {error!r}')
        time.sleep(_AFTER_FAULT_S)
