"""The gateway over real HTTP on loopback, with a real store in a temporary folder."""

import contextlib
import errno
import hmac
import json
import os
import random
import shutil
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import requests
from hypothesis import given, settings
from hypothesis import strategies as st

from cognitive3d_ros.errors import FormatError, GatewayError, SpoolError
from cognitive3d_ros.gateway import store as store_module
from cognitive3d_ros.gateway.bodies import Address, PartKey, check_part
from cognitive3d_ros.gateway.limits import Limits
from cognitive3d_ros.gateway.recent import Recent
from cognitive3d_ros.gateway.server import running_gateway
from cognitive3d_ros.gateway.store import Outcome, Store
from cognitive3d_ros.spool import Spool
from cognitive3d_ros.spool.fs import Fs
from cognitive3d_ros.spool.survey import check_is_spool
from cognitive3d_ros.wire.capnp_codec import encode_camera, encode_lidar
from cognitive3d_ros.wire.framing import parse, part_name
from cognitive3d_ros.wire.identity import SessionIdentity
from cognitive3d_ros.wire.records import CameraFrameRecord, LaserScanData, LidarScanRecord, Pose

SESSION = '1767225600_rover-07'
SCENE = '0f3c9c1e-6f0e-4b57-9d0a-2f1a0c9b7e11'
GAZE = (
    b'{"userid":"rover-07","timestamp":1767225600,"sessionid":"1767225600_rover-07","part":2,'
    b'"formatversion":"1.0","interval":0.1,'
    b'"data":[{"time":1767225600.1,"p":[-0.5,0,1.25],"r":[0,0.38268,0,0.92388]}]}'
)
PROPERTIES = (
    b'{"userid":"rover-07","timestamp":1767225600,"sessionid":"1767225600_rover-07","part":1,'
    b'"formatversion":"1.0","interval":0.1,"properties":{"c3d.version":"1.0.0"},"data":[]}'
)
EVENTS = (
    b'{"userid":"rover-07","timestamp":1767225600,"sessionid":"1767225600_rover-07","part":1,'
    b'"formatversion":"1.0","data":[{"name":"c3d.sessionStart","time":1767225600,"point":[0,0,0]}]}'
)
SENSORS = (
    b'{"name":"rover-07","sessionid":"1767225600_rover-07","timestamp":1767225600,"part":1,'
    b'"formatversion":"2.0","data":[{"name":"battery","data":[[1767225600,87.5]]}]}'
)
DYNAMICS = (
    b'{"userid":"rover-07","timestamp":1767225600,"sessionid":"1767225600_rover-07","part":1,'
    b'"formatversion":"1.0","manifest":{"body":{"name":"R","mesh":"rover","fileType":"gltf"}},"data":[]}'
)
IDENTITY = SessionIdentity(SESSION, 'rover-07', SCENE, 3, '1.0.0', 1767225600 * 10**9, 0.1)
FRAME = CameraFrameRecord(
    'front', 1767225600100, 0, 'optical', Pose(1, 0, 2), 'jpeg', 2, 2, b'\xff\xd8 picture', 60, 45
)
CAMERA = encode_camera(IDENTITY, 1, [FRAME])
LIDAR = encode_lidar(
    IDENTITY,
    1,
    [
        LidarScanRecord(
            'top',
            1767225600100,
            0,
            'laser',
            Pose(0, 0, 1),
            LaserScanData(-1, 1, 0.1, 0, 0.1, 0.1, 30, np.ones(20, '<f4'), np.zeros(0, '<f4')),
        )
    ],
)
JSON = {'Content-Type': 'application/json'}
BINARY = {'Content-Type': 'application/octet-stream'}


def url(gateway, stream, scene=SCENE, version='3'):
    return f'{gateway.url}/v0/{stream}/{scene}?version={version}'


def post(gateway, stream, body, headers=JSON, **where):
    return requests.post(url(gateway, stream, **where), data=body, headers=headers, timeout=20)


def stored(root, session=SESSION):
    """Return what lies in a session's folder: body by file name. Every file must be whole."""
    folder = Path(root) / 'sessions' / session
    return {p.name: parse(p.read_bytes()).body for p in sorted(folder.iterdir())}


@pytest.fixture
def gateway(tmp_path):
    with running_gateway(tmp_path / 'store') as running:
        yield running


@pytest.fixture(scope='module')
def refusing(tmp_path_factory):
    """A gateway for tests that store nothing: it is the same for all of them."""
    with running_gateway(tmp_path_factory.mktemp('refusing') / 'store') as running:
        yield running
        assert list((running.store / 'sessions').iterdir()) == []


