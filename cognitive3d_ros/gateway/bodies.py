"""What a POST says it is, what its body says it is, and that the two agree."""

from __future__ import annotations

import re
from dataclasses import dataclass

from cognitive3d_ros.errors import FormatError
from cognitive3d_ros.wire import capnp_codec
from cognitive3d_ros.wire.framing import PartHeader
from cognitive3d_ros.wire.identity import SessionIdentity
from cognitive3d_ros.wire.schema import (
    FORMAT_VERSIONS,
    MAX_PART,
    SCENE_ID,
    check_body,
    split_session_id,
)

JSON_STREAMS = tuple(FORMAT_VERSIONS)
BINARY_STREAMS = ('camera', 'lidar')
CONTENT_TYPES = dict.fromkeys(JSON_STREAMS, 'application/json') | dict.fromkeys(
    BINARY_STREAMS, 'application/octet-stream'
)
"""The streams that can be posted, and the content type of each."""

_KLASS = {
    'events': 'events',
    'sensors': 'series',
    'dynamics': 'pose',
    'camera': 'camera',
    'lidar': 'lidar',
}
_NUMBER = re.compile(r'[1-9][0-9]{0,9}', re.ASCII)
_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Address:
    """Where a part was posted: ``/v0/<stream>/<scene id>?version=<scene version>``."""

    stream: str
    scene_id: str
    scene_version: int

    @classmethod
    def parse(cls, stream: str, scene_id: str, version: str | None) -> Address:
        """Check the words of a URL; ``stream`` is known. Raises FormatError."""
        if SCENE_ID.fullmatch(scene_id) is None:
            raise FormatError(
                'scene id in the URL: up to 128 letters, digits, dots, - and _ wanted'
            )
        if version is None:
            raise FormatError('version in the URL is missing: ?version=<scene version number>')
        return cls(stream, scene_id, _whole(version, 'version in the URL'))


@dataclass(frozen=True, slots=True)
class PartKey:
    """The identity of a part: ``Idempotency-Key: <session id>/<stream>/<part>``."""

    session_id: str
    stream: str
    number: int

    def __str__(self) -> str:
        return f'{self.session_id}/{self.stream}/{self.number}'

    @classmethod
    def parse(cls, text: str) -> PartKey:
        """Check the words of the header. Raises FormatError."""
        words = text.split('/')
        if len(words) != 3 or words[1] not in CONTENT_TYPES:
            raise FormatError('Idempotency-Key: <session id>/<stream>/<part number> wanted')
        split_session_id(words[0])
        return cls(words[0], words[1], _whole(words[2], 'part number in Idempotency-Key'))


def check_part(address: Address, key: PartKey | None, body: bytes) -> PartHeader:
    """Check a body against the place it was posted to, and return what the store has to know of it.

    ``key`` is the request's, if it had one; a binary part has no other identity yet, so it needs one.
    Raises FormatError with the reason.
    """
    if address.stream in BINARY_STREAMS:
        if key is None:
            raise FormatError(f'Idempotency-Key is missing: {address.stream} parts need it')
        found, interval_s, klass, sdk_version = key, 0.0, _KLASS[address.stream], ''
        if key.stream != address.stream:
            raise FormatError(f'Idempotency-Key says {key}, it was posted to /{address.stream}')
        check_binary(key, body)
    else:
        checked = check_body(address.stream, body)
        found = PartKey(checked.session_id, address.stream, checked.part)
        interval_s = checked.interval_s
        # Session properties travel in gaze parts of their own.
        klass = _KLASS.get(address.stream) or ('properties' if checked.properties else 'pose')
        sdk_version = str(checked.properties.get('c3d.version', ''))
    if key is not None and (key != found or key.stream != address.stream):
        raise FormatError(
            f'Idempotency-Key says {key}, what was posted to /{address.stream} is {found}'
        )
    second, device_id = split_session_id(found.session_id)
    identity = SessionIdentity(
        session_id=found.session_id,
        device_id=device_id,
        scene_id=address.scene_id,
        scene_version=address.scene_version,
        sdk_version=sdk_version,
        start_ns=second * _NS,
        interval_s=interval_s,
    )
    return PartHeader(
        identity=identity,
        stream=address.stream,
        number=found.number,
        klass=klass,
        segment=0,
        content_type=CONTENT_TYPES[address.stream],
    )


def check_binary(key: PartKey, body: bytes) -> None:
    """Check the packed part of a camera or lidar, but for what pictures and points show.

    Raises FormatError.
    """
    session_id, number = capnp_codec.check(key.stream, body)
    if (session_id, number) != (key.session_id, key.number):
        raise FormatError(
            f'Idempotency-Key says {key}, the body is part {number} of session {session_id!r}'
        )


def _whole(text: str, what: str) -> int:
    if _NUMBER.fullmatch(text) is None or int(text) > MAX_PART:
        raise FormatError(f'{what}: a whole number from 1 to {MAX_PART} wanted')
    return int(text)
