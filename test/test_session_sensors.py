"""Cameras and lidars in the reader: records, the three pose rules, damaged parts, pairs."""

import dataclasses
import math

import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from stored import (
    PROPERTIES,
    SESSION,
    at,
    body,
    cloud_record,
    event,
    frame_record,
    pose,
    scan_record,
    whole,
    write,
    write_sensors,
)

from cognitive3d_ros import open_session
from cognitive3d_ros.conventions import CONVENTIONS, Convention
from cognitive3d_ros.errors import FormatError, ReadError
from cognitive3d_ros.session.records import (
    CameraFrame,
    LaserScan,
    LidarRecord,
    PointCloud,
    PoseSample,
    Record,
    SensorRecord,
)
from cognitive3d_ros.wire.records import Pose

INF, NAN = math.inf, math.nan


@pytest.fixture
def folder(tmp_path):
    folder = whole(tmp_path / 'sessions' / SESSION)
    write(folder, 'gaze', 5, 'properties', said(cameras='front,rear', lidars='base,top'))
    write_sensors(folder, 'camera', 1, [frame_record(1, 0), frame_record(1.5, 0, 'rear')])
    write_sensors(folder, 'camera', 2, [frame_record(2, 1), frame_record(3, 2)])
    write_sensors(
        folder,
        'lidar',
        1,
        [
            scan_record(1, 0, [1, 2, INF, NAN, 40], intensities=[1, 2, 3, 4, 5]),
            cloud_record(1.2, 0, [(1000, 2000, -500), (1000, 2000, 500)]),
            scan_record(2, 1, [1, 1, 1, 1, 1]),
        ],
    )
    return folder


def said(**lists):
    properties = {f'c3d.ros.{kind}': names for kind, names in lists.items()}
    return body('gaze', 5, [], properties=properties)


@pytest.mark.rule(71, 72, 74, 75, 77)
def test_the_frames_of_a_camera(folder):
    session = open_session(folder)
    assert session.cameras == ('front', 'rear')
    front = session.camera('front')
    assert len(front) == 3
    frame = front[1]
    assert type(frame) is CameraFrame
    assert (frame.camera_id, frame.seq, frame.frame_id) == ('front', 1, 'front_optical_frame')
    assert frame.time == at(2)
    assert frame.time_ns == round(at(2) * 1e5) * 10_000
    assert frame.pose == (1.0, 0.0, 2.0, 0.0, 0.0, 0.0, 1.0)
    assert (frame.format, frame.width, frame.height) == ('jpeg', 64, 48)
    assert frame.data == b'front 1'
    assert (frame.hfov_degrees, frame.vfov_degrees) == (60.0, 45.0)
    assert [f.data for f in front] == [b'front 0', b'front 1', b'front 2']
    assert front.time.tolist() == [at(1), at(2), at(3)]
    assert front.seq.tolist() == [0, 1, 2]
    assert front.pose.shape == (3, 7)
    assert [f.seq for f in front[1:]] == [1, 2]
    assert front[-1].seq == 2
    assert [f.data for f in session.camera('rear')] == [b'rear 0']
    assert session.faults == []


@pytest.mark.rule(78, 79, 80, 81, 82, 85, 86)
def test_the_scans_of_lidars(folder):
    session = open_session(folder)
    assert session.lidars == ('base', 'top')
    first, second = session.lidar('base')
    assert type(first) is LaserScan
    assert (first.sensor_id, first.seq, first.frame_id) == ('base', 0, 'laser')
    np.testing.assert_array_equal(first.ranges, np.array([1, 2, INF, NAN, 40], np.float32))
    assert first.intensities.tolist() == [1, 2, 3, 4, 5]
    assert second.intensities.tolist() == []
    assert (first.angle_min, first.angle_max, first.angle_increment) == (-0.5, 0.5, 0.25)
    assert (first.range_min, first.range_max) == (0.5, 30.0)
    assert first.scan_time == pytest.approx(0.1)
    assert first.time_increment == 0.0
    (cloud,) = session.lidar('top')
    assert type(cloud) is PointCloud
    assert cloud.point_count == 2
    assert (cloud.position, cloud.color, cloud.intensity) == ('int16_mm', 'none', 'none')
    assert cloud.positions.dtype == np.float32
    np.testing.assert_allclose(cloud.positions, [(1, 2, -0.5), (1, 2, 0.5)])
    assert cloud.colors is None
    assert cloud.intensities is None
    assert first == open_session(folder).lidar('base')[0]
    assert first != second
    assert len({first, open_session(folder).lidar('base')[0], second}) == 2


