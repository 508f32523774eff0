"""What a signal asks for: when the process may leave at once, and how long it may deliver."""

import signal

import pytest

from cognitive3d_ros.node import stop as stop_module
from cognitive3d_ros.node.stop import DELIVERY_S, Stop


class Left(BaseException):
    pass


@pytest.fixture
def stop(monkeypatch):
    def leave(code):
        raise Left(code)

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    monkeypatch.setattr(stop_module.os, '_exit', leave)
    stop = Stop()
    stop.install()
    yield stop
    for number, handler in before.items():
        signal.signal(number, handler)


def test_before_anything_has_begun_a_signal_ends_at_once(stop):
    with pytest.raises(Left, match='0'):
        signal.raise_signal(signal.SIGTERM)


def test_the_second_ends_once_all_is_settled(stop):
    stop.begun = True
    for _ in range(3):
        signal.raise_signal(signal.SIGINT)
    assert stop.asked
    assert stop.hurry
    stop.settled = 1  # something could not be kept
    with pytest.raises(Left, match='1'):
        stop.leave_in_a_hurry()


def test_delivery_gets_what_the_end_of_the_session_leaves(stop, monkeypatch):
    """Docker gives ten seconds for everything."""
    now_s = [100.0]
    monkeypatch.setattr(stop_module.time, 'monotonic', lambda: now_s[0])
    stop.begun = True
    assert stop.delivery_s == DELIVERY_S
    signal.raise_signal(signal.SIGTERM)
    for passed_s, delivery_s in ((0.0, 3.0), (2.0, 3.0), (4.0, 1.0), (6.0, 0.0)):
        now_s[0] = 100.0 + passed_s
        assert stop.delivery_s == delivery_s
    signal.raise_signal(signal.SIGTERM)  # the first counts
    assert stop.delivery_s == 0.0
