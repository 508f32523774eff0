"""Sessions whose process died, closed by the next one: what is recorded once stays recorded once."""

from __future__ import annotations

import errno
import os

import pytest
from recording_rig import Rig

from cognitive3d_ros.errors import SessionError
from cognitive3d_ros.spool import Fs
from cognitive3d_ros.wire.framing import part_name


class NoParts(Fs):
    """A disk that takes the journal and no part."""

    def create(self, path):
        if path.name.endswith('.c3d.tmp'):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return super().create(path)


@pytest.mark.rule(8, 9)
def test_a_session_that_died_after_its_end_gets_no_second_one(tmp_path):
    r = Rig(tmp_path)
    session_id = r.recorder.start_session()
    r.robot(0)
    r.run(2.0)
    r.spool.fs = NoParts()
    r.recorder.end_session('serviceCall')
    assert r.spool.live == {session_id}
    r.spool.close()

    again = Rig(tmp_path)
    assert again.recorder.recover() == []
    assert again.spool.live == frozenset()
    end = again.event('c3d.sessionEnd')  # there is one
    assert end['properties']['Reason'] == 'serviceCall'
    assert again.events()[-1] == end
    again.close()


def test_an_end_that_the_disk_refused_is_completed(tmp_path):
    r = Rig(tmp_path)
    session_id = r.recorder.start_session()
    fs = r.spool.fs
    r.spool.fs = NoParts()
    r.recorder.end_session('serviceCall')
    r.recorder.flush()
    assert r.spool.live == {session_id}
    r.spool.fs = fs
    r.recorder.flush()
    assert r.spool.live == frozenset()
    assert r.event('c3d.sessionEnd')['properties']['Reason'] == 'serviceCall'
    r.close()


def test_a_session_that_cannot_be_stored_is_none(tmp_path):
    r = Rig(tmp_path)
    fs = r.spool.fs
    r.spool.fs = NoParts()
    with pytest.raises(SessionError, match='cannot be stored'):
        r.recorder.start_session()
    assert r.recorder.session_id is None
    assert r.spool.live == frozenset()
    r.spool.fs = fs
    r.clocks.advance(10**9)
    r.recorder.start_session()
    r.close()


def test_what_is_set_aside_when_the_spool_is_opened_is_told_by_the_next_session(tmp_path):
    r = Rig(tmp_path)
    session_id = r.recorder.start_session()
    r.recorder.flush()
    r.spool.close()
    half = tmp_path / 'sessions' / session_id / f'{part_name("camera", 1, "camera")}.tmp'
    half.write_bytes(b'C3DPART')  # its process was killed while it wrote it

    again = Rig(tmp_path)
    assert not half.exists()
    again.recorder.recover()
    again.clocks.advance(10**9)
    next_id = again.recorder.start_session()
    again.run(6.0)
    again.recorder.end_session('serviceCall')
    assert again.series('c3d.parts_quarantined', next_id)[0][1] == 1.0
    assert 'c3d.parts_quarantined: 1' in again.properties(next_id)['c3d.losses']
    again.close()
