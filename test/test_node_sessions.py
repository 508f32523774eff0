"""Sessions and events over real services and topics."""

import json
import time

import pytest

pytest.importorskip('rclpy')
pytest.importorskip('cognitive3d_msgs')

from diagnostic_msgs.msg import DiagnosticStatus
from node_rig import LATCHED, NODE, until
from recording_rig import Stored
from std_msgs.msg import String

from cognitive3d_ros.gateway.server import running_gateway

pytestmark = pytest.mark.ros


@pytest.mark.rule(7, 8)
def test_the_services_start_and_end_sessions(start_node, peer):
    node = start_node()
    peer.active()
    first = peer.start_session(
        name='run 1', participant_id='ana', properties_json='{"floor": 3, "wet": true}'
    )
    assert first.success, first.message
    second = peer.start_session()
    assert second.success, second.message
    ended = peer.end_session('lunch')
    assert (ended.success, ended.session_id) == (True, second.session_id)
    nothing = peer.end_session()
    assert not nothing.success
    assert 'no session is active' in nothing.message
    third = peer.start_session()
    assert peer.end_session().session_id == third.session_id
    assert node.stop() == 0
    assert node.reasons() == ['newSession', 'newSession', 'lunch', 'serviceCall']
    properties = node.stored.properties(first.session_id)
    assert properties['c3d.sessionname'] == 'run 1'
    assert properties['c3d.participant.id'] == 'ana'
    assert properties['floor'] == 3
    assert properties['wet'] is True
    events = node.stored.events(first.session_id)
    assert [event['name'] for event in events] == ['c3d.sessionStart', 'c3d.sessionEnd']
    length = events[1]['time'] - events[0]['time']
    assert events[1]['properties']['sessionlength'] == pytest.approx(length, abs=1e-5)


def test_a_refused_start_changes_nothing(start_node, peer):
    node = start_node(autostart=False)
    peer.change('configure')
    inactive = peer.start_session()
    assert not inactive.success
    assert 'not active' in inactive.message
    assert not peer.end_session().success
    peer.change('activate')
    active = peer.start_session().session_id
    for text, key in (
        ('[1]', 'object'),
        ('{"a": [1]}', "'a'"),
        ('{"c3d.version": "2"}', "'c3d.version'"),
        ('{', 'JSON'),
    ):
        refused = peer.start_session(properties_json=text)
        assert not refused.success
        assert key in refused.message
    assert peer.end_session().session_id == active
    assert node.stop() == 0


@pytest.mark.rule(49, 50, 51, 52, 54, 55, 56)
@pytest.mark.parametrize(
    ('environment', 'expected'),
    [
        (
            {'ROS_DISTRO': 'jazzy', 'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST'},
            {'c3d.ros.distro': 'jazzy', 'c3d.ros.discovery_range': 'LOCALHOST'},
        ),
        ({'ROS_DISTRO': 'humble'}, {'c3d.ros.distro': 'humble', 'c3d.ros.discovery_range': None}),
        ({'ROS_DISTRO': ''}, {'c3d.ros.distro': 'unknown'}),
    ],
)
def test_a_session_says_where_it_was_recorded(start_node, environment, expected):
    node = start_node(environment=environment, arguments=('-r', '__ns:=/fleet'))
    node.says('started')
    assert node.stop() == 0
    properties = node.stored.properties()
    assert {key: properties.get(key) for key in expected} == expected
    assert properties['c3d.ros.namespace'] == '/fleet'
    assert properties['c3d.ros.node'] == 'cognitive3d'
    assert properties['c3d.ros.rmw'] == 'rmw_fastrtps_cpp'
    assert properties['c3d.ros.domain_id'].isdigit()
    assert properties['c3d.deviceid'] == 'rover-07'
    assert properties['c3d.device.os'] not in ('', 'unknown')
    assert properties['c3d.app.sdktype'] == 'ros'


