"""What a stream of a session is, and where it comes from: its metadata, which do not change within it.

After the stream metadata of Rock: exports write the fields as ``rock_stream_type``, ``rock_task_model`` and
so on, :meth:`StreamMetadata.rock` under those names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

PORT, PROPERTY, ANNOTATIONS = 'port', 'property', 'annotations'

_STAMP = 'header.stamp'
_RECORDER = 'cognitive3d_ros/recorder'
_OFFLINE = 'cognitive3d_ros/c3d'
_MESSAGES = 'cognitive3d_msgs/msg'
_TRANSFORMS = '/tf', 'tf2_msgs/msg/TFMessage'


@dataclass(frozen=True, slots=True)
class StreamMetadata:
    """The metadata of one stream; what is not known is empty."""

    stream_type: str
    """``port``, ``property`` or ``annotations``."""
    task_model: str = ''
    """The package and the executable of the node it comes from, ``package/executable``."""
    task_name: str = ''
    """The full name of that node."""
    object_name: str = ''
    """The topic."""
    message_type: str = ''
    timestamp_field: str = ''
    """The field that places its records in time; empty where that is when they arrived, or were taken."""
    frame: str = ''
    """The tf frame of its records."""

    def rock(self) -> dict[str, str]:
        """Return the fields that are known, under the names that Rock has for them."""
        named = {
            'rock_stream_type': self.stream_type,
            'rock_task_model': self.task_model,
            'rock_task_name': self.task_name,
            'rock_task_object_name': self.object_name,
            'rock_orocos_type_name': self.message_type,
            'rock_timestamp_field': self.timestamp_field,
            'c3d_frame': self.frame,
        }
        return {name: value for name, value in named.items() if value}


def stream_metadata(
    properties: Mapping[str, object], series: Iterable[str], *, dynamics: bool
) -> dict[str, StreamMetadata]:
    """Return the streams of a session by name, from its properties and the names of its series."""
    recorder = _Recorder(properties)
    frame = recorder.text('c3d.ros.reference_frame')
    topic, kind = _TRANSFORMS
    found = {
        'pose': recorder.port(topic, kind, frame=frame),
        'events': recorder.port('events', f'{_MESSAGES}/Event', _STAMP, frame),
        'annotations': recorder.port(
            'annotations', f'{_MESSAGES}/Annotation', 'time', stream_type=ANNOTATIONS
        ),
        'properties': recorder.port('', '', stream_type=PROPERTY),
    }
    if dynamics:
        found['dynamics'] = recorder.port(topic, kind, frame=frame)
    found |= {f'series/{name}': recorder.series(name) for name in series}
    for sensor in ('camera', 'lidar'):
        for name in recorder.listed(f'{sensor}s'):
            found[f'{sensor}/{name}'] = recorder.published(f'{sensor}.{name}', _STAMP)
    return found


class _Recorder:
    """What the properties of a session say."""

    def __init__(self, properties: Mapping[str, object]) -> None:
        self._properties = properties
        namespace = self.text('c3d.ros.namespace').rstrip('/')
        node = self.text('c3d.ros.node')
        self._node = f'{namespace}/{node}' if node else ''
        self._model = _OFFLINE if self.text('c3d.ros.source') else _RECORDER
        # The longest prefix first: it is the one that is meant.
        prefixes = [
            (self.text(f'c3d.ros.topic.{name}.prefix') or name, name)
            for name in self.listed('topics')
        ]
        self._prefixes = sorted(prefixes, key=lambda pair: -len(pair[0]))
        self._sensors = {
            series: name
            for name in self.listed('sensors')
            for series in self.text(f'c3d.ros.sensor.{name}.series').split(',')
        }

    def text(self, name: str) -> str:
        """Return a property, or an empty text."""
        value = self._properties.get(name, '')
        return value if isinstance(value, str) else ''

    def listed(self, what: str) -> list[str]:
        """Return the names in a property that lists some."""
        return [name for name in self.text(f'c3d.ros.{what}').split(',') if name]

    def port(
        self,
        topic: str,
        message_type: str,
        timestamp_field: str = '',
        frame: str = '',
        stream_type: str = PORT,
    ) -> StreamMetadata:
        """Return a stream that the recorder makes itself; a relative topic is one of its own."""
        if topic and not topic.startswith('/'):
            topic = f'{self._node}/{topic}'
        return StreamMetadata(
            stream_type, self._model, self._node, topic, message_type, timestamp_field, frame
        )

    def published(self, key: str, timestamp_field: str = '') -> StreamMetadata:
        """Return a stream of a topic that somebody else publishes."""
        of = {
            word: self.text(f'c3d.ros.{key}.{word}')
            for word in ('publisher', 'topic', 'type', 'frame')
        }
        return StreamMetadata(
            PORT,
            task_name=of['publisher'],
            object_name=of['topic'],
            message_type=of['type'],
            timestamp_field=timestamp_field,
            frame=of['frame'],
        )

    def series(self, name: str) -> StreamMetadata:
        """Return a series: of a described sensor, of a topic, or the recorder's own."""
        if name in self._sensors:
            return self.published(f'sensor.{self._sensors[name]}')
        if name.startswith('c3d.'):
            return self.port('', '')
        for prefix, topic in self._prefixes:
            if name == prefix or name.startswith(f'{prefix}.'):
                return self.published(f'topic.{topic}')
        return StreamMetadata(PORT)
