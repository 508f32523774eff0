"""Parameters: the declaration, the check of everything at once, ROS's YAML, the generated documents."""

from __future__ import annotations

import array
import dataclasses
import json
import math
import re
import string
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cognitive3d_ros.errors import ParameterError
from cognitive3d_ros.parameters import (
    ActionConfig,
    CameraConfig,
    Config,
    LidarConfig,
    SensorConfig,
    SpoolConfig,
    TopicConfig,
    UploadConfig,
    check_property_name,
    check_property_value,
    descriptors,
    load_yaml,
    member_descriptors,
    member_names,
    parse,
    typed_property,
    warnings,
)
from cognitive3d_ros.parameters.declaration import FAMILIES, SCALARS, Kind, Parameter
from cognitive3d_ros.parameters.documents import table_text, yaml_text

ROOT = Path(__file__).parent.parent
REQUIRED = {
    'device_id': 'rover-7',
    'scene_id': '4f5b1e0c-8f0e-4d8f-9d53-0f4f0b7f2a11',
    'scene_version': 3,
}
CONE = {'sensors': ['sonar'], 'sensor.sonar.kind': 'cone_rangefinder', 'sensor.sonar.topic': '/r'}
CONE |= {'sensor.sonar.cone_half_angle_degrees': 7.5}
ARRAY = {'sensors': ['line'], 'sensor.line.kind': 'binary_array', 'sensor.line.topic': '/line'}
ARRAY |= {'sensor.line.element_count': 4}


def config(**given: Any) -> Config:
    """Parse the required parameters and more; "__" stands for a dot."""
    return parse(REQUIRED | {name.replace('__', '.'): value for name, value in given.items()})


def faults(given: dict[str, Any], *, alone: bool = False) -> list[str]:
    """Return the faults of the required parameters and more, or of what is given alone."""
    with pytest.raises(ParameterError) as caught:
        parse(given if alone else REQUIRED | given)
    return list(caught.value.faults)


def fault(given: dict[str, Any]) -> str:
    """Return the only fault."""
    found = faults(given)
    assert len(found) == 1, found
    return found[0]


# The declaration


def test_defaults_are_those_that_are_promised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('HOME', '/home/robot')
    assert config() == Config(
        device_id='rover-7',
        scene_id='4f5b1e0c-8f0e-4d8f-9d53-0f4f0b7f2a11',
        scene_version=3,
        autostart=True,
        auto_start_session=True,
        session_name='',
        session_properties={},
        session_comment='',
        remote_variables=False,
        ignore_unknown_parameters=False,
        robot_frame='base_link',
        reference_frames=('map', 'odom'),
        reference_wait_s=10.0,
        gaze_frame='',
        gaze_frame_convention='auto',
        pose_convention='gltf_authored',
        sample_rate_hz=10.0,
        stale_pose_s=1.0,
        use_sim_time=False,
        sim_time_on_wire=False,
        robot_dynamic_object=False,
        robot_object_id='rover-7',
        robot_display_name='rover-7',
        robot_mesh='',
        mesh_yaw_offset_deg=0.0,
        topics=(),
        actions=(),
        sensors=(),
        cameras=(),
        lidars=(),
        gateway='https://data.cognitive3d.com',
        application_key_file=None,
        spool=SpoolConfig(
            dir=Path('/home/robot/.local/state/cognitive3d/spool'),
            max_bytes=8589934592,
            min_free_bytes=1073741824,
            flush_s=1.0,
        ),
        upload=UploadConfig(
            enabled=True, timeout_s=10.0, max_bytes_per_s=0, require_ack_header=True
        ),
    )


def test_members_have_the_promised_defaults() -> None:
    found = config(
        topics=['odom', '/robot/imu'],
        topic__odom__topic='/odometry/filtered',
        cameras=['front'],
        camera__front__topic='/camera/image_raw',
        lidars=['top'],
        lidar__top__topic='points',
        actions=['/navigate_to_pose'],
    )
    assert found.topics == (
        TopicConfig('odom', '/odometry/filtered', 'odometry.filtered', 10.0, (), 'auto'),
        TopicConfig('robot.imu', '/robot/imu', 'robot.imu', 10.0, (), 'auto'),
    )
    assert found.actions == (
        ActionConfig('navigate_to_pose', '/navigate_to_pose', 'navigate_to_pose'),
    )
    assert found.cameras == (
        CameraConfig(
            name='front',
            topic='/camera/image_raw',
            info_topic='/camera/camera_info',
            transport='auto',
            rate_hz=2.0,
            jpeg_quality=80,
            max_width=1280,
            encoding='',
            frame='',
            depth_range_m=(0.0, 10.0),
            qos='auto',
        ),
    )
    assert found.lidars == (
        LidarConfig(
            name='top',
            topic='points',
            type='auto',
            rate_hz=2.0,
            frame='',
            laserscan_intensities=False,
            pointcloud_position='int16_mm',
            pointcloud_color='none',
            pointcloud_intensity='none',
            pointcloud_intensity_field='',
            pointcloud_voxel_leaf_mm=50,
            pointcloud_zstd_level=3,
            qos='auto',
        ),
    )


def test_every_declared_parameter_has_its_attribute_and_the_reverse() -> None:
    def attributes(kind: type, prefix: str = '') -> set[str]:
        return {prefix + field.name for field in dataclasses.fields(kind)}

    grouped = attributes(SpoolConfig, 'spool_') | attributes(UploadConfig, 'upload_')
    assert {p.field for p in SCALARS.values()} == (
        attributes(Config) - {'spool', 'upload'} | grouped
    )
    kinds = {
        'topic': TopicConfig,
        'sensor': SensorConfig,
        'camera': CameraConfig,
        'lidar': LidarConfig,
    }
    for word, kind in kinds.items():
        assert {key.field for key in FAMILIES[word].keys} == attributes(kind) - {'name'}


def test_numbers_have_limits_that_hold_their_defaults() -> None:
    every = [*SCALARS.values(), *(key for family in FAMILIES.values() for key in family.keys)]
    for p in every:
        if p.kind in (Kind.INTEGER, Kind.NUMBER, Kind.NUMBERS):
            assert p.limits, p.name
            low, high = p.limits
            given = p.default if isinstance(p.default, tuple) else (p.default,)
            assert all(number is None or low <= number <= high for number in given), p.name  # type: ignore[operator]
        if p.choices:
            assert p.required or p.default in p.choices
        assert p.about.endswith('.')


NUMBERS = [p for p in SCALARS.values() if p.kind in (Kind.INTEGER, Kind.NUMBER)]


