"""Pictures: an image message of any encoding to the JPEG that is stored.

A message is anything with the fields of ``sensor_msgs/Image`` or ``sensor_msgs/CompressedImage``. What no
picture can be made of is an outcome, never an exception.

``_ROWS`` says how each encoding of ``sensor_msgs/image_encodings`` is read. What it does not say itself:

* 16 bits a channel are shown by their high byte, and alpha is left out.
* ``8UC3`` and ``16UC3`` are BGR, as OpenCV and cv_bridge have it; of two channels the first is shown.
* YUV is BT.601 of limited range, as in OpenCV and cv_bridge.
* A single channel of 16, 32 or 64 bits is a depth (REP 118): millimetres in whole numbers, metres in floats,
  shown from black to white over the camera's fixed ``depth_range_m``; so is ``mono16``, which ROS's own depth
  tools read alike. Each picture is shown by the same scale, whatever is in it. What is no number or infinite
  is 0 there, as no data is.

A picture wider than ``max_width`` is scaled down by area, but depths by taking single pixels: the mean of two
depths is none that was measured.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from cognitive3d_ros.convert.outcome import Dropped, refuse
from cognitive3d_ros.convert.pictures import (
    Picture,
    PictureOptions,
    Pixels,
    as_pixels,
    bytes_of,
    check_size,
    converted,
    encoded,
    outcome,
    scaled,
    shown_depth,
)


def convert_image(message: Any, options: PictureOptions) -> Picture | Dropped:
    """Make the picture of a ``sensor_msgs/Image``. Never raises."""
    return outcome(_picture, message, options)


@dataclass(frozen=True, slots=True)
class _Image:
    """A raw image whose sizes are known to be right. All views of it are in place."""

    width: int
    height: int
    step: int
    big_endian: bool
    data: Pixels

    def bytes(self, channels: int, size: int = 1) -> Pixels:
        """Return one byte of each sample of ``size`` bytes, the high one: (height, width, channels)."""
        at = 0 if self.big_endian else size - 1
        return self._view((self.height, self.width, channels), self.step, size, at)

    def chroma(self, shared: int, times: int) -> Pixels:
        """Return the pairs of the plane behind the first one: see :class:`_Row`."""
        shape = (self.height // shared, self.width // shared, 2)
        return self._view(shape, times * self.step, 1, self.step * self.height)

    def _view(self, shape: tuple[int, int, int], row: int, size: int, at: int) -> Pixels:
        strides = (row, shape[2] * size, size)
        samples: Pixels = np.ndarray(shape, np.uint8, self.data, at, strides)
        return samples

    def numbers(self, dtype: str) -> NDArray[Any]:
        """Return a single channel, in the message's byte order: (height, width)."""
        order = '>' if self.big_endian else '<'
        strides = (self.step, int(dtype[1]))
        depths: NDArray[Any] = np.ndarray(
            (self.height, self.width), order + dtype, self.data, 0, strides
        )
        return depths


class _Row(NamedTuple):
    """How one encoding is read: ``make`` gives the picture, scaled.

    ``channels`` of ``dtype`` lie side by side in each row; ``code`` takes them to BGR in OpenCV. Width and
    height are multiples of ``even``. ``chroma`` says that a plane of pairs of colour follows: one pair for so
    many pixels in both directions, in rows so many times as long.
    """

    make: Callable[[_Image, _Row, PictureOptions], Pixels]
    channels: int = 1
    dtype: str = 'u1'
    code: int | None = None
    even: tuple[int, int] = (1, 1)
    chroma: tuple[int, int] = (0, 0)

    @property
    def size(self) -> int:
        """Bytes of a sample."""
        return int(self.dtype[1])


def _packed(image: _Image, row: _Row, options: PictureOptions) -> Pixels:
    pixels = image.bytes(row.channels, row.size)
    if row.channels <= 2:  # what a second one might be is not known
        pixels = pixels[..., 0]
    if row.channels == 2 or row.size > 1:
        pixels = np.ascontiguousarray(pixels)
    # Scaled first: there is less to convert then.
    return converted(scaled(pixels, options), row.code)


def _bayer(image: _Image, row: _Row, options: PictureOptions) -> Pixels:
    mosaic = np.ascontiguousarray(image.bytes(1, row.size)[..., 0])
    if min(mosaic.shape) > 2:
        return scaled(converted(mosaic, row.code), options)
    # OpenCV makes black of these; mirrored at its edges the pattern goes on.
    return converted(np.pad(mosaic, 2, mode='reflect'), row.code)[2:-2, 2:-2]


def _yuv422(image: _Image, row: _Row, options: PictureOptions) -> Pixels:
    return scaled(converted(image.bytes(2), row.code), options)


def _yuv420(image: _Image, row: _Row, options: PictureOptions) -> Pixels:
    luma, chroma = image.bytes(1)[..., 0], image.chroma(*row.chroma)
    assert row.code is not None
    return scaled(as_pixels(cv2.cvtColorTwoPlane(luma, chroma, row.code)), options)


def _yuv444(image: _Image, row: _Row, options: PictureOptions) -> Pixels:
    # Each pixel twice, as Y U Y V: OpenCV has no other way from this kind of YUV.
    twice = np.empty((image.height, image.width, 4), np.uint8)
    twice[..., 0::2] = image.bytes(1)
    twice[..., 1::2] = image.chroma(*row.chroma)
    pixels = converted(twice.reshape(image.height, -1, 2), row.code)[:, ::2]
    return scaled(np.ascontiguousarray(pixels), options)


