"""One session's way to the disk: entries in memory, the journal, finished parts.

An entry is appended to the open segment of its stream and class. A flush puts new entries into the journal,
and only then writes the segments that are due as parts. So what is on the disk after a crash is always what
some flush saw: no entry of a later one without all of the earlier ones, and the context that belongs to them.
Camera and lidar entries are too big to be written twice: they wait in memory for their part.
"""

from __future__ import annotations

import contextlib
import errno
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from cognitive3d_ros.counters import Drop, Ledger
from cognitive3d_ros.errors import SpoolError
from cognitive3d_ros.spool import journal
from cognitive3d_ros.spool.fs import Fs, replace_file, write_all
from cognitive3d_ros.spool.index import EVICTED_FIRST, PartRef
from cognitive3d_ros.wire.framing import PartHeader
from cognitive3d_ros.wire.identity import SessionIdentity

Assemble = Callable[[SessionIdentity, str, str, int, Sequence[bytes]], tuple[bytes, str]]
"""Makes a part's body of its entries: (identity, stream, class, number, entries) -> (body, content type)."""

JOURNAL = 'journal'
_JOURNAL_LIMIT_BYTES = 1 << 20
_ENTRY_BYTES = 48  # what an entry costs in memory besides its content
_S = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Rule:
    """When a segment of a class is closed, and how much may wait in memory before it is refused."""

    close_ns: int
    close_bytes: int
    pending_bytes: int
    journalled: bool = True


_MIB = 1 << 20
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
_JSON = Rule(10 * _S, 256 * 1024, 64 * _MIB)
_KEPT = Rule(10 * _S, 256 * 1024, 80 * _MIB)  # goes on when the others are refused already
_BINARY = Rule(5 * _S, 4 * _MIB, 64 * _MIB, journalled=False)
RULES: Mapping[str, Rule] = {
    'properties': Rule(10 * _S, 0, 80 * _MIB),  # closed at once
    'events': _KEPT,
    'pose': _JSON,
    'series': _JSON,
    'camera': _BINARY,
    'lidar': _BINARY,
}


class Home(Protocol):
    """What a session needs of the spool it lies in."""

    fs: Fs
    ledger: Ledger

    @property
    def full(self) -> bool:
        """Whether there is no room and nothing left to evict."""

    def part_due(self) -> None:
        """Ask for a flush: a part of entries that are in memory alone has been closed."""

    def make_room(self, need_bytes: int, *, starved: bool) -> None:
        """Evict until there is room for so many bytes, as far as there is anything to evict.

        ``starved``: the disk has just refused to take any more, whatever it says is free.
        """

    def found(self, folder: Path) -> None:
        """Make a session's folder, durably, again where it was removed."""

    def write_part(self, folder: Path, header: PartHeader, body: bytes) -> PartRef:
        """Write a part durably."""

    def offer(self, refs: list[PartRef]) -> None:
        """Offer finished parts for delivery."""

    def keep_entries(self, segment: Segment, state: journal.State, error: Exception) -> None:
        """Put entries aside, durably, of which no part can be made."""

    def ended(self, session_id: str) -> None:
        """Take note that this process has no more to do with a session."""


@dataclass(slots=True)
class Segment:
    """A run of entries of one stream and class that becomes one part. ``opened_ns`` is session time."""

    number: int
    stream: str
    klass: str
    opened_ns: int = 0
    entries: list[bytes] = field(default_factory=list)
    size_bytes: int = 0
    latest_ns: int = 0
    journalled: int = 0

    @property
    def cost_bytes(self) -> int:
        """What it takes in memory."""
        return self.size_bytes + _ENTRY_BYTES * len(self.entries)


@dataclass(frozen=True, slots=True)
class Start:
    """Where a session begins, or goes on after a crash."""

    identity: SessionIdentity
    segments: Sequence[Segment] = ()
    finished: Sequence[PartRef] = ()
    numbers: Mapping[str, int] = field(default_factory=dict)
    segment: int = 0
    latest_ns: int = 0
    context: bytes = b''
    lost_entries: int = 0


