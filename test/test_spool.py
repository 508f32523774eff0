"""The spool on real files: parts, recovery, damage, eviction, bounds, threads."""

from __future__ import annotations

import errno
import inspect
import json
import os
import re
import shutil
import struct
import sys
import threading
import time
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spool_model import assemble, identity

from cognitive3d_ros.counters import Count, Drop, Ledger
from cognitive3d_ros.errors import FormatError, NewerFormatError, SpoolError, SpoolLockedError
from cognitive3d_ros.spool import Fs, Spool, SpoolLimits, journal
from cognitive3d_ros.spool.seconds import Seconds
from cognitive3d_ros.wire.framing import PartHeader, frame

S = 1_000_000_000
MIB = 1 << 20
FIRST = '1700000000_rover'
FREE = SpoolLimits(max_bytes=1 << 40, min_free_bytes=0)


def open_spool(root: Path, **options) -> Spool:
    return Spool.open(root, **{'limits': FREE, **options})


def start(spool: Spool, second: int = 1_700_000_000):
    return spool.start(identity(second), assemble)


def add(session, stream, klass, *entries: bytes, at_s: float = 0, time_ns: int = 1) -> None:
    for entry in entries:
        assert session.append(stream, klass, entry, time_ns=time_ns, at_ns=int(at_s * S))


def names(spool: Spool, session_id: str = FIRST) -> list[str]:
    """Return what lies in a session's folder."""
    folder = spool.root / 'sessions' / session_id
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def offered(spool: Spool) -> list[tuple[str, int, str]]:
    return [(ref.stream, ref.number, ref.klass) for ref in spool.parts()]


def bodies(spool: Spool, stream: str) -> list[bytes]:
    return [spool.read(ref).body for ref in spool.parts() if ref.stream == stream]


def quarantined(spool: Spool) -> dict[str, str]:
    """Return what lies in quarantine, with the reasons."""
    folder = spool.root / 'quarantine'
    return {
        path.name: json.loads((folder / f'{path.name}.reason.json').read_text())['reason']
        for path in folder.iterdir()
        if not path.name.endswith('.reason.json')
    }


@pytest.fixture
def spool(tmp_path):
    spool = open_spool(tmp_path / 'spool')
    yield spool
    spool.close()


class FailingFs(Fs):
    """The real disk, which refuses what ``refuse`` names."""

    def __init__(self) -> None:
        self.refuse: dict[str, int] = {}
        self.free: int | None = None

    def _check(self, name: str) -> None:
        if name in self.refuse:
            raise OSError(self.refuse[name], os.strerror(self.refuse[name]))

    def create(self, path):
        self._check('create')
        return super().create(path)

    def write(self, fd, data):
        self._check('write')
        return super().write(fd, data)

    def make_folder(self, path):
        self._check('make_folder')
        super().make_folder(path)

    def rename(self, old, new):
        self._check('rename')
        super().rename(old, new)

    def scan(self, path):
        self._check('scan')
        return super().scan(path)

    def remove(self, path):
        self._check('remove')
        super().remove(path)

    def read(self, path):
        self._check('read')
        return super().read(path)

    def free_bytes(self, path):
        return super().free_bytes(path) if self.free is None else self.free


# Parts


def test_properties_are_a_part_at_once(spool):
    session = start(spool)
    add(session, 'gaze', 'properties', b'{"a":1}')
    add(session, 'gaze', 'pose', b'p')
    assert session.flush()
    assert offered(spool) == [('gaze', 1, 'properties')]
    assert names(spool) == ['gaze.000001.properties.c3d', 'journal']
    part = spool.read(next(spool.parts()))
    assert part.body == b'{"a":1}'
    assert part.header == PartHeader(
        identity(1_700_000_000), 'gaze', 1, 'properties', 1, 'text/plain', 1
    )


def test_parts_close_after_ten_seconds_of_session_time(spool):
    session = start(spool)
    for tenth in range(251):
        add(session, 'gaze', 'pose', str(tenth).encode(), at_s=tenth / 10)
    session.flush()
    assert [body.split(b'\n')[0] for body in bodies(spool, 'gaze')] == [b'0', b'100']
    session.flush(int(29.9 * S))
    assert len(bodies(spool, 'gaze')) == 2
    session.flush(30 * S)
    assert bodies(spool, 'gaze')[2] == b'\n'.join(str(n).encode() for n in range(200, 251))


def test_parts_close_at_256_kib(spool):
    session = start(spool)
    for _ in range(5):
        add(session, 'events', 'events', b'x' * 100_000)
    session.flush()
    assert [len(body) for body in bodies(spool, 'events')] == [300_002]


def test_binary_entries_wait_for_their_part(spool):
    """Nothing of an open camera part is in the journal; it closes after 5 s, or at 4 MiB."""
    session = start(spool)
    add(session, 'camera', 'camera', b'x' * 1000)
    assert session.flush()
    before = (spool.root / 'sessions' / FIRST / 'journal').stat().st_size
    assert before < 1000
    assert session.flush(int(4.9 * S))
    assert offered(spool) == []
    assert session.flush(5 * S)
    assert offered(spool) == [('camera', 1, 'camera')]
    for _ in range(5):
        add(session, 'lidar', 'lidar', bytes(MIB), at_s=6)
    session.flush()
    assert [len(body) for body in bodies(spool, 'lidar')] == [4 * MIB + 3]


def test_a_part_that_is_in_memory_alone_asks_to_be_written(spool):
    """Once it is closed it must not wait for the next flush by the clock; what is journalled may."""
    asked = []
    spool.on_part_due = lambda: asked.append(1)
    session = start(spool)
    add(session, 'events', 'events', bytes(MIB))
    add(session, 'camera', 'camera', bytes(MIB), bytes(MIB), bytes(MIB))
    assert not asked
    add(session, 'camera', 'camera', bytes(MIB))
    assert len(asked) == 1  # by size
    session.flush()
    add(session, 'camera', 'camera', b'x')
    add(session, 'camera', 'camera', b'x', at_s=5)
    assert len(asked) == 2  # by time
    session.flush(10 * S)
    session.finish()
    assert len(asked) == 2  # a flush writes what it closes itself


def test_two_classes_share_the_numbers_of_a_stream(spool):
    session = start(spool)
    add(session, 'gaze', 'pose', b'1')
    add(session, 'gaze', 'properties', b'2')
    session.seal('gaze', 'pose')
    add(session, 'gaze', 'properties', b'3')
    session.flush()
    assert offered(spool) == [
        ('gaze', 1, 'properties'),
        ('gaze', 2, 'pose'),
        ('gaze', 3, 'properties'),
    ]


def test_session_time_that_goes_back_closes_no_part_early(spool):
    session = start(spool)
    add(session, 'gaze', 'pose', b'1', at_s=100)
    add(session, 'gaze', 'pose', b'2', at_s=0)
    add(session, 'gaze', 'pose', b'3', at_s=9.9)
    add(session, 'gaze', 'pose', b'4', at_s=10)
    session.flush()
    assert bodies(spool, 'gaze') == [b'1\n2\n3']


def test_sealing_what_is_not_open_does_nothing(spool):
    session = start(spool)
    session.seal('camera', 'camera')
    assert session.flush()
    assert offered(spool) == []


def test_a_flush_with_nothing_new_writes_nothing(spool):
    session = start(spool)
    add(session, 'events', 'events', b'1')
    session.flush()
    path = spool.root / 'sessions' / FIRST / 'journal'
    size = path.stat().st_size
    for _ in range(5):
        session.flush()
    assert path.stat().st_size == size