def test_a_camera_that_there_is_not_is_named_with_those_there_are(folder):
    session = open_session(folder)
    with pytest.raises(ReadError, match="no camera 'left'; it has front, rear"):
        session.camera('left')
    with pytest.raises(ReadError, match="no lidar 'front'; it has base, top"):
        session.lidar('front')


def test_a_camera_that_gave_nothing_is_empty(folder):
    (folder / 'camera.000001.camera.c3d').unlink()
    session = open_session(folder)
    assert len(session.camera('rear')) == 0
    assert list(session.camera('rear')) == []
    assert session.camera('rear').pose.shape == (0, 7)


def test_sensors_of_a_session_without_their_names(tmp_path):
    write_sensors(tmp_path, 'camera', 1, [frame_record(1, 0, 'a'), frame_record(1, 0, 'b')])
    session = open_session(tmp_path)
    assert session.cameras == ('a', 'b')
    assert session.lidars == ()


def test_sensor_records_are_in_the_sequence_of_all(folder):
    session = open_session(folder)
    assert len(session.find(SensorRecord)) == 7
    assert len(session.find(LidarRecord)) == 3
    assert [type(r) for r in session.find(LidarRecord)] == [LaserScan, PointCloud, LaserScan]
    assert len(session.find(PointCloud)) == 1
    found = session.find(CameraFrame, at(1), at(2))
    assert [(f.camera_id, f.seq) for f in found] == [('front', 0), ('rear', 0)]
    assert session.nearest(CameraFrame, at(1.6)).camera_id == 'rear'
    everything = list(session)
    assert len(everything) == len(session) == 101 + 3 + 8 + 2 + 7
    assert [r.time for r in everything] == sorted(r.time for r in everything)
    for index, record in enumerate(everything):
        assert session.kind(index) is type(record)
        assert session[index] == record
    one_time = [type(r).__name__ for r in session.find(Record, at(1), at(1.00001))]
    assert one_time == [
        'PoseSample',
        'DynamicSnapshot',
        'SeriesSample',
        'CameraFrame',
        'LaserScan',
    ]


def test_only_the_streams_asked_for_are_read(folder):
    (folder / 'camera.000001.camera.c3d').write_bytes(b'')
    (folder / 'events.000002.events.c3d').write_bytes(b'')
    session = open_session(folder)
    assert len(session.find(PoseSample)) == 101
    assert len(session.lidar('top')) == 1
    assert session.faults == []
    assert len(session.camera('front')) == 2
    assert [fault.part for fault in session.faults] == ['camera.000001.camera.c3d']


def test_damaged_parts_and_records_are_reported_and_passed_over(folder):
    path = folder / 'camera.000001.camera.c3d'
    data = bytearray(path.read_bytes())
    data[-20] ^= 1
    path.write_bytes(data)
    write(folder, 'camera', 3, 'camera', b'\x10\x00no such message')
    write_sensors(folder, 'camera', 4, [frame_record(9, 3)]).rename(
        folder / 'camera.000005.camera.c3d'
    )
    sound = cloud_record(3, 1, [(1, 2, 3)])
    cloud = sound.scan
    broken = [
        cloud_like(sound, position='int24'),
        cloud_like(sound, point_count=5),
        cloud_like(sound, data=b'not zstd'),
        cloud_like(sound, zstd_level=0, data=cloud.data),
        scan_record(3, 2, [1, 2, 3], intensities=[1]),
        sound,
    ]
    write_sensors(folder, 'lidar', 2, broken)
    session = open_session(folder)
    assert [f.seq for f in session.camera('front')] == [1, 2]
    assert len(session.lidar('top')) == 2
    assert len(session.lidar('base')) == 2
    texts = list(map(str, session.faults))
    assert texts[0].startswith('camera.000001.camera.c3d: damaged: the checksum')
    assert texts[1].startswith('camera.000003.camera.c3d: not a readable part')
    assert texts[2].startswith('camera.000005.camera.c3d: by its header it is camera camera 4')
    assert "record 0: a block with 'int24' is unknown" in texts[3]
    assert 'record 1: 5 points take 30 bytes' in texts[4]
    assert 'record 2: ' in texts[5]
    assert 'record 3: 1 points take 6 bytes' in texts[6]
    assert 'record 4: 1 intensities for 3 rays' in texts[7]
    assert len(texts) == 8


def cloud_like(record, **changed):
    return dataclasses.replace(record, scan=dataclasses.replace(record.scan, **changed))


