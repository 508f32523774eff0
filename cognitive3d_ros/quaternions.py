"""Quaternion algebra, in one place: on tuples for one value, on arrays (``…_array``) for many.

A quaternion is ``(x, y, z, w)`` with w last, a vector ``(x, y, z)``. ``q`` and ``−q`` are the same
rotation and nothing here changes one into the other. Tuples are the fast path: the pose timeline and
the tf buffer work on single poses, where numpy costs more than the arithmetic.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

Vector = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]
Array = NDArray[np.float64]

IDENTITY: Quaternion = (0.0, 0.0, 0.0, 1.0)


def normalised(q: Quaternion) -> Quaternion | None:
    """Return ``q`` scaled to length 1, or None if no rotation can be read from it.

    None is the outcome for the zero quaternion (a message field never filled in) and for NaN or
    infinite components.
    """
    x, y, z, w = q
    length = math.hypot(x, y, z, w)
    if not 0.0 < length < math.inf:
        return None
    return (x / length, y / length, z / length, w / length)


def conjugate(q: Quaternion) -> Quaternion:
    """Return the conjugate: the opposite rotation, if ``q`` is a unit quaternion."""
    x, y, z, w = q
    return (-x, -y, -z, w)


def multiply(a: Quaternion, b: Quaternion) -> Quaternion:
    """Return the Hamilton product ``a b``: the rotation ``b`` followed by ``a``."""
    ax, ay, az, aw = a
    bx, by, bz, bw = b
    return (
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
        aw * bw - ax * bx - ay * by - az * bz,
    )


def rotate(q: Quaternion, v: Vector) -> Vector:
    """Return the vector part of ``q v q*``: ``v`` turned by the unit quaternion ``q``.

    A ``q`` of another length scales ``v`` by the square of it, as tf2's ``quatRotate`` does.
    """
    x, y, z, w = q
    vx, vy, vz = v
    # q v q* = |q|² v + 2 (w (u × v) + u × (u × v)), where u is the vector part of q.
    cx = y * vz - z * vy
    cy = z * vx - x * vz
    cz = x * vy - y * vx
    n = x * x + y * y + z * z + w * w
    return (
        n * vx + 2.0 * (w * cx + y * cz - z * cy),
        n * vy + 2.0 * (w * cy + z * cx - x * cz),
        n * vz + 2.0 * (w * cz + x * cy - y * cx),
    )


def slerp(a: Quaternion, b: Quaternion, ratio: float) -> Quaternion:
    """Interpolate from ``a`` (ratio 0) to ``b`` (ratio 1) the short way round, as tf2 does.

    Both should be unit quaternions. The result has the sign of ``a``.
    """
    ax, ay, az, aw = a
    bx, by, bz, bw = b
    dot = ax * bx + ay * by + az * bz + aw * bw
    lengths = math.sqrt(
        (ax * ax + ay * ay + az * az + aw * aw) * (bx * bx + by * by + bz * bz + bw * bw)
    )
    cosine = abs(dot) / lengths
    if cosine >= 1.0:
        return a
    angle = math.acos(cosine)
    scale = 1.0 / math.sin(angle)
    ka = math.sin((1.0 - ratio) * angle) * scale
    kb = math.sin(ratio * angle) * scale
    if dot < 0.0:
        kb = -kb
    return (ka * ax + kb * bx, ka * ay + kb * by, ka * az + kb * bz, ka * aw + kb * bw)


def about_z(degrees: float) -> Quaternion:
    """Return the turn about Z by ``degrees``, counter-clockwise seen from +Z."""
    half = math.radians(degrees) / 2.0
    return (0.0, 0.0, math.sin(half), math.cos(half))


def optical_to_body(q: Quaternion) -> Quaternion:
    """Turn the rotation of an optical frame (Z forward, Y down) into that of its body frame.

    The body frame of REP-103 has X forward and Z up: body X is optical Z, body Y is −optical X, body Z
    is −optical Y. That is ``q`` times (½, −½, ½, ½).
    """
    x, y, z, w = q
    return (
        0.5 * (w + x + y + z),
        0.5 * (y + z - w - x),
        0.5 * (w + z - x - y),
        0.5 * (w + y - x - z),
    )


def normalised_array(q: ArrayLike) -> Array:
    """Return quaternions (…, 4) scaled to length 1.

    One that no rotation can be read from (zero, NaN, infinite) becomes four NaN:
    ``numpy.isnan(result[..., 3])`` finds them.
    """
    given = np.asarray(q, dtype=np.float64)
    # Scaling by the largest component first keeps squares of huge or tiny ones in range.
    largest = np.max(np.abs(given), axis=-1, keepdims=True)
    valid = (largest > 0.0) & (largest < np.inf)  # False for NaN too
    scaled = given / np.where(valid, largest, 1.0)
    scaled = np.where(valid, scaled, np.nan)
    return np.asarray(scaled / np.sqrt(np.sum(scaled * scaled, axis=-1, keepdims=True)))


def multiply_array(a: ArrayLike, b: ArrayLike) -> Array:
    """Return the Hamilton products of quaternions (…, 4), broadcast against each other."""
    va, vb = np.broadcast_arrays(np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64))
    ax, ay, az, aw = np.moveaxis(va, -1, 0)
    bx, by, bz, bw = np.moveaxis(vb, -1, 0)
    return np.stack(
        (
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
            aw * bw - ax * bx - ay * by - az * bz,
        ),
        axis=-1,
    )


def rotate_array(q: ArrayLike, v: ArrayLike) -> Array:
    """Turn vectors (…, 3) by unit quaternions (…, 4), broadcast against each other."""
    quaternions = np.asarray(q, dtype=np.float64)
    vectors = np.asarray(v, dtype=np.float64)
    u, w = quaternions[..., :3], quaternions[..., 3:]
    across = _cross(u, vectors)
    return np.asarray(vectors + 2.0 * (w * across + _cross(u, across)))


def _cross(a: Array, b: Array) -> Array:
    """Return what numpy.cross does of vectors (…, 3), bit for bit: that is slow for a few of them."""
    ax, ay, az = a[..., 0], a[..., 1], a[..., 2]
    bx, by, bz = b[..., 0], b[..., 1], b[..., 2]
    return np.stack((ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx), axis=-1)
