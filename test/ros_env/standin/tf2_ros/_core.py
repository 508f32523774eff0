"""tf2::BufferCore through the C interface of ``tf2_core/buffer_core.cpp``."""

from __future__ import annotations

import ctypes
import sys
from ctypes import POINTER, c_char_p, c_double, c_int, c_int64, c_void_p
from pathlib import Path

LIBRARY = Path(sys.prefix, 'lib', 'libc3d_tf2_core.so')

Values = c_double * 7
_TEXT_BYTES = 512
_TEXT = (c_char_p, c_int)
_OUT = (POINTER(c_double), POINTER(c_int64))


class TransformException(Exception):  # noqa: N818 (the name on a robot)
    """Base of all errors of tf2."""


class LookupException(TransformException):
    """A frame does not exist."""


class ConnectivityException(TransformException):
    """The two frames are not in one tree."""


class ExtrapolationException(TransformException):
    """The time is before or after what the buffer holds."""


class InvalidArgumentException(TransformException):
    """A frame's name is not allowed."""


class TimeoutException(TransformException):
    """A timeout; tf2's buffer itself never raises it."""


_ERRORS = {
    1: LookupException,
    2: ConnectivityException,
    3: ExtrapolationException,
    4: InvalidArgumentException,
    5: TransformException,
}


def _load() -> ctypes.CDLL:
    library = ctypes.CDLL(str(LIBRARY))
    signatures = {
        'new': (c_void_p, [c_int64]),
        'delete': (None, [c_void_p]),
        'clear': (None, [c_void_p]),
        'set': (
            c_int,
            [c_void_p, c_char_p, c_char_p, c_int64, POINTER(c_double), c_char_p, c_int, *_TEXT],
        ),
        'lookup': (c_int, [c_void_p, c_char_p, c_char_p, c_int64, *_OUT, *_TEXT]),
        'lookup_full': (
            c_int,
            [c_void_p, c_char_p, c_int64, c_char_p, c_int64, c_char_p, *_OUT, *_TEXT],
        ),
        'can': (c_int, [c_void_p, c_char_p, c_char_p, c_int64, *_TEXT]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(library, f'c3d_tf2_{name}')
        function.restype, function.argtypes = result, arguments
    return library


_library = _load()


def _checked(function: ctypes._CFuncPtr, *arguments: object) -> None:
    text = ctypes.create_string_buffer(_TEXT_BYTES)
    status = function(*arguments, text, _TEXT_BYTES)
    if status:
        raise _ERRORS[status](text.value.decode())


class Core:
    """A buffer of transforms; times are int nanoseconds, a transform is (x, y, z, qx, qy, qz, qw)."""

    def __init__(self, cache_ns: int) -> None:
        self._buffer = _library.c3d_tf2_new(cache_ns)
        self._delete = _library.c3d_tf2_delete

    def __del__(self) -> None:
        self._delete(self._buffer)

    def clear(self) -> None:
        """Forget all but the static transforms."""
        _library.c3d_tf2_clear(self._buffer)

    def set(
        self,
        parent: str,
        child: str,
        stamp_ns: int,
        values: tuple[float, ...],
        authority: str,
        *,
        static: bool,
    ) -> None:
        """Add a transform; tf2 passes over one that makes no sense (NaN, no unit quaternion)."""
        _checked(
            _library.c3d_tf2_set,
            self._buffer,
            parent.encode(),
            child.encode(),
            stamp_ns,
            Values(*values),
            authority.encode(),
            static,
        )

    def lookup(self, target: str, source: str, time_ns: int) -> tuple[list[float], int]:
        """Return the transform and its stamp; raises TransformException."""
        values, stamp_ns = Values(), c_int64()
        _checked(
            _library.c3d_tf2_lookup,
            self._buffer,
            target.encode(),
            source.encode(),
            time_ns,
            values,
            ctypes.byref(stamp_ns),
        )
        return list(values), stamp_ns.value

    def lookup_full(
        self, target: str, target_ns: int, source: str, source_ns: int, fixed: str
    ) -> tuple[list[float], int]:
        """Return the transform between two frames at two times; raises TransformException."""
        values, stamp_ns = Values(), c_int64()
        _checked(
            _library.c3d_tf2_lookup_full,
            self._buffer,
            target.encode(),
            target_ns,
            source.encode(),
            source_ns,
            fixed.encode(),
            values,
            ctypes.byref(stamp_ns),
        )
        return list(values), stamp_ns.value

    def can(self, target: str, source: str, time_ns: int) -> tuple[bool, str]:
        """Return whether a look-up would succeed, and why not."""
        text = ctypes.create_string_buffer(_TEXT_BYTES)
        possible = _library.c3d_tf2_can(
            self._buffer, target.encode(), source.encode(), time_ns, text, _TEXT_BYTES
        )
        return bool(possible), text.value.decode()
