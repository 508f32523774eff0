"""The offline door: recordings become sessions."""

from __future__ import annotations

import json
import os
import random
import signal
from pathlib import Path

import numpy as np
import pytest
from bag_rig import FORMS, START, S, evo_recording, messages_of, write_bag
from husky import ODOMETRY, Odometry, hand_converted
from recording_rig import REQUIRED, Lines, Rig, Stored

from cognitive3d_ros import open_session
from cognitive3d_ros.bags import door, open_bag
from cognitive3d_ros.bags.door import record_bag
from cognitive3d_ros.cli.main import main
from cognitive3d_ros.errors import BagError, SessionError, SpoolLockedError
from cognitive3d_ros.parameters import parse
from cognitive3d_ros.recording.accounts import adds_up
from cognitive3d_ros.session.verify import Kind, verify
from cognitive3d_ros.spool import Spool

NO_TURN = (0.0, 0.0, 0.0, 1.0)
MAKE = messages_of('mcap')


def record(bag, spool, *, odom_tf=None, log=None, **params):
    """Record a recording; return the result and what was stored."""
    config = parse(
        {**REQUIRED, 'pose_convention': 'rep103', 'reference_frames': ['odom'], **params}
    )
    log = Lines() if log is None else log
    result = record_bag(bag, config, spool, odom_tf=odom_tf, log=log)
    return result, Stored(spool)


def driving(make, seconds, *, hz=50, delay=0.0, stamp_from=START, speed=1.0):
    """Return tf of a robot that drives along x with 1 m/s, received ``delay`` later."""
    return [
        (
            '/tf',
            START + n * S // hz + round(delay * S),
            make.tf(
                (
                    'odom',
                    'base_link',
                    stamp_from + n * S // hz,
                    (speed * n / hz, 0.0, 0.0),
                    NO_TURN,
                )
            ),
        )
        for n in range(round(seconds * hz) + 1)
    ]


def in_order(*parts):
    return sorted((message for part in parts for message in part), key=lambda message: message[1])


def xs(stored):
    """Return (seconds since START, x) of the pose timeline."""
    return [(round(pose['time'] - START / S, 5), pose['p'][0]) for pose in stored.poses()]


# The Husky


@pytest.mark.rule(1, 10, 14, 22, 24, 26, 27)
@pytest.mark.parametrize('convention', ['gltf_authored', 'unity', 'rep103'])
def test_the_husky_is_where_its_odometry_says(shared_data, tmp_path, convention) -> None:
    bag = shared_data / 'husky_outdoor.bag'
    result, stored = record(
        bag, tmp_path / 'spool', odom_tf=ODOMETRY, pose_convention=convention, device_id='husky'
    )
    assert not result.lossy
    assert result.session_id == '1432235498_husky'
    poses = stored.poses()
    times = np.array([pose['time'] for pose in poses])
    # 395.3 s at 10 Hz, every tick at its own time; at the first one there was no tf yet.
    assert len(poses) == result.pose_samples == 3953
    assert result.pose_failures == 0
    np.testing.assert_allclose(np.diff(times), 0.1, atol=1.1e-5)
    odometry = Odometry(bag)
    covered = odometry.covers(times)
    assert covered.sum() >= len(poses) - 5
    p, r = hand_converted(convention, *odometry.at(times[covered]))
    stored_p = np.array([pose['p'] for pose in poses])[covered]
    stored_r = np.array([pose['r'] for pose in poses])[covered]
    assert np.abs(stored_p - p).max() <= 2e-5
    assert np.abs(stored_r - r).max() <= 2e-5
    # It did go somewhere, and turned.
    assert np.ptp(stored_p, axis=0).max() > 100
    assert np.ptp(stored_r, axis=0).max() > 1


