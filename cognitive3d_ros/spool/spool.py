"""The spool: everything recorded that has not been delivered, on one disk, owned by one process.

::

    <root>/lock                         held while the process lives
    <root>/last_second                  the last second that a session id was issued for
    <root>/sessions/<session id>/       finished parts, and `journal` while the session has no durable end
    <root>/quarantine/                  what cannot be read or is refused, each with a reason beside it

The folders are the only truth. What is kept in memory is built from their names when the spool is opened.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from cognitive3d_ros.counters import Count, Ledger
from cognitive3d_ros.errors import FormatError, NewerFormatError, SpoolError, SpoolLockedError
from cognitive3d_ros.spool import journal
from cognitive3d_ros.spool.fs import REAL_FS, Fs, replace_file, write_all
from cognitive3d_ros.spool.index import Index, PartRef, session_order
from cognitive3d_ros.spool.session import JOURNAL, Assemble, Segment, SessionSpool, Start
from cognitive3d_ros.wire import framing
from cognitive3d_ros.wire.framing import Part, PartHeader, parse_part_name, part_name
from cognitive3d_ros.wire.identity import SessionIdentity

TEMPORARY = '.tmp'


@dataclass(frozen=True, slots=True)
class SpoolLimits:
    """How much the finished parts may take, and how much of the disk is left to others."""

    max_bytes: int = 8 << 30
    min_free_bytes: int = 1 << 30


@dataclass(frozen=True, slots=True)
class Usage:
    """What waits for delivery: bytes and parts, the age of the oldest, and what is free on the disk."""

    size_bytes: int
    parts: int
    oldest_s: float
    free_bytes: int


class Spool:
    """A spool that this process owns. Thread safe."""

    def __init__(
        self,
        root: Path,
        *,
        fs: Fs = REAL_FS,
        ledger: Ledger | None = None,
        limits: SpoolLimits | None = None,
        log: Callable[[str], None] | None = None,
    ) -> None:
        """Use :meth:`open`."""
        self.root = root
        self.fs = fs
        self.ledger = ledger if ledger is not None else Ledger()
        self.limits = limits if limits is not None else SpoolLimits()
        self.faults: list[str] = []
        """What was found when the spool was opened that is not as it should be."""
        self.full = False
        """Whether there is no room and nothing left to evict."""
        self._log = log if log is not None else _silent
        self._sessions = root / 'sessions'
        self._quarantine = root / 'quarantine'
        self._condition = threading.Condition()  # guards the fields below
        self._index = Index()
        self._live: dict[str, SessionSpool] = {}
        self._unended: dict[str, SessionIdentity] = {}
        self._last_second = 0
        self._revision = 0
        self._lock: int | None = None

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
        """Take possession of a spool, made if it is not there.

        Args:
            root: its folder.
            fs: the disk.
            ledger: where parts written, evicted, quarantined and uploaded are counted, and refusals.
            limits: how much it may hold.
            log: is given one line for each thing that a person should know.

        Raises:
            SpoolLockedError: another process owns it.
            SpoolError: it cannot be made or written.
        """
        spool = cls(Path(root), fs=fs, ledger=ledger, limits=limits, log=log)
        spool._take()
        try:
            spool._scan()
        except OSError as error:
            spool.close()
            raise SpoolError(_advice(spool.root, error)) from error
        return spool

    def close(self) -> None:
        """Give the spool up. Sessions without an end are left as they are, for the next to recover."""
        with self._condition:
            live = list(self._live.values())
            self._live.clear()
            lock, self._lock = self._lock, None
        for session in live:
            session.abandon()
        if lock is not None:
            self.fs.close(lock)
        self.wake()

    # Session ids

    @property
    def last_second(self) -> int:
        """The last second that a session id was issued for; 0 if none was."""
        return self._last_second

    def issue_second(self, second: int) -> None:
        """Remember durably that a session id takes this second; before the id is used.

        Raises:
            SpoolError: the disk refused.
        """
        path = self.root / 'last_second'
        try:
            self.fs.close(replace_file(self.fs, path, f'{second}\n'.encode()))
        except OSError as error:
            raise SpoolError(_advice(path, error)) from error
        self._last_second = max(self._last_second, second)

    # Producers

    def holds(self, session_id: str) -> bool:
        """Say whether anything of a session is in the spool."""
        with self._condition:
            return self._holds(session_id)

    def start(self, identity: SessionIdentity, assemble: Assemble) -> SessionSpool:
        """Begin a session. If the disk refuses, it begins in memory; see its ``error``.

        Raises:
            SpoolError: the id is none, or the spool holds it already.
        """
        session_id = identity.session_id
        if not framing.is_session_id(session_id):
            raise SpoolError(f'{session_id!r} is no session id: <unix seconds>_<device id>')
        session = SessionSpool(self, self._folder(session_id), Start(identity), assemble)
        with self._condition:
            if self._holds(session_id):
                raise SpoolError(f'{self.root} holds session {session_id} already')
            self._live[session_id] = session
        session.flush()
        return session

    def unended(self) -> list[SessionIdentity]:
        """Return the sessions that were found without an end and not resumed yet, oldest first."""
        with self._condition:
            found = list(self._unended.values())
        return sorted(found, key=lambda identity: session_order(identity.session_id))

    def resume(self, session_id: str, assemble: Assemble) -> SessionSpool:
        """Go on with a session that was found without an end.

        Raises:
            SpoolError: there is no such session, or the disk refused.
        """
        with self._condition:
            identity = self._unended.get(session_id)
        if identity is None:
            raise SpoolError(f'{self.root} holds no session {session_id} without an end')
        try:
            start = self._restart(identity)
        except OSError as error:
            raise SpoolError(_advice(self._folder(session_id), error)) from error
        session = SessionSpool(self, self._folder(session_id), start, assemble)
        with self._condition:
            del self._unended[session_id]
            self._live[session_id] = session
        session.flush()
        return session

    # The consumer

    @property
    def live(self) -> frozenset[str]:
        """The sessions that are being recorded now."""
        with self._condition:
            return frozenset(self._live)

    @property
    def revision(self) -> int:
        """Changes whenever parts were offered; see :meth:`wait`."""
        return self._revision

    def parts(self) -> Iterator[PartRef]:
        """Give the parts to deliver: the oldest session first, stream by stream, by number.

        What is added or removed meanwhile may or may not be among them.
        """
        return self._walk(self._index.of_session)

    def heads(self, session_id: str | None = None) -> Iterator[PartRef]:
        """Give the first part of each stream, of each session (the oldest first) or of one."""
        if session_id is None:
            return self._walk(self._index.heads)
        with self._condition:
            return iter(self._index.heads(session_id))

    def read(self, ref: PartRef) -> Part | None:
        """Return a part, or None if it is not there any more or had to be quarantined.

        Raises:
            SpoolError: it cannot be read now; it stays where it is.
        """
        path = self._path(ref)
        try:
            part = framing.parse(self.fs.read(path))
        except FileNotFoundError:
            self._forget(ref)
            return None
        except NewerFormatError as error:
            self._forget(ref)
            self._fault(f'{path}: {error}; left alone')
            return None
        except FormatError as error:
            self.quarantine(ref, str(error))
            return None
        except PermissionError as error:
            self.quarantine(ref, f'it cannot be read: {error.strerror}')
            return None
        except OSError as error:
            raise SpoolError(_advice(path, error)) from error
        header = part.header
        said = header.identity.session_id, header.stream, header.number, header.klass
        if said != ref[:4]:
            self.quarantine(ref, f'its name and its header differ: {ref[:4]} and {said}')
            return None
        return part

    def delivered(self, ref: PartRef) -> None:
        """Remove a part that was delivered."""
        self.ledger.count(Count.PARTS_UPLOADED)
        self._remove(ref)

    def quarantine(self, ref: PartRef, reason: str) -> None:
        """Move a part out of the way, with the reason beside it."""
        if self._forget(ref):
            self._move_away(self._path(ref), ref.session_id, reason)

    def wait(self, timeout_s: float, since: int | None = None) -> bool:
        """Wait until parts are offered after ``since`` (a :attr:`revision`; now, if None), or :meth:`wake`.

        Returns:
            False if the time ran out.
        """
        with self._condition:
            seen = self._revision if since is None else since
            return self._condition.wait_for(lambda: self._revision != seen, timeout_s)

    def wake(self) -> None:
        """End all waits now."""
        with self._condition:
            self._revision += 1
            self._condition.notify_all()

    def usage(self) -> Usage:
        """Return what waits for delivery."""
        with self._condition:
            size_bytes, parts = self._index.size_bytes, self._index.parts
            sessions = self._index.sessions()
            oldest = self._index.heads(sessions[0]) if sessions else []
        now_s = time.time()
        ages_s = [0.0]
        free_bytes = 0
        for ref in oldest:
            with contextlib.suppress(OSError):
                ages_s.append(self.fs.age_s(self._path(ref), now_s))
        with contextlib.suppress(OSError):
            free_bytes = self.fs.free_bytes(self.root)
        return Usage(size_bytes, parts, max(ages_s), free_bytes)

    # What a session calls (see session.Home)

    def make_room(self, need_bytes: int) -> None:
        """Evict until ``need_bytes`` fit within the limits, or nothing is left to evict."""
        free_bytes = self.fs.free_bytes(self.root)
        evicted: list[PartRef] = []
        with self._condition:
            used = self._index.size_bytes
            over = used + need_bytes - self.limits.max_bytes
            short = need_bytes - (free_bytes - self.limits.min_free_bytes)
            missing = max(over, short)
            victims = self._index.victims()
            while missing > 0 and (ref := next(victims, None)) is not None:
                evicted.append(ref)
                missing -= ref.size_bytes
            for ref in evicted:
                self._index.remove(ref)
            self.full = missing > 0
        for ref in evicted:
            self.ledger.count(Count.PARTS_EVICTED)
            self._log(
                f'evicted {self._path(ref).relative_to(self._sessions)} ({ref.size_bytes} bytes): '
                f'the spool holds {used} of {self.limits.max_bytes} bytes, the disk has {free_bytes} free '
                f'of which {self.limits.min_free_bytes} are left to others'
            )
            self._unlink(ref)

    def found(self, folder: Path) -> None:
        """Make a session's folder, durably."""
        with contextlib.suppress(FileExistsError):
            self.fs.make_folder(folder)
        self.fs.sync_folder(folder.parent)

    def write_part(self, folder: Path, header: PartHeader, body: bytes) -> PartRef:
        """Write a part durably: temporary file, sync, rename, sync of the folder.

        The kernel is told to write the body out while the checksum is computed.
        """
        fs = self.fs
        path = folder / part_name(header.stream, header.number, header.klass)
        temporary = path.with_name(path.name + TEMPORARY)
        head = framing.head(header, len(body))
        fd = fs.create(temporary)
        try:
            try:
                write_all(fs, fd, head)
                write_all(fs, fd, body)
                fs.start_writeback(fd)
                end = framing.trailer(head, body)
                write_all(fs, fd, end)
                fs.sync(fd)
            finally:
                fs.close(fd)
            fs.rename(temporary, path)
            fs.sync_folder(folder)
        except OSError:
            with contextlib.suppress(OSError):
                fs.remove(temporary)
            raise
        self.ledger.count(Count.PARTS_WRITTEN)
        size = len(head) + len(body) + len(end)
        return PartRef(
            header.identity.session_id, header.stream, header.number, header.klass, size
        )

    def offer(self, refs: list[PartRef]) -> None:
        """Offer finished parts for delivery."""
        with self._condition:
            self._index.add(refs)
            self._revision += 1
            self._condition.notify_all()

    def ended(self, session_id: str) -> None:
        """Take note that a session has its durable end."""
        with self._condition:
            self._live.pop(session_id, None)
        self._tidy(session_id)

    # Inside: opening

    def _take(self) -> None:
        """Make the folders and take the lock."""
        root = self.root
        try:
            for folder in (*reversed(root.parents), root):
                with contextlib.suppress(FileExistsError):
                    if not folder.exists():
                        self.fs.make_folder(folder)
            taken = self.fs.lock(root / 'lock', f'{os.getpid()}\n')
            if isinstance(taken, str):
                raise SpoolLockedError(
                    f'{root} is in use by another process (pid {taken or "unknown"} by its lock file); '
                    'stop that one, or give this one a spool.dir of its own'
                )
            self._lock = taken
            for folder in (self._sessions, self._quarantine):
                with contextlib.suppress(FileExistsError):
                    self.fs.make_folder(folder)
            self.fs.sync_folder(root)
        except OSError as error:
            self.close()
            raise SpoolError(_advice(root, error)) from error

    def _scan(self) -> None:
        """Build the index from the names in the folders."""
        for entry in sorted(self.fs.scan(self._sessions)):
            if entry.kind == 'folder' and framing.is_session_id(entry.name):
                self._last_second = max(self._last_second, session_order(entry.name)[0])
                try:
                    self._scan_session(entry.name)
                except OSError as error:
                    self._fault(f'{self._sessions / entry.name}: {error.strerror}; passed over')
            else:
                self._fault(f'{self._sessions / entry.name}: not a session; left alone')
        path = self.root / 'last_second'
        try:
            self._last_second = max(self._last_second, int(self.fs.read(path)))
        except FileNotFoundError:
            pass
        except (ValueError, OSError) as error:
            self._fault(f'{path}: {error}; the newest session here stands in for it')

    def _scan_session(self, session_id: str) -> None:
        """Index a session's parts; those that its journal does not know are left for :meth:`resume`."""
        folder = self._folder(session_id)
        refs: list[PartRef] = []
        temporary: list[str] = []
        has_journal = False
        for name, kind, size in self.fs.scan(folder):
            parsed = parse_part_name(name)
            if parsed is not None and kind == 'file':
                refs.append(PartRef(session_id, *parsed, size))
            elif name == JOURNAL and kind == 'file':
                has_journal = True
            elif name.endswith(TEMPORARY) and kind == 'file':
                temporary.append(name)
            elif parsed is not None:
                self._move_away(folder / name, session_id, f'a {kind} with the name of a part')
            else:
                self._fault(f'{folder / name}: not a part; left alone')
        refs.sort()
        for name in temporary:
            if name == JOURNAL + TEMPORARY:
                with contextlib.suppress(OSError):
                    self.fs.remove(folder / name)
            else:
                self._move_away(
                    folder / name, session_id, 'the temporary file of a process that died'
                )
        if has_journal:
            found = journal.replay(self.fs.read(folder / JOURNAL))
            if found.state is None:
                self._fault(f'{folder / JOURNAL}: cannot be read')
                return
            self._unended[session_id] = found.state.identity
            numbers = found.state.numbers
            refs = [ref for ref in refs if ref.number <= numbers.get(ref.stream, 0)]
        self._index.add(refs)
        if not refs:
            self._tidy(session_id)

    def _restart(self, identity: SessionIdentity) -> Start:
        """Find out where a session stood when its process died."""
        folder = self._folder(identity.session_id)
        self.fs.sync_folder(folder)  # what is seen now must be there after a power cut too
        replay = journal.replay(self.fs.read(folder / JOURNAL))
        state = replay.state
        if state is None:
            raise OSError(0, 'the journal cannot be read')
        numbers = dict(state.numbers)
        segment = state.segment
        latest_ns = state.latest_ns
        done: set[int] = set()
        finished: list[PartRef] = []
        for entry in sorted(self.fs.scan(folder)):
            name = parse_part_name(entry.name)
            if name is None or name.number <= state.numbers.get(name.stream, 0):
                continue
            try:
                header = framing.parse(self.fs.read(folder / entry.name)).header
            except FormatError as error:
                self._move_away(folder / entry.name, identity.session_id, str(error))
                continue
            finished.append(PartRef(identity.session_id, *name, entry.size_bytes))
            done.add(header.segment)
            numbers[name.stream] = max(numbers.get(name.stream, 0), name.number)
            segment = max(segment, header.segment)
            latest_ns = max(latest_ns, header.latest_ns)
        segments = [
            Segment(
                number=open_.segment,
                stream=open_.stream,
                klass=open_.klass,
                entries=replay.entries[open_.segment],
                size_bytes=sum(map(len, replay.entries[open_.segment])),
                latest_ns=open_.latest_ns,
            )
            for open_ in sorted(state.open, key=lambda open_: open_.segment)
            if open_.segment not in done
        ]
        return Start(
            identity,
            segments,
            finished,
            numbers,
            segment,
            latest_ns,
            state.context,
            replay.lost_entries,
        )

    # Inside: parts

    def _folder(self, session_id: str) -> Path:
        return self._sessions / session_id

    def _path(self, ref: PartRef) -> Path:
        return self._folder(ref.session_id) / part_name(ref.stream, ref.number, ref.klass)

    def _holds(self, session_id: str) -> bool:
        """Say whether a session is in the spool. The lock is held."""
        known = session_id in self._live or session_id in self._unended
        return known or bool(self._index.heads(session_id))

    def _walk(self, of_session: Callable[[str], list[PartRef]]) -> Iterator[PartRef]:
        """Give parts session by session."""
        with self._condition:
            sessions = self._index.sessions()
        for session_id in sessions:
            with self._condition:
                refs = of_session(session_id)
            yield from refs

    def _forget(self, ref: PartRef) -> bool:
        """Take a part out of the index; False if it is not there."""
        with self._condition:
            return self._index.remove(ref)

    def _remove(self, ref: PartRef) -> None:
        """Take a part out of the index and off the disk."""
        if self._forget(ref):
            self._unlink(ref)

    def _unlink(self, ref: PartRef) -> None:
        """Take a part off the disk, and its session's folder with the last one."""
        path = self._path(ref)
        try:
            self.fs.remove(path)
        except FileNotFoundError:
            pass
        except OSError as error:
            self._fault(f'{path}: cannot be removed: {error.strerror}')
        self._tidy(ref.session_id)

    def _tidy(self, session_id: str) -> None:
        """Remove a session's folder when nothing is left in it."""
        with self._condition:
            if self._holds(session_id):
                return
        with contextlib.suppress(OSError):  # something foreign lies in it
            self.fs.remove_folder(self._folder(session_id))

    def _move_away(self, path: Path, session_id: str, reason: str) -> None:
        """Move a file to the quarantine, with the reason beside it."""
        name = f'{session_id}.{path.name}'
        note = json.dumps({'session': session_id, 'file': path.name, 'reason': reason}, indent=2)
        self.ledger.count(Count.PARTS_QUARANTINED)
        self._fault(f'{path}: {reason}; moved to {self._quarantine.name}/{name}')
        try:
            self.fs.rename(path, self._quarantine / name)
            fd = self.fs.create(self._quarantine / f'{name}.reason.json')
            try:
                write_all(self.fs, fd, note.encode())
            finally:
                self.fs.close(fd)
        except OSError as error:
            self._fault(f'{path}: cannot be moved away: {error.strerror}')
        self._tidy(session_id)

    def _fault(self, text: str) -> None:
        """Note what is not as it should be."""
        self.faults.append(text)
        self._log(text)


def _silent(_: str) -> None:
    """Log nothing."""


def _advice(path: Path, error: OSError) -> str:
    """Say what the disk refused, and what to do."""
    return (
        f'{path}: {error.strerror} (user id {os.getuid()}); '
        'spool.dir must be a folder on a local disk that this user may write'
    )
