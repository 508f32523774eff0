"""A gateway that fails in every way, and what is behind it one that does not."""

from __future__ import annotations

import hashlib
import random
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import requests


class Front:
    """What the node takes for its gateway.

    ``up`` passes on, ``failing`` fails in every way, ``down`` is not there. ``offered`` has the key of each
    part that ever came, with the SHA-256 of what the gateway behind has said it has; empty where it has not.
    ``in_hand`` is how many it has been given and has not answered; ``on_pass`` is called when one is given to
    it.
    """

    MODES = ('up', 'failing', 'down')

    def __init__(self, behind: str, chance: random.Random) -> None:
        self.behind, self.chance, self.mode = behind, chance, 'up'
        self.passed = self.failed = self.in_hand = 0
        self.offered: dict[str, str] = {}
        self.on_pass: Callable[[], None] = lambda: None
        self._server = _Server(('127.0.0.1', 0), self)
        self._address = self._server.server_address
        self.url = f'http://127.0.0.1:{self._address[1]}'
        self._serve()

    def _serve(self) -> None:
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    def set(self, mode: str) -> None:
        before, self.mode = self.mode, mode
        if mode == 'down' and before != 'down':
            self.close()
        elif before == 'down' and mode != 'down':
            self._server = _Server(self._address, self)
            self._serve()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, address, front: Front) -> None:
        self.front = front
        super().__init__(address, _Handler)

    def handle_error(self, *_) -> None:
        pass  # nodes are killed in the middle of everything


class _Handler(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def do_POST(self) -> None:
        front = self.server.front
        front.offered.setdefault(self.headers['Idempotency-Key'], '')
        fault = front.chance.choice(FAULTS) if front.mode == 'failing' else ''
        if front.mode == 'down' or fault == 'cut':
            self.close_connection = True
            return
        body = self.rfile.read(int(self.headers['Content-Length']))
        if isinstance(fault, tuple):
            front.failed += 1
            self._answer(fault[0], fault[1], b'<html>please log in</html>')
            return
        passed = self._pass(front, body)
        if passed is None or fault == 'silent' or front.mode == 'down':
            front.failed += 1
            self.close_connection = True  # it may have it, and says nothing
            return
        front.passed += 1
        self._answer(passed.status_code, passed.headers, passed.content)

    def _pass(self, front: Front, body: bytes) -> requests.Response | None:
        """Give a part to the gateway; None where that died, or was not there."""
        front.on_pass()
        front.in_hand += 1
        try:
            answer = requests.post(
                front.behind + self.path, data=body, headers=dict(self.headers), timeout=30
            )
        except requests.ConnectionError:
            return None
        finally:
            front.in_hand -= 1
        if answer.ok:
            front.offered[self.headers['Idempotency-Key']] = hashlib.sha256(body).hexdigest()
        return answer

    def _answer(self, status, headers, body) -> None:
        self.send_response(status)
        for name, value in headers.items():
            if name.lower() not in ('content-length', 'transfer-encoding', 'connection'):
                self.send_header(name, value)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_) -> None:
        pass


FAULTS = (
    '',
    '',
    'cut',  # before the body is read
    'silent',
    (503, {}),
    (429, {'Retry-After': '1'}),
    (302, {'Location': 'http://127.0.0.1:9/login'}),
    (200, {'Content-Type': 'text/html'}),
)
