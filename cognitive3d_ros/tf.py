"""Transforms between frames: what a recorder asks of tf, and a tf buffer in pure Python.

``TransformSource`` is the whole of tf that the recorder knows; the node answers it with ``tf2_ros``, the
offline door with :class:`TransformBuffer`, which gives tf2's answers without ROS (a property test holds
the two together).
"""

from __future__ import annotations

import enum
import math
import threading
from bisect import bisect_left
from typing import Final, NamedTuple, Protocol

from cognitive3d_ros.quaternions import (
    IDENTITY,
    Quaternion,
    Vector,
    conjugate,
    multiply,
    rotate,
    slerp,
)

NORM_TOLERANCE: Final = 0.01
"""How far the squared length of a rotation may be from 1: tf2's own tolerance."""


class Transform(NamedTuple):
    """Takes points of one frame to another, at a time: metres, and a quaternion with w last."""

    stamp_ns: int
    translation: Vector
    rotation: Quaternion


class Miss(enum.Enum):
    """Why there is no transform."""

    FUTURE = 'future'
    """The time is newer than the newest data: worth waiting for."""
    PAST = 'past'
    """The time is older than the oldest data."""
    UNKNOWN_FRAME = 'unknown_frame'
    """No transform has named one of the frames yet; a tree that holds a loop is told so too, by tf2."""
    DISCONNECTED = 'disconnected'
    """Both frames are known, but nothing links them."""
    INVALID = 'invalid'
    """A frame's name is empty or begins with a slash."""


class TransformSource(Protocol):
    """Anything that can say where frames are."""

    def lookup(self, target: str, source: str, time_ns: int | None) -> Transform | Miss:
        """Return the transform that takes points in ``source`` to ``target``, or why there is none.

        ``time_ns`` is ROS time; None asks for the newest time at which the whole chain is known. Neither
        blocks nor raises. A chain of static transforms answers at any time, with stamp 0 for the newest.
        """
        ...  # pragma: no cover

    def clear(self) -> None:
        """Forget all but static transforms: the ROS clock has jumped."""
        ...  # pragma: no cover


def frame_name(frame_id: str) -> str:
    """Return a message's ``frame_id`` as tf2 names the frame: without the leading slash of ROS 1."""
    return frame_id.removeprefix('/')


# Where a frame is in its parent at a time: stamp in ns, parent, translation, rotation. A plain tuple
# because look-ups make and compare many; two of them compare by their stamps, which differ.
_Entry = tuple[int, str, Vector, Quaternion]


class _Static:
    """A frame that is fixed in its parent: what was said last holds at any time."""

    __slots__ = ('_entry',)
    _entry: _Entry

    def insert(self, entry: _Entry) -> bool:
        self._entry = (0, *entry[1:])
        return True

    def newest(self) -> _Entry:
        return self._entry

    def at(self, time_ns: int) -> _Entry:  # noqa: ARG002 - any time is alike
        return self._entry

    def clear(self) -> None:
        """Keep it: a static transform is said once, and holds after a jump of the clock too."""


