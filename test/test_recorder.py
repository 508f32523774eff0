"""The session core on clocks and tf that the test holds; what was stored is read from the parts."""

import json
import math
from itertools import pairwise

import pytest
from recording_rig import WALL, Rig, S

from cognitive3d_ros.counters import Fate
from cognitive3d_ros.errors import SessionError
from cognitive3d_ros.recording.properties import Host, os_name

T0 = WALL // S


@pytest.fixture
def rig(tmp_path):
    made = []

    def make(**params):
        made.append(Rig(tmp_path / f'spool{len(made)}', **params))
        return made[-1]

    yield make
    for each in made:
        each.close()


# Sessions


@pytest.mark.rule(1, 2, 6, 7, 8)
def test_a_session_from_start_to_end(rig):
    r = rig()
    r.clocks.advance(S // 4)
    r.robot(0)
    session_id = r.recorder.start_session()
    assert session_id == f'{T0}_rover-07'
    r.run(12.3, robot=lambda t: (0.5 * t,))
    assert r.recorder.end_session('serviceCall') == session_id
    parts = r.parts()
    assert {body['sessionid'] for *_, body in parts} == {session_id}
    assert {body['timestamp'] for *_, body in parts} == {T0}
    assert {body.get('userid') or body['name'] for *_, body in parts} == {'rover-07'}
    events = r.events()
    assert (events[0]['name'], events[0]['time']) == ('c3d.sessionStart', T0 + 0.25)
    assert events[-1]['name'] == 'c3d.sessionEnd'
    assert events[-1]['time'] == T0 + 12.55
    assert events[-1]['properties'] == {'Reason': 'serviceCall', 'sessionlength': 12.3}
    for stream in {part[0] for part in parts}:
        numbers = [number for kind, _, number, _ in parts if kind == stream]
        assert numbers == list(range(1, len(numbers) + 1))
    # The parts carry the scene the session was recorded for.
    assert not (r.root / 'sessions' / session_id / 'journal').exists()


@pytest.mark.rule(8)
def test_the_length_is_the_difference_of_the_times_as_they_are_stored(rig):
    r = rig()
    r.clocks.advance(5_100)  # rounds up
    r.recorder.start_session()
    r.clocks.advance(57_154_950)  # ends at 57,160,050 ns: rounds down
    r.recorder.end_session('shutdown')
    start, end = r.event('c3d.sessionStart'), r.event('c3d.sessionEnd')
    assert (start['time'], end['time']) == (T0 + 0.00001, T0 + 0.05716)
    assert end['properties']['sessionlength'] == 0.05715


@pytest.mark.rule(11)
@pytest.mark.parametrize('fallen_ns', [1_000_000, 30_000_000])
def test_a_wall_clock_that_falls_back_a_little_right_after_the_start(rig, fallen_ns):
    # By 30 ms: it was set. By 1 ms: the two clocks were read that far apart as the session started.
    r = rig()
    r.robot(0)
    r.recorder.start_session()
    r.clocks.mono_ns += 10_000_000
    r.clocks.wall_ns += 10_000_000 - fallen_ns
    r.clocks.ros_ns = r.clocks.wall_ns
    r.recorder.event('early', {})
    r.recorder.poll()
    r.run(0.5, robot=lambda t: (t,))
    r.recorder.end_session('serviceCall')
    start_s = r.event('c3d.sessionStart')['time']
    assert start_s == T0
    assert r.poses()[0]['time'] == start_s
    assert min(record['time'] for record in (*r.poses(), *r.events())) == start_s


@pytest.mark.rule(3, 4, 11)
def test_sessions_started_in_one_second_do_not_share_an_id(rig):
    r = rig()
    r.robot(0)
    ids = [r.recorder.start_session() for _ in range(3)]
    assert ids == [f'{T0 + n}_rover-07' for n in range(3)]
    r.run(1.0, robot=lambda t: (t,))
    r.recorder.event('late', '{}', r.clocks.ros_ns - 10 * S)
    r.recorder.end_session('serviceCall')
    assert [r.event('c3d.sessionEnd', i)['properties']['Reason'] for i in ids[:2]] == [
        'newSession'
    ] * 2
    # The third runs two seconds ahead of the wall clock, all of it.
    assert r.event('c3d.sessionStart', ids[2])['time'] == T0 + 2
    assert r.event('c3d.sessionEnd', ids[2])['time'] == T0 + 3
    poses = r.poses(ids[2])
    assert [pose['time'] for pose in poses] == pytest.approx([T0 + 2 + n / 10 for n in range(11)])
    assert min(e['time'] for e in r.events(ids[2])) == T0 + 2
    assert r.properties(ids[2])['c3d.ros.clock_offset_s'] == 2


@pytest.mark.rule(5)
def test_a_restart_on_the_same_spool_never_uses_an_id_again(tmp_path):
    first = Rig(tmp_path)
    first_id = first.recorder.start_session()
    first.recorder.end_session('shutdown')
    first.close()
    second = Rig(tmp_path)
    assert second.recorder.start_session() == f'{T0 + 1}_rover-07'
    assert first_id == f'{T0}_rover-07'
    second.recorder.end_session('shutdown')
    second.close()


def test_a_clock_far_behind_the_last_id_is_warned_about(rig):
    r = rig()
    r.spool.issue_second(T0 + 60)
    r.recorder.start_session()
    (warning,) = r.log.of('warning')
    assert '61.0 s ahead' in warning
    r.recorder.end_session('shutdown')


def test_a_clock_that_was_once_years_ahead_dates_no_later_session(rig):
    r = rig()
    far = T0 + 10 * 365 * 86_400
    r.clocks.wall_ns += (far - T0) * S
    assert r.recorder.start_session() == f'{far}_rover-07'
    r.recorder.end_session('done')
    r.clocks.wall_ns -= (far - T0) * S
    for n in range(2):
        assert r.recorder.start_session() == f'{T0 + n}_rover-07'
        r.recorder.end_session('done')
    warned = [text for text in r.log.of('warning') if str(far) in text]
    assert len(warned) == 1
    assert 'it was wrong then, or is now' in warned[0]


def test_a_wall_clock_that_was_never_set_starts_no_session(rig):
    r = rig()
    r.clocks.wall_ns = 86_400 * S
    with pytest.raises(SessionError, match='2020'):
        r.recorder.start_session()
    assert r.recorder.session_id is None


def test_under_sim_time_a_session_waits_for_the_clock(rig):
    r = rig(use_sim_time=True, ros_ns=0)
    with pytest.raises(SessionError, match='/clock'):
        r.recorder.start_session()
    r.clocks.ros_ns = 1
    assert r.recorder.start_session()
    r.recorder.end_session('shutdown')


@pytest.mark.parametrize(
    ('text', 'wanted'),
    [
        ('[1]', 'object'),
        ('{"a": 1', 'not JSON'),
        ('{"a": [1]}', "'a'"),
        ('{"b": null}', "'b'"),
        ('{"c3d.version": "2"}', 'c3d.version'),
        ('{"x": NaN}', "'x'"),
        ('{"x": 1e999}', "'x'"),
        ('[' * 100_000, 'characters'),
        ('[' * 50_000, 'not JSON'),
    ],
)
def test_bad_properties_start_nothing_and_change_nothing(rig, text, wanted):
    r = rig()
    running = r.recorder.start_session()
    with pytest.raises(SessionError, match='properties_json') as caught:
        r.recorder.start_session('other', 'someone', text)
    assert wanted in str(caught.value)
    assert r.recorder.session_id == running
    r.recorder.end_session('shutdown')


def test_ending_without_a_session_is_refused(rig):
    with pytest.raises(SessionError, match='no session'):
        rig().recorder.end_session('serviceCall')


@pytest.mark.rule(9)
def test_a_session_that_never_ended_is_closed_at_the_next_configure(tmp_path):
    r = Rig(tmp_path)
    session_id = r.recorder.start_session()
    r.robot(0)
    r.run(14.0, robot=lambda t: (t, 2.0))
    r.recorder.event('before the cut', '{"n": 1}')
    r.recorder.flush()
    flushed_at = r.clocks.wall_ns
    r.run(0.9, robot=lambda t: (14 + t, 2.0))  # in memory only: the loss window
    r.spool.close()  # the process is gone, and with it what was not flushed

    again = Rig(tmp_path)
    again.clocks.advance(3600 * S)
    assert again.recorder.recover() == [session_id]
    end = again.event('c3d.sessionEnd')
    assert end['properties']['Reason'] == 'abnormalEnd'
    assert end['properties']['c3d.recovered'] is True
    assert end['time'] == flushed_at / S
    assert end['properties']['sessionlength'] == 14
    # At the last stored pose sample's position: gltf_authored takes (x, y, z) to (-x, z, -y).
    last = again.poses()[-1]
    assert last['time'] == T0 + 14
    assert end['point'] == last['p'] == [-14, 0, -2]
    assert again.events()[-1] == end
    assert again.event('before the cut')['properties'] == {'n': 1}
    assert len(again.poses()) == 141
    for stream in ('gaze', 'events', 'sensors'):
        numbers = [number for kind, _, number, _ in again.parts() if kind == stream]
        assert numbers == list(range(1, len(numbers) + 1))
    assert again.recorder.recover() == []
    again.close()


@pytest.mark.rule(9)
def test_a_session_cut_before_its_first_pose_is_closed_at_its_start(tmp_path):
    r = Rig(tmp_path)
    r.recorder.start_session()
    r.spool.close()
    again = Rig(tmp_path)
    again.recorder.recover()
    end = again.event('c3d.sessionEnd')
    assert end['time'] == again.event('c3d.sessionStart')['time'] == T0
    assert (end['point'], end['properties']['c3d.position_unknown']) == ([0, 0, 0], True)
    again.close()


# Timestamps


@pytest.mark.rule(10, 14, 27)
def test_what_the_node_takes_itself_carries_the_wall_time_it_was_taken(rig):
    r = rig(ros_ns=1_574_652_168 * S)  # a ROS clock of another year
    r.robot(0)
    r.recorder.start_session()
    r.run(5.5, robot=lambda t: (t,))
    r.recorder.end_session('shutdown')
    times = [pose['time'] for pose in r.poses()]
    assert times == pytest.approx([T0 + n / 10 for n in range(56)], abs=1e-9)
    assert [time for time, _ in r.series('c3d.pose_failures')] == [T0 + 5, T0 + 5.5]


@pytest.mark.rule(15, 16, 17)
def test_stamped_events_are_placed_by_the_clock_rule(rig):
    r = rig(ros_ns=500 * S)
    r.recorder.start_session()
    r.run(20)
    now_ns = r.clocks.ros_ns
    for name, stamp_ns in [
        ('aged', now_ns - 3 * S),
        ('unstamped', 0),
        ('ahead', now_ns + S + 1),
        ('a little ahead', now_ns + S),
        ('an hour and more', now_ns - 3600 * S - 1 if now_ns > 3600 * S else 1),
        ('before the start', now_ns - 30 * S),
    ]:
        assert r.recorder.event(name, '{}', stamp_ns)
    r.recorder.end_session('shutdown')
    times = {event['name']: event['time'] - T0 for event in r.events()}
    assert times['aged'] == 17
    assert times['unstamped'] == 20
    assert times['ahead'] == 20
    assert times['a little ahead'] == 21
    assert times['before the start'] == 0
    # Nothing follows sessionEnd, though one event was stamped ahead of it.
    assert times['c3d.sessionEnd'] == 21
    assert r.events()[-1]['name'] == 'c3d.sessionEnd'
    assert r.events()[0]['name'] == 'c3d.sessionStart'


@pytest.mark.rule(18, 20)
def test_use_sim_time_keeps_the_simulators_clock_off_the_wire(rig):
    r = rig(use_sim_time=True, ros_ns=3 * S)
    r.robot(0)
    r.recorder.start_session()
    for _ in range(40):  # the simulator at half of real time
        r.clocks.wall_ns += S // 10
        r.clocks.mono_ns += S // 10
        r.clocks.ros_ns += S // 20
        r.robot(float(r.clocks.ros_ns) / S)
        r.recorder.poll()
    r.recorder.end_session('shutdown')
    poses = r.poses()
    assert [pose['time'] for pose in poses] == pytest.approx([T0 + n / 10 for n in range(41)])
    assert [-pose['p'][0] for pose in poses[1:]] == pytest.approx(
        [3 + n / 20 for n in range(1, 41)]
    )
    properties = r.properties()
    assert properties['c3d.ros.use_sim_time'] is True
    assert properties['c3d.ros.sim_time_on_wire'] is False


@pytest.mark.rule(19, 20, 42)
def test_sim_time_on_wire_spaces_records_by_simulated_time(rig):
    r = rig(use_sim_time=True, sim_time_on_wire=True, ros_ns=3 * S)
    r.robot(0)
    r.recorder.start_session()
    for _ in range(100):  # the simulator at twice real time
        r.clocks.wall_ns += S // 20
        r.clocks.mono_ns += S // 20
        r.clocks.ros_ns += S // 10
        r.robot(float(r.clocks.ros_ns) / S)
        r.recorder.poll()
    r.recorder.end_session('shutdown')
    times = [pose['time'] for pose in r.poses()]
    assert times == pytest.approx([T0 + n / 10 for n in range(101)])
    assert r.event('c3d.sessionEnd')['properties']['sessionlength'] == 10
    assert [time for time, _ in r.series('c3d.stale_poses')] == [T0 + 5, T0 + 10, T0 + 10]
    assert r.properties()['c3d.ros.sim_time_on_wire'] is True


def test_a_clock_that_jumps_to_zero_in_mid_session(rig):
    r = rig(use_sim_time=True, sim_time_on_wire=True, ros_ns=100 * S)
    r.robot(0)
    r.recorder.start_session()
    r.run(3, robot=lambda t: (t,))
    r.clocks.ros_ns = 0
    r.recorder.clock_jumped()
    r.run(3, robot=lambda t: (50 + t,))
    r.recorder.end_session('shutdown')
    times = [pose['time'] for pose in r.poses()]
    assert times == sorted(times)
    assert times[-1] == pytest.approx(T0 + 6, abs=0.2)
    assert len(times) >= 58
    step = r.event('c3d.clock_step')
    assert step['properties'] == {'step_s': 103, 'offset_s': 103}
    assert r.series('c3d.clock_resets')[-1][1] == 1
    assert -r.poses()[-1]['p'][0] == pytest.approx(53)


@pytest.mark.parametrize('leap_s', [1000, 2_147_483_000])
def test_a_simulated_clock_that_leaps_ahead_is_followed_at_once(rig, leap_s):
    r = rig(use_sim_time=True, sim_time_on_wire=True, ros_ns=100 * S)
    r.robot(0)
    r.recorder.start_session()
    r.run(2, robot=lambda t: (t,))
    r.clocks.ros_ns += leap_s * S
    r.robot(2)
    r.recorder.poll()
    r.run(2, robot=lambda t: (2 + t,))
    r.recorder.end_session('shutdown')
    times = [pose['time'] - T0 for pose in r.poses()]
    assert [time for time in times if time <= 2] == pytest.approx([n / 10 for n in range(21)])
    assert times[-1] == pytest.approx(leap_s + 4)
    # All but the second before the leap's end is skipped, and counted.
    assert r.series('c3d.pose_failures')[-1][1] + len(times) == leap_s * 10 + 41
    assert len(times) <= 21 + 11 + 20
    (warning,) = [text for text in r.log.of('warning') if 'skipped' in text]
    assert f'{leap_s - 1}' in warning or f'{leap_s}' in warning


@pytest.mark.rule(26)
def test_a_thread_that_was_kept_from_running_for_long_skips_and_counts(rig):
    r = rig()
    r.robot(0)
    r.recorder.start_session()
    r.clocks.advance(10 * S)
    r.robot(10)
    r.recorder.poll()
    r.recorder.end_session('shutdown')
    times = [pose['time'] - T0 for pose in r.poses()]
    assert times == pytest.approx([9 + n / 10 for n in range(11)])
    assert r.series('c3d.pose_failures')[-1][1] == 90


def test_a_recording_is_sampled_across_its_gaps(rig):
    r = rig(live=False)
    r.tf.set_transform('map', 'base_link', 0, (3.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0), static=True)
    r.recorder.start_session()
    r.clocks.advance(30 * S)
    r.recorder.poll()
    r.recorder.end_session('shutdown')
    assert len(r.poses()) == 301
    assert r.series('c3d.pose_failures')[-1][1] == 0


def test_a_reason_that_is_too_long_ends_nothing(rig):
    r = rig()
    session_id = r.recorder.start_session()
    with pytest.raises(SessionError, match='1025 characters'):
        r.recorder.end_session('x' * 1025)
    assert r.recorder.session_id == session_id
    r.recorder.end_session('x' * 1024)


def test_a_wall_clock_that_steps_back_in_mid_session(rig):
    r = rig()
    r.robot(0)
    r.recorder.start_session()
    r.run(3, robot=lambda t: (t,))
    r.clocks.wall_ns -= 5 * S
    r.clocks.ros_ns -= 5 * S  # without use_sim_time the ROS clock is the wall clock
    r.recorder.poll()
    r.run(3, robot=lambda t: (3 + t,))
    r.recorder.end_session('shutdown')
    times = [pose['time'] for pose in r.poses()]
    assert times == sorted(times)
    assert len(times) >= 59
    assert times[-1] == pytest.approx(T0 + 6)
    assert -r.poses()[-1]['p'][0] == pytest.approx(6)
    assert r.event('c3d.clock_step')['properties'] == {'step_s': 5, 'offset_s': 5}
    assert r.event('c3d.sessionEnd')['properties']['sessionlength'] == 6


def test_a_wall_clock_that_stands_still(rig):
    """One event when it stops, one with the rest when it runs again; everything else goes on."""
    r = rig()
    r.robot(0)
    r.recorder.start_session()
    r.run(3, robot=lambda t: (t,))
    for _ in range(6000):  # ten minutes
        r.clocks.mono_ns += S // 10
        r.recorder.poll()
    r.run(3, robot=lambda t: (3 + t,))
    r.recorder.end_session('shutdown')
    times = [pose['time'] for pose in r.poses()]
    assert times == sorted(times)
    assert len(times) == pytest.approx(6060, abs=2)
    assert max(b - a for a, b in pairwise(times)) < 0.2
    steps = [e for e in r.events() if e['name'] == 'c3d.clock_step']
    assert [step['properties'] for step in steps] == [
        {'step_s': 0.1, 'offset_s': 0.1},
        {'step_s': 599.9, 'offset_s': 600},
    ]
    assert [round(step['time'] - T0, 1) for step in steps] == [3.1, 603]
    assert r.series('c3d.clock_resets')[-1][1] == 1
    assert r.event('c3d.sessionEnd')['properties']['sessionlength'] == 606


def test_a_wall_clock_that_stands_still_to_the_end(rig):
    r = rig()
    r.recorder.start_session()
    for _ in range(100):
        r.clocks.mono_ns += S // 100
        r.recorder.event('lap', {})
    r.recorder.end_session('shutdown')
    names = [event['name'] for event in r.events()]
    assert names.count('c3d.clock_step') == 2
    assert names[-1] == 'c3d.sessionEnd'
    assert r.event('c3d.sessionEnd')['properties']['sessionlength'] == 1


# The pose timeline


@pytest.mark.rule(21, 23, 24, 25, 26, 28, 30)
@pytest.mark.parametrize(
    ('convention', 'position', 'rotation'),
    [
        # x 1, y 2, z 3, a quarter turn to the left: (0, 0, s, s) with s = √½
        ('unity', [-2, 3, 1], [0, math.sqrt(0.5), 0, -math.sqrt(0.5)]),
        ('gltf_authored', [-1, 3, -2], [0, -1, 0, 0]),
        ('rep103', [1, 2, 3], [0, 0, math.sqrt(0.5), math.sqrt(0.5)]),
    ],
)
def test_samples_are_converted_by_the_sessions_convention(rig, convention, position, rotation):
    r = rig(pose_convention=convention, sample_rate_hz=20)
    turn = (0.0, 0.0, math.sqrt(0.5), math.sqrt(0.5))
    r.robot(1, 2, 3, turn)
    r.recorder.start_session()
    r.run(1.0, robot=lambda t: (1, 2, 3, turn))
    r.recorder.end_session('shutdown')
    poses = r.poses()
    assert len(poses) == 21
    for pose in poses:
        assert set(pose) == {'time', 'p', 'r'}  # no gaze point: rule 29
        assert pose['p'] == position
        assert pose['r'] == pytest.approx(rotation, abs=1e-5)
    assert r.properties()['c3d.ros.pose_convention'] == convention
    assert r.properties()['c3d.ros.reference_frame'] == 'map'
    assert {body['interval'] for body in r.bodies('gaze')} == {0.05}


@pytest.mark.rule(27)
def test_a_sample_waits_for_tf_to_reach_its_tick(rig):
    r = rig()
    r.robot(0)
    r.recorder.start_session()
    start = r.clocks.ros_ns
    # tf comes every 150 ms, 80 ms late; the robot drives 2 m/s
    for index in range(1, 41):
        r.clocks.advance(S // 20)
        if index % 3 == 0:
            stamp_ns = r.clocks.ros_ns - 80_000_000
            r.robot(2 * (stamp_ns - start) / S, at=stamp_ns)
        r.recorder.poll()
    r.recorder.end_session('shutdown')
    exact = [pose for pose in r.poses() if pose['time'] <= T0 + 1.8]
    assert len(exact) == 19
    for pose in exact:
        assert -pose['p'][0] == pytest.approx(2 * (pose['time'] - T0), abs=1e-5)


@pytest.mark.rule(26)
def test_a_late_poll_takes_every_tick_at_its_own_time(rig):
    r = rig()
    r.robot(0)
    r.recorder.start_session()
    r.clocks.advance(S // 2 + S // 25)
    r.robot(5.4)
    r.recorder.poll()  # 540 ms late: the thread was kept from running
    r.recorder.end_session('shutdown')
    assert [(p['time'], -p['p'][0]) for p in r.poses()] == [
        (pytest.approx(T0 + n / 10), pytest.approx(n * 1.0, abs=1e-5)) for n in range(6)
    ]


@pytest.mark.rule(28, 31, 58)
@pytest.mark.parametrize('frame', ['head_optical_frame', 'head'])
def test_the_gaze_frame_is_what_the_timeline_is_drawn_from(rig, frame):
    r = rig(gaze_frame=frame, pose_convention='rep103')
    s = 0.5
    optical = frame.endswith('_optical_frame')
    # An optical frame that looks where the robot looks: Z forward, X right, Y down.
    rotation = (-s, s, -s, s) if optical else (0.0, 0.0, 0.0, 1.0)
    r.tf.set_transform('base_link', frame, 0, (0.25, 0.0, 1.5), rotation, static=True)
    r.robot(1)
    r.recorder.start_session()
    r.run(1, robot=lambda t: (1 + t,))
    r.recorder.event('here', '{}')
    r.recorder.end_session('shutdown')
    last = r.poses()[-1]
    assert last['p'] == [2.25, 0, 1.5]
    assert [abs(value) for value in last['r']] == pytest.approx([0, 0, 0, 1], abs=1e-5)
    properties = r.properties()
    assert properties['c3d.ros.gaze_frame'] == frame
    assert properties['c3d.ros.gaze_frame_convention'] == (
        'optical_forward_z' if optical else 'body_forward_x'
    )
    assert r.event('here')['point'] == [2, 0, 0]  # the robot frame, never the gaze frame


@pytest.mark.rule(58)
def test_without_a_gaze_frame_there_are_no_gaze_properties(rig):
    r = rig()
    r.recorder.start_session()
    r.recorder.end_session('shutdown')
    assert not [key for key in r.properties() if 'gaze' in key]


@pytest.mark.rule(32, 35)
def test_a_gaze_frame_that_tf_does_not_know_skips_the_sample_and_counts_twice(rig):
    r = rig(gaze_frame='head')
    r.robot(0)
    r.recorder.start_session()
    r.run(5, robot=lambda t: (t,))
    r.recorder.end_session('shutdown')
    assert r.poses() == []
    assert r.series('c3d.pose_failures')[-1][1] == 51
    assert r.series('c3d.gaze_frame_failures')[-1][1] == 51
    assert r.series('c3d.stale_poses')[-1][1] == 0
    assert r.event('c3d.sessionEnd')['properties'].keys() >= {'Reason'}


@pytest.mark.rule(32, 33, 35)
def test_a_transform_that_has_stopped_is_skipped_and_counted(rig):
    r = rig(stale_pose_s=1.0)
    r.robot(0)
    r.recorder.start_session()
    r.run(2, robot=lambda t: (t,))
    r.run(3)  # the odometry has died
    r.run(1, robot=lambda t: (2 + t,))
    r.recorder.end_session('shutdown')
    times = [round(pose['time'] - T0, 1) for pose in r.poses()]
    assert times[:21] == [n / 10 for n in range(21)]
    assert times[21:31] == [n / 10 for n in range(21, 31)]  # the newest, for stale_pose_s
    failures = r.series('c3d.pose_failures')[-1][1]
    assert r.series('c3d.stale_poses')[-1][1] == failures
    assert len(times) + failures == 61
    # The ticks of the last half second before tf came back were still waiting, and tf reached them.
    assert failures == 15
    assert times[31:] == [round(4.6 + n / 10, 1) for n in range(15)]


@pytest.mark.rule(33)
def test_a_transform_that_had_stopped_before_the_session_is_stale_at_once(rig):
    r = rig()
    r.robot(1)
    r.clocks.advance(60 * S)
    r.recorder.start_session()
    r.run(2)
    r.recorder.end_session('shutdown')
    assert r.poses() == []
    assert r.series('c3d.stale_poses')[-1][1] == 21


@pytest.mark.rule(33)
def test_a_chain_of_static_transforms_is_never_stale(rig):
    r = rig()
    r.tf.set_transform('map', 'base_link', 0, (3.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0), static=True)
    r.recorder.start_session()
    r.run(10)
    r.recorder.end_session('shutdown')
    assert len(r.poses()) == 101
    assert r.series('c3d.stale_poses')[-1][1] == 0


@pytest.mark.rule(34, 35)
def test_waiting_for_the_preferred_frame_counts_nothing(rig):
    r = rig(reference_frames=['map', 'odom'], reference_wait_s=2.0)
    r.recorder.start_session()
    for _ in range(30):
        r.clocks.advance(S // 10)
        r.robot(7, frame='odom')
        r.recorder.poll()
    r.recorder.end_session('shutdown')
    poses = r.poses()
    assert poses[0]['time'] == pytest.approx(T0 + 2)
    assert len(poses) == 11
    assert r.series('c3d.pose_failures')[-1][1] == 0
    assert r.properties()['c3d.ros.reference_frame'] == 'odom'
    assert [text for text in r.log.of('warning') if "'odom'" in text and "'map'" in text]


@pytest.mark.rule(23, 34)
def test_the_preferred_frame_is_taken_when_it_comes_and_kept(rig):
    r = rig(reference_frames=['map', 'odom'])
    r.recorder.start_session()
    r.run(1)
    for _ in range(20):
        r.clocks.advance(S // 10)
        r.tf.set_transform('map', 'odom', r.clocks.ros_ns, (10.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0))
        r.robot(1, frame='odom')
        r.recorder.poll()
    r.recorder.end_session('shutdown')
    assert {pose['p'][0] for pose in r.poses()} == {-11}
    assert r.series('c3d.pose_failures')[-1][1] == 0


@pytest.mark.rule(34)
def test_a_wait_of_zero_is_for_ever(rig):
    r = rig(reference_wait_s=0)
    r.recorder.start_session()
    for _ in range(300):
        r.clocks.advance(S // 10)
        r.robot(7, frame='odom')
        r.recorder.poll()
    r.recorder.end_session('shutdown')
    assert r.poses() == []
    assert r.series('c3d.pose_failures')[-1][1] == 0


@pytest.mark.rule(32, 35)
def test_without_any_frame_after_the_wait_ticks_are_failures(rig):
    r = rig(reference_wait_s=1.0)
    r.recorder.start_session()
    r.run(2)
    r.recorder.end_session('shutdown')
    assert r.series('c3d.pose_failures')[-1][1] == 11


# Events


@pytest.mark.rule(36, 37)
def test_an_event_is_where_the_robot_was_at_its_time(rig):
    r = rig()
    r.robot(0)
    r.recorder.start_session()
    r.run(4, robot=lambda t: (t,))
    assert r.recorder.event(
        'stamped', '{"dock": "A", "n": 2, "ok": true}', r.clocks.ros_ns - 1_250_000_000
    )
    r.clocks.advance(S // 50)  # tf has not reached this moment yet
    r.recorder.event('now', '')
    r.clocks.advance(S // 50)
    r.robot(4.04)
    r.recorder.poll()
    r.recorder.end_session('shutdown')
    stamped = r.event('stamped')
    assert stamped['time'] == T0 + 2.75
    assert stamped['point'] == [pytest.approx(-2.75, abs=1e-5), 0, 0]
    assert stamped['properties'] == {'dock': 'A', 'n': 2, 'ok': True}
    now = r.event('now')
    assert now['time'] == T0 + 4.02
    assert now['point'] == [pytest.approx(-4.02, abs=1e-5), 0, 0]


@pytest.mark.rule(38)
def test_an_event_before_the_first_pose_is_at_the_origin_and_says_so(rig):
    r = rig()
    r.recorder.start_session()
    r.recorder.event('early', '{}')
    r.run(1, robot=lambda t: (5, 5))
    r.recorder.event('later', '{}')
    r.recorder.end_session('shutdown')
    for name in ('c3d.sessionStart', 'early'):
        assert r.event(name)['point'] == [0, 0, 0]
        assert r.event(name)['properties']['c3d.position_unknown'] is True
    assert r.event('later')['point'] == [-5, 0, -5]
    assert 'properties' not in r.event('later')


@pytest.mark.rule(37)
def test_an_event_without_tf_is_at_the_last_known_position(rig):
    r = rig()
    r.robot(0)
    r.recorder.start_session()
    r.run(1, robot=lambda t: (5, 5))
    r.clocks.advance(100 * S)  # tf has died
    r.recorder.event('lost', '{}')
    r.clocks.advance(S)
    r.recorder.poll()
    r.recorder.end_session('shutdown')
    assert r.event('lost')['point'] == [-5, 0, -5]


@pytest.mark.parametrize(
    'text',
    [
        '',
        'null',
        '[]',
        '{}',
        '{"name": 3}',
        '{"name": ""}',
        '{"name": "c3d.sessionEnd"}',
        '{"name": "x", "properties": [1]}',
        '{"name": "x", "properties": {"a": {}}}',
        '{"name": "x", "properties": {"c3d.version": "9"}}',
        '{"name": "x", "stamp": "now"}',
        '{"name": "x", "stamp": true}',
        '{"name": "x", "stamp": 1e300}',
        '{"name": "x", "stamp": NaN}',
        '{"name": "x", "stamp": -1}',
        '{"name": "' + 'x' * 2000 + '"}',
        '{"name": "x", "properties": {"a": "' + 'b' * 70_000 + '"}}',
        '{"a":' * 9000,
    ],
)
def test_a_bad_event_is_counted_and_warned_about(rig, text):
    r = rig()
    r.recorder.start_session()
    assert r.recorder.event_json(text) is False
    r.recorder.end_session('shutdown')
    assert [event['name'] for event in r.events()] == ['c3d.sessionStart', 'c3d.sessionEnd']
    assert r.series('c3d.dropped_events')[-1][1] == 1
    assert len(r.log.of('warning')) == 1


def test_a_flood_of_bad_events_is_no_flood_of_lines(rig):
    r = rig()
    r.recorder.start_session()
    for _ in range(500):
        r.recorder.event_json('nonsense')
    assert len(r.log.of('warning')) == 1
    r.clocks.advance(11 * S)
    r.recorder.event_json('nonsense')
    assert '499 more' in r.log.of('warning')[-1]
    r.recorder.end_session('shutdown')
    assert r.series('c3d.dropped_events')[-1][1] == 501


def test_an_event_as_json(rig):
    r = rig()
    r.recorder.start_session()
    r.run(2)
    stamp = r.clocks.ros_ns / S - 0.5
    assert r.recorder.event_json(
        json.dumps({'name': 'dock', 'properties': {'a': 1.5}, 'stamp': stamp})
    )
    r.recorder.end_session('shutdown')
    assert r.event('dock')['time'] == pytest.approx(T0 + 1.5, abs=1e-5)
    assert r.event('dock')['properties']['a'] == 1.5


def test_what_comes_while_no_session_is_active_is_not_recorded(rig):
    r = rig()
    assert r.recorder.event('nobody', '{}') is False
    assert r.recorder.event_json('{"name": "nobody"}') is False
    r.recorder.start_session()
    r.recorder.end_session('shutdown')
    assert [event['name'] for event in r.events()] == ['c3d.sessionStart', 'c3d.sessionEnd']
    assert r.series('c3d.dropped_events')[-1][1] == 0


# The robot's Dynamic Object


@pytest.mark.rule(45, 46, 47)
@pytest.mark.parametrize(
    ('convention', 'yaw'), [('gltf_authored', 90), ('unity', -30), ('rep103', 45)]
)
def test_each_pose_sample_adds_a_snapshot_of_the_robot_frame(rig, convention, yaw):
    r = rig(
        robot_dynamic_object=True,
        robot_mesh='rover',
        robot_object_id='body',
        robot_display_name='Rover 07',
        mesh_yaw_offset_deg=yaw,
        pose_convention=convention,
    )
    r.robot(1, 2, 3)
    r.recorder.start_session()
    r.run(1, robot=lambda t: (1, 2, 3))
    r.recorder.end_session('shutdown')
    manifests = [b['manifest'] for b in r.bodies('dynamics') if 'manifest' in b]
    assert manifests == [{'body': {'name': 'Rover 07', 'mesh': 'rover', 'fileType': 'gltf'}}]
    snapshots = [record for body in r.bodies('dynamics') for record in body['data']]
    assert [s['time'] for s in snapshots] == [p['time'] for p in r.poses()]
    assert [s['p'] for s in snapshots] == [p['p'] for p in r.poses()]
    assert snapshots[0]['properties'] == [{'enabled': True}]
    assert all('properties' not in snapshot for snapshot in snapshots[1:])
    half = math.radians(yaw) / 2
    x, y, z, w = 0.0, 0.0, math.sin(half), math.cos(half)  # R·Rz with R the identity
    wanted = {
        'unity': (-y, z, x, -w),
        'gltf_authored': (x, -z, y, w),
        'rep103': (x, y, z, w),
    }[convention]
    assert snapshots[-1]['r'] == pytest.approx(wanted, abs=1e-5)
    assert r.properties()['c3d.ros.robot_dynamic_object'] is True


@pytest.mark.rule(45)
def test_the_objects_id_and_name_fall_back_on_the_device_id(rig):
    r = rig(robot_dynamic_object=True, robot_mesh='rover')
    r.robot(0)
    r.recorder.start_session()
    r.recorder.poll()
    r.recorder.end_session('shutdown')
    (body,) = r.bodies('dynamics')
    assert body['manifest'] == {
        'rover-07': {'name': 'rover-07', 'mesh': 'rover', 'fileType': 'gltf'}
    }


@pytest.mark.rule(48)
def test_by_default_there_is_no_dynamic_object_data(rig):
    r = rig()
    r.robot(0)
    r.recorder.start_session()
    r.run(1, robot=lambda t: (t,))
    r.recorder.end_session('shutdown')
    assert r.bodies('dynamics') == []
    assert r.properties()['c3d.ros.robot_dynamic_object'] is False


# Session properties


@pytest.mark.rule(49, 50, 51, 52, 53, 54, 55, 56, 57)
def test_the_properties_of_every_session(rig):
    r = rig()
    r.recorder.start_session()
    r.recorder.end_session('shutdown')
    assert r.properties() == {
        'c3d.version': '1.0.0',
        'c3d.app.name': 'cognitive3d_ros',
        'c3d.app.version': '1.0.0',
        'c3d.app.engine': 'ROS2',
        'c3d.app.engine.version': 'jazzy',
        'c3d.app.sdktype': 'ros',
        'c3d.deviceid': 'rover-07',
        'c3d.device.os': 'Ubuntu 24.04.3 LTS',
        'c3d.participant.id': 'rover-07',
        'c3d.sessionname': f'{T0}_rover-07',
        'c3d.ros.distro': 'jazzy',
        'c3d.ros.rmw': 'rmw_fastrtps_cpp',
        'c3d.ros.domain_id': '42',
        'c3d.ros.discovery_range': 'LOCALHOST',
        'c3d.ros.namespace': '/fleet',
        'c3d.ros.node': 'cognitive3d',
        'c3d.ros.robot_frame': 'base_link',
        'c3d.ros.pose_convention': 'gltf_authored',
        'c3d.ros.use_sim_time': False,
        'c3d.ros.sim_time_on_wire': False,
        'c3d.ros.robot_dynamic_object': False,
        'c3d.ros.clock_offset_s': 0,
    }
    # They travel at once, in a part of their own that is never evicted.
    stream, klass, number, body = r.parts()[1]
    assert (stream, klass, number, body['data']) == ('gaze', 'properties', 1, [])


@pytest.mark.rule(55)
def test_humble_has_no_discovery_range(rig):
    r = rig(host=Host(ros_distro='humble', discovery_range=None))
    r.recorder.start_session()
    r.recorder.end_session('shutdown')
    properties = r.properties()
    assert 'c3d.ros.discovery_range' not in properties
    assert properties['c3d.ros.domain_id'] == 'unset'
    assert properties['c3d.app.engine.version'] == 'humble'


@pytest.mark.rule(53)
@pytest.mark.parametrize(
    ('configured', 'given', 'name'),
    [('', '', f'{T0}_rover-07'), ('patrol', '', 'patrol'), ('patrol', 'night', 'night')],
)
def test_the_sessions_name_falls_back(rig, configured, given, name):
    r = rig(session_name=configured)
    r.recorder.start_session(given, 'alice' if given else '')
    r.recorder.end_session('shutdown')
    assert r.properties()['c3d.sessionname'] == name
    assert r.properties()['c3d.participant.id'] == ('alice' if given else 'rover-07')


@pytest.mark.rule(61)
def test_a_users_properties_stand_beside_ours(rig):
    r = rig(
        session_properties=['site=A', 'floor=2', 'load=3.50', 'indoor=true', 'code=007', 'x=nan'],
        session_comment='first run',
    )
    r.recorder.start_session('', '', '{"shift": "night", "n": 1.25, "floor": 3, "ok": false}')
    r.recorder.end_session('shutdown')
    properties = r.properties()
    wanted = {
        'site': 'A',
        'floor': 3,  # what the caller says goes over the configuration
        'load': 3.5,
        'indoor': True,
        'code': '007',
        'x': 'nan',
        'shift': 'night',
        'n': 1.25,
        'ok': False,
        'c3d.ros.comment': 'first run',
    }
    for key, value in wanted.items():
        assert (type(properties[key]), properties[key]) == (type(value), value)


@pytest.mark.rule(59)
def test_cameras_and_lidars_are_listed(rig):
    r = rig(
        **{
            'cameras': ['front'],
            'camera.front.topic': '/front/image_raw',
            'lidars': ['top'],
            'lidar.top.topic': '/points',
            'lidar.top.pointcloud.color': 'rgb565',
        }
    )
    r.recorder.start_session()
    r.recorder.end_session('shutdown')
    properties = r.properties()
    assert properties['c3d.ros.cameras'] == 'front'
    assert properties['c3d.ros.camera.front.topic'] == '/front/image_raw'
    assert properties['c3d.ros.camera.front.rate_hz'] == 2
    assert properties['c3d.ros.camera.front.jpeg_quality'] == 80
    assert properties['c3d.ros.camera.front.max_width'] == 1280
    assert properties['c3d.ros.lidars'] == 'top'
    assert properties['c3d.ros.lidar.top.pointcloud.color'] == 'rgb565'
    assert properties['c3d.ros.lidar.top.pointcloud.voxel_leaf_mm'] == 50
    assert properties['c3d.ros.lidar.top.laserscan.intensities'] is False


@pytest.mark.rule(60)
def test_properties_that_become_known_later_travel_alone(rig):
    r = rig()
    r.recorder.start_session()
    r.run(1)
    r.recorder.set_properties({'c3d.remote_variable.max_speed': 80, 'c3d.deviceid': 'rover-07'})
    r.recorder.set_properties({'c3d.remote_variable.max_speed': 80})
    r.recorder.end_session('shutdown')
    later = [body['properties'] for body in r.bodies('gaze') if 'properties' in body][1:]
    assert later == [{'c3d.remote_variable.max_speed': 80}]


def test_the_operating_systems_name():
    text = 'NAME="Ubuntu"\n# PRETTY_NAME=no\nPRETTY_NAME="Ubuntu 24.04.3 LTS"\nID=ubuntu\n'
    assert os_name(text) == 'Ubuntu 24.04.3 LTS'
    assert os_name("NAME='Alpine Linux'\n") == 'Alpine Linux'
    assert os_name('') == 'unknown'


def test_health_is_written_every_five_seconds_and_before_the_end(rig):
    r = rig()
    r.robot(0)
    r.recorder.start_session()
    r.run(17, robot=lambda t: (t,))
    r.recorder.end_session('shutdown')
    for name in (
        'c3d.dropped_events',
        'c3d.spool_bytes',
        'c3d.upload_blocked',
        'c3d.parts_evicted',
    ):
        assert [time - T0 for time, _ in r.series(name)] == [5, 10, 15, 17]
    assert r.series('c3d.disk_free_bytes')[0][1] > 0


def test_counts_start_at_zero_with_each_session(rig):
    r = rig()
    for _ in range(2):
        r.recorder.start_session()
        r.recorder.event_json('bad')
        session_id = r.recorder.session_id
        r.run(1)
        r.recorder.end_session('shutdown')
        assert r.series('c3d.dropped_events', session_id)[-1][1] == 1


def test_every_event_that_came_in_is_accounted_for(rig):
    r = rig()
    r.recorder.start_session()
    for text in ('{"name": "a"}', 'nonsense', '{"name": "c3d.x"}', '{"name": "b"}'):
        r.recorder.event_json(text)
    r.recorder.event('c', '{}')
    r.recorder.event('d', '[]')
    r.recorder.end_session('shutdown')
    fates = {fate: r.ledger.value((fate, 'events')) for fate in Fate}
    assert fates[Fate.RECEIVED] == 6
    assert fates[Fate.STORED] == 3
    assert fates[Fate.DROPPED] == 3
    assert sum(n for fate, n in fates.items() if fate is not Fate.RECEIVED) == fates[Fate.RECEIVED]