def test_every_stream_is_stored_as_a_framed_part_that_knows_where_it_belongs(gateway, tmp_path):
    bodies = {'gaze': PROPERTIES, 'events': EVENTS, 'sensors': SENSORS, 'dynamics': DYNAMICS}
    for stream, body in bodies.items():
        answer = post(gateway, stream, body)
        assert answer.status_code == 200
        assert answer.json() == {'part': f'{SESSION}/{stream}/1', 'outcome': 'stored'}
        assert int(answer.headers['cvr-request-time']) >= 0
    assert post(gateway, 'gaze', GAZE).status_code == 200
    for stream, body in (('camera', CAMERA), ('lidar', LIDAR)):
        headers = BINARY | {'Idempotency-Key': f'{SESSION}/{stream}/1'}
        assert post(gateway, stream, body, headers).status_code == 200
    assert stored(gateway.store) == {
        'camera.000001.camera.c3d': CAMERA,
        'dynamics.000001.pose.c3d': DYNAMICS,
        'events.000001.events.c3d': EVENTS,
        'gaze.000001.properties.c3d': PROPERTIES,
        'gaze.000002.pose.c3d': GAZE,
        'lidar.000001.lidar.c3d': LIDAR,
        'sensors.000001.series.c3d': SENSORS,
    }
    path = gateway.store / 'sessions' / SESSION / 'gaze.000001.properties.c3d'
    header = parse(path.read_bytes()).header
    assert header.identity.session_id == SESSION
    assert header.identity.device_id == 'rover-07'
    assert (header.identity.scene_id, header.identity.scene_version) == (SCENE, 3)
    assert header.identity.sdk_version == '1.0.0'
    assert header.identity.interval_s == 0.1
    assert header.identity.start_ns == 1767225600_000_000_000
    assert header.content_type == 'application/json'


def test_a_repeat_is_stored_once_and_another_body_is_refused(gateway):
    assert post(gateway, 'gaze', GAZE).json()['outcome'] == 'stored'
    path = gateway.store / 'sessions' / SESSION / 'gaze.000002.pose.c3d'
    before = path.stat()
    again = post(gateway, 'gaze', GAZE, JSON | {'Idempotency-Key': f'{SESSION}/gaze/2'})
    assert (again.status_code, again.json()['outcome']) == (200, 'repeat')
    for other in (
        GAZE.replace(b'1.25', b'1.26'),
        # The same number with properties: another class of part, and still the same identity.
        GAZE.replace(b'"data":', b'"properties":{"a":1},"data":'),
    ):
        answer = post(gateway, 'gaze', other)
        assert answer.status_code == 409
        assert f'{SESSION}/gaze/2' in answer.json()['reason']
    assert post(gateway, 'gaze', GAZE, version='4').status_code == 409  # another scene version
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    assert stored(gateway.store) == {'gaze.000002.pose.c3d': GAZE}


def test_parts_survive_a_restart_and_so_does_their_identity(tmp_path):
    for outcome in ('stored', 'repeat'):
        with running_gateway(tmp_path / 'store') as gateway:
            assert post(gateway, 'gaze', GAZE).json()['outcome'] == outcome


def test_a_stored_part_that_was_damaged_gives_way_to_the_good_one(gateway):
    post(gateway, 'gaze', GAZE)
    path = gateway.store / 'sessions' / SESSION / 'gaze.000002.pose.c3d'
    path.write_bytes(path.read_bytes()[:-7])
    assert post(gateway, 'gaze', GAZE).json()['outcome'] == 'stored'
    assert stored(gateway.store) == {'gaze.000002.pose.c3d': GAZE}
    assert [p.name for p in (gateway.store / 'quarantine').iterdir()] == [f'{SESSION}.{path.name}']


def test_what_a_dead_gateway_left_half_written_goes(tmp_path):
    folder = tmp_path / 'store' / 'sessions' / SESSION
    folder.mkdir(parents=True)
    (folder / 'gaze.000002.pose.c3d.tmp').write_bytes(b'half')
    with running_gateway(tmp_path / 'store') as gateway:
        assert post(gateway, 'gaze', GAZE).json()['outcome'] == 'stored'
    assert stored(tmp_path / 'store') == {'gaze.000002.pose.c3d': GAZE}


def test_equal_posts_at_one_time_are_stored_once(gateway):
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda _: post(gateway, 'gaze', GAZE), range(24)))
    assert sorted(a.json()['outcome'] for a in answers) == ['repeat'] * 23 + ['stored']
    assert stored(gateway.store) == {'gaze.000002.pose.c3d': GAZE}


def test_of_unequal_posts_at_one_time_one_wins_and_the_others_hear_of_it(gateway):
    bodies = [GAZE.replace(b'1.25', f'{n}.5'.encode()) for n in range(16)]
    # Half of them are of the other class that gaze has, so that their files would have other names.
    bodies[8:] = [b.replace(b'"data":', b'"properties":{"a":1},"data":') for b in bodies[8:]]
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda body: post(gateway, 'gaze', body), bodies))
    assert sorted(a.status_code for a in answers) == [200] + [409] * 15
    (kept,) = stored(gateway.store).values()
    assert kept == bodies[[a.status_code for a in answers].index(200)]


def test_many_robots_at_one_time(gateway):
    def robot(n):
        with requests.Session() as session:
            for part in range(1, 11):
                body = EVENTS.replace(b'rover-07', f'rover-{n}'.encode())
                body = body.replace(b'"part":1', f'"part":{part}'.encode())
                answer = session.post(url(gateway, 'events'), data=body, headers=JSON, timeout=20)
                assert answer.json()['outcome'] == 'stored'

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(robot, range(8)))
    for n in range(8):
        assert len(stored(gateway.store, f'1767225600_rover-{n}')) == 10


