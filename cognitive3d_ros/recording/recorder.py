"""The recorder: sessions, one after another, on one spool.

Both doors drive it alike: the live node with the robot's clocks and tf, the offline door with those of a bag.
It reads the clocks itself, when it is called; its methods may be called from any thread. They touch memory
only, but for the start and the end of a session and :meth:`Recorder.flush`.
"""

from __future__ import annotations

import functools
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cognitive3d_ros import __version__
from cognitive3d_ros.clock import NS_PER_S, Arrival, Clocks, Reading, SessionClock, not_usable
from cognitive3d_ros.counters import Count, Drop, Fate, Key, Ledger, Level, UploadBlocked
from cognitive3d_ros.errors import SessionError, SpoolError
from cognitive3d_ros.log import Complaints, Log
from cognitive3d_ros.parameters import Config
from cognitive3d_ros.recording.properties import (
    MAX_JSON_BYTES,
    MAX_TEXT_CHARS,
    Host,
    check_properties,
    parse_properties,
    session_properties,
)
from cognitive3d_ros.recording.recovery import close_unended
from cognitive3d_ros.recording.sensors import Made, Ticket, codec
from cognitive3d_ros.recording.session import Baseline, Session
from cognitive3d_ros.recording.workers import Task, Workers
from cognitive3d_ros.spool import Spool
from cognitive3d_ros.tf import TransformSource
from cognitive3d_ros.wire.assemble import assemble
from cognitive3d_ros.wire.bodies import PropertyValue
from cognitive3d_ros.wire.identity import SessionIdentity

__all__ = ['Host', 'Recorder', 'Status']

EVENTS = 'events'  # the user's events, as an input of the ledger
ANNOTATIONS = 'annotations'
_WORKERS = 2  # threads
_QUEUE = 4  # messages of a sensor that wait for one
_DRAIN_S = 1.0  # how long the end of a session waits for them
_IDLE_NS = NS_PER_S // 2  # how often an idle recorder looks at its clocks
_JUMP_NS = 50_000_000  # a ROS clock that goes back by more has jumped
_WARN_OFFSET_NS = 5 * NS_PER_S


@dataclass(frozen=True, slots=True)
class Status:
    """What the recorder is doing."""

    session_id: str
    session_s: float
    pose_samples: int
    events: int
    dropped_records: int
    reference_frame: str
    error: str
    losses: str = ''


