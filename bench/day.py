"""A session of a day, made up: what the reader and the exports are measured on."""

from __future__ import annotations

import json
import math
from pathlib import Path

import cv2
import numpy as np

from cognitive3d_ros.wire import capnp_codec
from cognitive3d_ros.wire.framing import PartHeader, frame, part_name
from cognitive3d_ros.wire.identity import SessionIdentity
from cognitive3d_ros.wire.records import CameraFrameRecord, Pose

SECOND = 1_767_225_600
DEVICE = 'rover-07'
SESSION = f'{SECOND}_{DEVICE}'
POSE_HZ, SERIES, SERIES_HZ, CAMERA_HZ = 10, 50, 1, 5
_PART_S = 10
_CAMERA_PART_S = 5
IDENTITY = SessionIdentity(
    SESSION, DEVICE, '5b2a1f4e-0c9d-4e8a-9a53-0f6d1c2b3a4d', 3, '1.0.0', SECOND * 10**9, 0.1
)
PROPERTIES = {
    'c3d.version': '1.0.0',
    'c3d.ros.pose_convention': 'gltf_authored',
    'c3d.ros.reference_frame': 'odom',
    'c3d.ros.cameras': 'front',
    'c3d.ros.camera.front.frame': 'front_optical_frame',
}


def make(root: Path, hours: float) -> Path:
    """Write a session into a store: 10 Hz poses, 50 series of 1 Hz, a 5 Hz camera; return its folder."""
    folder = root / 'sessions' / SESSION
    folder.mkdir(parents=True)
    seconds = round(hours * 3600)
    _json(folder, 'gaze', 1, 'properties', [], {'interval': 0.1, 'properties': PROPERTIES})
    for number, start in enumerate(range(0, seconds, _PART_S)):
        poses = [_pose(start + n / POSE_HZ) for n in range(_PART_S * POSE_HZ)]
        _json(folder, 'gaze', number + 2, 'pose', poses, {'interval': 0.1})
        series = [
            {
                'name': f'topic.field_{n}',
                'data': [
                    [SECOND + start + t, round(math.sin((start + t) / 60 + n), 5)]
                    for t in range(0, _PART_S, SERIES_HZ)
                ],
            }
            for n in range(SERIES)
        ]
        _json(folder, 'sensors', number + 1, 'series', series, {})
    events = [{'name': 'c3d.sessionStart', 'time': SECOND, 'point': [0, 0, 0]}]
    events += [
        {
            'name': 'lap',
            'time': SECOND + at,
            'point': [0, 0, 0],
            'properties': {'number': at // 600},
        }
        for at in range(600, seconds, 600)
    ]
    end = {'Reason': 'shutdown', 'sessionlength': seconds}
    events.append(
        {'name': 'c3d.sessionEnd', 'time': SECOND + seconds, 'point': [0, 0, 0], 'properties': end}
    )
    _json(folder, 'events', 1, 'events', events, {})
    pictures = [_picture(n) for n in range(8)]
    for number, start in enumerate(range(0, seconds, _CAMERA_PART_S)):
        frames = [_frame(start, n, pictures) for n in range(_CAMERA_PART_S * CAMERA_HZ)]
        body = capnp_codec.encode_camera(IDENTITY, number + 1, frames)
        _write(folder, 'camera', number + 1, 'camera', body)
    return folder


def _pose(t: float) -> dict[str, object]:
    angle = t / 100
    p = [round(50 * math.cos(angle), 5), 0, round(50 * math.sin(angle), 5)]
    r = [0, round(math.sin(angle / 2), 5), 0, round(math.cos(angle / 2), 5)]
    return {'time': round(SECOND + t, 5), 'p': p, 'r': r}


def _picture(n: int) -> bytes:
    """Return a small JPEG: the session would be 40 GB with real ones, and the disk be measured."""
    pixels = np.full((36, 64, 3), 20 * n, np.uint8)
    cv2.putText(pixels, str(n), (20, 28), cv2.FONT_HERSHEY_SIMPLEX, 1, (255, 255, 255))
    return bytes(cv2.imencode('.jpg', pixels)[1])


def _frame(start: int, n: int, pictures: list[bytes]) -> CameraFrameRecord:
    at = start + n / CAMERA_HZ
    seq = start * CAMERA_HZ + n
    return CameraFrameRecord(
        'front',
        round((SECOND + at) * 1000),
        seq,
        'front_optical_frame',
        Pose(50 * math.cos(at / 100), 1.0, 50 * math.sin(at / 100)),
        'jpeg',
        64,
        36,
        pictures[seq % len(pictures)],
        60.0,
        40.0,
    )


def _json(
    folder: Path, stream: str, number: int, klass: str, data: object, more: dict[str, object]
) -> None:
    owner = 'name' if stream == 'sensors' else 'userid'
    top = {owner: DEVICE, 'sessionid': SESSION, 'timestamp': SECOND, 'part': number}
    top |= {'formatversion': '2.0' if stream == 'sensors' else '1.0', **more, 'data': data}
    body = json.dumps(top, separators=(',', ':')).encode()
    _write(folder, stream, number, klass, body)


def _write(folder: Path, stream: str, number: int, klass: str, body: bytes) -> None:
    header = PartHeader(IDENTITY, stream, number, klass, number, 'application/json')
    (folder / part_name(stream, number, klass)).write_bytes(b''.join(frame(header, body)))
