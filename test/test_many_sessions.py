"""Session after session in one process: what a session took is free when it has ended and is delivered."""

import gc
from collections import Counter

from recording_rig import S
from sensor_rig import FRONT, TOP, SensorRig, image, scan
from upload_rig import GATEWAY, OK, Clock

from cognitive3d_ros.log import Complaints
from cognitive3d_ros.recording.inputs import Publication
from cognitive3d_ros.recording.registry import inputs_of
from cognitive3d_ros.recording.session import Session
from cognitive3d_ros.spool.fs import Fs
from cognitive3d_ros.upload.uploader import Uploader

SESSIONS = 100
SETTLED = 10
STEPS = 4  # messages of each sensor in a session: as many as may wait for a worker


class Unsynced(Fs):
    """A disk that is believed: nothing here ends before its time."""

    def sync(self, fd):
        pass

    def sync_folder(self, path):
        pass


class Ok:
    """A gateway that takes everything."""

    def send(self, request):
        return OK


def held():
    """Return how many objects there are of each of our classes, and of all."""
    gc.collect()
    objects = gc.get_objects()
    ours = Counter(
        type(each) for each in objects if str(type(each).__module__).startswith('cognitive3d_ros.')
    )
    return ours, len(objects)


def test_nothing_of_a_session_is_left(tmp_path):
    rig = SensorRig(
        tmp_path / 'spool',
        **FRONT,
        **TOP,
        fs=Unsynced(),
        pose_convention='rep103',
        reference_frames=['map'],
        robot_dynamic_object=True,
        robot_mesh='rover',
        **{'topics': ['count'], 'topic.count.topic': '/count', 'topic.count.rate_hz': 0.0},
    )
    rig.recorder.know({'c3d.test': 1})
    complaints = Complaints(rig.log)
    (count,) = [
        each
        for each in inputs_of(rig.config, rig.recorder, rig.ledger, complaints, node='c3d')
        if each.source == 'topic.count'
    ]
    assert count.found(Publication('/count', 'std_msgs/msg/Float64')) is None
    clock = Clock()
    uploader = Uploader(
        gateway=GATEWAY,
        spool=rig.spool,
        transport=Ok(),
        key=lambda: 'KEY',
        ledger=rig.ledger,
        log=rig.log,
        monotonic=clock.monotonic,
        wall=clock.wall,
    )
    after, before = [], held()[0]
    for number in range(SESSIONS):
        rig.recorder.start_session(f'run {number}')
        for step in range(STEPS):
            rig.clocks.advance(3 * S)
            clock.now += 3
            rig.robot(step)
            for child in ('front_optical_frame', 'laser'):
                rig.tf.set_transform(
                    'base_link', child, rig.clocks.ros_ns, (0, 0, 0), (0, 0, 0, 1)
                )
            rig.send('camera.front', image(stamp_ns=rig.clocks.ros_ns))
            rig.send('lidar.top', scan([1.0, 2.0], stamp_ns=rig.clocks.ros_ns))
            count.take(Message(float(step)), count.due())
            rig.recorder.event(f'event {number}', {'step': step})
            rig.recorder.event('', {})  # refused
            rig.recorder.poll()
        rig.settle()
        rig.recorder.poll()
        rig.recorder.flush()
        rig.recorder.end_session('next')
        assert uploader.drain(60.0)
        rig.log.lines.clear()
        if number in (SETTLED, SESSIONS - 1):
            after.append(held())
    taken = STEPS * SESSIONS
    assert rig.fates('camera.front') == {'received': taken, 'stored': taken}
    assert not any((tmp_path / 'spool' / 'sessions').iterdir())
    (ours, objects), (ours_last, objects_last) = after
    assert ours_last[Session] == before[Session]
    assert ours_last == ours, ours_last - ours
    assert objects_last - objects < SESSIONS - SETTLED - 1  # not one for each session
    rig.close()


class Message:
    """A std_msgs/Float64."""

    def __init__(self, data):
        self.data = data
