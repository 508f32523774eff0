"""Cameras and lidars through the recorder, read back from the parts that it wrote."""

import itertools
import json
import subprocess
import sys
import threading

import numpy as np
import pytest
from picture_files import FILES
from recording_rig import WALL, S
from sensor_rig import FRONT, TOP, SensorRig, camera_info, cloud, image, jpeg, scan
from test_compressed_images import memory_mib, memory_mib_from_now

from cognitive3d_ros import __version__
from cognitive3d_ros.conventions import CONVENTIONS, Convention
from cognitive3d_ros.counters import Count, Drop, Fate, LeftOut
from cognitive3d_ros.errors import ParameterError
from cognitive3d_ros.quaternions import multiply, normalised, rotate
from cognitive3d_ros.recording import recorder as recorder_module
from cognitive3d_ros.recording.inputs import Publication
from cognitive3d_ros.wire.clouds import read

MS = 1_000_000
LEVEL = (0.0, 0.0, 0.0, 1.0)
OPTICAL = (-0.5, 0.5, -0.5, 0.5)  # an optical frame that looks along its parent's x
STATIC = ('front_optical_frame', 'front', 'lidar', 'laser')


@pytest.fixture
def rig(tmp_path):
    rigs = []

    def make(*, robot=True, **params):
        it = SensorRig(tmp_path / f'spool{len(rigs)}', **{**FRONT, **TOP, **params})
        rigs.append(it)
        for frame in STATIC:
            rotation = OPTICAL if 'optical' in frame else LEVEL
            it.tf.set_transform('base_link', frame, 0, (0.5, 0.0, 1.0), rotation, static=True)
        if robot:
            it.robot(0.0, at=it.clocks.ros_ns - S)
            it.robot(0.0)
        return it

    yield make
    for each in rigs:
        each.close()


def end(it):
    it.recorder.end_session('test')


# One frame, one scan


@pytest.mark.rule(13, 15, 71, 72, 74, 75)
def test_a_frame(rig):
    it = rig()
    it.recorder.start_session()
    it.run(1.0, robot=lambda t: (t,))
    stamp_ns = it.clocks.ros_ns - 30 * MS
    it.send('camera.front.info', camera_info())
    it.send('camera.front', jpeg(stamp_ns=stamp_ns))
    end(it)
    (frame,) = it.frames('front')
    assert frame.camera_id == 'front'
    assert frame.time_ms == (WALL + S - 30 * MS) // MS
    assert frame.seq == 0
    assert frame.frame_id == 'front_optical_frame'
    assert (frame.format, frame.width, frame.height) == ('jpeg', 48, 32)
    assert frame.data == FILES['JPEG']
    assert frame.hfov_degrees == 0.0  # that info was of another picture: 16 to 9, not 3 to 2


@pytest.mark.rule(75)
def test_the_field_of_view_is_that_of_the_pictures_own_info(rig):
    """Of a lens that zooms; the info of a picture may come after it."""
    it = rig()
    it.recorder.start_session()
    now = it.clocks.ros_ns
    it.send('camera.front', image(stamp_ns=now))
    it.settle()
    it.clocks.advance(100 * MS)
    it.send('camera.front.info', camera_info(640.0, stamp_ns=now + 100 * MS))
    it.send('camera.front', image(stamp_ns=now + 100 * MS))  # tf has not come so far yet
    it.settle()
    it.send('camera.front.info', camera_info(1280.0, stamp_ns=now + 110 * MS))
    it.robot(0.0)
    it.recorder.poll()
    end(it)
    first, second = it.frames('front')
    assert (first.hfov_degrees, first.vfov_degrees) == (0.0, 0.0)
    assert second.hfov_degrees == pytest.approx(90.0, abs=1e-4)
    assert second.vfov_degrees == pytest.approx(58.7155, abs=1e-3)


def test_a_picture_waits_for_its_info_but_not_for_long(rig):
    it = rig()
    it.recorder.start_session()
    start = it.clocks.ros_ns
    it.robot(0.0, at=start + S)
    it.send('camera.front.info', camera_info(640.0, stamp_ns=start))
    for info_comes in (True, False):
        it.clocks.advance(100 * MS)
        stamp_ns = it.clocks.ros_ns
        it.send('camera.front', image(stamp_ns=stamp_ns))
        it.settle()
        assert 0 < it.recorder.poll() <= 10 * MS
        assert len(it.recorder._session.sensors._sensors['camera.front'].tickets) == 1
        if info_comes:
            it.send('camera.front.info', camera_info(320.0, stamp_ns=stamp_ns))
        else:
            it.clocks.advance(50 * MS)
        it.recorder.poll()
        assert not it.recorder._session.sensors._sensors['camera.front'].tickets
    end(it)
    own, before = it.frames('front')
    assert own.hfov_degrees == pytest.approx(2 * np.degrees(np.arctan2(640, 320)), abs=1e-3)
    assert before.hfov_degrees == own.hfov_degrees