@pytest.mark.parametrize('p', NUMBERS, ids=lambda p: p.name)
def test_numbers_are_taken_up_to_their_limits_and_not_beyond(p: Parameter) -> None:
    assert p.limits
    low, high = p.limits
    parse(REQUIRED | {p.name: low})
    parse(REQUIRED | {p.name: high})
    step = 1 if p.kind is Kind.INTEGER else 1e-9 * max(1.0, abs(high))
    for value in (
        low - step,
        high + step,
        -(10**400),
        10**400,
        math.nan,
        math.inf,
        True,
        '1',
        [1],
    ):
        assert fault({p.name: value}).startswith(f'{p.name} ')


def test_ranges_that_are_promised() -> None:
    assert SCALARS['sample_rate_hz'].limits == (0.1, 100.0)
    assert SCALARS['scene_version'].limits == (1, 4294967295)  # UInt32 in camera and lidar parts
    limits = {key.name: key.limits for key in FAMILIES['lidar'].keys}
    assert limits['pointcloud.voxel_leaf_mm'] == (0, 65535)  # UInt16 in the record
    assert limits['pointcloud.zstd_level'] == (0, 22)
    assert {p.name for p in SCALARS.values() if p.required} == set(REQUIRED)


# The check


def test_all_faults_are_told_at_once_and_by_name() -> None:
    found = faults(
        {
            'device_id': 'rover 7',
            'scene_id': '4f5b1e0c-8f0e-4d8f-9d53-0f4f0b7f2a11',
            'sample_rate_hz': 500,
            'pose_convention': 'opengl',
            'robot_fram': 'base',
        },
        alone=True,
    )
    assert found == [
        f'device_id is {"rover 7"!r}: it must be {SCALARS["device_id"].allowed}',
        'scene_version is required: it must be an integer from 1 to 4294967295',
        "pose_convention is 'opengl': it must be one of gltf_authored, unity, rep103",
        'sample_rate_hz is 500: it must be a number from 0.1 to 100 Hz',
        "robot_fram is 'base': no such parameter, the nearest is robot_frame",
    ]
    with pytest.raises(ParameterError, match=r'^5 parameter faults: device_id is .*; robot_fram'):
        parse(
            REQUIRED
            | {'device_id': '', 'scene_version': 0, 'a': 1, 'gateway': '', 'robot_fram': 1}
        )


def test_what_is_missing_is_required() -> None:
    assert [text.split()[:3] for text in faults({}, alone=True)] == [
        [name, 'is', 'required:'] for name in REQUIRED
    ]
    assert len(faults(dict.fromkeys(REQUIRED, None), alone=True)) == 3
    assert len(faults(dict.fromkeys(REQUIRED, ''), alone=True)) == 3


@pytest.mark.parametrize('value', ['r', 'A.b_c-9', '0', 'x' * 64, '7'])
def test_device_ids(value: str) -> None:
    assert config(device_id=value).device_id == value


@pytest.mark.parametrize(
    'value', ['-r', '.r', '_r', 'x' * 65, 'a b', 'ü', 'a/b', 'r\n', 7, True, 1.5, ['r'], b'r', '٣']
)
def test_wrong_device_ids(value: object) -> None:
    assert fault({'device_id': value}).startswith('device_id is ')


def test_a_text_that_yaml_made_a_number_is_explained() -> None:
    assert fault({'device_id': 493}).endswith('(in YAML, put it in quotes)')
    assert fault({'session_name': True}) == (
        'session_name is true: it must be a text (in YAML, put it in quotes)'
    )
    assert 'put it in quotes' in fault({'topics': [1]})


def test_integers_where_numbers_are_wanted_and_not_the_reverse() -> None:
    found = config(
        sample_rate_hz=20, cameras=['c'], camera__c__topic='/c', camera__c__depth_range_m=[0, 5]
    )
    assert (found.sample_rate_hz, type(found.sample_rate_hz)) == (20.0, float)
    assert [type(value) for value in found.cameras[0].depth_range_m] == [float, float]
    assert 'an integer' in fault({'scene_version': 1.0})
    assert 'true' in fault({'scene_version': True})
    assert fault({'sample_rate_hz': True}).startswith('sample_rate_hz is true')


def test_nothing_is_an_empty_list() -> None:
    assert config(topics=None, session_properties=None) == config(topics=[]) == config()
    assert fault({'reference_frames': None}).startswith(
        'reference_frames is []: it must be a list of 1'
    )
    assert config(robot_frame=None, sample_rate_hz=None) == config()


def test_lists_in_the_forms_that_rclpy_has() -> None:
    names = {'cameras': ('c',), 'camera.c.topic': '/c'}
    for value in ([1, 4], (1.0, 4.0), array.array('d', [1, 4]), array.array('q', [1, 4])):
        found = parse(REQUIRED | names | {'camera.c.depth_range_m': value})
        assert found.cameras[0].depth_range_m == (1.0, 4.0)
    assert fault({'topics': '/odom'}).startswith("topics is '/odom': it must be a list")
    assert fault({'topics': b'/odom'}).startswith('topics is of type bytes')


def test_frames_have_no_leading_slash_and_are_not_empty() -> None:
    for value in ('/base_link', ' base', ''):
        assert 'a tf frame' in fault({'robot_frame': value})
    assert 'a tf frame' in fault({'reference_frames': ['map', '/odom']})
    assert config(robot_frame='robot1/base_link').robot_frame == 'robot1/base_link'


def test_what_belongs_together() -> None:
    assert fault({'sim_time_on_wire': True}) == (
        'sim_time_on_wire is true: use_sim_time must be true as well'
    )
    assert config(sim_time_on_wire=True, use_sim_time=True).sim_time_on_wire
    assert fault({'robot_dynamic_object': True}) == (
        'robot_mesh is required: robot_dynamic_object is true'
    )
    found = config(robot_dynamic_object=True, robot_mesh='husky', robot_object_id='r')
    assert (found.robot_object_id, found.robot_display_name) == ('r', 'rover-7')
    # A fault of the one that is needed is not told twice.
    assert fault({'sim_time_on_wire': True, 'use_sim_time': 'yes'}).startswith('use_sim_time is')
    assert fault({'robot_dynamic_object': True, 'robot_mesh': 1}).startswith('robot_mesh is 1')


def test_one_fault_is_told_once(tmp_path) -> None:
    assert fault({'cameras': [1, 1]}).startswith('cameras holds 1: each must be ')
    file = tmp_path / 'params.yaml'
    file.write_text('cognitive3d:\n  ros__parameters:\n    cameras: [[1], [2]]\n')
    with pytest.raises(ParameterError) as caught:
        load_yaml(file)
    assert caught.value.faults == (
        'params.yaml, line 3: cameras holds a list or mapping in a list, which ROS cannot read',
    )


