"""What must be true of a spool whatever happens to it, as a small model beside a real one.

A :class:`World` has a spool on a faulty disk and a gateway (a dict). It does to the spool what a recorder and
an uploader do, notes what it was promised, and :meth:`World.verify` holds the gateway against the notes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from faulty_fs import FaultyFs

from cognitive3d_ros.counters import Count, Ledger
from cognitive3d_ros.spool import SessionSpool, Spool, SpoolLimits
from cognitive3d_ros.wire.framing import Part
from cognitive3d_ros.wire.identity import SessionIdentity

ROOT = Path('/var/lib/spool')
STREAMS = {
    'properties': 'gaze',
    'pose': 'gaze',
    'events': 'events',
    'series': 'sensors',
    'camera': 'camera',
    'lidar': 'lidar',
}
BINARY = ('camera', 'lidar')
KEPT = ('properties', 'events')  # never evicted, and refused last
NO_LIMITS = SpoolLimits(max_bytes=1 << 60, min_free_bytes=0)


def assemble(identity, stream, klass, number, entries):
    return b'\n'.join(entries), 'text/plain'


def identity(second: int) -> SessionIdentity:
    return SessionIdentity(f'{second}_rover', 'rover', 'scene', 3, '1.0.0', second * 10**9, 0.1)


def entry(seq: int, klass: str, size: int = 0) -> bytes:
    return f'{seq}:{klass}:'.encode() + b'x' * size


def read_entry(data: bytes) -> tuple[int, str]:
    seq, klass, _ = data.decode().split(':')
    return int(seq), klass


@dataclass
class Told:
    """What was appended to a session, and how much of it was promised."""

    text: list[tuple[int, str]] = field(default_factory=list)  # (seq, class), JSON streams
    binary: list[tuple[int, str]] = field(default_factory=list)
    sealed: set[int] = field(default_factory=set)  # binary entries whose part is closed
    durable: int = 0  # the last JSON seq that a flush has promised
    parted: set[int] = field(default_factory=set)  # binary entries that a flush has promised
    since: int = 0  # the last seq before the last crash: what was only in memory is gone
    begun: bool = False
    finishing: bool = False
    latest: list[tuple[int, int]] = field(default_factory=list)  # at each resume: (seq, latest_ns)


class World:
    def __init__(self, fs: FaultyFs, limits: SpoolLimits = NO_LIMITS) -> None:
        self.fs = fs
        self.limits = limits
        self.ledger = Ledger()
        self.spool: Spool | None = None
        self.live: dict[str, SessionSpool] = {}
        self.told: dict[str, Told] = {}
        self.gateway: dict[tuple[str, str, int], Part] = {}
        self.second = 1_700_000_000
        self.seq = 0
        self.at_ns = 0
        self.refused = 0

    # What a recorder does

    def open(self) -> None:
        self.spool = Spool.open(ROOT, fs=self.fs, ledger=self.ledger, limits=self.limits)
        assert self.spool.last_second(self.second) >= self.second or not self.told

    def start(self) -> str:
        self.spool.issue_second(self.second + 1)
        self.second += 1
        session_id = f'{self.second}_rover'
        self.told[session_id] = Told()
        session = self.spool.start(identity(self.second), assemble)
        self.told[session_id].begun = session.error is None
        self.live[session_id] = session
        return session_id

    def append(self, session_id: str, klass: str, size: int = 0) -> None:
        self.seq += 1
        seq, told = self.seq, self.told[session_id]
        taken = self.live[session_id].append(
            STREAMS[klass],
            klass,
            entry(seq, klass, size),
            time_ns=seq,
            at_ns=self.at_ns,
            context=None if klass in BINARY else str(seq).encode(),
        )
        if taken:
            (told.binary if klass in BINARY else told.text).append((seq, klass))
        else:
            assert klass not in KEPT
            self.refused += 1

    def seal(self, session_id: str, klass: str) -> None:
        self.live[session_id].seal(STREAMS[klass], klass)
        told = self.told[session_id]
        told.sealed |= {seq for seq, k in told.binary if k == klass and seq > told.since}

    def flush(self, session_id: str) -> bool:
        told = self.told[session_id]
        done = self.live[session_id].flush(self.at_ns)
        assert done == (self.live[session_id].error is None)
        if done:
            self._promised(told)
        return done

    def finish(self, session_id: str) -> bool:
        told = self.told[session_id]
        told.finishing = True
        done = self.live[session_id].finish()
        assert done == self.live[session_id].ended
        if done:
            told.sealed |= {seq for seq, _ in told.binary if seq > told.since}
            self._promised(told)
            del self.live[session_id]
        return done

    def _promised(self, told: Told) -> None:
        told.begun = True
        told.parted |= told.sealed
        if told.text:
            told.durable = told.text[-1][0]

    # What an uploader does

    def deliver(self, most: int = 1 << 30) -> None:
        for session_id in self.spool.sessions():
            while most > 0 and (heads := self.spool.heads(session_id)):
                for ref in heads:
                    part = self.spool.read(ref)
                    key = ref[:3]
                    assert ref.size_bytes > len(part.body)
                    if key in self.gateway:
                        assert self.gateway[key] == part  # invariant 7
                    else:
                        before = [n for s, t, n in self.gateway if (s, t) == key[:2]]
                        next_number = max(before, default=0) + 1
                        assert ref.number == next_number or self.evicted
                        assert ref.number >= next_number
                    self.gateway[key] = part
                    self.spool.delivered(ref)
                    most -= 1

    # What fate does

    def kill(self) -> None:
        self.fs.kill()
        self.live.clear()
        self.spool = None

    def cut_power(self) -> None:
        self.fs.cut_power()
        self.live.clear()
        self.spool = None

    def recover(self) -> None:
        """Open again and close what has no end, as a recorder does."""
        if self.spool is None:
            self.open()
        unended = {one.session_id for one in self.spool.unended()}
        for session_id, told in list(self.told.items()):
            if session_id in self.live:
                continue
            if session_id in unended:
                self._resume(session_id, told)
            elif not (told.finishing and (told.begun or self._seen(session_id))):
                assert not told.begun, f'{session_id} is gone'
                del self.told[session_id]

    def _seen(self, session_id: str) -> bool:
        """Say whether any part of a session is there or was delivered."""
        delivered = any(key[0] == session_id for key in self.gateway)
        return delivered or session_id in self.spool.sessions()

    def _resume(self, session_id: str, told: Told) -> None:
        session = self.spool.resume(session_id, assemble)
        kept = int(session.context or b'0')
        assert kept >= told.durable, 'a promised entry is gone'
        told.text = [(seq, klass) for seq, klass in told.text if seq <= kept]
        assert not told.text or kept == told.text[-1][0], 'the context is not that of the entries'
        told.latest.append((self.seq, session.latest_ns))
        told.since = self.seq
        told.begun, told.finishing, told.sealed = True, False, set()
        self.live[session_id] = session
        self.append(session_id, 'events')
        self.finish(session_id)

    # What must be true

    @property
    def evicted(self) -> int:
        return self.ledger.value(Count.PARTS_EVICTED)

    def verify(self) -> None:
        """Finish everything, deliver it, and hold the gateway against what was told."""
        self.recover()
        for session_id in list(self.live):
            assert self.finish(session_id), self.live[session_id].error
        self.deliver()
        assert not list(self.spool.parts())
        assert self.spool.usage().parts == 0
        missing = sum(self._verify(session_id, told) for session_id, told in self.told.items())
        assert (
            missing <= self.evicted
        )  # a part that was delivered may be evicted before it is removed
        assert self.refused == self.ledger.value(Count.DROPPED_RECORDS)
        assert self.ledger.value(Count.DROPPED_EVENTS) == 0
        held = {key[0] for key in self.gateway}
        assert held <= set(self.told), 'parts of a session that never was'
        for _ in range(2):  # clears up what a disk that refused has left behind
            self.kill()
            self.open()
            self.deliver()
        left = [name for name in self.fs.tree() if '/quarantine/' not in name]
        assert set(left) <= {f'{ROOT}/lock', f'{ROOT}/last_second'}, left
        quarantined = [name for name in self.fs.tree() if '/quarantine/' in name]
        assert all('.tmp' in name for name in quarantined), quarantined

    def _verify(self, session_id: str, told: Told) -> int:
        """Verify one session; return how many part numbers are missing."""
        missing = 0
        parts = sorted(
            (key[1:], part) for key, part in self.gateway.items() if key[0] == session_id
        )
        found: dict[str, list[int]] = {klass: [] for klass in STREAMS}
        for stream, group in groupby(parts, key=lambda item: item[0][0]):
            run = list(group)
            missing += max(number for (_, number), _ in run) - len(run)
            for _, part in run:
                assert part.header.identity == identity(int(session_id.partition('_')[0]))
                entries = [read_entry(line) for line in part.body.split(b'\n')]
                assert {klass for _, klass in entries} == {part.header.klass}
                assert STREAMS[part.header.klass] == stream
                assert part.header.latest_ns == max(seq for seq, _ in entries)
                found[part.header.klass] += [seq for seq, _ in entries]
        for klass, seqs in found.items():
            told_seqs = [seq for seq, k in told.text + told.binary if k == klass]
            if klass in KEPT or (klass not in BINARY and not self.evicted):
                assert seqs == told_seqs, (session_id, klass)
            assert seqs == sorted(set(seqs))
            assert set(seqs) <= set(told_seqs)
            if klass in BINARY and not self.evicted:
                assert {s for s, k in told.binary if k == klass} & told.parted <= set(seqs)
        stored = [seq for seqs in found.values() for seq in seqs]
        for upto, latest_ns in told.latest:
            found_ns = max((seq for seq in stored if seq <= upto), default=0)
            assert latest_ns == found_ns or (self.evicted and latest_ns > found_ns)
        return missing
