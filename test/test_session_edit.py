"""Editing a session, its comment, and where the pictures of a log lie."""

import dataclasses
import errno
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stored import (
    PROPERTIES,
    SESSION,
    annotation,
    at,
    body,
    cloud_record,
    event,
    frame_record,
    pose,
    scan_record,
    whole,
    write,
    write_sensors,
)

from cognitive3d_ros import images_directory, open_session
from cognitive3d_ros.comments import parse_blocks
from cognitive3d_ros.errors import ExportError
from cognitive3d_ros.session import saving
from cognitive3d_ros.session.records import (
    Annotation,
    CameraFrame,
    DynamicSnapshot,
    Event,
    PointCloud,
    PoseSample,
    Record,
    SensorRecord,
    SeriesSample,
)
from cognitive3d_ros.session.verify import verify


@pytest.fixture
def session(tmp_path):
    folder = whole(tmp_path / 'store' / 'sessions' / SESSION)
    write_sensors(folder, 'camera', 1, [frame_record(1, 0), frame_record(2, 1)])
    records = [scan_record(1, 0, [1, float('inf')]), cloud_record(2, 0, [(1, 2, 3)])]
    write_sensors(folder, 'lidar', 1, records)
    return open_session(folder)


def test_a_copy_that_is_not_edited_saves_the_same_records(session, tmp_path):
    copy = session.edit()
    assert len(copy) == len(session)
    assert copy[3:7] == session[3:7]
    assert copy[-1] == session[-1]
    saved = open_session(copy.save(tmp_path / 'saved'))
    assert saved.id == session.id
    assert (saved.scene_id, saved.scene_version) == (session.scene_id, session.scene_version)
    assert list(saved) == list(session)
    assert saved.properties == session.properties
    assert saved.dynamics.manifest == session.dynamics.manifest
    assert verify(saved) == []
    assert sorted(p.name for p in tmp_path.iterdir()) == ['saved', 'store']


def test_removing_takes_both_ends(session):
    copy = session.edit()
    everything = list(session)
    copy.remove(3, 6)
    assert list(copy) == everything[:3] + everything[7:]
    copy.remove(0)
    assert list(copy) == everything[1:3] + everything[7:]
    copy.remove(2, 2)
    assert list(copy) == everything[1:3] + everything[8:]
    assert list(session) == everything


def test_removing_what_is_not_there(session):
    copy = session.edit()
    for wrong in ((-1,), (len(copy),), (0, len(copy)), (5, 4), (-3, 2)):
        with pytest.raises(IndexError):
            copy.remove(*wrong)
    assert len(copy) == len(session)
    with pytest.raises(IndexError):
        copy[len(copy)]


def test_clearing_and_inserting_in_time_order(session, tmp_path):
    copy = session.edit()
    copy.clear()
    assert len(copy) == 0
    late = Event(at(5), 'late', (1.0, 2.0, 3.0), {'ok': True}, 'body')
    early = PoseSample(at(1), (0.0, 0.0, 0.5), (0.0, 0.0, 0.0, 1.0), (0.0, 0.0, 9.0))
    reading = SeriesSample(at(5), 'battery', 80.0)
    moved = DynamicSnapshot(
        at(3), 'body', (1.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0), ({'enabled': True},)
    )
    # What is put in is held to be a picture; the frames of this session are none.
    frame = dataclasses.replace(session.camera('front')[1], data=b'\xff\xd8\xff\xd9')
    assert copy.insert(late) == 0
    assert copy.insert(early) == 0
    assert copy.insert(reading) == 2  # behind those of its time
    assert copy.insert(moved) == 1
    assert copy.insert(frame) == 1
    assert list(copy) == [early, frame, moved, late, reading]
    saved = open_session(copy.save(tmp_path / 'saved'))
    assert list(saved) == [early, frame, moved, late, reading]
    assert verify(saved) != []  # it has neither start nor end


def test_what_is_no_record_cannot_be_put_in(session, tmp_path):
    copy = session.edit()
    for wrong in ('text', Record(1.0), SensorRecord(1.0, 0, 'f', (0,) * 7)):
        with pytest.raises(TypeError):
            copy.insert(wrong)
    for time in ('x', True, None):
        with pytest.raises(TypeError, match='a time in seconds since the epoch is wanted, not '):
            copy.insert(Event(time, 'e', (0.0, 0.0, 0.0)))
    copy.insert(PoseSample(at(1), (float('nan'), 0.0, 0.0), (0.0, 0.0, 0.0, 1.0)))
    with pytest.raises(ExportError, match='cannot be stored'):
        copy.save(tmp_path / 'saved')
    assert sorted(p.name for p in tmp_path.iterdir()) == ['store']


