"""The Husky's IMU and odometry as series of a live node, held to the data format's sentence."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip('rclpy', reason='needs ROS')

from husky import ODOMETRY
from test_husky_series import books, params, published, series_of

pytestmark = [pytest.mark.ros, pytest.mark.slow, pytest.mark.alone]

ROOT = Path(__file__).parent.parent
SECONDS, RATE = 60, 4


def play(bag):
    """Play the first minute of the bag, faster than it was."""
    command = [sys.executable, ROOT / 'demo' / 'play_bag.py', bag, '--odom-tf', ODOMETRY]
    command += ['--clock-hz', 0, '--seconds', SECONDS, '--rate', RATE, '--wait-for', 'cognitive3d']
    done = subprocess.run(
        [str(word) for word in command], check=True, capture_output=True, text=True
    )
    assert done.stderr == ''


def follows_the_sentence(values, stored):
    """Assert that stored samples are those of values, in order, that the gate keeps.

    A value that differs by more than 0.001 from the last stored one is the next that is stored; another one is
    only stored when 2 s or more have passed.
    """
    times = iter(stored)
    time, last = next(times)
    assert last == round(values[0], 5)
    ahead = next(times, None)
    for value in (round(value, 5) for value in values[1:]):
        changed = round(abs(value - last), 5) > 0.001
        due = ahead is not None and ahead[1] == value and round(ahead[0] - time, 5) >= 2
        if changed or due:
            assert ahead is not None
            assert ahead[1] == value
            (time, last), ahead = ahead, next(times, None)
    assert ahead is None


def record(start_node, bag, rate_hz):
    """Record the bag live; return the stored series, the accounts, and what came in of each topic."""
    node = start_node('node', reference_frames=['odom'], **params(rate_hz))
    play(bag)
    assert node.stop() == 0, node.text
    found, accounts = series_of(node.stored), books(node.stored.properties())
    lines = re.findall(r'\w+ topic: \d+ received = .*', node.text)
    assert len(lines) == 3
    for name, (_, text) in accounts.items():
        assert f'{name} topic: {text}' in lines
    return found, accounts, node.stored.properties()


@pytest.mark.rule(14, 39, 40)
def test_every_sample_that_the_sentence_keeps(start_node, shared_data):
    bag = shared_data / 'husky_outdoor.bag'
    found, accounts, properties = record(start_node, bag, 0)
    assert properties['c3d.ros.topic.imu.publisher'] == '/play_bag'
    assert properties['c3d.ros.topic.imu.type'] == 'sensor_msgs/msg/Imu'
    messages = {'imu': [], 'odom': []}
    first_ns = None
    for time_ns, values in published(bag):
        first_ns = time_ns if first_ns is None else first_ns
        if time_ns - first_ns > SECONDS * 10**9:
            break
        name = next(iter(values)).partition('.')[0]
        if name in messages:
            messages[name].append(values)
    for name, played in messages.items():
        received = accounts[name][0]
        series = {key: samples for key, samples in found.items() if key.startswith(f'{name}.')}
        # The publisher had to be found first; from then on every message is there.
        first = {key: samples[0][1] for key, samples in series.items()}
        begin = next(
            index
            for index, values in enumerate(played)
            if {key: round(float(value), 5) for key, value in values.items()} == first
        )
        assert begin < len(played) / 10
        assert received >= len(played) - begin - 2
        taken = played[begin : begin + received]
        assert len(series) == 6
        for key, samples in series.items():
            follows_the_sentence([float(values[key]) for values in taken], samples)


@pytest.mark.rule(40)
def test_at_ten_a_second_the_sums_close(start_node, shared_data):
    found, accounts, _ = record(start_node, shared_data / 'husky_outdoor.bag', 10)
    played_s = SECONDS / RATE
    for name in ('imu', 'odom'):
        received, text = accounts[name]
        (decimated,) = map(int, re.findall(r'(\d+) decimated', text))
        assert received - decimated <= 10 * played_s + 2
        assert received - decimated >= 9 * played_s - 10
        assert max(len(samples) for key, samples in found.items() if key.startswith(name)) > 30
