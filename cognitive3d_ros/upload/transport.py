"""The transport of the real world: the only module that knows ``requests``.

It follows no redirect, keeps no cookie, reads no ``.netrc`` and never writes a header into a text,
because one of them holds the application key.
"""

from __future__ import annotations

import fcntl
import http.client
import io
import select
import socket
import ssl
import struct
import termios
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import requests
import urllib3
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import NewConnectionError

from cognitive3d_ros.upload.endpoint import host, is_loopback
from cognitive3d_ros.upload.exchange import Fault, Request, Response, TransportFault

_PIECE_BYTES = 256 * 1024  # handed to the socket at once, when there is no cap
_NAP_S = 0.1  # the longest sleep under a cap, so that it can be interrupted
_LOOK_MS = 50  # between two looks at what the kernel still has to send
_HEAD_BYTES = 256 * 1024  # of an answer, with all that is said before it (100 Continue)
_REST_S = 2.0  # for the body of an answer to a part: the head has said all that counts
_TIMEOUTS = (TimeoutError, requests.Timeout, urllib3.exceptions.TimeoutError)
_NOT_YET_VALID, _EXPIRED = (
    9,
    10,
)  # OpenSSL: X509_V_ERR_CERT_NOT_YET_VALID, X509_V_ERR_CERT_HAS_EXPIRED


class RequestsTransport:
    """Sends through a ``requests`` adapter with one kept connection.

    ``timeout_s`` is a time without progress for connecting and for the next bytes to leave this machine:
    a body may take as long as it moves. It is also the time that the whole answer may take once all is
    sent, however it comes. Of an answer to a body the head decides; what then does not follow soon is
    not waited for.
    ``max_bytes_per_s`` (0 for no limit) paces the bodies that are sent. Setting ``interrupt`` makes a
    request that is sending stop at its next piece. Proxies and CA bundles come from the environment as
    ``requests`` reads it; a loopback address is never asked for through a proxy.
    For one thread at a time.
    """

    def __init__(
        self,
        *,
        timeout_s: float = 10.0,
        max_bytes_per_s: float = 0.0,
        max_answer_bytes: int = 64 * 1024,
        interrupt: threading.Event | None = None,
    ) -> None:
        self._timeout_s = timeout_s
        self._max_answer_bytes = max_answer_bytes
        self._pace = Pace(max_bytes_per_s, interrupt or threading.Event())
        self._session = requests.Session()
        self._adapter = _Adapter(pool_connections=1, pool_maxsize=1)
        self._settings: dict[str, dict[str, Any]] = {}
        self._kept = False  # an answered request left its connection open for the next one

    def send(self, request: Request) -> Response | TransportFault:
        """Send a request; one that met a kept connection which had died is sent again at once."""
        try:
            try:
                return self._exchange(request)
            except (requests.RequestException, OSError) as error:
                if not (self._kept and _connection_died(error)):
                    raise
                self._kept = False
                return self._exchange(request)
        except _Interrupted:
            return TransportFault(Fault.INTERRUPTED, 'stopped while sending')
        except (
            requests.RequestException,
            urllib3.exceptions.HTTPError,
            OSError,
            ValueError,
        ) as error:
            self._kept = False
            return _fault(error, host(request.url), self._timeout_s)

    def close(self) -> None:
        """Close the kept connection."""
        self._adapter.close()
        self._session.close()

    def _exchange(self, request: Request) -> Response:
        prepared = requests.Request(
            request.method,
            request.url,
            headers=dict(request.headers),
            data=_Body(request.body, self._pace) if request.body else None,
        ).prepare()  # prepared without the session: it would add cookies and what .netrc says
        with self._adapter.send(
            prepared, stream=True, timeout=self._timeout_s, **self._settings_for(request.url)
        ) as answer:
            headers = {name.lower(): value for name, value in answer.headers.items()}
            body, whole = self._read(answer)
            if not whole:
                answer.raw.close()  # the rest is not worth reading
            self._kept = whole
            return Response(answer.status_code, headers, body)

    def _settings_for(self, url: str) -> dict[str, Any]:
        parts = urlsplit(url)
        origin = f'{parts.scheme}://{parts.netloc}'
        if origin not in self._settings:
            settings = self._session.merge_environment_settings(url, {}, True, None, None)
            self._settings[origin] = {
                'verify': settings['verify'],
                'cert': settings['cert'],
                'proxies': {} if is_loopback(url) else settings['proxies'],
            }
        return self._settings[origin]

    def _read(self, answer: requests.Response) -> tuple[bytes, bool]:
        """Return the body up to the limit, and whether that was all of it."""
        try:
            body = answer.raw.read(self._max_answer_bytes + 1, decode_content=False)
        except (urllib3.exceptions.HTTPError, OSError):
            return b'', False  # status and headers are here: they are the answer
        return body[: self._max_answer_bytes], len(body) <= self._max_answer_bytes


