"""The facts of a session that are worth knowing at a glance, as plain values."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from cognitive3d_ros.counters import UploadBlocked
from cognitive3d_ros.session.markers import Region
from cognitive3d_ros.session.session import Session
from cognitive3d_ros.session.streams import HEALTH_PREFIX, Floats, Poses, Series
from cognitive3d_ros.session.verify import FAR_M, unaccounted

UPLOAD_BLOCKED = 'c3d.upload_blocked'


def state(session: Session) -> str:
    """Return how a session ended, in a word or two."""
    if session.ended:
        reason = session.end_reason or 'no reason given'
        return f'{reason} (recovered)' if session.recovered else reason
    return 'being recorded, or to be recovered' if session.has_journal else 'no end'


def row(session: Session) -> dict[str, Any]:
    """Return one line's worth of a session. Times are seconds, ``start`` since the epoch."""
    return {
        'id': session.id,
        'device_id': session.device_id,
        'scene_id': session.scene_id,
        'scene_version': session.scene_version,
        'name': str(session.properties.get('c3d.sessionname', '')),
        'start': session.start,
        'duration': round(session.duration, 5),
        'state': state(session),
        'ended': session.ended,
        'parts': len(session.parts),
        'poses': session.pose_count(),
        'events': len(session.events),
        'unreadable': len(session.faults),
    }


@np.errstate(over='ignore', invalid='ignore')  # what is too large to add up is infinite
def summary(session: Session) -> dict[str, Any]:
    """Return the facts of a session, its events and properties included.

    Lengths are metres and times seconds; ``at`` is since the session's start.
    """
    start = session.start
    facts = row(session)
    facts |= {
        'end': session.end,
        'reason': session.end_reason,
        'recovered': session.recovered,
        'convention': session.convention,
        'reference_frame': str(session.properties.get('c3d.ros.reference_frame', '')),
        'comment': session.comment,
        'parts_by_stream': dict(Counter(part.stream for part in session.parts)),
        'pose_timeline': _timeline(session.poses),
        'dynamic_objects': _dynamics(session),
        'event_list': [
            {
                'at': round(event.time - start, 5),
                'name': event.name,
                'point': list(event.point) if event.is_placed else None,
                'properties': dict(event.properties),
            }
            for event in session.events
        ],
        'series': [_series(each) for each in session.series.values() if not _is_health(each)],
        'health': {each.name: each[-1][1] for each in session.series.values() if _is_health(each)},
        'regions': [region_facts(region, start) for region in session.regions()],
        'properties': dict(session.properties),
        'unaccounted': unaccounted(session),
        'faults': list(dict.fromkeys(map(str, (*session.faults, *session.damaged())))),
    }
    return facts


def region_facts(region: Region, start: float) -> dict[str, Any]:
    """Return a marked region; its times are seconds since the session's start."""
    return {
        'index': region.index,
        'state': region.state.value,
        'start': round(region.start - start, 5),
        'stop': None if region.stop is None else round(region.stop - start, 5),
        'start_text': region.start_text,
        'stop_text': region.stop_text,
    }


def metres(value: float, decimals: int = 2) -> str:
    """Return a length as text: one that no robot goes is not written out."""
    return f'{value:.{decimals}f}' if abs(value) <= FAR_M else f'{value:.3g}'


def blocked_by(value: float) -> str:
    """Return what a value of ``c3d.upload_blocked`` means."""
    known = {int(each): each.name.lower() for each in UploadBlocked}
    return known.get(int(value), str(value))


def _is_health(series: Series) -> bool:
    return series.name.startswith(HEALTH_PREFIX)


def _rate(times: Floats) -> float:
    span = float(times.max() - times.min()) if len(times) else 0.0
    return round((len(times) - 1) / span, 3) if span > 0 else 0.0


def _timeline(poses: Poses) -> dict[str, Any]:
    if not len(poses):
        return {'samples': 0}
    # What is no place is no part of the path: verify names it.
    known = poses.p[(np.abs(poses.p) <= FAR_M).all(axis=1)]
    steps = np.linalg.norm(np.diff(known, axis=0), axis=1)
    extent = np.ptp(known, axis=0) if len(known) else np.zeros(3)
    gaps = np.diff(poses.time)
    return {
        'samples': len(poses),
        'rate_hz': _rate(poses.time),
        'longest_gap_s': round(float(gaps.max()), 5) if len(gaps) else 0.0,
        'path_m': round(float(steps.sum()), 3),
        'extent_m': [round(x, 3) for x in extent.tolist()],
        'gaze_points': poses.g is not None,
    }


def _dynamics(session: Session) -> list[dict[str, Any]]:
    counts = Counter(session.dynamics.ids)
    ids = dict.fromkeys([*session.dynamics.manifest, *counts])
    found = []
    for object_id in ids:
        known = session.dynamics.manifest.get(object_id)
        found.append(
            {
                'id': object_id,
                'name': known.name if known else '',
                'mesh': known.mesh if known else '',
                'snapshots': counts[object_id],
            }
        )
    return found


def _series(series: Series) -> dict[str, Any]:
    values = series.value
    facts: dict[str, Any] = {'name': series.name, 'samples': len(series)}
    if len(values):
        facts |= {
            'rate_hz': _rate(series.time),
            'min': float(values.min()),
            'mean': round(float(values.mean()), 5),
            'max': float(values.max()),
            'last': float(values[-1]),
        }
    return facts
