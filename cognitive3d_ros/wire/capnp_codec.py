"""Camera and lidar parts: packed Cap'n Proto messages over the schemas in ``core/capnp/``.

An *entry* is what the recorder hands to the spool, the bytes of one record::

    4  head_len, little-endian
    head         the record as an unpacked message, without its data
    data         the JPEG or the block of points, as it is; nothing for a laser scan

So a picture is copied once on its way into the spool, and never goes through Python objects when its part
is built: the heads are copied into the part's list as structs, the data as bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import capnp
import numpy as np
from numpy.typing import NDArray

from cognitive3d_ros.errors import FormatError
from cognitive3d_ros.wire.identity import SessionIdentity
from cognitive3d_ros.wire.records import (
    CameraFrameRecord,
    CameraPart,
    LaserScanData,
    LidarPart,
    LidarScanRecord,
    PointCloudData,
    Pose,
)

CAPNP_CONTENT_TYPE = 'application/octet-stream'

DECODE_LIMIT_BYTES = 128 << 20
"""The largest unpacked part that is read. Parts are closed at 4 MiB and a record has at most 32 MiB;
Cap'n Proto's own limit, 64 MiB in all that is ever read of a message, is too near to that."""

MAX_RECORDS = 1 << 16
"""The most records of a part: four MiB hold far fewer, and each is read by itself."""

SCHEMAS = Path(__file__).parents[1] / 'core' / 'capnp'
"""The folder of the schemas, which are part of the package."""

_parser = capnp.SchemaParser()
_camera = _parser.load(str(SCHEMAS / 'camera_payload.capnp'))
_lidar = _parser.load(str(SCHEMAS / 'lidar_payload.capnp'))

_LIMIT_WORDS = DECODE_LIMIT_BYTES // 8
_HEAD_LEN = struct.Struct('<I')
_WORD_BYTES = 8
_HEAD_WORDS = (
    128  # of a record without its data and rays; a longer name only costs a second segment
)
_RECORDS = 4  # which of a CameraPart's or a LidarPart's pointers is the list
_SCAN = 3  # which of a LidarScan's pointers is the scan
_RANGES, _INTENSITIES = 0, 1  # and of a LaserScan's

_SCALARS = (
    ('angleMin', 'angle_min'),
    ('angleMax', 'angle_max'),
    ('angleIncrement', 'angle_increment'),
    ('timeIncrement', 'time_increment'),
    ('scanTime', 'scan_time'),
    ('rangeMin', 'range_min'),
    ('rangeMax', 'range_max'),
)
T = TypeVar('T')


def camera_entry(record: CameraFrameRecord) -> bytes:
    """Return the entry of a camera frame."""
    head = _camera.CameraFrame.new_message(_HEAD_WORDS)
    head.cameraId = _text(record.camera_id)
    _place(head, record)
    head.format = _text(record.format)
    head.width = record.width
    head.height = record.height
    head.hfovDegrees = record.hfov_degrees
    head.vfovDegrees = record.vfov_degrees
    return _entry(head.to_bytes(), record.data)


def lidar_entry(record: LidarScanRecord) -> bytes:
    """Return the entry of a laser scan or a point cloud."""
    scan = record.scan
    if isinstance(scan, PointCloudData):
        head = _lidar.LidarScan.new_message(_HEAD_WORDS)
        head.sensorId = _text(record.sensor_id)
        _place(head, record)
        cloud = head.init('pointCloud')
        cloud.pointCount = scan.point_count
        cloud.position = _text(scan.position)
        cloud.color = _text(scan.color)
        cloud.intensity = _text(scan.intensity)
        cloud.voxelLeafMm = scan.voxel_leaf_mm
        cloud.zstdLevel = scan.zstd_level
        return _entry(head.to_bytes(), scan.data)
    rays = (len(scan.ranges) + len(scan.intensities)) // 2 + 2
    # In one segment, whatever the length of the names: _floats() relies on that.
    names = len(_text(record.sensor_id)) + len(_text(record.frame_id))
    head = _lidar.LidarScan.new_message(_HEAD_WORDS + rays + names // _WORD_BYTES)
    head.sensorId = _text(record.sensor_id)
    _place(head, record)
    laser = head.init('laserScan')
    for theirs, ours in _SCALARS:
        setattr(laser, theirs, getattr(scan, ours))
    laser.init('ranges', len(scan.ranges))
    laser.init('intensities', len(scan.intensities))
    message = bytearray(head.to_bytes())
    _floats(message, _SCAN, _RANGES)[:] = scan.ranges
    _floats(message, _SCAN, _INTENSITIES)[:] = scan.intensities
    return _entry(message, b'')


def assemble(
    identity: SessionIdentity, stream: str, klass: str, number: int, entries: Sequence[bytes]
) -> tuple[bytes, str]:
    """Return the body of a camera or lidar part and its content type.

    ``number`` is the part's number, from 1. The same entries give the same bytes, always. Raises
    ValueError for another stream.
    """
    if stream == 'camera':
        return _packed(_camera_message(identity, number, entries)), CAPNP_CONTENT_TYPE
    if stream == 'lidar':
        return _packed(_lidar_message(identity, number, entries)), CAPNP_CONTENT_TYPE
    raise ValueError(f"stream {stream!r} of class {klass!r} has no Cap'n Proto body")


def encode_camera(
    identity: SessionIdentity, number: int, frames: Iterable[CameraFrameRecord]
) -> bytes:
    """Return a camera part as one packed message."""
    return _packed(_camera_message(identity, number, [camera_entry(frame) for frame in frames]))


def encode_lidar(
    identity: SessionIdentity, number: int, scans: Iterable[LidarScanRecord]
) -> bytes:
    """Return a lidar part as one packed message."""
    return _packed(_lidar_message(identity, number, [lidar_entry(scan) for scan in scans]))


def decode_camera(body: bytes) -> CameraPart:
    """Read a camera part.

    Raises FormatError for a message that is cut off or larger than :data:`DECODE_LIMIT_BYTES`. Damage
    inside the data and junk behind the message go unnoticed here: the part's checksum is for those.
    """
    return _decode(body, _camera.CameraPart, _camera_part)


def decode_lidar(body: bytes) -> LidarPart:
    """Read a lidar part; raises FormatError as :func:`decode_camera` does."""
    return _decode(body, _lidar.LidarPart, _lidar_part)


def check(stream: str, body: bytes) -> tuple[str, int]:
    """Read a camera or lidar part to its end and keep nothing of it but whose and which it is.

    What it takes is bounded, whatever the body: it is unpacked into :data:`DECODE_LIMIT_BYTES` at most, and
    has :data:`MAX_RECORDS` at most.

    Returns:
        Its session id and part number.

    Raises:
        FormatError: as :func:`decode_camera` does.
    """

    def read(part: Any, body: bytes) -> tuple[str, int]:
        records, whole = (part.frames, _frame) if stream == 'camera' else (part.scans, _scan)
        for record in _records(records, body):
            whole(record)
        return part.sessionId, part.part

    return _decode(body, _camera.CameraPart if stream == 'camera' else _lidar.LidarPart, read)


def record_times(start: bytes) -> NDArray[np.uint64] | None:
    """Return the times in milliseconds of the records of a camera or lidar part, from the start of its body.

    A part's list of records comes before their pictures and points, and a few KiB hold it. None where they do
    not, or the message is not laid out like that: then it must be decoded.
    """
    words = _unpacked(start, _HEAD_WORDS)
    try:
        segments, root = int(words[0]), int(words[1])
        at = 2 + _offset(root) + (root >> 32 & 0xFFFF) + _RECORDS
        pointer = int(words[at])
        first = at + 1 + _offset(pointer)
        tag = int(words[first])
    except IndexError:
        return None
    one_segment, is_struct = segments & 0xFFFFFFFF == 0, root & 3 == 0 and root >> 48 > _RECORDS
    is_list = pointer & 3 == 1 and pointer >> 32 & 7 == 7  # of structs
    count, size = tag >> 2 & 0x3FFFFFFF, (tag >> 32 & 0xFFFF) + (tag >> 48)
    if not (one_segment and is_struct and is_list and min(at, first) >= 2 and tag >> 32 & 0xFFFF):
        return None
    end = first + 1 + (count - 1) * size + 1  # the time is the first word of either struct
    words = _unpacked(start, end)
    return words[first + 1 : end : size] if count and len(words) == end else None


def _unpacked(packed: bytes, count: int) -> NDArray[np.uint64]:
    """Unpack up to so many words of a packed message, of which maybe only the start is there."""
    tags, values = bytearray(), bytearray()  # of each word which of its bytes are there, and these
    at = 0
    while at < len(packed) and len(tags) < count:
        tag = packed[at]
        upto = at + 1 + tag.bit_count()
        tags.append(tag)
        values += packed[at + 1 : upto]
        at = upto
        if tag in (0, 0xFF) and at < len(packed):  # a run of words that are nothing, or all there
            run, at = packed[at], at + 1
            tags += bytes([tag]) * run
            if tag:
                values += packed[at : at + _WORD_BYTES * run]
                at += _WORD_BYTES * run
    there = np.unpackbits(np.frombuffer(tags, np.uint8), bitorder='little').astype(np.bool_)
    places = np.flatnonzero(there)[: len(values)]
    out = np.zeros(len(there), np.uint8)
    out[places] = np.frombuffer(values, np.uint8)[: len(places)]
    # What is cut off is as if it were nothing: only words before that are given.
    whole = len(tags) if len(places) == there.sum() else int(places[-1:].sum()) // _WORD_BYTES
    return out.view('<u8')[: min(count, whole)]


def _text(value: str) -> bytes:
    """Return text as UTF-8; what ROS could not decode becomes "?"."""
    return value.encode('utf-8', 'replace')


def _place(head: Any, record: CameraFrameRecord | LidarScanRecord) -> None:
    head.time = record.time_ms
    head.seq = record.seq
    head.frameId = _text(record.frame_id)
    pose = head.init('pose')
    pose.px, pose.py, pose.pz, pose.qx, pose.qy, pose.qz, pose.qw = record.pose


def _entry(head: bytes | bytearray, data: bytes) -> bytes:
    return b''.join((_HEAD_LEN.pack(len(head)), head, data))


def _split(entry: bytes) -> tuple[bytes, memoryview]:
    """Return an entry's head and its data."""
    (head_len,) = _HEAD_LEN.unpack_from(entry)
    end = _HEAD_LEN.size + head_len
    return entry[_HEAD_LEN.size : end], memoryview(entry)[end:]