class Recorder:
    """Records sessions to a spool; see the module.

    ``live`` is false for the offline door, whose session ids follow the recording's own clock.
    ``resolve`` gives a topic of the configuration its full name.
    ``upload_blocked`` tells what holds the uploads up, for the health series.
    """

    def __init__(
        self,
        config: Config,
        *,
        spool: Spool,
        clocks: Clocks,
        transforms: TransformSource,
        ledger: Ledger,
        host: Host,
        log: Log,
        live: bool = True,
        resolve: Callable[[str], str] = lambda topic: topic,
        upload_blocked: Callable[[], UploadBlocked] = lambda: UploadBlocked.DRAINING,
    ) -> None:
        self._config = config
        self._spool = spool
        self._clocks = clocks
        self._transforms = transforms
        self._ledger = ledger
        self._host = host
        self._log = log
        self._live = live
        self._resolve = resolve
        self._upload_blocked = upload_blocked
        self._complaints = Complaints(log, lambda: clocks.read().mono_ns)
        if config.cameras or config.lidars:
            codec()
        self._workers = Workers[Made | None](
            threads=_WORKERS, depth=_QUEUE, patient=not live, report=self._fault
        )
        self._turns = threading.RLock()  # one session is started or ended at a time
        self._ending = False
        self._lock = threading.RLock()  # never held while workers are waited for
        self._session: Session | None = None
        self._last_reading: Reading | None = None
        # As the session before ended; what was found when the spool was opened belongs to the first one.
        self._between: Mapping[Key, int] = {}
        self._known: dict[str, PropertyValue] = {}  # properties that every session from now on has
        self._at_start: list[Callable[[Session, Arrival], None]] = []
        self._silent: dict[str, str] = {}  # why nothing may come in on an input
        self._error = ''
        self.last_session = Status('', 0.0, 0, 0, 0, '', '')
        """The session that ended last, as it ended."""

    # Sessions

    @property
    def session_id(self) -> str | None:
        """The id of the active session."""
        session = self._session
        return None if session is None else session.identity.session_id

    def start_session(
        self, name: str = '', participant_id: str = '', properties_json: str = ''
    ) -> str:
        """Start a session and return its id; one that is active ends first (``newSession``).

        Raises SessionError, and changes nothing, where the properties or the clock will not do. The
        session's properties and its first event are on disk when this returns.
        """
        try:
            user = parse_properties(properties_json)
        except ValueError as error:
            raise SessionError(f'properties_json: {error}') from None
        for what, text in (('name', name), ('participant_id', participant_id)):
            if len(text) > MAX_TEXT_CHARS:
                raise SessionError(
                    f'{what} has {len(text)} characters: at most {MAX_TEXT_CHARS} are taken'
                )
        with self._turns:
            reason = self.not_ready()
            if reason:
                raise SessionError(reason)
            if self._session is not None:
                self.end_session('newSession')
            with self._lock:
                return self._start(name, participant_id, user)

    def not_ready(self) -> str | None:
        """Say why no session could start now, or None."""
        return not_usable(
            self._clocks.read(), live=self._live, use_sim_time=self._config.use_sim_time
        )

    def _start(self, name: str, participant_id: str, user: Mapping[str, PropertyValue]) -> str:
        config = self._config
        reading = self._clocks.read()
        # Offline, ids follow the recording's clock: what other sessions the spool has issued is no matter.
        second = reading.wall_ns // NS_PER_S
        last_second = self._spool.last_second(second) if self._live else None
        clock = SessionClock(
            reading, last_second=last_second, sim_time_on_wire=config.sim_time_on_wire
        )
        identity = SessionIdentity(
            session_id=f'{clock.second}_{config.device_id}',
            device_id=config.device_id,
            scene_id=config.scene_id,
            scene_version=config.scene_version,
            sdk_version=__version__,
            start_ns=clock.start_ns,
            interval_s=1.0 / config.sample_rate_hz,
        )
        if clock.offset_ns > _WARN_OFFSET_NS:
            self._log.warning(
                f'session {identity.session_id} starts {clock.offset_ns / NS_PER_S:.1f} s ahead of '
                'the wall clock, so that its id is later than the last one this spool issued'
            )
        if self._live and self._spool.newest_second > clock.second:
            self._complaints.warn(
                'ids',
                f'ids were issued up to second {self._spool.newest_second}, but the clock says {second}: it '
                f'was wrong then, or is now; session {identity.session_id} goes by it',
            )
        try:
            if self._live:
                self._spool.issue_second(clock.second)
            spool = self._spool.start(identity, assemble)
        except (SpoolError, OSError) as error:
            raise SessionError(f'the session cannot be stored: {error}') from error
        session = Session(
            config,
            identity=identity,
            clock=clock,
            spool=spool,
            transforms=self._transforms,
            ledger=self._ledger,
            baseline=Baseline(self._ledger.snapshot(), self._between),
            levels=self._levels,
            log=self._log,
            complaints=self._complaints,
            live=self._live,
        )
        properties = session_properties(
            config,
            self._host,
            identity,
            name=name,
            participant_id=participant_id,
            offset_ns=clock.offset_ns,
            user=user,
            resolve=self._resolve,
        )
        arrival = clock.arrive(reading)
        session.start(self._known | properties, arrival)
        if not spool.flush():
            # It would only be in memory: better no session than one that is lost in silence.
            spool.abandon()
            raise SessionError(f'the session cannot be stored: {spool.error}')
        self._session = session
        self._log.info(f'session {identity.session_id} started')
        for begin in self._at_start:
            begin(session, arrival)
        return identity.session_id

    def end_session(self, reason: str) -> str:
        """End the active session and return its id; ``c3d.sessionEnd`` is on disk when this returns.

        Where the disk refuses, ``last_session.error`` says so; what is in memory then is written when the disk
        takes it again. Raises SessionError where none is active, or the reason is too long.
        """
        if len(reason) > MAX_TEXT_CHARS:
            raise SessionError(
                f'reason has {len(reason)} characters: at most {MAX_TEXT_CHARS} are taken'
            )
        with self._turns:
            with self._lock:
                session = self._session
                if session is None:
                    raise SessionError('no session is active')
                self._ending = True
            try:
                self._workers.drain(_DRAIN_S if self._live else None)
                with self._lock:
                    arrival = self._arrive(session)
                    session.end(reason, arrival)
                    self._session = None
            finally:
                self._ending = False
            with self._lock:
                self._between = self._ledger.snapshot()
                self._error = error = session.spool.error or ''
                waiting = session.spool.pending_entries
                self.last_session = self._status(session, arrival)
        if error:
            self._log.error(
                f'session {session.identity.session_id} could not be ended on disk: {error}; '
                f'{waiting} entries are in memory only, and are lost where this process ends before the disk '
                'takes them'
            )
        self._log.info(
            f'session {session.identity.session_id} ended ({reason}): '
            f'{arrival.session_ns / NS_PER_S:.1f} s, {session.pose_samples} pose samples, '
            f'{session.events} events'
        )
        for account in session.accounts:
            if account.received:
                self._log.info(f'{account.title}: {account}')
            else:
                why = self._silent.get(account.source, 'no publisher was found')
                self._log.info(f'{account.title}: nothing was received: {why}')
        return session.identity.session_id

    def recover(self) -> list[str]:
        """Close the sessions that have no end, as ``abnormalEnd``; return their ids.

        Source: data format, Sessions. The end lies at the latest durable record, at the last stored
        pose sample's position.
        """
        return close_unended(self._spool, self._log)

    # What is recorded

    def poll(self) -> int:
        """Take what is due: pose ticks, what waited for tf, health, jumps of the clocks.

        Returns in how many nanoseconds it wants to be called again at the latest.
        """
        with self._lock:
            session = self._session
            if session is None:
                self._watch(self._clocks.read())
                return _IDLE_NS
            arrival = self._arrive(session)
            session.take_ticks(arrival)
            session.resolve(arrival)
            session.health(arrival)
            return min(session.due_in_ns(arrival), _IDLE_NS)

    def event(
        self, name: str, properties: Mapping[str, object] | str = '', stamp_ns: int = 0
    ) -> bool:
        """Record a user's event; False where it is refused, which is counted and warned about.

        ``properties`` is a mapping, or a JSON object as text; ``stamp_ns`` a ROS time, 0 for now. While
        no session is active nothing is recorded.
        """
        with self._lock:
            session = self._session
            if session is None:
                return False
            arrival = self._arrive(session)
            self._ledger.came(EVENTS, Fate.RECEIVED)
            try:
                if name.startswith('c3d.'):
                    return self._refuse(
                        Drop.RESERVED_NAME, f'event {name!r}: names in c3d. are ours'
                    )
                if not name:
                    return self._refuse(Drop.BAD_EVENT, 'an event without a name')
                if isinstance(properties, str):
                    checked = parse_properties(properties)
                else:
                    checked = check_properties(properties)
            except ValueError as error:
                return self._refuse(Drop.BAD_EVENT, f'event {name[:80]!r}: {error}')
            if len(name) > MAX_TEXT_CHARS:
                return self._refuse(Drop.BAD_EVENT, f'event {name[:80]!r}…: the name is too long')
            session.event(name, checked, arrival, stamp_ns, EVENTS)
            return True

    def event_json(self, text: str) -> bool:
        """Record a user's event given as JSON: ``{"name": …, "properties": {…}, "stamp": seconds?}``."""
        if self._session is None:
            return False
        try:
            if len(text) > MAX_JSON_BYTES:
                raise ValueError(f'{len(text)} characters: at most {MAX_JSON_BYTES} are taken')
            event = json.loads(text)
            if not isinstance(event, dict):
                raise ValueError(f'a JSON object is wanted, not {type(event).__name__}')
            name = event.get('name')
            if not isinstance(name, str):
                raise ValueError('"name" is missing or no text')
            stamp = event.get('stamp') or 0
            if isinstance(stamp, bool) or not isinstance(stamp, (int, float)):
                raise ValueError(f'"stamp" is {stamp!r}: seconds are wanted')
            if not 0 <= stamp < 1e10:
                raise ValueError(f'"stamp" is {stamp!r}: no time in seconds')
        except (ValueError, RecursionError) as error:
            self._ledger.came(EVENTS, Fate.RECEIVED)
            return self._refuse(Drop.BAD_EVENT, f'events_json: {error}')
        return self.event(name, event.get('properties') or {}, round(stamp * NS_PER_S))

    def annotation(self, stream_name: str, key: str, value: str, stamp_ns: int = 0) -> bool:
        """Record an annotation; False where it is refused, which is counted and warned about.

        ``stamp_ns`` is the ROS time it speaks of, 0 for now. While no session is active nothing is recorded.
        """
        with self._lock:
            session = self._session
            if session is None:
                return False
            arrival = self._arrive(session)
            self._ledger.came(ANNOTATIONS, Fate.RECEIVED)
            size = len(stream_name) + len(key) + len(value)
            try:
                if size > MAX_JSON_BYTES:
                    raise ValueError(f'{size} characters: at most {MAX_JSON_BYTES} are taken')
                check_properties({'stream_name': stream_name, 'key': key, 'value': value})
            except ValueError as error:
                text = f'annotation {key[:80]!r}: {error}'
                return self._refuse(Drop.BAD_EVENT, text, ANNOTATIONS)
            session.annotation(stream_name, key, value, arrival, stamp_ns, ANNOTATIONS)
            return True

    def arrive(self) -> Arrival | None:
        """Return when a message arrives, or None while no session is active: it is not recorded then."""
        with self._lock:
            if self._session is None or self._ending:
                return None
            return self._arrive(self._session)

    def due(self, source: str, *, every: bool = False) -> Arrival | None:
        """Count a message that arrives now; None where it is not to be taken: no session, or decimated.

        ``every``: whatever the rate of the input is.
        """
        with self._lock:
            arrival = self.arrive()
            if arrival is None or self._session is None:
                return None
            return arrival if self._session.due(source, arrival, every=every) else None

    def record(self, source: str, arrival: Arrival, work: Callable[[Session], None]) -> None:
        """Let ``work`` record a message that was due, in the session in which it arrived.

        It runs under the recorder's lock: it must be quick.
        """
        with self._lock:
            session = self._session
            if session is None or arrival.mono_ns < session.started_mono_ns:
                self._ledger.drop(Drop.SESSION_ENDED, source)  # its own has ended meanwhile
            else:
                work(session)

    def at_start(self, begin: Callable[[Session, Arrival], None]) -> None:
        """Have ``begin`` called, under the recorder's lock, whenever a session has started."""
        self._at_start.append(begin)

    def capture(
        self,
        source: str,
        arrival: Arrival,
        *,
        stamp_ns: int,
        frame_id: str,
        make: Callable[[], Made],
    ) -> None:
        """Record a message of a camera or lidar that was due.

        ``frame_id`` is the tf frame whose pose at ``stamp_ns``, a ROS time, the record gets; ``make`` is
        called by a worker. Offline this waits while its queue is full.
        """
        with self._lock:
            session = self._session
            if session is None or arrival.mono_ns < session.started_mono_ns:
                self._ledger.drop(Drop.SESSION_ENDED, source)  # its own has ended meanwhile
                return
            sensors = session.sensors
            ticket = session.capture(source, arrival, stamp_ns, frame_id)
        if ticket is None:
            return

        def finish(made: Made | None) -> None:
            if made is not None:
                with self._lock:
                    sensors.made(source, ticket, made)

        def lose(reason: Drop) -> None:
            with self._lock:
                sensors.lose(source, ticket, reason)

        work = functools.partial(_make, ticket, make)
        self._workers.put(source, Task(work, finish, lose))

    def close(self) -> None:
        """End the threads; no session may be active."""
        self._workers.close()

    def set_properties(self, properties: Mapping[str, PropertyValue]) -> None:
        """Add to the active session's properties what has become known."""
        with self._lock:
            if self._session is not None:
                self._session.set_properties(properties, self._arrive(self._session))

    def know(self, properties: Mapping[str, PropertyValue]) -> None:
        """Add to the properties of this session, and of all that follow, what has become known of the robot."""
        with self._lock:
            self._known |= properties
            if self._session is not None:
                self._session.learn(properties)

    def silent(self, source: str, why: str) -> None:
        """Take note of what is known of an input that nothing may come in on: it is told if nothing does."""
        self._silent[source] = why

    def flush(self) -> None:
        """Make durable what has been recorded: called once every ``spool.flush_s``."""
        with self._lock:
            session = self._session
            if session is not None:
                arrival = self._arrive(session)
                session.record_learnt(arrival)
        if session is not None:
            session.spool.flush(arrival.session_ns)
        self._spool.flush()  # of sessions whose end the disk has refused before
        error = self._spool.error or ''
        if error and error != self._error:
            self._complaints.warn('disk', f'the spool cannot be written: {error}')
        elif self._error and not error:
            self._log.info('the spool can be written again')
        self._error = error

    @property
    def pending_bytes(self) -> int:
        """How much of the active session waits in memory for its part."""
        session = self._session
        return 0 if session is None else session.spool.pending_bytes

    def status(self) -> Status:
        """Return what the recorder is doing."""
        with self._lock:
            session = self._session
            if session is None:
                return Status('', 0.0, 0, 0, 0, '', self._error)
            return self._status(session, self._arrive(session))

    def _status(self, session: Session, arrival: Arrival) -> Status:
        return Status(
            session.identity.session_id,
            arrival.session_ns / NS_PER_S,
            session.pose_samples,
            session.events,
            session.dropped_records,
            session.frame or '',
            self._error,
            session.losses,
        )

    def _fault(self, error: Exception) -> None:
        self._complaints.warn('worker', f'the recorder has a fault: {error!r}')

    def _refuse(self, reason: Drop, text: str, source: str = EVENTS) -> bool:
        self._ledger.drop(reason, source, event=True)
        self._complaints.warn(f'{source} {reason.value}', f'{text}; it is dropped')
        return False

    # Clocks

    def clock_jumped(self) -> None:
        """Follow a jump of the ROS clock: what waits is recorded, then tf is cleared."""
        with self._lock:
            if self._session is not None:
                self._arrive(self._session)
            else:
                self._watch(self._clocks.read())

    def _arrive(self, session: Session) -> Arrival:
        reading = self._clocks.read()
        arrival = session.clock.arrive(reading)
        jumped = self._watch(reading, session, arrival)
        session.follow_clock(arrival)
        if jumped and not arrival.step_ns and self._config.use_sim_time:
            self._ledger.count(Count.CLOCK_RESETS)
        return arrival

    def _watch(
        self, reading: Reading, session: Session | None = None, arrival: Arrival | None = None
    ) -> bool:
        """Clear tf where the ROS clock went back; without use_sim_time that is the wall clock."""
        last, self._last_reading = self._last_reading, reading
        if last is None or last.ros_ns - reading.ros_ns <= _JUMP_NS:
            return False
        if session is not None and arrival is not None:
            session.tf_cleared(arrival)
        self._transforms.clear()
        return True

    def _levels(self) -> Mapping[Level, float]:
        usage = self._spool.usage()
        return {
            Level.SPOOL_BYTES: usage.size_bytes + usage.quarantined_bytes,
            Level.SPOOL_PARTS: usage.parts,
            Level.SPOOL_OLDEST_S: usage.oldest_s,
            Level.DISK_FREE_BYTES: usage.free_bytes,
            Level.UPLOAD_BLOCKED: int(self._upload_blocked()),
        }


def _make(ticket: Ticket, make: Callable[[], Made]) -> Made | None:
    """Make a record, unless it is known by now that it will not be stored."""
    return None if ticket.gone else make()
