"""How much a power cut costs: a recorder at full load on a disk in memory whose power is cut at any call."""

import contextlib
import json
from pathlib import Path

from faulty_fs import FaultyFs, PowerCut
from recording_rig import WALL, Rig, S

from cognitive3d_ros.recording.recovery import close_unended
from cognitive3d_ros.spool import Spool

ROOT = Path('/var/lib/spool')
RATE_HZ = 20
FLUSH_S = 1.0
SECONDS = 12
STARTED = 30  # calls, by which the session has begun


def record(fs, seconds):
    """Record poses and events at 20 Hz, flushed every second, for so long or until the power is cut."""
    rig = Rig(ROOT, fs=fs, sample_rate_hz=RATE_HZ)
    rig.tf.set_transform('map', 'base_link', 0, (1, 2, 3), (0, 0, 0, 1), static=True)
    with contextlib.suppress(PowerCut):
        rig.recorder.start_session()
        for index in range(1, round(seconds * RATE_HZ) + 1):
            rig.clocks.advance(S // RATE_HZ)
            rig.recorder.poll()
            rig.recorder.event('lap', {'number': index})
            if index % round(FLUSH_S * RATE_HZ) == 0:
                rig.recorder.flush()
    return rig


def durable(fs, log):
    """Start again and close the session; return when its latest pose and its latest event were recorded."""
    spool = Spool.open(ROOT, fs=fs)
    close_unended(spool, log)
    latest = {'gaze': 0.0, 'events': 0.0}
    for ref in list(spool.parts()):
        if ref.stream in latest:
            part = spool.read(ref)
            records = json.loads(part.body)['data']
            times = [each['time'] for each in records if each.get('name', 'lap') == 'lap']
            latest[ref.stream] = max([latest[ref.stream], *times])
    spool.close()
    return latest


def _lost(fs, rig):
    fs.cut_power()
    cut_s = rig.clocks.wall_ns / S
    return {kind: cut_s - max(at_s, WALL / S) for kind, at_s in durable(fs, rig.log).items()}


def losses():
    """Give the seconds of poses and of events that a power cut costs: at every call, and between any two."""
    fs = FaultyFs()
    record(fs, SECONDS)
    for number in range(STARTED, fs.calls + 1):
        fs = FaultyFs(seed=number)
        fs.fault = lambda call, name, at=number: -1 if call == at else None
        yield _lost(fs, record(fs, SECONDS))
    for index in range(RATE_HZ, RATE_HZ * SECONDS):
        fs = FaultyFs(seed=index)
        yield _lost(fs, record(fs, index / RATE_HZ))