def test_no_answer_waits_for_a_delayed_acknowledgement(refusing):
    """Linux delays one by 40 ms at the least, on a connection that is not new any more."""
    took_s = []
    with requests.Session() as session:
        for _ in range(60):
            started = time.monotonic()
            session.get(f'{refusing.url}/v0/remotevariables?identifier=x', timeout=20)
            took_s.append(time.monotonic() - started)
    assert min(took_s[-20:]) < 0.03


@pytest.mark.parametrize(
    ('stream', 'body', 'says'),
    [
        ('gaze', b'{', 'not JSON'),
        ('gaze', b'', 'not JSON'),
        ('gaze', b'[' * 100_000, 'nested too deep'),
        ('gaze', GAZE.replace(b'1.25', b'NaN'), 'NaN is no JSON number'),
        ('gaze', GAZE.replace(b'1.25', b'1e999'), 'data[0].p: 3 finite numbers wanted'),
        ('gaze', GAZE.replace(SESSION.encode(), b'1_../../../../tmp/x'), 'session id'),
        ('gaze', GAZE.replace(b'rover-07', b'..'), 'session id'),
        ('gaze', GAZE.replace(b'rover-07', b'a\\u0000'), 'session id'),
        ('gaze', GAZE.replace(b'rover-07', b'a/b'), 'session id'),
        ('gaze', GAZE.replace(b'rover-07', b'x' * 65), 'session id'),
        ('gaze', GAZE.replace(b'"part":2', b'"part":"2"'), 'part: a whole number'),
        ('events', GAZE, 'data[0].name'),
        ('sensors', GAZE, 'name: a text wanted'),
    ],
)
def test_wrong_bodies_are_refused_with_the_reason(refusing, stream, body, says):
    answer = post(refusing, stream, body)
    assert answer.status_code == 400
    assert says in answer.json()['reason']
    assert 'cvr-request-time' in answer.headers


@pytest.mark.parametrize(
    ('key', 'says'),
    [
        (f'{SESSION}/gaze/3', 'Idempotency-Key says'),
        (f'{SESSION}/events/2', 'Idempotency-Key says'),
        ('1767225601_rover-07/gaze/2', 'Idempotency-Key says'),
        (f'{SESSION}/gaze/02', 'whole number'),
        (f'{SESSION}/gaze/0', 'whole number'),
        (f'{SESSION}/gaze/4294967296', 'whole number'),
        (f'{SESSION}/gaze', '<session id>/<stream>/<part number>'),
        ('1_../../x/gaze/2', '<session id>/<stream>/<part number>'),
        ('..%2f..%2fx/gaze/2', 'session id'),
    ],
)
def test_a_key_that_is_not_the_body_s_is_refused(refusing, key, says):
    answer = post(refusing, 'gaze', GAZE, JSON | {'Idempotency-Key': key})
    assert answer.status_code == 400
    assert says in answer.json()['reason']


def test_binary_parts_need_an_identity_and_a_body(refusing):
    key = {'Idempotency-Key': f'{SESSION}/camera/1'}
    assert post(refusing, 'camera', CAMERA, BINARY).status_code == 400
    assert post(refusing, 'camera', b'', BINARY | key).status_code == 400
    assert post(refusing, 'lidar', LIDAR, BINARY | key).status_code == 400


@pytest.mark.parametrize(
    ('stream', 'number', 'body', 'says'),
    [
        ('camera', 1, b'hello', 'not a readable part of 5 bytes'),
        ('camera', 1, CAMERA[:-1], 'not a readable part'),
        ('camera', 1, random.Random(1).randbytes(2_000_000), 'not a readable part'),
        ('lidar', 1, random.Random(2).randbytes(2_000_000), 'not a readable part'),
        ('camera', 2, CAMERA, f"the body is part 1 of session '{SESSION}'"),
        # 100 KB of nothing but zeros, packed: 100 MB and 200 MB.
        ('lidar', 1, b'\x60\x50\xc3' + b'\0\xff' * 50_000, "the body is part 0 of session ''"),
        ('lidar', 1, b'\xf0\x40\x78\x7d\1' + b'\0\xff' * 50_000, 'not a readable part'),
    ],
)
def test_binary_bodies_that_cannot_be_read_are_refused_with_the_reason(
    refusing, stream, number, body, says
):
    headers = BINARY | {'Idempotency-Key': f'{SESSION}/{stream}/{number}'}
    answer = post(refusing, stream, body, headers)
    assert answer.status_code == 400
    assert says in answer.json()['reason']


@settings(max_examples=200, deadline=None)
@given(st.sampled_from([CAMERA, LIDAR]), st.data())
def test_binary_bodies_that_were_bent_are_whole_or_refused(body, data):
    bent = bytearray(body)
    for _ in range(data.draw(st.integers(1, 3))):
        bent[data.draw(st.integers(0, len(bent) - 1))] = data.draw(st.integers(0, 255))
    stream = 'camera' if body is CAMERA else 'lidar'
    address, key = Address(stream, SCENE, 3), PartKey(SESSION, stream, 1)
    with contextlib.suppress(FormatError):
        assert check_part(address, key, bytes(bent)).number == 1