def test_unknown_names() -> None:
    assert fault({'sample_rate': 5}).endswith('the nearest is sample_rate_hz')
    assert fault({'camera_frame': 'c'}).endswith('the nearest is gaze_frame')
    assert fault({'spool.max_byte': 5}).endswith('the nearest is spool.max_bytes')
    assert fault({'spool_dir': '/x'}).endswith('the nearest is spool.dir')
    assert fault({'topic.odom.topic': '/odom'}) == (
        "topic.odom.topic is '/odom': no such parameter, for topics or actions must name 'odom' first"
    )
    given = {'cameras': ['front'], 'camera.front.topic': '/c'}
    assert fault(given | {'camera.front.rate': 5}).endswith('the nearest is camera.front.rate_hz')
    assert fault(given | {'cameras.front.topic': '/c'}).endswith(
        'the nearest is camera.front.topic'
    )
    assert fault({'nonsense': 4}) == 'nonsense is 4: no such parameter'
    assert 'a name must be a text' in fault({5: 1})  # type: ignore[dict-item]
    for name in (
        '',
        'x' * 100_000,
        '\ud800',
        'sensor',
        'sensor.',
        'sensor..',
        'sensor..topic',
        '.',
    ):
        assert 'no such parameter' in fault({name: 1})
    assert '\n' not in fault({'sensor.\n.topic': 1})
    parse(REQUIRED | {'ignore_unknown_parameters': True, 'max_vel_x': 0.5, 'camera.x.topic': 7})


def test_what_the_client_library_declares_is_its_own() -> None:
    names = ('qos_overrides./tf.subscription.depth', 'start_type_description_service')
    assert parse(REQUIRED | dict.fromkeys(names, object())) == config()
    assert config(use_sim_time=True).use_sim_time
    assert fault({'use_sim_time': 1}).startswith('use_sim_time is 1')


def test_the_key_is_not_repeated() -> None:
    text = fault({'application_key': 'F00DCAFE'})
    assert 'F00DCAFE' not in text
    assert text.endswith('application_key_file')
    text = fault({'gateway': 'https://me:F00DCAFE@gateway.example'})
    assert 'F00DCAFE' not in text
    assert 'application_key_file' in text


def test_messages_stay_short_whatever_the_value() -> None:
    for value in (
        'x' * 10**6,
        list(range(10**5)),
        10**5000,
        {'a' * 10**5: 1},
        object(),
        [[['x']]] * 9,
    ):
        text = fault({'sample_rate_hz': value})
        assert len(text) < 200, text
        assert '0x' not in text


# Topics and actions


def test_a_topic_with_a_slash_is_itself_and_a_bare_word_a_member() -> None:
    text = fault({'topics': ['odom']})
    assert text.startswith('topic.odom.topic is required: it must be a ROS name')
    assert 'one that is the topic itself has a "/"' in text
    found = config(topics=['/odom', 'a/b', '~/own'])
    assert [topic.name for topic in found.topics] == ['odom', 'a.b', '~.own']
    assert [topic.topic for topic in found.topics] == ['/odom', 'a/b', '~/own']
    for wrong in ('/a b', '/odom/', '//odom', '/1odom', '', '/', 'a.b', '-x', 'x' * 65, '/ü'):
        assert 'must be a ROS name with a "/"' in fault({'topics': [wrong]})


def test_the_settings_of_a_topic() -> None:
    found = config(
        topics=['power'],
        topic__power__topic='/pdu/state',
        topic__power__prefix='pdu',
        topic__power__rate_hz=0,
        topic__power__fields=['rail.volts', 'cells.0'],
        topic__power__qos='best_effort',
    )
    assert found.topics == (
        TopicConfig('power', '/pdu/state', 'pdu', 0.0, ('rail.volts', 'cells.0'), 'best_effort'),
    )
    given = {'topics': ['p'], 'topic.p.topic': '/p'}
    assert 'one of auto, reliable' in fault(given | {'topic.p.qos': 'besteffort'})
    assert 'a field such as' in fault(given | {'topic.p.fields': ['a..b']})
    assert 'one stands twice' in fault(given | {'topic.p.fields': ['a', 'b', 'a']})
    assert 'c3d.' in fault(given | {'topic.p.prefix': 'c3d.x'})


def test_one_bad_entry_does_not_hide_the_members_beside_it() -> None:
    assert len(faults({'topics': ['odom', '/a b', '//'], 'topic.odom.topic': '/odom'})) == 2


@pytest.mark.parametrize(
    ('given', 'words'),
    [
        ({'topics': ['/odom', '/odom']}, 'the name odom is used twice'),
        ({'topics': ['/odom', 'odom'], 'topic.odom.topic': '/x'}, 'the name odom is used twice'),
        ({'topics': ['/a/odom', 'a/odom']}, 'the name a.odom is used twice'),
        ({'topics': ['m'], 'actions': ['m'], 'topic.m.topic': '/m'}, 'the name m is used twice'),
        (
            {'sensors': ['line', 'line']} | {k: v for k, v in ARRAY.items() if '.' in k},
            'used twice',
        ),
        (
            {'topics': ['/odom', 'o'], 'topic.o.topic': '/x', 'topic.o.prefix': 'odom'},
            "topics holds 'o', whose series named odom are those of /odom in topics too",
        ),
        (
            {
                'topics': ['/a/b', 'x'],
                'topic.x.topic': '/x',
                'topic.x.prefix': 'a',
                'topic.x.fields': ['b'],
            },
            'whose series named a.b are those of /a/b in topics too',
        ),
        (ARRAY | {'topics': ['/line']}, "sensors holds 'line', whose series named line are"),
        (
            ARRAY | {'topics': ['x'], 'topic.x.topic': '/x', 'topic.x.prefix': 'line.3'},
            'whose series named line.3 are those of x in topics too',
        ),
        ({'topics': ['/c3d/x']}, 'would begin with c3d.'),
        (
            {'actions': ['/dock', 'd'], 'topic.d.topic': '/d', 'topic.d.prefix': 'dock'},
            'whose events named dock are those of /dock in actions too',
        ),
    ],
)
def test_a_name_used_twice_is_a_fault(given: dict[str, Any], words: str) -> None:
    assert words in fault(given)


def test_topics_actions_cameras_and_lidars_may_share_names() -> None:
    found = config(
        topics=['/dock'],
        actions=['/dock'],
        cameras=['dock'],
        camera__dock__topic='/d',
        lidars=['dock'],
        lidar__dock__topic='/d',
    )
    assert found.topics[0].name == found.actions[0].name == found.cameras[0].name


