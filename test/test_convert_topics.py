"""Messages to series: each type of the table, any other by path, and whatever a broken driver publishes."""

import array
import math
import struct
from types import SimpleNamespace as Of

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cognitive3d_ros.convert import topics
from cognitive3d_ros.convert.names import MAX_NAME_CHARS, MAX_SERIES
from cognitive3d_ros.convert.outcome import Dropped
from cognitive3d_ros.convert.taken import Taken, number
from cognitive3d_ros.convert.topics import TangentPlane, converter, unreadable
from cognitive3d_ros.counters import Drop

NAN, INF = math.nan, math.inf


def xyz(x=1.0, y=2.0, z=3.0):
    return Of(x=x, y=y, z=z)


def taken(type_name, message, *, prefix='p', fields=()):
    """Return the samples of one message that are numbers, as a mapping."""
    outcome = converter(type_name, prefix, fields)(message)
    assert isinstance(outcome, Taken), outcome
    return {name: value for name, value in outcome.samples if math.isfinite(value)}


TWIST = Of(linear=xyz(), angular=xyz(4.0, 5.0, 6.0))
TWIST_SERIES = {
    'p.linear_x': 1.0,
    'p.linear_y': 2.0,
    'p.linear_z': 3.0,
    'p.angular_x': 4.0,
    'p.angular_y': 5.0,
    'p.angular_z': 6.0,
}
WRENCH = Of(force=xyz(), torque=xyz(4.0, 5.0, 6.0))
WRENCH_SERIES = {
    'p.force_x': 1.0,
    'p.force_y': 2.0,
    'p.force_z': 3.0,
    'p.torque_x': 4.0,
    'p.torque_y': 5.0,
    'p.torque_z': 6.0,
}


def imu(**fields):
    message = Of(
        angular_velocity=xyz(),
        angular_velocity_covariance=[0.0] * 9,
        linear_acceleration=xyz(0.0, 0.1, 9.81),
        linear_acceleration_covariance=[0.0] * 9,
    )
    vars(message).update(fields)
    return message


def battery(**fields):
    message = Of(voltage=24.5, current=-1.5, percentage=0.87, temperature=31.0, charge=5.5)
    vars(message).update(fields)
    return message


def scan(ranges, low=0.1, high=10.0):
    return Of(ranges=array.array('f', ranges), range_min=low, range_max=high)


@pytest.mark.rule(39)
@pytest.mark.parametrize(
    ('type_name', 'message', 'series'),
    [
        ('nav_msgs/msg/Odometry', Of(twist=Of(twist=TWIST)), TWIST_SERIES),
        ('geometry_msgs/msg/Twist', TWIST, TWIST_SERIES),
        ('geometry_msgs/msg/TwistStamped', Of(twist=TWIST), TWIST_SERIES),
        ('geometry_msgs/msg/Wrench', WRENCH, WRENCH_SERIES),
        ('geometry_msgs/msg/WrenchStamped', Of(wrench=WRENCH), WRENCH_SERIES),
        (
            'sensor_msgs/msg/Imu',
            imu(),
            {
                'p.angular_velocity_x': 1.0,
                'p.angular_velocity_y': 2.0,
                'p.angular_velocity_z': 3.0,
                'p.linear_acceleration_x': 0.0,
                'p.linear_acceleration_y': 0.1,
                'p.linear_acceleration_z': 9.81,
            },
        ),
        (
            'sensor_msgs/msg/BatteryState',
            battery(),
            {
                'p.voltage': 24.5,
                'p.current': -1.5,
                'p.percentage': 0.87,
                'p.temperature': 31.0,
                'p.charge': 5.5,
            },
        ),
        ('sensor_msgs/msg/Range', Of(range=0.75), {'p.range': 0.75}),
        ('sensor_msgs/msg/Temperature', Of(temperature=21.5), {'p.temperature': 21.5}),
        ('sensor_msgs/msg/FluidPressure', Of(fluid_pressure=101325.0), {'p.pressure': 101325.0}),
        ('sensor_msgs/msg/RelativeHumidity', Of(relative_humidity=0.4), {'p.humidity': 0.4}),
        ('sensor_msgs/msg/Illuminance', Of(illuminance=800.0), {'p.illuminance': 800.0}),
        ('std_msgs/msg/Float64', Of(data=1.5), {'p': 1.5}),
        ('std_msgs/msg/Bool', Of(data=True), {'p': 1.0}),
        ('std_msgs/msg/UInt8', Of(data=np.uint8(7)), {'p': 7.0}),
        ('std_msgs/msg/Int64', Of(data=-(2**62)), {'p': -(2.0**62)}),
    ],
)
def test_the_table(type_name, message, series):
    assert topics.known(type_name)
    found = taken(type_name, message)
    assert found == series
    assert list(found) == list(series)
    assert all(type(value) is float for value in found.values())