class _Moving:
    """A frame that moves in its parent: entries in order of their stamps, the last ``cache_ns``."""

    __slots__ = ('_cache_ns', '_entries')

    def __init__(self, cache_ns: int) -> None:
        self._cache_ns = cache_ns
        self._entries: list[_Entry] = []

    def insert(self, entry: _Entry) -> bool:
        entries, stamp_ns = self._entries, entry[0]
        if not entries or stamp_ns > entries[-1][0]:
            entries.append(entry)
        else:
            if stamp_ns < entries[-1][0] - self._cache_ns:
                return False
            place = bisect_left(entries, (stamp_ns,))
            if entries[place][0] == stamp_ns:
                return False
            entries.insert(place, entry)
        oldest_ns = entries[-1][0] - self._cache_ns
        if entries[0][0] < oldest_ns:
            del entries[: bisect_left(entries, (oldest_ns,))]
        return True

    def newest(self) -> _Entry | None:
        return self._entries[-1] if self._entries else None

    def at(self, time_ns: int) -> _Entry | Miss:
        """Interpolate at ``time_ns`` (0: the newest); between two parents the older one holds."""
        entries = self._entries
        if not entries:
            return Miss.FUTURE
        if time_ns == 0:
            return entries[-1]
        place = bisect_left(entries, (time_ns,))
        if place == len(entries):
            return Miss.FUTURE
        newer = entries[place]
        if newer[0] == time_ns:
            return newer
        if place == 0:
            return Miss.PAST
        older = entries[place - 1]
        start_ns, parent, (ax, ay, az), rotation = older
        end_ns, newer_parent, (bx, by, bz), newer_rotation = newer
        if parent != newer_parent:
            return older
        b = (time_ns - start_ns) / (end_ns - start_ns)
        a = 1.0 - b
        between = (a * ax + b * bx, a * ay + b * by, a * az + b * bz)
        return (time_ns, parent, between, slerp(rotation, newer_rotation, b))

    def clear(self) -> None:
        self._entries.clear()


