"""A robot at full load that keeps a log of all it publishes; for campaign.py and tools/soak.py.

It drives along x at half a metre a second. Each event, sample, picture and scan carries a number of its own,
from 0; the log has a line for each, ``<kind> <number> <wall time in ns>``, written before it is published. It
runs until it gets SIGTERM.
"""

import argparse
import array
import signal
import time

import numpy as np
import rclpy
from campaign_traffic import RATES_HZ, SPEED_M_S, picture_bytes
from cognitive3d_msgs.msg import Event
from geometry_msgs.msg import TransformStamped
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import CompressedImage, LaserScan
from std_msgs.msg import Float64
from tf2_msgs.msg import TFMessage

LATCHED = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)
# Reliable, and kept for a good while: it is not DDS that is put to the test.
RELIABLE = QoSProfile(depth=2000)
# As drivers publish them.
PICTURES = QoSProfile(depth=5, reliability=ReliabilityPolicy.BEST_EFFORT)


class Robot(Node):
    def __init__(self, log, rays):
        super().__init__('robot')
        self._log = log
        self._numbers = dict.fromkeys(RATES_HZ, 0)
        self._start_ns = 0  # when the first transform is sent
        self._tf = self.create_publisher(TFMessage, '/tf', RELIABLE)
        static = self.create_publisher(TFMessage, '/tf_static', LATCHED)
        static.publish(TFMessage(transforms=[self._transform('base_link', 'sensor', 0.0)]))
        self._events = self.create_publisher(Event, '/cognitive3d/events', RELIABLE)
        self._samples = self.create_publisher(Float64, '/count', RELIABLE)
        self._pictures = self.create_publisher(CompressedImage, '/image/compressed', PICTURES)
        self._scans = self.create_publisher(LaserScan, '/scan', PICTURES)
        self._ranges = np.linspace(1, 20, rays, dtype=np.float32)

    def _transform(self, parent, child, x):
        message = TransformStamped(child_frame_id=child)
        message.header.frame_id = parent
        message.header.stamp = self._stamp
        message.transform.translation.x = x
        message.transform.rotation.w = 1.0
        return message

    @property
    def _stamp(self):
        return rclpy.time.Time(nanoseconds=self._now_ns).to_msg()

    _now_ns = 0

    def send(self, kind):
        number = self._numbers[kind]
        self._numbers[kind] += 1
        self._now_ns = time.time_ns()
        self._log.write(f'{kind} {number} {self._now_ns}\n')
        getattr(self, f'_send_{kind}')(number)

    def _send_tf(self, number):
        self._start_ns = self._start_ns or self._now_ns
        x = (self._now_ns - self._start_ns) / 1e9 * SPEED_M_S
        self._tf.publish(TFMessage(transforms=[self._transform('map', 'base_link', x)]))

    def _send_event(self, number):
        message = Event(name='tick', properties_json=f'{{"number":{number}}}')
        message.header.stamp = self._stamp
        self._events.publish(message)

    def _send_sample(self, number):
        self._samples.publish(Float64(data=float(number)))

    def _send_picture(self, number):
        message = CompressedImage(format='jpeg', data=array.array('B', picture_bytes(number)))
        message.header.stamp, message.header.frame_id = self._stamp, 'sensor'
        self._pictures.publish(message)

    def _send_scan(self, number):
        message = LaserScan(
            angle_min=-1.5, angle_max=1.5, angle_increment=3 / len(self._ranges), range_max=30.0
        )
        message.header.stamp, message.header.frame_id = self._stamp, 'sensor'
        self._ranges[0] = number
        message.ranges = array.array('f', self._ranges)
        self._scans.publish(message)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('log')
    parser.add_argument('--without', nargs='*', default=[], choices=list(RATES_HZ))
    parser.add_argument('--rays', type=int, default=8000, help='of a scan')
    arguments = parser.parse_args()
    stopped = []
    rclpy.init(signal_handler_options=rclpy.signals.SignalHandlerOptions.NO)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.append(1))
    with open(arguments.log, 'w', buffering=1) as log:  # noqa: PTH123 - line by line
        robot = Robot(log, arguments.rays)
        now = time.monotonic()
        due = {kind: now for kind in RATES_HZ if kind not in arguments.without}
        while not stopped:
            now = time.monotonic()
            for kind, at in due.items():
                if now >= at:
                    robot.send(kind)
                    due[kind] = max(at + 1 / RATES_HZ[kind], now - 0.5)  # never in long bursts
            time.sleep(max(0.0, min(due.values()) - time.monotonic()))
    rclpy.shutdown()


if __name__ == '__main__':
    main()
