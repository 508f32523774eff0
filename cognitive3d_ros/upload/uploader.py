"""The drain: takes finished parts from the spool, one at a time, until the gateway has them.

1. A part is deleted only when it was delivered. What the gateway will never take goes to quarantine, as
   what cannot be read does; everything else is kept and sent again, for ever, with the same bytes.
2. The parts of one stream of one session are delivered in order. One request is in flight.
3. The live session's properties, events and poses go first, then the rest, the oldest session first. After
   three of the former in a row one of the latter goes, so that neither starves the other.
4. After an exchange that failed everything waits (full jitter, 1 s to 5 min), and then another lane (a
   stream of a session) is tried, if there is one. The first success ends the waiting, and holds the lanes
   that failed before it back, each for its own growing time: a part that fails every time costs the
   others a second or two now and then, and an outage costs nothing once it is over.
5. A door that is shut (the key's, or that of a stream of a scene version) is tried by one part a minute.
   The key is read again at each try.
6. An exception in one part is an exchange that failed, counted and said.

All waiting is on the monotonic clock, and ends when :meth:`Uploader.stop` is called.
"""

from __future__ import annotations

import enum
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from cognitive3d_ros.counters import Count, Ledger, UploadBlocked
from cognitive3d_ros.errors import Cognitive3dError, FormatError, SpoolError
from cognitive3d_ros.log import Complaints, Log
from cognitive3d_ros.spool.index import PartRef
from cognitive3d_ros.upload import endpoint, policy
from cognitive3d_ros.upload.exchange import (
    Fault,
    Request,
    Response,
    Transport,
    TransportFault,
)
from cognitive3d_ros.upload.keys import KeySource, NoKey, without_key
from cognitive3d_ros.wire.framing import Part

LIVE_CLASSES = frozenset({'properties', 'events', 'pose'})
LIVE_IN_A_ROW = 3
_IDLE_S = 60.0  # the longest wait while nothing is ready; what is new ends it at once
_TIDY_S = 60.0
_GRACE_S = 0.2  # for a thread to end that has nothing left to wait for

Lane = tuple[str, str]
"""A stream of a session: (session id, stream)."""


class PartSource(Protocol):
    """What the uploader needs of a spool; see :class:`cognitive3d_ros.spool.Spool`."""

    @property
    def live(self) -> frozenset[str]:
        """The sessions that are being recorded."""

    def sessions(self) -> list[str]:
        """Return the sessions that have parts to deliver, oldest first."""

    def heads(self, session_id: str) -> Iterable[PartRef]:
        """Return the first part of each stream of a session."""

    def read(self, ref: PartRef) -> Part:
        """Return a part; FormatError: it was put aside; SpoolError: not now, or not there any more."""

    def delivered(self, ref: PartRef) -> None:
        """Count and delete a part that the gateway has."""

    def quarantine(self, ref: PartRef, reason: str) -> None:
        """Count a part and put it aside, with the reason."""

    def wait(self, timeout_s: float) -> bool:
        """Wait until there are new parts, or :meth:`wake` is called."""

    def wake(self) -> None:
        """End that wait, or the next one."""


@dataclass(frozen=True, slots=True)
class KeyDoor:
    """What a 401 or 403 shuts: all of the gateway, for this key (None: no key)."""

    key: str | NoKey | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class SceneDoor:
    """What a 404 shuts: one stream of one scene version."""

    stream: str
    scene_id: str
    scene_version: int

    def __str__(self) -> str:
        """Return it in words."""
        return f'{self.stream} of scene {self.scene_id} version {self.scene_version}'


class Phase(enum.Enum):
    """What an uploader does; the value is what people read."""

    IDLE = 'idle'
    DRAINING = 'draining'
    WAITING = 'waiting'
    """The last try failed; what is there is sent again."""
    SHUT = 'door shut'
    """The gateway refuses what comes with this key, or for one stream of a scene version."""
    REFUSED = 'refused'
    """The gateway called the last part that it answered to a bad one."""


