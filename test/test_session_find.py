"""Finding by time reads only the parts that can hold it, and finds what reading all of them finds."""

import bisect
import itertools
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stored import (
    PROPERTIES,
    SECOND,
    at,
    body,
    cloud_record,
    event,
    frame_record,
    identity,
    pose,
    scan_record,
    write,
    write_sensors,
)

from cognitive3d_ros import open_session
from cognitive3d_ros.clock import ManualClocks, SessionClock
from cognitive3d_ros.session import finding
from cognitive3d_ros.session.finding import Bounds, PartFinder
from cognitive3d_ros.session.records import (
    CameraFrame,
    DynamicSnapshot,
    PoseSample,
    Record,
    SeriesSample,
)
from cognitive3d_ros.session.session import Session
from cognitive3d_ros.session.summary import row
from cognitive3d_ros.wire import capnp_codec

_S = 1_000_000_000
FEW_LOOKS = mock.patch.object(finding, '_SPREAD', 1)  # else all parts of a short session are read


def put_properties(folder, properties=PROPERTIES):
    write(folder, 'gaze', 1, 'properties', body('gaze', 1, [], properties=properties))


@pytest.fixture
def loads(monkeypatch):
    """The names of the parts that were read whole."""
    read = []
    load = Session.load
    monkeypatch.setattr(
        Session, 'load', lambda self, file: read.append(file.label) or load(self, file)
    )
    return read


# What is read


@pytest.fixture(scope='module')
def long_session(tmp_path_factory):
    """Fifty minutes of poses, snapshots and series in parts of 10 s, and of a camera."""
    folder = tmp_path_factory.mktemp('long')
    put_properties(folder)
    for number in range(300):
        seconds = [10 * number + n for n in range(0, 10, 2)]
        write(folder, 'gaze', number + 2, 'pose', [pose(t, t) for t in seconds])
        snapshots = [{'id': 'arm'} | pose(t, t) for t in seconds]
        write(folder, 'dynamics', number + 1, 'pose', snapshots)
        names = ('b', 'a') if number % 2 else ('a', 'b')  # in parts they come in any order
        series = [{'name': name, 'data': [[at(t), t] for t in seconds]} for name in names]
        write(folder, 'sensors', number + 1, 'series', series)
        frames = [frame_record(t - 3, 5 * number + n) for n, t in enumerate(seconds)]
        write_sensors(folder, 'camera', number + 1, frames)
    return folder


@pytest.mark.parametrize('kind', [PoseSample, DynamicSnapshot, SeriesSample])
def test_a_minute_is_found_without_reading_the_rest(long_session, loads, kind):
    start, end = at(1500), at(1560)
    found = open_session(long_session).find(kind, start, end)
    assert len(loads) < 100
    everything = open_session(long_session)
    assert found == [r for r in everything if isinstance(r, kind) and start <= r.time < end]
    assert len(found) in (30, 60)


def test_pictures_are_found_from_the_first_bytes_of_their_parts(long_session, loads):
    session = open_session(long_session)
    found = session.find(CameraFrame, at(1500), at(1520))
    assert [r.seq for r in found] == list(
        range(752, 762)
    )  # three seconds late, one in two seconds
    assert session.nearest(CameraFrame, at(1507.4)).seq == 755
    cameras = [name for name in loads if name.startswith('camera')]
    assert sorted(set(cameras)) == [f'camera.{n:06}.camera.c3d' for n in range(151, 154)]


def test_the_pose_at_a_moment(long_session, loads):
    session = open_session(long_session)
    assert session.pose_at(at(2001)).p == pytest.approx((2001, 0, 4002))
    assert session.nearest(PoseSample, at(2001.25)).time == at(2002)
    assert len(loads) < 100
    assert session.pose_at(at(-1)) is None
    assert session.pose_at(at(3000)) is None
    assert session.nearest(PoseSample, at(1e6)).time == at(2998)


def test_nothing_is_between_an_end_and_a_start(long_session, loads):
    session = open_session(long_session)
    assert session.find(PoseSample, at(20), at(20)) == []
    assert session.find(PoseSample, at(20), at(10)) == []
    assert loads == []


