"""The journal of a session: the bytes, and what they say after a crash. Nothing here touches a disk.

A journal is a sequence of batches, one for each flush. Every batch is complete by itself but for the
entries of earlier ones: it holds the whole :class:`State` of the session and the entries that are new. So the
last intact batch says which segments have no finished part yet, and a segment it does not name is finished.
That makes replay forgiving: a batch that is cut off or damaged costs its own entries and nothing else, and
since each segment's count of entries stands in the state, replay knows how many those are.

All numbers are little-endian::

    4  magic     b'C3DJ'
    2  format    1
    2  reserved  0
    4  length    of the payload
    4  crc32     zlib's, of what precedes it and the payload
    payload:
        4  length, state as JSON
        4  length, context
        any number of:  4 segment, 4 length, entry
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field

from cognitive3d_ros.wire.identity import SessionIdentity

MAGIC = b'C3DJ'
FORMAT = 1
_HEAD = struct.Struct('<4sHHI')
_CRC = struct.Struct('<I')
_FIXED_BYTES = _HEAD.size + _CRC.size
_LENGTH = struct.Struct('<I')
_ENTRY = struct.Struct('<II')


@dataclass(frozen=True, slots=True)
class OpenSegment:
    """A run of entries of one stream and class that has no finished part yet.

    ``count`` is how many of its entries the journal holds, ``latest_ns`` the wire time of the latest.
    """

    segment: int
    stream: str
    klass: str
    latest_ns: int
    count: int


@dataclass(frozen=True, slots=True)
class State:
    """Where a session stands.

    ``numbers`` has the number of the last finished part of each stream, ``segment`` the last segment
    that was begun, ``latest_ns`` the wire time of the latest durable record of any stream.
    """

    identity: SessionIdentity
    numbers: Mapping[str, int]
    segment: int
    latest_ns: int
    open: tuple[OpenSegment, ...]
    context: bytes


@dataclass(slots=True)
class Replay:
    """What a journal says.

    ``state`` is that of the last intact batch, or None. ``entries`` are those of its open segments.
    ``lost_entries`` counts what should be in them and is not, ``damaged_bytes`` what could not be read
    between intact batches, ``torn_bytes`` what was cut off at the end, and ``newer`` the format of a batch that
    this version does not read.
    """

    state: State | None = None
    entries: dict[int, list[bytes]] = field(default_factory=dict)
    lost_entries: int = 0
    damaged_bytes: int = 0
    torn_bytes: int = 0
    newer: int | None = None


def batch(state: State, entries: Iterable[tuple[int, Sequence[bytes]]]) -> bytes:
    """Return one batch: the state, and new entries by segment."""
    values = {
        'identity': asdict(state.identity),
        'numbers': dict(state.numbers),
        'segment': state.segment,
        'latest_ns': state.latest_ns,
        'open': [[s.segment, s.stream, s.klass, s.latest_ns, s.count] for s in state.open],
    }
    text = json.dumps(values, separators=(',', ':')).encode()
    pieces = [_LENGTH.pack(len(text)), text, _LENGTH.pack(len(state.context)), state.context]
    for segment, run in entries:
        for entry in run:
            pieces += (_ENTRY.pack(segment, len(entry)), entry)
    payload = b''.join(pieces)
    head = _HEAD.pack(MAGIC, FORMAT, 0, len(payload))
    return head + _CRC.pack(zlib.crc32(payload, zlib.crc32(head))) + payload


def replay(data: bytes) -> Replay:
    """Read a journal, whatever state it is in. Never raises."""
    found = Replay()
    all_entries: dict[int, list[bytes]] = {}
    at = bad_from = 0
    while at < len(data):
        payload = _payload(data, at, found)
        read = None if payload is None else _read(payload)
        if payload is None or read is None:
            at = data.find(MAGIC, at + 1)
            at = at if at >= 0 else len(data)
            continue
        found.damaged_bytes += at - bad_from
        found.state, entries = read
        for number, entry in entries:
            all_entries.setdefault(number, []).append(entry)
        at = bad_from = at + _FIXED_BYTES + len(payload)
    found.torn_bytes = len(data) - bad_from
    if found.state is not None:
        for segment in found.state.open:
            run = all_entries.get(segment.segment, [])
            found.entries[segment.segment] = run
            found.lost_entries += max(0, segment.count - len(run))
    return found


def _payload(data: bytes, at: int, found: Replay) -> bytes | None:
    """Return the payload of the batch that begins at ``at``, if an intact one does."""
    if data[at : at + 4] != MAGIC or len(data) - at < _FIXED_BYTES:
        return None
    _, version, _, length = _HEAD.unpack_from(data, at)
    (crc,) = _CRC.unpack_from(data, at + _HEAD.size)
    start = at + _FIXED_BYTES
    if length > len(data) - start:
        return None
    payload = data[start : start + length]
    if zlib.crc32(payload, zlib.crc32(data[at : at + _HEAD.size])) != crc:
        return None
    if version != FORMAT:
        found.newer = version
        return None
    return payload


def _read(payload: bytes) -> tuple[State, list[tuple[int, bytes]]] | None:
    """Read a batch whose checksum is right; None if it is not what :func:`batch` makes all the same."""
    entries = []
    try:
        text, at = _sized(payload, 0)
        context, at = _sized(payload, at)
        while at < len(payload):
            segment, length = _ENTRY.unpack_from(payload, at)
            at += _ENTRY.size + length
            entries.append((segment, payload[at - length : at]))
        values = json.loads(text)
        state = State(
            identity=SessionIdentity(**values['identity']),
            numbers=values['numbers'],
            segment=values['segment'],
            latest_ns=values['latest_ns'],
            open=tuple(OpenSegment(*item) for item in values['open']),
            context=context,
        )
    except (struct.error, ValueError, KeyError, TypeError):
        return None
    return state, entries


def _sized(payload: bytes, at: int) -> tuple[bytes, int]:
    """Return the bytes that a length at ``at`` announces, and where they end."""
    (length,) = _LENGTH.unpack_from(payload, at)
    at += _LENGTH.size
    return payload[at : at + length], at + length
