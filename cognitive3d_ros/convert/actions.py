"""``action_msgs/GoalStatusArray`` to what became of goals: started, succeeded, aborted, canceled, each once.

A server publishes all goals it knows whenever one of them changes, the ended ones for a while too, and keeps
the last array for whoever comes later. So an array is compared with what was known before.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from cognitive3d_ros.clock import NS_PER_S
from cognitive3d_ros.convert.outcome import MALFORMED, Dropped, dropped

GOAL_STATUS_ARRAY: Final = 'action_msgs/msg/GoalStatusArray'
STATUS_TOPIC: Final = '/_action/status'  # below the action's name

MAX_GOALS: Final = 10_000
"""How many goals of an action are remembered."""

_RUNNING: Final = (1, 2, 3)  # accepted, executing, canceling
_OUTCOMES: Final[Mapping[int, str]] = {4: 'succeeded', 5: 'canceled', 6: 'aborted'}
_AHEAD_NS: Final = NS_PER_S  # no stamp of a good clock is further ahead
_BEHIND_NS: Final = 3600 * NS_PER_S  # nor further behind


@dataclass(frozen=True, slots=True)
class GoalChange:
    """What happened to a goal: ``started`` or an outcome, with how long it took."""

    what: str
    goal_id: str
    duration_ns: int | None = None


@dataclass(slots=True)
class _Goal:
    began_ns: int  # session time; before the session it is negative
    stamp_ns: int
    ended: bool


class Goals:
    """The goals of one action in one session.

    Goals that had ended before the session are none of it; a goal that is running when it begins counts as
    started then. A goal whose end is the first that is heard of it began in the session if its stamp says so
    or, where that is of no use, if an array of this session was without it.
    """

    def __init__(self) -> None:
        self._goals: OrderedDict[bytes, _Goal] = OrderedDict()
        self._heard = False
        self._forgotten_ns = 0  # stamp of the newest goal that had to be forgotten

    def take(self, message: Any, session_ns: int, ros_ns: int) -> list[GoalChange] | Dropped:
        """Return what an array says that is new, in its order.

        ``session_ns`` and ``ros_ns`` are the session time and the ROS time at which it arrived.
        """
        try:
            statuses = [_read(status) for status in message.status_list]
        except MALFORMED as error:
            return dropped('the status of an action', error)
        changes = [
            change
            for key, status, stamp_ns in statuses
            for change in self._change(key, status, stamp_ns, session_ns, ros_ns)
        ]
        self._heard = True
        self._forget()
        return changes

    def _change(
        self, key: bytes, status: int, stamp_ns: int, session_ns: int, ros_ns: int
    ) -> list[GoalChange]:
        outcome = _OUTCOMES.get(status)
        if outcome is None and status not in _RUNNING:
            return []
        goal = self._goals.get(key)
        changes = []
        if goal is None:
            if 0 < stamp_ns <= self._forgotten_ns:
                return []  # it may have been told already
            age_ns = ros_ns - stamp_ns
            stamped = stamp_ns > 0 and -_AHEAD_NS <= age_ns <= _BEHIND_NS
            age_ns = max(age_ns, 0) if stamped else 0
            in_session = age_ns <= session_ns if stamped else self._heard
            goal = self._goals[key] = _Goal(session_ns - age_ns, stamp_ns, ended=False)
            if outcome is not None and not in_session:
                goal.ended = True
            else:
                changes.append(GoalChange('started', key.hex()))
        else:
            self._goals.move_to_end(key)
        if outcome is not None and not goal.ended:
            goal.ended = True
            changes.append(GoalChange(outcome, key.hex(), session_ns - goal.began_ns))
        return changes

    def _forget(self) -> None:
        while len(self._goals) > MAX_GOALS:
            _, goal = self._goals.popitem(last=False)
            self._forgotten_ns = max(self._forgotten_ns, goal.stamp_ns)


def _read(status: Any) -> tuple[bytes, int, int]:
    """Return id, state and stamp of a goal."""
    stamp = status.goal_info.stamp
    key = bytes(status.goal_info.goal_id.uuid)
    return key, int(status.status), int(stamp.sec * NS_PER_S + stamp.nanosec)
