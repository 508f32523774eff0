"""How the node's process ends: signals, kill -9, faults of rclpy."""

import contextlib
import signal
import socket
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip('rclpy')
pytest.importorskip('cognitive3d_msgs')

from node_rig import set_parameter, until
from picture_files import FILES
from sensor_msgs.msg import CompressedImage

from cognitive3d_ros.gateway.server import running_gateway
from cognitive3d_ros.recording.accounts import adds_up
from cognitive3d_ros.wire.framing import parse, parse_part_name

pytestmark = pytest.mark.ros

SINGLE_THREADED = """
import sys
import rclpy.experimental
del rclpy.experimental.EventsExecutor  # as on Humble
from cognitive3d_ros.node.main import main
sys.exit(main())
"""


def quiet(node):
    """Say whether nothing but our own lines of information were written."""
    return all(line.startswith('[INFO]') for line in node.text.splitlines())


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize('command', [('-m', 'cognitive3d_ros.node.main'), ('-c', SINGLE_THREADED)])
def test_a_signal_ends_the_session_on_disk(start_node, number, command):
    node = start_node(command=command)
    node.says('started')
    assert node.stop(number) == 0
    assert node.reasons() == ['shutdown']
    assert node.journal() == b''
    assert not list(node.spool.rglob('*.tmp'))
    assert quiet(node)
    for path in node.spool.glob('sessions/*/*'):
        assert parse(path.read_bytes()).header.number == parse_part_name(path.name).number


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_two_signals_at_once(start_node, number):
    node = start_node()
    node.says('started')
    node.send(number)
    node.send(number)
    assert node.wait() == 0
    assert node.reasons() == ['shutdown']
    assert quiet(node)


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_does_not_wait_for_delivery(start_node, uploading, number):
    node = start_node(gateway=uploading.url, **{'upload.enabled': True})
    until(uploading.begun, what='a request')
    node.send(number)
    node.says('ended (shutdown)')
    begin_s = time.monotonic()
    node.send(number)
    assert node.wait() == 0
    assert time.monotonic() - begin_s < 1.0
    assert node.reasons() == ['shutdown']


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize('times', [1, 2])
def test_signals_while_pictures_are_encoded_and_parts_uploaded(
    start_node, peer, uploading, number, times
):
    """As docker stop does, which waits for ten seconds: all that was taken is stored, or counted."""
    node = start_node(
        command=('-c', SLOW_PICTURES),
        gateway=uploading.url,
        cameras=['front'],
        **{'upload.enabled': True, 'camera.front.topic': '/image', 'camera.front.rate_hz': 0.0},
    )
    peer.static_tf(1.0)
    peer.watch()
    until(lambda: peer.status('recording').pose_samples, what='a pose')
    until(uploading.begun, what='a request')
    picture = CompressedImage(format='jpeg', data=FILES['JPEG'])
    picture.header.frame_id = 'base_link'
    publisher = peer.publisher(CompressedImage, '/image')
    for _ in range(20):
        publisher.publish(picture)
    node.says('encoding')
    begin_s = time.monotonic()
    for _ in range(times):
        node.send(number)
    assert node.wait() == 0
    assert time.monotonic() - begin_s < 9
    assert node.reasons() == ['shutdown']
    account = node.stored.properties()['c3d.account.camera.front']
    assert adds_up(account), account
    assert f'= {len(node.stored.frames("front"))} stored' in account
    assert 'dropped' in account  # twenty are more than can be encoded in the second that there is
    assert not list(node.spool.rglob('*.tmp'))


SLOW_PICTURES = """
import sys, time
from cognitive3d_ros.convert import compressed
from cognitive3d_ros.node.main import main
convert = compressed.convert_compressed
def slow(message, options):
    print('[INFO] encoding', file=sys.stderr, flush=True)
    time.sleep(0.3)
    return convert(message, options)
compressed.convert_compressed = slow
sys.exit(main())
"""


def test_deactivate_and_cleanup_while_a_part_is_uploaded(start_node, peer, uploading, tmp_path):
    node = start_node(gateway=uploading.url, **{'upload.enabled': True})
    peer.active()
    until(uploading.begun, what='a request')
    peer.event('lap')
    begin_s = time.monotonic()
    assert peer.change('deactivate')
    assert time.monotonic() - begin_s < 2  # it does not wait for the gateway
    assert node.reasons() == ['deactivate']
    begin_s = time.monotonic()
    assert peer.change('cleanup')
    assert time.monotonic() - begin_s < 6
    parts = {path.name for path in node.spool.glob('sessions/*/*')}
    assert {'events.000001.events.c3d', 'gaze.000001.properties.c3d'} <= parts
    # Nothing holds the spool any more, and nothing that was on its way is lost.
    with running_gateway(tmp_path / 'store') as gateway:
        assert set_parameter(peer, 'gateway', gateway.url) == ''
        assert set_parameter(peer, 'auto_start_session', False) == ''
        assert peer.change('configure')
        until(lambda: not list(node.spool.glob('sessions/*')), what='delivery')
        assert peer.change('cleanup')
    stored = {path.name for path in (tmp_path / 'store').glob('sessions/*/*')}
    assert stored == parts
    assert node.stop() == 0