def test_a_part_that_is_damaged_is_told_where_it_is_wanted(long_session, tmp_path):
    for file in long_session.iterdir():
        (tmp_path / file.name).hardlink_to(file)
    for name in ('gaze.000151.pose.c3d', 'camera.000151.camera.c3d', 'gaze.000017.pose.c3d'):
        damaged = (tmp_path / name).read_bytes()[:100]
        (tmp_path / name).unlink()
        (tmp_path / name).write_bytes(damaged)
    session = open_session(tmp_path)
    assert len(session.find(PoseSample, at(1480), at(1520))) == 15
    assert len(session.find(CameraFrame, at(1480), at(1520))) == 15
    assert [fault.part for fault in session.faults] == [
        'gaze.000151.pose.c3d',
        'camera.000151.camera.c3d',
    ]


def test_a_session_whose_time_steps_back_after_all_is_read_whole(tmp_path):
    # No recorder does that, whatever its clock does; one that says it is of this version has.
    put_properties(tmp_path)
    for number in range(100):
        shift = -500 if 40 <= number < 60 else 0
        poses = [pose(10 * number + n + shift, number) for n in range(0, 10, 5)]
        write(tmp_path, 'gaze', number + 2, 'pose', poses)
    found = open_session(tmp_path).find(PoseSample, at(20), at(30))
    assert [r.p[0] for r in found] == [2, 52, 2, 52]


# Against reading all of it


def same_as_all(folder, kind, moments):
    """Hold find, nearest and pose_at of a fresh session against what reading all of it gives."""
    everything = [r for r in open_session(folder) if isinstance(r, kind)]
    times = [r.time for r in everything]
    for start, end in itertools.pairwise(moments):
        low, high = bisect.bisect_left(times, start), bisect.bisect_left(times, end)
        assert open_session(folder).find(kind, start, end) == everything[low : max(low, high)]
    for moment in moments:
        read = open_session(folder)
        len(read)
        assert open_session(folder).nearest(kind, moment) == read.nearest(kind, moment)
        assert open_session(folder).pose_at(moment) == read.pose_at(moment)


def put_parts(folder, times, cuts, without):
    """Write poses at times, cut into parts, some of them properties, damaged or not there."""
    edges = [0, *sorted({cut % (len(times) + 1) for cut in cuts}), len(times)]
    for number, (low, high) in enumerate(itertools.pairwise(edges), 2):
        if number % 5 == without:
            continue
        poses = [
            {'time': time, 'p': [n, 0, 0], 'r': [0, 0, 0, 1]}
            for n, time in zip(range(low, high), times[low:high], strict=True)
        ]
        path = write(folder, 'gaze', number, 'pose', poses)
        if number % 7 == without:
            path.write_bytes(path.read_bytes()[:-9])


STEPS = st.tuples(
    st.sampled_from([0.05, 1.0, 20.0, 70.0]),  # the monotonic clock
    st.sampled_from(
        [0.0] * 6 + [-0.04, -0.2, 5.0, -90.0, -7200.0]
    ),  # and how the wall clock jumps
)
CUTS = st.lists(st.integers(0, 1000), min_size=3, max_size=14)


@FEW_LOOKS
@settings(max_examples=30)
@given(st.lists(STEPS, min_size=5, max_size=40), CUTS, st.integers(0, 8), st.data())
def test_sessions_as_recorders_make_them(tmp_path_factory, steps, cuts, without, data):
    clocks = ManualClocks(SECOND * _S, 5 * _S, 5 * _S)
    clock = SessionClock(clocks.read(), last_second=None)
    times = []
    for passed_s, jump_s in steps:
        clocks.advance(round(passed_s * _S))
        clocks.wall_ns += round(jump_s * _S)
        times.append(round(clock.arrive(clocks.read()).wire_ns / _S, 5))
    folder = tmp_path_factory.mktemp('session')
    put_properties(folder)
    put_parts(folder, times, cuts, without)
    around = st.sampled_from(times).flatmap(
        lambda t: st.sampled_from([t, t - 0.01, t + 30, t - 60])
    )
    moments = data.draw(st.lists(around, min_size=2, max_size=4))
    same_as_all(folder, PoseSample, moments)


@FEW_LOOKS
@settings(max_examples=30)
@given(st.lists(st.integers(0, 3000), min_size=1, max_size=30), CUTS, st.integers(0, 8))
def test_sessions_of_others_in_any_order(tmp_path_factory, seconds, cuts, without):
    folder = tmp_path_factory.mktemp('session')
    put_properties(folder, {'c3d.ros.pose_convention': 'unity'})
    put_parts(folder, [at(t) for t in seconds], cuts, without)
    same_as_all(folder, PoseSample, [at(seconds[0]), at(seconds[0] + 100), at(1000), at(2000)])


