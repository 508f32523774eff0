"""One active session: what it records, from ``c3d.sessionStart`` to ``c3d.sessionEnd``.

It turns values and times into stream entries and hands them to the spool. Every method runs under the
recorder's lock and touches memory only, but for :meth:`Session.end`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TypeVar

from cognitive3d_ros.clock import NS_PER_S, Arrival, Placed, SessionClock
from cognitive3d_ros.conventions import OPTICAL_FORWARD_Z, Convention, resolve_gaze_convention
from cognitive3d_ros.counters import BETWEEN_SESSIONS, Count, Drop, Fate, Key, Ledger, Level
from cognitive3d_ros.log import Complaints, Log
from cognitive3d_ros.parameters import Config
from cognitive3d_ros.quaternions import about_z, multiply, optical_to_body
from cognitive3d_ros.recording.accounts import (
    LOSSES,
    PROPERTY,
    Account,
    accounts,
    configured,
    losses,
)
from cognitive3d_ros.recording.gate import ChangeGate
from cognitive3d_ros.recording.inputs import Decimation
from cognitive3d_ros.recording.poses import (
    TF_WAIT_NS,
    FrameChoice,
    PoseSource,
    Sample,
    Skip,
    Tick,
)
from cognitive3d_ros.recording.recovery import ENDED
from cognitive3d_ros.recording.sensors import SensorRecords, Ticket, health_series
from cognitive3d_ros.spool import SessionSpool
from cognitive3d_ros.tf import Miss, Transform, TransformSource
from cognitive3d_ros.wire import bodies
from cognitive3d_ros.wire.bodies import PropertyValue, Vector3
from cognitive3d_ros.wire.identity import SessionIdentity
from cognitive3d_ros.wire.numbers import TICKS_PER_S, elapsed, rounded, ticks, vector

HEALTH_NS = 5 * NS_PER_S
RETRY_NS = 10_000_000  # how soon a record that waits for tf is tried again
_CATCH_UP_NS = NS_PER_S  # ticks missed for longer are skipped, and counted
_CATCH_UP_OFFLINE_NS = (
    3600 * NS_PER_S
)  # a recording may have gaps: all but absurd ones are sampled
_MAX_WAITING = 1_000  # events that may wait for tf at a time

_ORIGIN: Vector3 = (0.0, 0.0, 0.0)
_OWN = 'recorder'  # what the loss of its own events is counted under: they came in on no input
S = TypeVar('S')


@dataclass(frozen=True, slots=True)
class _Event:
    """An event that waits for the robot's position at its time."""

    name: str
    properties: Mapping[str, PropertyValue]
    wire_ns: int
    ros_ns: int
    deadline_mono_ns: int
    source: str  # the input it came in on; empty for the recorder's own


@dataclass(frozen=True, slots=True)
class Baseline:
    """What the ledger held when counting for a session began."""

    session: Mapping[Key, int]
    between: Mapping[Key, int]

    def since(self, now: Mapping[Key, int], key: Key) -> int:
        """Return what has been counted since."""
        base = self.between if key in BETWEEN_SESSIONS else self.session
        return now.get(key, 0) - base.get(key, 0)

    def counted(self, now: Mapping[Key, int]) -> dict[Key, int]:
        """Return all that has been counted since."""
        return {key: self.since(now, key) for key in now}