def test_an_info_from_before_the_session_is_known_in_it(rig):
    it = rig()
    it.send('camera.front.info', camera_info())
    it.recorder.start_session()
    it.send('camera.front', image())
    end(it)
    assert it.frames('front')[0].hfov_degrees == pytest.approx(90.0, abs=1e-4)


@pytest.mark.rule(71, 78, 79, 80)
def test_a_scan_and_a_cloud(rig):
    ranges = [1.0, float('inf'), float('nan'), 0.05]
    it = rig(
        **{
            'lidars': ['top', 'low'],
            'lidar.low.topic': '/scan',
            'lidar.low.rate_hz': 0.0,
            'lidar.top.pointcloud.voxel_leaf_mm': 0,
        }
    )
    it.recorder.start_session()
    for _ in range(2):
        it.send('lidar.low', scan(ranges))
        it.send('lidar.top', cloud([[1, 2, 3]]))
    end(it)
    low, top = it.scans('low'), it.scans('top')
    assert [record.seq for record in low] == [record.seq for record in top] == [0, 1]
    assert low[0].frame_id == 'laser'
    assert top[0].frame_id == 'lidar'
    assert low[0].time_ms == WALL // MS
    assert low[0].scan.ranges.tobytes() == np.array(ranges, '<f4').tobytes()
    assert low[0].scan.angle_min == -1.5
    assert top[0].scan.point_count == 1


# Poses

TURN = normalised((0.1, -0.2, 0.3, 0.9))
POINTS = np.array([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 3.0], [4.0, -5.0, 6.0]])


@pytest.mark.rule(24, 73, 87, 92)
@pytest.mark.parametrize('convention', CONVENTIONS)
def test_a_stored_point_lies_where_tf_has_it(rig, convention):
    it = rig(
        **{
            'pose_convention': convention,
            'lidar.top.pointcloud.voxel_leaf_mm': 0,
            'lidar.top.pointcloud.position': 'float32',
        }
    )
    it.clocks.advance(S)
    it.robot(3.0, -2.0, 0.5, TURN)
    it.recorder.start_session()
    it.send('lidar.top', cloud(POINTS))
    end(it)
    (record,) = it.scans('top')
    stored = read(record.scan).positions
    position, rotation = record.pose[:3], record.pose[3:]
    in_scene = [np.add(rotate(rotation, tuple(map(float, p))), position) for p in stored]
    # By tf, then by the session's map of positions.
    wanted = [
        np.add(rotate(TURN, np.add(point, (0.5, 0.0, 1.0))), (3.0, -2.0, 0.5)) for point in POINTS
    ]
    wanted = Convention(convention).position(np.array(wanted))
    assert sorted(map(tuple, np.round(in_scene, 4))) == sorted(map(tuple, np.round(wanted, 4)))


@pytest.mark.rule(87, 92)
@pytest.mark.parametrize('convention', CONVENTIONS)
@pytest.mark.parametrize('position', ['float32', 'int16_mm'])
def test_a_real_sweep_lies_where_tf_has_it(rig, shared_data, convention, position):
    """Read back, and moved by the record's own pose alone."""
    sweep = np.load(shared_data / 'hdl32_sweep.npz')['points']
    xyz = np.stack([sweep[name] for name in 'xyz'], axis=1)
    it = rig(
        **{
            'pose_convention': convention,
            'lidar.top.pointcloud.voxel_leaf_mm': 0,
            'lidar.top.pointcloud.position': position,
        }
    )
    it.clocks.advance(S)
    it.robot(3.0, -2.0, 0.5, TURN)
    it.recorder.start_session()
    it.send('lidar.top', cloud(xyz))
    end(it)
    (record,) = it.scans('top')
    returned = xyz[np.abs(xyz).max(axis=1) > 0]
    reach = np.abs(np.rint(1000 * returned.astype(float))).max(axis=1)
    kept = returned if position == 'float32' else returned[reach <= 32_767]
    assert len(kept) < len(returned) or position == 'float32'
    left_out = it.ledger.value((LeftOut.OUT_OF_RANGE, 'lidar.top'))
    assert left_out == len(returned) - len(kept)
    # In ROS axes, by matrices; then by the session's map. Each stored point is the nearest of one of them.
    turn = np.array([rotate(TURN, axis) for axis in np.eye(3)]).T
    on_robot = kept.astype(float) + np.array((0.5, 0.0, 1.0))
    wanted = on_robot @ turn.T + np.array((3.0, -2.0, 0.5))
    wanted = Convention(convention).position(wanted)
    stored = read(record.scan).positions.astype(float)
    q = record.pose[3:]
    drawn = stored @ np.array([rotate(q, axis) for axis in np.eye(3)]) + record.pose[:3]
    # Both in the order of what is stored: up axis first, then the later of the other two.
    scene = Convention(convention).position(kept.astype(float))
    steps = scene if position == 'float32' else np.rint(1000 * scene)
    up = 2 if convention == 'rep103' else 1
    later, earlier = (axis for axis in (2, 1, 0) if axis != up)
    order = np.lexsort((steps[:, earlier], steps[:, later], steps[:, up]))
    error = np.abs(drawn - wanted[order]).max()
    assert error < (1e-4 if position == 'float32' else 1.1e-3)


