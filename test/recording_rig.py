"""A recorder with clocks and tf in the test's hands, and what it stored, read back from its parts."""

import json
from pathlib import Path

from cognitive3d_ros.clock import NS_PER_S, ManualClocks
from cognitive3d_ros.counters import Ledger
from cognitive3d_ros.parameters import parse
from cognitive3d_ros.recording.recorder import Host, Recorder
from cognitive3d_ros.spool import Spool
from cognitive3d_ros.spool.fs import REAL_FS
from cognitive3d_ros.tf import TransformBuffer
from cognitive3d_ros.wire import capnp_codec
from cognitive3d_ros.wire.framing import parse as parse_part
from cognitive3d_ros.wire.framing import parse_part_name

S = NS_PER_S
WALL = 1_767_225_600 * S  # 2026-01-01
IDENTITY_ROTATION = (0.0, 0.0, 0.0, 1.0)
REQUIRED = {
    'device_id': 'rover-07',
    'scene_id': '5b2a1f4e-0c9d-4e8a-9a53-0f6d1c2b3a4d',
    'scene_version': 3,
}
HOST = Host(
    ros_distro='jazzy',
    rmw='rmw_fastrtps_cpp',
    domain_id='42',
    discovery_range='LOCALHOST',
    namespace='/fleet',
    node='cognitive3d',
    os_name='Ubuntu 24.04.3 LTS',
)
_READERS = {'camera': capnp_codec.decode_camera, 'lidar': capnp_codec.decode_lidar}


class Lines:
    """A log that keeps its lines."""

    def __init__(self):
        self.lines = []

    def info(self, text):
        self.lines.append(('info', text))

    def warning(self, text):
        self.lines.append(('warning', text))

    def error(self, text):
        self.lines.append(('error', text))

    def of(self, level):
        return [text for kind, text in self.lines if kind == level]


class Stored:
    """What was stored in a spool, read from its parts."""

    def __init__(self, root: Path):
        self.root = root

    def parts(self, session_id=None):
        """Return (stream, class, number, body) of all parts, streams by name, parts by number."""
        sessions = sorted((self.root / 'sessions').iterdir())
        found = []
        for folder in sessions:
            if session_id not in (None, folder.name):
                continue
            for path in folder.iterdir():
                name = parse_part_name(path.name)
                if name is not None:
                    body = parse_part(path.read_bytes()).body
                    read = _READERS.get(name.stream, json.loads)
                    found.append((name.stream, name.klass, name.number, read(body)))
        return sorted(found, key=lambda part: (part[0], part[2]))

    def bodies(self, stream, session_id=None):
        return [body for kind, _, _, body in self.parts(session_id) if kind == stream]

    def poses(self, session_id=None):
        return [record for body in self.bodies('gaze', session_id) for record in body['data']]

    def events(self, session_id=None):
        return [record for body in self.bodies('events', session_id) for record in body['data']]

    def event(self, name, session_id=None):
        (event,) = [event for event in self.events(session_id) if event['name'] == name]
        return event

    def properties(self, session_id=None):
        merged = {}
        for body in self.bodies('gaze', session_id):
            merged |= body.get('properties', {})
        return merged

    def frames(self, camera, session_id=None):
        return [
            frame
            for part in self.bodies('camera', session_id)
            for frame in part.frames
            if frame.camera_id == camera
        ]

    def scans(self, lidar, session_id=None):
        return [
            scan
            for part in self.bodies('lidar', session_id)
            for scan in part.scans
            if scan.sensor_id == lidar
        ]

    def series(self, name, session_id=None):
        return [
            tuple(pair)
            for body in self.bodies('sensors', session_id)
            for series in body['data']
            if series['name'] == name
            for pair in series['data']
        ]


class Rig(Stored):
    """One recorder on one spool; ``params`` go into its configuration."""

    def __init__(self, root: Path, *, host=HOST, ros_ns=WALL, live=True, fs=REAL_FS, **params):
        super().__init__(root)
        self.config = parse({**REQUIRED, 'spool.dir': str(root), **params})
        self.clocks = ManualClocks(wall_ns=WALL, mono_ns=7 * S, ros_ns=ros_ns)
        self.tf = TransformBuffer()
        self.ledger = Ledger()
        self.log = Lines()
        self.spool = Spool.open(root, ledger=self.ledger, fs=fs)
        self.recorder = Recorder(
            self.config,
            spool=self.spool,
            clocks=self.clocks,
            transforms=self.tf,
            ledger=self.ledger,
            host=host,
            log=self.log,
            live=live,
        )

    def robot(self, x, y=0.0, z=0.0, rotation=IDENTITY_ROTATION, *, frame='map', at=None):
        """Say where the robot is, on tf, now or at a ROS time."""
        stamp_ns = self.clocks.ros_ns if at is None else at
        assert self.tf.set_transform(frame, 'base_link', stamp_ns, (x, y, z), rotation)

    def run(self, seconds, *, step=0.05, robot=None):
        """Let time pass in steps; ``robot(t)`` gives where the robot is t seconds on."""
        for index in range(round(seconds / step)):
            self.clocks.advance(round(step * S))
            if robot is not None:
                self.robot(*robot((index + 1) * step))
            self.recorder.poll()

    def close(self):
        self.recorder.close()
        self.spool.close()
