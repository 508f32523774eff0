"""Where stored sessions lie: a spool, a gateway's store, one session's folder, or loose part files.

Nothing here is written, locked or held open: a spool may be in use by its recorder meanwhile. Folders are
listed when a session is first asked for something, and part files are read when their records are.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from cognitive3d_ros.errors import FormatError, ReadError
from cognitive3d_ros.spool import journal
from cognitive3d_ros.spool.fs import REAL_FS, open_file
from cognitive3d_ros.wire.bodies import assemble
from cognitive3d_ros.wire.framing import (
    STREAMS,
    Part,
    PartHeader,
    PartName,
    body_start,
    check_size,
    is_session_id,
    parse,
    parse_header,
    parse_part_name,
    part_name,
)
from cognitive3d_ros.wire.identity import SessionIdentity
from cognitive3d_ros.wire.schema import FORMAT_VERSIONS

JOURNAL = 'journal'
_TEMPORARY = '.tmp'
_HEADER_BYTES = 80 * 1024  # as long as a header may be; most are 400 bytes
_PREFIX_BYTES = 4096
_START_BYTES = 16384
_LENGTHS_BYTES = 64  # the lengths of header and body are among them
_RANK = {stream: rank for rank, stream in enumerate(STREAMS)}


@dataclass(frozen=True, slots=True)
class PartFile:
    """One part of a session, as its file's name tells."""

    name: PartName
    folder: Path  # a day has 35,000 of them: the path is made when it is wanted

    @property
    def path(self) -> Path:
        """Where it lies."""
        return self.folder / self.label

    @property
    def stream(self) -> str:
        """Its upload stream."""
        return self.name.stream

    @property
    def klass(self) -> str:
        """Its class."""
        return self.name.klass

    @property
    def label(self) -> str:
        """What it is called where something is said of it: its file's name."""
        return part_name(*self.name)

    def read(self) -> Part:
        """Read it whole. Raises FormatError or OSError."""
        return parse(REAL_FS.read(self.path))

    def read_header(self) -> PartHeader:
        """Read what it says of itself, without its body. Raises FormatError or OSError."""
        return _read_header(self.path)

    def check_size(self) -> None:
        """Check that it is as long as it says, without reading it. Raises FormatError or OSError."""
        with open_file(self.path) as file:
            check_size(file.read(_LENGTHS_BYTES), os.fstat(file.fileno()).st_size)

    def read_start(self) -> bytes:
        """Read the first 16 KiB of it; return what of them is its body. Raises FormatError or OSError."""
        with open_file(self.path) as file:
            return body_start(file.read(_START_BYTES))


@dataclass(frozen=True, slots=True)
class OpenPart:
    """What a recorder has journalled and not made a part of yet: the body that such a part would have."""

    stream: str
    klass: str
    body: bytes

    @property
    def label(self) -> str:
        """What it is called where something is said of it."""
        return f'journal, {self.stream} {self.klass}'


@dataclass(frozen=True, slots=True)
class Listing:
    """What lay in a session's folder at one moment."""

    parts: tuple[PartFile, ...] = ()
    """By stream, then number."""
    open_parts: tuple[OpenPart, ...] = ()
    journal: journal.Replay | None = None
    """None: there is no journal, so the session has its durable end, or none of it was here."""
    others: tuple[Path, ...] = ()
    """What is no part and no journal."""

    @property
    def identity(self) -> SessionIdentity | None:
        """What the journal says of the session."""
        state = None if self.journal is None else self.journal.state
        return None if state is None else state.identity


@dataclass(frozen=True)
class SessionFiles:
    """The files of one session, listed when first asked for."""

    session_id: str
    folder: Path
    in_spool: bool = False
    """Parts that are missing in a spool may have been delivered."""
    loose: tuple[PartFile, ...] | None = field(default=None, repr=False)
    """The session's parts, where the folder holds those of several."""

    @cached_property
    def listing(self) -> Listing:
        """What lies there. Raises ReadError if the folder cannot be read."""
        if self.loose is not None:
            return Listing(_in_order(self.loose))
        # The journal first: a part that is finished between the two is then in both, and told apart by
        # its segment. The other way round it could be in neither.
        replay = _read_journal(self.folder / JOURNAL)
        parts, others = _scan(self.folder)
        open_parts = () if replay is None else tuple(_open_parts(replay, parts))
        return Listing(_in_order(parts), open_parts, replay, tuple(others))


