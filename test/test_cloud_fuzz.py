"""Malformed clouds and scans, at random: each one is an outcome, nothing is raised, nothing grows.

``C3D_FUZZ`` says how many of each.
"""

from __future__ import annotations

import os
import random
import struct
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from cloud_messages import cloud_message, scan_message, xyz
from hypothesis import given
from hypothesis import strategies as st
from test_scans import IDENTITY

from cognitive3d_ros.conventions import CONVENTIONS, Convention
from cognitive3d_ros.convert.clouds import Cloud, CloudOptions, convert_cloud
from cognitive3d_ros.convert.outcome import Dropped
from cognitive3d_ros.convert.scans import Scan, convert_scan
from cognitive3d_ros.wire.capnp_codec import decode_lidar, encode_lidar
from cognitive3d_ros.wire.clouds import read
from cognitive3d_ros.wire.records import LidarScanRecord, Pose

MANY = int(os.environ.get('C3D_FUZZ', '3000'))

NUMBERS = [
    0,
    1,
    2,
    3,
    4,
    5,
    7,
    8,
    12,
    15,
    16,
    20,
    64,
    255,
    1000,
    2**16,
    2**31,
    2**32 - 1,
    2**64,
    -1,
]
JUNK = [
    None,
    'x',
    1.5,
    float('nan'),
    (),
    [1],
    {},
    b'',
    b'abc',
    object(),
    SimpleNamespace(),
    10**400,
]
SPECIAL = [0.0, -0.0, 1.0, 0.5, 1e-45, 1e30, 40.0, float('inf'), float('-inf'), float('nan')]
NAMES = [
    'x',
    'y',
    'z',
    'X',
    'rgb',
    'rgba',
    'r',
    'g',
    'b',
    'intensity',
    'i',
    '',
    'ring',
    'normal_x',
]


def one_of(chance: random.Random, usual: object, unusual: list) -> object:
    """Mostly what is usual: a message with one fault gets further than one with ten."""
    if chance.random() < 0.8:
        return usual
    return chance.choice(JUNK if chance.random() < 0.1 else unusual)


def clouds(chance: random.Random) -> Iterator[SimpleNamespace]:
    while True:
        step = chance.choice([12, 13, 16, 20, 32])
        width, height = chance.randrange(6), chance.choice([1, 1, 2, 3])
        values = [
            chance.choice(SPECIAL) if chance.random() < 0.3 else chance.uniform(-50, 50)
            for _ in range(40)
        ]
        row_step = width * step + chance.choice([0, 0, 3])
        data = (struct.pack('<40f', *values) * 3)[: row_step * height]
        if chance.random() < 0.1:
            data = data[: chance.randrange(len(data) + 1)] + bytes(chance.randrange(9))
        fields = [
            SimpleNamespace(
                name=one_of(chance, name, NAMES),
                offset=one_of(chance, 4 * i if i < 3 else chance.randrange(step), NUMBERS),
                datatype=one_of(chance, 7 if i < 3 else chance.randrange(1, 9), NUMBERS),
                count=one_of(chance, 1, NUMBERS),
            )
            for i, name in enumerate(
                ['x', 'y', 'z', *chance.choices(NAMES, k=chance.randrange(4))]
            )
        ]
        if chance.random() < 0.1:
            chance.shuffle(fields)
        yield SimpleNamespace(
            width=one_of(chance, width, NUMBERS),
            height=one_of(chance, height, NUMBERS),
            point_step=one_of(chance, step, NUMBERS),
            row_step=one_of(chance, row_step, NUMBERS),
            is_bigendian=one_of(chance, False, [True, 1, 255]),
            fields=one_of(chance, fields, [[], fields * 2, [None], 3]),
            data=one_of(chance, data, [b'', data[:-1], np.zeros(7), memoryview(data)]),
        )


def scans(chance: random.Random) -> Iterator[SimpleNamespace]:
    odd = [[], [1, 2], [[1], [2]], ['a'], [None], np.zeros((2, 2)), np.array([1j]), 3, b'abcd']
    while True:
        usual = [chance.choice(SPECIAL) for _ in range(chance.randrange(6))]
        changes = {
            name: one_of(chance, value, [*SPECIAL, 1e300, 3, True])
            for name, value in vars(scan_message()).items()
        }
        changes['ranges'] = one_of(chance, np.array(usual, np.float32), odd)
        changes['intensities'] = one_of(chance, usual, odd)
        message = SimpleNamespace(**changes)
        if chance.random() < 0.02:
            delattr(message, chance.choice(list(changes)))
        yield message


