"""Described sensors: their readings, and what the session says of them."""

import math
from types import SimpleNamespace as Of

import numpy as np
import pytest

from cognitive3d_ros.convert.described import described, wanted_types
from cognitive3d_ros.convert.outcome import Dropped
from cognitive3d_ros.counters import Drop
from cognitive3d_ros.parameters import parse
from cognitive3d_ros.recording.properties import sensor_properties

REQUIRED = {
    'device_id': 'rover-07',
    'scene_id': '5b2a1f4e-0c9d-4e8a-9a53-0f6d1c2b3a4d',
    'scene_version': 3,
}
RANGE = 'sensor_msgs/msg/Range'
FLOAT = 'std_msgs/msg/Float32'


def sensor(name, **keys):
    (found,) = parse(
        {**REQUIRED, 'sensors': [name], **{f'sensor.{name}.{k}': v for k, v in keys.items()}}
    ).sensors
    return found


def sonar(**keys):
    return sensor(
        'sonar',
        **{'kind': 'cone_rangefinder', 'topic': 'sonar', 'cone_half_angle_degrees': 7.5, **keys},
    )


def line(count=4, **keys):
    return sensor('line', kind='binary_array', topic='/line', element_count=count, **keys)


@pytest.mark.rule(69)
@pytest.mark.parametrize(
    ('units', 'metres', 'reading'),
    [
        ('meters', 0.5, 0.5),
        ('centimeters', 0.5, 50.0),
        ('millimeters', 0.5, 500.0),
        ('inches', 0.508, 20.0),
    ],
)
def test_a_range_in_metres_is_converted_and_a_number_is_not(units, metres, reading):
    of = sonar(units=units)
    (sample,) = described(of, RANGE)(Of(range=metres)).samples
    assert sample == ('sonar', pytest.approx(reading))
    assert described(of, FLOAT)(Of(data=metres)).samples == [('sonar', metres)]
    assert properties(of)['units'] == units


def test_no_return_is_no_reading():
    for value in (math.inf, -math.inf, math.nan):
        ((_, reading),) = described(sonar(), RANGE)(Of(range=value)).samples
        assert not math.isfinite(reading)


@pytest.mark.rule(67)
@pytest.mark.parametrize(
    'data',
    [
        [0, 1, 0, 7],
        np.array([0, 1, 0, -3], np.int32),
        [b'\x00', b'\x01', b'\x00', b'\xff'],
        [0.0, 0.001, -0.0, 1e9],
        [False, True, False, True],
    ],
)
def test_what_is_not_zero_is_one(data):
    samples = described(line(), 'std_msgs/msg/UInt8MultiArray')(Of(data=data)).samples
    assert samples == [('line.0', 0.0), ('line.1', 1.0), ('line.2', 0.0), ('line.3', 1.0)]


def test_an_element_that_is_no_number_has_no_reading():
    samples = described(line(2), 'std_msgs/msg/Float32MultiArray')(Of(data=[math.nan, 1])).samples
    assert [math.isnan(value) for _, value in samples] == [True, False]


@pytest.mark.parametrize('data', [[], [1], [1] * 5, np.zeros(1000)])
def test_another_length_is_dropped(data):
    outcome = described(line(), 'std_msgs/msg/UInt8MultiArray')(Of(data=data))
    assert isinstance(outcome, Dropped)
    assert outcome.reason is Drop.WRONG_LENGTH
    assert outcome.text == f'{len(data)} elements: element_count of line is 4'


@pytest.mark.parametrize('message', [None, Of(), Of(data=5, range='x')])
def test_broken_messages_are_no_readings(message):
    for convert in (
        described(line(), 'std_msgs/msg/ByteMultiArray'),
        described(sonar(), RANGE),
        described(sonar(), FLOAT),
    ):
        outcome = convert(message)
        assert isinstance(outcome, Dropped) or not any(
            math.isfinite(v) and v != 5 for _, v in outcome.samples
        )


def test_types():
    assert described(sonar(), 'std_msgs/msg/UInt8MultiArray') is None
    assert described(line(), RANGE) is None
    assert described(line(), FLOAT) is None
    assert described(sonar(), 'std_msgs/msg/Int16') is not None
    assert 'Range' in wanted_types(sonar())
    assert 'multi-array' in wanted_types(line())


