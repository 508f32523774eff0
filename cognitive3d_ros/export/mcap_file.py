"""One MCAP file of ROS 2 messages; the session's properties are a metadata record."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from mcap.writer import CompressionType, Writer

from cognitive3d_ros import __version__
from cognitive3d_ros.export.job import Job
from cognitive3d_ros.export.messages import RosMessages
from cognitive3d_ros.export.serialiser import Topic
from cognitive3d_ros.session.session import Session
from cognitive3d_ros.session.tables import object_facts, property_text

METADATA = 'c3d.session'


def export(job: Job, work: Path) -> None:
    """Write the messages, in chunks that are compressed with zstd."""
    made = RosMessages(job)
    with (work / job.name).open('wb') as file:
        writer = Writer(file, compression=CompressionType.ZSTD)
        writer.start(profile='ros2', library=f'cognitive3d_ros {__version__}')
        writer.add_metadata(METADATA, dict(session_facts(job.session)))
        schemas: dict[str, int] = {}
        channels: dict[Topic, int] = {}
        for time_ns, topic, data in made.messages():
            channel = channels.get(topic)
            if channel is None:
                if topic.type not in schemas:
                    text, _ = made.store.generate_msgdef(topic.type, ros_version=2)
                    schemas[topic.type] = writer.register_schema(
                        topic.type, 'ros2msg', text.encode()
                    )
                channel = channels[topic] = writer.register_channel(
                    topic.name, 'cdr', schemas[topic.type], dict(topic.metadata)
                )
            writer.add_message(channel, time_ns, data, time_ns)
        writer.finish()  # type: ignore[no-untyped-call]


def session_facts(session: Session) -> Mapping[str, str]:
    """Return what a session says of itself, as text."""
    facts = {
        'session_id': session.id,
        'device_id': session.device_id,
        'scene_id': session.scene_id,
        'scene_version': str(session.scene_version),
        'start': f'{session.start:.5f}',
        'end': f'{session.end:.5f}',
        'axes': 'REP-103',
    }
    properties = {key: property_text(value) for key, value in session.properties.items()}
    return {**facts, **object_facts(session), **properties}
