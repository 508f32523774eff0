"""JSON bodies and numbers, against bodies written by hand and against decimal arithmetic."""

import decimal
import json
from decimal import ROUND_HALF_EVEN, Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cognitive3d_ros.wire import bodies
from cognitive3d_ros.wire.identity import SessionIdentity
from cognitive3d_ros.wire.numbers import number, rounded, seconds

IDENTITY = SessionIdentity(
    session_id='1767225600_rover-07',
    device_id='rover-07',
    scene_id='5b2a1f4e-0c9d-4e8a-9a53-0f6d1c2b3a4d',
    scene_version=3,
    sdk_version='1.0.0',
    start_ns=1_767_225_600_250_000_000,
    interval_s=0.1,
)
T = 1_767_225_600_000_000_000


@pytest.mark.rule(12, 22)
@given(st.floats(allow_nan=False, allow_infinity=False, width=64))
def test_numbers_are_the_decimal_rounding_to_five_places(value):
    text = number(value)
    exact = Decimal(value)
    scale = max(60, exact.adjusted() + 20)

    with decimal.localcontext() as context:
        context.prec = scale
        wanted = exact.quantize(Decimal('0.00001'), rounding=ROUND_HALF_EVEN)
    assert Decimal(text) == wanted
    assert 'e' not in text
    assert text != '-0'
    assert not ('.' in text and text[-1] in '0.')


@pytest.mark.parametrize(
    ('value', 'text'),
    [
        *((0.0, '0'), (-0.0, '0'), (-0.000001, '0'), (1.0, '1'), (0.1, '0.1'), (1e-5, '0.00001')),
        *((0.000005, '0.00001'), (2.5, '2.5'), (1e21, '1' + '0' * 21), (-12.345678, '-12.34568')),
    ],
)
def test_numbers_are_short(value, text):
    assert number(value) == text


@pytest.mark.rule(12)
@pytest.mark.parametrize(
    ('time_ns', 'text'),
    [
        (T, '1767225600'),
        (T + 100_000_000, '1767225600.1'),
        (T + 203_144_999, '1767225600.20314'),
        (T + 203_145_000, '1767225600.20314'),  # half to even
        (T + 203_155_000, '1767225600.20316'),
        (T + 203_145_001, '1767225600.20315'),
        (T + 999_995_001, '1767225601'),
        (-1_500_000_000, '-1.5'),
        (0, '0'),
    ],
)
def test_seconds_are_exact(time_ns, text):
    assert seconds(time_ns) == text


@pytest.mark.parametrize(('value', 'result'), [(2.0, 2), (0.1 + 0.2, 0.3), (-0.0, 0), (7, 7)])
def test_a_whole_property_is_an_integer(value, result):
    assert (type(rounded(value)), rounded(value)) == (type(result), result)


@pytest.mark.rule(2, 21, 26, 29)
def test_a_gaze_body():
    entries = [
        bodies.pose_entry(T + 100_000_000, (-0.5, 0.0, 1.25), (0.0, 0.382683, 0.0, 0.92388)),
        bodies.pose_entry(T + 200_000_000, (-0.5, 0.0, 1.3), (0.0, 0.382683, 0.0, 0.92388)),
    ]
    body, content_type = bodies.assemble(IDENTITY, 'gaze', 'pose', 2, entries)
    assert content_type == 'application/json'
    assert body == (
        b'{"userid":"rover-07","sessionid":"1767225600_rover-07","timestamp":1767225600,"part":2,'
        b'"formatversion":"1.0","interval":0.1,"data":['
        b'{"time":1767225600.1,"p":[-0.5,0,1.25],"r":[0,0.38268,0,0.92388]},'
        b'{"time":1767225600.2,"p":[-0.5,0,1.3],"r":[0,0.38268,0,0.92388]}]}'
    )


def test_properties_travel_in_a_gaze_body_without_records():
    entry = bodies.properties_entry({'c3d.version': '1.0.0', 'payload_kg': 3.5, 'indoor': True})
    body, _ = bodies.assemble(IDENTITY, 'gaze', 'properties', 1, [entry])
    assert json.loads(body) == {
        'userid': 'rover-07',
        'sessionid': '1767225600_rover-07',
        'timestamp': 1767225600,
        'part': 1,
        'formatversion': '1.0',
        'interval': 0.1,
        'properties': {'c3d.version': '1.0.0', 'payload_kg': 3.5, 'indoor': True},
        'data': [],
    }


