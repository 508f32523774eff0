"""kill -9 of a real process that records to a real disk, at moments of all kinds."""

import random
import subprocess
import sys
from pathlib import Path

import pytest
from spool_model import assemble, identity

from cognitive3d_ros.spool import Spool, SpoolLimits

VICTIM = Path(__file__).with_name('spool_victim.py')
KINDS = {'pose': 1, 'events': 2, 'series': 0}


@pytest.mark.rule(77)
def test_kill(tmp_path):
    """What a flush has promised is there, once, in order, without a gap in the numbers."""
    chance = random.Random(9)
    for second in range(1_700_000_000, 1_700_000_012):
        promised = _record_and_kill(tmp_path, second, flushes=chance.randrange(1, 40))
        spool = Spool.open(tmp_path, limits=SpoolLimits(1 << 40, 0))
        assert [one.session_id for one in spool.unended()] == [f'{second}_rover']
        session = spool.resume(f'{second}_rover', assemble)
        kept = int(session.context)
        assert promised <= kept
        assert session.latest_ns == kept
        session.append('events', 'events', b'end', time_ns=0, at_ns=0)
        assert session.finish()
        _check(spool, identity(second).session_id, kept)
        spool.close()
    assert list((tmp_path / 'sessions').iterdir()) == []


def _record_and_kill(root: Path, second: int, *, flushes: int) -> int:
    """Kill a recording process after so many flushes; return what it was promised last."""
    command = [sys.executable, str(VICTIM), str(root), str(second)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as victim:
        assert victim.stdout is not None
        for _ in range(flushes):
            promised = victim.stdout.readline()
        victim.kill()
        later = victim.stdout.read().splitlines(keepends=True)
    whole = [line for line in [promised, *later] if line.endswith('\n')]
    return int(whole[-1])


def _check(spool: Spool, session_id: str, kept: int) -> None:
    """Deliver a session and hold it against what was appended up to ``kept``."""
    found: dict[str, list[bytes]] = {klass: [] for klass in (*KINDS, 'camera')}
    numbers: dict[str, list[int]] = {}
    for ref in list(spool.parts()):
        assert ref.session_id == session_id
        found[ref.klass] += spool.read(ref).body.split(b'\n')
        numbers.setdefault(ref.stream, []).append(ref.number)
        spool.delivered(ref)
    assert found['events'].pop() == b'end'
    for klass, rest in KINDS.items():
        expected = [b'%d' % count for count in range(1, kept + 1) if count % 3 == rest]
        assert found[klass] == expected
    camera = [int(entry[1:]) for entry in found['camera']]
    assert camera == list(range(50, 50 * len(camera) + 1, 50))
    for run in numbers.values():
        assert run == list(range(1, len(run) + 1))
