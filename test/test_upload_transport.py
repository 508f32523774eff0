"""The transport against real servers on loopback, most of which do not behave."""

import contextlib
import http.client
import socket
import ssl
import subprocess
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cognitive3d_ros.upload.exchange import Fault, Request, Response, TransportFault
from cognitive3d_ros.upload.policy import Delivered, classify
from cognitive3d_ros.upload.transport import Deadline, Pace, RequestsTransport, _Interrupted

OK = b'HTTP/1.1 200 OK\r\ncvr-request-time: 3\r\nContent-Length: 2\r\n\r\n{}'
SHORT_S = 0.4


class Server:
    """Runs ``serve(connection, index)`` for each connection, one after the other."""

    def __init__(self, serve, *, context=None, receive_bytes=None):
        self._serve, self._context = serve, context
        self._listener = socket.create_server(('127.0.0.1', 0))
        self._connection = None
        if receive_bytes:
            self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.port = self._listener.getsockname()[1]
        self.url = f'{"https" if context else "http"}://127.0.0.1:{self.port}'
        self.connections = 0
        self.requests = []
        self.ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            with contextlib.suppress(OSError), connection:
                connection.settimeout(20)
                if self._context:
                    connection = self._context.wrap_socket(connection, server_side=True)
                with connection:
                    self._connection = connection
                    self._serve(self, connection, self.connections)

    def receive(self, connection):
        """Read one whole request; None at the end of the connection."""
        data = b''
        while b'\r\n\r\n' not in data:
            more = connection.recv(65536)
            if not more:
                return None
            data += more
        head, _, body = data.partition(b'\r\n\r\n')
        lines = head.decode().split('\r\n')
        headers = {k.lower(): v for k, v in (line.split(': ', 1) for line in lines[1:])}
        while len(body) < int(headers.get('content-length', 0)):
            body += connection.recv(65536)
        self.requests.append((lines[0], headers, body))
        return body

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        if self._connection is not None:
            with contextlib.suppress(OSError):
                self._connection.shutdown(socket.SHUT_RDWR)
        self._thread.join(20)
        assert not self._thread.is_alive()


def answering(answer):
    """Serve every request of a connection with the same bytes."""

    def serve(server, connection, _):
        while server.receive(connection) is not None:
            connection.sendall(answer)

    return serve


@pytest.fixture
def transport():
    made = RequestsTransport(timeout_s=20)
    yield made
    made.close()


@pytest.fixture
def hasty():
    """A transport of little patience, where a test waits for the end of it."""
    made = RequestsTransport(timeout_s=SHORT_S)
    yield made
    made.close()


def post(url, body=b'{"data":[]}', **headers):
    return Request('POST', f'{url}/v0/gaze/scene?version=3', {'X-Test': 'yes'} | headers, body)


# --- the straight way -------------------------------------------------------------------------------


def test_what_is_sent_and_what_comes_back(transport):
    body = bytes(range(256)) * 4000
    with Server(answering(OK)) as server:
        answer = transport.send(post(server.url, body, Authorization='APIKEY:DATA k'))
        assert answer == Response(200, {'cvr-request-time': '3', 'content-length': '2'}, b'{}')
    (line, headers, received) = server.requests[0]
    assert line == 'POST /v0/gaze/scene?version=3 HTTP/1.1'
    assert received == body
    headers.pop('user-agent')
    assert headers == {
        'host': f'127.0.0.1:{server.port}',
        'accept-encoding': 'identity',
        'x-test': 'yes',
        'authorization': 'APIKEY:DATA k',
        'content-length': '1024000',
    }


def test_one_connection_is_kept(transport):
    with Server(answering(OK)) as server:
        for _ in range(5):
            assert transport.send(post(server.url)).status == 200
        transport.close()
    assert server.connections == 1
    assert len(server.requests) == 5


@pytest.mark.parametrize(
    'answer',
    [
        b'HTTP/1.1 204 No Content\r\ncvr-request-time: 1\r\n\r\n',
        b'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n',
        b'HTTP/1.0 200 OK\r\n\r\n',
        b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n',
        b'HTTP/1.1 500 Oops\r\nContent-Length: 4\r\n\r\noops',
    ],
)
def test_answers_of_all_shapes(transport, answer):
    def serve(server, connection, _):
        server.receive(connection)
        connection.sendall(answer)

    with Server(serve) as server:
        got = transport.send(post(server.url))
        assert isinstance(got, Response)
        assert got.status in (200, 204, 500)
        assert got.body in (b'', b'ab', b'oops')


