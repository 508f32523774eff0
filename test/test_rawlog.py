"""Rawlogs: written, and rewritten by MRPT's rawlog-edit to the same bytes; read, and recorded as sessions."""

import dataclasses
import gzip
import json
import math
import os
import shutil
import struct
import subprocess

import cv2
import numpy as np
import pytest
import rich_session
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from recording_rig import REQUIRED, Lines, S
from stored import SESSION, at, cloud_record, frame_record, pose, scan_record, write, write_sensors
from stored import body as json_body

from cognitive3d_ros import images_directory, open_session
from cognitive3d_ros.bags import open_bag
from cognitive3d_ros.bags.door import record_bag
from cognitive3d_ros.bags.rawlog_messages import quaternion
from cognitive3d_ros.cli.main import main
from cognitive3d_ros.conventions import CONVENTIONS
from cognitive3d_ros.errors import BagError, FormatError, NewerFormatError
from cognitive3d_ros.export import Options, export_session
from cognitive3d_ros.export.kitti import matrices
from cognitive3d_ros.parameters import parse
from cognitive3d_ros.session.records import CameraFrame, Event, LaserScan, PointCloud
from cognitive3d_ros.wire.mrpt import Reader, Writer, open_rawlog, stamp_ns, ticks
from cognitive3d_ros.wire.mrpt import classes as mrpt

DATASETS = '/usr/share/mrpt/datasets'


