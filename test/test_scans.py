"""Laser scans: stored as published, and drawn by their own rule."""

from __future__ import annotations

import array
import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from cloud_messages import rawlog_scans, scan_message

from cognitive3d_ros.conventions import CONVENTIONS, Convention
from cognitive3d_ros.convert.outcome import Dropped
from cognitive3d_ros.convert.scans import Scan, convert_scan
from cognitive3d_ros.counters import Drop
from cognitive3d_ros.wire.capnp_codec import decode_lidar, encode_lidar
from cognitive3d_ros.wire.identity import SessionIdentity
from cognitive3d_ros.wire.placing import place, ray_points
from cognitive3d_ros.wire.records import LidarScanRecord, Pose

IDENTITY = SessionIdentity('1700000000_a', 'a', 's', 1, '1.0.0', 1_700_000_000 * 10**9, 0.1)
# A sensor 0.4 m above a robot that stands at (3, -2) and looks 100 degrees to the left, tilted by 7.
TRANSLATION = np.array([3.0, -2.0, 0.4])


def turned(yaw: float, pitch: float) -> np.ndarray:
    """The rotation matrix of a yaw and then a pitch, in radians."""
    c, s, d, t = math.cos(yaw), math.sin(yaw), math.cos(pitch), math.sin(pitch)
    about_z = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
    about_y = np.array([[d, 0, t], [0, 1, 0], [-t, 0, d]])
    return about_z @ about_y


YAW, PITCH = math.radians(100), math.radians(7)
ROTATION = turned(YAW, PITCH)
QUATERNION = (
    -math.sin(YAW / 2) * math.sin(PITCH / 2),
    math.cos(YAW / 2) * math.sin(PITCH / 2),
    math.sin(YAW / 2) * math.cos(PITCH / 2),
    math.cos(YAW / 2) * math.cos(PITCH / 2),
)


def converted(message, **options) -> Scan:
    outcome = convert_scan(message, **options)
    assert isinstance(outcome, Scan), outcome
    return outcome


def float_bits(values) -> list[int]:
    return np.asarray(values, np.float32).view(np.uint32).tolist()


@pytest.mark.rule(80)
def test_as_published() -> None:
    published = array.array('f', [math.inf, -math.inf, math.nan, 0.0, 0.05, 31.0, -0.0])
    scan = converted(scan_message(ranges=published)).data
    assert float_bits(scan.ranges) == np.frombuffer(published, np.uint32).tolist()
    assert (scan.angle_min, scan.angle_max, scan.angle_increment) == (-1.5, 1.5, 0.5)
    assert scan.time_increment == np.float32(0.001)
    assert scan.scan_time == np.float32(0.1)
    assert (scan.range_min, scan.range_max) == (np.float32(0.1), 30.0)
    assert len(scan.intensities) == 0


@pytest.mark.rule(80)
def test_every_bit_of_a_nan() -> None:
    bits = np.array([0x7F800001, 0xFF812345, 0x7FC00000, 0xFFC00001, 0x80000000, 1], np.uint32)
    for ranges in (bits.view(np.float32), array.array('f', bits.tobytes())):
        assert float_bits(converted(scan_message(ranges=ranges)).data.ranges) == bits.tolist()


@pytest.mark.rule(80)
def test_upside_down_and_inconsistent_angles_are_kept() -> None:
    """The number of rays is that of the ranges, whatever the angles say."""
    message = scan_message(angle_min=math.pi, angle_max=-math.pi, angle_increment=-0.00436)
    scan = converted(message).data
    assert scan.angle_increment == np.float32(-0.00436)
    assert len(scan.ranges) == 7


@pytest.mark.rule(80)
def test_the_message_can_be_reused_by_its_owner() -> None:
    ranges = np.ones(5, np.float32)
    scan = converted(scan_message(ranges=ranges)).data
    ranges[:] = 7
    assert scan.ranges.tolist() == [1] * 5


@pytest.mark.rule(81)
@pytest.mark.parametrize(
    ('published', 'asked', 'stored', 'left_out'),
    [
        ([1, 2, 3, 4, 5, 6, 7.5], True, [1, 2, 3, 4, 5, 6, 7.5], False),
        ([1, 2, 3, 4, 5, 6, 7.5], False, [], False),
        ([], True, [], False),
        ([1, 2, 3], True, [], True),
        ([1] * 14, True, [], True),
        ([1, 2, 3], False, [], False),
    ],
)
def test_intensities(published, asked, stored, left_out) -> None:
    scan = converted(scan_message(intensities=array.array('f', published)), intensities=asked)
    assert scan.data.intensities.tolist() == stored
    assert scan.intensities_left_out == left_out
    assert len(scan.data.ranges) == 7


@pytest.mark.parametrize(
    ('changes', 'reason', 'text'),
    [
        ({'ranges': None}, Drop.BAD_MESSAGE, 'laser scan'),
        ({'ranges': [[1, 2]]}, Drop.BAD_MESSAGE, 'ranges of shape (1, 2)'),
        ({'ranges': ['far']}, Drop.BAD_MESSAGE, 'list of numbers'),
        ({'ranges': [10**400]}, Drop.BAD_MESSAGE, 'list of numbers'),
        ({'angle_min': 'left'}, Drop.BAD_MESSAGE, 'laser scan'),
        ({'angle_min': 1e300}, Drop.BAD_MESSAGE, 'laser scan'),
        ({'ranges': np.zeros(9 << 20, np.float32)}, Drop.TOO_LARGE, '32 MiB'),
    ],
)
def test_malformed_scans_are_an_outcome(changes, reason, text) -> None:
    outcome = convert_scan(scan_message(**changes), intensities=True)
    assert isinstance(outcome, Dropped)
    assert outcome.reason is reason
    assert text in outcome.text


