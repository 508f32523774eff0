"""Files of chunks, read chunk by chunk: a damaged one costs its own messages and no others."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Generator, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from rosbags.interfaces import Connection
from rosbags.rosbag1 import reader as rosbag1
from rosbags.rosbag2.storage_mcap import ChunkInfo, McapReader, Msg, msgsrc

from cognitive3d_ros.errors import FormatError

Messages = Generator[tuple[Connection, int, bytes], None, None]


@dataclass(slots=True)
class Damage:
    """What of a file was found to be unreadable so far, each with why.

    ``chunks`` by their place in the file, ``messages`` by the place of their chunk and theirs in it.
    """

    chunks: dict[int, str] = field(default_factory=dict)
    messages: dict[tuple[int, int], str] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return it in words; nothing where there is none."""
        texts = []
        if self.chunks:
            place, why = min(self.chunks.items())
            texts.append(
                f'{_plural(len(self.chunks), "chunk")} cannot be read, the first at byte {place} ({why})'
            )
        if self.messages:
            (place, _), why = min(self.messages.items())
            more = ' of other chunks' if self.chunks else ''
            texts.append(
                f'{_plural(len(self.messages), "message")}{more} cannot be read, the first in the chunk '
                f'at byte {place} ({why})'
            )
        return ', '.join(texts)


def said(error: Exception) -> str:
    """Return what an error says, for the middle of a sentence."""
    return str(error).rstrip('.') or type(error).__name__


def rosbag1_record(file: BinaryIO) -> tuple[rosbag1.Header, int]:
    """Read the header of a record, and how long its data are."""
    return rosbag1.Header.read(file), rosbag1.read_uint32(file)


class ChunkwiseRosbag1(rosbag1.Reader):
    """A ROS 1 bag with its index."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.damage = Damage()

    def messages(
        self,
        connections: Collection[Connection] = (),
        start: int | None = None,  # noqa: ARG002 - nothing asks for a part of it
        stop: int | None = None,  # noqa: ARG002
    ) -> Messages:
        """Give the messages in the order of their times, without those that are damaged."""
        wanted = {each.id: each for each in connections}
        for entry in heapq.merge(*(self.indexes[key] for key in wanted)):
            if entry.chunk_pos in self.damage.chunks:
                continue
            try:
                chunk = self._chunk(entry.chunk_pos)
            except Exception as error:  # noqa: BLE001 - what is damaged makes decompressors raise anything
                self.damage.chunks[entry.chunk_pos] = said(error)
                continue
            try:
                connection, data = _rosbag1_message(chunk, entry, wanted)
            except Exception as error:  # noqa: BLE001
                self.damage.messages[entry.chunk_pos, entry.offset] = said(error)
                continue
            yield connection, entry.time, data

    def _chunk(self, position: int) -> BinaryIO:
        """Return what a chunk holds, decompressed; the last one is kept."""
        if self.current_chunk[0] != position:
            assert self.bio is not None
            chunk = self.chunks[position]
            self.bio.seek(chunk.datapos)
            data = chunk.decompressor(rosbag1.read_bytes(self.bio, chunk.datasize))
            self.current_chunk[1].close()
            self.current_chunk = position, BytesIO(data)
        return self.current_chunk[1]


def _rosbag1_message(
    chunk: BinaryIO, entry: rosbag1.IndexData, wanted: Mapping[int, Connection]
) -> tuple[Connection, bytes]:
    """Read the message that an entry of the index points to; its connection may stand before it."""
    chunk.seek(entry.offset)
    header, length = rosbag1_record(chunk)
    while header.get_uint8('op') == rosbag1.RecordType.CONNECTION:
        chunk.seek(length, 1)
        header, length = rosbag1_record(chunk)
    connection = wanted.get(header.get_uint32('conn'))
    if (
        header.get_uint8('op') != rosbag1.RecordType.MSGDATA
        or connection is None
        or header.get_time('time') != entry.time
    ):
        raise FormatError('it is not the message that the index says')
    return connection, rosbag1.read_bytes(chunk, length)


class ChunkwiseMcap(McapReader):
    """An MCAP file."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.damage = Damage()

    def messages(
        self,
        connections: Collection[Connection],
        start: int | None = None,
        stop: int | None = None,
    ) -> Messages:
        """Give the messages in the order of their times, without those of damaged chunks."""
        if not self.chunks:
            yield from super().messages(connections, start, stop)
            return
        wanted = {each.id: each for each in connections}
        streams = [
            self._of_chunk(chunk, wanted)
            for chunk in self.chunks
            if any(chunk.channel_count.get(key) for key in wanted)
        ]
        for message in heapq.merge(*streams, key=lambda message: message.timestamp):
            if message.connection is not None and message.data is not None:
                yield message.connection, message.timestamp, message.data

    def _of_chunk(
        self, chunk: ChunkInfo, wanted: dict[int, Connection]
    ) -> Generator[Msg, None, None]:
        """Give when a chunk begins, and, when that has come, its messages."""
        assert self.bio is not None
        first_ns, last_ns = chunk.message_start_time, chunk.message_end_time
        try:
            yield from msgsrc(chunk, wanted, first_ns, last_ns + 1, self.bio)
        except Exception as error:  # noqa: BLE001 - what is damaged makes decompressors raise anything
            self.damage.chunks[chunk.chunk_start_offset] = said(error)


def _plural(count: int, word: str) -> str:
    return f'{count} {word}' if count == 1 else f'{count} {word}s'
