"""A session that has something of everything, recorded by the recorder, and what is true of it.

The robot drives along x of the frame odom at 1 m/s and turns left; cameras and lidars are mounted where
:data:`MOUNTS` says. Everything is known in ROS axes, so that whatever is read back can be held to it.
"""

import math

import numpy as np
from picture_files import FILES
from recording_rig import WALL, S
from sensor_rig import SensorRig, camera_info, cloud, jpeg, scan

from cognitive3d_ros.quaternions import multiply, rotate

LEVEL = (0.0, 0.0, 0.0, 1.0)
OPTICAL = (-0.5, 0.5, -0.5, 0.5)
LEFT = (0.0, 0.0, math.sqrt(0.5), math.sqrt(0.5))
MOUNTS = {
    'front_optical_frame': ((0.5, 0.0, 1.0), OPTICAL),
    'rear_optical_frame': ((-0.5, 0.0, 1.0), multiply((0.0, 0.0, 1.0, 0.0), OPTICAL)),
    'lidar': ((0.1, -0.2, 0.8), (math.sin(0.05), 0.0, 0.0, math.cos(0.05))),
    'laser': ((0.3, 0.0, 0.2), LEFT),
}
SECONDS = 6
RANGES = [1.0, 2.5, math.inf, math.nan, 0.0, 40.0, 3.0]
POINTS = np.array([(1.0, 2.0, 0.5), (-3.25, 0.125, -0.5), (10.0, -4.0, 1.5)], np.float32)
START = WALL / S


def robot_at(seconds):
    """Where the robot is, this long after the session's start: position and rotation in odom."""
    angle = 0.3 * seconds
    return (seconds, 0.1 * seconds**2, 0.0), (0.0, 0.0, math.sin(angle / 2), math.cos(angle / 2))


def sensor_at(frame, seconds):
    """Where a sensor is, this long after the start: position and rotation in odom."""
    p, r = robot_at(seconds)
    mount_p, mount_r = MOUNTS[frame]
    x, y, z = (a + b for a, b in zip(p, rotate(r, mount_p), strict=True))
    return (x, y, z), multiply(r, mount_r)


def record(root, *, convention='gltf_authored', end=True, **params):
    """Record the session into a spool at ``root``; return the rig, closed if the session was ended."""
    rig = SensorRig(
        root,
        pose_convention=convention,
        reference_frames=['odom'],
        robot_dynamic_object=True,
        robot_mesh='rover',
        robot_display_name='Rover 07',
        session_comment='wet floor\n[run]\nlap = 3',
        cameras=['front', 'rear'],
        lidars=['top', 'base'],
        topics=['battery'],
        **{
            'camera.front.topic': '/front/image_raw',
            'camera.front.rate_hz': 0.0,
            'camera.rear.topic': '/rear/image_raw',
            'camera.rear.rate_hz': 0.0,
            'lidar.top.topic': '/points',
            'lidar.top.rate_hz': 0.0,
            'lidar.top.pointcloud.voxel_leaf_mm': 0,
            'lidar.base.topic': '/scan',
            'lidar.base.rate_hz': 0.0,
            'topic.battery.topic': '/battery',
            'topic.battery.rate_hz': 0.0,
            **params,
        },
    )
    for frame, (p, r) in MOUNTS.items():
        assert rig.tf.set_transform('base_link', frame, 0, p, r, static=True)

    def drive(seconds):
        p, r = robot_at(seconds)
        rig.robot(*p, rotation=r, frame='odom', at=WALL + round(seconds * S))

    recorder = rig.recorder
    drive(-1.0)
    drive(0.0)
    recorder.start_session('rich', 'operator-3', '{"payload_kg": 3.5, "indoor": true}')
    rig.send('camera.front.info', camera_info(focal=40.0, width=48, height=32))
    for tick in range(1, SECONDS * 20 + 1):
        rig.clocks.advance(S // 20)
        drive(tick / 20)
        recorder.poll()
        if tick % 20 == 10:
            stamp_ns = rig.clocks.ros_ns - S // 40  # between two transforms
            rig.send('camera.front', jpeg(stamp_ns=stamp_ns))
            rig.send('camera.rear', jpeg('rear_optical_frame', stamp_ns=stamp_ns))
            rig.send('lidar.top', cloud(POINTS, stamp_ns=stamp_ns))
            rig.send('lidar.base', scan(RANGES, stamp_ns=stamp_ns))
            rig.settle()
        for name, value in (('battery.percentage', 0.9 - tick / 1000), ('line.0', tick % 2)):
            series(rig, name, value)
        if tick == 30:
            recorder.event('dock.reached', {'dock': 'A', 'ok': True, 'depth_m': 0.25})
            recorder.annotation('camera/front', 'comment', 'lens: dirty, "very"')
            recorder.annotation('', 'log_marker_start', '<1>;first lap')
        if tick == 60:
            recorder.annotation('', 'log_marker_start', '<2>;second')
            recorder.annotation('', 'log_marker_stop', '<1>;done')
        if tick == 90:
            recorder.annotation('', 'log_marker_abort_all', 'rain')
            recorder.annotation('', 'log_marker_event', 'thunder')
            recorder.annotation('', 'log_marker_start', 'no index')
    if end:
        recorder.end_session('test')
        rig.close()
    else:
        recorder.flush()
    return rig


def series(rig, name, value):
    """Record a sample of a series, as an input would."""
    source = 'topic.battery'
    arrival = rig.recorder.due(source)
    rig.recorder.record(
        source, arrival, lambda session: session.samples(source, [(name, float(value))], arrival)
    )


PICTURE = FILES['JPEG']
