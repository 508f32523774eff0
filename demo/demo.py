"""The demo: a robot, the recorder beside it, a gateway, half a minute, and what was stored.

Everything is real but the robot: DDS on loopback, the lifecycle node, its spool on disk, HTTP. With a bag, the
bag is played in real time instead. Run it with ``make demo`` or ``make demo BAG=path``.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
BIN = Path(sys.executable).parent

ROBOT = """\
cognitive3d:
  ros__parameters:
    device_id: demo-rover
    scene_id: 00000000-0000-4000-8000-000000000001
    scene_version: 1
    gateway: {gateway}
    spool.dir: {spool}
    session_name: demo drive
    session_properties: [site=demo hall, floor=0, indoor=true]
    reference_frames: [map, odom]
    gaze_frame: camera_optical_frame
    robot_dynamic_object: true
    robot_mesh: rover
    topics: [/odom, /imu/data, /battery_state]
    actions: [/dock]
    cameras: [front]
    camera.front.topic: /camera/image_raw
    lidars: [laser]
    lidar.laser.topic: /scan
"""

BAG = """\
cognitive3d:
  ros__parameters:
    device_id: demo-bag
    scene_id: 00000000-0000-4000-8000-000000000001
    scene_version: 1
    gateway: {gateway}
    spool.dir: {spool}
    session_name: {name}
    use_sim_time: true
    sim_time_on_wire: true
    reference_frames: {frames}
    robot_frame: {robot}
"""


def say(text: str) -> None:
    """Print a step of the demo."""
    print(f'\n==> {text}', flush=True)


def stop(process: subprocess.Popen[str], name: str) -> int:
    """End a process as systemd would, and return its exit code."""
    process.send_signal(signal.SIGTERM)
    try:
        return process.wait(15)
    except subprocess.TimeoutExpired:
        process.kill()
        print(f'{name} did not stop and was killed', file=sys.stderr)
        return process.wait()


def bag_facts(path: Path) -> tuple[str | None, str, str]:
    """Return the odometry to derive tf from (if tf is not there), its frame and its child frame."""
    from rosbags.highlevel import AnyReader
    from rosbags.typesys import Stores, get_typestore

    with AnyReader([path], default_typestore=get_typestore(Stores.ROS2_HUMBLE)) as reader:
        if any(connection.topic == '/tf' for connection in reader.connections):
            return None, 'odom', 'base_link'
        odometry = [c for c in reader.connections if c.msgtype == 'nav_msgs/msg/Odometry']
        for connection, _, raw in reader.messages(connections=odometry[:1]):
            message = reader.deserialize(raw, connection.msgtype)
            return connection.topic, message.header.frame_id, message.child_frame_id
    raise SystemExit(f'{path} has neither /tf nor odometry: there is no pose to record')


def main() -> int:
    """Run the demo and return its exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--bag', type=Path, help='play this bag instead of the simulated robot')
    parser.add_argument('--seconds', type=float, default=30.0)
    parser.add_argument('--output', type=Path, default=Path('demo-output'))
    arguments = parser.parse_args()

    output: Path = arguments.output.resolve()
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    store, spool, params = output / 'store', output / 'spool', output / 'params.yaml'
    environment = os.environ | {
        'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST',
        'ROS_DOMAIN_ID': os.environ.get('ROS_DOMAIN_ID', str(random.randrange(1, 100))),
        'ROS_DISTRO': os.environ.get('ROS_DISTRO', 'kilted'),
        'PYTHONUNBUFFERED': '1',
        'C3D_APPLICATION_KEY': 'demo-key',
    }
    running: list[tuple[subprocess.Popen[str], str]] = []

    def start(name: str, *command: object, **options: object) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [str(part) for part in command], env=environment, text=True, **options
        )  # type: ignore[call-overload]
        running.append((process, name))
        return process

    try:
        say('a gateway that stores what the robot sends')
        gateway = start(
            'gateway',
            *(BIN / 'c3d', 'gateway', '--store', store, '--port', '0', '--key', 'demo-key'),
            stdout=subprocess.PIPE,
        )
        assert gateway.stdout is not None
        line = gateway.stdout.readline().strip()
        print(line)
        url = next(word for word in line.split() if word.startswith('http'))

        if arguments.bag:
            odometry, frame, robot = bag_facts(arguments.bag)
            frames = '[map, odom]' if odometry is None else f'[{frame}]'
            params.write_text(
                BAG.format(
                    gateway=url, spool=spool, name=arguments.bag.stem, frames=frames, robot=robot
                )
            )
            say(f'{arguments.bag.name}, played in real time')
            start(
                'player',
                *(sys.executable, HERE / 'play_bag.py', arguments.bag),
                *('--seconds', arguments.seconds + 5, '--wait-for', 'cognitive3d'),
                *(('--odom-tf', odometry) if odometry else ()),
            )
        else:
            params.write_text(ROBOT.format(gateway=url, spool=spool))
            say('a simulated robot: tf, odometry, IMU, battery, camera, laser scanner, an action')
            start('robot', sys.executable, HERE / 'robot.py')

        say(f'the recorder, for {arguments.seconds:g} s: ros2 launch would do the same')
        recorder = start('recorder', BIN / 'recorder', '--ros-args', '--params-file', params)
        deadline = time.monotonic() + arguments.seconds
        while time.monotonic() < deadline:
            if recorder.poll() is not None:
                print(
                    f'the recorder ended early, with exit code {recorder.returncode}',
                    file=sys.stderr,
                )
                return 1
            time.sleep(min(0.5, max(0.0, deadline - time.monotonic())))
        code = stop(recorder, 'recorder')
        if code != 0:
            print(f'the recorder ended with exit code {code}', file=sys.stderr)
            return 1

        say('what the network had no time for: c3d spool drain')
        drain = [BIN / 'c3d', 'spool', 'drain', spool, '--gateway', url, '--key', 'demo-key']
        if subprocess.run([*drain, '--timeout', '20'], env=environment, check=False).returncode:
            return 1

        say('what was stored: c3d show')
        shown = subprocess.run([BIN / 'c3d', 'show', store], env=environment, check=False)
        say('go on from here')
        relative = Path(os.path.relpath(output))
        print(
            f'  {BIN.relative_to(Path.cwd()) if BIN.is_relative_to(Path.cwd()) else BIN}/c3d verify '
            f'{relative}/store       is anything missing?\n'
            f'  {relative}/params.yaml                     what the recorder was told\n'
            f'  {relative}/store/sessions/                 the parts as they were delivered'
        )
        return shown.returncode
    finally:
        for process, name in reversed(running):
            if process.poll() is None:
                stop(process, name)


if __name__ == '__main__':
    sys.exit(main())
