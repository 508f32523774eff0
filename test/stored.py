"""Stored sessions for the reader's tests: part files made by hand, with bodies as the platform has them."""

import json
from pathlib import Path

import numpy as np

from cognitive3d_ros.wire import capnp_codec, clouds
from cognitive3d_ros.wire.framing import PartHeader, frame, part_name
from cognitive3d_ros.wire.identity import SessionIdentity
from cognitive3d_ros.wire.records import (
    CameraFrameRecord,
    LaserScanData,
    LidarScanRecord,
    Pose,
)

ORIGIN = Pose()
SECOND = 1767225600  # 2026-01-01 00:00:00 UTC
SESSION = f'{SECOND}_rover-07'
SCENE = '0f3c9c1e-6f0e-4b57-9d0a-2f1a0c9b7e11'


def identity(session=SESSION, *, scene=SCENE, version=3):
    second, _, device = session.partition('_')
    return SessionIdentity(
        session_id=session,
        device_id=device,
        scene_id=scene,
        scene_version=version,
        sdk_version='1.0.0',
        start_ns=int(second) * 1_000_000_000 + 250_000_000,
        interval_s=0.1,
    )


def body(stream, number, data, session=SESSION, **more):
    second, _, device = session.partition('_')
    top = {
        'name' if stream == 'sensors' else 'userid': device,
        'sessionid': session,
        'timestamp': int(second),
        'part': number,
        'formatversion': '2.0' if stream == 'sensors' else '1.0',
    }
    if stream == 'gaze':
        top['interval'] = 0.1
    return json.dumps(top | more | {'data': data}).encode()


def write(folder, stream, number, klass, content, session=SESSION, segment=0, **who):
    """Write one part file; ``content`` is its body, or the records of one. Returns its path."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    if not isinstance(content, bytes):
        content = body(stream, number, content, session)
    header = PartHeader(
        identity=identity(session, **who),
        stream=stream,
        number=number,
        klass=klass,
        segment=segment,
        content_type='application/json',
    )
    path = folder / part_name(stream, number, klass)
    path.write_bytes(b''.join(frame(header, content)))
    return path


def write_sensors(folder, stream, number, records, session=SESSION):
    """Write a part of camera frames or lidar scans."""
    encode = capnp_codec.encode_camera if stream == 'camera' else capnp_codec.encode_lidar
    return write(
        folder, stream, number, stream, encode(identity(session), number, records), session
    )


def frame_record(seconds, seq, camera='front', **fields):
    return CameraFrameRecord(
        **{
            'camera_id': camera,
            'time_ms': round(at(seconds) * 1000),
            'seq': seq,
            'frame_id': f'{camera}_optical_frame',
            'pose': Pose(1.0, 0.0, 2.0),
            'format': 'jpeg',
            'width': 64,
            'height': 48,
            'data': f'{camera} {seq}'.encode(),
            'hfov_degrees': 60.0,
            'vfov_degrees': 45.0,
            **fields,
        }
    )


def scan_record(seconds, seq, ranges, lidar='base', intensities=(), pose=ORIGIN, **fields):
    content = {
        'angle_min': -0.5,
        'angle_max': 0.5,
        'angle_increment': 0.25,
        'time_increment': 0.0,
        'scan_time': 0.1,
        'range_min': 0.5,
        'range_max': 30.0,
        'ranges': np.array(ranges, np.float32),
        'intensities': np.array(intensities, np.float32),
        **fields,
    }
    time_ms = round(at(seconds) * 1000)
    return LidarScanRecord(lidar, time_ms, seq, 'laser', pose, LaserScanData(**content))


def cloud_record(seconds, seq, points_mm, lidar='top', pose=ORIGIN, zstd_level=3):
    """A cloud of points in whole millimetres, in scene axes."""
    content = clouds.write(
        list(np.array(points_mm, '<i2').reshape(-1, 3).T),
        position='int16_mm',
        color='none',
        intensity='none',
        voxel_leaf_mm=0,
        zstd_level=zstd_level,
    )
    time_ms = round(at(seconds) * 1000)
    return LidarScanRecord(lidar, time_ms, seq, 'lidar', pose, content)


def at(seconds):
    """A time in a session, given in seconds from its start, as JSON has it."""
    return round(SECOND + 0.25 + seconds, 5)


def pose(seconds, x=0.0, **more):
    return {'time': at(seconds), 'p': [x, 0.0, 2 * x], 'r': [0.0, 0.0, 0.0, 1.0]} | more


def event(name, seconds, **properties):
    return {'name': name, 'time': at(seconds), 'point': [1.0, 0.0, 2.0], 'properties': properties}


def annotation(seconds, key, value, stream=''):
    return event(
        'c3d.annotation',
        seconds,
        annotation_time=at(seconds),
        stream_name=stream,
        key=key,
        value=value,
    )


PROPERTIES = {
    'c3d.version': '1.0.0',
    'c3d.app.engine.version': 'jazzy',
    'c3d.ros.pose_convention': 'gltf_authored',
    'c3d.ros.reference_frame': 'map',
    'c3d.sessionname': 'morning round',
    'c3d.ros.comment': 'wet floor',
}


def whole(folder, session=SESSION):
    """Write a session of ten seconds that has everything and lacks nothing."""
    second = int(session.partition('_')[0])
    shift = second - SECOND

    def moved(records):
        def move(record):
            return record | {'time': round(record['time'] + shift, 5)}

        return [move(record) for record in records]

    def put(stream, number, klass, data, **more):
        write(folder, stream, number, klass, body(stream, number, data, session, **more), session)

    put('gaze', 1, 'properties', [], properties=PROPERTIES)
    put('gaze', 2, 'pose', moved(pose(n / 10, n / 100) for n in range(50)))
    put('gaze', 3, 'properties', [], properties={'c3d.ros.reference_frame': 'odom', 'laps': 2})
    put('gaze', 4, 'pose', moved(pose(n / 10, n / 100) for n in range(50, 101)))
    put('events', 1, 'events', moved([event('c3d.sessionStart', 0)]))
    end = event('c3d.sessionEnd', 10, Reason='serviceCall', sessionlength=10.0)
    put('events', 2, 'events', moved([event('dock.reached', 4, dock='A', ok=True), end]))
    samples = [[at(n) + shift, 80.0 - n] for n in range(6)]
    health = [[at(5) + shift, 0], [at(9.9) + shift, 0]]
    put(
        'sensors',
        1,
        'series',
        [
            {'name': 'battery.percentage', 'data': samples},
            {'name': 'c3d.pose_failures', 'data': health},
        ],
    )
    first = {'id': 'body', 'properties': [{'enabled': True}]}
    put(
        'dynamics',
        1,
        'pose',
        [first | moved([pose(0)])[0], {'id': 'body'} | moved([pose(1, 0.1)])[0]],
        manifest={'body': {'name': 'Rover 07', 'mesh': 'rover', 'fileType': 'gltf'}},
    )
    return Path(folder)
