"""Records written back as a session: through a spool, like those of a recorder."""

from __future__ import annotations

import json
import math
import numbers
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from cognitive3d_ros.errors import ExportError, FormatError, SpoolError
from cognitive3d_ros.results import work_folder
from cognitive3d_ros.session.records import (
    Annotation,
    CameraFrame,
    DynamicSnapshot,
    Event,
    LidarRecord,
    PointCloud,
    PoseSample,
    PropertyValue,
    Record,
    SensorRecord,
    SeriesSample,
)
from cognitive3d_ros.session.sensors import to_wire
from cognitive3d_ros.session.streams import DynamicObject
from cognitive3d_ros.spool import SessionSpool, Spool, SpoolLimits
from cognitive3d_ros.spool.fs import REAL_FS
from cognitive3d_ros.wire import bodies, schema
from cognitive3d_ros.wire.assemble import assemble
from cognitive3d_ros.wire.identity import SessionIdentity
from cognitive3d_ros.wire.numbers import vector
from cognitive3d_ros.wire.records import CameraFrameRecord

_PENDING_BYTES = 8 << 20
_LAST_S = (2**63 - 1) / 1e9  # times inside are nanoseconds in 64 bits
_UNIT = 1e-3
"""How far from 1 the norm of a rotation may be: five decimals, or a float32, are closer."""
_WHOLE = {
    'seq': 32,
    'width': 16,
    'height': 16,
    'point_count': 32,
    'voxel_leaf_mm': 16,
    'zstd_level': 8,
}
"""The whole numbers of sensor records, and how many bits the data format has for each."""
_JPEG_STARTS = b'\xff\xd8'
_KLASSES = {
    'gaze': 'pose',
    'events': 'events',
    'dynamics': 'pose',
    'sensors': 'series',
    'camera': 'camera',
    'lidar': 'lidar',
}


def save(
    path: Path,
    identity: SessionIdentity,
    properties: Mapping[str, PropertyValue],
    manifest: Iterable[DynamicObject],
    records: Iterable[Record],
) -> None:
    """Write a session's folder, which appears when it is whole.

    Raises ExportError if there is something at ``path``, or a record cannot be stored.
    """
    if os.path.lexists(path):
        raise ExportError(f'{path} is there already: nothing is overwritten')
    parent = path.absolute().parent
    if not parent.is_dir():
        raise ExportError(f'{parent} is no folder: {path.name} cannot be written there')
    work = path
    try:
        with work_folder(parent) as work:
            spool = Spool.open(work, limits=SpoolLimits(1 << 62, 0))
            try:
                session = spool.start(identity, assemble)
                _fill(session, properties, manifest, records)
                if not session.finish():
                    raise SpoolError(str(session.error))
            finally:
                spool.close()
            REAL_FS.rename(work / 'sessions' / identity.session_id, path)
            REAL_FS.sync_folder(parent)
    except SpoolError as error:
        # It names the folder that the session is made in, which nobody knows.
        reason = str(error).replace(str(work), str(path))
        raise ExportError(f'{path} cannot be written: {reason}') from error
    except OSError as error:
        raise ExportError(f'{path} cannot be written: {error.strerror or error}') from error


def _fill(
    session: SessionSpool,
    properties: Mapping[str, PropertyValue],
    manifest: Iterable[DynamicObject],
    records: Iterable[Record],
) -> None:
    start_ns = session.identity.start_ns

    def append(stream: str, klass: str, entry: bytes, time_ns: int) -> None:
        at_ns = max(0, time_ns - start_ns)
        if not session.append(stream, klass, entry, time_ns=time_ns, at_ns=at_ns):
            raise SpoolError(f'a record of {len(entry)} bytes: the disk takes no more')
        if session.pending_bytes > _PENDING_BYTES and not session.flush():
            raise SpoolError(str(session.error))

    append('gaze', 'properties', _properties_entry(properties), start_ns)
    session.seal('gaze', 'properties')
    for known in manifest:
        facts = {'name': known.name, 'mesh': known.mesh, 'fileType': known.file_type}
        text = json.dumps({known.id: facts}, ensure_ascii=False)
        append('dynamics', 'pose', b'M' + text.encode(), start_ns)
    for record in records:
        stream, entry = _entry(record)
        append(stream, _KLASSES[stream], entry, record.time_ns)