def test_an_action_as_a_member() -> None:
    given = {'actions': ['nav'], 'topic.nav.topic': '/navigate_to_pose', 'topic.nav.prefix': 'go'}
    assert parse(REQUIRED | given).actions == (ActionConfig('nav', '/navigate_to_pose', 'go'),)
    # The node declares all keys of a member, so a default is nothing that was asked for.
    assert parse(REQUIRED | given | {'topic.nav.rate_hz': 10.0, 'topic.nav.fields': None}).actions
    assert fault(given | {'topic.nav.rate_hz': 5}) == (
        'topic.nav.rate_hz is 5.0: it has no meaning for an action'
    )


# Described sensors


def test_a_cone_rangefinder() -> None:
    sensor = parse(
        REQUIRED
        | CONE
        | {
            'sensor.sonar.mount_parent': 'base_link',
            'sensor.sonar.mount_xyz_meters': [0, 0.5, -1],
            'sensor.sonar.mount_yaw_radians': 1,
            'sensor.sonar.mount_measured': True,
            'sensor.sonar.units': 'inches',
            'sensor.sonar.range_min_centimeters': 2,
            'sensor.sonar.range_max_centimeters': 400.5,
        }
    ).sensors[0]
    assert sensor == SensorConfig(
        name='sonar',
        kind='cone_rangefinder',
        topic='/r',
        frame='',
        mount_parent='base_link',
        mount_measured=True,
        units='inches',
        cone_half_angle_degrees=7.5,
        range_min_centimeters=2.0,
        range_max_centimeters=400.5,
        mount_xyz_meters=(0.0, 0.5, -1.0),
        mount_yaw_radians=1.0,
        element_count=None,
        meaning_0='',
        meaning_1='',
        qos='auto',
    )
    assert sensor.series == ('sonar',)
    plain = parse(REQUIRED | CONE).sensors[0]
    assert (plain.units, plain.mount_xyz_meters, plain.mount_yaw_radians) == (
        'centimeters',
        None,
        0.0,
    )


@pytest.mark.rule(67)
def test_a_binary_array() -> None:
    sensor = parse(REQUIRED | ARRAY | {'sensor.line.meaning_1': 'on the line'}).sensors[0]
    assert sensor.series == ('line.0', 'line.1', 'line.2', 'line.3')
    assert (sensor.element_count, sensor.meaning_0, sensor.meaning_1) == (4, '', 'on the line')


@pytest.mark.parametrize(
    ('given', 'words'),
    [
        ({'sensors': ['s'], 'sensor.s.topic': '/s'}, 'sensor.s.kind is required'),
        ({'sensors': ['s'], 'sensor.s.topic': '/s', 'sensor.s.kind': 'cone'}, 'sensor.s.kind is'),
        ({'sensors': ['s'], 'sensor.s.topic': '/s', 'sensor.s.kind': 5}, 'sensor.s.kind is 5'),
        (CONE | {'sensor.sonar.topic': ''}, 'sensor.sonar.topic is required'),
        (CONE | {'sensor.sonar.cone_half_angle_degrees': None}, 'half_angle_degrees is required'),
        (ARRAY | {'sensor.line.element_count': None}, 'element_count is required'),
        (ARRAY | {'sensor.line.element_count': 0}, 'element_count is 0'),
        (ARRAY | {'sensor.line.units': 'meters'}, 'it has no meaning for a binary_array'),
        (
            ARRAY | {'sensor.line.mount_xyz_meters': [1, 2, 3]},
            'it has no meaning for a binary_array',
        ),
        (CONE | {'sensor.sonar.element_count': 3}, 'it has no meaning for a cone_rangefinder'),
        (CONE | {'sensor.sonar.meaning_0': 'x'}, 'it has no meaning for a cone_rangefinder'),
        (CONE | {'sensor.sonar.mount_xyz_meters': [1, 2]}, 'must be a list of 3'),
        (CONE | {'sensor.sonar.mount_xyz_meters': [1, 2, math.nan]}, 'holds nan'),
        (CONE | {'sensor.sonar.mount_yaw_radians': 1.0}, 'it needs mount_xyz_meters'),
        (
            CONE
            | {'sensor.sonar.range_min_centimeters': 5, 'sensor.sonar.range_max_centimeters': 5},
            'it must be less than range_max_centimeters, 5.0',
        ),
        (CONE | {'sensor.sonar.units': 'feet'}, 'one of meters, centimeters, millimeters, inches'),
    ],
)
def test_faults_of_described_sensors(given: dict[str, Any], words: str) -> None:
    assert words in fault(given)


# Cameras, lidars


@pytest.mark.parametrize(
    ('topic', 'info'),
    [
        ('/camera/image_raw', '/camera/camera_info'),
        ('/camera/image_raw/compressed', '/camera/camera_info'),
        ('/depth/image_rect/compressedDepth', '/depth/camera_info'),
        ('image', 'camera_info'),
        ('/image', '/camera_info'),
        ('~/image', '~/camera_info'),
    ],
)
def test_the_camera_info_is_beside_the_image(topic: str, info: str) -> None:
    assert config(cameras=['c'], camera__c__topic=topic).cameras[0].info_topic == info
    given = config(cameras=['c'], camera__c__topic=topic, camera__c__info_topic='/i')
    assert given.cameras[0].info_topic == '/i'


@pytest.mark.parametrize(
    ('key', 'value', 'words'),
    [
        ('topic', None, 'is required'),
        ('depth_range_m', [10.0, 0.0], 'the first must be less than the second'),
        ('depth_range_m', [1.0, 1.0], 'the first must be less than the second'),
        ('depth_range_m', [1.0], 'must be a list of 2'),
        ('depth_range_m', None, 'must be a list of 2'),
        ('depth_range_m', [0.0, math.inf], 'holds inf'),
        ('jpeg_quality', 0, 'an integer from 1 to 100'),
        ('jpeg_quality', 80.0, 'an integer from 1 to 100'),
        ('max_width', 0, 'an integer from 16 to 65535 pixels'),
        ('transport', 'theora', 'one of auto, raw, compressed'),
        ('rate_hz', -1, 'a number from 0 to 1000 Hz'),
        ('qos', '', 'one of auto'),
    ],
)
def test_faults_of_cameras(key: str, value: object, words: str) -> None:
    assert words in fault({'cameras': ['c'], 'camera.c.topic': '/c'} | {f'camera.c.{key}': value})


