"""Pictures in compressed images: JPEG, PNG, WebP, and the depths of compressed_depth_image_transport."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, Final

import cv2
import numpy as np
from numpy.typing import NDArray

from cognitive3d_ros.convert import rvl
from cognitive3d_ros.convert.outcome import Dropped, refuse
from cognitive3d_ros.convert.pictures import (
    Picture,
    PictureOptions,
    as_pixels,
    bytes_of,
    check_size,
    converted,
    encoded,
    outcome,
    resized,
    scaled,
    scaled_size,
    shown_depth,
)


def convert_compressed(message: Any, options: PictureOptions) -> Picture | Dropped:
    """Make the picture of a ``sensor_msgs/CompressedImage``. Never raises.

    Its bytes say what it is; its ``format`` is only asked what bytes cannot tell. A JPEG that needs no scaling
    is stored as it came. A single channel of 16 bits is a depth in millimetres.
    """
    return outcome(_picture, message, options)


_PNG: Final = b'\x89PNG\r\n\x1a\n'
_DEPTH_HEADER: Final = struct.Struct('<iff')  # a format's number, and two parameters


def _picture(message: Any, options: PictureOptions) -> Picture:
    data = bytes_of(message.data).tobytes()
    named = message.format.lower() if isinstance(message.format, str) else ''
    if data.startswith(b'\xff\xd8\xff'):
        return _jpeg(data, options)
    if data.startswith(_PNG):
        check_size(*_png_size(data))
        return _decoded(data, options)
    if data.startswith(b'RIFF') and data[8:12] == b'WEBP':
        check_size(*_webp_size(data))
        return _decoded(data, options)
    if data.startswith(_PNG, _DEPTH_HEADER.size) or 'compresseddepth' in named:
        return _compressed_depth(data, named, options)
    raise refuse(
        f'neither JPEG nor PNG, WebP or compressedDepth: it begins with {data[:8].hex(" ")}, its format '
        f'is {named[:60]!r}'
    )


_REDUCED_GREY: Final = {
    1: cv2.IMREAD_GRAYSCALE,
    2: cv2.IMREAD_REDUCED_GRAYSCALE_2,
    4: cv2.IMREAD_REDUCED_GRAYSCALE_4,
    8: cv2.IMREAD_REDUCED_GRAYSCALE_8,
}
_REDUCED_COLOR: Final = {
    1: cv2.IMREAD_COLOR,
    2: cv2.IMREAD_REDUCED_COLOR_2,
    4: cv2.IMREAD_REDUCED_COLOR_4,
    8: cv2.IMREAD_REDUCED_COLOR_8,
}


@dataclass(frozen=True, slots=True)
class _JpegHeader:
    width: int
    height: int
    components: int
    plain: bool  # what every viewer reads: baseline or progressive, 8 bits, grey or colour


def _jpeg(data: bytes, options: PictureOptions) -> Picture:
    header = _jpeg_header(data)
    width, height = header.width, header.height
    check_size(width, height)
    stored = scaled_size(width, height, options.max_width)
    if header.plain and stored == (width, height):
        return Picture(width, height, data, width, height)
    # The decoder itself halves at next to no cost.
    factor = max(f for f in (1, 2, 4, 8) if f == 1 or -(-width // f) >= stored[0])
    flags = (_REDUCED_GREY if header.components == 1 else _REDUCED_COLOR)[factor]
    pixels = as_pixels(_imdecode(data, flags | cv2.IMREAD_IGNORE_ORIENTATION))
    return encoded(resized(pixels, stored), options, width, height)


def _jpeg_header(data: bytes) -> _JpegHeader:
    """Read the frame header of a JPEG, and look whether the picture has an end."""
    header = None
    at = 2
    try:
        while True:
            if data[at] != 0xFF:
                raise refuse(f'a JPEG with 0x{data[at]:02x} where a marker is wanted')
            while data[at] == 0xFF:
                at += 1
            marker = data[at]
            at += 1
            if marker == 0x01 or 0xD0 <= marker <= 0xD9:
                continue  # these stand alone
            (length,) = struct.unpack_from('>H', data, at)
            if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
                bits, height, width, components = struct.unpack_from('>BHHB', data, at + 2)
                plain = marker <= 0xC2 and bits == 8 and components in (1, 3)
                header = header or _JpegHeader(width, height, components, plain)
            at += max(length, 2)
            if marker == 0xDA:
                break
    except (IndexError, struct.error):
        raise refuse('a JPEG that is cut off in its header') from None
    if header is None:
        raise refuse('a JPEG without a frame header')
    if data.rfind(b'\xff\xd9', at) < 0:  # in the picture's own data it cannot occur
        raise refuse(f'a JPEG that is cut off: {len(data)} bytes have no end marker')
    return header


def _png_size(data: bytes) -> tuple[int, int]:
    """Return the size of a PNG whose chunks are all there: OpenCV makes room for whatever length one claims."""
    at, kind = len(_PNG), b''
    while kind != b'IEND':
        if len(data) < at + 12:
            raise refuse(f'a PNG that is cut off, of {len(data)} bytes')
        length, kind = struct.unpack_from('>I4s', data, at)
        at += 12 + length
    if len(data) < at or data[12:16] != b'IHDR':
        raise refuse(f'a PNG of which a part is missing, of {len(data)} bytes')
    width, height = struct.unpack_from('>II', data, 16)
    return width, height


def _webp_size(data: bytes) -> tuple[int, int]:
    if len(data) < 30 or len(data) < 8 + int.from_bytes(data[4:8], 'little'):
        raise refuse(f'a WebP that is cut off, of {len(data)} bytes')
    kind = data[12:16]
    if kind == b'VP8X':
        return (
            1 + int.from_bytes(data[24:27], 'little'),
            1 + int.from_bytes(data[27:30], 'little'),
        )
    if kind == b'VP8L':
        bits = int.from_bytes(data[21:25], 'little')
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    width, height = struct.unpack_from('<HH', data, 26)
    return width & 0x3FFF, height & 0x3FFF


def _imdecode(data: bytes, flags: int) -> NDArray[Any]:
    pixels: NDArray[Any] | None = cv2.imdecode(np.frombuffer(data, np.uint8), flags)
    if pixels is None:
        raise refuse(f'{len(data)} bytes that OpenCV cannot decode')
    return pixels


def _decoded(data: bytes, options: PictureOptions) -> Picture:
    """Decode a PNG or a WebP."""
    pixels = _imdecode(data, cv2.IMREAD_UNCHANGED)
    height, width = pixels.shape[:2]
    if pixels.ndim == 2 and pixels.dtype != np.uint8:
        shown = shown_depth(pixels, options)
    else:
        if pixels.dtype == np.uint16:
            pixels = (pixels >> 8).astype(np.uint8)
        alpha = pixels.ndim == 3 and pixels.shape[2] == 4
        shown = converted(scaled(pixels, options), cv2.COLOR_BGRA2BGR if alpha else None)
    return encoded(shown, options, width, height)


def _compressed_depth(data: bytes, named: str, options: PictureOptions) -> Picture:
    """Decode what compressed_depth_image_transport makes: a header, then a PNG or RVL of 16 bits.

    Depths that were floats are stored as their quantised inverse, with the two parameters of the header;
    others as they were. Only ``format`` tells which.
    """
    if len(data) < _DEPTH_HEADER.size + rvl.SIZES.size:
        raise refuse(f'compressedDepth that is cut off, of {len(data)} bytes')
    _, scale, offset = _DEPTH_HEADER.unpack_from(data)
    body = data[_DEPTH_HEADER.size :]
    if body.startswith(_PNG):
        check_size(*_png_size(body))
        values: NDArray[Any] = _imdecode(body, cv2.IMREAD_UNCHANGED)
    elif 'rvl' in named:
        check_size(*rvl.SIZES.unpack_from(body))
        values = rvl.read(body)
    else:
        raise refuse(f'compressedDepth of neither PNG nor RVL: it begins with {body[:8].hex(" ")}')
    if values.ndim != 2 or values.dtype != np.uint16:
        raise refuse(f'compressedDepth of {values.dtype} in the shape {values.shape}')
    height, width = values.shape
    if '32fc1' in named.partition(';')[0]:
        if not 0 < scale < np.inf or not np.isfinite(offset):
            raise refuse(f'compressedDepth with the parameters {scale:g} and {offset:g}')
        with np.errstate(divide='ignore', over='ignore'):
            metres = np.float32(scale) / (values.astype(np.float32) - np.float32(offset))
        values = np.where(values == 0, np.float32(0), metres)
    return encoded(shown_depth(values, options), options, width, height)
