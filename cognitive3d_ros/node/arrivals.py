"""What never came in, seen by the numbers that publishers give to their messages.

A subscription keeps the last so many messages. What comes faster than the node takes it is overwritten there
without a word: DDS calls lost only what did not get that far. But the numbers of one publisher's messages have
no gaps.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

_PUBLISHERS = 64  # that are followed at one time; more make the oldest forgotten
_NOBODY = b''


class Arrivals:
    """Hands the messages of one subscription over, and counts those that are missing between them.

    Where the middleware tells the numbers, gaps are counted, whoever made them: the network, a publisher's
    short queue or the subscription's own. Elsewhere, what DDS itself tells of lost messages.

    Args:
        take: what a message is handed to.
        lost: is given how many are missing.
        publisher: the identity of the topic's only publisher, None if there is none or several: asked
            where rclpy does not tell whose a message is (up to Jazzy).
    """

    def __init__(
        self,
        take: Callable[[Any], None],
        lost: Callable[[int], None],
        publisher: Callable[[], bytes | None] = lambda: None,
    ) -> None:
        self._take, self._lost, self._publisher = take, lost, publisher
        self._last: dict[bytes, int] = {}
        self._only: bytes | None = None
        self._numbered = False

    @property
    def callback(self) -> Callable[..., None]:
        """What the subscription calls.

        rclpy looks at the signature to see whether information is wanted beside the message; but its events
        executor then gives both as one argument.
        """

        @functools.wraps(self._came)
        def callback(*given: Any) -> None:
            if len(given) == 1:
                (given,) = given if isinstance(given[0], tuple) else ((given[0], {}),)
            self._came(*given)

        return callback

    def told_lost(self, told: Any) -> None:
        """Take what DDS tells of lost messages; where they have numbers, the gap is seen too."""
        if not self._numbered:
            self._lost(told.total_count_change)

    def _came(self, message: Any, about: Mapping[str, Any], /) -> None:
        if missing := self._missing(about):
            self._lost(missing)
        self._take(message)

    def _missing(self, about: Mapping[str, Any]) -> int:
        """Return how many messages are missing before the one that ``about`` tells of."""
        number = about.get('publication_sequence_number')
        if number is None:  # Humble, and middlewares without numbers
            return 0
        named = about.get('publisher_gid')
        publisher = bytes(named['data']) if named else _NOBODY
        last = self._last.pop(publisher, None)
        self._last[publisher] = number
        if len(self._last) > _PUBLISHERS:
            del self._last[next(iter(self._last))]
        missing = 0 if last is None else max(0, number - last - 1)
        if not named and (last is None or missing):
            # A gap between two messages of two publishers is none.
            before, self._only = self._only, self._publisher()
            missing = missing if self._only == before else 0
        self._numbered = bool(named) or self._only is not None
        return missing if self._numbered else 0
