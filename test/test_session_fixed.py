"""What the reader gives out is read-only: nobody changes what the next one reads, or what is saved."""

import copy
import dataclasses
import json
import pickle

import numpy as np
import pytest
from stored import (
    PROPERTIES,
    SESSION,
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

from cognitive3d_ros import open_session
from cognitive3d_ros.session.fixed import FixedDict
from cognitive3d_ros.session.records import Event


@pytest.fixture
def session(tmp_path):
    folder = whole(tmp_path / 'store' / 'sessions' / SESSION)
    gaze = [pose(1, 1.0, g=[0.0, 0.0, 1.0])]
    write(folder, 'gaze', 5, 'pose', body('gaze', 5, gaze, properties=PROPERTIES))
    write_sensors(folder, 'camera', 1, [frame_record(1, 0), frame_record(2, 1)])
    scan = scan_record(1, 0, [1, float('inf')], intensities=[3, 4])
    write_sensors(folder, 'lidar', 1, [scan, cloud_record(2, 0, [(1, 2, 3)])])
    return open_session(folder)


def arrays(session):
    """Every array that is given out and kept."""
    front, base, top = session.camera('front'), session.lidar('base'), session.lidar('top')
    return {
        'poses.time': session.poses.time,
        'poses.p': session.poses.p,
        'poses.r': session.poses.r,
        'poses.g': session.poses.g,
        'series.time': session.series['battery.percentage'].time,
        'series.value': session.series['battery.percentage'].value,
        'dynamics.time': session.dynamics.time,
        'dynamics.p': session.dynamics.p,
        'dynamics.r': session.dynamics.r,
        'camera.time': front.time,
        'camera.seq': front.seq,
        'camera.pose': front.pose,
        'ranges': base[0].ranges,
        'intensities': base[0].intensities,
        'positions': top[0].positions,
        'timeline': session.timeline().time,
        'track.time': session.track.time,
        'track.p': session.track.p,
        'track.r': session.track.r,
        **{f'column {name}': each for name, each in session.poses.columns().items()},
    }


def test_arrays_are_read_only(session):
    given = arrays(session)
    assert [name for name, array in given.items() if array.flags.writeable] == []
    for array in given.values():
        assert len(array)
        with pytest.raises(ValueError, match='read-only'):
            array[...] = 0
        with pytest.raises(ValueError, match='cannot set WRITEABLE'):
            array[:].flags.writeable = True  # of a view that a caller made
        with pytest.raises(ValueError, match='cannot set WRITEABLE'):
            array.setflags(write=True)


def test_a_copy_of_an_array_can_be_written(session):
    mine = session.poses.p.copy()
    mine[:] = 0
    assert session.poses[100].p == (1.0, 0.0, 2.0)


def test_mappings_are_read_only(session):
    dock = session.events[1].properties
    enabled = session.dynamics[0].properties[0]
    for mapping in (dock, enabled, session.dynamics.manifest, session.streams):
        assert len(mapping)
        with pytest.raises(TypeError, match='take a copy'):
            mapping['x'] = 1
        with pytest.raises(TypeError, match='take a copy'):
            mapping.clear()
    for mapping in (session.properties, session.series):
        with pytest.raises(TypeError):
            mapping['x'] = 1
    assert session.events[1].properties == {'dock': 'A', 'ok': True}


@pytest.mark.parametrize(
    'change',
    [
        lambda each: each.update(x=1),
        lambda each: each.setdefault('x', 1),
        lambda each: each.pop('a'),
        lambda each: each.popitem(),
        lambda each: each.__ior__({'x': 1}),
        lambda each: each.__delitem__('a'),
    ],
)
def test_a_fixed_dict_takes_no_change(change):
    fixed = FixedDict(a=1)
    with pytest.raises(TypeError, match='take a copy'):
        change(fixed)
    assert fixed == {'a': 1}


def test_records_go_where_values_go(session):
    dock = session.events[1]
    assert pickle.loads(pickle.dumps(dock)) == dock
    assert copy.deepcopy(dock) == dock
    assert json.loads(json.dumps(dataclasses.asdict(dock)))['properties']['dock'] == 'A'
    mine = dock.properties.copy()
    mine['dock'] = 'B'
    assert dict(dock.properties) | {'dock': 'B'} == dock.properties | {'dock': 'B'} == mine
    assert pickle.loads(pickle.dumps(dock.properties)) == dock.properties


def test_a_record_of_ones_own_keeps_its_own_dict():
    facts = {'a': 1}
    made = Event(at(1), 'x', (0.0, 0.0, 0.0), facts)
    facts['a'] = 2
    assert made.properties['a'] == 2


def test_data_frames_can_be_written(session):
    pandas = pytest.importorskip('pandas')
    frame = session.poses.to_pandas()
    frame.loc[0, 'px'] = 99.0
    frame['time'] += 1
    for table in session.to_pandas().values():
        assert isinstance(table, pandas.DataFrame)
        table.loc[0, table.columns[-1]] = table.iloc[0, -1]
    tables = session.to_pandas()
    tables['poses'].loc[:, 'x'] = 5.0
    tables['series'].loc[:, 'value'] = 5.0
    assert session.poses[0].p == (0.0, 0.0, 0.0)
    assert np.array_equal(session.series['battery.percentage'].value, [80, 79, 78, 77, 76, 75])


def test_what_is_saved_is_what_was_recorded(session, tmp_path):
    before = list(session)
    with pytest.raises(ValueError, match='read-only'):
        session.poses.p[:] = 0
    assert list(open_session(session.edit().save(tmp_path / 'saved'))) == before
    assert event('c3d.sessionStart', 0)['name'] == session.events[0].name
