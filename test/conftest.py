"""What all tests share: DDS on loopback alone, the numbered rules, the recordings beside the project."""

from __future__ import annotations

import fcntl
import os
import random
import signal
import socket
import tempfile
from pathlib import Path
from typing import IO

import pytest
from hypothesis import settings
from rules import RULES

ROOT = Path(__file__).parent.parent


def _own_domain() -> tuple[IO[str], str]:
    """Return a domain that no other run of these tests on this machine has, and the lock that holds it."""
    for number in random.sample(range(1, 102), 101):
        lock = (Path(tempfile.gettempdir()) / f'c3d-test-domain-{number}.lock').open('w')
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            continue
        return lock, str(number)
    raise RuntimeError('101 runs of these tests are under way: there is no domain left')


# Before anything starts rclpy: no packet leaves this machine, and no other run is heard. The processes that
# tests start inherit both. Domains go to 101; 0 is everyone's.
os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'
_DOMAIN, os.environ['ROS_DOMAIN_ID'] = _own_domain()

# Messages refuse a value of the wrong type, as on Humble. Later distributions check nothing unless told, and
# send an int in a float64 as some other number.
os.environ['ROS_PYTHON_CHECK_FIELDS'] = '1'

# A shell that starts these tests in the background has them ignore Ctrl-C, and so would all that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A busy machine is no fault of the code under test.
settings.register_profile('shared machine', deadline=None, derandomize='CI' in os.environ)
settings.load_profile('shared machine')


def pytest_unconfigure() -> None:
    """Give the domain back."""
    _DOMAIN.close()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse rules that do not exist: they would be held by nobody."""
    for item in items:
        for marker in item.iter_markers('rule'):
            if unknown := [number for number in marker.args if number not in RULES]:
                raise pytest.UsageError(f'{item.nodeid}: no such rule: {unknown}')
        if item.get_closest_marker('ros'):
            # These wait for other processes, which a busy machine may hold up for longer than any
            # sensible limit. What fails twice is a fault.
            item.add_marker(pytest.mark.flaky(reruns=1))


@pytest.fixture(scope='session')
def root() -> Path:
    """The root of the project."""
    return ROOT


@pytest.fixture(scope='session')
def shared_data() -> Path:
    """The folder of real recordings beside the project; skips where it is not there."""
    folder = ROOT.parent / 'shared' / 'data'
    if not folder.is_dir():
        pytest.skip(f'no recordings in {folder}')
    return folder


@pytest.fixture
def peer():
    """The robot's side of the ROS graph."""
    node_rig = pytest.importorskip('node_rig', reason='needs ROS', exc_type=ImportError)
    peer = node_rig.Peer()
    yield peer
    peer.close()


@pytest.fixture
def start_node(tmp_path):
    """Starts recorder nodes, which end with the test: ``start_node('folder', device_id='rover')``."""
    node_rig = pytest.importorskip('node_rig', reason='needs ROS', exc_type=ImportError)
    nodes = []

    def start(folder='node', **settings):
        nodes.append(node_rig.NodeProcess(tmp_path / folder, **settings))
        return nodes[-1]

    yield start
    for node in nodes:
        node.close()
        print(f'--- {node.log}\n{node.text}')  # shown where the test failed


@pytest.fixture
def silent_gateway():
    """The URL of a server that takes connections and never answers."""
    with socket.create_server(('127.0.0.1', 0)) as server:
        yield f'http://127.0.0.1:{server.getsockname()[1]}'
