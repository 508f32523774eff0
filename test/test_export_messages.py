"""MCAP files and rosbag2 folders: read by mcap, by rosbags and by rclpy, and recorded again."""

import importlib
import json

import numpy as np
import pytest
import rich_session
import yaml
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory
from pocolog_reader import read as read_pocolog
from recording_rig import REQUIRED, Lines
from rosbags.highlevel import AnyReader
from rosbags.rosbag2 import Reader as Rosbag2
from stored import SESSION, at, cloud_record, event, pose, whole, write, write_sensors
from stored import body as json_body
from test_rawlog import objects

from cognitive3d_ros import open_session
from cognitive3d_ros.bags.door import record_bag
from cognitive3d_ros.comments import parse_blocks
from cognitive3d_ros.conventions import CONVENTIONS
from cognitive3d_ros.export import Options, export_session
from cognitive3d_ros.export.serialiser import Serialiser, make_typestore
from cognitive3d_ros.parameters import parse
from cognitive3d_ros.ros_names import topic_words

S = 1_000_000_000
TOPICS = {
    '/tf': 'tf2_msgs/msg/TFMessage',
    '/pose': 'geometry_msgs/msg/PoseStamped',
    '/dynamics/rover_07': 'geometry_msgs/msg/PoseStamped',
    '/camera/front/image/compressed': 'sensor_msgs/msg/CompressedImage',
    '/camera/front/camera_info': 'sensor_msgs/msg/CameraInfo',
    '/camera/rear/image/compressed': 'sensor_msgs/msg/CompressedImage',
    '/lidar/top/points': 'sensor_msgs/msg/PointCloud2',
    '/lidar/base/scan': 'sensor_msgs/msg/LaserScan',
    '/series/battery/percentage': 'std_msgs/msg/Float64',
    '/series/line/_0': 'std_msgs/msg/Float64',
    '/events': 'cognitive3d_msgs/msg/Event',
    '/annotations': 'cognitive3d_msgs/msg/Annotation',
    '/events/all': 'std_msgs/msg/String',
    '/events/log': 'rcl_interfaces/msg/Log',
    '/events/markers': 'visualization_msgs/msg/MarkerArray',
}


NO_WHEEL = {'visualization_msgs/msg/MarkerArray'}
"""Types that the ROS of the tests has no package of: mcap and rosbags read them."""


@pytest.fixture(scope='module', params=CONVENTIONS)
def session(request, tmp_path_factory):
    root = tmp_path_factory.mktemp('rich')
    rich_session.record(root / 'spool', convention=request.param)
    return open_session(root / 'spool')


@pytest.fixture(scope='module')
def mcap(session):
    path = session.files.folder.parents[2] / 'rich.mcap'
    export_session(session, 'mcap', path, replace=True)
    return path


def decoded(path):
    """Return (topic, log time, message) of an MCAP file, by the library of its owners."""
    with path.open('rb') as file:
        reader = make_reader(file, decoder_factories=[DecoderFactory()])
        return [
            (channel.topic, message.log_time, content)
            for _, channel, message, content in reader.iter_decoded_messages()
        ]


def of(topic, messages):
    return [(time_ns, content) for name, time_ns, content in messages if name == topic]


def seconds(stamp):
    return stamp.sec + stamp.nanosec / S - rich_session.START


def test_mcap_holds_all_of_it_in_time_order(session, mcap):
    with mcap.open('rb') as file:
        reader = make_reader(file)
        summary = reader.get_summary()
        (facts,) = reader.iter_metadata()
        assert reader.get_header().profile == 'ros2'
    names = {c.topic: summary.schemas[c.schema_id].name for c in summary.channels.values()}
    assert names.items() >= TOPICS.items()
    assert facts.name == 'c3d.session'
    assert facts.metadata['session_id'] == session.id
    assert facts.metadata['axes'] == 'REP-103'
    assert facts.metadata['payload_kg'] == '3.5'
    assert facts.metadata['c3d.ros.comment'] == session.comment
    channels = {c.topic: c.metadata for c in summary.channels.values()}
    front = channels['/camera/front/image/compressed']
    assert front['c3d.stream'] == 'camera/front'
    assert front['rock_task_object_name'] == '/front/image_raw'
    assert channels['/series/line/_0']['c3d.stream'] == 'series/line.0'
    times = [time_ns for _, time_ns, _ in decoded(mcap)]
    assert times == sorted(times)
    assert times[0] == round(session.start * 1e5) * 10_000