def test_the_journal_is_replaced_when_it_grows(spool):
    session = start(spool)
    path = spool.root / 'sessions' / FIRST / 'journal'
    sizes = []
    for index in range(60):
        add(session, 'events', 'events', b'x' * 50_000, at_s=index)
        session.flush()
        sizes.append(path.stat().st_size)
    assert max(sizes) < 1.2 * MIB
    found = journal.replay(path.read_bytes())
    assert found.state is not None
    assert (found.damaged_bytes, found.torn_bytes, found.lost_entries) == (0, 0, 0)
    session.finish()
    assert sum(body.count(b'x') for body in bodies(spool, 'events')) == 60 * 50_000


# Sessions


def test_the_journal_is_the_sign_of_a_session_without_an_end(spool):
    session = start(spool)
    add(session, 'events', 'events', b'1')
    assert names(spool) == ['journal']
    assert spool.live == {FIRST}
    assert session.finish()
    assert session.ended
    assert names(spool) == ['events.000001.events.c3d']
    assert spool.live == frozenset()
    assert session.finish()
    with pytest.raises(SpoolError, match='has been finished'):
        session.append('events', 'events', b'2', time_ns=1, at_ns=1)


def test_a_session_with_nothing_leaves_nothing(spool):
    assert start(spool).finish()
    assert list((spool.root / 'sessions').iterdir()) == []


def test_a_session_id_is_begun_once(spool):
    session = start(spool)
    with pytest.raises(SpoolError, match='holds session'):
        start(spool)
    add(session, 'events', 'events', b'1')
    session.finish()
    assert spool.holds(FIRST)
    with pytest.raises(SpoolError, match='holds session'):
        start(spool)
    spool.delivered(next(spool.parts()))
    assert not spool.holds(FIRST)


@pytest.mark.parametrize('session_id', ['', '../x', '17_../../x', 'rover'])
def test_what_is_no_session_id_is_refused(spool, session_id):
    one = identity(1)
    with pytest.raises(SpoolError, match='no session id'):
        spool.start(type(one)(session_id, *[getattr(one, f) for f in one.__slots__[1:]]), assemble)


def test_finish_completes_after_the_disk_refused(tmp_path):
    fs = FailingFs()
    spool = open_spool(tmp_path, fs=fs)
    session = start(spool)
    add(session, 'events', 'events', b'1')
    fs.refuse = {'create': errno.EROFS}
    assert not session.finish()
    assert session.error == f'{tmp_path}/sessions/{FIRST}: Read-only file system'
    assert offered(spool) == []
    fs.refuse = {'remove': errno.EIO}
    assert not session.finish()
    assert offered(spool) == []  # the journal is there yet: it could be written again
    fs.refuse = {}
    assert spool.flush()
    assert session.ended
    assert session.error is None
    assert bodies(spool, 'events') == [b'1']
    spool.close()


def test_a_flush_that_is_at_work_when_the_session_is_finished(spool, monkeypatch):
    """It began before there was an end to write: what was appended meanwhile is not lost with the journal."""
    session = start(spool)
    add(session, 'events', 'events', b'first')
    session.flush()
    ender = threading.Thread(target=session.finish)
    make_room = spool.make_room

    def in_between(need_bytes, *, starved):
        monkeypatch.undo()
        add(session, 'events', 'events', b'second')
        ender.start()
        deadline_s = time.monotonic() + 10
        while not session._closing and time.monotonic() < deadline_s:
            time.sleep(0.001)
        make_room(need_bytes, starved=starved)

    monkeypatch.setattr(spool, 'make_room', in_between)
    assert session.flush()
    ender.join(10)
    assert session.ended
    assert bodies(spool, 'events') == [b'first\nsecond']


def test_recovery_goes_on_where_the_journal_ends(tmp_path):
    spool = open_spool(tmp_path)
    session = start(spool)
    session.append('events', 'events', b'1', time_ns=10, at_ns=0, context=b'first')
    session.flush()
    session.append('gaze', 'pose', b'2', time_ns=30, at_ns=0, context=b'second')
    session.append('events', 'events', b'3', time_ns=20, at_ns=0)
    session.flush()
    session.append('events', 'events', b'never flushed', time_ns=99, at_ns=0, context=b'third')
    spool.close()

    spool = open_spool(tmp_path)
    assert [one.session_id for one in spool.unended()] == [FIRST]
    assert spool.holds(FIRST)
    session = spool.resume(FIRST, assemble)
    assert (session.context, session.latest_ns, session.lost_entries) == (b'second', 30, 0)
    assert spool.unended() == []
    add(session, 'events', 'events', b'end')
    assert session.finish()
    assert bodies(spool, 'events') == [b'1\n3', b'end']
    assert bodies(spool, 'gaze') == [b'2']
    with pytest.raises(SpoolError, match='without an end'):
        spool.resume(FIRST, assemble)
    spool.close()


def test_the_latest_time_outlives_a_delivered_camera_part(tmp_path):
    spool = open_spool(tmp_path)
    session = start(spool)
    add(session, 'events', 'events', b'1', time_ns=10)
    add(session, 'camera', 'camera', b'1', time_ns=500)
    session.seal('camera', 'camera')
    session.flush()
    spool.delivered(next(ref for ref in spool.parts() if ref.stream == 'camera'))
    spool.close()
    spool = open_spool(tmp_path)
    session = spool.resume(FIRST, assemble)
    assert session.latest_ns == 500
    add(session, 'camera', 'camera', b'2', time_ns=501)
    session.finish()
    assert ('camera', 2, 'camera') in offered(spool)
    spool.close()


def test_unknown_parts_are_held_back(tmp_path):
    """A part that the journal does not know yet is neither offered nor written a second time."""
    spool = open_spool(tmp_path)
    session = start(spool)
    add(session, 'events', 'events', b'1')
    session.flush()
    journal_path = tmp_path / 'sessions' / FIRST / 'journal'
    before = journal_path.read_bytes()
    session.seal('events', 'events')
    session.flush()
    spool.close()
    journal_path.write_bytes(before)  # as if the process had died between the part and the journal

    spool = open_spool(tmp_path)
    assert offered(spool) == []
    session = spool.resume(FIRST, assemble)
    assert offered(spool) == [('events', 1, 'events')]
    session.finish()
    assert offered(spool) == [('events', 1, 'events')]
    spool.close()


def test_a_session_that_is_abandoned_is_recovered(tmp_path):
    spool = open_spool(tmp_path)
    session = start(spool)
    add(session, 'events', 'events', b'1')
    session.flush()
    session.abandon()
    assert spool.live == frozenset()
    assert names(spool) == ['journal']
    spool.close()
    spool = open_spool(tmp_path)
    spool.resume(FIRST, assemble).finish()
    assert bodies(spool, 'events') == [b'1']
    spool.close()


def test_a_segment_of_which_no_part_can_be_made_is_kept(tmp_path):
    """The others go on; its entries lie in quarantine, as a journal of one batch."""

    def picky(one, stream, klass, number, entries):
        if b'bad' in entries:
            raise ValueError('no such thing')
        return assemble(one, stream, klass, number, entries)

    ledger = Ledger()
    spool = open_spool(tmp_path, ledger=ledger)
    session = spool.start(identity(1_700_000_000), picky)
    add(session, 'camera', 'camera', b'good', b'bad')
    session.seal('camera', 'camera')
    add(session, 'camera', 'camera', b'next')
    add(session, 'events', 'events', b'1')
    assert session.finish()
    assert offered(spool) == [('events', 1, 'events'), ('camera', 1, 'camera')]
    assert bodies(spool, 'camera') == [b'next']
    ((name, reason),) = quarantined(spool).items()
    assert reason == 'no part can be made of these entries: ValueError: no such thing'
    kept = journal.replay((tmp_path / 'quarantine' / name).read_bytes())
    assert kept.entries == {1: [b'good', b'bad']}
    assert ledger.value(Count.PARTS_QUARANTINED) == 1
    spool.close()