def test_names_of_members() -> None:
    names = ['a', '9', 'front-left_2', 'x' * 64]
    topics = {f'lidar.{name}.topic': '/l' for name in names}
    assert [lidar.name for lidar in parse(REQUIRED | {'lidars': names} | topics).lidars] == names
    for wrong in ('-a', '_a', 'a.b', 'a b', '', 'x' * 65, 'a\n', 'ä'):
        assert 'a letter or digit first' in fault({'lidars': [wrong]})


# Gateway, paths, warnings


@pytest.mark.parametrize(
    ('given', 'kept'),
    [
        ('https://data.cognitive3d.com/', 'https://data.cognitive3d.com'),
        ('http://127.0.0.1:8765', 'http://127.0.0.1:8765'),
        ('http://[::1]:8765/', 'http://[::1]:8765'),
        ('https://proxy.example/c3d/', 'https://proxy.example/c3d'),
        ('HTTPS://Gateway.Example', 'HTTPS://Gateway.Example'),
    ],
)
def test_gateways(given: str, kept: str) -> None:
    assert config(gateway=given).gateway == kept


@pytest.mark.parametrize(
    'value',
    [
        '',
        'data.cognitive3d.com',
        'ftp://data.cognitive3d.com',
        'https://',
        'https:///v0',
        'https://me:secret@gateway.example',
        'https://me@gateway.example',
        'https://gateway.example?x=1',
        'https://gateway.example#x',
        'https://gateway.example:port',
        'https://gateway.example:70000',
        'https://gateway.example:0',
        'https://[::1',
        'https://gate way.example',
        'https://gateway.example\n',
        'https://gäteway.example',
    ],
)
def test_wrong_gateways(value: str) -> None:
    text = fault({'gateway': value})
    assert text.startswith('gateway is ')
    assert 'secret' not in text


def test_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('HOME', '/home/robot')
    found = config(spool__dir='~/spool', application_key_file='~/key')
    assert (found.spool.dir, found.application_key_file) == (
        Path('/home/robot/spool'),
        Path('/home/robot/key'),
    )
    assert config(spool__dir='/var/spool').spool.dir == Path('/var/spool')
    assert 'there is no such user' in fault({'spool.dir': '~nobody-of-that-name/x'})
    assert 'the path of a folder' in fault({'spool.dir': ''})
    monkeypatch.delenv('HOME')
    text = fault({})  # the default begins with "~"
    assert text.startswith(
        "spool.dir is '~/.local/state/cognitive3d/spool', and the environment has no HOME"
    )
    assert config(spool__dir='/var/spool').spool.dir == Path('/var/spool')


@pytest.mark.parametrize(
    ('gateway', 'count'),
    [
        ('http://gateway.example', 1),
        ('http://192.168.1.4:8765', 1),
        ('http://localhost.example', 1),
        ('http://localhost:8765', 0),
        ('http://127.1.2.3', 0),
        ('http://[::1]:8765', 0),
        ('https://gateway.example', 0),
    ],
)
def test_plain_http_warns_but_on_loopback(gateway: str, count: int) -> None:
    assert len(warnings(config(gateway=gateway))) == count


def test_other_warnings() -> None:
    assert warnings(config()) == []
    assert warnings(config(scene_id=str(uuid.uuid4()).upper())) == []
    assert 'scene_id' in warnings(config(scene_id='warehouse'))[0]
    assert 'spool.dir' in warnings(config(spool__dir='spool'))[0]
    given = CONE | {'sensor.sonar.mount_xyz_meters': [0.0, 0.0, 0.0]}
    assert 'mount_parent' in warnings(parse(REQUIRED | given))[0]


# Properties


@pytest.mark.rule(61)
@pytest.mark.parametrize(
    ('text', 'value'),
    [
        ('5', 5),
        ('-5', -5),
        ('0', 0),
        ('-0', 0),
        ('9223372036854775807', 9223372036854775807),
        ('-9223372036854775808', -9223372036854775808),
        ('9223372036854775808', 9223372036854775808.0),
        ('-9223372036854775809', -9223372036854775808.0),
        ('1e3', 1000.0),
        ('1E+3', 1000.0),
        ('3.5', 3.5),
        ('-0.0', -0.0),
        ('1.0', 1.0),
        ('true', True),
        ('false', False),
        ('True', 'True'),
        ('TRUE', 'TRUE'),
        ('null', 'null'),
        ('007', '007'),
        ('nan', 'nan'),
        ('NaN', 'NaN'),
        ('Infinity', 'Infinity'),
        ('inf', 'inf'),
        ('1e400', '1e400'),
        ('9' * 400, '9' * 400),
        ('9' * 5000, '9' * 5000),
        ('+5', '+5'),
        ('.5', '.5'),
        ('5.', '5.'),
        ('1_000', '1_000'),
        ('0x10', '0x10'),
        ('٣', '٣'),
        (' 5', ' 5'),
        ('5\n', '5\n'),
        ('"5"', '"5"'),
        ('', ''),
        ('[1]', '[1]'),
        ('a=b', 'a=b'),
    ],
)
def test_properties_are_typed_by_the_grammar_of_json(text: str, value: object) -> None:
    typed = typed_property(text)
    assert (typed, type(typed)) == (value, type(value))
    assert math.copysign(1, typed) == math.copysign(1, value) if isinstance(value, float) else True  # type: ignore[arg-type]
    found = config(session_properties=[f'key={text}']).session_properties
    assert dict(found) == {'key': value}


@pytest.mark.rule(61)
@given(
    st.text()
    | st.from_regex(r'-?[0-9]{1,22}(\.[0-9]{1,5})?([eE][+-]?[0-9]{1,3})?', fullmatch=True)
)
@example('-')
def test_properties_agree_with_a_json_reader(text: str) -> None:
    try:
        read = json.loads(text)
    except ValueError:
        read = text
    plain = text == text.strip() and not isinstance(read, str | list | dict) and read is not None
    typed = typed_property(text)
    if not plain or (isinstance(read, float) and not math.isfinite(read)):
        assert typed == text
        assert isinstance(typed, str)
    elif type(read) is int and not -(2**63) <= read < 2**63:
        assert typed == float(read)
    else:
        assert (typed, type(typed)) == (read, type(read))


def test_session_properties() -> None:
    given = [
        'payload_kg=3.5',
        'site=dock=4',
        'empty=',
        'c3d.session_tag.night=true',
        'c3d.participant.age=9',
    ]
    assert dict(config(session_properties=given).session_properties) == {
        'payload_kg': 3.5,
        'site': 'dock=4',
        'empty': '',
        'c3d.session_tag.night': True,
        'c3d.participant.age': 9,
    }


