"""The tf buffer: tf2's rules by hand, and against the real tf2 on random trees."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cognitive3d_ros.quaternions import about_z
from cognitive3d_ros.tf import Miss, Transform, TransformBuffer, frame_name

S = 1_000_000_000
NO_TURN = (0.0, 0.0, 0.0, 1.0)
ORIGIN = (0.0, 0.0, 0.0)


def moving(buffer: TransformBuffer, time_s: float, x: float, parent='odom', child='base') -> bool:
    return buffer.set_transform(parent, child, round(time_s * S), (x, 0.0, 0.0), NO_TURN)


def x_at(buffer: TransformBuffer, time_s: float, target='odom', source='base') -> float | Miss:
    found = buffer.lookup(target, source, round(time_s * S))
    return found.translation[0] if isinstance(found, Transform) else found


def test_interpolates_between_two_and_never_beyond() -> None:
    buffer = TransformBuffer()
    buffer.set_transform('odom', 'base', 10 * S, (0.0, 0.0, 0.0), about_z(0))
    buffer.set_transform('odom', 'base', 12 * S, (4.0, 0.0, 2.0), about_z(90))
    found = buffer.lookup('odom', 'base', 11 * S)
    assert isinstance(found, Transform)
    assert found.stamp_ns == 11 * S
    assert found.translation == (2.0, 0.0, 1.0)
    assert found.rotation == pytest.approx(about_z(45))
    assert buffer.lookup('odom', 'base', 12 * S + 1) is Miss.FUTURE
    assert buffer.lookup('odom', 'base', 10 * S - 1) is Miss.PAST


def test_interpolates_the_short_way_round() -> None:
    buffer = TransformBuffer()
    buffer.set_transform('odom', 'base', 1 * S, ORIGIN, about_z(170))
    buffer.set_transform('odom', 'base', 2 * S, ORIGIN, about_z(-170))
    found = buffer.lookup('odom', 'base', 3 * S // 2)
    assert isinstance(found, Transform)
    assert found.rotation == pytest.approx(about_z(180))


def test_one_value_answers_at_its_own_time_only() -> None:
    buffer = TransformBuffer()
    moving(buffer, 5, 1.0)
    assert x_at(buffer, 5) == 1.0
    assert x_at(buffer, 5.1) is Miss.FUTURE
    assert x_at(buffer, 4.9) is Miss.PAST


def test_a_chain_over_a_common_parent() -> None:
    # left and right of the base; from left to right is 1.5 m, seen turned by 90 degrees.
    buffer = TransformBuffer()
    buffer.set_transform('base', 'left', 0, (0.0, 1.0, 0.0), about_z(90), static=True)
    buffer.set_transform('base', 'right', 0, (0.0, -0.5, 0.0), NO_TURN, static=True)
    found = buffer.lookup('left', 'right', None)
    assert isinstance(found, Transform)
    assert found.stamp_ns == 0
    assert found.translation == pytest.approx((-1.5, 0.0, 0.0))
    assert found.rotation == pytest.approx(about_z(-90))


def test_static_frames_answer_at_any_time() -> None:
    buffer = TransformBuffer()
    buffer.set_transform('base', 'camera', 7 * S, (0.3, 0.0, 0.0), NO_TURN, static=True)
    for time_ns in (1, 7 * S, 10**18):
        assert buffer.lookup('base', 'camera', time_ns) == Transform(
            time_ns, (0.3, 0.0, 0.0), NO_TURN
        )
    assert buffer.lookup('base', 'camera', None) == Transform(0, (0.3, 0.0, 0.0), NO_TURN)


def test_the_newest_is_the_newest_common_time() -> None:
    buffer = TransformBuffer()
    moving(buffer, 10, 0.0, 'map', 'odom')
    moving(buffer, 12, 2.0, 'map', 'odom')
    moving(buffer, 9, 0.0)
    moving(buffer, 11, 2.0)
    buffer.set_transform('base', 'camera', 0, (0.5, 0.0, 0.0), NO_TURN, static=True)
    found = buffer.lookup('map', 'camera', None)
    assert isinstance(found, Transform)
    assert found.stamp_ns == 11 * S
    assert found.translation == (1.0 + 2.0 + 0.5, 0.0, 0.0)


def test_misses_are_told_apart() -> None:
    buffer = TransformBuffer()
    moving(buffer, 1, 0.0)
    moving(buffer, 1, 0.0, 'island', 'hut')
    assert buffer.lookup('odom', 'ghost', None) is Miss.UNKNOWN_FRAME
    assert buffer.lookup('ghost', 'base', S) is Miss.UNKNOWN_FRAME
    assert buffer.lookup('odom', 'hut', None) is Miss.DISCONNECTED
    assert buffer.lookup('odom', 'hut', S) is Miss.DISCONNECTED
    assert buffer.lookup('', 'base', S) is Miss.INVALID
    assert buffer.lookup('odom', '/base', S) is Miss.INVALID


def test_a_frame_to_itself() -> None:
    buffer = TransformBuffer()
    moving(buffer, 3, 1.0)
    assert buffer.lookup('base', 'base', None) == Transform(3 * S, ORIGIN, NO_TURN)
    assert buffer.lookup('base', 'base', 5) == Transform(5, ORIGIN, NO_TURN)
    assert buffer.lookup('ghost', 'ghost', None) == Transform(0, ORIGIN, NO_TURN)


@pytest.mark.parametrize(
    ('parent', 'child', 'translation', 'rotation'),
    [
        ('base', 'base', ORIGIN, NO_TURN),
        ('/base', 'base', ORIGIN, NO_TURN),
        ('', 'base', ORIGIN, NO_TURN),
        ('odom', '', ORIGIN, NO_TURN),
        ('odom', '/', ORIGIN, NO_TURN),
        ('odom', 'base', (math.nan, 0.0, 0.0), NO_TURN),
        ('odom', 'base', (0.0, math.inf, 0.0), NO_TURN),
        ('odom', 'base', ORIGIN, (0.0, 0.0, 0.0, 0.0)),
        ('odom', 'base', ORIGIN, (0.0, 0.0, 0.0, math.nan)),
        ('odom', 'base', ORIGIN, (0.0, 0.0, math.inf, 0.0)),
        ('odom', 'base', ORIGIN, (0.0, 0.0, 0.2, 1.0)),
    ],
)
def test_what_makes_no_sense_is_refused(parent, child, translation, rotation) -> None:
    buffer = TransformBuffer()
    assert not buffer.set_transform(parent, child, S, translation, rotation)
    assert buffer.lookup('odom', 'base', None) is Miss.UNKNOWN_FRAME


def test_a_leading_slash_is_dropped() -> None:
    buffer = TransformBuffer()
    assert moving(buffer, 1, 2.0, '/odom', '/base')
    assert x_at(buffer, 1) == 2.0
    assert frame_name('/base') == frame_name('base') == 'base'


def test_old_and_repeated_data_are_ignored() -> None:
    buffer = TransformBuffer(cache_s=2.0)
    assert moving(buffer, 10, 1.0)
    assert not moving(buffer, 10, 5.0)
    assert not moving(buffer, 7.9, 5.0)
    assert moving(buffer, 8, 0.0)  # as old as may be
    assert x_at(buffer, 9) == 0.5
    assert moving(buffer, 9, 7.0)  # late, but in time
    assert x_at(buffer, 9) == 7.0
    assert moving(buffer, 11, 1.0)  # and what is too old now goes
    assert x_at(buffer, 8.5) is Miss.PAST


def test_a_frame_that_changes_its_parent() -> None:
    buffer = TransformBuffer()
    moving(buffer, 1, 1.0, 'table', 'cup')
    moving(buffer, 2, 2.0, 'table', 'cup')
    moving(buffer, 4, 0.1, 'hand', 'cup')
    assert x_at(buffer, 1.5, 'table', 'cup') == 1.5
    assert x_at(buffer, 3, 'table', 'cup') == 2.0  # between two parents the older one holds
    assert x_at(buffer, 4, 'hand', 'cup') == 0.1
    assert buffer.lookup('table', 'cup', None) is Miss.DISCONNECTED


def test_a_loop_ends() -> None:
    buffer = TransformBuffer()
    moving(buffer, 1, 1.0, 'a', 'b')
    moving(buffer, 1, 1.0, 'b', 'a')
    moving(buffer, 1, 1.0, 'root', 'leaf')
    assert buffer.lookup('root', 'a', S) is Miss.UNKNOWN_FRAME
    assert buffer.lookup('a', 'leaf', None) is Miss.UNKNOWN_FRAME


@pytest.mark.rule(32)
def test_clear_forgets_what_moves_and_keeps_what_does_not() -> None:
    buffer = TransformBuffer()
    moving(buffer, 100, 1.0)
    buffer.set_transform('base', 'camera', 0, (0.3, 0.0, 0.0), NO_TURN, static=True)
    buffer.clear()
    assert buffer.lookup('base', 'camera', 5 * S) == Transform(5 * S, (0.3, 0.0, 0.0), NO_TURN)
    assert buffer.lookup('odom', 'base', S) is Miss.FUTURE
    assert buffer.lookup('odom', 'base', None) is Miss.DISCONNECTED
    assert moving(buffer, 1, 4.0)  # the clock went back: no longer too old
    assert x_at(buffer, 1) == 4.0


# Against the real tf2, on whatever a robot might send.

FRAMES = ('map', 'odom', 'base', 'arm', 'hand')
ODD_FRAMES = ('', '/', '/map', '//map')
ODD_ROTATIONS = ((0.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.1), (0.0, 0.0, 0.0, math.nan))

component = st.floats(-1, 1)
# Their lengths are those that tf2 lets through.
rotations = st.builds(
    lambda q, length: tuple(length * c / math.hypot(*q) for c in q),
    st.tuples(component, component, component, component).filter(lambda q: math.hypot(*q) > 0.1),
    st.sampled_from((1.0, 0.997, 1.003)),
)
translations = st.tuples(*[st.floats(-100, 100)] * 3)
poses = st.tuples(translations, rotations)
# Few times, so that stamps repeat, age and are looked up; 0 is tf2's word for the newest.
stamps = st.integers(0, 20).map(lambda tenth: tenth * S // 10)
times = st.one_of(st.none(), stamps, st.integers(1, 2 * S))
frames = st.sampled_from(FRAMES)
# A tree: each frame under an earlier one. Now and then anything under anything.
links = st.one_of(
    *[st.tuples(st.sampled_from(FRAMES[:n]), st.just(FRAMES[n])) for n in range(1, len(FRAMES))]
    * 3,
    st.tuples(frames, frames),
)

tracks = st.tuples(
    links, st.lists(st.tuples(stamps, poses), min_size=1, max_size=8), st.just(False)
)
fixed = st.tuples(links, st.tuples(st.tuples(stamps, poses)), st.just(True))
odd = st.one_of(
    st.tuples(
        st.tuples(frames, st.sampled_from(ODD_FRAMES)),
        st.tuples(st.tuples(stamps, poses)),
        st.booleans(),
    ),
    st.tuples(
        links,
        st.tuples(st.tuples(stamps, st.tuples(translations, st.sampled_from(ODD_ROTATIONS)))),
        st.booleans(),
    ),
)
scripts = st.lists(
    st.one_of(tracks, tracks, tracks, tracks, tracks, fixed, odd, st.just('clear')), max_size=14
)


@pytest.fixture(scope='module')
def tf2():
    """The core of the real tf2, without the messages around it."""
    pytest.importorskip('tf2_ros', reason='tf2 is not installed: make setup')
    return pytest.importorskip('tf2_ros._core', reason='a tf2_ros of a ROS install')


def kinds_of(error: Exception) -> set[Miss]:
    """Which misses tf2's exception may be: its words tell future from past, its type does not."""
    name, text = type(error).__name__, str(error)
    if name == 'ExtrapolationException':
        if 'into the future' in text:
            return {Miss.FUTURE}
        if 'into the past' in text:
            return {Miss.PAST}
        return {Miss.FUTURE, Miss.PAST}
    return {
        {
            'LookupException': Miss.UNKNOWN_FRAME,
            'ConnectivityException': Miss.DISCONNECTED,
            'InvalidArgumentException': Miss.INVALID,
        }[name]
    }


