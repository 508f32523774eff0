"""A wait that another thread can end."""

from __future__ import annotations

import os
import select
import weakref


class Alarm:
    """A wait of one thread that any other can end early.

    It sleeps on the monotonic clock; the locks of Python 3.10 sleep on the wall clock, and would sleep an
    hour when that is set back by one.
    """

    def __init__(self) -> None:
        self._fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._close = weakref.finalize(self, os.close, self._fd)
        self._poll = select.poll()
        self._poll.register(self._fd, select.POLLIN)

    def ring(self) -> None:
        """End the wait that is going on, or the next one."""
        os.eventfd_write(self._fd, 1)

    def wait(self, timeout_s: float) -> bool:
        """Wait until :meth:`ring`, for ``timeout_s`` at most; return whether it rang."""
        rang = bool(self._poll.poll(max(timeout_s, 0.0) * 1000))
        if rang:
            os.eventfd_read(self._fd)
        return rang

    def close(self) -> None:
        """Give the descriptor back now; otherwise it goes with the last reference."""
        self._close()
