"""The Husky's IMU, odometry and GPS as series, offline and live.

The right answer is a gate written by hand from the data format's sentence, over what rosbags reads of the
recording.
"""

import re
from decimal import ROUND_HALF_EVEN, Decimal

import numpy as np
import pytest
from husky import ODOMETRY
from recording_rig import REQUIRED, Lines, Stored
from rosbags.highlevel import AnyReader

from cognitive3d_ros import open_session
from cognitive3d_ros.bags.door import record_bag
from cognitive3d_ros.cli.main import main
from cognitive3d_ros.parameters import parse
from cognitive3d_ros.recording.accounts import adds_up

TOPICS = {'/imu/data': 'imu', ODOMETRY: 'odom', '/fix': 'gps'}


def params(rate_hz):
    return {
        'topics': list(TOPICS.values()),
        **{f'topic.{name}.topic': topic for topic, name in TOPICS.items()},
        **{f'topic.{name}.prefix': name for name in TOPICS.values()},
        **{f'topic.{name}.rate_hz': rate_hz for name in TOPICS.values()},
    }


class Plane:
    """East and north of the first fix, by turning the way there into the plane (WGS 84)."""

    def __init__(self):
        self.turn = None

    def at(self, fix):
        phi, lam = np.radians(fix.latitude), np.radians(fix.longitude)
        if self.turn is None:
            self.height = fix.altitude
            self.turn = np.array(
                [
                    [-np.sin(lam), np.cos(lam), 0],
                    [-np.sin(phi) * np.cos(lam), -np.sin(phi) * np.sin(lam), np.cos(phi)],
                ]
            )
        a, b = 6378137.0, 6356752.314245179
        n = a * a / np.hypot(a * np.cos(phi), b * np.sin(phi))
        place = np.array(
            [
                (n + self.height) * np.cos(phi) * np.cos(lam),
                (n + self.height) * np.cos(phi) * np.sin(lam),
                (b * b / (a * a) * n + self.height) * np.sin(phi),
            ]
        )
        if not hasattr(self, 'origin'):
            self.origin = place
        return (self.turn @ (place - self.origin)).tolist()


def published(bag):
    """Give (receive time in ns, {series: value}) of every message that counts, in the order of the bag."""
    plane = Plane()
    with AnyReader([bag]) as reader:
        for connection, time_ns, raw in reader.messages():
            message = reader.deserialize(raw, connection.msgtype)
            name = TOPICS[connection.topic]
            if name == 'imu':
                assert message.angular_velocity_covariance[0] != -1
                assert message.linear_acceleration_covariance[0] != -1
                parts = {
                    'angular_velocity': message.angular_velocity,
                    'linear_acceleration': message.linear_acceleration,
                }
            elif name == 'odom':
                twist = message.twist.twist
                parts = {'linear': twist.linear, 'angular': twist.angular}
            else:
                assert message.status.status >= 0
                east, north = plane.at(message)
                yield (
                    time_ns,
                    {
                        'gps.latitude': message.latitude,
                        'gps.longitude': message.longitude,
                        'gps.altitude': message.altitude,
                        'gps.status': message.status.status,
                        'gps.east_m': east,
                        'gps.north_m': north,
                    },
                )
                continue
            yield (
                time_ns,
                {
                    f'{name}.{part}_{axis}': getattr(vector, axis)
                    for part, vector in parts.items()
                    for axis in 'xyz'
                },
            )


def tick(time_ns):
    """Return nanoseconds as seconds with five decimals."""
    exact = Decimal(time_ns) / 10**9
    return float(exact.quantize(Decimal('0.00001'), rounding=ROUND_HALF_EVEN))


def by_hand(bag):
    """Keep a sample if it differs by more than 0.001 from the last kept, or after 2 s or more."""
    kept = {}
    for time_ns, values in published(bag):
        time_s = tick(time_ns)
        for name, value in values.items():
            value = round(float(value), 5)
            samples = kept.setdefault(name, [])
            if (
                not samples
                or round(abs(value - samples[-1][1]), 5) > 0.001
                or round(time_s - samples[-1][0], 5) >= 2
            ):
                samples.append((time_s, value))
    return kept


def record(bag, spool, **settings):
    config = parse({**REQUIRED, 'reference_frames': ['odom'], **settings})
    record_bag(bag, config, spool, odom_tf=ODOMETRY, log=Lines())
    return Stored(spool)


def series_of(stored):
    """Return all series but the recorder's own, as they are stored."""
    found = {}
    for body in stored.bodies('sensors'):
        for series in body['data']:
            if not series['name'].startswith('c3d.'):
                found.setdefault(series['name'], []).extend(map(tuple, series['data']))
    return found


def books(properties):
    """Return (received, text) of each account, all of which add up."""
    found = {
        key.removeprefix('c3d.account.topic.'): text
        for key, text in properties.items()
        if key.startswith('c3d.account.')
    }
    assert all(adds_up(text) for text in found.values())
    return {name: (int(text.split()[0]), text) for name, text in found.items()}


@pytest.mark.rule(14, 39, 40)
def test_every_sample_that_a_gate_written_by_hand_keeps(shared_data, tmp_path):
    bag = shared_data / 'husky_outdoor.bag'
    stored = record(bag, tmp_path / 'spool', **params(0))
    found, kept = series_of(stored), by_hand(bag)
    assert set(found) == set(kept)
    assert len(found) == 18
    for name, samples in kept.items():
        if name in ('gps.east_m', 'gps.north_m'):  # of two formulas: the last digit may differ
            assert [t for t, _ in found[name]] == [t for t, _ in samples]
            values = [v for _, v in samples]
            assert [v for _, v in found[name]] == pytest.approx(values, abs=1.1e-5)
        else:
            assert found[name] == samples, name
    assert sum(map(len, kept.values())) > 40_000
    received = {name: count for name, (count, _) in books(stored.properties()).items()}
    assert sum(received.values()) == 16_806


@pytest.mark.rule(39, 40)
def test_at_ten_a_second_the_sums_close(shared_data, tmp_path):
    bag = shared_data / 'husky_outdoor.bag'
    stored = record(bag, tmp_path / 'spool', **params(10))
    accounts = books(stored.properties())
    assert sum(count for count, _ in accounts.values()) == 16_806
    with AnyReader([bag]) as reader:
        counts = {TOPICS[each.topic]: each.msgcount for each in reader.connections}
    assert {name: count for name, (count, _) in accounts.items()} == counts
    session = open_session(tmp_path / 'spool')
    for name, seconds in (('imu', 395), ('odom', 395)):
        received, text = accounts[name]
        decimated = sum(map(int, re.findall(r'(\d+) decimated', text)))
        assert received - decimated == pytest.approx(10 * seconds, rel=0.02)
    # No two samples of a series are closer than the rate lets them be.
    for name, series in session.series.items():
        if name.startswith(('imu', 'odom')):
            assert np.diff(series.time).min() > 0.04
    assert main(['verify', str(tmp_path / 'spool')]) == 0
