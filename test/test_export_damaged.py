"""Exports of sessions that are damaged, or hold what a recorder of ours would not write."""

import csv
import dataclasses
import json
import re
import shutil

import mcap.reader
import pyarrow.parquet
import pytest
import rich_session
from hypothesis import given
from hypothesis import strategies as st
from rosbags.highlevel import AnyReader
from stored import (
    SECOND,
    SESSION,
    annotation,
    body,
    event,
    frame_record,
    identity,
    pose,
    scan_record,
    whole,
    write,
    write_sensors,
)

from cognitive3d_ros import open_session
from cognitive3d_ros.cli.main import main
from cognitive3d_ros.errors import ExportError, ReadError
from cognitive3d_ros.export import FORMATS, Options, export_session
from cognitive3d_ros.export.file_names import FileNames
from cognitive3d_ros.results import BESIDE
from cognitive3d_ros.spool import Spool, SpoolLimits
from cognitive3d_ros.wire import framing
from cognitive3d_ros.wire.assemble import assemble

GOES_ON = [name for name in FORMATS if name not in ('tum', 'kitti')]


@pytest.fixture(scope='module')
def rich(tmp_path_factory):
    root = tmp_path_factory.mktemp('rich')
    rich_session.record(root / 'spool')
    return root / 'spool'


@pytest.fixture(scope='module')
def unsaid(rich, tmp_path_factory):
    """Return a session without the part that holds its properties."""
    folder = tmp_path_factory.mktemp('unsaid') / 'spool'
    shutil.copytree(rich, folder)
    for part in folder.glob('sessions/*/gaze.*.properties.c3d'):
        part.unlink()
    return folder


# Without the properties


@pytest.mark.parametrize('to', GOES_ON)
def test_what_needs_no_axes_is_exported_without_the_properties(unsaid, tmp_path, to):
    session = open_session(unsaid)
    made = export_session(session, to, tmp_path / 'out.0.log')
    note = 'gaze.000001.properties.c3d is missing: the pose convention is not known. Not in it: '
    assert any(each.startswith(note) for each in made.notes)
    counts = session.counts()
    assert made.records >= len(session.events) + sum(map(len, session.series.values()))
    assert made.records < sum(counts.values())


def topics(path):
    with path.open('rb') as file:
        reader = mcap.reader.make_reader(file)
        return {(channel.topic, message.data) for _, channel, message in reader.iter_messages()}


def test_messages_without_places(unsaid, tmp_path):
    export_session(open_session(unsaid), 'mcap', tmp_path / 'out.mcap')
    found = {topic for topic, _ in topics(tmp_path / 'out.mcap')}
    assert {'/camera/front/image/compressed', '/lidar/base/scan', '/events/all'} <= found
    assert any(topic.startswith('/series/') for topic in found)
    assert not found & {'/tf', '/pose', '/events/markers', '/lidar/top/points'}


def test_tables_without_places(unsaid, tmp_path):
    for to in ('parquet', 'csv'):
        export_session(open_session(unsaid), to, tmp_path / to)
    tables = {path.name for path in (tmp_path / 'parquet').iterdir()}
    assert tables == {*['annotations', 'camera', 'clouds', 'events', 'regions', 'scans', 'series']}
    for name in ('events', 'camera', 'scans', 'clouds'):
        (path,) = (tmp_path / 'parquet' / name).rglob('*.parquet')
        table = pyarrow.parquet.ParquetFile(path).read()
        assert table.num_rows
        assert table['x'].null_count == table['z'].null_count == table.num_rows
    assert set(table['points_x'].to_pylist()) == {None}


