"""What a JSON body must look like: the envelope and the records of the four JSON streams.

The gateway refuses a body that fails here, whole; the reader passes over the one record that fails. What a
body has beyond the keys named here is let through: other SDKs of the platform send more.

Every check raises :class:`~cognitive3d_ros.errors.FormatError` whose text says where, what was there and what
is wanted: ``data[3].p: 3 finite numbers wanted, not [0.0, null]``.
"""

from __future__ import annotations

import json
import math
import re
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NoReturn

from cognitive3d_ros.errors import FormatError

SESSION_ID = re.compile(r'([0-9]{1,12})_([A-Za-z0-9][A-Za-z0-9._-]{0,63})', re.ASCII)
"""``<unix seconds>_<device id>`` (data format, Sessions); safe as the name of a folder."""

SCENE_ID = re.compile(r'[A-Za-z0-9][A-Za-z0-9._-]{0,127}', re.ASCII)

MAX_PART = 2**32 - 1
"""Part numbers are UInt32, from 1."""

FORMAT_VERSIONS = {'gaze': '1.0', 'events': '1.0', 'dynamics': '1.0', 'sensors': '2.0'}
"""The JSON streams, and the ``formatversion`` of their bodies."""

Json = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class JsonBody:
    """A JSON body whose envelope is right; its records are not checked yet."""

    session_id: str
    device_id: str
    part: int
    interval_s: float
    """Time between pose samples as gaze bodies state it; 0 in the other streams."""
    properties: Json = field(default_factory=dict)
    """Session properties, the changed ones only; gaze."""
    manifest: Json = field(default_factory=dict)
    """Dynamic Objects by id; dynamics."""
    data: list[object] = field(default_factory=list)


def read_body(stream: str, body: bytes) -> JsonBody:
    """Parse the body of a JSON stream and check its envelope.

    Raises FormatError, for an unknown ``stream`` too.
    """
    if stream not in FORMAT_VERSIONS:
        raise FormatError(f'stream {stream!r} has no JSON body')
    top = _object(_parse(body), 'the body')
    session_id = _text(top.get('sessionid'), 'sessionid')
    second, device_id = split_session_id(session_id)
    owner = 'name' if stream == 'sensors' else 'userid'
    if _text(top.get(owner), owner) != device_id:
        _wrong(owner, f'{device_id!r}, as in the session id, wanted', top[owner])
    if int(_number(top.get('timestamp'), 'timestamp')) != second:
        _wrong('timestamp', f'{second}, as in the session id, wanted', top['timestamp'])
    part = top.get('part')
    if type(part) is not int or not 1 <= part <= MAX_PART:
        _wrong('part', 'a whole number from 1 wanted', part)
    if top.get('formatversion') != FORMAT_VERSIONS[stream]:
        _wrong('formatversion', f'{FORMAT_VERSIONS[stream]!r} wanted', top.get('formatversion'))
    interval_s = 0.0
    if stream == 'gaze':
        interval_s = _number(top.get('interval'), 'interval')
        if interval_s <= 0:
            _wrong('interval', 'more than 0 wanted', interval_s)
    properties = _object(top.get('properties', {}), 'properties') if stream == 'gaze' else {}
    manifest = _object(top.get('manifest', {}), 'manifest') if stream == 'dynamics' else {}
    # Snapshots may be missing where there is a manifest, in no other stream.
    data = top.get('data', [] if stream == 'dynamics' else None)
    if not isinstance(data, list):
        _wrong('data', 'a list wanted', data)
    return JsonBody(session_id, device_id, part, interval_s, properties, manifest, data)


def check_body(stream: str, body: bytes) -> JsonBody:
    """Parse the body of a JSON stream and check all of it."""
    result = read_body(stream, body)
    for key, value in result.properties.items():
        check_property(value, f'properties[{_short(key)}]')
    for key, value in result.manifest.items():
        check_manifest_entry(value, f'manifest[{_short(key)}]')
    check = RECORD_CHECKS[stream]
    for index, record in enumerate(result.data):
        check(record, f'data[{index}]')
    return result


def split_session_id(session_id: str) -> tuple[int, str]:
    """Return the second and the device id of a session id."""
    match = SESSION_ID.fullmatch(session_id)
    if match is None:
        raise FormatError(f'session id {_short(session_id)}: <unix seconds>_<device id> wanted')
    return int(match[1]), match[2]


def check_property(value: object, where: str) -> None:
    """Check a session's or an event's property: a string, a finite number or a boolean."""
    if not isinstance(value, (str, bool)):
        _number(value, where, 'a string, a finite number or a boolean')


