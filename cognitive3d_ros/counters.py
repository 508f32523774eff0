"""The one ledger: everything that is counted, and every reason for which anything is dropped.

Every room writes it, ``recording/`` reads it for the health series, the node for ``/diagnostics`` and
``~/status``. Names are those of the health series; no room has names of its own.
"""

from __future__ import annotations

import enum
import threading
from collections.abc import Mapping


class _Key(enum.Enum):
    """An enumeration whose members are keys of the ledger."""

    # A member is there once: its identity will do, and costs a tenth of what Enum computes for each count.
    __hash__ = object.__hash__


class Count(_Key):
    """A running count; the value is the name of its health series."""

    POSE_FAILURES = 'c3d.pose_failures'
    STALE_POSES = 'c3d.stale_poses'
    GAZE_FRAME_FAILURES = 'c3d.gaze_frame_failures'
    CLOCK_RESETS = 'c3d.clock_resets'
    STAMP_FALLBACKS = 'c3d.stamp_fallbacks'
    MESSAGES_LOST = 'c3d.messages_lost'
    DROPPED_RECORDS = 'c3d.dropped_records'
    DROPPED_EVENTS = 'c3d.dropped_events'
    PARTS_WRITTEN = 'c3d.parts_written'
    PARTS_UPLOADED = 'c3d.parts_uploaded'
    PARTS_EVICTED = 'c3d.parts_evicted'
    PARTS_QUARANTINED = 'c3d.parts_quarantined'
    UPLOAD_FAILURES = 'c3d.upload_failures'


# Counted by the spool and the uploader, which go on between sessions: what happened since the end of
# the session before belongs to this one.
BETWEEN_SESSIONS = frozenset(
    {
        Count.PARTS_WRITTEN,
        Count.PARTS_UPLOADED,
        Count.PARTS_EVICTED,
        Count.PARTS_QUARANTINED,
        Count.UPLOAD_FAILURES,
    }
)


class Level(enum.Enum):
    """A current value; the value is the name of its health series."""

    SPOOL_BYTES = 'c3d.spool_bytes'
    SPOOL_PARTS = 'c3d.spool_parts'
    SPOOL_OLDEST_S = 'c3d.spool_oldest_s'
    DISK_FREE_BYTES = 'c3d.disk_free_bytes'
    UPLOAD_BLOCKED = 'c3d.upload_blocked'


class UploadBlocked(enum.IntEnum):
    """What holds the uploads up: the values of ``c3d.upload_blocked``."""

    DRAINING = 0
    NETWORK = 1
    REFUSED = 2
    THROTTLED = 3


class Drop(_Key):
    """Why something was dropped."""

    NO_REFERENCE_FRAME = 'no_reference_frame'
    BAD_EVENT = 'bad_event'
    RESERVED_NAME = 'reserved_name'
    NO_VALUE = 'no_value'
    QUEUE_FULL = 'queue_full'
    SPOOL_FULL = 'spool_full'
    DISK_ERROR = 'disk_error'
    BAD_MESSAGE = 'bad_message'
    WRONG_LENGTH = 'wrong_length'
    TOO_LARGE = 'too_large'
    SESSION_ENDED = 'session_ended'

    @property
    def is_loss(self) -> bool:
        """Whether something is missing: a message that says itself that it has no value holds no record."""
        return self is not Drop.NO_VALUE


class Fate(_Key):
    """What became of what came in on an input: what was received is the sum of all the others.

    The value is the last word of the health series of cameras and lidars, but that what is stored is
    called ``frames`` and ``scans`` there.
    """

    RECEIVED = 'received'
    STORED = 'stored'
    DECIMATED = 'decimated'
    GATED = 'gated'
    DROPPED = 'dropped'
    DECODE_FAILURES = 'decode_failures'
    POSE_FAILURES = 'pose_failures'


class LeftOut(_Key):
    """What is left out of messages that are stored without it: no fate of a message, and no dropped record."""

    OUT_OF_RANGE = 'out_of_range'
    """Points that ``int16_mm`` cannot hold."""
    INTENSITIES = 'intensities'
    """Those of laser scans that had not one for each ray."""
    BEYOND_LIMIT = 'beyond_limit'
    """Samples of more series than one input may have, or of endless names."""
    NO_NAME = 'no_name'
    """Samples of things without a name: no series can be named after them."""


class Missed(_Key):
    """What never came in on an input, so that it has no fate; all of it together is a count."""

    MESSAGES = 'messages_lost'
    """What DDS lost or overwrote before the node took it."""


Key = Count | tuple[Drop | Fate | LeftOut | Missed, str]


class Ledger:
    """Counts by :class:`Count`, and for each input by :class:`Fate` and :class:`Drop`. Thread safe.

    An input is named by its kind and its name: ``camera.front``, ``lidar.top``, ``topic.odom``; ``events``
    are the user's.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[Key, int] = {}

    def count(self, count: Count, n: int = 1) -> None:
        """Add ``n`` to a count."""
        with self._lock:
            self._counts[count] = self._counts.get(count, 0) + n

    def came(self, source: str, fate: Fate, n: int = 1) -> None:
        """Count what became of ``n`` messages of an input. What is dropped is counted by :meth:`drop`."""
        with self._lock:
            self._counts[fate, source] = self._counts.get((fate, source), 0) + n

    def drop(self, reason: Drop, source: str, n: int = 1, *, event: bool = False) -> None:
        """Count ``n`` dropped records (or events) of an input, under their reason and, if lost, in all."""
        keys: list[Key] = [(reason, source), (Fate.DROPPED, source)]
        if reason.is_loss:
            keys.append(Count.DROPPED_EVENTS if event else Count.DROPPED_RECORDS)
        with self._lock:
            for key in keys:
                self._counts[key] = self._counts.get(key, 0) + n

    def lost(self, source: str, n: int) -> None:
        """Count ``n`` messages of an input that were lost before they came in."""
        self.count(Count.MESSAGES_LOST, n)
        with self._lock:
            key = (Missed.MESSAGES, source)
            self._counts[key] = self._counts.get(key, 0) + n

    def leave_out(self, what: LeftOut, source: str, n: int = 1) -> None:
        """Count ``n`` things that are missing in what was stored of an input."""
        with self._lock:
            self._counts[what, source] = self._counts.get((what, source), 0) + n

    def value(self, key: Key) -> int:
        """Return one count."""
        with self._lock:
            return self._counts.get(key, 0)

    def snapshot(self) -> Mapping[Key, int]:
        """Return all counts as they are now; a key that is missing is 0."""
        with self._lock:
            return dict(self._counts)
