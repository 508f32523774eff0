"""Real recordings through every export and back; sessions that were killed, or have lost a part."""

import csv
import os
import signal
import subprocess
import sys
from types import SimpleNamespace

import cv2
import numpy as np
import pyarrow.parquet
import pytest
import rich_session
from husky import ODOMETRY
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory
from pocolog_reader import read as read_pocolog
from recording_rig import REQUIRED, WALL, Lines, S
from rosbags.highlevel import AnyReader
from sensor_rig import SensorRig, header
from stored import (
    PROPERTIES,
    SESSION,
    at,
    body,
    cloud_record,
    event,
    frame_record,
    whole,
    write,
    write_sensors,
)
from test_rawlog import SENA, objects, sena_odometry

from cognitive3d_ros import images_directory, open_session
from cognitive3d_ros.bags.door import record_bag
from cognitive3d_ros.cli.main import main
from cognitive3d_ros.comments import parse_blocks
from cognitive3d_ros.export import FORMATS, export_session
from cognitive3d_ros.parameters import parse
from cognitive3d_ros.session.records import DynamicSnapshot, PoseSample
from cognitive3d_ros.session.verify import Kind, verify
from cognitive3d_ros.wire.mrpt import Reader, open_rawlog
from cognitive3d_ros.wire.mrpt import classes as mrpt

NAMES = {'rawlog': 'out.rawlog', 'pocolog': 'out.0.log', 'mcap': 'out.mcap'}


def name_of(to):
    return NAMES.get(to, f'out.{to}')


def decoded(path):
    with path.open('rb') as file:
        reader = make_reader(file, decoder_factories=[DecoderFactory()])
        for _, channel, message, content in reader.iter_decoded_messages():
            yield channel.topic, message.log_time, content


def read_csv(root, table):
    (path,) = (root / 'out.csv' / table).rglob('*.csv')
    with path.open(newline='', encoding='utf-8') as file:
        return list(csv.DictReader(file))


def read_parquet(root, table):
    (path,) = (root / 'out.parquet' / table).rglob('*.parquet')
    return pyarrow.parquet.ParquetFile(path).read()


def of_bag(root):
    """The messages of the rosbag2 folder, as rosbags reads them."""
    with AnyReader([root / 'out.rosbag2']) as reader:
        for connection, _, raw in reader.messages():
            yield connection.topic, reader.deserialize(raw, connection.msgtype)


def rawlog(path):
    with open_rawlog(path) as file:
        return list(Reader(file, mrpt.CLASSES).objects())


# The Husky


@pytest.fixture(scope='module')
def husky(request, tmp_path_factory):
    data = request.getfixturevalue('shared_data')
    root = tmp_path_factory.mktemp('husky')
    params = {
        **REQUIRED,
        'reference_frames': ['odom'],
        'topics': ['imu', 'odom'],
        'topic.imu.topic': '/imu/data',
        'topic.odom.topic': ODOMETRY,
    }
    record_bag(
        data / 'husky_outdoor.bag', parse(params), root / 'spool', odom_tf=ODOMETRY, log=Lines()
    )
    session = open_session(root / 'spool')
    for to in FORMATS:
        made = export_session(session, to, root / name_of(to))
        assert made.records > 3900
    return session, root


def test_the_husky_in_each_format(husky):
    session, root = husky
    samples = sum(map(len, session.series.values()))
    axes = session.axes
    p = axes.ros_position(session.poses.p)
    mcap, bag = list(decoded(root / 'out.mcap')), list(of_bag(root))
    written = rawlog(root / 'out.rawlog')
    got = {
        'mcap': [
            (m.pose.position.x, m.pose.position.y) for topic, _, m in mcap if topic == '/pose'
        ],
        'rawlog': [each.pose.mean.xyz[:2] for each in written if isinstance(each, mrpt.RobotPose)],
        'tum': np.loadtxt(root / 'out.tum')[:, 1:3],
        'kitti': np.loadtxt(root / 'out.kitti')[:, [3, 7]],
    }
    streams = read_pocolog((root / 'out.0.log').read_bytes())
    got['pocolog'] = [value['position'][:2] for _, value in streams['pose'].samples]
    (table,) = (root / 'out.parquet' / 'poses').rglob('*.parquet')
    rows = pyarrow.parquet.ParquetFile(table).read()
    got['parquet'] = np.stack([rows.column('x'), rows.column('y')], axis=1)
    got['csv'] = [(float(row['x']), float(row['y'])) for row in read_csv(root, 'poses')]
    got['rosbag2'] = [
        (m.pose.position.x, m.pose.position.y) for topic, m in bag if topic == '/pose'
    ]
    assert set(got) == set(FORMATS)
    for points in got.values():
        np.testing.assert_allclose(points, p[:, :2], atol=1e-6)
    assert len(p) == 3953
    # Series, all of them.
    numbers = [t for t, _, _ in mcap if t.startswith('/series/')]
    assert len(numbers) == samples
    assert sum(len(s.samples) for n, s in streams.items() if n.startswith('series/')) == samples
    assert sum(type(each) is mrpt.RawDaq for each in written) == samples
    (table,) = (root / 'out.parquet' / 'series').rglob('*.parquet')
    assert pyarrow.parquet.ParquetFile(table).metadata.num_rows == samples
    values = sorted(value for series in session.series.values() for _, value in series)
    assert sorted(float(row['value']) for row in read_csv(root, 'series')) == values
    values_of_bag = sorted(m.data for topic, m in bag if topic.startswith('/series/'))
    assert values_of_bag == values