def test_compressed_answers_are_not_unpacked(transport):
    bomb = b'HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\n\x1f\x8b\x08'
    with Server(answering(bomb)) as server:
        assert transport.send(post(server.url)).body == b'\x1f\x8b\x08'
        transport.close()


def test_a_body_that_is_cut_off_takes_nothing_back(transport):
    lie = b'HTTP/1.1 200 OK\r\ncvr-request-time: 1\r\nContent-Length: 999999\r\n\r\n{'

    def serve(server, connection, _):
        server.receive(connection)
        connection.sendall(lie)

    with Server(serve) as server:
        answer = transport.send(post(server.url))
    assert classify(answer, wall_s=0.0) == Delivered()


def test_a_get_has_no_body(transport):
    with Server(answering(OK)) as server:
        request = Request('GET', f'{server.url}/v0/remotevariables?identifier=rover', {})
        assert transport.send(request).status == 200
        transport.close()
    line, headers, _ = server.requests[0]
    assert line == 'GET /v0/remotevariables?identifier=rover HTTP/1.1'
    assert 'content-length' not in headers


# --- redirects, portals, cookies, what the home folder says ------------------------------------------


@pytest.mark.parametrize('code', [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed_nor_its_body_read_to_the_end(transport, code):
    with Server(answering(OK)) as target:

        def serve(server, connection, _):
            server.receive(connection)
            connection.sendall(
                f'HTTP/1.1 {code} Go\r\nLocation: {target.url}/login\r\n\r\n'.encode()
            )
            with contextlib.suppress(OSError):
                while not server.ended.is_set():  # a body without an end
                    connection.sendall(b'x' * 65536)

        with Server(serve) as server:
            answer = transport.send(post(server.url))
            assert answer.status == code
            assert answer.headers['location'] == f'{target.url}/login'
            assert len(answer.body) <= 65536
    assert target.connections == 0


def test_a_redirect_to_nonsense_is_an_answer_too(transport):
    answer = b'HTTP/1.1 302 Go\r\nLocation: http://[::1\r\nContent-Length: 0\r\n\r\n'
    with Server(answering(answer)) as server:
        assert transport.send(post(server.url)).status == 302
        transport.close()


def test_cookies_are_not_kept(transport):
    portal = b'HTTP/1.1 200 OK\r\nSet-Cookie: guest=1; Path=/\r\nContent-Length: 0\r\n\r\n'
    with Server(answering(portal)) as server:
        transport.send(post(server.url))
        transport.send(post(server.url))
        transport.close()
    assert 'cookie' not in server.requests[1][1]


def test_netrc_does_not_replace_the_key(transport, tmp_path, monkeypatch):
    netrc = tmp_path / 'netrc'
    netrc.write_text('machine 127.0.0.1\nlogin somebody\npassword else\n')
    monkeypatch.setenv('NETRC', str(netrc))
    with Server(answering(OK)) as server:
        transport.send(post(server.url, Authorization='APIKEY:DATA k'))
        transport.send(post(server.url))
        transport.close()
    assert server.requests[0][1]['authorization'] == 'APIKEY:DATA k'
    assert 'authorization' not in server.requests[1][1]


def test_a_proxy_from_the_environment_is_used_but_never_for_this_machine(transport, monkeypatch):
    for name in ('no_proxy', 'NO_PROXY'):
        monkeypatch.delenv(name, raising=False)
    with Server(answering(OK)) as proxy, Server(answering(OK)) as server:
        monkeypatch.setenv('http_proxy', proxy.url)
        assert transport.send(post('http://gateway.example')).status == 200
        assert transport.send(post(server.url)).status == 200
        transport.close()
    assert [line for line, _, _ in proxy.requests] == [
        'POST http://gateway.example/v0/gaze/scene?version=3 HTTP/1.1'
    ]
    assert len(server.requests) == 1


# --- time without progress --------------------------------------------------------------------------


def test_a_server_that_never_answers_is_given_up_and_meets_the_same_bytes_again(hasty):
    def serve(server, connection, index):
        server.receive(connection)  # stored, and then it stalls
        if index == 1:
            server.ended.wait(10)
        else:
            connection.sendall(OK)

    with Server(serve) as server:
        request = post(server.url, b'part', **{'Idempotency-Key': '1_a/gaze/1'})
        started_s = time.monotonic()
        fault = hasty.send(request)
        assert time.monotonic() - started_s < 10 * SHORT_S
        assert fault == TransportFault(
            Fault.TIMEOUT, f'127.0.0.1:{server.port}: no whole answer within 0.4 s'
        )
        server.ended.set()
        assert hasty.send(request).status == 200
    assert server.requests[0] == server.requests[1]


def test_a_server_that_stops_reading_is_given_up(hasty):
    def serve(server, connection, _):
        connection.recv(1000)
        server.ended.wait(20)

    with Server(serve, receive_bytes=4096) as server:
        fault = hasty.send(post(server.url, bytes(20_000_000)))
        assert fault.fault is Fault.TIMEOUT


def slow_reader(size):
    """Take a body in four times the client's time limit."""

    def serve(server, connection, _):
        left = size
        while left > 0:
            taken = len(connection.recv(size // 100))
            left -= taken
            server.ended.wait(4 * SHORT_S * taken / size)
        connection.sendall(OK)

    return serve


@pytest.mark.parametrize('size', [600_000, 12_000_000])  # in the kernel's buffer at once, and not
def test_a_slow_link_is_progress_however_long_it_takes(hasty, size):
    with Server(slow_reader(size), receive_bytes=65536) as server:
        started_s = time.monotonic()
        assert hasty.send(post(server.url, bytes(size))).status == 200
        assert time.monotonic() - started_s > 2 * SHORT_S


def test_a_full_buffer_that_moves_a_little_is_progress(hasty):
    def serve(server, connection, _):
        left = 12_000_000
        while left > 0:
            left -= len(connection.recv(4000))
            if left > 11_600_000:  # at 400 kB/s, a piece takes longer than the client's time limit
                server.ended.wait(0.01)
        connection.sendall(OK)

    with Server(serve, receive_bytes=4096) as server:
        assert hasty.send(post(server.url, bytes(12_000_000))).status == 200


def test_an_answer_before_the_body_is_read_is_an_answer(hasty):
    def serve(server, connection, _):
        connection.recv(1000)
        connection.sendall(b'HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n')
        server.ended.wait(20)

    with Server(serve, receive_bytes=4096) as server:
        assert hasty.send(post(server.url, bytes(20_000_000))).status == 413


def test_an_answer_with_a_body_that_never_comes_is_an_answer(hasty):
    def serve(server, connection, index):
        server.receive(connection)
        connection.sendall(OK[:-1] if index == 1 else OK)
        server.ended.wait(20 if index == 1 else 0)

    with Server(serve) as server:
        assert hasty.send(post(server.url)) == Response(
            200, {'cvr-request-time': '3', 'content-length': '2'}
        )
        server.ended.set()
        assert hasty.send(post(server.url)).body == b'{}'
    assert server.connections == 2


# --- answers that drip ------------------------------------------------------------------------------


def dripping(*pieces, drop=b'x'):
    """Answer with some pieces at once, and then with one drop after the other."""

    def serve(server, connection, _):
        server.receive(connection)
        connection.sendall(b''.join(pieces))
        while not server.ended.wait(SHORT_S / 8):
            connection.sendall(drop)

    return serve


ACK = b'HTTP/1.1 200 OK\r\ncvr-request-time: 3\r\n'


@pytest.mark.parametrize(
    ('start', 'drop'),
    [
        (b'HTTP/1.1 200 OK\r\nX-Long: ', b'x'),
        (b'HTTP/1.1 200 OK\r\n', b'X: y\r\n'),
        (b'', b'H'),
        (b'', b'HTTP/1.1 100 Continue\r\n\r\n'),
    ],
)
def test_a_head_that_drips_is_given_up_in_time(hasty, start, drop):
    with Server(dripping(start, drop=drop)) as server:
        started_s = time.monotonic()
        fault = hasty.send(post(server.url))
        assert time.monotonic() - started_s < 10 * SHORT_S
        assert fault.fault is Fault.TIMEOUT
        assert fault.reason.endswith('no whole answer within 0.4 s')


def test_a_body_that_drips_behind_its_head_is_an_answer_in_time(hasty):
    with Server(dripping(ACK + b'Content-Length: 100000\r\n\r\n')) as server:
        started_s = time.monotonic()
        answer = hasty.send(post(server.url))
        assert time.monotonic() - started_s < 10 * SHORT_S
        assert isinstance(classify(answer, wall_s=0.0), Delivered)


def test_the_body_of_an_answer_to_a_part_is_not_waited_for_however_patient_one_is(monkeypatch):
    monkeypatch.setattr('cognitive3d_ros.upload.transport._REST_S', SHORT_S)
    patient = RequestsTransport(timeout_s=600)
    with Server(dripping(ACK + b'Content-Length: 100000\r\n\r\n')) as server:
        started_s = time.monotonic()
        assert isinstance(classify(patient.send(post(server.url)), wall_s=0.0), Delivered)
        assert time.monotonic() - started_s < 20
    patient.close()


def test_a_proxy_that_drips_is_given_up_in_time(hasty, monkeypatch):
    with Server(dripping(b'HTTP/1.1 200 Connection established\r\n', drop=b'X: y\r\n')) as server:
        monkeypatch.setenv('https_proxy', server.url)
        started_s = time.monotonic()
        fault = hasty.send(post('https://gateway.example'))
        assert time.monotonic() - started_s < 10 * SHORT_S
        assert fault.fault is Fault.TIMEOUT


def test_an_end_of_the_time_is_kept_whatever_comes():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        now_s = [100.0]
        reader = Deadline(ours, limit_s=5, limit_bytes=4, monotonic=lambda: now_s[0])
        theirs.sendall(b'abcdef')
        assert reader.read(1) == b'a'
        now_s[0] += 4.9
        assert reader.read(1) == b'b'
        reader.within(60)  # no time is given back
        now_s[0] += 0.1
        with pytest.raises(TimeoutError):
            reader.read(1)
        assert ours.gettimeout() is None  # as it was before
        reader.close()
        bounded = Deadline(ours, limit_s=None, limit_bytes=2)
        assert bounded.read(2) == b'cd'
        with pytest.raises(http.client.HTTPException):
            bounded.read(1)
        bounded.close()


def test_the_answer_behind_an_early_one_is_not_taken_for_the_next_parts(transport):
    """What comes late over a kept connection would acknowledge a part that nobody has."""

    def serve(server, connection, index):
        server.receive(connection)
        connection.sendall(b'HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n')
        if index == 1:
            server.receive(connection)
        connection.sendall(OK)

    with Server(serve) as server:
        assert transport.send(post(server.url, b'one')).status == 103
        assert transport.send(post(server.url, b'two')).status == 103
    assert server.connections == 2
    assert [body for _, _, body in server.requests] == [b'one', b'two']


# --- dead connections -------------------------------------------------------------------------------


def test_a_kept_connection_that_the_server_closed_is_replaced(transport):
    def serve(server, connection, _):
        server.receive(connection)
        connection.sendall(OK)

    with Server(serve) as server:
        for _ in range(3):
            assert transport.send(post(server.url)).status == 200
    assert server.connections == 3
    assert len(server.requests) == 3


@pytest.mark.parametrize('reset', [False, True])
def test_a_kept_connection_that_dies_under_a_request_is_replaced_at_once(transport, reset):
    def serve(server, connection, index):
        server.receive(connection)
        connection.sendall(OK)
        if index == 1:
            server.receive(connection)
            if reset:
                linger = b'\1\0\0\0\0\0\0\0'
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)

    with Server(serve) as server:
        assert transport.send(post(server.url, b'one')).status == 200
        assert transport.send(post(server.url, b'two' * 50_000)).status == 200
    assert server.connections == 2
    assert [body for _, _, body in server.requests] == [b'one', b'two' * 50_000, b'two' * 50_000]


def test_a_fresh_connection_that_dies_is_a_fault_and_not_tried_again(transport):
    def serve(server, connection, _):
        server.receive(connection)

    with Server(serve) as server:
        fault = transport.send(post(server.url))
        assert fault.fault is Fault.UNREACHABLE
        assert 'closed' in fault.reason
    assert server.connections == 1


def test_a_second_death_in_a_row_is_a_fault(transport):
    def serve(server, connection, index):
        server.receive(connection)
        if index == 1:
            connection.sendall(OK)
            server.receive(connection)

    with Server(serve) as server:
        assert transport.send(post(server.url)).status == 200
        assert transport.send(post(server.url)).fault is Fault.UNREACHABLE
    assert server.connections == 2


# --- answers that are too much ----------------------------------------------------------------------


def test_a_body_without_end_is_cut_off_and_the_connection_not_used_again(transport):
    def serve(server, connection, _):
        server.receive(connection)
        connection.sendall(b'HTTP/1.1 400 Bad\r\nContent-Length: 99999999999\r\n\r\n')
        with contextlib.suppress(OSError):
            while not server.ended.is_set():
                connection.sendall(b'x' * 65536)

    with Server(serve) as server:
        assert transport.send(post(server.url)) == Response(
            400, {'content-length': '99999999999'}, b'x' * 65536
        )
        assert transport.send(post(server.url)).status == 400
    assert server.connections == 2


@pytest.mark.parametrize(
    'flood',
    [
        b'X-Long: ' + b'y' * 300_000 + b'\r\n',
        b'X-Many: y\r\n' * 10_000,
        b'z' * 300_000,
        b'\r\n' + b'HTTP/1.1 100 Continue\r\n\r\n' * 20_000,
    ],
)
def test_floods_of_headers_are_faults(transport, flood):
    def serve(server, connection, _):
        server.receive(connection)
        status = 100 if flood.startswith(b'\r\n') else 200
        connection.sendall(b'HTTP/1.1 %d OK\r\n' % status + flood)

    with Server(serve) as server:
        fault = transport.send(post(server.url))
        assert isinstance(fault, TransportFault)
        assert fault.fault is Fault.UNREACHABLE
        assert len(fault.reason) < 200


@pytest.mark.parametrize('noise', [b'SSH-2.0-OpenSSH_9.2\r\n', b'\0\xff' * 100 + b'\r\n', b'\r\n'])
def test_what_is_no_http_is_a_fault(transport, noise):
    def serve(server, connection, _):
        server.receive(connection)
        connection.sendall(noise)

    with Server(serve) as server:
        fault = transport.send(post(server.url))
        assert fault.fault is Fault.UNREACHABLE
        assert fault.reason.isprintable()


# --- no server at all -------------------------------------------------------------------------------


def test_nobody_there(transport):
    with socket.create_server(('127.0.0.1', 0)) as listener:
        port = listener.getsockname()[1]
    fault = transport.send(post(f'http://127.0.0.1:{port}'))
    assert fault == TransportFault(Fault.UNREACHABLE, f'127.0.0.1:{port}: Connection refused')


@pytest.mark.parametrize(
    'url',
    [
        'http://nowhere.invalid',
        'http://[::1',
        'http://' + 'a' * 300 + '.invalid',
        'ftp://x',
        'http://',
    ],
)
def test_addresses_that_lead_nowhere(transport, url):
    fault = transport.send(post(url, Authorization='APIKEY:DATA secret'))
    assert isinstance(fault, TransportFault)
    assert 'secret' not in fault.reason


def test_a_header_that_cannot_be_sent_is_not_said(transport):
    fault = transport.send(post('http://127.0.0.1:9', Authorization='APIKEY:DATA sec\nret'))
    assert isinstance(fault, TransportFault)
    assert 'sec' not in fault.reason


# --- pace -------------------------------------------------------------------------------------------


@given(st.floats(100, 1e7), st.lists(st.integers(1, 100_000), min_size=1, max_size=50))
def test_the_cap_holds_at_every_moment(cap, pieces):
    now = [0.0]

    def sleep(seconds):
        now[0] += seconds

    pace = Pace(cap, threading.Event(), monotonic=lambda: now[0], sleep=sleep)
    taken = 0
    for piece in pieces:
        pace.take(piece)
        assert taken <= cap * now[0] + 1  # all before this piece is paid for
        taken += piece
    assert now[0] == pytest.approx(sum(pieces[:-1]) / cap, abs=1e-6)


def test_a_pause_earns_no_burst():
    now, waits = [0.0], []

    def sleep(seconds):
        waits.append(seconds)
        now[0] += seconds

    pace = Pace(1000, threading.Event(), monotonic=lambda: now[0], sleep=sleep)
    pace.take(125)
    now[0] += 3600
    for _ in range(8):
        pace.take(pace.piece_bytes)
    assert sum(waits) == pytest.approx(7 * 512 / 1000)


def test_the_cap_on_the_wire_costs_no_cpu():
    transport = RequestsTransport(timeout_s=5, max_bytes_per_s=200_000)
    with Server(answering(OK)) as server:
        started_s, cpu_s = time.monotonic(), time.thread_time()
        assert transport.send(post(server.url, bytes(100_000))).status == 200
        assert time.monotonic() - started_s > 0.35
        assert time.thread_time() - cpu_s < 0.2
        transport.close()


def test_an_interrupt_ends_a_request_that_is_sending():
    interrupt = threading.Event()
    transport = RequestsTransport(timeout_s=5, max_bytes_per_s=1000, interrupt=interrupt)
    entered = threading.Event()

    def serve(server, connection, _):
        connection.recv(1000)
        entered.set()
        while connection.recv(1000):
            pass

    answers = []
    with Server(serve) as server:
        request = post(server.url, bytes(10_000_000))
        sending = threading.Thread(target=lambda: answers.append(transport.send(request)))
        sending.start()
        assert entered.wait(10)
        interrupt.set()
        sending.join(10)
    assert answers[0].fault is Fault.INTERRUPTED
    with pytest.raises(_Interrupted):
        Pace(0, interrupt).take(1)


# --- TLS --------------------------------------------------------------------------------------------

AUTHORITY = """
[ca]
default_ca = own
[own]
database = {0}/index.txt
new_certs_dir = {0}
serial = {0}/serial
default_md = sha256
policy = any
unique_subject = no
[any]
commonName = supplied
[req]
distinguished_name = name
[name]
[ext]
subjectAltName = IP:127.0.0.1
basicConstraints = CA:TRUE
"""


def certificate(folder, start, end):
    """Make a self-signed certificate for 127.0.0.1 that is valid between two times."""
    (folder / 'index.txt').write_text('')
    (folder / 'serial').write_text('01')
    (folder / 'ca.cnf').write_text(AUTHORITY.format(folder))
    key, request, cert = (str(folder / name) for name in ('key.pem', 'request.pem', 'cert.pem'))
    config = f'-config {folder}/ca.cnf'
    valid = f'-extensions ext -startdate {start} -enddate {end}'
    commands = (
        f'req -new {config} -newkey rsa:2048 -nodes -subj /CN=loopback -keyout {key} -out {request}',
        f'ca -batch -selfsign {config} -notext -keyfile {key} -in {request} -out {cert} {valid}',
    )
    try:
        for command in commands:
            subprocess.run(
                ['openssl', *command.split()], check=True, capture_output=True, timeout=60
            )
    except FileNotFoundError:
        pytest.skip('no openssl command to make certificates with')
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    return context, cert


def test_a_certificate_that_is_good_and_one_whose_maker_nobody_knows(tmp_path, monkeypatch):
    context, cert = certificate(tmp_path, '20200101000000Z', '20491231235959Z')
    with Server(answering(OK), context=context) as server:
        stranger = RequestsTransport(timeout_s=2)
        fault = stranger.send(post(server.url))
        assert fault.fault is Fault.CERTIFICATE
        assert 'not trusted' in fault.reason
        monkeypatch.setenv('REQUESTS_CA_BUNDLE', cert)
        friend = RequestsTransport(timeout_s=2)
        for _ in range(3):
            assert friend.send(post(server.url, bytes(3_000_000))).status == 200
        friend.close()
    assert len(server.requests) == 3


def test_a_slow_link_is_progress_under_tls_too(tmp_path, monkeypatch):
    context, cert = certificate(tmp_path, '20200101000000Z', '20491231235959Z')
    monkeypatch.setenv('REQUESTS_CA_BUNDLE', cert)
    transport = RequestsTransport(timeout_s=SHORT_S)
    with Server(slow_reader(600_000), context=context, receive_bytes=4096) as server:
        assert transport.send(post(server.url, bytes(600_000))).status == 200
        transport.close()


@pytest.mark.parametrize(
    ('start', 'end', 'said'),
    [
        ('20480101000000Z', '20491231235959Z', 'not yet valid'),
        ('20000101000000Z', '20010101000000Z', 'expired'),
    ],
)
def test_a_certificate_whose_dates_look_wrong_puts_the_clock_in_doubt(
    tmp_path, monkeypatch, start, end, said
):
    context, cert = certificate(tmp_path, start, end)
    monkeypatch.setenv('REQUESTS_CA_BUNDLE', cert)
    transport = RequestsTransport(timeout_s=2)
    with Server(answering(OK), context=context) as server:
        fault = transport.send(post(server.url))
        assert fault.fault is Fault.CERTIFICATE_DATE
        assert said in fault.reason
        assert 'clock' in fault.reason


def test_a_ca_bundle_that_is_not_there_is_a_fault(monkeypatch):
    monkeypatch.setenv('REQUESTS_CA_BUNDLE', '/nowhere/ca.pem')
    transport = RequestsTransport(timeout_s=1)
    fault = transport.send(post('https://127.0.0.1:9'))
    assert isinstance(fault, TransportFault)
    assert '/nowhere/ca.pem' in fault.reason
