"""Disks that fail under a recording node: full, read-only, without permission. It lives, and goes on by itself.

Where mounting is not allowed these are skipped: the failing disk of test_node_engine.py
(test_a_disk_that_refuses_in_mid_session) stands in for them, and they say so.
"""

import contextlib
import itertools
import os
import shutil
import subprocess
import threading
import time

import pytest

pytest.importorskip('rclpy', reason='needs ROS')
pytest.importorskip('cognitive3d_msgs')

from campaign_traffic import picture_bytes
from node_rig import stamp, until
from recording_rig import Stored
from sensor_msgs.msg import CompressedImage

from cognitive3d_ros.session.session import open_session
from cognitive3d_ros.session.verify import Kind, verify

pytestmark = [pytest.mark.ros, pytest.mark.slow]

MIB = 1 << 20
PICTURES_HZ = 20
CAMERA = {'cameras': ['front'], 'camera.front.topic': '/image', 'camera.front.rate_hz': 0.0}
STANDS_IN = 'no mounting here; test_a_disk_that_refuses_in_mid_session stands in'
COUNTED = {
    Kind.NOTE,
    Kind.LOSS,
    Kind.MISSING,
    Kind.GAP,
    Kind.SUM,
}  # what eviction and refusal look like


@pytest.fixture
def mount(tmp_path):
    """Mounts something, or skips; it is gone with the test."""
    folders = []

    def mount(*arguments):
        folder = tmp_path / f'disk-{len(folders)}'
        folder.mkdir()
        done = subprocess.run(['mount', *arguments, folder], capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f'{STANDS_IN}: {done.stderr}')
        folders.append(folder)
        return folder

    yield mount
    for folder in folders:
        subprocess.run(['umount', '--lazy', folder], capture_output=True)


@pytest.fixture
def pictures(peer):
    """Publishes pictures of 200 KB in a thread while it is entered."""

    @contextlib.contextmanager
    def publishing():
        publisher = peer.publisher(CompressedImage, '/image')
        stop = threading.Event()

        def run():
            for number in itertools.count():
                if stop.wait(1 / PICTURES_HZ):
                    return
                message = CompressedImage(format='jpeg', data=picture_bytes(number))
                message.header.frame_id = 'base_link'
                message.header.stamp = stamp(time.time_ns())
                publisher.publish(message)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    return publishing


def recording(node, peer):
    """Wait until the node records poses; return its session."""
    peer.watch()
    peer.static_tf(1.0)
    status = until(lambda: peer.status('recording'))
    until(lambda: peer.statuses[-1].pose_samples > 3, what='poses')
    return status.session_id


def fill(folder):
    """Take all the space there is; return the file that does."""
    file = folder / 'of others'
    with file.open('ab') as out, contextlib.suppress(OSError):
        while True:
            out.write(bytes(MIB))
            out.flush()
    return file


def events(stored, session_id):
    return [e['name'] for e in stored.events(session_id) if not e['name'].startswith('c3d.')]


def test_a_disk_that_we_fill_and_then_others_do(mount, start_node, peer, pictures):
    disk = mount('-t', 'tmpfs', '-o', 'size=32m', 'none')
    node = start_node(
        **CAMERA, **{'spool.dir': str(disk / 'spool'), 'spool.min_free_bytes': 8 * MIB}
    )
    session_id = recording(node, peer)
    peer.event('at first')
    with pictures():
        node.says('evicted')  # by us: the oldest pictures go, and the floor is kept
        free = os.statvfs(disk)
        assert free.f_bavail * free.f_frsize > 4 * MIB
        assert peer.status('recording').dropped_records == 0
        peer.event('while pictures are evicted')
        # By others: they take what there is, and what eviction frees.
        until(lambda: fill(disk) and 'nothing left to evict' in node.text, what='full')
        assert '/camera.' in node.text
        assert '/events.' not in node.text
        peer.event('while it is full')
        refused = until(lambda: peer.status('recording').dropped_records, what='refusals')
        until(lambda: peer.status('recording').dropped_records > refused)
        (disk / 'of others').unlink()
        node.says('there is space again')
        peer.event('afterwards')
        samples = peer.status('recording').pose_samples
        until(lambda: peer.statuses[-1].pose_samples > samples + 10, what='poses again')
    diagnostics = {s.name: s for s in peer.diagnostics[-1].status}
    spool = {each.key: each.value for each in diagnostics['cognitive3d: spool'].values}
    assert int(spool['c3d.parts_evicted']) == node.text.count('evicted ')
    assert node.stop() == 0
    stored = Stored(disk / 'spool')
    assert events(stored, session_id) == [
        'at first',
        'while pictures are evicted',
        'while it is full',
        'afterwards',
    ]
    assert stored.event('c3d.sessionEnd')['properties']['Reason'] == 'shutdown'
    assert stored.properties()['c3d.deviceid'] == 'rover-07'
    assert stored.series('c3d.parts_evicted')[-1][1] == node.text.count('evicted ')
    assert stored.series('c3d.dropped_records')[-1][1] > 0
    assert not list((disk / 'spool').rglob('*.tmp'))
    found = verify(open_session(disk / 'spool'))
    assert {finding.kind for finding in found} <= COUNTED
    texts = ' '.join(finding.text for finding in found)
    assert 'c3d.parts_evicted' in texts
    assert 'c3d.dropped_records' in texts


