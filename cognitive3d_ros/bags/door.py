"""The offline door: one recording becomes one session, through the recorder that the node uses.

"Now" is the receive time of the message at hand, on the wall clock and the monotonic clock alike; the ROS
clock is that too, or the recording's /clock under ``use_sim_time``. Time passes from message to message in the
steps in which the recorder wants to be woken, so that every pose tick is taken at its own time, with what tf
had heard by then: as it would have been live, but as fast as the disk allows and without losing anything to
load.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from cognitive3d_ros.bags.reader import Bag, BagMessage, open_bag, topic_name
from cognitive3d_ros.bags.tf_topics import TfTopics
from cognitive3d_ros.clock import NS_PER_S, ManualClocks
from cognitive3d_ros.counters import Count, Drop, Ledger
from cognitive3d_ros.errors import FormatError, SessionError, SpoolError
from cognitive3d_ros.log import Complaints, Log, StderrLog
from cognitive3d_ros.parameters import Config
from cognitive3d_ros.recording.inputs import Input, Publication
from cognitive3d_ros.recording.properties import Host, os_name
from cognitive3d_ros.recording.recorder import Recorder, Status
from cognitive3d_ros.recording.registry import inputs_of
from cognitive3d_ros.spool import Spool, SpoolLimits

NODE_NAME: Final = 'c3d_record'
CLOCK: Final = '/clock'
_CLOCK: Final = 'rosgraph_msgs/msg/Clock'
_EVENT: Final = 'cognitive3d_msgs/msg/Event'
_ANNOTATION: Final = 'cognitive3d_msgs/msg/Annotation'
_STRING: Final = 'std_msgs/msg/String'

_JUMP_NS: Final = 86_400 * NS_PER_S  # nothing was received for a day: nobody records like that
_PENDING_BYTES: Final = 8 << 20  # more than this is not left in memory
_NO_DISCOVERY_RANGE: Final = ('foxy', 'galactic', 'humble')  # these know no such variable

Handler = Callable[[BagMessage], None]


@dataclass(frozen=True, slots=True)
class BagResult:
    """One recording, recorded: what became of it.

    ``messages`` is how many were used, of ``in_bag``. ``problems`` are sentences on what is wrong with the
    recording or was lost on the way; ``unreadable`` counts messages that could not be deserialised, by topic;
    ``not_held`` names what a session has no place for.
    """

    source: str
    session_id: str
    session_s: float
    in_bag: int
    messages: int
    pose_samples: int
    pose_failures: int
    events: int
    reference_frame: str
    dropped_records: int
    dropped_events: int
    unreadable: Mapping[str, int]
    problems: tuple[str, ...]
    not_held: tuple[str, ...] = ()

    @property
    def lossy(self) -> bool:
        """Whether something was lost, or is wrong in the data."""
        return bool(
            self.problems or self.unreadable or self.dropped_records or self.dropped_events
        )


def record_bag(
    path: Path,
    config: Config,
    spool_dir: Path,
    *,
    odom_tf: str | None = None,
    log: Log | None = None,
    on_progress: Callable[[float], None] | None = None,
) -> BagResult:
    """Record one recording as one session into a spool.

    Sessions that the spool holds without an end are closed first, as the node does when it is configured.

    Args:
        path: what :func:`open_bag` opens.
        config: as for the node; its ``spool.dir`` and what it says of delivery are of no matter here.
        spool_dir: the folder of the spool.
        odom_tf: a topic of nav_msgs/Odometry that tf is derived from, for frames that the recording has no tf
            of.
        log: what people should know; standard error if None.
        on_progress: is told now and then how much is done, 0 to 1.

    Raises:
        BagError: the recording cannot be read, or has no such odometry.
        SessionError: the session cannot start, as when the spool holds its id already.
        SpoolError: the spool cannot be used, or the disk did not take all of the session.
    """
    log = StderrLog() if log is None else log
    limits = SpoolLimits(config.spool.max_bytes, config.spool.min_free_bytes)
    ledger = Ledger()
    with open_bag(path) as bag, ExitStack() as stack:
        if bag.facts.comment and not config.session_comment:
            config = replace(config, session_comment=bag.facts.comment)
        tf = TfTopics(bag, config, odom_tf)
        spool = Spool.open(spool_dir, ledger=ledger, limits=limits, log=log.warning)
        stack.callback(spool.close)
        door = _Door(bag, config, spool, tf, ledger, log)
        stack.callback(door.close)
        return door.run(on_progress)


class _Door:
    """One recording on its way through a recorder; ``_routes`` are what takes the messages of each topic."""

    def __init__(
        self, bag: Bag, config: Config, spool: Spool, tf: TfTopics, ledger: Ledger, log: Log
    ) -> None:
        self._bag = bag
        self._config = config
        self._tf = tf
        self._ledger = ledger
        self._log = log
        now_ns = bag.facts.start_ns
        self._clocks = ManualClocks(now_ns, now_ns, 0 if config.use_sim_time else now_ns)
        self._due_ns = now_ns  # when the recorder wants to be woken
        self._flush_at_s = time.monotonic() + config.spool.flush_s
        self._jumped_ns = 0  # how far the wall clock has jumped ahead of the monotonic clock
        self._messages = 0
        self._problems: list[str] = []
        self._unreadable: Counter[str] = Counter()
        self._recorder = Recorder(
            config,
            spool=spool,
            clocks=self._clocks,
            transforms=tf.buffer,
            ledger=ledger,
            host=_host(bag),
            log=log,
            live=False,
            resolve=topic_name,
        )
        self._routes: dict[str, list[Handler]] = {}
        self._route(tf.topics, self._take_tf)
        has_clock = bag.facts.topics.get(CLOCK) == _CLOCK
        self._tf_tells_time = config.use_sim_time and not has_clock
        if self._tf_tells_time:
            log.warning(
                f'{bag.facts.name} holds no /clock: ROS time is the newest at which tf knows '
                f'where {config.robot_frame} is'
            )
        elif config.use_sim_time:
            self._route([CLOCK], self._take_clock)
        for topic, msgtype in bag.facts.topics.items():
            if msgtype == _EVENT:
                self._route([topic], self._take_event)
            elif msgtype == _ANNOTATION:
                self._route([topic], self._take_annotation)
            elif msgtype == _STRING and topic.endswith('/events_json'):
                self._route([topic], self._take_event_json)

        complaints = Complaints(log, lambda: self._clocks.mono_ns)
        for each in inputs_of(config, self._recorder, ledger, complaints, node=NODE_NAME):
            self._add_input(each)

    def _add_input(self, recorded: Input) -> None:
        """Route the messages of something that the parameters ask for, if the recording has it."""
        facts, topic = self._bag.facts, topic_name(recorded.topic)
        msgtype = facts.topics.get(topic)
        if msgtype is None:
            self._log.warning(f'{recorded.source}: {topic} is not in {facts.name}')
            return
        publisher = facts.publishers.get(topic, '')
        reason = recorded.found(Publication(topic, msgtype, publisher))
        if reason is not None:
            self._log.warning(f'{recorded.source} ({topic}): {reason}')
            return

        def take(message: BagMessage) -> None:
            arrival = recorded.due()
            if arrival is None:
                return
            try:
                content = message.message
            except FormatError:
                self._ledger.drop(Drop.BAD_MESSAGE, recorded.source)
                raise
            recorded.take(content, arrival)

        self._route([topic], take)

    def _route(self, topics: Iterable[str], handler: Handler) -> None:
        for topic in topics:
            if topic in self._bag.facts.topics:
                self._routes.setdefault(topic, []).append(handler)

    def run(self, on_progress: Callable[[float], None] | None) -> BagResult:
        """Record all of it."""
        facts, recorder = self._bag.facts, self._recorder
        recorder.recover()
        self._start_session()
        for message in self._bag.messages(self._routes.keys()):
            self._pass_time(message.receive_ns)
            self._hand_over(message)
            if time.monotonic() >= self._flush_at_s or recorder.pending_bytes > _PENDING_BYTES:
                recorder.flush()
                self._flush_at_s = time.monotonic() + self._config.spool.flush_s
                if on_progress is not None:
                    done_ns = self._clocks.wall_ns - facts.start_ns
                    on_progress(done_ns / max(1, facts.end_ns - facts.start_ns))
        self._pass_time(facts.end_ns)
        if recorder.session_id is None:
            raise SessionError(f'no session of {facts.name}: {recorder.not_ready()}')
        recorder.end_session('shutdown')
        ended = recorder.last_session
        if ended.error:
            raise SpoolError(f'session {ended.session_id} is not whole on the disk: {ended.error}')
        return self._result(ended)

    def close(self) -> None:
        """End the threads of the recorder."""
        self._recorder.close()

    def _hand_over(self, message: BagMessage) -> None:
        """Give a message to all that take those of its topic."""
        self._messages += 1
        takers = self._routes[message.topic]
        faults = [fault for taker in takers if (fault := _fault(taker, message)) is not None]
        if faults:
            self._unreadable[message.topic] += 1
            if self._unreadable[message.topic] == 1:
                self._log.warning(str(faults[0]))

    def _start_session(self) -> None:
        """Start the session as soon as the clock allows: at the first message, or the first ROS time."""
        if self._recorder.session_id is None and self._recorder.not_ready() is None:
            self._recorder.start_session()
            self._wake()

    # Time

    def _pass_time(self, until_ns: int) -> None:
        """Let the receive time go on, waking the recorder whenever it wants to be."""
        gap_ns = until_ns - self._clocks.wall_ns
        if gap_ns > _JUMP_NS:
            self._problems.append(
                f'the receive times jump by {gap_ns / NS_PER_S:.0f} s: taken for a clock that was set'
            )
            self._jumped_ns += gap_ns
        # Files of one recording may overlap: time stands still then.
        until_ns = max(until_ns - self._jumped_ns, self._clocks.mono_ns)
        if self._config.sim_time_on_wire:
            # Session time is ROS time, which stands still from one /clock to the next.
            self._set_time(until_ns)
            self._wake()
            return
        while self._due_ns <= until_ns:
            self._set_time(self._due_ns)
            self._wake()
        self._set_time(until_ns)

    def _set_time(self, mono_ns: int) -> None:
        clocks = self._clocks
        clocks.mono_ns = mono_ns
        clocks.wall_ns = mono_ns + self._jumped_ns
        if not self._config.use_sim_time:
            clocks.ros_ns = clocks.wall_ns

    def _set_ros_time(self, ros_ns: int) -> None:
        """Follow the recording's own clock; a jump back is found when the recorder is woken."""
        if ros_ns != self._clocks.ros_ns:
            self._clocks.ros_ns = ros_ns
            self._start_session()
            self._wake()

    def _wake(self) -> None:
        self._due_ns = self._clocks.mono_ns + self._recorder.poll()

    # Messages

    def _take_tf(self, message: BagMessage) -> None:
        self._tf.take(message)
        if self._tf_tells_time:
            self._set_ros_time(self._tf.newest_ns())

    def _take_clock(self, message: BagMessage) -> None:
        stamp = message.message.clock
        self._set_ros_time(stamp.sec * NS_PER_S + stamp.nanosec)

    def _take_event(self, message: BagMessage) -> None:
        event = message.message
        stamp = event.header.stamp
        stamp_ns = stamp.sec * NS_PER_S + stamp.nanosec
        self._recorder.event(event.name, event.properties_json, stamp_ns)

    def _take_event_json(self, message: BagMessage) -> None:
        self._recorder.event_json(message.message.data)

    def _take_annotation(self, message: BagMessage) -> None:
        said = message.message
        stamp_ns = said.time.sec * NS_PER_S + said.time.nanosec
        self._recorder.annotation(said.stream_name, said.key, said.value, stamp_ns)

    def _refused(self) -> Iterator[str]:
        """Say what a full disk has refused, and what to do."""
        refused = {
            key[1]: count
            for key, count in self._ledger.snapshot().items()
            if isinstance(key, tuple) and key[0] is Drop.SPOOL_FULL and count
        }
        if refused:
            limits = self._config.spool
            each = ', '.join(f'{count} of {name}' for name, count in sorted(refused.items()))
            yield (
                f'the disk is full: records were refused ({each}); of the disk spool.min_free_bytes '
                f'({limits.min_free_bytes}) stay free for others, and the spool may hold spool.max_bytes '
                f'({limits.max_bytes}): make room, or set these'
            )

    def _result(self, status: Status) -> BagResult:
        facts, ledger = self._bag.facts, self._ledger
        taken = status.pose_samples + ledger.value((Drop.SPOOL_FULL, 'gaze'))
        advice = self._tf.advice(use_sim_time=self._config.use_sim_time, poses=taken)
        return BagResult(
            source=facts.name,
            session_id=status.session_id,
            session_s=status.session_s,
            in_bag=facts.message_count,
            messages=self._messages,
            pose_samples=status.pose_samples,
            pose_failures=ledger.value(Count.POSE_FAILURES),
            events=status.events,
            reference_frame=status.reference_frame,
            dropped_records=ledger.value(Count.DROPPED_RECORDS),
            dropped_events=ledger.value(Count.DROPPED_EVENTS),
            unreadable=dict(self._unreadable),
            problems=(*self._bag.problems, *self._problems, *self._refused(), *advice),
            not_held=facts.lost,
        )


def _fault(handler: Handler, message: BagMessage) -> FormatError | None:
    """Give a message to a handler; return why it could not be read, or None."""
    try:
        handler(message)
    except FormatError as error:
        return error
    return None


def _host(bag: Bag) -> Host:
    """Return what the session says of where it comes from: of the robot only what the recording names."""
    distro = bag.facts.distro
    try:
        system = os_name(Path('/etc/os-release').read_text('utf-8', 'replace'))
    except OSError:
        system = 'unknown'
    return Host(
        ros_distro=distro,
        discovery_range=None if distro in _NO_DISCOVERY_RANGE else 'unset',
        node=NODE_NAME,
        os_name=system,
        source=bag.facts.name,
    )
