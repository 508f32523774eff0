"""Where the points of a stored record are in the scene: the rules for point clouds and laser scans.

Source: data format, Reading a sensor pose. Both need nothing but the record.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from cognitive3d_ros.quaternions import Array, rotate_array
from cognitive3d_ros.wire.records import LaserScanData, Pose


def place(points: ArrayLike, pose: Pose) -> Array:
    """Return points (N, 3) of a cloud's block, or the rays of a scan, in the scene: float64 metres."""
    placed: Array = rotate_array(pose[3:], points) + np.asarray(pose[:3])
    return placed


def ray_points(scan: LaserScanData) -> Array:
    """Return the ends of a scan's rays in its own plane, (N, 3) in metres.

    Rays whose range is not finite or lies outside ``range_min`` to ``range_max`` are left out, and those of
    which the scan does not say the direction: an angle that is not finite.
    """
    ranges = scan.ranges.astype(np.float64)
    valid = np.isfinite(ranges) & (ranges >= scan.range_min) & (ranges <= scan.range_max)
    with np.errstate(invalid='ignore'):
        angles = scan.angle_min + np.arange(len(ranges)) * scan.angle_increment
    valid &= np.isfinite(angles)
    ranges, angles = ranges[valid], angles[valid]
    return np.stack(
        [ranges * np.cos(angles), ranges * np.sin(angles), np.zeros_like(ranges)], axis=-1
    )
