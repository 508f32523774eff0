"""A request, what comes of it, and the one method that stands between the two."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request; what its ``repr`` shows is fit for a log."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes = field(default=b'', repr=False)


@dataclass(frozen=True, slots=True)
class Response:
    """An answer. Header names are in lower case; the body may be cut off at the transport's limit."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b''

    def blotted(self, blot: Callable[[str], str]) -> Response:
        """Return the answer with a secret of ours blotted out, should the server have echoed it."""
        return Response(
            self.status,
            {name: blot(value) for name, value in self.headers.items()},
            blot(self.body.decode('latin-1')).encode('latin-1'),  # any bytes, and back
        )


class Fault(enum.Enum):
    """Why there was no answer."""

    UNREACHABLE = 'unreachable'
    TIMEOUT = 'timeout'
    CERTIFICATE_DATE = 'certificate date'
    CERTIFICATE = 'certificate'
    INTERRUPTED = 'interrupted'


@dataclass(frozen=True, slots=True)
class TransportFault:
    """No answer; ``reason`` is for people and names the host, never a header."""

    fault: Fault
    reason: str


class Transport(Protocol):
    """Sends one request at a time."""

    def send(self, request: Request) -> Response | TransportFault:
        """Send a request and wait for the answer. Never raises for what the network does."""
        ...