@pytest.mark.parametrize(
    ('text', 'words'),
    [
        ('payload', 'each must be key=value'),
        ('=5', 'each must be key=value'),
        ('c3d.version=2', 'belong to the recorder'),
        ('c3d.session_tag=2', 'belong to the recorder'),
        ('payload = 5', 'begins or ends with a blank'),
        ('x=\0', 'NUL'),
        ('x=\ud800', 'has no meaning alone'),
        (5, 'put it in quotes'),
    ],
)
def test_wrong_session_properties(text: object, words: str) -> None:
    assert words in fault({'session_properties': ['a=1', text]})


def test_a_session_property_twice() -> None:
    text = fault({'session_properties': ['a=1', 'a=2']})
    assert text == "session_properties holds 'a=2': 'a' stands twice"


def test_names_and_values_of_properties() -> None:
    for name in ('a', 'ä b', 'c3d', 'c3dx', 'C3D.x', 'c3d.session_tag.x', 'c3d.participant.id'):
        assert check_property_name(name) is None
    for name in ('', 'c3d.', 'c3d.version', 'c3d.participant', '\0', '\ud800'):
        assert check_property_name(name)
    for value in ('', 'x', 0, -1.5, True, 2**63, 10**300):
        assert check_property_value(value) is None
    for value in (None, [], {}, math.nan, -math.inf, 10**400, '\ud800', b'x'):
        assert check_property_value(value)


# Whatever comes

ALL_NAMES = [
    *SCALARS,
    *(f'{w}.{n}.{k.name}' for w, f in FAMILIES.items() for n in ('a', 'b') for k in f.keys),
]
JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=-(10**5000), max_value=10**5000)
    | st.floats()
    | st.text(st.characters(exclude_categories=()))
    | st.binary()
    | st.sampled_from(
        ['a', 'b', '/a', '/b', 'auto', 'cone_rangefinder', 'binary_array', 'a=1', '~/x', '~x']
    )
    | st.builds(object)
    | st.lists(st.floats()).map(lambda x: array.array('d', x)),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=6,
)
NAMES = st.sampled_from(ALL_NAMES) | st.text() | st.integers()


@given(st.dictionaries(NAMES, JUNK, max_size=12), st.booleans())
def test_junk_is_refused_and_nothing_else_happens(junk: dict[Any, Any], whole: bool) -> None:
    told: tuple[str, ...] = ('',)
    try:
        warnings(parse(REQUIRED | junk if whole else junk))
    except ParameterError as error:
        told = error.faults
    assert told
    for text in told:
        assert '\n' not in text
        assert len(text) < 600
        text.encode()
    for names in member_names(junk).values():
        assert all(re.fullmatch('[A-Za-z0-9][A-Za-z0-9_-]{0,63}', name) for name in names)
    member_descriptors(junk)


# What the node declares


def test_descriptors() -> None:
    found = {d.name: d for d in descriptors()}
    assert 'use_sim_time' not in found
    assert found['sample_rate_hz'].default == 10.0
    assert found['sample_rate_hz'].kind is Kind.NUMBER
    assert found['sample_rate_hz'].constraints == 'a number from 0.1 to 100 Hz'
    assert found['sample_rate_hz'].description == 'Pose samples per second.'
    assert found['device_id'].default is None
    assert found['device_id'].constraints.endswith(', required')
    assert 'robot_frame' in found['gaze_frame'].description


def test_members_are_declared_after_their_lists_are_read() -> None:
    values = {
        'topics': ['/imu', 'odom', 'odom', 'a b', 5],
        'actions': ('nav',),
        'cameras': None,
        'lidars': 'top',
        'sensors': ['line'],
    }
    assert member_names(values) == {
        'topic': ('odom', 'nav'),
        'sensor': ('line',),
        'camera': (),
        'lidar': (),
    }
    names = [d.name for d in member_descriptors(values)]
    assert 'topic.odom.rate_hz' in names
    assert 'sensor.line.meaning_0' in names
    assert len(names) == 2 * len(FAMILIES['topic'].keys) + len(FAMILIES['sensor'].keys)


def test_what_the_node_declares_says_nothing_by_itself() -> None:
    given = REQUIRED | CONE | ARRAY | {'sensors': ['sonar', 'line']}
    given |= {'topics': ['o'], 'topic.o.topic': '/o', 'actions': ['n'], 'topic.n.topic': '/n'}
    given |= {'cameras': ['c'], 'camera.c.topic': '/c', 'lidars': ['l'], 'lidar.l.topic': '/l'}
    declared = {d.name: d.default for d in (*descriptors(), *member_descriptors(given))}
    as_rclpy_has_it = {name: None if value == () else value for name, value in declared.items()}
    assert parse(as_rclpy_has_it | given) == parse(given)


# The generated documents


def test_the_yaml_and_the_table_are_as_generated() -> None:
    assert (ROOT / 'config' / 'cognitive3d.yaml').read_text() == yaml_text()
    assert (ROOT / 'docs' / 'parameters.md').read_text() == table_text()


def test_the_module_prints_them() -> None:
    def printed(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, '-m', 'cognitive3d_ros.parameters', *arguments]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert printed('yaml').stdout == yaml_text()
    assert printed('table').stdout == table_text()
    assert printed('toml').returncode == 2


def filled_in(text: str) -> str:
    for name, value in REQUIRED.items():
        text, count = re.subn(
            f"^    {name}: ''$", f'    {name}: {value}', text, flags=re.MULTILINE
        )
        assert count == 1
    return text


def test_the_yaml_says_what_the_defaults_are(tmp_path: Path) -> None:
    file = tmp_path / 'cognitive3d.yaml'
    file.write_text(filled_in(yaml_text()))
    values = load_yaml(file)
    assert set(values) == set(SCALARS)
    assert parse(values) == config()
    file.write_text(yaml_text())
    assert len(faults(load_yaml(file), alone=True)) == 3


def test_the_examples_in_the_yaml_are_right(tmp_path: Path) -> None:
    text = filled_in(yaml_text())
    lists = {'topics': ['/imu/data', 'odom'], 'sensors': ['sonar', 'line'], 'cameras': ['front']}
    lists |= {'lidars': ['top'], 'actions': ['/navigate_to_pose']}
    for name, names in lists.items():
        assert f'{names}'[1:-1] in text
        text = text.replace(f'    {name}: []', f'    {name}: {names}')
    file = tmp_path / 'cognitive3d.yaml'
    file.write_text(re.sub('^    #(?=[a-z])', '    ', text, flags=re.MULTILINE))
    values = load_yaml(file)
    keys = sum(len(f.keys) for f in FAMILIES.values()) + len(FAMILIES['sensor'].keys)
    only = sum(bool(key.only) for key in FAMILIES['sensor'].keys)
    assert len(values) == len(SCALARS) + keys - only
    found = parse(values)
    assert [len(found.topics), len(found.sensors), len(found.cameras), len(found.lidars)] == [
        2,
        2,
        1,
        1,
    ]
    assert warnings(found) == [
        'sensor.sonar.mount_xyz_meters is set and mount_parent is not: set both'
    ]