def test_a_path_wants_axes_which_can_be_given(rich, unsaid, tmp_path):
    for to in ('tum', 'kitti'):
        with pytest.raises(ReadError, match=r'properties.c3d is missing: .*--pose-convention'):
            export_session(open_session(unsaid), to, tmp_path / to)
    options = Options(pose_convention='gltf_authored')
    made = export_session(open_session(unsaid), 'tum', tmp_path / 'tum', options=options)
    assert any('taken to be gltf_authored' in note for note in made.notes)
    export_session(open_session(rich), 'tum', tmp_path / 'whole')
    assert (tmp_path / 'tum').read_text() == (tmp_path / 'whole').read_text()
    with pytest.raises(ExportError, match='its pose convention is gltf_authored, not unity'):
        export_session(
            open_session(rich), 'tum', tmp_path / 'x', options=Options(pose_convention='unity')
        )


# Places that are not known


@pytest.fixture
def lost(tmp_path):
    """Return a session with an event whose place is not known."""
    folder = whole(tmp_path / 'sessions' / SESSION)
    early = event('early', 0.3, **{'c3d.position_unknown': True})
    write(folder, 'events', 9, 'events', [early])
    return folder


def test_a_place_that_is_not_known_is_none(lost, tmp_path):
    session = open_session(lost)
    for to in ('parquet', 'csv', 'mcap', 'pocolog', 'rawlog'):
        export_session(session, to, tmp_path / f'{to}.log')
    (path,) = (tmp_path / 'parquet.log' / 'events').rglob('*.parquet')
    rows = pyarrow.parquet.ParquetFile(path).read().to_pylist()
    (early,) = [row for row in rows if row['name'] == 'early']
    assert (early['x'], early['y'], early['z']) == (None, None, None)
    assert any(row['x'] is not None for row in rows)
    (path,) = (tmp_path / 'csv.log' / 'events').rglob('*.csv')
    with path.open() as file:
        (early,) = [row for row in csv.DictReader(file) if row['name'] == 'early']
    assert (early['x'], early['y'], early['z']) == ('', '', '')
    said = [
        json.loads(data[8:-1])
        for topic, data in topics(tmp_path / 'mcap.log')
        if topic == '/events/all'
    ]
    (early,) = [each for each in said if each['name'] == 'early']
    assert early['point'] is None
    log = (tmp_path / 'pocolog.log').read_bytes()
    assert b'early.c3d.position_unknown' in log
    assert b'early.point' not in log


# Sensors that no property lists


@pytest.mark.parametrize('to', GOES_ON)
def test_sensors_that_are_not_listed_are_exported(tmp_path, to):
    folder = whole(tmp_path / 'sessions' / SESSION)
    listed = {'c3d.ros.cameras': 'front', 'c3d.ros.lidars': 'base'}
    write(folder, 'gaze', 5, 'properties', body('gaze', 5, [], properties=listed))
    write_sensors(folder, 'camera', 1, [frame_record(1, 0), frame_record(1.5, 0, 'other')])
    scans = [scan_record(1, 0, [1, 2]), scan_record(1.5, 0, [1, 2], 'another')]
    write_sensors(folder, 'lidar', 1, scans)
    session = open_session(folder)
    assert session.cameras == ('front',)  # its parts were not read
    made = export_session(session, to, tmp_path / 'out.0.log')
    absent = len(session.dynamics) if to == 'rawlog' else 0
    assert made.records == sum(session.counts().values()) - absent
    assert session.cameras == ('front', 'other')
    assert session.lidars == ('base', 'another')
    if to == 'mcap':
        found = {topic for topic, _ in topics(tmp_path / 'out.0.log')}
        assert {'/camera/other/image/compressed', '/lidar/another/scan'} <= found


# Times that a format cannot hold


