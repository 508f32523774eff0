"""JSON bodies of the four JSON streams, and the entries they are made of.

An *entry* is what the recorder hands to the spool: the bytes of one record, serialised once, journalled as
they are and joined into a body when their part closes. The first byte says what an entry is:

=====  ============  ==========================================================================
byte   stream        what follows
=====  ============  ==========================================================================
``D``  all but       the JSON of one record of ``data``
       ``sensors``
``P``  ``gaze``      the JSON object of session properties, the changed ones only
``M``  ``dynamics``  the JSON object of the manifest
``S``  ``sensors``   for each series its name as JSON, a line feed, a ``[time,value]`` pair, and a line
                     feed between series
=====  ============  ==========================================================================

Bodies are as the platform's other SDKs send them: an envelope, then ``data``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from .identity import SessionIdentity
from .numbers import number as _number
from .numbers import seconds, vector

JSON_CONTENT_TYPE = 'application/json'

Vector3 = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]
PropertyValue = str | int | float | bool


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(',', ':'))


def _property(value: PropertyValue) -> str:
    if isinstance(value, float) and 0 < abs(value) < 1e-4 and round(value, 5) == value:
        return f'{value:.5f}'  # json would bring an exponent
    return _text(value)


def _properties(properties: Mapping[str, PropertyValue]) -> str:
    pairs = [f'{_text(name)}:{_property(value)}' for name, value in properties.items()]
    return '{' + ','.join(pairs) + '}'


def pose_entry(time_ns: int, position: Vector3, rotation: Quaternion) -> bytes:
    """Return one record of the pose timeline: scene position in metres, rotation x y z w.

    Source: data format, The pose timeline. There is no gaze point.
    """
    return f'D{{"time":{seconds(time_ns)},"p":{vector(position)},"r":{vector(rotation)}}}'.encode()


def properties_entry(properties: Mapping[str, PropertyValue]) -> bytes:
    """Return session properties: the new or changed ones."""
    return b'P' + _properties(properties).encode('utf-8', 'replace')


def event_entry(
    name: str, time_ns: int, point: Vector3, properties: Mapping[str, PropertyValue]
) -> bytes:
    """Return one event at a scene position in metres (data format, Events)."""
    tail = f',"properties":{_properties(properties)}' if properties else ''
    head = f'D{{"name":{_text(name)},"time":{seconds(time_ns)},"point":{vector(point)}'
    return f'{head}{tail}}}'.encode('utf-8', 'replace')


@lru_cache(maxsize=8192)
def _name(name: str) -> str:
    return _text(name)


def samples_entry(time_ns: int, samples: Iterable[tuple[str, float]]) -> bytes:
    """Return samples of sensor series, (name, value), taken at one time; values are finite."""
    time = seconds(time_ns)
    text = '\n'.join([f'{_name(name)}\n[{time},{_number(value)}]' for name, value in samples])
    return b'S' + text.encode('utf-8', 'replace')


def manifest_entry(object_id: str, name: str, mesh: str) -> bytes:
    """Return the manifest of one Dynamic Object."""
    manifest = {object_id: {'name': name, 'mesh': mesh, 'fileType': 'gltf'}}
    return b'M' + _text(manifest).encode('utf-8', 'replace')


def snapshot_entry(
    object_id: str, time_ns: int, position: Vector3, rotation: Quaternion, *, first: bool
) -> bytes:
    """Return a snapshot of a Dynamic Object; the first one of a session enables it."""
    tail = ',"properties":[{"enabled":true}]' if first else ''
    head = f'D{{"id":{_text(object_id)},"time":{seconds(time_ns)},"p":{vector(position)}'
    return f'{head},"r":{vector(rotation)}{tail}}}'.encode('utf-8', 'replace')


def _sensor_data(entries: Sequence[bytes]) -> bytes:
    """Group samples by series, in the order in which the series first appear."""
    series: dict[bytes, list[bytes]] = {}
    for entry in entries:
        lines = entry[1:].split(b'\n')
        for name, pair in zip(lines[::2], lines[1::2], strict=True):
            series.setdefault(name, []).append(pair)
    return b','.join(
        b'{"name":' + name + b',"data":[' + b','.join(pairs) + b']}'
        for name, pairs in series.items()
    )


def assemble(
    identity: SessionIdentity, stream: str, klass: str, number: int, entries: Sequence[bytes]
) -> tuple[bytes, str]:
    """Return the body of a JSON part and its content type.

    ``stream`` is one of gaze, events, sensors, dynamics; ``number`` the part's number, from 1. The same
    entries give the same bytes, always: a part that is built again after a crash is the same part.
    Raises ValueError for a stream that has no JSON body.
    """
    device = _text(identity.device_id)
    if stream == 'sensors':
        head = f'{{"name":{device},"sessionid":{_text(identity.session_id)}'
        version = '2.0'
    elif stream in ('gaze', 'events', 'dynamics'):
        head = f'{{"userid":{device},"sessionid":{_text(identity.session_id)}'
        version = '1.0'
    else:
        raise ValueError(f'stream {stream!r} of class {klass!r} has no JSON body')
    body = [
        f'{head},"timestamp":{identity.second},"part":{number},"formatversion":"{version}"'.encode()
    ]
    records = entries
    if stream == 'gaze':
        body.append(f',"interval":{_number(identity.interval_s)}'.encode())
        merged: dict[str, PropertyValue] = {}
        for entry in entries:
            if entry[:1] == b'P':
                merged.update(json.loads(entry[1:]))
        if merged:
            body.append(b',"properties":' + _properties(merged).encode())
        records = [entry for entry in entries if entry[:1] == b'D']
    elif stream == 'dynamics':
        manifest: dict[str, object] = {}
        for entry in entries:
            if entry[:1] == b'M':
                manifest.update(json.loads(entry[1:]))
        if manifest:
            body.append(b',"manifest":' + _text(manifest).encode())
        records = [entry for entry in entries if entry[:1] == b'D']
    body.append(b',"data":[')
    body.append(
        _sensor_data(records) if stream == 'sensors' else b','.join(entry[1:] for entry in records)
    )
    body.append(b']}')
    return b''.join(body), JSON_CONTENT_TYPE
