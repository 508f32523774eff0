"""Files of recordings that were cut short, opened without their index.

A recorder that is killed leaves no index (ROS 1), no footer (MCAP) or a broken page (SQLite), and the readers
of rosbags then refuse the file. What was written before is whole. These readers find it from the beginning
of the file, put it where those of rosbags keep an index, and read on as they do.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Collection, Generator
from io import BytesIO
from typing import BinaryIO, Final

import apsw
from rosbags.interfaces import (
    Connection,
    ConnectionExtRosbag1,
    ConnectionExtRosbag2,
    MessageDefinition,
    MessageDefinitionFormat,
)
from rosbags.rosbag1 import reader as rosbag1
from rosbags.rosbag2.storage_mcap import ChunkInfo, McapReader
from rosbags.rosbag2.storage_sqlite3 import Sqlite3Reader
from rosbags.typesys.msg import normalize_msgtype

from cognitive3d_ros.errors import BagError

MCAP_RECORD: Final = struct.Struct('<BQ')  # operation, length
_MCAP_HEADER, _MCAP_CHUNK, _MCAP_DATA_END = 0x01, 0x06, 0x0F


class DamagedRosbag1(rosbag1.Reader):
    """A ROS 1 bag without an index, or with one that is wrong."""

    def open(self) -> None:
        """Index all messages that are there."""
        self.bio = self.path.open('rb')
        try:
            self._index_all(self.bio)
        except BaseException:
            self.close()
            raise

    def _index_all(self, bio: BinaryIO) -> None:
        size = bio.seek(0, 2)
        bio.seek(0)
        if bio.readline() != b'#ROSBAG V2.0\n':
            raise BagError('only version 2.0 of ROS 1 bags is read')
        known: dict[int, Connection] = {}
        while (position := bio.tell()) < size:
            try:
                header, length = _rosbag1_record(bio)
                operation = header.get_uint8('op')
            except rosbag1.ReaderError:
                break  # here it was cut
            start = bio.tell()
            if operation == rosbag1.RecordType.CHUNK:
                compression = header.get_string('compression')
                # Of a chunk that is not compressed, what is there can be read.
                if start + length > size and compression != 'none':
                    break
                length = min(length, size - start)
                chunk = rosbag1.Chunk(length, start, rosbag1.decompressors[compression])
                self.chunks[position] = chunk
                self._index(position, chunk.decompressor(bio.read(length)), known)
            bio.seek(start + length)
        for index in self.indexes.values():
            index.sort()
        self.connections = [
            each._replace(msgcount=len(self.indexes[key])) for key, each in known.items()
        ]

    def _index(self, position: int, data: bytes, known: dict[int, Connection]) -> None:
        """Index the connections and messages of a chunk, as far as it goes."""
        chunk, times, counts = BytesIO(data), [], Counter[int]()
        while (offset := chunk.tell()) < len(data):
            try:
                header, length = _rosbag1_record(chunk)
                end = chunk.tell() + length
                if end > len(data):
                    break
                operation, key = header.get_uint8('op'), header.get_uint32('conn')
                if operation == rosbag1.RecordType.CONNECTION and key not in known:
                    known[key] = self._connection(header, chunk.read(length))
                    self.indexes[key] = []
                elif operation == rosbag1.RecordType.MSGDATA and key in known:
                    time_ns = header.get_time('time')
                    self.indexes[key].append(rosbag1.IndexData(time_ns, position, offset))
                    times.append(time_ns)
                    counts[key] += 1
            except rosbag1.ReaderError:
                break
            chunk.seek(end)
        if times:
            self.chunk_infos.append(
                rosbag1.ChunkInfo(position, min(times), max(times) + 1, dict(counts))
            )

    def _connection(self, header: rosbag1.Header, data: bytes) -> Connection:
        # The data of a connection record has the form of a header.
        said = rosbag1.Header.read(BytesIO(struct.pack('<L', len(data)) + data))
        return Connection(
            header.get_uint32('conn'),
            rosbag1.normalize(header.get_string('topic')),
            normalize_msgtype(said.get_string('type')),
            MessageDefinition(MessageDefinitionFormat.MSG, said.get_string('message_definition')),
            said.get_string('md5sum'),
            0,
            ConnectionExtRosbag1(
                said.get_string('callerid') if 'callerid' in said else None, None
            ),
            self,
        )


def _rosbag1_record(file: BinaryIO) -> tuple[rosbag1.Header, int]:
    """Read the header of a record, and how long its data are."""
    return rosbag1.Header.read(file), rosbag1.read_uint32(file)


class DamagedMcap(McapReader):
    """An MCAP file without a footer."""

    def _open(self) -> None:
        """Find the chunks that are whole."""
        bio = self.bio
        assert bio is not None  # open() has opened it
        size = bio.seek(0, 2)
        self.data_start = self.data_end = bio.seek(8)
        chunks: list[ChunkInfo] = []
        while len(head := bio.read(MCAP_RECORD.size)) == MCAP_RECORD.size:
            operation, length = MCAP_RECORD.unpack(head)
            start = bio.tell()
            if operation == _MCAP_DATA_END or start + length > size:
                break
            if operation == _MCAP_HEADER and (profile := bio.read(length)[4:8]) != b'ros2':
                raise BagError(f'its profile is {profile!r}, not ros2')
            if operation == _MCAP_CHUNK:
                chunks.append(_mcap_chunk(start - MCAP_RECORD.size, bio.read(length)))
            self.data_end = bio.seek(start + length)
        self.meta_scan()
        assert self.statistics is not None  # meta_scan() has made them
        counts = self.statistics.channel_message_counts
        self.connections = [
            each._replace(msgcount=counts.get(each.id, 0)) for each in self.connections
        ]
        # Which channels are in which chunk is not known: each may be in any.
        anywhere = dict.fromkeys(counts, 1)
        self.chunks = [chunk._replace(channel_count=anywhere) for chunk in chunks]
        self.metadata = self.metadata._replace(
            start_time=self.statistics.start_time,
            end_time=self.statistics.end_time + 1,
            message_count=self.statistics.message_count,
        )


def _mcap_chunk(position: int, record: bytes) -> ChunkInfo:
    """Return of a chunk record what the index would say of it."""
    first_ns, last_ns, size, _, name_length = struct.unpack_from('<QQQII', record)
    compression = record[32 : 32 + name_length].decode()
    (compressed_size,) = struct.unpack_from('<Q', record, 32 + name_length)
    length = MCAP_RECORD.size + len(record)
    return ChunkInfo(
        first_ns, last_ns, position, length, {}, 0, compression, compressed_size, size, {}
    )


class DamagedSqlite(Sqlite3Reader):
    """A SQLite database of rosbag2 with pages that are missing or broken."""

    def _open(self) -> None:
        """Find the topics and what can be read of the messages."""
        assert self.dbconn is not None  # open() has opened it
        definitions: dict[str, MessageDefinition] = {}
        try:
            rows = self.dbconn.execute(
                'SELECT topic_type, encoding, encoded_message_definition FROM message_definitions'
            )
            for name, encoding, text in rows:
                form = {
                    'ros2msg': MessageDefinitionFormat.MSG,
                    'ros2idl': MessageDefinitionFormat.IDL,
                }
                definitions[str(name)] = MessageDefinition(form[str(encoding)], str(text))
        except apsw.Error:
            pass  # recorders before Iron define no types
        nothing = MessageDefinition(MessageDefinitionFormat.NONE, '')
        topics = self.dbconn.execute('SELECT id, name, type, serialization_format FROM topics')
        self.connections = [
            Connection(
                int(key),
                str(name),
                str(kind),
                definitions.get(str(kind), nothing),
                '',
                0,
                ConnectionExtRosbag2(str(form), []),
                self,
            )
            for key, name, kind, form in topics
        ]
        times = [time_ns for _, time_ns, _ in self.messages(self.connections)]
        if times:
            self.metadata = self.metadata._replace(
                start_time=min(times), end_time=max(times) + 1, message_count=len(times)
            )

    def messages(
        self,
        connections: Collection[Connection],
        start: int | None = None,  # noqa: ARG002 - nothing asks for a part of it
        stop: int | None = None,  # noqa: ARG002
    ) -> Generator[tuple[Connection, int, bytes], None, None]:
        """Give the messages in the order in which they were written, up to the first that is broken."""
        assert self.dbconn is not None
        wanted = {each.id: each for each in connections}
        rows = self.dbconn.execute('SELECT topic_id, timestamp, data FROM messages ORDER BY id')
        try:
            for key, time_ns, data in rows:
                if key in wanted:
                    yield wanted[int(key)], int(time_ns), bytes(data)
        except apsw.Error:
            return