def assert_alike(
    tf2, ours: TransformBuffer, real, target: str, source: str, time_ns: int | None
) -> None:
    found = ours.lookup(target, source, time_ns)
    try:
        values, stamp_ns = real.lookup(target, source, time_ns or 0)
    except tf2.TransformException as error:
        possible = kinds_of(error)
    else:
        assert isinstance(found, Transform), (found, values)
        assert found.stamp_ns == stamp_ns
        np.testing.assert_allclose(found.translation, values[:3], atol=1e-9, rtol=1e-12)
        np.testing.assert_allclose(found.rotation, values[3:], atol=1e-9)
        return
    assert found in possible


@settings(max_examples=250, deadline=None)
@given(
    script=scripts, cache_s=st.sampled_from((0.5, 1.0, 10.0)), asked=st.lists(times, max_size=6)
)
def test_answers_as_the_real_tf2(tf2, script, cache_s: float, asked) -> None:
    ours, real = TransformBuffer(cache_s), tf2.Core(round(cache_s * S))
    for step in script:
        if step == 'clear':
            ours.clear()
            real.clear()
            continue
        (parent, child), track, static = step
        for stamp_ns, (translation, rotation) in track:
            ours.set_transform(parent, child, stamp_ns, translation, rotation, static=static)
            real.set(parent, child, stamp_ns, translation + rotation, 'test', static=static)
    for target in (*FRAMES, '/map', '', 'ghost'):
        for source in (*FRAMES, '/map', '', 'ghost'):
            for time_ns in (None, *asked):
                assert_alike(tf2, ours, real, target, source, time_ns)