@pytest.mark.parametrize(
    ('method', 'path', 'status'),
    [
        ('POST', '/v0/fixations/s?version=1', 404),
        ('POST', '/v0/gaze/s', 400),
        ('POST', '/v0/gaze/s?version=', 400),
        ('POST', '/v0/gaze/s?version=-1', 400),
        ('POST', '/v0/gaze/s?version=1.0', 400),
        ('POST', '/v0/gaze/s?version=%D9%A1', 400),  # a digit, but not of ours
        ('POST', '/v0/gaze/..%2F..%2Fetc?version=1', 404),
        ('POST', '/v0/gaze/%2e%2e?version=1', 400),
        ('POST', '/v0/gaze/a%0Ab?version=1', 400),
        ('POST', '/v0/gaze/' + 'a' * 129 + '?version=1', 400),
        ('POST', '/v1/gaze/s?version=1', 404),
        ('POST', '/', 404),
        ('GET', '/v0/gaze/s?version=1', 405),
        ('DELETE', '/v0/gaze/s?version=1', 405),
        ('OPTIONS', '/v0/gaze/s?version=1', 405),
        ('POST', '/v0/remotevariables', 405),
    ],
)
def test_wrong_places_and_methods(refusing, method, path, status):
    reply = raw(
        refusing,
        f'{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n'
        f'Content-Length: {len(GAZE)}\r\n\r\n'.encode()
        + GAZE,
    )
    assert reply.startswith(f'HTTP/1.1 {status} '.encode())
    assert b'cvr-request-time' in reply


def raw(gateway, request, *, end=False):
    """Send bytes as they are and return all that comes back."""
    host, port = gateway.url.removeprefix('http://').split(':')
    with socket.create_connection((host, int(port)), 20) as sock:
        with contextlib.suppress(OSError):  # it may be closed already: what came back counts
            sock.sendall(request)
            if end:
                sock.shutdown(socket.SHUT_WR)
        received = b''
        while b'\r\n\r\n' not in received or not _complete(received):
            piece = sock.recv(65536)
            if not piece:
                break
            received += piece
        return received


def _complete(reply):
    head, _, body = reply.partition(b'\r\n\r\n')
    for line in head.split(b'\r\n'):
        name, _, value = line.partition(b':')
        if name.lower() == b'content-length':
            return len(body) >= int(value)
    return False


@pytest.mark.parametrize(
    'headers',
    [
        {},
        {'Content-Type': 'text/plain'},
        {'Content-Type': 'application/octet-stream'},
        JSON | {'Content-Encoding': 'gzip'},
    ],
)
def test_other_content_is_refused(refusing, headers):
    assert post(refusing, 'gaze', GAZE, headers).status_code == 415


def test_a_charset_beside_the_content_type_is_no_other_type(gateway):
    assert post(gateway, 'gaze', GAZE, {'Content-Type': 'Application/JSON; charset=utf-8'}).ok


SMALL = Limits(
    json_bytes=1000,
    binary_bytes=2000,
    head_bytes=4096,
    head_s=0.4,
    grace_s=0.4,
    min_bytes_per_s=10_000,
    shutdown_s=1,
)


@pytest.fixture
def small(tmp_path):
    """A gateway with limits that a test meets quickly."""
    lines = []
    with running_gateway(tmp_path / 'store', limits=SMALL, log=lines.append) as running:
        yield running
    assert not [line for line in lines if line.startswith('failed')]


def test_a_body_too_long_is_refused_and_the_client_gets_to_read_why(small):
    key = {'Idempotency-Key': f'{SESSION}/camera/1'}
    assert post(small, 'gaze', b' ' * (1000 - len(GAZE)) + GAZE).status_code == 200
    assert post(small, 'gaze', b' ' * (1001 - len(GAZE)) + GAZE).status_code == 413
    assert post(small, 'camera', CAMERA.ljust(2000, b'\0'), BINARY | key).status_code == 200
    assert post(small, 'camera', bytes(2001), BINARY | key).status_code == 413
    # Sent whole before the client looks for an answer: it must not find a broken connection there.
    assert post(small, 'camera', bytes(20_000_000), BINARY | key).status_code == 413
    # Without a length announced.
    chunks = (bytes(500) for _ in range(100))
    assert post(small, 'camera', chunks, BINARY | key).status_code == 413


def test_a_length_announced_is_refused_before_a_byte_of_it_came(small):
    reply = raw(
        small,
        b'POST /v0/gaze/s?version=1 HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n'
        b'Content-Length: 99999999999\r\n\r\n',
    )
    assert reply.startswith(b'HTTP/1.1 413 ')


def test_a_slow_body_is_refused(small):
    started = time.monotonic()
    reply = raw(
        small,
        b'POST /v0/gaze/s?version=1 HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n'
        b'Content-Length: 500\r\n\r\n{',
    )
    assert reply.startswith(b'HTTP/1.1 408 ')
    assert time.monotonic() - started < 10