@pytest.mark.rule(92)
@pytest.mark.parametrize('convention', CONVENTIONS)
def test_a_scans_rays_lie_where_tf_has_them(rig, convention):
    """By the scan's own rule; drawn with that of clouds they do not, where the map is a reflection."""
    it = rig(pose_convention=convention)
    it.clocks.advance(S)
    it.robot(3.0, -2.0, 0.5, TURN)
    it.recorder.start_session()
    it.send('lidar.top', scan([2.0, 3.0, 4.0, 5.0]))
    end(it)
    (record,) = it.scans('top')
    angles = -1.5 + record.scan.angle_increment * np.arange(4)
    rays = np.stack([np.cos(angles), np.sin(angles), 0 * angles], axis=1) * [[2], [3], [4], [5]]
    wanted = [np.add(rotate(TURN, np.add(ray, (0.5, 0.0, 1.0))), (3.0, -2.0, 0.5)) for ray in rays]
    wanted = Convention(convention).position(np.array(wanted))
    position, rotation = record.pose[:3], record.pose[3:]
    drawn = [np.add(rotate(rotation, tuple(ray)), position) for ray in rays]
    assert np.abs(drawn - wanted).max() < 1e-5
    as_cloud = Convention(convention).object_rotation(TURN)
    drawn = [np.add(rotate(tuple(as_cloud), tuple(ray)), position) for ray in rays]
    assert (np.abs(drawn - wanted).max() < 1e-5) == (convention == 'rep103')


@pytest.mark.rule(92)
@pytest.mark.parametrize('convention', CONVENTIONS)
@pytest.mark.parametrize(
    ('frame', 'mounted', 'look', 'named'),
    [
        ('front_optical_frame', OPTICAL, (0.0, 0.0, 1.0), 'optical_forward_z'),
        ('front', LEVEL, (1.0, 0.0, 0.0), 'body_forward_x'),
    ],
)
def test_a_camera_looks_where_tf_has_it_look(rig, convention, frame, mounted, look, named):
    it = rig(pose_convention=convention)
    it.clocks.advance(S)
    it.robot(3.0, -2.0, 0.5, TURN)
    it.recorder.start_session()
    it.send('camera.front', jpeg(frame))
    end(it)
    (record,) = it.frames('front')
    maps = Convention(convention)
    stored = rotate(record.pose[3:], tuple(map(float, maps.position(look))))
    wanted = maps.position(rotate(multiply(TURN, mounted), look))
    assert stored == pytest.approx(tuple(wanted), abs=1e-6)
    # Which is along the robot's own x.
    assert wanted == pytest.approx(maps.position(rotate(TURN, (1.0, 0.0, 0.0))), abs=1e-6)
    assert it.properties()['c3d.ros.camera.front.convention'] == named


@pytest.mark.rule(73)
def test_the_pose_is_that_of_the_stamp_between_two_transforms(rig):
    it = rig()
    it.recorder.start_session()
    start = it.clocks.ros_ns
    it.robot(1.0, at=start + 100 * MS)
    it.clocks.advance(150 * MS)
    it.send('camera.front', jpeg(stamp_ns=start + 25 * MS))
    end(it)
    (frame,) = it.frames('front')
    assert frame.pose.px == pytest.approx(-0.75, abs=1e-6)  # 0.25 m, and 0.5 m to the camera


@pytest.mark.rule(73)
def test_a_stamp_ahead_of_tf_waits_for_it(rig):
    it = rig()
    it.recorder.start_session()
    start = it.clocks.ros_ns
    it.clocks.advance(120 * MS)
    it.send('camera.front', jpeg(stamp_ns=start + 120 * MS))
    it.settle()
    it.recorder.poll()
    assert it.fates('camera.front') == {'received': 1}
    it.clocks.advance(80 * MS)
    it.robot(2.0)
    it.recorder.poll()
    assert it.fates('camera.front') == {'received': 1, 'stored': 1}
    end(it)
    (frame,) = it.frames('front')
    assert frame.pose.px == pytest.approx(-1.7, abs=1e-6)
    assert frame.time_ms == (WALL + 120 * MS) // MS