def test_nothing_is_overwritten(session, tmp_path):
    (tmp_path / 'saved').mkdir()
    with pytest.raises(ExportError, match='there already'):
        session.edit().save(tmp_path / 'saved')


def test_the_comment_is_saved(session, tmp_path):
    assert session.comment == 'wet floor'
    copy = session.edit()
    copy.set_comment('dry\n[run]\nlap = 3\n')
    assert copy.comment_config()['run']['lap'] == '3'
    saved = open_session(copy.save(tmp_path / 'saved'))
    assert saved.comment == 'dry\n[run]\nlap = 3\n'
    assert saved.comment_config().getint('run', 'lap') == 3
    assert session.comment == 'wet floor'
    copy.set_comment('')
    saved = open_session(copy.save(tmp_path / 'bare'))
    assert saved.comment == ''
    assert 'c3d.ros.comment' not in saved.properties


def test_a_session_of_which_nothing_says_whose_it_is(tmp_path):
    folder = tmp_path / 'sessions' / SESSION
    folder.mkdir(parents=True)
    (folder / 'gaze.000001.pose.c3d').write_bytes(b'')
    with pytest.raises(ExportError, match='says whose it is'):
        open_session(folder).edit().save(tmp_path / 'saved')


def test_a_record_that_has_gone_is_not_left_out_in_silence(session, tmp_path):
    for number in range(2, 8):
        write_sensors(session.files.folder, 'lidar', number, [scan_record(3, number, [1])])
    copy = open_session(session.files.folder).edit()
    for path in session.files.folder.glob('lidar.*'):
        path.unlink()
    with pytest.raises(ExportError, match='cannot be read any more'):
        copy.save(tmp_path / 'saved')


@given(
    st.lists(st.tuples(st.sampled_from('irx'), st.integers(0, 30), st.integers(0, 5)), max_size=20)
)
def test_editing_is_as_in_a_sorted_list(tmp_path_factory, steps):
    folder = tmp_path_factory.mktemp('session')
    write(folder, 'gaze', 1, 'pose', [pose(n, float(n)) for n in range(5)])
    copy = open_session(folder).edit()
    model = list(open_session(folder))
    for step, index, more in steps:
        if step == 'i':
            record = Event(at(index), f'e{more}', (0.0, 0.0, 0.0))
            model.append(record)
            model.sort(key=lambda r: r.time)
            at_index = copy.insert(record)
            assert copy[at_index] is record
        elif step == 'r' and index + more < len(model):
            copy.remove(index, index + more)
            del model[index : index + more + 1]
        elif step == 'x' and index < len(model):
            copy.remove(index)
            del model[index]
    assert list(copy) == model
    assert len(copy) == len(model)


# Comments


def test_ini_blocks_in_a_comment():
    text = (
        'Recorded in the rain.\n'
        'lap = 0\n'
        '[Robot]\n'
        '; a remark\n'
        '# another = one\n'
        'Name = rover 07 \n'
        'ratio=0.5 = half\n'
        'empty =\n'
        'no pair here\n'
        ' [ route ] \n'
        '  from = A\r\n'
        'percent = 5 %\n'
        '[Robot]\n'
        'Name = rover 08\n'
        '[]\n'
        'lost = 1\n'
    )
    blocks = parse_blocks(text)
    assert {name: dict(blocks[name]) for name in blocks.sections()} == {
        'Robot': {'Name': 'rover 08', 'ratio': '0.5 = half', 'empty': ''},
        'route': {'from': 'A', 'percent': '5 %'},
    }
    assert blocks.getfloat('Robot', 'missing', fallback=2.5) == 2.5


def test_a_comment_without_blocks(tmp_path):
    write(tmp_path, 'gaze', 1, 'properties', body('gaze', 1, [], properties=PROPERTIES))
    assert open_session(tmp_path).comment_config().sections() == []
    write(tmp_path, 'events', 1, 'events', [event('a', 1)])
    assert parse_blocks('').sections() == []


@given(st.text())
def test_any_comment_is_read(text):
    parse_blocks(text)
    assert 'a' in parse_blocks(f'[a]\n{text}\n[{text}]\n{text}=1').sections()


# Pictures


