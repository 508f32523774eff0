"""Stream metadata: of each stream of a session, what it is and where it comes from."""

import pytest
from stored import SESSION, at, body, event, pose, whole, write

from cognitive3d_ros import open_session
from cognitive3d_ros.session.metadata import StreamMetadata

PROPERTIES = {
    'c3d.ros.namespace': '/fleet',
    'c3d.ros.node': 'cognitive3d',
    'c3d.ros.reference_frame': 'map',
    'c3d.ros.topics': 'odom,odom.raw',
    'c3d.ros.topic.odom.topic': '/fleet/odom',
    'c3d.ros.topic.odom.type': 'nav_msgs/msg/Odometry',
    'c3d.ros.topic.odom.publisher': '/fleet/base_driver',
    'c3d.ros.topic.odom.prefix': 'odom',
    'c3d.ros.topic.odom.rate_hz': 10,
    'c3d.ros.topic.odom.raw.topic': '/fleet/odom/raw',
    'c3d.ros.topic.odom.raw.prefix': 'odom.raw',
    'c3d.ros.sensors': 'line',
    'c3d.ros.sensor.line.topic': '/fleet/line',
    'c3d.ros.sensor.line.series': 'line.0,line.1',
    'c3d.ros.sensor.line.frame': 'line_link',
    'c3d.ros.cameras': 'front',
    'c3d.ros.camera.front.topic': '/front/image_raw',
    'c3d.ros.camera.front.type': 'sensor_msgs/msg/Image',
    'c3d.ros.camera.front.publisher': '/camera_driver',
    'c3d.ros.camera.front.frame': 'front_optical_frame',
    'c3d.ros.lidars': 'top',
    'c3d.ros.lidar.top.topic': '/points',
}
SERIES = ('odom.linear_x', 'odom.raw.linear_x', 'line.1', 'c3d.pose_failures', 'other')


def session(tmp_path, **more):
    folder = tmp_path / SESSION
    write(folder, 'gaze', 1, 'properties', body('gaze', 1, [], properties={**PROPERTIES, **more}))
    write(folder, 'gaze', 2, 'pose', [pose(1)])
    write(folder, 'events', 1, 'events', [event('c3d.sessionStart', 0)])
    data = [{'name': name, 'data': [[at(1), 1.0]]} for name in SERIES]
    write(folder, 'sensors', 1, 'series', data)
    return open_session(folder)


def test_the_streams_of_a_session(tmp_path):
    streams = session(tmp_path).streams
    assert list(streams) == [
        'pose',
        'events',
        'annotations',
        'properties',
        *(f'series/{name}' for name in SERIES),
        'camera/front',
        'lidar/top',
    ]
    ours = {'task_model': 'cognitive3d_ros/recorder', 'task_name': '/fleet/cognitive3d'}
    assert streams['pose'] == StreamMetadata(
        'port', **ours, object_name='/tf', message_type='tf2_msgs/msg/TFMessage', frame='map'
    )
    assert streams['events'] == StreamMetadata(
        'port',
        **ours,
        object_name='/fleet/cognitive3d/events',
        message_type='cognitive3d_msgs/msg/Event',
        timestamp_field='header.stamp',
        frame='map',
    )
    assert streams['annotations'] == StreamMetadata(
        'annotations',
        **ours,
        object_name='/fleet/cognitive3d/annotations',
        message_type='cognitive3d_msgs/msg/Annotation',
        timestamp_field='time',
    )
    assert streams['properties'] == StreamMetadata('property', **ours)
    assert streams['series/odom.linear_x'] == StreamMetadata(
        'port',
        task_name='/fleet/base_driver',
        object_name='/fleet/odom',
        message_type='nav_msgs/msg/Odometry',
    )
    assert streams['series/odom.raw.linear_x'].object_name == '/fleet/odom/raw'
    assert streams['series/line.1'] == StreamMetadata(
        'port', object_name='/fleet/line', frame='line_link'
    )
    assert streams['series/c3d.pose_failures'] == StreamMetadata('port', **ours)
    assert streams['series/other'] == StreamMetadata('port')
    assert streams['camera/front'] == StreamMetadata(
        'port',
        task_name='/camera_driver',
        object_name='/front/image_raw',
        message_type='sensor_msgs/msg/Image',
        timestamp_field='header.stamp',
        frame='front_optical_frame',
    )
    assert streams['lidar/top'].object_name == '/points'


def test_the_names_that_rock_has(tmp_path):
    assert session(tmp_path).streams['camera/front'].rock() == {
        'rock_stream_type': 'port',
        'rock_task_name': '/camera_driver',
        'rock_task_object_name': '/front/image_raw',
        'rock_orocos_type_name': 'sensor_msgs/msg/Image',
        'rock_timestamp_field': 'header.stamp',
        'c3d_frame': 'front_optical_frame',
    }


@pytest.mark.parametrize('more', [{'c3d.ros.source': 'a.bag', 'c3d.ros.node': 'c3d_record'}])
def test_a_recording_that_was_read_offline(tmp_path, more):
    pose = session(tmp_path, **more).streams['pose']
    assert (pose.task_model, pose.task_name) == ('cognitive3d_ros/c3d', '/fleet/c3d_record')


def test_a_session_that_says_little(tmp_path):
    """A dynamic object, no topics, no node: as another SDK would store it."""
    streams = open_session(whole(tmp_path / SESSION)).streams
    assert set(streams) == {
        *('pose', 'events', 'annotations', 'properties', 'dynamics'),
        *('series/battery.percentage', 'series/c3d.pose_failures'),
    }
    assert streams['series/battery.percentage'] == StreamMetadata('port')
