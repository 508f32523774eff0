"""Recordings made by ROS, opened alike: ROS 1 bags, rosbag2 folders, and single files of those."""

from __future__ import annotations

import functools
import heapq
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

import zstandard
from rosbags.interfaces import (
    Connection,
    ConnectionExtRosbag1,
    MessageDefinition,
    MessageDefinitionFormat,
)
from rosbags.typesys import Stores, get_types_from_idl, get_types_from_msg, get_typestore

from cognitive3d_ros.bags.files import Storage, open_file
from cognitive3d_ros.bags.folder import look
from cognitive3d_ros.errors import BagError, FormatError

if TYPE_CHECKING:
    from rosbags.interfaces.typing import Typesdict
    from typing_extensions import Self

_OURS: Final = {
    'cognitive3d_msgs/msg/Event': 'std_msgs/Header header\nstring name\nstring properties_json',
    'cognitive3d_msgs/msg/Annotation': (
        'builtin_interfaces/Time time\nstring stream_name\nstring key\nstring value'
    ),
}
RAWLOG_SUFFIX: Final = '.rawlog'
_IDL_RULE: Final = '=' * 80 + '\n'

Decode = Callable[[bytes], object]


class BagMessage:
    """A message as it was recorded; it is deserialised when :attr:`message` is first asked for."""

    __slots__ = ('_decode', '_message', 'msgtype', 'raw', 'receive_ns', 'topic')

    def __init__(
        self, topic: str, msgtype: str, receive_ns: int, raw: bytes, decode: Decode
    ) -> None:
        self.topic = topic
        self.msgtype = msgtype
        self.receive_ns = receive_ns
        self.raw = raw
        self._decode = decode
        self._message: object = None

    @property
    def message(self) -> Any:
        """The message, with the fields of its type.

        Raises:
            FormatError: it cannot be deserialised.
        """
        if self._message is None:
            try:
                self._message = self._decode(self.raw)
            except FormatError:
                raise
            except Exception as error:
                # Bytes that are no such message make the deserialiser raise anything.
                size = len(self.raw)
                raise FormatError(
                    f'{size} bytes on {self.topic} are no {self.msgtype}: {error}'
                ) from error
        return self._message


@dataclass(frozen=True, slots=True)
class BagFacts:
    """What a recording says about itself.

    ``distro`` is ``unknown`` where it names none. ``start_ns`` and ``end_ns`` are the receive times of the
    first and the last message; ``topics`` are message types by topic, ``publishers`` the names of the nodes
    that published them, with commas, as far as they are noted down (ROS 1).
    """

    name: str
    distro: str
    start_ns: int
    end_ns: int
    message_count: int
    topics: Mapping[str, str]
    publishers: Mapping[str, str]
    comment: str = ''
    """What is written in it about it."""
    lost: tuple[str, ...] = ()
    """What of it no message holds, and so no session."""


class Bag:
    """An open recording; use it in a ``with``. Made by :func:`open_bag`."""

    facts: BagFacts
    problems: list[str]
    """What is wrong with the recording, one sentence each; reading may add to it."""

    def __init__(
        self, path: Path, storages: list[Storage], *, distro: str = '', compressed: bool = False
    ) -> None:
        """Take open storages; ``compressed``: each message by itself, with zstd."""
        self._storages = storages
        self._compressed = compressed
        self._decoders: dict[tuple[str, MessageDefinition], Decode] = {}
        self._stack = ExitStack()
        self.problems = [storage.problem for storage in storages if storage.problem]
        self._damage: dict[Path, str] = {}  # what is said of each file
        for storage in storages:
            self._tell_damage(storage)
        filled = [storage for storage in storages if storage.message_count]
        if not filled:
            raise BagError('; '.join((f'{path} holds no messages', *self.problems)))
        distros = [distro, *(storage.distro for storage in storages), 'unknown']
        connections = [each for storage in storages for each in storage.reader.connections]
        self.facts = BagFacts(
            name=path.resolve().name,
            distro=next(name for name in distros if name),
            start_ns=min(storage.start_ns for storage in filled),
            end_ns=max(storage.end_ns for storage in filled),
            message_count=sum(storage.message_count for storage in filled),
            topics={topic_name(each.topic): each.msgtype for each in connections},
            publishers=_publishers(connections),
        )

    def close(self) -> None:
        """Close its files."""
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def messages(self, topics: Collection[str] | None = None) -> Iterator[BagMessage]:
        """Give the messages of some topics (None: of all) in the order in which they were received."""
        streams = [self._read(storage, topics) for storage in self._storages]
        if len(streams) == 1:
            return streams[0]
        return heapq.merge(*streams, key=lambda message: message.receive_ns)

    def _read(self, storage: Storage, topics: Collection[str] | None) -> Iterator[BagMessage]:
        wanted = [
            each
            for each in storage.reader.connections
            if topics is None or topic_name(each.topic) in topics
        ]
        if not wanted:
            return
        known = {
            each.id: (topic_name(each.topic), each.msgtype, self._decoder(each, storage))
            for each in wanted
        }
        count = 0
        try:
            for connection, receive_ns, raw in storage.reader.messages(wanted):
                topic, msgtype, decode = known[connection.id]
                if self._compressed:
                    try:
                        raw = zstandard.ZstdDecompressor().decompressobj().decompress(raw)
                    except zstandard.ZstdError as error:
                        decode = _refusing(f'it cannot be decompressed: {error}')
                count += 1
                yield BagMessage(topic, msgtype, receive_ns, raw, decode)
        except Exception as error:  # noqa: BLE001 - a broken file makes the readers raise anything
            self.problems.append(
                f'{storage.path.name} cannot be read beyond its message {count}: {error}'
            )
        self._tell_damage(storage)

    def _tell_damage(self, storage: Storage) -> None:
        """Say what of a file was found to be damaged, in one sentence, however often it is read."""
        damage, old = str(storage.damage), self._damage.get(storage.path, '')
        if damage:
            self._damage[storage.path] = text = f'{storage.path.name} is damaged: {damage}'
            if old:
                self.problems[self.problems.index(old)] = text
            else:
                self.problems.append(text)

    def _decoder(self, connection: Connection, storage: Storage) -> Decode:
        """Return what deserialises the messages of a connection, by the types its file defines."""
        key = connection.msgtype, connection.msgdef
        if key not in self._decoders:
            try:
                self._decoders[key] = self._make_decoder(connection, storage)
            except Exception as error:  # noqa: BLE001 - definitions come from files
                self._decoders[key] = _refusing(f'{connection.msgtype} is not known: {error}')
        return self._decoders[key]

    def _make_decoder(self, connection: Connection, storage: Storage) -> Decode:
        msgtype, definition = connection.msgtype, connection.msgdef
        if definition.format is MessageDefinitionFormat.NONE:
            # Recorders before Iron define no types.
            store = get_typestore(_store(self.facts.distro))
            for name, text in _OURS.items():
                store.register(get_types_from_msg(text, name))
        else:
            # A store of its own, as two files may define one type in two ways.
            store = get_typestore(Stores.EMPTY)
            store.register(_types(definition, msgtype))
        ros1 = storage.format == 'rosbag1'
        deserialise = store.deserialize_ros1 if ros1 else store.deserialize_cdr
        return functools.partial(deserialise, typename=msgtype)


