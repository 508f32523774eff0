"""Where the robot was at any time between two samples of the pose timeline."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cognitive3d_ros.quaternions import Array, normalised_array
from cognitive3d_ros.session.fixed import fixed
from cognitive3d_ros.session.streams import Poses


class Placed(NamedTuple):
    """Poses at times that were asked for."""

    known: NDArray[np.bool_]
    """(N,): whether the time lies within the timeline. What is given for other times means nothing."""
    p: Array
    """(N, 3), metres."""
    r: Array
    """(N, 4), x y z w."""
    gap: Array
    """(N,): seconds between the samples before and after; 0 at a sample's own time."""


class Track:
    """The pose timeline in time order; between samples position is linear, and rotation by slerp."""

    def __init__(self, poses: Poses) -> None:
        order = np.argsort(poses.time, kind='stable')
        self.time = fixed(poses.time[order])
        self.p = fixed(poses.p[order])
        self.r = fixed(normalised_array(poses.r[order]))

    def __len__(self) -> int:
        return len(self.time)

    def at(self, times: ArrayLike) -> Placed:
        """Return the poses at times (N,), seconds since the epoch."""
        wanted = np.asarray(times, dtype=np.float64)
        if not len(self):
            shape = wanted.shape
            empty = np.zeros(shape, np.bool_)
            return Placed(empty, np.zeros((*shape, 3)), np.zeros((*shape, 4)), np.zeros(shape))
        last = len(self) - 1
        after = np.clip(np.searchsorted(self.time, wanted, side='right'), 0, last)
        before = np.maximum(after - 1, 0)
        span = self.time[after] - self.time[before]
        past = wanted - self.time[before]
        share = np.clip(np.divide(past, span, out=np.zeros_like(span), where=span > 0), 0, 1)
        share = np.where(wanted >= self.time[after], 1.0, share)
        p = (1 - share[:, None]) * self.p[before] + share[:, None] * self.p[after]
        r = _slerp(self.r[before], self.r[after], share[:, None])
        known = (wanted >= self.time[0]) & (wanted <= self.time[last])
        return Placed(known, p, r, np.where((share == 0) | (share == 1), 0.0, span))


def _slerp(a: Array, b: Array, share: Array) -> Array:
    """Turn unit quaternions (N, 4) towards others by the shorter way, by shares (N, 1)."""
    cosine = np.sum(a * b, axis=1, keepdims=True)
    b = np.where(cosine < 0, -b, b)
    angle = np.arccos(np.minimum(1.0, np.abs(cosine)))
    sine = np.sin(angle)
    near = angle < 1e-6
    safe = np.where(near, 1.0, sine)
    first = np.where(near, 1 - share, np.sin((1 - share) * angle) / safe)
    second = np.where(near, share, np.sin(share * angle) / safe)
    return normalised_array(first * a + second * b)
