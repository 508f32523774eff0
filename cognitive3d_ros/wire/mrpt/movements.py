"""MRPT's movements, and the collections that rawlogs of actions and frames are made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cognitive3d_ros.wire.mrpt.archive import Archive, MrptObject
from cognitive3d_ros.wire.mrpt.fields import Single, mrpt, optional, zeros
from cognitive3d_ros.wire.mrpt.poses import Pose2D, Pose2DGaussian, Pose3DGaussian


@mrpt('mrpt::obs::CSensoryFrame', 2)
@dataclass(slots=True)
class SensoryFrame(MrptObject):
    """Observations from one place."""

    observations: list[Any] = field(default_factory=list)

    def _archive(self, ar: Archive) -> None:
        self.observations = _objects(ar, self.observations)


@mrpt('mrpt::obs::CActionCollection', 0)
@dataclass(slots=True)
class ActionCollection(MrptObject):
    """What the robot did between two frames."""

    actions: list[Any] = field(default_factory=list)

    def _archive(self, ar: Archive) -> None:
        self.actions = _objects(ar, self.actions)


@mrpt('mrpt::obs::CActionRobotMovement2D', 7)
@dataclass(slots=True)
class Movement2D(MrptObject):
    """A movement in the plane, by odometry or by matching scans."""

    by_scans: bool = False
    increment: Pose2D = field(default_factory=Pose2D)
    model: int = 0
    gaussian: list[float] = field(default_factory=partial(zeros, 6))
    particles: int = 300
    thrun: list[float] = field(default_factory=partial(zeros, 6))
    matched: Any = None
    velocity: list[float] | None = None
    encoders: list[int] | None = None
    ticks: int = 0

    def _archive(self, ar: Archive) -> None:
        self.by_scans = bool(ar.number('u32', int(self.by_scans)))
        if self.by_scans:
            self.matched = ar.object(self.matched, Pose2DGaussian)
            self.increment = self.matched.mean
        else:
            self.increment = ar.object(self.increment, Pose2D)
            self.model = ar.number('u32', self.model)
            self.gaussian = ar.numbers('f32', self.gaussian, 6)
            self.particles = ar.number('u32', self.particles)
            self.thrun = ar.numbers('f32', self.thrun, 6)
        self.velocity = optional(ar, 'f64', self.velocity, 3)
        self.encoders = optional(ar, 'i32', self.encoders, 2)
        self.ticks = ar.number('u64', self.ticks)


@mrpt('mrpt::obs::CActionRobotMovement3D', 1)
@dataclass(slots=True, eq=False)
class Movement3D(MrptObject):
    """A movement in space."""

    method: int = 0
    change: Pose3DGaussian = field(default_factory=Pose3DGaussian)
    has_velocity: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(6, np.uint8))
    velocity: Single = field(default_factory=lambda: np.zeros(6, np.float32))
    ticks: int = 0

    def _archive(self, ar: Archive) -> None:
        self.method = ar.number('u32', self.method)
        self.change = ar.object(self.change, Pose3DGaussian)
        self.has_velocity = ar.vector('u1', self.has_velocity)
        self.velocity = ar.vector('<f4', self.velocity)
        self.ticks = ar.number('u64', self.ticks)


def _objects(ar: Archive, values: list[Any]) -> list[Any]:
    count = ar.number('u32', len(values))
    return [ar.object(value) for value in values or [None] * count]
