"""Pictures from the message to the part, against what OpenCV needs to encode them, or a copy of their bytes.

Ours is the recorder as the node has it, but for ROS: it counts, decimates, looks up the pose, hands over to a
worker, encodes, and appends, while another thread writes what is due; at the end of each round every frame
lies in a durable part.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cv2
import numpy as np

from bench.table import Pair, Row
from cognitive3d_ros.clock import NS_PER_S, ManualClocks
from cognitive3d_ros.counters import Fate, Ledger
from cognitive3d_ros.memory import keep_freed_memory
from cognitive3d_ros.parameters import parse
from cognitive3d_ros.recording.inputs import Publication
from cognitive3d_ros.recording.recorder import Host, Recorder
from cognitive3d_ros.recording.sensor_inputs import COMPRESSED_IMAGE, IMAGE, sensor_inputs
from cognitive3d_ros.spool import Spool
from cognitive3d_ros.tf import TransformBuffer

WALL_NS = 1_767_225_600 * NS_PER_S
ROUNDS = 15
RAW_FRAMES = 123  # of 100 KB: three parts of 4 MiB
JPEG_FRAMES = 105  # of 200 KB: five parts
JPEG_BYTES = 200_000
QUALITY = 80
SOURCE = 'camera.front'
UPRIGHT = (0.0, 0.0, 0.0, 1.0)


class _Silent:
    def info(self, text: str) -> None: ...
    def warning(self, text: str) -> None: ...
    def error(self, text: str) -> None: ...


def rows() -> list[Row]:
    return [
        Row(
            'camera: raw 1280x720 bgr8 message to stored frame, durable part included',
            '`cv2.imencode`',
            1.10,
            _raw,
        ),
        Row(
            'camera: JPEG message of 200 KB to the open part, more than copying its bytes',
            '',
            0.2,
            lambda: _jpeg(durable=False),
            'ms',
        ),
        Row(
            'camera: JPEG message of 200 KB to the durable part, more than copying its bytes',
            '',
            0.5,
            lambda: _jpeg(durable=True),
            'ms',
        ),
    ]


class _Camera:
    """A recorder with one camera, patient: whoever sends waits for room, so that nothing is lost."""

    def __init__(self, root: Path, kind: str) -> None:
        config = parse(
            {
                'device_id': 'bench',
                'scene_id': '5b2a1f4e-0c9d-4e8a-9a53-0f6d1c2b3a4d',
                'scene_version': 1,
                'cameras': ['front'],
                'camera.front.topic': '/image',
                'camera.front.rate_hz': 0.0,
                'camera.front.jpeg_quality': QUALITY,
            }
        )
        self.ledger = Ledger()
        self.clocks = ManualClocks(WALL_NS, WALL_NS, WALL_NS)
        transforms = TransformBuffer()
        for parent, child in (('map', 'base_link'), ('base_link', 'camera_optical_frame')):
            transforms.set_transform(parent, child, 0, (0.0, 0.0, 1.0), UPRIGHT, static=True)
        self.spool = Spool.open(root, ledger=self.ledger)
        self.recorder = Recorder(
            config,
            spool=self.spool,
            clocks=self.clocks,
            transforms=transforms,
            ledger=self.ledger,
            host=Host(),
            log=_Silent(),
            live=False,
        )
        self.input = sensor_inputs(config, self.recorder)[0]
        self.input.found(Publication('/image', kind, '/driver'))
        self.recorder.start_session()
        self._sent = 0
        self._stopped = threading.Event()
        self._writer = threading.Thread(target=self._write)
        self._writer.start()

    def _write(self) -> None:
        while not self._stopped.wait(0.05):
            self.recorder.flush()

    def send(self, message: Any) -> None:
        self.clocks.advance(1_000_000)
        arrival = self.input.due()
        assert arrival is not None
        self.input.take(message, arrival)
        self._sent += 1

    def settle(self) -> None:
        """Wait until all that was sent lies in its part."""
        while self.ledger.value((Fate.STORED, SOURCE)) < self._sent:
            time.sleep(0.0001)

    def flush(self) -> None:
        """Close the open part by its time, and write it."""
        self.clocks.advance(6 * NS_PER_S)
        self.recorder.flush()

    def close(self) -> None:
        self._stopped.set()
        self._writer.join()
        self.recorder.end_session('bench')
        self.recorder.close()
        self.spool.close()


@contextmanager
def _camera(kind: str) -> Iterator[_Camera]:
    keep_freed_memory()  # as the node does
    with tempfile.TemporaryDirectory() as folder:
        camera = _Camera(Path(folder), kind)
        try:
            yield camera
        finally:
            camera.close()


def picture() -> np.ndarray[Any, Any]:
    """Return 1280x720 in BGR: of the real frame where it is at hand, else made."""
    path = Path(__file__).parents[2] / 'shared' / 'data' / 'rgbd_color.png'
    if path.is_file():
        return np.ascontiguousarray(cv2.resize(cv2.imread(str(path)), (1280, 960))[120:840])
    rng = np.random.default_rng(1)
    coarse = rng.integers(0, 256, (45, 80, 3), np.uint8)
    smooth = cv2.resize(coarse, (1280, 720), interpolation=cv2.INTER_CUBIC)
    return cv2.add(smooth, rng.integers(0, 12, smooth.shape, np.uint8))


def _message(**fields: Any) -> Any:
    stamp = SimpleNamespace(sec=0, nanosec=0)
    header = SimpleNamespace(frame_id='camera_optical_frame', stamp=stamp)
    return SimpleNamespace(header=header, **fields)


def _timed(work: Callable[[], object]) -> float:
    start_s = time.perf_counter()
    work()
    return time.perf_counter() - start_s


def _raw() -> Iterator[Pair]:
    pixels = picture()
    message = _message(
        width=1280, height=720, step=3840, encoding='bgr8', is_bigendian=0, data=pixels.tobytes()
    )
    with _camera(IMAGE) as camera:

        def ours() -> None:
            for _ in range(RAW_FRAMES):
                camera.send(message)
            camera.settle()
            camera.flush()

        def theirs() -> None:
            for _ in range(RAW_FRAMES):
                cv2.imencode('.jpg', pixels, (cv2.IMWRITE_JPEG_QUALITY, QUALITY))

        _timed(ours), _timed(theirs)
        for _ in range(ROUNDS):
            yield _timed(ours), _timed(theirs)


def _jpeg(*, durable: bool) -> Iterator[Pair]:
    jpeg = cv2.imencode('.jpg', picture(), (cv2.IMWRITE_JPEG_QUALITY, 95))[1].tobytes()
    # Up to the size with what a decoder passes over, before the end marker.
    data = np.frombuffer(jpeg[:-2].ljust(JPEG_BYTES - 2, b'\0') + b'\xff\xd9', np.uint8)
    message = _message(format='jpeg', data=data)
    with _camera(COMPRESSED_IMAGE) as camera:

        def ours() -> None:
            for _ in range(JPEG_FRAMES):
                camera.send(message)
            camera.settle()
            if durable:
                camera.flush()

        def theirs() -> None:
            for _ in range(JPEG_FRAMES):
                data.tobytes()

        _timed(ours)
        for _ in range(ROUNDS):
            more_s = _timed(ours) - _timed(theirs)
            if not durable:
                camera.flush()
            yield 1000 * more_s / JPEG_FRAMES, 1.0