def _camera_message(identity: SessionIdentity, number: int, entries: Sequence[bytes]) -> Any:
    part = _part(_camera.CameraPart, identity, number, entries)
    frames = part.init('frames', len(entries))
    for i, (head, data) in enumerate(map(_split, entries)):
        with _camera.CameraFrame.from_bytes(head) as frame:
            frames[i] = frame
        frames[i].data = data
    return part


def _lidar_message(identity: SessionIdentity, number: int, entries: Sequence[bytes]) -> Any:
    part = _part(_lidar.LidarPart, identity, number, entries)
    scans = part.init('scans', len(entries))
    for i, (head, data) in enumerate(map(_split, entries)):
        with _lidar.LidarScan.from_bytes(head, traversal_limit_in_words=_LIMIT_WORDS) as scan:
            scans[i] = scan
        if len(data):
            scans[i].pointCloud.data = data
    return part


def _part(schema: Any, identity: SessionIdentity, number: int, entries: Sequence[bytes]) -> Any:
    """Start a part, with room for all its entries in the first segment: growing costs copies."""
    part = schema.new_message(
        sum(map(len, entries)) // _WORD_BYTES + 2 * len(entries) + _HEAD_WORDS
    )
    part.sessionId = _text(identity.session_id)
    part.deviceId = _text(identity.device_id)
    part.sceneId = _text(identity.scene_id)
    part.sceneVersion = identity.scene_version
    part.sdkVersion = _text(identity.sdk_version)
    part.part = number
    return part


