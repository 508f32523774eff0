"""What the documents say is so: their parameters are taken, and suit the recordings that they are for."""

import re
from pathlib import Path

import pytest
from husky import ODOMETRY
from stored import SECOND, whole

from cognitive3d_ros import open_session
from cognitive3d_ros.cli.main import main
from cognitive3d_ros.export import export_session
from cognitive3d_ros.parameters import load_yaml, parse
from cognitive3d_ros.session.records import LaserScan

ROOT = Path(__file__).parent.parent
RECORDING = ROOT / 'docs' / 'recording.md'


def blocks(document, language):
    return re.findall(
        rf'^```{language}\n(.*?)^```', document.read_text(), re.DOTALL | re.MULTILINE
    )


@pytest.mark.parametrize('document', [ROOT / 'README.md', RECORDING], ids=lambda path: path.name)
def test_parameter_files_in_documents_are_taken(document, tmp_path):
    found = blocks(document, 'yaml')
    assert found
    for text in found:
        (tmp_path / 'robot.yaml').write_text(text)
        parse({**load_yaml(tmp_path / 'robot.yaml'), 'spool.dir': str(tmp_path)})


def test_the_bag_of_the_read_me_has_the_odometry_named_there():
    (told,) = re.findall(
        r'husky_outdoor\.bag .*\\\n +--odom-tf (\S+)', (ROOT / 'README.md').read_text()
    )
    assert told == ODOMETRY


def test_scans_of_a_rawlog_are_taken_with_the_documents_parameters(shared_data, tmp_path, capsys):
    (text,) = blocks(RECORDING, 'yaml')
    (tmp_path / 'robot.yaml').write_text(text)
    source = shared_data / 'sena_corridor_current.rawlog'
    spool = tmp_path / 'spool'
    main(['record', str(source), '--params', str(tmp_path / 'robot.yaml'), '--spool', str(spool)])
    session = open_session(spool)
    assert len(session.find(LaserScan)) == 223  # of 224: the last has no odometry behind it
    capsys.readouterr()
    assert main(['verify', str(spool)]) == 3
    assert 'the recorder said: lidar.laser: 1 pose_failures\n' in capsys.readouterr().out


def test_robots_that_are_numbered_are_told_apart_as_the_read_me_has_it(tmp_path, monkeypatch):
    pytest.importorskip('pandas')
    (text,) = (each for each in blocks(ROOT / 'README.md', 'python') if 'partitioning' in each)
    for device in ('001', '1'):
        name = f'{SECOND}_{device}'
        session = open_session(whole(tmp_path / name, name))
        notes = export_session(session, 'parquet', tmp_path / 'fleet').notes
        assert any(f'device_id={device} in the names' in each for each in notes)
    monkeypatch.chdir(tmp_path)
    known = {}
    exec(text, known)  # what people will paste
    poses = known['poses']
    assert sorted(set(poses.device_id)) == ['001', '1']
    assert sorted(set(poses.session_id)) == [f'{SECOND}_001', f'{SECOND}_1']
