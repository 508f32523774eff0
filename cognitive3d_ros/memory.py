"""What a process that handles big messages asks of the C library."""

from __future__ import annotations

import ctypes

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8  # of glibc's mallopt


def keep_freed_memory() -> None:
    """Keep glibc from giving the memory of big messages back to the system, and faulting it in again.

    And share it between threads: each would keep as much as it ever needed for itself, and a message passes
    through several. For the whole process, so only programs call this. Another C library is left as it is.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return
    mallopt(_M_TRIM_THRESHOLD, 256 << 20)
    mallopt(_M_MMAP_THRESHOLD, 32 << 20)
    mallopt(_M_ARENA_MAX, 2)
