"""Closing the sessions whose process died: data format, Sessions."""

from __future__ import annotations

import json

from cognitive3d_ros.counters import Drop
from cognitive3d_ros.errors import SpoolError
from cognitive3d_ros.log import Log
from cognitive3d_ros.recording.accounts import LOSSES
from cognitive3d_ros.spool import SessionSpool, Spool
from cognitive3d_ros.wire import bodies
from cognitive3d_ros.wire.assemble import assemble
from cognitive3d_ros.wire.bodies import PropertyValue
from cognitive3d_ros.wire.numbers import elapsed

ENDED = b'{"ended":true}'
"""The context of a session whose ``c3d.sessionEnd`` is recorded: what is missing is only its last parts."""


def close_unended(spool: Spool, log: Log) -> list[str]:
    """Close the sessions that have no end, as ``abnormalEnd``; return their ids.

    The end lies at the latest durable record, at the last stored pose sample's position. A session that died
    between its own end and its last part gets no second one.
    """
    closed = []
    for identity in spool.unended():
        session_id = identity.session_id
        try:
            session = spool.resume(session_id, assemble)
        except SpoolError as error:
            log.error(f'session {session_id} cannot be closed: {error}')
            continue
        if session.lost_entries:
            lost = f'journal: {session.lost_entries} {Drop.DISK_ERROR.value}'
            entry = bodies.properties_entry({LOSSES: lost})
            session.append('gaze', 'properties', entry, time_ns=0, at_ns=0)
        if session.context != ENDED:
            _end(session)
            closed.append(session_id)
        if not session.finish():
            log.error(f'session {session_id} is closed in memory only: {session.error}')
    if closed:
        log.warning(f'closed {len(closed)} session(s) that had not ended: {", ".join(closed)}')
    return closed


def _end(session: SessionSpool) -> None:
    """Record the end of a session that has none."""
    identity = session.identity
    end_ns = max(session.latest_ns, identity.start_ns)
    properties: dict[str, PropertyValue] = {
        'Reason': 'abnormalEnd',
        'sessionlength': elapsed(identity.start_ns, end_ns),
        'c3d.recovered': True,
    }
    point: bodies.Vector3 = (0.0, 0.0, 0.0)
    try:
        x, y, z = map(float, json.loads(session.context)['p'])
        point = (x, y, z)
    except (ValueError, KeyError, TypeError):
        properties['c3d.position_unknown'] = True
    entry = bodies.event_entry('c3d.sessionEnd', end_ns, point, properties)
    session.append(
        'events',
        'events',
        entry,
        time_ns=end_ns,
        at_ns=end_ns - identity.start_ns,
        context=ENDED,
    )
