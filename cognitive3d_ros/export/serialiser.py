"""ROS 2 messages as bytes (CDR), serialised by rosbags.

Those of a fixed size that come by the hundred thousand are copies of one that rosbags made, with their own
numbers put in.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from cognitive3d_ros.export.ros import Times
from cognitive3d_ros.quaternions import IDENTITY, Array
from cognitive3d_ros.ros_names import topic_words

TF: Final = 'tf2_msgs/msg/TFMessage'
POSE: Final = 'geometry_msgs/msg/PoseStamped'
NUMBER: Final = 'std_msgs/msg/Float64'
EVENT: Final = 'cognitive3d_msgs/msg/Event'
ANNOTATION: Final = 'cognitive3d_msgs/msg/Annotation'

_OURS: Final = {
    EVENT: 'std_msgs/Header header\nstring name\nstring properties_json\n',
    ANNOTATION: 'builtin_interfaces/Time time\nstring stream_name\nstring key\nstring value\n',
}
_NAME_CHARS: Final = 180  # names of topics may have 255, and some have words behind it
_NS_PER_S: Final = 1_000_000_000
_ROWS: Final = 4096
_STAMP: Final = struct.Struct('<iI')
_LENGTH: Final = struct.Struct('<I')
_POSE: Final = struct.Struct('<7d')
_NOTHING: Final[Mapping[str, str]] = {}
_STAMP_AT, _TF_STAMP_AT = (
    4,
    8,
)  # behind the encapsulation, and of tf behind the count of transforms


@dataclass(frozen=True, eq=False)
class Topic:
    """A topic: one object for each."""

    name: str
    type: str
    metadata: Mapping[str, str] = field(default_factory=dict)


Timed = tuple[int, bytes]
"""A serialised message, and when it is in nanoseconds."""


class Message(NamedTuple):
    """A serialised message."""

    time_ns: int
    topic: Topic
    data: bytes


def make_typestore() -> Any:
    """Return the message types, ours among them."""
    store = get_typestore(Stores.ROS2_HUMBLE)  # those used here are the same in all distros since
    for name, text in _OURS.items():
        store.register(get_types_from_msg(text, name))
    return store


class Serialiser:
    """Makes messages, and topics for them."""

    def __init__(self) -> None:
        self.store = make_typestore()
        self._names: set[str] = set()
        self._topics: dict[str, Topic] = {}
        self.renamed: list[tuple[str, str]] = []
        """Texts that topics' names do not tell, and the topics."""

    def make(self, kind: str, *values: Any, **fields: Any) -> Any:
        """Return a message, or a part of one: ``geometry_msgs/Point``."""
        package, _, name = kind.partition('/')
        return self.store.types[f'{package}/msg/{name}'](*values, **fields)

    def message(self, time_ns: int, topic: Topic, **fields: Any) -> Message:
        """Return a message of a topic's type."""
        return Message(time_ns, topic, self._bytes(self.store.types[topic.type](**fields)))

    def time(self, time_ns: int) -> Any:
        """Return a builtin_interfaces/Time."""
        return self.make('builtin_interfaces/Time', *divmod(time_ns, _NS_PER_S))

    def header(self, time_ns: int, frame_id: str) -> Any:
        """Return a std_msgs/Header."""
        return self.make('std_msgs/Header', self.time(time_ns), frame_id)

    def transform(self, time_ns: int, parent: str, child: str, p: Array, r: Array) -> bytes:
        """Return a TFMessage of one transform."""
        transform = self.make(
            'geometry_msgs/Transform',
            self.make('geometry_msgs/Vector3', *p.tolist()),
            self.make('geometry_msgs/Quaternion', *r.tolist()),
        )
        header = self.header(time_ns, parent)
        stamped = self.make('geometry_msgs/TransformStamped', header, child, transform)
        return self._bytes(self.make('tf2_msgs/TFMessage', [stamped]))

    def poses(self, frame_id: str, time_ns: Times, p: Array, r: Array) -> Iterator[Timed]:
        """Give PoseStamped messages, in order: positions (N, 3) and rotations (N, 4)."""
        pose = self.make(
            'geometry_msgs/Pose',
            self.make('geometry_msgs/Point', 0.0, 0.0, 0.0),
            self.make('geometry_msgs/Quaternion', *IDENTITY),
        )
        template = self._bytes(
            self.make('geometry_msgs/PoseStamped', self.header(0, frame_id), pose)
        )
        return _rows(template, _STAMP_AT, time_ns, np.concatenate([p, r], axis=1))

    def transforms(
        self, parent: str, child: str, time_ns: Times, p: Array, r: Array
    ) -> Iterator[Timed]:
        """Give TFMessages of one transform each, in order."""
        template = self.transform(0, parent, child, np.zeros(3), np.asarray(IDENTITY))
        return _rows(template, _TF_STAMP_AT, time_ns, np.concatenate([p, r], axis=1))

    def numbers(self, time_ns: Times, values: Array) -> Iterator[Timed]:
        """Give Float64 messages, in order."""
        template = self._bytes(self.make('std_msgs/Float64', 0.0))
        return _rows(template, None, time_ns, values[:, None])

    def stamped(self, template: bytes, time_ns: int) -> bytes:
        """Return a message that begins with a header, with another stamp."""
        stamp = _STAMP.pack(*divmod(time_ns, _NS_PER_S))
        return template[:_STAMP_AT] + stamp + template[_STAMP_AT + _STAMP.size :]

    def moved(self, template: bytes, time_ns: int, pose: Sequence[float]) -> bytes:
        """Return a TFMessage like another one, with another stamp and pose ``x y z qx qy qz qw``."""
        stamp = _STAMP.pack(*divmod(time_ns, _NS_PER_S))
        rest = template[_TF_STAMP_AT + _STAMP.size : -_POSE.size]
        return template[:_TF_STAMP_AT] + stamp + rest + _POSE.pack(*pose)

    def with_data(self, template: bytes, time_ns: int, data: bytes) -> bytes:
        """Return a stamped message that ends with an empty array of bytes, with these bytes in it."""
        empty = self.stamped(template, time_ns)[: -_LENGTH.size]
        return b''.join((empty, _LENGTH.pack(len(data)), data))

    def topic(self, name: str, kind: str, metadata: Mapping[str, str] = _NOTHING) -> Topic:
        """Return the topic of a name; of one name there is one."""
        return self._topics.setdefault(name, Topic(name, kind, metadata))

    def name(self, prefix: str, text: str) -> str:
        """Return a topic's name for a text that no other text has."""
        name = base = prefix + topic_words(text)[:_NAME_CHARS].rstrip('/')
        number = 1
        while name in self._names:
            number += 1
            name = f'{base}_{number}'
        self._names.add(name)
        # Dots become slashes, dashes and what stands before digits underscores: nobody takes those for others.
        plain = text.replace('.', '/').replace('-', '_').replace('/_', '/')
        if name.removeprefix(prefix).replace('/_', '/') != plain:
            self.renamed.append((text, name))
        return name

    def _bytes(self, message: Any) -> bytes:
        return bytes(self.store.serialize_cdr(message, message.__msgtype__))


def _rows(
    template: bytes, stamp_at: int | None, time_ns: Times, numbers: NDArray[np.float64]
) -> Iterator[Timed]:
    """Give copies of a message with their own stamps, and numbers (N, k) as their last k doubles."""
    size, width = len(template), 8 * numbers.shape[1]
    for at in range(0, len(time_ns), _ROWS):
        times = time_ns[at : at + _ROWS]
        block = np.tile(np.frombuffer(template, np.uint8), (len(times), 1))
        if stamp_at is not None:
            stamps = np.stack([times // _NS_PER_S, times % _NS_PER_S], axis=1).astype('<u4')
            block[:, stamp_at : stamp_at + 8] = stamps.view(np.uint8)
        rows = np.ascontiguousarray(numbers[at : at + _ROWS], '<f8')
        block[:, size - width :] = rows.view(np.uint8)
        data = block.tobytes()
        for index, at_ns in enumerate(times.tolist()):
            yield at_ns, data[index * size : (index + 1) * size]