def find_sessions(path: Path) -> Mapping[str, SessionFiles]:
    """Return the sessions under a path, by id, oldest first; reads names only, save of loose parts.

    Raises ReadError if there is nothing that a session could be read from.
    """
    if path.is_file():
        return _loose([path], path.parent)
    if not path.is_dir():
        what = 'is neither a file nor a folder' if path.exists() else 'does not exist'
        raise ReadError(f'{path} {what}')
    sessions = path / 'sessions'
    if sessions.is_dir():
        return _sessions_of(sessions, in_spool=(path / 'last_second').exists())
    if path.name == 'sessions' or _session_names(path):
        return _sessions_of(path, in_spool=(path.parent / 'last_second').exists())
    files = [path / name for name in _names(path) if parse_part_name(name) is not None]
    if is_session_id(path.resolve().name) and (files or (path / JOURNAL).exists()):
        root = path.resolve().parent.parent
        session_id = path.resolve().name
        in_spool = (path / JOURNAL).exists() or (root / 'last_second').exists()
        return {session_id: SessionFiles(session_id, path, in_spool)}
    replay = _read_journal(path / JOURNAL)
    if replay is not None and replay.state is not None:  # a copy of a session's folder
        session_id = replay.state.identity.session_id
        if not is_session_id(session_id):  # names of folders are made of it
            raise ReadError(f'{path / JOURNAL} names {session_id!r:.100}, which is no session id')
        return {session_id: SessionFiles(session_id, path, in_spool=True)}
    if not files:
        raise ReadError(
            f'{path} holds no sessions: a spool, a store of c3d gateway, the folder of a session '
            'or part files (*.c3d) are wanted'
        )
    return _loose(files, path)


def is_session_folder(path: Path) -> bool:
    """Say whether a path is the folder of a session, with parts or a journal in it."""
    if not is_session_id(path.name) or not path.is_dir():
        return False
    if (path / JOURNAL).exists():
        return True
    try:
        return any(parse_part_name(each.name) is not None for each in path.iterdir())
    except OSError:
        return False


def _sessions_of(folder: Path, *, in_spool: bool) -> dict[str, SessionFiles]:
    names = sorted(_session_names(folder), key=_order)
    return {name: SessionFiles(name, folder / name, in_spool) for name in names}


def _loose(files: list[Path], folder: Path) -> dict[str, SessionFiles]:
    """Sort part files by the session that each names in its header."""
    found: dict[str, list[PartFile]] = {}
    unreadable: list[tuple[PartFile, str]] = []
    for path in files:
        name = parse_part_name(path.name)
        if name is None:
            raise ReadError(f'{path} has not the name of a part: <stream>.<number>.<class>.c3d')
        part = PartFile(name, path.parent)
        try:
            found.setdefault(_read_header(path).identity.session_id, []).append(part)
        except (FormatError, OSError) as error:
            unreadable.append((part, str(error)))
    if not found:
        part, reason = unreadable[0]
        raise ReadError(
            f'none of the part files in {folder} can be read; {part.path.name}: {reason}'
        )
    # A part that does not say whose it is may be any session's: each reports it.
    rest = [part for part, _ in unreadable]
    return {
        session_id: SessionFiles(session_id, folder, loose=(*found[session_id], *rest))
        for session_id in sorted(found, key=_order)
    }


def _order(session_id: str) -> tuple[int, str]:
    second = session_id.partition('_')[0]
    return (int(second) if second.isdecimal() else 0, session_id)


def _in_order(parts: tuple[PartFile, ...] | list[PartFile]) -> tuple[PartFile, ...]:
    return tuple(sorted(parts, key=lambda part: (_RANK[part.name.stream], *part.name[1:])))


def _names(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 - names: 35,000 paths take long to sort
    except OSError as error:
        raise ReadError(f'{folder} cannot be read: {error.strerror}') from None


def _session_names(folder: Path) -> list[str]:
    return [name for name in _names(folder) if is_session_id(name) and (folder / name).is_dir()]


def _scan(folder: Path) -> tuple[list[PartFile], list[Path]]:
    parts: list[PartFile] = []
    others: list[Path] = []
    for text in _names(folder):
        name = parse_part_name(text)
        if name is not None:
            parts.append(PartFile(name, folder))
        elif text != JOURNAL and not text.endswith(_TEMPORARY):
            others.append(folder / text)
    return parts, others


def _read_header(path: Path) -> PartHeader:
    with open_file(path) as file:
        prefix = file.read(_PREFIX_BYTES)
        try:
            return parse_header(prefix)
        except FormatError:
            rest = file.read(_HEADER_BYTES)
            if not rest:
                raise
            return parse_header(prefix + rest)


def _read_journal(path: Path) -> journal.Replay | None:
    try:
        return journal.replay(REAL_FS.read(path))
    except FileNotFoundError:
        return None
    except OSError:
        return journal.Replay()


def _open_parts(replay: journal.Replay, parts: list[PartFile]) -> Iterator[OpenPart]:
    """Give the bodies of the segments that had no part when the journal was written, nor have one now."""
    state = replay.state
    if state is None:
        return
    finished: set[int] = set()
    for part in parts:
        if part.name.number > state.numbers.get(part.name.stream, 0):
            try:
                finished.add(part.read_header().segment)
            except (FormatError, OSError):
                continue  # it is reported where it is read
    for segment in sorted(state.open, key=lambda segment: segment.segment):
        entries = replay.entries.get(segment.segment)
        known = segment.stream in FORMAT_VERSIONS
        if known and entries and segment.segment not in finished:
            number = state.numbers.get(segment.stream, 0) + 1
            body, _ = assemble(state.identity, segment.stream, segment.klass, number, entries)
            yield OpenPart(segment.stream, segment.klass, body)
