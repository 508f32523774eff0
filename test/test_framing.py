"""Part files: their bytes, their names, and what damage does."""

import json
import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cognitive3d_ros.errors import FormatError, NewerFormatError
from cognitive3d_ros.wire import framing
from cognitive3d_ros.wire.framing import (
    Part,
    PartHeader,
    frame,
    is_session_id,
    parse,
    parse_header,
    parse_part_name,
    part_name,
)
from cognitive3d_ros.wire.identity import SessionIdentity

IDENTITY = SessionIdentity(
    '1767225600_rover-7', 'rover-7', 'scene', 3, '1.0.0', 1767225600 * 10**9, 0.1
)
HEADER = PartHeader(IDENTITY, 'gaze', 2, 'pose', 7, 'application/json', 1767225601 * 10**9)
BODY = b'{"data":[]}'
WHOLE = b''.join(frame(HEADER, BODY))


def test_the_bytes_are_those_of_the_format():
    """Read by hand, from the description alone."""
    assert WHOLE[:8] == b'C3DPART\0'
    version, reserved, header_len, body_len = struct.unpack('<HHIQ', WHOLE[8:24])
    assert (version, reserved, body_len) == (1, 0, len(BODY))
    header = json.loads(WHOLE[24 : 24 + header_len])
    assert header == {
        'identity': {
            'session_id': '1767225600_rover-7',
            'device_id': 'rover-7',
            'scene_id': 'scene',
            'scene_version': 3,
            'sdk_version': '1.0.0',
            'start_ns': 1767225600000000000,
            'interval_s': 0.1,
        },
        'stream': 'gaze',
        'number': 2,
        'klass': 'pose',
        'segment': 7,
        'content_type': 'application/json',
        'latest_ns': 1767225601000000000,
    }
    assert WHOLE[24 + header_len : -4] == BODY
    assert WHOLE[-4:] == struct.pack('<I', zlib.crc32(WHOLE[:-4]))


def test_a_golden_part():
    """A part as version 1.0.0 wrote it: it must be read for ever."""
    text = b'{"identity":{"session_id":"1_a","device_id":"a","scene_id":"s","scene_version":1,'
    text += b'"sdk_version":"1.0.0","start_ns":1000000000,"interval_s":0.1},"stream":"events",'
    text += b'"number":1,"klass":"events","segment":1,"content_type":"application/json"}'
    data = b'C3DPART\0\1\0\0\0' + struct.pack('<IQ', len(text), 2) + text + b'{}'
    data += struct.pack('<I', zlib.crc32(data))
    part = parse(data)
    assert part.body == b'{}'
    assert part.header.identity.session_id == '1_a'
    assert part.header.latest_ns == 0


@given(
    body=st.binary(max_size=300),
    stream=st.sampled_from(framing.STREAMS),
    klass=st.sampled_from(framing.CLASSES),
    number=st.integers(1, 10**12),
    text=st.text(max_size=20),
)
def test_what_is_framed_is_parsed(body, stream, klass, number, text):
    header = PartHeader(IDENTITY, stream, number, klass, 1, text, 5)
    data = b''.join(frame(header, body))
    assert parse(data) == Part(header, body)
    assert parse_header(data[:4096]) == header


def test_the_body_is_not_copied():
    assert frame(HEADER, BODY)[1] is BODY


def test_cut_off_anywhere():
    for length in range(len(WHOLE)):
        with pytest.raises(FormatError, match='empty' if length == 0 else 'cut off'):
            parse(WHOLE[:length])


def test_a_bit_flipped_anywhere():
    for at in range(len(WHOLE)):
        damaged = bytearray(WHOLE)
        damaged[at] ^= 1 << at % 8
        with pytest.raises(FormatError):
            parse(bytes(damaged))


