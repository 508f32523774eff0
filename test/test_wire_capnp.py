"""Camera and lidar parts: golden bytes, Debian's own ``capnp`` as a second reader, damage, limits."""

from __future__ import annotations

import json
import random
import shutil
import struct
import subprocess
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from cognitive3d_ros.errors import FormatError
from cognitive3d_ros.wire import capnp_codec
from cognitive3d_ros.wire.capnp_codec import (
    CAPNP_CONTENT_TYPE,
    SCHEMAS,
    assemble,
    camera_entry,
    decode_camera,
    decode_lidar,
    encode_camera,
    encode_lidar,
    lidar_entry,
)
from cognitive3d_ros.wire.identity import SessionIdentity
from cognitive3d_ros.wire.records import (
    CameraFrameRecord,
    LaserScanData,
    LidarScanRecord,
    PointCloudData,
    Pose,
)

GOLDEN = Path(__file__).parent / 'golden'
IDENTITY = SessionIdentity(
    session_id='1700000000_rover-7',
    device_id='rover-7',
    scene_id='6c3bd8a0-5f6e-4f0b-9c1e-0a4c2a1f7b55',
    scene_version=3,
    sdk_version='1.0.0',
    start_ns=1_700_000_000_000_000_000,
    interval_s=0.1,
)
POSE = Pose(1.5, -2.25, 0.125, 0.5, -0.5, 0.5, 0.5)
JPEG = bytes([0xFF, 0xD8, *range(256), 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xD9])
NAN = float('nan')


def frame(**changes) -> CameraFrameRecord:
    return replace(
        CameraFrameRecord(
            camera_id='front',
            time_ms=1_700_000_001_234,
            seq=0,
            frame_id='front_optical_frame',
            pose=POSE,
            format='jpeg',
            width=1280,
            height=720,
            data=JPEG,
            hfov_degrees=90.0,
            vfov_degrees=59.0,
        ),
        **changes,
    )


def laser(ranges=(1.0, 2.5), intensities=()) -> LaserScanData:
    return LaserScanData(
        angle_min=-0.5,
        angle_max=0.5,
        angle_increment=0.25,
        time_increment=0.0,
        scan_time=0.125,
        range_min=0.0625,
        range_max=30.0,
        ranges=np.array(ranges, np.float32),
        intensities=np.array(intensities, np.float32),
    )


def scan(content, **changes) -> LidarScanRecord:
    return replace(
        LidarScanRecord('top', 1_700_000_001_500, 0, 'laser', POSE, content),
        **changes,
    )


CLOUD = PointCloudData(
    point_count=2,
    position='int16_mm',
    color='rgb565',
    intensity='uint8',
    voxel_leaf_mm=50,
    zstd_level=0,
    data=struct.pack('<6h2H2B', 1, -1, 1000, -1000, 32767, -32767, 0xF800, 0x07E0, 0, 255),
)
GOLDEN_FRAMES = [frame(), frame(seq=1, camera_id='rear', hfov_degrees=0.0, vfov_degrees=0.0)]
GOLDEN_SCANS = [
    scan(laser([float('inf'), -float('inf'), NAN, 0.0, 0.05, 31.0], [0, 1, 2, 3, 4, 5.5])),
    scan(CLOUD, sensor_id='roof', seq=41),
    scan(PointCloudData(0, 'float32', 'none', 'none', 0, 0, b''), seq=42),
]
PARTS = {
    'camera': (2, GOLDEN_FRAMES, encode_camera, decode_camera, 'CameraPart'),
    'lidar': (1, GOLDEN_SCANS, encode_lidar, decode_lidar, 'LidarPart'),
}


