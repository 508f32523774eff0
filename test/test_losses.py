"""Every reason for which anything is lost shows, by its name, wherever people look: table driven.

That is the ledger, health series, a property of the session, ``/diagnostics``, ``~/status`` and ``c3d verify``.
"""

import errno
import math
import os
import shutil
import threading
import time
from types import SimpleNamespace

import pytest

pytest.importorskip('diagnostic_msgs', reason='needs the messages of ROS')

from builtin_interfaces.msg import Time
from picture_files import FILES
from recording_rig import HOST, REQUIRED, WALL, Lines
from sensor_rig import jpeg

from cognitive3d_ros.clock import ManualClocks, Reading
from cognitive3d_ros.counters import Count, Drop, Fate, Missed
from cognitive3d_ros.errors import FormatError
from cognitive3d_ros.node import status
from cognitive3d_ros.node.engine import Engine
from cognitive3d_ros.parameters import parse
from cognitive3d_ros.recording.accounts import LOSSES
from cognitive3d_ros.recording.inputs import Publication
from cognitive3d_ros.session.session import open_session
from cognitive3d_ros.session.verify import Kind, verify
from cognitive3d_ros.spool import Fs, Spool, SpoolLimits
from cognitive3d_ros.spool import session as spool_session
from cognitive3d_ros.tf import TransformBuffer

S = 10**9
MIB = 1 << 20
ROOMY = SpoolLimits(1 << 40, 0)
PARAMS = {
    'reference_frames': ['map'],
    'topics': ['x'],
    'topic.x.topic': '/x',
    'topic.x.rate_hz': 0.0,
    'sensors': ['line'],
    'sensor.line.kind': 'binary_array',
    'sensor.line.topic': '/line',
    'sensor.line.element_count': 3,
    'cameras': ['front'],
    'camera.front.topic': '/image',
    'camera.front.rate_hz': 0.0,
    'spool.flush_s': 0.05,
    'spool.min_free_bytes': 0,
    'upload.enabled': False,
}
TYPES = {
    'topic.x': 'std_msgs/msg/Float64',
    'sensor.line': 'std_msgs/msg/UInt8MultiArray',
    'camera.front': 'sensor_msgs/msg/CompressedImage',
}


class Running(ManualClocks):
    """Clocks that run, with the ROS clock on the wall clock."""

    def read(self):
        now_ns = time.monotonic_ns()
        return Reading(WALL + now_ns, now_ns, WALL + now_ns)


class MovableFs(Fs):
    """The real disk, which takes nothing while ``code`` is set."""

    code = 0

    def write(self, fd, data):
        if self.code:
            raise OSError(self.code, os.strerror(self.code))
        return super().write(fd, data)


class Robot:
    """An engine that records, and what may happen to it."""

    def __init__(self, folder, monkeypatch):
        self.fs, self.monkeypatch = MovableFs(), monkeypatch
        opened = Spool.open
        monkeypatch.setattr(Spool, 'open', lambda *args, **more: opened(*args, fs=self.fs, **more))
        self.tf = TransformBuffer()
        self.folder = folder
        self.configure()

    def configure(self):
        self.engine = Engine(
            parse({**REQUIRED, **PARAMS, 'spool.dir': str(self.folder)}),
            clocks=Running(),
            transforms=self.tf,
            host=HOST,
            log=Lines(),
        )
        self.recorder, self.spool = self.engine.recorder, self.engine.spool
        self._found = set()

    def standing(self):
        """Let tf know where the robot is, for good."""
        self.tf.set_transform('map', 'base_link', 0, (0, 0, 0), (0, 0, 0, 1), static=True)
        self.tf.set_transform('base_link', 'lens', 0, (0, 0, 0), (0, 0, 0, 1), static=True)
        until(lambda: self.recorder.status().reference_frame)

    def send(self, source, *messages):
        (one,) = [each for each in self.engine.inputs if each.source == source]
        if source not in self._found:
            self._found.add(source)
            assert one.found(Publication(one.topic, TYPES[source], '/driver')) is None
        for message in messages:
            one.take(message, one.due())

    def picture(self, **more):
        return jpeg(**{'frame_id': 'lens', 'stamp_ns': 0, **more})

    def counted(self, key):
        return until(lambda: self.engine.ledger.value(key), key)


def until(condition, what=None):
    end_s = time.monotonic() + 20
    while not (result := condition()):
        assert time.monotonic() < end_s, what or condition
        time.sleep(0.005)
    return result


# What happens, and what is lost by it


