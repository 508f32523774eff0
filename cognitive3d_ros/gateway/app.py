"""The gateway's HTTP: routes, the key, bodies within limits, and one answer for each outcome.

Every answer has the header ``cvr-request-time`` (milliseconds), by which a recorder knows that a gateway and
not a captive portal spoke.

======  ===================================================================================
200     the part is durable (``{"outcome": "stored"}``) or was before (``"repeat"``)
400     the body, the URL or a header is wrong; ``reason`` says where
401     the key is missing or wrong
408     the body came too slowly
409     another body is stored under this identity
413     the body is too long
415     the content type is not that of the stream, or the body is compressed
431     the request line and headers are too long
500     the disk refused; 507 when it is full
503     too many bodies at one time
======  ===================================================================================
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import hashlib
import hmac
import json
import threading
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import anyio.to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cognitive3d_ros.errors import FormatError
from cognitive3d_ros.gateway.bodies import (
    BINARY_STREAMS,
    CONTENT_TYPES,
    Address,
    PartKey,
    check_part,
)
from cognitive3d_ros.gateway.limits import Limits
from cognitive3d_ros.gateway.recent import Recent
from cognitive3d_ros.gateway.store import Outcome, Store

TIME_HEADER = 'cvr-request-time'
NO_VARIABLES = b'{"abTests":[],"remoteConfigurations":[]}'

_DRAIN_BYTES = 64 * 1024 * 1024
_DRAIN_S = 5.0
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)


def make_app(
    store: Store,
    *,
    key: str | None,
    remote_variables: Path | None,
    limits: Limits,
    log: Callable[[str], None],
) -> ASGIApp:
    """Return the ASGI application over a store; ``log`` takes one line at a time."""
    endpoints = _Endpoints(store, key, remote_variables, limits, log)
    app = Starlette(
        routes=[
            Route('/v0/remotevariables', endpoints.remote_variables, methods=['GET']),
            Route('/v0/{stream}/{scene}', endpoints.post, methods=['POST']),
        ],
        exception_handlers={
            HTTPException: endpoints.refuse,
            OSError: endpoints.disk_refused,
            ClientDisconnect: _gone,
            Exception: endpoints.failed,
        },
    )
    return _Timed(_Heads(app, limits.head_bytes))


class _Endpoints:
    def __init__(
        self,
        store: Store,
        key: str | None,
        remote_variables: Path | None,
        limits: Limits,
        log: Callable[[str], None],
    ) -> None:
        self._store = store
        self._authorization = None if key is None else _digest(f'APIKEY:DATA {key}')
        self._remote_variables = remote_variables
        self._limits = limits
        self._log = log
        self._in_flight_bytes = 0
        self._disk = anyio.CapacityLimiter(limits.disk_threads)
        self._checking = threading.Lock()
        self._seen = Recent[str]()

    async def post(self, request: Request) -> Response:
        """Take one part."""
        self._authorize(request)
        stream = request.path_params['stream']
        if stream not in CONTENT_TYPES:
            raise HTTPException(404, f'there is no stream {stream!r}: {", ".join(CONTENT_TYPES)}')
        self._check_content(request, CONTENT_TYPES[stream])
        try:
            scene = request.path_params['scene']
            address = Address.parse(stream, scene, request.query_params.get('version'))
            named = request.headers.get('idempotency-key')
            key = None if named is None else PartKey.parse(named)
        except FormatError as error:
            raise HTTPException(400, str(error)) from None
        limits = self._limits
        limit = limits.binary_bytes if stream in BINARY_STREAMS else limits.json_bytes
        async with self._body(request, limit) as body:
            # Parsing and the disk both take their time: neither belongs on the event loop.
            part, outcome = await anyio.to_thread.run_sync(
                self._take, address, key, body, limiter=self._disk
            )
        if outcome is Outcome.CONFLICT:
            raise HTTPException(409, f'another body, or another scene, is stored as {part}')
        return JSONResponse({'part': str(part), 'outcome': outcome.value})

    def _take(self, address: Address, key: PartKey | None, body: bytes) -> tuple[PartKey, Outcome]:
        try:
            # One at a time: a body can be made to take a hundred times its size in memory, and Python
            # checks no two at once anyway.
            with self._checking:
                header = check_part(address, key, body)
        except FormatError as error:
            raise HTTPException(400, str(error)) from None
        outcome = self._store.put(header, body)
        session_id = header.identity.session_id
        if self._seen.add(session_id):
            self._log(
                f'session {session_id}, scene {address.scene_id} version {address.scene_version}'
            )
        return PartKey(session_id, header.stream, header.number), outcome

    async def remote_variables(self, request: Request) -> Response:
        """Serve the file of remote variables as it is now, to every identifier alike."""
        self._authorize(request)
        if not request.query_params.get('identifier'):
            raise HTTPException(400, 'identifier in the URL is missing: ?identifier=<participant>')
        if self._remote_variables is None:
            return Response(NO_VARIABLES, media_type='application/json')
        text = await anyio.to_thread.run_sync(
            self._remote_variables.read_bytes, limiter=self._disk
        )
        try:
            check_variables(text)
        except FormatError as error:
            raise HTTPException(500, f'{self._remote_variables}: {error}') from None
        return Response(text, media_type='application/json')

    def _authorize(self, request: Request) -> None:
        if self._authorization is None:
            return
        # Digests have one length, so that the comparison tells nothing of the key's.
        given = _digest(request.headers.get('authorization', ''))
        if not hmac.compare_digest(given, self._authorization):
            raise HTTPException(401, 'Authorization: APIKEY:DATA <key> is missing or wrong')

    @staticmethod
    def _check_content(request: Request, wanted: str) -> None:
        given = request.headers.get('content-type', '').partition(';')[0].strip().lower()
        if given != wanted:
            raise HTTPException(415, f'Content-Type: {wanted} wanted')
        if request.headers.get('content-encoding', 'identity').lower() != 'identity':
            raise HTTPException(415, 'Content-Encoding: bodies are taken as they are only')

    @contextlib.asynccontextmanager
    async def _body(self, request: Request, limit: int) -> AsyncIterator[bytes]:
        """Give the whole body, while its bytes are counted as in flight."""
        limits = self._limits
        too_long = HTTPException(413, f'a body of at most {limit} bytes wanted')
        # The server has checked the form of the length.
        if int(request.headers.get('content-length', 0)) > limit:
            raise too_long
        started = time.monotonic()
        chunks: list[bytes] = []
        received = 0
        more = True
        try:
            while more:
                allowed_s = limits.grace_s + received / limits.min_bytes_per_s
                message = await _next(request, started + allowed_s)
                if message is None:
                    raise HTTPException(408, f'{received} bytes in {allowed_s:.0f} s is too slow')
                chunks.append(message.get('body', b''))
                received += len(chunks[-1])
                self._in_flight_bytes += len(chunks[-1])
                if received > limit:
                    raise too_long
                if self._in_flight_bytes > limits.in_flight_bytes:
                    raise HTTPException(503, 'too many bodies at one time', {'retry-after': '1'})
                more = message.get('more_body', False)
            yield b''.join(chunks)
        finally:
            self._in_flight_bytes -= received

    async def refuse(self, request: Request, error: Exception) -> Response:
        """Answer a request that was refused."""
        assert isinstance(error, HTTPException)
        self._log(f'refused {_line(request)}: {error.status_code} {error.detail}')
        return _Refusal(error.status_code, error.detail, dict(error.headers or {}))

    async def disk_refused(self, _: Request, error: Exception) -> Response:
        """Answer a request that the disk could not take; the recorder keeps the part and retries."""
        assert isinstance(error, OSError)
        status = 507 if error.errno in _NO_SPACE else 500
        self._log(f'not stored: {error.filename or self._store.root}: {error.strerror}')
        return _Refusal(status, f'the store cannot take it: {error.strerror}', {})

    async def failed(self, request: Request, error: Exception) -> Response:
        """Answer a request that met a fault of the gateway itself."""
        self._log(f'failed {_line(request)}: {type(error).__name__}: {error}')
        return _Refusal(500, 'a fault of the gateway, see its output', {})


async def _gone(_: Request, __: Exception) -> Response:
    """Answer a client that has left: nobody hears it."""
    return Response(status_code=400)


def _line(request: Request) -> str:
    """Return what was asked for, percent-encoded as it came: it goes to a terminal."""
    path: bytes = request.scope['raw_path']
    return f'{request.method} {path.decode("ascii", "replace")}'


async def _next(request: Request, deadline: float) -> Message | None:
    """Return the next piece of a body, or None when none came in time."""
    try:
        message = await asyncio.wait_for(request.receive(), deadline - time.monotonic())
    except asyncio.TimeoutError:
        return None
    if message['type'] == 'http.disconnect':
        raise ClientDisconnect
    return message


class _Refusal(JSONResponse):
    """An answer that the client gets to read though we do not want the rest of its body.

    A server that closes with bytes unread resets the connection, and what the client then sees is a broken
    network and no status. So the answer goes out first, and then what still comes is thrown away for a while.
    """

    def __init__(self, status: int, reason: str, headers: dict[str, str]) -> None:
        super().__init__({'reason': reason}, status, headers | {'connection': 'close'})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        start = {'type': 'http.response.start', 'status': self.status_code}
        await send({**start, 'headers': self.raw_headers})
        await send({'type': 'http.response.body', 'body': self.body, 'more_body': True})
        await _drain(receive)
        await send({'type': 'http.response.body', 'body': b'', 'more_body': False})


async def _drain(receive: Receive) -> None:
    left_bytes, deadline = _DRAIN_BYTES, time.monotonic() + _DRAIN_S
    while left_bytes > 0:
        try:
            message = await asyncio.wait_for(receive(), deadline - time.monotonic())
        except asyncio.TimeoutError:
            return
        left_bytes -= len(message.get('body', b''))
        if not message.get('more_body', False):
            return


class _Heads:
    """Refuses heads that are too long: the server does so only with those that come in several pieces."""

    def __init__(self, app: ASGIApp, head_bytes: int) -> None:
        self._app, self._head_bytes = app, head_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope['type'] == 'http' and _head_bytes(scope) > self._head_bytes:
            reason = f'a request line and headers of at most {self._head_bytes} bytes wanted'
            await _Refusal(431, reason, {})(scope, receive, send)
        else:
            await self._app(scope, receive, send)


def _head_bytes(scope: Scope) -> int:
    line = len(f'{scope["method"]} ? HTTP/1.1\r\n') + len(scope['raw_path'])
    lines = sum(len(name) + len(value) + len(': \r\n') for name, value in scope['headers'])
    return line + len(scope['query_string']) + lines + len('\r\n')


class _Timed:
    """Puts the time that a request took on every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = time.monotonic()

        async def timed(message: Message) -> None:
            if message['type'] == 'http.response.start':
                took_ms = round((time.monotonic() - started) * 1000)
                message['headers'] = [
                    *message.get('headers', []),
                    (TIME_HEADER.encode(), str(took_ms).encode()),
                ]
            await send(message)

        await self._app(scope, receive, timed)


def check_variables(text: bytes) -> None:
    """Check a file of remote variables: an object with lists ``abTests``, ``remoteConfigurations``.

    Raises FormatError.
    """
    try:
        top = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FormatError(f'not JSON: {error}') from None
    names = ('abTests', 'remoteConfigurations')
    if not isinstance(top, dict) or not all(isinstance(top.get(n, []), list) for n in names):
        raise FormatError(f'an object with the lists {" and ".join(names)} wanted')


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode('utf-8', 'surrogateescape')).digest()
