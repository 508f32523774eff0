"""A robot with two 720p cameras at 30 Hz, a lidar of 64k points at 10 Hz and a laser scanner at 20 Hz.

Waits until somebody records them all, publishes for so many seconds, and prints as JSON how many of each. It
drives to and fro along x at a metre a second, so that each stamp says where it was.
"""

import argparse
import array
import json
import sys
import threading
import time

import numpy as np
import rclpy
from geometry_msgs.msg import TransformStamped
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, qos_profile_sensor_data
from sensor_msgs.msg import CameraInfo, Image, LaserScan, PointCloud2, PointField
from tf2_msgs.msg import TFMessage

TRACK_M = 100.0
CAMERAS = ('front', 'rear')
RATES_HZ = {'front': 30, 'rear': 30, 'cloud': 10, 'scan': 20}
POINTS = 65_536
LATCHED = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)


def x_at(time_s):
    return abs(time_s % (2 * TRACK_M) - TRACK_M)


def transform(parent, child, stamp, x=0.0, rotation=(0.0, 0.0, 0.0, 1.0)):
    message = TransformStamped(child_frame_id=child)
    message.header.frame_id, message.header.stamp = parent, stamp
    message.transform.translation.x = x
    q = message.transform.rotation
    q.x, q.y, q.z, q.w = rotation
    return message


def picture():
    """Return the bytes of 1280x720 in BGR: blue grows to the right, green downwards, red in squares."""
    y, x = np.indices((720, 1280))
    bgr = np.stack([x * 255 // 1279, y * 255 // 719, (x // 80 + y // 80) % 2 * 200], axis=-1)
    return bgr.astype(np.uint8)


class Robot(Node):
    def __init__(self):
        super().__init__('robot')
        self.sent = dict.fromkeys(RATES_HZ, 0)
        self._tf = self.create_publisher(TFMessage, '/tf', 100)
        static = self.create_publisher(TFMessage, '/tf_static', LATCHED)
        now = self.get_clock().now().to_msg()
        optical = (-0.5, 0.5, -0.5, 0.5)
        frames = [transform('base_link', name, now) for name in ('lidar', 'laser')]
        frames += [
            transform('base_link', f'{name}_optical_frame', now, rotation=optical)
            for name in CAMERAS
        ]
        static.publish(TFMessage(transforms=frames))

        image = array.array('B', picture().tobytes())
        self._streams = {}
        for name in CAMERAS:
            message = Image(height=720, width=1280, encoding='bgr8', step=3840, data=image)
            self._stream(name, message, f'{name}_optical_frame', f'/{name}/image_raw')
            info = CameraInfo(height=720, width=1280, distortion_model='plumb_bob')
            info.k = [640.0, 0.0, 639.5, 0.0, 640.0, 359.5, 0.0, 0.0, 1.0]
            self.create_publisher(CameraInfo, f'/{name}/camera_info', LATCHED).publish(info)
        angle = np.linspace(0, 400, POINTS)
        xyzi = np.stack(
            [angle / 20 * np.cos(angle), angle / 20 * np.sin(angle), angle / 100, angle]
        )
        cloud = PointCloud2(height=1, width=POINTS, point_step=16, row_step=16 * POINTS)
        cloud.fields = [
            PointField(name=name, offset=4 * i, datatype=PointField.FLOAT32, count=1)
            for i, name in enumerate(('x', 'y', 'z', 'intensity'))
        ]
        cloud.data = array.array('B', xyzi.T.astype('<f4').tobytes())
        self._stream('cloud', cloud, 'lidar', '/points')
        scan = LaserScan(angle_min=-1.5, angle_max=1.5, angle_increment=3 / 719, range_max=30.0)
        scan.ranges = array.array('f', np.linspace(1, 20, 720, dtype=np.float32))
        self._stream('scan', scan, 'laser', '/scan')

    def _stream(self, name, message, frame, topic):
        message.header.frame_id = frame
        publisher = self.create_publisher(type(message), topic, qos_profile_sensor_data)
        self._streams[name] = (publisher, message)

    def wait(self):
        """Wait until each is subscribed to."""
        while not all(
            publisher.get_subscription_count() for publisher, _ in self._streams.values()
        ):
            time.sleep(0.02)

    def drive(self, stop):
        """Publish the transform of the robot at 100 Hz."""
        while not stop.wait(0.01):
            self.publish_tf()

    def publish_tf(self):
        now = self.get_clock().now()
        moved = transform('map', 'base_link', now.to_msg(), x_at(now.nanoseconds / 1e9))
        self._tf.publish(TFMessage(transforms=[moved]))

    def send(self, name):
        publisher, message = self._streams[name]
        message.header.stamp = self.get_clock().now().to_msg()
        publisher.publish(message)
        self.sent[name] += 1


def main(arguments):
    parser = argparse.ArgumentParser()
    parser.add_argument('seconds', type=float)
    seconds = parser.parse_args(arguments).seconds
    rclpy.init()
    robot = Robot()
    stop = threading.Event()
    driver = threading.Thread(target=robot.drive, args=(stop,))
    driver.start()
    robot.wait()
    time.sleep(0.5)  # for tf to be known
    start = time.monotonic()
    due = dict.fromkeys(RATES_HZ, start)
    while (now := time.monotonic()) < start + seconds:
        for name, rate in RATES_HZ.items():
            if now >= due[name]:
                robot.send(name)
                due[name] += 1 / rate
        time.sleep(max(0.0, min(due.values()) - time.monotonic()))
    time.sleep(1.0)  # tf goes on behind the last of them
    stop.set()
    driver.join()
    print(json.dumps(robot.sent), flush=True)
    rclpy.shutdown()


if __name__ == '__main__':
    main(sys.argv[1:])