def _packed(part: Any) -> bytes:
    """Pack a message.

    pycapnp reserves as much for the packed message as the unpacked one has. JPEGs and zstd blocks have
    hardly a zero byte and packing makes them a thousandth longer, which it finds out at the end, by an
    exception, and then does all of it again with twice the room. The worst case is a sixteenth longer.
    """
    words = part.total_size.word_count
    try:
        packed: bytes = part._to_bytes_packed_helper(words + words // 8 + _HEAD_WORDS)
    except (AttributeError, TypeError):  # not part of pycapnp's interface
        packed = part.to_bytes_packed()
    return packed


def _floats(message: bytes | bytearray, *path: int) -> NDArray[np.float32]:
    """Return a List(Float32) of a message in one segment, as a view of its bytes.

    ``path`` says which pointer to follow in each struct, from the root on. pycapnp hands out list
    elements one by one as Python floats, which is slow and changes the bits of signalling NaNs.
    """
    at = _WORD_BYTES  # behind the segment table stands the pointer to the root
    for index in path:
        (pointer,) = struct.unpack_from('<Q', message, at)
        data_words = pointer >> 32 & 0xFFFF
        at += _WORD_BYTES * (1 + _offset(pointer) + data_words + index)
    (pointer,) = struct.unpack_from('<Q', message, at)
    if pointer == 0:
        return np.zeros(0, np.float32)
    if pointer & 3 != 1 or pointer >> 32 & 7 != 4:  # a list, of four-byte elements
        raise FormatError(f'damaged: pointer {pointer:#018x} is not one to a list of Float32')
    return np.frombuffer(message, '<f4', pointer >> 35, at + _WORD_BYTES * (1 + _offset(pointer)))


def _offset(pointer: int) -> int:
    """Return the words between the end of a pointer and what it points to."""
    return (pointer >> 2 & 0x3FFFFFFF) - ((pointer & 0x80000000) and 1 << 30)


def _decode(body: bytes, schema: Any, read: Callable[[Any, bytes], T]) -> T:
    try:
        return read(schema.from_bytes_packed(body, traversal_limit_in_words=_LIMIT_WORDS), body)
    except (capnp.KjException, ValueError) as error:
        line = str(error).partition('\n')[0]
        reason = line.partition('failed: ')[2] or line  # without Cap'n Proto's file and line
        raise FormatError(f'not a readable part of {len(body)} bytes: {reason}') from None


def _records(values: Any, body: bytes) -> Any:
    """Return a part's list, unless it cannot be what it says: any record has more than a byte."""
    if len(values) > min(len(body), MAX_RECORDS):
        raise FormatError(f'damaged: {len(values)} records in {len(body)} bytes')
    return values


def _head(part: Any) -> dict[str, Any]:
    return {
        'session_id': part.sessionId,
        'device_id': part.deviceId,
        'scene_id': part.sceneId,
        'scene_version': part.sceneVersion,
        'sdk_version': part.sdkVersion,
        'part': part.part,
    }


def _where(record: Any) -> dict[str, Any]:
    pose = record.pose
    return {
        'time_ms': record.time,
        'seq': record.seq,
        'frame_id': record.frameId,
        'pose': Pose(pose.px, pose.py, pose.pz, pose.qx, pose.qy, pose.qz, pose.qw),
    }


def _camera_part(part: Any, body: bytes) -> CameraPart:
    return CameraPart(**_head(part), frames=tuple(map(_frame, _records(part.frames, body))))


def _frame(frame: Any) -> CameraFrameRecord:
    return CameraFrameRecord(
        camera_id=frame.cameraId,
        **_where(frame),
        format=frame.format,
        width=frame.width,
        height=frame.height,
        data=frame.data,
        hfov_degrees=frame.hfovDegrees,
        vfov_degrees=frame.vfovDegrees,
    )


def _lidar_part(part: Any, body: bytes) -> LidarPart:
    return LidarPart(**_head(part), scans=tuple(map(_scan, _records(part.scans, body))))


def _scan(scan: Any) -> LidarScanRecord:
    kind = scan.which()
    if kind == 'laserScan':
        content: LaserScanData | PointCloudData = _laser(scan.laserScan)
    else:
        content = _cloud(scan.pointCloud)
    return LidarScanRecord(sensor_id=scan.sensorId, **_where(scan), scan=content)


def _laser(laser: Any) -> LaserScanData:
    return LaserScanData(
        **{ours: getattr(laser, theirs) for theirs, ours in _SCALARS},
        ranges=_rays(laser.ranges),
        intensities=_rays(laser.intensities),
    )


def _rays(values: Any) -> NDArray[np.float32]:
    """Return a list of floats of a message.

    It is copied into a message in one segment by the one call that is quick and throws: pycapnp's
    ``as_builder`` and ``total_size`` end the process when they meet a damaged pointer.
    """
    message = _lidar.LaserScan.new_message(len(values) // 2 + _HEAD_WORDS)
    message.ranges = values
    return _floats(message.to_bytes(), _RANGES)


def _cloud(cloud: Any) -> PointCloudData:
    return PointCloudData(
        point_count=cloud.pointCount,
        position=cloud.position,
        color=cloud.color,
        intensity=cloud.intensity,
        voxel_leaf_mm=cloud.voxelLeafMm,
        zstd_level=cloud.zstdLevel,
        data=cloud.data,
    )