# Properties


def properties(*sensors):
    found = sensor_properties(sensors, lambda topic: f'/robot/{topic.lstrip("/")}')
    assert found.pop('c3d.ros.sensors') == ','.join(each.name for each in sensors)
    (name,) = {key.split('.')[3] for key in found}
    return {key.removeprefix(f'c3d.ros.sensor.{name}.'): value for key, value in found.items()}


def typed(values):
    return {key: (type(value), value) for key, value in values.items()}


@pytest.mark.rule(62, 63, 64, 65, 66, 67, 68, 69)
def test_a_cone_rangefinder_in_full():
    of = sonar(
        units='meters',
        frame='sonar_link',
        mount_parent='base_link',
        mount_measured=True,
        cone_half_angle_degrees=7.5,
        range_min_centimeters=2.0,
        range_max_centimeters=400.25,
        mount_xyz_meters=[0.1, 0.0, 0.05],
        mount_yaw_radians=0,
    )
    assert typed(properties(of)) == typed(
        {
            'kind': 'cone_rangefinder',
            'topic': '/robot/sonar',
            'series': 'sonar',
            'frame': 'sonar_link',
            'mount_parent': 'base_link',
            'mount_measured': True,
            'units': 'meters',
            'cone_half_angle_degrees': 7.5,
            'range_min_centimeters': 2,  # centimetres, though the series is in metres
            'range_max_centimeters': 400.25,
            'mount_xyz_meters': '0.10,0.00,0.05',
            'mount_yaw_radians': 0.0,
        }
    )


@pytest.mark.rule(66)
def test_what_is_not_set_is_not_there():
    assert typed(properties(sonar(cone_half_angle_degrees=15))) == typed(
        {
            'kind': 'cone_rangefinder',
            'topic': '/robot/sonar',
            'series': 'sonar',
            'mount_measured': False,
            'units': 'centimeters',
            'cone_half_angle_degrees': 15,
        }
    )
    assert sensor_properties((), str) == {}


@pytest.mark.rule(66, 67)
def test_a_binary_array_in_full():
    of = line(4, frame='line_link', meaning_0='floor', meaning_1='line')
    assert typed(properties(of)) == typed(
        {
            'kind': 'binary_array',
            'topic': '/robot/line',
            'series': 'line.0,line.1,line.2,line.3',
            'frame': 'line_link',
            'mount_measured': False,
            'element_count': 4,
            'meaning_0': 'floor',
            'meaning_1': 'line',
        }
    )


@pytest.mark.rule(65)
@pytest.mark.parametrize(
    ('metres', 'text'),
    [
        ([0.1, 0, -0.05], '0.10,0.00,-0.05'),
        ([-0.000001, -0.0, 0.004], '0.00,0.00,0.004'),
        ([1.23456, 1.234567, -12.3], '1.23456,1.23457,-12.30'),
        ([0.00001, 100, 0.12000], '0.00001,100.00,0.12'),
    ],
)
def test_metres_have_two_to_five_decimals(metres, text):
    assert properties(sonar(mount_parent='b', mount_xyz_meters=metres))['mount_xyz_meters'] == text


@pytest.mark.rule(63, 64)
@pytest.mark.parametrize(
    ('yaw', 'stored'), [(1.5707963, 1.5708), (-0.000001, 0.0), (2, 2.0), (-3.14159265, -3.14159)]
)
def test_the_yaw_is_always_a_double(yaw, stored):
    of = sonar(mount_parent='b', mount_xyz_meters=[0, 0, 0], mount_yaw_radians=yaw)
    value = properties(of)['mount_yaw_radians']
    assert (type(value), str(value)) == (float, str(stored))


@pytest.mark.rule(62)
def test_all_sensors_are_listed():
    both = sensor_properties((sonar(), line(2)), str)
    assert both['c3d.ros.sensors'] == 'sonar,line'
    assert both['c3d.ros.sensor.line.series'] == 'line.0,line.1'
    assert both['c3d.ros.sensor.sonar.topic'] == 'sonar'