def test_where_everything_is_by_tf_and_poses(session, mcap):
    messages = decoded(mcap)
    for _, message in of('/pose', messages):
        assert message.header.frame_id == 'odom'
        p, q = message.pose.position, message.pose.orientation
        expected = rich_session.robot_at(seconds(message.header.stamp))
        held(p, q, *expected, 2e-5)
    links = [link for _, message in of('/tf', messages) for link in message.transforms]
    assert {link.header.frame_id for link in links} == {'odom'}
    counts = {}
    for link in links:
        counts[link.child_frame_id] = counts.get(link.child_frame_id, 0) + 1
        time_s = seconds(link.header.stamp)
        if link.child_frame_id == 'base_link':
            expected, tolerance = rich_session.robot_at(time_s), 2e-5
        else:
            expected, tolerance = rich_session.sensor_at(link.child_frame_id, time_s), 2e-3
        held(link.transform.translation, link.transform.rotation, *expected, tolerance)
    assert counts == {'base_link': 61, **dict.fromkeys(rich_session.MOUNTS, 6)}
    for time_ns, message in of('/dynamics/rover_07', messages):
        expected = rich_session.robot_at(time_ns / S - rich_session.START)
        held(message.pose.position, message.pose.orientation, *expected, 2e-5)


def held(p, q, expected_p, expected_q, tolerance):
    np.testing.assert_allclose((p.x, p.y, p.z), expected_p, atol=tolerance)
    got = np.array((q.x, q.y, q.z, q.w))
    sign = np.sign(np.dot(got, expected_q))
    np.testing.assert_allclose(got * sign, expected_q, atol=tolerance)


def test_pictures_and_points(session, mcap):
    messages = decoded(mcap)
    pictures = of('/camera/front/image/compressed', messages)
    assert [bytes(m.data) for _, m in pictures] == [f.data for f in session.camera('front')]
    assert {m.format for _, m in pictures} == {'jpeg'}
    assert {m.header.frame_id for _, m in pictures} == {'front_optical_frame'}
    infos = of('/camera/front/camera_info', messages)
    assert [t for t, _ in infos] == [t for t, _ in pictures]
    _, info = infos[0]
    assert (info.width, info.height) == (48, 32)
    np.testing.assert_allclose([info.k[0], info.k[4]], [40, 40], rtol=1e-6)
    assert of('/camera/rear/camera_info', messages) == []  # its field of view is not known
    for _, cloud in of('/lidar/top/points', messages):
        assert (cloud.width, cloud.height, cloud.point_step) == (3, 1, 12)
        points = np.frombuffer(bytes(cloud.data), '<f4').reshape(-1, 3)
        assert sorted(map(tuple, np.round(points, 3).tolist())) == sorted(
            map(tuple, rich_session.POINTS.tolist())
        )
    stored = list(session.lidar('base'))
    for (_, scan), record in zip(of('/lidar/base/scan', messages), stored, strict=True):
        ranges = np.array(scan.ranges, np.float32)
        np.testing.assert_array_equal(ranges, np.array(rich_session.RANGES, np.float32))
        assert (scan.angle_min, scan.angle_max, scan.angle_increment) == (-1.5, 1.5, 0.5)
        assert scan.range_min == pytest.approx(0.1)
        assert scan.header.stamp.sec * S + scan.header.stamp.nanosec == record.time_ns
        assert len(scan.intensities) == 0


