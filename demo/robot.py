"""A simulated robot for the demo: it drives a figure of eight and publishes what a real one would.

tf (map -> odom -> base_link and the sensors' frames), odometry, IMU, battery, a camera, a laser scanner, the
status of an action, and now and then an event for the recorder. Runs until it is interrupted.
"""

from __future__ import annotations

import argparse
import array
import json
import math
import random
import signal
import threading
import time

import numpy as np
import rclpy
from action_msgs.msg import GoalStatus, GoalStatusArray
from geometry_msgs.msg import TransformStamped
from nav_msgs.msg import Odometry
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, qos_profile_sensor_data
from rclpy.signals import SignalHandlerOptions
from sensor_msgs.msg import BatteryState, CameraInfo, Image, Imu, LaserScan
from std_msgs.msg import String
from tf2_ros import StaticTransformBroadcaster, TransformBroadcaster

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
WIDTH, HEIGHT, FOCAL = 320, 240, 300.0
LAP_S = 24.0


def pose_at(t: float) -> tuple[float, float, float]:
    """Return x, y in metres and the heading in radians, t seconds into a figure of eight."""
    phase = 2 * math.pi * t / LAP_S
    x, y = 4 * math.sin(phase), 2 * math.sin(2 * phase)
    return x, y, math.atan2(4 * math.cos(2 * phase), 4 * math.cos(phase))


def transform(parent: str, child: str, stamp, x: float, y: float, z: float, q) -> TransformStamped:
    """Return a transform; q is x y z w."""
    message = TransformStamped()
    message.header.frame_id, message.header.stamp = parent, stamp
    message.child_frame_id = child
    translation, rotation = message.transform.translation, message.transform.rotation
    translation.x, translation.y, translation.z = x, y, z
    rotation.x, rotation.y, rotation.z, rotation.w = q
    return message


