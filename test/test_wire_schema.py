"""The check of JSON bodies: by hand-written bodies of each stream, and by everything that may be wrong."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cognitive3d_ros.errors import FormatError
from cognitive3d_ros.wire.schema import check_body, read_body

GAZE = (
    b'{"userid":"rover-07","timestamp":1767225600,"sessionid":"1767225600_rover-07","part":1,'
    b'"interval":0.1,"formatversion":"1.0","properties":{"c3d.version":"1.0.0","indoor":true,"kg":3.5},'
    b'"data":[{"time":1767225600.1,"p":[-0.5,0,1.25],"r":[0,0.38268,0,0.92388]}]}'
)
EVENTS = (
    b'{"userid":"rover-07","timestamp":1767225600.0,"sessionid":"1767225600_rover-07","part":3,'
    b'"formatversion":"1.0","data":[{"name":"c3d.sessionStart","time":1767225600,"point":[0,0,0]},'
    b'{"name":"dock.reached","time":1767225731.20314,"dynamicId":"body","point":[-1.5,0.0,4.02],'
    b'"properties":{"dock":"A","duration":12.4,"ok":true}}]}'
)
SENSORS = (
    b'{"name":"rover-07","sessionid":"1767225600_rover-07","timestamp":1767225600,"part":1,'
    b'"formatversion":"2.0","data":[{"name":"battery.percentage","data":[[1767225600,87.5],'
    b'[1767225602.00012,87.4]]},{"name":"c3d.pose_failures","data":[]}]}'
)
DYNAMICS = (
    b'{"userid":"rover-07","timestamp":1767225600,"sessionid":"1767225600_rover-07","part":1,'
    b'"formatversion":"1.0","manifest":{"body":{"name":"Rover 07","mesh":"rover","fileType":"gltf"}},'
    b'"data":[{"id":"body","time":1767225600.1,"p":[-0.5,0,1.25],"r":[0,0.38268,0,0.92388],'
    b'"properties":[{"enabled":true}]}]}'
)
BODIES = {'gaze': GAZE, 'events': EVENTS, 'sensors': SENSORS, 'dynamics': DYNAMICS}


@pytest.mark.rule(2, 29, 36, 39, 61)
@pytest.mark.parametrize('stream', BODIES)
def test_right_bodies_pass(stream):
    body = check_body(stream, BODIES[stream])
    assert body.session_id == '1767225600_rover-07'
    assert body.device_id == 'rover-07'
    assert body.part == (3 if stream == 'events' else 1)
    assert len(body.data) == {'gaze': 1, 'events': 2, 'sensors': 2, 'dynamics': 1}[stream]
    assert body.properties == (
        {'c3d.version': '1.0.0', 'indoor': True, 'kg': 3.5} if stream == 'gaze' else {}
    )


def test_keys_of_other_sdks_and_an_old_gaze_point_are_let_through():
    top = json.loads(GAZE)
    top.update(hmdtype='unknown', lobbyId='x')
    top['data'][0].update(g=[1, 2, 3], o='body')
    assert check_body('gaze', json.dumps(top).encode()).data[0]['g'] == [1, 2, 3]


def test_a_body_of_properties_alone_and_a_manifest_alone_pass():
    assert check_body('gaze', GAZE[: GAZE.index(b'"data"')] + b'"data":[]}').data == []
    assert check_body('dynamics', DYNAMICS[: DYNAMICS.index(b',"data"')] + b'}').data == []


# stream, what is replaced, by what, and what the message must say
WRONG = [
    ('gaze', b'"userid":"rover-07"', b'"userid":"rover-08"', "userid: 'rover-07'"),
    ('gaze', b'"userid":"rover-07"', b'"name":"rover-07"', 'userid: a text wanted, not nothing'),
    ('sensors', b'"name":"rover-07"', b'"userid":"rover-07"', 'name: a text wanted'),
    ('gaze', b'1767225600_rover-07', b'1767225600', "session id '1767225600'"),
    ('gaze', b'1767225600_rover-07', b'../../etc/passwd', 'session id'),
    ('gaze', b'1767225600_rover-07', b'1767225600_../x', 'session id'),
    ('gaze', b'1767225600_rover-07', b'1767225600_rover-07\\n', 'session id'),
    ('gaze', b'1767225600_rover-07', '١٧_rover-07'.encode(), 'session id'),
    ('gaze', b'"timestamp":1767225600', b'"timestamp":1767225601', 'timestamp: 1767225600'),
    ('gaze', b'"timestamp":1767225600', b'"timestamp":"1767225600"', 'timestamp: a finite number'),
    ('gaze', b'"part":1', b'"part":0', 'part: a whole number from 1'),
    ('gaze', b'"part":1', b'"part":1.0', 'part: a whole number from 1'),
    ('gaze', b'"part":1', b'"part":true', 'part: a whole number from 1'),
    ('gaze', b'"part":1', b'"part":4294967296', 'part: a whole number from 1'),
    ('gaze', b'"formatversion":"1.0"', b'"formatversion":"2.0"', "formatversion: '1.0' wanted"),
    ('gaze', b'"interval":0.1', b'"interval":0', 'interval: more than 0'),
    ('gaze', b'"interval":0.1,', b'', 'interval: a finite number wanted, not nothing'),
    ('gaze', b'"indoor":true', b'"indoor":null', "properties['indoor']: a string"),
    ('gaze', b'"indoor":true', b'"indoor":[1]', "properties['indoor']: a string"),
    ('gaze', b'"data":[', b'"data":{},"x":[', 'data: a list wanted, not {}'),
    ('gaze', b'"data":[', b'"x":[', 'data: a list wanted, not nothing'),
    ('gaze', b'"data":[', b'"data":[7,', 'data[0]: an object wanted, not 7'),
    ('gaze', b'"time":1767225600.1', b'"time":NaN', 'NaN is no JSON number'),
    ('gaze', b'"time":1767225600.1', b'"time":-Infinity', '-Infinity is no JSON number'),
    ('gaze', b'"time":1767225600.1', b'"time":1e999', 'data[0].time: a finite number'),
    ('gaze', b'"time":1767225600.1', b'"time":1' + b'0' * 400, 'data[0].time: a finite number'),
    ('gaze', b'"time":1767225600.1', b'"time":1' + b'0' * 5000, 'not JSON'),
    ('gaze', b'"time":1767225600.1', b'"time":true', 'data[0].time: a finite number'),
    ('gaze', b'[-0.5,0,1.25]', b'[-0.5,0]', 'data[0].p: 3 finite numbers wanted, not [-0.5, 0]'),
    ('gaze', b'[-0.5,0,1.25]', b'[-0.5,0,null]', 'data[0].p: 3 finite numbers'),
    ('gaze', b'[0,0.38268,0,0.92388]', b'[0,0,1]', 'data[0].r: 4 finite numbers'),
    ('gaze', b'"r":[', b'"g":[0],"r":[', 'data[0].g: 3 finite numbers'),
    ('events', b'"name":"dock.reached"', b'"name":""', 'data[1].name: a text'),
    ('events', b'"point":[0,0,0]', b'"point":"here"', 'data[0].point: 3 finite numbers'),
    ('events', b'"dock":"A"', b'"dock":{}', "data[1].properties['dock']: a string"),
    ('events', b'"properties":{', b'"properties":7,"x":{', 'data[1].properties: an object'),
    ('events', b'"dynamicId":"body"', b'"dynamicId":5', 'data[1].dynamicId: a text'),
    ('sensors', b'[1767225600,87.5]', b'[1767225600,"87.5"]', 'data[0].data[0]: 2 finite numbers'),
    ('sensors', b'[1767225600,87.5]', b'[1767225600]', 'data[0].data[0]: 2 finite numbers'),
    ('sensors', b'"data":[]', b'"data":null', 'data[1].data: a list'),
    ('dynamics', b'"id":"body"', b'"id":null', 'data[0].id: a text'),
    (
        'dynamics',
        b'[{"enabled":true}]',
        b'{"enabled":true}',
        'data[0].properties: a list of objects',
    ),
    ('dynamics', b'"mesh":"rover",', b'', "manifest['body'].mesh: a text"),
]


@pytest.mark.parametrize(('stream', 'was', 'now', 'says'), WRONG)
def test_wrong_bodies_are_refused_and_told_where(stream, was, now, says):
    assert was in BODIES[stream]
    with pytest.raises(FormatError) as caught:
        check_body(stream, BODIES[stream].replace(was, now))
    assert says in str(caught.value)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    'body',
    [
        b'',
        b'{',
        b'[]',
        b'null',
        b'\xef\xbb\xbf' + GAZE,
        GAZE.decode().encode('utf-16'),
        GAZE + b'x',
        b'{"userid":"\xff"}',
        b'[' * 200_000,
        b'{"data":' + b'[' * 5000 + b']' * 5000 + b'}',
    ],
)
def test_what_is_no_json_object_is_refused(body):
    with pytest.raises(FormatError):
        check_body('gaze', body)


def test_streams_without_json_are_refused():
    for stream in ('camera', 'lidar', '', 'Gaze'):
        with pytest.raises(FormatError):
            read_body(stream, GAZE)


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=10,
)


@given(stream=st.sampled_from(sorted(BODIES)), value=_json, data=st.data())
def test_any_value_in_any_place_passes_or_is_a_format_error(stream, value, data):
    """Whatever stands where something else should, the check answers, and what it lets through is finite."""
    top = json.loads(BODIES[stream])
    places = [(top, key) for key in top]
    for record in top['data']:
        places += [(record, key) for key in record]
    holder, key = data.draw(st.sampled_from(places))
    holder[key] = value
    try:
        body = check_body(stream, json.dumps(top).encode())
    except FormatError:
        return
    if stream == 'gaze':
        for record in body.data:
            assert all(math.isfinite(x) for x in [record['time'], *record['p'], *record['r']])


@given(st.binary(max_size=200))
def test_random_bytes_never_raise_anything_else(body):
    for stream in BODIES:
        with pytest.raises(FormatError):
            check_body(stream, body)