def test_series(session, mcap):
    messages = decoded(mcap)
    for name, topic in (('battery.percentage', 'battery/percentage'), ('line.0', 'line/_0')):
        got = [(t, m.data) for t, m in of(f'/series/{topic}', messages)]
        assert got == [(round(t * 1e5) * 10_000, value) for t, value in session.series[name]]


def test_events_and_regions(session, mcap):
    messages = decoded(mcap)
    ((time_ns, dock),) = of('/events', messages)
    assert time_ns == round((rich_session.START + 1.5) * S)
    assert dock.name == 'dock.reached'
    assert json.loads(dock.properties_json) == {'dock': 'A', 'ok': True, 'depth_m': 0.25}
    everything = [json.loads(m.data) for _, m in of('/events/all', messages)]
    assert [each['name'] for each in everything] == [each.name for each in session.events]
    np.testing.assert_allclose(everything[1]['point'], rich_session.robot_at(1.5)[0], atol=1e-4)
    said = [(m.stream_name, m.key, m.value) for _, m in of('/annotations', messages)]
    assert said == [(a.stream_name, a.key, a.value) for a in session.annotations]
    lines = [(m.level, m.msg) for _, m in of('/events/log', messages)]
    assert (20, 'comment: lens: dirty, "very"') in lines
    assert (20, 'region 1 completed after 1.50 s: first lap; done') in lines
    assert (30, 'region 2 aborted after 1.50 s: second; rain') in lines
    assert (20, 'region open after 1.50 s: no index') in lines
    marks = [mark for _, m in of('/events/markers', messages) for mark in m.markers]
    texts = {mark.text: mark for mark in marks if mark.ns == 'events'}
    held_point = texts['dock.reached'].pose.position
    np.testing.assert_allclose(
        (held_point.x, held_point.y, held_point.z), rich_session.robot_at(1.5)[0], atol=1e-4
    )
    regions = [mark for mark in marks if mark.ns == 'regions']
    assert [len(mark.points) for mark in regions] == [16, 16, 16]
    assert len({mark.id for mark in marks}) == len(marks)


def test_rosbag2_says_the_same(session, mcap, tmp_path):
    made = export_session(session, 'rosbag2', tmp_path / 'bag')
    assert sorted(p.name for p in (tmp_path / 'bag').iterdir()) == ['bag.db3', 'metadata.yaml']
    assert made.notes == (
        'not in it: seq, the numbers of frames and scans (parquet and csv have them)',
        'camera_info is of the field of view: the principal point in the middle, no distortion',
    )
    facts = yaml.safe_load((tmp_path / 'bag' / 'metadata.yaml').read_text())
    about = facts['rosbag2_bagfile_information']
    assert about['custom_data']['session_id'] == session.id
    assert about['custom_data']['payload_kg'] == '3.5'
    assert about['storage_identifier'] == 'sqlite3'
    assert about['relative_file_paths'] == ['bag.db3']
    with Rosbag2(tmp_path / 'bag') as bag:
        names = {each.topic: each.msgtype for each in bag.connections}
        assert names.items() >= TOPICS.items()
        theirs = [(c.topic, t, bytes(raw)) for c, t, raw in bag.messages()]
    with mcap.open('rb') as file:
        ours = [(c.topic, m.log_time, m.data) for _, c, m in make_reader(file).iter_messages()]
    assert sorted(theirs) == sorted(ours)
    with AnyReader([tmp_path / 'bag']) as reader:
        for connection, _, raw in reader.messages():
            reader.deserialize(raw, connection.msgtype)


def get_message(name):
    """The class of a message type, as rclpy has it."""
    package, _, kind = name.split('/')
    return getattr(importlib.import_module(f'{package}.msg'), kind)


