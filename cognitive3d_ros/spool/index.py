"""Which parts there are: an index in memory, built from the names in the folders once and kept since.

The folders are the truth; this is what they held when they were read, plus what this process has done to
them. It holds a few hundred bytes a part. It knows no lock: the spool holds one.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator
from typing import NamedTuple

from cognitive3d_ros.wire.framing import STREAMS

EVICTED_FIRST = ('lidar', 'camera', 'series', 'pose')
"""The classes that may be evicted, the first to go first. Events and properties are never evicted."""

_STREAMS_OF = {
    'lidar': ('lidar',),
    'camera': ('camera',),
    'series': ('sensors',),
    'pose': ('gaze', 'dynamics'),
}


class PartRef(NamedTuple):
    """A finished part in the spool, waiting to be delivered."""

    session_id: str
    stream: str
    number: int
    klass: str
    size_bytes: int


def session_order(session_id: str) -> tuple[int, str]:
    """Return what sessions are ordered by: their second, then the id."""
    return int(session_id.partition('_')[0]), session_id


class Index:
    """The parts by session and stream, sessions by age, parts by number."""

    def __init__(self) -> None:
        self.parts = 0
        self.size_bytes = 0
        self._order: list[str] = []
        self._sessions: dict[str, dict[str, dict[int, PartRef]]] = {}

    def add(self, refs: list[PartRef]) -> None:
        """Add parts; those of one stream must come by ascending number."""
        for ref in refs:
            streams = self._sessions.get(ref.session_id)
            if streams is None:
                streams = self._sessions[ref.session_id] = {}
                bisect.insort(self._order, ref.session_id, key=session_order)
            streams.setdefault(ref.stream, {})[ref.number] = ref
            self.parts += 1
            self.size_bytes += ref.size_bytes

    def remove(self, ref: PartRef) -> bool:
        """Remove a part; False if it is not there (any more)."""
        streams = self._sessions.get(ref.session_id, {})
        numbers = streams.get(ref.stream, {})
        if numbers.pop(ref.number, None) is None:
            return False
        if not numbers:
            del streams[ref.stream]
        if not streams:
            del self._sessions[ref.session_id]
            at = bisect.bisect_left(self._order, session_order(ref.session_id), key=session_order)
            del self._order[at]
        self.parts -= 1
        self.size_bytes -= ref.size_bytes
        return True

    def sessions(self) -> list[str]:
        """Return the sessions that have parts, oldest first."""
        return list(self._order)

    def of_session(self, session_id: str) -> list[PartRef]:
        """Return a session's parts, stream by stream, by number."""
        streams = self._sessions.get(session_id, {})
        return [ref for stream in STREAMS for ref in streams.get(stream, {}).values()]

    def heads(self, session_id: str) -> list[PartRef]:
        """Return the first part of each stream of a session."""
        streams = self._sessions.get(session_id, {})
        return [next(iter(streams[stream].values())) for stream in STREAMS if stream in streams]

    def victims(self, klass: str) -> Iterator[PartRef]:
        """Give the parts of a class that may be evicted, the first to go first."""
        for session_id in self._order:
            streams = self._sessions[session_id]
            for stream in _STREAMS_OF[klass]:
                for ref in streams.get(stream, {}).values():
                    if ref.klass == klass:
                        yield ref
