"""Messages of cameras and lidars, and a recorder that is fed with them."""

from types import SimpleNamespace

import numpy as np
from picture_files import FILES
from recording_rig import Rig

from cognitive3d_ros.counters import Fate
from cognitive3d_ros.recording.inputs import Publication
from cognitive3d_ros.recording.sensor_inputs import sensor_inputs

FRONT = {
    'cameras': ['front'],
    'camera.front.topic': '/front/image_raw',
    'camera.front.rate_hz': 0.0,
}
TOP = {'lidars': ['top'], 'lidar.top.topic': '/points', 'lidar.top.rate_hz': 0.0}


def header(frame_id, stamp_ns):
    stamp = SimpleNamespace(sec=stamp_ns // 10**9, nanosec=stamp_ns % 10**9)
    return SimpleNamespace(frame_id=frame_id, stamp=stamp)


def jpeg(frame_id='front_optical_frame', stamp_ns=0, data=FILES['JPEG']):
    """Return a compressed image of 48 times 32 pixels."""
    return SimpleNamespace(header=header(frame_id, stamp_ns), format='jpeg', data=data)


def image(frame_id='front_optical_frame', stamp_ns=0, width=64, height=36, **fields):
    """Return a grey image."""
    return SimpleNamespace(
        **{
            'header': header(frame_id, stamp_ns),
            'width': width,
            'height': height,
            'step': width,
            'encoding': 'mono8',
            'is_bigendian': 0,
            'data': bytes(width * height),
            **fields,
        }
    )


def camera_info(focal=640.0, width=1280, height=720, stamp_ns=0):
    return SimpleNamespace(
        header=header('front_optical_frame', stamp_ns),
        width=width,
        height=height,
        distortion_model='plumb_bob',
        k=[focal, 0.0, 0.0, 0.0, focal, 0.0, 0.0, 0.0, 1.0],
        p=[0.0] * 12,
        binning_x=0,
        binning_y=0,
        roi=SimpleNamespace(x_offset=0, y_offset=0, width=0, height=0),
    )


def scan(ranges, frame_id='laser', stamp_ns=0, **fields):
    return SimpleNamespace(
        **{
            'header': header(frame_id, stamp_ns),
            'angle_min': -1.5,
            'angle_max': 1.5,
            'angle_increment': 3.0 / max(1, len(ranges) - 1),
            'time_increment': 0.0,
            'scan_time': 0.1,
            'range_min': 0.1,
            'range_max': 30.0,
            'ranges': np.asarray(ranges, np.float32),
            'intensities': np.array([], np.float32),
            **fields,
        }
    )


def cloud(xyz, frame_id='lidar', stamp_ns=0):
    """Return a cloud of float32 points (N, 3)."""
    points = np.ascontiguousarray(xyz, '<f4')
    fields = [
        SimpleNamespace(name=name, offset=4 * i, datatype=7, count=1)
        for i, name in enumerate('xyz')
    ]
    return SimpleNamespace(
        header=header(frame_id, stamp_ns),
        width=len(points),
        height=1,
        fields=fields,
        is_bigendian=False,
        point_step=12,
        row_step=12 * len(points),
        data=points.tobytes(),
        is_dense=True,
    )


class SensorRig(Rig):
    """A rig whose cameras and lidars can be sent messages."""

    def __init__(self, root, **params):
        super().__init__(root, **params)
        self.inputs = {one.source: one for one in sensor_inputs(self.config, self.recorder)}
        self._found = set()

    def send(self, source, message):
        """Hand a message over as a door does; return whether it was taken."""
        one = self.inputs[source]
        if source not in self._found:
            kind = _type(source, message)
            assert one.found(Publication('/robot' + one.topic, kind, '/driver')) is None
            self._found.add(source)
        arrival = one.due()
        if arrival is None:
            return False
        one.take(message, arrival)
        return True

    def settle(self):
        """Wait until the workers have nothing to do."""
        self.recorder._workers.drain(30.0)

    def fates(self, source):
        """Return what became of an input's messages, by name, what is 0 left out."""
        counts = {fate.value: self.ledger.value((fate, source)) for fate in Fate}
        return {name: count for name, count in counts.items() if count}

    def closes(self, source):
        """Say whether the sum of an input closes."""
        fates = self.fates(source)
        return fates.pop('received', 0) == sum(fates.values())


def _type(source, message):
    if source.endswith('.info'):
        return 'sensor_msgs/msg/CameraInfo'
    if source.startswith('camera'):
        return f'sensor_msgs/msg/{"CompressedImage" if hasattr(message, "format") else "Image"}'
    return f'sensor_msgs/msg/{"LaserScan" if hasattr(message, "ranges") else "PointCloud2"}'
