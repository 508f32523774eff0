"""The uploader between a real spool and a real gateway, over HTTP that is not to be trusted."""

import random
import threading
from pathlib import Path

import pytest
from recording_rig import Rig
from upload_rig import Clock, Lines

from cognitive3d_ros.counters import Count, Ledger, UploadBlocked
from cognitive3d_ros.gateway.server import running_gateway
from cognitive3d_ros.session.session import open_session
from cognitive3d_ros.spool import Spool
from cognitive3d_ros.upload.exchange import Fault, Response, TransportFault
from cognitive3d_ros.upload.keys import ApplicationKey
from cognitive3d_ros.upload.remote_variables import Origin, fetch
from cognitive3d_ros.upload.transport import RequestsTransport
from cognitive3d_ros.upload.uploader import Uploader
from cognitive3d_ros.wire.framing import parse


def record(root: Path, sessions=2, **params) -> dict[str, bytes]:
    """Record sessions of 35 s into a spool; return the bodies of their parts by path."""
    rig = Rig(root, **params)
    rig.robot(0.0)
    for _ in range(sessions):
        rig.recorder.start_session()
        for _ in range(35):
            rig.run(1, robot=lambda t: (t, 0.5, 0.0))
            rig.recorder.flush()
        rig.recorder.event('dock.reached', {'dock': 'A'})
        rig.recorder.end_session('test')
    rig.close()
    return bodies(root)


def bodies(root: Path) -> dict[str, bytes]:
    return {
        f'{path.parent.name}/{path.name}': parse(path.read_bytes()).body
        for path in (root / 'sessions').glob('*/*.c3d')
    }


class Unreliable:
    """A transport over a real one that loses requests, loses answers and gets other answers."""

    def __init__(self, seed):
        self.real, self.random, self.sent = (
            RequestsTransport(timeout_s=20),
            random.Random(seed),
            [],
        )

    def send(self, request):
        self.sent.append(request)
        fate = self.random.randrange(12)
        if fate == 0:
            return TransportFault(Fault.UNREACHABLE, 'no network')
        if fate == 1:
            return Response(200, {'content-type': 'text/html'}, b'<html>login</html>')
        if fate == 2:
            return Response(302, {'location': 'http://login/'})
        if fate == 3:
            return Response(503, {'retry-after': '20'})
        answer = self.real.send(request)
        if fate in (4, 5):  # stored, and the answer was lost
            return TransportFault(Fault.TIMEOUT, 'no progress for 10 s')
        return answer


@pytest.mark.parametrize('seed', range(3))
def test_all_arrives_once_and_whole_whatever_happens_on_the_way(tmp_path, seed):
    expected = record(tmp_path / 'spool')
    assert len(expected) > 20
    transport, clock, log = Unreliable(seed), Clock(), Lines()
    uploaded = 0
    with running_gateway(tmp_path / 'store', key='secret') as gateway:
        while True:  # each turn is a new process on the same spool
            ledger = Ledger()
            spool = Spool.open(tmp_path / 'spool', ledger=ledger)
            uploader = Uploader(
                gateway=gateway.url,
                spool=spool,
                transport=transport,
                key=lambda: 'secret',
                ledger=ledger,
                log=log,
                uniform=random.Random(seed).random,
                monotonic=clock.monotonic,
                wall=clock.wall,
            )
            for _ in range(20):
                clock.now += uploader.step()
            left = spool.sessions()
            uploaded += ledger.value(Count.PARTS_UPLOADED)
            spool.close()
            if not left:
                break
        transport.real.close()
        assert bodies(gateway.store) == expected
        assert uploaded == len(expected)
        assert len(transport.sent) > len(expected)
        session = open_session(gateway.store, min(expected).partition('/')[0])
        assert [event.name for event in session.events][-1] == 'c3d.sessionEnd'
        assert len(session.poses) == 351
    assert list((tmp_path / 'spool' / 'sessions').iterdir()) == []
    same = {}
    for request in transport.sent:
        same.setdefault(request.headers['Idempotency-Key'], set()).add(request.body)
    assert all(len(found) == 1 for found in same.values())