@pytest.mark.parametrize('to', FORMATS)
def test_records_out_of_a_formats_time_are_left_out(tmp_path, to):
    folder = whole(tmp_path / 'sessions' / SESSION)
    late, early = 4e9, -5.0
    events = [{**event('odd', 0), 'time': late}, {**event('odd', 0), 'time': early}]
    events.append(annotation(1, 'k', 'v'))
    events[-1]['properties']['annotation_time'] = 5e9
    write(folder, 'events', 3, 'events', events)
    write(folder, 'gaze', 5, 'pose', [{**pose(0), 'time': late}, {**pose(0), 'time': early}])
    series = [{'name': 'battery.percentage', 'data': [[late, 1], [early, 1]]}]
    write(folder, 'sensors', 2, 'series', series)
    write(folder, 'dynamics', 2, 'pose', [{'id': 'body'} | pose(0) | {'time': early}])
    frames = [
        frame_record(1, 0),
        dataclasses.replace(frame_record(2, 1), time_ms=int(late * 1000)),
    ]
    write_sensors(folder, 'camera', 1, frames)
    session = open_session(folder)
    made = export_session(session, to, tmp_path / 'out.0.log')
    # Four each are early and late, and one annotation is later still. Rock knows what is late.
    kept = {'mcap': (9, '2038'), 'rosbag2': (9, '2038'), 'pocolog': (5, '2106'), 'tum': (4, '')}
    notes = [note for note in made.notes if 'of times that' in note]
    if to not in kept:
        assert not notes
        return
    count, year = kept[to]
    until = f'to {year}' if year else 'on'
    assert notes == [
        f'not in it: {count} records of times that it cannot hold: it knows 1970 {until}'
    ]
    assert session.faults == []
    assert len(session.events) == 6  # as it was
    every = sum(session.counts().values())
    assert made.records == (len(session.poses) - 1 if to == 'tum' else every - count)
    if to == 'rosbag2':
        with AnyReader([tmp_path / 'out.0.log']) as reader:
            stamps = [time_ns for _, time_ns, _ in reader.messages()]
        assert min(stamps) == round(SECOND * 1e9) + 250_000_000
        assert max(stamps) <= (SECOND + 11) * 10**9


# Names


@pytest.mark.parametrize('to', ['mcap', 'rosbag2', 'rawlog', 'pocolog'])
def test_the_robot_has_a_frame_of_its_own(rich, tmp_path, to):
    session = open_session(rich)
    frames = [session.properties['c3d.ros.reference_frame']]
    frames += [next(iter(session.camera('front'))).frame_id]
    for name in frames:
        with pytest.raises(
            ExportError, match=f'the robot cannot be called {name}: so is the frame'
        ):
            export_session(session, to, tmp_path / 'x.log', options=Options(robot_frame=name))
    same = Options(robot_frame=session.properties['c3d.ros.robot_frame'])
    export_session(session, to, tmp_path / 'same.log', options=same)
    assert [path.name for path in tmp_path.iterdir() if 'Images' not in path.name] == ['same.log']


@pytest.mark.parametrize('to', FORMATS)
def test_a_frame_that_is_guessed_is_named(unsaid, tmp_path, to):
    names_frames = to in ('mcap', 'rosbag2', 'rawlog', 'pocolog')
    for name in ('', 'chassis')[: 1 + names_frames]:
        options = Options(pose_convention='gltf_authored', robot_frame=name)
        out = tmp_path / f'x{name}.log'
        told = [
            each
            for each in export_session(open_session(unsaid), to, out, options=options).notes
            if 'base_link' in each
        ]
        guessed = 'the session does not say which frame its poses are of: it is called base_link'
        if names_frames and not name:
            assert told == [f'{guessed}, --robot-frame names it']
        else:
            assert told == []


def test_a_robot_that_is_renamed_keeps_its_rangefinders(rich, tmp_path):
    notes = [
        export_session(
            open_session(rich), 'rawlog', tmp_path / f'{name}.rawlog', options=options
        ).notes
        for name, options in (('as_said', Options()), ('renamed', Options(robot_frame='chassis')))
    ]
    assert notes[0] == notes[1]


def test_the_poses_of_a_gaze_frame_are_not_given_to_the_robot(tmp_path):
    folder = whole(tmp_path / SESSION)
    said = {'c3d.ros.gaze_frame': 'head'}
    write(folder, 'gaze', 5, 'properties', body('gaze', 5, [], properties=said))
    with pytest.raises(ExportError, match='the poses are those of the frame head'):
        export_session(
            open_session(folder), 'mcap', tmp_path / 'x', options=Options(robot_frame='base')
        )


