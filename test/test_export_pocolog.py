"""Rock logs: against bytes laid out by hand, and read by a strict reader of the tests' own."""

import math
import struct

import numpy as np
import pocolog_reader
import pytest
import rich_session
from stored import SCENE, SESSION, annotation, at, event, pose, write
from stored import body as json_body

from cognitive3d_ros import open_session
from cognitive3d_ros.conventions import CONVENTIONS
from cognitive3d_ros.errors import ExportError
from cognitive3d_ros.export import export_session, rock_types
from cognitive3d_ros.session.markers import Annotation, read_markers


def text(value):
    return struct.pack('<Q', len(value)) + value


NAN = b'\0\0\0\0\0\0\xf8\x7f'
TIME_NS = 1_767_225_600_250_010_000
TIME = bytes.fromhex('9a10244648470600')  # 1767225600250010 microseconds, little-endian


def test_samples_are_laid_out_as_rock_has_them():
    assert struct.unpack('<q', TIME) == (TIME_NS // 1000,)
    assert rock_types.annotation(TIME_NS, 's', 'key', '') == (
        TIME + b'\x01\0\0\0\0\0\0\0s' + b'\x03\0\0\0\0\0\0\0key' + bytes(8)
    )
    p, r = np.array([1.0, 2.0, -3.0]), np.array([0.0, 0.0, 0.0, 1.0])
    one, two, three = (struct.pack('<d', x) for x in (1.0, 2.0, -3.0))
    assert rock_types.body_state(TIME_NS, 'base', 'map', p, r) == (
        TIME
        + text(b'base')
        + text(b'map')
        + (one + two + three)  # position
        + 9 * NAN
        + (bytes(24) + one)  # orientation: im, re
        + 9 * NAN
        + 3 * NAN  # velocity
        + 9 * NAN
        + 3 * NAN  # angular velocity
        + 9 * NAN
    )
    scan = rock_types.laser_scan(
        TIME_NS,
        start_angle=1.0,
        resolution=2.0,
        speed=-3.0,
        ranges_mm=np.array([1, 258], np.uint32),
        limits_mm=(100, 30_000),
        remission=np.array([1.0], np.float32),
    )
    assert scan == (
        TIME
        + (one + two + three)
        + b'\x02\0\0\0\0\0\0\0\x01\0\0\0\x02\x01\0\0'
        + b'\x64\0\0\0\x30\x75\0\0'
        + b'\x01\0\0\0\0\0\0\0\0\0\x80\x3f'
    )
    cloud = rock_types.pointcloud(TIME_NS, p[None], np.array([[1.0, 2.0, -3.0, 1.0]]))
    assert cloud == (
        TIME
        + (b'\x01\0\0\0\0\0\0\0' + one + two + three)
        + (b'\x01\0\0\0\0\0\0\0' + one + two + three + one)
    )
    frame = rock_types.frame(TIME_NS, b'jpeg', 640, 480, {'fov': '60'})
    assert frame == (
        TIME
        + TIME
        + text(b'jpeg')
        + (b'\x01\0\0\0\0\0\0\0' + text(b'60') + text(b'fov'))
        + b'\x80\x02\xe0\x01'  # 640 480
        + b'\x08\0\0\0\x03\0\0\0\0\0\0\0'  # bits, bytes of a pixel, bytes of a row
        + b'\x02\x01\0\0\x01\0\0\0'  # 258 JPEG, 1 valid
    )
    assert rock_types.double(2.0) == two


DOUBLE_REGISTRY = (
    b'<?xml version="1.0"?>\n<typelib>\n'
    b'  <numeric name="/double" category="float" size="8"/>\n</typelib>\n'
)


def test_a_log_is_laid_out_as_rock_has_it(tmp_path):
    """Prologue, declaration and sample of a stream of numbers, byte for byte."""
    write(tmp_path / SESSION, 'gaze', 1, 'properties', json_body('gaze', 1, [], properties=RULE))
    series = [{'name': 'battery', 'data': [[at(1), 80.5]]}]
    write(tmp_path / SESSION, 'sensors', 1, 'series', series)
    export_session(open_session(tmp_path / SESSION), 'pocolog', tmp_path / 'run.0.log')
    data = (tmp_path / 'run.0.log').read_bytes()
    assert data[:16] == b'POCOSIM\0\x02\0\0\0\0\0\0\0'
    metadata = (
        b'---\n"rock_stream_type": "port"\n"rock_orocos_type_name": "/double"\n'
        b'"rock_cxx_type_name": "/double"\n"c3d_session_id": "1767225600_rover-07"\n'
        b'"c3d_scene_id": "' + SCENE.encode() + b'"\n"c3d_scene_version": "3"\n'
        b'"c3d.ros.pose_convention": "rep103"\n'
    )
    parts = [b'series/battery', b'/double', DOUBLE_REGISTRY, metadata]
    payload = b'\x01' + b''.join(struct.pack('<I', len(each)) + each for each in parts)
    declaration = b'\x01\0\x01\0' + struct.pack('<I', len(payload)) + payload
    assert declaration in data
    seconds, micros = 1_767_225_601, 250_000
    sample = struct.pack('<BBHIIIIIIBd', 2, 0, 1, 29, *(seconds, micros) * 2, 8, 0, 80.5)
    assert data.endswith(sample)


RULE = {'c3d.ros.pose_convention': 'rep103'}


def test_a_name_that_rock_would_not_open(tmp_path):
    write(tmp_path / SESSION, 'gaze', 1, 'properties', json_body('gaze', 1, [], properties=RULE))
    with pytest.raises(ExportError, match=r'end in \.log'):
        export_session(open_session(tmp_path / SESSION), 'pocolog', tmp_path / 'run.poco')


@pytest.mark.parametrize('convention', CONVENTIONS)
def test_a_session_with_everything(tmp_path, convention):
    rich_session.record(tmp_path / 'spool', convention=convention)
    session = open_session(tmp_path / 'spool')
    made = export_session(session, 'pocolog', tmp_path / 'run.0.log')
    assert made.notes == (
        'not in it: seq, the numbers of scans and clouds (parquet and csv have them)',
        'not in it: where the robot was at an annotation (its pose is)',
        'ranges of laser scans are whole millimetres, and codes where there is none',
        'not in it: scan_time of laser scans',
    )
    streams = pocolog_reader.read((tmp_path / 'run.0.log').read_bytes())
    expected = {'pose', 'dynamics/rover-07', 'annotations', 'events'}
    expected |= {f'series/{name}' for name in session.series}
    for sensor in ('camera/front', 'camera/rear', 'lidar/base', 'lidar/top'):
        expected |= {sensor, f'{sensor}.pose'}
    assert set(streams) == expected
    assert sum(len(stream.samples) for name, stream in streams.items() if name == 'pose') == 61
    for time_us, value in streams['pose'].samples:
        assert value['time'] == time_us
        assert (value['sourceFrame'], value['targetFrame']) == ('base_link', 'odom')
        p, r = rich_session.robot_at(time_us / 1e6 - rich_session.START)
        held_to(value, p, r, 2e-5)
        assert np.isnan(value['cov_position']).all()
    for frame, name in (('front_optical_frame', 'camera/front'), ('lidar', 'lidar/top')):
        poses = streams[f'{name}.pose'].samples
        assert [t for t, _ in poses] == [t for t, _ in streams[name].samples]
        for time_us, value in poses:
            assert (value['sourceFrame'], value['targetFrame']) == (frame, 'odom')
            held_to(
                value, *rich_session.sensor_at(frame, time_us / 1e6 - rich_session.START), 2e-3
            )
    for _, value in streams['camera/front'].samples:
        assert value['image'].tobytes() == rich_session.PICTURE
        assert value['size'] == {'width': 48, 'height': 32}
        assert (value['frame_mode'], value['frame_status']) == (258, 1)
    for _, value in streams['lidar/top'].samples:
        assert sorted(map(tuple, np.round(value['points'], 3))) == sorted(
            tuple(map(float, point)) for point in rich_session.POINTS
        )
        assert value['colors'] == []
    for _, value in streams['lidar/base'].samples:
        # 1 m; 2.5 m; infinite: too far; NaN: an error; 0 m: too near; 40 m of 30: too far; 3 m
        assert value['ranges'].tolist() == [1000, 2500, 1, 3, 2, 1, 3000]
        assert (value['minRange'], value['maxRange']) == (100, 30_000)
        assert value['start_angle'] == -1.5
        assert value['angular_resolution'] == 0.5
    held = [value for _, value in streams['series/battery.percentage'].samples]
    assert held == [value for _, value in session.series['battery.percentage']]


def held_to(value, p, r, tolerance):
    np.testing.assert_allclose(value['position'], p, atol=tolerance)
    q = np.array([*value['orientation']['im'], value['orientation']['re']])
    np.testing.assert_allclose(q * np.sign(np.dot(q, r)), r, atol=tolerance)


def test_metadata(tmp_path):
    rich_session.record(tmp_path / 'spool')
    session = open_session(tmp_path / 'spool')
    export_session(session, 'pocolog', tmp_path / 'run.0.log')
    streams = pocolog_reader.read((tmp_path / 'run.0.log').read_bytes())
    front = streams['camera/front'].metadata
    assert front['rock_stream_type'] == 'port'
    assert front['rock_task_name'] == '/driver'
    assert front['rock_task_object_name'] == '/front/image_raw'
    assert front['rock_timestamp_field'] == 'time'
    assert front['rock_cxx_type_name'] == '/base/samples/frame/Frame'
    assert front['ros_message_type'] == 'sensor_msgs/msg/CompressedImage'
    assert streams['pose'].metadata['rock_task_model'] == 'cognitive3d_ros/recorder'
    assert streams['pose'].metadata['rock_cxx_type_name'] == '/base/samples/RigidBodyState'
    assert streams['annotations'].metadata['rock_stream_type'] == 'annotations'
    assert streams['annotations'].type == '/logger/Annotations'
    for stream in streams.values():
        assert stream.metadata['c3d_session_id'] == session.id
        assert stream.metadata['payload_kg'] == '3.5'
        assert stream.metadata['c3d.ros.comment'] == 'wet floor\n[run]\nlap = 3'


def test_markers_are_written_as_rocks_readers_take_them(tmp_path):
    rich_session.record(tmp_path / 'spool')
    session = open_session(tmp_path / 'spool')
    export_session(session, 'pocolog', tmp_path / 'run.0.log')
    streams = pocolog_reader.read((tmp_path / 'run.0.log').read_bytes())
    found = [(v['stream_name'], v['key'], v['value']) for _, v in streams['annotations'].samples]
    assert found == [
        ('camera/front', 'comment', 'lens: dirty, "very"'),
        ('', 'log_marker_start', '<1>;first lap'),
        ('', 'log_marker_start', '<2>;second'),
        ('', 'log_marker_stop', '<1>;done'),
        ('', 'log_marker_abort', '<2>;rain'),  # what the next one means
        ('', 'log_marker_abort_all', 'rain'),
        ('', 'log_marker_event', 'thunder'),
        ('', 'log_marker_start', 'no index'),
    ]
    # They say the same regions.
    again = read_markers(
        Annotation(t / 1e6, 'c3d.annotation', (0, 0, 0), annotation_time=t / 1e6, **without(v))
        for t, v in streams['annotations'].samples
    )
    assert [(r.index, r.state, r.start_text) for r in again.regions] == [
        (r.index, r.state, r.start_text) for r in session.regions()
    ]
    assert again.faults == ()
    events = [(v['key'], v['value']) for _, v in streams['events'].samples]
    assert ('log_marker_event', 'dock.reached') in events
    assert ('dock.reached.dock', 'A') in events
    assert ('dock.reached.ok', 'true') in events


def without(value):
    return {name: value[name] for name in ('stream_name', 'key', 'value')}


def test_what_is_awkward_in_texts(tmp_path):
    folder = tmp_path / SESSION
    nasty = 'línea\n"quoted" \\ : # 😀 \x01'
    properties = {**RULE, 'note: "x"': nasty}
    write(folder, 'gaze', 1, 'properties', json_body('gaze', 1, [], properties=properties))
    records = [
        annotation(1, 'log_marker_start', '3;two\nlines'),
        annotation(2, 'comment', nasty),
        event('an\nevent', 3, text=nasty),
    ]
    write(folder, 'events', 1, 'events', records)
    write(folder, 'gaze', 2, 'pose', [pose(0), pose(4, 1.0)])
    series = [{'name': nasty, 'data': [[at(2), 1], [at(1), math.pi]]}]
    write(folder, 'sensors', 1, 'series', series)
    export_session(open_session(folder), 'pocolog', tmp_path / 'run.0.log')
    streams = pocolog_reader.read((tmp_path / 'run.0.log').read_bytes())
    assert streams['pose'].metadata['note: "x"'] == nasty
    values = [v['value'] for _, v in streams['annotations'].samples]
    assert values == ['<3>;two lines', nasty]
    assert [v for _, v in streams[f'series/{nasty}'].samples] == [math.pi, 1.0]
    assert streams['events'].samples[0][1]['value'] == 'an event'