def test_magnetic_fields_are_in_microtesla():
    """About 49 µT, as in central Europe: in tesla no change of it would ever pass the gate."""
    field = Of(magnetic_field=xyz(2.0e-05, -1.2e-06, -4.4e-05))
    assert taken('sensor_msgs/msg/MagneticField', field) == pytest.approx(
        {'p.x_ut': 20.0, 'p.y_ut': -1.2, 'p.z_ut': -44.0}
    )


def test_a_covariance_of_minus_one_marks_what_is_unknown():
    unknown = np.array([-1.0] + [0.0] * 8)
    found = taken('sensor_msgs/msg/Imu', imu(linear_acceleration_covariance=unknown))
    assert set(found) == {f'p.angular_velocity_{axis}' for axis in 'xyz'}
    found = taken('sensor_msgs/msg/Imu', imu(angular_velocity_covariance=unknown))
    assert set(found) == {f'p.linear_acceleration_{axis}' for axis in 'xyz'}
    assert len(taken('sensor_msgs/msg/Imu', imu(linear_acceleration_covariance=[]))) == 6


@pytest.mark.parametrize(
    ('percentage', 'stored'), [(NAN, None), (-0.01, None), (-1.0, None), (0.5, 0.5), (87.0, 87.0)]
)
def test_a_batterys_percentage(percentage, stored):
    found = taken('sensor_msgs/msg/BatteryState', battery(percentage=percentage, charge=NAN))
    assert found.get('p.percentage') == stored
    assert 'p.charge' not in found
    assert found['p.voltage'] == 24.5


@pytest.mark.parametrize(
    ('message', 'nearest', 'fraction'),
    [
        (scan([NAN, INF, 0.05, 0.5, 2.0, 11.0, -INF, 0.0]), 0.5, 0.25),
        (scan([INF, INF]), None, 0.0),
        (scan([]), None, None),
        (scan([0.1, 10.0], low=struct.unpack('f', struct.pack('f', 0.1))[0]), 0.1, 1.0),
        (scan([5.0, 40.0], high=INF), 5.0, 1.0),
        (scan([5.0, 40.0], high=NAN), None, 0.0),
        (Of(ranges=[3.0, 1.5], range_min=0.1, range_max=10.0), 1.5, 1.0),
    ],
)
def test_scans(message, nearest, fraction):
    found = taken('sensor_msgs/msg/LaserScan', message)
    assert found.get('p.nearest') == (None if nearest is None else pytest.approx(nearest))
    assert found.get('p.valid_fraction') == fraction


def joints(names=(), position=(), velocity=(), effort=()):
    return Of(name=list(names), position=position, velocity=velocity, effort=effort)


def test_joints():
    state = joints(['hip', 'knee'], [0.1, 0.2], np.array([1.0, NAN]), array.array('d'))
    assert taken('sensor_msgs/msg/JointState', state) == {
        'p.hip.position': 0.1,
        'p.knee.position': 0.2,
        'p.hip.velocity': 1.0,
    }


@pytest.mark.parametrize(
    'state',
    [
        joints(['hip', 'knee'], [0.1]),
        joints(['hip'], [0.1, 0.2]),
        joints([], [0.1]),
        joints(),
    ],
)
def test_values_that_may_be_another_joints_are_none(state):
    assert taken('sensor_msgs/msg/JointState', state) == {}


