"""Tables: read by pyarrow, by DuckDB in place, as CSV, and as pandas has them."""

import csv
import json
from datetime import datetime, timedelta, timezone

import duckdb
import numpy as np
import pyarrow.dataset
import pyarrow.parquet
import pytest
import rich_session
from stored import (
    PROPERTIES,
    SECOND,
    SESSION,
    annotation,
    at,
    body,
    event,
    pose,
    whole,
    write,
    write_sensors,
)
from test_rawlog import clouds_with

from cognitive3d_ros import open_session
from cognitive3d_ros.conventions import CONVENTIONS
from cognitive3d_ros.export import export_session

LARGE = [1e308, -123456789012.12345, 9007198.12345, -0.00001]
START = datetime.fromtimestamp(SECOND, timezone.utc)


@pytest.fixture(scope='module', params=CONVENTIONS)
def session(request, tmp_path_factory):
    root = tmp_path_factory.mktemp('rich')
    rich_session.record(root / 'spool', convention=request.param)
    return open_session(root / 'spool')


def read(root, table, session):
    path = root / table / 'device_id=rover-07' / f'session_id={session.id}' / 'data.parquet'
    return pyarrow.parquet.ParquetFile(path).read()


def test_parquet_holds_everything(session, tmp_path):
    made = export_session(session, 'parquet', tmp_path / 'fleet')
    assert made.notes == ()
    assert made.records == len(session)
    names = sorted(path.name for path in (tmp_path / 'fleet').iterdir())
    assert names == [
        'annotations',
        'camera',
        'clouds',
        'dynamics',
        'events',
        'poses',
        'properties',
        'regions',
        'scans',
        'series',
    ]
    poses = read(tmp_path / 'fleet', 'poses', session)
    assert poses.schema.field('time').type == pyarrow.timestamp('us', tz='UTC')
    about = {k.decode(): v.decode() for k, v in poses.schema.metadata.items()}
    assert about['c3d.axes'] == 'REP-103'
    assert about['c3d.reference_frame'] == 'odom'
    assert json.loads(about['c3d.properties'])['payload_kg'] == 3.5
    assert len(poses) == 61
    for row in poses.to_pylist():
        p, r = rich_session.robot_at(row['seconds'])
        np.testing.assert_allclose([row[name] for name in 'xyz'], p, atol=2e-5)
        q = np.array([row[f'q{name}'] for name in 'xyzw'])
        np.testing.assert_allclose(q * np.sign(np.dot(q, r)), r, atol=2e-5)
        assert row['time'] == START + timedelta(microseconds=round(row['seconds'] * 1e6))
    camera = read(tmp_path / 'fleet', 'camera', session).to_pylist()
    assert [row['data'] for row in camera] == [rich_session.PICTURE] * 12
    assert {row['sensor'] for row in camera} == {'front', 'rear'}
    for row in [*camera, *read(tmp_path / 'fleet', 'clouds', session).to_pylist()]:
        p, r = rich_session.sensor_at(row['frame_id'], row['seconds'])
        np.testing.assert_allclose([row[name] for name in 'xyz'], p, atol=2e-3)
    for row in read(tmp_path / 'fleet', 'scans', session).to_pylist():
        np.testing.assert_array_equal(row['ranges'], np.array(rich_session.RANGES, np.float32))
        p, r = rich_session.sensor_at('laser', row['seconds'])
        q = np.array([row[f'q{name}'] for name in 'xyzw'])
        np.testing.assert_allclose(q * np.sign(np.dot(q, r)), r, atol=2e-3)
    for row in read(tmp_path / 'fleet', 'clouds', session).to_pylist():
        points = zip(*(row[f'points_{name}'] for name in 'xyz'), strict=True)
        assert sorted(tuple(round(x, 3) for x in point) for point in points) == sorted(
            map(tuple, rich_session.POINTS.tolist())
        )
        assert row['red'] is None
        assert row['intensity'] is None
    regions = read(tmp_path / 'fleet', 'regions', session).to_pylist()
    assert [(r['number'], r['state']) for r in regions] == [
        (1, 'completed'),
        (2, 'aborted'),
        (None, 'open'),
    ]
    assert regions[2]['stop'] is None
    notes = read(tmp_path / 'fleet', 'annotations', session).to_pylist()
    assert [row['key'] for row in notes] == [each.key for each in session.annotations]
    for row in notes:
        recorded = (row['recorded'] - START).total_seconds() - (session.start - SECOND)
        p, _ = rich_session.robot_at(recorded)
        np.testing.assert_allclose([row[name] for name in 'xyz'], p, atol=1e-4)
    snapshots = read(tmp_path / 'fleet', 'dynamics', session).to_pylist()
    said = [json.loads(row['properties']) for row in snapshots if row['properties'] is not None]
    assert said == [[{'enabled': True}]]
    known = json.loads(about['c3d.object.rover-07'])
    assert known == {'name': 'Rover 07', 'mesh': 'rover', 'file_type': 'gltf'}
    assert (about['c3d.scene_id'], about['c3d.scene_version']) == (
        session.scene_id,
        str(session.scene_version),
    )
    events = read(tmp_path / 'fleet', 'events', session).to_pylist()
    assert json.loads(events[1]['properties']) == {'dock': 'A', 'ok': True, 'depth_m': 0.25}
    series = read(tmp_path / 'fleet', 'series', session).to_pylist()
    charge = [row['value'] for row in series if row['name'] == 'battery.percentage']
    assert charge == [value for _, value in session.series['battery.percentage']]
    types = {
        r['key']: r['type'] for r in read(tmp_path / 'fleet', 'properties', session).to_pylist()
    }
    assert (types['payload_kg'], types['indoor']) == ('number', 'boolean')
    assert types['c3d.deviceid'] == 'text'


