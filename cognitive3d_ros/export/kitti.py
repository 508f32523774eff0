"""The path as KITTI poses: the upper 3 x 4 of a pose's matrix in each line, row by row."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from cognitive3d_ros.export.job import Job
from cognitive3d_ros.export.ros import RosView
from cognitive3d_ros.quaternions import Array, rotate_array

_LINES = 10_000


def export(job: Job, work: Path) -> None:
    """Write the pose timeline."""
    job.poses_only()
    job.note('KITTI poses have no times: one line for each pose sample')
    path = RosView(job, frames=False).path()
    with (work / job.name).open('w') as file:
        for at in range(0, len(path.time_ns), _LINES):
            rows = matrices(path.p[at : at + _LINES], path.r[at : at + _LINES])
            np.savetxt(file, rows.reshape(-1, 12), fmt='%.9g')
            job.step(len(rows))


def matrices(p: Array, r: Array) -> Array:
    """Return poses as matrices (N, 3, 4)."""
    columns = [rotate_array(r, axis) for axis in np.eye(3)]
    return np.stack([*columns, p], axis=-1)
