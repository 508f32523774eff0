"""What becomes of pixels, whatever message they came in: scaled, shown in grey or BGR, encoded as JPEG."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import cv2
import numpy as np
from numpy.typing import NDArray

from cognitive3d_ros.convert.outcome import (
    MALFORMED,
    MAX_RECORD_BYTES,
    Dropped,
    Refused,
    dropped,
    refuse,
    refuse_size,
)
from cognitive3d_ros.counters import Drop

MAX_PIXELS: Final = 1 << 25
"""The largest picture that is decoded; a small file can claim to be any size."""
MAX_SIDE: Final = 65_500
"""What libjpeg can hold in either direction."""

Pixels = NDArray[np.uint8]
"""A picture as OpenCV has it: (height, width) in grey, (height, width, 3) in BGR."""


@dataclass(frozen=True, slots=True)
class PictureOptions:
    """How a camera's pictures are made: the parameters ``camera.<name>.*``."""

    jpeg_quality: int = 80
    max_width: int = 1280
    encoding: str = ''  # of raw images that name a wrong one; empty: as they say
    depth_range_m: tuple[float, float] = (0.0, 10.0)


@dataclass(frozen=True, slots=True)
class Picture:
    """A JPEG of ``width`` times ``height`` pixels, and the size that was published, before any scaling."""

    width: int
    height: int
    data: bytes
    published_width: int
    published_height: int


def outcome(
    make: Callable[[Any, PictureOptions], Picture], message: Any, options: PictureOptions
) -> Picture | Dropped:
    """Make a picture of a message; whatever is wrong with it is an outcome."""
    try:
        made = make(message, options)
        if len(made.data) > MAX_RECORD_BYTES:
            raise refuse_size('a JPEG', len(made.data))
    except cv2.error as error:
        return dropped('a picture', refuse(f'OpenCV: {" ".join(str(error).split())[:200]}'))
    except MALFORMED as error:
        return dropped('a picture', error)
    return made


def check_size(width: int, height: int) -> None:
    """Refuse a picture of no pixels, or of more than are decoded."""
    if width <= 0 or height <= 0:
        raise refuse(f'{width}x{height}: there are no pixels')
    if max(width, height) > MAX_SIDE or width * height > MAX_PIXELS:
        text = (
            f'{width}x{height}: at most {MAX_SIDE} pixels on a side, {MAX_PIXELS} in all are taken'
        )
        raise Refused(Dropped(Drop.TOO_LARGE, text))


def bytes_of(data: Any) -> Pixels:
    """Return a message's data where it lies in memory; refuses none, and too much."""
    size = memoryview(data).nbytes
    if size == 0:
        raise refuse('a picture without data')
    if size > MAX_RECORD_BYTES:
        raise refuse_size('a picture', size)
    return np.frombuffer(data, np.uint8)


def scaled_size(width: int, height: int, max_width: int) -> tuple[int, int]:
    """Return the size that is stored."""
    if width <= max_width:
        return width, height
    return max_width, max(1, round(height * max_width / width))


def scaled(pixels: Pixels, options: PictureOptions) -> Pixels:
    """Scale down to the width that is stored."""
    height, width = pixels.shape[:2]
    return resized(pixels, scaled_size(width, height, options.max_width))


def resized(pixels: Pixels, size: tuple[int, int]) -> Pixels:
    """Scale down to a width and a height, by means of what each pixel covers.

    By halves as far as that goes, then between neighbours: OpenCV's own way by areas is four times slower, but
    where the sizes divide.
    """
    height, width = pixels.shape[:2]
    while width >= 2 * size[0] and height >= 2 * size[1]:
        width, height = width // 2, height // 2
        even = pixels[: 2 * height, : 2 * width]
        pixels = as_pixels(cv2.resize(even, (width, height), interpolation=cv2.INTER_AREA))
    if (width, height) == size:
        return pixels
    return as_pixels(cv2.resize(pixels, size, interpolation=cv2.INTER_LINEAR))


def converted(pixels: Pixels, code: int | None) -> Pixels:
    """Convert colours by one of OpenCV's codes."""
    return pixels if code is None else as_pixels(cv2.cvtColor(pixels, code))


def as_pixels(result: Any) -> Pixels:
    """Tell the type checker what OpenCV returns here."""
    return result  # type: ignore[no-any-return]


def shown_depth(values: NDArray[Any], options: PictureOptions) -> Pixels:
    """Show depths in grey: millimetres in whole numbers, metres in floats."""
    height, width = values.shape
    stored_width, stored_height = scaled_size(width, height, options.max_width)
    if stored_width < width:
        rows = (2 * np.arange(stored_height) + 1) * height // (2 * stored_height)
        columns = (2 * np.arange(stored_width) + 1) * width // (2 * stored_width)
        values = values[rows][:, columns]
    low, high = options.depth_range_m
    if values.dtype.kind != 'f':
        low, high = low * 1000, high * 1000
    with np.errstate(over='ignore', invalid='ignore'):
        shown = values.astype(np.float32)
        valid = np.isfinite(shown)
        np.clip(shown, low, high, out=shown)
        shown -= np.float32(low)
        shown *= np.float32(255 / (high - low))
        np.rint(shown, out=shown)
    shown[~valid] = 0
    return shown.astype(np.uint8)


def encoded(pixels: Pixels, options: PictureOptions, width: int, height: int) -> Picture:
    """Encode a scaled picture; ``width`` and ``height`` are as published."""
    done, jpeg = cv2.imencode('.jpg', pixels, (cv2.IMWRITE_JPEG_QUALITY, options.jpeg_quality))
    if not done:
        raise refuse('OpenCV could not encode the picture')
    stored_height, stored_width = pixels.shape[:2]
    return Picture(stored_width, stored_height, jpeg.tobytes(), width, height)
