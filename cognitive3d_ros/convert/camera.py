"""How wide a camera sees: from ``sensor_msgs/CameraInfo``, or anything with its fields (ROS 1 names too).

Source: data format, Camera frames: full angles, both above 0 and below 180 degrees, or both 0.
"""

from __future__ import annotations

import math
import struct
import threading
from collections import deque
from typing import Any, Final, NamedTuple

from cognitive3d_ros.convert.outcome import MALFORMED


class FieldOfView(NamedTuple):
    """The horizontal and the vertical field of view, full angles in degrees; both 0 where not known."""

    hfov_degrees: float
    vfov_degrees: float


NOT_RECORDED: Final = FieldOfView(0.0, 0.0)

_TOLERANCE: Final = 0.02  # of a ratio of sizes: binning rounds down
_FLOAT32: Final = struct.Struct('<f')

# Models for which a ray's distance from the centre goes with its angle, r = f θ, by the names in use.
_EQUIDISTANT: Final = ('equidistant', 'fisheye', 'kannala_brandt', 'kannala_brandt4', 'kb4')
# Parts of the names of others that look wider than a focal length could tell.
_WIDE: Final = (
    'fisheye',
    'ftheta',
    'f_theta',
    'omni',
    'mei',
    'unified',
    'ucm',
    'double_sphere',
    'ocam',
    'scaramuzza',
    'spherical',
    'equirectangular',
    'panoram',
    'cylind',
)


def is_rectified(topic: str) -> bool:
    """Say whether an image topic's pictures are rectified: its last word begins with ``image_rect``.

    What image_transport appends to the topic is no word of it.
    """
    base = topic.removesuffix('/compressed').removesuffix('/compressedDepth')
    return base.rpartition('/')[2].startswith('image_rect')


def field_of_view(info: Any, width: int, height: int, *, rectified: bool) -> FieldOfView:
    """Return the field of view of a picture of ``width`` times ``height`` as published. Never raises.

    It is 2·atan(size / 2f), of K, or of P where the pictures are ``rectified``, each falling back on the
    other. Of a raw picture of a fisheye camera it is size / f, an angle of which such a model makes f; lens
    models that are known to be neither leave it unknown.
    """
    try:
        return _field_of_view(info, width, height, rectified=rectified)
    except MALFORMED:
        return NOT_RECORDED


def _field_of_view(info: Any, width: int, height: int, *, rectified: bool) -> FieldOfView:
    size = _size_in_matrix(info, width, height)
    k, p = _matrix(info, 'k', 4), _matrix(info, 'p', 5)
    focal = (p or k) if rectified else (k or p)
    if size is None or focal is None:
        return NOT_RECORDED
    model = 'pinhole'
    if focal is k and not rectified:
        model = str(info.distortion_model).strip().lower().replace(' ', '_').replace('-', '_')
    if model in _EQUIDISTANT:
        angles = [length / f for length, f in zip(size, focal, strict=True)]
    elif any(word in model for word in _WIDE):
        return NOT_RECORDED
    else:
        angles = [2 * math.atan(length / (2 * f)) for length, f in zip(size, focal, strict=True)]
    # As they are stored: 32 bits could make 0 or 180 of an angle.
    h, v = (_FLOAT32.unpack(_FLOAT32.pack(math.degrees(angle)))[0] for angle in angles)
    return FieldOfView(h, v) if 0 < h < 180 and 0 < v < 180 else NOT_RECORDED


def _matrix(info: Any, name: str, at: int) -> tuple[float, float] | None:
    """Return the focal lengths of a matrix, in pixels; None where it was not filled in."""
    matrix = getattr(info, name) if hasattr(info, name) else getattr(info, name.upper())
    fx, fy = float(matrix[0]), float(matrix[at])
    return (fx, fy) if 0 < fx < math.inf and 0 < fy < math.inf else None


def _size_in_matrix(info: Any, width: int, height: int) -> tuple[int, int] | None:
    """Return the size of the picture in the pixels that the matrices are of; None if it cannot be told.

    That is the whole of the sensor, of which the picture is a region, binned; but drivers that publish the
    matrices of the picture as it is say so by its size. A picture of the same shape was scaled on its way.
    """
    if min(width, height, info.width, info.height) <= 0:
        return None
    if (info.width, info.height) == (width, height):
        return width, height
    roi = info.roi
    size = (roi.width, roi.height) if roi.width and roi.height else (info.width, info.height)
    across, down = size[0] / width, size[1] / height
    as_binned = _near(across, info.binning_x or 1) and _near(down, info.binning_y or 1)
    return size if as_binned or _near(across, down) else None


def _near(a: float, b: float) -> bool:
    return abs(a - b) <= _TOLERANCE * b


class CameraInfos:
    """What a camera has said of itself lately. Thread safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._infos: deque[tuple[int, Any]] = deque(maxlen=64)

    def add(self, stamp_ns: int, info: Any) -> None:
        """Keep a message."""
        with self._lock:
            self._infos.append((stamp_ns, info))

    def reach(self, stamp_ns: int) -> bool:
        """Say whether nothing later can be better for a picture of this stamp."""
        with self._lock:
            return any(one[0] >= stamp_ns for one in self._infos)

    def at(self, stamp_ns: int) -> Any | None:
        """Return what held when a picture of this stamp was taken; None while nothing is known.

        That is the message with its stamp, else the newest one before, else the last that came.
        """
        with self._lock:
            infos = list(self._infos)
        if not infos:
            return None
        before = [one for one in infos if one[0] <= stamp_ns]
        # Of equal stamps the last that came.
        return max(reversed(before), key=lambda one: one[0])[1] if before else infos[-1][1]
