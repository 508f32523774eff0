"""Messages that never came in, counted by the gaps in their numbers: plain values, no ROS."""

import inspect
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cognitive3d_ros.counters import Count, Ledger, Missed
from cognitive3d_ros.node.arrivals import Arrivals
from cognitive3d_ros.recording.accounts import accounts, losses


class Topic:
    """A subscription, and what comes of it."""

    def __init__(self, *found):
        self.found = list(found)
        self.taken, self.lost = [], []
        self.arrivals = Arrivals(self.taken.append, self.lost.append, self.only)
        self.callback = self.arrivals.callback

    def only(self):
        return self.found[0] if len(self.found) == 1 else None

    def come(self, number, publisher=None):
        about = {'publication_sequence_number': number}
        if publisher is not None:
            about['publisher_gid'] = {'data': publisher}
        self.callback(number, about)

    def told(self, n):
        self.arrivals.told_lost(SimpleNamespace(total_count_change=n))


@given(st.lists(st.tuples(st.sampled_from([b'a', b'b', b'c']), st.booleans()), max_size=60))
def test_gaps_are_counted_for_each_publisher(sent):
    """Against a count by hand: all that is missing between the first and the last that came of each."""
    topic = Topic()
    numbers, came = {}, {}
    for publisher, arrives in sent:
        numbers[publisher] = numbers.get(publisher, 0) + 1
        if arrives:
            came.setdefault(publisher, []).append(numbers[publisher])
            topic.come(numbers[publisher], publisher)
    assert sum(topic.lost) == sum(each[-1] - each[0] + 1 - len(each) for each in came.values())
    assert len(topic.taken) == sum(map(len, came.values()))


def test_numbers_that_go_back_begin_anew():
    """What was published before we came is sent once more to a new subscription, as /tf_static is."""
    topic = Topic()
    for number in (50, 51, 41, 42, 51, 1, 2, 4):
        topic.come(number, b'a')
    assert topic.lost == [8, 1]


def test_what_dds_tells_counts_where_there_are_no_numbers():
    topic = Topic()
    topic.told(3)
    topic.callback('message', {'source_timestamp': 1})  # as Humble does
    topic.callback('message')  # as an rclpy that knows of no information does
    topic.told(2)
    assert topic.lost == [3, 2]
    assert topic.taken == ['message', 'message']


def test_what_dds_tells_is_not_counted_twice():
    topic = Topic()
    topic.come(1, b'a')
    topic.told(2)
    topic.come(4, b'a')
    assert topic.lost == [2]


def test_the_only_publisher_of_a_topic_needs_no_name():
    """As on Jazzy."""
    topic = Topic(b'a')
    for number in (7, 8, 11):
        topic.come(number)
    topic.told(2)
    assert topic.lost == [2]


def test_publishers_without_names_are_never_mixed_up():
    topic = Topic(b'a')
    topic.come(1)
    topic.found = [b'b']  # another one in its place, which has published for long
    topic.come(1000)
    topic.come(1002)
    assert topic.lost == [1]
    topic.found = [b'b', b'c']
    for number in (5000, 1003, 5001, 1004):
        topic.come(number)
    topic.told(3)
    assert topic.lost == [1, 3]
    topic.found = [b'c']
    topic.come(5100)
    topic.come(5102)
    assert topic.lost == [1, 3, 1]


def test_publishers_that_come_and_go_without_end():
    topic = Topic()
    for number in range(10_000):
        topic.come(number + 1, number.to_bytes(16, 'big'))
    assert topic.lost == []
    assert len(topic.arrivals._last) <= 64


@pytest.mark.parametrize('as_one', [False, True], ids=['single threaded', 'events'])
def test_both_ways_in_which_executors_call(as_one):
    topic = Topic()
    with pytest.raises(TypeError):  # which is how rclpy finds out that it wants both
        inspect.signature(topic.callback).bind(object())
    inspect.signature(topic.callback).bind(object(), object())
    given = 'message', {'publication_sequence_number': 1}
    topic.callback(given) if as_one else topic.callback(*given)
    assert topic.taken == ['message']


def test_the_ledger_names_the_input():
    ledger = Ledger()
    ledger.lost('topic.x', 3)
    ledger.lost('events', 1)
    assert ledger.value(Count.MESSAGES_LOST) == 4
    assert ledger.value((Missed.MESSAGES, 'topic.x')) == 3
    counted = ledger.snapshot()
    assert losses(counted) == (
        'events: 1 messages_lost; topic.x: 3 messages_lost; c3d.messages_lost: 4'
    )
    assert losses(counted, 'topic.x') == '3 messages_lost'
    assert accounts({}, counted) == []  # what never came in has no account
