"""The reader, on part files made by hand, on a live spool, and on what a gateway stored."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stored import (
    PROPERTIES,
    SCENE,
    SECOND,
    SESSION,
    annotation,
    at,
    body,
    event,
    identity,
    pose,
    whole,
    write,
)

import cognitive3d_ros
from cognitive3d_ros import list_sessions, open_session
from cognitive3d_ros.errors import ReadError
from cognitive3d_ros.session.records import (
    Annotation,
    DynamicSnapshot,
    Event,
    HealthSample,
    PoseSample,
    Record,
    SeriesSample,
)
from cognitive3d_ros.spool import Spool
from cognitive3d_ros.wire import bodies


@pytest.fixture
def session(tmp_path):
    return open_session(whole(tmp_path / 'sessions' / SESSION))


@pytest.mark.rule(1, 2, 6, 8, 26, 27, 36, 39, 46)
def test_a_whole_session(session):
    assert session.id == SESSION
    assert session.device_id == 'rover-07'
    assert (session.scene_id, session.scene_version) == (SCENE, 3)
    assert session.start == at(0)
    assert session.end == at(10)
    assert session.duration == pytest.approx(10)
    assert session.ended
    assert session.end_reason == 'serviceCall'
    assert not session.recovered
    assert not session.has_journal
    assert session.properties == PROPERTIES | {'c3d.ros.reference_frame': 'odom', 'laps': 2}
    assert session.convention == 'gltf_authored'
    assert session.comment == 'wet floor'
    assert len(session.parts) == 8
    assert len(session.poses) == 101
    assert session.poses[3] == PoseSample(at(0.3), (0.03, 0.0, 0.06), (0.0, 0.0, 0.0, 1.0))
    assert session.poses.p.shape == (101, 3)
    assert [e.name for e in session.events] == [
        'c3d.sessionStart',
        'dock.reached',
        'c3d.sessionEnd',
    ]
    assert session.events[1].properties == {'dock': 'A', 'ok': True}
    assert session.events[1].point == (1.0, 0.0, 2.0)
    assert list(session.series) == ['battery.percentage', 'c3d.pose_failures']
    assert list(session.series['battery.percentage'])[:2] == [(at(0), 80.0), (at(1), 79.0)]
    assert session.series['battery.percentage'][-1] == (at(5), 75.0)
    assert session.dynamics[0] == DynamicSnapshot(
        at(0), 'body', (0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0), ({'enabled': True},)
    )
    assert session.dynamics[1].properties == ()
    assert session.dynamics.manifest['body'].mesh == 'rover'
    assert session.faults == []
    assert repr(session).startswith(f'<Session {SESSION} in ')


@pytest.mark.rule(12, 13)
def test_times_are_exact_in_nanoseconds():
    assert Record(1767225600.12345).time_ns == 1767225600_123450000
    assert Record(1767225600.001).time_ns == 1767225600_001000000


@given(st.integers(0, 4_000_000_000 * 100_000))
def test_five_decimals_survive_the_float(ticks):
    assert Record(float(f'{ticks // 100_000}.{ticks % 100_000:05d}')).time_ns == ticks * 10_000


def test_columns_slice_and_iterate_as_sequences(session):
    poses = session.poses
    assert [p.time for p in poses[2:5]] == [at(0.2), at(0.3), at(0.4)]
    assert poses[-1].time == at(10)
    assert len(list(poses)) == 101
    with pytest.raises(IndexError):
        poses[101]


# Where sessions are found


def test_a_session_is_found_from_every_place_it_may_be_named_by(tmp_path):
    folder = whole(tmp_path / 'sessions' / SESSION)
    for path in (tmp_path, tmp_path / 'sessions', folder, str(folder), folder / '.'):
        assert open_session(path).id == SESSION
        assert len(open_session(path).poses) == 101
    os.chdir(folder)
    assert open_session('.').id == SESSION


def test_loose_parts_are_sorted_by_what_their_headers_say(tmp_path):
    whole(tmp_path / 'loose')
    write(tmp_path / 'loose', 'events', 9, 'events', [], session='1767225700_rover-08')
    assert [s.id for s in list_sessions(tmp_path / 'loose')] == [SESSION, '1767225700_rover-08']
    session = open_session(tmp_path / 'loose', SESSION)
    assert len(session.poses) == 101
    assert session.faults == []
    single = open_session(tmp_path / 'loose' / 'gaze.000002.pose.c3d')
    assert len(single.poses) == 50
    assert single.start == SECOND + 0.25  # from the header: there is no event


def test_a_loose_part_that_cannot_be_read_is_reported_by_all_that_it_may_belong_to(tmp_path):
    whole(tmp_path / 'loose')
    (tmp_path / 'loose' / 'gaze.000005.pose.c3d').write_bytes(b'C3DPART\0')
    session = open_session(tmp_path / 'loose')
    assert len(session.poses) == 101
    assert [fault.part for fault in session.faults] == ['gaze.000005.pose.c3d']


def test_what_holds_no_session_is_said(tmp_path):
    def refused(path, session_id=None):
        with pytest.raises(ReadError) as caught:
            open_session(path, session_id)
        return str(caught.value)

    assert 'does not exist' in refused(tmp_path / 'none')
    assert 'holds no sessions' in refused(tmp_path)
    (tmp_path / 'sessions').mkdir()
    assert 'holds no sessions yet' in refused(tmp_path)
    (tmp_path / 'x.txt').write_text('x')
    assert 'has not the name of a part' in refused(tmp_path / 'x.txt')
    (tmp_path / 'gaze.000001.pose.c3d').write_bytes(b'x')
    assert 'not a part' in refused(tmp_path / 'gaze.000001.pose.c3d')
    for n in range(12):
        whole(tmp_path / 'sessions' / f'{SECOND + n}_r', f'{SECOND + n}_r')
    message = refused(tmp_path)
    assert '12 sessions, choose one by its id' in message
    assert f'{SECOND + 11}_r and 2 older' in message
    assert f'holds no session {SESSION}; it has {SECOND + 2}_r' in refused(tmp_path, SESSION)
    assert open_session(tmp_path, f'{SECOND}_r').id == f'{SECOND}_r'
    assert [s.id for s in list_sessions(tmp_path)] == [f'{SECOND + n}_r' for n in range(12)]


def test_sessions_are_ordered_by_their_second_not_by_their_text(tmp_path):
    for session in ('1000000000_a', '999999999_b'):
        whole(tmp_path / 'sessions' / session, session)
    assert [s.id for s in list_sessions(tmp_path)] == ['999999999_b', '1000000000_a']


def test_opening_reads_no_part(tmp_path, monkeypatch):
    whole(tmp_path / 'sessions' / SESSION)
    monkeypatch.setattr('pathlib.Path.read_bytes', None)
    monkeypatch.setattr('pathlib.Path.open', None)
    assert open_session(tmp_path).id == SESSION


# What cannot be read


def test_unreadable_parts_are_passed_over_and_reported(tmp_path):
    folder = whole(tmp_path / 'sessions' / SESSION)
    cut = folder / 'gaze.000002.pose.c3d'
    cut.write_bytes(cut.read_bytes()[:-1])
    (folder / 'gaze.000005.pose.c3d').write_bytes(b'')
    write(folder, 'gaze', 6, 'pose', b'{"no":"body"}')
    write(folder, 'gaze', 7, 'pose', [pose(1)], session='1767225600_other')
    write(folder, 'gaze', 8, 'pose', body('gaze', 8, [], '1767225600_other'))
    (folder / 'gaze.000009.pose.c3d').mkdir()
    write(folder, 'gaze', 10, 'pose', [pose(1)]).rename(folder / 'gaze.000011.pose.c3d')
    session = open_session(folder)
    assert len(session.poses) == 51
    assert session.poses[0].time == at(5)
    assert {(fault.part[:11], fault.reason) for fault in session.faults} == {
        (
            'gaze.000002',
            f'cut off: {cut.stat().st_size} of {cut.stat().st_size + 1} bytes are there',
        ),
        ('gaze.000005', 'empty'),
        ('gaze.000006', 'sessionid: a text wanted, not nothing'),
        ('gaze.000007', 'by its header it is gaze pose 7 of 1767225600_other'),
        ('gaze.000008', 'its body is one of session 1767225600_other'),
        ('gaze.000009', 'cannot be read: Is a directory'),
        ('gaze.000011', f'by its header it is gaze pose 10 of {SESSION}'),
    }
    assert session.properties['laps'] == 2  # gaze is read twice, each fault is told once
    assert len(session.faults) == 7


def test_records_that_cannot_be_read_are_passed_over_and_reported(tmp_path):
    gaze = [
        pose(0),
        {'time': 'soon'},
        pose(1) | {'p': [1, 2]},
        None,
        pose(2, g=[1, 2, 'x']),
        pose(3),
    ]
    gaze.append(pose(4) | {'p': [10**30, 0, 0]})  # whole, only no machine integer
    write(tmp_path, 'gaze', 1, 'pose', gaze)
    write(tmp_path, 'gaze', 2, 'properties', body('gaze', 2, [], properties={'a': [1], 'b': 2}))
    write(tmp_path, 'events', 1, 'events', [{'name': 'x'}, event('y', 1)])
    write(
        tmp_path,
        'sensors',
        1,
        'series',
        [
            {'name': 'a', 'data': [[1, 2], [1], [1, 'x'], [True, 2], [3, 4]]},
            {'name': 'b'},
            {'data': []},
            7,
            {'name': 'a', 'data': [[5, 6]]},
        ],
    )
    dynamics = body(
        'dynamics',
        1,
        [{'id': 5}, {'id': 'a'} | pose(1)],
        manifest={'a': 5, 'b': {'name': 'B', 'mesh': 'm'}},
    )
    write(tmp_path, 'dynamics', 1, 'pose', dynamics)
    session = open_session(tmp_path)
    assert [p.time for p in session.poses] == [at(0), at(3), at(4)]
    assert session.poses.p[2, 0] == 1e30
    assert session.properties == {'b': 2}
    assert [e.name for e in session.events] == ['y']
    assert {name: list(each) for name, each in session.series.items()} == {
        'a': [(1.0, 2.0), (3.0, 4.0), (5.0, 6.0)]
    }
    assert [s.id for s in session.dynamics] == ['a']
    assert list(session.dynamics.manifest) == ['b']
    assert sorted(str(fault).partition(' ')[0] for fault in session.faults) == sorted(
        ['dynamics.000001.pose.c3d:'] * 2
        + ['events.000001.events.c3d:']
        + ['gaze.000001.pose.c3d:'] * 4
        + ['gaze.000002.properties.c3d:']
        + ['sensors.000001.series.c3d:'] * 6
    )


def test_a_session_of_nothing_readable_still_opens(tmp_path):
    folder = tmp_path / SESSION
    folder.mkdir()
    (folder / 'events.000001.events.c3d').write_bytes(b'')
    session = open_session(folder)
    assert (session.scene_id, session.scene_version) == ('', 0)
    assert session.start == session.end == SECOND
    assert not session.ended
    assert len(session) == 0
    assert len(session.faults) == 1


# Old sessions


@pytest.mark.rule(29, 70)
def test_old_sessions_have_gaze_points_and_other_names(tmp_path):
    old = {'c3d.ros.camera_frame': 'head', 'c3d.ros.camera_frame_convention': 'optical_forward_z'}
    write(tmp_path, 'gaze', 1, 'properties', body('gaze', 1, [], properties=old))
    write(tmp_path, 'gaze', 2, 'pose', [pose(0, g=[1.0, 2.0, 3.0]), pose(1)])
    series = [{'name': 'c3d.camera_frame_failures', 'data': [[at(5), 3]]}]
    write(tmp_path, 'sensors', 1, 'series', series)
    session = open_session(tmp_path)
    assert session.properties['c3d.ros.gaze_frame'] == 'head'
    assert session.properties['c3d.ros.gaze_frame_convention'] == 'optical_forward_z'
    assert session.properties == old
    assert 'c3d.ros.gaze_frame' in session.properties
    assert 'c3d.ros.other' not in session.properties
    assert session.series['c3d.gaze_frame_failures'][0] == (at(5), 3.0)
    assert session.poses[0].g == (1.0, 2.0, 3.0)
    assert session.poses[1].g is None


@pytest.mark.rule(70)
def test_the_new_name_is_read_first(tmp_path):
    both = {'c3d.ros.camera_frame': 'old', 'c3d.ros.gaze_frame': 'new'}
    write(tmp_path, 'gaze', 1, 'properties', body('gaze', 1, [], properties=both))
    assert open_session(tmp_path).properties['c3d.ros.gaze_frame'] == 'new'


# All records in time order


def test_all_records_are_one_sequence_in_time_order(session):
    assert len(session) == 101 + 3 + 8 + 2
    times = [record.time for record in session]
    assert times == sorted(times)
    assert session[0] == session.events[0]
    assert session.kind(0) is Event
    assert session[-1].time == at(10)
    assert session.kind(-1) is PoseSample  # of one time, events come first
    assert [type(r) for r in session[:4]] == [Event, PoseSample, DynamicSnapshot, SeriesSample]
    assert all(type(record) is session.kind(i) for i, record in enumerate(session))
    with pytest.raises(IndexError):
        session[len(session)]


def test_find_is_half_open_and_finds_subtypes(session):
    assert [r.time for r in session.find(PoseSample, at(1), at(1.3))] == [at(1), at(1.1), at(1.2)]
    assert len(session.find(Record)) == len(session)
    assert {type(r) for r in session.find(SeriesSample)} == {SeriesSample, HealthSample}
    assert [r.name for r in session.find(HealthSample)] == ['c3d.pose_failures'] * 2
    assert session.find(Annotation) == []
    assert session.find(PoseSample, at(3), at(3)) == []


def test_nearest(session):
    assert session.nearest(PoseSample, at(3.26)).time == at(3.3)
    assert session.nearest(PoseSample, 0).time == at(0)
    assert session.nearest(Event, at(5)).name == 'dock.reached'
    assert session.nearest(Annotation, at(5)) is None


def test_stamps_need_not_ascend(tmp_path):
    write(tmp_path, 'gaze', 1, 'pose', [pose(3), pose(1), pose(2, 0.5), pose(2, 0.25)])
    session = open_session(tmp_path)
    assert [(r.time, r.p[0]) for r in session] == [
        (at(1), 0.0),
        (at(2), 0.5),
        (at(2), 0.25),
        (at(3), 0.0),
    ]
    assert [p.time for p in session.poses] == [at(3), at(1), at(2), at(2)]  # as stored
    assert session.pose_at(at(1.5)).p[0] == pytest.approx(0.25)


@given(st.lists(st.tuples(st.integers(0, 20), st.booleans()), max_size=30))
def test_the_sequence_is_a_stable_sort_of_its_streams(tmp_path_factory, items):
    folder = tmp_path_factory.mktemp('session')
    events = [event(f'e{n}', t) for n, (t, is_event) in enumerate(items) if is_event]
    poses = [pose(t, n / 8) for n, (t, is_event) in enumerate(items) if not is_event]
    write(folder, 'events', 1, 'events', events)
    write(folder, 'gaze', 1, 'pose', poses)
    session = open_session(folder)
    expected = sorted([*session.events, *session.poses], key=lambda record: record.time)
    assert list(session) == expected
    for low, high in ((at(0), at(21)), (at(5), at(9))):
        assert session.find(Record, low, high) == [r for r in expected if low <= r.time < high]


def test_the_pose_at_a_time_is_interpolated(tmp_path):
    # From no turn to a quarter turn about Y: a third of the way is 30 degrees.
    quarter = [0.0, np.sqrt(0.5), 0.0, np.sqrt(0.5)]
    records = [
        pose(0, 1.0),
        pose(3, 4.0) | {'r': quarter},
        pose(4, 4.0) | {'r': [-x for x in quarter]},
    ]
    write(tmp_path, 'gaze', 1, 'pose', records)
    session = open_session(tmp_path)
    found = session.pose_at(at(1))
    assert found.time == at(1)
    assert found.p == pytest.approx((2.0, 0.0, 4.0), abs=1e-6)
    thirty = np.radians(30)
    assert found.r == pytest.approx((0, np.sin(thirty / 2), 0, np.cos(thirty / 2)), abs=1e-6)
    # q and −q are one rotation: nothing turns between the last two.
    assert np.abs(session.pose_at(at(3.5)).r) == pytest.approx(quarter, abs=1e-6)
    assert session.pose_at(at(3)).p[0] == 4.0
    assert session.pose_at(at(4)).p[0] == 4.0
    assert session.pose_at(at(-0.001)) is None
    assert session.pose_at(at(4.001)) is None


def test_a_single_pose_is_its_own_time_only(tmp_path):
    write(tmp_path, 'gaze', 1, 'pose', [pose(1, 2.0)])
    session = open_session(tmp_path)
    assert session.pose_at(at(1)).p[0] == 2.0
    assert session.pose_at(at(1.1)) is None


# A session that is being recorded


def live_session(root):
    """Record some of a session into a spool, and return the spool and what it has of it."""
    spool = Spool.open(root)
    held = spool.start(identity(), bodies.assemble)

    def append(stream, klass, entry, seconds):
        held.append(
            stream,
            klass,
            entry,
            time_ns=round(at(seconds) * 1e9),
            at_ns=round(seconds * 1e9),
        )

    return spool, held, append


def pose_entry(seconds, x):
    return bodies.pose_entry(
        round(at(seconds) * 1e5) * 10_000, (x, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0)
    )


def test_a_session_is_read_while_it_is_recorded(tmp_path):
    spool, held, append = live_session(tmp_path)
    start = bodies.event_entry('c3d.sessionStart', round(at(0) * 1e9), (0, 0, 0), {})
    append('gaze', 'properties', bodies.properties_entry({'c3d.version': '1.0.0'}), 0)
    append('events', 'events', start, 0)
    append('sensors', 'series', bodies.samples_entry(round(at(0) * 1e9), [('battery', 80.0)]), 0)
    seen = 0
    for n in range(35):  # over three closings of a part
        append('gaze', 'pose', pose_entry(n, float(n)), n)
        held.flush()
        session = open_session(tmp_path)
        assert [p.p[0] for p in session.poses] == [float(k) for k in range(n + 1)]
        assert session.faults == []
        assert session.has_journal
        assert not session.ended
        seen = max(seen, len(session.parts))
    assert seen >= 3
    assert session.end == at(34)
    assert session.properties == {'c3d.version': '1.0.0'}
    assert (session.scene_id, session.scene_version) == (SCENE, 3)
    assert list(session.series['battery']) == [(at(0), 80.0)]
    length = {'Reason': 'serviceCall', 'sessionlength': 34}
    end = bodies.event_entry('c3d.sessionEnd', round(at(34) * 1e9), (0, 0, 0), length)
    append('events', 'events', end, 34)
    held.finish()
    session = open_session(tmp_path)
    assert session.ended
    assert not session.has_journal
    assert len(session.poses) == 35
    assert session.faults == []
    spool.close()


def test_a_part_finished_after_the_journal_was_read_is_not_read_twice(tmp_path):
    spool, held, append = live_session(tmp_path)
    append('gaze', 'pose', pose_entry(0, 1.0), 0)
    held.flush()
    journal = (tmp_path / 'sessions' / SESSION / 'journal').read_bytes()
    held.seal('gaze', 'pose')
    held.flush()
    # The moment between: the part is there, and the journal still names its segment as open.
    (tmp_path / 'sessions' / SESSION / 'journal').write_bytes(journal)
    assert [p.p[0] for p in open_session(tmp_path).poses] == [1.0]
    spool.close()


def test_a_session_that_was_cut_is_read_from_parts_and_journal(tmp_path):
    spool, held, append = live_session(tmp_path)
    for n in range(12):
        append('gaze', 'pose', pose_entry(n, float(n)), n)
        held.flush()
    spool.close()
    path = tmp_path / 'sessions' / SESSION / 'journal'
    path.write_bytes(path.read_bytes() + b'torn')
    session = open_session(tmp_path)
    assert len(session.poses) == 12
    assert session.has_journal
    path.write_bytes(b'nothing of it')
    session = open_session(tmp_path)
    assert 0 < len(session.poses) < 12


def test_a_copy_of_a_session_that_was_cut_brings_its_journal(tmp_path):
    spool, held, append = live_session(tmp_path / 'spool')
    append('gaze', 'pose', pose_entry(0, 1.0), 0)
    held.flush()
    spool.close()
    (tmp_path / 'spool' / 'sessions' / SESSION).rename(tmp_path / 'copy')
    session = open_session(tmp_path / 'copy')
    assert session.id == SESSION
    assert [p.p[0] for p in session.poses] == [1.0]


def test_a_part_that_is_delivered_meanwhile_is_reported(tmp_path):
    folder = whole(tmp_path / 'sessions' / SESSION)
    session = open_session(tmp_path)
    assert len(session.parts) == 8
    (folder / 'gaze.000002.pose.c3d').unlink()
    assert len(session.poses) == 51
    assert 'delivered, or removed' in session.faults[0].reason


# The package


def test_the_reader_is_exported_and_costs_nothing_until_it_is_used():
    code = (
        'import sys, cognitive3d_ros\n'
        'assert "numpy" not in sys.modules\n'
        'from cognitive3d_ros import Session, list_sessions, open_session\n'
        'bad = {"rclpy", "cv2", "capnp", "requests", "starlette", "uvicorn", "rosbags"}\n'
        'assert not bad & set(sys.modules), bad & set(sys.modules)\n'
    )
    subprocess.run([sys.executable, '-c', code], check=True)
    with pytest.raises(AttributeError):
        cognitive3d_ros.nothing_of_the_kind  # noqa: B018


def test_annotations_are_events_too(tmp_path):
    records = [
        event('c3d.sessionStart', 0),
        annotation(1, 'comment', 'hello', 'camera/front'),
        event('c3d.annotation', 2, key=5),
        event('c3d.annotation', 3, key='comment'),
    ]
    write(tmp_path, 'events', 1, 'events', records)
    session = open_session(tmp_path)
    first, second = session.annotations
    assert (first.key, first.value, first.stream_name) == ('comment', 'hello', 'camera/front')
    assert first.annotation_time == at(1)
    assert second.annotation_time == at(3)  # it says none of its own
    assert type(session.events[2]) is Event
    assert 'an annotation at' in session.faults[0].reason
    assert len(session.find(Event)) == 4
    assert len(session.find(Annotation)) == 2


# What is read, and when


def test_the_first_records_are_read_by_themselves(tmp_path):
    for number in range(1, 6):
        poses = [pose(10 * number + n, float(number)) for n in range(4)]
        write(tmp_path, 'gaze', number, 'pose', poses)
    for number in (3, 4, 5):
        (tmp_path / f'gaze.00000{number}.pose.c3d').write_bytes(b'')
    session = open_session(tmp_path)
    assert session.poses[0].time == at(10)
    assert session.poses[5].time == at(21)
    assert [p.time for p in session.poses[:6:2]] == [at(10), at(12), at(20)]
    first = [p for p, _ in zip(session.poses, range(3), strict=False)]
    assert [p.time for p in first] == [at(10), at(11), at(12)]
    assert session.faults == []  # no part beyond was read
    with pytest.raises(IndexError):
        session.poses[8]
    assert len(session.faults) == 3
    assert session.poses[-1].time == at(23)
    assert len(session.poses) == 8


@given(
    st.lists(st.integers(1, 5), max_size=5),
    st.slices(30) | st.integers(-30, 30),
)
def test_records_that_are_streamed_are_those_that_are_loaded(tmp_path_factory, parts, index):
    folder = tmp_path_factory.mktemp('session')
    n = 0
    for number, count in enumerate(parts, 1):
        write(folder, 'gaze', number, 'pose', [pose(n + k, n + k) for k in range(count)])
        n += count
    write(folder, 'events', 1, 'events', [])
    fresh, loaded = open_session(folder).poses, open_session(folder).poses
    everything = [loaded[k] for k in range(len(loaded))]
    assert list(fresh) == everything
    try:
        expected = everything[index]
    except IndexError:
        with pytest.raises(IndexError):
            open_session(folder).poses[index]
    else:
        assert open_session(folder).poses[index] == expected
