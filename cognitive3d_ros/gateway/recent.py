"""What was used last: a gateway runs for years, and must not remember every session it has ever seen."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

# Far more than are written to at one time: the folder of a session that was forgotten is cleared of
# half-written files when its next part comes.
MOST = 4096

T = TypeVar('T', bound=Hashable)


class Recent(Generic[T]):
    """The things that were used last, at most so many; what was not used for longest is forgotten.

    Thread safe.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._things: OrderedDict[T, None] = OrderedDict()

    def knows(self, thing: T) -> bool:
        """Say whether a thing is known; if so, it is used now."""
        with self._lock:
            known = thing in self._things
            if known:
                self._things.move_to_end(thing)
            return known

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            self._things.clear()

    def add(self, thing: T) -> bool:
        """Take note of a thing that is used now; say whether it is new."""
        with self._lock:
            new = thing not in self._things
            self._things[thing] = None
            self._things.move_to_end(thing)
            if len(self._things) > self._most:
                self._things.popitem(last=False)
            return new
