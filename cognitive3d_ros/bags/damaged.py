"""Files of recordings that were cut short, opened without their index.

A recorder that is killed leaves no index (ROS 1), no footer (MCAP) or a broken page (SQLite), and the readers
of rosbags then refuse the file. What was written before is whole. These readers find it from the beginning
of the file, put it where those of rosbags keep an index, and read on as they do.
"""

from __future__ import annotations

import contextlib
import mmap
import struct
from collections import Counter
from collections.abc import Collection, Generator, Iterator
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
from rosbags.rosbag2.storage_mcap import ChunkInfo
from rosbags.rosbag2.storage_sqlite3 import Sqlite3Reader
from rosbags.typesys.msg import normalize_msgtype

from cognitive3d_ros.bags.chunks import ChunkwiseMcap, ChunkwiseRosbag1, rosbag1_record, said
from cognitive3d_ros.errors import BagError

MCAP_RECORD: Final = struct.Struct('<BQ')  # operation, length
_ROSBAG1_CHUNK: Final = b'\x04\0\0\0op=\x05'  # as it stands in the header of a chunk
_ROSBAG1_HEADER_BYTES: Final = 60  # of a chunk: most are 40
_MCAP_CHUNK_HEAD_BYTES: Final = 64
_MCAP_HEADER, _MCAP_CHUNK, _MCAP_DATA_END = 0x01, 0x06, 0x0F


class DamagedRosbag1(ChunkwiseRosbag1):
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
        bio.seek(0)
        if bio.readline() != b'#ROSBAG V2.0\n':
            raise BagError('only version 2.0 of ROS 1 bags is read')
        known: dict[int, Connection] = {}
        self._find_chunks(bio, known)
        for position in self.chunks:
            try:
                data = self._chunk(position).read()
            except Exception as error:  # noqa: BLE001 - what is damaged makes decompressors raise anything
                self.damage.chunks[position] = said(error)
                continue
            self._index(position, data, known)
        for index in self.indexes.values():
            index.sort()
        self.connections = [
            each._replace(msgcount=len(self.indexes[key])) for key, each in known.items()
        ]

    def _find_chunks(self, bio: BinaryIO, known: dict[int, Connection]) -> None:
        """Find the chunks, and the connections that are noted down after them."""
        size = bio.seek(0, 2)
        position: int | None = len(b'#ROSBAG V2.0\n')
        while position is not None and position < size:
            bio.seek(position)
            try:
                header, length = rosbag1_record(bio)
                operation = header.get_uint8('op')
                start = bio.tell()
                if operation == rosbag1.RecordType.CHUNK:
                    compression = header.get_string('compression')
                    # Of a chunk that is not compressed, what is there can be read.
                    length = min(length, size - start) if compression == 'none' else length
                    chunk = rosbag1.Chunk(length, start, rosbag1.decompressors[compression])
                if start + length > size:
                    raise BagError(f'it is cut short by {start + length - size} bytes')
                if operation == rosbag1.RecordType.CHUNK:
                    self.chunks[position] = chunk
                elif operation == rosbag1.RecordType.CONNECTION:
                    self._know(header, bio.read(length), known)
                position = start + length
            except Exception as error:  # noqa: BLE001 - what is damaged may be anything
                # Here it was cut, unless there are more chunks.
                broken, position = position, _next_chunk(bio, position + 1)
                if position is not None:
                    self.damage.chunks[broken] = said(error)

    def _index(self, position: int, data: bytes, known: dict[int, Connection]) -> None:
        """Index the connections and messages of a chunk, as far as it goes."""
        chunk, times, counts = BytesIO(data), [], Counter[int]()
        while (offset := chunk.tell()) < len(data):
            try:
                header, length = rosbag1_record(chunk)
                end = chunk.tell() + length
                if end > len(data):
                    break
                operation, key = header.get_uint8('op'), header.get_uint32('conn')
                if operation == rosbag1.RecordType.CONNECTION:
                    self._know(header, chunk.read(length), known)
                elif operation == rosbag1.RecordType.MSGDATA and key in known:
                    time_ns = header.get_time('time')
                    self.indexes[key].append(rosbag1.IndexData(time_ns, position, offset))
                    times.append(time_ns)
                    counts[key] += 1
                elif operation == rosbag1.RecordType.MSGDATA:
                    self.damage.messages[position, offset] = 'nothing says of which topic it is'
            except Exception as error:  # noqa: BLE001 - what is damaged may be anything
                # Where the next message begins is not known.
                self.damage.messages[position, offset] = said(error)
                break
            chunk.seek(end)
        if times:
            self.chunk_infos.append(
                rosbag1.ChunkInfo(position, min(times), max(times) + 1, dict(counts))
            )

    def _know(self, header: rosbag1.Header, data: bytes, known: dict[int, Connection]) -> None:
        """Take note of a connection, unless it is known."""
        key = header.get_uint32('conn')
        if key not in known:
            known[key] = self._connection(header, data)
            self.indexes[key] = []

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


