"""Point clouds and scans as messages, without ROS: anything with the fields will do."""

from __future__ import annotations

import array
import gzip
import struct
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np

DATATYPES = {'i1': 1, 'u1': 2, 'i2': 3, 'u2': 4, 'i4': 5, 'u4': 6, 'f4': 7, 'f8': 8}


def cloud_message(points: np.ndarray, **changes) -> SimpleNamespace:
    """A ``sensor_msgs/PointCloud2`` of a structured array, (N,) or (height, width)."""
    rows = points.reshape(1, -1) if points.ndim == 1 else points
    fields = [
        SimpleNamespace(name=name, offset=offset, datatype=DATATYPES[kind.str[1:]], count=1)
        for name, (kind, offset, *_) in points.dtype.fields.items()
    ]
    swapped = any(kind.byteorder == '>' for kind, *_ in points.dtype.fields.values())
    values = {
        'height': rows.shape[0],
        'width': rows.shape[1],
        'fields': fields,
        'is_bigendian': swapped,
        'point_step': points.dtype.itemsize,
        'row_step': points.dtype.itemsize * rows.shape[1],
        'data': array.array('B', points.tobytes()),
        'is_dense': True,
    }
    return SimpleNamespace(**{**values, **changes})


def xyz(*rows, kind: str = '<f4', **more: tuple[str, list]) -> np.ndarray:
    """A structured array of x, y, z and other fields: ``xyz((1, 2, 3), intensity=('<f4', [0.5]))``."""
    layout = [(name, kind) for name in 'xyz'] + [(name, k) for name, (k, _) in more.items()]
    points = np.zeros(len(rows), layout)
    for i, name in enumerate('xyz'):
        points[name] = [row[i] for row in rows]
    for name, (_, values) in more.items():
        points[name] = values
    return points


def scan_message(**changes) -> SimpleNamespace:
    """A ``sensor_msgs/LaserScan``."""
    values = {
        'angle_min': -1.5,
        'angle_max': 1.5,
        'angle_increment': 0.5,
        'time_increment': 0.001,
        'scan_time': 0.1,
        'range_min': 0.1,
        'range_max': 30.0,
        'ranges': array.array('f', [1, 2, 3, 4, 5, 6, 7]),
        'intensities': array.array('f'),
    }
    return SimpleNamespace(**{**values, **changes})


def rawlog_scans(path: Path) -> Iterator[SimpleNamespace]:
    """The scans of an MRPT rawlog (CObservation2DRangeScan, version 7) as LaserScan messages.

    A ray that MRPT marks invalid is published as infinite, as a driver would.
    """
    log = gzip.decompress(path.read_bytes())
    name = b'\xa2mrpt::obs::CObservation2DRangeScan\x07'
    at = log.find(name)
    while at >= 0:
        at += len(name)
        aperture, right_to_left, longest = struct.unpack_from('<f?f', log, at)
        at += 9
        at += 1 + (log[at] & 0x7F) + 1 + 12 * 8 + 1  # the sensor's pose, a framed CPose3D
        (count,) = struct.unpack_from('<I', log, at)
        ranges = np.frombuffer(log, '<f4', count, at + 4).copy()
        valid = np.frombuffer(log, 'u1', count, at + 4 + 4 * count)
        ranges[valid == 0] = np.inf
        assert right_to_left
        yield scan_message(
            angle_min=-aperture / 2,
            angle_max=aperture / 2,
            angle_increment=aperture / (count - 1),
            range_min=0.0,
            range_max=longest,
            ranges=ranges,
        )
        at = log.find(name, at)
