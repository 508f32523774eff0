"""What the rooms say to people, whoever writes it down: the node's logger, or standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Protocol

_QUIET_NS = 10_000_000_000  # the same complaint at most once in this time


def printable(text: object) -> str:
    """Return text on one line that moves no cursor: what was recorded, or a file's name, may hold anything."""
    return ''.join(
        c if c.isprintable() else c.encode('unicode_escape').decode() for c in str(text)
    )


class Log(Protocol):
    """Three levels, one line each."""

    def info(self, text: str) -> None:
        """Say what was done."""
        ...

    def warning(self, text: str) -> None:
        """Say what is not as it should be, and was coped with."""
        ...

    def error(self, text: str) -> None:
        """Say what could not be done."""
        ...


class StderrLog:
    """Lines on standard error, as a command line tool writes them."""

    def info(self, text: str) -> None:
        """Write the line."""
        print(printable(text), file=sys.stderr)

    def warning(self, text: str) -> None:
        """Write the line, marked."""
        print(f'warning: {printable(text)}', file=sys.stderr)

    def error(self, text: str) -> None:
        """Write the line, marked."""
        print(f'error: {printable(text)}', file=sys.stderr)


class Complaints:
    """Warnings that a flood of bad input cannot turn into a flood of lines.

    Each ``topic`` is warned about at once, then at most every ten seconds, with how many were left out.
    """

    def __init__(self, log: Log, now_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self._log, self._now_ns = log, now_ns
        self._quiet: dict[str, tuple[int, int]] = {}  # topic: (quiet until, left out)

    def warn(self, topic: str, text: str) -> None:
        """Warn, or count a warning that is left out. Topics are few and ours: never from outside."""
        now_ns = self._now_ns()
        until_ns, left_out = self._quiet.get(topic, (now_ns, 0))
        if now_ns < until_ns:
            self._quiet[topic] = (until_ns, left_out + 1)
            return
        self._log.warning(f'{text} (and {left_out} more like it)' if left_out else text)
        self._quiet[topic] = (now_ns + _QUIET_NS, 0)
