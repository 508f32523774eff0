"""Results of exports appear whole or not at all; the command line of exports."""

import json
import os
import signal
import subprocess
import sys

import pytest
import rich_session
from stored import SESSION, at, event, whole, write

from cognitive3d_ros import open_session
from cognitive3d_ros.cli.main import main
from cognitive3d_ros.errors import ExportError
from cognitive3d_ros.export import FORMATS, export_session
from cognitive3d_ros.export.job import Job
from cognitive3d_ros.results import written

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
    for error in (OSError('no space'), KeyboardInterrupt()):

        def fail(work, error=error):
            (work / 'out.txt').write_text('half')
            raise error

        with pytest.raises(type(error)):
            put(tmp_path / 'out.txt', fail, replace=True)
    assert names(tmp_path) == ['out.txt']
    assert (tmp_path / 'out.txt').read_text() == 'before'


def test_what_is_there_is_replaced_only_when_that_is_said(tmp_path):
    for old in ('file', 'folder'):
        for new in ('file', 'folder'):
            out = tmp_path / f'{old}-{new}'
            make(out, old, 'old')

            def fill(work, out=out, new=new):
                make(work / out.name, new, 'new')

            with pytest.raises(ExportError, match='there already'):
                put(out, fill)
            assert content(out) == 'old'
            put(out, fill, replace=True)
            assert content(out) == 'new'
    assert len(names(tmp_path)) == 4


def make(path, kind, text):
    if kind == 'folder':
        path.mkdir()
        path = path / 'a.txt'
    path.write_text(text)


def content(path):
    return (path / 'a.txt' if path.is_dir() else path).read_text()


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
        for number in {1, total // 2, total}:
            fail_at(number, error)
            with pytest.raises(type(error)):
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
