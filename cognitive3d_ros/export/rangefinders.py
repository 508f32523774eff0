"""Described rangefinders as MRPT has them: cones whose place on the robot the session's properties say."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cognitive3d_ros.convert.described import METRES
from cognitive3d_ros.export.job import Job
from cognitive3d_ros.export.kitti import matrices
from cognitive3d_ros.quaternions import about_z
from cognitive3d_ros.wire.mrpt import classes as mrpt

_KIND = 'cone_rangefinder'


@dataclass(frozen=True, slots=True)
class Rangefinder:
    """A cone that a distance is measured in; lengths in metres, ``unit_m`` that of its series."""

    name: str
    unit_m: float
    min_m: float
    max_m: float
    cone_radians: float
    """The full angle."""
    pose: mrpt.Pose3D

    def measured(self, value: float, ticks: int) -> mrpt.Ranges:
        """Return a reading of its series as an observation."""
        found = [(0, self.pose, value * self.unit_m)]
        return mrpt.Ranges(self.min_m, self.max_m, self.cone_radians, found, self.name, ticks)


def rangefinders(job: Job, robot: str) -> dict[str, Rangefinder]:
    """Return the described rangefinders of a session by their series; note those whose place is not known."""
    properties = job.session.properties
    found = {}
    for name in str(properties.get('c3d.ros.sensors', '')).split(','):
        about = {
            key: properties.get(f'c3d.ros.sensor.{name}.{key}')
            for key in (
                *('kind', 'series', 'units', 'mount_parent', 'mount_xyz_meters'),
                *('mount_yaw_radians', 'cone_half_angle_degrees'),
                *('range_min_centimeters', 'range_max_centimeters'),
            )
        }
        if about['kind'] != _KIND or about['units'] not in METRES:
            continue
        pose = _mount(about, robot)
        if pose is None:
            job.note(f'{name}: its mount on {robot} is not known: it is taken to be at its origin')
        found[str(about['series'])] = Rangefinder(
            name,
            METRES[str(about['units'])],
            _number(about['range_min_centimeters']) / 100,
            _number(about['range_max_centimeters']) / 100 or math.inf,  # no limit is known
            math.radians(2 * _number(about['cone_half_angle_degrees'])),
            pose or mrpt.Pose3D(),
        )
    return found


def _mount(about: Mapping[str, object], robot: str) -> mrpt.Pose3D | None:
    try:
        xyz = [float(each) for each in str(about['mount_xyz_meters'] or '').split(',')]
    except ValueError:
        return None
    if len(xyz) != 3 or about['mount_parent'] not in (None, robot):
        return None
    yaw = about_z(math.degrees(_number(about['mount_yaw_radians'])))
    return mrpt.Pose3D(xyz, matrices(np.zeros((1, 3)), np.array([yaw]))[0, :, :3] + 0.0)


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
