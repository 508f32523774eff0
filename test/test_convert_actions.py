"""What becomes of goals: each change once, whatever the server repeats."""

import random
from types import SimpleNamespace as Of

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cognitive3d_ros.convert import actions
from cognitive3d_ros.convert.actions import GoalChange, Goals
from cognitive3d_ros.convert.outcome import Dropped

S = 1_000_000_000
ROS = 1_767_225_600 * S  # the ROS time at which the session starts
ACCEPTED, EXECUTING, CANCELING, SUCCEEDED, CANCELED, ABORTED = range(1, 7)


def uuid(n):
    return np.frombuffer(n.to_bytes(16, 'big'), np.uint8)


def goal(n, status, accepted_s=0.0):
    """A goal accepted so many seconds after the session's start; None: without a stamp."""
    stamp_ns = 0 if accepted_s is None else ROS + round(accepted_s * S)
    stamp = Of(sec=stamp_ns // S, nanosec=stamp_ns % S)
    return Of(goal_info=Of(goal_id=Of(uuid=uuid(n)), stamp=stamp), status=status)


def take(goals, at_s, *statuses):
    """Return (what, number of the goal, seconds it took) of what is new."""
    changes = goals.take(Of(status_list=list(statuses)), round(at_s * S), ROS + round(at_s * S))
    return [
        (change.what, int(change.goal_id, 16), change.duration_ns and change.duration_ns / S)
        for change in changes
    ]


def test_a_goal_from_beginning_to_end():
    goals = Goals()
    assert take(goals, 1, goal(7, ACCEPTED, 1)) == [('started', 7, None)]
    assert take(goals, 1.1, goal(7, EXECUTING, 1)) == []
    assert take(goals, 4, goal(7, SUCCEEDED, 1)) == [('succeeded', 7, 3.0)]
    assert take(goals, 5, goal(7, SUCCEEDED, 1)) == []
    assert take(goals, 6, goal(7, SUCCEEDED, 1), goal(8, EXECUTING, 6)) == [('started', 8, None)]
    assert take(goals, 7, goal(8, ABORTED, 6), goal(9, ACCEPTED, 7)) == [
        ('aborted', 8, 1.0),
        ('started', 9, None),
    ]
    assert take(goals, 8, goal(9, CANCELING, 7)) == []
    assert take(goals, 9, goal(9, CANCELED, 7)) == [('canceled', 9, 2.0)]
    assert goals.take(Of(status_list=[]), 0, 0) == []


def test_the_goal_id_is_that_of_the_tools():
    (change,) = Goals().take(Of(status_list=[goal(0xAB, ACCEPTED)]), 0, ROS)
    assert change == GoalChange('started', '000000000000000000000000000000ab')


def test_goals_that_are_running_or_over_as_the_session_starts():
    goals = Goals()
    over = goal(1, SUCCEEDED, -60), goal(2, ABORTED, -30)
    assert take(goals, 0, *over, goal(3, EXECUTING, -10)) == [('started', 3, None)]
    assert take(goals, 5, *over, goal(3, SUCCEEDED, -10)) == [('succeeded', 3, 15.0)]
    assert take(goals, 6, *over) == []


def test_a_goal_whose_beginning_was_missed():
    goals = Goals()
    assert take(goals, 8, goal(1, SUCCEEDED, 5)) == [('started', 1, None), ('succeeded', 1, 3.0)]
    assert take(goals, 9, goal(1, SUCCEEDED, 5)) == []


def test_goals_without_a_stamp_of_use():
    goals = Goals()
    # What the first array holds may have been over for long.
    assert take(goals, 1, goal(1, SUCCEEDED, None), goal(2, EXECUTING, None)) == [
        ('started', 2, None)
    ]
    assert take(goals, 4, goal(2, ABORTED, None), goal(3, SUCCEEDED, None)) == [
        ('aborted', 2, 3.0),
        ('started', 3, None),
        ('succeeded', 3, 0.0),
    ]
    assert take(goals, 5, goal(4, EXECUTING, 3600)) == [('started', 4, None)]  # of another clock
    assert take(goals, 6, goal(4, SUCCEEDED, 3600)) == [('succeeded', 4, 1.0)]
    assert take(goals, 7, goal(5, EXECUTING, -4000)) == [('started', 5, None)]
    assert take(goals, 9, goal(5, SUCCEEDED, -4000)) == [('succeeded', 5, 2.0)]


def test_a_server_that_restarts_forgets_its_goals():
    goals = Goals()
    assert take(goals, 1, goal(1, EXECUTING, 1)) == [('started', 1, None)]
    assert take(goals, 2) == []  # the new one knows of none
    assert take(goals, 3, goal(2, EXECUTING, 3)) == [('started', 2, None)]
    assert take(goals, 4, goal(2, SUCCEEDED, 3)) == [('succeeded', 2, 1.0)]


def test_what_is_no_state_is_none():
    goals = Goals()
    assert take(goals, 1, goal(1, 0, 1), goal(2, 77, 1), goal(3, -1, 1)) == []
    assert take(goals, 2, goal(1, EXECUTING, 1)) == [('started', 1, None)]


def test_memory_is_bounded_and_nothing_is_told_twice(monkeypatch):
    monkeypatch.setattr(actions, 'MAX_GOALS', 10)
    goals = Goals()
    for n in range(1, 40):
        assert len(take(goals, n, goal(n, SUCCEEDED, n))) == 2
        assert len(goals._goals) <= 10
    # A server that keeps all of them.
    assert take(goals, 50, *(goal(n, SUCCEEDED, n) for n in range(1, 40))) == []
    assert take(goals, 51, goal(50, EXECUTING, 51)) == [('started', 50, None)]


@pytest.mark.parametrize(
    'message',
    [
        None,
        Of(),
        Of(status_list=[Of(status=1)]),
        Of(status_list=[Of(status='x', goal_info=goal(1, 1).goal_info)]),
        Of(status_list=3),
    ],
)
def test_a_broken_array_is_dropped_whole(message):
    goals = Goals()
    assert isinstance(goals.take(message, 0, ROS), Dropped)
    good = goal(1, ACCEPTED)
    assert isinstance(goals.take(Of(status_list=[good, None]), 0, ROS), Dropped)
    assert take(goals, 1, good) == [('started', 1, None)]


@given(st.integers(0, 2**32), st.integers(1, 6))
def test_every_goal_starts_once_and_ends_once(seed, count):
    """Servers that publish any history of states, repeat, forget and drop arrays."""
    chance = random.Random(seed)
    histories = [
        [ACCEPTED, EXECUTING, *([CANCELING] if end == CANCELED else []), end]
        for end in (chance.choice((SUCCEEDED, CANCELED, ABORTED)) for _ in range(count))
    ]
    at = [0] * count
    goals, told = Goals(), []
    for step in range(200):
        for n in range(count):
            if chance.random() < 0.2 and at[n] < len(histories[n]):
                at[n] += 1
        if chance.random() < 0.7:  # the others are lost
            shown = [
                goal(n, histories[n][at[n] - 1], 0.0)
                for n in range(count)
                if at[n] and chance.random() < 0.9
            ]
            told += take(goals, 1 + step, *shown)
    final = [goal(n, histories[n][-1], 0.0) for n in range(count)]
    told += take(goals, 300, *final)
    names = {SUCCEEDED: 'succeeded', CANCELED: 'canceled', ABORTED: 'aborted'}
    for n in range(count):
        assert [what for what, m, _ in told if m == n] == ['started', names[histories[n][-1]]]