def test_no_message_at_all_is_an_outcome() -> None:
    assert isinstance(convert_scan(SimpleNamespace()), Dropped)


@pytest.mark.rule(80)
def test_lists_and_doubles_are_rounded_to_float32() -> None:
    scan = converted(scan_message(ranges=[1, 2.1, 1e300], intensities=np.zeros(3))).data
    assert scan.ranges.tolist() == [1, np.float32(2.1), math.inf]


@pytest.mark.ros
def test_messages_of_ros_and_of_bags() -> None:
    ros = pytest.importorskip('sensor_msgs.msg')
    message = ros.LaserScan(range_max=20.0)
    message.ranges = [1.0, math.inf]
    message.intensities = [3.0, 4.0]
    first = converted(message, intensities=True).data
    rosbags = pytest.importorskip('rosbags.typesys')
    types = rosbags.get_typestore(rosbags.Stores.ROS2_HUMBLE).types
    header = types['std_msgs/msg/Header'](types['builtin_interfaces/msg/Time'](0, 0), 'laser')
    message = types['sensor_msgs/msg/LaserScan'](
        header, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 20.0, first.ranges, first.intensities
    )
    second = converted(message, intensities=True).data
    for scan in (first, second):
        assert scan.range_max == 20
        assert scan.ranges.tolist() == [1, math.inf]
        assert scan.intensities.tolist() == [3, 4]


@pytest.mark.rule(93)
def test_rays_outside_the_limits_are_passed_over() -> None:
    ranges = [1.0, 0.0624, 0.0625, 30.0, 30.001, math.inf, -math.inf, math.nan, -1.0, 2.0]
    message = scan_message(
        range_min=0.0625, angle_min=0.0, angle_increment=math.pi / 2, ranges=ranges
    )
    points = ray_points(converted(message).data)
    # Rays 0, 2, 3 and 9: ahead, behind, to the right, and to the left.
    expected = [[1, 0, 0], [-0.0625, 0, 0], [0, -30, 0], [0, 2, 0]]
    np.testing.assert_allclose(points, expected, atol=1e-5)


def stored(message, convention: Convention, quaternion=QUATERNION):
    """A scan as it comes back out of a part."""
    data = converted(message).data
    pose = Pose(
        *(float(np.float32(v)) for v in convention.position(TRANSLATION)),
        *(float(np.float32(v)) for v in convention.scan_rotation(quaternion)),
    )
    record = LidarScanRecord('front', 1_700_000_000_000, 0, 'laser', pose, data)
    return decode_lidar(encode_lidar(IDENTITY, 1, [record])).scans[0]


def cartesian(message) -> np.ndarray:
    """The rays of a message in the sensor's ROS axes, worked out one by one."""
    return np.array(
        [
            [r * math.cos(a), r * math.sin(a), 0.0]
            for i, r in enumerate(np.asarray(message.ranges, float))
            for a in [message.angle_min + i * message.angle_increment]
            if math.isfinite(r) and message.range_min <= r <= message.range_max
        ]
    )


def drawn_two_ways(message, convention: Convention) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where the rays are, where the scan's rule draws them, and where the cloud's rule would."""
    seen = convention.position(cartesian(message) @ ROTATION.T + TRANSLATION)
    record = stored(message, convention)
    wrong = record.pose._replace(
        **dict(zip(('qx', 'qy', 'qz', 'qw'), convention.object_rotation(QUATERNION), strict=True))
    )
    rays = ray_points(record.scan)
    return seen, place(rays, record.pose), place(rays, wrong)


@pytest.mark.rule(92)
@pytest.mark.parametrize('name', CONVENTIONS)
def test_the_rule_of_scans_draws_a_scan_where_it_was(name: str) -> None:
    seen, drawn, by_cloud_rule = drawn_two_ways(scan_message(), Convention(name))
    np.testing.assert_allclose(drawn, seen, atol=1e-5)
    off = np.linalg.norm(by_cloud_rule - seen, axis=1)
    if name == 'rep103':
        assert off.max() < 1e-5  # there the two rules agree
    else:
        assert off.max() > 1


@pytest.mark.rule(92)
@pytest.mark.parametrize('name', CONVENTIONS)
def test_a_corridor_is_drawn_where_it_was(name: str, shared_data: Path) -> None:
    messages = list(rawlog_scans(shared_data / 'sena_corridor_current.rawlog'))
    assert len(messages) == 224
    assert {len(message.ranges) for message in messages} == {361}
    for message in messages[::20]:
        seen, drawn, by_cloud_rule = drawn_two_ways(message, Convention(name))
        assert len(seen) > 100
        np.testing.assert_allclose(drawn, seen, atol=1e-4)  # float32 at 80 m
        off = np.linalg.norm(by_cloud_rule - seen, axis=1)
        assert (off.max() < 1e-4) if name == 'rep103' else (np.median(off) > 0.5)


@pytest.mark.parametrize(
    ('angle_min', 'angle_increment'),
    [(math.nan, 0.1), (math.inf, 0.1), (0.0, math.nan), (0.0, -math.inf)],
)
def test_rays_without_a_direction_are_no_points(angle_min, angle_increment):
    data = converted(scan_message(angle_min=angle_min, angle_increment=angle_increment)).data
    assert ray_points(data).shape == (0, 3)
