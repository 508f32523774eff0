"""The clock rule, against right answers worked by hand from the data format's sentences."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cognitive3d_ros.clock import NS_PER_S, ManualClocks, Reading, SessionClock, not_usable

S = NS_PER_S
MS = 1_000_000
WALL = 1_767_225_600 * S  # 2026-01-01


def reading(wall_s=0.0, mono_s=None, ros_s=None):
    """Clocks that have all moved by the same seconds, unless told otherwise."""
    mono_s = wall_s if mono_s is None else mono_s
    ros_s = wall_s if ros_s is None else ros_s
    return Reading(WALL + round(wall_s * S), 5 * S + round(mono_s * S), 90 * S + round(ros_s * S))


@pytest.mark.rule(1, 3, 4)
def test_a_start_within_the_last_second_moves_ahead_of_the_wall_clock():
    first = SessionClock(reading(0.25), last_second=None)
    assert (first.second, first.offset_ns, first.start_ns) == (WALL // S, 0, WALL + S // 4)
    second = SessionClock(reading(0.5), last_second=first.second)
    assert second.second == first.second + 1
    assert second.start_ns == WALL + S  # the last second + 1, exactly
    assert second.offset_ns == S // 2
    # Everything the session records moves by the same.
    assert second.arrive(reading(0.75)).wire_ns == WALL + S + S // 4
    assert second.place(second.arrive(reading(2)), 90 * S + 3 * S // 2).wire_ns == WALL + 2 * S


@pytest.mark.rule(3)
def test_a_later_wall_clock_needs_no_offset():
    clock = SessionClock(reading(10.125), last_second=WALL // S + 5)
    assert (clock.start_ns, clock.offset_ns) == (WALL + 10 * S + S // 8, 0)


@pytest.mark.rule(15, 16)
@pytest.mark.parametrize(
    ('stamp_s', 'wire_s', 'by_stamp'),
    [
        (9.9, 9.9, True),  # 100 ms old
        (11.0, 11.0, True),  # exactly 1 s ahead is still believed
        (11.000000001, 10.0, False),  # more than 1 s ahead
        (10.0 - 3600, 10.0 - 3600, True),  # exactly an hour behind
        (10.0 - 3600.000000001, 10.0, False),
        (None, 10.0, False),  # stamp 0
    ],
)
def test_a_stamp_is_placed_by_its_age_on_the_ros_clock(stamp_s, wire_s, by_stamp):
    ros_ahead = 100_000 * S  # the ROS clock shares nothing with the wall clock but its pace
    clock = SessionClock(Reading(WALL, 0, ros_ahead), last_second=None)
    arrival = clock.arrive(Reading(WALL + 10 * S, 10 * S, ros_ahead + 10 * S))
    stamp = 0 if stamp_s is None else ros_ahead + round(stamp_s * S)
    placed = clock.place(arrival, stamp)
    assert placed.wire_ns == WALL + round(wire_s * S)
    assert placed.by_stamp is by_stamp
    # What is placed at its arrival is also posed at its arrival.
    assert placed.ros_ns == (stamp if by_stamp else ros_ahead + 10 * S)


@pytest.mark.rule(10, 18)
def test_a_simulators_clock_near_zero_stays_off_the_wire():
    clock = SessionClock(Reading(WALL, 0, 3 * S), last_second=None)
    arrival = clock.arrive(
        Reading(WALL + 8 * S, 8 * S, 4 * S)
    )  # a simulator at an eighth of real time
    assert arrival.wire_ns == WALL + 8 * S
    assert clock.place(arrival, 4 * S - 200 * MS).wire_ns == WALL + 8 * S - 200 * MS


@pytest.mark.rule(19)
def test_sim_time_on_wire_is_the_start_plus_the_ros_time_elapsed():
    clock = SessionClock(Reading(WALL, 0, 3 * S), last_second=WALL // S, sim_time_on_wire=True)
    assert clock.start_ns == WALL + S
    arrival = clock.arrive(Reading(WALL + 8 * S, 8 * S, 4 * S))
    assert arrival.wire_ns == WALL + 2 * S
    assert arrival.session_ns == S
    assert arrival.step_ns == 0  # a slow simulator is no step back
    assert clock.place(arrival, 3 * S + S // 2).wire_ns == WALL + S + S // 2


def test_a_wall_clock_that_steps_back_does_not_take_wire_time_with_it():
    clock = SessionClock(reading(0), last_second=None)
    before = clock.arrive(reading(3.0))
    stepped = clock.arrive(reading(-1.9, mono_s=3.1))  # 5 s back
    assert stepped.step_ns == 5 * S
    assert stepped.wire_ns == before.wire_ns + S // 10
    assert clock.offset_ns == 5 * S
    again = clock.arrive(reading(-1.8, mono_s=3.2))
    assert (again.step_ns, again.wire_ns) == (0, before.wire_ns + S // 5)


def test_a_wall_clock_that_steps_forward_is_followed():
    clock = SessionClock(reading(0), last_second=None)
    clock.arrive(reading(3.0))
    arrival = clock.arrive(reading(3600.1, mono_s=3.1))
    assert (arrival.wire_ns, arrival.step_ns) == (WALL + 3600 * S + S // 10, 0)
    assert arrival.session_ns == 3 * S + S // 10  # session time is monotonic


@pytest.mark.parametrize(('back_ms', 'steps'), [(50, 0), (51, 1)])
def test_only_more_than_50_ms_is_a_step(back_ms, steps):
    clock = SessionClock(reading(0), last_second=None)
    arrival = clock.arrive(reading(1 - back_ms / 1000, mono_s=1))
    assert bool(arrival.step_ns) is bool(steps)


def test_a_simulated_clock_that_jumps_to_zero_goes_on_on_the_wire():
    clock = SessionClock(Reading(WALL, 0, 100 * S), last_second=None, sim_time_on_wire=True)
    last = clock.arrive(Reading(WALL + 9 * S, 9 * S, 109 * S))
    reset = clock.arrive(Reading(WALL + 10 * S, 10 * S, 0))
    assert reset.step_ns == 109 * S
    assert reset.wire_ns == last.wire_ns
    assert clock.arrive(Reading(WALL + 11 * S, 11 * S, S)).wire_ns == last.wire_ns + S


@given(
    st.lists(
        st.tuples(st.integers(0, 10 * S), st.integers(-3600 * S, 3600 * S)),
        min_size=1,
        max_size=40,
    )
)
def test_wire_time_never_goes_back_by_more_than_a_step_is(moves):
    clock = SessionClock(reading(0), last_second=None)
    wall_ns, mono_ns, last_ns = WALL, 5 * S, WALL
    for passed_ns, step_ns in moves:
        mono_ns += passed_ns
        wall_ns += passed_ns + step_ns
        arrival = clock.arrive(Reading(wall_ns, mono_ns, 0))
        assert arrival.wire_ns >= last_ns - 50 * MS
        assert arrival.wire_ns == wall_ns + clock.offset_ns
        last_ns = arrival.wire_ns


def test_when_no_session_can_start():
    unset = Reading(3 * 86_400 * S, 0, 3 * 86_400 * S)
    assert '2020' in not_usable(unset, live=True, use_sim_time=False)
    assert not_usable(unset, live=False, use_sim_time=False) is None  # a bag is of when it is
    assert '/clock' in not_usable(Reading(WALL, 0, 0), live=True, use_sim_time=True)
    assert not_usable(Reading(WALL, 0, 1), live=True, use_sim_time=True) is None


def test_manual_clocks_stand_where_they_are_put():
    clocks = ManualClocks(wall_ns=WALL)
    clocks.advance(S)
    assert clocks.read() == Reading(WALL + S, S, S)


def test_a_wall_clock_that_stands_still_is_one_long_step():
    """Wire time goes on with the monotonic clock, however often it is looked at."""
    for period_ms in (1, 7, 50, 60, 100):
        clock = SessionClock(reading(0), last_second=None)
        clock.arrive(reading(1))
        first_steps, last_ns = 0, WALL + S
        for index in range(1, 5001):
            mono_s = 1 + index * period_ms / 1000
            arrival = clock.arrive(reading(1, mono_s=mono_s))
            first_steps += arrival.step_ns > 0 and not arrival.falling
            assert arrival.wire_ns >= last_ns
            assert -50 * MS <= arrival.wire_ns - WALL - round(mono_s * S) <= 0
            last_ns = arrival.wire_ns
        assert first_steps == 1
        assert arrival.wire_ns == WALL + round(mono_s * S)
        # It runs again from where it stood, and then is set right.
        runs = clock.arrive(reading(1.1, mono_s=mono_s + 0.1))
        assert (runs.step_ns, runs.falling) == (0, False)
        assert runs.wire_ns == last_ns + S // 10
        right = clock.arrive(reading(mono_s + 0.2))
        assert right.step_ns == 0
        assert right.wire_ns > runs.wire_ns


def test_steps_back_one_after_the_other_are_steps_of_their_own():
    clock = SessionClock(reading(0), last_second=None)
    wall_s = mono_s = 0.0
    for _ in range(5):
        for back_s in (0, 0, 5):
            mono_s += 0.2
            wall_s += 0.2 - back_s
            arrival = clock.arrive(reading(wall_s, mono_s=mono_s))
            assert (arrival.step_ns, arrival.falling) == (back_s * S, False)
    assert clock.arrive(reading(wall_s, mono_s=mono_s)).wire_ns == WALL + round(mono_s * S)


def test_small_steps_back_add_up():
    """None of them is more than 50 ms, and wire time is never more than 50 ms behind for them."""
    clock = SessionClock(reading(0), last_second=None)
    told = 0
    for index in range(1, 21):
        arrival = clock.arrive(reading(index - index * 0.03, mono_s=index))
        told += arrival.step_ns
        assert WALL + index * S - 50 * MS <= arrival.wire_ns <= WALL + index * S
    assert told == clock.offset_ns == 600 * MS
