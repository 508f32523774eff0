"""The recorder node with a log of every message that reaches it, written before the recorder knows of it.

What DDS still holds when the node is killed has not come in, and what it lost never will: only with this log
can that be told from what the recorder lost. :mod:`campaign_door` reads it. Besides, the log has

- what the recorder counts as lost, and why: its own health series tell it every five seconds only;
- its flushes, when they begin and when they have returned: what was recorded before one is durable;
- beats, which tell when nothing in this process could run. What stands where then is printed.
"""

import faulthandler
import itertools
import os
import sys
import threading
import time

from campaign_traffic import picture_number

from cognitive3d_ros.counters import Count, Fate, Ledger
from cognitive3d_ros.node import engine, main, recorder_node, subscriptions, transforms
from cognitive3d_ros.recording.recorder import Recorder

DOOR = os.open(os.environ['C3D_CAMPAIGN_DOOR'], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
BEAT_S = 0.05
LATE_S = 0.4
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


class NotingLedger(Ledger):
    def count(self, count, n=1):
        super().count(count, n)
        if count not in (Count.PARTS_WRITTEN, Count.PARTS_UPLOADED, Count.UPLOAD_FAILURES):
            note(f'count:{count.value}', n)

    def came(self, source, fate, n=1):
        super().came(source, fate, n)
        if fate not in (Fate.RECEIVED, Fate.STORED):
            note(f'count:{source}:{fate.value}', n)

    def drop(self, reason, source, n=1, *, event=False):
        super().drop(reason, source, n, event=event)
        note(f'count:{source}:{reason.value}', n)


class NotingRecorder(Recorder):
    def flush(self):
        begin_ns = time.time_ns()
        note('flushing', begin_ns)
        super().flush()
        note('flush', begin_ns)


def beat():
    for number in itertools.count():
        note('beat', number)
        faulthandler.dump_traceback_later(LATE_S)
        time.sleep(BEAT_S)


if __name__ == '__main__':
    from cognitive3d_ros.node import process

    threading.Thread(target=beat, daemon=True).start()
    subscriptions._Feed = NotingFeed
    transforms.Buffer = NotingBuffer
    engine.Ledger = NotingLedger
    engine.Recorder = NotingRecorder
    process.RecorderNode = NotingNode
    sys.exit(main.main())