def test_the_table_names_every_parameter() -> None:
    table = table_text()
    for name in [*SCALARS, *(key.name for family in FAMILIES.values() for key in family.keys)]:
        assert f'| `{name}` |' in table
    rows = [line for line in table.splitlines() if line.startswith('|')]
    assert {row.count(' | ') for row in rows if '`' in row} == {3}


# ROS's YAML

HEAD = 'cognitive3d:\n  ros__parameters:\n'
SCALAR_TEXTS = re.findall(
    r'\S+',
    """
y Y yes Yes YES on On ON oN n N no No NO off Off OFF true True TRUE tRUE false False FALSE
1 0 -1 +5 007 0755 08 00 -00 0x1F -0x10 +0x1f 0x 0o17 0b11 1_000 1e3 1E5 1. .5 1.e3 .e3 5.e-1
00.5 010.5 -0.0 0e0
.inf -.inf +.inf .Inf .iNf inf INF -inf infinity Infinity .nan .NaN .NAN .nAn nan NaN -nan -.nan nan(1) nan0
1e400 -1e400 1e-400 1e-310 2.2250738585072014e-308 4.9e-324
9223372036854775807 9223372036854775808 -9223372036854775808 -9223372036854775809
0xFFFFFFFFFFFFFFFFFF 0777777777777777777777777 0x1p3 0x1.8 0x.8p1 0x1P+2 0x1p 0x1e3 0x1p-2000 0x1p99999
~ null Null 1:30 2001-01-01 . + --5 +-5 1e 1f 1.5L 1e5.5 "on" 'on' "5" '' "" abc a.b a/b /odom ~/x
""",
)
WHOLE_VALUES = [
    '!!str 5',
    '!!str on',
    '!!int "5"',
    '!!float 5',
    '!foo 5',
    '! 5',
    '&x 5',
    '|\n      5\n      on',
    '|-\n      5',
    '>-\n      on',
    '"a\\nb"',
    "'it''s'",
    '1 # one',
    '1 2',
    '[]',
    '[1, 2]',
    '[0x10, 010]',
    '[1.5, .nan]',
    '[true, off]',
    '[a, "1"]',
    '[!!str 5, a]',
    '[~]',
    '[a, ]',
    '["", b]',
    '\n    - 1\n    - 2',
    '{a: 1, b: {c: 2, d.e: [x]}}',
    '\n      /tf:\n        depth: 5',
]
REFUSED_VALUES = [
    '',
    '!!str',
    '[1.0, 2]',
    '[0, 10.5]',
    '[a, 1]',
    '["1", 2]',
    '[on, 1]',
    '[1, 9223372036854775808]',
    '*x',
    '- 1',
    'a: b',
    '{"": 1}',
    '{[x]: 1}',
    '"open',
    '[1',
    '\t1: 2',
]


def write(folder: Path, text: str) -> Path:
    file = folder / 'params.yaml'
    file.write_text(text)
    return file


def refusals(folder: Path, text: str, **node: str) -> tuple[str, ...]:
    with pytest.raises(ParameterError) as caught:
        load_yaml(write(folder, text), **node)
    return caught.value.faults


