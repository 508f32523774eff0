"""Cameras in recordings: pictures of every transport, their infos, from ROS 1 and ROS 2."""

import cv2
import numpy as np
import pytest
from bag_rig import ROS1, START, S, messages_of, write_bag
from picture_files import FILES
from recording_rig import REQUIRED, Lines, Stored
from test_record import driving, in_order

from cognitive3d_ros.bags.door import record_bag
from cognitive3d_ros.parameters import parse
from cognitive3d_ros.recording.accounts import adds_up

OPTICAL = (-0.5, 0.5, -0.5, 0.5)
SECONDS = 10
RATE_HZ = 20
FRAMES = SECONDS * RATE_HZ


def image(make, stamp_ns, pixels):
    return make._make(
        'sensor_msgs/msg/Image',
        header=make.header(stamp_ns, 'eye_optical'),
        height=pixels.shape[0],
        width=pixels.shape[1],
        encoding='bgr8',
        is_bigendian=0,
        step=pixels.strides[0],
        data=pixels.ravel(),
    )


def jpeg(make, stamp_ns):
    return make._make(
        'sensor_msgs/msg/CompressedImage',
        header=make.header(stamp_ns, 'eye_optical'),
        format='jpeg',
        data=np.frombuffer(FILES['JPEG'], np.uint8),
    )


def info(make, stamp_ns, focal, width, height):
    k = np.array([focal, 0, 0, 0, focal, 0, 0, 0, 1.0])
    p = np.zeros(12)
    matrices = {'d': np.zeros(5), 'k': k, 'r': np.eye(3).ravel(), 'p': p}
    if make._ros1:
        matrices = {name.upper(): matrix for name, matrix in matrices.items()}
    roi = make._make(
        'sensor_msgs/msg/RegionOfInterest',
        x_offset=0,
        y_offset=0,
        height=0,
        width=0,
        do_rectify=False,
    )
    return make._make(
        'sensor_msgs/msg/CameraInfo',
        header=make.header(stamp_ns, 'eye_optical'),
        height=height,
        width=width,
        distortion_model='plumb_bob',
        binning_x=0,
        binning_y=0,
        roi=roi,
        **matrices,
    )


def stamps():
    return [START + n * S // RATE_HZ for n in range(FRAMES)]


def shade(n):
    """Return a picture that tells which one it is."""
    return np.full((480, 640, 3), n, np.uint8)


@pytest.mark.parametrize('form', ['rosbag1', 'mcap'])
@pytest.mark.parametrize('transport', ['raw', 'compressed'])
def test_a_camera_in_a_recording(tmp_path, form, transport):
    make = messages_of(form)
    static = make.tf(('base_link', 'eye_optical', 0, (0.5, 0.0, 0.25), OPTICAL))
    raw = transport == 'raw'
    topic = '/eye/image_raw' if raw else '/eye/image_raw/compressed'
    size = (640, 480) if raw else (48, 32)
    late = S // 100  # each is received a little after its stamp
    pictures = [
        (topic, at + late, image(make, at, shade(n)) if raw else jpeg(make, at))
        for n, at in enumerate(stamps())
    ]
    # A lens that zooms in: from 90 degrees on, less from picture to picture.
    infos = [
        ('/eye/camera_info', at + late, info(make, at, size[0] / 2 + n, *size))
        for n, at in enumerate(stamps())
    ]
    content = in_order([('/tf_static', START, static)], driving(make, SECONDS), pictures, infos)
    config = parse(
        {
            **REQUIRED,
            'pose_convention': 'rep103',
            'reference_frames': ['odom'],
            'cameras': ['eye'],
            'camera.eye.topic': topic,
            'camera.eye.rate_hz': 0.0,
            'camera.eye.max_width': 320,
        }
    )
    spool = tmp_path / 'spool'
    result = record_bag(write_bag(tmp_path, form, content), config, spool, log=Lines())
    assert not result.lossy, result
    stored = Stored(spool)
    frames = stored.frames('eye')
    assert len(frames) == FRAMES
    assert [frame.seq for frame in frames] == list(range(FRAMES))
    for n, frame in enumerate(frames):
        assert frame.time_ms == stamps()[n] // 1_000_000
        x = n / RATE_HZ
        assert list(frame.pose) == pytest.approx([x + 0.5, 0, 0.25, *OPTICAL], abs=1e-4)
        wanted = 2 * np.degrees(np.arctan2(size[0] / 2, size[0] / 2 + n))
        assert frame.hfov_degrees == pytest.approx(wanted, abs=1e-3)
        if raw:
            assert (frame.width, frame.height) == (320, 240)
            pixels = cv2.imdecode(np.frombuffer(frame.data, np.uint8), cv2.IMREAD_COLOR)
            assert abs(int(pixels[120, 160, 0]) - n) <= 2
        else:
            assert frame.data == FILES['JPEG']
    properties = stored.properties()
    assert adds_up(properties['c3d.account.camera.eye'])
    assert properties['c3d.ros.camera.eye.topic'] == topic
    kind = 'Image' if raw else 'CompressedImage'
    assert properties['c3d.ros.camera.eye.type'] == f'sensor_msgs/msg/{kind}'
    assert properties['c3d.ros.camera.eye.frame'] == 'eye_optical'
    assert properties['c3d.ros.camera.eye.convention'] == 'optical_forward_z'
    numbers = [body.part for body in stored.bodies('camera')]
    assert numbers == list(range(1, len(numbers) + 1))


def test_ros_1_writes_other_names():
    """What the test above relies on."""
    fields = [name for name, _ in ROS1.fielddefs['sensor_msgs/msg/CameraInfo'][1]]
    assert 'K' in fields