def check_manifest_entry(value: object, where: str) -> None:
    """Check what a manifest says of one Dynamic Object."""
    entry = _object(value, where)
    for key in ('name', 'mesh'):
        _text(entry.get(key), f'{where}.{key}')


def check_pose(record: object, where: str) -> None:
    """Check a record of the pose timeline: ``time``, ``p``, ``r``, and an old session's ``g``."""
    pose = _object(record, where)
    _number(pose.get('time'), f'{where}.time')
    _numbers(pose.get('p'), 3, f'{where}.p')
    _numbers(pose.get('r'), 4, f'{where}.r')
    if 'g' in pose:
        _numbers(pose['g'], 3, f'{where}.g')


def check_event(record: object, where: str) -> None:
    """Check an event: ``name``, ``time``, ``point``, and maybe ``properties`` and ``dynamicId``."""
    event = _object(record, where)
    _text(event.get('name'), f'{where}.name')
    _number(event.get('time'), f'{where}.time')
    _numbers(event.get('point'), 3, f'{where}.point')
    if 'dynamicId' in event:
        _text(event['dynamicId'], f'{where}.dynamicId')
    for key, value in _object(event.get('properties', {}), f'{where}.properties').items():
        check_property(value, f'{where}.properties[{_short(key)}]')


def check_series(record: object, where: str) -> None:
    """Check a sensor series: ``name``, and ``data`` of ``[time, value]`` pairs."""
    for index, sample in enumerate(_series_data(record, where)):
        check_sample(sample, f'{where}.data[{index}]')


def check_series_head(record: object, where: str) -> None:
    """Check a sensor series but for its samples."""
    _series_data(record, where)


def _series_data(record: object, where: str) -> list[object]:
    series = _object(record, where)
    _text(series.get('name'), f'{where}.name')
    samples = series.get('data')
    if not isinstance(samples, list):
        _wrong(f'{where}.data', 'a list wanted', samples)
    return samples


def check_sample(sample: object, where: str) -> None:
    """Check a sample of a series: ``[time, value]``."""
    _numbers(sample, 2, where)


def check_snapshot(record: object, where: str) -> None:
    """Check a snapshot of a Dynamic Object: ``id``, ``time``, ``p``, ``r``, maybe ``properties``."""
    snapshot = _object(record, where)
    _text(snapshot.get('id'), f'{where}.id')
    check_pose(record, where)
    properties = snapshot.get('properties', [])
    if not isinstance(properties, list) or not all(isinstance(x, dict) for x in properties):
        _wrong(f'{where}.properties', 'a list of objects wanted', properties)


RECORD_CHECKS: Mapping[str, Callable[[object, str], None]] = {
    'gaze': check_pose,
    'events': check_event,
    'sensors': check_series,
    'dynamics': check_snapshot,
}
"""The check of one record of ``data``, by stream: takes the record and where it stands."""


def _parse(body: bytes) -> object:
    try:
        return json.loads(body.decode('utf-8'), parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        raise FormatError(f'not UTF-8: byte {error.start} is 0x{body[error.start]:02x}') from None
    except RecursionError:
        raise FormatError('not JSON that can be read: nested too deep') from None
    except ValueError as error:  # JSONDecodeError, and a number of thousands of digits
        raise FormatError(f'not JSON: {error}') from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f'{name} is no JSON number')


def _object(value: object, where: str) -> Json:
    if not isinstance(value, dict):
        _wrong(where, 'an object wanted', value)
    return value


def _text(value: object, where: str) -> str:
    if not isinstance(value, str) or not value:
        _wrong(where, 'a text wanted', value)
    return value


def _number(value: object, where: str, wanted: str = 'a finite number') -> float:
    # To Python a bool is an int.
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not _finite(value):
        _wrong(where, f'{wanted} wanted', value)
    return value


def _finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond any float
        return False


def _numbers(value: object, count: int, where: str) -> None:
    if not isinstance(value, list) or len(value) != count:
        _wrong(where, f'{count} finite numbers wanted', value)
    for item in value:
        if type(item) is not float or not math.isfinite(item):
            _number(item, where, f'{count} finite numbers')


def _wrong(where: str, wanted: str, value: object) -> NoReturn:
    raise FormatError(f'{where}: {wanted}, not {_short(value)}')


def _short(value: object) -> str:
    """Return a value in few characters, for a message."""
    return 'nothing' if value is None else _REPR.repr(value)


_REPR = reprlib.Repr()
_REPR.maxlevel, _REPR.maxlist, _REPR.maxdict, _REPR.maxstring, _REPR.maxlong = 2, 5, 3, 60, 40