def test_the_folder_of_a_logs_pictures(tmp_path):
    log = tmp_path / 'run.rawlog'
    assert images_directory(log) == tmp_path / 'Images'
    (tmp_path / 'Images').mkdir()
    for name in ('run_IMAGES', 'run_images', 'run_Images'):
        (tmp_path / name).mkdir()
        assert images_directory(str(log)) == tmp_path / name
    (tmp_path / 'walk_Images').write_text('a file')
    assert images_directory(tmp_path / 'walk.rawlog') == tmp_path / 'Images'


# What cannot be saved


NOT_A_NUMBER, ENDLESS = float('nan'), float('inf')
UPRIGHT = (0.0, 0.0, 0.0, 1.0)


def framed(**fields):
    frame = {'time': at(1), 'seq': 0, 'frame_id': 'f', 'pose': (0, 0, 0, *UPRIGHT)}
    data = b'\xff\xd8\xff\xd9'
    more = {'camera_id': 'c', 'format': 'jpeg', 'width': 1, 'height': 1, 'data': data}
    return CameraFrame(**(frame | more | fields))


def clouded(data):
    where = at(1), 0, 'f', (0, 0, 0, *UPRIGHT), 'top'
    return PointCloud(*where, 1, 'float32', 'none', 'none', 0, 3, data)


def annotated(**fields):
    said = {'annotation_time': at(1), 'stream_name': '', 'key': 'comment', 'value': 'wet'}
    return Annotation(at(1), 'c3d.annotation', (0.0, 0.0, 0.0), **(said | fields))


def test_what_an_annotation_says_is_saved(tmp_path):
    folder = whole(tmp_path / 'one')
    write(folder, 'events', 3, 'events', [annotation(6, 'comment', 'wet')])
    copy = open_session(folder).edit()
    at_index, before = next((n, e) for n, e in enumerate(copy) if isinstance(e, Annotation))
    copy.remove(at_index)
    changed = dataclasses.replace(before, value='dry', annotation_time=at(2))
    copy.insert(changed)
    copy.insert(annotated(value='new'))
    saved = open_session(copy.save(tmp_path / 'saved')).annotations
    told = {(each.annotation_time, each.key, each.value) for each in saved}
    assert (at(2), before.key, 'dry') in told
    assert (at(1), 'comment', 'new') in told
    assert (before.annotation_time, before.key, before.value) not in told


