"""The path as a TUM trajectory: ``t x y z qx qy qz qw`` in each line, seconds and metres."""

from __future__ import annotations

from pathlib import Path

from cognitive3d_ros.export.job import Job
from cognitive3d_ros.export.ros import RosView

_NS_PER_S = 1_000_000_000
_LINES = 10_000


def export(job: Job, work: Path) -> None:
    """Write the pose timeline."""
    job.poses_only()
    path = RosView(job, frames=False).path()
    with (work / job.name).open('w') as file:
        for at in range(0, len(path.time_ns), _LINES):
            rows = zip(*(column[at : at + _LINES].tolist() for column in path), strict=True)
            lines = [
                f'{ns // _NS_PER_S}.{ns % _NS_PER_S // 10_000:05d} '
                f'{x:.9g} {y:.9g} {z:.9g} {qx:.9f} {qy:.9f} {qz:.9f} {qw:.9f}\n'
                for ns, (x, y, z), (qx, qy, qz, qw) in rows
            ]
            file.writelines(lines)
            job.step(len(lines))