@pytest.mark.parametrize('to', ['mcap', 'rosbag2', 'rawlog'])
def test_the_husky_and_back(husky, tmp_path, to):
    session, root = husky
    topics = {
        'topics': ['yaw', 'speed'],
        'topic.yaw.topic': '/series/imu/data/angular_velocity_z',
        'topic.speed.topic': '/series/husky_velocity_controller/odom/linear_x',
    }
    if to == 'rawlog':
        topics['topic.yaw.topic'] = '/imu/data/angular_velocity_z/analogue'
        topics['topic.speed.topic'] = '/husky_velocity_controller/odom/linear_x/analogue'
    topics |= {
        'topic.yaw.prefix': 'imu.data.angular_velocity_z',
        'topic.speed.prefix': 'husky_velocity_controller.odom.linear_x',
    }
    config = parse({**REQUIRED, 'reference_frames': ['odom'], **topics})
    result = record_bag(root / name_of(to), config, tmp_path / 'spool', log=Lines())
    assert result.problems == ()
    again = open_session(tmp_path / 'spool')
    assert (again.start, again.id) == (session.start, session.id)
    then = session.track.at(again.poses.time)
    assert then.known.sum() >= 3950
    apart = np.linalg.norm((again.poses.p - then.p)[then.known], axis=1)
    assert apart.max() < 3e-5
    here = again.track.at(again.poses.time)
    cosines = np.abs(np.sum(here.r * then.r, axis=1))[then.known]
    assert cosines.min() > 1 - 1e-8
    for name in ('imu.data.angular_velocity_z', 'husky_velocity_controller.odom.linear_x'):
        # A gate that has been passed once is passed again, but where 10 a second were stored.
        assert list(again.series[name]) == list(session.series[name])


# The HDL-32 sweep and the RGB-D frame