def test_a_damaged_part_is_put_aside_and_all_others_arrive(tmp_path):
    expected = record(tmp_path / 'spool', sessions=1)
    name = sorted(name for name in expected if '/gaze.' in name)[1]
    path = tmp_path / 'spool' / 'sessions' / name
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    ledger = Ledger()
    with running_gateway(tmp_path / 'store') as gateway:
        spool = Spool.open(tmp_path / 'spool', ledger=ledger)
        transport = RequestsTransport()
        uploader = Uploader(
            gateway=gateway.url,
            spool=spool,
            transport=transport,
            key=ApplicationKey(environ={}),
            ledger=ledger,
            log=Lines(),
        )
        assert uploader.drain(60) is True
        transport.close()
        spool.close()
        del expected[name]
        assert bodies(gateway.store) == expected
    assert ledger.value(Count.PARTS_QUARANTINED) == 1
    assert 'checksum' in uploader.last_error


def test_a_thread_delivers_while_another_records(tmp_path):
    """The key is wrong at first; the file is put right; the thread stops with all delivered."""
    key_file = tmp_path / 'key'
    key_file.write_text('wrong')
    with running_gateway(tmp_path / 'store', key='right') as gateway:
        rig = Rig(tmp_path / 'spool')
        transport, refused = RequestsTransport(), threading.Event()
        log = Lines()
        log.error = lambda text: refused.set()
        skew = [0.0]
        uploader = Uploader(
            gateway=gateway.url,
            spool=rig.spool,
            transport=transport,
            key=ApplicationKey(key_file),
            ledger=rig.ledger,
            log=log,
            monotonic=lambda: threading.TIMEOUT_MAX / 2 + skew[0],
        )
        rig.robot(0.0)
        session_id = rig.recorder.start_session()
        uploader.start()
        assert refused.wait(20)
        assert uploader.state is UploadBlocked.REFUSED
        key_file.write_text('right\n')
        rig.run(25, robot=lambda t: (t, 0.0, 0.0))
        rig.recorder.flush()
        rig.recorder.end_session('test')
        skew[0] += 60  # a minute later
        rig.spool.wake()
        assert uploader.stop(20) is True
        assert uploader.state is UploadBlocked.DRAINING
        transport.close()
        assert rig.spool.sessions() == []
        rig.close()
        assert rig.ledger.value(Count.UPLOAD_FAILURES) == 1
        session = open_session(gateway.store, session_id)
        assert session.events[-1].name == 'c3d.sessionEnd'


def test_remote_variables_from_a_real_gateway_and_then_without_it(tmp_path):
    file = tmp_path / 'variables.json'
    file.write_text(
        '{"abTests":[{"remoteVariableName":"speed","type":"int","valueInt":80}],'
        '"remoteConfigurations":[{"remoteVariableName":"speed","type":"int","valueInt":1}]}'
    )
    ask = {'key': 'secret', 'identifier': 'rover-07', 'spool_dir': tmp_path}
    transport = RequestsTransport(timeout_s=3)
    with running_gateway(tmp_path / 'store', key='secret', remote_variables=file) as gateway:
        found = fetch(transport, gateway=gateway.url, **ask)
        assert (found.values, found.origin, found.problems) == ({'speed': 80}, Origin.GATEWAY, ())
        wrong = fetch(transport, gateway=gateway.url, **ask | {'key': 'wrong'})
        assert (wrong.values, wrong.origin) == ({'speed': 80}, Origin.KEPT)
        assert '401' in wrong.problems[0]
        transport.close()
    found = fetch(transport, gateway=gateway.url, **ask)
    assert (found.values, found.origin) == ({'speed': 80}, Origin.KEPT)
