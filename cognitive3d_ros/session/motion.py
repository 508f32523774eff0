"""The robot's motion from one sensor record to the next."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cognitive3d_ros.quaternions import Quaternion, Vector, multiply_array, rotate_array
from cognitive3d_ros.session.records import SensorRecord

if TYPE_CHECKING:
    from cognitive3d_ros.session.session import Session


class Motion(NamedTuple):
    """How the robot moved between two times, seen from where it was at the first: REP-103 axes.

    The robot is what the pose timeline follows: the gaze frame where the session has one.
    """

    start: float
    end: float
    translation: Vector
    """Metres: x ahead, y to the left, z up, as the robot stood at ``start``."""
    rotation: Quaternion
    """x y z w."""


def pairs(session: Session, *, bare: bool) -> Iterator[tuple[Motion | None, SensorRecord]]:
    """Give each sensor record with the motion since the one before it, by time.

    There is no motion for the first, and where the pose timeline does not tell it: such records are left
    out, unless ``bare``. Raises ReadError where the session does not say its pose convention.
    """
    axes = session.axes
    records = session.timeline(SensorRecord)
    known, p, r, _ = session.track.at(records.time)
    p, r = axes.ros_position(p), axes.ros_pose_rotation(r)
    back = r[:-1] * (-1.0, -1.0, -1.0, 1.0)
    steps = rotate_array(back, p[1:] - p[:-1])
    turns = multiply_array(back, r[1:])
    told = np.concatenate([[False], known[:-1] & known[1:]]) if len(known) else known
    for index in range(len(records)):
        if not bare and not told[index]:
            continue
        motion = None
        if told[index]:
            (x, y, z), (qx, qy, qz, qw) = steps[index - 1].tolist(), turns[index - 1].tolist()
            start, end = records.time[index - 1 : index + 1].tolist()
            motion = Motion(start, end, (x, y, z), (qx, qy, qz, qw))
        found: Any = records.readable([index])  # the timeline of cameras and lidars only
        for record in found:
            yield motion, record
