"""The spool: everything recorded that has not been delivered, on one disk, owned by one process.

::

    <root>/lock                         held while the process lives
    <root>/last_second                  the seconds that session ids were issued for (seconds.py)
    <root>/sessions/<session id>/       finished parts, and `journal` while the session has no durable end
    <root>/quarantine/                  what cannot be read or is refused, each with a reason beside it

What holds at every moment, also when the process is killed or the power is cut at any system call. A flush
that returned True is "a flush" here; the tests are in test/test_spool*.py:

 1. What was appended of JSON streams before a flush is on the disk, in the journal or in a finished part.
    (test_power_cut_at_every_call, SpoolMachine)
 2. Camera and lidar entries are on the disk once their part is written; at most one open part of each, 4 MiB
    or 5 s, is in memory alone; once it is closed it is written at once, not at the next flush by the clock.
    (test_binary_entries_wait_for_their_part, test_a_part_that_is_in_memory_alone_asks_to_be_written)
 3. What is on the disk after a crash is what some flush saw: no entry without all that were appended before
    it, and the context that was set with them. (SpoolMachine)
 4. No entry is in two parts, and none is lost by going on after a crash. (test_power_cut_at_every_call)
 5. The parts of a stream are numbered from 1 without a gap, by the order in which they were closed; the
    entries of one class are in the order in which they were appended. (SpoolMachine)
 6. A part is offered only when it is on the disk and the journal knows that its segment is finished. Until
    then nobody delivers, evicts or quarantines it. (test_unknown_parts_are_held_back)
 7. A finished part never changes: the same name means the same bytes. (SpoolMachine)
 8. A session is ended when all of it is in finished parts; that the journal is gone is the sign.
    (test_finish_completes_after_the_disk_refused)
 9. Files are removed only when they were delivered or evicted. What cannot be read goes to quarantine, once,
    with the reason, and stays; a newer format and foreign files are left alone and named. (test_damage)
10. Eviction takes the oldest lidar parts, then camera, series, poses; events and properties never. Each is
    counted and named. (test_eviction_order)
11. The disk never raises out of append, flush, finish or delivered. What it refuses waits in memory, within
    bounds; what is beyond them is refused and counted, events last. (test_a_call_that_fails, test_bounds)
12. A second is issued once, and one process owns the spool. (test_no_second_is_issued_twice, test_lock)
13. The quarantine counts against the bound. Of what lies there only whole parts, which the gateway refused, are
    evicted, before others of their class; what cannot be read is never deleted. (test_quarantine_is_bounded)
14. What somebody removes under a process that owns the spool is made again by the next flush, of what is in
    memory; parts that are gone are counted and named. (test_a_spool_that_is_removed_is_made_again)
"""

from __future__ import annotations

import contextlib
import errno
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from cognitive3d_ros.alarm import Alarm
from cognitive3d_ros.counters import Count, Drop, Ledger
from cognitive3d_ros.errors import FormatError, NewerFormatError, SpoolError, SpoolLockedError
from cognitive3d_ros.spool import journal, recovery
from cognitive3d_ros.spool.fs import (
    REAL_FS,
    TEMPORARY,
    Fs,
    make_folders,
    replace_file,
)
from cognitive3d_ros.spool.index import EVICTED_FIRST, Index, PartRef, session_order
from cognitive3d_ros.spool.parts import write_part
from cognitive3d_ros.spool.quarantine import Quarantine
from cognitive3d_ros.spool.seconds import MAX_SECOND, Seconds
from cognitive3d_ros.spool.session import JOURNAL, Assemble, Segment, SessionSpool, Start
from cognitive3d_ros.spool.whose import LAST_SECOND, is_store, why_no_spool
from cognitive3d_ros.wire import framing
from cognitive3d_ros.wire.framing import Part, PartHeader, part_name
from cognitive3d_ros.wire.identity import SessionIdentity

_STARVED_BYTES = 4 << 20  # what is made room for when the disk is full whatever it says is free
_READ_TRIES = 10  # of a part that the disk fails to read, each after a longer wait