def test_a_disk_that_becomes_read_only(mount, start_node, peer, tmp_path):
    """As ext4 does when it meets an error. The node lives, and the next one closes the session."""
    image = tmp_path / 'image'
    image.write_bytes(bytes(40 * MIB))
    if subprocess.run(['mkfs.ext4', '-q', image]).returncode:
        pytest.skip(f'no mkfs.ext4: {STANDS_IN}')
    disk = mount('-o', 'loop,errors=remount-ro', image)
    node = start_node(**{'spool.dir': str(disk / 'spool')})
    session_id = recording(node, peer)
    peer.event('before')
    journal = disk / 'spool' / 'sessions' / session_id / 'journal'
    until(lambda: b'"before"' in journal.read_bytes(), what='the event in the journal')
    subprocess.run(['mount', '-o', 'remount,abort', disk], check=True)
    node.says('the spool cannot be written')
    assert 'Read-only' in until(lambda: peer.status('recording').last_error)
    peer.event('in memory')
    samples = peer.statuses[-1].pose_samples
    until(lambda: peer.statuses[-1].pose_samples > samples + 10, what='poses in memory')
    assert not peer.start_session().success  # and what was active is ended
    assert 'Read-only' in peer.start_session().message
    assert node.stop() == 1  # what was in memory is lost, and counted
    assert 'could not be ended on disk' in node.text
    subprocess.run(['umount', disk], check=True)
    subprocess.run(['fsck.ext4', '-y', image], capture_output=True)
    again = mount('-o', 'loop', image)
    closing = start_node(
        'again', **{'spool.dir': str(again / 'spool'), 'auto_start_session': False}
    )
    closing.says('had not ended')
    assert closing.stop() == 0
    stored = Stored(again / 'spool')
    assert 'before' in events(stored, session_id)
    assert stored.event('c3d.sessionEnd')['properties']['Reason'] == 'abnormalEnd'
    subprocess.run(['mkdir', '-p', disk], check=True)
    subprocess.run(
        ['mount', '-t', 'tmpfs', 'none', disk], check=True
    )  # for the fixture to unmount