@pytest.mark.rule(73)
def test_without_a_look_up_nothing_is_stored_but_counted(rig):
    it = rig()
    it.recorder.start_session()
    it.clocks.advance(S)
    it.robot(0.0)
    it.send('camera.front', jpeg('nowhere'))
    it.send('camera.front', jpeg(''))
    it.send('camera.front', jpeg(stamp_ns=it.clocks.ros_ns - 30 * S))  # before all that tf knows
    it.send('camera.front', jpeg(stamp_ns=it.clocks.ros_ns + 900 * MS))  # tf never gets there
    assert it.fates('camera.front') == {'received': 4, 'pose_failures': 3}
    it.clocks.advance(499 * MS)
    it.recorder.poll()
    assert it.fates('camera.front') == {'received': 4, 'pose_failures': 3}
    it.clocks.advance(1 * MS)
    it.recorder.poll()
    assert it.fates('camera.front') == {'received': 4, 'pose_failures': 4}
    end(it)
    assert it.frames('front') == []
    assert 'tf does not know one of the two' in it.log.of('warning')[0]


def test_a_transform_of_no_usable_numbers(rig):
    it = rig()
    it.recorder.start_session()
    it.clocks.advance(S)
    it.robot(1e300)
    it.send('camera.front', jpeg())
    end(it)
    assert it.fates('camera.front') == {'received': 1, 'pose_failures': 1}


@pytest.mark.rule(16)
@pytest.mark.parametrize('age_s', [None, -1.5, 3700])
def test_a_stamp_that_is_not_believed_is_the_arrival_in_place_and_pose(rig, age_s):
    it = rig()
    it.recorder.start_session()
    it.clocks.advance(S)
    it.robot(4.0)
    stamp_ns = 0 if age_s is None else it.clocks.ros_ns - round(age_s * S)
    it.send('camera.front', jpeg(stamp_ns=stamp_ns))
    end(it)
    (frame,) = it.frames('front')
    assert frame.time_ms == (WALL + S) // MS
    assert frame.pose.px == pytest.approx(-4.5)
    assert it.ledger.value(Count.STAMP_FALLBACKS) == (age_s is not None)