def open_bag(path: Path) -> Bag:
    """Open a ROS 1 bag, a rosbag2 folder, a single MCAP or SQLite file of one, or an MRPT rawlog.

    A recording that was cut short is opened as far as it goes, and ``problems`` says so.

    Raises:
        BagError: it is not there, is no recording, or nothing of it can be read.
    """
    if path.suffix == RAWLOG_SUFFIX and path.is_file():
        from cognitive3d_ros.bags.rawlog import RawlogBag

        return RawlogBag(path)
    with ExitStack() as stack:
        if not path.is_dir():
            storage = open_file(path)
            stack.callback(storage.reader.close)
            bag = Bag(path, [storage])
        else:
            bag = _open_folder(path, stack)
        bag._stack = stack.pop_all()
    return bag


def _open_folder(path: Path, stack: ExitStack) -> Bag:
    folder = look(path)
    storages, problems = [], list(folder.problems)
    for file in folder.files:
        try:
            storage = open_file(_unpacked(file, stack))
        except BagError as error:
            problems.append(str(error))
            continue
        stack.callback(storage.reader.close)
        storages.append(storage)
    if not storages:
        raise BagError('; '.join(problems))
    bag = Bag(path, storages, distro=folder.distro, compressed=folder.compressed)
    bag.problems[:0] = problems
    return bag


def _unpacked(file: Path, stack: ExitStack) -> Path:
    """Return a file as it was before rosbag2 compressed the whole of it; in a temporary folder."""
    if file.suffix != '.zstd':
        return file
    unpacked = Path(stack.enter_context(TemporaryDirectory()), file.stem)
    try:
        with file.open('rb') as packed, unpacked.open('wb') as out:
            zstandard.ZstdDecompressor().copy_stream(packed, out)
    except zstandard.ZstdError as error:
        raise BagError(f'{file} cannot be decompressed: {error}') from None
    return unpacked


def topic_name(topic: str) -> str:
    """Return a topic's name with the leading slash that ROS 1 may leave out."""
    return topic if topic.startswith('/') else f'/{topic}'


def _publishers(connections: list[Connection]) -> dict[str, str]:
    """Return the names of the nodes that published each topic."""
    names: dict[str, set[str]] = {}
    for each in connections:
        if isinstance(each.ext, ConnectionExtRosbag1) and each.ext.callerid:
            names.setdefault(topic_name(each.topic), set()).add(each.ext.callerid)
    return {topic: ','.join(sorted(of_topic)) for topic, of_topic in names.items()}


def _types(definition: MessageDefinition, msgtype: str) -> Typesdict:
    """Return the types that a recording defines for one of its messages."""
    if definition.format is MessageDefinitionFormat.MSG:
        return get_types_from_msg(definition.data, msgtype)
    types: Typesdict = {}
    for text in definition.data.split(_IDL_RULE):
        # One definition, or several, each headed by a line "IDL: <type>".
        types.update(get_types_from_idl(re.sub(r'\AIDL: .*\n', '', text)))
    return types


def _store(distro: str) -> Stores:
    """Return the types of a distro; of Humble, the last that records without them, if it is not known."""
    return next((each for each in Stores if each.value == f'ros2_{distro}'), Stores.ROS2_HUMBLE)


def _refusing(reason: str) -> Decode:
    def refuse(_: bytes) -> object:
        raise FormatError(reason)

    return refuse