@FEW_LOOKS
@settings(max_examples=30)
@given(
    st.lists(st.tuples(st.integers(0, 900), st.integers(0, 3600)), min_size=1, max_size=25), CUTS
)
def test_pictures_whose_stamps_are_up_to_an_hour_old(tmp_path_factory, arrivals, cuts):
    folder = tmp_path_factory.mktemp('session')
    put_properties(folder)
    arrived = itertools.accumulate(passed for passed, _ in arrivals)
    frames = [
        frame_record(time - age, seq)
        for seq, (time, (_, age)) in enumerate(zip(arrived, arrivals, strict=True))
    ]
    edges = [0, *sorted({cut % (len(frames) + 1) for cut in cuts}), len(frames)]
    for number, (low, high) in enumerate(itertools.pairwise(edges), 1):
        if high > low:
            write_sensors(folder, 'camera', number, frames[low:high])
    moments = [frames[0].time_ms / 1000, frames[-1].time_ms / 1000, at(1000), at(4000), at(0)]
    same_as_all(folder, CameraFrame, moments)
    same_as_all(folder, Record, moments[:3])


@FEW_LOOKS
@settings(max_examples=400)
@given(
    st.lists(st.lists(st.integers(-5, 20), max_size=3), min_size=6, max_size=30),
    st.integers(-20, 200),
    st.integers(1, 30),
    st.booleans(),
)
def test_no_part_is_left_out_that_holds_something(parts, start, length, each):
    slack = 25
    times = [[10 * number + t for t in part] for number, part in enumerate(parts)]
    bounds = [Bounds(min(part), max(part)) if part else None for part in times]
    read = []

    def look(part):
        assert part not in read
        read.append(part)
        return bounds[part]

    finder = PartFinder(len(parts), look, slack)
    end = start + length
    for _ in range(2):
        found = finder.within(start, end, each=each)
        assert list(found) == sorted(found)
        holding = [n for n, part in enumerate(times) if any(start <= t < end for t in part)]
        assert set(holding) <= set(found)
        if each:
            assert {n for n in found if times[n] and bounds[n].first >= end} == set()


# Times from the first bytes of a part

RECORDS = st.lists(
    st.tuples(st.integers(0, 10**6), st.text(max_size=9), st.binary(max_size=300)), max_size=12
)


@given(RECORDS, st.booleans(), st.integers(0, 2000))
def test_times_from_the_first_bytes(records, is_camera, cut):
    if is_camera:
        made = [
            frame_record(t / 1000, n, name or 'c', data=data)
            for n, (t, name, data) in enumerate(records)
        ]
        packed = capnp_codec.encode_camera(identity(), 1, made)
    else:
        made = [
            cloud_record(t / 1000, n, [[1, 2, 3]] * len(data))
            if len(data) % 2
            else scan_record(t / 1000, n, list(data))
            for n, (t, _, data) in enumerate(records)
        ]
        packed = capnp_codec.encode_lidar(identity(), 1, made)
    times = [record.time_ms for record in made]
    whole = capnp_codec.record_times(packed)
    assert (whole is None and not times) or whole.tolist() == times
    part = capnp_codec.record_times(packed[:cut])
    assert part is None or part.tolist() == times


@given(
    st.binary(max_size=300)
    | st.lists(st.sampled_from([0, 1, 0x11, 0x50, 0xFF]), max_size=200).map(bytes)
)
def test_any_first_bytes_are_taken(packed):
    times = capnp_codec.record_times(packed)
    assert times is None or times.dtype == np.uint64


# The first records


def test_the_first_record_is_there_without_reading_the_rest(long_session, loads):
    session = open_session(long_session)
    with FEW_LOOKS:
        first = session[0]
    assert len(loads) < len(session.parts) / 10
    assert first == open_session(long_session).timeline()[0]


def test_the_first_records_are_those_of_all(long_session):
    every = list(open_session(long_session))
    session = open_session(long_session)
    for index in range(300):  # more than are read by themselves
        assert session[index] == every[index]
    session = open_session(long_session)
    assert session[-1] == every[-1]
    assert session[:7] == every[:7]
    with pytest.raises(IndexError):
        session[len(every)]