@pytest.mark.rule(7, 8, 54, 56)
def test_the_huskys_session(shared_data, tmp_path) -> None:
    bag = shared_data / 'husky_outdoor.bag'
    _, stored = record(bag, tmp_path / 'spool', odom_tf=ODOMETRY)
    with open_bag(bag) as opened:
        start_s, end_s = opened.facts.start_ns / S, opened.facts.end_ns / S
    first, last = stored.events()
    assert first['name'] == 'c3d.sessionStart'
    assert first['time'] == pytest.approx(start_s, abs=1e-5)
    assert last['name'] == 'c3d.sessionEnd'
    assert last['time'] == pytest.approx(end_s, abs=1e-5)
    assert last['properties'] == {
        'Reason': 'shutdown',
        'sessionlength': pytest.approx(end_s - start_s, abs=1e-5),
    }
    properties = stored.properties()
    expected = {
        'c3d.ros.source': 'husky_outdoor.bag',
        'c3d.ros.distro': 'unknown',
        'c3d.app.engine.version': 'unknown',
        'c3d.ros.rmw': 'unknown',
        'c3d.ros.domain_id': 'unset',
        'c3d.ros.discovery_range': 'unset',
        'c3d.ros.namespace': '/',
        'c3d.ros.node': 'c3d_record',
        'c3d.ros.reference_frame': 'odom',
        'c3d.ros.clock_offset_s': 0,
    }
    assert {key: properties[key] for key in expected} == expected
    # Every five seconds of the recording's time, and before the end.
    beats = [round(time_s - start_s, 3) for time_s, _ in stored.series('c3d.pose_failures')]
    assert beats == [*range(5, 400, 5), round(end_s - start_s, 3)]
    # Recorded before, the spool is the next owner's.
    Spool.open(tmp_path / 'spool').close()


@pytest.mark.rule(39, 40)
def test_the_huskys_topics_become_series(shared_data, tmp_path) -> None:
    topics = ['/imu/data', ODOMETRY, '/fix']
    bag = shared_data / 'husky_outdoor.bag'
    result, stored = record(bag, tmp_path / 'spool', odom_tf=ODOMETRY, topics=topics)
    assert (result.lossy, result.messages) == (False, 16_806)
    properties = stored.properties()
    accounts = {key: text for key, text in properties.items() if key.startswith('c3d.account.')}
    assert len(accounts) == 3
    assert sorted(int(text.split()[0]) for text in accounts.values()) == [989, 3952, 11_865]
    assert all(adds_up(text) for text in accounts.values())
    assert 'sensor_msgs/msg/Imu' in properties.values()
    # Against the recording: what was measured is what was stored, to five decimals, at its receive time.
    with open_bag(bag) as opened:
        measured = [
            (message.receive_ns / S, message.message.angular_velocity.z)
            for message in opened.messages({'/imu/data'})
        ]
    times, values = np.array(measured).T
    series = np.array(stored.series('imu.data.angular_velocity_z'))
    assert len(series) > 1000
    nearest = np.searchsorted(times, series[:, 0] - 0.001)  # messages are further apart
    np.testing.assert_allclose(series[:, 0], times[nearest], rtol=0, atol=0.51e-5)
    np.testing.assert_allclose(series[:, 1], values[nearest], rtol=0, atol=0.51e-5)


def test_what_the_parameters_name_and_the_recording_lacks_is_said(tmp_path) -> None:
    log = Lines()
    bag = write_bag(tmp_path, 'mcap', [*driving(MAKE, 1), ('/chat', START + S, MAKE.string('x'))])
    record(bag, tmp_path / 'spool', log=log, topics=['/chat', '/imu'])
    unknown, missing = log.of('warning')
    assert unknown.startswith('topic.chat (/chat): std_msgs/msg/String is published, and what to ')
    assert missing == 'topic.imu: /imu is not in run'


# Every form