@dataclass(frozen=True, slots=True)
class SpoolLimits:
    """How much the finished parts and the quarantine may take, and how much of the disk is left to others."""

    max_bytes: int = 8 << 30
    min_free_bytes: int = 1 << 30


@dataclass(frozen=True, slots=True)
class Usage:
    """What waits for delivery: bytes and parts, the age of the oldest, and what is free on the disk.

    ``quarantined_bytes`` is what lies in quarantine; ``max_bytes`` is the bound of both together.

    The age is by the wall clock, wrong by what that was set by meanwhile, but never more than the session's
    own nor less than 0; nothing depends on it.
    """

    size_bytes: int
    parts: int
    oldest_s: float
    free_bytes: int
    quarantined_bytes: int = 0


class Spool:
    """A spool that this process owns; see :meth:`open`. Thread safe."""

    def __init__(
        self,
        root: Path,
        fs: Fs,
        ledger: Ledger,
        limits: SpoolLimits,
        log: Callable[[str], None],
    ) -> None:
        self.root = root
        self.fs = fs
        self.ledger = ledger
        self.limits = limits
        self.full = False
        """Whether there is no room and nothing left to evict."""
        self.faults: list[str] = []
        """What was found at opening that is not as it should be, one sentence each."""
        self.on_part_due: Callable[[], None] = _nothing
        """Called, from any thread, when a flush before its time would lessen what a crash can cost."""
        self._log = log
        self._sessions = root / 'sessions'
        self._quarantine = Quarantine(fs, root / 'quarantine')
        self._guard = threading.RLock()  # guards the fields below
        self._news = Alarm()
        self._index = Index()
        self._live: dict[str, SessionSpool] = {}
        self._unended: dict[str, SessionIdentity | None] = {}  # None: it cannot be resumed
        self._seconds = Seconds()
        self._found: set[int] = set()  # the seconds of the sessions that were here at opening
        self._undeleted: list[
            PartRef
        ] = []  # delivered or evicted, and the disk refused to remove it
        self._failed_reads: dict[PartRef, int] = {}  # how often the disk has failed to read a part
        self._lock: int | None = None
        self._not_held = ''  # why this process does not own the spool any more
        self.lost_entries = 0
        """How many entries were lost at :meth:`close`, because the disk refused them to the last."""

    @classmethod
    def open(
        cls,
        root: Path | str,
        *,
        fs: Fs = REAL_FS,
        ledger: Ledger | None = None,
        limits: SpoolLimits | None = None,
        log: Callable[[str], None] | None = None,
    ) -> Spool:
        """Take possession of a spool; it is made if it is not there.

        Args:
            root: its folder.
            fs: the disk.
            ledger: where parts written, uploaded, evicted and quarantined are counted, and refusals.
            limits: how much it may hold.
            log: is given a line for each thing that a person should know.

        Raises:
            SpoolLockedError: another process owns it.
            SpoolError: it cannot be made or written.
        """
        spool = cls(
            Path(root),
            fs,
            Ledger() if ledger is None else ledger,
            SpoolLimits() if limits is None else limits,
            _silent if log is None else log,
        )
        try:
            spool._take()
            spool._scan()
        except OSError as error:
            spool.close()
            raise SpoolError(_advice(spool.root, error)) from error
        return spool

    def close(self) -> None:
        """Give the spool up. Sessions without an end are left as they are, for the next to recover.

        What the disk refused to the last is lost with the memory it is in; that is counted and said.
        """
        with self._guard:
            live = list(self._live.values())
            self._live.clear()
            lock, self._lock = self._lock, None
        for session in live:
            if (lost := session.pending_entries) and session.error:
                self.lost_entries += lost
                self.ledger.drop(Drop.DISK_ERROR, 'spool', lost)
                self._log(
                    f'{lost} entries of session {session.identity.session_id} are lost: {session.error}'
                )
            session.abandon()
        if lock is not None:
            with contextlib.suppress(OSError):
                self.fs.close(lock)
        self.wake()

    # Session ids

    def last_second(self, second: int) -> int:
        """Return the second after which a session must start that would start in this one; 0 if it may.

        See :mod:`.seconds`: of ids that were issued more than a day ahead of it, it is free. A second of a
        session that is in the spool is not, whatever was forgotten of it.
        """
        last = self._seconds.last(second)
        while (start := max(second, last + 1)) in self._found:
            last = max(start, self._seconds.last(start + 1))
        return last

    @property
    def newest_second(self) -> int:
        """The latest second that a session id was ever issued for; 0 if none was."""
        return self._seconds.newest

    def issue_second(self, second: int) -> None:
        """Remember durably that a session id takes this second; before the id is used.

        Raises:
            SpoolError: the disk refused, or it is beyond what may be one (the year 2100).
        """
        if second > MAX_SECOND:
            raise SpoolError(
                f'no session can start in second {second}, after the year 2099: set the clock of this machine'
            )
        seconds = self._seconds.copy()
        seconds.add(second)
        path = self.root / LAST_SECOND
        try:
            self._hold()
            self.fs.close(replace_file(self.fs, path, seconds.text().encode()))
        except OSError as error:
            raise SpoolError(_advice(path, error)) from error
        self._seconds = seconds

    # Producers

    def holds(self, session_id: str) -> bool:
        """Say whether anything of a session is in the spool."""
        with self._guard:
            return self._holds(session_id)

    def start(self, identity: SessionIdentity, assemble: Assemble) -> SessionSpool:
        """Begin a session. If the disk refuses, it begins in memory; see its ``error``.

        Args:
            identity: what each part will say about the session.
            assemble: makes a part's body of its entries.

        Raises:
            SpoolError: the id is none, or the spool holds it already.
        """
        session_id = identity.session_id
        if not framing.is_session_id(session_id):
            raise SpoolError(f'{session_id!r} is no session id: <unix seconds>_<device id>')
        folder = self._folder(session_id)
        with self._guard:
            known = self._holds(session_id)
            if not known:
                try:
                    self.fs.make_folder(folder)
                except FileExistsError:
                    known = True
                except OSError:
                    pass  # the session's flush tries again, and says it
            if known:
                raise SpoolError(
                    f'{self.root} holds session {session_id} already; to record it again, remove or move '
                    f'{folder}'
                )
            session = SessionSpool(self, folder, Start(identity), assemble)
            self._live[session_id] = session
        session.flush()
        return session

    def unended(self) -> list[SessionIdentity]:
        """Return the sessions that were found without an end and not resumed yet, oldest first."""
        with self._guard:
            found = [identity for identity in self._unended.values() if identity is not None]
        return sorted(found, key=lambda identity: session_order(identity.session_id))

    def resume(self, session_id: str, assemble: Assemble) -> SessionSpool:
        """Go on with a session that was found without an end.

        Raises:
            SpoolError: there is no such session, or the disk refused.
        """
        with self._guard:
            identity = self._unended.get(session_id)
        if identity is None:
            raise SpoolError(f'{self.root} holds no session {session_id} without an end')
        try:
            start = self._restart(identity)
        except OSError as error:
            raise SpoolError(_advice(self._folder(session_id), error)) from error
        session = SessionSpool(self, self._folder(session_id), start, assemble)
        with self._guard:
            del self._unended[session_id]
            self._live[session_id] = session
        session.flush()
        return session

    def flush(self) -> bool:
        """Flush the sessions of this process, also those whose end the disk has refused before.

        Returns:
            True if all is durable; see each session's ``error``.
        """
        try:
            self._hold()
            self._not_held = ''
        except OSError as error:
            self._not_held = _said(self.root, error)
        with self._guard:
            live = list(self._live.values())
        if self.full and not live:
            with contextlib.suppress(OSError):  # then it is not known whether there is space again
                self.make_room(0, starved=False)
        durable = [session.flush() for session in live]  # all of them, whatever the first says
        return all(durable) and not self._not_held

    @property
    def error(self) -> str | None:
        """What the disk refused to the spool, or to a session of this process, at the last flush, or None."""
        with self._guard:
            live = list(self._live.values())
        return self._not_held or next((session.error for session in live if session.error), None)

    # The consumer

    @property
    def live(self) -> frozenset[str]:
        """The sessions of this process that have no durable end yet."""
        with self._guard:
            return frozenset(self._live)

    def sessions(self) -> list[str]:
        """Return the sessions that have parts to deliver, oldest first."""
        with self._guard:
            return self._index.sessions()

    def heads(self, session_id: str) -> list[PartRef]:
        """Return the first part of each stream of a session."""
        with self._guard:
            return self._index.heads(session_id)

    def parts(self) -> Iterator[PartRef]:
        """Give the parts to deliver: the oldest session first, stream by stream, by number.

        What is added or removed meanwhile may or may not be among them.
        """
        for session_id in self.sessions():
            with self._guard:
                refs = self._index.of_session(session_id)
            yield from refs

    def read(self, ref: PartRef) -> Part:
        """Return a part.

        Raises:
            FormatError: it can never be read, and was put aside (or left alone, if of a newer format).
            SpoolError: it cannot be read now, or is not there any more (it was evicted).
        """
        path = self._path(ref)
        try:
            part = framing.parse(self.fs.read(path))
            header = part.header
            said = header.identity.session_id, header.stream, header.number, header.klass
            if said != ref[:4]:
                raise FormatError(f'its name says {ref[:4]}, its header {said}')
        except NewerFormatError as error:
            self._forget(ref)
            self._log(f'{path}: {error}; left alone')
            raise
        except FormatError as error:
            self.quarantine(ref, str(error))
            raise
        except FileNotFoundError:
            self._gone([ref])
            raise SpoolError(f'{path} is not there any more') from None
        except (PermissionError, IsADirectoryError) as error:
            reason = f'it cannot be read: {error.strerror}'
            self.quarantine(ref, reason)
            raise FormatError(f'{path}: {reason}') from None
        except OSError as error:
            reason = f'it cannot be read: {error.strerror}'
            if (
                error.errno == errno.EIO
                and self._is_bad_spot(ref)
                and self._put_aside(ref, reason)
            ):
                raise FormatError(f'{path}: {reason}') from None
            raise SpoolError(_advice(path, error)) from error
        return part

    def delivered(self, ref: PartRef) -> None:
        """Remove a part that was delivered, and its session's folder with the last one."""
        self.ledger.count(Count.PARTS_UPLOADED)
        if self._forget(ref):
            self._unlink(ref)

    def quarantine(self, ref: PartRef, reason: str) -> None:
        """Move a part out of the way, with the reason beside it. Does nothing if it is not there any more."""
        if self._forget(ref):
            self._log(self._move_away(self._path(ref), ref.session_id, reason))
            self._tidy(ref.session_id)

    def retry(self) -> list[tuple[str, str | None]]:
        """Put the quarantined parts that are whole back; they are offered when the spool is next opened.

        Returns:
            The name of each file in quarantine, and why it stays there, or None if it was put back.

        Raises:
            SpoolError: the disk refused.
        """
        try:
            return self._quarantine.put_back(self._sessions)
        except OSError as error:
            raise SpoolError(_advice(self._quarantine.folder, error)) from error

    def wait(self, timeout_s: float) -> bool:
        """Wait until parts are offered, or :meth:`wake`; at once if that was after the last wait.

        For one consumer. Returns False if the time ran out.
        """
        return self._news.wait(timeout_s)

    def wake(self) -> None:
        """End the consumer's wait now, or its next one."""
        self._news.ring()

    def usage(self) -> Usage:
        """Return what waits for delivery."""
        with self._guard:
            size_bytes, parts = self._index.size_bytes, self._index.parts
            sessions = self._index.sessions()
            oldest = self._index.heads(sessions[0]) if sessions else []
        now_s = time.time()
        ages_s = [0.0]
        free_bytes = 0
        for ref in oldest:
            with contextlib.suppress(OSError):
                age_s = self.fs.age_s(self._path(ref), now_s)
                # Written by a clock that was not set, it looks older than its session is.
                ages_s.append(min(age_s, now_s - session_order(ref.session_id)[0]))
        with contextlib.suppress(OSError):
            free_bytes = self.fs.free_bytes(self.root)
        return Usage(size_bytes, parts, max(ages_s), free_bytes, self._quarantine.size_bytes)

    # What a session calls (session.Home)

    def part_due(self) -> None:
        """Ask for a flush."""
        self.on_part_due()

    def make_room(self, need_bytes: int, *, starved: bool) -> None:
        """Evict until ``need_bytes`` fit within the limits, or nothing is left to evict."""
        limits = self.limits
        self._hold()
        free_bytes = self.fs.free_bytes(self.root)
        waiting_bytes, aside_bytes = self._index.size_bytes, self._quarantine.size_bytes
        missing = max(
            waiting_bytes + aside_bytes + need_bytes - limits.max_bytes,
            limits.min_free_bytes + need_bytes - free_bytes,
            max(need_bytes, _STARVED_BYTES) if starved else 0,
        )
        why = (
            f'the spool holds {waiting_bytes} of {limits.max_bytes} bytes, {aside_bytes} more in quarantine, '
            f'what is to be written has {need_bytes}, and the disk has {free_bytes} left, of which '
            f'{limits.min_free_bytes} are for others'
        )
        for klass in EVICTED_FIRST:
            if missing > 0 and aside_bytes:
                missing -= self._evict_refused(klass, missing, why)
            if missing > 0:
                missing -= self._evict(klass, missing, why)
        if missing > 0 and aside_bytes:
            self._quarantine.measure()  # somebody may have cleared it
        was_full, self.full = self.full, missing > 0
        if self.full and not was_full:
            self._log(
                f'full, and nothing left to evict: new {", ".join(EVICTED_FIRST)} records are refused '
                f'until there is space: {why}'
            )
        elif was_full and not self.full:
            self._log('there is space again: everything is recorded')

    def _evict(self, klass: str, missing: int, why: str) -> int:
        """Evict parts of a class until ``missing`` bytes are free; return how many are."""
        freed = 0
        evicted: list[PartRef] = []
        with self._guard:
            victims = self._index.victims(klass)
            while freed < missing and (ref := next(victims, None)) is not None:
                evicted.append(ref)
                freed += ref.size_bytes
            for ref in evicted:
                self._index.remove(ref)
        for ref in evicted:
            self.ledger.count(Count.PARTS_EVICTED)
            self._log(
                f'evicted {ref.session_id}/{part_name(*ref[1:4])}, {ref.size_bytes} bytes: {why}'
            )
            self._unlink(ref)
        return freed

    def _evict_refused(self, klass: str, missing: int, why: str) -> int:
        """Evict parts of a class that lie in quarantine although they are whole, as :meth:`_evict` does."""
        freed = 0
        try:
            for name, size_bytes in self._quarantine.victims(klass):
                if freed >= missing:
                    break
                self._quarantine.evict(name, size_bytes)
                self.ledger.count(Count.PARTS_EVICTED)
                self._log(f'evicted quarantine/{name}, {size_bytes} bytes: {why}')
                freed += size_bytes
        except OSError as error:
            self._log(
                f'{_said(self._quarantine.folder, error)}; nothing more of it is evicted now'
            )
        return freed

    def found(self, folder: Path) -> None:
        """Make a session's folder, durably, again where it was removed."""
        make_folders(self.fs, folder)
        self.fs.sync_folder(folder.parent)
        self._look_for_parts(folder.name)

    def write_part(self, folder: Path, header: PartHeader, body: bytes) -> PartRef:
        """Write a part durably."""
        size_bytes = write_part(self.fs, folder, header, body)
        self.ledger.count(Count.PARTS_WRITTEN)
        return PartRef(
            header.identity.session_id, header.stream, header.number, header.klass, size_bytes
        )

    def offer(self, refs: list[PartRef]) -> None:
        """Offer finished parts for delivery."""
        with self._guard:
            self._index.add(refs)
        self.wake()

    def keep_entries(self, segment: Segment, state: journal.State, error: Exception) -> None:
        """Put entries aside, durably, of which no part can be made; as a journal of one batch."""
        name = f'{segment.stream}.{segment.number:06d}.{segment.klass}.entries'
        reason = f'no part can be made of these entries: {type(error).__name__}: {error}'
        data = journal.batch(state, [(segment.number, segment.entries)])
        name = self._quarantine.keep(name, data, state.identity.session_id, reason)
        self.ledger.count(Count.PARTS_QUARANTINED)
        self._log(f'quarantine/{name}: {reason}')

    def ended(self, session_id: str) -> None:
        """Take note that this process has no more to do with a session."""
        with self._guard:
            self._live.pop(session_id, None)
        self._tidy(session_id)

    # Inside: opening

    def _take(self) -> None:
        """Make the folders, take the lock, and see that they can be written."""
        root = self.root
        if why := why_no_spool(root):
            raise SpoolError(why)
        make_folders(self.fs, root)
        taken = self.fs.lock(root / 'lock', f'{os.getpid()}\n')
        if isinstance(taken, str):
            raise SpoolLockedError(
                f'{root} is in use by another process (its lock file says {taken or "nothing"!r}); '
                'stop that one, or give this one a spool.dir of its own'
            )
        self._lock = taken
        for folder in (self._sessions, self._quarantine.folder):
            make_folders(self.fs, folder)
        for folder in (root, self._sessions, self._quarantine.folder):
            probe = folder / f'writable{TEMPORARY}'
            try:
                self.fs.close(self.fs.create(probe))
                self.fs.remove(probe)
            except OSError as error:
                if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                    raise
                self._fault(f'{folder}: {error.strerror}')

    def _hold(self) -> None:
        """See that the spool is still this process's, and there; make it again where somebody removed it.

        Raises:
            OSError: that cannot be done, or another process has come in meanwhile.
        """
        with self._guard:
            lock, path = self._lock, self.root / 'lock'
            if lock is None or self.fs.is_at(lock, path):
                return
            if is_store(self.root):
                raise OSError(
                    errno.EBUSY, 'it is the store of a gateway meanwhile', str(self.root)
                )
            make_folders(self.fs, self.root)
            taken = self.fs.lock(path, f'{os.getpid()}\n')
            if isinstance(taken, str):
                raise OSError(
                    errno.EBUSY,
                    f'another process ({taken or "unknown"}) has taken it',
                    str(self.root),
                )
            self._lock = taken
            with contextlib.suppress(OSError):
                self.fs.close(lock)
            for folder in (self._sessions, self._quarantine.folder):
                make_folders(self.fs, folder)
            sessions = self._index.sessions()
        self._log(f'{self.root}: somebody has removed it, or its lock; both are made again')
        for session_id in sessions:
            self._look_for_parts(session_id)

    def _look_for_parts(self, session_id: str) -> None:
        """Take note of a session's parts that somebody has removed."""
        with self._guard:
            refs = self._index.of_session(session_id)
        if not refs:
            return
        try:
            names = {entry.name for entry in self.fs.scan(self._folder(session_id))}
        except FileNotFoundError:
            names = set()
        self._gone([ref for ref in refs if part_name(*ref[1:4]) not in names])

    def _gone(self, refs: list[PartRef]) -> None:
        """Count and name parts that are not there any more, although they were not delivered."""
        gone = [ref for ref in refs if self._forget(ref)]
        for ref in gone:
            self.ledger.drop(Drop.DISK_ERROR, ref.stream, event=ref.klass == 'events')
        if gone:
            more = f', and {len(gone) - 1} more' if gone[1:] else ''
            self._log(f'{self._path(gone[0])}{more}: removed by somebody, and not delivered yet')

    def _scan(self) -> None:
        """Build the index from the names in the folders."""
        for name, kind, _ in sorted(self.fs.scan(self._sessions)):
            path = self._sessions / name
            if kind != 'folder' or not framing.is_session_id(name):
                self._fault(f'{path}: not a session; left alone')
                continue
            second = session_order(name)[0]
            self._seconds.add(second)
            self._found.add(second)
            try:
                self._scan_session(name)
            except OSError as error:
                self._unended.setdefault(name, None)
                self._fault(f'{path}: {error.strerror}; left alone')
        self._read_seconds(self.root / LAST_SECOND)
        self._quarantine.measure()

    def _read_seconds(self, path: Path) -> None:
        """Read which seconds were issued. What would hold up the next one is put aside."""
        temporary = path.with_name(path.name + TEMPORARY)
        try:
            self.fs.remove(temporary)  # it was not issued
        except FileNotFoundError:
            pass
        except OSError as error:
            self._fault(self._move_away(temporary, 'spool', str(error.strerror)))
        try:
            self._seconds.read(self.fs.read(path))
        except FileNotFoundError:
            pass
        except (ValueError, OSError) as error:
            why = getattr(error, 'strerror', None) or error
            reason = f'{why}: ids go on from the sessions here, and the clock'
            self._fault(self._move_away(path, 'spool', reason))

    def _scan_session(self, session_id: str) -> None:
        """Index the finished parts of a session, and take note if it has no end."""
        fs, folder = self.fs, self._folder(session_id)
        found = recovery.look(fs, folder)
        for name, reason in found.misnamed:
            self._fault(self._move_away(folder / name, session_id, reason))
        for name in found.foreign:
            self._fault(f'{folder / name}: not a part; left alone')
        numbers: dict[str, int] | None = None
        if found.has_journal:
            self._unended[session_id] = None
            replay = journal.replay(fs.read(folder / JOURNAL))
            if replay.newer is not None:
                self._fault(
                    f'{folder / JOURNAL}: format {replay.newer}, a newer cognitive3d_ros wrote it; the '
                    'session is left alone'
                )
                return
            state = replay.state
            numbers = {} if state is None else dict(state.numbers)
            identity = (
                recovery.identity_of(fs, folder, found.parts) if state is None else state.identity
            )
            if identity is None or identity.session_id != session_id:
                reason = 'it cannot be read, and no part says whose it is'
                self._fault(self._move_away(folder / JOURNAL, session_id, reason))
                del self._unended[session_id]
                numbers = None
            else:
                self._unended[session_id] = identity
        if found.has_journal_temporary:
            fs.remove(folder / (JOURNAL + TEMPORARY))  # nothing in it was promised to anyone
        for name in found.temporary:
            self._adopt(folder, name, numbers)
        parts = found.parts
        if numbers is not None:
            parts = recovery.finished(parts, numbers)
        self._index.add(parts)
        self._tidy(session_id)

    def _adopt(self, folder: Path, name: str, numbers: dict[str, int] | None) -> None:
        """Make a temporary file of a dead process the part it was to be, or put it aside.

        It is not indexed: the journal does not know it, so :meth:`resume` will find it.
        """
        fs = self.fs
        if numbers is None:
            reason: str | None = (
                'the temporary file of a process that died, of a session that has ended'
            )
        else:
            reason = recovery.adoptable(fs, folder, name, numbers)
        if reason is not None:
            self._fault(self._move_away(folder / name, folder.name, reason))
            return
        descriptor = fs.open(folder / name)
        try:
            fs.sync(descriptor)
        finally:
            fs.close(descriptor)
        fs.rename(folder / name, folder / name.removesuffix(TEMPORARY))
        fs.sync_folder(folder)

    def _restart(self, identity: SessionIdentity) -> Start:
        """Find out where a session stood when its process died."""
        session_id = identity.session_id
        folder = self._folder(session_id)
        self.fs.sync_folder(folder)  # what is seen now must be there after a power cut too
        restart = recovery.restart(self.fs, folder, identity)
        replay = restart.replay
        for name, reason in restart.unreadable:
            self._log(self._move_away(folder / name, session_id, reason))
        if replay.damaged_bytes or replay.lost_entries or replay.state is None:
            lost = replay.lost_entries
            reason = (
                f'{replay.damaged_bytes} bytes of the journal are damaged, {lost} entries of open parts lost'
                if replay.state is not None
                else 'the journal cannot be read; what was not in a finished part is lost'
            )
            data = self.fs.read(folder / JOURNAL)
            name = self._quarantine.keep(JOURNAL, data, session_id, reason)
            self.ledger.count(Count.PARTS_QUARANTINED)
            self._log(f'{folder / JOURNAL}: {reason}; a copy is quarantine/{name}')
            if lost:
                self.ledger.drop(Drop.DISK_ERROR, 'journal', lost)
        return restart.start

    # Inside: parts

    def _folder(self, session_id: str) -> Path:
        return self._sessions / session_id

    def _path(self, ref: PartRef) -> Path:
        return self._folder(ref.session_id) / part_name(ref.stream, ref.number, ref.klass)

    def _holds(self, session_id: str) -> bool:
        """Say whether a session is in the spool. The lock is held."""
        known = session_id in self._live or session_id in self._unended
        return known or bool(self._index.heads(session_id))

    def _forget(self, ref: PartRef) -> bool:
        """Take a part out of the index; False if it is not there."""
        with self._guard:
            self._failed_reads.pop(ref, None)
            return self._index.remove(ref)

    def _unlink(self, ref: PartRef) -> None:
        """Take a part off the disk, and its session's folder with the last one.

        What the disk refuses is tried again after the next one that it does not refuse.
        """
        tried: PartRef | None = ref
        while tried is not None:
            path = self._path(tried)
            try:
                self.fs.remove(path)
            except FileNotFoundError:
                pass
            except OSError as error:
                with self._guard:
                    self._undeleted.append(tried)
                if tried is ref:
                    self._log(f'{path}: cannot be removed yet: {error.strerror}')
                return
            self._tidy(tried.session_id)
            with self._guard:
                tried = self._undeleted.pop() if self._undeleted else None

    def _tidy(self, session_id: str) -> None:
        """Remove a session's folder when nothing is left in it."""
        with self._guard:
            if self._holds(session_id):
                return
            with contextlib.suppress(OSError):  # something that is not ours lies in it
                self.fs.remove_folder(self._folder(session_id))

    def _move_away(self, path: Path, session_id: str, reason: str) -> str:
        """Move a file to the quarantine, and return what became of it, as a sentence."""
        self.ledger.count(Count.PARTS_QUARANTINED)
        try:
            name = self._quarantine.move(path, session_id, reason)
        except OSError as error:
            return f'{path}: {reason}; it cannot be moved away: {error.strerror}'
        return f'{path}: {reason}; moved to quarantine/{name}'

    def _is_bad_spot(self, ref: PartRef) -> bool:
        """Count a read that failed; say whether it has so often that it will always."""
        with self._guard:
            self._failed_reads[ref] = self._failed_reads.get(ref, 0) + 1
            return self._failed_reads[ref] >= _READ_TRIES

    def _put_aside(self, ref: PartRef, reason: str) -> bool:
        """Quarantine a part on a bad spot of the disk; False, and it stays, if all of the disk fails."""
        path = self._path(ref)
        try:
            name = self._quarantine.move(path, ref.session_id, reason)
        except OSError:
            return False
        self._forget(ref)
        self.ledger.count(Count.PARTS_QUARANTINED)
        self._log(f'{path}: {reason}; moved to quarantine/{name}')
        self._tidy(ref.session_id)
        return True

    def _fault(self, text: str) -> None:
        """Note what is not as it should be, at opening."""
        self.faults.append(text)
        self._log(text)


def _silent(_: str) -> None:
    """Log nothing."""


def _nothing() -> None:
    """Do nothing: whoever flushes does so by the clock alone."""


def _said(path: Path, error: OSError) -> str:
    """Say what the disk refused, and where: at the file it names, if it does."""
    return f'{error.filename or path}: {error.strerror or error}'


def _advice(path: Path, error: OSError) -> str:
    """Say what the disk refused, and what to do."""
    return (
        f'{_said(path, error)} (user id {os.getuid()}); '
        'spool.dir must be a folder on a local disk that this user may write'
    )
