"""``~/status`` and ``/diagnostics``: what the rooms say of themselves, as messages.

The names of all counts are the ledger's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from std_msgs.msg import Header

from cognitive3d_ros.counters import Count, Fate, Key, Level
from cognitive3d_ros.recording.accounts import LOSSES, losses
from cognitive3d_ros.recording.recorder import Status
from cognitive3d_ros.recording.sensors import health_series

from .engine import Engine

_OF_SPOOL = (Count.PARTS_WRITTEN, Count.PARTS_EVICTED, Count.PARTS_QUARANTINED)
_OF_UPLOADS = (Count.PARTS_UPLOADED, Count.UPLOAD_FAILURES)
_OF_RECORDER = tuple(count for count in Count if count not in _OF_SPOOL + _OF_UPLOADS)

_PATIENCE_S = 10.0  # how long a session, and its reference frame, are waited for without a warning

# Losses: a status stays a warning once one of these was counted.
_LOSSES = (
    Count.DROPPED_RECORDS,
    Count.DROPPED_EVENTS,
    Count.MESSAGES_LOST,
    Count.PARTS_EVICTED,
    Count.PARTS_QUARANTINED,
)


def message(status: Any, stamp: Time, state: str, engine: Engine | None) -> Any:
    """Fill in a RecorderStatus; without an engine nothing but the state is known."""
    status.header.stamp, status.state = stamp, state
    if engine is None:
        return status
    recorder, usage = engine.recorder.status(), engine.spool.usage()
    status.session_id = recorder.session_id
    status.session_seconds = recorder.session_s
    status.pose_samples, status.events = recorder.pose_samples, recorder.events
    status.dropped_records = recorder.dropped_records
    status.spool_bytes = usage.size_bytes + usage.quarantined_bytes
    status.spool_parts = usage.parts
    status.spool_oldest_seconds = usage.oldest_s
    status.upload_state = _upload_state(engine)
    lost = f'lost: {recorder.losses}' if recorder.losses else ''
    troubles = (
        engine.not_ready,
        _no_frame(recorder),
        recorder.error,
        engine.uploader.last_error,
        lost,
    )
    status.last_error = '; '.join(filter(None, troubles))
    return status


def diagnostics(stamp: Time, node: str, state: str, engine: Engine) -> DiagnosticArray:
    """Return the statuses of a configured node."""
    counts = {count: engine.ledger.value(count) for count in Count}
    recorder, usage = engine.recorder.status(), engine.spool.usage()

    def status(
        name: str, trouble: str, message: str, values: Mapping[str, object], *own: Count
    ) -> DiagnosticStatus:
        lossy = ', '.join(c.value for c in own if c in _LOSSES and counts[c])
        warn = trouble or (f'counted: {lossy}' if lossy else '')
        shown = {**values, **{c.value: counts[c] for c in own}}
        return DiagnosticStatus(
            level=DiagnosticStatus.WARN if warn else DiagnosticStatus.OK,
            name=f'{node}: {name}',
            message=warn or message,
            hardware_id=engine.config.device_id,
            values=[KeyValue(key=key, value=str(value)) for key, value in shown.items()],
        )

    session = {
        'session_id': recorder.session_id,
        'session_seconds': f'{recorder.session_s:.1f}',
        'reference_frame': recorder.reference_frame,
        'pose_samples': recorder.pose_samples,
        'events': recorder.events,
        LOSSES: losses(engine.ledger.snapshot()),  # since configure, as the counts are
    }
    spool = {
        Level.SPOOL_BYTES.value: usage.size_bytes + usage.quarantined_bytes,
        'quarantined_bytes': usage.quarantined_bytes,
        Level.SPOOL_PARTS.value: usage.parts,
        Level.SPOOL_OLDEST_S.value: f'{usage.oldest_s:.1f}',
        Level.DISK_FREE_BYTES.value: usage.free_bytes,
    }
    uploads = {Level.UPLOAD_BLOCKED.value: int(engine.uploader.state)}
    waiting = engine.not_ready if engine.waiting_s >= _PATIENCE_S else ''
    trouble = '; '.join(filter(None, (waiting, _no_frame(recorder), recorder.error)))
    full = 'full: the least important parts are dropped' if engine.spool.full else ''
    refused = f'cannot be written: {error}' if (error := engine.spool.error) else ''
    activity = engine.uploader.activity()
    held_up = '' if activity.good else str(activity)
    goes_on = str(activity) if engine.config.upload.enabled else _upload_state(engine)
    return DiagnosticArray(
        header=Header(stamp=stamp),
        status=[
            status('recorder', trouble, engine.not_ready or state, session, *_OF_RECORDER),
            status(
                'spool',
                '; '.join(filter(None, (refused, full))),
                f'{usage.parts} parts to deliver',
                spool,
                *_OF_SPOOL,
            ),
            status('uploads', held_up, goes_on, uploads, *_OF_UPLOADS),
            *(
                status(f'{kind} {name}', *_sensor(engine, f'{kind}.{name}'))
                for kind, names in (
                    ('camera', [camera.name for camera in engine.config.cameras]),
                    ('lidar', [lidar.name for lidar in engine.config.lidars]),
                )
                for name in names
            ),
        ],
    )


def _no_frame(recorder: Status) -> str:
    """Say that the session has no reference frame, if it has been without one for a while."""
    if recorder.reference_frame or recorder.session_s < _PATIENCE_S:
        return ''
    return 'no reference frame yet: tf does not connect one to the robot frame, so nothing has a place'


def _sensor(engine: Engine, source: str) -> tuple[str, str, Mapping[str, object]]:
    """Return what is wrong with a camera or lidar, what to say otherwise, and its counts."""
    series = health_series(source)
    values: dict[str, object] = {name: engine.ledger.value(key) for name, key in series}
    values[LOSSES] = losses(engine.ledger.snapshot(), source)
    lost = ', '.join(name for name, key in series if values[name] and key in _lost_of(source))
    received, stored = (
        engine.ledger.value((fate, source)) for fate in (Fate.RECEIVED, Fate.STORED)
    )
    return f'counted: {lost}' if lost else '', f'{stored} stored of {received} received', values


def _lost_of(source: str) -> set[Key]:
    return {(fate, source) for fate in (Fate.DROPPED, Fate.DECODE_FAILURES, Fate.POSE_FAILURES)}


def _upload_state(engine: Engine) -> str:
    if not engine.config.upload.enabled:
        return 'off'
    return engine.uploader.state.name.lower()