def test_names_that_no_topic_can_have_are_told(tmp_path):
    folder = whole(tmp_path / SESSION)
    names = ['日本', 'a b', 'line.0', 'plain.name_1', 'a-dash', 'a_b', 'x' * 3000]
    series = [{'name': name, 'data': [[SECOND + 1, 1]]} for name in names]
    write(folder, 'sensors', 2, 'series', series)
    made = export_session(open_session(folder), 'mcap', tmp_path / 'out.mcap')
    (note,) = [note for note in made.notes if note.startswith('names that no topic')]
    assert note == (
        "names that no topic can have are changed: '日本' is /series/_, 'a b' is /series/a_b, "
        f"'a_b' is /series/a_b_2, {'x' * 40!r} is /series/{'x' * 52}"
    )
    found = {topic for topic, _ in topics(tmp_path / 'out.mcap')}
    assert {'/series/line/_0', '/series/plain/name_1', '/series/a_dash'} <= found
    assert max(map(len, found)) == len('/series/') + 180


# The command


def command(capsys, *arguments):
    code = main(['export', *map(str, arguments)])
    return code, capsys.readouterr().err


def test_options_that_a_format_has_no_use_for(rich, tmp_path, capsys):
    out = tmp_path / 'out.log'
    for to, option in (
        ('tum', ['--images', 'inside']),
        ('mcap', ['--mrpt', '2']),
        ('parquet', ['--robot-frame', 'base']),
    ):
        code, err = command(capsys, rich, '--to', to, '-o', out, *option)
        assert code == 2
        assert f'{option[0]} is for ' in err
        assert err.endswith(f'{to} has no use for it\n')
    for frame in ('', ' ', '/base'):
        assert command(capsys, rich, '--to', 'mcap', '-o', out, '--robot-frame', frame)[0] == 2
    code, err = command(capsys, rich, '--to', 'tum', '-o', '-')
    assert code == 2
    assert "'-' is no name: a result is a file or a folder" in err
    assert main(['report', str(rich), '-o', '-']) == 2
    assert not list(tmp_path.iterdir())


# What names folders


def test_a_session_id_that_is_none(tmp_path, monkeypatch):
    (tmp_path / 'loose').mkdir()
    evil = '1767225600_../../evil'
    write(tmp_path / 'loose', 'events', 1, 'events', [event('x', 1)], session=evil)
    with pytest.raises(ReadError, match='which is no session id'):
        open_session(tmp_path / 'loose')
    monkeypatch.setattr(framing, 'is_session_id', lambda _: True)
    spool = Spool.open(tmp_path / 'spool', limits=SpoolLimits(1 << 30, 0))
    started = spool.start(identity('1767225600_no id'), assemble)
    started.append('events', 'events', b'{}', time_ns=0, at_ns=0)
    started.flush()
    shutil.copytree(next((tmp_path / 'spool' / 'sessions').iterdir()), tmp_path / 'copy')
    spool.close()
    monkeypatch.undo()
    with pytest.raises(ReadError, match='which is no session id'):
        open_session(tmp_path / 'copy')


@given(
    labels=st.lists(st.text() | st.sampled_from(['a', 'A', 'a/', '../a', '.a', '']), max_size=9)
)
def test_names_of_files_are_plain_and_given_once(labels):
    names = FileNames()
    given = [names.free(label, '_000001.jpg') for label in labels]
    for name in given:
        assert re.fullmatch(r'[A-Za-z0-9_-][A-Za-z0-9._-]*\.jpg', name)
        assert len(name) < 255
        assert BESIDE.fullmatch(name)
    assert len({name.lower() for name in given}) == len(labels)


def test_ten_thousand_names_for_one():
    names = FileNames()
    assert len({names.free('a', '_0.jpg') for _ in range(10_000)}) == 10_000