def no_reference_frame(robot):
    robot.send('camera.front', robot.picture())


def pose_failures(robot):
    robot.standing()
    robot.send('camera.front', robot.picture(frame_id='nowhere'))


def decode_failures(robot):
    robot.standing()
    robot.send('camera.front', robot.picture(data=b'no picture'))


def too_large(robot):
    robot.standing()
    huge = FILES['JPEG'][:-2] + bytes(33 * MIB) + FILES['JPEG'][-2:]
    robot.send('camera.front', robot.picture(data=huge))


def queue_full(robot):
    robot.standing()
    go_on = threading.Event()
    (camera,) = [each for each in robot.engine.inputs if each.source == 'camera.front']
    make = camera._make

    def wait(message, stamp_ns):
        go_on.wait(20)
        return make(message, stamp_ns)

    robot.monkeypatch.setattr(camera, '_make', wait)
    robot.send('camera.front', *[robot.picture()] * 6)  # one at work, four wait
    robot.counted((Drop.QUEUE_FULL, 'camera.front'))
    go_on.set()


def session_ended(robot):
    (one,) = [each for each in robot.engine.inputs if each.source == 'topic.x']
    one.found(Publication(one.topic, TYPES['topic.x'], ''))
    arrival = one.due()
    robot.recorder.start_session()
    one.take(SimpleNamespace(data=1.0), arrival)


def bad_message(robot):
    robot.send('topic.x', SimpleNamespace())


def wrong_length(robot):
    robot.send('sensor.line', SimpleNamespace(data=[1]))


def bad_event(robot):
    robot.recorder.event_json('no JSON')


def reserved_name(robot):
    robot.recorder.event('c3d.mine')


def spool_full(robot):
    robot.spool.limits = SpoolLimits(1, 0)
    robot.standing()
    robot.counted((Drop.SPOOL_FULL, 'gaze'))
    robot.spool.limits = ROOMY
    until(lambda: not robot.spool.full)


def disk_error(robot):
    rule = spool_session.Rule(10 * S, 256 * 1024, 2000)
    robot.monkeypatch.setitem(spool_session.RULES, 'pose', rule)
    robot.fs.code = errno.EIO
    until(lambda: robot.recorder.status().error)
    robot.standing()
    robot.counted((Drop.DISK_ERROR, 'gaze'))
    robot.fs.code = 0


def parts_evicted(robot):
    robot.standing()
    session = robot.recorder._session.spool
    session.append('sensors', 'series', b'S"y"\n[1,1]', time_ns=1, at_ns=0)
    session.seal('sensors', 'series')
    until(lambda: any(ref.stream == 'sensors' for ref in robot.spool.parts()))
    robot.spool.limits = SpoolLimits(robot.spool.usage().size_bytes - 1, 0)
    robot.recorder.event('lap')
    session.seal('events', 'events')
    robot.counted(Count.PARTS_EVICTED)
    robot.spool.limits = ROOMY
    # The next flush finds that there is room again: until then the session's own health is refused too.
    robot.recorder.event('lap')
    until(lambda: not robot.spool.full)


def parts_quarantined(robot):
    (ref,) = [ref for ref in robot.spool.parts() if ref.klass == 'properties'][:1]
    folder = robot.folder / 'sessions' / ref.session_id
    (folder / 'gaze.000001.properties.c3d').write_bytes(b'damage')
    with pytest.raises(FormatError):
        robot.spool.read(ref)


def messages_lost(robot):
    robot.engine.ledger.lost('topic.x', 3)  # over real DDS: test_node_arrivals.py


LOST = {
    no_reference_frame: 'camera.front: 1 no_reference_frame',
    pose_failures: 'camera.front: 1 pose_failures',
    decode_failures: 'camera.front: 1 decode_failures',
    too_large: 'camera.front: 1 too_large',
    queue_full: 'camera.front: * queue_full',
    session_ended: 'topic.x: 1 session_ended',
    bad_message: 'topic.x: 1 bad_message',
    wrong_length: 'sensor.line: 1 wrong_length',
    bad_event: 'events: 1 bad_event',
    reserved_name: 'events: 1 reserved_name',
    spool_full: 'gaze: * spool_full',
    disk_error: 'gaze: * disk_error',
    parts_evicted: 'c3d.parts_evicted: 1',
    parts_quarantined: 'c3d.parts_quarantined: 1',
    messages_lost: 'topic.x: 3 messages_lost',
}
SERIES = {
    pose_failures: 'c3d.camera.front.pose_failures',
    decode_failures: 'c3d.camera.front.decode_failures',
    bad_event: 'c3d.dropped_events',
    reserved_name: 'c3d.dropped_events',
    parts_evicted: 'c3d.parts_evicted',
    parts_quarantined: 'c3d.parts_quarantined',
    messages_lost: 'c3d.messages_lost',
}