def test_colours_and_intensities(tmp_path):
    folder = whole(tmp_path / SESSION)
    write_sensors(folder, 'lidar', 1, [clouds_with(color=True, intensity=True)])
    session = open_session(folder)
    export_session(session, 'parquet', tmp_path / 'fleet')
    (row,) = read(tmp_path / 'fleet', 'clouds', session).to_pylist()
    assert (row['red'], row['green'], row['blue']) == ([255, 0], [0, 255], [51, 102])
    assert row['intensity'] == [51, 255]


def fleet(tmp_path, to):
    """Two sessions of one robot and one of another, in one folder."""
    for second, device in ((SECOND, 'rover-07'), (SECOND + 100, 'rover-07'), (SECOND, 'husky.1')):
        name = f'{second}_{device}'
        session = open_session(whole(tmp_path / 'store' / 'sessions' / name, name))
        export_session(session, to, tmp_path / 'fleet')
    return tmp_path / 'fleet'


def test_duckdb_queries_a_fleet_in_place(tmp_path):
    root = fleet(tmp_path, 'parquet')
    old = tmp_path / f'{SECOND - 100}_a.old'  # it has gaze points, and is queried like the others
    write(
        old,
        'gaze',
        1,
        'properties',
        body('gaze', 1, [], old.name, properties=PROPERTIES),
        old.name,
    )
    write(old, 'gaze', 2, 'pose', [pose(0, g=[1, 2, 3])], session=old.name)
    export_session(open_session(old), 'parquet', root)
    found = duckdb.sql(
        f"""select device_id, session_id, count(*), max(seconds)
            from read_parquet('{root}/poses/*/*/*.parquet', hive_partitioning = true)
            where device_id <> 'a.old' group by all order by all"""
    ).fetchall()
    assert found == [
        ('husky.1', f'{SECOND}_husky.1', 101, 10.0),
        ('rover-07', f'{SECOND}_rover-07', 101, 10.0),
        ('rover-07', f'{SECOND + 100}_rover-07', 101, 10.0),
    ]
    ((value,),) = duckdb.sql(
        f"""select distinct value from read_parquet('{root}/series/*/*/*.parquet')
            where name = 'battery.percentage' and seconds = 2"""
    ).fetchall()
    assert value == 78.0