@pytest.mark.parametrize(
    ('record', 'reason'),
    [
        (Event(NOT_A_NUMBER, 'e', (0.0, 0.0, 0.0)), r'time: 0 to \d+ s wanted, not nan'),
        (Event(-5.0, 'e', (0.0, 0.0, 0.0)), r'time: 0 to \d+ s wanted, not -5\.0'),
        (Event(1e18, 'e', (0.0, 0.0, 0.0)), r'time: 0 to \d+ s wanted, not 1e\+18'),
        (Event(10**400, 'e', (0.0, 0.0, 0.0)), r'time: 0 to \d+ s wanted, not 1000'),
        (Event(at(1), 'e', (0.0, ENDLESS, 0.0)), 'point: 3 finite numbers wanted, not .*inf'),
        (Event(at(1), 'e', (0.0, 0.0)), 'point: 3 finite numbers wanted'),
        (Event(at(1), '', (0.0, 0.0, 0.0)), 'name: a text wanted'),
        (Event(at(1), 'e', (0.0, 0.0, 0.0), {'x': ENDLESS}), 'Event.*inf'),
        (Event(at(1), 'e', (0.0, 0.0, 0.0), {'x': [1]}), r"properties\['x'\]: .* not \[1\]"),
        (Event(at(1), 'e', (0.0, 0.0, 0.0), {'x': object()}), 'not JSON serializable'),
        (Event(at(1), 'e', (0.0, 0.0, 0.0), None, b'x'), 'not JSON serializable'),
        (
            PoseSample(at(1), (NOT_A_NUMBER, 0.0, 0.0), UPRIGHT),
            r'p: 3 finite numbers wanted, not \(nan',
        ),
        (PoseSample(at(1), 'abc', UPRIGHT), 'p: 3 finite numbers wanted'),
        (PoseSample(at(1), (0.0, 0.0, 0.0), (0.0,) * 4), r'r: a unit quaternion .* \(0\.0, 0\.0'),
        (PoseSample(at(1), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 2.0)), 'r: a unit quaternion'),
        (PoseSample(at(1), (0.0, 0.0, 0.0), UPRIGHT, (ENDLESS, 0.0, 0.0)), 'g: 3 finite numbers'),
        (DynamicSnapshot(at(1), 'o', (0.0, 0.0, 0.0), (0.0,) * 4), 'r: a unit quaternion'),
        (
            DynamicSnapshot(at(1), 'o', (0.0, 0.0, 0.0), UPRIGHT, ({'x': ENDLESS},)),
            'not JSON compliant',
        ),
        (SeriesSample(at(1), 's', NOT_A_NUMBER), 'value: a finite number wanted, not nan'),
        (SeriesSample(at(1), 's', '1'), "value: a finite number wanted, not '1'"),
        (SeriesSample(at(1), 's', 'text'), "value: a finite number wanted, not 'text'"),
        (framed(time=-5.0), r'time: 0 to \d+ s wanted'),
        (framed(pose=(NOT_A_NUMBER, 0, 0, *UPRIGHT)), 'pose: 7 finite numbers wanted'),
        (framed(pose=(1e300, 0, 0, *UPRIGHT)), 'pose: 7 finite numbers wanted'),
        (framed(pose=(0,) * 7), r'pose\[3:\]: a unit quaternion'),
        (framed(pose=None), 'pose: 7 finite numbers wanted, not None'),
        (framed(width=-1), 'width: a whole number from 0 to 65535 wanted, not -1'),
        (framed(seq=-1), 'seq: a whole number from 0 to 4294967295 wanted, not -1'),
        (framed(seq=1 << 70), 'seq: a whole number from 0 to 4294967295 wanted, not 1180'),
        (framed(height=1.5), 'height: a whole number from 0 to 65535 wanted, not 1.5'),
        (framed(data='text'), "data: bytes wanted, not 'text'"),
        (framed(data=b''), 'data: the bytes of a picture wanted, there are none'),
        (framed(data=b'junk'), "data: a JPEG wanted, not b'junk'"),
        (framed(width=0), 'width: at least 1 wanted, not 0'),
        (framed(height=0), 'height: at least 1 wanted, not 0'),
        (framed(hfov_degrees=NOT_A_NUMBER), 'hfov_degrees: 0 to 360 wanted, not nan'),
        (framed(vfov_degrees=-1.0), 'vfov_degrees: 0 to 360 wanted, not -1.0'),
        (clouded(b''), 'data: the block '),
        (clouded(b'junkjunk'), 'data: the block '),
        (
            annotated(annotation_time=NOT_A_NUMBER),
            r'annotation_time: -\d+ to \d+ s wanted, not nan',
        ),
        (annotated(key=1), 'key: a text wanted, not 1'),
        (framed(camera_id=None), 'a record that cannot be stored'),
    ],
)
def test_a_record_that_no_session_holds_is_refused(tmp_path, record, reason):
    write(tmp_path / 'one', 'gaze', 1, 'pose', [pose(1)])
    copy = open_session(tmp_path / 'one').edit()
    copy.clear()
    copy.insert(record)
    with pytest.raises(ExportError, match='a record that cannot be stored: ') as raised:
        copy.save(tmp_path / 'saved')
    assert re.search(reason, str(raised.value))
    assert type(record).__name__ in str(raised.value)
    assert len(str(raised.value)) < 900
    assert sorted(p.name for p in tmp_path.iterdir()) == ['one']


def test_a_comment_that_is_no_text_is_refused(session, tmp_path):
    copy = session.edit()
    copy.set_comment(['wet'])
    with pytest.raises(ExportError, match=r"property 'c3d.ros.comment': .* not \['wet'\]"):
        copy.save(tmp_path / 'saved')


def test_where_nothing_can_be_written(session, tmp_path, monkeypatch):
    copy = session.edit()
    with pytest.raises(ExportError, match=r'/none is no folder: saved cannot be written there'):
        copy.save(tmp_path / 'none' / 'saved')
    (tmp_path / 'link').symlink_to('nowhere')
    with pytest.raises(ExportError, match='link is there already'):
        copy.save(tmp_path / 'link')

    def full(*_):
        raise OSError(errno.ENOSPC, 'No space left on device')

    for name in ('rename', 'sync_folder'):
        with monkeypatch.context() as patch:
            patch.setattr(saving.REAL_FS, name, full)
            with pytest.raises(ExportError, match=r'/saved cannot be written: .*No space') as told:
                copy.save(tmp_path / 'saved')
            assert '.c3d-' not in str(told.value)
    assert sorted(p.name for p in tmp_path.iterdir() if p.name != 'saved') == ['link', 'store']
