"""Pipes, sockets and devices under the names of a session's files: nothing waits for them."""

from __future__ import annotations

import errno
import os
import signal
import socket
from pathlib import Path

import pytest
from recording_rig import Rig
from stored import SESSION, whole

from cognitive3d_ros.bags import open_bag
from cognitive3d_ros.cli.main import main
from cognitive3d_ros.errors import BagError
from cognitive3d_ros.spool import Spool
from cognitive3d_ros.spool.fs import REAL_FS, open_file


@pytest.fixture(autouse=True)
def _never_waits():
    """End a test that waits."""

    def late(*_):
        raise AssertionError('it waits')

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(30)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def put(path, kind):
    """Put something that is no file under a name."""
    if kind == 'pipe':
        os.mkfifo(path)
    elif kind == 'socket':
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
    else:
        path.symlink_to('/dev/zero')  # which never ends


KINDS = pytest.mark.parametrize('kind', ['pipe', 'socket', 'device'])


@KINDS
def test_only_ordinary_files_are_opened(tmp_path, kind):
    put(tmp_path / 'x', kind)
    before = sorted(Path('/proc/self/fd').iterdir())
    with pytest.raises(OSError, match=r'no ordinary file|No such device'):
        open_file(tmp_path / 'x')
    with pytest.raises(OSError, match='Is a directory'):
        open_file(tmp_path)
    assert sorted(Path('/proc/self/fd').iterdir()) == before
    if kind == 'pipe':
        for write in (REAL_FS.create, REAL_FS.open):
            with pytest.raises(OSError, match=os.strerror(errno.ENXIO)):
                write(tmp_path / 'x')


@KINDS
def test_a_session_is_read_around_them(tmp_path, monkeypatch, capsys, kind):
    folder = whole(tmp_path / 'store' / 'sessions' / SESSION)
    monkeypatch.chdir(folder)  # the path of a socket must be short
    put(Path('gaze.000005.pose.c3d'), kind)
    for command in ('sessions', 'show', 'verify'):
        assert main([command, str(tmp_path / 'store')]) == 3
    out = capsys.readouterr().out
    assert '1 unreadable, see c3d verify' in out
    assert 'gaze.000005.pose.c3d: cannot be read: ' in out
    assert main(['show', str(folder / 'gaze.000005.pose.c3d')]) == 1
    assert 'is neither a file nor a folder' in capsys.readouterr().err


@KINDS
def test_a_spool_is_used_around_them(tmp_path, monkeypatch, capsys, kind):
    monkeypatch.chdir(tmp_path)
    root = tmp_path / 's'
    rig = Rig(root)
    session = root / 'sessions' / rig.recorder.start_session()
    rig.recorder.flush()
    rig.close()
    for path in (
        session / 'gaze.000099.pose.c3d',
        root / 'sessions' / 'stray',
        root / 'quarantine' / 'stray.c3d',
        root / 'quarantine' / 'stray.c3d.reason.json',
    ):
        put(path.relative_to(tmp_path), kind)
    (root / 'last_second').unlink(missing_ok=True)
    put((root / 'last_second').relative_to(tmp_path), kind)
    for action, code in (('status', 3), ('verify', 3), ('retry', 3), ('recover', 3)):
        assert main(['spool', action, str(root)]) == code
    captured = capsys.readouterr()
    assert 'no ordinary file, with the name of a part' in captured.out + captured.err
    assert 'sessions/stray: not a session' in captured.out + captured.err


def test_a_journal_that_is_a_pipe(tmp_path, capsys):
    folder = whole(tmp_path / 'sessions' / SESSION)
    put(folder / 'journal', 'pipe')
    put(tmp_path / 'lock', 'pipe')
    (tmp_path / 'quarantine').mkdir()
    assert main(['verify', str(tmp_path)]) == 3
    assert 'journal: cannot be read' in capsys.readouterr().out
    assert main(['spool', 'status', str(tmp_path)]) == 0
    Spool.open(tmp_path).close()


def test_a_recording_that_is_a_pipe(tmp_path):
    put(tmp_path / 'x.bag', 'pipe')
    with pytest.raises(BagError, match='cannot be read: no ordinary file'):
        open_bag(tmp_path / 'x.bag')