def options(chance: random.Random) -> CloudOptions:
    return CloudOptions(
        position=chance.choice(['int16_mm', 'float32']),
        color=chance.choice(['none', 'rgb565', 'rgb332', 'rgb888']),
        intensity=chance.choice(['none', 'uint8']),
        intensity_field=chance.choice(['', '', 'ring', 'x']),
        voxel_leaf_mm=chance.choice([0, 1, 50, 65535]),
        zstd_level=chance.choice([0, 1]),
    )


def check_cloud(message: SimpleNamespace, asked: CloudOptions, convention: Convention) -> bool:
    """Convert; say whether it gave points, which then can be read and are finite and in range."""
    outcome = convert_cloud(message, asked, convention)
    if isinstance(outcome, Dropped):
        assert outcome.text
        return False
    assert isinstance(outcome, Cloud)
    points = read(outcome.data)
    assert len(points.positions) <= outcome.points - outcome.out_of_range
    assert np.isfinite(points.positions).all()
    return bool(outcome.data.point_count)


def check_scan(message: SimpleNamespace, *, intensities: bool) -> bool:
    """Convert and go through a part; say whether it was taken."""
    outcome = convert_scan(message, intensities=intensities)
    if isinstance(outcome, Dropped):
        assert outcome.text
        return False
    assert isinstance(outcome, Scan)
    record = LidarScanRecord('a', 1, 0, 'b', Pose(), outcome.data)
    (stored,) = decode_lidar(encode_lidar(IDENTITY, 1, [record])).scans
    assert stored.scan.ranges.tobytes() == outcome.data.ranges.tobytes()
    return True


def resident_bytes() -> int:
    """The memory of this process; skips where Linux's /proc is not there."""
    status = Path('/proc/self/statm')
    if not status.exists():
        pytest.skip('memory is read from /proc')
    return int(status.read_text().split()[1]) * os.sysconf('SC_PAGE_SIZE')


def test_malformed_clouds_raise_nothing_and_grow_nothing() -> None:
    chance = random.Random(5)
    conventions = [Convention(name) for name in CONVENTIONS]
    source = clouds(chance)
    given_points, before = 0, 0
    for i in range(MANY):
        if i == MANY // 3:
            before = resident_bytes()
        given_points += check_cloud(next(source), options(chance), chance.choice(conventions))
    assert MANY // 20 < given_points < MANY // 2
    assert resident_bytes() - before < 8 << 20


def test_malformed_scans_raise_nothing_and_grow_nothing() -> None:
    chance = random.Random(6)
    source = scans(chance)
    taken, before = 0, 0
    for i in range(MANY):
        if i == MANY // 3:
            before = resident_bytes()
        taken += check_scan(next(source), intensities=chance.random() < 0.5)
    assert MANY // 20 < taken < MANY
    assert resident_bytes() - before < 8 << 20


anything = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.binary(max_size=80),
    st.lists(st.floats(), max_size=5),
    st.lists(st.none(), max_size=3),
)
field = st.builds(
    SimpleNamespace,
    name=st.sampled_from(NAMES) | anything,
    offset=st.integers(0, 20) | anything,
    datatype=st.integers(0, 9) | anything,
    count=st.integers(0, 3) | anything,
)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            'width': st.integers(0, 10) | anything,
            'height': st.integers(0, 10) | anything,
            'point_step': st.integers(0, 40) | anything,
            'row_step': st.integers(0, 400) | anything,
            'is_bigendian': anything,
            'fields': st.lists(field, max_size=6) | anything,
            'data': st.binary(max_size=400) | anything,
        },
    ),
    st.integers(),
    st.sampled_from(CONVENTIONS),
)
def test_any_change_of_a_good_cloud_is_an_outcome(changes, seed, name) -> None:
    good = xyz((1, 2, 3), (4, 5, 6), (1, 2, 3.01), rgb=('<f4', [0, 1, 2]), i=('<u2', [1, 2, 3]))
    message = cloud_message(good, **changes)
    check_cloud(message, options(random.Random(seed)), Convention(name))


@given(
    st.dictionaries(st.sampled_from(sorted(vars(scan_message()))), anything, max_size=3),
    st.booleans(),
)
def test_any_change_of_a_good_scan_is_an_outcome(changes, intensities) -> None:
    check_scan(scan_message(**changes), intensities=intensities)
