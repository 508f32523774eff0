"""What runs between configure and cleanup, without ROS: threads, and sessions that wait for the clock."""

import errno
import functools
import gc
import itertools
import os
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from recording_rig import HOST, REQUIRED, WALL, Lines, Stored

from cognitive3d_ros.clock import ManualClocks, Reading
from cognitive3d_ros.counters import Drop
from cognitive3d_ros.errors import SessionError, SpoolLockedError
from cognitive3d_ros.node import engine as engine_module
from cognitive3d_ros.node.engine import Engine, write_wait_s
from cognitive3d_ros.parameters import parse
from cognitive3d_ros.recording.sensors import codec
from cognitive3d_ros.spool import Fs, Spool, SpoolLimits
from cognitive3d_ros.tf import TransformBuffer
from cognitive3d_ros.upload.transport import RequestsTransport
from cognitive3d_ros.wire.records import CameraFrameRecord, Pose

S = 10**9


class Running(ManualClocks):
    """Clocks that run, from where they are put."""

    def read(self):
        now_ns = time.monotonic_ns()
        return Reading(self.wall_ns + now_ns, now_ns, self.ros_ns + now_ns * (self.ros_ns > 0))


@pytest.fixture
def make(tmp_path):
    engines = []

    def make(clocks=None, **params):
        values = {
            **REQUIRED,
            'spool.dir': str(tmp_path / 'spool'),
            'spool.min_free_bytes': 0,
            'upload.enabled': False,
            **params,
        }
        engine = Engine(
            parse(values),
            clocks=clocks or Running(WALL, 0, WALL),
            transforms=TransformBuffer(),
            host=HOST,
            log=make.log,
        )
        engines.append(engine)
        return engine

    make.log, make.engines = Lines(), engines

    make.stored = Stored(tmp_path / 'spool')
    yield make
    for engine in engines:
        engine.close(0.0)


@pytest.fixture
def shown(monkeypatch):
    """Return what ~/status and /diagnostics say of a recorder that is given little time."""
    pytest.importorskip('diagnostic_msgs', reason='needs the messages of ROS')
    from builtin_interfaces.msg import Time
    from diagnostic_msgs.msg import DiagnosticStatus

    from cognitive3d_ros.node import status

    monkeypatch.setattr(status, '_PATIENCE_S', 0.1)

    def shown(engine, which=0):
        filled = SimpleNamespace(header=SimpleNamespace(stamp=None))
        name = {0: 'recorder', 1: 'spool'}[which]
        found = status.diagnostics(Time(), 'node', engine.state(), engine).status[which]
        assert found.name == f'node: {name}'
        warns = found.level == DiagnosticStatus.WARN
        last_error = status.message(filled, None, engine.state(), engine).last_error
        return last_error, found.message if warns else ''

    return shown


def until(condition):
    end_s = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end_s
        time.sleep(0.005)


def test_a_session_waits_for_a_clock_that_is_set(make):
    clocks = Running(3600 * S, 0, 3600 * S)  # 1970: no battery behind the clock
    engine = make(clocks)
    engine.activate()
    assert engine.state() == 'waiting'
    with pytest.raises(SessionError, match='before 2020'):
        engine.start_session('', '', '')
    (warning,) = make.log.of('warning')
    assert 'before 2020' in warning
    clocks.wall_ns = WALL
    until(lambda: engine.state() == 'recording')
    assert len(make.log.of('warning')) == 1
    assert engine.recorder.session_id >= f'{WALL // S}'