@pytest.mark.rule(64)
def test_a_double_keeps_its_point_and_small_ones_have_no_exponent():
    properties = {'yaw': 0.0, 'small': -1e-05, 'whole': 3, 'tiny': 1e-07, 'flag': True}
    entry = bodies.properties_entry(properties)
    text = b'{"yaw":0.0,"small":-0.00001,"whole":3,"tiny":1e-07,"flag":true}'
    assert entry == b'P' + text
    assert text in bodies.assemble(IDENTITY, 'gaze', 'properties', 1, [entry])[0]


@pytest.mark.rule(36)
def test_an_events_body():
    entries = [
        bodies.event_entry('c3d.sessionStart', T, (0.0, 0.0, 0.0), {}),
        bodies.event_entry(
            'dock "A" réached', T + 131_203_140_000, (-1.5, 0, 4.02), {'ok': True, 'n': 1e-7}
        ),
    ]
    body, _ = bodies.assemble(IDENTITY, 'events', 'events', 1, entries)
    assert json.loads(body)['data'] == [
        {'name': 'c3d.sessionStart', 'time': 1767225600, 'point': [0, 0, 0]},
        {
            'name': 'dock "A" réached',
            'time': 1767225731.20314,
            'point': [-1.5, 0, 4.02],
            'properties': {'ok': True, 'n': 1e-7},  # a user's number stays as given
        },
    ]


@pytest.mark.rule(39)
def test_a_sensors_body_groups_samples_by_series():
    entries = [
        bodies.samples_entry(T, [('battery.percentage', 87.5), ('c3d.pose_failures', 0)]),
        bodies.samples_entry(T + 2_000_010_000, [('battery.percentage', 87.4)]),
    ]
    body, _ = bodies.assemble(IDENTITY, 'sensors', 'series', 4, entries)
    assert json.loads(body) == {
        'name': 'rover-07',
        'sessionid': '1767225600_rover-07',
        'timestamp': 1767225600,
        'part': 4,
        'formatversion': '2.0',
        'data': [
            {'name': 'battery.percentage', 'data': [[1767225600, 87.5], [1767225602.00001, 87.4]]},
            {'name': 'c3d.pose_failures', 'data': [[1767225600, 0]]},
        ],
    }


@pytest.mark.rule(45, 46)
def test_a_dynamics_body():
    entries = [
        bodies.manifest_entry('rover-07-body', 'Rover 07', 'rover'),
        bodies.snapshot_entry('rover-07-body', T, (1, 2, 3), (0, 0, 0, 1), first=True),
        bodies.snapshot_entry(
            'rover-07-body', T + 100_000_000, (1, 2, 4), (0, 0, 0, 1), first=False
        ),
    ]
    body, _ = bodies.assemble(IDENTITY, 'dynamics', 'pose', 1, entries)
    content = json.loads(body)
    assert content['manifest'] == {
        'rover-07-body': {'name': 'Rover 07', 'mesh': 'rover', 'fileType': 'gltf'}
    }
    assert content['data'] == [
        {
            'id': 'rover-07-body',
            'time': 1767225600,
            'p': [1, 2, 3],
            'r': [0, 0, 0, 1],
            'properties': [{'enabled': True}],
        },
        {'id': 'rover-07-body', 'time': 1767225600.1, 'p': [1, 2, 4], 'r': [0, 0, 0, 1]},
    ]


def test_text_that_is_no_unicode_is_replaced_and_not_raised():
    entry = bodies.event_entry('lone \ud800', T, (0, 0, 0), {'k\udfff': '\ud800'})
    body, _ = bodies.assemble(IDENTITY, 'events', 'events', 1, [entry])
    assert json.loads(body)['data'][0]['name'] == 'lone ?'


def test_a_stream_without_a_json_body_is_refused():
    with pytest.raises(ValueError, match='camera'):
        bodies.assemble(IDENTITY, 'camera', 'camera', 1, [])


def test_the_identity_survives_json():
    assert SessionIdentity.from_json(IDENTITY.to_json()) == IDENTITY
