"""Paths as TUM and KITTI: read back by evo, and by hand."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import rich_session
from husky import ODOMETRY, Odometry
from recording_rig import REQUIRED, Lines
from stored import SESSION, whole

from cognitive3d_ros import open_session
from cognitive3d_ros.bags.door import record_bag
from cognitive3d_ros.conventions import CONVENTIONS
from cognitive3d_ros.errors import ExportError, ReadError
from cognitive3d_ros.export import export_session
from cognitive3d_ros.parameters import parse

EVO = """\
import sys
import numpy as np
from evo.tools import file_interface
tum = file_interface.read_tum_trajectory_file(sys.argv[1])
assert tum.check()[0], tum.check()
kitti = file_interface.read_kitti_poses_file(sys.argv[2])
assert kitti.check()[0], kitti.check()
poses = np.array(kitti.poses_se3)
np.savez(sys.argv[3], t=tum.timestamps, p=tum.positions_xyz, q=tum.orientations_quat_wxyz, k=poses)
"""


@pytest.fixture(scope='session')
def evo(root):
    """The Python of an environment of evo's own; it needs half of what science has on the shelves."""
    folder = root / '.cache' / 'evo-1.38.1'
    python = folder / 'bin' / 'python'
    if not (folder / 'ready').exists():
        made = subprocess.run([sys.executable, '-m', 'venv', folder], capture_output=True)
        command = [python, '-m', 'pip', 'install', '-q', 'evo==1.38.1']
        done = made if made.returncode else subprocess.run(command, capture_output=True)
        if done.returncode:
            pytest.skip(f'evo cannot be installed: {done.stderr.decode().strip()[-200:]}')
        (folder / 'ready').touch()
    return python


def read_with_evo(evo, tum, kitti, work: Path):
    (work / 'read.py').write_text(EVO)
    environment = {k: v for k, v in os.environ.items() if not k.startswith('PYTHON')}
    environment |= {'MPLBACKEND': 'agg', 'HOME': str(work)}
    command = [evo, work / 'read.py', tum, kitti, work / 'read.npz']
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return np.load(work / 'read.npz')


def read_tum(path):
    table = np.loadtxt(path)
    return table[:, 0], table[:, 1:4], table[:, 4:]


@pytest.mark.slow
@pytest.mark.timeout(900)  # the environment of evo is made first
@pytest.mark.parametrize('convention', ['gltf_authored', 'unity'])
def test_evo_reads_the_path_of_the_husky(shared_data, tmp_path, evo, convention):
    bag = shared_data / 'husky_outdoor.bag'
    config = parse({**REQUIRED, 'reference_frames': ['odom'], 'pose_convention': convention})
    record_bag(bag, config, tmp_path / 'spool', odom_tf=ODOMETRY, log=Lines())
    session = open_session(tmp_path / 'spool')
    for to in ('tum', 'kitti'):
        made = export_session(session, to, tmp_path / f'husky.{to}')
        assert made.records == 3953
    read = read_with_evo(evo, tmp_path / 'husky.tum', tmp_path / 'husky.kitti', tmp_path)
    odometry = Odometry(bag)
    covered = odometry.covers(read['t'])
    assert covered.sum() >= 3948
    p, r = odometry.at(read['t'][covered])
    assert np.linalg.norm(read['p'][covered] - p, axis=1).max() < 2e-5
    q = read['q'][covered][:, [1, 2, 3, 0]]
    turned = 2 * np.arccos(np.clip(np.abs(np.sum(q * r, axis=1)), 0, 1))
    assert np.degrees(turned).max() < 0.01
    np.testing.assert_allclose(read['k'][:, :3, 3], read['p'], atol=1e-6)
    forward = np.stack(
        [1 - 2 * (q[:, 1] ** 2 + q[:, 2] ** 2), 2 * (q[:, 0] * q[:, 1] + q[:, 2] * q[:, 3])], 1
    )
    np.testing.assert_allclose(read['k'][covered][:, :2, 0], forward, atol=1e-6)


@pytest.mark.parametrize('convention', CONVENTIONS)
def test_the_path_is_where_the_robot_was(tmp_path, convention):
    rich_session.record(tmp_path / 'spool', convention=convention)
    session = open_session(tmp_path / 'spool')
    made = export_session(session, 'tum', tmp_path / 'path.tum')
    assert made.records == len(session.poses) == 61
    (note,) = made.notes
    assert note == (
        'not in it: 3 events, 7 annotations, 2 series, 44 health series, 61 snapshots, '
        f'{len(session.properties)} session properties, frames of all cameras (front, rear), '
        'scans and clouds of all lidars (top, base)'
    )
    times, p, r = read_tum(tmp_path / 'path.tum')
    np.testing.assert_array_equal(times, session.poses.time)
    for time, position, rotation in zip(times, p, r, strict=True):
        expected_p, expected_r = rich_session.robot_at(time - rich_session.START)
        np.testing.assert_allclose(position, expected_p, atol=2e-5)
        sign = np.sign(np.dot(rotation, expected_r))
        np.testing.assert_allclose(rotation * sign, expected_r, atol=2e-5)
    made = export_session(session, 'kitti', tmp_path / 'path.kitti')
    assert any('no times' in note for note in made.notes)
    matrices = np.loadtxt(tmp_path / 'path.kitti').reshape(-1, 3, 4)
    np.testing.assert_allclose(matrices[:, :, 3], p, atol=1e-6)
    np.testing.assert_allclose(np.linalg.det(matrices[:, :, :3]), 1, atol=1e-6)


def test_a_session_that_does_not_say_its_axes_has_no_path(tmp_path):
    folder = whole(tmp_path / SESSION)
    for part in folder.glob('gaze.*.properties.c3d'):
        part.unlink()
    with pytest.raises(ReadError, match='is missing: the pose convention is not known'):
        export_session(open_session(folder), 'tum', tmp_path / 'path.tum')
    assert [p.name for p in tmp_path.iterdir()] == [SESSION]


def test_a_format_that_there_is_not(tmp_path):
    folder = whole(tmp_path / SESSION)
    with pytest.raises(ExportError, match="'docx' is no format: known are mcap, rosbag2"):
        export_session(open_session(folder), 'docx', tmp_path / 'path')