@pytest.fixture
def uploading():
    """A server that takes requests and never answers; ``begun()`` says whether one has begun."""
    taken = []
    with socket.create_server(('127.0.0.1', 0)) as server:

        def serve():
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    connection.recv(1)
                    taken.append(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        url = f'http://127.0.0.1:{server.getsockname()[1]}'
        yield SimpleNamespace(url=url, begun=lambda: bool(taken))
        server.shutdown(socket.SHUT_RDWR)
        thread.join()
    for connection in taken:
        connection.close()


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_the_node_still_starts(start_node, number):
    """Whatever the process is at: once it has its handlers, it exits with 0 and says nothing."""
    for wait_s in (0.1, 0.3, 0.5):
        node = start_node(f'after {wait_s}')
        until(lambda node=node: handles(node.process.pid, number), what='handlers')
        time.sleep(wait_s)  # any moment will do
        assert node.stop(number) == 0
        assert quiet(node)


def test_a_signal_while_it_is_configured_begins_no_session(start_node):
    node = start_node(command=('-c', SLOW_CONFIGURE))
    node.says('configuring')
    assert node.stop() == 0
    assert 'started' not in node.text
    assert not list(node.spool.glob('sessions/*'))


SLOW_CONFIGURE = """
import sys, time
from cognitive3d_ros.node import main, recorder_node
configure = recorder_node.RecorderNode._configure
def slow(self):
    configure(self)
    print('[INFO] configuring', file=sys.stderr, flush=True)
    time.sleep(0.5)
recorder_node.RecorderNode._configure = slow
sys.exit(main.main())
"""


def handles(pid, number):
    """Say whether a process has a handler for a signal."""
    status = Path('/proc', str(pid), 'status').read_text('ascii').splitlines()
    caught = next(line for line in status if line.startswith('SigCgt'))
    return bool(int(caught.split()[1], 16) >> (number - 1) & 1)


def test_unconfigured_and_inactive_nodes_end_too(start_node, peer):
    node = start_node('unconfigured', autostart=False)
    assert peer.state == 'unconfigured'
    assert node.stop(signal.SIGINT) == 0
    node = start_node('inactive', autostart=False)
    assert peer.change('configure')
    assert node.stop(signal.SIGTERM) == 0
    assert quiet(node)


@pytest.mark.rule(9)
def test_kill_9_and_the_next_configure_closes_the_session(start_node, peer):
    node = start_node('node')
    peer.static_tf(3.0)
    node.says('started')
    peer.event('lap')
    until(lambda: b'"lap"' in node.journal(), what='the event in the journal')
    until(lambda: node.journal().count(b'"time"') > 5, what='poses in the journal')
    (session_id,) = (path.name for path in node.spool.glob('sessions/*'))
    node.kill()
    journal = node.journal()
    again = start_node('node', auto_start_session=False)
    again.says('had not ended')
    assert again.stop() == 0
    events = again.stored.events(session_id)
    end = events[-1]
    assert end['name'] == 'c3d.sessionEnd'
    assert end['properties'] == {
        'Reason': 'abnormalEnd',
        'sessionlength': pytest.approx(end['time'] - events[0]['time'], abs=1e-5),
        'c3d.recovered': True,
    }
    # Nothing that was journalled is missing, and no part number is.
    stored = [event['name'] for event in events]
    assert stored[0] == 'c3d.sessionStart'
    assert 'lap' in stored
    poses = again.stored.poses(session_id)
    assert len(poses) >= journal.count(b'D{"time"')
    assert end['time'] == max(record['time'] for record in poses + events)
    assert end['point'] == poses[-1]['p']
    numbers = {}
    for stream, _, number, _ in again.stored.parts(session_id):
        numbers.setdefault(stream, []).append(number)
    assert all(each == list(range(1, len(each) + 1)) for each in numbers.values())


def test_an_error_out_of_rclpy_does_not_end_the_node(start_node, peer):
    """Some versions of rclpy let an invalid transition come out of spin_once."""
    node = start_node(command=('-c', FAULTY_SPIN))
    peer.active()
    node.says('Transition is not registered')
    peer.watch()
    assert peer.status('recording').session_seconds > 0
    assert node.text.count('Transition is not registered') == 1
    assert node.stop() == 0
    assert node.reasons() == ['shutdown']


FAULTY_SPIN = """
import sys
from cognitive3d_ros.node import main, process
from rclpy._rclpy_pybind11 import RCLError

class Executor:
    def __init__(self):
        self.executor, self.turns = real(), 0
    def spin_once(self, timeout_sec):
        self.turns += 1
        self.executor.spin_once(timeout_sec=timeout_sec)
        if self.turns % 3 == 0:
            raise RCLError('Transition is not registered')
    def __getattr__(self, name):
        return getattr(self.executor, name)

real, process.make_executor = process.make_executor, Executor
sys.exit(main.main())
"""


def test_the_end_uses_no_ros(start_node):
    """The session ends on disk even where the ROS context is gone already."""
    node = start_node(command=('-c', CONTEXT_GONE))
    assert node.wait() == 0
    assert node.reasons() == ['shutdown']
    assert quiet(node)


CONTEXT_GONE = """
import sys, threading
import rclpy
from cognitive3d_ros.node import engine, main
start = engine.Engine.activate
def activate(self):
    start(self)
    threading.Timer(0.3, rclpy.shutdown).start()
engine.Engine.activate = activate
sys.exit(main.main())
"""


def test_the_wait_for_messages_has_a_limit():
    """Without one rclpy sometimes misses a signal for good; and no signal is lost in many tries."""
    from cognitive3d_ros.node.spinning import spin

    limits = []

    class Executor:
        def spin_once(self, timeout_sec):
            limits.append(timeout_sec)

    import rclpy

    rclpy.init()
    try:
        spin(Executor(), lambda: len(limits) == 3, None)
    finally:
        rclpy.shutdown()
    assert limits == [0.25] * 3
