"""What of MRPT's observations has no place in a session: it is named, not dropped in silence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from cognitive3d_ros.wire.mrpt import classes as mrpt

_IMU_TAKEN: Final = (*range(6), 21, 22, 23, 24)  # acceleration, rates and orientation

_LOST: Final[Mapping[type[Any], tuple[tuple[str, Callable[[Any], object]], ...]]] = {
    mrpt.RangeScan: (
        ('the error and the beam width of laser scans', lambda o: o.std_error or o.beam_aperture),
        ('the pitch of laser scans that nod', lambda o: o.delta_pitch),
    ),
    mrpt.Movement2D: (
        ('error models and covariances of movements', lambda _: True),
        ('encoder ticks', lambda o: o.encoders is not None),
    ),
    mrpt.Movement3D: (
        ('error models and covariances of movements', lambda _: True),
        ('velocities of movements in space', lambda o: o.has_velocity.any()),
    ),
    mrpt.Odometry: (('encoder ticks', lambda o: o.encoders is not None),),
    mrpt.RobotPose: (('covariances of robot poses', lambda o: any(o.pose.covariance)),),
    mrpt.DepthScan: (
        ('the confidence and the error of depth scans', lambda o: o.confidence or o.std_error),
    ),
    mrpt.Imu: (
        (
            'what IMUs measured besides acceleration, rates and orientation',
            lambda o: any(o.present[n] for n in range(len(o.present)) if n not in _IMU_TAKEN),
        ),
    ),
    mrpt.Battery: (
        (
            'voltages of batteries but the main one',
            lambda o: o.computer_known or o.other_known.any(),
        ),
    ),
    mrpt.RawDaq: (('readings that are no double', lambda o: o.others),),
}


def lost(observation: Any) -> Iterator[str]:
    """Name what of an observation or a movement no message of it holds."""
    for what, there_is in _LOST.get(type(observation), ()):
        if there_is(observation):
            yield what
