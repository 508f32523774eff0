"""The conventions against the derivation by matrices, and against values worked by hand.

Nothing below uses the project's quaternion algebra for the expected side: rotation matrices are built
from axis and angle (Rodrigues) or straight from the definition of a quaternion.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cognitive3d_ros.conventions import CONVENTIONS, Convention, resolve_gaze_convention
from cognitive3d_ros.quaternions import (
    about_z,
    conjugate,
    multiply,
    multiply_array,
    normalised,
    normalised_array,
    optical_to_body,
    rotate,
    rotate_array,
    slerp,
)

HALF = math.sqrt(0.5)
E = np.array([[0.0, 0.0, 1.0], [-1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])  # columns -Y, Z, X
D = np.diag([1.0, 1.0, -1.0])

component = st.floats(-1.0, 1.0)
quaternions = st.tuples(component, component, component, component).filter(
    lambda q: math.hypot(*q) > 1e-3
)
scales = st.floats(1e-6, 1e6)
vectors = st.tuples(*[st.floats(-1e4, 1e4)] * 3)


def matrix_of(q) -> np.ndarray:
    """The rotation matrix of a quaternion, from the definition."""
    x, y, z, w = np.asarray(q, dtype=float) / math.hypot(*q)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


def turn(axis, degrees: float) -> np.ndarray:
    """The rotation matrix about a unit axis (Rodrigues)."""
    x, y, z = axis
    k = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]], dtype=float)
    a = math.radians(degrees)
    return np.eye(3) + math.sin(a) * k + (1 - math.cos(a)) * (k @ k)


@pytest.mark.rule(24)
@pytest.mark.parametrize(
    ('name', 'position', 'pose', 'dynamic'),
    [
        # (x, y, z) = (1, 2, 3) and (x, y, z, w) = (.1, .3, .5, .8) normalised: .01+.09+.25+.64 = .99
        ('unity', (-2, 3, 1), (-0.3, 0.5, 0.1, -0.8), (-0.3, 0.5, 0.1, -0.8)),
        (
            'gltf_authored',
            (-1, 3, -2),
            (HALF * 0.4, -HALF * 1.3, HALF * 0.2, HALF * 0.3),
            (0.1, -0.5, 0.3, 0.8),
        ),
        ('rep103', (1, 2, 3), (0.1, 0.3, 0.5, 0.8), (0.1, 0.3, 0.5, 0.8)),
    ],
)
def test_the_printed_table_signs_included(name, position, pose, dynamic) -> None:
    convention = Convention(name)
    q = (0.1, 0.3, 0.5, 0.8)
    n = math.sqrt(0.99)
    assert convention.position((1, 2, 3)).tolist() == list(position)
    np.testing.assert_allclose(convention.pose_rotation(q), np.array(pose) / n, atol=1e-15)
    np.testing.assert_allclose(convention.object_rotation(q), np.array(dynamic) / n, atol=1e-15)


@pytest.mark.rule(24, 92)
@pytest.mark.parametrize('name', CONVENTIONS)
@given(q=quaternions, v=vectors)
def test_rules_are_what_the_matrices_say(name: str, q, v) -> None:
    convention = Convention(name)
    m, r = convention.matrix, matrix_of(q)
    np.testing.assert_allclose(convention.position(v), m @ np.array(v), atol=1e-12)
    np.testing.assert_allclose(matrix_of(convention.object_rotation(q)), m @ r @ m.T, atol=1e-12)
    reflection = np.linalg.det(m) < 0
    np.testing.assert_allclose(
        matrix_of(convention.pose_rotation(q)), m @ r @ E if reflection else r, atol=1e-12
    )
    np.testing.assert_allclose(
        matrix_of(convention.scan_rotation(q)), m @ r @ D if reflection else r, atol=1e-12
    )


@pytest.mark.parametrize('name', CONVENTIONS)
@given(q=quaternions, scale=scales, v=vectors)
def test_single_values_arrays_and_inverses_agree(name: str, q, scale: float, v) -> None:
    convention = Convention(name)
    scaled = tuple(scale * c for c in q)
    unit = np.array(q) / math.hypot(*q)
    assert convention.position_tuple(v) == tuple(convention.position(v))
    np.testing.assert_array_equal(convention.ros_position(convention.position(v)), v)
    for rule in ('pose', 'object', 'scan'):
        one = getattr(convention, f'{rule}_rotation_tuple')(scaled)
        many = getattr(convention, f'{rule}_rotation')(np.array([[scaled, q]]))
        assert many.shape == (1, 2, 4)
        np.testing.assert_allclose(many[0, 0], one, atol=1e-14)
        np.testing.assert_allclose(many[0, 1], one, atol=1e-14)
        back = getattr(convention, f'ros_{rule}_rotation')(one)
        np.testing.assert_allclose(back, unit, atol=1e-14)  # the sign too


@pytest.mark.rule(30)
@pytest.mark.parametrize('name', CONVENTIONS)
@given(q=quaternions)
def test_forward_and_up_of_the_pose_timeline(name: str, q) -> None:
    convention = Convention(name)
    m, r = convention.matrix, matrix_of(q)
    stored = matrix_of(convention.pose_rotation(q))
    forward, up = (0, 2) if name == 'rep103' else (2, 1)
    np.testing.assert_allclose(stored[:, forward], m @ r @ [1, 0, 0], atol=1e-12)
    np.testing.assert_allclose(stored[:, up], m @ r @ [0, 0, 1], atol=1e-12)


@pytest.mark.rule(92)
@pytest.mark.parametrize('name', CONVENTIONS)
@given(q=quaternions, angle=st.floats(-math.pi, math.pi), distance=st.floats(0.1, 30))
def test_a_scan_ray_lands_where_the_sensor_saw_it(name, q, angle, distance) -> None:
    convention = Convention(name)
    ray = distance * np.array([math.cos(angle), math.sin(angle), 0.0])
    seen = convention.matrix @ matrix_of(q) @ ray
    np.testing.assert_allclose(rotate_array(convention.scan_rotation(q), ray), seen, atol=1e-10)


def test_a_quarter_turn_left_by_hand() -> None:
    # A robot at the origin that faces +Y of the map. Unity's +Z forward axis must end on -X there, as
    # map Y is unity -X; in gltf_authored map Y is -Z.
    q = (0.0, 0.0, HALF, HALF)
    forward = [0.0, 0.0, 1.0]
    np.testing.assert_allclose(
        rotate_array(Convention('unity').pose_rotation(q), forward), [-1, 0, 0], atol=1e-15
    )
    np.testing.assert_allclose(
        rotate_array(Convention('gltf_authored').pose_rotation(q), forward), [0, 0, -1], atol=1e-15
    )


@pytest.mark.parametrize('bad', [(0, 0, 0, 0), (math.nan, 0, 0, 1), (0, math.inf, 0, 1)])
def test_an_invalid_quaternion_is_an_outcome(bad) -> None:
    convention = Convention('unity')
    assert normalised(bad) is None
    for rule in ('pose', 'object', 'scan'):
        assert getattr(convention, f'{rule}_rotation_tuple')(bad) is None
        many = getattr(convention, f'{rule}_rotation')([bad, (0, 0, 0, 2)])
        assert np.isnan(many[0]).all()
        assert np.isfinite(many[1]).all()


def test_empty_and_deep_arrays() -> None:
    convention = Convention('gltf_authored')
    assert convention.position(np.zeros((0, 3))).shape == (0, 3)
    assert convention.scan_rotation(np.zeros((0, 4))).shape == (0, 4)
    assert convention.position(np.zeros((2, 5, 3), dtype=np.float32)).dtype == np.float64
    assert convention.matrix.shape == (3, 3)


def test_huge_and_tiny_quaternions_normalise() -> None:
    for scale in (1e-200, 1e200):
        np.testing.assert_allclose(
            normalised((3 * scale, 0, 0, 4 * scale)), (0.6, 0, 0, 0.8), rtol=1e-15
        )
        np.testing.assert_allclose(
            normalised_array((3 * scale, 0, 0, 4 * scale)), (0.6, 0, 0, 0.8), rtol=1e-15
        )


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match="'gltf' is no pose convention; known are gltf_authored"):
        Convention('gltf')


@given(a=quaternions, b=quaternions, v=vectors)
def test_algebra_against_matrices(a, b, v) -> None:
    a, b = normalised(a), normalised(b)
    np.testing.assert_allclose(matrix_of(multiply(a, b)), matrix_of(a) @ matrix_of(b), atol=1e-12)
    np.testing.assert_array_equal(multiply_array(a, b), multiply(a, b))
    np.testing.assert_allclose(rotate(a, v), matrix_of(a) @ v, atol=1e-10)
    np.testing.assert_allclose(rotate_array(a, v), matrix_of(a) @ v, atol=1e-10)
    np.testing.assert_allclose(rotate(conjugate(a), rotate(a, v)), v, atol=1e-10)


@given(q=quaternions, v=vectors, length=st.floats(0.99, 1.01))
def test_rotating_with_a_length_scales_as_tf2_does(q, v, length) -> None:
    q = tuple(c * length for c in normalised(q))
    np.testing.assert_allclose(rotate(q, v), length**2 * matrix_of(q) @ v, atol=1e-9)


@given(a=quaternions, axis=vectors, degrees=st.floats(-179, 179), ratio=st.floats(0, 1))
def test_slerp_turns_at_an_even_rate_the_short_way(a, axis, degrees, ratio) -> None:
    if math.hypot(*axis) < 1e-3:
        axis = (0.0, 0.0, 1.0)
    axis = np.array(axis) / math.hypot(*axis)
    a = normalised(a)
    half = math.radians(degrees) / 2
    step = (*(math.sin(half) * axis), math.cos(half))
    expected = matrix_of(a) @ turn(axis, degrees * ratio)
    b = multiply(a, step)
    # acos near 1 knows an angle to about 1e-8 only, in tf2 as here.
    np.testing.assert_allclose(matrix_of(slerp(a, b, ratio)), expected, atol=5e-8)
    opposite = tuple(-c for c in b)
    np.testing.assert_allclose(matrix_of(slerp(a, opposite, ratio)), expected, atol=5e-8)
    np.testing.assert_allclose(slerp(a, b, 0.0), a, atol=5e-8)


@pytest.mark.rule(31)
@given(q=quaternions)
def test_optical_to_body(q) -> None:
    optical, body = matrix_of(q), matrix_of(optical_to_body(q))
    np.testing.assert_allclose(body[:, 0], optical[:, 2], atol=1e-12)  # X forward is optical Z
    np.testing.assert_allclose(body[:, 1], -optical[:, 0], atol=1e-12)  # Y left is optical -X
    np.testing.assert_allclose(body[:, 2], -optical[:, 1], atol=1e-12)  # Z up is optical -Y
    np.testing.assert_allclose(optical_to_body(q), multiply(q, (0.5, -0.5, 0.5, 0.5)), atol=1e-15)


@pytest.mark.rule(47)
@given(q=quaternions, degrees=st.floats(-360, 360))
def test_yaw_offset_is_a_turn_about_the_frames_own_z(q, degrees) -> None:
    turned = matrix_of(multiply(q, about_z(degrees)))
    np.testing.assert_allclose(turned, matrix_of(q) @ turn((0, 0, 1), degrees), atol=1e-12)


@pytest.mark.rule(31)
@pytest.mark.parametrize(
    ('frame', 'setting', 'resolved'),
    [
        ('camera_optical_frame', 'auto', 'optical_forward_z'),
        ('camera_optical', 'auto', 'optical_forward_z'),
        ('camera_link', 'auto', 'body_forward_x'),
        ('optical_frame_mount', 'auto', 'body_forward_x'),
        ('camera_link', 'optical_forward_z', 'optical_forward_z'),
        ('camera_optical_frame', 'body_forward_x', 'body_forward_x'),
    ],
)
def test_resolve_gaze_convention(frame: str, setting: str, resolved: str) -> None:
    assert resolve_gaze_convention(frame, setting) == resolved