@pytest.fixture
def robot(tmp_path, monkeypatch):
    robot = Robot(tmp_path, monkeypatch)
    yield robot
    robot.engine.close(0.0)


@pytest.mark.parametrize('happens', LOST, ids=lambda happens: happens.__name__)
def test_what_is_lost_shows_everywhere(robot, happens):
    robot.engine.activate()
    assert shown(robot) == ('', '')
    happens(robot)
    text = LOST[happens]
    if '*' not in text:
        until(lambda: text in robot.recorder.status().losses, robot.recorder.status())
    text = text.partition('*')[2] or text
    # ~/status and /diagnostics, while it records.
    assert all(text in each for each in shown(robot)), shown(robot)
    series = SERIES.get(happens, 'c3d.dropped_records')
    if series == 'c3d.dropped_records':
        filled = status.message(_status(), None, 'recording', robot.engine)
        assert filled.dropped_records == robot.engine.ledger.value(Count.DROPPED_RECORDS) > 0
    session_id = robot.recorder.end_session('done')
    # The session itself, and c3d verify.
    session = open_session(robot.folder, session_id)
    assert session.series[series][-1][1] >= 1
    assert text in session.properties[LOSSES]
    found = [finding.text for finding in verify(session) if finding.kind is Kind.LOSS]
    assert any(text in each for each in found), found
    if series in {count.value for count in Count}:
        assert any(each.startswith(f'{series} reached') for each in found), found


def _status():
    return SimpleNamespace(header=SimpleNamespace(stamp=None))


def shown(robot):
    """Return what is said of losses by ~/status, and by /diagnostics as values and in a message."""
    engine = robot.engine
    of_status = status.message(_status(), None, 'recording', engine).last_error
    found = status.diagnostics(Time(), 'node', 'recording', engine).status
    of_recorder = {each.key: each.value for each in found[0].values}[LOSSES]
    return of_status, of_recorder


def test_what_a_damaged_journal_has_lost_shows(robot, tmp_path_factory):
    robot.engine.activate()
    session_id = robot.recorder.session_id
    robot.standing()
    journal = robot.folder / 'sessions' / session_id / 'journal'
    until(lambda: journal.read_bytes().count(b'D{"time"') > 5)
    crashed = tmp_path_factory.mktemp('crashed')
    shutil.copytree(robot.folder, crashed, dirs_exist_ok=True)
    journal = crashed / 'sessions' / session_id / 'journal'
    data = journal.read_bytes()
    at = data.index(b'D{"time"')  # in the middle: what comes after it is whole
    journal.write_bytes(data[: at + 3] + b'?' + data[at + 4 :])
    robot.engine.close(0.0)
    robot.folder = crashed
    robot.configure()
    session = open_session(crashed, session_id)
    assert session.properties['c3d.losses'].startswith('journal: ')
    found = [finding.text for finding in verify(session) if finding.kind is Kind.LOSS]
    assert any('disk_error' in each for each in found)
    assert robot.engine.ledger.value((Drop.DISK_ERROR, 'journal')) >= 1
    assert 'journal: ' in shown(robot)[1]


@pytest.mark.parametrize('value', [math.nan, math.inf, -math.inf])
def test_what_a_message_marks_as_nothing_is_no_loss(robot, value):
    robot.engine.activate()
    robot.send('topic.x', SimpleNamespace(data=value), SimpleNamespace(data=1.0))
    assert robot.engine.ledger.value((Drop.NO_VALUE, 'topic.x')) == 1
    assert shown(robot) == ('', '')
    session_id = robot.recorder.end_session('done')
    session = open_session(robot.folder, session_id)
    account = session.properties['c3d.account.topic.x']
    assert account == '2 received = 1 stored + 1 dropped (1 no_value)'
    assert [finding for finding in verify(session) if finding.kind is not Kind.NOTE] == []


def test_no_reason_is_forgotten():
    """A reason that is added must be added here."""
    reasons = {text.split()[-1] for text in LOST.values() if 'c3d.' not in text}
    assert reasons >= {drop.value for drop in Drop if drop.is_loss}
    assert reasons >= {Fate.DECODE_FAILURES.value, Fate.POSE_FAILURES.value}
    assert reasons >= {missed.value for missed in Missed}
