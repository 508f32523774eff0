"""What a process that handles big messages asks of the C library."""

from __future__ import annotations

import ctypes
import functools

GIVE_BACK_S = 10.0
"""How often a program that runs for long gives back what is free."""

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8  # of glibc's mallopt


def keep_freed_memory() -> None:
    """Keep glibc from giving the memory of big messages back to the system, and faulting it in again.

    And share all of it between threads: each would keep as much as it ever needed for itself, a message passes
    through several, and of two pools each grows by a part now and then for which the other has room. For the
    whole process, so only programs call this. Another C library is left as it is.
    """
    mallopt = _of_libc('mallopt')
    if mallopt is not None:
        mallopt(_M_TRIM_THRESHOLD, 256 << 20)
        mallopt(_M_MMAP_THRESHOLD, 32 << 20)
        mallopt(_M_ARENA_MAX, 1)


def give_freed_memory_back() -> None:
    """Give the system the memory that is free just now.

    What is kept is as much as was ever needed at one time, and more where a new part or picture fits into no
    hole that others have left: it grows for hours, by ever fewer steps, although nothing is lost. Given
    back now and then, at a cost of a few milliseconds, it is what is in use.
    """
    trim = _of_libc('malloc_trim')
    if trim is not None:
        trim(0)


@functools.cache
def _of_libc(name: str) -> ctypes._NamedFuncPointer | None:
    """Return a function that only glibc has; None where the C library is another."""
    try:
        function: ctypes._NamedFuncPointer = getattr(ctypes.CDLL(None), name)
    except (OSError, AttributeError):
        return None
    return function
