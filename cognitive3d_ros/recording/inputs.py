"""What the doors subscribe to, and hand the messages of to the recorder: one :class:`Input` for each topic.

Both doors treat all inputs alike: they look for publications of ``topic``, ask :meth:`Input.found` whether one
can be recorded, subscribe, and then, for each message, in the thread in which it arrives::

    arrival = each.due()
    if arrival is not None:
        each.take(message, arrival)

``due`` counts the message and decides whether it is wanted at all: before it is deserialised, where a door can
still spare itself that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from cognitive3d_ros.clock import NS_PER_S, Arrival

_EARLY = (
    0.25  # of a period: how much before its time a message is taken, so that jitter costs none
)


@dataclass(frozen=True, slots=True)
class Publication:
    """What a door found out about a topic.

    ``topic`` is its full name, ``type`` that of its messages (``nav_msgs/msg/Odometry``), ``publisher`` the
    full name of the node that publishes it, or several with commas, or empty while it is not known.
    """

    topic: str
    type: str
    publisher: str = ''


def why_silent(publication: Publication, reason: str | None, qos: str) -> str:
    """Return why nothing may come of a publication; ``reason`` is why it cannot be recorded, if it cannot."""
    if reason is not None:
        return reason
    by = f' by {publication.publisher}' if publication.publisher else ''
    return f'{publication.type} is published{by}: none was sent, or qos {qos} does not fit'


class Input(Protocol):
    """One topic whose messages are recorded."""

    source: str
    """Its name in the ledger, such as ``topic.odom``."""
    topic: str
    """The topic as the parameters name it: the door resolves it."""
    qos: str
    """``auto``, ``reliable``, ``best_effort``, ``sensor_data``; ``latched``: reliable, transient local."""
    expects: str
    """The type of its messages where that is known beforehand: the door need not wait for a publication."""

    def found(self, publication: Publication) -> str | None:
        """Take note of a publication; return why its messages cannot be recorded, or None.

        May be called again, when more is known.
        """
        ...

    def due(self) -> Arrival | None:
        """Count a message that arrives now. None: it is not to be taken (no session, or decimated)."""
        ...

    def take(self, message: Any, arrival: Arrival) -> None:
        """Record a message that was due; never raises."""
        ...


class Decimation:
    """Lets so many messages a second pass; 0 is all of them.

    The times at which one is due are a fixed period apart, so that the rate is met exactly whatever the rate
    of the messages; one that comes a little early is taken.
    """

    __slots__ = ('_due_ns', '_early_ns', '_period_ns')

    def __init__(self, rate_hz: float) -> None:
        self._period_ns = round(NS_PER_S / rate_hz) if rate_hz else 0
        self._early_ns = round(self._period_ns * _EARLY)
        self._due_ns = 0

    def passes(self, session_ns: int) -> bool:
        """Say whether a message that arrives at a session time is taken."""
        if session_ns < self._due_ns - self._early_ns:
            return False
        # After a gap the period begins anew.
        self._due_ns = max(self._due_ns, session_ns - self._early_ns) + self._period_ns
        return True
