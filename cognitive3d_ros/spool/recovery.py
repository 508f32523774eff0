"""What lies in a session's folder, and where the session stood when its process died.

Only reading is done here. A part is finished for good when the journal says so, or when there is no journal
any more; until then its segment may still be in the journal, so that it is neither offered nor evicted before
:func:`restart` has held the two together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from cognitive3d_ros.errors import FormatError
from cognitive3d_ros.spool import journal
from cognitive3d_ros.spool.fs import TEMPORARY, Fs
from cognitive3d_ros.spool.index import PartRef
from cognitive3d_ros.spool.session import JOURNAL, Segment, Start
from cognitive3d_ros.wire import framing
from cognitive3d_ros.wire.framing import PartName, parse_part_name, part_name
from cognitive3d_ros.wire.identity import SessionIdentity


@dataclass(slots=True)
class Found:
    """The names in a session's folder, sorted out.

    ``parts`` by stream and number; ``temporary`` the unfinished files of parts; ``misnamed`` what has the
    name of a part and is none, with why; ``foreign`` what is not ours.
    """

    parts: list[PartRef] = field(default_factory=list)
    temporary: list[str] = field(default_factory=list)
    misnamed: list[tuple[str, str]] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    has_journal: bool = False
    has_journal_temporary: bool = False


def look(fs: Fs, folder: Path) -> Found:
    """Sort out the names in a session's folder."""
    found = Found()
    session_id = folder.name
    for name, kind, size_bytes in fs.scan(folder):
        parsed = parse_part_name(name)
        if parsed is not None:
            if kind == 'file':
                found.parts.append(PartRef(session_id, *parsed, size_bytes))
            else:
                what = 'a folder' if kind == 'folder' else 'no ordinary file,'
                found.misnamed.append((name, f'{what} with the name of a part'))
        elif name == JOURNAL and kind == 'file':
            found.has_journal = True
        elif name == JOURNAL + TEMPORARY and kind == 'file':
            found.has_journal_temporary = True
        elif name.endswith(TEMPORARY) and kind == 'file' and _part_of(name) is not None:
            found.temporary.append(name)
        else:
            found.foreign.append(name)
    found.parts.sort()
    for first, second in pairwise(found.parts[:]):
        if first[:3] == second[:3]:
            found.parts.remove(second)
            name = part_name(second.stream, second.number, second.klass)
            found.misnamed.append((name, f'a second part {second.number} of {second.stream}'))
    return found


def finished(parts: Iterable[PartRef], numbers: Mapping[str, int]) -> list[PartRef]:
    """Return the parts that a journal knows to be finished."""
    return [ref for ref in parts if ref.number <= numbers.get(ref.stream, 0)]


def adoptable(fs: Fs, folder: Path, name: str, numbers: Mapping[str, int]) -> str | None:
    """Say why a temporary file cannot become the part it was to be; None if it can."""
    part = _part_of(name)
    assert part is not None
    try:
        header = framing.parse(fs.read(folder / name)).header
    except FormatError as error:
        return f'the temporary file of a process that died: {error}'
    if (header.identity.session_id, header.stream, header.number, header.klass) != (
        folder.name,
        *part,
    ):
        return 'the temporary file of a process that died: it holds another part'
    if part.number <= numbers.get(part.stream, 0):
        return 'the temporary file of a part that was finished before'
    if part_name(*part) in {entry.name for entry in fs.scan(folder)}:
        return 'the temporary file of a part that is there'
    return None


def identity_of(fs: Fs, folder: Path, parts: Iterable[PartRef]) -> SessionIdentity | None:
    """Return a session's identity from one of its parts, when the journal cannot tell it."""
    for ref in parts:
        try:
            part = framing.parse(fs.read(folder / part_name(ref.stream, ref.number, ref.klass)))
        except (FormatError, OSError):
            continue
        if part.header.identity.session_id == folder.name:
            return part.header.identity
    return None


@dataclass(frozen=True, slots=True)
class Restart:
    """A session's state for going on: ``start``, and which parts must be moved away before, with why."""

    start: Start
    unreadable: list[tuple[str, str]]
    replay: journal.Replay


def restart(fs: Fs, folder: Path, identity: SessionIdentity) -> Restart:
    """Hold a journal and the parts it does not know together.

    A segment whose part is there is finished; all others are written again from the journal.
    """
    replay = journal.replay(fs.read(folder / JOURNAL))
    state = replay.state or journal.State(identity, {}, 0, 0, (), b'')
    numbers = dict(state.numbers)
    segment, latest_ns = state.segment, state.latest_ns
    done: set[int] = set()
    known: list[PartRef] = []
    unreadable: list[tuple[str, str]] = []
    for ref in look(fs, folder).parts:
        if ref.number <= state.numbers.get(ref.stream, 0):
            continue
        name = part_name(ref.stream, ref.number, ref.klass)
        try:
            header = framing.parse(fs.read(folder / name)).header
        except (FormatError, PermissionError) as error:
            unreadable.append((name, str(error)))
            continue
        known.append(ref)
        done.add(header.segment)
        numbers[ref.stream] = max(numbers.get(ref.stream, 0), ref.number)
        segment = max(segment, header.segment)
        latest_ns = max(latest_ns, header.latest_ns)
    segments = [
        Segment(
            number=one.segment,
            stream=one.stream,
            klass=one.klass,
            entries=replay.entries[one.segment],
            size_bytes=sum(map(len, replay.entries[one.segment])),
            latest_ns=one.latest_ns,
        )
        for one in sorted(state.open, key=lambda one: one.segment)
        if one.segment not in done and replay.entries[one.segment]
    ]
    start = Start(
        identity, segments, known, numbers, segment, latest_ns, state.context, replay.lost_entries
    )
    return Restart(start, unreadable, replay)


def _part_of(temporary: str) -> PartName | None:
    """Return which part a temporary file was to be."""
    return parse_part_name(temporary.removesuffix(TEMPORARY))