class Session:
    """The state of one session; see the module."""

    def __init__(
        self,
        config: Config,
        *,
        identity: SessionIdentity,
        clock: SessionClock,
        spool: SessionSpool,
        transforms: TransformSource,
        ledger: Ledger,
        baseline: Baseline,
        levels: Callable[[], Mapping[Level, float]],
        log: Log,
        complaints: Complaints,
        live: bool,
    ) -> None:
        self.identity = identity
        self.clock = clock
        self.spool = spool
        self._complaints = complaints
        self.sensors = SensorRecords(
            config, spool=spool, transforms=transforms, ledger=ledger, complaints=complaints
        )
        self.pose_samples = 0
        self.events = 0
        self._config = config
        self._transforms = transforms
        self._ledger = ledger
        self._baseline = baseline
        self._levels = levels
        self._log = log
        self._live = live
        self.started_mono_ns = 0
        self._convention = Convention(config.pose_convention)
        self._optical = (
            bool(config.gaze_frame)
            and resolve_gaze_convention(config.gaze_frame, config.gaze_frame_convention)
            == OPTICAL_FORWARD_Z
        )
        self._yaw = about_z(config.mesh_yaw_offset_deg)
        # What the ROS clock read at a tick that is taken late is known where it is a wall clock, or
        # where session time is ROS time; a simulator's pace against the wall clock is not.
        self._ticks_backwards = config.sim_time_on_wire or not config.use_sim_time
        self._tick_index = 0
        self._next_health_ns = HEALTH_NS
        self._frames = FrameChoice(config)
        self._poses = PoseSource(config, transforms)
        self._ticks: deque[Tick] = deque()
        self._waiting: deque[_Event] = deque()
        self._point: Vector3 | None = None  # the robot's last known position, in the scene
        self._latest_event_ns = clock.start_ns
        self._registered = False  # the robot's Dynamic Object
        self._fallen_ns = 0  # how far a clock that stands still has fallen behind unsaid
        self._gate = ChangeGate()
        self._sensor_series = [
            series for source in self.sensors.sources for series in health_series(source)
        ]
        self._decimations = {
            f'{kind}.{member.name}': Decimation(member.rate_hz)
            for kind, members in (
                ('camera', config.cameras),
                ('lidar', config.lidars),
                ('topic', config.topics),
            )
            for member in members
        }
        self._properties: dict[str, PropertyValue] = {}
        self._learnt: dict[str, PropertyValue] = {}  # properties that the next flush records
        self._states: dict[str, object] = {}
        self.accounts: list[Account] = []  # once it has ended

    def start(self, properties: Mapping[str, PropertyValue], arrival: Arrival) -> None:
        """Record the session's properties and its first event."""
        self.started_mono_ns = arrival.mono_ns
        self.set_properties(properties, arrival)
        self._choose_frame(arrival)
        self._record(self._place('c3d.sessionStart', {}, arrival), arrival, last_chance=True)

    def set_properties(self, properties: Mapping[str, PropertyValue], arrival: Arrival) -> None:
        """Record session properties: those that are new or have changed."""
        changed = {
            key: value
            for key, value in properties.items()
            if key not in self._properties
            or (type(value), value) != (type(self._properties[key]), self._properties[key])
        }
        if changed:
            self._properties |= changed
            self.spool.append(
                'gaze',
                'properties',
                bodies.properties_entry(changed),
                time_ns=arrival.wire_ns,
                at_ns=arrival.session_ns,
            )

    def learn(self, properties: Mapping[str, PropertyValue]) -> None:
        """Take note of properties that have become known: they are recorded together, at the next flush."""
        self._learnt |= properties

    def record_learnt(self, arrival: Arrival) -> None:
        """Record the properties that have become known."""
        learnt, self._learnt = self._learnt, {}
        self.set_properties(learnt, arrival)

    @property
    def dropped_records(self) -> int:
        """What this session was to record and did not, events among it."""
        now = self._ledger.snapshot()
        counts = (Count.DROPPED_RECORDS, Count.DROPPED_EVENTS)
        return sum(self._baseline.since(now, count) for count in counts)

    @property
    def losses(self) -> str:
        """What this session has lost, by input and reason; see :func:`accounts.losses`."""
        return losses(self._baseline.counted(self._ledger.snapshot()))

    # The pose timeline

    @property
    def frame(self) -> str | None:
        """The reference frame, once it is chosen."""
        return self._frames.frame

    def _choose_frame(self, arrival: Arrival) -> str | None:
        known = self._frames.frame
        if known is not None:
            return known
        frame = self._frames.choose(self._transforms, arrival.session_ns)
        if frame is not None:
            self.set_properties({'c3d.ros.reference_frame': frame}, arrival)
            if frame != self._frames.preferred:
                self._log.warning(
                    f'session {self.identity.session_id} is recorded in {frame!r}: '
                    f'tf had no {self._frames.preferred!r} for {self._config.robot_frame!r} within '
                    f'{self._config.reference_wait_s:g} s'
                )
        return frame

    def _tick_ns(self, index: int) -> int:
        return round(index * NS_PER_S / self._config.sample_rate_hz)

    def _last_tick(self, session_ns: int) -> int:
        """Return the index of the last tick that is due at a session time; -1 before the first."""
        index = int(session_ns * self._config.sample_rate_hz / NS_PER_S) + 1
        while index >= 0 and self._tick_ns(index) > session_ns:
            index -= 1
        return index

    def take_ticks(self, arrival: Arrival) -> None:
        """Take the pose ticks that are due, each at its own time however late this call is.

        Those that are too late to be caught up with are skipped in one go: a simulated clock may leap by
        years.
        """
        frame = self._choose_frame(arrival)
        first, last = self._tick_index, self._last_tick(arrival.session_ns)
        if last < first:
            return
        self._tick_index = last + 1
        if frame is None:
            if not self._frames.waiting(arrival.session_ns):
                self._ledger.count(Count.POSE_FAILURES, last + 1 - first)
            return
        catch_up_ns = _CATCH_UP_NS if self._live else _CATCH_UP_OFFLINE_NS
        taken = max(first, self._last_tick(arrival.session_ns - catch_up_ns - 1) + 1)
        if taken > first:
            self._ledger.count(Count.POSE_FAILURES, taken - first)
            self._complaints.warn(
                'ticks',
                f'{taken - first} pose samples are skipped: the clock of the session went on by '
                f'{(arrival.session_ns - self._tick_ns(first)) / NS_PER_S:.1f} s at once',
            )
        for index in range(taken, last + 1):
            tick_ns = self._tick_ns(index)
            late_ns = arrival.session_ns - tick_ns if self._ticks_backwards else 0
            late_mono_ns = 0 if self._config.sim_time_on_wire else late_ns
            self._ticks.append(
                Tick(
                    # The clocks are read one after the other: now and then the first tick would be early.
                    wire_ns=max(arrival.wire_ns - late_ns, self.clock.start_ns),
                    ros_ns=arrival.ros_ns - late_ns,
                    session_ns=tick_ns,
                    deadline_mono_ns=arrival.mono_ns - late_mono_ns + TF_WAIT_NS,
                )
            )

    def resolve(self, arrival: Arrival, *, last_chance: bool = False) -> None:
        """Record what tf has reached, or what has waited for it long enough."""
        self.sensors.resolve(arrival, last_chance=last_chance)
        while self._ticks:
            tick = self._ticks[0]
            final = last_chance or arrival.mono_ns >= tick.deadline_mono_ns
            outcome = self._poses.sample(self._frames.frame or '', tick, last_chance=final)
            if outcome is None:
                break
            self._ticks.popleft()
            if isinstance(outcome, Sample):
                self._sample(tick, outcome, arrival)
            else:
                self._skip(outcome)
        while self._waiting:
            event = self._waiting[0]
            final = (
                last_chance
                or arrival.mono_ns >= event.deadline_mono_ns
                or len(self._waiting) > _MAX_WAITING
            )
            if not self._record(event, arrival, last_chance=final):
                break
            self._waiting.popleft()

    def _skip(self, skip: Skip) -> None:
        self._ledger.count(Count.POSE_FAILURES)
        if skip is Skip.STALE:
            self._ledger.count(Count.STALE_POSES)
        elif skip is Skip.GAZE:
            self._ledger.count(Count.GAZE_FRAME_FAILURES)

    def _sample(self, tick: Tick, sample: Sample, arrival: Arrival) -> None:
        gaze = sample.gaze.rotation
        rotation = self._convention.pose_rotation_tuple(
            optical_to_body(gaze) if self._optical else gaze
        )
        if rotation is None or not _usable(sample.gaze) or not _usable(sample.robot):
            self._skip(Skip.GAZE if self._config.gaze_frame else Skip.TF)
            return
        point = self._convention.position_tuple(sample.robot.translation)
        position = self._convention.position_tuple(sample.gaze.translation)
        self._point = point
        stored = self.spool.append(
            'gaze',
            'pose',
            bodies.pose_entry(tick.wire_ns, position, rotation),
            time_ns=tick.wire_ns,
            at_ns=arrival.session_ns,
            # Kept by the journal: where a session that never ended is closed.
            context=f'{{"p":{vector(point)}}}'.encode(),
        )
        self.pose_samples += stored
        if stored and self._config.robot_dynamic_object:
            self._snapshot(tick, sample.robot, point, arrival)

    def _snapshot(self, tick: Tick, robot: Transform, point: Vector3, arrival: Arrival) -> None:
        """Record where the robot's Dynamic Object is: the robot frame, turned by the mesh's yaw."""
        rotation = self._convention.object_rotation_tuple(multiply(robot.rotation, self._yaw))
        if rotation is None:
            return
        config, first = self._config, not self._registered
        entry = bodies.snapshot_entry(
            config.robot_object_id, tick.wire_ns, point, rotation, first=first
        )
        entries = [entry]
        if first:
            manifest = bodies.manifest_entry(
                config.robot_object_id, config.robot_display_name, config.robot_mesh
            )
            entries.insert(0, manifest)
        stored = all(
            self.spool.append(
                'dynamics', 'pose', entry, time_ns=tick.wire_ns, at_ns=arrival.session_ns
            )
            for entry in entries
        )
        self._registered = self._registered or stored

    # Events

    def event(
        self,
        name: str,
        properties: Mapping[str, PropertyValue],
        arrival: Arrival,
        stamp_ns: int = 0,
        source: str = '',
    ) -> None:
        """Record an event at its stamp, or at its arrival; where the robot was, as soon as tf knows.

        ``source`` is the input it came in on; empty for the recorder's own events.
        """
        placed = self.clock.place(arrival, stamp_ns)
        if stamp_ns and not placed.by_stamp:
            self._ledger.count(Count.STAMP_FALLBACKS)
        self._waiting.append(self._place(name, properties, arrival, placed, source))
        self.resolve(arrival)

    def annotation(
        self, stream_name: str, key: str, value: str, arrival: Arrival, stamp_ns: int, source: str
    ) -> None:
        """Record an annotation: an event placed by the clock rule, which says its instant itself too.

        That is without the rule of the hour, and may lie before the session.
        """
        instant = ticks(self.clock.instant(arrival, stamp_ns))
        properties: dict[str, PropertyValue] = {
            'annotation_time': rounded(instant / TICKS_PER_S),
            'stream_name': stream_name,
            'key': key,
            'value': value,
        }
        self.event('c3d.annotation', properties, arrival, stamp_ns, source)

    def _place(
        self,
        name: str,
        properties: Mapping[str, PropertyValue],
        arrival: Arrival,
        placed: Placed | None = None,
        source: str = '',
    ) -> _Event:
        wire_ns, ros_ns = (
            (arrival.wire_ns, arrival.ros_ns)
            if placed is None
            else (placed.wire_ns, placed.ros_ns)
        )
        # Nothing but a camera or lidar frame precedes sessionStart.
        wire_ns = max(wire_ns, self.clock.start_ns)
        return _Event(name, properties, wire_ns, ros_ns, arrival.mono_ns + TF_WAIT_NS, source)

    def _record(
        self,
        event: _Event,
        arrival: Arrival,
        *,
        last_chance: bool,
        context: bytes | None = None,
    ) -> bool:
        """Record an event; False while tf may still reach its time."""
        point = self._point
        if self._frames.frame is not None:
            robot = self._poses.robot_at(self._frames.frame, event.ros_ns)
            if robot is Miss.FUTURE and not last_chance:
                return False
            if isinstance(robot, Transform) and _usable(robot):
                point = self._convention.position_tuple(robot.translation)
        properties = dict(event.properties)
        if point is None:
            properties['c3d.position_unknown'] = True
        stored = self.spool.append(
            'events',
            'events',
            bodies.event_entry(event.name, event.wire_ns, point or _ORIGIN, properties),
            time_ns=event.wire_ns,
            at_ns=arrival.session_ns,
            source=event.source or _OWN,
            context=context,
        )
        if stored:
            self.events += 1
            self._latest_event_ns = max(self._latest_event_ns, event.wire_ns)
            if event.source:
                self._ledger.came(event.source, Fate.STORED)
        return True

    # Clock and health

    def follow_clock(self, arrival: Arrival) -> None:
        """Record that the source clock stepped back and wire time went on.

        Of a clock that stands still the first step is recorded, and the rest when it runs again.
        """
        if arrival.falling:
            self._fallen_ns += arrival.step_ns
            return
        self._clock_ran_again(arrival)
        if arrival.step_ns:
            self._ledger.count(Count.CLOCK_RESETS)
            self._clock_step(arrival.step_ns, arrival)

    def _clock_ran_again(self, arrival: Arrival) -> None:
        fallen_ns, self._fallen_ns = self._fallen_ns, 0
        if fallen_ns:
            self._clock_step(fallen_ns, arrival)

    def _clock_step(self, step_ns: int, arrival: Arrival) -> None:
        self.event(
            'c3d.clock_step',
            {
                'step_s': rounded(step_ns / NS_PER_S),
                'offset_s': rounded(self.clock.offset_ns / NS_PER_S),
            },
            arrival,
        )

    def tf_cleared(self, arrival: Arrival) -> None:
        """Record what waits with what tf knows now: it is about to forget it."""
        self.resolve(arrival, last_chance=True)
        self._poses.clock_jumped()

    def health(self, arrival: Arrival) -> None:
        """Record the health series where they are due: every 5 s of session time."""
        if arrival.session_ns >= self._next_health_ns:
            self._next_health_ns = (arrival.session_ns // HEALTH_NS + 1) * HEALTH_NS
            self._health(arrival)

    def _health(self, arrival: Arrival) -> None:
        now = self._ledger.snapshot()
        values: dict[str, float] = {
            count.value: self._baseline.since(now, count) for count in Count
        }
        values |= {level.value: value for level, value in self._levels().items()}
        values |= {name: self._baseline.since(now, key) for name, key in self._sensor_series}
        self._samples(arrival, list(values.items()))

    def _samples(
        self, arrival: Arrival, samples: Sequence[tuple[str, float]], source: str = ''
    ) -> bool:
        wire_ns = max(arrival.wire_ns, self.clock.start_ns)
        return self.spool.append(
            'sensors',
            'series',
            bodies.samples_entry(wire_ns, samples),
            time_ns=wire_ns,
            at_ns=arrival.session_ns,
            source=source,
        )

    # Messages

    def due(self, source: str, arrival: Arrival, *, every: bool = False) -> bool:
        """Count a message of an input; say whether it is to be taken, by the input's rate."""
        self._ledger.came(source, Fate.RECEIVED)
        decimation = self._decimations.get(source)
        if every or decimation is None or decimation.passes(arrival.session_ns):
            return True
        self._ledger.came(source, Fate.DECIMATED)
        return False

    def capture(
        self, source: str, arrival: Arrival, stamp_ns: int, frame_id: str
    ) -> Ticket | None:
        """Begin with a message of a camera or lidar that is due: see :meth:`SensorRecords.take`."""
        placed = self.clock.place(arrival, stamp_ns)
        if stamp_ns and not placed.by_stamp:
            self._ledger.count(Count.STAMP_FALLBACKS)
        frame = self._choose_frame(arrival)
        return self.sensors.take(source, arrival, placed, frame_id, frame)

    def state(self, source: str, make: Callable[[], S]) -> S:
        """Return what an input keeps for the length of this session, made when first asked for."""
        state = self._states.get(source)
        if state is None:
            state = self._states[source] = make()
        return state  # type: ignore[return-value] # an input asks for one type only

    def samples(self, source: str, samples: Sequence[tuple[str, float]], arrival: Arrival) -> None:
        """Record the samples of one message of an input, as far as they pass the gate.

        Values that are no finite numbers are no samples. They carry the time at which they arrived.
        """
        finite = [sample for sample in samples if isfinite(sample[1])]
        if not finite:
            self._ledger.drop(Drop.NO_VALUE, source)
            return
        passed = self._gate.passed(finite, arrival.wire_ns)
        if not passed:
            self._ledger.came(source, Fate.GATED)
        elif self._samples(arrival, passed, source):
            self._ledger.came(source, Fate.STORED)

    def due_in_ns(self, arrival: Arrival) -> int:
        """Return how long this session can be left alone, in session time."""
        next_ns = min(self._tick_ns(self._tick_index), self._next_health_ns)
        due_ns = max(0, next_ns - arrival.session_ns)
        first = [queue[0].deadline_mono_ns for queue in (self._ticks, self._waiting) if queue]
        of_sensors = self.sensors.deadline_ns()
        if of_sensors is not None:
            first.append(of_sensors)
        if self._live:
            return min(due_ns, RETRY_NS) if first else due_ns
        # Offline tf changes with messages only: what waits needs no other try than its last.
        return min([due_ns, *(deadline_ns - arrival.mono_ns for deadline_ns in first)])

    # The end

    def end(self, reason: str, arrival: Arrival) -> None:
        """Record what still waits, the last health and ``c3d.sessionEnd``, durably."""
        self.take_ticks(arrival)
        self._clock_ran_again(arrival)
        self.resolve(arrival, last_chance=True)
        self.sensors.end()
        self._health(arrival)
        self.accounts = accounts(
            self._baseline.session, self._ledger.snapshot(), configured(self._config)
        )
        self.learn({f'{PROPERTY}{account.source}': str(account) for account in self.accounts})
        if lost := self.losses:
            self.learn({LOSSES: lost})
        self.record_learnt(arrival)
        wire_ns = max(arrival.wire_ns, self._latest_event_ns)
        length_s = elapsed(self.clock.start_ns, wire_ns)
        event = _Event(
            'c3d.sessionEnd',
            {'Reason': reason, 'sessionlength': length_s},
            wire_ns,
            arrival.ros_ns,
            arrival.mono_ns,
            source='',
        )
        self._record(event, arrival, last_chance=True, context=ENDED)
        self.spool.finish()


def _usable(transform: Transform) -> bool:
    """Say whether a transform is made of finite numbers of a size that a float32 holds."""
    return all(-3e38 < value < 3e38 for value in transform.translation)
