"""The node's log: rclpy's logger while there is a ROS context, standard error after that."""

from __future__ import annotations

import sys

import rclpy
from rclpy.impl.rcutils_logger import RcutilsLogger


class NodeLog:
    """A ``Log`` that can be used to the very end of the process."""

    def __init__(self, logger: RcutilsLogger) -> None:
        self._logger, self._name = logger, logger.name
        self._detached = False

    def detach(self) -> None:
        """Use ROS no more: the path to a durable end must not hang on it."""
        self._detached = True

    # rclpy remembers the severity of each place that logs, so each has its own.

    def info(self, text: str) -> None:
        """Say what was done."""
        if self._use_ros():
            self._logger.info(text)
        else:
            self._print('INFO', text)

    def warning(self, text: str) -> None:
        """Say what is not as it should be, and was coped with."""
        if self._use_ros():
            self._logger.warning(text)
        else:
            self._print('WARN', text)

    def error(self, text: str) -> None:
        """Say what could not be done."""
        if self._use_ros():
            self._logger.error(text)
        else:
            self._print('ERROR', text)

    def _use_ros(self) -> bool:
        return not self._detached and rclpy.ok()

    def _print(self, severity: str, text: str) -> None:
        print(f'[{severity}] [{self._name}]: {text}', file=sys.stderr)
