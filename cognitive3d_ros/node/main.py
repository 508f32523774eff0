"""The process of the recorder node: signals, start, spin, end.

The first SIGINT or SIGTERM ends the session on disk, gives delivery a moment, and exits with 0. A second one
exits as soon as the session is on disk; it never waits for delivery or for ROS.
"""

from __future__ import annotations

import ctypes
import sys

from .stop import Stop

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of glibc's mallopt


def _keep_freed_memory() -> None:
    """Keep glibc from giving the memory of big messages back to the system, and faulting it in again."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return  # another C library
    mallopt(_M_TRIM_THRESHOLD, 256 << 20)
    mallopt(_M_MMAP_THRESHOLD, 32 << 20)


def main(argv: list[str] | None = None) -> int:
    """Run the recorder node until it is signalled; return the exit code.

    0 after a signal, 1 when ``autostart`` fails, 2 when it fails for the parameters.
    """
    stop = Stop()
    stop.install()
    _keep_freed_memory()
    from .process import run  # rclpy takes a while to import, and signals come at any time

    return run(sys.argv if argv is None else [sys.argv[0], *argv], stop)


if __name__ == '__main__':
    sys.exit(main())