def test_a_body_that_drips_is_refused_however_steadily(small):
    host, port = small.url.removeprefix('http://').split(':')
    with socket.create_connection((host, int(port)), 20) as sock:
        sock.sendall(
            b'POST /v0/gaze/s?version=1 HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n'
            b'Content-Length: 900\r\n\r\n'
        )
        sock.settimeout(0.02)
        reply = b''
        deadline = time.monotonic() + 20
        while not reply and time.monotonic() < deadline:
            sock.sendall(b' ')
            with contextlib.suppress(TimeoutError):
                reply = sock.recv(65536)
    assert reply.startswith(b'HTTP/1.1 408 ')


@pytest.mark.parametrize(
    'start', [b'', b'POST /v0/gaze/s?version=1 HTTP/1.1\r\nHost: x\r\nX-Slow: ']
)
def test_a_connection_that_asks_for_nothing_is_closed(small, start):
    host, port = small.url.removeprefix('http://').split(':')
    with socket.create_connection((host, int(port)), 20) as sock:
        sock.sendall(start)
        with contextlib.suppress(ConnectionResetError):
            assert sock.recv(100) == b''


def test_a_kept_connection_may_wait_longer_than_a_head_may_take(small):
    with requests.Session() as session:
        for _ in range(2):
            answer = session.post(url(small, 'gaze'), data=GAZE, headers=JSON, timeout=20)
            assert answer.status_code == 200
            threading.Event().wait(2 * SMALL.head_s)
        assert len(session.adapters['http://'].poolmanager.pools) == 1


def test_huge_and_broken_heads_are_refused(small):
    for head in (
        b'no colon\r\n\r\n',
        b'Content-Length: -5\r\n\r\n',
        b'Content-Length: 5\r\nContent-Length: 6\r\n\r\n',
        b'\x00: x\r\n\r\n',
    ):
        reply = raw(small, b'POST /v0/gaze/s?version=1 HTTP/1.1\r\nHost: x\r\n' + head, end=True)
        assert reply.startswith(b'HTTP/1.1 400 ')
    with contextlib.suppress(ConnectionError):  # closed before all of it was read
        reply = raw(small, b'POST / HTTP/1.1\r\nHost: x\r\nX-Long: ' + b'a' * 1_000_000, end=True)
        assert reply.startswith(b'HTTP/1.1 400 ')
    assert raw(small, b'\x16\x03\x01\x02\x00\x01\x00\x01', end=True).startswith(b'HTTP/1.1 400 ')
    assert post(small, 'gaze', GAZE).status_code == 200  # and it lives


@pytest.mark.parametrize('size', [5000, 60_000])
def test_a_head_that_is_too_long_is_refused_in_one_piece_too(small, size):
    for start in (b'POST /v0/gaze/s?version=1 HTTP/1.1\r\nX: ', b'GET /v0/'):
        end = b'' if start.startswith(b'POST') else b' HTTP/1.1'
        with contextlib.suppress(ConnectionError):  # in several pieces: closed before all was read
            reply = raw(small, start + b'a' * size + end + b'\r\nHost: x\r\n\r\n')
            assert reply[:13] in {b'HTTP/1.1 431 ', b'HTTP/1.1 400 '}
    assert post(small, 'gaze', GAZE).status_code == 200


def test_a_head_as_long_as_it_may_be_is_taken(small):
    head = b'GET /v0/remotevariables?identifier=x HTTP/1.1\r\nHost: x\r\nX: %s\r\n\r\n'
    room = SMALL.head_bytes - len(head % b'')
    assert raw(small, head % (b'a' * room)).startswith(b'HTTP/1.1 200 ')
    assert raw(small, head % (b'a' * (room + 1))).startswith(b'HTTP/1.1 431 ')


def test_clients_that_leave_in_mid_body_leave_nothing(small):
    host, port = small.url.removeprefix('http://').split(':')
    for _ in range(20):
        with socket.create_connection((host, int(port)), 20) as sock:
            sock.sendall(
                b'POST /v0/gaze/s?version=1 HTTP/1.1\r\nHost: x\r\n'
                b'Content-Type: application/json\r\nContent-Length: 900\r\n\r\n' + GAZE[:100]
            )
    assert post(small, 'gaze', GAZE).status_code == 200
    assert len(stored(small.store)) == 1


def test_more_bodies_at_one_time_than_memory_allows_are_sent_away(tmp_path):
    limits = replace(SMALL, in_flight_bytes=2000, grace_s=10.0, head_s=10.0)
    head = (
        f'POST /v0/camera/s?version=1 HTTP/1.1\r\nHost: x\r\nIdempotency-Key: {SESSION}/camera/1\r\n'
        'Content-Type: application/octet-stream\r\nContent-Length: 2000\r\n\r\n'
    ).encode()
    with running_gateway(tmp_path / 'store', limits=limits) as gateway:
        host, port = gateway.url.removeprefix('http://').split(':')
        with socket.create_connection((host, int(port)), 20) as holder:
            holder.sendall(head + CAMERA.ljust(1900, b'\0'))
            deadline = time.monotonic() + 20
            status = 200
            while status != 503 and time.monotonic() < deadline:
                answer = post(gateway, 'gaze', GAZE)
                status = answer.status_code
            assert status == 503
            assert answer.headers['retry-after'] == '1'
            holder.sendall(bytes(100))
            assert holder.recv(100).startswith(b'HTTP/1.1 200 ')
        assert post(gateway, 'gaze', GAZE).status_code == 200


