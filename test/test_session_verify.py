"""Verification: a whole session passes, and each way in which one can be broken is named."""

import dataclasses
import subprocess
import sys
from itertools import pairwise

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from stored import (
    SECOND,
    SESSION,
    annotation,
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
from cognitive3d_ros.session.verify import Kind, _missing, verify


def findings(path):
    return [(finding.kind, finding.text) for finding in verify(open_session(path))]


def kinds(path):
    return {finding.kind for finding in verify(open_session(path))}


@pytest.fixture
def folder(tmp_path):
    return whole(tmp_path / 'sessions' / SESSION)


def test_a_whole_session_has_nothing_wrong(folder):
    assert findings(folder) == []


@pytest.mark.rule(77)
def test_missing_parts_are_named(folder):
    (folder / 'gaze.000003.properties.c3d').unlink()
    (folder / 'events.000001.events.c3d').unlink()
    write(folder, 'sensors', 5, 'series', [])
    found = findings(folder)
    assert (Kind.MISSING, 'gaze: part 3, the last is 4') in found
    assert (Kind.MISSING, 'events: part 1, the last is 2') in found
    assert (Kind.MISSING, 'sensors: parts 2–4, the last is 5') in found


FAR = 2**32 - 1


@pytest.mark.parametrize('spool', [False, True])
def test_a_number_that_is_far_off_is_a_range_and_not_billions_of_numbers(folder, spool):
    # In a process of its own: what would be tried before the timeout is to count to four billion.
    write(folder, 'lidar', FAR, 'lidar', [])
    write_sensors(folder, 'camera', 1, [frame_record(1, FAR - 1)])
    if spool:
        (folder.parent.parent / 'last_second').write_text('1')
    shown = subprocess.run(
        [sys.executable, '-m', 'cognitive3d_ros.cli.main', 'verify', str(folder)],
        capture_output=True,
        text=True,
        timeout=60,
    ).stdout
    assert f'lidar: parts 1–{FAR - 1}' in shown
    assert spool or f'camera front: records 0–{FAR - 2} by their seq' in shown


@given(st.sets(st.integers(1, 30), min_size=1), st.integers(1, 5))
def test_missing_numbers_are_those_that_are_not_there(numbers, lowest):
    ranges = _missing(numbers, lowest)
    missing = [n for low, high in ranges for n in range(low, high + 1)]
    assert missing == [n for n in range(lowest, max(numbers) + 1) if n not in numbers]
    assert all(high + 1 < low for (_, high), (low, _) in pairwise(ranges))


@pytest.mark.rule(77)
def test_a_number_that_is_there_twice_is_named(folder):
    write(folder, 'gaze', 2, 'properties', [])
    assert (Kind.REPEATED, 'gaze: part 2 more than once') in findings(folder)


def test_in_a_spool_what_is_missing_at_the_front_may_have_been_delivered(folder):
    (folder.parent.parent / 'last_second').write_text('1')
    for name in ('gaze.000001.properties', 'gaze.000002.pose', 'events.000001.events'):
        (folder / f'{name}.c3d').unlink()
    assert findings(folder) == [
        (Kind.NOTE, 'gaze: parts 1–2 not here: delivered, or evicted'),
        (Kind.NOTE, 'events: part 1 not here: delivered, or evicted'),
    ]
    write(folder, 'gaze', 6, 'pose', [])
    assert (Kind.MISSING, 'gaze: part 5, the last is 6') in findings(folder)


def test_unreadable_parts_are_named_once(folder):
    path = folder / 'gaze.000002.pose.c3d'
    data = bytearray(path.read_bytes())
    data[-100] ^= 1
    path.write_bytes(data)
    (folder / 'camera.000001.camera.c3d').write_bytes(b'')
    (folder / 'notes.txt').write_text('x')
    found = findings(folder)
    assert [kind for kind, _ in found] == [Kind.UNREADABLE, Kind.UNREADABLE, Kind.NOTE]
    assert 'gaze.000002.pose.c3d: damaged: the checksum is' in found[0][1]
    assert found[1][1] == 'camera.000001.camera.c3d: empty'
    assert found[2][1] == 'notes.txt: not a part'


def test_unreadable_records_are_named(folder):
    write(folder, 'gaze', 5, 'pose', [pose(10), {'time': 'soon'}])
    assert findings(folder) == [
        (Kind.UNREADABLE, "gaze.000005.pose.c3d: data[1].time: a finite number wanted, not 'soon'")
    ]


def test_parts_of_another_session_number_or_scene_are_named(folder):
    write(folder, 'gaze', 5, 'pose', body('gaze', 6, []))
    write(folder, 'gaze', 6, 'pose', [], version=4)
    write(folder, 'gaze', 7, 'pose', [], session=f'{SECOND}_other')
    found = findings(folder)
    assert found[0] == (Kind.MIXED, 'gaze.000005.pose.c3d: its body is numbered 6')
    assert found[1][0] is Kind.UNREADABLE
    assert 'by its header it is gaze pose 7 of' in found[1][1]
    assert found[2][0] is Kind.MIXED
    assert 'parts of 2 scene versions' in found[2][1]


def rewrite_events(folder, records):
    (folder / 'events.000002.events.c3d').unlink()
    write(folder, 'events', 1, 'events', records)


END = event('c3d.sessionEnd', 10, Reason='x', sessionlength=10)
START = event('c3d.sessionStart', 0)


@pytest.mark.rule(7, 8)
@pytest.mark.parametrize(
    ('records', 'kind', 'text'),
    [
        ([END], Kind.NO_START, 'there is no c3d.sessionStart'),
        ([START], Kind.NO_END, 'there is no c3d.sessionEnd: it was cut'),
        ([START, START, END], Kind.ORDER, '2 events c3d.sessionStart'),
        ([START, END, END], Kind.ORDER, '2 events c3d.sessionEnd'),
        ([event('a', 0), START, END], Kind.ORDER, "the first event is 'a', not c3d.sessionStart"),
        ([START, END, event('a', 9)], Kind.ORDER, "the last event is 'a', not c3d.sessionEnd"),
        ([START, event('a', -1), END], Kind.ORDER, 'events: 1 before c3d.sessionStart, the first'),
        ([START, event('a', 11), END], Kind.ORDER, 'events: 1 after c3d.sessionEnd, the last'),
        (
            [START, event('c3d.sessionEnd', 10, Reason='x', sessionlength=9.9)],
            Kind.ORDER,
            'sessionlength says 9.9, from start to end it is 10.00000 s',
        ),
        (
            [START, event('c3d.sessionEnd', 10, Reason='x')],
            Kind.ORDER,
            'sessionlength says None',
        ),
        (
            [START, annotation(1, 'log_marker_stop', '3;x'), END],
            Kind.NOTE,
            "log_marker_stop '3;x'",
        ),
    ],
)
def test_events_that_are_not_as_they_should_be(folder, records, kind, text):
    rewrite_events(folder, records)
    found = findings(folder)
    assert [item for item in found if item[0] is kind and item[1].startswith(text)], found


@pytest.mark.rule(1)
def test_a_start_that_is_not_the_id_s_second_is_named(folder):
    rewrite_events(folder, [event('c3d.sessionStart', -1), END])
    assert any(text.endswith(f'the session id says {SECOND}') for _, text in findings(folder))


@pytest.mark.rule(11)
def test_records_outside_the_session_and_against_time_are_named(folder):
    write(folder, 'gaze', 5, 'pose', [pose(-1), pose(11), pose(9)])
    series = [{'name': 'battery', 'data': [[at(3), 1], [at(2), 1], [at(1), 1]]}]
    write(folder, 'sensors', 2, 'series', series)
    snapshots = [{'id': 'body'} | pose(0.5), {'id': 'arm'} | pose(0)]
    write(folder, 'dynamics', 2, 'pose', snapshots)
    assert {
        text.partition(', the')[0].partition(', first')[0] for _, text in findings(folder)
    } == {
        'poses: 1 before c3d.sessionStart',
        'poses: 1 after c3d.sessionEnd',
        'poses: time goes back 2 times',
        'series battery: time goes back 2 times',
        'snapshots of body: time goes back once',
        'poses: 18 missing in 2 gaps',
    }


def test_what_the_recorder_counted_as_lost_is_named(folder):
    lost = [
        {'name': 'c3d.dropped_events', 'data': [[at(5), 0], [at(9), 2]]},
        {'name': 'c3d.dropped_records', 'data': [[at(5), 0]]},
        {'name': 'c3d.parts_evicted', 'data': [[at(5), 7]]},
    ]
    write(folder, 'sensors', 2, 'series', lost)
    assert findings(folder) == [
        (Kind.LOSS, 'c3d.dropped_events reached 2'),
        (Kind.LOSS, 'c3d.parts_evicted reached 7'),
    ]


def test_a_session_that_is_being_recorded_has_no_end_yet(folder):
    (folder / 'events.000002.events.c3d').unlink()
    (folder / 'journal').write_bytes(b'nothing of it')
    found = findings(folder)
    assert (Kind.UNREADABLE, 'journal: cannot be read') in found
    assert any('being recorded, or is to be recovered' in text for _, text in found)


def test_a_folder_of_nothing_readable_is_told_and_does_not_raise(tmp_path):
    (tmp_path / SESSION).mkdir()
    (tmp_path / SESSION / 'gaze.000001.pose.c3d').write_bytes(b'')
    wanted = {Kind.UNREADABLE, Kind.MISSING, Kind.NO_START, Kind.NO_END}
    assert kinds(tmp_path / SESSION) == wanted


def test_gaps_in_the_pose_timeline(folder):
    (folder / 'gaze.000002.pose.c3d').unlink()
    (folder / 'gaze.000004.pose.c3d').unlink()
    poses = [pose(n / 10) for n in (*range(20), *range(23, 60), *range(80, 101))]
    write(folder, 'gaze', 2, 'pose', poses)
    write(folder, 'gaze', 4, 'pose', [])
    text = f'poses: 23 missing in 2 gaps, the longest 2.10 s from {at(5.9):.5f}'
    assert findings(folder) == [(Kind.GAP, f'{text}; the recorder counted 0 without a pose')]
    write(
        folder,
        'sensors',
        2,
        'series',
        [{'name': 'c3d.pose_failures', 'data': [[at(9.95), 23]]}],
    )
    assert findings(folder) == [
        (Kind.NOTE, f'{text}: tf had no pose then, as the recorder counted')
    ]
    (folder / 'gaze.000004.pose.c3d').unlink()
    write(folder, 'gaze', 4, 'pose', [pose(n / 10) for n in range(60, 80)])
    text = f'poses: 3 missing in a gap of 0.40 s from {at(1.9):.5f}'
    assert any(said.startswith(text) for _, said in findings(folder))


def test_steps_of_the_clock_are_named(folder):
    (folder / 'events.000002.events.c3d').unlink()
    step = event('c3d.clock_step', 5, step_s=3.25, offset_s=3.25)
    write(folder, 'events', 2, 'events', [step, END])
    assert findings(folder) == [
        (Kind.CLOCK, f'the clock of the robot went back by 3.25 s at {at(5):.5f}')
    ]


def sensors_of(folder, **counts):
    """Say that there are a camera and a lidar, and what the recorder counted of them."""
    properties = {'c3d.ros.cameras': 'front', 'c3d.ros.lidars': 'base'}
    write(folder, 'gaze', 5, 'properties', body('gaze', 5, [], properties=properties))
    series = [
        {'name': f'c3d.{name.replace("__", ".")}', 'data': [[at(9.9), count]]}
        for name, count in counts.items()
    ]
    write(folder, 'sensors', 2, 'series', series)


FATES = {'decimated': 1, 'dropped': 0, 'decode_failures': 0, 'pose_failures': 0}


def counts(stored, received):
    rest = {f'camera__front__{fate}': count for fate, count in FATES.items()}
    return {'camera__front__frames': stored, 'camera__front__received': received, **rest}


@pytest.mark.rule(72, 77, 78)
def test_frames_that_are_missing_and_sums_that_do_not_close(folder):
    write_sensors(folder, 'camera', 1, [frame_record(1, 0), frame_record(2, 1)])
    write_sensors(folder, 'lidar', 1, [scan_record(1, 0, [1])])
    sensors_of(folder, **counts(2, 3))
    assert findings(folder) == []
    (folder / 'sensors.000002.series.c3d').unlink()
    sensors_of(folder, **counts(3, 5))
    assert findings(folder) == [
        (Kind.SUM, 'camera front: 2 here, the recorder counted 3 in c3d.camera.front.frames'),
        (Kind.SUM, 'camera front: 5 received, and 4 accounted for'),
    ]
    write_sensors(folder, 'camera', 3, [frame_record(3, 5), frame_record(3, 4)])
    write_sensors(folder, 'lidar', 2, [scan_record(1, 2, [1]), scan_record(1, 2, [1])])
    assert findings(folder) == [
        (Kind.MISSING, 'camera: part 2, the last is 3'),
        (Kind.MISSING, 'camera front: records 2–3 by their seq'),
        (Kind.ORDER, 'camera front: seq does not ascend'),
        (Kind.SUM, 'camera front: 4 here, the recorder counted 3 in c3d.camera.front.frames'),
        (Kind.SUM, 'camera front: 5 received, and 4 accounted for'),
        (Kind.MISSING, 'lidar base: record 1 by their seq'),
        (Kind.ORDER, 'lidar base: seq does not ascend'),
    ]


def test_in_a_spool_frames_at_the_front_may_have_been_delivered(folder):
    (folder.parent.parent / 'last_second').write_text('1')
    write_sensors(folder, 'camera', 2, [frame_record(3, 7), frame_record(4, 8)])
    sensors_of(folder, **counts(9, 10))
    assert findings(folder) == [(Kind.NOTE, 'camera: part 1 not here: delivered, or evicted')]


def test_points_that_cannot_be_read_are_found(folder):
    record = cloud_record(1, 0, [(1, 2, 3)])
    frame = zstandard.ZstdCompressor(write_content_size=False).compress(b'1234')
    broken = dataclasses.replace(record, scan=dataclasses.replace(record.scan, data=frame))
    write_sensors(folder, 'lidar', 1, [broken])
    ((kind, text),) = findings(folder)
    assert kind is Kind.UNREADABLE
    assert text.startswith('lidar.000001.lidar.c3d: ')


def test_accounts_that_do_not_add_up_are_found(folder):
    accounts = {
        'c3d.account.topic.odom': '5 received = 3 stored + 2 decimated',
        'c3d.account.topic.imu': '5 received = 3 stored + 1 unaccounted + 1 gated',
    }
    write(folder, 'gaze', 5, 'properties', body('gaze', 5, [], properties=accounts))
    assert findings(folder) == [
        (Kind.SUM, f'topic.imu: {accounts["c3d.account.topic.imu"]}: does not add up')
    ]


def test_what_is_wholly_absent_is_named(tmp_path):
    folder = tmp_path / 'sessions' / SESSION
    write_sensors(folder, 'camera', 1, [frame_record(1, 0)])
    found = findings(folder)
    assert (Kind.MISSING, 'events: none is here') in found
    assert (Kind.MISSING, 'gaze, poses and session properties: none is here') in found
    write(folder, 'gaze', 1, 'pose', [pose(1)])
    write(folder, 'events', 1, 'events', [event('c3d.sessionStart', 0)])
    found = findings(folder)
    assert (Kind.MISSING, 'session properties: none is here') in found
    assert not any('gaze' in text or 'events: none' in text for _, text in found)
    (tmp_path / 'last_second').write_text('1')
    assert (Kind.NOTE, 'session properties: none is here: delivered, or evicted') in findings(
        folder
    )
