"""The frame of an MRPT object, and the primitives in it.

::

    1   0x80 | length of the name
    name       mrpt::obs::CObservationOdometry
    1   version
    body
    1   0x88

A null pointer has the name ``nullptr`` and no version. Numbers are little-endian, texts have a 32-bit length.
There are no lengths of objects: one that is not known cannot be passed over.

A class of objects is a dataclass with a method ``_archive(ar)`` that hands each of its fields to ``ar`` and
stores what comes back: a :class:`Writer` writes it down and returns it, a :class:`Reader` returns what it
reads. So one description serves both ways.
"""

from __future__ import annotations

import functools
import gzip
import io
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, ClassVar

import numpy as np
import zstandard
from numpy.typing import NDArray

from cognitive3d_ros.errors import FormatError, NewerFormatError

_START, _END = 0x80, 0x88
_TAIL = bytes([_END])
_NULL = 'nullptr'
_CHUNK_BYTES = 1 << 16
_MAX_NAME = 120
_MAX_BYTES = 1 << 30  # of one text or array: more is damage
_EPOCH_TICKS = 116_444_736_000_000_000  # 1970 in ticks of 100 ns since 1601
NS_PER_TICK = 100
_GZIP, _ZSTD = b'\x1f\x8b', b'\x28\xb5\x2f\xfd'
_CODES = {
    'u8': 'B',
    'i8': 'b',
    'bool': '?',
    'u16': 'H',
    'i32': 'i',
    'u32': 'I',
    'u64': 'Q',
    'f32': 'f',
    'f64': 'd',
}


@functools.cache
def _row(kind: str, count: int) -> struct.Struct:
    return struct.Struct(f'<{count}{_CODES[kind]}')


@functools.cache
def _head(name: str, version: int) -> bytes:
    raw = name.encode()
    return bytes([_START | len(raw), *raw, version])


class CutOffError(FormatError):
    """The bytes end in the middle of an object."""


class MrptObject:
    """A class of objects: its name, the version that is written, and those that are read."""

    __slots__ = ()
    NAME: ClassVar[str]
    VERSION: ClassVar[int]
    READS: ClassVar[tuple[int, ...]]

    def _archive(self, ar: Archive) -> None:
        """Hand each field to ``ar``, and store what comes back."""
        raise NotImplementedError


def ticks(time_ns: int) -> int:
    """Return a time since 1970 as MRPT counts it: 100 ns since 1601."""
    return time_ns // NS_PER_TICK + _EPOCH_TICKS


def stamp_ns(ticks: int) -> int | None:
    """Return MRPT's time in nanoseconds since 1970; None for the one that stands for no time."""
    return None if ticks == 0 else (ticks - _EPOCH_TICKS) * NS_PER_TICK


class Archive:
    """What writing and reading have in common: primitives, each given and returned."""

    version = 0
    """Of the object that is being written or read."""

    @contextmanager
    def _of(self, version: int) -> Iterator[None]:
        before, self.version = self.version, version
        yield
        self.version = before

    def number(self, kind: str, value: Any) -> Any:
        """Write or read a number: ``u8``, ``i32``, ``f64``, ``bool`` and so on."""
        raise NotImplementedError

    def numbers(self, kind: str, values: Sequence[Any], count: int) -> list[Any]:
        """Write or read so many numbers."""
        raise NotImplementedError

    def text(self, value: str) -> str:
        """Write or read a text."""
        raw = self.data(value.encode('utf-8', 'replace'))
        return raw.decode('utf-8', 'replace')

    def data(self, value: bytes) -> bytes:
        """Write or read bytes with their length before them."""
        raise NotImplementedError

    def plane(self, dtype: str, values: NDArray[Any], count: int) -> NDArray[Any]:
        """Write or read an array of ``count`` numbers, without their count."""
        raise NotImplementedError

    def vector(self, dtype: str, values: NDArray[Any]) -> NDArray[Any]:
        """Write or read an array with its count before it."""
        return self.plane(dtype, values, self.number('u32', len(values)))

    def object(self, value: Any, *kinds: type[Any]) -> Any:
        """Write or read an object of one of the kinds; of any kind that is known if none is named."""
        raise NotImplementedError