def test_ever_new_joints_do_not_grow_without_bound():
    convert = converter('sensor_msgs/msg/JointState', 'arm', ())
    names, left_out, no_name = set(), 0, 0
    for index in range(MAX_SERIES):
        outcome = convert(joints([f'j{index}', ''], [1.0, 1.0], [2.0, 2.0]))
        names.update(name for name, _ in outcome.samples)
        left_out += outcome.left_out
        no_name += outcome.no_name
    assert len(names) == MAX_SERIES // 3 * 2
    assert no_name == 2 * MAX_SERIES
    assert left_out == 2 * MAX_SERIES - len(names)
    assert len(convert(joints(['j0'], [1.0])).samples) == 1  # the first ones are kept
    outcome = converter('sensor_msgs/msg/JointState', 'arm', ())(
        joints(['x' * (MAX_NAME_CHARS + 1)], [1.0])
    )
    assert (outcome.samples, outcome.left_out) == ([], 1)


# Satellites


def fix(latitude, longitude, altitude=10.0, status=0):
    return Of(
        status=Of(status=status, service=1),
        latitude=latitude,
        longitude=longitude,
        altitude=altitude,
    )


def test_the_first_fix_is_the_origin():
    convert = converter('sensor_msgs/msg/NavSatFix', 'gps', ())
    none = dict(convert(fix(1.0, 2.0, status=-1)).samples)
    assert none['gps.status'] == -1
    assert all(math.isnan(none[f'gps.{name}']) for name in ('latitude', 'longitude', 'altitude'))
    assert math.isnan(none['gps.east_m'])
    lost = dict(convert(fix(NAN, NAN)).samples)
    assert math.isnan(lost['gps.north_m'])
    assert dict(convert(fix(45.0, 7.0)).samples) == {
        'gps.latitude': 45.0,
        'gps.longitude': 7.0,
        'gps.altitude': 10.0,
        'gps.status': 0.0,
        'gps.east_m': 0.0,
        'gps.north_m': 0.0,
    }
    moved = dict(convert(fix(45.0, 7.0001, altitude=NAN)).samples)
    assert moved['gps.east_m'] == pytest.approx(7.8847, abs=1e-4)
    assert moved['gps.north_m'] == pytest.approx(0.0, abs=1e-4)
    assert math.isnan(moved['gps.altitude'])


@pytest.mark.parametrize(
    # Of published tables: metres in a degree of latitude and in one of longitude, WGS 84.
    ('latitude', 'north_m', 'east_m'),
    [(0, 110_574, 111_320), (15, 110_649, 107_550), (45, 111_132, 78_847), (75, 111_618, 28_902)],
)
def test_the_lengths_of_a_degree(latitude, north_m, east_m):
    plane = TangentPlane(latitude, -60.0, 0.0)
    step = 1e-3
    east, north = plane.east_north(latitude, -60.0 + step)
    assert (east / step, north / step) == pytest.approx((east_m, 0.0), abs=2.0)
    east, north = plane.east_north(latitude + step, -60.0)
    assert (east / step, north / step) == pytest.approx((0.0, north_m), abs=2.0)


def test_the_plane_across_the_date_line_and_at_a_height():
    east, north = TangentPlane(0.0, 179.9999, 0.0).east_north(0.0, -179.9999)
    assert (east, north) == pytest.approx((22.264, 0.0), abs=1e-3)
    # 1 % of the earth's radius up, a step is 1 % longer.
    low, high = (TangentPlane(0.0, 0.0, h).east_north(0.0, 0.001)[0] for h in (0.0, 63_781.37))
    assert high / low == pytest.approx(1.01, abs=1e-6)
    assert TangentPlane(10.0, 10.0, NAN).east_north(10.0, 10.0) == (0.0, 0.0)


# Any type, by path


PLANNER = Of(
    header=Of(stamp=Of(sec=5, nanosec=6), frame_id='map'),
    distance=12.5,
    mode=b'\x02',
    feedback=[Of(speed=1.0), Of(speed=2.0)],
    matrix=np.arange(4, dtype=np.float32),
    name='x',
)


@pytest.mark.rule(39)
def test_any_other_type_by_path():
    assert not topics.known('my_msgs/msg/Planner')
    assert converter('my_msgs/msg/Planner', 'p') is None
    fields = ('distance', 'header.stamp.sec', 'feedback.1.speed', 'matrix.3', 'mode')
    assert taken('my_msgs/msg/Planner', PLANNER, fields=fields) == {
        'p.distance': 12.5,
        'p.header.stamp.sec': 5.0,
        'p.feedback.1.speed': 2.0,
        'p.matrix.3': 3.0,
        'p.mode': 2.0,
    }
    assert unreadable(PLANNER, fields) == []