def test_the_key(tmp_path):
    with running_gateway(tmp_path / 'store', key='K3Y') as gateway:
        for given in (None, '', 'K3Y', 'APIKEY:DATA', 'APIKEY:DATA K3', 'APIKEY:DATA K3YY', 'ü'):
            headers = JSON if given is None else JSON | {'Authorization': given.encode('latin-1')}
            answer = post(gateway, 'gaze', GAZE, headers)
            assert answer.status_code == 401
            assert 'K3Y' not in answer.text
            variables = f'{gateway.url}/v0/remotevariables?identifier=x'
            assert requests.get(variables, headers=headers, timeout=20).status_code == 401
        assert not list((gateway.store / 'sessions').iterdir())
        headers = JSON | {'Authorization': 'APIKEY:DATA K3Y'}
        assert post(gateway, 'gaze', GAZE, headers).status_code == 200
        # A big part with a wrong key hears 401, not a broken connection.
        wrong = BINARY | {'Authorization': 'APIKEY:DATA x'}
        assert post(gateway, 'camera', bytes(20_000_000), wrong).status_code == 401


def test_keys_are_compared_in_constant_time(tmp_path, monkeypatch):
    """By the function made for it, over digests: neither a key's letters nor its length can be timed."""
    compared = []

    def compare(given, wanted, compare=hmac.compare_digest):
        compared.append((len(given), len(wanted)))
        return compare(given, wanted)

    monkeypatch.setattr(hmac, 'compare_digest', compare)
    with running_gateway(tmp_path / 'store', key='K3Y') as gateway:
        for given in ('', 'APIKEY:DATA K', 'APIKEY:DATA ' + 'K' * 1000, 'APIKEY:DATA K3Y'):
            post(gateway, 'gaze', GAZE, JSON | {'Authorization': given})
    assert compared == [(32, 32)] * 4


def test_remote_variables(tmp_path):
    path = tmp_path / 'variables.json'
    path.write_text('{"abTests":[{"remoteVariableName":"speed","type":"int","valueInt":80}]}')
    with running_gateway(tmp_path / 'store', remote_variables=path) as gateway:
        where = f'{gateway.url}/v0/remotevariables'
        answer = requests.get(where, params={'identifier': 'rover-07'}, timeout=20)
        assert answer.json()['abTests'][0]['valueInt'] == 80
        assert answer.headers['content-type'] == 'application/json'
        assert 'cvr-request-time' in answer.headers
        assert requests.get(where, timeout=20).status_code == 400
        path.write_text('{"abTests":[]}')  # read again at each request
        assert requests.get(where, params={'identifier': 'x'}, timeout=20).json() == {
            'abTests': []
        }
        for text in ('{', '[]', '{"abTests":5}'):
            path.write_text(text)
            assert requests.get(where, params={'identifier': 'x'}, timeout=20).status_code == 500
        path.unlink()
        assert requests.get(where, params={'identifier': 'x'}, timeout=20).status_code == 500
    with running_gateway(tmp_path / 'other') as gateway:
        answer = requests.get(f'{gateway.url}/v0/remotevariables?identifier=x', timeout=20)
        assert answer.json() == {'abTests': [], 'remoteConfigurations': []}


def test_what_keeps_it_from_starting_is_said(tmp_path):
    def refused(**how):
        with (
            pytest.raises(GatewayError) as caught,
            running_gateway(how.pop('store', tmp_path / 'store'), **how),
        ):
            pass
        return str(caught.value)

    assert 'needs a key there' in refused(host='0.0.0.0')
    assert 'needs a key there' in refused(host='0.0.0.0', key='')
    assert 'needs a key there' in refused(host='::')
    assert 'printable ASCII' in refused(key='a b')
    assert 'cannot listen on no.such.host.invalid' in refused(host='no.such.host.invalid')
    assert 'port 70000: 0 to 65535 wanted' in refused(port=70000)
    assert 'remote variables' in refused(remote_variables=tmp_path / 'none.json')
    (tmp_path / 'file').write_text('x')
    assert 'remote variables' in refused(remote_variables=tmp_path / 'file')
    assert 'cannot be used' in refused(store=tmp_path / 'file')
    (tmp_path / 'spool').mkdir()
    (tmp_path / 'spool' / 'last_second').write_text('1')
    assert 'is the spool of a recorder' in refused(store=tmp_path / 'spool')
    for number, name in enumerate(('quarantine/', f'sessions/{SESSION}/journal', 'lock')):
        path = tmp_path / f'spool{number}' / name
        path.parent.mkdir(parents=True)
        path.mkdir() if name.endswith('/') else path.write_text('4711\n')
        assert 'is the spool of a recorder' in refused(store=tmp_path / f'spool{number}')
    with running_gateway(tmp_path / 'store') as gateway:
        assert f'process {os.getpid()}' in refused()
        port = int(gateway.url.rpartition(':')[2])
        assert 'in use' in refused(store=tmp_path / 'second', port=port)
    with running_gateway(tmp_path / 'store', host='localhost') as gateway:
        assert (
            post(gateway, 'gaze', GAZE).status_code == 200
        )  # all is as if it had never been tried


