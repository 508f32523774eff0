"""Two 720p cameras, a lidar and a laser scanner recorded by a real node over real DDS, and delivered."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import cv2
import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS')

from node_rig import until
from recording_rig import Stored
from sensor_robot import RATES_HZ, picture, x_at

from cognitive3d_ros.gateway.server import running_gateway
from cognitive3d_ros.recording.accounts import adds_up

pytestmark = [pytest.mark.ros, pytest.mark.slow, pytest.mark.alone]

HERE = Path(__file__).parent
SECONDS = 20.0
INPUTS = {
    'front': 'camera.front',
    'rear': 'camera.rear',
    'cloud': 'lidar.cloud',
    'scan': 'lidar.scan',
}
RECORDED_HZ = {'front': 5.0, 'rear': 5.0, 'cloud': 2.0, 'scan': 0.0}


@pytest.fixture
def gateway(tmp_path):
    with running_gateway(tmp_path / 'store') as server:
        yield SimpleNamespace(url=server.url, store=tmp_path / 'store')


def drive(seconds):
    """Let the robot publish; return how many messages of each."""
    # Of big messages the shared memory of the publisher must hold more than one.
    profile = str(HERE / 'ros_env' / 'fastdds_shm.xml')
    environment = {
        **os.environ,
        'FASTDDS_DEFAULT_PROFILES_FILE': profile,
        'FASTRTPS_DEFAULT_PROFILES_FILE': profile,
    }
    done = subprocess.run(
        [sys.executable, str(HERE / 'sensor_robot.py'), str(seconds)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    return json.loads(done.stdout)


@pytest.mark.rule(44, 71, 72, 73, 74, 75, 76, 77, 78)
def test_cameras_and_lidars_live(start_node, gateway, peer):
    peer.watch()
    node = start_node(
        gateway=gateway.url,
        reference_frames=['map'],
        **{
            'upload.enabled': True,
            'cameras': ['front', 'rear'],
            'lidars': ['cloud', 'scan'],
            'lidar.cloud.pointcloud.intensity': 'uint8',
            'lidar.cloud.topic': '/points',
            'lidar.scan.topic': '/scan',
        },
        **{f'camera.{name}.topic': f'/{name}/image_raw' for name in ('front', 'rear')},
        **{f'{INPUTS[name]}.rate_hz': rate for name, rate in RECORDED_HZ.items()},
    )
    sent = drive(SECONDS)
    statuses = {
        status.name.partition(': ')[2]: status for status in until(peer.diagnostics.pop).status
    }
    for name, source in INPUTS.items():
        status = statuses[source.replace('.', ' ')]
        values = {item.key: int(item.value) for item in status.values if item.value.isdigit()}
        assert values[f'c3d.{source}.received'] <= sent[name]
        assert f'of {values[f"c3d.{source}.received"]} received' in status.message
        assert status.hardware_id == 'rover-07'
    assert node.stop() == 0, node.text
    until(lambda: not list(node.spool.glob('sessions/*/*.c3d')), 30, what='delivery')
    stored = Stored(gateway.store)
    (session,) = (gateway.store / 'sessions').iterdir()
    properties = stored.properties()

    # What came in is stored or counted.
    for name, source in INPUTS.items():
        account = properties[f'c3d.account.{source}']
        print(f'{source}: {sent[name]} sent; {account}')
        assert adds_up(account), account
        received = int(account.split()[0])
        # On a busy machine DDS itself loses some of what is sent best effort.
        assert 0.5 * sent[name] <= received <= sent[name], node.text
        records = stored.frames(name) if source.startswith('camera') else stored.scans(name)
        (of_stored,) = re.findall(r'(\d+) stored', account)
        assert len(records) == int(of_stored)
        assert [record.seq for record in records] == list(range(len(records)))
        word = 'frames' if source.startswith('camera') else 'scans'
        assert stored.series(f'c3d.{source}.{word}')[-1][1] == len(records)
        assert stored.series(f'c3d.{source}.received')[-1][1] == received
        rate_hz = RECORDED_HZ[name] or RATES_HZ[name]
        assert len(records) <= rate_hz * SECONDS + 2
        assert 'decode_failures' not in account
        # The pose is that of the stamp, to a few milliseconds of the robot's way.
        for record in records:
            assert -record.pose.px == pytest.approx(x_at(record.time_ms / 1000), rel=0, abs=0.006)

    for stream in ('camera', 'lidar'):
        numbers = [body.part for body in stored.bodies(stream)]
        assert numbers == list(range(1, len(numbers) + 1))
        assert len(numbers) >= SECONDS / 5
        assert {body.session_id for body in stored.bodies(stream)} == {session.name}
    for name in ('front', 'rear'):
        frame = stored.frames(name)[-1]
        pixels = cv2.imdecode(np.frombuffer(frame.data, np.uint8), cv2.IMREAD_COLOR)
        assert np.abs(pixels.astype(int) - picture()).mean() < 6
        assert frame.hfov_degrees == pytest.approx(90.0, abs=1e-4)
        assert properties[f'c3d.ros.camera.{name}.publisher'] == '/robot'
        assert properties[f'c3d.ros.camera.{name}.convention'] == 'optical_forward_z'
    cloud, scan = stored.scans('cloud')[-1], stored.scans('scan')[-1]
    assert 1000 < cloud.scan.point_count < 65_536
    assert cloud.scan.intensity == 'uint8'
    assert scan.scan.ranges.tobytes() == np.linspace(1, 20, 720, dtype='<f4').tobytes()
