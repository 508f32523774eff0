"""A spool in memory, a clock that only moves when told, and a gateway made of a function."""

import random
from collections.abc import Callable

from cognitive3d_ros.counters import Count, Ledger
from cognitive3d_ros.errors import FormatError
from cognitive3d_ros.spool import PartRef
from cognitive3d_ros.upload.exchange import Request, Response, TransportFault
from cognitive3d_ros.upload.uploader import Uploader
from cognitive3d_ros.wire.framing import STREAMS, Part, PartHeader
from cognitive3d_ros.wire.identity import SessionIdentity

GATEWAY = 'https://gateway.example'
SCENE = '5b2a1f4e-0c9d-4e8a-9a53-0f6d1c2b3a4d'
KEY = 'KEY-f00dcafe-never-shown'
OK = Response(200, {'cvr-request-time': '3'})
KLASS = {'gaze': 'pose', 'events': 'events', 'dynamics': 'pose', 'sensors': 'series'}


class Clock:
    """Monotonic and wall clock, in seconds; they move together and only when told."""

    def __init__(self, wall=1_767_225_600.0):
        self.now = 1000.0
        self._wall_minus_now = wall - self.now

    def monotonic(self):
        return self.now

    def wall(self):
        return self.now + self._wall_minus_now


class Lines:
    """A log that keeps its lines."""

    def __init__(self):
        self.lines = []

    def info(self, text):
        self.lines.append(('info', text))

    def warning(self, text):
        self.lines.append(('warning', text))

    def error(self, text):
        self.lines.append(('error', text))


class MemorySpool:
    """What the uploader needs of a spool, over a dictionary."""

    def __init__(self, ledger):
        self.ledger = ledger
        self.parts: dict[PartRef, Part | Exception] = {}
        self.live: frozenset[str] = frozenset()
        self.done: list[PartRef] = []
        self.quarantined: list[tuple[PartRef, str]] = []

    def put(self, session='1767225600_rover', stream='gaze', number=1, **more) -> PartRef:
        klass = more.pop('klass', KLASS.get(stream, stream))
        part = make_part(session, stream, number, klass, **more)
        ref = PartRef(session, stream, number, klass, len(part.body))
        self.parts[ref] = part
        return ref

    def fill(self, session, stream, numbers, **more) -> list[PartRef]:
        return [self.put(session, stream, number, **more) for number in numbers]

    def sessions(self):
        return sorted({ref.session_id for ref in self.parts}, key=lambda i: int(i.split('_')[0]))

    def heads(self, session_id):
        first = {}
        for ref in sorted(self.parts, key=lambda ref: ref.number):
            if ref.session_id == session_id:
                first.setdefault(ref.stream, ref)
        return [first[stream] for stream in STREAMS if stream in first]

    def read(self, ref):
        part = self.parts[ref]
        if isinstance(part, Exception):
            if isinstance(part, FormatError):
                self.quarantine(ref, str(part))
            raise part
        return part

    def delivered(self, ref):
        del self.parts[ref]
        self.ledger.count(Count.PARTS_UPLOADED)
        self.done.append(ref)

    def quarantine(self, ref, reason):
        del self.parts[ref]
        self.ledger.count(Count.PARTS_QUARANTINED)
        self.quarantined.append((ref, reason))

    def wait(self, timeout_s):
        raise AssertionError('a test with a virtual clock never waits')

    def wake(self):
        pass


def make_part(session, stream, number, klass, *, scene=SCENE, version=3, body=None) -> Part:
    identity = SessionIdentity(
        session, session.partition('_')[2], scene, version, '1.0.0', 1_767_225_600 * 10**9, 0.1
    )
    binary = stream in ('camera', 'lidar')
    content_type = 'application/octet-stream' if binary else 'application/json'
    body = f'{session} {stream} {number}'.encode() if body is None else body
    return Part(PartHeader(identity, stream, number, klass, 1, content_type), body)


Answer = Callable[[Request], Response | TransportFault]


class Rig:
    """An uploader on a :class:`MemorySpool`. ``answer`` is the gateway; ``sent`` what it was asked."""

    def __init__(self, answer: Answer = lambda request: OK, *, key=lambda: KEY, **more):
        self.clock, self.log, self.ledger = Clock(), Lines(), Ledger()
        self.spool = MemorySpool(self.ledger)
        self.answer = answer
        self.sent: list[tuple[float, Request]] = []
        self.waits: list[float] = []
        self.uploader = Uploader(
            **{
                'gateway': GATEWAY,
                'spool': self.spool,
                'transport': self,
                'key': key,
                'ledger': self.ledger,
                'log': self.log,
                'uniform': random.Random(5).random,
                'monotonic': self.clock.monotonic,
                'wall': self.clock.wall,
                **more,
            }
        )

    def send(self, request):
        self.sent.append((self.clock.now, request))
        return self.answer(request)

    def run(self, seconds: float) -> None:
        """Let this much time pass, as fast as the uploader asks to be called."""
        end = self.clock.now + seconds
        while self.clock.now < end:
            wait = self.uploader.step()
            self.waits.append(wait)
            self.clock.now = min(self.clock.now + wait, end)

    def steps(self, n: int) -> None:
        """Do n exchanges, whatever time they take."""
        end = len(self.sent) + n
        while len(self.sent) < end:
            self.clock.now += self.uploader.step()

    @property
    def done(self):
        return [(ref.session_id, ref.stream, ref.number) for ref in self.spool.done]