def plain(value: object) -> object:
    """A record as JSON: bytes in hex, floats as float32 bits where they are arrays."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, np.ndarray):
        return [f'{bits:08x}' for bits in value.view(np.uint32)]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def described(stream: str) -> dict[str, object]:
    number, records, *_ = PARTS[stream]
    return {
        'identity': asdict(IDENTITY),
        'part': number,
        'records': [plain(asdict(record)) for record in records],
    }


@pytest.mark.rule(71, 76, 77, 79, 80, 82, 94)
@pytest.mark.parametrize('stream', PARTS)
def test_golden_bytes(stream: str) -> None:
    """The bytes are frozen: a change of them is a change of the format."""
    number, records, encode, decode, _ = PARTS[stream]
    golden = (GOLDEN / f'{stream}_part.capnp').read_bytes()
    assert json.loads((GOLDEN / f'{stream}_part.json').read_text()) == described(stream)
    assert encode(IDENTITY, number, records) == golden
    part = decode(golden)
    assert (part.session_id, part.device_id, part.scene_id, part.scene_version) == (
        '1700000000_rover-7',
        'rover-7',
        '6c3bd8a0-5f6e-4f0b-9c1e-0a4c2a1f7b55',
        3,
    )
    assert (part.sdk_version, part.part) == ('1.0.0', number)
    read = part.frames if stream == 'camera' else part.scans
    assert [plain(asdict(record)) for record in read] == described(stream)['records']


def capnp_decode(body: bytes, stream: str) -> str:
    """Decode with the program of Debian's package capnproto, as text."""
    if shutil.which('capnp') is None:
        pytest.skip('no capnp: apt-get install capnproto')
    schema = SCHEMAS / f'{stream}_payload.capnp'
    command = ['capnp', 'decode', '--packed', '--short', schema, PARTS[stream][4]]
    return subprocess.run(command, input=body, capture_output=True, check=True).stdout.decode()


@pytest.mark.rule(71, 76, 77, 80, 82, 94, 95)
def test_another_reader_reads_the_golden_bytes() -> None:
    text = capnp_decode((GOLDEN / 'camera_part.capnp').read_bytes(), 'camera')
    assert text.startswith(
        '(sessionId = "1700000000_rover-7", deviceId = "rover-7", '
        'sceneId = "6c3bd8a0-5f6e-4f0b-9c1e-0a4c2a1f7b55", sceneVersion = 3, sdkVersion = "1.0.0", '
        'part = 2, frames = [(cameraId = "front", time = 1700000001234, seq = 0, '
        'frameId = "front_optical_frame", pose = (px = 1.5, py = -2.25, pz = 0.125, qx = 0.5, qy = -0.5, '
        'qz = 0.5, qw = 0.5), format = "jpeg", width = 1280, height = 720, data = "'
    )
    assert text.rstrip().endswith(', hfovDegrees = 0, vfovDegrees = 0)])')
    text = capnp_decode((GOLDEN / 'lidar_part.capnp').read_bytes(), 'lidar')
    assert (
        'laserScan = (angleMin = -0.5, angleMax = 0.5, angleIncrement = 0.25, timeIncrement = 0, '
        'scanTime = 0.125, rangeMin = 0.0625, rangeMax = 30, '
        'ranges = [inf, -inf, nan, 0, 0.05, 31], intensities = [0, 1, 2, 3, 4, 5.5])'
    ) in text
    assert ('sensorId = "roof", time = 1700000001500, seq = 41, frameId = "laser"') in text
    assert (
        'pointCloud = (pointCount = 2, position = "int16_mm", color = "rgb565", intensity = "uint8", '
        'voxelLeafMm = 50, zstdLevel = 0, data = "'
    ) in text


@pytest.mark.rule(95)
def test_the_schemas_lie_where_the_data_format_says(root: Path) -> None:
    names = ['camera_payload.capnp', 'common_payload.capnp', 'lidar_payload.capnp']
    assert sorted(path.name for path in (root / 'core/capnp').glob('*.capnp')) == names
    assert (root / 'core/capnp').samefile(SCHEMAS)