def test_a_block_that_lies_about_itself_is_found_when_it_is_read(folder):
    record = cloud_record(3, 1, [(1, 2, 3)] * 50)
    frame = zstandard.ZstdCompressor(write_content_size=False).compress(b'1234')
    write_sensors(folder, 'lidar', 2, [cloud_like(record, data=frame)])
    cloud = open_session(folder).lidar('top')[1]
    with pytest.raises(FormatError):
        cloud.positions  # noqa: B018
    with pytest.raises(FormatError):
        cloud.scene_points()


def test_a_part_that_goes_after_it_was_listed(folder):
    session = open_session(folder)
    front = session.camera('front')
    for number in range(3, 9):
        write_sensors(folder, 'camera', number, [frame_record(number, number)])
    session = open_session(folder)
    front = session.camera('front')
    assert len(front) == 9  # more parts than are held in memory
    (folder / 'camera.000001.camera.c3d').unlink()
    assert [f.seq for f in front] == [1, 2, 3, 4, 5, 6, 7, 8]
    with pytest.raises(ReadError, match='cannot be read any more'):
        front[0]
    assert [f.seq for f in session.find(CameraFrame)] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert len(session) == len(list(session)) + 2
    assert 'delivered, or removed' in session.faults[0].reason


# The three rules of "Reading a sensor pose", worked by hand: a sensor 2 m up, turned left by 90 degrees.

LEFT = (0.0, 0.0, math.sqrt(0.5), math.sqrt(0.5))


def stored_pose(convention, kind, translation=(5.0, 1.0, 2.0), rotation=LEFT):
    rule = Convention(convention)
    turn = rule.scan_rotation if kind is LaserScan else rule.object_rotation
    return Pose(*rule.position(translation).tolist(), *turn(rotation).tolist())


@pytest.mark.rule(92)
@pytest.mark.parametrize(
    ('convention', 'ahead'),
    [
        # Ahead is +y of the reference frame.
        ('gltf_authored', (0, 0, -1)),  # (-x, z, -y)
        ('unity', (-1, 0, 0)),  # (-y, z, x)
        ('rep103', (0, 1, 0)),
    ],
)
def test_where_a_camera_looks(convention, ahead):
    frame = CameraFrame(
        at(0),
        0,
        'front',
        stored_pose(convention, CameraFrame),
        'front',
        'jpeg',
        64,
        48,
        b'',
        convention=convention,
    )
    np.testing.assert_allclose(frame.direction((1, 0, 0)), ahead, atol=1e-7)  # a body frame
    up = Convention(convention).position((0, 0, 1))
    np.testing.assert_allclose(frame.direction((0, 0, 1)), up, atol=1e-7)
    many = frame.direction([(1, 0, 0), (0, 0, 2)])
    np.testing.assert_allclose(many, [ahead, 2 * up], atol=1e-7)


@pytest.mark.rule(92, 93)
@pytest.mark.parametrize('convention', CONVENTIONS)
def test_where_points_and_rays_are(tmp_path, convention):
    rule = Convention(convention)
    properties = [{'c3d.ros.pose_convention': convention}]
    write(tmp_path, 'gaze', 1, 'properties', body('gaze', 1, [], properties=properties[0]))
    # In the sensor's own axes: 3 m ahead, 1 m to the left, 0.5 m up.
    stored = np.rint(rule.position((3000, 1000, 500))).astype(int)
    write_sensors(
        tmp_path,
        'lidar',
        1,
        [
            cloud_record(1, 0, [stored], pose=stored_pose(convention, PointCloud)),
            scan_record(
                1,
                0,
                [3, NAN, 0.4, 31, INF, 2, -INF],
                angle_increment=math.pi / 10,
                angle_min=0.0,
                pose=stored_pose(convention, LaserScan),
            ),
        ],
    )
    session = open_session(tmp_path)
    # Turned left by 90 degrees and moved to (5, 1, 2): ahead is y, left is −x.
    (cloud,) = session.lidar('top')
    expected = rule.position((5 - 1, 1 + 3, 2.5))
    np.testing.assert_allclose(cloud.scene_points(), [expected], atol=1e-6)
    (scan,) = session.lidar('base')
    # Ray 0 straight ahead 3 m; ray 5 at 90 degrees 2 m to the left; the others are no returns or out of limits.
    expected = rule.position([(5, 4, 2), (5 - 2, 1, 2)])
    np.testing.assert_allclose(scan.scene_points(), expected, atol=1e-6)
    for record in (cloud, scan):
        for v, ros in (((1, 0, 0), (0, 1, 0)), ((0, 1, 0), (-1, 0, 0)), ((0, 0, 1), (0, 0, 1))):
            np.testing.assert_allclose(record.direction(v), rule.position(ros), atol=1e-7)