def test_events_on_both_topics(start_node, peer):
    node = start_node()
    peer.watch()
    peer.status('recording')
    peer.event('door', '{"open": true, "n": 2, "who": "ana"}')
    peer.event_json('{"name": "lap", "properties": {"n": 1}}')
    peer.event('c3d.mine')
    peer.event('bad', '{"list": [1]}')
    peer.event('', '{}')
    peer.event_json('no json')
    peer.event_json('{"properties": {}}')
    peer.event('last')
    until(lambda: peer.statuses[-1].events == 4, what='four events')
    until(lambda: 'c3d.dropped_events' in values(peer, 'recorder'))
    until(lambda: values(peer, 'recorder')['c3d.dropped_events'] == '5', what='five refused')
    assert node.stop() == 0
    names = [event['name'] for event in node.stored.events()]
    assert sorted(names[1:-1]) == ['door', 'lap', 'last']
    assert node.stored.event('door')['properties'] == {
        'open': True,
        'n': 2,
        'who': 'ana',
        'c3d.position_unknown': True,
    }
    assert "'c3d.mine'" in node.text
    assert "'list'" in node.text


def diagnostic(peer, name):
    """Return the newest diagnostic status of ours with this name."""
    for array in reversed(peer.diagnostics):
        for status in array.status:
            if status.name == f'{NODE}: {name}':
                return status
    return None


def values(peer, name):
    status = diagnostic(peer, name)
    return {} if status is None else {each.key: each.value for each in status.values}


def test_status_and_diagnostics(start_node, peer):
    node = start_node(autostart=False)
    peer.watch()
    assert peer.status('unconfigured').session_id == ''
    peer.change('configure')
    peer.status('inactive')
    peer.change('activate')
    recording = peer.status('recording')
    assert recording.session_id.endswith('_rover-07')
    assert recording.upload_state == 'off'
    later = peer.status('recording')
    assert 0.5 < later.session_seconds - recording.session_seconds < 1.5
    late = []  # a subscriber that comes late gets the last one at once
    kind = type(recording)
    peer.node.create_subscription(kind, f'/{NODE}/status', late.append, LATCHED)
    until(lambda: late, 0.9)
    for name in ('recorder', 'spool', 'uploads'):
        status = until(lambda name=name: diagnostic(peer, name))
        assert status.hardware_id == 'rover-07'
        assert status.level == DiagnosticStatus.OK
    assert values(peer, 'recorder')['session_id'] == recording.session_id
    assert int(values(peer, 'spool')['c3d.spool_parts']) >= 1
    peer.end_session()
    assert peer.status('idle').session_id == ''
    peer.change('deactivate')
    peer.status('inactive')
    assert node.stop() == 0


VARIABLES = {
    'abTests': [],
    'remoteConfigurations': [
        {'remoteVariableName': 'speed', 'type': 'float', 'valueFloat': 1.5},
        {'remoteVariableName': 'mode', 'type': 'string', 'valueString': 'slow'},
    ],
}


@pytest.mark.rule(60)
def test_remote_variables_and_delivery(start_node, peer, tmp_path):
    file = tmp_path / 'variables.json'
    file.write_text(json.dumps(VARIABLES))
    with running_gateway(tmp_path / 'store', remote_variables=file) as gateway:
        node = start_node(gateway=gateway.url, remote_variables=True, **{'upload.enabled': True})
        got = []
        peer.node.create_subscription(
            String, f'/{NODE}/remote_variables', lambda m: got.append(m.data), LATCHED
        )
        until(lambda: got, what='~/remote_variables')
        assert json.loads(got[0]) == {'speed': 1.5, 'mode': 'slow'}
        assert node.stop() == 0
    # What ended with the process was delivered before it went.
    assert list(Stored(node.spool).parts()) == []
    stored = Stored(tmp_path / 'store')
    assert stored.event('c3d.sessionEnd')['properties']['Reason'] == 'shutdown'
    properties = stored.properties()
    assert properties['c3d.remote_variable.speed'] == 1.5
    assert properties['c3d.remote_variable.mode'] == 'slow'


def test_a_gateway_that_does_not_answer_holds_nothing_up(start_node, peer, silent_gateway):
    node = start_node(gateway=silent_gateway, remote_variables=True, **{'upload.enabled': True})
    peer.watch()
    peer.status('recording')
    begin_s = time.monotonic()
    assert node.stop() == 0
    assert time.monotonic() - begin_s < 8.0  # three seconds, and a busy machine
    assert node.reasons() == ['shutdown']
