"""A minute of the Husky recording, played by one process and recorded by live nodes in others.

The right answer is the recording's odometry, read by rosbags, interpolated at each sample's time and converted
by formulas written here by hand. What ties wire time to the recording's time are the player's "sync"
events, stamped with the moment of the recording that is being played.
"""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS')

from husky import Odometry, hand_converted
from node_rig import until
from recording_rig import Stored

from cognitive3d_ros.gateway.server import running_gateway

pytestmark = [pytest.mark.ros, pytest.mark.slow, pytest.mark.alone]

ROOT = Path(__file__).parent.parent
ODOMETRY = '/husky_velocity_controller/odom'
CLOCK_HZ = 100.0
SECONDS = 60.0


def play(bag, nodes, *options):
    """Play the bag to the nodes, and return when it is over."""
    command = [sys.executable, ROOT / 'demo' / 'play_bag.py', bag, '--odom-tf', ODOMETRY]
    command += ['--clock-hz', CLOCK_HZ, '--sync', '--wait-for', *nodes, *options]
    done = subprocess.run(
        [str(word) for word in command], check=True, capture_output=True, text=True
    )
    assert done.stderr == ''


def record(start_node, gateway, bag, variants, *options):
    """Record the bag with a node for each variant of parameters; return what the gateway has of each."""
    running = {}
    for name, params in variants.items():
        running[name] = start_node(
            name,
            arguments=('-r', f'__node:={name}'),
            device_id=name,
            gateway=gateway.url,
            reference_frames=['odom'],
            use_sim_time=True,
            **{'upload.enabled': True},
            **params,
        )
    play(bag, list(variants), *options)
    for node in running.values():
        assert node.stop() == 0, node.text
    stored = {}
    for name, node in running.items():
        until(lambda node=node: not list(node.spool.glob('sessions/*/*.c3d')), 20)
        folders = [
            p for p in (gateway.store / 'sessions').iterdir() if p.name.endswith(f'_{name}')
        ]
        assert len(folders) == 1
        stored[name] = (Stored(gateway.store), folders[0].name)
    return stored


def whole(stored, session_id):
    """Assert that a session is whole: parts without a gap, a start, an end."""
    parts = stored.parts(session_id)
    for stream in {part[0] for part in parts}:
        numbers = [number for kind, _, number, _ in parts if kind == stream]
        assert numbers == list(range(1, len(numbers) + 1)), stream
    events = stored.events(session_id)
    assert events[0]['name'] == 'c3d.sessionStart'
    assert events[-1]['name'] == 'c3d.sessionEnd'
    assert events[-1]['properties']['Reason'] == 'shutdown'


@pytest.fixture
def gateway(tmp_path):
    with running_gateway(tmp_path / 'store') as server:
        yield SimpleNamespace(url=server.url, store=tmp_path / 'store')


@pytest.mark.rule(19, 24, 27)
def test_a_minute_of_the_husky_live(start_node, gateway, shared_data):
    bag = shared_data / 'husky_outdoor.bag'
    conventions = ('gltf_authored', 'unity', 'rep103')
    variants = {f'wire_{c}': {'sim_time_on_wire': True, 'pose_convention': c} for c in conventions}
    variants['wall'] = {'pose_convention': 'rep103'}
    found = record(start_node, gateway, bag, variants, '--seconds', SECONDS)
    odometry = Odometry(bag)
    for name, (stored, session_id) in found.items():
        whole(stored, session_id)
        poses = stored.poses(session_id)
        assert len(poses) >= 10 * (SECONDS - 2), name
        times = np.array([pose['time'] for pose in poses])
        positions = np.array([pose['p'] for pose in poses])
        rotations = np.array([pose['r'] for pose in poses])
        assert np.all(np.diff(times) > 0)
        sync = [e for e in stored.events(session_id) if e['name'] == 'sync']
        assert len(sync) > 500
        # In which order the session saw them is of no matter: each is "stamp played - wire time".
        offsets = odometry.sync_offsets(sync)
        if name == 'wall':
            # What the node sees as the ROS time is the last /clock: late by up to its period. After the
            # player's end it stands still.
            played = times + np.max(offsets)
            inside = played < np.max([event['properties']['played'] for event in sync])
            error = np.minimum(
                odometry.errors(played, positions),
                odometry.errors(played - 1 / CLOCK_HZ, positions),
            )[inside]
            allowed = (odometry.speeds(played) / CLOCK_HZ + 2e-5)[inside]
            print(f'wall: {np.median(error):.2e} m, {np.mean(error <= allowed):.1%} within')
            # A busy machine delivers a few of the clock's messages late.
            assert np.mean(error <= allowed) > 0.95
        else:
            ros_times = times + np.median(offsets)
            convention = name.removeprefix('wire_')
            wanted_p, wanted_r = hand_converted(convention, *odometry.at(ros_times))
            inside = odometry.covers(ros_times)
            assert np.count_nonzero(inside) >= 10 * (SECONDS - 2)
            error_p = np.abs(positions - wanted_p)[inside].max()
            error_r = np.minimum(
                np.abs(rotations - wanted_r).max(axis=1), np.abs(rotations + wanted_r).max(axis=1)
            )[inside].max()
            print(f'{name}: {error_p:.2e} m, {error_r:.2e}, offsets {np.ptp(offsets):.2e}')
            assert error_p <= 2e-5
            assert error_r <= 2e-5


@pytest.mark.rule(18, 19)
def test_a_clock_near_zero_and_one_that_jumps_back(start_node, gateway, shared_data):
    variants = {'near_zero_wire': {'sim_time_on_wire': True}, 'near_zero_wall': {}}
    found = record(
        start_node,
        gateway,
        shared_data / 'husky_outdoor.bag',
        variants,
        *('--clock-zero', '--seconds', 20, '--jump-after', 10),
    )
    for name, (stored, session_id) in found.items():
        whole(stored, session_id)
        times = np.array([pose['time'] for pose in stored.poses(session_id)])
        assert len(times) >= 170, name
        assert np.all(np.diff(times) > 0), name
        assert times[-1] - times[0] > 17, name
        assert times[0] > 1_700_000_000, name  # at its real date, not in 1970
        resets = [value for _, value in stored.series('c3d.clock_resets', session_id)]
        assert resets[-1] == 1, name
        steps = [e for e in stored.events(session_id) if e['name'] == 'c3d.clock_step']
        assert len(steps) == (1 if name == 'near_zero_wire' else 0), name