def matrix(q):
    """The rotation matrix of a quaternion, by the textbook."""
    x, y, z, w = np.array(q) / np.linalg.norm(q)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


@given(
    st.sampled_from(CONVENTIONS),
    st.tuples(*[st.floats(-1, 1)] * 4).filter(lambda q: np.linalg.norm(q) > 0.1),
    st.tuples(*[st.floats(-5, 5)] * 3),
)
def test_every_kind_of_record_looks_the_same_way(convention, rotation, v):
    """Whatever the rotation: M R v, by each rule from its own stored rotation."""
    expected = Convention(convention).matrix @ matrix(rotation) @ np.array(v)
    for kind in (CameraFrame, LaserScan, PointCloud):
        record = object.__new__(kind)
        pose = stored_pose(convention, kind, rotation=rotation)
        object.__setattr__(record, 'pose', pose)
        object.__setattr__(record, 'convention', convention)
        np.testing.assert_allclose(record.direction(v), expected, atol=1e-9)


def test_a_session_that_does_not_say_its_convention(tmp_path):
    write_sensors(tmp_path, 'camera', 1, [frame_record(1, 0)])
    write_sensors(tmp_path, 'lidar', 1, [cloud_record(1, 0, [(1, 2, 3)])])
    session = open_session(tmp_path)
    with pytest.raises(ReadError, match='pose_convention'):
        session.camera('front')[0].direction((0, 0, 1))
    with pytest.raises(ReadError, match='pose_convention'):
        list(session.pairs())
    # Points need nothing but the record.
    np.testing.assert_allclose(session.lidar('top')[0].scene_points(), [(0.001, 0.002, 0.003)])


# Pairs


def test_pairs_are_the_motion_since_the_record_before(tmp_path):
    # 1 m/s along x, then a left turn on the spot, then 1 m along the new heading (y).
    write(tmp_path, 'gaze', 1, 'properties', body('gaze', 1, [], properties=PROPERTIES))
    rule = Convention('gltf_authored')

    def placed(seconds, position, rotation=(0, 0, 0, 1.0)):
        return pose(seconds) | {
            'p': rule.position(position).tolist(),
            'r': rule.pose_rotation(rotation).tolist(),
        }

    write(
        tmp_path,
        'gaze',
        2,
        'pose',
        [
            placed(1, (0, 0, 0)),
            placed(2, (1, 0, 0)),
            placed(3, (1, 0, 0), LEFT),
            placed(4, (1, 1, 0), LEFT),
        ],
    )
    times = (0, 1.5, 2, 3, 4, 5)
    write_sensors(tmp_path, 'camera', 1, [frame_record(t, n) for n, t in enumerate(times)])
    session = open_session(tmp_path)
    found = list(session.pairs())
    assert [record.seq for _, record in found] == [2, 3, 4]
    ahead, turn, ahead_again = (motion for motion, _ in found)
    assert (ahead.start, ahead.end) == (at(1.5), at(2))
    np.testing.assert_allclose(ahead.translation, (0.5, 0, 0), atol=1e-12)
    np.testing.assert_allclose(ahead.rotation, (0, 0, 0, 1), atol=1e-12)
    np.testing.assert_allclose(turn.translation, (0, 0, 0), atol=1e-12)
    np.testing.assert_allclose(turn.rotation, LEFT, atol=1e-12)
    np.testing.assert_allclose(ahead_again.translation, (1, 0, 0), atol=1e-12)
    everything = list(session.pairs(bare=True))
    assert [record.seq for _, record in everything] == [0, 1, 2, 3, 4, 5]
    assert [motion is None for motion, _ in everything] == [True, True, False, False, False, True]


def test_pairs_of_a_session_without_sensors_or_poses(tmp_path):
    write(tmp_path, 'gaze', 1, 'properties', body('gaze', 1, [], properties=PROPERTIES))
    write(tmp_path, 'events', 1, 'events', [event('a', 1)])
    assert list(open_session(tmp_path).pairs(bare=True)) == []
    write_sensors(tmp_path, 'camera', 1, [frame_record(1, 0), frame_record(2, 1)])
    session = open_session(tmp_path)
    assert list(session.pairs()) == []
    assert [motion for motion, _ in session.pairs(bare=True)] == [None, None]