def test_a_session_whose_records_begin_late_or_early(tmp_path):
    for name, seconds in (('late', 1000), ('early', -1000)):
        folder = tmp_path / name
        put_properties(folder)
        write(folder, 'gaze', 2, 'pose', [pose(seconds, 1.0), pose(seconds + 1, 2.0)])
        assert open_session(folder)[0].time == at(seconds)
        assert open_session(folder)[1].time == at(seconds + 1)
    with pytest.raises(IndexError):
        open_session(folder)[2]


# A line of a list


def test_a_line_of_a_session_takes_few_parts(long_session, loads):
    session = open_session(long_session)
    with FEW_LOOKS:
        facts = row(session)
    assert not session.poses.loaded
    assert 'series' not in session.__dict__
    assert len([name for name in loads if not name.startswith('gaze')]) < 60
    every = open_session(long_session)
    assert facts['poses'] == len(every.poses) == 1500
    latest = max(record.time for record in every.find(Record) if type(record) is not CameraFrame)
    assert session.end == latest


def test_the_end_of_a_cut_session_is_its_latest_record(tmp_path):
    put_properties(tmp_path)
    for number in range(60):
        write(tmp_path, 'gaze', number + 2, 'pose', [pose(10 * number)])
        late = 10 * number + (25 if number == 57 else 0)  # later than all of the parts behind it
        write(tmp_path, 'dynamics', number + 1, 'pose', [{'id': 'arm'} | pose(late)])
    session = open_session(tmp_path)
    with FEW_LOOKS:
        assert session.end == at(595)
    assert 'dynamics' not in session.__dict__
    write(tmp_path, 'events', 1, 'events', [event('late', 700), event('c3d.sessionEnd', 650)])
    assert open_session(tmp_path).end == at(650)


def test_poses_are_counted_as_they_are_read(tmp_path):
    put_properties(tmp_path, PROPERTIES | {'time': 1, 'x': '{"time":'})
    write(tmp_path, 'gaze', 2, 'pose', [pose(1), pose(2)])
    assert open_session(tmp_path).pose_count() == len(open_session(tmp_path).poses)
    (tmp_path / 'gaze.000003.pose.c3d').write_bytes(b'')
    session = open_session(tmp_path)
    assert session.pose_count() == 2
    assert [fault.part for fault in session.faults] == ['gaze.000003.pose.c3d']


# What is no time, or no kind


def test_the_ends_of_time_have_the_first_and_the_last(long_session):
    session = open_session(long_session)
    ends = ((np.inf, -1), (1e300, -1), (10**12, -1), (10**400, -1), (-(10**400), 0))
    for time, index in ((-np.inf, 0), (-1e300, 0), *ends):
        assert session.nearest(PoseSample, time) == session.poses[index]
        assert session.timeline(PoseSample).nearest(PoseSample, time) == session.poses[index]
    assert len(session.find(PoseSample, -np.inf, np.inf)) == len(session.poses)
    assert session.pose_at(np.inf) is session.pose_at(10**400) is None
    assert session.find(PoseSample, 10**400) == []
    assert session.find(PoseSample, np.float32(0), np.int64(1)) == []


@pytest.mark.parametrize('wrong', ['a', None, b'1', [1.0], 1j, True, np.True_])
def test_what_is_no_number_is_no_time(long_session, wrong):
    session = open_session(long_session)
    for call in (
        lambda: session.find(PoseSample, wrong),
        lambda: session.find(PoseSample, at(0), wrong),
        lambda: session.nearest(PoseSample, wrong),
        lambda: session.pose_at(wrong),
        lambda: session.timeline(PoseSample).nearest(PoseSample, wrong),
    ):
        with pytest.raises(TypeError, match='a time in seconds since the epoch is wanted, not'):
            call()


def test_not_a_number_is_no_time(long_session):
    session = open_session(long_session)
    for call in (
        lambda: session.find(PoseSample, np.nan),
        lambda: session.find(PoseSample, at(0), np.nan),
        lambda: session.nearest(PoseSample, np.nan),
        lambda: session.pose_at(np.nan),
    ):
        with pytest.raises(ValueError, match='not NaN'):
            call()


@pytest.mark.parametrize('wrong', [int, 'poses', None, object, PartFinder])
def test_what_is_no_kind_of_record(long_session, wrong):
    session = open_session(long_session)
    for call in (session.find, session.timeline, lambda kind: session.nearest(kind, at(0))):
        with pytest.raises(TypeError, match='a kind of record is wanted'):
            call(wrong)