@pytest.fixture(scope='session')
def rawlog_edit():
    """MRPT's own program, in the folder of a rawlog: 2.5.8 looks for pictures only there."""
    program = shutil.which('rawlog-edit')
    if program is None:
        pytest.skip('no rawlog-edit: apt-get install mrpt-apps')

    def run(folder, *arguments):
        done = subprocess.run([program, *arguments], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0
        assert done.stderr == ''  # it returns 0 also where it stopped at an object
        return done.stdout

    return run


def objects(path):
    with open_rawlog(path) as file:
        return list(Reader(file, mrpt.CLASSES).objects())


def plain(path):
    with open_rawlog(path) as file:
        return file.read()


def of(kind, found):
    return [each for each in found if type(each) is kind]


def rewritten(rawlog_edit, path):
    """Let MRPT read a rawlog and write what it read; return that."""
    out = path.with_name(f'again_{path.name}')
    said = rawlog_edit(path.parent, '--cut', '--from-index', '0', '-i', path.name, '-o', out.name)
    assert 'rror' not in said
    return out


# Written


@pytest.mark.parametrize('convention', CONVENTIONS)
def test_mrpt_rewrites_a_rawlog_to_the_same_bytes(tmp_path, rawlog_edit, convention):
    rich_session.record(tmp_path / 'spool', convention=convention)
    session = open_session(tmp_path / 'spool')
    path = tmp_path / 'run.rawlog'
    export_session(session, 'rawlog', path)
    assert plain(rewritten(rawlog_edit, path)) == plain(path)
    said = rawlog_edit(tmp_path, '--info', '-i', 'run.rawlog')
    count = len(objects(path))
    assert f'Overall number of objects         : {count}\n' in said
    for label, often in (('front', 6), ('rear', 6), ('base', 6), ('top', 6), ('pose', 61)):
        assert any(f' {label} ' in line and f' {often} /' in line for line in said.splitlines())
    listed = rawlog_edit(tmp_path, '--list-images', '-i', 'run.rawlog', '-o', 'images.txt')
    assert 'rror' not in listed


def test_pictures_inside(tmp_path, rawlog_edit):
    rich_session.record(tmp_path / 'spool')
    session = open_session(tmp_path / 'spool')
    path = tmp_path / 'run.rawlog'
    export_session(session, 'rawlog', path, options=Options(images='inside'))
    assert not (tmp_path / 'run_Images').exists()
    (frame, *_) = of(mrpt.CameraImage, objects(path))
    assert frame.image.jpeg == rich_session.PICTURE
    # MRPT stores the pixels that it decodes.
    (again, *_) = of(mrpt.CameraImage, objects(rewritten(rawlog_edit, path)))
    decoded = cv2.imdecode(np.frombuffer(rich_session.PICTURE, np.uint8), cv2.IMREAD_COLOR)
    rows = again.image.rows.reshape(decoded.shape).astype(int)
    assert np.abs(rows - decoded).max() <= 8  # two decoders


@pytest.mark.parametrize('convention', CONVENTIONS)
def test_what_a_rawlog_says(tmp_path, convention):
    rich_session.record(tmp_path / 'spool', convention=convention)
    session = open_session(tmp_path / 'spool')
    path = tmp_path / 'run.rawlog'
    made = export_session(session, 'rawlog', path)
    assert any('61 snapshots' in note for note in made.notes)
    assert any('range_min' in note for note in made.notes)
    assert any('infinite' in note for note in made.notes)
    head, *rest = objects(path)
    assert isinstance(head, mrpt.Comment)
    stamps = [each.ticks for each in rest]
    assert stamps == sorted(stamps)
    poses = of(mrpt.RobotPose, rest)
    assert [each.ticks for each in poses] == [
        ticks(round(p.time * 1e5) * 10_000) for p in session.poses
    ]
    for each, flat in zip(poses, of(mrpt.Odometry, rest), strict=True):
        seconds = stamp_ns(each.ticks) / S - rich_session.START
        p, r = rich_session.robot_at(seconds)
        np.testing.assert_allclose(each.pose.mean.xyz, p, atol=2e-5)
        rotation = matrices(np.zeros((1, 3)), np.array([r]))[0, :, :3]
        np.testing.assert_allclose(each.pose.mean.rotation, rotation, atol=5e-5)
        np.testing.assert_allclose(flat.pose.x_y_phi, [p[0], p[1], 0.3 * seconds], atol=5e-5)
    images = images_directory(path)
    assert images == tmp_path / 'run_Images'
    fronts = [each for each in of(mrpt.CameraImage, rest) if each.label == 'front']
    for frame in fronts:
        assert (images / frame.image.file).read_bytes() == rich_session.PICTURE
        assert (frame.camera.columns, frame.camera.rows) == (48, 32)
        np.testing.assert_allclose(frame.camera.intrinsics, [40, 40, 23.5, 15.5], rtol=1e-5)
        held_to_mount(frame.pose, 'front_optical_frame')
    for cloud in of(mrpt.PointCloud, rest):
        held_to_mount(cloud.pose, 'lidar')
        got = sorted(map(tuple, np.round(cloud.points.xyz, 3).tolist()))
        assert got == sorted(tuple(point) for point in rich_session.POINTS.tolist())
    for scan in of(mrpt.RangeScan, rest):
        held_to_mount(scan.pose, 'laser')  # symmetric: its middle ray is its x axis
        assert scan.valid.tolist() == [1, 1, 0, 0, 0, 0, 1]
        assert scan.ranges.tolist() == [1.0, 2.5, 0.0, 0.0, 0.0, 40.0, 3.0]
        assert scan.aperture == pytest.approx(3.0)
        assert scan.right_to_left
        assert scan.max_range == 30.0
    numbers = [each for each in of(mrpt.RawDaq, rest) if each.label == 'battery.percentage']
    assert [each.analogue.tolist() for each in numbers] == [
        [value] for _, value in session.series['battery.percentage']
    ]


def held_to_mount(pose, frame):
    xyz, q = rich_session.MOUNTS[frame]
    np.testing.assert_allclose(pose.xyz, xyz, atol=2e-3)  # the robot's pose is interpolated
    rotation = matrices(np.zeros((1, 3)), np.array([q]))[0, :, :3]
    np.testing.assert_allclose(pose.rotation, rotation, atol=2e-3)


def test_the_comment_of_a_rawlog(tmp_path):
    rich_session.record(tmp_path / 'spool')
    session = open_session(tmp_path / 'spool')
    export_session(session, 'rawlog', tmp_path / 'run.rawlog')
    from cognitive3d_ros.comments import parse_blocks

    text = objects(tmp_path / 'run.rawlog')[0].text
    assert text.startswith('wet floor\n[run]\nlap = 3\n')
    blocks = parse_blocks(text)
    assert blocks['run']['lap'] == '3'
    assert blocks['c3d.session']['session_id'] == session.id
    assert blocks['c3d.session']['reference_frame'] == 'odom'
    assert blocks['c3d.frames']['front'] == 'front_optical_frame'
    assert blocks['c3d.properties']['payload_kg'] == '3.5'
    assert blocks['c3d.properties']['c3d.ros.comment'] == 'wet floor\\n[run]\\nlap = 3'
    events = [json.loads(value) for value in blocks['c3d.events'].values()]
    assert [event['name'] for event in events] == [event.name for event in session.events]
    assert events[2]['properties']['value'] == 'lens: dirty, "very"'
    regions = [json.loads(value) for value in blocks['c3d.regions'].values()]
    assert [(r['index'], r['state']) for r in regions] == [
        (1, 'completed'),
        (2, 'aborted'),
        (None, 'open'),
    ]


PROPERTIES = {
    'c3d.ros.pose_convention': 'rep103',
    'c3d.ros.cameras': 'front',
    'c3d.ros.camera.front.convention': 'body_forward_x',
}


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / SESSION
    write(folder, 'gaze', 1, 'properties', json_body('gaze', 1, [], properties=PROPERTIES))
    write(
        folder, 'gaze', 2, 'pose', [pose(n, float(n)) | {'p': [float(n), 0, 0]} for n in range(4)]
    )
    return folder


def test_sensors_where_the_robot_is_not_known_are_left_out_and_named(folder, tmp_path):
    frames = [frame_record(t, n) for n, t in enumerate((-1, 0, 2.5, 3.5))]
    write_sensors(folder, 'camera', 1, frames)
    made = export_session(open_session(folder), 'rawlog', tmp_path / 'run.rawlog')
    assert any('before the first pose sample' in note for note in made.notes)
    found = of(mrpt.CameraImage, objects(tmp_path / 'run.rawlog'))
    assert [each.ticks for each in found] == [ticks(round(at(t) * 1e5) * 10_000) for t in (0, 2.5)]


def test_a_gap_in_the_poses_is_named(folder, tmp_path):
    write(folder, 'gaze', 3, 'pose', [pose(10) | {'p': [9.0, 0, 0]}])
    write_sensors(folder, 'camera', 1, [frame_record(8, 0)])
    made = export_session(open_session(folder), 'rawlog', tmp_path / 'run.rawlog')
    assert any('more than 1 s apart' in note for note in made.notes)


def test_a_camera_of_a_body_frame_is_turned_to_look_along_z(folder, tmp_path):
    write_sensors(folder, 'camera', 1, [frame_record(1, 0, pose=(1.0, 0, 0, 0, 0, 0, 1.0))])
    export_session(open_session(folder), 'rawlog', tmp_path / 'run.rawlog')
    (frame,) = of(mrpt.CameraImage, objects(tmp_path / 'run.rawlog'))
    # z ahead: the robot's x; x to the right: its -y; y down: its -z.
    np.testing.assert_allclose(frame.pose.rotation, [[0, 0, 1], [-1, 0, 0], [0, -1, 0]], atol=1e-6)


def test_a_scan_that_is_not_symmetric_is_turned(folder, tmp_path, rawlog_edit):
    scan = scan_record(
        1, 0, [1.0, 2.0, 3.0], angle_min=0.5, angle_max=-0.1, angle_increment=-0.3, range_min=0.0
    )
    write_sensors(folder, 'lidar', 1, [scan])
    path = tmp_path / 'run.rawlog'
    made = export_session(open_session(folder), 'rawlog', path)
    assert any('scan_time' in note for note in made.notes)
    (found,) = of(mrpt.RangeScan, objects(path))
    assert found.aperture == pytest.approx(0.6)
    assert not found.right_to_left
    # Its middle ray, at 0.2 rad, is its x axis. The robot is at x = 1.
    yaw = np.arctan2(found.pose.rotation[1, 0], found.pose.rotation[0, 0])
    assert yaw == pytest.approx(0.2, abs=1e-6)
    np.testing.assert_allclose(found.pose.xyz, [-1, 0, 0], atol=1e-6)
    assert plain(rewritten(rawlog_edit, path)) == plain(path)


def clouds_with(color, intensity):
    from cognitive3d_ros.wire import clouds

    record = cloud_record(1, 0, [(1000, 0, 0), (0, 2000, 0)])
    planes = [np.array(each, '<i2') for each in ((1000, 0), (0, 2000), (0, 0))]
    if color:
        planes.append(np.array([(255, 0, 51), (0, 255, 102)], 'u1'))
    if intensity:
        planes.append(np.array([51, 255], 'u1'))
    block = clouds.write(
        planes,
        position='int16_mm',
        color='rgb888' if color else 'none',
        intensity='uint8' if intensity else 'none',
        voxel_leaf_mm=0,
        zstd_level=0,
    )
    return dataclasses.replace(record, scan=block)


@pytest.mark.parametrize('images', ['external', 'inside'])
@pytest.mark.parametrize('version', [2, 3])
@pytest.mark.parametrize('color', [False, True])
@pytest.mark.parametrize('intensity', [False, True])
def test_clouds(folder, tmp_path, rawlog_edit, images, version, color, intensity):
    write_sensors(folder, 'lidar', 1, [clouds_with(color, intensity)])
    path = tmp_path / 'run.rawlog'
    options = Options(images=images, mrpt=version)
    made = export_session(open_session(folder), 'rawlog', path, options=options)
    (found,) = of(mrpt.PointCloud, objects(path))
    expected = [(1, 0, 0), (0, 2, 0)]
    if found.storage == mrpt.KITTI_BIN:
        rows = np.fromfile(tmp_path / 'run_Images' / found.file, '<f4').reshape(-1, 4)
        np.testing.assert_allclose(rows, [(1, 0, 0, 0.2), (0, 2, 0, 1)])
        assert (images, version, color, intensity) == ('external', 2, False, True)
    else:
        np.testing.assert_array_equal(found.points.xyz, expected)
    kind = {
        (2, False, False): mrpt.SimplePoints,
        (3, False, False): mrpt.SimplePoints,
        (2, True, False): mrpt.ColouredPoints,
        (2, True, True): mrpt.ColouredPoints,
        (2, False, True): mrpt.IntensityPoints,
    }.get((version, color, intensity), mrpt.GenericPoints)
    assert found.points is None or type(found.points) is kind
    lost = version == 2 and color and intensity
    assert any('intensities' in note for note in made.notes) == lost
    if version == 2:  # the rawlog-edit at hand is of MRPT 2.5
        assert plain(rewritten(rawlog_edit, path)) == plain(path)
    # And back.
    (cloud,) = [m.message for m in open_bag(path).messages({'/top/points'})]
    columns = np.frombuffer(cloud.data, '<f4').reshape(2, -1)
    names = [each.name for each in cloud.fields]
    np.testing.assert_array_equal(columns[:, :3], expected)
    assert ('rgb' in names, 'intensity' in names) == (color, intensity and not lost)
    if 'rgb' in names:
        packed = columns[:, names.index('rgb')].view(np.uint32).tolist()
        assert packed == [0xFF0033, 0x00FF66]
    if 'intensity' in names:
        np.testing.assert_allclose(columns[:, names.index('intensity')], [0.2, 1.0])


def test_points_with_columns_are_laid_out_as_mrpt_3_has_them():
    """CGenericPointsMap by hand: no program of a version that reads it is at hand."""
    xyz = np.array([(1, 2, 3)], np.float32)
    columns = {
        'intensity': np.array([0.5], np.float32),
        'ring': np.array([7], np.uint16),
        'color_r': np.array([255], np.uint8),
    }
    writer = Writer()
    writer.object(mrpt.GenericPoints(xyz, columns))
    none = bytes(4)
    name = b'mrpt::maps::CGenericPointsMap'
    one, two, three, half = (struct.pack('<f', x) for x in (1, 2, 3, 0.5))

    def column(text, value):
        return struct.pack('<II', 1, len(text)) + text + b'\x01\0\0\0' + value

    insertion = b'\0' + struct.pack('<f', 0.02) + b'\x01\0\x01\0\0'
    insertion += struct.pack('<ff', np.radians(0.05), 2.0) + b'\0'
    likelihood = b'\0' + struct.pack('<ddI', 0.0025, 1.0, 10)
    assert writer.take() == (
        (bytes([0x80 | len(name)]) + name + b'\x03')
        + (b'\x01\0\0\0' + one + two + three)
        + column(b'intensity', half)
        + none  # of double
        + column(b'ring', b'\x07\0')
        + column(b'color_r', b'\xff')
        + (insertion + likelihood + b'\x88')
    )


def test_names_of_files_are_no_paths_and_taken_once(folder, tmp_path):
    names = ['../../evil', 'a/b', 'a_b', '.', 'é' * 300, 'front', 'front']
    frames = [frame_record(1, 0, name, data=b'%d' % n) for n, name in enumerate(names)]
    write_sensors(folder, 'camera', 1, frames)
    properties = {'c3d.ros.cameras': ''}
    write(folder, 'gaze', 3, 'properties', json_body('gaze', 3, [], properties=properties))
    (tmp_path / 'out').mkdir()
    export_session(open_session(folder), 'rawlog', tmp_path / 'out' / 'run.rawlog')
    assert sorted(p.name for p in tmp_path.iterdir()) == [SESSION, 'out']
    assert sorted(p.name for p in (tmp_path / 'out').iterdir()) == ['run.rawlog', 'run_Images']
    images = tmp_path / 'out' / 'run_Images'
    found = of(mrpt.CameraImage, objects(tmp_path / 'out' / 'run.rawlog'))
    assert sorted(each.label for each in found) == sorted(names)
    files = [each.image.file for each in found]
    assert len(set(files)) == len(list(images.iterdir())) == len(names)
    assert {'_.._evil_000000.jpg', 'front_000000.jpg', 'front_000000_2.jpg'} <= set(files)
    held = sorted((each.label, (images / each.image.file).read_bytes()) for each in found)
    assert held == sorted((name, b'%d' % n) for n, name in enumerate(names))


def test_intensities_that_no_whole_number_holds(folder, tmp_path):
    scan = scan_record(1, 0, [1.0, 2.0, 3.0, 4.0], intensities=[1e20, -1e20, float('nan'), 7.0])
    write_sensors(folder, 'lidar', 1, [scan])
    made = export_session(open_session(folder), 'rawlog', tmp_path / 'run.rawlog')
    assert 'intensities of laser scans are whole numbers' in made.notes
    (found,) = of(mrpt.RangeScan, objects(tmp_path / 'run.rawlog'))
    assert found.intensities.tolist() == [2**31 - 1, -(2**31), 0, 7]


# Described rangefinders


@pytest.mark.parametrize(
    ('units', 'unit_m'),
    [('centimeters', 0.01), ('meters', 1.0), ('millimeters', 0.001), ('inches', 0.0254)],
)
def test_described_rangefinders_are_range_finders(folder, tmp_path, rawlog_edit, units, unit_m):
    about = {
        'kind': 'cone_rangefinder',
        'series': 'bow',
        'units': units,
        'mount_xyz_meters': '0.10,0.00,0.05',
        'mount_yaw_radians': math.pi / 2,
        'cone_half_angle_degrees': 7.5,
        'range_min_centimeters': 2,
        'range_max_centimeters': 400,
    }
    properties = {f'c3d.ros.sensor.bow.{key}': value for key, value in about.items()}
    properties |= {'c3d.ros.sensors': 'bow,line', 'c3d.ros.sensor.line.kind': 'binary_array'}
    write(folder, 'gaze', 3, 'properties', json_body('gaze', 3, [], properties=properties))
    series = [{'name': 'bow', 'data': [[at(1), 50.0], [at(2), 75.5]]}]
    series.append({'name': 'line.0', 'data': [[at(1), 1]]})
    write(folder, 'sensors', 1, 'series', series)
    path = tmp_path / 'run.rawlog'
    made = export_session(open_session(folder), 'rawlog', path)
    assert not any('bow' in note for note in made.notes)
    found = of(mrpt.Ranges, objects(path))
    assert [each.label for each in found] == ['bow', 'bow']
    assert [stamp_ns(each.ticks) for each in found] == [
        round(at(t) * 1e5) * 10_000 for t in (1, 2)
    ]
    for each, value in zip(found, (50.0, 75.5), strict=True):
        ((number, pose, distance),) = each.measured
        assert (number, distance) == (0, pytest.approx(value * unit_m, rel=1e-6))
        np.testing.assert_allclose(pose.xyz, (0.1, 0, 0.05))
        np.testing.assert_allclose(pose.rotation @ (1, 0, 0), (0, 1, 0), atol=1e-9)
        assert each.cone_radians == pytest.approx(math.radians(15))
        assert (each.min_range, each.max_range) == pytest.approx((0.02, 4.0))
    # The series is there as it was, too.
    readings = [each.analogue.tolist() for each in of(mrpt.RawDaq, objects(path))]
    assert sorted(readings) == [[1.0], [50.0], [75.5]]
    # MRPT holds the pose as angles, and makes the matrix anew: all the rest is the same.
    again = of(mrpt.Ranges, objects(rewritten(rawlog_edit, path)))
    for each, other in zip(found, again, strict=True):
        ((_, pose, distance),), ((_, other_pose, other_distance),) = each.measured, other.measured
        np.testing.assert_allclose(other_pose.rotation, pose.rotation, atol=1e-12)
        assert (other_pose.xyz, other_distance) == (pose.xyz, distance)
        assert (other.label, other.ticks, other.max_range, other.cone_radians) == (
            *(each.label, each.ticks, each.max_range, each.cone_radians),
        )


@pytest.mark.parametrize(
    'mount', [{}, {'mount_xyz_meters': '0.1,0.0,0.0', 'mount_parent': 'arm_link'}]
)
def test_a_rangefinder_whose_mount_is_not_known_is_named(folder, tmp_path, mount):
    about = {'kind': 'cone_rangefinder', 'series': 'bow', 'units': 'meters', **mount}
    properties = {f'c3d.ros.sensor.bow.{key}': value for key, value in about.items()}
    properties['c3d.ros.sensors'] = 'bow'
    write(folder, 'gaze', 3, 'properties', json_body('gaze', 3, [], properties=properties))
    write(folder, 'sensors', 1, 'series', [{'name': 'bow', 'data': [[at(1), 0.5]]}])
    made = export_session(open_session(folder), 'rawlog', tmp_path / 'run.rawlog')
    assert (
        'bow: its mount on base_link is not known: it is taken to be at its origin' in made.notes
    )
    (found,) = of(mrpt.Ranges, objects(tmp_path / 'run.rawlog'))
    assert found.measured[0][1].xyz == [0, 0, 0]
    assert (found.min_range, found.max_range) == (0, math.inf)


# MRPT's own files


@pytest.mark.parametrize('name', ['sena_corridor_current.rawlog'])
def test_what_mrpt_wrote_is_written_again_byte_for_byte(shared_data, name):
    writer = Writer()
    for each in objects(shared_data / name):
        writer.object(each)
    assert writer.take() == plain(shared_data / name)


def test_every_class_is_laid_out_as_mrpt_has_it(tmp_path, rawlog_edit):
    """Those that only are read too, with something in each field: MRPT writes back the bytes that it read."""
    stamp, up = ticks(T0), mrpt.Pose3D([0.0, 0.5, 1.5])
    camera = mrpt.Camera(
        intrinsics=[500.0, 501.0, 0.5, 0.25], rows=2, columns=2, distortion=[0.1] * 8, name='c'
    )
    rows = np.array([[1, 2], [3, 4]], np.uint8)
    gray = mrpt.Image(color=False, width=2, height=2, rows=rows)
    colour = mrpt.Image(width=2, height=2, rows=np.arange(12, dtype=np.uint8).reshape(2, 6))
    in_space = mrpt.Movement3D(
        0,
        mrpt.Pose3DGaussian(up, [0.1] * 21),
        np.ones(6, np.uint8),
        np.arange(6, dtype=np.float32),
        stamp,
    )
    by_scans = mrpt.Movement2D(
        by_scans=True,
        matched=mrpt.Pose2DGaussian(mrpt.Pose2D([1.0, 2.0, 0.25]), [0.1] * 6),
        velocity=[1.0, 2.0, 3.0],
        encoders=[4, 5],
        ticks=stamp,
    )
    scan = mrpt.RangeScan(
        aperture=1.0,
        max_range=9.0,
        pose=up,
        ranges=np.array([1, 2], np.float32),
        valid=np.array([1, 0], np.uint8),
        std_error=0.1,
        ticks=stamp,
        beam_aperture=0.2,
        label='laser',
        delta_pitch=0.3,
        intensities=np.array([3, 4], np.int32),
    )
    depth = mrpt.DepthScan(
        max_range=5.0,
        pose=up,
        xyz=np.array([(1, 2, 3)], np.float32),
        range_units=0.002,
        depth=np.array([[500, 0], [1000, 20000]], np.uint16),
        intensity=gray,
        confidence=gray,
        depth_camera=camera,
        intensity_camera=camera,
        std_error=0.1,
        ticks=stamp,
        label='kinect',
    )
    known = np.array([1, 0], np.uint8)
    observations = [
        scan,
        depth,
        mrpt.CameraImage(up, camera, gray, stamp, 'left'),
        mrpt.CameraImage(up, camera, colour, stamp, 'right'),
        mrpt.Imu(up, [1] * 31, stamp, [float(n) for n in range(31)], 'imu'),
        mrpt.Ranges(0.1, 4.0, 0.3, [(0, up, 1.25), (3, up, 2.5)], 'sonar', stamp),
        mrpt.Battery(24.5, 1.0, True, True, np.array([1.0, 2.0]), known, 'pack', stamp),
        mrpt.RawDaq('tank', stamp, 10.0, np.array([0.75, 2.0])),
        odometry(0, 1.0, velocity=[1.0, 0.0, 0.2], encoders=[1, 2]),
        mrpt.RobotPose(mrpt.Pose3DGaussian(up, [0.1] * 21), 'slam', stamp, up),
    ]
    actions = [mrpt.ActionCollection([each]) for each in (in_space, by_scans)]
    frame = mrpt.SensoryFrame(observations)
    path = write_rawlog(tmp_path / 'all.rawlog', actions[0], frame, actions[1], frame)
    # It makes the matrix of a range finder's pose anew, with a -0.0 in it.
    ours, again = (
        plain(each).replace(struct.pack('<d', -0.0), bytes(8))
        for each in (path, rewritten(rawlog_edit, path))
    )
    assert again == ours


def test_mrpts_data_sets_are_read_or_their_classes_named(tmp_path, rawlog_edit):
    from pathlib import Path

    if not Path(DATASETS).is_dir():
        pytest.skip('no data sets of MRPT: apt-get install mrpt-common')
    read = 0
    for path in sorted(Path(DATASETS).glob('*.rawlog')):
        copy = tmp_path / path.name.replace(' ', '_')
        shutil.copy(path, copy)
        out = rewritten(rawlog_edit, copy)
        reason = ''
        try:
            with open_bag(out) as bag:
                count = sum(1 for _ in bag.messages())
                assert count == bag.facts.message_count > 0
                for message in bag.messages():
                    message.message  # noqa: B018
                read += 1
        except BagError as error:
            reason = str(error)
        assert reason == '' or 'is no class that is read' in reason
    assert read >= 3


# SENA


SENA = {
    **REQUIRED,
    'device_id': 'sena',
    'reference_frames': ['odom'],
    'lidars': ['laser'],
    'lidar.laser.topic': '/scan',
    'lidar.laser.rate_hz': 0.0,
}


def sena_odometry(found):
    """Where SENA was by its increments: seconds, and x y phi."""
    rows, x, y, phi = [], 0.0, 0.0, 0.0
    for each in of(mrpt.ActionCollection, found):
        (action,) = each.actions
        dx, dy, dphi = action.increment.x_y_phi
        x += np.cos(phi) * dx - np.sin(phi) * dy
        y += np.sin(phi) * dx + np.cos(phi) * dy
        phi += dphi
        rows.append((stamp_ns(action.ticks) / S, x, y, phi))
    return np.array(rows)


@pytest.mark.parametrize('convention', CONVENTIONS)
def test_sena_from_rawlog_to_session_to_rawlog(shared_data, tmp_path, convention):
    source = shared_data / 'sena_corridor_current.rawlog'
    config = parse({**SENA, 'pose_convention': convention})
    log = Lines()
    result = record_bag(source, config, tmp_path / 'spool', log=log)
    assert result.problems == ()
    assert result.not_held == (
        'error models and covariances of movements',
        'the error and the beam width of laser scans',
    )
    session = open_session(tmp_path / 'spool')
    out = tmp_path / 'sena.rawlog'
    made = export_session(session, 'rawlog', out)
    before, after = objects(source), objects(out)
    truth = sena_odometry(before)
    # Odometry: between two of its readings the robot is taken to go straight.
    flat = of(mrpt.Odometry, after)
    times = np.array([stamp_ns(each.ticks) / S for each in flat])
    assert len(times) == len(session.poses) >= 588
    assert np.ptp(truth[:, 1]) > 10
    got = np.array([each.pose.x_y_phi for each in flat])
    for column in (1, 2):
        expected = np.interp(times, truth[:, 0], truth[:, column])
        assert np.abs(got[:, column - 1] - expected).max() < 1e-4
    turned = np.interp(times, truth[:, 0], truth[:, 3]) - got[:, 2]
    assert np.abs((turned + np.pi) % (2 * np.pi) - np.pi).max() < 1e-4
    # Scans: every bit of every range, and whether it is valid.
    scans = [each.observations[0] for each in of(mrpt.SensoryFrame, before)]
    again = of(mrpt.RangeScan, after)
    by_time = {stamp_ns(each.ticks) // 1_000_000: each for each in scans}
    # The last is after the last odometry: where the robot was is not known, and said.
    assert len(again) == len(scans) - 1
    assert log.of('warning') == [
        "lidar.laser: not stored, its pose is not known: 'laser' in 'odom': tf did not reach its stamp in time"
    ]
    for each in again:
        ms = stamp_ns(each.ticks) // 1_000_000
        scan = by_time.get(ms) or by_time[ms - 1]  # milliseconds are rounded
        assert each.ranges.tobytes() == scan.ranges.tobytes()
        assert each.valid.tobytes() == scan.valid.tobytes()
        assert each.max_range == scan.max_range
        assert each.aperture == pytest.approx(scan.aperture, abs=1e-6)
        np.testing.assert_allclose(each.pose.xyz, scan.pose.xyz, atol=2e-3)
        np.testing.assert_allclose(each.pose.rotation, scan.pose.rotation, atol=2e-3)
    assert made.notes == (
        'not in it: seq, the numbers of frames and scans (parquet and csv have them)',
    )


def test_what_a_session_has_no_place_for_is_told(shared_data, tmp_path, capsys):
    params = tmp_path / 'p.yaml'
    params.write_text(
        'cognitive3d:\n  ros__parameters:\n    {device_id: a, scene_id: b, scene_version: 1}\n'
    )
    source = shared_data / 'sena_corridor_current.rawlog'
    main(['record', str(source), '--params', str(params), '--spool', str(tmp_path / 's')])
    assert (
        '  not in the session: error models and covariances of movements, '
        'the error and the beam width of laser scans\n'
    ) in capsys.readouterr().out


def test_what_of_observations_has_no_place_is_named(tmp_path):
    def lost(*observations):
        with open_bag(write_rawlog(tmp_path / 'a.rawlog', odometry(0, 1.0), *observations)) as bag:
            return bag.facts.lost

    stamp = ticks(T0)
    covariance = [0.1, *[0.0] * 20]
    assert lost() == ()
    assert lost(odometry(1, 2.0, encoders=[7, 8])) == ('encoder ticks',)
    where = mrpt.Pose3DGaussian(mrpt.Pose3D(), covariance)
    assert lost(mrpt.RobotPose(where, 'slam', stamp)) == ('covariances of robot poses',)
    assert lost(mrpt.RangeScan(delta_pitch=0.1, ticks=stamp)) == (
        'the pitch of laser scans that nod',
    )
    assert lost(mrpt.DepthScan(std_error=0.1, ticks=stamp)) == (
        'the confidence and the error of depth scans',
    )
    imu = mrpt.Imu(ticks=stamp)
    assert lost(imu) == ()
    imu.present[18] = 1
    assert lost(imu) == ('what IMUs measured besides acceleration, rates and orientation',)
    battery = mrpt.Battery(other_volts=np.ones(1), other_known=np.ones(1, np.uint8), ticks=stamp)
    assert lost(battery) == ('voltages of batteries but the main one',)
    # A reading of 16 bits, put where there is none.
    writer = Writer()
    writer.object(mrpt.RawDaq('daq', stamp, analogue=np.array([1.0])))
    raw = writer.take()
    at_ = raw.index(b'\x03\0\0\0daq') + 7 + 8 + 8 + 4
    raw = raw[:at_] + b'\x01\0\0\0\x07\0' + raw[at_ + 4 :]
    (tmp_path / 'b.rawlog').write_bytes(raw)
    with open_bag(tmp_path / 'b.rawlog') as bag:
        assert bag.facts.lost == ('readings that are no double',)


def test_an_older_version_is_named_with_what_to_do(shared_data, tmp_path, capsys):
    source = shared_data / 'sena_corridor.rawlog'
    with pytest.raises(BagError, match='CObservation2DRangeScan is of version 6, older than 7'):
        open_bag(source)
    (tmp_path / 'p.yaml').write_text(
        'cognitive3d:\n  ros__parameters:\n    {device_id: a, scene_id: b, scene_version: 1}\n'
    )
    arguments = [str(source), '--params', str(tmp_path / 'p.yaml'), '--spool', str(tmp_path / 's')]
    assert main(['record', *arguments]) == 1
    err = capsys.readouterr().err
    assert 'rewrite it with "rawlog-edit --cut --from-index 0 -i OLD -o NEW"' in err
    assert len(err.splitlines()) == 1


# Read


def write_rawlog(path, *found, compress=gzip.compress):
    writer = Writer()
    for each in found:
        writer.object(each)
    path.write_bytes(compress(writer.take()))
    return path


T0 = 1_600_000_000 * S


def odometry(seconds, x, **fields):
    return mrpt.Odometry(
        mrpt.Pose2D([x, 0.0, 0.0]), 'wheels', ticks(T0 + round(seconds * S)), **fields
    )


def test_every_observation_becomes_messages(tmp_path):
    stamp = ticks(T0)
    up = mrpt.Pose3D([0.0, 0.0, 1.5])
    picture = np.arange(2 * 4 * 3, dtype=np.uint8).reshape(2, 12)
    jpeg = rich_session.PICTURE
    camera = mrpt.Camera(
        intrinsics=[500.0, 501.0, 320.0, 240.0], rows=480, columns=640, distortion=[0.1] * 8
    )
    scan = mrpt.RangeScan(
        aperture=1.0,
        max_range=10.0,
        pose=up,
        ranges=np.array([1, 2, 11], np.float32),
        valid=np.array([1, 0, 0], np.uint8),
        ticks=stamp,
        label='LASER',
        intensities=np.array([7, 8, 9], np.int32),
    )
    imu = mrpt.Imu(up, [0] * 31, stamp, [float(n) for n in range(31)], 'XSENS')
    for index in (*range(6), 21, 22, 23, 24):
        imu.present[index] = 1
    depth = mrpt.DepthScan(
        pose=up,
        xyz=np.array([(1, 2, 3)], np.float32),
        range_units=0.002,
        depth=np.array([[500, 0], [1000, 20000]], np.uint16),
        intensity=mrpt.Image(
            color=False, width=2, height=2, rows=np.array([[1, 2], [3, 4]], np.uint8)
        ),
        depth_camera=camera,
        intensity_camera=camera,
        ticks=stamp,
        label='KINECT',
    )
    path = write_rawlog(
        tmp_path / 'all.rawlog',
        odometry(0, 1.0, velocity=[0.5, 0.0, 0.25]),
        scan,
        mrpt.CameraImage(up, camera, mrpt.Image(jpeg=jpeg, width=48, height=32), stamp, 'LEFT'),
        mrpt.CameraImage(up, camera, mrpt.Image(width=4, height=2, rows=picture), stamp, 'RIGHT'),
        depth,
        imu,
        mrpt.Ranges(0.1, 4.0, 0.3, [(0, up, 1.25), (3, up, 2.5)], 'SONAR', stamp),
        mrpt.Battery(24.5, 0.0, main_known=True, label='PACK', ticks=stamp),
        mrpt.RawDaq('tank', stamp, analogue=np.array([0.75])),
        mrpt.RawDaq('two', stamp, analogue=np.array([1.0, 2.0])),
    )
    with open_bag(path) as bag:
        assert bag.problems == []
        found = {message.topic: message for message in bag.messages()}
        assert bag.facts.topics == {topic: m.msgtype for topic, m in found.items()}
        assert bag.facts.start_ns == bag.facts.end_ns == T0
        assert bag.facts.message_count == len(found)
        # A second reading gives the same.
        assert [m.topic for m in bag.messages({'/PACK/battery'})] == ['/PACK/battery']
    said = {topic: message.message for topic, message in found.items()}
    (link,) = said['/tf'].transforms
    assert (link.header.frame_id, link.child_frame_id) == ('odom', 'base_link')
    assert link.transform.translation.x == 1.0
    still = {link.child_frame_id: link for link in said['/tf_static'].transforms}
    assert still['LASER'].transform.translation.z == 1.5
    assert said['/odom'].twist.twist.linear.x == 0.5
    assert said['/odom'].twist.twist.angular.z == 0.25
    laser = said['/LASER/scan']
    assert (laser.angle_min, laser.angle_max, laser.angle_increment) == (-0.5, 0.5, 0.5)
    assert (laser.range_min, laser.range_max) == (0.0, 10.0)
    # The second is marked as invalid, though it lies within the limits; the third is beyond them.
    np.testing.assert_array_equal(laser.ranges, np.array([1, np.nan, 11], np.float32))
    assert laser.intensities.tolist() == [7, 8, 9]
    assert said['/LEFT/image'].data == jpeg
    assert said['/LEFT/image'].header.frame_id == 'LEFT_optical_frame'
    assert said['/LEFT/camera_info'].k == [500.0, 0, 320.0, 0, 501.0, 240.0, 0, 0, 1]
    assert said['/RIGHT/image'].encoding == 'bgr8'
    assert (said['/RIGHT/image'].width, said['/RIGHT/image'].height) == (4, 2)
    assert said['/RIGHT/image'].data == picture.tobytes()
    assert said['/KINECT/image'].encoding == 'mono8'
    assert np.frombuffer(said['/KINECT/depth/image'].data, '<u2').tolist() == [
        1000,
        0,
        2000,
        40000,
    ]
    assert np.frombuffer(said['/KINECT/points'].data, '<f4').tolist() == [1, 2, 3]
    # The depth camera looks along the sensor's x axis.
    x, y, z, w = vars(still['KINECT_depth_optical_frame'].transform.rotation).values()
    np.testing.assert_allclose(np.abs((x, y, z, w)), 0.5)
    measured = said['/XSENS/imu']
    assert vars(measured.linear_acceleration) == {'x': 0.0, 'y': 1.0, 'z': 2.0}
    assert vars(measured.angular_velocity) == {'x': 5.0, 'y': 4.0, 'z': 3.0}
    assert vars(measured.orientation) == {'x': 21.0, 'y': 22.0, 'z': 23.0, 'w': 24.0}
    assert said['/SONAR/range_3'].range == 2.5
    assert said['/SONAR/range_3'].max_range == 4.0
    assert said['/PACK/battery'].voltage == 24.5
    assert said['/tank/analogue'].data == 0.75
    assert said['/two/analogue_1'].data == 2.0


def test_a_better_source_places_the_robot(tmp_path):
    where = mrpt.Pose3DGaussian(mrpt.Pose3D([7.0, 0.0, 0.0]))
    path = write_rawlog(
        tmp_path / 'a.rawlog', odometry(0, 1.0), mrpt.RobotPose(where, 'slam', ticks(T0 + S))
    )
    with open_bag(path) as bag:
        ((link,),) = [m.message.transforms for m in bag.messages({'/tf'})]
        assert link.header.frame_id == 'map'
        assert link.transform.translation.x == 7.0
        assert [m.message.pose.pose.position.x for m in bag.messages({'/odom'})] == [1.0]


def test_objects_without_a_time_have_that_of_the_next(tmp_path):
    ahead = mrpt.Movement2D(increment=mrpt.Pose2D([1.0, 0.0, np.pi / 2]))
    scans = [
        mrpt.RangeScan(
            ranges=np.ones(2, np.float32), valid=np.ones(2, np.uint8), ticks=ticks(T0 + n * S)
        )
        for n in (1, 2)
    ]
    path = write_rawlog(
        tmp_path / 'a.rawlog',
        mrpt.ActionCollection([ahead]),
        mrpt.SensoryFrame([scans[0]]),
        mrpt.ActionCollection([ahead]),
        mrpt.SensoryFrame([scans[1]]),
    )
    with open_bag(path) as bag:
        places = [
            (m.receive_ns - T0, m.message.transforms[0].transform.translation)
            for m in bag.messages({'/tf'})
        ]
    assert [t for t, _ in places] == [S, 2 * S]
    np.testing.assert_allclose([(p.x, p.y) for _, p in places], [(1, 0), (1, 1)], atol=1e-12)


@pytest.mark.parametrize('form', ['gzip', 'members', 'zstd', 'plain'])
def test_the_forms_of_compression(tmp_path, form):
    compress = {
        'gzip': gzip.compress,
        'members': lambda data: gzip.compress(data[:50]) + gzip.compress(data[50:]),
        'zstd': zstandard.ZstdCompressor().compress,
        'plain': bytes,
    }[form]
    path = write_rawlog(
        tmp_path / 'a.rawlog', odometry(0, 1.0), odometry(1, 2.0), compress=compress
    )
    with open_bag(path) as bag:
        assert len(list(bag.messages({'/odom'}))) == 2
        assert bag.problems == []


@pytest.mark.parametrize('form', ['gzip', 'zstd', 'plain'])
def test_a_rawlog_that_was_cut_is_read_as_far_as_it_goes(tmp_path, form):
    compress = {'gzip': gzip.compress, 'zstd': zstandard.ZstdCompressor().compress, 'plain': bytes}
    random = np.random.default_rng(1)
    many = [odometry(n, random.normal()) for n in range(20_000)]  # several blocks of zstd
    path = write_rawlog(tmp_path / 'a.rawlog', *many, compress=compress[form])
    whole = path.read_bytes()
    counts = set()
    for share in (0.3, 0.6, 0.97):
        path.write_bytes(whole[: round(len(whole) * share) + 7])
        try:
            bag = open_bag(path)
        except BagError:
            continue  # nothing of it is there
        counts.add(len(list(bag.messages({'/odom'}))))
        (problem,) = bag.problems
        assert 'is cut off in its object' in problem
    assert counts
    assert 0 < max(counts) < 20_000


@given(st.binary(max_size=300))
def test_bytes_that_are_no_rawlog(tmp_path_factory, data):
    path = tmp_path_factory.mktemp('a') / 'a.rawlog'
    path.write_bytes(data)
    with pytest.raises(BagError):
        open_bag(path)


@given(st.data())
def test_damage_is_told_and_never_crashes(tmp_path_factory, data):
    scan = mrpt.RangeScan(
        ranges=np.ones(4, np.float32), valid=np.ones(4, np.uint8), ticks=ticks(T0)
    )
    writer = Writer()
    for each in (odometry(0, 1.0), scan, odometry(1, 2.0)):
        writer.object(each)
    raw = bytearray(writer.take())
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp('a') / 'a.rawlog'
    path.write_bytes(bytes(raw))
    try:
        with open_bag(path) as bag:
            for message in bag.messages():
                message.message  # noqa: B018
    except (BagError, FormatError):
        pass


def test_what_is_not_read_is_named(tmp_path):
    writer = Writer()
    writer.object(odometry(0, 1.0))
    known = writer.take()
    unknown = bytes([0x80 | 26]) + b'mrpt::obs::CObservationGPS' + b'\x0b' + bytes(50)
    (tmp_path / 'a.rawlog').write_bytes(known + unknown)
    with pytest.raises(BagError, match="object 2: 'mrpt::obs::CObservationGPS' is no class"):
        open_bag(tmp_path / 'a.rawlog')
    newer = known.replace(b'CObservationOdometry\x02', b'CObservationOdometry\x09')
    (tmp_path / 'a.rawlog').write_bytes(newer)
    with pytest.raises(BagError, match='is of version 9, newer than 2'):
        open_bag(tmp_path / 'a.rawlog')
    assert issubclass(NewerFormatError, FormatError)


def test_a_picture_that_is_not_there(tmp_path):
    image = mrpt.CameraImage(image=mrpt.Image(file='left_1.jpg'), ticks=ticks(T0), label='LEFT')
    path = write_rawlog(tmp_path / 'a.rawlog', image)
    with open_bag(path) as bag:
        (message,) = bag.messages({'/LEFT/image'})
        with pytest.raises(FormatError, match=r'Images/left_1\.jpg: No such file'):
            message.message  # noqa: B018
        (tmp_path / 'a_Images').mkdir()
    os.mkfifo(tmp_path / 'a_Images' / 'left_1.jpg')  # which nothing waits for
    with open_bag(path) as bag:
        (message,) = bag.messages({'/LEFT/image'})
        with pytest.raises(FormatError, match='no ordinary file'):
            message.message  # noqa: B018
    (tmp_path / 'a_Images' / 'left_1.jpg').unlink()
    (tmp_path / 'a_Images' / 'left_1.jpg').write_bytes(b'jpeg')
    with open_bag(path) as bag:
        (message,) = bag.messages({'/LEFT/image'})
        assert message.message.data == b'jpeg'


RICH = {
    **REQUIRED,
    'reference_frames': ['odom'],
    'cameras': ['front', 'rear'],
    'camera.front.topic': '/front/image',
    'camera.front.rate_hz': 0.0,
    'camera.rear.topic': '/rear/image',
    'camera.rear.rate_hz': 0.0,
    'lidars': ['base', 'top'],
    'lidar.base.topic': '/base/scan',
    'lidar.base.rate_hz': 0.0,
    'lidar.top.topic': '/top/points',
    'lidar.top.rate_hz': 0.0,
    'lidar.top.pointcloud.voxel_leaf_mm': 0,
    'topics': ['battery'],
    'topic.battery.topic': '/battery/percentage/analogue',
    'topic.battery.prefix': 'battery.percentage',
}


def same_poses(one, other):
    np.testing.assert_allclose(one[:, :3], other[:, :3], atol=2e-3)
    cosines = np.abs(np.sum(one[:, 3:] * other[:, 3:], axis=1))
    np.testing.assert_allclose(cosines, 1, atol=1e-5)


def test_a_session_survives_the_way_there_and_back(tmp_path):
    rich_session.record(tmp_path / 'one', convention='unity')
    one = open_session(tmp_path / 'one')
    export_session(one, 'rawlog', tmp_path / 'rich.rawlog')
    config = parse({**RICH, 'pose_convention': 'unity'})
    result = record_bag(tmp_path / 'rich.rawlog', config, tmp_path / 'two', log=Lines())
    assert result.problems == ()
    two = open_session(tmp_path / 'two')
    assert two.comment == one.comment
    for name in ('front', 'rear'):
        assert [f.data for f in two.camera(name)] == [f.data for f in one.camera(name)]
        same_poses(two.camera(name).pose, one.camera(name).pose)
        assert two.camera(name)[0].hfov_degrees == pytest.approx(one.camera(name)[0].hfov_degrees)
        assert two.camera(name)[0].frame_id == f'{name}_optical_frame'
    for a, b in zip(one.lidar('top'), two.lidar('top'), strict=True):
        assert a.data == b.data
        np.testing.assert_allclose(a.scene_points(), b.scene_points(), atol=0.02)
    for a, b in zip(one.lidar('base'), two.lidar('base'), strict=True):
        np.testing.assert_allclose(a.scene_points(), b.scene_points(), atol=0.02)
    names = [event.name for event in one.events]
    assert [event.name for event in two.events] == names
    assert [(r.index, r.state, r.start) for r in two.regions()] == [
        (r.index, r.state, r.start) for r in one.regions()
    ]
    a, b = one.series['battery.percentage'], two.series['battery.percentage']
    assert [value for _, value in a] == [value for _, value in b]
    assert {type(r) for r in two} >= {CameraFrame, LaserScan, PointCloud, Event}


@given(st.tuples(*[st.floats(-1, 1)] * 4).filter(lambda q: np.linalg.norm(q) > 0.1))
def test_quaternions_of_matrices(q):
    unit = np.array(q) / np.linalg.norm(q)
    matrix = matrices(np.zeros((1, 3)), unit[None])[0, :, :3]
    again = np.array(quaternion(matrix))
    assert min(np.abs(again - unit).max(), np.abs(again + unit).max()) < 1e-9