@pytest.mark.parametrize('form', FORMS)
def test_every_form_becomes_the_same_session(tmp_path, form) -> None:
    make = messages_of(form)
    static = make.tf(('base_link', 'camera', 0, (0.25, 0.0, 0.5), NO_TURN))
    content = in_order(
        [('/tf_static', START, static)],
        driving(make, 3),
        [('/cognitive3d/events', START + S, make.event('picked', '{"mass": 2.5}', START + S))],
        [('/a/b/events_json', START + 2 * S, make.string('{"name": "dropped"}'))],
        [('/robot/annotations', START + S, make.annotation('comment', 'a bump', START + S // 2))],
        [('/chat', START + S, make.string('of no interest'))],
    )
    bag = write_bag(tmp_path, form, content)
    result, stored = record(bag, tmp_path / 'spool', gaze_frame='camera')
    assert not result.lossy
    assert (result.in_bag, result.messages) == (len(content), len(content) - 1)
    # When the first tick came there was no tf yet.
    assert xs(stored) == [(n / 10, n / 10 + 0.25) for n in range(1, 31)]
    assert {pose['p'][2] for pose in stored.poses()} == {0.5}
    picked, dropped = stored.event('picked'), stored.event('dropped')
    bump = stored.event('c3d.annotation')
    assert (bump['time'], bump['properties']['value']) == (START / S + 0.5, 'a bump')
    assert picked['time'] == START / S + 1
    assert picked['point'] == [1, 0, 0]  # the robot's, not the camera's
    assert picked['properties'] == {'mass': 2.5}
    assert dropped['point'] == [2, 0, 0]


@pytest.mark.parametrize('form', ['rosbag1', 'sqlite3', 'mcap'])
def test_a_lidar_in_a_recording(tmp_path, form) -> None:
    make = messages_of(form)
    static = make.tf(('base_link', 'laser', 0, (0.5, 0.0, 0.25), NO_TURN))
    scans = [
        ('/scan', START + n * S // 20 + S // 100, make.scan(START + n * S // 20, [1.0, n, 3.0]))
        for n in range(200)
    ]
    content = in_order([('/tf_static', START, static)], driving(make, 10), scans)
    spool = tmp_path / 'spool'
    params = {'lidars': ['top'], 'lidar.top.topic': 'scan', 'lidar.top.rate_hz': 0.0}
    result, _ = record(write_bag(tmp_path, form, content), spool, **params)
    assert not result.lossy
    recorded = list(open_session(spool).lidar('top'))
    assert [record.seq for record in recorded] == list(range(len(recorded)))
    # Without a reference frame there is none, and before the first transform there was no frame.
    assert len(recorded) >= 198
    for each in recorded:
        x = each.time - START / S
        assert list(each.pose) == pytest.approx([x + 0.5, 0, 0.25, 0, 0, 0, 1], abs=1e-4)
        assert each.ranges[1] == pytest.approx(20 * x, abs=1e-3)


def test_a_session_that_never_ended_is_closed_first(tmp_path) -> None:
    rig = Rig(tmp_path / 'spool')
    unended = rig.recorder.start_session()
    rig.close()
    _, stored = record(write_bag(tmp_path, 'mcap', driving(MAKE, 1)), tmp_path / 'spool')
    end = stored.event('c3d.sessionEnd', unended)
    assert end['properties']['Reason'] == 'abnormalEnd'
    assert (
        stored.event('c3d.sessionEnd', f'{START // S}_rover-07')['properties']['Reason']
        == 'shutdown'
    )


# Time


@pytest.mark.rule(27)
def test_a_tick_waits_for_tf_that_comes_late_and_not_for_ever(tmp_path) -> None:
    late = write_bag(tmp_path, 'mcap', driving(MAKE, 4, delay=0.3))
    _, stored = record(late, tmp_path / 'late')
    # The session begins with the first message, 0.3 s after the robot; each sample is exact all the same.
    exact = [round(0.3 + n / 10, 5) for n in range(1, 38)]
    assert xs(stored)[:37] == [(time_s, time_s) for time_s in exact]


def test_tf_that_comes_too_late_is_taken_as_it_is(tmp_path) -> None:
    (tmp_path / 'bag').mkdir()
    bag = write_bag(tmp_path / 'bag', 'mcap', driving(MAKE, 4, delay=0.7))
    result, stored = record(bag, tmp_path / 'spool')
    for time_s, x in xs(stored)[5:30]:
        # After half a second the newest is taken: stamped 0.7 - 0.5 s before the tick.
        assert x == pytest.approx(time_s - 0.2, abs=0.021)
    assert result.pose_failures == 0


@pytest.mark.rule(33, 35)
def test_tf_that_stops(tmp_path) -> None:
    content = [*driving(MAKE, 2), ('/chat', START + 6 * S, MAKE.string('still here'))]
    result, stored = record(write_bag(tmp_path, 'mcap', content), tmp_path / 'spool')
    times = [time_s for time_s, _ in xs(stored)]
    assert times[-1] == pytest.approx(3.0, abs=0.11)  # stale_pose_s is 1
    assert result.pose_failures == 60 - len(times)
    assert stored.series('c3d.stale_poses')[-1][1] == result.pose_failures


def test_offline_is_what_a_node_would_have_recorded(tmp_path) -> None:
    # tf arrives in bursts, late, early, out of order, and with gaps; a live recorder is polled every
    # millisecond.
    for seed in range(6):
        chance = random.Random(seed)
        content, now_ns = [], START
        while now_ns < START + 12 * S:
            now_ns += chance.choice((1, 5, 20, 20, 50, 90, 700, 1500)) * 1_000_000
            stamp_ns = now_ns - chance.choice((0, 1, 10, 40, 300, 600, -50)) * 1_000_000
            x = (stamp_ns - START) / S
            tf = MAKE.tf(('odom', 'base_link', stamp_ns, (x, 0.0, 0.0), NO_TURN))
            content.append(('/tf', now_ns, tf))
        folder = tmp_path / str(seed)
        folder.mkdir()
        rate = chance.choice((3.0, 10.0, 33.0))
        _, stored = record(
            write_bag(folder, 'mcap', content), folder / 'offline', sample_rate_hz=rate
        )
        rig = Rig(
            folder / 'live',
            pose_convention='rep103',
            reference_frames=['odom'],
            sample_rate_hz=rate,
        )
        rig.clocks.wall_ns = rig.clocks.mono_ns = rig.clocks.ros_ns = content[0][1]
        rig.recorder.start_session()
        rig.recorder.poll()
        for _, receive_ns, message in content:
            while rig.clocks.wall_ns < receive_ns:
                rig.clocks.advance(1_000_000)
                rig.recorder.poll()
            (link,) = message.transforms
            stamp, at = link.header.stamp, link.transform.translation
            stamp_ns = stamp.sec * S + stamp.nanosec
            rig.tf.set_transform('odom', 'base_link', stamp_ns, (at.x, at.y, at.z), NO_TURN)
        rig.recorder.end_session('shutdown')
        rig.close()
        assert stored.poses() == rig.poses()
        assert len(stored.poses()) > 20


@pytest.mark.rule(18)
def test_under_use_sim_time_tf_is_asked_by_the_recordings_clock(tmp_path) -> None:
    clock = [
        ('/clock', START + n * S // 100, MAKE.clock(5 * S + n * S // 100)) for n in range(301)
    ]
    before = [
        ('/chat', START - S, MAKE.string('before the clock')),
        ('/clock', START - S, MAKE.clock(0)),
    ]
    bag = write_bag(
        tmp_path, 'mcap', in_order(before, clock, driving(MAKE, 3, stamp_from=5 * S, delay=0.005))
    )
    result, stored = record(bag, tmp_path / 'spool', use_sim_time=True)
    # Wall time on the wire, from the first clock on; the clock is told every 10 ms, which is 1 cm.
    assert stored.event('c3d.sessionStart')['time'] == START / S
    assert len(xs(stored)) >= 29
    for time_s, x in xs(stored):
        assert x == pytest.approx(time_s, abs=0.0101)
    assert result.pose_failures <= 1


@pytest.mark.rule(19, 42)
def test_sim_time_on_wire_takes_ticks_in_simulated_time(tmp_path) -> None:
    # A simulator at a quarter of real time.
    clock = [
        ('/clock', START + n * S // 25, MAKE.clock(5 * S + n * S // 100)) for n in range(1201)
    ]
    tf = [
        (
            '/tf',
            START + n * S * 4 // 50,
            MAKE.tf(('odom', 'base_link', 5 * S + n * S // 50, (n / 50, 0.0, 0.0), NO_TURN)),
        )
        for n in range(601)
    ]
    bag = write_bag(tmp_path, 'mcap', in_order(clock, tf))
    result, stored = record(bag, tmp_path / 'spool', use_sim_time=True, sim_time_on_wire=True)
    assert xs(stored) == [(n / 10, n / 10) for n in range(1, 121)]
    assert result.session_s == 12.0
    assert [round(time_s - START / S, 5) for time_s, _ in stored.series('c3d.pose_failures')] == [
        5,
        10,
        12,
    ]


@pytest.mark.rule(18)
@pytest.mark.parametrize('on_wire', [False, True])
def test_a_clock_that_jumps_back(tmp_path, on_wire) -> None:
    clock, tf = [], []
    for n in range(601):
        simulated_ns = (n if n < 300 else n - 290) * S // 100 + S
        clock.append(('/clock', START + n * S // 100, MAKE.clock(simulated_ns)))
        link = ('odom', 'base_link', simulated_ns, (simulated_ns / S, 0.0, 0.0), NO_TURN)
        tf.append(('/tf', START + n * S // 100 + 1_000_000, MAKE.tf(link)))
    bag = write_bag(tmp_path, 'mcap', in_order(clock, tf))
    result, stored = record(bag, tmp_path / 'spool', use_sim_time=True, sim_time_on_wire=on_wire)
    poses = xs(stored)
    times = [time_s for time_s, _ in poses]
    assert times == sorted(times)
    assert len(poses) >= 58
    assert stored.series('c3d.clock_resets')[-1][1] == 1
    # The robot went back with the clock, and its poses with it.
    assert max(x for _, x in poses) == pytest.approx(4.2, abs=0.3)
    assert poses[-1][1] == pytest.approx(4.1, abs=0.15)
    assert result.pose_failures <= 3


def test_without_a_clock_tf_tells_the_time(tmp_path) -> None:
    log = Lines()
    bag = write_bag(tmp_path, 'mcap', driving(MAKE, 5, stamp_from=100 * S))
    _, stored = record(bag, tmp_path / 'spool', log=log, use_sim_time=True, sim_time_on_wire=True)
    assert log.of('warning') == [
        'run holds no /clock: ROS time is the newest at which tf knows where base_link is'
    ]
    assert xs(stored) == [(n / 10, n / 10) for n in range(51)]


def test_stamps_of_another_clock_are_said(tmp_path) -> None:
    bag = write_bag(tmp_path, 'mcap', driving(MAKE, 5, stamp_from=100 * S))
    result, _ = record(bag, tmp_path / 'spool')
    (problem,) = result.problems
    assert problem.startswith(
        'the first transform is stamped 1699999900.0 s before it was received'
    )
    assert result.lossy


def test_a_clock_that_was_set_is_no_time_that_passed(tmp_path) -> None:
    # Received in 1970 until somebody set the robot's clock.
    before = [
        (topic, 100 * S + n * S // 50, message)
        for n, (topic, _, message) in enumerate(driving(MAKE, 1))
    ]
    bag = write_bag(tmp_path, 'mcap', [*before, *driving(MAKE, 2)])
    result, stored = record(bag, tmp_path / 'spool')
    (problem,) = (text for text in result.problems if 'jump' in text)
    assert problem == 'the receive times jump by 1699999899 s: taken for a clock that was set'
    assert len(stored.poses()) == 30  # three seconds passed


# Frames


def test_odometry_gives_tf_only_where_there_is_none(tmp_path) -> None:
    odometry = [
        ('/odom', START + n * S // 50, MAKE.odometry(START + n * S // 50, (100.0 + n, 0.0, 0.0)))
        for n in range(151)
    ]
    both = tmp_path / 'both'
    both.mkdir()
    bag = write_bag(both, 'mcap', in_order(driving(MAKE, 3), odometry))
    _, stored = record(bag, both / 'spool', odom_tf='/odom')
    assert xs(stored) == [(n / 10, n / 10) for n in range(1, 31)]
    alone = tmp_path / 'alone'
    alone.mkdir()
    bag = write_bag(alone, 'mcap', odometry)
    _, stored = record(bag, alone / 'spool', odom_tf='/odom')
    assert xs(stored) == [(n / 10, 100 + 5 * n) for n in range(1, 31)]


def test_odometry_without_a_child_frame_is_the_robots(tmp_path) -> None:
    odometry = [
        (
            '/odom',
            START + n * S // 10,
            MAKE.odometry(START + n * S // 10, (float(n), 0.0, 0.0), child=''),
        )
        for n in range(31)
    ]
    _, stored = record(write_bag(tmp_path, 'mcap', odometry), tmp_path / 'spool', odom_tf='odom')
    assert xs(stored) == [(n / 10, n) for n in range(1, 31)]


def test_without_tf_the_way_out_is_told(tmp_path) -> None:
    odometry = [
        ('/wheels', START + n * S, MAKE.odometry(START + n * S, (0.0, 0.0, 0.0)))
        for n in range(13)
    ]
    bag = write_bag(tmp_path, 'mcap', odometry)
    result, stored = record(bag, tmp_path / 'spool')
    (problem,) = result.problems
    assert problem == (
        'no pose could be recorded: /tf is not in the recording; --odom-tf /wheels would derive it '
        'from odometry'
    )
    assert stored.poses() == []
    with pytest.raises(BagError) as raised:
        record(bag, tmp_path / 'spool', odom_tf='/odom')
    assert str(raised.value) == (
        '--odom-tf /odom: run has no such topic of nav_msgs/Odometry; of that type it has: /wheels'
    )


def test_frames_that_never_meet_are_named(tmp_path) -> None:
    tf = [
        (
            '/tf',
            START + n * S,
            MAKE.tf(('world', 'base_link', START + n * S, (0.0, 0.0, 0.0), NO_TURN)),
        )
        for n in range(13)
    ]
    result, _ = record(write_bag(tmp_path, 'mcap', tf), tmp_path / 'spool')
    assert result.problems == ('no pose could be recorded: tf never linked base_link with odom',)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_robot_with_29_static_frames(root, tmp_path) -> None:
    bag = evo_recording(root / '.cache')
    if isinstance(bag, str):
        pytest.skip(f"evo's sources cannot be had: {bag}")
    gaze = 'oakd_rgb_camera_optical_frame'
    result, stored = record(
        bag,
        tmp_path / 'spool',
        use_sim_time=True,
        sim_time_on_wire=True,
        reference_frames=['map', 'odom'],
        gaze_frame=gaze,
    )
    assert result.reference_frame == 'map'
    assert stored.properties()['c3d.ros.gaze_frame_convention'] == 'optical_forward_z'
    tree = Tree(bag)
    assert (len(tree.static), len(tree.moving)) == (29, 4)
    # On the wire, time begins with the session; in the recording's time that was the first transform.
    start_s = stored.event('c3d.sessionStart')['time']
    poses = stored.poses()
    assert len(poses) > 900
    optical_to_body = np.array([[0, -1, 0], [0, 0, -1], [1, 0, 0]])
    compared = 0
    for pose in poses:
        matrix, received = tree.at('map', gaze, 928.8 + pose['time'] - start_s)
        # The tick came with the robot's own transform; for the others it waits for half a second.
        if received is None or max(received.values()) - received['base_link'] > 0.49:
            continue
        compared += 1
        assert np.abs(matrix[:3, 3] - pose['p']).max() <= 2e-5
        turned = matrix[:3, :3] @ optical_to_body
        assert np.abs(turned - rotation_matrix(pose['r'])).max() <= 5e-5
    assert compared > 900


class Tree:
    """A tf tree by numpy alone: 4x4 matrices, each interpolated at the time asked for."""

    def __init__(self, bag):
        self.static, self.moving = {}, {}
        with open_bag(bag) as opened:
            for message in opened.messages({'/tf', '/tf_static'}):
                for each in message.message.transforms:
                    at, turn = each.transform.translation, each.transform.rotation
                    stamp = each.header.stamp.sec + each.header.stamp.nanosec * 1e-9
                    row = (
                        stamp,
                        at.x,
                        at.y,
                        at.z,
                        turn.x,
                        turn.y,
                        turn.z,
                        turn.w,
                        message.receive_ns / S,
                    )
                    where = self.static if message.topic == '/tf_static' else self.moving
                    where.setdefault(each.child_frame_id, (each.header.frame_id, []))[1].append(
                        row
                    )
        self.static = {child: (parent, rows[-1]) for child, (parent, rows) in self.static.items()}
        self.moving = {
            child: (parent, np.array(sorted(rows)))
            for child, (parent, rows) in self.moving.items()
        }

    def at(self, target, frame, time_s):
        """Return the matrix from ``frame`` to ``target`` above it, and when it was known, by moving frame.

        None for both beyond what is known.
        """
        matrix, received = np.eye(4), {}
        while frame != target:
            if frame in self.static:
                frame, row = self.static[frame]
            else:
                child, (frame, rows) = frame, self.moving[frame]
                after = np.searchsorted(rows[:, 0], time_s)
                if after in (0, len(rows)):
                    return None, None
                a, b = rows[after - 1], rows[after]
                received[child] = b[8]
                ratio = (time_s - a[0]) / (b[0] - a[0])
                if np.dot(a[4:8], b[4:8]) < 0:
                    b = np.concatenate((b[:4], -b[4:8], b[8:]))
                # Between neighbours the chord differs from slerp by less than is compared.
                row = a * (1 - ratio) + b * ratio
            step = np.eye(4)
            step[:3, :3] = rotation_matrix(row[4:8])
            step[:3, 3] = row[1:4]
            matrix = step @ matrix
        return matrix, received


def rotation_matrix(q):
    """Return the matrix of a quaternion x y z w, from the definition."""
    x, y, z, w = np.asarray(q) / np.linalg.norm(q)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


# What goes wrong


@pytest.mark.rule(5)
def test_a_session_that_the_spool_holds_is_not_recorded_twice(tmp_path) -> None:
    bag = write_bag(tmp_path, 'mcap', driving(MAKE, 1))
    _, stored = record(bag, tmp_path / 'spool')
    before = stored.parts()
    with pytest.raises(
        SessionError, match=f'holds session {START // S}_rover-07 already'
    ) as raised:
        record(bag, tmp_path / 'spool')
    folder = tmp_path / 'spool' / 'sessions' / f'{START // S}_rover-07'
    assert f'to record it again, remove or move {folder}' in str(raised.value)
    assert stored.parts() == before


def test_a_spool_in_use(tmp_path) -> None:
    spool = Spool.open(tmp_path / 'spool')
    with pytest.raises(SpoolLockedError):
        record(write_bag(tmp_path, 'mcap', driving(MAKE, 1)), tmp_path / 'spool')
    spool.close()


def test_a_recording_that_was_cut_short_is_used_as_far_as_it_goes(tmp_path) -> None:
    make = messages_of('rosbag1')
    path = write_bag(tmp_path, 'rosbag1', driving(make, 60), chunk_bytes=20_000)
    path.write_bytes(path.read_bytes()[:200_000])
    result, stored = record(path, tmp_path / 'spool')
    (problem,) = result.problems
    assert problem.startswith('run.bag is not whole: ')
    assert result.lossy
    assert len(stored.poses()) == int(result.session_s * 10)
    assert stored.event('c3d.sessionEnd')['properties']['sessionlength'] == pytest.approx(
        result.session_s, abs=1e-5
    )


def test_messages_that_cannot_be_read_are_counted(tmp_path) -> None:
    content = driving(MAKE, 2)
    broken = [
        ('/tf', START + n * S // 3, b'\0\1\0\0\xff\xff\xff\x7f', 'tf2_msgs/msg/TFMessage')
        for n in range(3)
    ]
    log = Lines()
    result, stored = record(
        write_bag(tmp_path, 'mcap', in_order(content, broken)), tmp_path / 'spool', log=log
    )
    assert result.unreadable == {'/tf': 3}
    assert len(log.of('warning')) == 1
    assert len(stored.poses()) == 20


def test_bad_events_are_counted(tmp_path) -> None:
    events = [
        ('/c3d/events', START + S, MAKE.event('c3d.mine')),
        ('/c3d/events_json', START + S, MAKE.string('no JSON')),
        ('/c3d/events', START + S, MAKE.event('good')),
    ]
    bag = write_bag(tmp_path, 'mcap', in_order(driving(MAKE, 2), events))
    result, stored = record(bag, tmp_path / 'spool')
    assert result.dropped_events == 2
    assert [event['name'] for event in stored.events()] == [
        'c3d.sessionStart',
        'good',
        'c3d.sessionEnd',
    ]


# The command


@pytest.fixture
def params(tmp_path):
    path = tmp_path / 'params.yaml'
    path.write_text(
        'cognitive3d:\n  ros__parameters:\n    device_id: rover\n    scene_id: yard\n'
        '    scene_version: 2\n    reference_frames: [odom]\n'
    )
    return str(path)


def test_the_command_records_each_bag(tmp_path, params, capsys) -> None:
    spool = str(tmp_path / 'spool')
    bags = []
    for index, form in enumerate(('rosbag1', 'mcap')):
        folder = tmp_path / form
        folder.mkdir()
        later_ns = index * 60 * S
        driven = driving(messages_of(form), 2, stamp_from=START + later_ns)
        content = [(topic, time_ns + later_ns, message) for topic, time_ns, message in driven]
        bags.append(str(write_bag(folder, form, content)))
    assert main(['record', *bags, '--params', params, '--spool', spool]) == 0
    told = capsys.readouterr()
    assert told.err == ''
    assert told.out.splitlines() == [
        f'run.bag: session {START // S}_rover, 0:00:02.0 long',
        '  20 pose samples in odom, 2 events',
        '  101 of 101 messages used',
        f'run: session {START // S + 60}_rover, 0:00:02.0 long',
        '  20 pose samples in odom, 2 events',
        '  101 of 101 messages used',
    ]
    # Once more: both are there already.
    assert main(['record', *bags, '--params', params, '--spool', spool, '--json']) == 1
    told = capsys.readouterr()
    assert told.err.count('already') == 2
    errors = [each['error'] for each in json.loads(told.out)['recordings']]
    assert all('already' in error for error in errors)


def test_the_command_says_what_is_wrong_and_goes_on(tmp_path, params, capsys) -> None:
    good = str(write_bag(tmp_path, 'mcap', driving(MAKE, 1)))
    words = ['record', str(tmp_path / 'none.bag'), good, '--params', params, '--spool']
    assert main([*words, str(tmp_path / 'one')]) == 1
    told = capsys.readouterr()
    assert (
        told.err
        == f'c3d: none.bag: {tmp_path}/none.bag cannot be read: No such file or directory\n'
    )
    assert told.out.startswith('run: session ')
    lossy = tmp_path / 'lossy'
    lossy.mkdir()
    quiet = str(
        write_bag(lossy, 'mcap', [('/chat', START + n * S, MAKE.string('')) for n in range(12)])
    )
    words = ['record', quiet, '--params', params, '--spool', str(tmp_path / 'two'), '--json']
    assert main(words) == 3
    (facts,) = json.loads(capsys.readouterr().out)['recordings']
    assert facts['problems'] == ['no pose could be recorded: /tf is not in the recording']
    assert facts['session_id'] == f'{START // S}_rover'


def test_the_command_says_that_the_disk_is_full(tmp_path, params, capsys) -> None:
    bag = str(write_bag(tmp_path, 'mcap', driving(MAKE, 2)))
    with Path(params).open('a') as file:
        file.write(f'    spool.min_free_bytes: {1 << 60}\n')
    assert main(['record', bag, '--params', params, '--spool', str(tmp_path / 'spool')]) == 3
    told = capsys.readouterr().out
    assert 'the disk is full: records were refused (' in told
    assert '(20 of gaze, 1 of sensors)' in told
    assert f'spool.min_free_bytes ({1 << 60})' in told
    assert 'tf never linked' not in told
    (gap,) = (f for f in verify(open_session(tmp_path / 'spool')) if f.kind is Kind.GAP)
    assert gap.text.endswith('counted 0 without a pose, and said: gaze: 20 spool_full')


def test_sigterm_ends_the_command_as_ctrl_c_does(tmp_path, params, capsys, monkeypatch) -> None:
    bag = str(write_bag(tmp_path, 'mcap', driving(MAKE, 2)))
    spool = tmp_path / 'spool'
    hand_over = door._Door._hand_over

    def cut(self, message):
        hand_over(self, message)
        if self._messages == 50:
            self._recorder.flush()
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(door._Door, '_hand_over', cut)
    assert main(['record', bag, '--params', params, '--spool', str(spool)]) == 1
    assert 'c3d: interrupted' in capsys.readouterr().err
    assert main(['spool', 'recover', str(spool)]) == 0
    (note,) = (f for f in verify(open_session(spool)) if 'abnormalEnd' in f.text)
    assert note.kind is Kind.NOTE


def test_the_commands_usage(tmp_path, params, capsys) -> None:
    bag = str(write_bag(tmp_path, 'mcap', driving(MAKE, 1)))
    assert main(['record', bag, '--params', params]) == 2
    assert '--spool' in capsys.readouterr().err
    wrong = tmp_path / 'wrong.yaml'
    wrong.write_text(
        'cognitive3d:\n  ros__parameters:\n    device_id: rover\n    sample_rate_hz: -1\n'
    )
    spool = tmp_path / 'spool'
    assert main(['record', bag, '--params', str(wrong), '--spool', str(spool)]) == 2
    told = capsys.readouterr().err
    assert 'sample_rate_hz' in told
    assert 'scene_id' in told
    assert not spool.exists()