class Writer(Archive):
    """Writes objects into bytes."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def take(self) -> bytes:
        """Return what was written since the last call."""
        pieces, self._pieces = self._pieces, []
        return b''.join(pieces)

    def number(self, kind: str, value: Any) -> Any:
        """Write a number."""
        self._pieces.append(_row(kind, 1).pack(value))
        return value

    def numbers(self, kind: str, values: Sequence[Any], count: int) -> list[Any]:
        """Write numbers."""
        self._pieces.append(_row(kind, count).pack(*values))
        return list(values)

    def data(self, value: bytes) -> bytes:
        """Write bytes with their length before them."""
        self.number('u32', len(value))
        self._pieces.append(value)
        return value

    def plane(self, dtype: str, values: NDArray[Any], count: int) -> NDArray[Any]:
        """Write an array."""
        assert len(values) == count
        self._pieces.append(np.ascontiguousarray(values, dtype).tobytes())
        return values

    def object(self, value: Any, *kinds: type[Any]) -> Any:
        """Write an object in its frame."""
        assert not kinds or isinstance(value, kinds)
        self._pieces.append(_head(value.NAME, value.VERSION))
        before, self.version = self.version, value.VERSION
        value._archive(self)
        self.version = before
        self._pieces.append(_TAIL)
        return value


class Reader(Archive):
    """Reads objects of the classes it is given, by their names without a namespace.

    Raises FormatError for what is none of them.
    """

    def __init__(self, file: IO[bytes], classes: Mapping[str, type[MrptObject]]) -> None:
        self._file = file
        self._classes = classes

    def objects(self) -> Iterator[Any]:
        """Give the objects up to the end.

        Raises:
            CutOffError: the end is in the middle of one.
            FormatError: there is something that is not known, or no object at all.
        """
        while True:
            first = self._read(1, at_start=True)
            if not first:
                return
            yield self._framed(first[0])

    def number(self, kind: str, value: Any) -> Any:  # noqa: ARG002 - as the writer has it
        """Read a number."""
        row = _row(kind, 1)
        return row.unpack(self._read(row.size))[0]

    def numbers(self, kind: str, values: Sequence[Any], count: int) -> list[Any]:  # noqa: ARG002
        """Read numbers."""
        row = _row(kind, count)
        return list(row.unpack(self._read(row.size)))

    def data(self, value: bytes) -> bytes:  # noqa: ARG002
        """Read bytes with their length before them."""
        return self._read(self.number('u32', 0))

    def plane(self, dtype: str, values: NDArray[Any], count: int) -> NDArray[Any]:  # noqa: ARG002
        """Read an array."""
        kind = np.dtype(dtype)
        return np.frombuffer(self._read(count * kind.itemsize), kind)

    def object(self, value: Any, *kinds: type[Any]) -> Any:  # noqa: ARG002
        """Read an object in its frame."""
        found = self._framed(self.number('u8', 0))
        if kinds and not isinstance(found, kinds):
            wanted = ' or '.join(kind.NAME for kind in kinds)
            name = _NULL if found is None else found.NAME
            raise FormatError(f'{name} where {wanted} is wanted')
        return found

    def _framed(self, first: int) -> Any:
        length = first & 0x7F
        if first < _START or not 0 < length <= _MAX_NAME:
            raise FormatError(f'no object begins with the byte {first:#04x}')
        name = self._read(length).decode('ascii', 'replace')
        found = None
        if name != _NULL:
            found = self._body(name, self.number('u8', 0))
        end = self.number('u8', 0)
        if end != _END:
            raise FormatError(f'{name} ends with the byte {end:#04x}, not with {_END:#04x}')
        return found

    def _body(self, name: str, version: int) -> Any:
        bare = name.rpartition('::')[2]  # MRPT 1 wrote no namespaces
        kind = self._classes.get(bare)
        if kind is None or (name != bare and name != kind.NAME):
            raise FormatError(f'{name!r} is no class that is read')
        if version not in kind.READS:
            if version > max(kind.READS):
                raise NewerFormatError(
                    f'{name} is of version {version}, newer than {max(kind.READS)}, the last that is read'
                )
            raise FormatError(
                f'{name} is of version {version}, older than {min(kind.READS)}, the first that is read: '
                'rewrite it with "rawlog-edit --cut --from-index 0 -i OLD -o NEW"'
            )
        found = kind()
        with self._of(version):
            found._archive(self)
        return found

    def _read(self, size: int, *, at_start: bool = False) -> bytes:
        if size > _MAX_BYTES:
            raise FormatError(f'damaged: {size} bytes are said to follow')
        try:
            data = self._file.read(size)
        except (EOFError, gzip.BadGzipFile, zlib.error, zstandard.ZstdError) as error:
            raise CutOffError(f'cannot be decompressed any further: {error}') from None
        if len(data) < size and not (at_start and not data):
            raise CutOffError(f'{size - len(data)} bytes are missing')
        return data


class _Unpacked(io.RawIOBase):
    """A file that was compressed with zstd. Unlike zstandard's own reader it tells when one was cut off."""

    def __init__(self, raw: IO[bytes]) -> None:
        self._raw = raw
        self._frame: Any = None
        self._ready = b''

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            packed = (self._frame and self._frame.unused_data) or self._raw.read(_CHUNK_BYTES)
            if not packed:
                if self._frame is not None and not self._frame.eof:
                    raise EOFError('its last frame is not whole')
                return 0
            if self._frame is None or self._frame.eof:
                self._frame = zstandard.ZstdDecompressor().decompressobj()
            self._ready = self._frame.decompress(packed)
        count = min(len(buffer), len(self._ready))
        buffer[:count], self._ready = self._ready[:count], self._ready[count:]
        return count


@contextmanager
def open_rawlog(path: Path) -> Iterator[IO[bytes]]:
    """Open a rawlog for reading: compressed with gzip or zstd, or not at all."""
    with path.open('rb') as raw:
        magic = raw.read(4)
        raw.seek(0)
        if magic[:2] == _GZIP:
            with gzip.open(raw) as unpacked:
                yield unpacked  # type: ignore[misc]
        elif magic == _ZSTD:
            yield io.BufferedReader(_Unpacked(raw))
        else:
            yield raw