# Seconds and owners


def test_seconds(tmp_path):
    """A second is issued once, whatever became of the sessions."""
    spool = open_spool(tmp_path)
    assert spool.last_second(1_700_000_000) == 0
    spool.issue_second(1_700_000_005)
    assert spool.last_second(1_700_000_000) == 1_700_000_005
    spool.close()
    spool = open_spool(tmp_path)
    assert spool.last_second(1_700_000_005) == 1_700_000_005
    assert spool.last_second(1_700_000_006) == 0
    start(spool, 1_700_000_009)
    spool.close()
    (tmp_path / 'last_second').write_bytes(b'1700000010\n')  # as an older version wrote it
    spool = open_spool(tmp_path)
    assert spool.last_second(1_700_000_009) == 1_700_000_010
    assert spool.faults == []
    spool.close()


@pytest.mark.parametrize(
    'data',
    [
        b'\0\0garbage',
        b'',
        b'99999999999999999999999',
        b'-5',
        b'3 4',
        b'1 2 3',
        b'99999999999 0\n',  # the year 5138
        b'4102444800 4102444800\n',  # 2100
        b'4000000000 0\n',  # a run that holds every clock, of 126 years
        b'9700000006 1700000000\n',  # a bit of 1700000006
        b'1900000006 1700000000\ncrc32 a9514a4a\n',  # 2030, and the checksum is of 1700000006
        'folder',
        'tmp',
    ],
)
def test_seconds_that_are_none_are_put_aside(tmp_path, data):
    """A file that cannot be believed, or written again, must not hold up every session from then on."""
    spool = open_spool(tmp_path)
    start(spool, 1_700_000_009)
    spool.close()
    if data == 'folder':
        (tmp_path / 'last_second').mkdir()
    elif data == 'tmp':
        (tmp_path / 'last_second.tmp').mkdir()
    else:
        (tmp_path / 'last_second').write_bytes(data)
    for _ in range(2):
        spool = open_spool(tmp_path)
        assert spool.last_second(1_700_000_009) in (1_700_000_009, 1_700_000_010)
        spool.issue_second(1_700_000_010)
        spool.close()
    assert spool.faults == []
    (reason,) = quarantined(spool).values()
    assert 'ids go on' in reason or 'Is a directory' in reason


def test_a_session_of_no_time_at_all_spoils_no_seconds(tmp_path):
    (tmp_path / 'sessions' / '999999999999_rover').mkdir(parents=True)
    for second in (1_700_000_001, 1_700_000_002):
        spool = open_spool(tmp_path)
        assert spool.faults == []
        assert spool.last_second(1_700_000_000) == (second - 1 if second % 2 == 0 else 0)
        spool.issue_second(second)
        spool.close()


