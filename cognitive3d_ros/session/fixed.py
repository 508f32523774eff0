"""What the reader gives out and keeps: nobody who holds it can change what others read of the session."""

from __future__ import annotations

from typing import Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

K = TypeVar('K')
V = TypeVar('V')
A = TypeVar('A', bound=np.generic)


def fixed(array: NDArray[A]) -> NDArray[A]:
    """Return an array that is read-only, and so is the one that was given; a copy of it can be written.

    It is a view: nobody can make it writeable again, as the owner of an array could.
    """
    array.flags.writeable = False
    view: NDArray[A] = array.view()
    return view


class FixedDict(dict[K, V]):
    """A dict that cannot be changed; ``dict(…)`` of it is one that can.

    Unlike a mapping proxy it can be pickled, copied, and written as JSON.
    """

    __slots__ = ()

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError('what was read of a session cannot be changed: take a copy, dict(…)')

    __setitem__ = __delitem__ = __ior__ = _refuse
    update = setdefault = pop = popitem = clear = _refuse

    def __reduce__(self) -> Any:
        return FixedDict, (dict(self),)

    def copy(self) -> dict[K, V]:
        """Return a copy that can be changed."""
        return dict(self)
