"""The soak's arithmetic: what it calls growth."""

import sys
from pathlib import Path

import pytest

pytest.importorskip('rclpy', reason='needs ROS')
pytest.importorskip('cognitive3d_msgs')

sys.path.insert(0, str(Path(__file__).parents[1] / 'tools'))

from soak import Held, Look, _grown

LENGTH_S = 3600.0


def looks(memory_mb, *, files=30.0, threads=26.0):
    """Return the looks of an hour, one each second; each figure may be a function of the time."""
    return [
        Look(second, Held(*(_at(each, second) for each in (memory_mb, files, threads, 0.0))), None)
        for second in range(int(LENGTH_S))
    ]


def _at(figure, second):
    return figure(second) if callable(figure) else figure


@pytest.mark.parametrize(
    'memory_mb',
    [
        90.0,
        lambda second: 70.0 + 20.0 * min(1.0, second / 300),  # caches that fill
        lambda second: 80.0 + second % 10,  # parts that are put together
        lambda second: 80.0 + 50.0 * (second == LENGTH_S - 1),  # one look at the wrong moment
        lambda second: 80.0 + 4.9 * (second > 1800),
    ],
)
def test_what_is_flat(memory_mb, capsys):
    assert _grown('node', looks(memory_mb), LENGTH_S) == []
    assert 'settled' in capsys.readouterr().out


def test_a_slow_leak_under_a_saw_tooth():
    leak = looks(
        lambda second: 80.0 + second % 10 + second / 500
    )  # 7.2 MB in an hour, 5.8 of it between
    (wrong,) = _grown('node', leak, LENGTH_S)
    assert wrong == 'node: 5.8 MB more memory'


def test_files_and_threads():
    assert _grown('node', looks(80.0, files=lambda s: 30 + (s % 60 < 5)), LENGTH_S) == []
    more_files = looks(80.0, files=lambda s: 30 + s // 600)
    assert _grown('node', more_files, LENGTH_S) == ['node: 35 open files, 30 before']
    more_threads = looks(80.0, threads=lambda s: 26 + (s > 3000))
    assert _grown('node', more_threads, LENGTH_S) == ['node: 27 threads, 26 before']