class Rcl:
    """The real reader: what rclpy hands to a node that is started with a parameter file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rclpy = pytest.importorskip('rclpy')

    def load(
        self, text: str, node_name: str = 'cognitive3d', namespace: str = '/'
    ) -> dict[str, Any] | None:
        """Return the parameters, None where rcl refuses the file."""
        context = self.rclpy.Context()
        arguments = ['--ros-args', '--params-file', str(write(self.folder, text))]
        try:
            self.rclpy.init(args=arguments, context=context)
        except Exception:  # noqa: BLE001 (RCLError lies in a private module)
            return None
        try:
            node = self.rclpy.create_node(
                node_name,
                namespace=namespace,
                context=context,
                start_parameter_services=False,
                enable_rosout=False,
            )
            found = {name: p.value for name, p in node._parameter_overrides.items()}
            node.destroy_node()
            return found
        finally:
            self.rclpy.shutdown(context=context)


@pytest.fixture
def rcl(tmp_path: Path) -> Rcl:
    return Rcl(tmp_path)


def plain(values: dict[str, Any] | None) -> str:
    """Return values so that they compare by type too, NaN to NaN."""
    assert values is not None
    return repr(
        {k: list(v) if isinstance(v, array.array) else v for k, v in sorted(values.items())}
    )


@pytest.mark.ros
def test_scalars_are_read_as_rcl_reads_them(rcl: Rcl) -> None:
    text = HEAD + ''.join(f'    p{i}: {value}\n' for i, value in enumerate(SCALAR_TEXTS))
    assert plain(load_yaml(write(rcl.folder, text))) == plain(rcl.load(text))


@pytest.mark.ros
@settings(max_examples=30)
@given(
    texts=st.lists(
        st.text('0123456789xXaAeEpP+-._infINFyYtruESo', min_size=1, max_size=8), min_size=80
    )
)
def test_any_scalars_are_read_as_rcl_reads_them(
    texts: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    rcl = Rcl(tmp_path_factory.mktemp('rcl'))
    text = HEAD + ''.join(f'    p{i}: {value}\n' for i, value in enumerate(texts) if value != '-')
    assert plain(load_yaml(write(rcl.folder, text))) == plain(rcl.load(text))


@pytest.mark.ros
@pytest.mark.parametrize('value', WHOLE_VALUES)
def test_values_are_read_as_rcl_reads_them(rcl: Rcl, value: str) -> None:
    text = f'{HEAD}    p: {value}\n'
    assert plain(load_yaml(write(rcl.folder, text))) == plain(rcl.load(text))


@pytest.mark.ros
@pytest.mark.parametrize('value', REFUSED_VALUES)
def test_what_rcl_refuses_is_refused(rcl: Rcl, value: str) -> None:
    text = f'{HEAD}    p: {value}\n'
    assert rcl.load(text) is None
    assert refusals(rcl.folder, text)


def section(name: str, value: object, key: str = 'a') -> str:
    return f'{name}:\n  ros__parameters:\n    {key}: {value}\n'


SECTIONS = [
    section('/**', 1) + section('cognitive3d', 2),
    section('cognitive3d', 2) + section('/**', 1),
    section('/*', 1) + section('/cognitive3d', 2),
    section('cognitive3d', 1) + section('/**', 2) + section('cognitive3d', 3),
    section('/**', '[1]') + section('cognitive3d', '[]'),
    section('cognitive3d', 1) + section('cognitive3d', 2, 'b'),
    section('cognitive3d', 1) + '---\n' + section('cognitive3d', 2),
    section('/**/cognitive3d', 1),
    section('/*/cognitive3d', 1),
    section('/r1/*', 1),
    section('/r1/**', 1),
    section('r1/cognitive3d', 1),
    section('/**/*', 1),
    section('"*"', 1),
    section('"**"', 1),
    section('/**/r1/**', 1),
    'r1:\n  cognitive3d:\n    ros__parameters:\n      a: 1\n',
    'r1/:\n  cognitive3d:\n    ros__parameters:\n      a: 1\n',
    '"/":\n  cognitive3d:\n    ros__parameters:\n      a: 1\n',
    '/**:\n  cognitive3d:\n    ros__parameters:\n      a: 1\n',
    'cognitive3d:\n  ros__parameters:\n    a.b: 1\n    a:\n      b: 2\n',
    'cognitive3d:\n  ros__parameters:\n    a: [1]\n    a: []\n    b: []\n    b: [1]\n',
    '"cognitive3d":\n  "ros__parameters":\n    "a b": 1\n    ü: 2\n    on: 3\n    4: 5\n',
    '\ufeffcognitive3d:\n  ros__parameters:\n    a: 1\n',
]


@pytest.mark.ros
@pytest.mark.parametrize('text', SECTIONS)
@pytest.mark.parametrize('namespace', ['/', '/r1', '/r1/r2'])
def test_sections_are_matched_as_rcl_matches_them(rcl: Rcl, text: str, namespace: str) -> None:
    found = rcl.load(text, namespace=namespace)
    if found:
        assert plain(load_yaml(write(rcl.folder, text), namespace=namespace)) == plain(found)
    else:
        assert 'none for' in refusals(rcl.folder, text, namespace=namespace)[0]


# Kilted merges these, Jazzy refuses the file.
NESTED_SECTIONS = [
    'cognitive3d:\n  ros__parameters:\n    a: 1\n  sub:\n    ros__parameters:\n      b: 1\n',
    'cognitive3d:\n  ros__parameters:\n    a: 1\n  ros__parameters:\n    b: 1\n',
]


@pytest.mark.ros
@pytest.mark.parametrize('text', NESTED_SECTIONS)
def test_sections_in_sections_are_read_as_the_newer_rcl_reads_them(rcl: Rcl, text: str) -> None:
    found = rcl.load(text, namespace='/')
    ours = load_yaml(write(rcl.folder, text))
    assert found is None or plain(ours) == plain(found)
    assert ours['a'] == 1


REFUSED_SECTIONS = [
    'a: 1\n',
    'cognitive3d:\n  a: 1\n',
    'cognitive3d:\n  ros__parameters: 1\n',
    'cognitive3d:\n  ros__parameters:\n',
    'cognitive3d:\n',
    '[1]\n',
    'ros__parameters:\n  a: 1\n',
    section('/cogn*', 1),
    section('co-g', 1),
    section('1co', 1),
    section('/a//b', 1),
    section('/***', 1),
    section('""', 1),
    section('cognitive3d/', 1),
    '/r1:\n  /cognitive3d:\n    ros__parameters:\n      a: 1\n',
    'cognitive3d:\n  ros__parameters:\n    a: 1\n   b: 2\n',
    'cognitive3d:\n  ros__parameters:\n\ta: 1\n',
]


@pytest.mark.ros
@pytest.mark.parametrize('text', REFUSED_SECTIONS)
def test_files_that_rcl_refuses_are_refused(rcl: Rcl, text: str) -> None:
    assert rcl.load(text) is None
    assert refusals(rcl.folder, text)


def test_faults_of_a_file_are_told_with_their_lines(tmp_path: Path) -> None:
    lines = [
        'depth: [0, 10.5]',
        'topics: [/odom, 5]',
        'name:',
        'deep: [[1]]',
        'a: 1',
        'a: x',
        'b: {}',
    ]
    text = HEAD + ''.join(f'    {line}\n' for line in lines)
    assert refusals(tmp_path, text) == (
        (
            'params.yaml, line 3: depth mixes integers and other numbers, which ROS refuses in a list: '
            'write [0.0, 10.5]'
        ),
        (
            'params.yaml, line 4: topics mixes integers, texts in a list, which ROS refuses: put texts '
            'in quotes'
        ),
        "params.yaml, line 5: name has no value: an empty text is written ''",
        'params.yaml, line 6: deep holds a list or mapping in a list, which ROS cannot read',
        'params.yaml, line 8: a stands twice, with values of different types',
        'params.yaml, line 9: b is an empty mapping, which ROS misreads: leave it out',
    )


def test_a_file_for_another_node(tmp_path: Path) -> None:
    (text,) = refusals(tmp_path, section('/amcl', 1) + section('other/node', 2))
    assert text.startswith(
        'params.yaml holds parameters for /amcl, other/node only, and none for /cognitive3d'
    )
    assert '"/**:"' in text
    assert 'for no node' in refusals(tmp_path, '')[0]
    file = write(tmp_path, section('/amcl', 1))
    assert load_yaml(file, 'amcl') == {'a': 1}


def test_files_that_are_no_yaml(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r'missing\.yaml cannot be read: No such file'):
        load_yaml(tmp_path / 'missing.yaml')
    with pytest.raises(ParameterError, match='cannot be read: Is a directory'):
        load_yaml(tmp_path)
    (tmp_path / 'latin.yaml').write_bytes(b'a: \xe4')
    with pytest.raises(ParameterError, match=r'latin\.yaml is not UTF-8'):
        load_yaml(tmp_path / 'latin.yaml')
    assert 'line 3' in refusals(tmp_path, HEAD + '    a: [1\n')[0]
    assert 'aliases' in refusals(tmp_path, HEAD + '    a: &x 1\n    b: *x\n')[0]
    assert (
        'nested too deeply' in refusals(tmp_path, HEAD + f'    a: {"[" * 1000}{"]" * 1000}\n')[0]
    )


@given(st.text(string.printable) | st.text() | st.binary())
def test_any_file_is_read_or_refused(content: str | bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / 'params.yaml'
        file.write_bytes(
            content if isinstance(content, bytes) else content.encode(errors='replace')
        )
        with pytest.raises(ParameterError):
            load_yaml(file)
