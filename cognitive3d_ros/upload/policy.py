"""What an answer means for a part, how long to wait after a bad one, and which doors are shut. Pure.

======================================== ===========================================================
answer                                   verdict
======================================== ===========================================================
2xx with ``cvr-request-time``            delivered (any 2xx, when no such header is required)
2xx without, 3xx, 511, no answer, other  retry: it was not the gateway that answered (network)
400 409 413 415 422                      this part is bad, the others go on; but a web page without
                                         ``cvr-request-time`` is a proxy's or a portal's (network)
401 403                                  the door of this gateway and key is shut
404, other 4xx                           the door of this stream, scene and version is shut
408, 5xx                                 retry (network)
429, 503, any of these with Retry-After  retry, not before the time it names (throttled)
======================================== ===========================================================

The head alone decides: a body that is shorter than its ``Content-Length`` takes nothing back.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Container, Hashable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime

from cognitive3d_ros.counters import UploadBlocked
from cognitive3d_ros.upload.exchange import Response, TransportFault

ACK_HEADER = 'cvr-request-time'
MIN_WAIT_S, MAX_WAIT_S = 1.0, 300.0
MAX_RETRY_AFTER_S = 3600.0
PROBE_EVERY_S = 60.0

_BAD_PART = frozenset({400, 409, 413, 415, 422})
_DOOR_OF_KEY = frozenset({401, 403})
_THROTTLED = frozenset({429, 503})
_EXCERPT_CHARS = 160


class Scope(enum.Enum):
    """What a refusal is about."""

    KEY = 'gateway and key'
    SCENE = 'stream, scene and version'


@dataclass(frozen=True, slots=True)
class Delivered:
    """The gateway has it."""


@dataclass(frozen=True, slots=True)
class Retry:
    """Not now; the same bytes again, ``not_before_s`` from now at the earliest."""

    blocked: UploadBlocked
    reason: str
    not_before_s: float = 0.0


@dataclass(frozen=True, slots=True)
class BadPart:
    """The gateway will never take this part."""

    reason: str


@dataclass(frozen=True, slots=True)
class Shut:
    """The gateway refuses not the part, but all that comes through the same door."""

    scope: Scope
    reason: str


Verdict = Delivered | Retry | BadPart | Shut


def classify(
    answer: Response | TransportFault, *, require_ack: bool = True, wall_s: float
) -> Verdict:
    """Judge an answer; ``wall_s`` is the wall clock's Unix time, for a ``Retry-After`` with a date."""
    if isinstance(answer, TransportFault):
        return Retry(UploadBlocked.NETWORK, answer.reason)
    status, headers = answer.status, answer.headers
    said = excerpt(answer.body)
    if 200 <= status < 300:
        if not require_ack or ACK_HEADER in headers:
            return Delivered()
        return Retry(
            UploadBlocked.NETWORK,
            f'answer {status} without the header {ACK_HEADER}: something between here and the '
            'gateway gave it (a login page of the network?)',
        )
    if 300 <= status < 400:
        to = _printable(headers.get('location', 'nowhere'))
        return Retry(
            UploadBlocked.NETWORK,
            f'answer {status} points to {to} and is not followed (a login page of the network? '
            'http where https is meant?)',
        )
    if status in _BAD_PART:
        if require_ack and ACK_HEADER not in headers and _is_page(headers):
            return Retry(
                UploadBlocked.NETWORK,
                f'answer {status} is a web page without the header {ACK_HEADER}: something between '
                'here and the gateway gave it (a proxy with limits of its own?)',
            )
        return BadPart(f'answer {status}{said}')
    if status in _DOOR_OF_KEY:
        return Shut(Scope.KEY, f'answer {status}: it does not accept the application key{said}')
    if status == 511 or not 400 <= status < 600:
        return Retry(UploadBlocked.NETWORK, f'answer {status}: not from the gateway{said}')
    if status in {408, 429} or status >= 500:
        not_before_s = retry_after_s(headers, wall_s)
        throttled = status in _THROTTLED or not_before_s > 0
        return Retry(
            UploadBlocked.THROTTLED if throttled else UploadBlocked.NETWORK,
            f'answer {status}{said}',
            not_before_s,
        )
    return Shut(Scope.SCENE, f'answer {status}{said}')


