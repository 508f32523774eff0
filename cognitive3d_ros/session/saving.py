"""Records written back as a session: through a spool, like those of a recorder."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from cognitive3d_ros.errors import ExportError, FormatError, SpoolError
from cognitive3d_ros.session.records import (
    CameraFrame,
    DynamicSnapshot,
    Event,
    LidarRecord,
    PoseSample,
    PropertyValue,
    Record,
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
    if path.exists():
        raise ExportError(f'{path} is there already: nothing is overwritten')
    work = Path(tempfile.mkdtemp(prefix=f'.{path.name}.', dir=path.absolute().parent))
    try:
        spool = Spool.open(work, limits=SpoolLimits(1 << 62, 0))
        try:
            session = spool.start(identity, assemble)
            _fill(session, properties, manifest, records)
            if not session.finish():
                raise ExportError(f'{path}: {session.error}')
        finally:
            spool.close()
        REAL_FS.rename(work / 'sessions' / identity.session_id, path)
        REAL_FS.sync_folder(path.absolute().parent)
    except SpoolError as error:
        raise ExportError(str(error)) from error
    finally:
        shutil.rmtree(work, ignore_errors=True)


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
            raise ExportError(f'a record of {len(entry)} bytes: the disk takes no more')
        if session.pending_bytes > _PENDING_BYTES and not session.flush():
            raise ExportError(str(session.error))

    append('gaze', 'properties', bodies.properties_entry(properties), start_ns)
    session.seal('gaze', 'properties')
    for known in manifest:
        facts = {'name': known.name, 'mesh': known.mesh, 'fileType': known.file_type}
        text = json.dumps({known.id: facts}, ensure_ascii=False)
        append('dynamics', 'pose', b'M' + text.encode(), start_ns)
    for record in records:
        stream, entry = _entry(record)
        append(stream, _KLASSES[stream], entry, record.time_ns)


def _entry(record: Record) -> tuple[str, bytes]:
    """Return a record's stream and its entry, checked as the gateway would. Raises ExportError."""
    if isinstance(record, CameraFrame | LidarRecord):
        return _sensor_entry(record)
    if isinstance(record, PoseSample):
        stream = 'gaze'
        entry = bodies.pose_entry(record.time_ns, record.p, record.r)
        if record.g is not None:
            entry = _with(entry, f'"g":{vector(record.g)}')
    elif isinstance(record, Event):
        stream = 'events'
        entry = bodies.event_entry(record.name, record.time_ns, record.point, record.properties)
        if record.dynamic_id is not None:
            entry = _with(entry, f'"dynamicId":{json.dumps(record.dynamic_id)}')
    elif isinstance(record, DynamicSnapshot):
        stream = 'dynamics'
        entry = bodies.snapshot_entry(record.id, record.time_ns, record.p, record.r, first=False)
        if record.properties:
            entry = _with(entry, f'"properties":{json.dumps(list(record.properties))}')
    elif isinstance(record, SeriesSample):
        entry = bodies.samples_entry(record.time_ns, [(record.name, record.value)])
        _check('sensors', _series(entry), record)
        return 'sensors', entry
    else:
        raise ExportError(f'{type(record).__name__} is no kind of record that is stored')
    _check(stream, entry[1:], record)
    return stream, entry


def _with(entry: bytes, member: str) -> bytes:
    """Return the entry of a JSON object with one more member."""
    return entry[:-1] + f',{member}}}'.encode()


def _series(entry: bytes) -> bytes:
    name, pair = entry[1:].split(b'\n')
    return b'{"name":' + name + b',"data":[' + pair + b']}'


def _check(stream: str, text: bytes, record: Record) -> None:
    try:
        schema.RECORD_CHECKS[stream](json.loads(text), type(record).__name__)
    except (FormatError, ValueError) as error:
        raise ExportError(f'a record that cannot be stored: {error}') from None


def _sensor_entry(record: CameraFrame | LidarRecord) -> tuple[str, bytes]:
    from cognitive3d_ros.wire import capnp_codec  # only here: most sessions need no pycapnp

    wire = to_wire(record)
    if isinstance(wire, CameraFrameRecord):
        return 'camera', capnp_codec.camera_entry(wire)
    return 'lidar', capnp_codec.lidar_entry(wire)
