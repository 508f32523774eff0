"""Numbers that are no times and no places: named, and no reason for any command to fail."""

import json
import re

import pytest
from stored import (
    PROPERTIES,
    SESSION,
    Pose,
    annotation,
    at,
    body,
    event,
    frame_record,
    pose,
    scan_record,
    whole,
    write,
    write_sensors,
)

from cognitive3d_ros import open_session
from cognitive3d_ros.cli.main import main
from cognitive3d_ros.export import FORMATS, export_session
from cognitive3d_ros.session.records import CameraFrame, PoseSample
from cognitive3d_ros.session.verify import Kind, verify
from cognitive3d_ros.session.within import within

NAN = float('nan')


def far_poses(folder):
    write(folder, 'gaze', 5, 'pose', [pose(8, 1e300), pose(9, -8e307)])


def large_series(folder):
    values = [[at(1), 1.7e308], [at(2), 1.7e308], [at(3), -1.7e308]]
    blocked = {'name': 'c3d.upload_blocked', 'data': [[at(9.9), 1e300]]}
    write(folder, 'sensors', 2, 'series', [{'name': 'x', 'data': values}, blocked])


def far_event(folder):
    far = {'name': 'x', 'time': at(1), 'point': [1e300, -1e308, 1e308], 'properties': {'x': 1e308}}
    write(folder, 'events', 3, 'events', [far])


def late_records(folder):
    late = [event('x', 1e300), annotation(1e307, 'log_marker_start', '1;x')]
    note = annotation(2, 'log_marker_start', '2;x')
    note['properties']['annotation_time'] = 1e300
    write(folder, 'events', 3, 'events', [*late, note])
    times = [{**pose(8), 'time': time} for time in (-1e308, 1e308, 9.3e9)]
    write(folder, 'gaze', 5, 'pose', [pose(9.5), *times])
    series = [{'name': 'x', 'data': [[1e300, 1], [at(1), 2]]}]
    write(folder, 'sensors', 2, 'series', series)
    write(folder, 'dynamics', 2, 'pose', [{'id': 'a', **times[0]}])
    write_sensors(folder, 'camera', 1, [frame_record(1, 0), frame_record(1, 1, time_ms=2**63)])


def no_start(folder):
    write(folder, 'events', 1, 'events', [event('c3d.sessionStart', 1e12)])


def no_end(folder):
    write(folder, 'events', 2, 'events', [event('c3d.sessionEnd', 1e308)])


def far_snapshots(folder):
    snapshots = [{'id': 'a', **pose(8, 8e307)}, {'id': 'a', **pose(9, -8e307)}]
    write(folder, 'dynamics', 2, 'pose', snapshots)


def lost_sensors(folder):
    lost = Pose(1e38, NAN, float('inf'))
    write_sensors(folder, 'camera', 1, [frame_record(1, 0, pose=lost, hfov_degrees=NAN)])
    scan = scan_record(1, 0, [1, float('inf')], pose=Pose(qw=0.0), angle_min=NAN)
    write_sensors(folder, 'lidar', 1, [scan])


def no_rotations(folder):
    turned = [{**pose(8), 'r': [1e300, 0, 0, 1e300]}, {**pose(9), 'r': [0, 0, 0, 0]}]
    write(folder, 'gaze', 5, 'pose', turned)


def tiny_interval(folder):
    first = body('gaze', 1, [], properties=PROPERTIES | {'x': 1e308}, interval=1e-300)
    write(folder, 'gaze', 1, 'properties', first)


CASES = (
    far_poses,
    large_series,
    far_event,
    late_records,
    no_start,
    no_end,
    far_snapshots,
    lost_sensors,
    no_rotations,
    tiny_interval,
)


@pytest.mark.parametrize('case', CASES)
def test_no_command_fails(tmp_path, capsys, case):
    case(whole(tmp_path / 'store' / 'sessions' / SESSION))
    report = tmp_path / 'report.html'
    for command in ('sessions', 'show', 'show --all', 'verify', 'markers', f'report -o {report}'):
        name, *options = command.split(' ')
        assert main([name, str(tmp_path / 'store'), *options]) in (0, 3)
        told = capsys.readouterr()
        assert max(map(len, told.out.splitlines())) < 250
        assert told.err == ''
        if not options:
            assert main([name, str(tmp_path / 'store'), '--json']) in (0, 3)
            json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    page = report.read_text()
    for data in re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', page):
        json.loads(data, parse_constant=pytest.fail)
    drawn = re.findall(r' (?:d|x|y|x1|cx|cy|width|height|viewBox)="([^"]*)"', page)
    assert len(drawn) > 10
    assert not [each for each in drawn if re.search('nan|inf', each)]


@pytest.mark.parametrize('to', FORMATS)
def test_no_export_fails(tmp_path, to):
    folder = whole(tmp_path / 'store' / 'sessions' / SESSION)
    for case in (far_poses, large_series, far_event, far_snapshots, lost_sensors, late_records):
        case(folder)
    out = tmp_path / ('run.0.log' if to == 'pocolog' else f'run.{to}')
    assert export_session(open_session(folder), to, out).records > 0
    assert out.exists()


def test_a_session_without_some_records_does_not_look_into_its_parts_for_them(tmp_path):
    folder = whole(tmp_path / 'sessions' / SESSION)
    every = open_session(folder)
    some, left_out = within(every, at(2), at(5), sensors=False)
    assert left_out == len(every) - len(some)
    assert some.poses.loaded
    assert some.pose_count() == len(some.poses) == 30
    assert some.find(PoseSample)[-1].time == at(4.9)
    assert some.nearest(PoseSample, at(9)).time == at(4.9)
    assert not some.poses.p.flags.writeable


def notes(folder):
    found = verify(open_session(folder))
    return [finding.text for finding in found if finding.kind is Kind.NOTE]


def test_places_that_cannot_be_are_named(tmp_path):
    folder = whole(tmp_path / 'sessions' / SESSION)
    for case in (far_poses, far_event, far_snapshots, lost_sensors):
        case(folder)
    assert notes(folder) == [
        f'poses: 2 at no place that can be, the first at {at(8):.5f}: (1e+300, 0, 2e+300)',
        f'snapshots: 2 at no place that can be, the first at {at(8):.5f}: (8e+307, 0, 1.6e+308)',
        f'events: 1 at no place that can be, the first at {at(1):.5f}: (1e+300, -1e+308, 1e+308)',
        f'camera front: 1 at no place that can be, the first at {at(1):.5f}: (1e+38, nan, inf)',
        f'lidar base: 1 with a rotation that is none, the first at {at(1):.5f}: (0, 0, 0, 0)',
    ]


def test_what_is_no_time_is_passed_over_and_named(tmp_path):
    folder = whole(tmp_path / 'sessions' / SESSION)
    late_records(folder)
    session = open_session(folder)
    assert session.end == at(10)
    assert len(session.find(PoseSample)) == 102
    assert len(session.find(CameraFrame)) == 1
    assert list(session.series['x']) == [(at(1), 2.0)]
    told = [str(fault) for fault in session.faults]
    assert 'events.000003.events.c3d: data[0]: 1e+300 is no time' in told
    assert 'gaze.000005.pose.c3d: data[3]: 9300000000.0 is no time' in told
    assert "sensors.000002.series.c3d: series 'x': data[0]: 1e+300 is no time" in told
    assert f'camera.000001.camera.c3d: record 1: {2**63} ms is no time' in told
    assert any('an annotation at' in each for each in told)
