"""The commands that read sessions, and the entry of c3d: what they print, and how they end."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
import requests
from stored import (
    SCENE,
    SECOND,
    SESSION,
    annotation,
    at,
    body,
    event,
    frame_record,
    whole,
    write,
    write_sensors,
)

from cognitive3d_ros import __version__
from cognitive3d_ros.cli import main as entry
from cognitive3d_ros.cli.main import COMMANDS, main
from cognitive3d_ros.cli.output import length, printable
from cognitive3d_ros.errors import Cognitive3dError, ParameterError

C3D = [sys.executable, '-m', 'cognitive3d_ros.cli.main']


@pytest.fixture(autouse=True)
def _in_berlin(monkeypatch):
    monkeypatch.setenv('TZ', 'Europe/Berlin')
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def store(tmp_path):
    whole(tmp_path / 'store' / 'sessions' / SESSION)
    return tmp_path / 'store'


@pytest.fixture
def c3d(capsys):
    """Run a command; returns its exit code, what it printed and what it complained of."""

    def run(*arguments):
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def test_sessions(c3d, store):
    code, out, _ = c3d('sessions', store)
    assert code == 0
    head, line = out.splitlines()
    assert head.split() == [
        *('session', 'start', '(UTC)', 'length', 'scene', 'parts', 'poses', 'events', 'end')
    ]
    assert line.split() == [
        *(SESSION, '2026-01-01', '01:00:00', '+0100', '00:00:00Z', '0:00:10.0'),
        *(SCENE, 'v3', '8', '101', '3', 'serviceCall'),
    ]


def test_sessions_as_json(c3d, store):
    whole(store / 'sessions' / f'{SECOND + 5}_r2', f'{SECOND + 5}_r2')
    code, out, _ = c3d('sessions', store, '--json')
    first, second = json.loads(out)
    assert code == 0
    assert second['id'] == f'{SECOND + 5}_r2'
    assert first == {
        'id': SESSION,
        'device_id': 'rover-07',
        'scene_id': SCENE,
        'scene_version': 3,
        'name': 'morning round',
        'start': at(0),
        'duration': 10.0,
        'state': 'serviceCall',
        'ended': True,
        'parts': 8,
        'poses': 101,
        'events': 3,
        'unreadable': 0,
    }


def test_sessions_tells_what_cannot_be_read_and_how_each_ended(c3d, store):
    (store / 'sessions' / SESSION / 'gaze.000009.pose.c3d').write_bytes(b'')
    cut = store / 'sessions' / f'{SECOND + 5}_cut'
    write(cut, 'gaze', 1, 'pose', [], session=cut.name)
    live = store / 'sessions' / f'{SECOND + 6}_live'
    write(live, 'gaze', 1, 'pose', [], session=live.name)
    (live / 'journal').write_bytes(b'')
    saved = store / 'sessions' / f'{SECOND + 7}_saved'
    end = event('c3d.sessionEnd', 9, Reason='abnormalEnd', **{'c3d.recovered': True})
    write(saved, 'events', 1, 'events', [event('c3d.sessionStart', 7), end], session=saved.name)
    code, out, _ = c3d('sessions', store)
    assert code == 3
    ends = [line.partition(' v3 ')[2].split(maxsplit=3)[3] for line in out.splitlines()[1:]]
    assert ends == [
        'serviceCall; 1 unreadable, see c3d verify',
        'no end',
        'being recorded, or to be recovered',
        'abnormalEnd (recovered)',
    ]


def test_sessions_of_an_empty_store(c3d, tmp_path):
    (tmp_path / 'sessions').mkdir()
    assert c3d('sessions', tmp_path) == (0, f'{tmp_path} holds no sessions yet\n', '')
    code, _, err = c3d('sessions', tmp_path / 'none')
    assert (code, err) == (1, f'c3d: {tmp_path / "none"} does not exist\n')


def test_show(c3d, store):
    code, out, _ = c3d('show', store)
    assert code == 0
    for text in (
        f'Session {SESSION}\n',
        'name         morning round\n',
        'comment      wet floor\n',
        f'scene        {SCENE} version 3\n',
        'start        2026-01-01 01:00:00 +0100  (2026-01-01 00:00:00Z)\n',
        'length       0:00:10.0\n',
        'frame        odom, pose convention gltf_authored\n',
        'parts        8 (gaze 4, events 2, dynamics 1, sensors 1)\n',
        'samples  101, 10 Hz, longest gap 0.10 s\n',
        # x from 0 to 1 m and z twice that: √5 m
        'path     2.24 m within 1.00 x 0.00 x 2.00 m (scene x, y, z)\n',
        "object   body 'Rover 07', mesh 'rover': 2 snapshots\n",
        'Events: 3\n',
        '+4.00 s  dock.reached      dock=A, ok=true\n',
        'Series: 1\n',
        'battery.percentage        6   1     75  77.5    80    75\n',
        'Health: the recorder counted no loss\n',
    ):
        assert text in out
    assert 'Properties' not in out
    code, out, _ = c3d('show', store, '--all')
    assert 'c3d.version              1.0.0\n' in out
    assert 'laps                     2\n' in out


def test_show_as_json_has_the_facts(c3d, store):
    code, out, _ = c3d('show', store, '--json')
    facts = json.loads(out)
    assert code == 0
    assert facts['pose_timeline'] == {
        'samples': 101,
        'rate_hz': 10.0,
        'longest_gap_s': pytest.approx(0.1, abs=2e-5),
        'path_m': 2.236,
        'extent_m': [1.0, 0.0, 2.0],
        'gaze_points': False,
    }
    assert facts['series'] == [
        {
            'name': 'battery.percentage',
            'samples': 6,
            'rate_hz': 1.0,
            'min': 75.0,
            'mean': 77.5,
            'max': 80.0,
            'last': 75.0,
        }
    ]
    assert facts['health'] == {'c3d.pose_failures': 0.0}
    assert facts['event_list'][1]['properties'] == {'dock': 'A', 'ok': True}
    assert facts['properties']['laps'] == 2
    assert facts['parts_by_stream'] == {'gaze': 4, 'events': 2, 'dynamics': 1, 'sensors': 1}


def test_show_cuts_long_lists_and_says_so(c3d, store):
    many = [event(f'e{n}', n / 10) for n in range(40)]
    write(store / 'sessions' / SESSION, 'events', 3, 'events', many)
    _, out, _ = c3d('show', store)
    assert '… 28 more with --all\n' in out
    assert 'e39' not in out
    assert 'e39' in c3d('show', store, '--all')[1]


def test_show_tells_losses_and_what_cannot_be_read(c3d, store):
    folder = store / 'sessions' / SESSION
    lost = [
        {'name': 'c3d.dropped_events', 'data': [[at(9), 2]]},
        {'name': 'c3d.parts_written', 'data': [[at(9), 8]]},
        {'name': 'c3d.upload_blocked', 'data': [[at(9), 2]]},
    ]
    write(folder, 'sensors', 2, 'series', lost)
    (folder / 'gaze.000009.pose.c3d').write_bytes(b'')
    code, out, _ = c3d('show', store)
    assert code == 3
    assert 'Health\n  c3d.dropped_events  2\n  c3d.upload_blocked  2  refused\n' in out
    assert 'Cannot be read, see c3d verify\n  gaze.000009.pose.c3d: empty\n' in out


@pytest.mark.parametrize(
    ('harm', 'said'),
    [
        ('unreadable', 'Cannot be read, see c3d verify\n  gaze.000003.properties.c3d: empty\n'),
        ('missing', 'Not whole, see c3d verify\n  missing part: gaze: part 3, the last is 4\n'),
        (
            {'c3d.account.scans': '5 received = 4 stored'},
            'Not whole, see c3d verify\n  sum: scans: 5 received = 4 stored: does not add up\n',
        ),
        ({'c3d.losses': 'scans: 1 queue_full'}, 'Health\n  c3d.losses  scans: 1 queue_full\n'),
    ],
)
def test_show_calls_nothing_whole_that_is_not(c3d, store, harm, said):
    folder = store / 'sessions' / SESSION
    part = folder / 'gaze.000003.properties.c3d'
    if harm == 'unreadable':
        part.write_bytes(b'')
    elif harm == 'missing':
        part.unlink()
    else:
        write(folder, 'gaze', 5, 'properties', body('gaze', 5, [], properties=harm))
    code, out, _ = c3d('show', store)
    assert code == (0 if 'c3d.losses' in harm else 3)
    assert said in out
    assert 'no loss' not in out


def test_what_was_recorded_cannot_move_the_cursor(c3d, store):
    nasty = [event('\x1b[2J\nroot#', 1, **{'a\tb': '\u202eevil'})]
    nasty.append(annotation(2, 'comment', 'x\r\x07', '\x9b31m'))
    write(store / 'sessions' / SESSION, 'events', 3, 'events', nasty)
    for command in ('show', 'verify', 'markers', 'sessions'):
        _, out, _ = c3d(command, store)
        assert not {c for c in out if not c.isprintable()} - {'\n'}
    assert '\\x1b[2J\\nroot#' in c3d('show', store)[1]


def test_a_lone_surrogate_is_printed_as_what_it_is(store):
    write(store / 'sessions' / SESSION, 'events', 3, 'events', [event('a\ud800b', 1)])
    for more in ([], ['--json']):
        done = subprocess.run([*C3D, 'show', store, *more], capture_output=True, check=True)
        assert b'a\\ud800b' in done.stdout


def test_verify(c3d, store):
    assert c3d('verify', store) == (0, f'{SESSION}: 8 parts, 114 records: nothing wrong\n', '')
    assert json.loads(c3d('verify', store, '--json')[1]) == {
        'id': SESSION,
        'whole': True,
        'findings': [],
    }
    (store / 'sessions' / SESSION / 'gaze.000002.pose.c3d').unlink()
    code, out, _ = c3d('verify', store)
    assert code == 3
    assert out.splitlines() == [
        'missing part  gaze: part 2, the last is 4',
        f'{SESSION}: 7 parts, 64 records: 1 thing wrong',
    ]
    code, out, _ = c3d('verify', store, '--json')
    assert code == 3
    assert json.loads(out)['findings'] == [
        {'kind': 'missing part', 'text': 'gaze: part 2, the last is 4'}
    ]


def test_verify_of_much_that_is_wrong_fills_no_screen(c3d, store):
    for number in range(9, 39):
        (store / 'sessions' / SESSION / f'gaze.{number:06d}.pose.c3d').touch()
    code, out, _ = c3d('verify', store)
    lines = out.splitlines()
    assert code == 3
    assert sum(line.startswith('unreadable ') for line in lines) == 21
    assert [line for line in lines if 'more' in line] == [
        'unreadable    … and 10 more: --json prints all'
    ]
    found = json.loads(c3d('verify', store, '--json')[1])['findings']
    assert sum(each['kind'] == 'unreadable' for each in found) == 30
    assert lines[-1].endswith(f': {len(found)} things wrong')


def test_verify_of_notes_alone_is_well(c3d, store):
    (store / 'sessions' / SESSION / 'readme.txt').write_text('x')
    code, out, _ = c3d('verify', store)
    assert (code, out.splitlines()[0]) == (0, 'note  readme.txt: not a part')


def test_markers(c3d, store):
    assert c3d('markers', store) == (0, f'{SESSION} has no annotations\n', '')
    records = [
        annotation(1, 'log_marker_start', '<1>;dock', 'pose'),
        annotation(2.5, 'log_marker_stop', '<1>;docked'),
        annotation(3, 'log_marker_start', 'free'),
    ]
    write(store / 'sessions' / SESSION, 'events', 3, 'events', records)
    code, out, _ = c3d('markers', store)
    assert code == 0
    assert [line.split() for line in out.splitlines()[:3]] == [
        ['region', 'from', 'to', 'state', 'at', 'the', 'start', 'at', 'the', 'end'],
        ['1', '1.00', '2.50', 'completed', 'dock', 'docked'],
        ['-', '3.00', 'open', 'free'],
    ]
    assert '1.00  pose    log_marker_start  <1>;dock\n' in out
    assert json.loads(c3d('markers', store, '--json')[1])['regions'][0] == {
        'index': 1,
        'state': 'completed',
        'start': 1.0,
        'stop': 2.5,
        'start_text': 'dock',
        'stop_text': 'docked',
    }
    stop = [annotation(4, 'log_marker_stop', '9;x')]
    write(store / 'sessions' / SESSION, 'events', 4, 'events', stop)
    code, out, _ = c3d('markers', store)
    assert code == 3
    assert "wrong: log_marker_stop '9;x' at" in out


def test_one_of_several_sessions_is_chosen_by_its_id(c3d, store):
    other = f'{SECOND + 5}_r2'
    whole(store / 'sessions' / other, other)
    for command in ('show', 'verify', 'markers'):
        code, _, err = c3d(command, store)
        assert code == 1
        assert '2 sessions, choose one by its id' in err
        assert c3d(command, store, '--session', other)[0] == 0
        assert c3d(command, store / 'sessions' / other)[0] == 0


# The entry


def test_help_names_every_command_and_usage_errors_are_2(c3d):
    code, out, _ = c3d('--help')
    assert code == 0
    for command in COMMANDS:
        assert f'\n    {command} ' in out
    assert c3d('--version') == (0, f'c3d {__version__}\n', '')
    assert c3d()[0] == 2
    assert c3d('nonsense')[0] == 2
    assert c3d('show')[0] == 2
    assert c3d('show', 'x', '--nonsense')[0] == 2


@pytest.mark.parametrize('command', ['gateway', 'sessions', 'show', 'verify', 'markers'])
def test_every_command_has_help_that_needs_no_library(command):
    code = (
        'import sys\n'
        'from cognitive3d_ros.cli.main import main\n'
        f'assert main(["{command}", "--help"]) == 0\n'
        'heavy = {"numpy", "rclpy", "cv2", "capnp", "requests", "starlette", "uvicorn", "rosbags"}\n'
        'assert not heavy & set(sys.modules), heavy & set(sys.modules)\n'
    )
    subprocess.run([sys.executable, '-c', code], check=True, stdout=subprocess.DEVNULL)


@pytest.mark.parametrize(
    'arguments',
    [
        'sessions .',
        'show .',
        'verify .',
        'markers .',
        'export . --to csv -o x',
        'export x --to csv -o .',
        'export x --to csv --output .',
        'gateway --store .',
        'gateway --store x --remote-variables .',
        'record . --params x --spool x',
        'record x --params . --spool x',
        'record x --params x --spool .',
        'spool status .',
        'spool drain .',
    ],
)
def test_an_empty_path_is_not_the_current_folder(c3d, arguments):
    code, _, err = c3d(*('' if word == '.' else word for word in arguments.split()))
    assert code == 2
    assert err.endswith(': is empty: a path is wanted\n')


def test_errors_are_one_line_and_never_a_traceback(c3d, monkeypatch):
    def raising(error):
        def fail(*_):
            raise error

        monkeypatch.setattr('cognitive3d_ros.cli.sessions.run', fail)
        return c3d('sessions', 'x')

    assert raising(Cognitive3dError('so')) == (1, '', 'c3d: so\n')
    assert raising(KeyboardInterrupt()) == (1, '', 'c3d: interrupted\n')
    code, _, err = raising(PermissionError(13, 'Permission denied', '/x'))
    assert (code, err) == (1, 'c3d: /x: Permission denied\n')
    code, _, err = raising(ParameterError(['a: wrong', 'b: wrong']))
    assert (code, err) == (2, 'c3d: 2 parameter faults:\n  a: wrong\n  b: wrong\n')
    code, _, err = raising(Cognitive3dError('no a\nb\x1b[2J'))
    assert err == 'c3d: no a\\nb\\x1b[2J\n'
    code, _, err = raising(ModuleNotFoundError("No module named 'starlette'", name='starlette'))
    assert code == 1
    assert "pip install 'cognitive3d_ros[gateway]'" in err
    code, _, err = raising(ModuleNotFoundError('No', name='foo.bar'))
    assert "the Python package 'foo' is not installed" in err


def test_a_command_that_this_installation_lacks_is_said(c3d, monkeypatch):
    monkeypatch.setitem(entry.COMMANDS, 'later', ('later', 'comes later'))
    code, _, err = c3d('later')
    assert (code, err) == (1, 'c3d: this installation has no cognitive3d_ros.cli.later\n')


def test_show_tells_what_is_wholly_absent(c3d, store):
    for part in (store / 'sessions' / SESSION).glob('gaze.*'):
        part.unlink()
    code, out, _ = c3d('show', store)
    assert code == 3
    told = '\nNot whole, see c3d verify\n  missing part: gaze, poses and session properties: none is here\n'
    assert told in out


def test_show_tells_of_parts_of_cameras_that_are_damaged(c3d, store):
    folder = store / 'sessions' / SESSION
    write_sensors(folder, 'camera', 1, [frame_record(1, 0)])
    whole_part = write_sensors(folder, 'camera', 2, [frame_record(2, 1)])
    assert c3d('show', store)[0] == 0
    size = whole_part.stat().st_size
    os.truncate(whole_part, size - 10)
    (folder / 'lidar.000001.lidar.c3d').write_bytes(b'')
    code, out, _ = c3d('show', store)
    assert code == 3
    assert out.splitlines()[-3:] == [
        'Cannot be read, see c3d verify',
        f'  camera.000002.camera.c3d: cut off: {size - 10} of {size} bytes are there',
        '  lidar.000001.lidar.c3d: empty',
    ]
    assert len(json.loads(c3d('show', store, '--json')[1])['faults']) == 2


@pytest.mark.parametrize(
    ('command', 'code'),
    [
        ('sessions {}', 0),
        ('show {} --json', 0),
        ('verify {}', 0),
        ('markers {}', 0),
        ('export {} --to csv -o {}.csv --force', 0),
        ('verify {}/none', 1),
        ('verify', 2),
    ],
)
def test_closed_streams_are_no_failure(store, monkeypatch, command, code):
    for closed in (['stdout'], ['stderr'], ['stdin', 'stdout', 'stderr']):
        with monkeypatch.context() as patch:
            for stream in closed:
                patch.setattr(sys, stream, None)
            assert main(command.format(store, store).split()) == code
            for stream in closed:
                getattr(sys, stream).close()


@pytest.mark.parametrize(
    ('redirected', 'code', 'told'),
    [
        ('>&-', 0, ''),
        ('>&- 2>&-', 0, ''),
        ('>/dev/full', 1, 'c3d: standard output: No space left on device'),
        ('>/dev/full 2>/dev/full', 1, ''),
    ],
)
def test_a_process_without_streams(store, redirected, code, told):
    command = ' '.join([*C3D, 'verify', str(store), redirected])
    buffered = os.environ | {'PYTHONUNBUFFERED': ''}
    done = subprocess.run(command, shell=True, stderr=subprocess.PIPE, text=True, env=buffered)
    assert (done.returncode, done.stderr.strip()) == (code, told)


def test_a_reader_that_stops_reading_is_no_failure(store):
    write(store / 'sessions' / SESSION, 'events', 3, 'events', [event('e' * 900, 1)] * 1000)
    command = ' '.join([*C3D, 'show', '--all', str(store), '2>err', '|', 'head', '-1'])
    done = subprocess.run(
        ['bash', '-o', 'pipefail', '-c', command], cwd=store, capture_output=True, check=True
    )
    assert done.stdout == f'Session {SESSION}\n'.encode()
    assert (store / 'err').read_bytes() == b''


def test_a_terminal_of_ascii_gets_its_facts_too(store):
    write(store / 'sessions' / SESSION, 'events', 3, 'events', [event('größer', 1)])
    env = os.environ | {'PYTHONIOENCODING': 'ascii', 'LC_ALL': 'C'}
    done = subprocess.run([*C3D, 'show', store], env=env, capture_output=True, check=True)
    assert b'gr\\xf6\\xdfer' in done.stdout


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_the_gateway_serves_until_a_signal_and_ends_well(tmp_path, number):
    command = [*C3D, 'gateway', '--store', tmp_path / 'store', '--port', '0', '--key', 'k']
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as run:
        try:
            line = run.stdout.readline()
            url = line.split()[0]
            assert (
                line == f'{url} takes parts only with the key and keeps them in {tmp_path}/store\n'
            )
            answer = requests.post(
                f'{url}/v0/gaze/s?version=1',
                data=body('gaze', 1, []),
                headers={'Content-Type': 'application/json', 'Authorization': 'APIKEY:DATA k'},
                timeout=20,
            )
            assert answer.status_code == 200
            for _ in range(5):
                assert requests.post(f'{url}/v0/gaze/s?version=1', timeout=20).status_code == 401
            run.send_signal(number)
            assert run.wait(20) == 0
            said = run.stderr.read().splitlines()
        finally:
            run.kill()
    assert said[0] == f'gateway: session {SESSION}, scene s version 1'
    assert said[1].startswith('gateway: refused POST /v0/gaze/s: 401')
    assert len(said) < 5  # of a flood one line a second


def test_a_gateway_that_cannot_start_says_why(c3d, tmp_path, monkeypatch):
    monkeypatch.delenv('C3D_APPLICATION_KEY', raising=False)
    code, _, err = c3d('gateway', '--store', tmp_path, '--host', '0.0.0.0')
    assert (code, err) == (
        1,
        'c3d: 0.0.0.0 can be reached by others, so the gateway needs a key there: give --key\n',
    )


def test_small_things():
    assert [length(s) for s in (0, 9.96, 61, 3723.4, -1.5)] == [
        *('0:00:00.0', '0:00:10.0', '0:01:01.0', '1:02:03.4', '-0:00:01.5')
    ]
    assert printable('a\nb\x1b\ud800ö') == 'a\\nb\\x1b\\ud800ö'
