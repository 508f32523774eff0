"""How the process is asked to end, and what its exit code says."""

from __future__ import annotations

import os
import signal
import time
from types import FrameType

EXIT_FAILED = 1
EXIT_PARAMETERS = 2
DELIVERY_S = 3.0  # is spent on delivery at the end
_ALL_S = 5.0  # from the signal to the end of delivery; docker stop kills after ten


class Stop:
    """What the signals ask for. ``settled`` is the exit code, once what can be kept is on the disk."""

    def __init__(self) -> None:
        self.hurry = False
        self.begun = False  # something that has to be ended
        self._asked_at_s: float | None = None
        self.settled: int | None = None

    def install(self) -> None:
        """Take SIGINT and SIGTERM; called again by whoever let a library take them."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._on_signal)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self.hurry = self.asked
        if not self.begun:
            os._exit(0)
        if not self.asked:
            self._asked_at_s = time.monotonic()
        self.leave_in_a_hurry()

    @property
    def asked(self) -> bool:
        """Whether a signal has come."""
        return self._asked_at_s is not None

    @property
    def delivery_s(self) -> float:
        """How long may be spent on delivery now: less where what came before it has taken long."""
        passed_s = 0.0 if self._asked_at_s is None else time.monotonic() - self._asked_at_s
        return max(0.0, min(DELIVERY_S, _ALL_S - passed_s))

    def leave_in_a_hurry(self) -> None:
        """Exit at once where that was asked for and nothing more can be kept."""
        if self.hurry and self.settled is not None:
            os._exit(self.settled)