def test_any_bit_of_the_seconds_that_flips_is_found():
    seconds = Seconds()
    seconds.add(1_796_086_441, 1_796_086_375)
    seconds.add(1_700_000_000)
    text = seconds.text().encode()
    assert Seconds().read(text) is None
    for at in range(8 * len(text)):
        data = bytearray(text)
        data[at // 8] ^= 1 << at % 8
        read = Seconds()
        try:
            read.read(bytes(data))
        except ValueError:
            continue
        assert read.text() == seconds.text()


def test_no_second_is_issued_beyond_2099(tmp_path):
    spool = open_spool(tmp_path)
    with pytest.raises(SpoolError, match='set the clock'):
        spool.issue_second(4_102_444_800)
    spool.issue_second(4_102_444_799)
    assert spool.last_second(1_700_000_000) == 0
    spool.close()


def test_a_session_that_is_here_gives_its_second_to_no_other(tmp_path):
    """Only the newest runs are remembered: a robot whose clock starts anew every week forgets the others."""
    weeks = [1_600_000_000 + 7 * 86_400 * week for week in range(70)]
    for second in (*weeks, weeks[0] + 1):
        (tmp_path / 'sessions' / f'{second}_rover-07').mkdir(parents=True)
        (tmp_path / 'sessions' / f'{second}_rover-07' / 'notes.txt').touch()
    spool = open_spool(tmp_path)
    assert spool.last_second(weeks[0]) == weeks[0] + 1
    assert spool.last_second(weeks[1]) == weeks[1]
    assert spool.last_second(weeks[-1]) == weeks[-1]
    assert spool.last_second(weeks[-1] + 1) == 0
    spool.close()


def test_a_clock_that_was_once_far_ahead_poisons_no_ids(tmp_path):
    """The next id is by the clock again, in the same process and after a restart; none is issued twice."""
    now, far = 1_796_000_000, 4_000_000_000
    issued = []
    for clock in (now, far, far, now + 60, now, far, now - 3600, far - 3600):
        spool = open_spool(tmp_path)
        second = max(clock, spool.last_second(clock) + 1)
        spool.issue_second(second)
        issued.append(second)
        spool.close()
    assert issued == [now, far, far + 1, now + 60, now + 61, far + 2, now + 62, far + 3]


@given(
    st.lists(st.integers(0, 20 * 86_400) | st.sampled_from([0, 86_400, 86_401, 172_800])),
    st.integers(0, 5),
)
def test_no_second_is_issued_twice(clocks, restart):
    seconds, issued = Seconds(), set()
    for n, clock in enumerate(clocks):
        second = max(clock, seconds.last(clock) + 1)
        assert second not in issued
        issued.add(second)
        seconds.add(second)
        if n % 6 == restart:
            read = Seconds()
            read.read(seconds.text().encode())
            assert read.text() == seconds.text()
            seconds = read


def test_a_second_that_cannot_be_kept_is_not_issued(tmp_path):
    fs = FailingFs()
    spool = open_spool(tmp_path, fs=fs)
    fs.refuse = {'create': errno.ENOSPC}
    with pytest.raises(SpoolError, match='No space left'):
        spool.issue_second(5)
    assert spool.last_second(5) == 0
    spool.close()


@pytest.mark.parametrize('what', ['', 'sessions', f'sessions/{FIRST}'])
@pytest.mark.parametrize('link', [False, True])
def test_a_spool_that_is_removed_is_made_again(tmp_path, what, link):
    """Recording goes on, nobody else comes in, and what is in memory reaches the disk."""
    root = tmp_path / 'spool'
    if link:
        root.symlink_to(tmp_path / 'disk' / 'of ours')
    lines = []
    spool = open_spool(root, log=lines.append)
    session = start(spool)
    add(session, 'gaze', 'properties', b'a part')
    add(session, 'events', 'events', b'one')
    assert session.flush()
    shutil.rmtree((root / what).resolve())
    add(session, 'events', 'events', b'two')
    assert spool.flush()
    assert spool.error is None
    assert names(spool) == ['journal']
    with pytest.raises(SpoolLockedError):
        open_spool(root)
    assert offered(spool) == []
    assert spool.ledger.value((Drop.DISK_ERROR, 'gaze')) == 1
    assert any('gaze.000001.properties.c3d: removed by somebody' in line for line in lines)
    spool.issue_second(1_700_000_003)
    add(session, 'camera', 'camera', b'x' * 4 * MIB)
    spool.flush()
    spool.quarantine(next(iter(spool.parts())), 'to see that it is there')
    session.abandon()
    spool.close()
    spool = open_spool(root)
    session = spool.resume(FIRST, assemble)
    assert session.finish()
    assert bodies(spool, 'events') == [b'one\ntwo']
    assert spool.last_second(1_700_000_000) == 1_700_000_003
    spool.close()


def test_each_folder_of_a_spool_that_is_removed(tmp_path):
    """While nothing is recorded, too."""
    spool = open_spool(tmp_path / 'spool')
    for what in ('', 'quarantine', 'sessions', 'lock'):
        path = spool.root / what
        path.unlink() if path.is_file() else shutil.rmtree(path)
        assert spool.flush()
        spool.issue_second(1_700_000_000)
        session = start(spool)
        add(session, 'events', 'events', b'one')
        assert session.finish()
        with pytest.raises(SpoolLockedError):
            open_spool(spool.root)
        (ref,) = spool.parts()
        spool.quarantine(ref, 'to see that it is there')
    spool.close()


def test_a_spool_whose_lock_was_removed_and_taken_by_another(tmp_path):
    """Two never write: the first keeps in memory what it has until the other is gone."""
    spool = open_spool(tmp_path)
    session = start(spool)
    assert session.flush()
    (tmp_path / 'lock').unlink()
    other = open_spool(tmp_path)
    journal_before = (tmp_path / 'sessions' / FIRST / 'journal').read_bytes()
    add(session, 'events', 'events', b'one')
    assert not spool.flush()
    assert 'another process' in spool.error
    with pytest.raises(SpoolError, match='another process'):
        spool.issue_second(1_700_000_003)
    assert (tmp_path / 'sessions' / FIRST / 'journal').read_bytes() == journal_before
    other.close()
    assert spool.flush()
    assert session.finish()
    assert bodies(spool, 'events') == [b'one']
    spool.close()


def test_lock(tmp_path):
    spool = open_spool(tmp_path)
    with pytest.raises(SpoolLockedError, match=f"'{os.getpid()}'.*spool.dir"):
        open_spool(tmp_path)
    spool.close()
    open_spool(tmp_path).close()


def test_a_lock_file_that_a_dead_process_left_is_no_lock(tmp_path):
    (tmp_path / 'lock').write_text('1\n')
    spool = open_spool(tmp_path)
    assert (tmp_path / 'lock').read_text() == f'{os.getpid()}\n'
    spool.close()


def test_a_file_is_no_spool(tmp_path):
    (tmp_path / 'file').write_text('')
    with pytest.raises(SpoolError, match='Not a directory'):
        open_spool(tmp_path / 'file')
    with pytest.raises(SpoolError, match='Not a directory'):
        open_spool(tmp_path / 'file' / 'spool')


@pytest.mark.parametrize('code', [errno.EACCES, errno.EROFS])
@pytest.mark.parametrize('call', ['create', 'make_folder'])
def test_a_spool_that_cannot_be_written(tmp_path, code, call):
    fs = FailingFs()
    fs.refuse = {call: code}
    with pytest.raises(SpoolError) as caught:
        open_spool(tmp_path / 'spool', fs=fs)
    text = str(caught.value)
    assert str(tmp_path / 'spool') in text
    assert os.strerror(code) in text
    assert f'user id {os.getuid()}' in text
    open_spool(tmp_path / 'spool').close()  # nothing is left locked


def test_a_disk_without_space_is_a_fault_and_no_error(tmp_path):
    open_spool(tmp_path).close()
    fs = FailingFs()
    fs.refuse = {'create': errno.ENOSPC}
    spool = open_spool(tmp_path, fs=fs)
    assert spool.faults[0] == f'{tmp_path}: No space left on device'
    spool.close()


def test_a_session_begins_in_memory_when_the_disk_refuses(tmp_path):
    fs = FailingFs()
    spool = open_spool(tmp_path, fs=fs)
    fs.refuse = {'make_folder': errno.EIO}
    session = start(spool)
    assert session.error is not None
    add(session, 'events', 'events', b'1')
    assert not session.flush()
    fs.refuse = {}
    assert session.finish()
    assert bodies(spool, 'events') == [b'1']
    spool.close()


# Damage


def part_bytes(
    stream='events', number=1, klass='events', second=1_700_000_000, body=b'{}'
) -> bytes:
    header = PartHeader(identity(second), stream, number, klass, number, 'text/plain', 7)
    return b''.join(frame(header, body))


WHOLE = part_bytes()
DAMAGES = {
    'empty': (b'', 'empty'),
    'cut off': (WHOLE[:-10], 'cut off'),
    'flipped': (WHOLE[:-8] + bytes([WHOLE[-8] ^ 1]) + WHOLE[-7:], 'damaged: the checksum'),
    'foreign': (b'GIF89a' * 100, 'not a part'),
    'misnamed': (part_bytes(number=3), 'its name says'),
    'of another session': (part_bytes(second=5), 'its name says'),
}


@pytest.mark.parametrize(('data', 'why'), DAMAGES.values(), ids=DAMAGES)
def test_damage(tmp_path, data, why):
    """What cannot be read goes to quarantine once, and the queue goes on."""
    folder = tmp_path / 'sessions' / FIRST
    folder.mkdir(parents=True)
    (folder / 'events.000001.events.c3d').write_bytes(data)
    (folder / 'events.000002.events.c3d').write_bytes(part_bytes(number=2))
    ledger = Ledger()
    lines: list[str] = []
    spool = open_spool(tmp_path, ledger=ledger, log=lines.append)
    assert spool.faults == []
    bad, good = spool.parts()
    with pytest.raises(FormatError, match=why):
        spool.read(bad)
    assert list(spool.heads(FIRST)) == [good]
    ((name, reason),) = quarantined(spool).items()
    assert (tmp_path / 'quarantine' / name).read_bytes() == data
    assert why in reason
    assert ledger.value(Count.PARTS_QUARANTINED) == 1
    assert len(lines) == 1
    spool.quarantine(bad, 'again')  # it is not there any more
    assert ledger.value(Count.PARTS_QUARANTINED) == 1
    spool.delivered(good)
    assert list((tmp_path / 'sessions').iterdir()) == []
    spool.close()


def test_a_part_that_may_not_be_read(tmp_path):
    folder = tmp_path / 'sessions' / FIRST
    folder.mkdir(parents=True)
    (folder / 'events.000001.events.c3d').write_bytes(WHOLE)
    fs = FailingFs()
    spool = open_spool(tmp_path, fs=fs)
    fs.refuse = {'read': errno.EACCES}
    with pytest.raises(FormatError, match='Permission denied'):
        spool.read(next(spool.parts()))
    assert list(quarantined(spool)) == [f'{FIRST}.events.000001.events.c3d']
    spool.close()


def test_a_part_that_cannot_be_read_now_stays(tmp_path):
    folder = tmp_path / 'sessions' / FIRST
    folder.mkdir(parents=True)
    (folder / 'events.000001.events.c3d').write_bytes(WHOLE)
    fs = FailingFs()
    spool = open_spool(tmp_path, fs=fs)
    (ref,) = spool.parts()
    fs.refuse = {'read': errno.EMFILE}
    with pytest.raises(SpoolError, match='Too many open files'):
        spool.read(ref)
    fs.refuse = {}
    assert spool.read(ref).body == b'{}'
    spool.close()


def test_a_part_on_a_bad_spot_of_the_disk(tmp_path):
    """It is put aside, and the queue goes on; where the whole disk fails, it stays and is tried again."""
    folder = tmp_path / 'sessions' / FIRST
    folder.mkdir(parents=True)
    (folder / 'events.000001.events.c3d').write_bytes(WHOLE)
    fs = FailingFs()
    ledger = Ledger()
    spool = open_spool(tmp_path, fs=fs, ledger=ledger)
    (ref,) = spool.parts()
    for more in ('rename', 'create', 'scan'):
        fs.refuse = {'read': errno.EIO, more: errno.EIO}
        for _ in range(5):
            with pytest.raises(SpoolError, match='Input/output error'):
                spool.read(ref)
    assert list(spool.parts()) == [ref]
    assert ledger.value(Count.PARTS_QUARANTINED) == 0
    assert list((tmp_path / 'quarantine').iterdir()) == []
    fs.refuse = {'read': errno.EIO}
    with pytest.raises(FormatError, match='Input/output error'):
        spool.read(ref)
    fs.refuse = {}
    assert list(spool.parts()) == []
    assert list(quarantined(spool).values()) == ['it cannot be read: Input/output error']
    assert ledger.value(Count.PARTS_QUARANTINED) == 1
    assert not folder.exists()
    spool.close()


def test_a_read_that_takes_long_holds_up_no_flush(tmp_path):
    reading, go_on = threading.Event(), threading.Event()

    class SlowFs(Fs):
        def read(self, path):
            reading.set()
            assert go_on.wait(20)
            return super().read(path)

    spool = open_spool(tmp_path)
    session = start(spool)
    add(session, 'events', 'events', b'1')
    session.seal('events', 'events')
    assert session.flush()
    spool.fs = SlowFs()
    reader = threading.Thread(target=lambda: spool.read(next(spool.parts())))
    reader.start()
    assert reading.wait(20)
    add(session, 'events', 'events', b'2')
    session.seal('events', 'events')
    writer = threading.Thread(target=session.flush)
    writer.start()
    writer.join(20)
    assert not writer.is_alive()
    assert offered(spool) == [('events', 1, 'events'), ('events', 2, 'events')]
    go_on.set()
    reader.join()
    session.finish()
    spool.close()


def test_a_newer_part_is_left_alone(tmp_path):
    folder = tmp_path / 'sessions' / FIRST
    folder.mkdir(parents=True)
    path = folder / 'events.000001.events.c3d'
    path.write_bytes(WHOLE[:8] + b'\2\0' + WHOLE[10:])
    spool = open_spool(tmp_path)
    (ref,) = spool.parts()
    with pytest.raises(NewerFormatError):
        spool.read(ref)
    spool.quarantine(ref, 'as the uploader does with what it cannot read')
    assert path.exists()
    assert list(spool.parts()) == []
    assert quarantined(spool) == {}
    spool.close()


def test_a_part_that_vanished(tmp_path):
    folder = tmp_path / 'sessions' / FIRST
    folder.mkdir(parents=True)
    (folder / 'events.000001.events.c3d').write_bytes(WHOLE)
    spool = open_spool(tmp_path)
    (ref,) = spool.parts()
    (folder / 'events.000001.events.c3d').unlink()
    with pytest.raises(SpoolError, match='not there any more'):
        spool.read(ref)
    assert list(spool.parts()) == []
    spool.delivered(ref)
    spool.close()


def test_odd_things_in_the_folders(tmp_path):
    """None of them stops the spool from opening; each is named; nothing of it is deleted."""
    folder = tmp_path / 'sessions' / FIRST
    folder.mkdir(parents=True)
    (folder / 'events.000001.events.c3d').write_bytes(WHOLE)
    (folder / 'events.000002.events.c3d').mkdir()
    (folder / 'events.000003.events.c3d').symlink_to(folder / 'events.000001.events.c3d')
    (folder / 'events.000004.events.c3d.tmp').write_bytes(WHOLE[:20])
    (folder / 'gaze.000001.pose.c3d').write_bytes(b'x')
    (folder / 'gaze.000001.properties.c3d').write_bytes(b'x')
    (folder / 'notes.txt').write_text('mine')
    (folder / 'other.tmp').write_text('mine')
    (tmp_path / 'sessions' / 'lost+found').mkdir()
    (tmp_path / 'sessions' / '17_file').write_text('')
    (tmp_path / 'sessions' / '1_empty').mkdir()
    (tmp_path / 'unknown').write_text('mine')
    spool = open_spool(tmp_path)
    assert offered(spool) == [('gaze', 1, 'pose'), ('events', 1, 'events')]
    assert len(spool.faults) == 8
    for name in ('notes.txt', 'other.tmp', 'lost+found', '17_file'):
        assert sum(f'{name}: not a' in fault for fault in spool.faults) == 1
    assert sorted(quarantined(spool).items()) == [
        (f'{FIRST}.events.000002.events.c3d', 'a folder with the name of a part'),
        (f'{FIRST}.events.000003.events.c3d', 'no ordinary file, with the name of a part'),
        (
            f'{FIRST}.events.000004.events.c3d.tmp',
            'the temporary file of a process that died, of a session that has ended',
        ),
        (f'{FIRST}.gaze.000001.properties.c3d', 'a second part 1 of gaze'),
    ]
    assert not (tmp_path / 'sessions' / '1_empty').exists()
    assert (folder / 'notes.txt').exists()
    spool.close()


def test_a_folder_that_cannot_be_listed(tmp_path):
    class Fs1(Fs):
        def scan(self, path):
            if path.name == FIRST:
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            return super().scan(path)

    for second in (1_700_000_000, 1_700_000_001):
        folder = tmp_path / 'sessions' / f'{second}_rover'
        folder.mkdir(parents=True)
        (folder / 'events.000001.events.c3d').write_bytes(part_bytes(second=second))
    spool = open_spool(tmp_path, fs=Fs1())
    assert len(list(spool.parts())) == 1
    assert 'Permission denied; left alone' in spool.faults[0]
    with pytest.raises(SpoolError, match='holds session'):
        start(spool)
    spool.close()


def test_names_in_quarantine_never_clash(tmp_path):
    spool = open_spool(tmp_path)
    for count in range(3):
        path = tmp_path / 'sessions' / FIRST
        path.mkdir(exist_ok=True)
        (path / 'events.000001.events.c3d').write_bytes(b'x' * count)
        spool.close()
        spool = open_spool(tmp_path)
        spool.quarantine(next(spool.parts()), f'reason {count}')
    assert sorted(quarantined(spool).values()) == ['reason 0', 'reason 1', 'reason 2']
    spool.close()


# Temporary files and journals of a process that died


def unended(root: Path, *, events: int = 2) -> Path:
    """Leave a session without an end: some events in the journal, one camera part delivered."""
    spool = open_spool(root)
    session = start(spool)
    add(session, 'camera', 'camera', b'1')
    session.seal('camera', 'camera')
    session.flush()
    spool.delivered(next(spool.parts()))
    for number in range(events):
        add(session, 'events', 'events', f'event {number}'.encode())
        session.flush()
    spool.close()
    return root / 'sessions' / FIRST


def test_a_whole_temporary_file_is_adopted(tmp_path):
    folder = unended(tmp_path)
    camera = part_bytes('camera', 2, 'camera', body=b'2')
    (folder / 'camera.000002.camera.c3d.tmp').write_bytes(camera)
    spool = open_spool(tmp_path)
    assert spool.faults == []
    assert (folder / 'camera.000002.camera.c3d').read_bytes() == camera
    assert offered(spool) == []
    assert spool.resume(FIRST, assemble).finish()
    assert ('camera', 2, 'camera') in offered(spool)
    spool.close()


@pytest.mark.parametrize(
    ('name', 'data', 'why'),
    [
        ('camera.000002.camera.c3d.tmp', part_bytes('camera', 2, 'camera')[:-1], 'cut off'),
        ('camera.000002.camera.c3d.tmp', part_bytes('camera', 3, 'camera'), 'another part'),
        ('camera.000001.camera.c3d.tmp', part_bytes('camera', 1, 'camera'), 'finished before'),
    ],
)
def test_other_temporary_files_are_put_aside(tmp_path, name, data, why):
    folder = unended(tmp_path)
    (folder / name).write_bytes(data)
    spool = open_spool(tmp_path)
    ((_, reason),) = quarantined(spool).items()
    assert why in reason
    assert names(spool) == ['journal']
    spool.close()


def test_a_temporary_journal_is_nothing(tmp_path):
    folder = unended(tmp_path)
    (folder / 'journal.tmp').write_bytes((folder / 'journal').read_bytes())
    spool = open_spool(tmp_path)
    assert spool.faults == []
    assert names(spool) == ['journal']
    spool.close()


def test_a_journal_with_a_damaged_middle(tmp_path):
    """Its one batch is lost and counted, what is before and behind is kept; a copy is put aside."""
    folder = unended(tmp_path, events=5)
    data = bytearray((folder / 'journal').read_bytes())
    data[data.index(b'event 2')] ^= 1
    (folder / 'journal').write_bytes(data)
    ledger = Ledger()
    spool = open_spool(tmp_path, ledger=ledger)
    session = spool.resume(FIRST, assemble)
    assert session.lost_entries == 1
    assert ledger.value((Drop.DISK_ERROR, 'journal')) == 1
    session.finish()
    assert bodies(spool, 'events') == [b'event 0\nevent 1\nevent 3\nevent 4']
    ((name, reason),) = quarantined(spool).items()
    assert name == f'{FIRST}.journal'
    assert '1 entries of open parts lost' in reason
    assert (tmp_path / 'quarantine' / name).read_bytes() == data
    spool.close()


@pytest.mark.parametrize('data', [b'', b'\0' * 5000, b'C3DJ junk'])
def test_a_journal_that_cannot_be_read(tmp_path, data):
    """The parts tell whose it is; the session is closed with what they hold."""
    folder = unended(tmp_path)
    (folder / 'journal').write_bytes(data)
    (folder / 'gaze.000001.properties.c3d').write_bytes(part_bytes('gaze', 1, 'properties'))
    spool = open_spool(tmp_path)
    assert [one.session_id for one in spool.unended()] == [FIRST]
    assert offered(spool) == []
    session = spool.resume(FIRST, assemble)
    assert session.latest_ns == 7
    assert offered(spool) == [('gaze', 1, 'properties')]
    add(session, 'events', 'events', b'end')
    session.finish()
    assert len(offered(spool)) == 2
    ((_, reason),) = quarantined(spool).items()
    assert 'cannot be read' in reason
    spool.close()


def test_a_journal_that_cannot_be_read_and_no_part(tmp_path):
    folder = unended(tmp_path)
    (folder / 'journal').write_bytes(b'junk')
    spool = open_spool(tmp_path)
    assert spool.unended() == []
    assert not folder.exists()
    assert (tmp_path / 'quarantine' / f'{FIRST}.journal').read_bytes() == b'junk'
    assert 'no part says whose it is' in spool.faults[0]
    spool.close()


def test_a_newer_journal_is_left_alone(tmp_path):
    folder = unended(tmp_path)
    data = bytearray((folder / 'journal').read_bytes())
    data[4] = 2
    length = struct.unpack_from('<I', data, 8)[0]
    end = 16 + length
    data[12:16] = struct.pack('<I', zlib.crc32(data[:12] + data[16:end]))
    (folder / 'journal').write_bytes(data[:end])
    (folder / 'events.000001.events.c3d').write_bytes(WHOLE)
    spool = open_spool(tmp_path)
    assert spool.unended() == []
    assert offered(spool) == []
    assert 'format 2, a newer' in spool.faults[0]
    assert names(spool) == ['events.000001.events.c3d', 'journal']
    with pytest.raises(SpoolError, match='holds'):
        start(spool)
    spool.close()


def test_an_unknown_part_that_cannot_be_read_is_written_again(tmp_path):
    folder = unended(tmp_path)
    (folder / 'events.000001.events.c3d').write_bytes(WHOLE[:-1])
    spool = open_spool(tmp_path)
    spool.resume(FIRST, assemble).finish()
    assert bodies(spool, 'events') == [b'event 0\nevent 1']
    assert len(quarantined(spool)) == 1
    spool.close()


# The consumer


def test_parts_are_given_in_order(spool):
    for second in (1_700_000_000, 1_700_000_100, 999_999_999):
        session = start(spool, second)
        for number in range(12):
            add(session, 'events', 'events', str(number).encode())
            add(session, 'gaze', 'properties', b'p')
            session.seal('events', 'events')
        session.finish()
    refs = list(spool.parts())
    assert spool.sessions() == ['999999999_rover', '1700000000_rover', '1700000100_rover']
    assert [ref.session_id for ref in refs[::24]] == spool.sessions()
    assert [ref.number for ref in refs] == [*range(1, 13), *range(1, 13)] * 3
    heads = [(ref.stream, ref.number) for ref in spool.heads(FIRST)]
    assert heads == [('gaze', 1), ('events', 1)]
    assert list(spool.heads('1_unknown')) == []
    spool.close()
    again = open_spool(spool.root)
    assert list(again.parts()) == refs
    again.close()


def test_the_folder_goes_with_the_last_part(spool):
    session = start(spool)
    add(session, 'events', 'events', b'1')
    session.seal('events', 'events')
    session.flush()
    spool.delivered(next(spool.parts()))
    assert names(spool) == ['journal']  # the session goes on
    add(session, 'events', 'events', b'2')
    session.finish()
    assert names(spool) == ['events.000002.events.c3d']
    spool.delivered(next(spool.parts()))
    assert list((spool.root / 'sessions').iterdir()) == []
    assert spool.ledger.value(Count.PARTS_WRITTEN) == 2
    assert spool.ledger.value(Count.PARTS_UPLOADED) == 2


def test_what_cannot_be_removed_is_removed_later(tmp_path):
    fs = FailingFs()
    spool = open_spool(tmp_path, fs=fs)
    session = start(spool)
    for entry in (b'1', b'2', b'3'):
        add(session, 'events', 'events', entry)
        session.seal('events', 'events')
    session.finish()
    first, second, third = spool.parts()
    fs.refuse = {'remove': errno.EROFS}
    spool.delivered(first)
    spool.delivered(second)
    assert list(spool.parts()) == [third]
    fs.refuse = {}
    spool.delivered(third)
    assert list((tmp_path / 'sessions').iterdir()) == []
    spool.close()


def test_waiting(spool):
    session = start(spool)
    while spool.wait(0):
        pass
    assert not spool.wait(0.01)
    add(session, 'gaze', 'properties', b'1')
    thread = threading.Thread(target=session.flush)
    thread.start()
    assert spool.wait(30)
    assert len(list(spool.parts())) == 1
    thread.join()
    spool.wake()
    assert spool.wait(30)


def test_usage(tmp_path):
    spool = open_spool(tmp_path)
    usage = spool.usage()
    assert (usage.size_bytes, usage.parts, usage.oldest_s) == (0, 0, 0)
    assert usage.free_bytes > 0
    session = start(spool)
    add(session, 'events', 'events', b'x' * 1000)
    add(session, 'gaze', 'properties', b'x' * 1000)
    session.finish()
    usage = spool.usage()
    sizes = [path.stat().st_size for path in (tmp_path / 'sessions' / FIRST).iterdir()]
    assert (usage.size_bytes, usage.parts) == (sum(sizes), 2)
    spool.close()
    spool = open_spool(tmp_path)
    assert spool.usage().size_bytes == sum(sizes)
    spool.close()


def test_the_age_of_the_oldest_whatever_the_clock_was(tmp_path):
    spool = open_spool(tmp_path)
    session = start(spool, second := int(time.time()) - 1000)
    add(session, 'events', 'events', b'1')
    session.finish()
    part = tmp_path / 'sessions' / f'{second}_rover' / 'events.000001.events.c3d'
    ahead_s = time.time() + 86_400
    for written_s, age_s in ((second + 400, 600), (1, 1000), (ahead_s, 0)):
        os.utime(part, (written_s, written_s))
        assert spool.usage().oldest_s == pytest.approx(age_s, abs=60)
    spool.close()
    # A session that is named after a time to come: the clock was set back since.
    spool = open_spool(tmp_path)
    session = start(spool, second + 10**6)
    add(session, 'events', 'events', b'1')
    session.finish()
    assert 0 <= spool.usage().oldest_s < 1e9
    assert [ref.session_id for ref in spool.parts()] == [
        f'{second}_rover',
        f'{second + 10**6}_rover',
    ]
    spool.close()


# Bounds


def test_eviction_order(tmp_path):
    """The oldest lidar parts go first, then camera, series, pose; never events and properties."""
    ledger = Ledger()
    lines: list[str] = []
    spool = open_spool(tmp_path, ledger=ledger, log=lines.append)
    kinds = [
        ('gaze', 'properties'),
        ('gaze', 'pose'),
        ('events', 'events'),
        ('dynamics', 'pose'),
        ('sensors', 'series'),
        ('camera', 'camera'),
        ('lidar', 'lidar'),
    ]
    for second in (1_700_000_000, 1_700_000_001):
        session = start(spool, second)
        for stream, klass in kinds:
            add(session, stream, klass, b'x' * 10_000)
            session.seal(stream, klass)
        session.finish()
    all_parts = list(spool.parts())
    gone: list[tuple[str, str]] = []
    while True:
        before = set(spool.parts())
        used = spool.usage().size_bytes
        spool.limits = SpoolLimits(max_bytes=used - 1, min_free_bytes=0)
        spool.make_room(0, starved=False)
        evicted = before - set(spool.parts())
        if not evicted:
            break
        assert not spool.full
        (ref,) = evicted
        gone.append((ref.klass, ref.session_id[:10]))
    assert gone == [
        (klass, second)
        for klass in ('lidar', 'camera', 'series', 'pose')
        for second in ('1700000000', '1700000001')
        for _ in range(2 if klass == 'pose' else 1)
    ]
    assert {ref.klass for ref in spool.parts()} == {'properties', 'events'}
    assert spool.full
    assert ledger.value(Count.PARTS_EVICTED) == 10 == len(all_parts) - 4
    named = [line for line in lines if line.startswith('evicted ')]
    assert len(named) == 10
    assert '1700000000_rover/lidar.000001.lidar.c3d' in named[0]
    spool.close()


def test_quarantine_is_bounded(tmp_path):
    """What the gateway refuses counts, and goes before what it may take; what cannot be read stays."""
    root, lines = tmp_path / 'spool', []
    spool = open_spool(root, log=lines.append)
    session = start(spool)
    for n in range(4):
        for stream, klass in (('camera', 'camera'), ('gaze', 'pose'), ('events', 'events')):
            add(session, stream, klass, b'%d' % n * 5000)
            session.seal(stream, klass)
    assert session.flush()
    unreadable, *refused = [ref for ref in spool.parts() if ref.number < 4]
    assert unreadable.klass == 'pose'
    for ref in [unreadable, *refused]:
        spool.quarantine(ref, '400 Bad Request')
    (root / 'quarantine' / f'{FIRST}.gaze.000001.pose.c3d').write_bytes(b'what cannot be read')
    for _ in range(2):  # also as it is found at opening
        usage = spool.usage()
        on_disk = sum(path.stat().st_size for path in (root / 'quarantine').iterdir())
        assert on_disk - usage.quarantined_bytes in (0, 19 - unreadable.size_bytes)
        session.abandon()
        spool.close()
        spool = open_spool(root, log=lines.append)
        session = spool.resume(FIRST, assemble)
    evicted = []
    while not spool.full:
        usage = spool.usage()
        spool.limits = SpoolLimits(usage.size_bytes + usage.quarantined_bytes - 1, 0)
        spool.make_room(0, starved=False)
        evicted += [line.split()[1][:-1] for line in lines if line.startswith('evicted')]
        lines.clear()
    aside = f'quarantine/{FIRST}.'
    assert evicted == [
        *(f'{aside}camera.00000{n}.camera.c3d' for n in (1, 2, 3)),
        f'{FIRST}/camera.000004.camera.c3d',
        *(f'{aside}gaze.00000{n}.pose.c3d' for n in (2, 3)),
        f'{FIRST}/gaze.000004.pose.c3d',
    ]
    assert spool.ledger.value(Count.PARTS_EVICTED) == 7
    left = {name.removeprefix(f'{FIRST}.') for name in quarantined(spool)}
    events = {f'events.00000{n}.events.c3d' for n in (1, 2, 3)}
    assert left == {'gaze.000001.pose.c3d', *events}
    shutil.rmtree(root / 'quarantine')  # by hand: there is space again
    spool.make_room(0, starved=False)
    spool.make_room(0, starved=False)
    assert not spool.full
    spool.close()


def test_space_again_while_nothing_is_recorded(tmp_path):
    lines = []
    spool = open_spool(tmp_path, limits=SpoolLimits(100, 0), log=lines.append)
    session = start(spool)
    add(session, 'events', 'events', b'x' * 1000)
    assert session.flush()
    add(session, 'events', 'events', b'x' * 1000)
    assert session.finish()
    assert spool.full
    for ref in list(spool.parts()):
        spool.delivered(ref)
    assert spool.flush()
    assert not spool.full
    assert lines[-1] == 'there is space again: everything is recorded'
    spool.close()


def test_what_is_needed_is_said_where_a_part_is_larger_than_the_bound(tmp_path):
    lines = []
    spool = open_spool(tmp_path, limits=SpoolLimits(65536, 0), log=lines.append)
    session = start(spool)
    add(session, 'gaze', 'pose', b'x' * 100_000)
    session.finish()
    (line,) = [line for line in lines if line.startswith('full')]
    assert '0 of 65536 bytes' in line
    assert 'what is to be written has 100000' in line
    spool.close()


@pytest.mark.parametrize('what', ['lock', 'sessions', 'quarantine'])
def test_the_culprit_is_named(tmp_path, what):
    if what == 'lock':
        (tmp_path / what).mkdir()
    else:
        (tmp_path / what).write_text('a file')
    with pytest.raises(SpoolError, match=f'{tmp_path}/{what}'):
        open_spool(tmp_path)


def test_only_ordinary_files_are_put_back(tmp_path):
    spool = open_spool(tmp_path / 'spool')
    session = start(spool)
    add(session, 'events', 'events', b'one')
    session.finish()
    (ref,) = spool.parts()
    spool.quarantine(ref, 'refused')
    name = f'{FIRST}.events.000001.events.c3d'
    path = spool.root / 'quarantine' / name
    path.rename(tmp_path / 'elsewhere')
    path.symlink_to(tmp_path / 'elsewhere')
    assert spool.retry() == [(name, 'it is no ordinary file')]
    assert path.is_symlink()
    spool.close()


def test_full_and_space_again(tmp_path):
    """New pose records are refused and counted, events go on; and it goes on by itself."""
    ledger = Ledger()
    lines: list[str] = []
    fs = FailingFs()
    limits = SpoolLimits(max_bytes=20_000, min_free_bytes=0)
    spool = open_spool(tmp_path, ledger=ledger, log=lines.append, limits=limits, fs=fs)
    session = start(spool)
    add(session, 'events', 'events', b'x' * 30_000)
    session.seal('events', 'events')
    assert session.flush()
    assert session.flush()
    assert spool.full
    assert not session.append('gaze', 'pose', b'1', time_ns=1, at_ns=1)
    assert not session.append('lidar', 'lidar', b'1', time_ns=1, at_ns=1, source='front')
    assert session.append('events', 'events', b'1', time_ns=1, at_ns=1)
    assert session.append('gaze', 'properties', b'1', time_ns=1, at_ns=1)
    assert ledger.value((Drop.SPOOL_FULL, 'gaze')) == 1
    assert ledger.value((Drop.SPOOL_FULL, 'front')) == 1
    assert ledger.value(Count.DROPPED_RECORDS) == 2
    assert session.flush()
    for ref in list(spool.parts()):
        spool.delivered(ref)
    assert session.flush()
    assert not spool.full
    assert session.append('gaze', 'pose', b'1', time_ns=1, at_ns=1)
    assert [line.split(':')[0] for line in lines] == [
        'full, and nothing left to evict',
        'there is space again',
    ]
    fs.free = 5000
    spool.limits = SpoolLimits(max_bytes=1 << 40, min_free_bytes=6000)
    session.flush()
    assert spool.full
    assert 'the disk has 5000 left, of which 6000 are for others' in lines[-1]
    fs.free = 7000
    session.flush()
    assert not spool.full
    spool.close()


def test_a_disk_that_others_filled(tmp_path):
    """ENOSPC whatever is said to be free: room is made, and it goes on."""
    fs = FailingFs()
    spool = open_spool(tmp_path, fs=fs)
    session = start(spool)
    add(session, 'lidar', 'lidar', b'x' * 1000)
    session.seal('lidar', 'lidar')
    assert session.flush()
    add(session, 'events', 'events', b'1')
    fs.refuse = {'write': errno.ENOSPC}
    assert not session.flush()
    assert offered(spool) == [('lidar', 1, 'lidar')]
    assert not session.flush()
    assert offered(spool) == []
    assert not session.append('lidar', 'lidar', b'1', time_ns=1, at_ns=1)
    assert session.append('events', 'events', b'2', time_ns=1, at_ns=1)
    fs.refuse = {}
    assert session.flush()
    assert session.flush()
    assert session.append('lidar', 'lidar', b'1', time_ns=1, at_ns=1)
    session.finish()
    assert bodies(spool, 'events') == [b'1\n2']
    spool.close()


def test_bounds(tmp_path):
    """What the disk refuses waits in memory, up to a bound; events go on to a further one."""
    ledger = Ledger()
    fs = FailingFs()
    spool = open_spool(tmp_path, ledger=ledger, fs=fs)
    session = start(spool)
    fs.refuse = {'write': errno.EIO}
    taken = 0
    while session.append('camera', 'camera', bytes(MIB), time_ns=1, at_ns=taken):
        taken += 1
        session.flush()
    assert taken == 63
    assert ledger.value((Drop.DISK_ERROR, 'camera')) == 1
    events = 0
    while session.append('events', 'events', bytes(MIB), time_ns=1, at_ns=1):
        events += 1
    assert events == 16
    assert ledger.value(Count.DROPPED_EVENTS) == 1
    assert session.pending_bytes < 81 * MIB
    fs.refuse = {}
    assert session.finish()
    assert session.pending_bytes == 0
    assert sum(len(body) for body in bodies(spool, 'camera')) > 63 * MIB
    spool.close()


def test_small_entries_are_counted_with_what_they_cost(spool):
    session = start(spool)
    for _ in range(1000):
        session.append('sensors', 'series', b'1', time_ns=1, at_ns=1)
    assert session.pending_bytes > 40_000
    session.finish()
    assert session.pending_bytes == 0


def test_a_writer_that_is_too_slow(spool):
    session = start(spool)
    while session.append('lidar', 'lidar', bytes(8 * MIB), time_ns=1, at_ns=1):
        pass
    assert spool.ledger.value((Drop.QUEUE_FULL, 'lidar')) == 1


# Threads


def test_threads(tmp_path):
    """Recorders, writer and consumer at once: all arrives once and in order."""
    spool = open_spool(tmp_path)
    session = start(spool)
    kinds = [('gaze', 'pose'), ('events', 'events'), ('sensors', 'series'), ('camera', 'camera')]
    count = 3000
    received: dict[str, list[bytes]] = {klass: [] for _, klass in kinds}
    numbers: dict[str, list[int]] = {stream: [] for stream, _ in kinds}
    recorded, stopped = threading.Event(), threading.Event()

    def record(stream, klass):
        for index in range(count):
            session.append(
                stream, klass, f'{index:06d}'.encode() * 20, time_ns=index, at_ns=index * S // 20
            )

    def write():
        while not recorded.is_set():
            assert session.flush()
        assert session.finish()

    def consume():
        while not stopped.is_set() or list(spool.parts()):
            spool.wait(0.05)
            for ref in list(spool.heads(FIRST)):
                part = spool.read(ref)
                received[ref.klass] += part.body.split(b'\n')
                numbers[ref.stream].append(ref.number)
                spool.delivered(ref)

    recorders = [threading.Thread(target=record, args=kind) for kind in kinds]
    writer, consumer = threading.Thread(target=write), threading.Thread(target=consume)
    for thread in (*recorders, writer, consumer):
        thread.start()
    for thread in recorders:
        thread.join()
    recorded.set()
    writer.join()
    stopped.set()
    spool.wake()
    consumer.join()
    expected = [f'{index:06d}'.encode() * 20 for index in range(count)]
    assert all(run == expected for run in received.values())
    assert all(run == list(range(1, len(run) + 1)) for run in numbers.values())
    assert session.ended
    spool.close()


def test_every_invariant_names_its_test():
    text = inspect.getdoc(sys.modules[Spool.__module__]) or ''
    numbers = [int(number) for number in re.findall(r'^ ?(\d+)\. ', text, re.MULTILINE)]
    assert numbers == list(range(1, 15))
    sources = ''.join(path.read_text() for path in Path(__file__).parent.glob('test_spool*.py'))
    for statement in re.split(r'^ ?\d+\. ', text, flags=re.MULTILINE)[1:]:
        named = re.findall(r'\btest_\w+|SpoolMachine\b', statement)
        assert named, statement
        for name in named:
            assert f'def {name}(' in sources or f'class {name}(' in sources, name