@pytest.mark.rule(11, 13)
def test_a_frame_may_precede_the_session_and_is_rounded_to_milliseconds(rig):
    it = rig()
    it.recorder.start_session()
    it.clocks.advance(10 * MS)
    it.robot(0.0)
    for age_us in (200_000, 10_501, 10_499):
        it.send('camera.front', jpeg(stamp_ns=it.clocks.ros_ns - age_us * 1000))
    end(it)
    times = [frame.time_ms - WALL // MS for frame in it.frames('front')]
    assert times == [-190, -1, 0]


@pytest.mark.rule(4)
def test_records_move_with_a_session_whose_id_was_moved(rig):
    it = rig()
    for _ in range(3):
        it.recorder.start_session()
        it.send('camera.front', jpeg())
        it.settle()
    end(it)
    ids = sorted(part[3].session_id for part in it.parts() if part[0] == 'camera')
    assert [it.frames('front', one)[0].time_ms for one in ids] == [
        int(one.split('_')[0]) * 1000 for one in ids
    ]
    assert len(set(ids)) == 3


# Order, numbers, parts


@pytest.mark.rule(72)
def test_seq_counts_what_is_stored(rig):
    it = rig()
    it.recorder.start_session()
    for index in range(12):
        data = b'bad' if index % 3 == 1 else FILES['JPEG']
        it.send('camera.front', jpeg('nowhere' if index % 4 == 3 else 'front', data=data))
        it.settle()
    end(it)
    frames = it.frames('front')
    assert [frame.seq for frame in frames] == list(range(len(frames)))
    fates = it.fates('camera.front')
    assert fates == {'received': 12, 'stored': 6, 'pose_failures': 3, 'decode_failures': 3}


@pytest.mark.rule(72)
def test_records_are_stored_in_the_order_in_which_they_arrived(rig):
    """One that waits for tf is not overtaken by those that came after it."""
    it = rig()
    it.recorder.start_session()
    start = it.clocks.ros_ns
    it.clocks.advance(50 * MS)
    for offset_ms in (50, -10, 40, -20):
        it.send('camera.front', jpeg(stamp_ns=start + offset_ms * MS))
        it.settle()
    assert it.fates('camera.front') == {'received': 4}
    it.clocks.advance(50 * MS)
    it.robot(0.0)
    it.recorder.poll()
    end(it)
    times = [frame.time_ms - WALL // MS for frame in it.frames('front')]
    assert times == [50, -10, 40, -20]


@pytest.mark.rule(2, 6, 76, 77, 94)
def test_parts_are_numbered_for_each_stream_of_each_session(rig):
    it = rig(
        **{'cameras': ['front', 'rear'], 'camera.rear.topic': '/rear', 'camera.rear.rate_hz': 0.0}
    )
    ids = []
    for _ in range(2):
        ids.append(it.recorder.start_session())
        for _ in range(3):
            it.clocks.advance(6 * S)  # a part closes after 5 s
            it.robot(0.0)
            for source in ('camera.front', 'camera.rear'):
                it.send(source, jpeg())
            it.send('lidar.top', scan([1.0]))
            it.settle()
            it.recorder.flush()
        end(it)
    for session_id in ids:
        for stream, decoded in (('camera', 'frames'), ('lidar', 'scans')):
            bodies = it.bodies(stream, session_id)
            assert [body.part for body in bodies] == [1, 2, 3]
            assert {body.session_id for body in bodies} == {session_id}
            assert {body.device_id for body in bodies} == {'rover-07'}
            assert {body.scene_id for body in bodies} == {it.config.scene_id}
            assert {body.scene_version for body in bodies} == {3}
            assert {body.sdk_version for body in bodies} == {__version__}
            assert all(
                len(getattr(body, decoded)) == (2 if stream == 'camera' else 1) for body in bodies
            )
        # Each counter is fresh in each session.
        for camera in ('front', 'rear'):
            assert [frame.seq for frame in it.frames(camera, session_id)] == [0, 1, 2]
        assert [record.seq for record in it.scans('top', session_id)] == [0, 1, 2]


def test_a_part_closes_at_its_size(rig):
    it = rig()
    it.recorder.start_session()
    for _ in range(5):
        it.send('camera.front', jpeg(data=FILES['JPEG'] + bytes(1 << 20)))
        it.settle()
    it.recorder.flush()
    end(it)
    assert [len(body.frames) for body in it.bodies('camera')] == [4, 1]


# What becomes of messages


@pytest.mark.rule(44)
def test_health_of_cameras_and_lidars(rig):
    it = rig(**{'camera.front.rate_hz': 2.0, 'lidar.top.pointcloud.position': 'int16_mm'})
    it.recorder.start_session()
    far = cloud([[40.0, 0.0, 0.0], [1.0, 1.0, 1.0], [0.0, 0.0, 0.0], [np.nan, 0.0, 0.0]])
    for _ in range(60):
        it.clocks.advance(100 * MS)
        it.robot(0.0)
        it.send('camera.front', jpeg())
        it.send('lidar.top', far)
        it.settle()
        it.recorder.poll()
    end(it)
    at_five, last = (
        {
            name: it.series(f'c3d.{name}')[index][1]
            for name in (
                *('camera.front.received', 'camera.front.frames', 'camera.front.decimated'),
                *('camera.front.dropped', 'camera.front.decode_failures'),
                *('camera.front.pose_failures', 'lidar.top.received', 'lidar.top.scans'),
                *('lidar.top.decimated', 'lidar.top.dropped', 'lidar.top.decode_failures'),
                *('lidar.top.pose_failures', 'lidar.top.out_of_range'),
            )
        }
        for index in (0, -1)
    )
    assert at_five['camera.front.received'] == 50
    assert last['camera.front.received'] == 60
    assert last['camera.front.frames'] in (12, 13)
    assert last['camera.front.frames'] + last['camera.front.decimated'] == 60
    assert last['lidar.top.scans'] == last['lidar.top.out_of_range'] == 60
    assert it.series('c3d.dropped_records')[-1][1] == 0
    assert any('1 of 2 points were left out' in line for line in it.log.of('warning'))


def test_before_a_frame_is_chosen_records_are_dropped(rig):
    it = rig(robot=False)
    it.recorder.start_session()
    it.send('camera.front', jpeg())
    it.robot(0.0)
    it.send('camera.front', jpeg())
    end(it)
    assert it.fates('camera.front') == {'received': 2, 'stored': 1, 'dropped': 1}
    assert it.ledger.value((Drop.NO_REFERENCE_FRAME, 'camera.front')) == 1
    assert it.series('c3d.dropped_records')[-1][1] == 1


def test_messages_while_no_session_is_active_are_not_counted(rig):
    it = rig()
    assert not it.send('camera.front', jpeg())
    it.recorder.start_session()
    end(it)
    assert not it.send('camera.front', jpeg())
    assert it.fates('camera.front') == {}


def test_what_cannot_be_read_is_counted_and_said_once(rig):
    it = rig()
    it.recorder.start_session()
    for _ in range(5):
        it.send('camera.front', jpeg(data=b'garbage'))
        it.send('lidar.top', scan([1.0], angle_min=None))
        it.settle()
    end(it)
    for source in ('camera.front', 'lidar.top'):
        assert it.fates(source) == {'received': 5, 'decode_failures': 5}
    said = [line for line in it.log.of('warning') if line.startswith('camera.front: neither JPEG')]
    assert len(said) == 1


def test_a_frame_that_is_too_large_is_dropped(rig):
    it = rig()
    it.recorder.start_session()
    it.send('camera.front', jpeg(data=FILES['JPEG'] + bytes(32 << 20)))
    it.send('camera.front', jpeg())
    end(it)
    assert it.fates('camera.front') == {'received': 2, 'stored': 1, 'dropped': 1}
    assert it.ledger.value((Drop.TOO_LARGE, 'camera.front')) == 1
    assert it.frames('front')[0].seq == 0


def test_intensities_of_another_length_are_left_out_and_counted(rig):
    it = rig(**{'lidar.top.laserscan.intensities': True})
    it.recorder.start_session()
    it.send('lidar.top', scan([1.0, 2.0], intensities=np.array([7.0], np.float32)))
    end(it)
    assert it.scans('top')[0].scan.intensities.size == 0
    assert it.ledger.value((LeftOut.INTENSITIES, 'lidar.top')) == 1


class Gate:
    """Holds what workers make until it is opened."""

    def __init__(self, monkeypatch, it, source='camera.front'):
        self.began = threading.Semaphore(0)
        self.open = threading.Event()
        make = it.inputs[source]._make

        def held(*args):
            self.began.release()
            assert self.open.wait(30)
            return make(*args)

        monkeypatch.setattr(it.inputs[source], '_make', held)


def test_a_full_queue_drops_the_oldest(rig, monkeypatch):
    it = rig()
    gate = Gate(monkeypatch, it)
    it.recorder.start_session()
    it.send('camera.front', jpeg())
    assert gate.began.acquire(timeout=30)
    for index in range(10):
        it.clocks.advance(MS)
        it.robot(float(index))
        it.send('camera.front', jpeg())
    assert it.ledger.value((Drop.QUEUE_FULL, 'camera.front')) == 6
    gate.open.set()
    end(it)
    assert it.fates('camera.front') == {'received': 11, 'stored': 5, 'dropped': 6}
    times = [frame.time_ms - WALL // MS for frame in it.frames('front')]
    assert times == [0, 7, 8, 9, 10]
    assert it.closes('camera.front')


def test_far_more_than_can_be_encoded(rig):
    """4.8 GB of pictures as fast as they can be handed over: poses keep their rate, memory its size."""
    it = rig()
    it.recorder.start_session()
    before_mib = memory_mib_from_now()
    for index in range(300):
        it.clocks.advance(10 * MS)
        it.robot(index / 100)
        it.send('camera.front', image(width=4000, height=4000))
        it.recorder.poll()
    end(it)
    assert it.closes('camera.front')
    fates = it.fates('camera.front')
    assert fates['received'] == 300
    assert fates['dropped'] > 150
    assert fates['stored'] == len(it.frames('front')) >= 1
    times = [pose['time'] for pose in it.poses()]
    assert times == pytest.approx([WALL / S + n / 10 for n in range(31)])
    # Four that wait, one at work, and what is made of them.
    assert memory_mib('VmHWM') < before_mib + 400


def test_what_is_at_work_when_a_session_ends_is_waited_for(rig, monkeypatch):
    it = rig()
    gate = Gate(monkeypatch, it)
    it.recorder.start_session()
    for _ in range(3):
        it.send('camera.front', jpeg())
    assert gate.began.acquire(timeout=30)
    ender = threading.Thread(target=it.recorder.start_session)  # which ends this one
    ender.start()
    gate.open.set()
    ender.join(30)
    end(it)
    first, second = sorted((it.root / 'sessions').iterdir())
    assert len(it.frames('front', first.name)) == 3
    assert it.frames('front', second.name) == []
    assert it.series('c3d.camera.front.frames', first.name)[-1][1] == 3


def test_a_worker_that_hangs_holds_no_session_up(rig, monkeypatch):
    monkeypatch.setattr(recorder_module, '_DRAIN_S', 0.05)
    it = rig()
    gate = Gate(monkeypatch, it)
    it.recorder.start_session()
    for _ in range(3):
        it.send('camera.front', jpeg())
    assert gate.began.acquire(timeout=30)
    end(it)
    assert it.fates('camera.front') == {'received': 3, 'dropped': 3}
    assert it.ledger.value((Drop.SESSION_ENDED, 'camera.front')) == 3
    assert it.series('c3d.camera.front.dropped')[-1][1] == 3
    gate.open.set()
    it.settle()
    assert it.fates('camera.front') == {'received': 3, 'dropped': 3}


def test_a_message_that_is_handed_over_after_its_session(rig):
    it = rig()
    it.recorder.start_session()
    arrival = it.inputs['camera.front'].due()
    end(it)
    it.clocks.advance(S)
    it.inputs['camera.front'].take(jpeg(), arrival)
    it.recorder.start_session()
    it.inputs['camera.front'].take(jpeg(), arrival)
    assert it.ledger.value((Drop.SESSION_ENDED, 'camera.front')) == 2
    end(it)
    assert it.frames('front') == []


def test_what_waits_for_tf_is_bounded(rig):
    """At 1 kHz, with a tf that never comes: the oldest are given up before their time."""
    it = rig()
    it.recorder.start_session()
    for _ in range(200):
        it.clocks.advance(MS)
        it.send('camera.front', jpeg(stamp_ns=it.clocks.ros_ns))
        it.settle()
    fates = it.fates('camera.front')
    assert fates['received'] - fates['pose_failures'] <= 65
    it.robot(0.0)
    end(it)
    assert it.closes('camera.front')
    assert it.fates('camera.front')['stored'] >= 1


def test_a_clock_that_jumps_back_gives_waiting_records_their_last_chance(rig):
    it = rig(use_sim_time=True, ros_ns=100 * S)
    it.recorder.start_session()
    it.send('camera.front', jpeg(stamp_ns=it.clocks.ros_ns + 10 * MS))
    it.settle()
    it.clocks.ros_ns = 5 * S
    it.recorder.clock_jumped()
    assert it.fates('camera.front') == {'received': 1, 'pose_failures': 1}
    it.robot(0.0)
    it.send('camera.front', jpeg(stamp_ns=5 * S))
    end(it)
    assert it.fates('camera.front') == {'received': 2, 'pose_failures': 1, 'stored': 1}


def test_a_spool_that_is_full_refuses_and_counts(rig, monkeypatch):
    it = rig()
    it.recorder.start_session()
    it.send('camera.front', jpeg())
    it.settle()
    monkeypatch.setattr(it.spool, 'full', True)
    it.send('camera.front', jpeg())
    it.settle()
    monkeypatch.undo()
    it.send('camera.front', jpeg())
    end(it)
    assert [frame.seq for frame in it.frames('front')] == [0, 1]
    assert it.ledger.value((Drop.SPOOL_FULL, 'camera.front')) == 1
    assert it.closes('camera.front')


def test_offline_nothing_is_dropped(rig, monkeypatch):
    it = rig(live=False)
    it.recorder.start_session()
    for index in range(300):
        it.clocks.advance(10 * MS)
        it.robot(float(index))
        it.send('camera.front', image(width=640, height=480))
        it.recorder.poll()
    end(it)
    assert it.fates('camera.front') == {'received': 300, 'stored': 300}
    xs = [-frame.pose.px for frame in it.frames('front')]
    assert xs == pytest.approx([index + 0.5 for index in range(300)])


def test_everything_at_once_adds_up(rig):
    """All that can become of messages, at random, in several sessions and from several threads."""
    it = rig(
        **{
            'cameras': ['front', 'rear'],
            'camera.rear.topic': '/rear',
            'camera.rear.rate_hz': 20.0,
            'lidar.top.rate_hz': 5.0,
        }
    )
    rng = np.random.default_rng(11)
    sources = ('camera.front', 'camera.rear', 'lidar.top')
    stop = threading.Event()

    def poll():
        while not stop.is_set():
            it.recorder.poll()
            it.recorder.flush()

    poller = threading.Thread(target=poll)
    poller.start()
    for _ in range(3):
        it.recorder.start_session()
        for _ in range(300):
            it.clocks.advance(int(rng.integers(1, 30)) * MS)
            if rng.random() < 0.7:
                it.robot(float(rng.random()))
            source = sources[rng.integers(3)]
            frame = ('front_optical_frame', 'lidar', 'nowhere', '')[rng.integers(4)]
            stamp_ns = it.clocks.ros_ns + int(rng.integers(-200, 100)) * MS
            if source == 'lidar.top':
                it.send(source, cloud(rng.uniform(-50, 50, (100, 3)), frame, stamp_ns))
            else:
                data = (FILES['JPEG'], b'garbage', b'', FILES['JPEG'][:300])[rng.integers(4)]
                it.send(source, jpeg(frame, stamp_ns, data))
        if rng.random() < 0.5:
            it.recorder.end_session('test')
    stop.set()
    poller.join(30)
    if it.recorder.session_id is not None:
        end(it)
    for source in sources:
        assert it.closes(source), it.fates(source)
        assert it.ledger.value((Fate.STORED, source)) > 0
    stored = sum(len(it.frames(name)) for name in ('front', 'rear')) + len(it.scans('top'))
    assert stored == sum(it.ledger.value((Fate.STORED, source)) for source in sources)
    for session in (it.root / 'sessions').iterdir():
        for stream in ('camera', 'lidar'):
            numbers = [body.part for body in it.bodies(stream, session.name)]
            assert numbers == list(range(1, len(numbers) + 1))


# Properties


@pytest.mark.rule(59, 82)
def test_properties_of_cameras_and_lidars(rig):
    it = rig(**{'camera.front.rate_hz': 5.0, 'lidar.top.pointcloud.color': 'rgb565'})
    it.recorder.start_session()
    it.send('camera.front', jpeg('/front_optical_frame'))  # as ROS 1 writes it
    it.send('lidar.top', cloud([[1, 2, 3]]))
    first = it.recorder.session_id
    second = it.recorder.start_session()
    it.clocks.advance(S)
    it.send('camera.front', jpeg('other'))
    end(it)
    properties = it.properties(first)
    assert properties['c3d.ros.cameras'] == 'front'
    assert properties['c3d.ros.lidars'] == 'top'
    camera = {
        'topic': '/front/image_raw',
        'type': 'sensor_msgs/msg/CompressedImage',
        'publisher': '/driver',
        'frame': 'front_optical_frame',
        'convention': 'optical_forward_z',
        'rate_hz': 5,
        'jpeg_quality': 80,
        'max_width': 1280,
    }
    lidar = {
        'topic': '/points',
        'type': 'sensor_msgs/msg/PointCloud2',
        'publisher': '/driver',
        'frame': 'lidar',
        'rate_hz': 0,
        'laserscan.intensities': False,
        'pointcloud.position': 'int16_mm',
        'pointcloud.color': 'rgb565',  # as asked for: this lidar has none
        'pointcloud.intensity': 'none',
        'pointcloud.voxel_leaf_mm': 50,
        'pointcloud.zstd_level': 3,
    }
    for prefix, wanted in (('c3d.ros.camera.front.', camera), ('c3d.ros.lidar.top.', lidar)):
        found = {k.removeprefix(prefix): v for k, v in properties.items() if k.startswith(prefix)}
        assert found == wanted
    assert it.scans('top')[0].scan.color == 'none'
    assert it.properties(second)['c3d.ros.camera.front.frame'] == 'other'
    assert it.properties(second)['c3d.ros.camera.front.convention'] == 'body_forward_x'


def test_properties_that_do_not_change_are_written_once(rig):
    it = rig()
    it.recorder.start_session()
    for _ in range(20):
        it.send('camera.front', jpeg())
    end(it)
    written = [
        body
        for body in it.bodies('gaze')
        if 'c3d.ros.camera.front.frame' in body.get('properties', {})
    ]
    assert len(written) == 1


def test_a_frame_can_be_set_for_a_camera_that_names_none(rig):
    it = rig(**{'camera.front.frame': 'front'})
    it.recorder.start_session()
    it.send('camera.front', jpeg(''))
    end(it)
    assert it.frames('front')[0].frame_id == 'front'


def test_types_that_are_not_recorded(rig):
    it = rig(**{'camera.front.transport': 'raw'})
    front, top = it.inputs['camera.front'], it.inputs['lidar.top']
    assert front.expects == 'sensor_msgs/msg/Image'
    assert top.expects == ''
    told = front.found(Publication('/x', 'sensor_msgs/msg/CompressedImage'))
    assert told == 'sensor_msgs/msg/CompressedImage is published: sensor_msgs/msg/Image is wanted'
    assert top.found(Publication('/x', 'std_msgs/msg/String')).startswith('std_msgs/msg/String is')
    assert 'CameraInfo is wanted' in it.inputs['camera.front.info'].found(
        Publication('/x', 'a/msg/B')
    )


# What is imported only where it is needed

_IMPORTED = """
import sys, json
from cognitive3d_ros.parameters import parse
from cognitive3d_ros.recording.recorder import Recorder
from cognitive3d_ros.recording.sensor_inputs import sensor_inputs
import cognitive3d_ros.wire.assemble
sensor_inputs(parse({'device_id': 'a', 'scene_id': 'b', 'scene_version': 1}), None)
print(json.dumps([name for name in ('cv2', 'capnp', 'rclpy', 'requests') if name in sys.modules]))
"""


def test_a_robot_without_sensors_needs_neither_opencv_nor_pycapnp():
    done = subprocess.run([sys.executable, '-c', _IMPORTED], capture_output=True, check=True)
    assert json.loads(done.stdout) == []


@pytest.mark.parametrize(
    ('modules', 'missing', 'says'),
    [
        (['wire.capnp_codec'], 'capnp', 'pycapnp cannot be imported'),
        (
            ['convert.pictures', 'convert.images', 'convert.compressed'],
            'cv2',
            'OpenCV cannot be imported',
        ),
    ],
)
def test_what_is_missing_is_said(rig, monkeypatch, modules, missing, says):
    for module in modules:
        package, _, name = f'cognitive3d_ros.{module}'.rpartition('.')
        monkeypatch.delitem(sys.modules, f'{package}.{name}')
        monkeypatch.delattr(sys.modules[package], name)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ParameterError, match=says):
        rig()


def test_sources_are_named_alike(rig):
    it = rig()
    assert sorted(it.inputs) == ['camera.front', 'camera.front.info', 'lidar.top']
    for one, other in itertools.combinations(it.inputs.values(), 2):
        assert one.topic != other.topic
