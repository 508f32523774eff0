"""A live node whose gateway is away at first, and then answers in every way but the right one."""

import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import requests

pytest.importorskip('rclpy', reason='needs ROS')

from node_rig import until

from cognitive3d_ros.gateway.server import running_gateway
from cognitive3d_ros.session.session import open_session
from cognitive3d_ros.session.verify import Kind, verify

pytestmark = [pytest.mark.ros, pytest.mark.slow]


class Front(ThreadingHTTPServer):
    """A server that gives the answers it was told to, one after the other; None passes a request on."""

    daemon_threads = True

    def __init__(self, port, behind, answers):
        super().__init__(('127.0.0.1', port), Handler)
        self.behind, self.answers, self.accepted = behind, list(answers), []


class Handler(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def do_POST(self):
        body = self.rfile.read(int(self.headers['Content-Length']))
        answer = self.server.answers.pop(0) if self.server.answers else None
        if answer is not None:
            self.answer(*answer, b'<html>please log in</html>')
            return
        passed = requests.post(
            self.server.behind + self.path, data=body, headers=dict(self.headers), timeout=10
        )
        self.server.accepted.append(self.headers['Idempotency-Key'])
        self.answer(passed.status_code, passed.headers, passed.content)

    def answer(self, status, headers, body):
        self.send_response(status)
        for name, value in headers.items():
            if name.lower() not in ('content-length', 'transfer-encoding', 'connection'):
                self.send_header(name, value)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def test_all_arrives_once_and_in_order(start_node, peer, tmp_path):
    with socket.create_server(('127.0.0.1', 0)) as free:
        port = free.getsockname()[1]
    node = start_node(gateway=f'http://127.0.0.1:{port}', **{'upload.enabled': True})
    peer.watch()
    peer.static_tf(1.0)
    first = until(lambda: peer.status('recording')).session_id
    peer.event('while the gateway is away')
    until(lambda: peer.statuses[-1].upload_state == 'network', 20)
    until(lambda: peer.statuses[-1].session_seconds > 6, 30)
    assert peer.statuses[-1].spool_parts > 0

    answers = [
        (200, {'Content-Type': 'text/html'}),  # a captive portal
        None,  # a delivery: what follows is waited for from the start again
        (302, {'Location': 'http://127.0.0.1:9/login'}),
        None,
        (503, {'Retry-After': '1'}),
        None,
        (429, {'Retry-After': time.strftime('%a, %d %b %Y %H:%M:%S GMT', time.gmtime())}),
    ]
    with running_gateway(tmp_path / 'store') as gateway:
        front = Front(port, gateway.url, answers)
        serving = threading.Thread(target=front.serve_forever)
        serving.start()
        try:
            until(lambda: not front.answers, 60)
            peer.event('while it is there')
            assert peer.end_session('enough').success
            until(lambda: peer.statuses[-1].spool_parts == 0, 60)
            until(lambda: peer.statuses[-1].upload_state == 'draining')
        finally:
            front.shutdown()
            serving.join()
            front.server_close()
        assert node.stop() == 0
        session = open_session(gateway.store)
        assert session.id == first
        names = [event.name for event in session.events]
        assert names[0] == 'c3d.sessionStart'
        assert names[-1] == 'c3d.sessionEnd'
        assert {'while the gateway is away', 'while it is there'} <= set(names)
        assert [finding for finding in verify(session) if finding.kind is not Kind.NOTE] == []
        # Once, and in order within each stream.
        assert len(front.accepted) == len(set(front.accepted)) == len(session.parts)
        for stream in ('gaze', 'events', 'sensors'):
            numbers = [int(k.split('/')[2]) for k in front.accepted if k.split('/')[1] == stream]
            assert numbers == list(range(1, len(numbers) + 1))
    assert 'Traceback' not in node.text