def _next_chunk(bio: BinaryIO, start: int) -> int | None:
    """Find where the next chunk begins, from somewhere within a record that is damaged; None: nowhere."""
    with mmap.mmap(bio.fileno(), 0, access=mmap.ACCESS_READ) as data:
        field = data.find(_ROSBAG1_CHUNK, start)
        while field >= 0:
            # The field may stand anywhere in the header: which begins where one can be read.
            for position in range(max(start, field - _ROSBAG1_HEADER_BYTES), field):
                bio.seek(position)
                with contextlib.suppress(Exception):
                    header, length = rosbag1_record(bio)
                    known = header.get_string('compression') in rosbag1.decompressors
                    if known and field < bio.tell() <= bio.tell() + length <= len(data):
                        return position
            field = data.find(_ROSBAG1_CHUNK, field + 1)
    return None


class DamagedMcap(ChunkwiseMcap):
    """An MCAP file without a footer."""

    def _open(self) -> None:
        """Find the chunks that are whole."""
        bio = self.bio
        assert bio is not None  # open() has opened it
        size = bio.seek(0, 2)
        first = end = bio.seek(8)
        records: list[tuple[int, int, bytes]] = []  # from, to, of a chunk its record
        while len(head := bio.read(MCAP_RECORD.size)) == MCAP_RECORD.size:
            operation, length = MCAP_RECORD.unpack(head)
            start = bio.tell()
            if operation == _MCAP_DATA_END or start + length > size:
                break
            if operation == _MCAP_HEADER and (profile := bio.read(length)[4:8]) != b'ros2':
                raise BagError(f'its profile is {profile!r}, not ros2')
            beginning = b''
            if operation == _MCAP_CHUNK:
                beginning = bio.read(min(length, _MCAP_CHUNK_HEAD_BYTES))
            elif records and not records[-1][2]:
                end = records.pop()[0]  # what is in no chunk is looked at together
            records.append((end, start + length, beginning))
            end = bio.seek(start + length)
        found = [
            (self.statistics, chunk)
            for record in records
            for chunk in self._scan_record(*record)
            if self.statistics is not None
        ]
        self.data_start, self.data_end = first, end
        counts = Counter[int]()
        for statistics, _ in found:
            counts.update(statistics.channel_message_counts)
        self.connections = [
            each._replace(msgcount=counts.get(each.id, 0)) for each in self.connections
        ]
        # Which channels are in which chunk is not known: each may be in any.
        anywhere = dict.fromkeys(counts, 1)
        self.chunks = [
            chunk._replace(channel_count=anywhere) for _, chunk in found if chunk is not None
        ]
        self.metadata = self.metadata._replace(
            start_time=min((each.start_time for each, _ in found), default=0),
            end_time=max((each.end_time for each, _ in found), default=0) + 1,
            message_count=counts.total(),
        )

    def _scan_record(self, start: int, end: int, chunk: bytes) -> Iterator[ChunkInfo | None]:
        """Count the messages of a chunk, or of what is in none, in ``statistics``; give the chunk or None."""
        self.data_start, self.data_end = start, end
        try:
            found = _mcap_chunk(start, end - start, chunk) if chunk else None
            self.meta_scan()
        except Exception as error:  # what is damaged makes decompressors raise anything
            if not chunk:
                raise
            self.damage.chunks[start] = said(error)
        else:
            yield found


def _mcap_chunk(position: int, length: int, record: bytes) -> ChunkInfo:
    """Return of a chunk what the index would say of it, by the beginning of its record."""
    first_ns, last_ns, size, _, name_length = struct.unpack_from('<QQQII', record)
    compression = record[32 : 32 + name_length].decode()
    (compressed_size,) = struct.unpack_from('<Q', record, 32 + name_length)
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