def test_why_no_session_starts_is_shown_and_not_said_all_the_time(make, monkeypatch, shown):
    """Each try gives another reason here: it is said once, and stands in the status."""
    fs = RefusingFs()
    monkeypatch.setattr(Spool, 'open', functools.partial(Spool.open, fs=fs))
    monkeypatch.setattr(engine_module, '_RETRY_START_S', 0.01)
    monkeypatch.setattr(engine_module, '_RETRY_REFUSED_S', 0.01)
    engine = make()
    fs.code = errno.EROFS
    tried = itertools.count()
    start = engine.recorder.start_session

    def counted(*given):
        next(tried)
        fs.code = errno.EROFS if next(tried) % 4 else errno.EACCES
        return start(*given)

    monkeypatch.setattr(engine.recorder, 'start_session', counted)
    assert engine.not_ready == ''
    engine.activate()
    until(lambda: next(tried) > 12)
    until(lambda: engine.waiting_s > 0.1)
    assert len([text for text in make.log.of('warning') if 'no session yet' in text]) == 1
    assert all('no session yet: ' in text for text in shown(engine))
    fs.code = 0
    monkeypatch.setattr(engine.recorder, 'start_session', start)
    until(lambda: engine.recorder.session_id)
    assert engine.not_ready == ''
    assert engine.waiting_s == 0.0


def test_a_session_without_a_reference_frame_is_a_warning(make, shown):
    engine = make()
    engine.activate()
    until(lambda: engine.recorder.status().session_s > 0.1)
    assert all('no reference frame' in text for text in shown(engine))


def test_a_session_that_waits_is_given_up_at_deactivation(make):
    clocks = Running(3600 * S, 0, 3600 * S)
    engine = make(clocks)
    engine.activate()
    engine.deactivate('deactivate')
    clocks.wall_ns = WALL
    engine.recorder.poll()
    assert engine.state() == 'idle'


def test_no_session_starts_by_itself_where_none_is_asked_for(make):
    engine = make(auto_start_session=False)
    engine.activate()
    assert engine.state() == 'idle'
    session_id = engine.start_session('a', '', '')
    assert engine.end_session('done') == session_id
    with pytest.raises(SessionError):
        engine.end_session('done')


def test_the_parameters_of_spool_and_uploads_get_there(make, monkeypatch):
    made = []

    class Noted(RequestsTransport):
        def __init__(self, **given):
            made.append(given)
            super().__init__(**given)

    monkeypatch.setattr(engine_module, 'RequestsTransport', Noted)
    engine = make(
        **{
            'spool.max_bytes': 1 << 30,
            'spool.min_free_bytes': 1 << 20,
            'upload.timeout_s': 7.0,
            'upload.max_bytes_per_s': 5000,
            'upload.require_ack_header': False,
        }
    )
    assert engine.spool.limits == SpoolLimits(max_bytes=1 << 30, min_free_bytes=1 << 20)
    assert (made[0]['timeout_s'], made[0]['max_bytes_per_s']) == (7.0, 5000)
    assert engine.uploader._require_ack is False


def held():
    """Count threads and open files."""
    gc.collect()
    return threading.active_count(), len(list(Path('/proc/self/fd').iterdir()))


def test_close_ends_the_session_and_frees_everything(make):
    before = held()
    for _ in range(3):
        engine = make(**{'upload.enabled': True, 'gateway': 'http://127.0.0.1:9'})
        engine.activate()
        engine.close(3.0)
    del engine
    make.engines.clear()
    assert held() == before
    ends = [e for e in make.stored.events() if e['name'] == 'c3d.sessionEnd']
    assert [end['properties']['Reason'] for end in ends] == ['shutdown'] * 3


def test_an_end_that_fails_frees_everything_too(make, monkeypatch):
    before = held()
    engine = make()
    engine.activate()

    def end_session(reason):
        raise RuntimeError('out of luck')

    monkeypatch.setattr(engine.recorder, 'end_session', end_session)
    with pytest.raises(RuntimeError):
        engine.close(0.0)
    del engine
    make.engines.clear()
    monkeypatch.undo()
    assert held() == before
    make()  # the spool is free, and closes what did not end
    ends = [e for e in make.stored.events() if e['name'] == 'c3d.sessionEnd']
    assert ends[0]['properties']['Reason'] == 'abnormalEnd'


def test_a_configuration_that_fails_frees_everything(make):
    make()
    before = held()
    with pytest.raises(SpoolLockedError):
        make()
    assert held() == before


def test_what_is_recorded_is_made_durable_within_the_flush_period(make, tmp_path):
    engine = make(**{'spool.flush_s': 0.05})
    engine.activate()
    engine.recorder.event('lap')
    journal = next((tmp_path / 'spool' / 'sessions').glob('*/journal'))
    until(lambda: b'"lap"' in journal.read_bytes())


