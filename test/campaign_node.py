"""The recorder node with a log of every message that reaches it, written before the recorder knows of it.

What DDS still holds when the node is killed has not come in, and what it lost never will: only with this log
can that be told from what the recorder lost. A line is ``<kind> <number> <wall time in ns>``; the number of a
transform is its stamp. Beats tell when nothing in this process could run: rclpy holds the lock of Python while
DDS takes its time, a second and more now and then in a node that has just been started.
"""

import itertools
import os
import sys
import threading
import time

from campaign_robot import picture_number

from cognitive3d_ros.node import main, recorder_node, subscriptions, transforms

DOOR = os.open(os.environ['C3D_CAMPAIGN_DOOR'], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
BEAT_S = 0.05
NUMBERS = {
    'topic.count': lambda message: ('sample', int(message.data)),
    'camera.front': lambda message: ('picture', picture_number(bytes(message.data[:40]))),
    'lidar.top': lambda message: ('scan', int(message.ranges[0])),
}


def note(kind, number):
    os.write(DOOR, f'{kind} {number} {time.time_ns()}\n'.encode())


class NotingFeed(subscriptions._Feed):
    def _receive(self, message):
        number = NUMBERS.get(self._input.source)
        if number is not None:
            note(*number(message))
        super()._receive(message)


class NotingNode(recorder_node.RecorderNode):
    def _on_event(self, message):
        note('event', int(message.properties_json.partition(':')[2].rstrip('}')))
        super()._on_event(message)


class NotingBuffer(transforms.Buffer):
    def set_transform(self, transform, authority):
        stamp = transform.header.stamp
        super().set_transform(transform, authority)
        note('tf', stamp.sec * 1_000_000_000 + stamp.nanosec)

    def set_transform_static(self, transform, authority):
        super().set_transform_static(transform, authority)
        note('tf', 0)


def beat():
    for number in itertools.count():
        note('beat', number)
        time.sleep(BEAT_S)


if __name__ == '__main__':
    from cognitive3d_ros.node import process

    threading.Thread(target=beat, daemon=True).start()
    subscriptions._Feed = NotingFeed
    transforms.Buffer = NotingBuffer
    process.RecorderNode = NotingNode
    sys.exit(main.main())
