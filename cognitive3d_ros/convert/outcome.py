"""What comes of a message that cannot be converted, and what malformed ones are allowed to do."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from cognitive3d_ros.counters import Drop

MAX_RECORD_BYTES: Final = 32 << 20
"""The largest frame, scan or cloud that is taken; larger ones are dropped."""

MALFORMED: Final = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    BufferError,
    LookupError,
    NotImplementedError,
    TypeError,
    ValueError,
    struct.error,
)
"""What reading a message raises when a field is missing, or is not of the type it should have."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """A message of which nothing is stored: the reason it is counted under, and what was wrong."""

    reason: Drop
    text: str


class Refused(ValueError):  # noqa: N818 - a Dropped on its way out of a converter
    """Raised inside a converter for a message that it can say something about; never leaves it."""

    def __init__(self, dropped: Dropped) -> None:
        super().__init__(dropped.text)
        self.dropped = dropped


def refuse(text: str) -> Refused:
    """Return what to raise for a message that contradicts itself or lacks something."""
    return Refused(Dropped(Drop.BAD_MESSAGE, text))


def refuse_size(what: str, size: int) -> Refused:
    """Return what to raise for a message of more than :data:`MAX_RECORD_BYTES`."""
    text = f'{what} of {size} bytes; at most {MAX_RECORD_BYTES} (32 MiB) are stored'
    return Refused(Dropped(Drop.TOO_LARGE, text))


def dropped(what: str, error: Exception) -> Dropped:
    """Return the outcome for one of :data:`MALFORMED`."""
    if isinstance(error, Refused):
        return error.dropped
    return Dropped(
        Drop.BAD_MESSAGE, f'{what} that cannot be read: {type(error).__name__}: {error}'
    )
