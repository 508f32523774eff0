"""A gateway that runs: its address, its thread, its end."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from cognitive3d_ros.errors import FormatError, GatewayError
from cognitive3d_ros.gateway.app import check_variables, make_app
from cognitive3d_ros.gateway.limits import Limits
from cognitive3d_ros.gateway.store import Store

DEFAULT_PORT = 8765


@dataclass(frozen=True, slots=True)
class Gateway:
    """A gateway that is running."""

    url: str
    """Its address without a path: ``http://127.0.0.1:8765``."""
    store: Path
    has_key: bool
    _thread: threading.Thread

    @property
    def alive(self) -> bool:
        """Whether it still serves."""
        return self._thread.is_alive()


@contextlib.contextmanager
def running_gateway(
    store: Path | str,
    *,
    host: str = '127.0.0.1',
    port: int = 0,
    key: str | None = None,
    remote_variables: Path | str | None = None,
    limits: Limits | None = None,
    log: Callable[[str], None] | None = None,
) -> Iterator[Gateway]:
    """Run a gateway in a thread of its own for the length of a ``with``.

    ``port`` 0 takes a free one; ``key`` None or empty takes parts without a key, on loopback only;
    ``remote_variables`` is a JSON file as ``GET /v0/remotevariables`` answers it; ``log`` gets one line
    for each new session and each refusal, from any thread.

    Raises GatewayError when it cannot be started: the store, the address, the key or the file.
    """
    limits = limits or Limits()
    key = key or None
    if key is not None and not (key.isascii() and key.isprintable() and ' ' not in key):
        raise GatewayError('the key may hold printable ASCII characters only, and no space')
    variables = None if remote_variables is None else Path(remote_variables)
    if variables is not None:
        _check_file(variables)
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(_listen(host, port, key))
        parts = Store(Path(store))
        stack.callback(parts.close)
        app = make_app(
            parts, key=key, remote_variables=variables, limits=limits, log=log or (lambda _: None)
        )
        server = _Server(
            uvicorn.Config(
                app,
                http=_Protocol.within(limits.head_s),
                ws='none',
                lifespan='off',
                log_config=None,
                log_level='critical',
                access_log=False,
                proxy_headers=False,
                server_header=False,
                limit_concurrency=limits.connections,
                timeout_keep_alive=limits.keep_alive_s,
                timeout_graceful_shutdown=limits.shutdown_s,
                h11_max_incomplete_event_size=limits.head_bytes,
            )
        )
        thread = threading.Thread(target=server.run, args=([listener],), name='c3d-gateway')
        thread.start()
        try:
            server.ready.wait()
            if not server.started:
                raise GatewayError(f'the server on {host} port {port} ended as soon as it started')
            yield Gateway(_url(listener), parts.root, key is not None, thread)
        finally:
            server.should_exit = True
            thread.join()


class _Server(uvicorn.Server):
    """Says when it is ready, and when it will never be."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = threading.Event()

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            super().run(sockets)
        finally:
            self.ready.set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()


class _Protocol(H11Protocol):
    """HTTP/1.1 that also bounds the time for the head of a request, which uvicorn does not."""

    head_s: float
    _head_timer: asyncio.TimerHandle | None = None

    @classmethod
    def within(cls, head_s: float) -> type[_Protocol]:
        """Return this protocol with a limit."""
        return type('_LimitedProtocol', (cls,), {'head_s': head_s})

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch_head()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._stop_watch()

    def _watch_head(self) -> None:
        """Run the timer exactly while the head of a request is due or has come in part."""
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_watch()
        elif self._head_timer is None:
            self._head_timer = self.loop.call_later(self.head_s, self.transport.abort)

    def _stop_watch(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None


def _check_file(path: Path) -> None:
    try:
        check_variables(path.read_bytes())
    except OSError as error:
        raise GatewayError(f'remote variables: {path}: {error.strerror}') from None
    except FormatError as error:
        raise GatewayError(f'remote variables: {path}: {error}') from None


def _listen(host: str, port: int, key: str | None) -> socket.socket:
    if not 0 <= port <= 65535:
        raise GatewayError(f'port {port}: 0 to 65535 wanted, 0 for any that is free')
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        if key is None and not ipaddress.ip_address(address[0]).is_loopback:
            raise GatewayError(
                f'{host} can be reached by others, so the gateway needs a key there: give --key'
            )
        listener = socket.create_server((str(address[0]), port), family=family, backlog=128)
    except OSError as error:
        raise GatewayError(f'cannot listen on {host} port {port}: {error.strerror}') from None
    # asyncio sets this only on sockets that say they are TCP, which these do not. Without it an answer,
    # written in pieces, waits 40 ms for the client's delayed acknowledgement.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f'http://[{host}]:{port}' if ':' in host else f'http://{host}:{port}'