@pytest.fixture(scope='module')
def real(request, tmp_path_factory):
    """A session with a whole turn of an HDL-32E, a colour and a depth picture; exported in all formats."""
    data = request.getfixturevalue('shared_data')
    root = tmp_path_factory.mktemp('real')
    rig = SensorRig(
        root / 'spool',
        reference_frames=['odom'],
        cameras=['color', 'depth'],
        lidars=['velodyne'],
        **{
            'camera.color.topic': '/color',
            'camera.depth.topic': '/depth',
            'lidar.velodyne.topic': '/velodyne',
            'lidar.velodyne.pointcloud.position': 'float32',
            'lidar.velodyne.pointcloud.intensity': 'uint8',
            'lidar.velodyne.pointcloud.voxel_leaf_mm': 0,
        },
    )
    still = ((0.3, 0.1, 1.7), (0.0, 0.0, 0.6, 0.8))
    rig.tf.set_transform('base_link', 'velodyne', 0, *still, static=True)
    rig.tf.set_transform('base_link', 'kinect', 0, (0, 0, 1), (-0.5, 0.5, -0.5, 0.5), static=True)
    rig.robot(0.0, frame='odom', at=WALL - S)
    rig.recorder.start_session('real')
    for tick in range(1, 11):
        rig.clocks.advance(S // 10)
        rig.robot(tick / 10, frame='odom')
        rig.recorder.poll()
    stamp_ns = rig.clocks.ros_ns - S // 2
    rig.send('lidar.velodyne', sweep(data / 'hdl32_sweep.npz', stamp_ns))
    color = cv2.imread(str(data / 'rgbd_color.png'))
    depth = cv2.imread(str(data / 'rgbd_depth_mm.png'), cv2.IMREAD_UNCHANGED)
    rig.send('camera.color', picture(color, 'bgr8', stamp_ns))
    rig.send('camera.depth', picture(depth, '16UC1', stamp_ns))
    rig.settle()
    rig.run(0.5, robot=lambda t: (1.0 + t,))
    rig.recorder.end_session('test')
    rig.close()
    session = open_session(root / 'spool')
    for to in FORMATS:
        export_session(session, to, root / name_of(to))
    return session, root


def sweep(path, stamp_ns):
    points = np.load(path)['points']
    kinds = {'float32': 7, 'uint16': 4}
    fields = [
        SimpleNamespace(
            name=name,
            offset=points.dtype.fields[name][1],
            datatype=kinds[str(points.dtype[name])],
            count=1,
        )
        for name in points.dtype.names
    ]
    return SimpleNamespace(
        header=header('velodyne', stamp_ns),
        width=len(points),
        height=1,
        fields=fields,
        is_bigendian=False,
        point_step=points.dtype.itemsize,
        row_step=points.nbytes,
        data=points.tobytes(),
        is_dense=True,
    )


def picture(pixels, encoding, stamp_ns):
    return SimpleNamespace(
        header=header('kinect', stamp_ns),
        width=pixels.shape[1],
        height=pixels.shape[0],
        encoding=encoding,
        is_bigendian=0,
        step=pixels.strides[0],
        data=pixels.tobytes(),
    )


def sorted_rows(points):
    return points[np.lexsort(np.asarray(points).T)]


def test_the_sweep_in_each_format(real, shared_data):
    """The points that the sensor gave, in its own axes: all but those without a return."""
    session, root = real
    (cloud,) = session.lidar('velodyne')
    given = np.load(shared_data / 'hdl32_sweep.npz')['points']
    given = given[(given['x'] != 0) | (given['y'] != 0) | (given['z'] != 0)]
    xyz = sorted_rows(np.stack([given[name] for name in 'xyz'], axis=1))
    assert cloud.point_count == len(xyz) > 57_000
    got = {}
    (points,) = (m for topic, _, m in decoded(root / 'out.mcap') if topic.endswith('/points'))
    table = np.frombuffer(bytes(points.data), '<f4').reshape(-1, 4)
    got['mcap'] = table[:, :3]
    np.testing.assert_array_equal(table[:, 3], cloud.intensities)
    streams = read_pocolog((root / 'out.0.log').read_bytes())
    ((_, value),) = streams['lidar/velodyne'].samples
    got['pocolog'] = np.array(value['points'], np.float32)
    (found,) = (each for each in rawlog(root / 'out.rawlog') if type(each) is mrpt.PointCloud)
    rows = np.fromfile(images_directory(root / 'out.rawlog') / found.file, '<f4').reshape(-1, 4)
    got['rawlog'] = rows[:, :3]
    np.testing.assert_allclose(rows[:, 3] * 255, cloud.intensities, atol=1e-4)
    np.testing.assert_allclose(found.pose.xyz, (0.3, 0.1, 1.7), atol=1e-5)
    (table,) = (root / 'out.parquet' / 'clouds').rglob('*.parquet')
    (row,) = pyarrow.parquet.ParquetFile(table).read().to_pylist()
    got['parquet'] = np.stack([row[f'points_{name}'] for name in 'xyz'], axis=1).astype(np.float32)
    assert row['intensity'] == cloud.intensities.tolist()
    (points,) = (m for topic, m in of_bag(root) if topic.endswith('/points'))
    got['rosbag2'] = np.frombuffer(bytes(points.data), '<f4').reshape(-1, 4)[:, :3]
    for points in got.values():
        np.testing.assert_array_equal(sorted_rows(points), xyz)
    # A cell of CSV holds no cloud, and a path none either: what they have is the sensor's pose, and the path.
    (row,) = read_csv(root, 'clouds')
    assert int(row['point_count']) == len(xyz)
    mounted = [float(row[name]) for name in 'xyz']
    np.testing.assert_allclose(mounted, (0.5 + 0.3, 0.1, 1.7), atol=2e-3)
    for to in ('tum', 'kitti'):
        assert len(np.loadtxt(root / name_of(to))) == len(session.poses)


def test_the_pictures_in_each_format(real, shared_data):
    session, root = real
    frames = {name: session.camera(name)[0].data for name in ('color', 'depth')}
    original = cv2.imread(str(shared_data / 'rgbd_color.png')).astype(int)
    stored = cv2.imdecode(np.frombuffer(frames['color'], np.uint8), cv2.IMREAD_COLOR)
    assert np.abs(stored - original).mean() < 3  # a JPEG of it
    mcap = {t: bytes(m.data) for t, _, m in decoded(root / 'out.mcap') if t.endswith('compressed')}
    streams = read_pocolog((root / 'out.0.log').read_bytes())
    images = images_directory(root / 'out.rawlog')
    beside = {
        each.label: (images / each.image.file).read_bytes()
        for each in rawlog(root / 'out.rawlog')
        if type(each) is mrpt.CameraImage
    }
    (table,) = (root / 'out.parquet' / 'camera').rglob('*.parquet')
    rows = pyarrow.parquet.ParquetFile(table).read().to_pylist()
    bag = {t: bytes(m.data) for t, m in of_bag(root) if t.endswith('compressed')}
    shapes = {row['sensor']: (row['width'], row['height']) for row in read_csv(root, 'camera')}
    assert shapes == dict.fromkeys(frames, ('640', '480'))
    for name, data in frames.items():
        assert bag[f'/camera/{name}/image/compressed'] == data
        assert mcap[f'/camera/{name}/image/compressed'] == data
        ((_, value),) = streams[f'camera/{name}'].samples
        assert value['image'].tobytes() == data
        assert beside[name] == data
        assert [row['data'] for row in rows if row['sensor'] == name] == [data]


@pytest.mark.parametrize('to', ['mcap', 'rosbag2', 'rawlog'])
def test_the_sweep_and_the_pictures_and_back(real, tmp_path, to):
    session, root = real
    topics = {
        'camera.color.topic': '/camera/color/image/compressed',
        'camera.depth.topic': '/camera/depth/image/compressed',
        'lidar.velodyne.topic': '/lidar/velodyne/points',
    }
    if to == 'rawlog':
        topics = {
            'camera.color.topic': '/color/image',
            'camera.depth.topic': '/depth/image',
            'lidar.velodyne.topic': '/velodyne/points',
        }
    params = {
        **REQUIRED,
        'reference_frames': ['odom'],
        'cameras': ['color', 'depth'],
        'lidars': ['velodyne'],
        'lidar.velodyne.pointcloud.position': 'float32',
        'lidar.velodyne.pointcloud.intensity': 'uint8',
        'lidar.velodyne.pointcloud.voxel_leaf_mm': 0,
        **topics,
    }
    result = record_bag(root / name_of(to), parse(params), tmp_path / 'spool', log=Lines())
    assert not result.lossy
    again = open_session(tmp_path / 'spool')
    (one,), (other,) = session.lidar('velodyne'), again.lidar('velodyne')
    assert other.time == one.time
    np.testing.assert_array_equal(other.positions, one.positions)
    np.testing.assert_array_equal(other.intensities, one.intensities)
    np.testing.assert_allclose(other.scene_points(), one.scene_points(), atol=2e-3)
    for name in ('color', 'depth'):
        assert again.camera(name)[0].data == session.camera(name)[0].data


# SENA


@pytest.fixture(scope='module')
def sena(request, tmp_path_factory):
    data = request.getfixturevalue('shared_data')
    root = tmp_path_factory.mktemp('sena')
    source = data / 'sena_corridor_current.rawlog'
    record_bag(source, parse(SENA), root / 'spool', log=Lines())
    session = open_session(root / 'spool')
    for to in FORMATS:
        export_session(session, to, root / name_of(to))
    return session, root, source


def test_sena_in_each_format(sena):
    """Its path to 1e-4 m by its own odometry, its ranges bit for bit where a format holds them."""
    session, root, source = sena
    truth = sena_odometry(objects(source))
    tum = np.loadtxt(root / 'out.tum')
    expected = np.stack([np.interp(tum[:, 0], truth[:, 0], truth[:, n]) for n in (1, 2)], axis=1)
    mcap, bag = list(decoded(root / 'out.mcap')), list(of_bag(root))
    streams = read_pocolog((root / 'out.0.log').read_bytes())
    written = rawlog(root / 'out.rawlog')
    poses = read_parquet(root, 'poses')
    paths = {
        'tum': tum[:, 1:3],
        'kitti': np.loadtxt(root / 'out.kitti')[:, [3, 7]],
        'mcap': [(m.pose.position.x, m.pose.position.y) for t, _, m in mcap if t == '/pose'],
        'rosbag2': [(m.pose.position.x, m.pose.position.y) for t, m in bag if t == '/pose'],
        'rawlog': [o.pose.mean.xyz[:2] for o in written if isinstance(o, mrpt.RobotPose)],
        'pocolog': [value['position'][:2] for _, value in streams['pose'].samples],
        'parquet': np.stack([poses.column('x'), poses.column('y')], axis=1),
        'csv': [(float(row['x']), float(row['y'])) for row in read_csv(root, 'poses')],
    }
    assert set(paths) == set(FORMATS)
    for path in paths.values():
        assert np.abs(np.asarray(path) - expected).max() < 1e-4
    stored = [scan.ranges.tobytes() for scan in session.lidar('laser')]
    assert len(stored) == 223
    ranges = {
        'mcap': [m.ranges for t, _, m in mcap if t == '/lidar/laser/scan'],
        'rosbag2': [m.ranges for t, m in bag if t == '/lidar/laser/scan'],
        'rawlog': [o.ranges for o in written if isinstance(o, mrpt.RangeScan)],
        'parquet': read_parquet(root, 'scans').column('ranges').to_pylist(),
    }
    for name, found in ranges.items():
        assert [np.array(each, '<f4').tobytes() for each in found] == stored, name
    samples = streams['lidar/laser'].samples
    for (_, value), scan in zip(samples, session.lidar('laser'), strict=True):
        within = scan.ranges <= scan.range_max
        near = np.abs(value['ranges'] - scan.ranges * 1000.0)[within]
        assert near.max() <= 0.5001  # millimetres
    assert [int(row['seq']) for row in read_csv(root, 'scans')] == list(range(223))


@pytest.mark.parametrize('to', ['mcap', 'rosbag2', 'rawlog'])
def test_sena_and_back(sena, tmp_path, to):
    session, root, _ = sena
    topic = '/laser/scan' if to == 'rawlog' else '/lidar/laser/scan'
    config = parse({**SENA, 'lidar.laser.topic': topic})
    result = record_bag(root / name_of(to), config, tmp_path / 'spool', log=Lines())
    assert result.problems == ()
    again = open_session(tmp_path / 'spool')
    then = session.track.at(again.poses.time)
    assert then.known.sum() >= 585
    assert np.linalg.norm((again.poses.p - then.p)[then.known], axis=1).max() < 1e-4
    before = {scan.time: scan for scan in session.lidar('laser')}
    scans = list(again.lidar('laser'))
    assert len(scans) >= len(before) - 1
    for scan in scans:
        assert scan.ranges.tobytes() == before[scan.time].ranges.tobytes()
        np.testing.assert_allclose(scan.pose, before[scan.time].pose, atol=2e-3)


# Sessions that are not whole


def killed(root):
    """Record in another process, which is killed in the middle of it."""
    code = (
        'import os, signal, sys\n'
        'import rich_session\n'
        'rig = rich_session.record(sys.argv[1], end=False)\n'
        'print("recorded", flush=True)\n'
        'os.kill(os.getpid(), signal.SIGKILL)\n'
    )
    environment = {**os.environ, 'PYTHONPATH': os.path.dirname(__file__)}  # noqa: PTH120
    done = subprocess.run(
        [sys.executable, '-c', code, root], stdout=subprocess.PIPE, text=True, env=environment
    )
    assert done.stdout == 'recorded\n'
    assert done.returncode == -signal.SIGKILL
    return open_session(root)


def test_a_session_that_was_killed(tmp_path, capsys):
    session = killed(tmp_path / 'spool')
    assert session.has_journal
    assert not session.ended
    assert len(session.poses) >= 55
    assert session.events[-1].name == 'c3d.annotation'
    found = [finding for finding in verify(session) if finding.kind is not Kind.NOTE]
    assert [finding.kind for finding in found] == [Kind.NO_END]
    for to in FORMATS:
        out = tmp_path / name_of(to)
        code = main(['export', str(tmp_path / 'spool'), '--to', to, '-o', str(out)])
        said = capsys.readouterr()
        assert code == 3
        assert out.exists()
        assert '  missing: there is no c3d.sessionEnd: it is being recorded' in said.err
    poses = [t for t, _, _ in decoded(tmp_path / 'out.mcap') if t == '/pose']
    assert len(poses) == len(np.loadtxt(tmp_path / 'out.tum')) == len(session.poses)
    # Its last region is open up to where the session was cut.
    (comment, *_) = rawlog(tmp_path / 'out.rawlog')
    assert 'open' in parse_blocks(comment.text)['c3d.regions']['region.00002']
    code = main(['report', str(tmp_path / 'spool'), '-o', str(tmp_path / 'report.html')])
    assert code == 3
    assert 'no end: there is no c3d.sessionEnd' in capsys.readouterr().out


STREAMS = ('camera', 'lidar', 'gaze', 'events', 'sensors', 'dynamics')


@pytest.mark.parametrize('stream', STREAMS)
def test_a_session_that_has_lost_a_part(tmp_path, capsys, stream):
    rich_session.record(tmp_path / 'spool')
    folder = open_session(tmp_path / 'spool').files.folder
    (tmp_path / 'spool' / 'last_second').unlink()  # not a spool any more: nothing was delivered
    parts = sorted(folder.glob(f'{stream}.*'))
    lost = parts[0] if stream != 'gaze' else next(p for p in parts if '.pose.' in p.name)
    before = open_session(tmp_path / 'spool').counts()
    lost.unlink()
    session = open_session(tmp_path / 'spool')
    findings = [f.text for f in verify(session) if f.kind is not Kind.NOTE]
    assert any(stream in text or 'poses' in text or 'sessionEnd' in text for text in findings)
    left = session.counts()
    assert sum(left.values()) < sum(before.values())
    for to in FORMATS:
        out = tmp_path / name_of(to)
        arguments = [str(tmp_path / 'spool'), '--to', to, '-o', str(out)]
        code = main(['export', *arguments])
        said = capsys.readouterr()
        assert out.exists()
        assert code == 3
        assert '  missing: ' in said.err
        done = int(said.out.removeprefix(f'{out}: ').partition(' ')[0])
        held = sum(left.values())
        if to in ('tum', 'kitti'):
            held = left[PoseSample]
        elif to == 'rawlog':
            held -= left[DynamicSnapshot]
        assert done == held


@pytest.mark.parametrize('to', FORMATS)
def test_a_session_that_has_lost_its_first_properties(tmp_path, capsys, to):
    """It does not say its axes any more: whoever knows them can tell."""
    session = open_session(whole(tmp_path / 'whole' / SESSION))
    export_session(session, to, tmp_path / name_of(to))
    folder = whole(tmp_path / SESSION)
    (folder / 'gaze.000001.properties.c3d').unlink()
    arguments = ['export', str(folder), '--to', to, '-o', str(tmp_path / 'told' / name_of(to))]
    (tmp_path / 'told').mkdir()
    only_path = to in ('tum', 'kitti')  # all others hold what has no place as well
    assert main(arguments) == (1 if only_path else 3)
    told = capsys.readouterr()
    assert 'gaze.000001.properties.c3d is missing' in (told.err if only_path else told.out)
    assert '--pose-convention' in (told.err if only_path else told.out)
    assert (list((tmp_path / 'told').iterdir()) == []) is only_path
    arguments += ['--pose-convention', 'gltf_authored', '--force']
    assert main(arguments) == 3
    said = capsys.readouterr()
    assert 'its pose convention: it was taken to be gltf_authored' in said.out
    assert '  missing: gaze: part 1, the last is 4' in said.err
    if only_path:
        ours, whole_ones = tmp_path / 'told' / name_of(to), tmp_path / name_of(to)
        assert ours.read_bytes() == whole_ones.read_bytes()


@pytest.mark.parametrize('to', FORMATS)
def test_a_session_without_a_pose(tmp_path, to):
    folder = tmp_path / SESSION
    properties = {**PROPERTIES, 'c3d.ros.cameras': 'front', 'c3d.ros.lidars': 'top'}
    write(folder, 'gaze', 1, 'properties', body('gaze', 1, [], properties=properties))
    write(folder, 'events', 1, 'events', [event('c3d.sessionStart', 0), event('lap', 2)])
    write(folder, 'sensors', 1, 'series', [{'name': 'a', 'data': [[at(1), 5]]}])
    write_sensors(folder, 'camera', 1, [frame_record(1, 0)])
    write_sensors(folder, 'lidar', 1, [cloud_record(1, 0, [(1, 2, 3)])])
    made = export_session(open_session(folder), to, tmp_path / name_of(to))
    assert made.records == (0 if to in ('tum', 'kitti') else 5)
    if to == 'rawlog':
        assert any('where they were on the robot is not known' in note for note in made.notes)
    if to == 'mcap':
        topics = {topic for topic, _, _ in decoded(made.path)}
        assert {'/lidar/top/points', '/camera/front/image/compressed', '/series/a'} <= topics
