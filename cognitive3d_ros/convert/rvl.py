"""RVL: depths of 16 bits, compressed without loss, as compressed_depth_image_transport has it.

After Wilson, Fast Lossless Depth Image Compression (2017). Behind the width and the height come numbers: how
many zeros, how many others, for each of those its difference to the one before, and so on in turn. A number
is written in nibbles of 3 bits, its low bits first, and the high bit of a nibble says that it goes on. Words
of 32 bits are read from their high nibble.
"""

from __future__ import annotations

import struct
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cognitive3d_ros.convert.outcome import refuse

SIZES: Final = struct.Struct('<II')
"""What comes first: width and height."""

_LONGEST: Final = 9  # nibbles: no run is longer than 27 bits can say


def read(data: bytes) -> NDArray[np.uint16]:
    """Decode a picture whose sizes have been checked; refuses what is none."""
    width, height = SIZES.unpack_from(data)
    pixels = width * height
    numbers = _numbers(data[SIZES.size :])
    number, count = numbers.data, numbers.size
    lengths: list[int] = []  # of the runs
    differences = np.zeros(count, np.bool_)
    left, at = pixels, 0
    while left > 0 and at + 2 <= count:
        zeros, others = number[at], number[at + 1]
        at += 2
        differences[at : at + others] = True
        at += others
        left -= zeros + others
        lengths += (zeros, others)
    if left > 0 or at > count:
        raise refuse(f'RVL that is cut off: {len(data)} bytes for {width}x{height} pixels')
    if left < 0:
        raise refuse(f'RVL with more than its {width}x{height} pixels')
    signed = numbers[differences]
    signed = (signed >> 1) ^ -(signed & 1)  # 0 1 2 3 4 are 0 −1 1 −2 2
    values = np.zeros(pixels, np.uint16)
    others_at = np.repeat(np.arange(len(lengths)) % 2 == 1, lengths)
    values[others_at] = np.cumsum(signed).astype(np.uint16)
    return values.reshape(height, width)


def _numbers(body: bytes) -> NDArray[np.int64]:
    words = np.frombuffer(body, np.uint8, len(body) // 4 * 4).reshape(-1, 4)[:, ::-1].ravel()
    nibbles = np.empty(2 * words.size, np.int64)
    nibbles[::2], nibbles[1::2] = words >> 4, words & 15
    ends = np.flatnonzero(nibbles < 8)
    starts = np.concatenate(([0], ends + 1))[: ends.size]
    longest = int((ends - starts).max(initial=0)) + 1
    if longest > _LONGEST:
        raise refuse(f'RVL with a number of {3 * longest} bits')
    numbers = np.zeros(ends.size, np.int64)
    for place in range(longest):
        goes_on = np.flatnonzero(starts + place <= ends)
        numbers[goes_on] |= (nibbles[starts[goes_on] + place] & 7) << (3 * place)
    return numbers