@pytest.mark.parametrize(
    ('took_s', 'wait_s'), [(0.0, 1.0), (0.125, 0.75), (0.5, 0.25), (9.0, 0.25)]
)
def test_flushes_leave_time_for_themselves(took_s, wait_s):
    assert write_wait_s(1.0, took_s) == wait_s


def test_a_camera_part_is_written_when_it_is_closed(make, tmp_path):
    """Not only at the next flush: what is in memory alone is one open part at most."""
    engine = make(**{'spool.flush_s': 60.0})
    engine.activate()
    folder = tmp_path / 'spool' / 'sessions' / engine.recorder.session_id
    append = engine.recorder._session.spool.append
    for _ in range(5):
        append('camera', 'camera', codec().camera_entry(picture()), time_ns=1, at_ns=1)
    until((folder / 'camera.000001.camera.c3d').exists)


def picture():
    pose = Pose(0, 0, 0, 0, 0, 0, 1)
    return CameraFrameRecord('front', 1, 0, 'lens', pose, 'jpeg', 640, 480, bytes(1 << 20), 0, 0)


def test_a_fault_in_a_thread_is_said_and_the_thread_goes_on(make, monkeypatch):
    engine = make(**{'spool.flush_s': 0.05})
    flush, faults = engine.recorder.flush, []

    def broken():
        if not faults:
            faults.append(1)
            raise RuntimeError('out of luck')
        faults.append(2)
        flush()

    monkeypatch.setattr('cognitive3d_ros.node.engine._REST_S', 0.01)
    monkeypatch.setattr(engine.recorder, 'flush', broken)
    until(lambda: 2 in faults)
    assert any('out of luck' in text for text in make.log.of('warning'))


def test_a_wall_clock_that_stands_still_stalls_nothing(make, monkeypatch):
    """Poses are taken and made durable at their pace, and its standing still is said once."""
    clocks = ManualClocks()
    monkeypatch.setattr(clocks, 'read', lambda: Reading(WALL, time.monotonic_ns(), WALL))
    engine = make(clocks, **{'spool.flush_s': 0.05, 'sample_rate_hz': 50.0})
    engine.activate()
    session_id = engine.recorder.session_id
    journal = engine.spool.root / 'sessions' / session_id / 'journal'
    until(lambda: b'c3d.clock_step' in journal.read_bytes())
    polls = []
    poll = engine.recorder.poll
    monkeypatch.setattr(engine.recorder, 'poll', lambda: polls.append(1) or poll())
    until(lambda: len(polls) > 40)
    engine.close(0.0)
    names = [event['name'] for event in make.stored.events()]
    assert names.count('c3d.clock_step') == 2  # when it stopped, and what had come to at the end
    length_s = make.stored.event('c3d.sessionEnd')['properties']['sessionlength']
    assert length_s > 0.5


def test_a_disk_that_is_nearly_full_is_said_at_configure(make):
    make(**{'spool.min_free_bytes': 2**62})
    assert 'spool.min_free_bytes' in make.log.of('error')[0]


class RefusingFs(Fs):
    """The real disk; every change of it is refused while ``code`` is set."""

    code = 0

    def _check(self):
        if self.code:
            raise OSError(self.code, os.strerror(self.code))

    def create(self, path):
        self._check()
        return super().create(path)

    def write(self, fd, data):
        self._check()
        return super().write(fd, data)

    def make_folder(self, path):
        self._check()
        super().make_folder(path)

    def rename(self, old, new):
        self._check()
        super().rename(old, new)

    def remove(self, path):
        self._check()
        super().remove(path)