def _depth(image: _Image, row: _Row, options: PictureOptions) -> Pixels:
    return shown_depth(image.numbers(row.dtype), options)


_NV12, _NV21 = cv2.COLOR_YUV2BGR_NV12, cv2.COLOR_YUV2BGR_NV21
_UYVY, _YUYV = cv2.COLOR_YUV2BGR_UYVY, cv2.COLOR_YUV2BGR_YUY2
_RGB, _RGBA, _BGRA = cv2.COLOR_RGB2BGR, cv2.COLOR_RGBA2BGR, cv2.COLOR_BGRA2BGR
# ROS names the first two pixels of the first row, then those of the second; OpenCV the second and the third
# pixel of the second row, then those of the third.
_RGGB, _BGGR = cv2.COLOR_BayerBG2BGR, cv2.COLOR_BayerRG2BGR
_GBRG, _GRBG = cv2.COLOR_BayerGR2BGR, cv2.COLOR_BayerGB2BGR

_ROWS: Final = {
    'mono8': _Row(_packed, 1),
    '8uc1': _Row(_packed, 1),
    '8uc2': _Row(_packed, 2),
    '8uc3': _Row(_packed, 3),
    '8uc4': _Row(_packed, 4, code=_BGRA),
    'bgr8': _Row(_packed, 3),
    'rgb8': _Row(_packed, 3, code=_RGB),
    'bgra8': _Row(_packed, 4, code=_BGRA),
    'rgba8': _Row(_packed, 4, code=_RGBA),
    '16uc2': _Row(_packed, 2, 'u2'),
    '16uc3': _Row(_packed, 3, 'u2'),
    '16uc4': _Row(_packed, 4, 'u2', _BGRA),
    'bgr16': _Row(_packed, 3, 'u2'),
    'rgb16': _Row(_packed, 3, 'u2', _RGB),
    'bgra16': _Row(_packed, 4, 'u2', _BGRA),
    'rgba16': _Row(_packed, 4, 'u2', _RGBA),
    'bayer_rggb8': _Row(_bayer, 1, code=_RGGB),
    'bayer_bggr8': _Row(_bayer, 1, code=_BGGR),
    'bayer_gbrg8': _Row(_bayer, 1, code=_GBRG),
    'bayer_grbg8': _Row(_bayer, 1, code=_GRBG),
    'bayer_rggb16': _Row(_bayer, 1, 'u2', _RGGB),
    'bayer_bggr16': _Row(_bayer, 1, 'u2', _BGGR),
    'bayer_gbrg16': _Row(_bayer, 1, 'u2', _GBRG),
    'bayer_grbg16': _Row(_bayer, 1, 'u2', _GRBG),
    'yuv422': _Row(_yuv422, 2, code=_UYVY, even=(2, 1)),
    'uyvy': _Row(_yuv422, 2, code=_UYVY, even=(2, 1)),
    'yuv422_yuy2': _Row(_yuv422, 2, code=_YUYV, even=(2, 1)),
    'yuyv': _Row(_yuv422, 2, code=_YUYV, even=(2, 1)),
    'nv12': _Row(_yuv420, code=_NV12, even=(2, 2), chroma=(2, 1)),
    'nv21': _Row(_yuv420, code=_NV21, even=(2, 2), chroma=(2, 1)),
    'nv24': _Row(_yuv444, code=_YUYV, chroma=(1, 2)),
    'mono16': _Row(_depth, 1, 'u2'),
    '16uc1': _Row(_depth, 1, 'u2'),
    '16sc1': _Row(_depth, 1, 'i2'),
    '32sc1': _Row(_depth, 1, 'i4'),
    '32fc1': _Row(_depth, 1, 'f4'),
    '64fc1': _Row(_depth, 1, 'f8'),
}

ENCODINGS: Final = tuple(_ROWS)
"""The encodings that a picture can be made of, in lower case."""


def _picture(message: Any, options: PictureOptions) -> Picture:
    name = options.encoding or message.encoding
    row = _ROWS.get(name.strip().lower()) if isinstance(name, str) else None
    if row is None:
        raise refuse(f'no picture can be made of the encoding {str(name)[:40]!r}')
    image = _image(message, row, name)
    pixels = row.make(image, row, options)
    return encoded(pixels, options, image.width, image.height)


def _image(message: Any, row: _Row, name: str) -> _Image:
    """Check a message's sizes against each other and its data."""
    width, height, step = map(operator.index, (message.width, message.height, message.step))
    check_size(width, height)
    data = bytes_of(message.data)
    row_bytes = width * row.channels * row.size
    if step < row_bytes:
        raise refuse(f'step is {step}: a row of {width} pixels in {name} has {row_bytes} bytes')
    if width % row.even[0] or height % row.even[1]:
        raise refuse(f'{width}x{height} cannot be: pixels share their colour in {name}')
    shared, times = row.chroma
    if shared:
        need = step * height + step * times * (height // shared - 1) + row_bytes * times
    else:
        need = step * (height - 1) + row_bytes
    # Padding behind the last row may be missing, and more may follow.
    if data.size < need:
        raise refuse(
            f'{data.size} bytes of data: {width}x{height} in {name} with a step of {step} has {need}'
        )
    # The step of a single row may be anything.
    return _Image(width, height, min(step, data.size), bool(message.is_bigendian), data)
