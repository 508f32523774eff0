"""What the descriptions of MRPT's classes share: the register of all, and defaults of their fields."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from cognitive3d_ros.wire.mrpt.archive import Archive, MrptObject

Floats = NDArray[np.float64]
Single = NDArray[np.float32]
K = TypeVar('K', bound=type[MrptObject])

CLASSES: Final[dict[str, type[MrptObject]]] = {}
"""All of them, by name without the namespace."""


def mrpt(name: str, version: int, *others: int) -> Callable[[K], K]:
    """Enter a class under its name; ``others`` are further versions that are read."""

    def enter(kind: K) -> K:
        kind.NAME, kind.VERSION, kind.READS = name, version, (version, *others)
        CLASSES[name.rpartition('::')[2]] = kind
        return kind

    return enter


def zeros(count: int) -> list[float]:
    """Return so many zeros."""
    return [0.0] * count


def none(dtype: Any) -> NDArray[Any]:
    """Return an empty array."""
    return np.empty(0, dtype)


def optional(ar: Archive, kind: str, values: list[Any] | None, count: int) -> list[Any] | None:
    """Write or read numbers that may be missing, behind a boolean that says whether they are there."""
    if not ar.number('bool', values is not None):
        return None
    return ar.numbers(kind, values or [], count)
