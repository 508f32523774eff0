"""MRPT's poses: metres and radians; covariances are the diagonal, then the upper triangle."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np

from cognitive3d_ros.wire.mrpt.archive import Archive, MrptObject
from cognitive3d_ros.wire.mrpt.fields import Floats, mrpt, zeros


@mrpt('mrpt::poses::CPose3D', 3)
@dataclass(slots=True, eq=False)
class Pose3D(MrptObject):
    """A pose: ``xyz``, and its rotation as a matrix (3, 3)."""

    xyz: list[float] = field(default_factory=partial(zeros, 3))
    rotation: Floats = field(default_factory=lambda: np.eye(3))

    def _archive(self, ar: Archive) -> None:
        self.xyz = ar.numbers('f64', self.xyz, 3)
        self.rotation = ar.plane('<f8', self.rotation.ravel(), 9).reshape(3, 3)


@mrpt('mrpt::poses::CPose2D', 1)
@dataclass(slots=True)
class Pose2D(MrptObject):
    """A pose in the plane: ``x y phi``."""

    x_y_phi: list[float] = field(default_factory=partial(zeros, 3))

    def _archive(self, ar: Archive) -> None:
        self.x_y_phi = ar.numbers('f64', self.x_y_phi, 3)


@mrpt('mrpt::poses::CPose3DPDFGaussian', 1)
@dataclass(slots=True)
class Pose3DGaussian(MrptObject):
    """A pose and its covariance, of x y z yaw pitch roll."""

    mean: Pose3D = field(default_factory=Pose3D)
    covariance: list[float] = field(default_factory=partial(zeros, 21))

    def _archive(self, ar: Archive) -> None:
        self.mean = ar.object(self.mean, Pose3D)
        self.covariance = ar.numbers('f64', self.covariance, 21)


@mrpt('mrpt::poses::CPosePDFGaussian', 2)
@dataclass(slots=True)
class Pose2DGaussian(MrptObject):
    """A pose in the plane and its covariance."""

    mean: Pose2D = field(default_factory=Pose2D)
    covariance: list[float] = field(default_factory=partial(zeros, 6))

    def _archive(self, ar: Archive) -> None:
        self.mean = ar.object(self.mean, Pose2D)
        self.covariance = ar.numbers('f64', self.covariance, 6)
