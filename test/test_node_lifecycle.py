"""The node's states and parameters, asked for over real services."""

import signal
from itertools import pairwise
from pathlib import Path

import pytest

pytest.importorskip('rclpy')
pytest.importorskip('cognitive3d_msgs')

from node_rig import NODE, set_parameter, until

pytestmark = pytest.mark.ros


def test_every_transition_and_every_invalid_one(start_node, peer):
    node = start_node(autostart=False)
    peer.watch()
    assert peer.state == 'unconfigured'
    for wrong in ('activate', 'deactivate', 'cleanup', 'active_shutdown'):
        assert not peer.change(wrong)
        assert peer.state == 'unconfigured'
    assert peer.change('configure')
    for wrong in ('configure', 'deactivate', 'active_shutdown'):
        assert not peer.change(wrong)
        assert peer.state == 'inactive'
    assert peer.change('activate')
    for wrong in ('configure', 'activate', 'cleanup', 'inactive_shutdown'):
        assert not peer.change(wrong)
        assert peer.state == 'active'
    assert peer.change('deactivate')
    assert peer.change('activate')
    assert peer.change('deactivate')
    assert peer.change('cleanup')
    assert peer.state == 'unconfigured'
    assert peer.change('configure')
    assert peer.change('activate')
    assert peer.change('active_shutdown')
    assert peer.state == 'finalized'
    peer.status('finalized')
    assert not peer.change('configure')
    assert node.stop() == 0
    assert node.reasons() == ['deactivate', 'deactivate', 'shutdown']


@pytest.mark.rule(1, 2, 3)
def test_sessions_in_quick_succession_have_ids_of_their_own(start_node, peer):
    node = start_node(auto_start_session=False)
    peer.active()
    ids = [peer.start_session().session_id for _ in range(3)]
    assert peer.end_session().session_id == ids[-1]
    assert node.stop() == 0
    seconds = [int(each.split('_')[0]) for each in ids]
    assert all(each.endswith('_rover-07') for each in ids)
    assert all(b >= a + 1 for a, b in pairwise(seconds))
    for session_id in ids:
        assert {body['sessionid'] for *_, body in node.stored.parts(session_id)} == {session_id}


def test_all_faults_of_the_parameters_are_told_at_once(start_node):
    node = start_node(
        device_id='rover 07',
        scene_version='three',
        sample_rate_hz=1000.0,
        reference_frame='map',
        sim_time_on_wire=True,
    )
    assert node.wait() == 2
    (line,) = [line for line in node.text.splitlines() if 'configure failed' in line]
    for fault in ('device_id', 'scene_version', 'sample_rate_hz', 'reference_frame', 'sim_time'):
        assert fault in line
    assert 'rover 07' in line
    assert 'reference_frames' in line  # the nearest known name
    assert node.text.count('ERROR') == 1
    assert not node.spool.exists()


def test_a_parameter_that_ros_itself_refuses_ends_it_with_one_line(start_node):
    node = start_node(use_sim_time='perhaps')
    assert node.wait() == 2
    assert node.text.count('\n') == 1
    assert 'use_sim_time' in node.text


def test_a_parameter_file_that_ros_cannot_read_ends_it(start_node):
    node = start_node(session_properties=[1, 2.5])
    assert node.wait() == 2
    assert 'does not take the arguments or the parameter file' in node.text


def test_faulty_parameters_under_a_manager_leave_the_node_unconfigured(start_node, peer):
    node = start_node(autostart=False, sample_rate_hz=0)
    assert not peer.change('configure')
    assert peer.state == 'unconfigured'
    assert set_parameter(peer, 'sample_rate_hz', 20) == ''
    assert peer.change('configure')
    assert set_parameter(peer, 'sample_rate_hz', 30.0) == (
        'sample_rate_hz: takes effect after cleanup'
    )
    assert 'takes effect after cleanup' in set_parameter(peer, 'use_sim_time', True)
    assert peer.change('cleanup')
    assert set_parameter(peer, 'sample_rate_hz', 30.0) == ''
    assert node.stop(signal.SIGINT) == 0