@pytest.mark.parametrize('code', [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO])
def test_a_disk_that_refuses_in_mid_session(make, monkeypatch, code):
    """Nothing raises, everything goes on in memory, and reaches the disk when that takes it again."""
    fs = RefusingFs()
    monkeypatch.setattr(Spool, 'open', functools.partial(Spool.open, fs=fs))
    engine = make(**{'spool.flush_s': 0.05})
    engine.activate()
    first = engine.recorder.session_id
    engine.recorder.event('before')
    fs.code = code
    until(lambda: engine.recorder.status().error)
    assert os.strerror(code) in engine.recorder.status().error
    engine.recorder.event('in memory')
    with pytest.raises(SessionError, match='has ended, but not on the disk'):
        engine.end_session('in the dark')
    assert engine.recorder.session_id is None
    assert any('in memory only' in text for text in make.log.of('error'))
    with pytest.raises(SessionError, match=os.strerror(code)):
        engine.start_session('', '', '')
    fs.code = 0
    until(lambda: not engine.recorder.status().error)  # also while no session is active
    assert 'the spool can be written again' in make.log.of('info')
    second = engine.start_session('', '', '')
    until(lambda: not (engine.spool.root / 'sessions' / first / 'journal').exists())
    engine.recorder.event('afterwards')
    until(lambda: not engine.recorder.status().error)
    engine.close(0.0)
    names = [e['name'] for e in make.stored.events(first)]
    assert names == ['c3d.sessionStart', 'before', 'in memory', 'c3d.sessionEnd']
    names = [e['name'] for e in make.stored.events(second)]
    assert names == ['c3d.sessionStart', 'afterwards', 'c3d.sessionEnd']
    assert any(os.strerror(code) in text for text in make.log.of('warning'))
    assert not [text for text in make.log.lines if 'fault' in text[1]]


def test_a_spool_that_cannot_be_written_is_shown_as_such(make, shown):
    engine = make(**{'spool.flush_s': 0.05})
    engine.activate()
    root = engine.spool.root
    assert shown(engine, 1)[1] == ''
    root.rename(root.with_name('away'))
    root.touch()
    until(lambda: engine.spool.error)
    assert 'cannot be written: ' in shown(engine, 1)[1]
    assert 'Not a directory' in shown(engine, 1)[1]
    root.unlink()
    root.with_name('away').rename(root)
    until(lambda: not engine.spool.error)
    assert 'cannot be written' not in shown(engine, 1)[1]


def test_what_the_disk_refuses_to_the_last_is_counted_and_said(make, monkeypatch):
    fs = RefusingFs()
    monkeypatch.setattr(Spool, 'open', functools.partial(Spool.open, fs=fs))
    engine = make(**{'spool.flush_s': 0.05})
    engine.activate()
    fs.code = errno.ENOSPC
    for _ in range(20):
        engine.recorder.event('lost')
    engine.close(0.0)
    assert engine.ledger.value((Drop.DISK_ERROR, 'spool')) >= 21
    assert engine.lost_entries == engine.ledger.value((Drop.DISK_ERROR, 'spool'))
    assert any('are lost' in text for _, text in make.log.lines)


def test_a_simulated_clock_that_stands_still_costs_nothing(make, monkeypatch):
    """Session time that does not pass must not turn the wait for its next tick into a busy loop."""
    clocks = ManualClocks()
    monkeypatch.setattr(clocks, 'read', lambda: Reading(WALL, time.monotonic_ns(), 5 * S))
    engine = make(clocks, use_sim_time=True, sim_time_on_wire=True)
    engine.activate()
    polls = []
    poll = engine.recorder.poll
    monkeypatch.setattr(engine.recorder, 'poll', lambda: polls.append(1) or poll())
    until(lambda: len(polls) > 5)
    begin_s, count = time.monotonic(), len(polls)
    until(lambda: time.monotonic() > begin_s + 0.3)
    assert len(polls) - count < 40


def test_freed_memory_is_given_back_now_and_then(make, monkeypatch):
    given_s = []
    monkeypatch.setattr(
        'cognitive3d_ros.node.engine.give_freed_memory_back',
        lambda: given_s.append(time.monotonic()),
    )
    monkeypatch.setattr('cognitive3d_ros.node.engine.GIVE_BACK_S', 0.1)
    make(**{'spool.flush_s': 0.05})
    until(lambda: len(given_s) > 3)
    assert min(b - a for a, b in itertools.pairwise(given_s)) >= 0.09