def _properties_entry(properties: Mapping[str, PropertyValue]) -> bytes:
    try:
        for name, value in properties.items():
            schema.check_property(value, f'property {name!r}')
    except FormatError as error:
        raise ExportError(f'a session that cannot be stored: {error}') from None
    return bodies.properties_entry(properties)


def _entry(record: Record) -> tuple[str, bytes]:
    """Return a record's stream and its entry, checked as the gateway would. Raises ExportError."""
    _check_numbers(record)
    try:
        if isinstance(record, CameraFrame | LidarRecord):
            return _sensor_entry(record)
        stream, entry = _json_entry(record)
        text = _series(entry) if stream == 'sensors' else entry[1:]
        schema.RECORD_CHECKS[stream](json.loads(text), type(record).__name__)
    except (FormatError, TypeError, ValueError, OverflowError, AttributeError) as error:
        _refuse(record, str(error))
    return stream, entry


def _json_entry(record: Record) -> tuple[str, bytes]:
    if isinstance(record, PoseSample):
        entry = bodies.pose_entry(record.time_ns, record.p, record.r)
        return 'gaze', entry if record.g is None else _with(entry, f'"g":{vector(record.g)}')
    if isinstance(record, Event):
        properties = _event_properties(record)
        entry = bodies.event_entry(record.name, record.time_ns, record.point, properties)
        if record.dynamic_id is not None:
            entry = _with(entry, f'"dynamicId":{json.dumps(record.dynamic_id)}')
        return 'events', entry
    if isinstance(record, DynamicSnapshot):
        entry = bodies.snapshot_entry(record.id, record.time_ns, record.p, record.r, first=False)
        if record.properties:
            facts = json.dumps(list(record.properties), allow_nan=False)
            entry = _with(entry, f'"properties":{facts}')
        return 'dynamics', entry
    if isinstance(record, SeriesSample):
        return 'sensors', bodies.samples_entry(record.time_ns, [(record.name, record.value)])
    raise ExportError(f'{type(record).__name__} is no kind of record that is stored')


def _event_properties(event: Event) -> Mapping[str, PropertyValue]:
    """Return the properties of an event; those of an annotation say what its fields do."""
    if not isinstance(event, Annotation):
        return event.properties
    fields: dict[str, PropertyValue] = {
        'annotation_time': event.annotation_time,
        **{name: getattr(event, name) for name in ('stream_name', 'key', 'value')},
    }
    unsaid = {'annotation_time': event.time, 'stream_name': '', 'key': '', 'value': ''}
    said = {**unsaid, **event.properties}
    changed = {name: value for name, value in fields.items() if said[name] != value}
    return {**event.properties, **changed}


def check_new(record: Record) -> None:
    """Check what a record that was put in holds. Raises ExportError for what no reader could read.

    Those of the session itself are saved as they are: they may be damaged, and not by who edits them.
    """
    _check_numbers(record)
    if isinstance(record, CameraFrame):
        for name in ('width', 'height'):
            if getattr(record, name) < 1:
                _refuse(record, f'{name}: at least 1 wanted, not {getattr(record, name)}')
        for name in ('hfov_degrees', 'vfov_degrees'):
            value = getattr(record, name)
            if not _finite(value, 1) or not 0 <= value <= 360:
                _refuse(record, f'{name}: 0 to 360 wanted, not {value!r:.100}')
        if not record.data:
            _refuse(record, 'data: the bytes of a picture wanted, there are none')
        if record.format == 'jpeg' and not record.data.startswith(_JPEG_STARTS):
            _refuse(record, f'data: a JPEG wanted, not {record.data[:20]!r}')
    elif isinstance(record, PointCloud):
        from cognitive3d_ros.wire import clouds  # and zstandard with it

        try:
            clouds.read(record.content)
        except FormatError as error:
            _refuse(record, f'data: {error}')