class Robot(Node):
    """The robot; see the module."""

    def __init__(self, recorder: str) -> None:
        super().__init__('demo_robot')
        self.started = time.monotonic()
        self.random = random.Random(7)
        self.tf = TransformBroadcaster(self)
        self.static_tf = StaticTransformBroadcaster(self)
        now = self.get_clock().now().to_msg()
        upright = (0.0, 0.0, 0.0, 1.0)
        self.static_tf.sendTransform(
            [
                transform('base_link', 'laser', now, 0.2, 0.0, 0.3, upright),
                transform('base_link', 'imu_link', now, 0.0, 0.0, 0.1, upright),
                transform(
                    'base_link',
                    'camera_optical_frame',
                    now,
                    0.25,
                    0.0,
                    0.4,
                    (-0.5, 0.5, -0.5, 0.5),
                ),
            ]
        )
        self.odometry = self.create_publisher(Odometry, 'odom', 10)
        self.imu = self.create_publisher(Imu, 'imu/data', qos_profile_sensor_data)
        self.battery = self.create_publisher(BatteryState, 'battery_state', 10)
        self.image = self.create_publisher(Image, 'camera/image_raw', qos_profile_sensor_data)
        self.info = self.create_publisher(
            CameraInfo, 'camera/camera_info', qos_profile_sensor_data
        )
        self.scan = self.create_publisher(LaserScan, 'scan', qos_profile_sensor_data)
        self.goals = self.create_publisher(GoalStatusArray, 'dock/_action/status', LATCHED)
        self.events = self.create_publisher(String, f'{recorder}/events_json', 10)
        self.goal = np.arange(16, dtype=np.uint8)
        for period, callback in (
            (0.02, self.drive),
            (0.1, self.look),
            (1.0, self.report),
            (7.0, self.say),
        ):
            self.create_timer(period, callback)

    def elapsed(self) -> float:
        """Return the seconds since the robot started."""
        return time.monotonic() - self.started

    def drive(self) -> None:
        """Publish tf, odometry and the IMU's readings."""
        x, y, heading = pose_at(self.elapsed())
        ahead = pose_at(self.elapsed() + 0.01)
        turn = (math.remainder(ahead[2] - heading, 2 * math.pi)) / 0.01
        speed = math.hypot(ahead[0] - x, ahead[1] - y) / 0.01
        rotation = (0.0, 0.0, math.sin(heading / 2), math.cos(heading / 2))
        stamp = self.get_clock().now().to_msg()
        self.tf.sendTransform(
            [
                transform('map', 'odom', stamp, 0.1, -0.05, 0.0, (0.0, 0.0, 0.0, 1.0)),
                transform('odom', 'base_link', stamp, x, y, 0.0, rotation),
            ]
        )
        odometry = Odometry()
        odometry.header.stamp, odometry.header.frame_id = stamp, 'odom'
        odometry.child_frame_id = 'base_link'
        odometry.pose.pose.position.x, odometry.pose.pose.position.y = x, y
        orientation = odometry.pose.pose.orientation
        orientation.x, orientation.y, orientation.z, orientation.w = rotation
        odometry.twist.twist.linear.x, odometry.twist.twist.angular.z = speed, turn
        self.odometry.publish(odometry)
        imu = Imu()
        imu.header.stamp, imu.header.frame_id = stamp, 'imu_link'
        imu.angular_velocity.z = turn + self.random.gauss(0, 0.01)
        imu.linear_acceleration.y = speed * turn + self.random.gauss(0, 0.05)
        imu.linear_acceleration.z = 9.81
        self.imu.publish(imu)

    def look(self) -> None:
        """Publish a picture, its camera info, and a scan of a room of 12 by 8 metres."""
        x, y, heading = pose_at(self.elapsed())
        stamp = self.get_clock().now().to_msg()
        columns = np.arange(WIDTH) / FOCAL
        rows = np.arange(HEIGHT)[:, None]
        stripes = (np.sin(8 * (heading - columns)) > 0) * 90 + 80
        picture = np.empty((HEIGHT, WIDTH, 3), np.uint8)
        picture[..., 0] = np.where(rows < HEIGHT // 2, stripes, 60)
        picture[..., 1] = np.where(rows < HEIGHT // 2, stripes // 2, 90)
        picture[..., 2] = np.where(rows < HEIGHT // 2, 200 - stripes, 70)
        image = Image(height=HEIGHT, width=WIDTH, encoding='bgr8', step=3 * WIDTH)
        image.header.stamp, image.header.frame_id = stamp, 'camera_optical_frame'
        image.data = array.array('B', picture.tobytes())
        self.image.publish(image)
        info = CameraInfo(height=HEIGHT, width=WIDTH, distortion_model='plumb_bob')
        info.header = image.header
        info.k = [FOCAL, 0.0, WIDTH / 2, 0.0, FOCAL, HEIGHT / 2, 0.0, 0.0, 1.0]
        self.info.publish(info)
        angles = np.linspace(-math.pi, math.pi, 360)
        dx, dy = np.cos(angles + heading), np.sin(angles + heading)
        with np.errstate(divide='ignore'):
            along_x = np.where(dx > 0, 6 - x, -6 - x) / dx
            along_y = np.where(dy > 0, 4 - y, -4 - y) / dy
        scan = LaserScan(range_min=0.1, range_max=10.0, scan_time=0.1)
        scan.header.stamp, scan.header.frame_id = stamp, 'laser'
        scan.angle_min, scan.angle_max = -math.pi, math.pi
        scan.angle_increment = 2 * math.pi / 359
        scan.ranges = array.array('f', np.minimum(along_x, along_y).astype(np.float32).tobytes())
        self.scan.publish(scan)

    def report(self) -> None:
        """Publish the battery's state and the status of the docking action."""
        t = self.elapsed()
        battery = BatteryState(voltage=25.2 - t / 100, percentage=0.9 - t / 2000, current=-1.4)
        battery.present = True
        self.battery.publish(battery)
        status = GoalStatus()
        status.goal_info.goal_id.uuid = self.goal
        status.status = GoalStatus.STATUS_EXECUTING if t % 20 < 12 else GoalStatus.STATUS_SUCCEEDED
        self.goals.publish(GoalStatusArray(status_list=[status]))

    def say(self) -> None:
        """Send the recorder an event."""
        t = self.elapsed()
        event = {'name': 'waypoint.reached', 'properties': {'index': round(t / 7), 'late': t > 20}}
        self.events.publish(String(data=json.dumps(event)))


def main() -> None:
    """Run the robot until SIGINT or SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--recorder', default='/cognitive3d', help='name of the recorder node')
    arguments = parser.parse_args()
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    robot = Robot(arguments.recorder)
    executor = SingleThreadedExecutor()
    executor.add_node(robot)
    try:
        while rclpy.ok() and not stop.is_set():
            executor.spin_once(timeout_sec=0.25)
    except ExternalShutdownException:
        pass
    finally:
        executor.shutdown()
        robot.destroy_node()
        rclpy.try_shutdown()


if __name__ == '__main__':
    main()