class SessionSpool:
    """What is recorded of one session. Made by :meth:`Spool.start` and :meth:`Spool.resume`.

    :meth:`append` may be called by any thread; :meth:`flush` and :meth:`finish` by any, one works at a time.
    No method raises OSError: what the disk refuses stays in memory, within bounds, and is tried again at the
    next flush; ``error`` says what is wrong, or is None.
    """

    def __init__(self, home: Home, folder: Path, start: Start, assemble: Assemble) -> None:
        self.identity = start.identity
        self.lost_entries = start.lost_entries
        """How many entries a damaged journal has cost (after a crash)."""
        self._home = home
        self._folder = folder
        self._assemble = assemble
        self._lock = threading.Lock()  # the fields below, never held while the disk works
        self._io = threading.Lock()  # one flush at a time
        self._open: dict[tuple[str, str], Segment] = {}
        self._sealed = deque(start.segments)
        self._pending_bytes = sum(segment.cost_bytes for segment in start.segments)
        self._numbers = dict(start.numbers)
        self._last_segment = start.segment
        self._latest_ns = start.latest_ns
        self._at_ns = 0
        self._context = start.context
        self._changed = True  # something besides entries that the journal does not say yet
        self._closing = False
        self._ended = False
        self._error: str | None = None
        self._starved = False  # the disk had no space at the last flush
        self._written = list(start.finished)  # parts that the journal does not know to be finished
        self._founded = False
        self._journal: int | None = None
        self._journal_bytes = 0
        self._journal_limit = 0

    # What the recorder calls

    def append(
        self,
        stream: str,
        klass: str,
        entry: bytes,
        *,
        time_ns: int,
        at_ns: int,
        source: str = '',
        context: bytes | None = None,
    ) -> bool:
        """Take an entry into memory; the next flush makes it durable.

        Args:
            stream: the upload stream.
            klass: the class, which says when its segment is closed and whether it may be evicted.
            entry: what ``assemble`` will be given.
            time_ns: wire time of the record.
            at_ns: session time now; only differences matter.
            source: what a refusal is counted under; the stream if empty.
            context: a new :attr:`context`, durable together with this entry or not at all.

        Returns:
            False if it was refused, and counted, because too much is waiting or the spool is full.

        Raises:
            SpoolError: the session was finished before.
        """
        rule = RULES[klass]
        size = len(entry)
        cost = size + _ENTRY_BYTES
        key = stream, klass
        with self._lock:
            if self._closing:
                raise SpoolError(f'session {self.identity.session_id} has been finished already')
            full = self._home.full and klass in EVICTED_FIRST
            if full or self._pending_bytes + cost > rule.pending_bytes:
                reason = self._why(full=full)
            else:
                segment = self._open.get(key)
                if segment is not None and at_ns - segment.opened_ns >= rule.close_ns:
                    self._seal_early(segment)
                    segment = None
                if segment is None:
                    self._last_segment += 1
                    segment = self._open[key] = Segment(self._last_segment, stream, klass, at_ns)
                elif at_ns < segment.opened_ns:
                    segment.opened_ns = at_ns  # session time was set back
                segment.entries.append(entry)
                segment.size_bytes += size
                if time_ns > segment.latest_ns:
                    segment.latest_ns = time_ns
                self._pending_bytes += cost
                self._at_ns = at_ns
                if context is not None:
                    self._context = context
                    self._changed = True
                if segment.size_bytes >= rule.close_bytes:
                    self._seal_early(segment)
                return True
        self._home.ledger.drop(reason, source or stream, event=klass == 'events')
        return False

    @property
    def context(self) -> bytes:
        """What the recorder wants back after a crash; journalled with the next flush."""
        with self._lock:
            return self._context

    @context.setter
    def context(self, value: bytes) -> None:
        with self._lock:
            self._changed = self._changed or value != self._context
            self._context = value

    def seal(self, stream: str, klass: str) -> None:
        """Close an open part now; the next flush writes it."""
        with self._lock:
            segment = self._open.get((stream, klass))
            if segment is not None:
                self._seal_early(segment)

    def flush(self, at_ns: int | None = None) -> bool:
        """Make durable what was appended, and write the parts that are due.

        Args:
            at_ns: session time now, for parts that are due although nothing is appended.

        Returns:
            True if all of it is durable; False if the disk refused, see :attr:`error`.
        """
        with self._lock:
            if at_ns is not None:
                self._at_ns = at_ns
        return self._run()

    def finish(self) -> bool:
        """Write all there is and end the session durably; nothing can be appended after it.

        Returns:
            True if the session is ended. False if the disk refused: it stays without an end, and a later
            call (or :meth:`flush`) completes it.
        """
        with self._lock:
            self._closing = True
        return self._run()

    def abandon(self) -> None:
        """Give the session up as a crash would: what is in memory is lost, what is on the disk is recovered.

        For a session that could not be begun, and for tests.
        """
        with self._lock:
            self._closing = True
        with self._io:
            self._close_journal()
            self._ended = True
        self._home.ended(self.identity.session_id)

    @property
    def error(self) -> str | None:
        """What the disk refused at the last flush, or None."""
        return self._error

    @property
    def ended(self) -> bool:
        """Whether the session has its durable end."""
        return self._ended

    @property
    def latest_ns(self) -> int:
        """The wire time of the latest record known to be durable, of any stream; 0 if there is none."""
        return self._latest_ns

    @property
    def pending_bytes(self) -> int:
        """How much waits in memory for its part."""
        return self._pending_bytes

    @property
    def pending_entries(self) -> int:
        """How many entries are in memory alone: not in a part, and not in the journal."""
        with self._lock:
            segments = (*self._sealed, *self._open.values())
            return sum(len(segment.entries) - segment.journalled for segment in segments)

    # Inside

    def _why(self, *, full: bool) -> Drop:
        """Return the reason for which an entry is refused."""
        if full:
            return Drop.SPOOL_FULL
        return Drop.DISK_ERROR if self._error is not None else Drop.QUEUE_FULL

    def _seal(self, segment: Segment) -> None:
        """Close a segment. The lock is held."""
        del self._open[segment.stream, segment.klass]
        self._sealed.append(segment)

    def _seal_early(self, segment: Segment) -> None:
        """Close a segment between two flushes. The lock is held."""
        self._seal(segment)
        if not RULES[segment.klass].journalled:
            self._home.part_due()

    def _run(self) -> bool:
        """Flush; end the session if it is being finished."""
        with self._io:
            if self._ended:
                return True
            try:
                with self._lock:
                    closing = (
                        self._closing
                    )  # set later, it is the next flush that ends the session
                    self._seal_due()
                    need = sum(segment.size_bytes for segment in self._sealed)
                self._home.make_room(need, starved=self._starved)
                self._look_for_journal()
                self._write_parts(self._commit())
                if closing:
                    self._end()
                elif self._written:
                    self._commit()
            except OSError as error:
                self._error = f'{self._folder}: {error.strerror or error}'
                self._starved = error.errno in _NO_SPACE
                return False
            self._error = None
            self._starved = False
            return True

    def _look_for_journal(self) -> None:
        """Begin it anew where somebody has removed it: what is written to it now would be gone with it."""
        if self._journal is None or self._home.fs.is_at(self._journal, self._folder / JOURNAL):
            return
        self._close_journal()
        self._founded = False

    def _seal_due(self) -> None:
        """Close what has been open long enough. The lock is held."""
        for segment in list(self._open.values()):
            if self._closing or self._at_ns - segment.opened_ns >= RULES[segment.klass].close_ns:
                self._seal(segment)

    def _commit(self) -> list[Segment]:
        """Make the journal say where the session stands; return the closed segments it covers."""
        with self._lock:
            sealed = list(self._sealed)
            kept = [s for s in (*sealed, *self._open.values()) if RULES[s.klass].journalled]
            whole = self._journal is None or self._journal_bytes > self._journal_limit
            fresh = [(s.number, s.entries[0 if whole else s.journalled :]) for s in kept]
            if not whole and not self._changed and not any(run for _, run in fresh):
                return sealed
            counts = [(s, len(s.entries)) for s in kept]
            state = self._state(kept)
            self._changed = False
        try:
            self._journal_write(journal.batch(state, fresh), whole=whole)
            for segment, count in counts:
                segment.journalled = count
        except BaseException:
            # What it holds now is not known, so the next one is written anew.
            self._close_journal()
            raise
        self._latest_ns = state.latest_ns
        self._offer()
        return sealed

    def _state(self, kept: Sequence[Segment]) -> journal.State:
        """Return where the session stands, with these segments open."""
        return journal.State(
            identity=self.identity,
            numbers=dict(self._numbers),
            segment=self._last_segment,
            latest_ns=max([self._latest_ns, *(s.latest_ns for s in kept)]),
            open=tuple(
                journal.OpenSegment(s.number, s.stream, s.klass, s.latest_ns, len(s.entries))
                for s in kept
            ),
            context=self._context,
        )

    def _journal_write(self, batch: bytes, *, whole: bool) -> None:
        """Write a batch durably, at the end of the journal or in its place."""
        fs = self._home.fs
        if whole:
            self._close_journal()
            if not self._founded:
                self._home.found(self._folder)
                self._founded = True
            self._journal = replace_file(fs, self._folder / JOURNAL, batch)
            self._journal_bytes = len(batch)
            self._journal_limit = max(_JOURNAL_LIMIT_BYTES, 2 * len(batch))
        elif self._journal is not None:
            write_all(fs, self._journal, batch)
            fs.sync(self._journal)
            self._journal_bytes += len(batch)

    def _write_parts(self, sealed: Iterable[Segment]) -> None:
        """Write closed segments as parts, in order."""
        for segment in sealed:
            number = self._numbers.get(segment.stream, 0) + 1
            try:
                body, content_type = self._assemble(
                    self.identity, segment.stream, segment.klass, number, segment.entries
                )
            except Exception as error:  # noqa: BLE001 - one segment never holds up the others
                self._home.keep_entries(segment, self._state([segment]), error)
                number -= 1
            else:
                header = PartHeader(
                    self.identity,
                    segment.stream,
                    number,
                    segment.klass,
                    segment.number,
                    content_type,
                    segment.latest_ns,
                )
                self._written.append(self._home.write_part(self._folder, header, body))
            with self._lock:
                self._sealed.popleft()
                self._pending_bytes -= segment.cost_bytes
                self._numbers[segment.stream] = number
                self._latest_ns = max(self._latest_ns, segment.latest_ns)
                self._changed = True

    def _end(self) -> None:
        """Remove the journal: the sign that the session is ended."""
        self._close_journal()
        with contextlib.suppress(FileNotFoundError):
            self._home.fs.remove(self._folder / JOURNAL)
        self._home.fs.sync_folder(self._folder)
        self._offer()
        self._ended = True
        self._home.ended(self.identity.session_id)

    def _offer(self) -> None:
        """Offer the parts that are known to be finished."""
        written, self._written = self._written, []
        if written:
            self._home.offer(written)

    def _close_journal(self) -> None:
        """Close the journal's descriptor."""
        descriptor, self._journal = self._journal, None
        if descriptor is not None:
            with contextlib.suppress(OSError):
                self._home.fs.close(descriptor)