@pytest.mark.rule(96)
def test_a_pose_that_was_never_written_is_the_identity() -> None:
    part = capnp_codec._camera.CameraPart.new_message()
    part.init('frames', 1)
    assert decode_camera(part.to_bytes_packed()).frames[0].pose == Pose(0, 0, 0, 0, 0, 0, 1)
    assert Pose() == (0, 0, 0, 0, 0, 0, 1)
    if shutil.which('capnp'):
        encoded = subprocess.run(
            ['capnp', 'encode', '--packed', SCHEMAS / 'camera_payload.capnp', 'CameraPart'],
            input=b'(frames = [(cameraId = "a", pose = (px = 2))])',
            capture_output=True,
            check=True,
        ).stdout
        assert decode_camera(encoded).frames[0].pose == Pose(2, 0, 0, 0, 0, 0, 1)


@pytest.mark.rule(79)
def test_exactly_one_of_scan_and_cloud() -> None:
    part = decode_lidar(encode_lidar(IDENTITY, 1, GOLDEN_SCANS))
    kinds = [type(record.scan) for record in part.scans]
    assert kinds == [LaserScanData, PointCloudData, PointCloudData]


texts = st.text(st.characters(exclude_categories=['Cs']), max_size=300)
floats32 = st.floats(width=32, allow_nan=False)
poses = st.builds(Pose, *[floats32] * 7)
bits = hnp.arrays(np.uint32, st.integers(0, 40))


@pytest.mark.rule(71, 94)
@given(
    st.lists(
        st.builds(
            CameraFrameRecord,
            camera_id=texts,
            time_ms=st.integers(0, 2**64 - 1),
            seq=st.integers(0, 2**32 - 1),
            frame_id=texts,
            pose=poses,
            format=texts,
            width=st.integers(0, 65535),
            height=st.integers(0, 65535),
            data=st.binary(max_size=3000),
            hfov_degrees=floats32,
            vfov_degrees=floats32,
        ),
        max_size=4,
    )
)
def test_camera_frames_come_back_as_they_were(frames) -> None:
    assert list(decode_camera(encode_camera(IDENTITY, 7, frames)).frames) == frames


@pytest.mark.rule(80, 81)
@given(bits, bits, texts, poses)
def test_ranges_come_back_bit_for_bit(ranges, intensities, name, pose) -> None:
    """Quiet and signalling NaNs with their payloads, infinities, −0: all 32 bits of each."""
    record = scan(
        laser(ranges.view(np.float32), intensities.view(np.float32)), sensor_id=name, pose=pose
    )
    record.scan.ranges.view(np.uint32)[:] = ranges  # np.array() may have changed NaNs
    record.scan.intensities.view(np.uint32)[:] = intensities
    (read,) = decode_lidar(encode_lidar(IDENTITY, 1, [record])).scans
    assert read.scan.ranges.view(np.uint32).tolist() == ranges.tolist()
    assert read.scan.intensities.view(np.uint32).tolist() == intensities.tolist()
    assert (read.sensor_id, read.pose) == (name, pose)


@given(
    st.builds(
        PointCloudData,
        st.integers(0, 2**32 - 1),
        texts,
        texts,
        texts,
        st.integers(0, 65535),
        st.integers(0, 255),
        st.binary(max_size=3000),
    )
)
def test_clouds_come_back_as_they_were(cloud) -> None:
    assert decode_lidar(encode_lidar(IDENTITY, 1, [scan(cloud)])).scans[0].scan == cloud


def test_entries_in_the_spool_give_the_part() -> None:
    frames = [camera_entry(record) for record in GOLDEN_FRAMES]
    body, content_type = assemble(IDENTITY, 'camera', 'camera', 2, frames)
    assert body == (GOLDEN / 'camera_part.capnp').read_bytes()
    assert content_type == CAPNP_CONTENT_TYPE
    scans = [lidar_entry(record) for record in GOLDEN_SCANS]
    assert (
        assemble(IDENTITY, 'lidar', 'lidar', 1, scans)[0]
        == (GOLDEN / 'lidar_part.capnp').read_bytes()
    )
    with pytest.raises(ValueError, match="'gaze'"):
        assemble(IDENTITY, 'gaze', 'pose', 1, [])