class Pace:
    """At most so many bytes a second, evenly and without bursts."""

    def __init__(
        self,
        max_bytes_per_s: float,
        interrupt: threading.Event,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._max_bytes_per_s = max_bytes_per_s
        self._interrupted = interrupt.is_set
        self._monotonic, self._sleep = monotonic, sleep
        self._free_at_s = monotonic()

    @property
    def piece_bytes(self) -> int:
        """How much to send at once: an eighth of a second's worth under a cap."""
        if not self._max_bytes_per_s:
            return _PIECE_BYTES
        return min(max(int(self._max_bytes_per_s / 8), 512), _PIECE_BYTES)

    def take(self, n_bytes: int) -> None:
        """Wait until ``n_bytes`` may be sent. Raises when interrupted."""
        while not self._interrupted():
            now_s = self._monotonic()
            if self._free_at_s <= now_s:
                if self._max_bytes_per_s:
                    self._free_at_s = now_s + n_bytes / self._max_bytes_per_s
                return
            # Not by the event's own wait: on Python 3.10 that sleeps on the wall clock.
            self._sleep(min(self._free_at_s - now_s, _NAP_S))
        raise _Interrupted


class _Interrupted(Exception):  # noqa: N818 - nothing failed
    """The request was told to stop."""


class _Body:
    """A body of known length in pieces, so that it can be paced and interrupted, and sent again."""

    def __init__(self, body: bytes, pace: Pace) -> None:
        self._body, self._pace = body, pace

    def __len__(self) -> int:
        return len(self._body)

    def __iter__(self) -> Iterator[memoryview]:
        view, size = memoryview(self._body), self._pace.piece_bytes
        for start in range(0, len(view), size):
            piece = view[start : start + size]
            self._pace.take(len(piece))
            yield piece


# --- a time limit without progress, where the libraries have one for the whole body or none ----------


def _send(sock: socket.socket, data: memoryview) -> None:
    """Send all of ``data``, with the socket's time limit anew whenever some of it has left.

    The kernel takes nothing until a good part of its buffer is free; that the buffer moves is enough.
    """
    while data:
        before = _unsent_bytes(sock)
        try:
            data = data[sock.send(data) :]
        except TimeoutError:
            answer = select.poll()
            answer.register(sock, select.POLLIN)
            if answer.poll(0):  # it was answered instead of read, as a part that is too big may be
                raise BrokenPipeError from None  # at which urllib3 goes on to the answer
            if _unsent_bytes(sock) >= before:
                raise


def _unsent_bytes(sock: socket.socket) -> int:
    """Return how many bytes the kernel has still to send, or to see acknowledged."""
    try:
        return int(struct.unpack('i', fcntl.ioctl(sock, termios.TIOCOUTQ, bytes(4)))[0])
    except OSError:
        return 0  # not known here: then the answer's time limit starts now


def _wait_until_sent(sock: socket.socket) -> None:
    """Wait while the kernel's buffer moves: the time limit of the answer starts when it is empty.

    Over a slow link seconds pass between the last write and the last byte's arrival. An answer that
    comes early ends the wait. Raises TimeoutError when nothing moved for the socket's time limit.
    """
    encrypted = isinstance(sock, ssl.SSLSocket)
    answer = select.poll()
    if not encrypted:  # TLS has session tickets to read before any answer
        answer.register(sock, select.POLLIN)
    limit_s = sock.gettimeout()
    left, moved_at_s = _unsent_bytes(sock), time.monotonic()
    while left and not answer.poll(_LOOK_MS):
        before, left = left, _unsent_bytes(sock)
        if left < before:
            moved_at_s = time.monotonic()
        elif limit_s is not None and time.monotonic() - moved_at_s >= limit_s:
            if encrypted:
                return  # there may be an answer: reading tells
            raise TimeoutError(f'nothing was taken for {limit_s:g} s')


class Deadline(io.RawIOBase):
    """What comes from a socket until a time is over, and up to a number of bytes.

    The socket's own time limit starts anew with every byte.
    """

    def __init__(
        self,
        sock: socket.socket,
        *,
        limit_s: float | None,
        limit_bytes: int,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        self._sock, self._raw = sock, sock.makefile('rb', buffering=0)
        self._monotonic = monotonic
        self._end_s = float('inf')
        self.left_bytes: float = limit_bytes
        if limit_s is not None:
            self.within(limit_s)

    def within(self, limit_s: float) -> None:
        """Let the rest come within so many seconds, or what is left of the time if that is less."""
        self._end_s = min(self._end_s, self._monotonic() + limit_s)

    def readable(self) -> bool:
        """Tell that this can be read."""
        return True

    def readinto(self, buffer: Any) -> int | None:
        """Read what is there; raises _LateError when the time is over, HTTPException for too much."""
        if self.left_bytes <= 0:
            raise http.client.HTTPException('an answer without end')
        left_s = self._end_s - self._monotonic()
        if left_s <= 0:
            raise _LateError
        before = self._sock.gettimeout()
        self._sock.settimeout(None if left_s == float('inf') else left_s)
        try:
            count = self._raw.readinto(buffer)
        except TimeoutError:
            raise _LateError from None
        finally:
            self._sock.settimeout(before)
        self.left_bytes -= count or 0
        return count

    def close(self) -> None:
        """Close this and leave the socket to its other users."""
        self._raw.close()
        super().close()


class _LateError(TimeoutError):
    """The answer was not whole in time."""


class _Answer(http.client.HTTPResponse):
    """An answer, to a proxy's CONNECT too, with one deadline from its first byte to its last."""

    def __init__(
        self,
        sock: socket.socket,
        debuglevel: int = 0,
        method: str | None = None,
        url: str | None = None,
    ) -> None:
        super().__init__(sock, debuglevel, method, url)
        self.fp.close()
        self._deadline = Deadline(sock, limit_s=sock.gettimeout(), limit_bytes=_HEAD_BYTES)
        self.fp = io.BufferedReader(self._deadline)
        self._to_a_body = method == 'POST'

    def begin(self) -> None:
        super().begin()
        self._deadline.left_bytes = float('inf')  # who reads the body knows how much of it
        if self.status < 200:
            self.will_close = True  # its real answer is still to come, and not the next request's
        if self._to_a_body:
            self._deadline.within(_REST_S)


class _HttpConnection(HTTPConnection):
    response_class = _Answer

    def send(self, data: Any) -> None:
        if isinstance(data, memoryview) and self.sock is not None:
            _send(self.sock, data)
        else:
            super().send(data)

    def getresponse(self) -> Any:
        if self.sock is not None:
            _wait_until_sent(self.sock)
        return super().getresponse()


class _HttpsConnection(_HttpConnection, HTTPSConnection):
    """The same over TLS: what the first adds goes before the second, which is an HTTPConnection too."""


class _HttpPool(HTTPConnectionPool):
    ConnectionCls = _HttpConnection


class _HttpsPool(HTTPSConnectionPool):
    ConnectionCls = _HttpsConnection


class _Adapter(HTTPAdapter):
    """The adapter of ``requests``, with connections that measure progress."""

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = {'http': _HttpPool, 'https': _HttpsPool}

    def proxy_manager_for(self, *args: Any, **kwargs: Any) -> Any:
        manager = super().proxy_manager_for(*args, **kwargs)
        manager.pool_classes_by_scheme = {'http': _HttpPool, 'https': _HttpsPool}
        return manager


# --- telling faults apart ----------------------------------------------------------------------------


def _chain(error: BaseException) -> list[BaseException]:
    """Return an exception and all that it wraps: the libraries put causes into arguments too."""
    found: list[BaseException] = []
    todo: list[object] = [error]
    while todo:
        one = todo.pop(0)
        if isinstance(one, BaseException) and one not in found:
            found.append(one)
            todo += [*one.args, getattr(one, 'reason', None), one.__cause__, one.__context__]
    return found


def _connection_died(error: BaseException) -> bool:
    """Tell a connection that broke off from one that could not be made."""
    chain = _chain(error)
    return any(isinstance(one, ConnectionError) for one in chain) and not any(
        isinstance(one, NewConnectionError) for one in chain
    )


def _fault(error: BaseException, where: str, timeout_s: float) -> TransportFault:
    chain = _chain(error)
    for one in chain:
        if isinstance(one, ssl.SSLCertVerificationError):
            if one.verify_code in (_NOT_YET_VALID, _EXPIRED):
                return TransportFault(
                    Fault.CERTIFICATE_DATE,
                    f'{where}: {one.verify_message} by the clock of this machine, which says '
                    f'{time.strftime("%Y-%m-%d %H:%M", time.gmtime())} UTC: is that right?',
                )
            return TransportFault(
                Fault.CERTIFICATE, f'{where}: its certificate is not trusted: {one.verify_message}'
            )
    if any(isinstance(one, _LateError) for one in chain):
        return TransportFault(Fault.TIMEOUT, f'{where}: no whole answer within {timeout_s:g} s')
    if any(
        isinstance(one, _TIMEOUTS) and not isinstance(one, NewConnectionError) for one in chain
    ):
        return TransportFault(Fault.TIMEOUT, f'{where}: no progress for {timeout_s:g} s')
    for one in chain:
        if isinstance(one, OSError) and one.strerror:
            return TransportFault(Fault.UNREACHABLE, f'{where}: {one.strerror}')
        if (
            type(one) is OSError
        ):  # of the libraries: a CA bundle that is missing, a proxy that refuses
            return TransportFault(Fault.UNREACHABLE, f'{where}: {one}')
        if isinstance(one, http.client.RemoteDisconnected):
            return TransportFault(Fault.UNREACHABLE, f'{where}: closed without an answer')
    return TransportFault(
        Fault.UNREACHABLE, f'{where}: {type(chain[-1]).__name__}, no HTTP answer'
    )
