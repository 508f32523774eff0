"""A wait that another thread ends."""

import os
import threading
import time

import pytest

from cognitive3d_ros.alarm import Alarm


def test_it_rings_once_for_each_wait():
    alarm = Alarm()
    assert alarm.wait(0) is False
    alarm.ring()
    alarm.ring()
    assert alarm.wait(60) is True
    assert alarm.wait(0) is False


def test_another_thread_ends_the_wait():
    alarm, rang = Alarm(), []
    waiting = threading.Thread(target=lambda: rang.append(alarm.wait(60)))
    waiting.start()
    alarm.ring()
    waiting.join(60)
    assert rang == [True]


def test_it_waits_as_long_as_told():
    started_s = time.monotonic()
    assert Alarm().wait(0.05) is False
    assert time.monotonic() - started_s >= 0.05


def test_its_descriptor_goes_with_it():
    alarm = Alarm()
    fd = alarm._fd
    del alarm
    with pytest.raises(OSError, match='Bad file'):
        os.fstat(fd)
    alarm = Alarm()
    alarm.close()
    alarm.close()
