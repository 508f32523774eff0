"""Three days without network on an injected clock: recorded, kept, delivered in order; memory stays flat."""

import gc
import random
import resource
from collections import defaultdict
from pathlib import Path

import pytest
from recording_rig import Rig, S

from cognitive3d_ros.counters import Count, UploadBlocked
from cognitive3d_ros.spool import Fs
from cognitive3d_ros.upload.exchange import Fault, Response, TransportFault
from cognitive3d_ros.upload.uploader import Uploader
from cognitive3d_ros.wire.framing import parse_part_name

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

DAYS = 3
STEP_S = 5  # of the clock; one pose in each
SESSION_S = 6 * 3600
FLUSH_S = 10
PART_BYTES = 500  # what a part may cost in memory


class Unsynced(Fs):
    """The real disk without waiting for it: 60,000 parts, whose durability is the matter of other tests."""

    def sync(self, fd):
        pass

    def sync_folder(self, path):
        pass


class Network:
    """A transport without a network until that is there. What arrives must be in order."""

    def __init__(self, clocks):
        self.clocks, self.there = clocks, False
        self.tries_s, self.sessions = [], []
        self.arrived, self.last = 0, defaultdict(int)

    def send(self, request):
        if not self.there:
            self.tries_s.append(self.clocks.mono_ns / S)
            return TransportFault(Fault.UNREACHABLE, 'Network is unreachable')
        session_id, stream, number = request.headers['Idempotency-Key'].split('/')
        assert int(number) == self.last[session_id, stream] + 1
        self.last[session_id, stream] += 1
        self.arrived += 1
        if self.sessions[-1:] != [session_id]:
            self.sessions.append(session_id)
        return Response(200, {'cvr-request-time': '1'})


def resident_bytes():
    gc.collect()
    return int(Path('/proc/self/statm').read_text().split()[1]) * resource.getpagesize()


def test_three_days_without_network(tmp_path):
    rig = Rig(tmp_path, fs=Unsynced(), sample_rate_hz=1 / STEP_S, stale_pose_s=10.0)
    rig.tf.set_transform('map', 'base_link', 0, (1, 2, 3), (0, 0, 0, 1), static=True)
    network = Network(rig.clocks)
    uploader = Uploader(
        gateway='https://gateway.example',
        spool=rig.spool,
        transport=network,
        key=lambda: 'KEY',
        ledger=rig.ledger,
        log=rig.log,
        uniform=random.Random(3).random,
        monotonic=lambda: rig.clocks.mono_ns / S,
        wall=lambda: rig.clocks.wall_ns / S,
    )
    ids, next_upload_s, early = [], 0.0, 0
    for second in range(0, DAYS * 86_400, STEP_S):
        if second % SESSION_S == 0:
            ids.append(rig.recorder.start_session())
        rig.clocks.advance(STEP_S * S)
        rig.recorder.poll()
        if second % 60 == 0:
            rig.recorder.event('lap', {'n': second // 60})
        if second % FLUSH_S == 0:
            rig.recorder.flush()
        if second >= next_upload_s:
            next_upload_s = second + uploader.step()
        if second == 3 * 3600:
            early, early_parts = resident_bytes(), rig.spool.usage().parts
    rig.recorder.end_session('shutdown')
    waiting = rig.spool.usage().parts
    grown = resident_bytes() - early
    print(f'{waiting} parts in {len(ids)} sessions; {grown / 1e6:.1f} MB more than at the start')
    assert len(ids) == DAYS * 86_400 / SESSION_S
    assert waiting > 50_000
    assert waiting == rig.ledger.value(Count.PARTS_WRITTEN)
    assert grown < (waiting - early_parts) * PART_BYTES
    assert uploader.state is UploadBlocked.NETWORK
    assert 'Network is unreachable' in uploader.last_error
    assert rig.ledger.value(Count.UPLOAD_FAILURES) == len(network.tries_s)
    # It has been tried all the time, never in a hurry; that was said once.
    assert sum('Network is unreachable' in text for _, text in rig.log.lines) == 1
    gaps_s = [b - a for a, b in zip(network.tries_s, network.tries_s[1:], strict=False)]
    assert 500 < len(gaps_s) < 3 * 86_400 / 60
    assert max(gaps_s) <= 300 + STEP_S

    network.there = True
    begin, begin_ns = resident_bytes(), rig.clocks.mono_ns
    while rig.spool.sessions():
        rig.clocks.advance(round(uploader.step() * S) + 1_000_000)
    drained_s = (rig.clocks.mono_ns - begin_ns) / S
    assert drained_s < 300 + 0.01 * waiting  # one wait at most, from the outage
    print(f'drained; {(resident_bytes() - begin) / 1e6:.1f} MB more than before')
    assert resident_bytes() < begin + 2_000_000
    assert rig.ledger.value(Count.PARTS_UPLOADED) == waiting == network.arrived
    assert network.sessions == ids
    assert uploader.state is UploadBlocked.DRAINING
    assert not [p for p in (tmp_path / 'sessions').rglob('*') if parse_part_name(p.name)]
    rig.close()
