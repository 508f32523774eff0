"""The three pose conventions: from ROS axes (REP-103) to the session's scene axes, and back.

The formulas are those of the data format, "Coordinates and units", signs as printed there; the laser
scan's is derived from "Reading a sensor pose": with R the ROS rotation, M the position map and
D = diag(1, 1, −1), its matrix is M R D where M is a reflection, and R under ``rep103``. In the same
terms an object's rotation is M R Mᵀ, and the pose timeline's is M R E, where E's columns −Y, Z, X make
the stored +Z point forward and +Y up.

Each formula stands once, in ``_TABLES``, and serves single values and arrays alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cognitive3d_ros.quaternions import Array, Quaternion, Vector, normalised, normalised_array

BODY_FORWARD_X: Final = 'body_forward_x'
OPTICAL_FORWARD_Z: Final = 'optical_forward_z'

# Each takes components and returns components; Any is a float or an array of them.
_Rule3 = Callable[[Any, Any, Any], tuple[Any, Any, Any]]
_Rule4 = Callable[[Any, Any, Any, Any], tuple[Any, Any, Any, Any]]


class _Table(NamedTuple):
    """The formulas of one convention, each beside its inverse."""

    position: _Rule3
    ros_position: _Rule3
    pose: _Rule4
    ros_pose: _Rule4
    object: _Rule4
    ros_object: _Rule4
    scan: _Rule4
    ros_scan: _Rule4


def _same3(x: Any, y: Any, z: Any) -> tuple[Any, Any, Any]:
    return (x, y, z)


def _same4(x: Any, y: Any, z: Any, w: Any) -> tuple[Any, Any, Any, Any]:
    return (x, y, z, w)


_s = math.sqrt(0.5)

_TABLES: Final = {
    'gltf_authored': _Table(
        position=lambda x, y, z: (-x, z, -y),
        ros_position=lambda a, b, c: (-a, -c, b),
        pose=lambda x, y, z, w: (_s * (x + y), -_s * (z + w), _s * (y - x), _s * (w - z)),
        ros_pose=lambda a, b, c, d: (_s * (a - c), _s * (a + c), -_s * (b + d), _s * (d - b)),
        object=lambda x, y, z, w: (x, -z, y, w),
        ros_object=lambda a, b, c, d: (a, c, -b, d),
        scan=lambda x, y, z, w: (_s * (y - z), -_s * (w + x), _s * (w - x), -_s * (y + z)),
        ros_scan=lambda a, b, c, d: (-_s * (b + c), _s * (a - d), -_s * (a + d), _s * (c - b)),
    ),
    'unity': _Table(
        position=lambda x, y, z: (-y, z, x),
        ros_position=lambda a, b, c: (c, -a, b),
        pose=lambda x, y, z, w: (-y, z, x, -w),
        ros_pose=lambda a, b, c, d: (c, -a, b, -d),
        object=lambda x, y, z, w: (-y, z, x, -w),
        ros_object=lambda a, b, c, d: (c, -a, b, -d),
        scan=lambda x, y, z, w: (
            0.5 * (w - x + y - z),
            -0.5 * (w + x + y + z),
            0.5 * (w - x - y + z),
            0.5 * (w + x - y - z),
        ),
        ros_scan=lambda a, b, c, d: (
            -0.5 * (a + b + c - d),
            0.5 * (a - b - c - d),
            -0.5 * (a + b - c + d),
            0.5 * (a - b + c + d),
        ),
    ),
    'rep103': _Table(_same3, _same3, _same4, _same4, _same4, _same4, _same4, _same4),
}

CONVENTIONS: Final = tuple(_TABLES)
"""The names of the conventions, the default first."""


class Convention:
    """One pose convention, by name: ``gltf_authored``, ``unity`` or ``rep103``.

    Positions are (…, 3) in metres, quaternions (…, 4) with w last, arrays of float64. Quaternions are
    normalised first; one that is zero or not finite becomes four NaN. The ``…_tuple`` methods do the
    same for a single value without numpy, and return None for such a quaternion. The ``ros_…`` methods
    are the inverses, for reading what is stored.
    """

    __slots__ = ('_table', 'name')

    def __init__(self, name: str) -> None:
        """Raise ValueError for a name that is no convention's."""
        if name not in _TABLES:
            raise ValueError(f'{name!r} is no pose convention; known are {", ".join(CONVENTIONS)}')
        self.name = name
        self._table = _TABLES[name]

    def __repr__(self) -> str:
        return f'Convention({self.name!r})'

    @property
    def matrix(self) -> Array:
        """M, the position map: a stored position is ``matrix @ ros_position``, shape (3, 3)."""
        return np.ascontiguousarray(self.position(np.eye(3)).T)

    def position(self, xyz: ArrayLike) -> Array:
        """Convert ROS positions (…, 3) to scene axes."""
        return _apply(self._table.position, np.asarray(xyz, dtype=np.float64))

    def pose_rotation(self, q: ArrayLike) -> Array:
        """Convert ROS rotations (…, 4) by the rule of the pose timeline."""
        return _apply(self._table.pose, normalised_array(q))

    def object_rotation(self, q: ArrayLike) -> Array:
        """Convert ROS rotations (…, 4) by the rule of Dynamic Objects, cameras and point clouds."""
        return _apply(self._table.object, normalised_array(q))

    def scan_rotation(self, q: ArrayLike) -> Array:
        """Convert ROS rotations (…, 4) by the rule of laser scans."""
        return _apply(self._table.scan, normalised_array(q))

    def ros_position(self, p: ArrayLike) -> Array:
        """Convert stored positions (…, 3) back to ROS axes."""
        return _apply(self._table.ros_position, np.asarray(p, dtype=np.float64))

    def ros_pose_rotation(self, r: ArrayLike) -> Array:
        """Convert stored rotations (…, 4) of the pose timeline back to ROS axes."""
        return _apply(self._table.ros_pose, normalised_array(r))

    def ros_object_rotation(self, r: ArrayLike) -> Array:
        """Convert stored rotations (…, 4) of objects, cameras and point clouds back to ROS axes."""
        return _apply(self._table.ros_object, normalised_array(r))

    def ros_scan_rotation(self, r: ArrayLike) -> Array:
        """Convert stored rotations (…, 4) of laser scans back to ROS axes."""
        return _apply(self._table.ros_scan, normalised_array(r))

    def position_tuple(self, xyz: Vector) -> Vector:
        """Convert one ROS position, as :meth:`position`."""
        return self._table.position(*xyz)

    def pose_rotation_tuple(self, q: Quaternion) -> Quaternion | None:
        """Convert one ROS rotation, as :meth:`pose_rotation`; None if ``q`` is no rotation."""
        unit = normalised(q)
        return None if unit is None else self._table.pose(*unit)

    def object_rotation_tuple(self, q: Quaternion) -> Quaternion | None:
        """Convert one ROS rotation, as :meth:`object_rotation`; None if ``q`` is no rotation."""
        unit = normalised(q)
        return None if unit is None else self._table.object(*unit)

    def scan_rotation_tuple(self, q: Quaternion) -> Quaternion | None:
        """Convert one ROS rotation, as :meth:`scan_rotation`; None if ``q`` is no rotation."""
        unit = normalised(q)
        return None if unit is None else self._table.scan(*unit)


def resolve_gaze_convention(frame: str, setting: str = 'auto') -> str:
    """Return ``body_forward_x`` or ``optical_forward_z`` for a gaze or camera frame.

    ``auto`` takes a frame whose name ends in ``_optical_frame`` or ``_optical`` for an optical one
    (the naming of REP-103); any other setting is the answer itself.
    """
    if setting != 'auto':
        return setting
    return OPTICAL_FORWARD_Z if frame.endswith(('_optical_frame', '_optical')) else BODY_FORWARD_X


def _apply(rule: Callable[..., tuple[Any, ...]], values: Array) -> Array:
    """Apply a formula to the components in the last axis."""
    return np.stack(rule(*np.moveaxis(values, -1, 0)), axis=-1)