def test_a_key_opens_other_hosts(tmp_path):
    with running_gateway(tmp_path / 'store', host='0.0.0.0', key='k') as gateway:
        assert gateway.has_key


class FailingFs(Fs):
    """A disk that refuses the call named in ``fails``, and writes down what is asked of it."""

    def __init__(self):
        self.fails = None
        self.calls = []

    def _called(self, name, path=None):
        self.calls.append((name, path))
        if self.fails is not None and self.fails[0] == name:
            raise OSError(self.fails[1], os.strerror(self.fails[1]))

    def make_folder(self, path):
        self._called('make_folder', path)
        super().make_folder(path)

    def create(self, path):
        self._called('create', path)
        return super().create(path)

    def write(self, fd, data):
        self._called('write')
        return super().write(fd, data)

    def sync(self, fd):
        self._called('sync')
        super().sync(fd)

    def rename(self, old, new):
        self._called('rename', new)
        super().rename(old, new)

    def sync_folder(self, path):
        self._called('sync_folder', path)
        super().sync_folder(path)


def header_of(body, stream='gaze'):
    return check_part(Address(stream, 's', 1), None, body)


def test_a_part_is_durable_before_it_is_acknowledged(tmp_path):
    fs = FailingFs()
    store = Store(tmp_path / 'store', fs=fs)
    try:
        fs.calls.clear()
        assert store.put(header_of(GAZE), GAZE) is Outcome.STORED
        folder = tmp_path / 'store' / 'sessions' / SESSION
        name = part_name('gaze', 2, 'pose')
        assert fs.calls == [
            ('make_folder', folder),
            ('sync_folder', folder.parent),
            ('create', folder / f'{name}.tmp'),
            ('write', None),
            ('write', None),
            ('write', None),
            ('sync', None),
            ('rename', folder / name),
            ('sync_folder', folder),
        ]
        fs.calls.clear()
        assert store.put(header_of(GAZE), GAZE) is Outcome.REPEAT
        assert fs.calls == [('sync_folder', folder)]
    finally:
        store.close()


def test_the_spool_of_an_offline_recording_is_no_store(tmp_path):
    Spool.open(tmp_path / 'base').close()
    with pytest.raises(GatewayError, match='is the spool of a recorder'):
        Store(tmp_path / 'base')
    Store(tmp_path / 'once').close()
    with pytest.raises(SpoolError, match='is the store of a gateway'):
        Spool.open(tmp_path / 'once')
    # A store is one again, with a damaged part put aside too, and when that was removed.
    for mark in (True, False):
        root = tmp_path / f'store{mark}'
        Store(root).close()
        if not mark:  # as an older version left it
            (root / 'store').unlink()
        (root / 'quarantine').mkdir()
        Store(root).close()
        (root / 'quarantine' / 'damaged').touch()
        Store(root).close()


@pytest.mark.parametrize('known_by', ['lock', 'mark'])
def test_no_recorder_takes_a_store(tmp_path, known_by):
    """Its parts would be sent and deleted. What is refused is left as it was, for the next who asks too."""
    root = tmp_path / 'store'
    store = Store(root)
    store.put(header_of(GAZE), GAZE)
    store.close()
    (root / ('store' if known_by == 'lock' else 'lock')).unlink()
    (root / 'quarantine').mkdir()
    (root / 'quarantine' / 'damaged').touch()
    before = sorted(root.rglob('*'))
    for _ in range(2):
        with pytest.raises(SpoolError, match='the store of a gateway'):
            Spool.open(root)
        with pytest.raises(SpoolError, match='the store of a gateway'):
            check_is_spool(root)
    assert sorted(root.rglob('*')) == before
    Store(root).close()


def test_a_store_makes_its_lock_and_mark_again(tmp_path):
    store = Store(tmp_path)
    for gone in (['lock'], ['store'], ['lock', 'store']):
        for name in gone:
            (tmp_path / name).unlink()
        store.put(header_of(GAZE), GAZE)
        assert (tmp_path / 'store').is_file()
        with pytest.raises(GatewayError, match='in use by another process'):
            Store(tmp_path)
    store.close()


def test_a_store_that_a_recorder_has_taken_takes_nothing_more(tmp_path):
    store = Store(tmp_path)
    for name in ('lock', 'store'):
        (tmp_path / name).unlink()
    (tmp_path / 'sessions').rmdir()
    Spool.open(tmp_path).close()
    with pytest.raises(OSError, match='a recorder has taken it, see lock'):
        store.put(header_of(GAZE), GAZE)
    store.close()


def test_a_store_on_a_full_disk_is_marked_later(tmp_path):
    fs = FailingFs()
    Store(tmp_path).close()
    (tmp_path / 'store').unlink()
    fs.fails = ('write', errno.ENOSPC)
    store = Store(tmp_path, fs=fs)
    with pytest.raises(OSError, match='No space'):
        store.put(header_of(GAZE), GAZE)
    fs.fails = None
    assert store.put(header_of(GAZE), GAZE) is Outcome.STORED
    assert (tmp_path / 'store').is_file()
    store.close()


