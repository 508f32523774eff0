"""The load of the live rows: two 720p cameras at 30 Hz, a 64k cloud at 10, 50 series at 50, tf at 100 Hz."""

from __future__ import annotations

import array
import sys
import time

import numpy as np
import rclpy
from geometry_msgs.msg import TransformStamped
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import QoSProfile, qos_profile_sensor_data
from rclpy.signals import SignalHandlerOptions
from sensor_msgs.msg import Image, PointCloud2, PointField
from std_msgs.msg import Float64
from tf2_ros import StaticTransformBroadcaster, TransformBroadcaster

CAMERAS = ('front', 'rear')
SERIES = 50
POINTS = 65_536


def transform(parent: str, child: str, stamp, x: float) -> TransformStamped:
    """Return a transform along x."""
    message = TransformStamped(child_frame_id=child)
    message.header.frame_id, message.header.stamp = parent, stamp
    message.transform.translation.x = x
    message.transform.rotation.w = 1.0
    return message


def main() -> None:
    """Publish for so many seconds."""
    seconds = float(sys.argv[1])
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    node = rclpy.create_node('bench_robot')
    rng = np.random.default_rng(7)
    smooth = np.linspace(0, 200, 1280 * 720 * 3).reshape(720, 1280, 3)
    pictures = [
        array.array('B', (smooth + rng.normal(20, 4, smooth.shape)).astype(np.uint8).tobytes())
        for _ in range(4)
    ]
    points = np.zeros((POINTS, 4), np.float32)
    angles = rng.uniform(-np.pi, np.pi, POINTS)
    distance = rng.uniform(2, 25, POINTS)
    points[:, 0], points[:, 1] = distance * np.cos(angles), distance * np.sin(angles)
    points[:, 2], points[:, 3] = rng.uniform(-1, 3, POINTS), rng.uniform(0, 255, POINTS)
    cloud = PointCloud2(height=1, width=POINTS, point_step=16, row_step=16 * POINTS)
    cloud.header.frame_id, cloud.is_dense = 'lidar', True
    cloud.fields = [
        PointField(name=name, offset=4 * index, datatype=PointField.FLOAT32, count=1)
        for index, name in enumerate(('x', 'y', 'z', 'intensity'))
    ]
    cloud.data = array.array('B', points.tobytes())
    big = qos_profile_sensor_data
    images = [node.create_publisher(Image, f'/{name}/image_raw', big) for name in CAMERAS]
    clouds = node.create_publisher(PointCloud2, '/points', big)
    numbers = [
        node.create_publisher(Float64, f'/n{i}', QoSProfile(depth=10)) for i in range(SERIES)
    ]
    tf, static = TransformBroadcaster(node), StaticTransformBroadcaster(node)

    def now():
        return node.get_clock().now().to_msg()

    static.sendTransform(
        [transform('base_link', frame, now(), 0.1) for frame in (*CAMERAS, 'lidar')]
    )
    sent = {'images': 0, 'ticks': 0}

    def look() -> None:
        for name, publisher in zip(CAMERAS, images, strict=True):
            image = Image(height=720, width=1280, encoding='bgr8', step=3840)
            image.header.frame_id, image.header.stamp = name, now()
            image.data = pictures[sent['images'] % len(pictures)]
            publisher.publish(image)
            sent['images'] += 1

    def sweep() -> None:
        cloud.header.stamp = now()
        clouds.publish(cloud)

    def count() -> None:
        sent['ticks'] += 1
        for index, publisher in enumerate(numbers):
            publisher.publish(Float64(data=float(sent['ticks'] + index)))

    def move() -> None:
        stamp = now()
        x = (stamp.sec % 1000 + stamp.nanosec * 1e-9) * 0.5
        tf.sendTransform(
            [transform('map', 'odom', stamp, 0.0), transform('odom', 'base_link', stamp, x)]
        )

    for period, callback in ((1 / 30, look), (0.1, sweep), (0.02, count), (0.01, move)):
        node.create_timer(period, callback)
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        executor.spin_once(timeout_sec=0.1)
    executor.shutdown()
    node.destroy_node()
    rclpy.try_shutdown()


if __name__ == '__main__':
    main()