@pytest.mark.parametrize(
    ('data', 'why'),
    [
        (b'', 'empty'),
        (b'{"data": []}', 'not a part'),
        (WHOLE + b'x', '1 bytes too long'),
        (WHOLE[:8] + b'\0\0' + WHOLE[10:], 'format 0'),
        (WHOLE[:12] + b'\xff\xff\xff\xff' + WHOLE[16:], 'a header of 4294967295'),
        (WHOLE[:16] + b'\xff' * 8 + WHOLE[24:], 'and a body of 18446744073709551615'),
    ],
)
def test_what_is_wrong_is_said(data, why):
    with pytest.raises(FormatError, match=why):
        parse(data)


def test_a_newer_format_is_refused_as_such():
    """Whatever follows its number: a later format may look different."""
    for data in (WHOLE[:8] + b'\2\0' + WHOLE[10:], b'C3DPART\0\2\0' + bytes(14)):
        with pytest.raises(NewerFormatError, match='format 2'):
            parse(data)
        with pytest.raises(NewerFormatError):
            parse_header(data)


@pytest.mark.parametrize(
    'change',
    [
        {'stream': 'smell'},
        {'klass': 'smell'},
        {'number': 0},
        {'number': '2'},
        {'number': True},
        {'identity': 'me'},
        {'identity': {}},
    ],
)
def test_a_header_that_makes_no_sense(change):
    values = json.loads(WHOLE[24 : -4 - len(BODY)])
    with pytest.raises(FormatError, match='header'):
        parse(_framed({**values, **change}))


def test_a_header_with_keys_of_a_later_version():
    values = json.loads(WHOLE[24 : -4 - len(BODY)])
    values['colour'] = 'green'
    values['identity']['fleet'] = 'north'
    assert parse(_framed(values)) == Part(HEADER, BODY)


def _framed(values) -> bytes:
    text = json.dumps(values).encode()
    data = struct.pack('<8sHHIQ', framing.MAGIC, 1, 0, len(text), len(BODY)) + text + BODY
    return data + struct.pack('<I', zlib.crc32(data))


def test_a_header_longer_than_the_prefix():
    with pytest.raises(FormatError, match='cut off in the header'):
        parse_header(WHOLE[:100])


def test_names():
    assert part_name('gaze', 1, 'properties') == 'gaze.000001.properties.c3d'
    assert part_name('camera', 1_000_000, 'camera') == 'camera.1000000.camera.c3d'
    assert parse_part_name('camera.1000000.camera.c3d') == ('camera', 1_000_000, 'camera')
    assert parse_part_name('gaze.999999.pose.c3d') < parse_part_name('gaze.1000000.pose.c3d')


@given(
    stream=st.sampled_from(framing.STREAMS),
    klass=st.sampled_from(framing.CLASSES),
    number=st.integers(1, 10**17),
)
def test_every_name_is_read_back(stream, klass, number):
    assert parse_part_name(part_name(stream, number, klass)) == (stream, number, klass)


@pytest.mark.parametrize(
    'name',
    [
        'gaze.1.pose.c3d',
        'gaze.0000001.pose.c3d',  # a second name of part 1
        'gaze.000000.pose.c3d',
        'gaze.000001.pose.c3d.tmp',
        'gaze.000001.pose.C3D',
        'gaze.000001.pose.c3d\n',
        'gaze.00000१.pose.c3d',
        'smell.000001.pose.c3d',
        'gaze.000001.smell.c3d',
        'x' * 300,
        '',
    ],
)
def test_what_is_no_part_name(name):
    assert parse_part_name(name) is None


@pytest.mark.parametrize('name', ['1767225600_rover', '0_a.b-c_d', '9_' + 'x' * 64])
def test_session_ids(name):
    assert is_session_id(name)


@pytest.mark.parametrize(
    'name',
    ['', '_rover', '17_', '17_../x', '17_.x', '17', 'x_17', '17_a\n', '१_a', '9_' + 'x' * 65],
)
def test_what_is_no_session_id(name):
    assert not is_session_id(name)