def test_pyarrow_reads_a_fleet_as_one_data_set(tmp_path):
    root = fleet(tmp_path, 'parquet')
    data = pyarrow.dataset.dataset(root / 'events', partitioning='hive')
    table = data.to_table(filter=pyarrow.dataset.field('device_id') == 'rover-07')
    assert sorted(set(table.column('session_id').to_pylist())) == [
        f'{SECOND}_rover-07',
        f'{SECOND + 100}_rover-07',
    ]
    assert table.column('name').to_pylist().count('dock.reached') == 2


def test_csv_and_duckdb(tmp_path):
    root = fleet(tmp_path, 'csv')
    found = duckdb.sql(
        f"""select device_id, count(*), min(time), max(x)
            from read_csv('{root}/poses/*/*/*.csv', hive_partitioning = true)
            group by device_id order by device_id"""
    ).fetchall()
    first = START + timedelta(seconds=0.25)
    assert [row[:2] for row in found] == [('husky.1', 101), ('rover-07', 202)]
    assert [as_utc(row[2]) for row in found] == [first, first]


def as_utc(time):
    return time if time.tzinfo is None else time.astimezone(timezone.utc)


def test_csv_says_what_it_cannot_hold(session, tmp_path):
    made = export_session(session, 'csv', tmp_path / 'fleet')
    assert made.notes == (
        "not in it: the scene, Dynamic Objects' names: parquet holds them",
        'camera without data: parquet holds them',
        'scans without ranges, intensities: parquet holds them',
        'clouds without points_x, points_y, points_z, red, green, blue, intensity: parquet holds them',
    )
    rows = read_csv(tmp_path / 'fleet', 'camera', session)
    assert len(rows) == 12
    assert {row['frame_id'] for row in rows} == {'front_optical_frame', 'rear_optical_frame'}
    assert rows[0]['width'] == '48'
    assert 'data' not in rows[0]


def read_csv(root, table, session):
    path = (
        root / table / f'device_id={session.device_id}' / f'session_id={session.id}' / 'data.csv'
    )
    with path.open(newline='', encoding='utf-8') as file:
        return list(csv.DictReader(file))


def test_csv_keeps_awkward_texts_and_exact_numbers(tmp_path):
    folder = whole(tmp_path / SESSION)
    nasty = 'a,"b"\nç; \\'
    note = annotation(6, 'comment', nasty)
    note['properties']['c3d.position_unknown'] = True
    write(folder, 'events', 3, 'events', [event(nasty, 5, text=nasty, half=0.1), note])
    data = [[at(n), value] for n, value in enumerate(LARGE)]
    write(folder, 'sensors', 2, 'series', [{'name': 'large', 'data': data}])
    session = open_session(folder)
    export_session(session, 'csv', tmp_path / 'fleet')
    rows = {row['name']: row for row in read_csv(tmp_path / 'fleet', 'events', session)}
    assert json.loads(rows[nasty]['properties']) == {'text': nasty, 'half': 0.1}
    assert rows[nasty]['time'] == '2026-01-01T00:00:05.250000Z'
    assert rows[nasty]['dynamic_id'] == ''
    (row,) = read_csv(tmp_path / 'fleet', 'annotations', session)
    assert (row['value'], row['x'], row['y'], row['z']) == (nasty, '', '', '')
    got = [float(row['value']) for row in read_csv(tmp_path / 'fleet', 'series', session)]
    assert set(LARGE) <= set(got)
    poses = read_csv(tmp_path / 'fleet', 'poses', session)
    # gltf_authored: (x, 0, 2x) in the scene is (-x, -2x, 0) in ROS axes.
    assert [row['x'] for row in poses[:3]] == ['0.0', '-0.01', '-0.02']
    assert [row['y'] for row in poses[:3]] == ['0.0', '-0.02', '-0.04']