def test_members_named_before_configure_get_their_parameters(start_node, peer):
    node = start_node(autostart=False)
    assert set_parameter(peer, 'topics', ['odom']) == ''
    assert not peer.change('configure')  # topic.odom.topic is required
    assert set_parameter(peer, 'topic.odom.topic', '/odom') == ''
    assert peer.change('configure')
    assert node.stop() == 0


@pytest.mark.parametrize('ignore', [False, True])
def test_unknown_parameters_can_be_ignored(start_node, peer, ignore):
    node = start_node(autostart=False, ignore_unknown_parameters=ignore, robot_name='rover')
    assert peer.change('configure') is ignore
    assert node.stop() == 0


def test_two_nodes_on_one_spool(start_node, peer):
    first = start_node('one')
    peer.active()
    second = start_node('two', **{'spool.dir': str(first.spool)}, arguments=('-r', '__ns:=/two'))
    assert second.wait() == 1
    assert str(first.spool) in second.text
    assert 'in use' in second.text or 'owns' in second.text
    assert second.text.count('ERROR') == 1
    assert peer.state == 'active'
    assert first.stop() == 0
    assert first.reasons() == ['shutdown']


def test_a_spool_that_cannot_be_written(start_node, tmp_path):
    (tmp_path / 'file').write_text('')
    node = start_node(**{'spool.dir': str(tmp_path / 'file' / 'spool')})
    assert node.wait() == 1
    assert str(tmp_path / 'file') in node.text
    assert node.text.count('ERROR') == 1


def test_an_activation_that_fails_ends_an_autostarted_node(start_node):
    node = start_node(
        command=('-c', BROKEN_ACTIVATION),
    )
    assert node.wait() == 1
    assert 'activate failed' in node.text
    assert 'no such luck' in node.text


BROKEN_ACTIVATION = """
import sys
from cognitive3d_ros.node import engine, main
def activate(self):
    raise RuntimeError('no such luck')
engine.Engine.activate = activate
sys.exit(main.main())
"""


def test_without_our_messages_events_json_is_served(start_node, peer):
    node = start_node(
        command=('-c', f'import sys; sys.modules["cognitive3d_msgs"] = None\n{RUN}'),
    )
    peer.active()
    assert len([line for line in node.text.splitlines() if 'cognitive3d_msgs' in line]) == 1
    peer.event_json('{"name": "lap", "properties": {"n": 1}}')
    until(lambda: b'"lap"' in node.journal(), what='the event in the journal')
    assert node.stop() == 0
    assert node.stored.event('lap')['properties']['n'] == 1
    names = {name for name, _ in peer.node.get_service_names_and_types()}
    assert f'/{NODE}/start_session' not in names


RUN = 'from cognitive3d_ros.node.main import main\nsys.exit(main())'


def test_a_fault_in_a_transition_ends_the_session_and_unconfigures(start_node, peer):
    node = start_node(command=('-c', BROKEN_DEACTIVATION))
    peer.active()
    assert not peer.change('deactivate')
    assert peer.state == 'unconfigured'
    assert 'deactivate failed' in node.text
    assert 'no such luck' in node.text
    assert node.reasons() == ['error']
    assert peer.change('configure')
    assert node.stop() == 0


BROKEN_DEACTIVATION = f"""
import sys
from cognitive3d_ros.node import engine
end = engine.Engine.deactivate
def deactivate(self, reason):
    if reason == 'deactivate':
        raise RuntimeError('no such luck')
    end(self, reason)
engine.Engine.deactivate = deactivate
{RUN}
"""


def test_a_hundred_configurations_leave_nothing_behind(start_node, peer):
    node = start_node(autostart=False, auto_start_session=False)
    peer.static_tf(1.0)

    def cycle():
        for transition in ('configure', 'activate', 'deactivate', 'cleanup'):
            assert peer.change(transition)

    def held():
        process = Path('/proc', str(node.process.pid))
        return [len(list((process / kind).iterdir())) for kind in ('task', 'fd')]

    for _ in range(3):
        cycle()
    threads, files = held()
    for _ in range(97):
        cycle()
    now = held()
    assert now[0] == threads
    assert now[1] < files + 20  # what waits for the garbage collector
    assert node.text == ''
    assert node.stop() == 0
