"""What a starved node loses before it takes it, over real DDS: counted, to the last message, everywhere."""

import pytest

pytest.importorskip('rclpy', reason='needs ROS')
pytest.importorskip('cognitive3d_msgs')

from cognitive3d_msgs.msg import Event
from node_rig import MAIN, NODE, until
from rclpy.qos import QoSProfile, ReliabilityPolicy
from std_msgs.msg import Float64

from cognitive3d_ros.session.session import open_session
from cognitive3d_ros.session.verify import Kind, verify

pytestmark = pytest.mark.ros

# The executor is held up in one callback until a file is there.
STARVED = """
import os, sys, time
from cognitive3d_ros.node import main, subscriptions
receive = subscriptions._Feed._receive
def held_up(self, message):
    receive(self, message)
    while message.data == -1.0 and not os.path.exists(os.environ['GO_ON']):
        time.sleep(0.01)
subscriptions._Feed._receive = held_up
{}
sys.exit(main.main())
"""
NO_EVENTS_EXECUTOR = (
    'import rclpy.experimental; del rclpy.experimental.EventsExecutor'  # as on Humble
)
KINDS = {
    'reliable': (ReliabilityPolicy.RELIABLE, STARVED.format('')),
    'best effort': (ReliabilityPolicy.BEST_EFFORT, STARVED.format(NO_EVENTS_EXECUTOR)),
}
BURST = 400


@pytest.mark.parametrize(('reliability', 'script'), KINDS.values(), ids=KINDS)
def test_a_burst_while_the_node_is_starved(start_node, peer, tmp_path, reliability, script):
    go_on = tmp_path / 'go on'
    node = start_node(
        command=('-c', script),
        environment={'GO_ON': str(go_on)},
        topics=['x'],
        **{'topic.x.topic': '/x', 'topic.x.rate_hz': 0.0},
    )
    peer.watch()
    until(lambda: peer.status('recording'))
    publisher = peer.publisher(Float64, '/x', QoSProfile(depth=BURST, reliability=reliability))
    events = peer.publisher(Event, f'/{NODE}/events', BURST)
    peer.event('before')
    until(lambda: b'"before"' in node.journal(), what='the event in the journal')
    publisher.publish(Float64(data=-1.0))
    until(lambda: b'[-1' in node.journal() or b',-1' in node.journal(), what='the first sample')
    for number in range(1, BURST + 1):
        publisher.publish(Float64(data=float(number)))
        events.publish(Event(name='lap', properties_json=f'{{"n": {number}}}'))
    go_on.touch()
    # What comes now shows what is missing before it.
    until(lambda: (peer.event('after'), b'"after"' in node.journal())[1], what='the last event')
    publisher.publish(Float64(data=1000.0))
    until(lambda: b',1000' in node.journal(), what='the last sample')
    seen = len(peer.statuses)
    until(lambda: len(peer.statuses) > seen + 2)
    of_status, found = peer.statuses[-1].last_error, peer.diagnostics[-1].status
    assert node.stop() == 0

    session = open_session(node.spool)
    stored = [value for _, value in session.series['x']]
    laps = sum(event.name == 'lap' for event in session.events)
    lost, lost_events = BURST + 2 - len(stored), BURST - laps
    assert lost >= BURST - 100 - 2
    assert lost_events > 0
    texts = f'topic.x: {lost} messages_lost', f'events: {lost_events} messages_lost'
    (of_recorder,) = [status for status in found if status.name == f'{NODE}: recorder']
    values = {each.key: each.value for each in of_recorder.values}
    verified = ' '.join(each.text for each in verify(session) if each.kind is Kind.LOSS)
    for text in texts:
        assert text in of_status
        assert text in values['c3d.losses']
        assert text in session.properties['c3d.losses']
        assert text in verified
    total = lost + lost_events
    assert values['c3d.messages_lost'] == str(total)
    assert session.series['c3d.messages_lost'][-1][1] == total
    assert f'c3d.messages_lost reached {total}' in verified


def test_nothing_is_missing_where_nothing_is_lost(start_node, peer):
    """Publishers that come, go and come again, late ones too, several on one topic: no gap is imagined."""
    node = start_node(
        command=MAIN, topics=['x'], **{'topic.x.topic': '/x', 'topic.x.rate_hz': 0.0}
    )
    peer.watch()
    until(lambda: peer.status('recording'))
    sent = 0.0

    def publish(*publishers):
        nonlocal sent
        for publisher in publishers:
            sent += 1.0
            publisher.publish(Float64(data=sent))
        until(lambda: f',{sent:.0f}]'.encode() in node.journal(), what=f'sample {sent}')

    late = peer.node.create_publisher(Float64, '/x', 10)
    first = peer.publisher(Float64, '/x')
    for _ in range(20):
        publish(first)
    for _ in range(5):
        publish(late, first)
    peer.node.destroy_publisher(first)
    peer.forget('/x')
    publish(late)
    publish(peer.publisher(Float64, '/x'), late)
    assert node.stop() == 0
    session = open_session(node.spool)
    assert len(list(session.series['x'])) == sent
    assert session.series['c3d.messages_lost'][-1][1] == 0
    assert 'c3d.losses' not in session.properties
