"""The peer of the live rows: rclpy, and mcap's writer with zstd to /dev/null; says at the end what it took."""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter

import rclpy
from mcap.writer import CompressionType, Writer
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import QoSProfile, qos_profile_sensor_data
from rclpy.signals import SignalHandlerOptions
from sensor_msgs.msg import Image, PointCloud2
from std_msgs.msg import Float64
from tf2_msgs.msg import TFMessage

from bench.live_robot import CAMERAS, SERIES


def main() -> None:
    """Write until SIGTERM."""
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    stop = threading.Event()
    node = rclpy.create_node('bench_peer')
    with open('/dev/null', 'wb') as sink:  # noqa: PTH123 - a device
        writer = Writer(sink, compression=CompressionType.ZSTD)
        writer.start(profile='ros2', library='bench')
        taken: Counter[type] = Counter()
        schema = writer.register_schema(name='bench', encoding='ros2msg', data=b'')

        def subscribe(kind, topic: str, qos) -> None:
            channel = writer.register_channel(
                topic=topic, message_encoding='cdr', schema_id=schema
            )

            def write(data: bytes) -> None:
                taken[kind] += 1
                now = time.time_ns()
                writer.add_message(channel, log_time=now, data=data, publish_time=now)

            node.create_subscription(kind, topic, write, qos, raw=True)

        for name in CAMERAS:
            subscribe(Image, f'/{name}/image_raw', qos_profile_sensor_data)
        subscribe(PointCloud2, '/points', qos_profile_sensor_data)
        for index in range(SERIES):
            subscribe(Float64, f'/n{index}', QoSProfile(depth=10))
        subscribe(TFMessage, '/tf', QoSProfile(depth=100))
        executor = SingleThreadedExecutor()
        executor.add_node(node)
        signal.signal(signal.SIGTERM, lambda *_: stop.set())
        print('ready', flush=True)
        while not stop.is_set():
            executor.spin_once(timeout_sec=0.1)
        writer.finish()
        print(*(taken[kind] for kind in (Image, PointCloud2, Float64, TFMessage)), flush=True)
    executor.shutdown()
    node.destroy_node()
    rclpy.try_shutdown()


if __name__ == '__main__':
    main()