def test_batches_are_bounded(tmp_path, monkeypatch):
    """A table is written in row groups as it is read, however many rows it has."""
    from cognitive3d_ros.session import tables

    monkeypatch.setattr(tables, '_ROWS', 40)
    monkeypatch.setattr(tables, '_BATCH_BYTES', 2 * len(rich_session.PICTURE))
    rich_session.record(tmp_path / 'spool')
    session = open_session(tmp_path / 'spool')
    export_session(session, 'parquet', tmp_path / 'fleet')
    path = next((tmp_path / 'fleet' / 'poses').rglob('*.parquet'))
    assert pyarrow.parquet.ParquetFile(path).num_row_groups == 2
    assert len(read(tmp_path / 'fleet', 'poses', session)) == 61
    path = next((tmp_path / 'fleet' / 'camera').rglob('*.parquet'))
    assert pyarrow.parquet.ParquetFile(path).num_row_groups == 6


# pandas


def test_to_pandas(session):
    pandas = pytest.importorskip('pandas')
    poses = session.poses.to_pandas()
    assert list(poses.columns) == ['time', 'px', 'py', 'pz', 'rx', 'ry', 'rz', 'rw']
    np.testing.assert_array_equal(poses[['px', 'py', 'pz']], session.poses.p)
    series = session.series['battery.percentage'].to_pandas()
    assert series['value'].tolist() == [value for _, value in session.series['battery.percentage']]
    snapshots = session.dynamics.to_pandas()
    assert set(snapshots['id']) == {'rover-07'}
    frames = session.camera('front').to_pandas()
    assert list(frames.columns) == ['time', 'seq', 'px', 'py', 'pz', 'qx', 'qy', 'qz', 'qw']
    assert frames['seq'].tolist() == [0, 1, 2, 3, 4, 5]
    tables = session.to_pandas()
    assert all(isinstance(each, pandas.DataFrame) for each in tables.values())
    assert len(tables['poses']) == 61
    assert tables['poses']['x'].iloc[-1] == pytest.approx(6.0)  # REP-103
    assert 'data' not in tables['camera']
    assert len(tables['series']) == sum(map(len, session.series.values()))


def test_times_in_pandas(session):
    pandas = pytest.importorskip('pandas')
    for name, table in session.to_pandas().items():
        for column in {'time', 'start', 'stop', 'recorded'} & set(table.columns):
            assert table[column].dt.tz is not None, (name, column)
            assert str(table[column].dt.tz) == 'UTC'
    first = session.to_pandas()['poses'].iloc[0]
    assert first['time'].to_pydatetime() == START + timedelta(seconds=float(first['seconds']))
    recorded = session.poses.to_pandas()  # as recorded: scene axes, seconds
    assert recorded['time'].dtype == np.float64
    assert pandas.to_datetime(recorded['time'], unit='s', utc=True).iloc[0] == first['time']


def test_to_pandas_of_an_old_session(tmp_path):
    pytest.importorskip('pandas')
    write(tmp_path, 'gaze', 1, 'pose', [pose(0, g=[1, 2, 3]), pose(1)])
    table = open_session(tmp_path).poses.to_pandas()
    assert table['gz'].iloc[0] == 3
    assert np.isnan(table['gz'].iloc[1])


def test_gaze_points_of_an_old_session(tmp_path):
    folder = tmp_path / SESSION
    write(folder, 'gaze', 1, 'properties', body('gaze', 1, [], properties=PROPERTIES))
    write(folder, 'gaze', 2, 'pose', [pose(0, g=[1, 2, 3]), pose(1)])
    session = open_session(folder)
    made = export_session(session, 'parquet', tmp_path / 'fleet')
    assert made.notes == ()
    assert made.records == len(read(tmp_path / 'fleet', 'poses', session)) == 2
    (point,) = read(tmp_path / 'fleet', 'gaze', session).to_pylist()
    # gltf_authored: (1, 2, 3) in the scene is (-1, -3, 2) in ROS axes.
    assert (point['x'], point['y'], point['z']) == (-1, -3, 2)
    assert point['time'] == START + timedelta(seconds=0.25)
    for to in ('tum', 'mcap'):
        notes = export_session(session, to, tmp_path / f'a.{to}').notes
        assert 'gaze points' in notes[0] or 'gaze points' in notes[-1]
