"""Diagnostics: levels in every form that they come in, and what changes."""

from types import SimpleNamespace as Of

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cognitive3d_ros.convert.diagnostics import Statuses, level_of
from cognitive3d_ros.convert.names import MAX_SERIES
from cognitive3d_ros.convert.outcome import Dropped
from cognitive3d_ros.convert.taken import LevelChange, Taken


def status(name, level, message='', hardware_id='base'):
    return Of(name=name, level=level, message=message, hardware_id=hardware_id, values=[])


def array(*statuses):
    return Of(status=list(statuses))


def convert(own=lambda name, hardware_id: False):
    return Statuses('diagnostics', own)


@pytest.mark.parametrize(
    ('value', 'level'),
    [
        (b'\x00', 0),
        (b'\x02', 2),
        (b'2', 2),  # 0x32: drivers that send the digit
        (b'3', 3),
        (1, 1),
        (50, 2),  # the same digit, from a reader that makes ints of bytes
        (np.uint8(2), 2),
        (b'\x07', 3),
        (200, 3),
        (-1, 3),
        (b'', None),
        (b'ab', None),
        (None, None),
        ('2', None),
    ],
)
def test_levels(value, level):
    assert level_of(value) == level


def test_levels_are_series_and_changes_are_told():
    take = convert()
    first = take(array(status('base: motor', b'\x00'), status('battery', b'\x01', 'low')))
    assert first == Taken(
        [('diagnostics.base: motor.level', 0.0), ('diagnostics.battery.level', 1.0)]
    )
    assert take(array(status('battery', b'\x01', 'still low'))).changes == ()
    worse = take(array(status('battery', b'\x02', 'empty', 'pack 1'), status('base: motor', 0)))
    assert worse.samples == [
        ('diagnostics.battery.level', 2.0),
        ('diagnostics.base: motor.level', 0.0),
    ]
    assert worse.changes == (LevelChange('battery', 2, 'empty', 'pack 1'),)
    better = take(array(status('battery', b'\x00'), status('battery', b'\x01')))
    assert [change.level for change in better.changes] == [0, 1]
    assert take(array(status('battery', b''))).samples == []


def test_our_own_statuses_are_not_taken():
    take = convert(lambda name, hardware_id: (hardware_id, name[:8]) == ('rover', 'recorder'))
    ours = status('recorder: spool', b'\x00', hardware_id='rover')
    assert take(array(ours, ours)) == Taken([], only_own=True)
    mixed = take(array(ours, status('recorder: spool', b'\x00', hardware_id='other')))
    assert mixed.samples == [('diagnostics.recorder: spool.level', 0.0)]
    assert not mixed.only_own
    assert not take(array()).only_own
    assert not take(array(ours, status('', b'\x00'))).only_own


def test_statuses_without_end():
    take = convert()
    names = set()
    left_out = 0
    for index in range(0, 2 * MAX_SERIES, 100):
        outcome = take(array(*(status(f's{index + n}', b'\x00') for n in range(100))))
        names.update(name for name, _ in outcome.samples)
        left_out += outcome.left_out
    assert (len(names), left_out) == (MAX_SERIES, MAX_SERIES)
    some = take(array(status('', 0), status('x' * 1000, 0)))
    assert (some.samples, some.left_out, some.no_name) == ([], 1, 1)
    long = take(array(status('s0', b'\x01', 'm' * 100_000)))
    assert len(long.changes[0].message) == 1024


ANYTHING = st.one_of(
    st.none(), st.integers(), st.floats(), st.text(max_size=3), st.binary(max_size=2)
)


@given(st.lists(st.builds(status, ANYTHING, ANYTHING, ANYTHING, ANYTHING) | ANYTHING, max_size=4))
def test_nothing_ever_raises(statuses):
    outcome = convert()(array(*statuses))
    assert isinstance(outcome, (Taken, Dropped))
