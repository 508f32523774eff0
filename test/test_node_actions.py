"""A real action: server, client and recorder in three processes, driven through all outcomes."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip('rclpy')
pytest.importorskip('c3d_test_msgs')

from c3d_test_msgs.action import Count
from node_rig import until
from rclpy.action import ActionClient

pytestmark = pytest.mark.ros

SERVER = Path(__file__).parent / 'action_server.py'
PREFIX = 'robot.count'


class Client:
    """The client of the action, and the process of its server."""

    def __init__(self, peer):
        self.client = ActionClient(peer.node, Count, '/count')
        self.server = None

    def serve(self):
        self.server = subprocess.Popen(
            [sys.executable, str(SERVER)], stdout=subprocess.PIPE, text=True
        )
        assert self.server.stdout.readline() == 'ready\n'
        assert self.client.wait_for_server(15)

    def stop(self):
        if self.server is not None:
            self.server.terminate()
            self.server.wait()
            self.server.stdout.close()
            self.server = None

    def send(self, seconds, outcome='succeed'):
        """Send a goal; return its handle once it is accepted."""
        goal = Count.Goal(to=3, seconds=float(seconds), outcome=outcome)
        future = self.client.send_goal_async(goal)
        until(future.done, what='the goal to be accepted')
        assert future.result().accepted
        return future.result()

    @staticmethod
    def wait(handle):
        future = handle.get_result_async()
        until(future.done, what='the result')
        return future.result().status

    @staticmethod
    def cancel(handle):
        future = handle.cancel_goal_async()
        until(future.done, what='the cancellation')


@pytest.fixture
def client(peer):
    client = Client(peer)
    yield client
    client.stop()
    client.client.destroy()


def goal_id(handle):
    return bytes(handle.goal_id.uuid).hex()


def told(node, handle):
    """Return (what, seconds) of the events of a goal, in their order."""
    return [
        (
            event['name'].removeprefix(f'{PREFIX}.'),
            event['properties'].get('duration'),
        )
        for event in node.stored.events()
        if event['properties'].get('goal_id') == goal_id(handle)
    ]


def test_every_outcome_once_whenever_the_recorder_starts(start_node, peer, client):
    client.serve()
    over = client.send(0.0)
    assert client.wait(over) == 4
    running = client.send(6.0)

    node = start_node(
        actions=['count'], **{'topic.count.topic': '/count', 'topic.count.prefix': PREFIX}
    )
    peer.active()
    # It is known by the latched status alone that this goal runs.
    until(lambda: goal_id(running).encode() in node.journal(), what='the running goal')
    aborted = client.send(0.2, 'abort')
    assert client.wait(aborted) == 6
    canceled = client.send(30.0)
    client.cancel(canceled)
    assert client.wait(canceled) == 5
    quick = [client.send(0.0) for _ in range(3)]
    for handle in quick:
        assert client.wait(handle) == 4
    assert client.wait(running) == 4

    # A server that ends while a goal runs, and another one in its place.
    lost = client.send(60.0)
    until(lambda: goal_id(lost).encode() in node.journal(), what='the goal that is lost')
    client.stop()
    until(lambda: not client.client.server_is_ready(), what='the server to be gone')
    client.serve()
    after = client.send(0.3)
    assert client.wait(after) == 4
    until(lambda: node.journal().count(goal_id(after).encode()) == 2, what='the last outcome')
    assert node.stop() == 0, node.text

    assert told(node, over) == []
    (start, _), (end, seconds) = told(node, running)
    assert (start, end) == ('started', 'succeeded')
    assert 5.9 <= seconds <= 9
    assert [what for what, _ in told(node, aborted)] == ['started', 'aborted']
    assert 0.1 < told(node, aborted)[1][1] < 3
    assert [what for what, _ in told(node, canceled)] == ['started', 'canceled']
    for handle in (*quick, after):
        assert [what for what, _ in told(node, handle)] == ['started', 'succeeded']
    assert told(node, lost) == [('started', None)]
    events = [event for event in node.stored.events() if event['name'].startswith(f'{PREFIX}.')]
    assert len(events) == 2 * (4 + len(quick)) + 1
    account = node.stored.properties()['c3d.account.action.count']
    assert 'dropped' not in account


def test_goals_that_run_between_sessions(start_node, peer, client):
    client.serve()
    node = start_node(actions=['/count'], auto_start_session=False)
    peer.active()
    client.wait(client.send(0.0))  # nobody records
    running = client.send(4.0)
    peer.start_session()
    ends = client.wait(running)
    assert ends == 4
    until(lambda: node.journal().count(goal_id(running).encode()) == 2, what='the outcome')
    second = peer.start_session()
    assert node.stop() == 0
    names = [e['name'] for e in node.stored.events() if e['name'].startswith('count.')]
    assert names == ['count.started', 'count.succeeded']
    assert len(node.stored.events(second.session_id)) == 2
