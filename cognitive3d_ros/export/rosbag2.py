"""A rosbag2 folder, in SQLite: what every distribution of ROS 2 plays without another package.

The session's properties are the bag's custom data.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from rosbags.interfaces import Connection
from rosbags.rosbag2 import StoragePlugin, Writer

from cognitive3d_ros.export.job import Job
from cognitive3d_ros.export.mcap_file import session_facts
from cognitive3d_ros.export.messages import RosMessages
from cognitive3d_ros.export.serialiser import Topic

_VERSION: Final = 8  # of the metadata: the one that Humble reads


def export(job: Job, work: Path) -> None:
    """Write the messages."""
    made = RosMessages(job)
    with Writer(work / job.name, version=_VERSION, storage_plugin=StoragePlugin.SQLITE3) as writer:
        for key, value in session_facts(job.session).items():
            writer.set_custom_data(key, value)
        connections: dict[Topic, Connection] = {}
        for time_ns, topic, data in made.messages():
            if topic not in connections:
                connections[topic] = writer.add_connection(
                    topic.name, topic.type, typestore=made.store
                )
            writer.write(connections[topic], time_ns, data)
