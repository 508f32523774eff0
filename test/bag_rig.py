"""Recordings made for tests, and messages to fill them with."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
from rosbags import rosbag1, rosbag2
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

S = 1_000_000_000
START = 1_700_000_000 * S

OUR_EVENT = 'cognitive3d_msgs/msg/Event'
OUR_ANNOTATION = 'cognitive3d_msgs/msg/Annotation'
_ROS1_TF = get_types_from_msg(
    'geometry_msgs/TransformStamped[] transforms', 'tf2_msgs/msg/TFMessage'
)
_EVENT = get_types_from_msg(
    'std_msgs/Header header\nstring name\nstring properties_json', OUR_EVENT
)
_NOTE = get_types_from_msg(
    'builtin_interfaces/Time time\nstring stream_name\nstring key\nstring value', OUR_ANNOTATION
)
ROS1 = get_typestore(Stores.ROS1_NOETIC)
ROS2 = get_typestore(Stores.ROS2_JAZZY)
for _store in (ROS1, ROS2):
    _store.register(_EVENT)
    _store.register(_NOTE)
if 'tf2_msgs/msg/TFMessage' not in ROS1.fielddefs:
    ROS1.register(_ROS1_TF)

# Every way in which a recording is stored.
FORMS = {
    'rosbag1': {},
    'rosbag1 bz2': {'compression': rosbag1.Writer.CompressionFormat.BZ2},
    'rosbag1 lz4': {'compression': rosbag1.Writer.CompressionFormat.LZ4},
    'sqlite3': {'plugin': StoragePlugin.SQLITE3},
    'sqlite3 message': {'plugin': StoragePlugin.SQLITE3, 'mode': CompressionMode.MESSAGE},
    'sqlite3 file': {'plugin': StoragePlugin.SQLITE3, 'mode': CompressionMode.FILE},
    'mcap': {'plugin': StoragePlugin.MCAP},
    'mcap chunks': {'plugin': StoragePlugin.MCAP, 'mode': CompressionMode.STORAGE},
}


def stamp(time_ns: int) -> dict[str, int]:
    """The fields of a time."""
    return {'sec': time_ns // S, 'nanosec': time_ns % S}


class Messages:
    """Makes messages of one typestore."""

    def __init__(self, store) -> None:
        self._store = store
        self._ros1 = store is ROS1

    def _make(self, kind: str, **fields):
        return self._store.types[kind](**fields)

    def header(self, stamp_ns: int = 0, frame_id: str = ''):
        time = self._make('builtin_interfaces/msg/Time', **stamp(stamp_ns))
        extra = {'seq': 0} if self._ros1 else {}
        return self._make('std_msgs/msg/Header', stamp=time, frame_id=frame_id, **extra)

    def string(self, text: str):
        return self._make('std_msgs/msg/String', data=text)

    def clock(self, time_ns: int):
        time = self._make('builtin_interfaces/msg/Time', **stamp(time_ns))
        return self._make('rosgraph_msgs/msg/Clock', clock=time)

    def event(self, name: str, properties_json: str = '', stamp_ns: int = 0):
        header = self.header(stamp_ns)
        return self._make(OUR_EVENT, header=header, name=name, properties_json=properties_json)

    def annotation(self, key: str, value: str, time_ns: int = 0):
        time = self._make('builtin_interfaces/msg/Time', **stamp(time_ns))
        return self._make(OUR_ANNOTATION, time=time, stream_name='', key=key, value=value)

    def tf(self, *links):
        """(parent, child, stamp_ns, (x, y, z), (x, y, z, w)) each."""
        transforms = []
        for parent, child, stamp_ns, at, turn in links:
            transform = self._make(
                'geometry_msgs/msg/Transform',
                translation=self._make(
                    'geometry_msgs/msg/Vector3', **dict(zip('xyz', at, strict=True))
                ),
                rotation=self._make(
                    'geometry_msgs/msg/Quaternion', **dict(zip('xyzw', turn, strict=True))
                ),
            )
            transforms.append(
                self._make(
                    'geometry_msgs/msg/TransformStamped',
                    header=self.header(stamp_ns, parent),
                    child_frame_id=child,
                    transform=transform,
                )
            )
        return self._make('tf2_msgs/msg/TFMessage', transforms=transforms)

    def scan(self, stamp_ns: int, ranges, frame: str = 'laser'):
        return self._make(
            'sensor_msgs/msg/LaserScan',
            header=self.header(stamp_ns, frame),
            angle_min=0.0,
            angle_max=1.0,
            angle_increment=1.0 / max(1, len(ranges) - 1),
            time_increment=0.0,
            scan_time=0.1,
            range_min=0.1,
            range_max=30.0,
            ranges=np.array(ranges, dtype=np.float32),
            intensities=np.array([], dtype=np.float32),
        )

    def odometry(
        self, stamp_ns: int, at, turn=(0.0, 0.0, 0.0, 1.0), frame='odom', child='base_link'
    ):
        zero = self._make('geometry_msgs/msg/Vector3', x=0.0, y=0.0, z=0.0)
        covariance = np.zeros(36)
        pose = self._make(
            'geometry_msgs/msg/Pose',
            position=self._make('geometry_msgs/msg/Point', **dict(zip('xyz', at, strict=True))),
            orientation=self._make(
                'geometry_msgs/msg/Quaternion', **dict(zip('xyzw', turn, strict=True))
            ),
        )
        return self._make(
            'nav_msgs/msg/Odometry',
            header=self.header(stamp_ns, frame),
            child_frame_id=child,
            pose=self._make(
                'geometry_msgs/msg/PoseWithCovariance', pose=pose, covariance=covariance
            ),
            twist=self._make(
                'geometry_msgs/msg/TwistWithCovariance',
                twist=self._make('geometry_msgs/msg/Twist', linear=zero, angular=zero),
                covariance=covariance,
            ),
        )


def messages_of(form: str) -> Messages:
    """What makes messages for a form of recording."""
    return Messages(ROS1 if form.startswith('rosbag1') else ROS2)


def write_bag(folder: Path, form: str, content, *, chunk_bytes: int = 1 << 20) -> Path:
    """Write (topic, receive time, message) in a form of ``FORMS``; return what to open.

    ``message`` may be bytes, with the type's name in a fourth place.
    """
    if form.startswith('rosbag1'):
        path = folder / 'run.bag'
        writer, store = rosbag1.Writer(path), ROS1
        writer.chunk_threshold = chunk_bytes
        if FORMS[form]:
            writer.set_compression(FORMS[form]['compression'])
    else:
        path = folder / 'run'
        options = FORMS[form]
        version = 9 if options['plugin'] is StoragePlugin.MCAP else 8
        writer = rosbag2.Writer(path, version=version, storage_plugin=options['plugin'])
        store = ROS2
        if 'mode' in options:
            writer.set_compression(options['mode'], CompressionFormat.ZSTD)
    with writer:
        connections = {}
        for topic, receive_ns, message, *kind in content:
            (msgtype,) = kind or (message.__msgtype__,)
            if topic not in connections:
                connections[topic] = writer.add_connection(topic, msgtype, typestore=store)
            if isinstance(message, bytes):
                data = message
            elif store is ROS1:
                data = store.serialize_ros1(message, msgtype)
            else:
                data = store.serialize_cdr(message, msgtype)
            writer.write(connections[topic], receive_ns, data)
    return path


def evo_recording(cache: Path) -> Path | str:
    """Return evo's recording of a TurtleBot 4 with Nav2 (simulated), or why it cannot be had.

    It is part of evo's source distribution and its licence is the GPL: fetched for the tests, never copied
    into the project.
    """
    path = cache / 'nav2_turtlebot.mcap'
    if path.exists():
        return path
    fetched = cache / 'evo'
    fetched.mkdir(parents=True, exist_ok=True)
    command = [
        sys.executable,
        '-m',
        'pip',
        'download',
        '--no-deps',
        '--no-binary=:all:',
        '--quiet',
    ]
    done = subprocess.run(
        [*command, '--dest', str(fetched), 'evo==1.38.1'], capture_output=True, text=True
    )
    if done.returncode:
        return (done.stderr.strip().splitlines() or ['pip failed'])[-1]
    (archive,) = fetched.glob('evo-*.tar.gz')
    with tarfile.open(archive) as files:
        (name,) = (name for name in files.getnames() if name.endswith('/nav2_turtlebot.mcap'))
        partial = path.with_name(f'{path.name}.{os.getpid()}')
        partial.write_bytes(files.extractfile(name).read())
    partial.replace(path)
    return path