@dataclass(frozen=True, slots=True)
class Activity:
    """What goes on, why if it is no good, and when the next try is due."""

    phase: Phase
    reason: str = ''
    next_try_s: float = 0.0

    @property
    def good(self) -> bool:
        """Whether all is as it should be."""
        return self.phase in (Phase.IDLE, Phase.DRAINING)

    def __str__(self) -> str:
        """Return it as a line."""
        reason = f': {self.reason}' if self.reason else ''
        due = f' (next try in {self.next_try_s:.0f} s)' if self.next_try_s >= 1 else ''
        return f'{self.phase.value}{reason}{due}'


class Uploader:
    """Delivers what a spool holds. Start it with :meth:`start`, or call :meth:`step` or :meth:`drain`.

    ``interrupt`` is the event that makes the transport give up sending, set when a stop has run out of
    time. ``uniform`` gives random numbers from 0 to 1; ``monotonic`` and ``wall`` give seconds.
    """

    def __init__(
        self,
        *,
        gateway: str,
        spool: PartSource,
        transport: Transport,
        key: KeySource,
        ledger: Ledger,
        log: Log,
        require_ack: bool = True,
        interrupt: threading.Event | None = None,
        uniform: Callable[[], float] = random.random,
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._gateway, self._host = gateway, endpoint.host(gateway)
        self._spool, self._transport, self._read_key = spool, transport, key
        self._ledger, self._log, self._require_ack = ledger, log, require_ack
        self._complaints = Complaints(log, lambda: int(monotonic() * 1e9))
        self._uniform, self._monotonic, self._wall = uniform, monotonic, wall

        self._key: str | NoKey | None = NoKey('it was not read yet')
        self._doors = policy.Doors(monotonic)
        self._backoff = policy.Backoff(uniform, monotonic)
        self._lanes: dict[Lane, policy.Backoff] = {}  # the lanes that failed while others did not
        self._failed: set[Lane] = set()  # the lanes that failed since the last success
        self._scenes: dict[str, tuple[str, int]] = {}  # of the sessions of which a part was read
        self._live_in_a_row = 0
        self._tidy_at_s = monotonic() + _TIDY_S
        self._state, self._last_error = UploadBlocked.DRAINING, ''
        self._refusing = False  # the last answer was that a part is bad
        self._next_at_s = monotonic()

        self._thread: threading.Thread | None = None
        self._interrupt = interrupt or threading.Event()
        self._stop_at_s: float | None = None
        self._lock = threading.Lock()  # held while an answer is acted on
        self._abandoned = False

    # --- for everyone -------------------------------------------------------------------------------

    @property
    def state(self) -> UploadBlocked:
        """What holds the uploads up, if anything: ``c3d.upload_blocked``."""
        return self._state

    @property
    def last_error(self) -> str:
        """The last trouble, as a sentence; empty when there was none. It never holds the key."""
        return self._last_error

    def activity(self) -> Activity:
        """Return what goes on, for people."""
        if self._state is UploadBlocked.DRAINING:
            return Activity(Phase.DRAINING if self._spool.sessions() else Phase.IDLE)
        if self._refusing:
            return Activity(Phase.REFUSED, self._last_error)
        shut = self._state is UploadBlocked.REFUSED
        wait_s = max(self._next_at_s - self._monotonic(), 0.0)
        return Activity(Phase.SHUT if shut else Phase.WAITING, self._last_error, wait_s)

    def start(self) -> None:
        """Deliver in a thread of its own until :meth:`stop`."""
        self._thread = threading.Thread(target=self._run, name='c3d-upload', daemon=True)
        self._thread.start()

    def stop(self, deadline_s: float = 3.0) -> bool:
        """Deliver what can be delivered without waiting, for ``deadline_s`` at most, and end.

        A request that is still without an answer then is left to itself: it ends by its own time limit,
        and what comes of it is ignored, so that the next uploader sends the part again. After this
        returned no part is deleted or moved by this uploader.

        Returns:
            Whether the thread has ended.
        """
        self._stop_at_s = self._monotonic() + deadline_s
        self._spool.wake()
        if self._thread is None:
            return True
        self._thread.join(deadline_s)
        self._abandon()
        return not self._thread.is_alive()

    def drain(self, timeout_s: float) -> bool:
        """Deliver until nothing is left, and return then, or after ``timeout_s``, whatever goes on.

        A request that is still under way then is left to itself, as :meth:`stop` does.

        Returns:
            Whether nothing is left to deliver.
        """
        end_s = self._monotonic() + timeout_s
        # In a thread: looking up a name, for one, can be neither limited nor ended.
        self._thread = threading.Thread(
            target=self._drain, args=(end_s,), name='c3d-upload', daemon=True
        )
        self._thread.start()
        try:
            self._thread.join(None if timeout_s == float('inf') else timeout_s)
        finally:
            if self._thread.is_alive():
                self._abandon()
                self._spool.wake()  # it may only have been waiting
                self._thread.join(_GRACE_S)
                where = f'{self._host} had not answered yet'
                self._last_error = self._last_error or f'{timeout_s:g} s are over: {where}'
        return not self._spool.sessions()

    def step(self) -> float:
        """Do one exchange at most; return in how many seconds to come again, 0 for at once."""
        wait_s = self._step()
        self._next_at_s = self._monotonic() + wait_s
        return wait_s

    def _step(self) -> float:
        try:
            self._tidy()
            wait_s = self._backoff.wait_s() or self._key_wait_s()
            if wait_s > 0:
                return wait_s
            chosen = self._choose()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is said, and tried again
            self._trouble('choosing', f'nothing can be chosen to be sent: {_said(error)}')
            return policy.MIN_WAIT_S
        if not isinstance(chosen, PartRef):
            return min(chosen, _IDLE_S)
        try:
            self._exchange(chosen)
        except Exception as error:  # noqa: BLE001 - one part never stops the others
            self._ledger.count(Count.UPLOAD_FAILURES)
            self._failed_exchange(_lane(chosen))
            self._trouble('sending', f'{_name(chosen)} was not sent: {_said(error)}')
        return 0.0

    # --- the thread ---------------------------------------------------------------------------------

    def _run(self) -> None:
        while self._stop_at_s is None or self._monotonic() < self._stop_at_s:
            wait_s = self.step()
            if wait_s > 0 and self._stop_at_s is not None:
                return  # waiting is for the next uploader
            if wait_s > 0:
                self._spool.wait(wait_s)

    def _drain(self, end_s: float) -> None:
        while not self._abandoned and self._spool.sessions():
            left_s = end_s - self._monotonic()
            if left_s <= 0:
                return
            wait_s = self.step()
            if wait_s > 0:
                self._spool.wait(min(wait_s, left_s))

    def _abandon(self) -> None:
        """Leave the request that is under way to itself: nothing is done any more, whatever comes of it."""
        self._interrupt.set()
        with self._lock:
            self._abandoned = True

    # --- choosing -----------------------------------------------------------------------------------

    def _choose(self) -> PartRef | float:
        """Return the part to send now, or in how many seconds there may be one."""
        live_sessions, soonest_s = self._spool.live, float('inf')
        live: PartRef | None = None  # put off for the sake of the backlog
        again: PartRef | None = None  # put off because it failed since the last success
        for ref in self._in_order(live_sessions):
            wait_s = self._lane_wait_s(ref)
            if wait_s > 0:
                soonest_s = min(soonest_s, wait_s)
            elif _lane(ref) in self._failed:
                again = again or ref
            elif _is_live(ref, live_sessions) and self._live_in_a_row >= LIVE_IN_A_ROW:
                live = live or ref
            else:
                return ref
        return live or again or soonest_s

    def _in_order(self, live_sessions: frozenset[str]) -> Iterator[PartRef]:
        for session_id in live_sessions:
            yield from (r for r in self._spool.heads(session_id) if r.klass in LIVE_CLASSES)
        for session_id in self._spool.sessions():
            yield from (r for r in self._spool.heads(session_id) if not _is_live(r, live_sessions))

    def _lane_wait_s(self, ref: PartRef) -> float:
        backoff = self._lanes.get(_lane(ref))
        scene = self._scenes.get(ref.session_id)
        return max(
            backoff.wait_s() if backoff else 0.0,
            self._doors.wait_s(SceneDoor(ref.stream, *scene)) if scene else 0.0,
        )

    def _key_wait_s(self) -> float:
        """Return how long the key's door stays shut; read the key anew when a try is due."""
        door = KeyDoor(self._key)
        wait_s = self._doors.wait_s(door)
        if wait_s > 0 or not (isinstance(self._key, NoKey) or self._doors.is_shut(door)):
            return wait_s
        key: str | NoKey | None = self._read_key()
        if isinstance(key, NoKey) and endpoint.is_loopback(self._gateway):
            key = None  # a gateway of one's own may need none
        if key != self._key:
            self._doors.open(door)
            self._key = key
        if isinstance(key, NoKey):
            self._refused(KeyDoor(key), f'no application key: {key.reason}')
        return self._doors.wait_s(KeyDoor(key))

    # --- one exchange -------------------------------------------------------------------------------

    def _exchange(self, ref: PartRef) -> None:
        try:
            part = self._spool.read(ref)
        except FormatError as error:
            self._last_error = (
                f'{_name(ref)} cannot be read: {error}'  # the spool counts and says it
            )
            return
        except SpoolError:
            if ref in self._spool.heads(ref.session_id):
                raise
            return  # evicted meanwhile
        key = self._key if isinstance(self._key, str) else None
        try:
            request = part_request(self._gateway, part, key)
        except FormatError as error:
            self._quarantine(ref, str(error))
            return
        identity = part.header.identity
        scene = identity.scene_id, identity.scene_version
        self._scenes[ref.session_id] = scene
        doors = KeyDoor(self._key), SceneDoor(ref.stream, *scene)
        if self._doors.wait_s(doors[1]) > 0:
            return  # which door it goes through was not known before it was read
        for door in doors:
            self._doors.probing(door)
        self._live_in_a_row = self._live_in_a_row + 1 if _is_live(ref, self._spool.live) else 0

        answer = self._transport.send(request)
        if isinstance(answer, TransportFault) and answer.fault is Fault.INTERRUPTED:
            return
        if isinstance(answer, Response):
            answer = answer.blotted(self._without_key)
        verdict = policy.classify(answer, require_ack=self._require_ack, wall_s=self._wall())
        with self._lock:
            if not self._abandoned:
                self._act(ref, doors, verdict)

    def _act(
        self, ref: PartRef, doors: tuple[KeyDoor, SceneDoor], verdict: policy.Verdict
    ) -> None:
        if isinstance(verdict, policy.Delivered):
            self._spool.delivered(ref)
            self._answered(_lane(ref))
            self._opened(doors)
            self._goes_on()
            return
        self._ledger.count(Count.UPLOAD_FAILURES)
        if isinstance(verdict, policy.Retry):
            self._failed_exchange(_lane(ref), verdict.not_before_s)
            self._settle(verdict.blocked, verdict.reason)
        elif isinstance(verdict, policy.BadPart):
            self._quarantine(ref, verdict.reason)
            self._answered(_lane(ref))
            self._opened(doors)
            # Nothing was delivered, whatever else is ready: the spool has said it, and this keeps it said.
            self._state, self._refusing = UploadBlocked.REFUSED, True
        else:
            self._answered(_lane(ref))
            key_door, scene_door = doors
            if verdict.scope is policy.Scope.KEY:
                self._refused(key_door, verdict.reason)
            else:
                self._doors.open(key_door)
                self._refused(scene_door, f'{scene_door}: {verdict.reason}')

    def _answered(self, lane: Lane) -> None:
        """Wait no longer: the gateway answered this lane. Hold back those that failed before."""
        self._backoff.succeeded()
        self._lanes.pop(lane, None)
        for failed in self._failed - {lane} - self._lanes.keys():
            self._hold_back(failed)
        self._failed.clear()

    def _failed_exchange(self, lane: Lane, not_before_s: float = 0.0) -> None:
        """Wait; a lane that has failed alone before, for as long as it has earned itself."""
        self._backoff.failed(not_before_s)
        self._failed.add(lane)
        if lane in self._lanes:
            self._hold_back(lane)

    def _hold_back(self, lane: Lane) -> None:
        if lane not in self._lanes:
            self._lanes[lane] = policy.Backoff(self._uniform, self._monotonic)
        self._lanes[lane].failed()

    def _quarantine(self, ref: PartRef, reason: str) -> None:
        self._spool.quarantine(ref, reason)  # counts it and logs it
        self._last_error = self._without_key(f'{_name(ref)} is in quarantine: {reason}')

    def _tidy(self) -> None:
        """Forget, once a minute, what concerns no part that is still there."""
        if self._monotonic() < self._tidy_at_s:
            return
        self._tidy_at_s = self._monotonic() + _TIDY_S
        lanes = {_lane(r) for one in self._spool.sessions() for r in self._spool.heads(one)}
        self._lanes = {lane: backoff for lane, backoff in self._lanes.items() if lane in lanes}
        self._failed &= lanes
        sessions = {session_id for session_id, _ in lanes}
        self._scenes = {one: scene for one, scene in self._scenes.items() if one in sessions}
        wanted = {
            SceneDoor(stream, *self._scenes[session_id])
            for session_id, stream in lanes
            if session_id in self._scenes
        }
        self._doors.keep({KeyDoor(self._key), *wanted})
        if not lanes and not isinstance(self._key, NoKey) and not self._refusing:
            self._settle(UploadBlocked.DRAINING, 'nothing is left to deliver')

    # --- what is said -------------------------------------------------------------------------------

    def _opened(self, doors: tuple[KeyDoor, SceneDoor]) -> None:
        for door in doors:
            self._doors.open(door)

    def _goes_on(self) -> None:
        """Say that something was delivered, and what is held up all the same."""
        still_shut = self._doors.reason()
        if still_shut is None:
            self._settle(UploadBlocked.DRAINING, 'delivering again')
        else:
            self._settle(UploadBlocked.REFUSED, still_shut)

    def _refused(self, door: KeyDoor | SceneDoor, reason: str) -> None:
        newly = self._doors.shut(door, reason)
        self._settle(UploadBlocked.REFUSED, reason, news=newly)

    def _settle(self, state: UploadBlocked, reason: str, *, news: bool = False) -> None:
        """Take a state; one line in the log when it is another than before, or there is news of it."""
        news = news or state is not self._state
        self._state, self._refusing = state, False
        reason = self._without_key(reason)
        text = f'uploads to {self._host}: {reason}'
        if state is UploadBlocked.DRAINING:
            if news:
                self._log.info(text)
            return
        self._last_error = reason
        if not news:
            return
        if state is UploadBlocked.REFUSED:
            self._log.error(f'{text}. Everything is kept; one part a minute is tried.')
        else:
            self._log.warning(f'{text}. Everything is kept and sent later.')

    def _trouble(self, topic: str, text: str) -> None:
        if self._state is UploadBlocked.DRAINING:
            self._state = UploadBlocked.NETWORK  # not the gateway's doing; nothing gets there
        self._last_error = self._without_key(text)
        self._complaints.warn(topic, f'uploads to {self._host}: {self._last_error}')

    def _without_key(self, text: str) -> str:
        return without_key(text, self._key) if isinstance(self._key, str) else text


def part_request(gateway: str, part: Part, key: str | None) -> Request:
    """Make the request that delivers a part: the same for the same part, whenever it is made.

    Raises:
        FormatError: the part names something that cannot stand in a request.
    """
    header, identity = part.header, part.header.identity
    idempotency_key = f'{identity.session_id}/{header.stream}/{header.number}'
    if not endpoint.header_safe(idempotency_key) or not endpoint.header_safe(header.content_type):
        raise FormatError(f'not fit for a header: {idempotency_key!r}, {header.content_type!r}')
    return Request(
        'POST',
        endpoint.part_url(gateway, header.stream, identity.scene_id, identity.scene_version),
        {
            'Content-Type': header.content_type,
            'Idempotency-Key': idempotency_key,
            'User-Agent': endpoint.USER_AGENT,
            **endpoint.authorization(key),
        },
        part.body,
    )


def _lane(ref: PartRef) -> Lane:
    return ref.session_id, ref.stream


def _is_live(ref: PartRef, live_sessions: frozenset[str]) -> bool:
    return ref.session_id in live_sessions and ref.klass in LIVE_CLASSES


def _name(ref: PartRef) -> str:
    return f'part {ref.number} of {ref.stream} of session {ref.session_id}'


def _said(error: Exception) -> str:
    return str(error) if isinstance(error, Cognitive3dError) else repr(error)