def same(theirs, ours):
    """Hold a field of a message to the same of another library."""
    if hasattr(theirs, 'get_fields_and_field_types'):
        for name in theirs.get_fields_and_field_types():
            same(getattr(theirs, name), getattr(ours, name))
    elif isinstance(theirs, (str, bool, int, bytes)):
        assert theirs == ours
    elif len(np.shape(theirs)) == 0 or isinstance(theirs[:1], str) or not len(theirs):
        np.testing.assert_array_equal(theirs, ours)
    elif hasattr(theirs[0], 'get_fields_and_field_types'):
        for one, other in zip(theirs, ours, strict=True):
            same(one, other)
    else:
        np.testing.assert_array_equal(np.asarray(theirs), np.asarray(ours))


@pytest.mark.ros
def test_rclpy_takes_every_message(session, mcap):
    """What rclpy makes of a message is what rosbags makes of it."""
    pytest.importorskip('rclpy', reason='needs ROS')
    from rclpy.serialization import deserialize_message

    store = make_typestore()

    missing = set()
    seen = set()
    with mcap.open('rb') as file:
        for schema, _, message in make_reader(file).iter_messages():
            try:
                kind = get_message(schema.name)
            except ModuleNotFoundError:
                missing.add(schema.name)
                continue
            theirs = deserialize_message(message.data, kind)
            ours = store.deserialize_cdr(message.data, schema.name)
            for name in theirs.get_fields_and_field_types():
                same(getattr(theirs, name), getattr(ours, name))
            seen.add(schema.name)
    assert missing <= NO_WHEEL
    assert seen >= {*TOPICS.values()} - NO_WHEEL


@pytest.mark.ros
def test_a_session_is_played_to_a_node(tmp_path):
    """Through DDS, from the folder, in the order in which it is stored: every topic."""
    rclpy = pytest.importorskip('rclpy', reason='needs ROS')
    from node_rig import until
    from rclpy.qos import QoSProfile

    rich_session.record(tmp_path / 'spool')
    export_session(open_session(tmp_path / 'spool'), 'rosbag2', tmp_path / 'bag')
    wanted = [topic for topic, name in TOPICS.items() if name not in NO_WHEEL]
    context = rclpy.Context()
    rclpy.init(context=context)
    node = rclpy.create_node('player', context=context)
    executor = rclpy.executors.SingleThreadedExecutor(context=context)
    executor.add_node(node)
    qos = QoSProfile(depth=200)
    heard = {topic: [] for topic in wanted}
    try:
        publishers = {}
        for topic in wanted:
            kind = get_message(TOPICS[topic])
            publishers[topic] = node.create_publisher(kind, topic, qos)
            node.create_subscription(kind, topic, heard[topic].append, qos)
        until(lambda: all(p.get_subscription_count() for p in publishers.values()))
        counts = dict.fromkeys(wanted, 0)
        with Rosbag2(tmp_path / 'bag') as bag:
            connections = [c for c in bag.connections if c.topic in wanted]
            for connection, _, raw in bag.messages(connections):
                publishers[connection.topic].publish(bytes(raw))
                counts[connection.topic] += 1

        def all_there():
            executor.spin_once(0.05)
            return {topic: len(each) for topic, each in heard.items()} == counts

        until(all_there)
    finally:
        executor.shutdown()
        node.destroy_node()
        rclpy.shutdown(context=context)
    assert counts['/pose'] == len(heard['/dynamics/rover_07']) == 61
    assert counts['/tf'] == 61 + 4 * 6
    assert all(counts.values())
    assert heard['/events'][0].name == 'dock.reached'
    assert bytes(heard['/camera/front/image/compressed'][0].data) == rich_session.PICTURE
    assert list(heard['/lidar/base/scan'][0].ranges)[:2] == [1.0, 2.5]


