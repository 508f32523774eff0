r"""The part file: one finished part of a stream, framed so that it can be read and judged alone.

The same bytes lie in a spool and in a gateway's store. All numbers are little-endian::

    8  magic       b'C3DPART\0'
    2  format      1
    2  reserved    0
    4  header_len
    8  body_len
    header         JSON, UTF-8: what an upload needs, except the key
    body           what is uploaded, untouched
    4  crc32       zlib's, of everything before it

The checksum comes last so that it can be computed while the kernel already writes the rest out. The length
and the checksum are there because a packed Cap'n Proto message with a flipped bit or with junk behind it
is read without complaint.
"""

from __future__ import annotations

import json
import re
import struct
import zlib
from collections.abc import Callable, Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from sys import intern
from typing import NamedTuple, TypeVar

from cognitive3d_ros.errors import FormatError, NewerFormatError
from cognitive3d_ros.wire.identity import SessionIdentity

MAGIC = b'C3DPART\0'
FORMAT = 1
SUFFIX = '.c3d'

STREAMS = ('gaze', 'events', 'dynamics', 'sensors', 'camera', 'lidar')
"""The upload streams. Parts are numbered from 1 in each stream of a session."""

CLASSES = ('properties', 'events', 'pose', 'series', 'camera', 'lidar')
"""What a part holds. Gaze has parts of two classes, ``properties`` and ``pose``, in one sequence."""

_FIXED = struct.Struct('<8sHHIQ')
_CRC = struct.Struct('<I')
_MAX_HEADER_BYTES = 64 * 1024
_MAX_BODY_BYTES = 1 << 32
_NAME = re.compile(
    rf'({"|".join(STREAMS)})\.([0-9]{{6,18}})\.({"|".join(CLASSES)})\.c3d', re.ASCII
)
_SESSION_ID = re.compile(r'[0-9]{1,12}_[A-Za-z0-9][A-Za-z0-9._-]{0,63}', re.ASCII)


@dataclass(frozen=True, slots=True)
class PartHeader:
    """What a part says about itself.

    ``number`` counts from 1 in its stream and session, ``klass`` is one of :data:`CLASSES`. ``segment``
    ties it to the journal it was written from (0: none), and ``latest_ns`` is the wire time of its
    latest record (0: not known).
    """

    identity: SessionIdentity
    stream: str
    number: int
    klass: str
    segment: int
    content_type: str
    latest_ns: int = 0


@dataclass(frozen=True, slots=True)
class Part:
    """A part as read from its file."""

    header: PartHeader
    body: bytes


class PartName(NamedTuple):
    """The facts in a part's file name. Sorts by number, not by digits."""

    stream: str
    number: int
    klass: str


def part_name(stream: str, number: int, klass: str) -> str:
    """Return the file name of a part: ``gaze.000001.properties.c3d``."""
    return f'{stream}.{number:06d}.{klass}{SUFFIX}'


def parse_part_name(name: str) -> PartName | None:
    """Return what a file name says, or None if it is not one that :func:`part_name` makes."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    stream, digits, klass = match.groups()
    number = int(digits)
    if number == 0 or (len(digits) > 6 and digits[0] == '0'):
        return None  # numbers are from 1, and a part has one name
    return PartName(intern(stream), number, intern(klass))  # one text for all of a spool's parts


def is_session_id(name: str) -> bool:
    """Say whether a folder's name is a session id, ``<unix seconds>_<device id>``."""
    return _SESSION_ID.fullmatch(name) is not None


def head(header: PartHeader, body_len: int) -> bytes:
    """Return the bytes of a part before its body."""
    text = json.dumps(asdict(header), separators=(',', ':'), ensure_ascii=False).encode()
    return _FIXED.pack(MAGIC, FORMAT, 0, len(text), body_len) + text


def trailer(head: bytes, body: bytes) -> bytes:
    """Return the bytes of a part behind its body: the checksum of all before."""
    return _CRC.pack(zlib.crc32(body, zlib.crc32(head)))


def frame(header: PartHeader, body: bytes) -> list[bytes]:
    """Return a part's bytes in pieces, the body not copied."""
    start = head(header, len(body))
    return [start, body, trailer(start, body)]


