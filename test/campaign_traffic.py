"""What the robot of the kill campaign sends, and the numbers in it; for the robot, the node and the checker."""

from __future__ import annotations

import cv2
import numpy as np

SPEED_M_S = 0.5
RATES_HZ = {'tf': 50.0, 'event': 20.0, 'sample': 50.0, 'picture': 15.0, 'scan': 20.0}
RAYS = 40_000  # of a scan: with so many a part is full every second or two


def picture_bytes(number):
    """Return a picture of 200 KB with its number in a comment segment."""
    text = str(number).encode()
    return PICTURE[:2] + b'\xff\xfe' + (len(text) + 2).to_bytes(2, 'big') + text + PICTURE[2:]


def picture_number(data):
    """Return the number in a picture."""
    assert data[2:4] == b'\xff\xfe'
    return int(data[6 : 4 + int.from_bytes(data[4:6], 'big')])


def _noise():
    pixels = np.random.default_rng(5).integers(0, 256, (480, 640, 3), dtype=np.uint8)
    return cv2.imencode('.jpg', pixels, [cv2.IMWRITE_JPEG_QUALITY, 60])[1].tobytes()


PICTURE = _noise()
