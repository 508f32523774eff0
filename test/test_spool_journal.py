"""The journal's bytes: what is written is replayed, and damage costs its own batch alone."""

import json
import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cognitive3d_ros.spool.journal import OpenSegment, Replay, State, batch, replay
from cognitive3d_ros.wire.identity import SessionIdentity

IDENTITY = SessionIdentity(
    '1767225600_rover', 'rover', 'scene', 3, '1.0.0', 1767225600 * 10**9, 0.1
)


def state(count: int, *, segment: int = 1, context: bytes = b'') -> State:
    """Return the state of a session with one open segment of so many entries."""
    open_ = (OpenSegment(segment, 'gaze', 'pose', count * 10, count),)
    return State(IDENTITY, {'gaze': segment - 1}, segment, count * 10, open_, context)


def three_batches() -> list[bytes]:
    return [
        batch(state(2, context=b'a'), [(1, [b'one', b'two'])]),
        batch(state(3, context=b'b'), [(1, [b'three'])]),
        batch(state(5, context=b'c'), [(1, [b'four', b'C3DJ five'])]),
    ]


def test_the_bytes_are_those_of_the_format():
    data = three_batches()[1]
    magic, version, reserved, length, crc = struct.unpack_from('<4sHHII', data)
    assert (magic, version, reserved) == (b'C3DJ', 1, 0)
    payload = data[16:]
    assert len(payload) == length
    assert zlib.crc32(data[:12] + payload) == crc
    (text_len,) = struct.unpack_from('<I', payload)
    assert json.loads(payload[4 : 4 + text_len]) == {
        'identity': {
            'session_id': '1767225600_rover',
            'device_id': 'rover',
            'scene_id': 'scene',
            'scene_version': 3,
            'sdk_version': '1.0.0',
            'start_ns': 1767225600000000000,
            'interval_s': 0.1,
        },
        'numbers': {'gaze': 0},
        'segment': 1,
        'latest_ns': 30,
        'open': [[1, 'gaze', 'pose', 30, 3]],
    }
    assert payload[4 + text_len :] == b'\1\0\0\0b' + b'\1\0\0\0' + b'\5\0\0\0' + b'three'


def test_replay():
    found = replay(b''.join(three_batches()))
    assert found == Replay(
        state(5, context=b'c'), {1: [b'one', b'two', b'three', b'four', b'C3DJ five']}
    )


def test_entries_of_finished_segments_are_left_out():
    data = three_batches()[0] + batch(state(1, segment=2), [(2, [b'next'])])
    assert replay(data).entries == {2: [b'next']}


def test_cut_at_every_byte():
    """What precedes the cut is kept: a batch is there whole, or not at all."""
    batches = three_batches()
    data = b''.join(batches)
    states = [None, state(2, context=b'a'), state(3, context=b'b'), state(5, context=b'c')]
    ends = [sum(map(len, batches[: n + 1])) for n in range(3)]
    for length in range(len(data) + 1):
        found = replay(data[:length])
        whole = sum(end <= length for end in ends)
        assert found.torn_bytes == length - (ends[whole - 1] if whole else 0)
        assert (found.damaged_bytes, found.lost_entries) == (0, 0)
        assert found.state == states[whole]


def test_a_bit_flipped_anywhere():
    """A damaged batch costs its own entries, and how many they are is known."""
    batches = three_batches()
    data = b''.join(batches)
    for at in range(len(data)):
        damaged = bytearray(data)
        damaged[at] ^= 1 << at % 8
        found = replay(bytes(damaged))
        hit = sum(at >= sum(map(len, batches[:n])) for n in range(3)) - 1
        if hit == 2:
            assert found.state == state(3, context=b'b')
            assert found.torn_bytes == len(batches[2])
        else:
            assert found.state == state(5, context=b'c')
            assert found.lost_entries == (2, 1)[hit]
            assert found.damaged_bytes == len(batches[hit])
            expected = [b'one', b'two', b'three', b'four', b'C3DJ five']
            del expected[slice(0, 2) if hit == 0 else slice(2, 3)]
            assert found.entries == {1: expected}


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_junk_between_and_after(before, after):
    first, second, _ = three_batches()
    found = replay(before + first + after + second)
    assert found.state == state(3, context=b'b')
    assert found.lost_entries == 0
    assert found.damaged_bytes == len(before) + len(after)


@given(st.binary(max_size=400))
def test_junk_alone(data):
    found = replay(data)
    assert found.state is None
    assert found.torn_bytes == len(data)


def test_a_newer_format_is_seen():
    payload = b'who knows'
    head = struct.pack('<4sHHI', b'C3DJ', 2, 0, len(payload))
    found = replay(head + struct.pack('<I', zlib.crc32(head + payload)) + payload)
    assert (found.state, found.newer) == (None, 2)


@pytest.mark.parametrize('text', [b'[]', b'{}', b'{', b'{"identity": {}}', b'\xff'])
def test_a_batch_that_is_whole_and_makes_no_sense(text):
    payload = struct.pack('<I', len(text)) + text + struct.pack('<I', 0)
    head = struct.pack('<4sHHI', b'C3DJ', 1, 0, len(payload))
    data = head + struct.pack('<I', zlib.crc32(head + payload)) + payload
    found = replay(data + three_batches()[0])
    assert found.state == state(2, context=b'a')
    assert found.damaged_bytes == len(data)
