"""Rows of streams put in order a while at once, and copies of a template: against the plain ways."""

import heapq
import struct
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cognitive3d_ros.export import rows
from cognitive3d_ros.export.rows import Stream, copies, merged
from cognitive3d_ros.quaternions import rotate_array

TIMES = st.lists(st.lists(st.integers(0, 40), max_size=30).map(sorted), max_size=6)


@mock.patch.object(rows, 'ROWS', 4)
@mock.patch.object(rows, '_ALL_ROWS', 9)
@given(TIMES, st.integers(2, 9))
def test_streams_are_merged_as_heapq_merges_them(times, skipped):
    asked = [[] for _ in times]

    def stream(number, stamps):
        def items(low, high):
            for index in range(low, high):
                asked[number].append(index)
                yield None if index % skipped == 0 else (stamps[index], number, index)

        return Stream(np.array(stamps, np.int64), items)

    found = list(merged([stream(*each) for each in enumerate(times)]))
    plain = [
        [(t, number, index) for index, t in enumerate(stamps) if index % skipped]
        for number, stamps in enumerate(times)
    ]
    assert found == list(heapq.merge(*plain, key=lambda each: each[0]))
    assert asked == [list(range(len(stamps))) for stamps in times]


def test_many_short_streams_are_merged_in_few_goes():
    count = 2000
    stamps = np.arange(3 * count).reshape(count, 3)  # each ends before the next begins
    streams = [Stream(own, lambda low, high, own=own: own[low:high].tolist()) for own in stamps]
    with mock.patch.object(rows, '_upto', wraps=rows._upto) as goes:
        assert list(merged(streams)) == list(range(3 * count))
    assert goes.call_count == 1


def test_copies_have_their_own_numbers():
    template = struct.pack('<BdIB', 1, 0.5, 7, 2)
    made = copies(template, (9, np.array([8, 9], '<u4')), (1, np.array([[1.5], [-2.0]])))
    assert made == [struct.pack('<BdIB', 1, 1.5, 8, 2), struct.pack('<BdIB', 1, -2.0, 9, 2)]
    assert copies(template, (9, np.empty(0, '<u4'))) == []


@pytest.mark.parametrize('shape', [(3,), (5, 3)])
def test_vectors_are_turned_bit_for_bit_as_with_numpys_cross(shape):
    random = np.random.default_rng(5)
    q, v = random.normal(size=(5, 4)), random.normal(size=shape)
    across = np.cross(q[:, :3], v)
    expected = v + 2.0 * (q[:, 3:] * across + np.cross(q[:, :3], across))
    assert rotate_array(q, v).tobytes() == expected.tobytes()