def test_a_disk_that_is_read_only_for_a_while(mount, start_node, peer, pictures, tmp_path):
    """The same session, in the same process, goes on when it is writable again; nothing is lost.

    A second mount over the first: the kernel makes none read-only that has a file open for writing.
    """
    disk = mount('-t', 'tmpfs', 'none')
    (disk / 'spool').mkdir()
    spool = mount('--bind', disk / 'spool')
    node = start_node(**CAMERA, **{'spool.dir': str(spool)})
    session_id = recording(node, peer)
    stored = Stored(disk / 'spool')
    with pictures():
        until(lambda: len(stored.frames('front')) > 3, what='pictures')
        peer.event('before')
        mount_over = ['mount', '--bind', disk / 'spool', spool]
        subprocess.run(mount_over, check=True)
        try:
            subprocess.run(['mount', '-o', 'remount,bind,ro', spool], check=True)
            node.says('the spool cannot be written')
            assert 'Read-only' in until(lambda: peer.status('recording').last_error)
            peer.event('in memory')
            samples = peer.statuses[-1].pose_samples
            until(lambda: peer.statuses[-1].pose_samples > samples + 10, what='poses in memory')
        finally:
            subprocess.run(['umount', spool], check=True)
        frames = len(stored.frames('front'))
        until(lambda: not peer.status('recording').last_error, what='no error any more')
        node.says('the spool can be written again')
        until(lambda: len(stored.frames('front')) > frames + 20, what='pictures again')
        peer.event('afterwards')
        until(
            lambda: b'"afterwards"' in (spool / 'sessions' / session_id / 'journal').read_bytes(),
            what='the last event',
        )
    assert node.stop() == 0
    assert events(stored, session_id) == ['before', 'in memory', 'afterwards']
    assert stored.event('c3d.sessionEnd')['properties']['Reason'] == 'shutdown'
    session = open_session(disk / 'spool')  # there is one
    assert {finding.kind for finding in verify(session)} <= {Kind.NOTE}
    assert [frame.seq for frame in session.camera('front')] == list(
        range(len(session.camera('front')))
    )


WITHOUT_POWERS = """
import ctypes, sys
capabilities = (ctypes.c_uint32 * 6)()
this_process = (ctypes.c_uint32 * 2)(0x20080522, 0)
libc = ctypes.CDLL(None)
libc.capget(this_process, capabilities)
for index in (0, 1):  # effective, permitted
    capabilities[index] &= ~0b110  # permissions bind root too
libc.capset(this_process, capabilities)
from cognitive3d_ros.node.main import main
sys.exit(main())
"""


def test_folders_without_permission(start_node, peer):
    node = start_node(command=('-c', WITHOUT_POWERS))
    session_id = recording(node, peer)
    peer.event('before')
    folder = node.spool / 'sessions' / session_id
    until(lambda: b'"before"' in node.journal(), what='the event in the journal')
    folder.chmod(0o500)
    # What is journalled goes on; parts cannot be written any more.
    peer.end_session('in the dark')
    node.says('could not be ended on disk')
    assert 'Permission denied' in until(lambda: peer.status('idle').last_error)
    folder.parent.chmod(0o500)
    assert not peer.start_session().success
    folder.parent.chmod(0o755)
    folder.chmod(0o755)
    second = until(lambda: peer.start_session().session_id, what='a session')
    until(lambda: not (folder / 'journal').exists(), what='the end of the first session')
    peer.event('afterwards')
    assert node.stop() == 0
    assert events(node.stored, session_id) == ['before']
    assert events(node.stored, second) == ['afterwards']
    assert node.reasons() == ['in the dark', 'shutdown']
    for finding in verify(open_session(node.spool, session_id)):
        assert finding.kind is Kind.NOTE


def test_a_spool_that_is_removed_in_mid_session(start_node, peer):
    """What comes after it is recorded; where it cannot be made again, the process says so as it ends."""
    node = start_node(**{'spool.flush_s': 0.1})
    session_id = recording(node, peer)
    shutil.rmtree(node.spool, ignore_errors=True)
    node.says('made again')
    peer.event('afterwards')
    until(lambda: b'"afterwards"' in node.journal(), what='the event in the journal')
    peer.end_session()
    assert events(node.stored, session_id) == ['afterwards']
    assert peer.start_session().success
    while not node.spool.is_file():  # the node may be faster: then it is removed again
        shutil.rmtree(node.spool, ignore_errors=True)
        with contextlib.suppress(OSError):
            node.spool.touch()
    peer.event('lost')
    assert node.stop() == 1
    assert 'entries of session' in node.text
    assert 'are lost' in node.text


def test_a_spool_without_permission_at_configure(start_node, peer):
    node = start_node(command=('-c', WITHOUT_POWERS), autostart=False)
    node.spool.mkdir()
    node.spool.chmod(0o500)
    assert not peer.change('configure')
    assert str(node.spool) in node.text
    assert 'Permission denied' in node.text
    node.spool.chmod(0o755)
    assert peer.change('configure')
    assert node.stop() == 0
