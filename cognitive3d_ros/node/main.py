"""The process of the recorder node: signals, start, spin, end.

The first SIGINT or SIGTERM ends the session on disk, gives delivery a moment, and exits with 0. A second one
exits as soon as the session is on disk; it never waits for delivery or for ROS.
"""

from __future__ import annotations

import sys

from .stop import Stop


def main(argv: list[str] | None = None) -> int:
    """Run the recorder node until it is signalled; return the exit code.

    0 after a signal, 1 when ``autostart`` fails or the disk refused what was recorded to the last, 2 when
    ``autostart`` fails for the parameters.
    """
    stop = Stop()
    stop.install()
    # What is imported before that cannot be interrupted cleanly: signals come at any time.
    from cognitive3d_ros.memory import keep_freed_memory

    keep_freed_memory()
    from .process import run  # with rclpy, which takes a while

    return run(sys.argv if argv is None else [sys.argv[0], *argv], stop)


if __name__ == '__main__':
    sys.exit(main())