RICH = {
    **REQUIRED,
    'reference_frames': ['odom'],
    'cameras': ['front', 'rear'],
    'camera.front.topic': '/camera/front/image/compressed',
    'camera.front.info_topic': '/camera/front/camera_info',
    'camera.front.rate_hz': 0.0,
    'camera.rear.topic': '/camera/rear/image/compressed',
    'camera.rear.rate_hz': 0.0,
    'lidars': ['base', 'top'],
    'lidar.base.topic': '/lidar/base/scan',
    'lidar.base.rate_hz': 0.0,
    'lidar.top.topic': '/lidar/top/points',
    'lidar.top.rate_hz': 0.0,
    'lidar.top.pointcloud.voxel_leaf_mm': 0,
    'topics': ['battery'],
    'topic.battery.topic': '/series/battery/percentage',
    'topic.battery.prefix': 'battery.percentage',
}


@pytest.mark.parametrize('to', ['mcap', 'rosbag2'])
def test_a_session_survives_the_way_there_and_back(session, tmp_path, to):
    """Export, record again, and compare: the recorder is the judge of what it wrote."""
    path = tmp_path / ('again.mcap' if to == 'mcap' else 'again')
    export_session(session, to, path)
    config = parse({**RICH, 'pose_convention': session.convention})
    result = record_bag(path, config, tmp_path / 'spool', log=Lines())
    assert not result.lossy
    again = open_session(tmp_path / 'spool')
    assert again.convention == session.convention
    track = session.track.at(again.poses.time)
    inside = track.known
    assert inside.sum() >= 58
    np.testing.assert_allclose(again.poses.p[inside], track.p[inside], atol=5e-4)
    for name in ('front', 'rear'):
        one, other = list(session.camera(name)), list(again.camera(name))
        assert [f.data for f in other] == [f.data for f in one]
        assert [f.time for f in other] == [f.time for f in one]
        np.testing.assert_allclose(
            [f.direction((0, 0, 1)) for f in other],
            [f.direction((0, 0, 1)) for f in one],
            atol=1e-5,
        )
        np.testing.assert_allclose(
            [f.pose[:3] for f in other], [f.pose[:3] for f in one], atol=1e-5
        )
        np.testing.assert_allclose(
            [f.hfov_degrees for f in other], [f.hfov_degrees for f in one], rtol=1e-5
        )
    for name in ('top', 'base'):
        for a, b in zip(session.lidar(name), again.lidar(name), strict=True):
            np.testing.assert_allclose(b.scene_points(), a.scene_points(), atol=1e-5)
            assert (b.frame_id, b.time) == (a.frame_id, a.time)
    for a, b in zip(session.lidar('base'), again.lidar('base'), strict=True):
        assert a.ranges.tobytes() == b.ranges.tobytes()
    names = [each.name for each in session.events]
    assert [each.name for each in again.events] == names
    assert [(r.index, r.state, r.start) for r in again.regions()] == [
        (r.index, r.state, r.start) for r in session.regions()
    ]
    stored = [value for _, value in session.series['battery.percentage']]
    assert [value for _, value in again.series['battery.percentage']] == stored


def test_messages_that_are_copied_are_as_rosbags_serialises_them():
    """Whatever the length of the frames' names, which moves everything behind them."""
    made, store = Serialiser(), make_typestore()
    times = np.array([1_767_225_600_250_010_000, 5], np.int64)
    p = np.array([(1.0, 2.0, 3.0), (-1.0, 0.5, 0.0)])
    r = np.array([(0.0, 0.0, 0.0, 1.0), (0.5, 0.5, 0.5, -0.5)])
    for length in range(1, 10):
        frame, child = 'f' * length, 'c' * (10 - length)
        poses = [data for _, data in made.poses(frame, times, p, r)]
        links = [data for _, data in made.transforms(frame, child, times, p, r)]
        for index in range(2):
            message = store.deserialize_cdr(poses[index], 'geometry_msgs/msg/PoseStamped')
            assert message.header.frame_id == frame
            stamp = message.header.stamp
            assert stamp.sec * S + stamp.nanosec == times[index]
            position, q = message.pose.position, message.pose.orientation
            assert (position.x, position.y, position.z) == tuple(p[index])
            assert (q.x, q.y, q.z, q.w) == tuple(r[index])
            again = store.serialize_cdr(message, 'geometry_msgs/msg/PoseStamped')
            assert bytes(again) == poses[index]
            expected = made.transform(int(times[index]), frame, child, p[index], r[index])
            assert links[index] == expected
    numbers = list(made.numbers(times, np.array([0.25, -7.0])))
    assert [t for t, _ in numbers] == times.tolist()
    values = [store.deserialize_cdr(n, 'std_msgs/msg/Float64').data for _, n in numbers]
    assert values == [0.25, -7]


