"""The launch file, against a launch that only remembers what it was asked for."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent
REQUIRED = {'params_file': '/etc/recorder.yaml'}


@pytest.fixture
def launch_file(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The launch file as a module, over the fakes alone."""
    monkeypatch.syspath_prepend(ROOT / 'test/ros_env/fakes')
    for name in [name for name in sys.modules if name.split('.')[0] in ('launch', 'launch_ros')]:
        monkeypatch.delitem(sys.modules, name)
    spec = importlib.util.spec_from_file_location(
        'recorder_launch', ROOT / 'launch/recorder.launch.py'
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def command_line(launch_file: ModuleType, **given: str) -> list[str]:
    """What the recorder would be started with, for arguments given on launch's command line."""
    from launch import LaunchContext

    *arguments, make_nodes = launch_file.generate_launch_description().entities
    defaults = {each.name: each.default_value for each in arguments}
    assert set(given) <= set(defaults)
    context = LaunchContext({**defaults, **given})
    (node,) = make_nodes.function(context)
    assert (node.package, node.executable) == ('cognitive3d_ros', 'recorder')
    return node.command_line(context)


def test_its_arguments_are_the_six_and_only_the_file_is_required(launch_file: ModuleType) -> None:
    *arguments, _ = launch_file.generate_launch_description().entities
    defaults = {each.name: each.default_value for each in arguments}
    assert defaults == {
        'params_file': None,
        'namespace': '',
        'name': 'cognitive3d',
        'autostart': '',
        'use_sim_time': '',
        'log_level': 'info',
    }
    assert all(each.description for each in arguments)


def test_what_is_not_given_is_left_to_the_file(launch_file: ModuleType) -> None:
    assert command_line(launch_file, **REQUIRED) == [
        *('--ros-args', '--log-level', 'info', '-r', '__node:=cognitive3d'),
        *('--params-file', '/etc/recorder.yaml'),
    ]


def test_what_is_given_comes_after_the_file_and_so_wins(launch_file: ModuleType) -> None:
    line = command_line(
        launch_file,
        **REQUIRED,
        namespace='robot7',
        name='recorder',
        autostart='false',
        use_sim_time='true',
        log_level='debug',
    )
    assert line == [
        *('--ros-args', '--log-level', 'debug', '-r', '__node:=recorder', '-r', '__ns:=/robot7'),
        *('--params-file', '/etc/recorder.yaml', '-p', 'autostart:=false'),
        *('-p', 'use_sim_time:=true'),
    ]


def test_it_imports_launch_and_launch_ros_only_and_no_events() -> None:
    imports = [
        line
        for line in (ROOT / 'launch/recorder.launch.py').read_text().splitlines()
        if line.startswith(('import ', 'from '))
    ]
    assert imports
    for line in imports:
        module = line.split()[1]
        assert module.split('.')[0] in ('launch', 'launch_ros')
        assert 'events' not in module


@pytest.mark.ros
def test_the_installed_executable_starts_with_that_command_line(
    launch_file: ModuleType, tmp_path: Path, start_node
) -> None:
    file = tmp_path / 'more.yaml'
    file.write_text('/**: {ros__parameters: {session_name: from the file, autostart: false}}')
    line = command_line(
        launch_file, params_file=str(file), namespace='robot7', name='scribe', autostart='true'
    )
    node = start_node(command=(Path(sys.executable).with_name('recorder'),), arguments=line)
    node.says('started')
    assert node.stop() == 0
    properties = node.stored.properties()
    assert properties['c3d.ros.namespace'] == '/robot7'
    assert properties['c3d.ros.node'] == 'scribe'
    assert properties['c3d.sessionname'] == 'from the file'
