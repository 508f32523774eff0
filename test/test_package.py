"""What is shipped: package.xml, the build with colcon, and imports that need no ROS."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import cognitive3d_ros

ROOT = Path(__file__).parent.parent
PACKAGES = [ROOT, ROOT / 'interfaces/cognitive3d_msgs']


def sources() -> set[str]:
    """The files of the package, relative to its folder."""
    folder = ROOT / 'cognitive3d_ros'
    wanted = ('.py', '.capnp', '.css', '.js')
    return {
        str(path.relative_to(folder))
        for path in folder.rglob('*')
        if path.suffix in wanted or path.name == 'py.typed'
    }


@pytest.mark.parametrize('folder', PACKAGES, ids=lambda path: path.name)
def test_package_xml_is_valid_and_without_warnings(folder: Path) -> None:
    package = pytest.importorskip('catkin_pkg.package')
    warnings: list[str] = []
    parsed = package.parse_package(str(folder), warnings=warnings)
    parsed.validate(warnings=warnings)
    assert warnings == []
    assert parsed.licenses == ['Apache-2.0']
    assert (ROOT / 'LICENSE').read_text().lstrip().startswith('Apache License')


def test_one_version_everywhere() -> None:
    version = cognitive3d_ros.__version__
    for folder in PACKAGES:
        assert f'<version>{version}</version>' in (folder / 'package.xml').read_text()
    assert f"version='{version}'" in (ROOT / 'setup.py').read_text()
    assert tuple(map(int, version.split('.'))) >= (
        1,
        0,
        0,
    )  # anything lower is read as an old session


def test_package_xml_names_what_the_node_imports_of_ros() -> None:
    text = (ROOT / 'package.xml').read_text()
    listed = set(re.findall(r'<exec_depend>(\w+)</exec_depend>', text))
    imported = {
        name
        for path in (ROOT / 'cognitive3d_ros').rglob('*.py')
        for name in re.findall(r'^\s*(?:from|import) (\w+)', path.read_text(), re.MULTILINE)
    }
    ros = {
        name
        for name in imported
        if re.fullmatch(r'\w+_msgs(_py)?|\w+_interfaces|rclpy|tf2_ros', name)
    }
    assert 'rclpy' in ros
    assert ros <= listed


def test_everything_but_the_node_imports_without_ros() -> None:
    # A name that sys.modules holds as None cannot be imported.
    script = """
import importlib, pkgutil, sys
for name in ('rclpy', 'tf2_ros', 'tf2_msgs', 'std_msgs', 'geometry_msgs', 'sensor_msgs', 'cognitive3d_msgs'):
    sys.modules[name] = None
import cognitive3d_ros
for module in pkgutil.walk_packages(cognitive3d_ros.__path__, 'cognitive3d_ros.'):
    if module.name.split('.')[1] != 'node':
        importlib.import_module(module.name)
        print(module.name)
"""
    done = subprocess.run(
        [sys.executable, '-c', script], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert 'cognitive3d_ros.recording.recorder' in done.stdout.splitlines()


@pytest.mark.slow
@pytest.mark.ros
def test_colcon_builds_both_packages(tmp_path: Path) -> None:
    colcon = Path(sys.executable).with_name('colcon')
    if not colcon.exists():
        pytest.skip('no colcon in this environment')
    environment = {
        **os.environ,
        'AMENT_PREFIX_PATH': sys.prefix,
        'CMAKE_PREFIX_PATH': sys.prefix,
        'COLCON_LOG_PATH': str(tmp_path / 'log'),
        'PATH': f'{Path(sys.executable).parent}{os.pathsep}{os.environ["PATH"]}',
    }
    build = [str(colcon), 'build', '--base-paths', '.', 'interfaces']
    build += ['--build-base', str(tmp_path / 'build'), '--install-base', str(tmp_path / 'install')]
    build += ['--cmake-args', f'-DPython3_EXECUTABLE={sys.executable}', '-DBUILD_TESTING=OFF']
    done = subprocess.run(
        build, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for package in ('cognitive3d_msgs', 'cognitive3d_ros'):
        assert f'Finished <<< {package} ' in done.stdout

    install = tmp_path / 'install/cognitive3d_ros'
    for executable in ('c3d', 'recorder'):
        assert os.access(install / 'lib/cognitive3d_ros' / executable, os.X_OK)
    for shared in ('package.xml', 'launch/recorder.launch.py', 'config/cognitive3d.service'):
        assert (install / 'share/cognitive3d_ros' / shared).is_file()
    assert (install / 'share/ament_index/resource_index/packages/cognitive3d_ros').is_file()
    (package,) = install.glob('lib/python3*/site-packages/cognitive3d_ros')
    assert sources() == {
        str(p.relative_to(package))
        for p in package.rglob('*')
        if p.is_file() and p.suffix != '.pyc'
    }

    ready = f'source {tmp_path}/install/setup.bash; cd {tmp_path}; '
    ready += 'install/cognitive3d_ros/lib/cognitive3d_ros/c3d --version; '
    ready += f'{sys.executable} -c "import cognitive3d_msgs.srv as s; print(s.__file__)"'
    said = subprocess.run(
        ['bash', '-c', ready], env=environment, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert said[0] == f'c3d {cognitive3d_ros.__version__}'
    assert said[1].startswith(str(tmp_path / 'install/cognitive3d_msgs'))