@pytest.mark.parametrize('gone', [f'sessions/{SESSION}', 'sessions', ''])
def test_folders_that_were_removed_by_hand_are_made_again(tmp_path, gone):
    root = tmp_path / 'store'
    with running_gateway(root) as gateway:
        assert post(gateway, 'events', EVENTS).status_code == 200
        shutil.rmtree(root / gone)
        assert post(gateway, 'gaze', GAZE).json()['outcome'] == 'stored'
        assert stored(root) == {'gaze.000002.pose.c3d': GAZE}
        with pytest.raises(GatewayError, match='in use by another process'):
            Store(root)
    Store(root).close()


@pytest.mark.parametrize(
    'call', ['make_folder', 'create', 'write', 'sync', 'rename', 'sync_folder']
)
@pytest.mark.parametrize(('code', 'status'), [(errno.ENOSPC, 507), (errno.EIO, 500)])
def test_a_disk_that_refuses_acknowledges_nothing_and_can_recover(
    tmp_path, monkeypatch, call, code, status
):
    fs = FailingFs()
    monkeypatch.setattr(store_module.Store.__init__, '__kwdefaults__', {'fs': fs})
    lines = []
    with running_gateway(tmp_path / 'store', log=lines.append) as gateway:
        fs.fails = (call, code)
        answer = post(gateway, 'gaze', GAZE)
        assert answer.status_code == status
        assert os.strerror(code) in answer.json()['reason']
        assert 'cvr-request-time' in answer.headers
        assert lines[-1].startswith('not stored: ')
        fs.fails = None
        assert post(gateway, 'gaze', GAZE).status_code == 200
        assert stored(gateway.store) == {'gaze.000002.pose.c3d': GAZE}


def test_a_fault_of_its_own_is_answered_and_told(tmp_path, monkeypatch):
    lines = []
    with running_gateway(tmp_path / 'store', log=lines.append) as gateway:
        monkeypatch.setattr(store_module.Store, 'put', lambda *_: 1 / 0)
        answer = post(gateway, 'gaze', GAZE)
        assert answer.status_code == 500
        assert 'cvr-request-time' in answer.headers
        assert lines == [f'failed POST /v0/gaze/{SCENE}: ZeroDivisionError: division by zero']


def test_the_log_names_sessions_once_and_refusals_without_control_characters(tmp_path):
    lines = []
    with running_gateway(tmp_path / 'store', log=lines.append) as gateway:
        post(gateway, 'gaze', GAZE)
        post(gateway, 'events', EVENTS)
        post(gateway, 'gaze', GAZE, scene='%1B%5B31m')
    assert lines[0] == f'session {SESSION}, scene {SCENE} version 3'
    assert lines[1].startswith('refused POST /v0/gaze/%1B%5B31m: 400 scene id in the URL')
    assert len(lines) == 2


def test_stopping_leaves_no_thread_and_ends_slow_clients(tmp_path):
    before = threading.active_count()
    started = time.monotonic()
    with running_gateway(tmp_path / 'store', limits=replace(SMALL, grace_s=60.0)) as gateway:
        host, port = gateway.url.removeprefix('http://').split(':')
        sock = socket.create_connection((host, int(port)), 20)
        sock.sendall(
            b'POST /v0/gaze/s?version=1 HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n'
            b'Content-Length: 900\r\n\r\n'
        )
        assert gateway.alive
    sock.close()
    assert not gateway.alive
    assert time.monotonic() - started < 20
    deadline = time.monotonic() + 20
    while threading.active_count() > before and time.monotonic() < deadline:
        threading.Event().wait(0.01)
    assert threading.active_count() <= before


@settings(max_examples=200)
@given(st.text(max_size=40) | st.from_regex(r'[0-9]{1,3}_[a-z./]{0,5}/(gaze|camera)/[0-9]{1,3}'))
def test_no_key_gives_a_name_that_leaves_its_folder(text):
    try:
        key = PartKey.parse(text)
    except FormatError:
        return
    assert str(key) == text
    assert Path(key.session_id).name == key.session_id
    assert key.session_id not in ('.', '..')


def test_bodies_are_json_all_the_way(refusing):
    """A refusal is JSON too, whatever the client wrote into what it quotes."""
    body = GAZE.replace(b'"part":2', b'"part":"\\u001b[31m\\ud800"')
    answer = post(refusing, 'gaze', body)
    assert answer.status_code == 400
    assert json.loads(answer.content)['reason'].startswith('part: a whole number from 1 wanted')


def test_what_is_remembered_of_sessions_is_bounded():
    recent = Recent[str](most=3)
    assert [recent.add(name) for name in 'abca'] == [True, True, True, False]
    assert recent.add('d')  # b was used longest ago
    assert [recent.knows(name) for name in 'abcd'] == [True, False, True, True]
    for number in range(1000):
        recent.add(f'{number}')
    assert len(recent._things) == 3
