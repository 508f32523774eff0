"""c3d spool: status, verify, recover, drain, retry."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import yaml
from recording_rig import REQUIRED, Rig

from cognitive3d_ros.cli.main import main
from cognitive3d_ros.gateway.server import running_gateway
from cognitive3d_ros.session.session import open_session
from cognitive3d_ros.spool import Spool


@pytest.fixture
def c3d(capsys):
    """Run ``c3d spool``; returns its exit code, what it printed and what it complained of."""

    def run(*arguments):
        code = main(['spool', *map(str, arguments)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture
def spool(tmp_path):
    """A spool with a session that has ended and one that has not."""
    rig = Rig(tmp_path / 'spool')
    rig.robot(0)
    for _ in range(2):
        session_id = rig.recorder.start_session()
        rig.run(25, step=0.1, robot=lambda t: (t, 0.0))
        rig.recorder.flush()
        if session_id == '1767225600_rover-07':
            rig.recorder.end_session('test')
    rig.close()
    return tmp_path / 'spool'


FIRST, SECOND = '1767225600_rover-07', '1767225625_rover-07'


def damage(spool):
    path = spool / 'sessions' / FIRST / 'gaze.000003.pose.c3d'
    data = bytearray(path.read_bytes())
    data[-30] ^= 1
    path.write_bytes(data)


def test_status(c3d, spool):
    code, out, _ = c3d('status', spool)
    assert code == 0
    head, columns, first, second = out.splitlines()
    assert 'parts of 2 sessions' in head
    assert 'not in use' in head
    assert columns.split()[:3] == ['session', 'end', 'size']
    assert first.split()[:2] == [FIRST, 'yes']
    assert second.split()[:2] == [SECOND, 'no']
    code, out, _ = c3d('status', spool, '--json')
    facts = json.loads(out)
    assert [one['ended'] for one in facts['sessions']] == [True, False]
    assert facts['sessions'][0]['parts'] == {'properties': 2, 'pose': 3, 'events': 2, 'series': 3}
    assert facts['parts'] == sum(sum(one['parts'].values()) for one in facts['sessions'])
    assert (facts['in_use_by'], facts['quarantined']) == (None, [])


def test_status_of_a_spool_in_use(c3d, spool):
    owner = Spool.open(spool)
    code, out, _ = c3d('status', spool)
    assert code == 0
    assert '; in use (' in out
    code, out, err = c3d('recover', spool)
    assert (code, out) == (1, '')
    assert 'in use by another process' in err
    owner.close()


@pytest.mark.parametrize('action', ['status', 'verify', 'recover', 'retry'])
def test_no_spool(c3d, tmp_path, action):
    for path in (tmp_path, tmp_path / 'absent'):
        code, _, err = c3d(action, path)
        assert code == 1
        assert 'is no spool' in err
    assert list(tmp_path.iterdir()) == []


def test_verify(c3d, spool):
    code, out, _ = c3d('verify', spool)
    assert code == 0
    assert out.endswith(': nothing wrong\n')
    damage(spool)
    first = spool / 'sessions' / FIRST
    (first / 'events.000002.events.c3d').rename(first / 'events.000003.events.c3d')
    (first / 'sensors.000002.series.c3d').unlink()
    (first / 'sensors.000004.series.c3d').mkdir()
    (spool / 'sessions' / SECOND / 'notes.txt').write_text('')
    (spool / 'sessions' / 'photos').mkdir()
    (spool / 'quarantine' / 'x').write_text('')
    code, out, _ = c3d('verify', spool, '--json')
    assert code == 3
    findings = [finding.split(': ', 1) for finding in json.loads(out)['findings']]
    assert [(where, what[:24]) for where, what in findings] == [
        ('sessions/photos', 'not a session'),
        (f'{FIRST}/sensors.000004.series.c3d', 'a folder with the name o'),
        (f'{FIRST}/events.000003.events.c3d', 'part 2 is not there befo'),
        (f'{FIRST}/events.000003.events.c3d', 'it holds another part th'),
        (f'{FIRST}/gaze.000003.pose.c3d', 'damaged: the checksum is'),
        (f'{FIRST}/sensors.000003.series.c3d', 'part 2 is not there befo'),
        (f'{SECOND}/notes.txt', 'not a part'),
        ('quarantine/x', 'no reason is beside it'),
    ]
    code, out, _ = c3d('verify', spool)
    assert code == 3
    assert out.endswith(': 8 things wrong\n')


def test_verify_reads_the_journal(c3d, spool):
    path = spool / 'sessions' / SECOND / 'journal'
    path.write_bytes(b'junk' + path.read_bytes())
    code, out, _ = c3d('verify', spool)
    assert code == 3
    assert f'{SECOND}/journal: 4 bytes are damaged, 0 entries' in out
    path.write_bytes(b'junk')
    code, out, _ = c3d('verify', spool)
    assert code == 3
    assert f'{SECOND}/journal: it cannot be read' in out


def test_recover(c3d, spool):
    code, out, _ = c3d('recover', spool)
    assert code == 0
    assert '1 session closed' in out
    assert SECOND in out
    session = open_session(spool, SECOND)
    assert session.events[-1].properties['Reason'] == 'abnormalEnd'
    code, out, _ = c3d('recover', spool, '--json')
    assert code == 0
    assert json.loads(out) == {'closed': [], 'left_open': [], 'faults': [], 'quarantined': 0}


def test_recover_says_what_is_wrong(c3d, spool):
    (spool / 'sessions' / SECOND / 'camera.000001.camera.c3d.tmp').write_bytes(b'C3DPART')
    code, out, err = c3d('recover', spool, '--json')
    assert code == 3
    assert 'cut off' in json.loads(out)['faults'][0]
    assert 'cut off' in err


@pytest.mark.parametrize('action', ['recover', 'drain'])
@pytest.mark.parametrize('damage', ['a flipped byte', 'empty', 'garbage'])
def test_what_a_damaged_journal_has_lost_is_no_success(c3d, spool, tmp_path, action, damage):
    journal = spool / 'sessions' / SECOND / 'journal'
    data = bytearray(journal.read_bytes())
    data[30] ^= 1
    journal.write_bytes({'empty': b'', 'garbage': b'x' * 99}.get(damage, bytes(data)))
    with running_gateway(tmp_path / 'store') as gateway:
        options = ['--gateway', gateway.url, '--timeout', '60'] if action == 'drain' else []
        code, _, err = c3d(action, spool, *options)
    assert code == 3
    assert 'quarantine/' in err


@pytest.mark.parametrize('action', ['status', 'verify', 'recover', 'retry'])
def test_a_spool_without_its_quarantine(c3d, spool, action):
    shutil.rmtree(spool / 'quarantine')
    for name in ('last_second', 'lock'):
        assert c3d(action, spool)[0] == 0
        shutil.rmtree(spool / 'quarantine', ignore_errors=True)
        (spool / name).unlink()
    (spool / 'lock').write_text('gateway, process 12\n')  # a store is none
    assert c3d(action, spool)[0] == 1


def test_recover_fails_where_a_session_stays_open(c3d, spool, monkeypatch):
    """The disk takes no part: what is in the journal stays there, for the next try."""

    def refuse(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr('cognitive3d_ros.spool.spool.write_part', refuse)
        code, out, err = c3d('recover', spool, '--json')
    assert code == 1
    assert json.loads(out)['left_open'] == [SECOND]
    assert 'No space left' in err
    assert c3d('recover', spool)[0] == 0
    assert open_session(spool, SECOND).events[-1].properties['Reason'] == 'abnormalEnd'


def test_recover_whatever_file_was_cut_short(c3d, spool, tmp_path):
    """Every other file stays as it is, every session gets an end, and nothing vanishes."""
    files = {path: path.read_bytes() for path in sorted(spool.glob('sessions/*/*'))}
    for cut, data in files.items():
        if cut.parent.name == FIRST and cut.name != 'events.000001.events.c3d':
            continue  # one of the session that has ended will do
        for length in (0, len(data) // 2, len(data) - 1):
            root = tmp_path / 'cut'
            shutil.copytree(spool, root)
            (root / cut.relative_to(spool)).write_bytes(data[:length])
            assert c3d('recover', root)[0] in (0, 3), (cut, length)
            assert not list(root.glob('sessions/*/journal')), (cut, length)
            for path, content in files.items():
                if path not in (cut, spool / 'sessions' / SECOND / 'journal'):
                    assert (root / path.relative_to(spool)).read_bytes() == content
            if cut.name != 'journal':
                kept = [root / cut.relative_to(spool), *root.glob(f'quarantine/*{cut.name}')]
                assert data[:length] in [path.read_bytes() for path in kept if path.exists()]
                assert c3d('verify', root)[0] == 3, (cut, length)
            last = open_session(root, SECOND).events[-1]
            assert (last.name, last.properties['Reason']) == ('c3d.sessionEnd', 'abnormalEnd')
            shutil.rmtree(root)


def test_drain(c3d, spool, tmp_path):
    with running_gateway(tmp_path / 'store', key='secret') as gateway:
        code, out, _ = c3d('drain', spool, '--gateway', gateway.url, '--key', 'secret', '--json')
    assert code == 0
    facts = json.loads(out)
    assert facts['found'] == facts['delivered'] > 0
    assert (facts['left'], facts['quarantined']) == (0, 0)
    assert len(open_session(tmp_path / 'store', FIRST).poses) > 200
    assert open_session(tmp_path / 'store', SECOND).events[-1].name == 'c3d.sessionEnd'
    assert list((spool / 'sessions').iterdir()) == []


def test_drain_by_the_parameters(c3d, spool, tmp_path, monkeypatch):
    monkeypatch.setenv('C3D_APPLICATION_KEY', 'secret')
    params = tmp_path / 'params.yaml'
    with running_gateway(tmp_path / 'store', key='secret') as gateway:
        lines = [
            f'{name}: {value}' for name, value in (REQUIRED | {'gateway': gateway.url}).items()
        ]
        text = '\n'.join(
            ['cognitive3d:', '  ros__parameters:', *(f'    {line}' for line in lines)]
        )
        params.write_text(text)
        code, out, _ = c3d('drain', spool, '--params', params)
    assert code == 0
    assert ' 0 left' in out


@pytest.mark.parametrize('required', [True, False])
def test_drain_to_a_gateway_that_acknowledges_by_its_status_alone(
    c3d, spool, tmp_path, monkeypatch, required
):
    monkeypatch.setenv('C3D_APPLICATION_KEY', 'secret')
    with ThreadingHTTPServer(('127.0.0.1', 0), Acknowledging) as server:
        threading.Thread(target=server.serve_forever).start()
        given = {
            'gateway': f'http://127.0.0.1:{server.server_port}',
            'upload.require_ack_header': required,
        }
        params = tmp_path / 'params.yaml'
        params.write_text(yaml.safe_dump({'cognitive3d': {'ros__parameters': REQUIRED | given}}))
        timeout_s = 0.5 if required else 60  # a try or none, or until all is delivered
        code, out, _ = c3d('drain', spool, '--params', params, '--timeout', timeout_s)
        server.shutdown()
    assert code == (1 if required else 0)
    assert (': 0 parts delivered' in out) is required
    assert (' 0 left' in out) is not required


class Acknowledging(BaseHTTPRequestHandler):
    """Answers 204, and no more."""

    protocol_version = 'HTTP/1.1'

    def do_POST(self):
        self.rfile.read(int(self.headers['Content-Length']))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


def test_drain_puts_aside_what_cannot_be_read_and_retry_what_can(c3d, spool, tmp_path):
    damage(spool)
    good = (spool / 'sessions' / FIRST / 'events.000001.events.c3d').read_bytes()
    with running_gateway(tmp_path / 'store') as gateway:
        code, out, _ = c3d('drain', spool, '--gateway', gateway.url, '--key', 'any')
    assert code == 3
    assert '1 put in quarantine, 0 left' in out
    name = f'{FIRST}.events.000001.events.c3d'
    (spool / 'quarantine' / name).write_bytes(good)
    (spool / 'quarantine' / f'{name}.reason.json').write_text('{"reason": "refused once"}')
    code, out, _ = c3d('status', spool)
    assert code == 3
    assert 'refused once' in out
    code, out, _ = c3d('retry', spool, '--json')
    assert code == 3
    facts = json.loads(out)
    assert facts['put_back'] == [name]
    ((stays, why),) = facts['stay'].items()
    assert stays == f'{FIRST}.gaze.000003.pose.c3d'
    assert 'the checksum' in why
    assert (spool / 'sessions' / FIRST / 'events.000001.events.c3d').read_bytes() == good
    assert not (spool / 'quarantine' / f'{name}.reason.json').exists()
    (spool / 'quarantine' / name).write_bytes(good)
    code, out, _ = c3d('retry', spool)
    assert code == 3
    assert 'part 1 of events is there already' in out
    for path in (spool / 'quarantine').iterdir():
        path.unlink()
    code, out, _ = c3d('retry', spool)
    assert code == 0
    assert '0 parts put back, 0 stay' in out


def test_drain_gives_up(c3d, spool):
    code, out, err = c3d(
        'drain', spool, '--gateway', 'http://127.0.0.1:9', '--key', 'k', '--timeout', '0.1'
    )
    assert code == 1
    assert '0 parts delivered' in out
    assert '127.0.0.1:9' in err


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_drain_is_interrupted_twice_at_once(spool, number):
    """As `timeout -s INT` does, and fingers: what was done, one line, and no traceback."""
    with socket.create_server(('127.0.0.1', 0)) as silent:
        url = f'http://127.0.0.1:{silent.getsockname()[1]}'
        command = [sys.executable, '-m', 'cognitive3d_ros.cli.main', 'spool', 'drain', spool]
        process = subprocess.Popen(
            [*command, '--gateway', url, '--key', 'k'],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        silent.settimeout(60)
        silent.accept()[0].close()
        for _ in range(20):
            process.send_signal(number)
        out, text = process.communicate(timeout=60)
        assert process.returncode == 1
    assert '0 parts delivered, 0 put in quarantine, ' in out
    assert 'c3d: interrupted' in text
    assert 'Traceback' not in text


@pytest.mark.parametrize('what', ['journal', 'lock'])
def test_drain_says_that_something_was_left_alone(c3d, spool, tmp_path, what):
    if what == 'journal':
        (spool / 'sessions' / SECOND / 'journal').unlink()
    (spool / 'sessions' / (SECOND if what == 'journal' else '') / what).mkdir()
    with running_gateway(tmp_path / 'store', key='k') as gateway:
        code, out, err = c3d('drain', spool, '--gateway', gateway.url, '--key', 'k', '--json')
    assert code == 3
    facts = json.loads(out)
    (fault,) = facts['faults']
    assert f'{what}: not a' in fault
    assert fault in err
    assert facts['left'] == 0


def test_drain_fails_where_a_session_stays_open(c3d, spool, tmp_path, monkeypatch):
    monkeypatch.setattr('cognitive3d_ros.cli.spool._close_sessions', lambda _: [])
    with running_gateway(tmp_path / 'store', key='k') as gateway:
        code, out, _ = c3d('drain', spool, '--gateway', gateway.url, '--key', 'k', '--json')
    assert code == 1
    assert json.loads(out)['left_open'] == [SECOND]


def test_drain_takes_no_store_whatever_was_removed_of_it(c3d, spool, tmp_path):
    store = tmp_path / 'store'
    with running_gateway(store, key='k') as gateway:
        assert c3d('drain', spool, '--gateway', gateway.url, '--key', 'k')[0] == 0
        (store / 'quarantine').mkdir()
        (store / 'quarantine' / 'damaged').touch()
        (store / 'lock').unlink()
        before = sorted(store.rglob('*'))
        code, out, err = c3d('drain', store, '--gateway', gateway.url, '--key', 'k')
    assert (code, out) == (1, '')
    assert 'is the store of a gateway' in err
    assert sorted(store.rglob('*')) == before


def test_drain_needs_to_know_where_to(c3d, spool):
    code, _, err = c3d('drain', spool)
    assert code == 2
    assert '--params FILE, or --gateway URL' in err


@pytest.mark.parametrize(
    ('option', 'value', 'why'),
    [
        ('--gateway', 'ftp://x', "is 'ftp://x': it must be an http or https URL"),
        ('--gateway', '', 'it must be an http or https URL'),
        ('--gateway', 'https://me:pw@x', 'it must not hold a user or a password'),
        ('--gateway', 'http://x:99999', 'it must be an http or https URL'),
        ('--key', '', 'it is empty'),
        ('--key', 'secret key', 'it holds more than a key'),
        ('--params', '', 'is empty: a path is wanted'),
        ('--timeout', 'nan', 'a number of seconds from 0 is wanted'),
        ('--timeout', '-1', 'a number of seconds from 0 is wanted'),
        ('--timeout', '1 h', 'a number of seconds from 0 is wanted'),
    ],
)
def test_drain_refuses_what_could_never_deliver(c3d, spool, option, value, why):
    given = {'--gateway': 'http://127.0.0.1:9', '--key': 'k', option: value}
    code, _, err = c3d('drain', spool, *(f'{name}={text}' for name, text in given.items()))
    assert code == 2
    assert f'argument {option}: ' in err
    assert why in err
    assert 'secret' not in err
    assert 'pw@' not in err


def test_names_that_hold_line_breaks_are_printed_on_one_line(c3d, tmp_path):
    root = tmp_path / 'a\nb\x1b[2J'
    Spool.open(root).close()
    (root / 'sessions' / 'stray\rname').mkdir()
    (root / 'sessions' / FIRST).mkdir()
    (root / 'sessions' / FIRST / 'no\npart').touch()
    for action in ('status', 'verify', 'recover', 'retry'):
        _, out, err = c3d(action, root)
        assert not {c for c in out + err if not c.isprintable()} - {'\n'}
        assert 'a\\nb\\x1b[2J' in out
    _, _, err = c3d('status', root / 'no')
    assert err.count('\n') == 1
    assert 'a\\nb\\x1b[2J' in err


def test_usage(c3d):
    assert c3d()[0] == 2
    assert c3d('fly')[0] == 2
    assert c3d('--help')[0] == 0