def retry_after_s(headers: Mapping[str, str], wall_s: float) -> float:
    """Return the seconds that ``Retry-After`` asks for, 0 to an hour; 0 where it says nothing usable.

    A date is taken relative to the answer's own ``Date``, where it has one: this machine's clock may
    be years off.
    """
    text = headers.get('retry-after', '').strip()
    if re.fullmatch(r'[0-9]+', text):
        wanted_s = float(text[:9])
    else:
        at_s, now_s = _http_date_s(text), _http_date_s(headers.get('date', ''))
        if at_s is None:
            return 0.0
        wanted_s = at_s - (wall_s if now_s is None else now_s)
    return min(max(wanted_s, 0.0), MAX_RETRY_AFTER_S)


def _http_date_s(text: str) -> float | None:
    try:
        date: datetime = parsedate_to_datetime(text)
        return (date if date.tzinfo else date.replace(tzinfo=timezone.utc)).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def excerpt(body: bytes) -> str:
    """Return what an answer's body says, as the end of a line; nothing of a page made for a browser."""
    text = _printable(body[: 4 * _EXCERPT_CHARS].decode('utf-8', 'replace'))
    return f': {text}' if text and not text.startswith('<') else ''


def _is_page(headers: Mapping[str, str]) -> bool:
    kind = headers.get('content-type', '').partition(';')[0].strip().lower()
    return kind in {'text/html', 'application/xhtml+xml'}


def _printable(text: str) -> str:
    """Make a text from outside fit for one line of a log."""
    words = ''.join(letter if letter.isprintable() else ' ' for letter in text).split()
    return ' '.join(words)[:_EXCERPT_CHARS]


class Backoff:
    """Full jitter: the n-th wait in a row is uniform between one second and 2^n seconds, at most 300.

    ``random`` gives numbers from 0 to 1, ``monotonic`` seconds.
    """

    def __init__(self, random: Callable[[], float], monotonic: Callable[[], float]) -> None:
        self._random, self._monotonic = random, monotonic
        self._failures = 0
        self._until_s = float('-inf')

    def failed(self, not_before_s: float = 0.0) -> None:
        """Wait from now, longer than after the last failure on average."""
        self._failures += 1
        most_s = min(MAX_WAIT_S, 2.0 ** min(self._failures, 16))
        jittered_s = MIN_WAIT_S + (most_s - MIN_WAIT_S) * self._random()
        self._until_s = self._monotonic() + max(jittered_s, not_before_s)

    def succeeded(self) -> None:
        """Wait no longer, and begin anew."""
        self._failures, self._until_s = 0, float('-inf')

    def wait_s(self) -> float:
        """Return how long to wait from now; 0 when there is nothing to wait for."""
        return max(self._until_s - self._monotonic(), 0.0)


class Doors:
    """The doors that are shut, each tried by one part at most once a minute.

    A door is any hashable value that stands for what a refusal is about. One that was never shut is
    open. A new key is a new door.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._shut: dict[Hashable, tuple[float, str]] = {}  # next probe at, why

    def wait_s(self, door: Hashable) -> float:
        """Return how long until a part may go to this door; 0 when it is open or due for a probe."""
        if door not in self._shut:
            return 0.0
        return max(self._shut[door][0] - self._monotonic(), 0.0)

    def shut(self, door: Hashable, reason: str) -> bool:
        """Shut a door; returns whether it was open before."""
        was_open = door not in self._shut
        self._shut[door] = (self._monotonic() + PROBE_EVERY_S, reason)
        return was_open

    def probing(self, door: Hashable) -> None:
        """Note that a part is on its way to this door, whatever comes of it."""
        if door in self._shut:
            self._shut[door] = (self._monotonic() + PROBE_EVERY_S, self._shut[door][1])

    def open(self, door: Hashable) -> bool:
        """Open a door; returns whether it was shut before."""
        return self._shut.pop(door, None) is not None

    def is_shut(self, door: Hashable) -> bool:
        """Return whether a door is shut, due for a probe or not."""
        return door in self._shut

    def keep(self, wanted: Container[Hashable]) -> None:
        """Forget the doors that nothing wants to go through any more."""
        self._shut = {door: state for door, state in self._shut.items() if door in wanted}

    def reason(self) -> str | None:
        """Return why the door that was shut first is shut; None when all are open."""
        return next((reason for _, reason in self._shut.values()), None)
