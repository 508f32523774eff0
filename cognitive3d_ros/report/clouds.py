"""A few scans or clouds of each lidar, to be turned around in the page."""

from __future__ import annotations

import base64
from typing import Any, Final

import numpy as np

from cognitive3d_ros.report.svg import clock, tag, text
from cognitive3d_ros.report.view import View
from cognitive3d_ros.session.records import LidarRecord, PointCloud

_RECORDS: Final = 4  # of each lidar
_POINTS: Final = 12_000
_MOST_M: Final = 60.0  # from the sensor: what is farther away would make all else small
_PER_M: Final = 100.0  # whole centimetres


def clouds(view: View) -> tuple[str, list[dict[str, Any]]]:
    """Return the place of the clouds in the page, and their points for its script."""
    found = []
    for name in view.session.lidars:
        lidar = view.session.lidar(name)
        found += [_cloud(view, name, record) for record in view.spread(lidar, _RECORDS)]
    if not found:
        return '', []
    buttons = (
        tag('button', text(f'{each["name"]} {clock(each["t"])}'), type='button', data_cloud=n)
        for n, each in enumerate(found)
    )
    canvas = tag('canvas', id='cloud', width=1800, height=900)
    hint = tag('p', 'Drag to turn, wheel to zoom.', class_='hint')
    return tag('div', *buttons, class_='buttons') + canvas + hint, found


def _cloud(view: View, name: str, record: LidarRecord) -> dict[str, Any]:
    """Return points around the sensor in axes of the reference frame, and a colour for each."""
    origin = view.position(record.pose[:3])
    points = view.points(record) - origin
    near = np.linalg.norm(points, axis=1) <= _MOST_M
    keep = np.flatnonzero(near)
    keep = keep[:: max(1, -(-len(keep) // _POINTS))]
    made: dict[str, Any] = {
        'name': name,
        't': round(record.time - view.start, 2),
        'count': len(points),
        'xyz': _packed(np.rint(points[keep] * _PER_M), '<i2'),
    }
    if not isinstance(record, PointCloud) or not len(keep):
        return made
    if record.colors is not None:
        made['rgb'] = _packed(record.colors[keep], 'u1')
    elif record.intensities is not None:
        made['shade'] = _packed(record.intensities[keep], 'u1')
    return made


def _packed(values: Any, dtype: str) -> str:
    return base64.b64encode(np.ascontiguousarray(values, dtype).tobytes()).decode()