def test_paths_that_lead_nowhere():
    fields = ('nothing', 'header.nothing', 'name', 'feedback', 'feedback.7.speed', 'distance')
    assert taken('my_msgs/msg/Planner', PLANNER, fields=fields) == {'p.distance': 12.5}
    # A list may be longer another time; the others are never numbers.
    assert unreadable(PLANNER, fields) == ['nothing', 'header.nothing', 'name', 'feedback']


def test_fields_stand_instead_of_the_table():
    odometry = Of(twist=Of(twist=TWIST), pose=Of(pose=Of(position=xyz())))
    found = taken('nav_msgs/msg/Odometry', odometry, fields=('pose.pose.position.x',))
    assert found == {'p.pose.pose.position.x': 1.0}


# What broken drivers publish


@pytest.mark.parametrize('value', [None, 'x', '1.5', b'', b'ab', [], 1j, np.complex64(1), {}])
def test_what_is_no_number(value):
    assert math.isnan(number(value))


def test_an_endless_integer_is_no_number():
    assert math.isnan(number(10**400))
    assert number(2**64 - 1) == 2.0**64


@pytest.mark.parametrize('type_name', sorted({*topics._FIXED, *topics._SPECIAL}))
@pytest.mark.parametrize('message', [None, Of(), 'text', Of(data=None, range=None, name=5)])
def test_a_message_that_lacks_everything_is_dropped(type_name, message):
    outcome = converter(type_name, 'p')(message)
    if isinstance(outcome, Dropped):
        assert outcome.reason is Drop.BAD_MESSAGE
        assert outcome.text
    else:
        assert all(math.isnan(value) for _, value in outcome.samples)


VALUES = st.one_of(
    st.floats(),
    st.integers(),
    st.booleans(),
    st.none(),
    st.text(max_size=3),
    st.binary(max_size=2),
)
LISTS = st.lists(VALUES, max_size=4)
VECTORS = st.builds(Of, x=VALUES, y=VALUES, z=VALUES)
TWISTS = st.builds(Of, linear=VECTORS, angular=VECTORS)
MESSAGES = st.fixed_dictionaries(
    {},
    optional={
        'twist': st.one_of(VALUES, TWISTS, st.builds(Of, twist=TWISTS)),
        'linear': st.one_of(VALUES, VECTORS),
        'angular': VECTORS,
        'wrench': st.builds(Of, force=VECTORS, torque=VECTORS),
        'force': VECTORS,
        'torque': VECTORS,
        'angular_velocity': VECTORS,
        'angular_velocity_covariance': st.one_of(VALUES, LISTS),
        'linear_acceleration': VECTORS,
        'linear_acceleration_covariance': LISTS,
        'magnetic_field': st.one_of(VALUES, VECTORS),
        'status': st.one_of(VALUES, st.builds(Of, status=VALUES)),
        'name': st.one_of(VALUES, LISTS),
        'ranges': st.one_of(VALUES, LISTS, st.lists(st.floats(width=32))),
        **dict.fromkeys(
            (
                *('voltage', 'current', 'percentage', 'temperature', 'charge', 'range', 'data'),
                *('fluid_pressure', 'relative_humidity', 'illuminance', 'range_min', 'range_max'),
                *('latitude', 'longitude', 'altitude'),
            ),
            VALUES,
        ),
        **{field: st.one_of(VALUES, LISTS) for field in ('position', 'velocity', 'effort')},
    },
)


@given(st.sampled_from(sorted({*topics._FIXED, *topics._SPECIAL})), st.lists(MESSAGES, max_size=3))
def test_nothing_ever_raises_and_samples_are_floats(type_name, messages):
    convert = converter(type_name, 'p')
    for fields in messages:
        outcome = convert(Of(**fields))
        if isinstance(outcome, Taken):
            assert all(type(value) is float for _, value in outcome.samples)
            assert all(name == 'p' or name.startswith('p.') for name, _ in outcome.samples)
