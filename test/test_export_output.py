"""Results of exports appear whole or not at all; the command line of exports."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
import rich_session
from stored import SESSION, at, event, frame_record, whole, write, write_sensors

from cognitive3d_ros import open_session
from cognitive3d_ros.cli.main import main
from cognitive3d_ros.errors import ExportError
from cognitive3d_ros.export import FORMATS, Options, export_session
from cognitive3d_ros.export.job import Job
from cognitive3d_ros.results import place, written
from cognitive3d_ros.spool.fs import Fs

TO_FILES = ('mcap', 'tum', 'kitti')
TO_FOLDERS = ('rosbag2', 'parquet', 'csv')


@pytest.fixture
def session(tmp_path):
    return open_session(whole(tmp_path / 'store' / 'sessions' / SESSION))


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_appears_when_it_is_whole(tmp_path):
    with written(tmp_path / 'out.txt', replace=False) as work:
        (work / 'out.txt').write_text('half')
        assert names(tmp_path) == [work.name]
        (work / 'out.txt').write_text('whole')
        (work / 'out_Images').mkdir()
        (work / 'out_Images' / '1.jpg').write_text('x')
    assert names(tmp_path) == ['out.txt', 'out_Images']
    assert (tmp_path / 'out.txt').read_text() == 'whole'
    assert (tmp_path / 'out_Images' / '1.jpg').exists()


def put(out, fill, **options):
    """Write a result: ``fill`` is given the folder in which it is made."""
    with written(out, **{'replace': False, **options}) as work:
        fill(work)


def test_nothing_appears_of_what_fails(tmp_path):
    (tmp_path / 'out.txt').write_text('before')
    wrong = [
        (OSError(28, 'No space left on device', '/x/.c3d-export-1/y'), 'No space left on device'),
        (sqlite3.OperationalError('database or disk is full'), 'database or disk is full'),
        (KeyboardInterrupt(), ''),
    ]
    for error, told in wrong:

        def fail(work, error=error):
            (work / 'out.txt').write_text('half')
            raise error

        raised = ExportError if told else KeyboardInterrupt
        with pytest.raises(raised) as caught:
            put(tmp_path / 'out.txt', fail, replace=True)
        if told:
            assert str(caught.value) == f'{tmp_path / "out.txt"} could not be written: {told}'
    assert names(tmp_path) == ['out.txt']
    assert (tmp_path / 'out.txt').read_text() == 'before'


def make(path, text):
    if path.suffix == '.bag':  # as exports make them
        path.mkdir()
        (path / 'metadata.yaml').write_text('custom_data:\n    session_id: 1_a\n')
        path = path / 'a.db3'
    path.write_text(text)


def test_what_is_there_is_replaced_only_when_that_is_said(tmp_path):
    for old in ('', '.bag'):
        for new in ('', '.bag'):
            out = tmp_path / f'{len(old)}-{len(new)}'
            make(tmp_path / f'old{old}', 'old')
            (tmp_path / f'old{old}').rename(out)

            def fill(work, out=out, new=new):
                make(work / f'new{new}', 'new')
                (work / f'new{new}').rename(work / out.name)

            with pytest.raises(ExportError, match='there already'):
                put(out, fill)
            assert content(out) == 'old'
            put(out, fill, replace=True)
            assert content(out) == 'new'
    assert len(names(tmp_path)) == 4


def put_text(text):
    return lambda work: (work / 'out').write_text(text)


@pytest.mark.parametrize(
    'holds',
    [
        ['keep'],
        ['a.db3'],
        ['a.db3', 'metadata.yaml'],  # somebody's own recording
        ['a.db3', 'metadata.yaml:custom_data:\n  session_id: 1_a\n', 'notes.txt'],
        ['metadata.yaml:custom_data:\n  session_id: 1_a\n', 'more/keep'],
    ],
)
def test_folders_of_others_are_not_replaced(tmp_path, holds):
    for each in holds:
        name, _, text = each.partition(':')
        (tmp_path / 'out' / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / 'out' / name).write_text(text)
    before = sorted((tmp_path / 'out').rglob('*'))
    with pytest.raises(ExportError, match='or that holds more: it is not replaced'):
        put(tmp_path / 'out', put_text('x'), replace=True)
    assert sorted((tmp_path / 'out').rglob('*')) == before


def test_a_rawlogs_folder_is_replaced_if_it_is_one(tmp_path):
    def fill(work):
        (work / 'out_Images').mkdir()
        (work / 'out_Images' / 'front_000001.jpg').write_text('x')
        (work / 'out').write_text('x')

    for _ in range(2):
        put(tmp_path / 'out', fill, replace=True)
    (tmp_path / 'out_Images' / 'CAMERA1_12.5.jpg').write_text('mine')
    with pytest.raises(ExportError, match='out_Images is a folder that no export'):
        put(tmp_path / 'out', fill, replace=True)


def test_what_was_there_comes_back_if_not_all_can_be_put_in_its_place(tmp_path, monkeypatch):
    def fill(work, text='new'):
        (work / 'out_Images').mkdir()
        (work / 'out_Images' / 'front_000001.jpg').write_text(text)
        (work / 'out').write_text(text)

    put(tmp_path / 'out', lambda work: fill(work, 'old'))
    rename = Fs.rename

    def fails(self, old, new):
        if new == tmp_path / 'out':
            raise OSError(5, 'Input/output error')
        rename(self, old, new)

    monkeypatch.setattr(Fs, 'rename', fails)
    with pytest.raises(ExportError, match='Input/output error'):
        put(tmp_path / 'out', fill, replace=True)
    assert names(tmp_path) == ['out', 'out_Images']
    assert (tmp_path / 'out_Images' / 'front_000001.jpg').read_text() == 'old'
    assert (tmp_path / 'out').read_text() == 'old'


@pytest.mark.parametrize('to', FORMATS)
def test_nothing_of_a_recording_is_replaced(session, tmp_path, to):
    store = tmp_path / 'store'
    part = session.files.folder / 'events.000001.events.c3d'
    (tmp_path / 'link').symlink_to(store)
    (store / 'lock').touch()
    before = {path: path.read_bytes() for path in store.rglob('*') if path.is_file()}
    places = [store, store / 'sessions', session.files.folder, part, store / 'x.0.log']
    for out in [*places, tmp_path / 'link', session.files.folder / 'x.0.log']:
        with pytest.raises(ExportError, match=r'sessions are kept in|part of a session'):
            export_session(session, to, out, replace=True)
    assert {path: path.read_bytes() for path in store.rglob('*') if path.is_file()} == before


def test_a_folder_with_a_recording_in_it_is_not_replaced(session, tmp_path):
    with pytest.raises(ExportError, match='sessions are kept in'):
        export_session(
            session, 'csv', tmp_path / 'store'
        )  # none of a recorder's, but sessions are in it
    with pytest.raises(ExportError, match='or that holds more'):
        export_session(session, 'mcap', tmp_path, replace=True)
    assert names(tmp_path) == ['store']


def test_links_are_replaced_not_what_they_lead_to(tmp_path):
    (tmp_path / 'folder').mkdir()
    for number, to in enumerate(('folder', 'nowhere')):
        out = tmp_path / f'out{number}'
        out.symlink_to(tmp_path / to)

        def fill(work, out=out):
            (work / out.name).write_text('x')

        with pytest.raises(ExportError, match='there already'):
            put(out, fill)
        put(out, fill, replace=True)
        assert out.read_text() == 'x'
        assert not out.is_symlink()
    assert names(tmp_path) == ['folder', 'out0', 'out1']


def test_paths_without_a_name(tmp_path, monkeypatch):
    (tmp_path / 'in').mkdir()
    monkeypatch.chdir(tmp_path / 'in')
    assert place(Path('..')) == tmp_path
    with pytest.raises(ExportError, match='or that holds more'):
        put(Path('..'), put_text('x'), replace=True)
    with pytest.raises(ExportError, match='no name'):
        put(Path('/'), put_text('x'))


def test_a_file_where_a_folder_is_wanted(session, tmp_path):
    (tmp_path / 'out').write_text('x')
    for to in ('parquet', 'csv'):
        with pytest.raises(ExportError, match='out is a file: a folder of tables'):
            export_session(session, to, tmp_path / 'out', replace=True)
    (tmp_path / 'tables').mkdir()
    (tmp_path / 'tables' / 'poses').write_text('x')
    with pytest.raises(ExportError, match='tables/poses is a file'):
        export_session(session, 'csv', tmp_path / 'tables')
    assert names(tmp_path) == ['out', 'store', 'tables']
    assert names(tmp_path / 'tables') == ['poses']


def content(path):
    return (path / 'a.db3' if path.is_dir() else path).read_text()


def test_files_beside_the_result_are_not_overwritten_either(tmp_path):
    (tmp_path / 'out_Images').mkdir()

    def fill(work):
        (work / 'out.txt').write_text('x')
        (work / 'out_Images').mkdir()

    with pytest.raises(ExportError, match='out_Images is there already'):
        put(tmp_path / 'out.txt', fill)
    assert names(tmp_path) == ['out_Images']


def test_files_are_put_into_a_folder_that_is_there(tmp_path):
    out = tmp_path / 'out'

    def fill(work, number=2, text='new'):
        (work / 'out' / f'part={number}').mkdir(parents=True)
        (work / 'out' / f'part={number}' / 'data').write_text(text)

    for number in (1, 2):
        put(out, lambda work, n=number: fill(work, n, str(n)), adds=True)
    assert names(out) == ['part=1', 'part=2']
    with pytest.raises(ExportError, match='part=2/data is there already'):
        put(out, fill, adds=True)
    assert (out / 'part=2' / 'data').read_text() == '2'
    put(out, fill, adds=True, replace=True)
    assert (out / 'part=2' / 'data').read_text() == 'new'


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(ExportError, match='no folder: out cannot be written there'):
        put(tmp_path / 'nowhere' / 'out', lambda work: None)


@pytest.mark.parametrize('to', FORMATS)
def test_every_format_replaces_only_when_told(session, tmp_path, to):
    out = tmp_path / 'run.0.log'
    first = export_session(session, to, out)
    assert first.path == out
    assert first.records > 0
    with pytest.raises(ExportError, match='there already'):
        export_session(session, to, out)
    again = export_session(session, to, out, replace=True)
    assert again.records == first.records
    assert [name for name in names(tmp_path) if not name.startswith('run')] == ['store']


@pytest.mark.parametrize('to', FORMATS)
def test_a_failure_or_ctrl_c_at_any_record_leaves_nothing(session, tmp_path, to, monkeypatch):
    total = export_session(session, to, tmp_path / 'whole.0.log').records
    whole_names = names(tmp_path)

    def fail_at(number, error):
        def step(self, count=1):
            self.done += count
            if self.done >= number:
                raise error

        monkeypatch.setattr(Job, 'step', step)

    for error in (OSError(28, 'No space left on device'), KeyboardInterrupt()):
        raised = ExportError if isinstance(error, OSError) else KeyboardInterrupt
        for number in {1, total // 2, total}:
            fail_at(number, error)
            with pytest.raises(raised):
                export_session(session, to, tmp_path / 'out.0.log')
            assert names(tmp_path) == whole_names


@pytest.mark.parametrize('to', FORMATS)
def test_progress_goes_to_the_end(session, tmp_path, to):
    told = []
    export_session(session, to, tmp_path / 'out.0.log', progress=told.append)
    assert told == sorted(told)
    assert told[-1] == 1.0
    assert len(told) <= 201


@pytest.mark.parametrize('to', FORMATS)
def test_half_a_character_is_no_obstacle(session, tmp_path, to):
    """JSON can hold a lone surrogate, as in what a user sends; UTF-8 cannot."""
    folder = session.files.folder
    write(
        folder, 'events', 3, 'events', [event('a\ud800b', 5, **{'\udfff': '\ud83d\ude00 \ud800'})]
    )
    write(folder, 'sensors', 2, 'series', [{'name': 'x\ud800', 'data': [[at(1), 1]]}])
    (folder / 'gaze.000002.pose.c3d').write_bytes(b'')
    session = open_session(folder)
    made = export_session(session, to, tmp_path / 'out.0.log')
    assert made.records > 0
    assert 'gaze.000002.pose.c3d: empty' in map(str, session.faults)
    told = 'halves of characters in texts, which UTF-8 cannot hold, are ?'
    # tum and kitti hold no text; MRPT's writer has a ? for it in any case.
    assert (told in made.notes) == (to not in ('tum', 'kitti', 'rawlog'))
    if to == 'csv':
        (path,) = (tmp_path / 'out.0.log' / 'events').rglob('*.csv')
        assert 'a?b' in path.read_text('utf-8')
        assert '😀 ?' in path.read_text('utf-8')
    assert [each.name for each in session.events][-1] == 'a\ud800b'  # as it was stored


# The command


def run(capsys, *arguments):
    code = main([str(word) for word in ('export', *arguments)])
    out, err = capsys.readouterr()
    return code, out, err


def test_the_command(session, tmp_path, capsys):
    out = tmp_path / 'path.tum'
    code, text, err = run(capsys, tmp_path / 'store', '--to', 'tum', '-o', out)
    assert (code, err) == (0, '')
    left_out = '3 events, 1 series, 1 health series, 2 snapshots, 7 session properties'
    assert text == f'{out}: 101 records of {SESSION}\n  not in it: {left_out}\n'
    code, _, err = run(capsys, tmp_path / 'store', '--to', 'tum', '-o', out)
    assert code == 1
    assert err == f'c3d: {out} is there already: give another name, or --force to replace it\n'
    code, text, _ = run(
        capsys, tmp_path / 'store', '--to', 'kitti', '-o', out, '--force', '--json'
    )
    assert code == 0
    facts = json.loads(text)
    assert facts['id'] == SESSION
    assert facts['format'] == 'kitti'
    assert facts['output'] == str(out)
    assert facts['records'] == 101
    assert len(facts['notes']) == 2
    assert facts['missing'] == []


def test_usage(tmp_path, capsys):
    assert run(capsys, tmp_path, '--to', 'docx', '-o', 'x')[0] == 2
    assert run(capsys, tmp_path, '--to', 'tum')[0] == 2
    assert run(capsys, tmp_path, '--to', 'tum', '-o', tmp_path / 'x')[0] == 1
    code, text, _ = run(capsys, '--help')
    assert code == 0
    for name in FORMATS:
        assert f'\n  {name}' in text


def test_what_is_missing_is_named(session, tmp_path, capsys):
    folder = session.files.folder
    (folder / 'gaze.000002.pose.c3d').unlink()
    (folder / 'events.000002.events.c3d').write_bytes(b'')
    code, text, err = run(capsys, folder, '--to', 'mcap', '-o', tmp_path / 'out.mcap')
    assert code == 3
    assert f'records of {SESSION}' in text
    assert '  missing: gaze: part 2, the last is 4\n' in err
    assert '  missing: there is no c3d.sessionEnd: it was cut\n' in err
    assert '  missing: events.000002.events.c3d: empty\n' in err


def test_what_is_wrong_is_not_called_missing(session, tmp_path, capsys):
    folder = session.files.folder
    write_sensors(folder, 'camera', 1, [frame_record(1, 0), frame_record(2, 0)])
    write(
        folder, 'sensors', 2, 'series', [{'name': 'c3d.camera.front.frames', 'data': [[at(9), 1]]}]
    )
    told = [
        'camera front: seq does not ascend',
        'camera front: 2 here, the recorder counted 1 in c3d.camera.front.frames',
    ]
    code, text, err = run(capsys, folder, '--to', 'mcap', '-o', tmp_path / 'out.mcap')
    assert code == 3
    assert err == ''.join(f'  wrong: {each}\n' for each in told)
    code, text, _ = run(capsys, folder, '--to', 'mcap', '-o', tmp_path / 'b.mcap', '--json')
    facts = json.loads(text)
    assert (code, facts['missing'], facts['wrong']) == (3, [], told)
    write_sensors(folder, 'camera', 1, [frame_record(1, 0)])
    write(folder, 'sensors', 2, 'series', [{'name': told[1].split()[-1], 'data': [[at(9), 2]]}])
    assert run(capsys, folder, '--to', 'mcap', '-o', tmp_path / 'c.mcap')[2] == (
        '  missing: camera front: 1 here, the recorder counted 2 in c3d.camera.front.frames\n'
    )


@pytest.mark.parametrize('name', ['a\nb', 'a\x1b[2J', ' ', '/a'])
def test_a_name_that_no_frame_has(tmp_path, capsys, name):
    assert (
        run(capsys, tmp_path, '--to', 'mcap', '-o', tmp_path / 'x', '--robot-frame', name)[0] == 2
    )


def test_sensors_that_the_properties_do_not_name_are_not_in_a_path(session, tmp_path):
    folder = session.files.folder
    write_sensors(folder, 'camera', 1, [frame_record(1, 0, 'rear')])
    for to in ('tum', 'kitti'):
        notes = export_session(open_session(folder), to, tmp_path / to).notes
        assert any('frames of all cameras' in each for each in notes)
        assert not any('lidars' in each for each in notes)


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_export_that_is_interrupted(tmp_path, number):
    rich_session.record(tmp_path / 'spool')
    code = (
        'import os, sys, time\n'
        'from cognitive3d_ros.export.job import Job\n'
        'from cognitive3d_ros.cli.main import main\n'
        'count = Job.step\n'
        'def step(self, n=1):\n'
        '    count(self, n)\n'
        '    if self.done == 50:\n'
        '        print("half", flush=True)\n'
        '        time.sleep(60)\n'
        'Job.step = step\n'
        'sys.exit(main(sys.argv[1:]))\n'
    )
    arguments = ['export', tmp_path / 'spool', '--to', 'mcap', '-o', tmp_path / 'out.mcap']
    process = subprocess.Popen(
        [sys.executable, '-c', code, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, 'PYTHONUNBUFFERED': '1'},
    )
    assert process.stdout.readline() == 'half\n'
    assert len(names(tmp_path)) == 2  # it is being written, under another name
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    if number == signal.SIGKILL:
        assert [each.partition('export-')[0] for each in names(tmp_path)] == ['.c3d-', 'spool']
        with written(tmp_path / 'out', replace=False) as work:
            assert names(tmp_path) == [work.name, 'spool']  # what the dead one left is gone
            put(tmp_path / 'other', lambda work: (work / 'other').write_text('x'))
            assert work.exists()  # and what is being written is not
            (work / 'out').write_text('x')
        assert names(tmp_path) == ['other', 'out', 'spool']
        return
    assert process.returncode == 1
    assert err == 'c3d: interrupted\n'
    assert names(tmp_path) == ['spool']


def test_progress_is_shown_in_a_terminal(session, tmp_path):
    """On a line of standard error that is cleared at the end."""
    master, slave = os.openpty()
    command = [sys.executable, '-m', 'cognitive3d_ros.cli.main', 'export', tmp_path / 'store']
    command += ['--to', 'tum', '-o', tmp_path / 'path.tum']
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=slave)
    os.close(slave)
    assert done.returncode == 0
    shown = os.read(master, 10_000).decode()
    os.close(master)
    assert shown.startswith('\rpath.tum: ')
    assert shown.endswith('\r\x1b[K')


@pytest.mark.parametrize('to', ['parquet', 'csv'])
def test_a_session_that_is_replaced_leaves_no_table_of_the_earlier_one(
    session, tmp_path, monkeypatch, to
):
    (tmp_path / 'other').mkdir()
    other = open_session(whole(tmp_path / 'other' / '1790000000_husky.1'))
    poses_only = session.edit()
    poses_only.clear()
    poses_only.insert(session.poses[0])
    less = open_session(poses_only.save(tmp_path / 'less'))
    out, file = tmp_path / 'fleet', f'device_id=rover-07/session_id={SESSION}/data.{to}'
    for each in (session, other):
        export_session(each, to, out)
    (out / 'mine' / file).parent.mkdir(parents=True)
    (out / 'mine' / file).write_text('no table of an export')
    before = {each: each.read_bytes() for each in out.rglob('*.*') if each.is_file()}
    assert (out / 'series' / file).exists()
    with pytest.raises(ExportError, match='--force to replace it'):
        export_session(less, to, out)
    rename = Fs.rename

    def fails(self, old, new):
        if '.replaced' in new.parts and 'series' in old.parts:
            raise OSError(5, 'Input/output error')
        rename(self, old, new)

    monkeypatch.setattr(Fs, 'rename', fails)
    with pytest.raises(ExportError, match='Input/output'):
        export_session(less, to, out, replace=True)
    assert {each: each.read_bytes() for each in out.rglob('*.*') if each.is_file()} == before
    monkeypatch.undo()
    export_session(less, to, out, replace=True)
    assert sorted(each.parts[-4] for each in out.rglob('*.*') if str(each).endswith(file)) == [
        'mine',
        'poses',
        'properties',
    ]
    of_other = {each for each in before if other.id in str(each)}
    assert {
        each for each in out.rglob('*.*') if each.is_file() and other.id in str(each)
    } == of_other
    assert not (out / 'series' / 'device_id=rover-07' / f'session_id={SESSION}').exists()


def test_a_rawlog_that_is_replaced_leaves_no_pictures_of_the_earlier_one(tmp_path):
    rich_session.record(tmp_path / 'spool')
    rich, out = open_session(tmp_path / 'spool'), tmp_path / 'run.rawlog'
    export_session(rich, 'rawlog', out)
    assert (tmp_path / 'run_Images').is_dir()
    export_session(rich, 'rawlog', out, options=Options(images='inside'), replace=True)
    (tmp_path / 'run_Images' / 'notes').mkdir(parents=True, exist_ok=True)
    assert names(tmp_path / 'run_Images') == ['notes']
    export_session(rich, 'rawlog', out, options=Options(images='inside'), replace=True)
    assert names(tmp_path / 'run_Images') == ['notes']