def test_an_entry_is_its_data_and_little_more() -> None:
    assert len(camera_entry(frame(data=bytes(200_000)))) < 200_000 + 400
    names = {'sensor_id': 'x' * 5000, 'frame_id': 'y' * 5000}  # outgrow the first segment
    record = scan(laser(range(1000), range(1000)), **names)
    (read,) = decode_lidar(encode_lidar(IDENTITY, 1, [record])).scans
    assert read.scan.ranges.tolist() == list(range(1000))
    assert (read.sensor_id, read.frame_id) == ('x' * 5000, 'y' * 5000)


def test_text_that_is_no_unicode_is_stored_all_the_same() -> None:
    (read,) = decode_camera(encode_camera(IDENTITY, 1, [frame(frame_id='a\udc80b')])).frames
    assert read.frame_id == 'a?b'


@pytest.mark.parametrize('size', [4 << 20, 32 << 20])
def test_a_large_part_can_be_read_again_and_again(size: int) -> None:
    """Cap'n Proto's own limit would refuse the third reading of 30 MB."""
    data = np.random.default_rng(1).integers(0, 256, size, np.uint8).tobytes()
    body = encode_camera(IDENTITY, 1, [frame(data=data), frame(data=b'')])
    assert len(body) < 1.01 * size  # JPEGs do not pack
    for _ in range(3):
        assert decode_camera(body).frames[0].data == data


def test_the_longest_packing_fits() -> None:
    """A full word and one with two zero bytes in turn: nothing packs worse."""
    data = b'\1\1\1\1\1\1\1\1\1\1\1\1\1\1\0\0' * 50_000
    body = encode_camera(IDENTITY, 1, [frame(data=data)])
    assert len(body) > 1.06 * len(data)
    assert decode_camera(body).frames[0].data == data


@pytest.mark.parametrize('stream', PARTS)
def test_a_part_that_is_cut_off_is_refused(stream: str) -> None:
    decode = PARTS[stream][3]
    golden = (GOLDEN / f'{stream}_part.capnp').read_bytes()
    for end in range(len(golden)):
        with pytest.raises(FormatError):
            decode(golden[:end])


def packed(message: bytes) -> bytes:
    """Pack a message word by word, without runs."""
    out = bytearray()
    for at in range(0, len(message), 8):
        word = message[at : at + 8]
        tag = sum(1 << i for i, byte in enumerate(word) if byte)
        out.append(tag)
        out += bytes(filter(None, word))
        if tag in (0, 255):
            out.append(0)
    return bytes(out)


@pytest.mark.parametrize('stream', PARTS)
def test_a_damaged_part_raises_nothing_else(stream: str) -> None:
    """Pointers bent at random: some reading functions of pycapnp end the process on such."""
    number, records, _, decode, _ = PARTS[stream]
    build = {'camera': capnp_codec._camera_message, 'lidar': capnp_codec._lidar_message}[stream]
    entry = {'camera': camera_entry, 'lidar': lidar_entry}[stream]
    message = build(IDENTITY, number, [entry(record) for record in records]).to_bytes()
    assert decode(packed(message)).part == number
    chance = random.Random(20)
    refused = 0
    for _ in range(3000):
        bent = bytearray(message)
        for _ in range(chance.randint(1, 3)):
            at = chance.randrange(len(bent))
            bent[at] = chance.choice([bent[at] ^ 1 << chance.randrange(8), chance.randrange(256)])
        try:
            decode(packed(bytes(bent)))
        except FormatError:
            refused += 1
    assert refused > 300


def test_a_few_bytes_that_claim_to_be_a_gigabyte_are_refused() -> None:
    head = struct.pack('<II', 0, (1 << 30) // 8)
    with pytest.raises(FormatError, match='part of'):
        decode_camera(packed(head + bytes(8)) + b'\0\xff' * 1000)
    # A list of structs without content costs no bytes; 2^20 of them would be read one by one.
    part = struct.pack(
        '<IIQ8xQQQQQQ', 0, 8, 5 << 48 | 1 << 32, 0, 0, 0, 0, 1 | 7 << 32, 1 << 20 << 2
    )
    with pytest.raises(FormatError, match='1048576 records'):
        decode_camera(packed(part))