def _check_sensor(record: SensorRecord) -> None:
    for name, bits in _WHOLE.items():
        value = getattr(record, name, 0)
        is_whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
        if not is_whole or not 0 <= value < 1 << bits:
            wanted = f'a whole number from 0 to {(1 << bits) - 1} wanted'
            _refuse(record, f'{name}: {wanted}, not {value!r:.100}')
    if isinstance(record, CameraFrame | PointCloud) and not isinstance(record.data, bytes):
        _refuse(record, f'data: bytes wanted, not {record.data!r:.100}')
    if not _finite(record.pose, 7):
        _refuse(record, f'pose: 7 finite numbers wanted, not {record.pose!r:.100}')


def _check_annotation(record: Annotation) -> None:
    time = record.annotation_time
    if not _finite(time, 1) or abs(time) > _LAST_S:
        wanted = f'{-_LAST_S:.0f} to {_LAST_S:.0f} s wanted'
        _refuse(record, f'annotation_time: {wanted}, not {time!r:.100}')
    for name in ('stream_name', 'key', 'value'):
        if not isinstance(getattr(record, name), str):
            _refuse(record, f'{name}: a text wanted, not {getattr(record, name)!r:.100}')


def _check_numbers(record: Record) -> None:
    """Refuse what no session holds: a time, a place or a rotation that is none. Raises ExportError."""
    if not _finite(record.time, 1) or not 0 <= record.time <= _LAST_S:
        _refuse(record, f'time: 0 to {_LAST_S:.0f} s wanted, not {record.time!r:.100}')
    places: dict[str, Any] = {}
    rotations: dict[str, Any] = {}
    if isinstance(record, PoseSample | DynamicSnapshot):
        places['p'], rotations['r'] = record.p, record.r
        if isinstance(record, PoseSample) and record.g is not None:
            places['g'] = record.g
    elif isinstance(record, Event):
        places['point'] = record.point
        if isinstance(record, Annotation):
            _check_annotation(record)
    elif isinstance(record, SensorRecord):
        _check_sensor(record)
        places['pose[:3]'], rotations['pose[3:]'] = record.pose[:3], record.pose[3:]
    elif isinstance(record, SeriesSample) and not _finite(record.value, 1):
        _refuse(record, f'value: a finite number wanted, not {record.value!r:.100}')
    for name, value in places.items():
        if not _finite(value, 3):
            _refuse(record, f'{name}: 3 finite numbers wanted, not {value!r:.100}')
    for name, value in rotations.items():
        if not _finite(value, 4) or abs(math.hypot(*value) - 1) > _UNIT:
            _refuse(record, f'{name}: a unit quaternion x y z w wanted, not {value!r:.100}')


def _finite(value: Any, count: int) -> bool:
    """Say whether a value is so many finite numbers; those of cameras and lidars are stored as float32."""
    try:
        if np.asarray(value).dtype.kind in 'USb':
            return False  # a text that looks like a number is none, nor is a truth value
        found = np.asarray(value, dtype=np.float64)
        limit = np.finfo(np.float32).max if count == 7 else np.inf
        return found.size == count and bool((np.abs(found) < limit).all())
    except (TypeError, ValueError, OverflowError):
        return False


def _refuse(record: Record, reason: str) -> NoReturn:
    raise ExportError(f'a record that cannot be stored: {reason} ({record!r:.200})') from None


def _with(entry: bytes, member: str) -> bytes:
    """Return the entry of a JSON object with one more member."""
    return entry[:-1] + f',{member}}}'.encode()


def _series(entry: bytes) -> bytes:
    name, pair = entry[1:].split(b'\n')
    return b'{"name":' + name + b',"data":[' + pair + b']}'


def _sensor_entry(record: CameraFrame | LidarRecord) -> tuple[str, bytes]:
    import capnp  # only here: most sessions need no pycapnp

    from cognitive3d_ros.wire import capnp_codec

    wire = to_wire(record)
    try:
        if isinstance(wire, CameraFrameRecord):
            return 'camera', capnp_codec.camera_entry(wire)
        return 'lidar', capnp_codec.lidar_entry(wire)
    except capnp.KjException:  # its words are those of a library
        _refuse(record, 'a value is not of the type that the data format has for it')
