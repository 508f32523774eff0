"""A node whose spool holds 50,000 parts when it is configured."""

import resource
import time
from pathlib import Path

import pytest

pytest.importorskip('rclpy', reason='needs ROS')
pytest.importorskip('cognitive3d_msgs')

from node_rig import set_parameter, until

from cognitive3d_ros.wire.framing import PartHeader, frame, part_name
from cognitive3d_ros.wire.identity import SessionIdentity

pytestmark = [pytest.mark.ros, pytest.mark.slow]

SESSIONS, PARTS = 50, 1000
SCENE = '5b2a1f4e-0c9d-4e8a-9a53-0f6d1c2b3a4d'


def fill(root):
    for second in range(1_700_000_000, 1_700_000_000 + SESSIONS):
        session_id = f'{second}_rover-07'
        identity = SessionIdentity(session_id, 'rover-07', SCENE, 3, '1.0.0', second * 10**9, 0.1)
        folder = root / 'sessions' / session_id
        folder.mkdir(parents=True)
        for number in range(1, PARTS + 1):
            header = PartHeader(identity, 'gaze', number, 'pose', number, 'application/json')
            name = part_name('gaze', number, 'pose')
            (folder / name).write_bytes(b''.join(frame(header, b'{}')))


def resident_mb(process):
    pages = int(Path('/proc', str(process.pid), 'statm').read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def configure(peer):
    begin_s = time.monotonic()
    assert peer.change('configure')
    return time.monotonic() - begin_s


def test_fifty_thousand_parts_at_configure(start_node, peer, silent_gateway, tmp_path):
    backlog = tmp_path / 'backlog'
    fill(backlog)
    node = start_node(autostart=False, gateway=silent_gateway, **{'upload.enabled': True})
    peer.watch()
    empty_s = configure(peer)
    before_mb = resident_mb(node.process)
    assert peer.change('cleanup')
    assert set_parameter(peer, 'spool.dir', str(backlog)) == ''
    took_s = configure(peer)
    grown_mb = resident_mb(node.process) - before_mb
    print(
        f'configure: {took_s:.2f} s, {empty_s:.2f} s with an empty spool; {grown_mb:.1f} MB more'
    )
    assert took_s < 2.0 + empty_s
    assert grown_mb < 20
    # It records as if there were none.
    assert peer.change('activate')
    status = until(lambda: peer.status('recording'))
    assert status.spool_parts >= SESSIONS * PARTS
    peer.event('lap')
    until(lambda: b'"lap"' in b''.join(p.read_bytes() for p in backlog.glob('sessions/*/journal')))
    begin_s = time.monotonic()
    assert node.stop() == 0
    assert time.monotonic() - begin_s < 8
