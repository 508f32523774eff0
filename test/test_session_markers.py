"""Log markers: sequences worked by hand, and a model that knows only which indexes are open."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cognitive3d_ros.session.markers import RegionState, read_markers
from cognitive3d_ros.session.records import Annotation

DONE, ABORTED = RegionState.COMPLETED, RegionState.ABORTED
RESTARTED, OPEN = RegionState.RESTARTED, RegionState.OPEN
KEYS = {
    'start': 'log_marker_start',
    'stop': 'log_marker_stop',
    'abort': 'log_marker_abort',
    'stop_all': 'log_marker_stop_all',
    'abort_all': 'log_marker_abort_all',
    'event': 'log_marker_event',
    'comment': 'comment',
}


def read(*script):
    """Read markers given as (word, value), one a second."""
    return read_markers(
        Annotation(
            100.0 + n,
            'c3d.annotation',
            (0.0, 0.0, 0.0),
            annotation_time=float(n),
            key=KEYS[word],
            value=value,
        )
        for n, (word, value) in enumerate(script)
    )


def regions(*script):
    markers = read(*script)
    assert not markers.faults
    return [
        (r.index, r.state, r.start, r.stop, r.start_text, r.stop_text) for r in markers.regions
    ]


def test_a_region_from_start_to_stop():
    assert regions(('start', '<1>;dock'), ('stop', '<1>;docked')) == [
        (1, DONE, 0.0, 1.0, 'dock', 'docked')
    ]


def test_regions_may_interleave():
    script = ('start', '1;a'), ('start', '2;b'), ('stop', '2;'), ('stop', '1;')
    assert regions(*script) == [(1, DONE, 0.0, 3.0, 'a', ''), (2, DONE, 1.0, 2.0, 'b', '')]
    script = ('start', '1;'), ('start', '2;'), ('stop', '1;'), ('abort', '2;fell over')
    assert regions(*script) == [
        (1, DONE, 0.0, 2.0, '', ''),
        (2, ABORTED, 1.0, 3.0, '', 'fell over'),
    ]


def test_all_ends_every_open_one_and_none_is_no_fault():
    script = (
        ('stop_all', 'x'),
        ('abort_all', ''),
        ('start', '5;'),
        ('start', 'free'),
        ('stop_all', 'y'),
    )
    assert regions(*script) == [
        (5, DONE, 2.0, 4.0, '', 'y'),
        (None, DONE, 3.0, 4.0, 'free', 'y'),
    ]
    assert regions(('start', '5;'), ('abort_all', 'z')) == [(5, ABORTED, 0.0, 1.0, '', 'z')]


def test_a_second_start_closes_the_first():
    assert regions(('start', '1;a'), ('start', '1;b'), ('stop', '1;c')) == [
        (1, RESTARTED, 0.0, 1.0, 'a', ''),
        (1, DONE, 1.0, 2.0, 'b', 'c'),
    ]


def test_what_is_open_at_the_end_is_open():
    assert regions(('start', '7;x')) == [(7, OPEN, 0.0, None, 'x', '')]


def test_a_stop_with_nothing_open_is_reported():
    markers = read(('stop', '1;x'), ('start', '1;'), ('abort', '2;'), ('stop', 'x'))
    assert markers.faults == (
        "log_marker_stop '1;x' at 0.00000: no region 1 is open",
        "log_marker_abort '2;' at 2.00000: no region 2 is open",
        "log_marker_stop 'x' at 3.00000: no anonymous region is open",
    )
    assert [r.state for r in markers.regions] == [OPEN]
    (fault,) = read(('stop', f'1;{"x" * 5000}')).faults
    assert fault == f"log_marker_stop '1;{'x' * 78}…' at 0.00000: no region 1 is open"


def test_anonymous_regions_close_last_in_first_out():
    script = ('start', 'outer'), ('start', 'inner'), ('stop', 'i'), ('abort', ';o')
    assert regions(*script) == [
        (None, ABORTED, 0.0, 3.0, 'outer', 'o'),
        (None, DONE, 1.0, 2.0, 'inner', 'i'),
    ]


@pytest.mark.parametrize(
    ('value', 'index', 'text'),
    [
        ('<3>;dock', 3, 'dock'),
        ('3;dock', 3, 'dock'),
        ('3', 3, ''),
        ('<3>', 3, ''),
        (' < 3 > ; a;b', 3, ' a;b'),
        ('-2;x', -2, 'x'),
        ('3;', 3, ''),
        ('3;two\nlines', 3, 'two\nlines'),
        ('', None, ''),
        (';x', None, 'x'),
        ('3 boxes', None, '3 boxes'),
        ('<3;x', None, '<3;x'),
        ('x;3', None, 'x;3'),
        ('1' * 5000, None, '1' * 5000),
        ('٣;x', None, '٣;x'),
    ],
)
def test_the_index_of_a_marker(value, index, text):
    (region,) = read(('start', value)).regions
    assert (region.index, region.start_text) == (index, text)


def test_marked_instants_and_other_annotations():
    markers = read(('event', 'here'), ('comment', 'c'))
    assert [e.value for e in markers.events] == ['here']
    assert markers.regions == markers.faults == ()


def test_the_order_is_that_of_the_annotated_time_then_of_arrival():
    def annotation(time, key, value):
        place = (0.0, 0.0, 0.0)
        return Annotation(9.0, 'c3d.annotation', place, annotation_time=time, key=key, value=value)

    late = [
        annotation(2.0, 'log_marker_stop', '1;'),
        annotation(1.0, 'log_marker_start', '1;'),
        annotation(3.0, 'log_marker_start', '2;'),
        annotation(3.0, 'log_marker_stop', '2;'),
    ]
    markers = read_markers(late)
    assert not markers.faults
    assert [(r.index, r.start, r.stop) for r in markers.regions] == [(1, 1.0, 2.0), (2, 3.0, 3.0)]


_steps = st.lists(
    st.tuples(st.sampled_from(['start', 'stop', 'abort']), st.integers(0, 3))
    | st.tuples(st.sampled_from(['stop_all', 'abort_all', 'event']), st.just(0)),
    max_size=30,
)


@given(_steps)
def test_against_a_model_of_open_indexes(steps):
    opened, faults, started = set(), 0, 0
    for word, index in steps:
        if word == 'start':
            opened.add(index)
            started += 1
        elif word in ('stop', 'abort'):
            faults += index not in opened
            opened.discard(index)
        elif word != 'event':
            opened.clear()
    markers = read(*((word, f'{index};') for word, index in steps))
    assert len(markers.faults) == faults
    assert len(markers.regions) == started
    assert {r.index for r in markers.regions if r.state is OPEN} == opened
    starts = [r.start for r in markers.regions]
    assert starts == sorted(starts)
    assert all(r.stop is None or r.stop > r.start for r in markers.regions)