@pytest.mark.parametrize(
    ('text', 'words'),
    [
        ('battery.percentage', 'battery/percentage'),
        ('line.0', 'line/_0'),
        ('/imu/data', 'imu/data'),
        ('motor: left (A).level', 'motor_left_A_/level'),
        ('a__b', 'a_b'),
        ('', '_'),
        ('...', '_'),
        ('é', '_'),
    ],
)
def test_names_of_topics(text, words):
    assert topic_words(text) == words


def test_series_whose_names_come_to_the_same(tmp_path):
    folder = whole(tmp_path / SESSION)
    data = [{'name': name, 'data': [[at(1), n]]} for n, name in enumerate(('a.b', 'a/b', 'a. b'))]
    write(folder, 'sensors', 2, 'series', data)
    export_session(open_session(folder), 'mcap', tmp_path / 'a.mcap')
    got = {t: m.data for t, _, m in decoded(tmp_path / 'a.mcap') if t.startswith('/series/a')}
    assert got == {'/series/a/b': 0, '/series/a/b_2': 1, '/series/a/_b': 2}


def test_a_gaze_frame_that_is_optical_is_not_called_by_its_name(tmp_path):
    folder = tmp_path / SESSION
    properties = {
        'c3d.ros.pose_convention': 'rep103',
        'c3d.ros.gaze_frame': 'eye_optical',
        'c3d.ros.gaze_frame_convention': 'optical_forward_z',
    }
    write(folder, 'gaze', 1, 'properties', json_body('gaze', 1, [], properties=properties))
    write(folder, 'gaze', 2, 'pose', [pose(1)])
    export_session(open_session(folder), 'mcap', tmp_path / 'a.mcap')
    (link,) = [m.transforms[0] for t, _, m in decoded(tmp_path / 'a.mcap') if t == '/tf']
    assert link.child_frame_id == 'eye_optical_body'
    properties['c3d.ros.gaze_frame_convention'] = 'body_forward_x'
    write(folder, 'gaze', 3, 'properties', json_body('gaze', 3, [], properties=properties))
    export_session(open_session(folder), 'mcap', tmp_path / 'b.mcap')
    (link,) = [m.transforms[0] for t, _, m in decoded(tmp_path / 'b.mcap') if t == '/tf']
    assert link.child_frame_id == 'eye_optical'


def test_the_name_of_the_robots_frame(tmp_path):
    """What the session calls it, unless another is given; base_link in an old one that does not say."""
    folder = whole(tmp_path / SESSION)

    def called(name='', **options):
        path = tmp_path / f'{len(list(tmp_path.iterdir()))}.mcap'
        export_session(open_session(folder), 'mcap', path, options=Options(**options))
        links = [m.transforms[0] for t, _, m in decoded(path) if t == '/tf']
        return {link.child_frame_id for link in links}

    assert called() == {'base_link'}
    properties = {'c3d.ros.robot_frame': 'base_footprint'}
    write(folder, 'gaze', 5, 'properties', json_body('gaze', 5, [], properties=properties))
    assert called() == {'base_footprint'}
    assert called(robot_frame='chassis') == {'chassis'}
    properties['c3d.ros.gaze_frame'] = 'head'
    write(folder, 'gaze', 6, 'properties', json_body('gaze', 6, [], properties=properties))
    assert called() == {'head'}  # the pose timeline is that of the gaze frame


