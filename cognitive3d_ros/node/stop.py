"""How the process is asked to end, and what its exit code says."""

from __future__ import annotations

import os
import signal
from types import FrameType

EXIT_FAILED = 1
EXIT_PARAMETERS = 2


class Stop:
    """What the signals ask for. ``settled`` is the exit code, once what can be kept is on the disk."""

    def __init__(self) -> None:
        self.asked = self.hurry = False
        self.settled: int | None = None

    def install(self) -> None:
        """Take SIGINT and SIGTERM; called again by whoever let a library take them."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._on_signal)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self.hurry = self.asked
        self.asked = True
        self.leave_in_a_hurry()

    def leave_in_a_hurry(self) -> None:
        """Exit at once where that was asked for and nothing more can be kept."""
        if self.hurry and self.settled is not None:
            os._exit(self.settled)
