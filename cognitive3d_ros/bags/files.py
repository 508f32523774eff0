"""The files that recordings consist of: ROS 1 bags, MCAP files, SQLite databases.

What a file is, is told by its content, not by its name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from rosbags.interfaces import Connection
from rosbags.rosbag2.storage_sqlite3 import Sqlite3Reader

from cognitive3d_ros.bags.chunks import ChunkwiseMcap, ChunkwiseRosbag1, Damage, said
from cognitive3d_ros.bags.damaged import (
    MCAP_RECORD,
    DamagedMcap,
    DamagedRosbag1,
    DamagedSqlite,
)
from cognitive3d_ros.errors import BagError
from cognitive3d_ros.spool.fs import open_file as open_ordinary

Message = tuple[Connection, int, bytes]
"""A message as rosbags gives it: connection, receive time in ns, bytes."""

_MCAP_METADATA_INDEX: Final = 0x0D


class Reader(Protocol):
    """What the readers of rosbags have in common."""

    connections: list[Connection]

    def open(self) -> None:
        """Open the file."""

    def close(self) -> None:
        """Close it."""

    def messages(self, connections: Collection[Connection]) -> Iterator[Message]:
        """Give messages in order of time."""


@dataclass(frozen=True, slots=True)
class Storage:
    """An open file. The ids of its connections count within it only.

    ``start_ns`` and ``end_ns`` are the times of the first and the last message, ``distro`` is what the file
    names or empty, ``problem`` says what is wrong with it or is empty.
    """

    path: Path
    format: str
    reader: Reader
    message_count: int
    start_ns: int
    end_ns: int
    distro: str = ''
    problem: str = ''
    damage: Damage = field(default_factory=Damage)
    """What reading finds; of a database nothing."""


_KINDS: Final[
    tuple[tuple[bytes, str, Callable[[Path], Reader], Callable[[Path], Reader]], ...]
] = (
    (b'#ROSBAG V', 'rosbag1', ChunkwiseRosbag1, DamagedRosbag1),
    (b'\x89MCAP', 'mcap', ChunkwiseMcap, DamagedMcap),
    (b'SQLite format 3\0', 'sqlite3', Sqlite3Reader, DamagedSqlite),
)


def open_file(path: Path) -> Storage:
    """Open a file; one that was cut short as far as it goes.

    Raises:
        BagError: it is not there, is none of these, or nothing of it can be read.
    """
    try:
        with open_ordinary(path) as file:
            magic = file.read(16)
    except OSError as error:
        raise BagError(f'{path} cannot be read: {error.strerror}') from None
    if not magic:
        raise BagError(f'{path} is empty')
    for beginning, form, kind, damaged in _KINDS:
        if magic.startswith(beginning):
            return _open(path, form, kind, damaged)
    raise BagError(
        f'{path} begins with {magic!r}: it is no ROS 1 bag, no MCAP file and no SQLite database'
    )


def _open(
    path: Path, form: str, kind: Callable[[Path], Reader], damaged: Callable[[Path], Reader]
) -> Storage:
    reader, problem = kind(path), ''
    try:
        reader.open()
    except Exception as error:  # noqa: BLE001 - a broken file makes the readers raise anything
        reader, problem = damaged(path), f'{path.name} is not whole: {said(error)}'
        try:
            reader.open()
        except Exception as second:  # noqa: BLE001
            raise BagError(f'{path} cannot be read: {said(error)}, {said(second)}') from None
    count, start_ns, end_ns = _extent(reader)
    if problem:
        problem += f'; {count} messages of it can be read'
    write_ahead = path.with_name(path.name + '-wal')
    if form == 'sqlite3' and write_ahead.exists() and write_ahead.stat().st_size:
        problem = problem or (
            f'{path.name} was not closed: the messages in {write_ahead.name} are left out until '
            f"sqlite3 has moved them over (sqlite3 {path.name} 'PRAGMA wal_checkpoint')"
        )
    distro = '' if problem or not isinstance(reader, ChunkwiseMcap) else _mcap_distro(reader)
    damage = Damage()
    if isinstance(reader, (ChunkwiseMcap, ChunkwiseRosbag1)):
        damage = reader.damage
    return Storage(path, form, reader, count, start_ns, end_ns, distro, problem, damage)


def _extent(reader: Reader) -> tuple[int, int, int]:
    """Return how many messages there are, and the times of the first and the last."""
    if isinstance(reader, ChunkwiseRosbag1):
        return reader.message_count, reader.start_time, reader.end_time - 1
    assert isinstance(reader, (ChunkwiseMcap, Sqlite3Reader))
    said = reader.metadata
    return said.message_count, said.start_time, said.end_time - 1


def _mcap_distro(reader: ChunkwiseMcap) -> str:
    """Return the distro that rosbag2 has noted down in the file, from the index of its notes."""
    bio = reader.bio
    assert bio is not None
    bio.seek(reader.data_end)  # where the summary begins
    while len(head := bio.read(MCAP_RECORD.size)) == MCAP_RECORD.size:
        operation, length = MCAP_RECORD.unpack(head)
        if operation == _MCAP_METADATA_INDEX:
            record = bio.read(length)
            bio.seek(int.from_bytes(record[:8], 'little'))
            found = re.search(
                rb'ros_distro: (\w+)', bio.read(int.from_bytes(record[8:16], 'little'))
            )
            return found[1].decode() if found else ''
        bio.seek(length, 1)
    return ''