def test_what_snapshots_and_events_say_besides(tmp_path):
    folder = whole(tmp_path / SESSION)
    write(folder, 'events', 3, 'events', [event('lost', 3) | {'dynamicId': 'body'}])
    export_session(open_session(folder), 'mcap', tmp_path / 'a.mcap')
    told = [json.loads(m.data) for _, m in of('/events/all', decoded(tmp_path / 'a.mcap'))]
    assert [each.get('dynamic_id') for each in told if each['name'] == 'lost'] == ['body']
    export_session(open_session(folder), 'pocolog', tmp_path / 'a.0.log')
    streams = read_pocolog((tmp_path / 'a.0.log').read_bytes())
    pairs = [(value['key'], value['value']) for _, value in streams['events'].samples]
    assert ('lost.dynamic_id', 'body') in pairs
    export_session(open_session(folder), 'rawlog', tmp_path / 'a.rawlog')
    blocks = parse_blocks(objects(tmp_path / 'a.rawlog')[0].text)
    assert any(json.loads(e).get('dynamic_id') == 'body' for e in blocks['c3d.events'].values())
    snapshot = {'id': 'body', 'properties': [{'enabled': False}]} | pose(2)
    write(folder, 'dynamics', 2, 'pose', [snapshot])
    for to in ('mcap', 'rosbag2', 'pocolog'):
        made = export_session(open_session(folder), to, tmp_path / f'{to}.0.log')
        assert 'not in it: properties of snapshots (parquet and csv have them)' in made.notes
    write(folder, 'dynamics', 2, 'pose', [snapshot | {'properties': [{'enabled': True}]}])
    made = export_session(open_session(folder), 'mcap', tmp_path / 'b.mcap')
    assert not any('snapshots' in each for each in made.notes)


def test_a_session_that_does_not_say_its_reference_frame(tmp_path):
    properties = {'c3d.ros.pose_convention': 'rep103'}
    folder = tmp_path / SESSION
    write(folder, 'gaze', 1, 'properties', json_body('gaze', 1, [], properties=properties))
    write(folder, 'gaze', 2, 'pose', [pose(1)])
    made = export_session(open_session(folder), 'mcap', tmp_path / 'a.mcap')
    assert made.notes == (
        'the session does not say its reference frame: it is called map',
        (
            'the session does not say which frame its poses are of: it is called base_link, '
            '--robot-frame names it'
        ),
    )


def test_colours_and_intensities_of_points(tmp_path):
    from test_rawlog import clouds_with

    folder = whole(tmp_path / SESSION)
    write_sensors(
        folder, 'lidar', 1, [clouds_with(color=True, intensity=True), cloud_record(2, 1, [])]
    )
    export_session(open_session(folder), 'mcap', tmp_path / 'a.mcap')
    cloud, empty = (m for t, _, m in decoded(tmp_path / 'a.mcap') if t == '/lidar/top/points')
    assert [f.name for f in cloud.fields] == ['x', 'y', 'z', 'rgb', 'intensity']
    columns = np.frombuffer(bytes(cloud.data), '<f4').reshape(2, 5)
    assert columns[:, 3].view(np.uint32).tolist() == [0xFF0033, 0x00FF66]
    assert columns[:, 4].tolist() == [51, 255]
    assert (empty.width, bytes(empty.data)) == (0, b'')


def test_an_event_whose_place_is_not_known_is_not_drawn(tmp_path):
    folder = whole(tmp_path / SESSION)
    unknown = event('lost', 3) | {'point': [0, 0, 0], 'properties': {'c3d.position_unknown': True}}
    write(folder, 'events', 3, 'events', [unknown])
    export_session(open_session(folder), 'mcap', tmp_path / 'a.mcap')
    messages = decoded(tmp_path / 'a.mcap')
    marks = [mark.text for _, m in of('/events/markers', messages) for mark in m.markers]
    assert 'lost' not in marks
    assert 'dock.reached' in marks
    assert any(m.msg.startswith('lost') for _, m in of('/events/log', messages))