class TransformBuffer:
    """A tf buffer: transforms go in as they arrive, look-ups come out interpolated. Thread safe.

    Gives what tf2's buffer gives: linear interpolation and slerp, no extrapolation, ``cache_s`` of
    history for each moving frame, data older than that or with a stamp that is there already ignored,
    frames that change their parent, the newest common time of a chain. A look-up at time 0 is one for the
    newest, as in tf2. Whether a frame is static is decided by the first transform that names it.
    """

    def __init__(self, cache_s: float = 10.0) -> None:
        self._cache_ns = round(cache_s * 1e9)
        self._frames: dict[str, _Static | _Moving] = {}
        self._known: set[str] = set()
        self._lock = threading.Lock()

    def set_transform(
        self,
        parent: str,
        child: str,
        stamp_ns: int,
        translation: Vector,
        rotation: Quaternion,
        *,
        static: bool = False,
    ) -> bool:
        """Say where ``child`` is in ``parent``, with a leading slash dropped from either name.

        Returns False, and stores nothing, where tf2 refuses: empty or equal names, numbers that are not
        finite (tf2 lets infinities in), a rotation that is not of unit length (to ``NORM_TOLERANCE`` of
        its square), a stamp that is too old or there already.
        """
        parent, child = frame_name(parent), frame_name(child)
        x, y, z, w = rotation
        square = x * x + y * y + z * z + w * w
        if (
            parent == child
            or not parent
            or not child
            or not math.isfinite(sum(translation))
            or not abs(square - 1.0) < NORM_TOLERANCE  # False for NaN
        ):
            return False
        with self._lock:
            cache = self._frames.get(child)
            if cache is None:
                cache = self._frames[child] = _Static() if static else _Moving(self._cache_ns)
                self._known.add(child)
            self._known.add(parent)
            return cache.insert((stamp_ns, parent, translation, rotation))

    def lookup(self, target: str, source: str, time_ns: int | None = None) -> Transform | Miss:
        """Return the transform from ``source`` to ``target``: see :class:`TransformSource`."""
        with self._lock:
            if target == source:
                return Transform(time_ns or self._newest_ns(target), (0.0, 0.0, 0.0), IDENTITY)
            for frame in (target, source):
                if not frame or frame[0] == '/':
                    return Miss.INVALID
                if frame not in self._known:
                    return Miss.UNKNOWN_FRAME
            at_ns = time_ns or self._newest_common_ns(target, source)
            if isinstance(at_ns, Miss):
                return at_ns
            return self._between(target, source, at_ns)

    def clear(self) -> None:
        """Forget what moves, as after a jump of the clock; static transforms and names stay."""
        with self._lock:
            for cache in self._frames.values():
                cache.clear()

    def _between(self, target: str, source: str, time_ns: int) -> Transform | Miss:
        """Climb from the source, then from the target to where the two ways meet."""
        top, up, up_turn, missed = self._climb(source, (target,), time_ns)
        if top == target:
            return Transform(time_ns, up, up_turn)
        if missed is Miss.UNKNOWN_FRAME:
            return missed
        meet, down, down_turn, target_missed = self._climb(target, (top, source), time_ns)
        if target_missed is not None:
            return target_missed
        back = conjugate(down_turn)
        dx, dy, dz = down
        if meet == source:
            return Transform(time_ns, rotate(back, (-dx, -dy, -dz)), back)
        if meet != top:
            return missed or Miss.DISCONNECTED
        ux, uy, uz = up
        between = rotate(back, (ux - dx, uy - dy, uz - dz))
        return Transform(time_ns, between, multiply(back, up_turn))

    def _climb(
        self, start: str, ends: tuple[str, ...], time_ns: int
    ) -> tuple[str, Vector, Quaternion, Miss | None]:
        """Climb from ``start`` to one of ``ends``, to a root, or to where nothing is known at the time.

        Returns the frame reached, the transform from ``start`` to it, and the miss that ended the climb:
        None at an end and at a root, UNKNOWN_FRAME in a loop.
        """
        frame = start
        if frame in ends:
            return frame, (0.0, 0.0, 0.0), IDENTITY, None
        at: Vector = (0.0, 0.0, 0.0)
        turn: Quaternion = IDENTITY
        for _ in range(len(self._frames) + 1):
            cache = self._frames.get(frame)
            if cache is None:
                return frame, at, turn, None
            entry = cache.at(time_ns)
            if isinstance(entry, Miss):
                return frame, at, turn, entry
            _, parent, (px, py, pz), rotation = entry
            if frame == start:
                at, turn = entry[2], rotation
            else:
                x, y, z = rotate(rotation, at)
                at, turn = (x + px, y + py, z + pz), multiply(rotation, turn)
            frame = parent
            if frame in ends:
                return frame, at, turn, None
        return frame, at, turn, Miss.UNKNOWN_FRAME

    def _newest_ns(self, frame: str) -> int:
        cache = self._frames.get(frame)
        newest = cache.newest() if cache is not None else None
        return 0 if newest is None else newest[0]

    def _newest_common_ns(self, target: str, source: str) -> int | Miss:
        """Return the newest time at which the chain between two frames is known; 0 if all is static.

        The chain is the newest one, by the newest parent of each frame. As in tf2, a stamp of 0 counts as
        static.
        """
        up = self._newest_chain(source, (target,))
        if isinstance(up, Miss):
            return up
        if up and up[-1][1] == target:
            return _oldest_ns(up)
        above_source = [parent for _, parent in up]
        down = self._newest_chain(target, (*above_source, source))
        if isinstance(down, Miss):
            return down
        meet = down[-1][1] if down else None
        if meet in above_source:
            return _oldest_ns(down + up[: above_source.index(meet) + 1])
        return _oldest_ns(down) if meet == source else Miss.DISCONNECTED

    def _newest_chain(self, start: str, ends: tuple[str, ...]) -> list[tuple[int, str]] | Miss:
        """Return (stamp, parent) from ``start`` upwards, until a parent is one of ``ends`` or a root."""
        chain: list[tuple[int, str]] = []
        frame = start
        while len(chain) <= len(self._frames):
            cache = self._frames.get(frame)
            newest = cache.newest() if cache is not None else None
            if newest is None:
                return chain
            chain.append(newest[:2])
            frame = newest[1]
            if frame in ends:
                return chain
        return Miss.UNKNOWN_FRAME


def _oldest_ns(chain: list[tuple[int, str]]) -> int:
    """Return the oldest stamp of a chain, static parts apart; 0 if all of it is static."""
    return min((stamp_ns for stamp_ns, _ in chain if stamp_ns != 0), default=0)
