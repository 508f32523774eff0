"""The Husky recording: ``c3d record`` in this process, durable, against rosbags reading and deserialising."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from rosbags.highlevel import AnyReader

from bench.table import Pair, Row
from cognitive3d_ros.bags.door import record_bag
from cognitive3d_ros.parameters import parse

BAG = Path('../shared/data/husky_outdoor.bag')
ODOMETRY = '/husky_velocity_controller/odom'
ROUNDS = 7


def bare() -> float:
    """Read and deserialise all messages; return the seconds it took."""
    start_s = time.perf_counter()
    with AnyReader([BAG]) as reader:
        for connection, _, raw in reader.messages():
            reader.deserialize(raw, connection.msgtype)
    return time.perf_counter() - start_s


def ours() -> float:
    """Record poses at 10 Hz and all topics as series; return the seconds it took."""
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        config = parse(
            {
                'device_id': 'husky',
                'scene_id': 'bench',
                'scene_version': 1,
                'spool.dir': folder,
                'spool.min_free_bytes': 0,
                'reference_frames': ['odom'],
                'topics': ['/imu/data', ODOMETRY, '/fix'],
            }
        )
        start_s = time.perf_counter()
        record_bag(BAG, config, Path(folder), odom_tf=ODOMETRY)
        return time.perf_counter() - start_s


def measure() -> Iterator[Pair]:
    """Give (ours, bare) of each round."""
    for turn in range(ROUNDS + 1):
        took_s = {way: way() for way in ((ours, bare) if turn % 2 else (bare, ours))}
        if turn:  # the first one warms up
            yield took_s[ours], took_s[bare]


def rows() -> list[Row]:
    """Return the offline row, where the recording is there."""
    if not BAG.is_file():
        return []
    return [
        Row('offline: the Husky bag, 16,806 messages', 'rosbags alone', 2.2, measure),
    ]
