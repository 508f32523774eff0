"""The clock rule: which wire time a record gets.

Source: data format, Sessions and Timestamps. ROS time never reaches the platform: every stamp is Unix epoch
time on the robot's wall clock, moved by one offset per session.

``Reading`` is one look at three clocks: the wall clock (stamps only), the monotonic clock (intervals) and the
ROS clock (ages, tf). They are read together when a message arrives, however long its record then waits.
All times are integer nanoseconds; a ROS time of 0 means that the ROS clock has not started.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

NS_PER_S = 1_000_000_000

_AHEAD_NS = 1 * NS_PER_S  # a stamp further ahead of the ROS clock than this is not believed
_BEHIND_NS = 3600 * NS_PER_S  # nor one further behind
_STEP_NS = 50_000_000  # a source that falls behind the monotonic clock by more has stepped back
_EARLIEST_WALL_NS = 1_577_836_800 * NS_PER_S  # 2020-01-01: a live clock before that was never set


class Reading(NamedTuple):
    """The three clocks at one moment."""

    wall_ns: int
    mono_ns: int
    ros_ns: int


class Clocks(Protocol):
    """Reads all clocks together."""

    def read(self) -> Reading:
        """Return one look at the three clocks."""
        ...


class ManualClocks:
    """Clocks that stand where they are put: the offline door's, and the tests'."""

    def __init__(self, wall_ns: int = 0, mono_ns: int = 0, ros_ns: int = 0) -> None:
        self.wall_ns, self.mono_ns, self.ros_ns = wall_ns, mono_ns, ros_ns

    def read(self) -> Reading:
        """Return the clocks as they were put."""
        return Reading(self.wall_ns, self.mono_ns, self.ros_ns)

    def advance(self, delta_ns: int) -> None:
        """Let time pass on all three clocks alike."""
        self.wall_ns += delta_ns
        self.mono_ns += delta_ns
        self.ros_ns += delta_ns


def not_usable(reading: Reading, *, live: bool, use_sim_time: bool) -> str | None:
    """Say why no session can start at this reading, or None.

    A live wall clock before 2020 was never set (robots boot in 1970); under ``use_sim_time`` the first
    non-zero /clock is waited for.
    """
    if live and reading.wall_ns < _EARLIEST_WALL_NS:
        return (
            f'the wall clock reads {reading.wall_ns // NS_PER_S} s, before 2020: it is not set yet'
        )
    if use_sim_time and reading.ros_ns <= 0:
        return 'use_sim_time is on and no /clock has arrived yet'
    return None


class Arrival(NamedTuple):
    """When something arrived, in one session.

    ``wire_ns`` is its wire time, ``session_ns`` the session time (monotonic, or simulated under
    ``sim_time_on_wire``), ``step_ns`` how far the source clock was found to have stepped back; ``falling``
    says that it goes on doing so since the look before: it stands still.
    """

    wire_ns: int
    ros_ns: int
    mono_ns: int
    session_ns: int
    step_ns: int = 0
    falling: bool = False


class Placed(NamedTuple):
    """Where the clock rule puts a record: its wire time, and the ROS time at which it is posed."""

    wire_ns: int
    ros_ns: int
    by_stamp: bool


class SessionClock:
    """The one wire clock of a session.

    The source clock is the wall clock, or the start plus the ROS time elapsed under ``sim_time_on_wire``; wire
    time is source plus ``offset_ns``. A source that steps back adds the step to the offset, so that wire time
    goes on; a step forward is followed. A wall clock that stands still steps back all the time: once it has
    been found out, wire time goes on with the monotonic clock until it runs again. Not thread safe: the
    recorder's lock guards it.
    """

    def __init__(
        self, reading: Reading, *, last_second: int | None, sim_time_on_wire: bool = False
    ) -> None:
        """Start the session now, or one second after the last issued id where that is later."""
        earliest = (last_second + 1) * NS_PER_S if last_second is not None else reading.wall_ns
        self.start_ns = max(reading.wall_ns, earliest)
        self.offset_ns = self.start_ns - reading.wall_ns
        self._on_wire = sim_time_on_wire
        self._first = reading
        self._last_source_ns = self._source(reading)
        self._last_mono_ns = reading.mono_ns
        self._lead_ns = self._lead(reading, self._last_source_ns)  # the greatest since a step
        self._falling = False  # it stepped back at the last look

    @property
    def second(self) -> int:
        """The whole second that names the session."""
        return self.start_ns // NS_PER_S

    def _source(self, reading: Reading) -> int:
        if self._on_wire:
            return self._first.wall_ns + reading.ros_ns - self._first.ros_ns
        return reading.wall_ns

    def _lead(self, reading: Reading, source_ns: int) -> int:
        """Return how far the source is ahead of the clock that it must keep up with."""
        # A simulated clock may run slow or stand still: only going back is a step of it.
        return source_ns if self._on_wire else source_ns - reading.mono_ns

    def arrive(self, reading: Reading) -> Arrival:
        """Place this moment on the wire clock, following steps of the source clock."""
        source_ns = self._source(reading)
        step_ns, falling = 0, False
        passed_ns = reading.mono_ns - self._last_mono_ns
        if passed_ns >= 0:
            # A clock that runs is far above half of what has passed, one that steps back is below nothing.
            stands = 0 <= source_ns - self._last_source_ns <= passed_ns // 2
            falling = self._falling and stands and not self._on_wire
            lead_ns = self._lead(reading, source_ns)
            behind_ns = self._lead_ns - lead_ns
            if behind_ns > (0 if falling else _STEP_NS):
                self.offset_ns += behind_ns
                self._lead_ns, step_ns = lead_ns, behind_ns
            self._lead_ns = max(self._lead_ns, lead_ns)
            self._falling = falling or step_ns > 0
            self._last_source_ns, self._last_mono_ns = source_ns, reading.mono_ns
        wire_ns = source_ns + self.offset_ns
        session_ns = (
            wire_ns - self.start_ns if self._on_wire else reading.mono_ns - self._first.mono_ns
        )
        return Arrival(wire_ns, reading.ros_ns, reading.mono_ns, session_ns, step_ns, falling)

    @staticmethod
    def place(arrival: Arrival, stamp_ns: int) -> Placed:
        """Place a record by its header stamp: wall time now less its age on the ROS clock.

        A stamp of zero, more than 1 s ahead of the ROS clock or more than an hour behind it places the
        record at its arrival, and it is then posed at its arrival too.
        """
        age_ns = arrival.ros_ns - stamp_ns
        if stamp_ns == 0 or not -_AHEAD_NS <= age_ns <= _BEHIND_NS:
            return Placed(arrival.wire_ns, arrival.ros_ns, by_stamp=False)
        return Placed(arrival.wire_ns - age_ns, stamp_ns, by_stamp=True)

    @staticmethod
    def instant(arrival: Arrival, stamp_ns: int) -> int:
        """Return the wire time of an instant that an annotation speaks of: it may lie far back.

        A stamp of zero, or more than 1 s ahead of the ROS clock, is the arrival.
        """
        age_ns = arrival.ros_ns - stamp_ns
        return arrival.wire_ns - age_ns if stamp_ns and age_ns >= -_AHEAD_NS else arrival.wire_ns