def parse(data: bytes) -> Part:
    """Read a whole part.

    Raises:
        NewerFormatError: it is of a format this version does not know.
        FormatError: it is not a part, or is cut off, too long or damaged.
    """
    check_size(data, len(data))
    header_len, body_len = _lengths(data)
    body_at = _FIXED.size + header_len
    crc_at = body_at + body_len
    (stated,) = _CRC.unpack_from(data, crc_at)
    found = zlib.crc32(memoryview(data)[:crc_at])
    if stated != found:
        raise FormatError(f'damaged: the checksum is {found:08x} and should be {stated:08x}')
    return Part(_header(data[_FIXED.size : body_at]), data[body_at:crc_at])


def check_size(prefix: bytes, size: int) -> None:
    """Check the size of a part against what its first bytes say. Raises as :func:`parse` does."""
    whole = _FIXED.size + sum(_lengths(prefix)) + _CRC.size
    if size < whole:
        raise FormatError(f'cut off: {size} of {whole} bytes are there')
    if size > whole:
        raise FormatError(f'{size - whole} bytes too long: {whole} are expected')


def parse_header(prefix: bytes) -> PartHeader:
    """Read the header from the first bytes of a part (4 KiB are enough). The checksum is not looked at.

    Raises:
        NewerFormatError, FormatError: as :func:`parse` does.
    """
    header, _ = _split(prefix)
    return _header(header)


def body_start(prefix: bytes) -> bytes:
    """Return what of a part's body is in its first bytes. Raises as :func:`parse_header` does."""
    return _split(prefix)[1]


def _split(prefix: bytes) -> tuple[bytes, bytes]:
    header_len, body_len = _lengths(prefix)
    end = _FIXED.size + header_len
    if len(prefix) < end:
        raise FormatError(f'cut off in the header: {len(prefix)} of {end} bytes are there')
    return prefix[_FIXED.size : end], prefix[end : end + body_len]


_TYPES: Mapping[str, tuple[type, ...]] = {
    'str': (str,),
    'int': (int,),
    'float': (int, float),
    'SessionIdentity': (SessionIdentity,),
}
T = TypeVar('T')


def _lengths(data: bytes) -> tuple[int, int]:
    """Return the lengths of header and body, after magic and format."""
    if not data:
        raise FormatError('empty')
    if data[: len(MAGIC)] != MAGIC[: len(data)]:
        raise FormatError(f'not a part: it begins with {data[: len(MAGIC)]!r}, not with {MAGIC!r}')
    if len(data) < _FIXED.size:
        raise FormatError(
            f'cut off: {len(data)} bytes, and its first fields alone are {_FIXED.size}'
        )
    _, version, _, header_len, body_len = _FIXED.unpack_from(data)
    if version > FORMAT:
        raise NewerFormatError(
            f'format {version}, and this version reads up to {FORMAT}: a newer cognitive3d_ros wrote it'
        )
    if version == 0 or header_len > _MAX_HEADER_BYTES or body_len > _MAX_BODY_BYTES:
        raise FormatError(
            f'damaged: format {version}, a header of {header_len} and a body of {body_len} bytes'
        )
    return header_len, body_len


def _header(text: bytes) -> PartHeader:
    """Read the header's JSON; keys it does not know are left for later versions."""
    try:
        values = json.loads(text)
        identity = _take(SessionIdentity, values['identity'])
        header = _take(PartHeader, {**values, 'identity': identity})
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(f'the header cannot be read: {type(error).__name__}: {error}') from None
    if not is_session_id(identity.session_id):  # the names of folders are made of it
        raise FormatError(f'the header names {identity.session_id!r:.100}, which is no session id')
    if header.stream not in STREAMS or header.klass not in CLASSES or header.number < 1:
        raise FormatError(
            f'the header names part {header.number} of stream {header.stream!r}, class {header.klass!r}'
        )
    return header


def _take(cls: Callable[..., T], values: Mapping[str, object]) -> T:
    """Make a dataclass of the values its fields name, each of the field's type."""
    taken: dict[str, object] = {}
    for field in fields(cls):  # type: ignore[arg-type]
        if field.name not in values and field.default is not MISSING:
            continue
        value = values[field.name]
        allowed = _TYPES[str(field.type)]
        if not isinstance(value, allowed) or isinstance(value, bool):
            raise TypeError(f'{field.name} is {value!r}')
        taken[field.name] = value
    return cls(**taken)
