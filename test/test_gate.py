"""The change gate, against one written by hand from the data format's sentence."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cognitive3d_ros.recording.gate import ChangeGate

S = 1_000_000_000


def by_hand(samples):
    """Store when it differs by more than 0.001 from the last stored value, or after 2 s or more."""
    stored = []
    for time_s, value in samples:
        time_s, value = round(time_s, 5), round(value, 5)
        if (
            not stored
            or round(abs(value - stored[-1][1]), 5) > 0.001
            or round(time_s - stored[-1][0], 5) >= 2
        ):
            stored.append((time_s, value))
    return stored


def gated(samples):
    gate = ChangeGate()
    return [
        (round(time_s, 5), value)
        for time_s, raw in samples
        for _, value in gate.passed([('x', raw)], round(time_s * S))
    ]


@pytest.mark.rule(40)
@pytest.mark.parametrize(
    ('samples', 'kept'),
    [
        ([(0, 1.0), (1, 1.001), (1.5, 1.00101)], [0, 1.5]),  # more than 0.001, not 0.001
        ([(0, 1.0), (1.99999, 1.0), (2, 1.0), (3.9, 1.0), (4.00001, 1.0)], [0, 2, 4.00001]),
        (
            [(0, 0.0), (0.1, 0.0006), (0.2, 0.0012), (0.3, 0.0018)],
            [0, 0.2],
        ),  # from the last stored
        ([(0, 5.0), (0.1, 5.0010000001), (0.2, 5.001006)], [0, 0.2]),  # rounded before
        ([(0, -1.0), (0.1, 1.0)], [0, 0.1]),
    ],
)
def test_what_the_gate_keeps(samples, kept):
    assert [time_s for time_s, _ in gated(samples)] == kept


@pytest.mark.rule(40)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 250_000),  # 1e-5 s
            st.one_of(
                st.integers(-400, 400).map(lambda n: n * 0.0005),
                st.floats(-1e9, 1e9),
                st.floats(allow_nan=False, allow_infinity=False),
            ),
        ),
        max_size=60,
    )
)
def test_the_gate_is_the_sentence(steps):
    time_ticks, samples = 0, []
    for step, value in steps:
        time_ticks += step
        samples.append((time_ticks / 100_000, value))
    assert gated(samples) == by_hand(samples)


def test_series_are_gated_each_for_itself():
    gate = ChangeGate()
    assert gate.passed([('a', 1.0), ('b', 2.0)], 0) == [('a', 1.0), ('b', 2.0)]
    assert gate.passed([('a', 1.0), ('b', 3.0)], S) == [('b', 3.0)]
    assert gate.passed([('a', 1.0), ('b', 3.0)], 2 * S) == [('a', 1.0)]
