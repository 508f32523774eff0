"""Looking at a spool from outside: nothing is locked, written or moved, so it may be in use meanwhile."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cognitive3d_ros.errors import FormatError, SpoolError
from cognitive3d_ros.spool import journal, recovery
from cognitive3d_ros.spool.fs import REAL_FS
from cognitive3d_ros.spool.index import session_order
from cognitive3d_ros.spool.quarantine import REASON_SUFFIX
from cognitive3d_ros.spool.session import JOURNAL
from cognitive3d_ros.spool.whose import is_spool, why_no_spool
from cognitive3d_ros.wire import framing
from cognitive3d_ros.wire.framing import part_name


@dataclass(frozen=True, slots=True)
class SessionSurvey:
    """A session in a spool: its finished parts by class, and whether it has a durable end."""

    session_id: str
    parts: dict[str, int]
    size_bytes: int
    ended: bool


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A file in quarantine and why it is there."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Survey:
    """What a spool holds. ``owner`` is what its lock file says, if a process owns it now."""

    sessions: tuple[SessionSurvey, ...]
    quarantined: tuple[Quarantined, ...]
    owner: str | None
    free_bytes: int

    @property
    def parts(self) -> int:
        """How many finished parts there are."""
        return sum(sum(session.parts.values()) for session in self.sessions)

    @property
    def size_bytes(self) -> int:
        """How many bytes they have."""
        return sum(session.size_bytes for session in self.sessions)


NO_SPOOL = '{} is no spool: it has no folder sessions, or neither quarantine nor last_second nor lock beside it'


def check_is_spool(root: Path) -> None:
    """Raise SpoolError if a folder is no spool."""
    if not is_spool(root):
        raise SpoolError(why_no_spool(root) or NO_SPOOL.format(root))


def survey(root: Path) -> Survey:
    """Look at a spool.

    Raises:
        SpoolError: it is none.
        OSError: it cannot be read.
    """
    folders = _session_folders(root)
    return Survey(
        tuple(_survey_session(folder) for folder in folders),
        tuple(quarantined(root)),
        REAL_FS.lock_holder(root / 'lock'),
        REAL_FS.free_bytes(root),
    )


def quarantined(root: Path) -> Iterator[Quarantined]:
    """Give the files in quarantine, by name."""
    folder = root / 'quarantine'
    try:
        entries = sorted(REAL_FS.scan(folder))
    except FileNotFoundError:
        return  # somebody has removed it, and what was there
    for name, _, _ in entries:
        if not name.endswith(REASON_SUFFIX):
            yield Quarantined(name, _reason(folder / (name + REASON_SUFFIX)))


def check(root: Path) -> Iterator[str]:
    """Read everything in a spool, and give what is wrong with it, one sentence each.

    Raises SpoolError and OSError as :func:`survey` does.
    """
    for name, kind, _ in sorted(REAL_FS.scan(root / 'sessions')):
        if kind != 'folder' or not framing.is_session_id(name):
            yield f'sessions/{name}: not a session'
    for folder in _session_folders(root):
        yield from _check_session(folder)
    for file in quarantined(root):
        yield f'quarantine/{file.name}: {file.reason}'


def _session_folders(root: Path) -> list[Path]:
    check_is_spool(root)
    names = [
        name
        for name, kind, _ in REAL_FS.scan(root / 'sessions')
        if kind == 'folder' and framing.is_session_id(name)
    ]
    return [root / 'sessions' / name for name in sorted(names, key=session_order)]


def _survey_session(folder: Path) -> SessionSurvey:
    parts: dict[str, int] = {}
    try:
        found = recovery.look(REAL_FS, folder)
    except FileNotFoundError:
        found = recovery.Found()
    for ref in found.parts:
        parts[ref.klass] = parts.get(ref.klass, 0) + 1
    size_bytes = sum(ref.size_bytes for ref in found.parts)
    return SessionSurvey(folder.name, parts, size_bytes, not found.has_journal)


def _check_session(folder: Path) -> Iterator[str]:
    try:
        yield from _check_files(folder)
    except FileNotFoundError:
        return  # delivered meanwhile
    except OSError as error:
        yield f'{folder.name}: {error.strerror}'


def _check_files(folder: Path) -> Iterator[str]:
    found = recovery.look(REAL_FS, folder)
    for name, reason in found.misnamed:
        yield f'{folder.name}/{name}: {reason}'
    for name in found.foreign:
        yield f'{folder.name}/{name}: not a part'
    before: dict[str, int] = {}
    for ref in found.parts:
        name = part_name(ref.stream, ref.number, ref.klass)
        last = before.get(ref.stream)
        before[ref.stream] = ref.number
        if last is not None and ref.number > last + 1:
            first, after = last + 1, ref.number
            gap = f'part {first} is' if first + 1 == after else f'parts {first} to {after - 1} are'
            yield f'{folder.name}/{name}: {gap} not there before it'
        try:
            header = framing.parse(REAL_FS.read(folder / name)).header
        except FileNotFoundError:
            continue  # delivered meanwhile
        except (FormatError, OSError) as error:
            yield f'{folder.name}/{name}: {getattr(error, "strerror", None) or error}'
            continue
        if (header.identity.session_id, header.stream, header.number, header.klass) != ref[:4]:
            yield f'{folder.name}/{name}: it holds another part than its name says'
    if found.has_journal:
        yield from _check_journal(folder)


def _check_journal(folder: Path) -> Iterator[str]:
    found = journal.replay(REAL_FS.read(folder / JOURNAL))
    where = f'{folder.name}/{JOURNAL}'
    if found.newer is not None:
        yield f'{where}: format {found.newer}, a newer cognitive3d_ros wrote it'
    elif found.state is None:
        yield f'{where}: it cannot be read'
    elif found.damaged_bytes:
        yield (
            f'{where}: {found.damaged_bytes} bytes are damaged, {found.lost_entries} entries of open '
            'parts are lost'
        )


def _reason(path: Path) -> str:
    try:
        return str(json.loads(REAL_FS.read(path))['reason'])
    except (OSError, ValueError, KeyError, TypeError):
        return 'no reason is beside it'
