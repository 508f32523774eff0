"""Pictures of compressed images, by files that another library wrote and by codecs written out here."""

import ctypes
import os
import random
import struct
from pathlib import Path
from types import SimpleNamespace

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from picture_files import DEPTHS_MM, FILES, PATCHES
from test_images import (
    BEST,
    GREYS,
    JPEG_ERROR,
    YUV_ERROR,
    color,  # noqa: F401
    decoded,
    depth,  # noqa: F401
    psnr,
    same,
    seen,
)

from cognitive3d_ros.convert.compressed import convert_compressed
from cognitive3d_ros.convert.outcome import MAX_RECORD_BYTES, Dropped
from cognitive3d_ros.convert.pictures import Picture, PictureOptions
from cognitive3d_ros.counters import Drop


def compressed(data, name=''):
    return SimpleNamespace(format=name, data=data)


def convert(data, name='', options=BEST):
    return convert_compressed(compressed(data, name), options)


# Names that drivers give, right or wrong.
FORMATS = (
    *('jpeg', 'jpg', 'JPEG', 'png', '', 'rgb8; jpeg compressed bgr8', 'bgr8; png compressed bgr8'),
    *('16UC1; png compressed ', '16UC1; compressedDepth', 'webp', 'h264', 'rgb8; jpeg compressed'),
)


@pytest.mark.parametrize('name', FORMATS)
@pytest.mark.parametrize(
    ('file', 'wanted'),
    [
        ('JPEG', PATCHES),
        ('JPEG_PROGRESSIVE', PATCHES),
        ('JPEG_TURNED', PATCHES),
        ('JPEG_CMYK', PATCHES),
        ('JPEG_GREY', [(g, g, g) for g in GREYS]),
        ('PNG', PATCHES),
        ('PNG_ALPHA', PATCHES),
        ('PNG_PALETTE', PATCHES),
        ('PNG_LA', [(g, g, g) for g in GREYS]),
        ('WEBP', PATCHES),
        ('WEBP_LOSSLESS', PATCHES),
        ('WEBP_ALPHA', PATCHES),
    ],
)
def test_bytes_say_what_a_picture_is(file, wanted, name):
    picture = convert(FILES[file], name)
    pixels = decoded(picture, cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION)
    assert (picture.width, picture.height) == (48, 32)
    assert (picture.published_width, picture.published_height) == (48, 32)
    assert same(seen(pixels), wanted, YUV_ERROR)


@pytest.mark.parametrize('file', ['JPEG', 'JPEG_PROGRESSIVE', 'JPEG_GREY', 'JPEG_TURNED'])
@pytest.mark.parametrize('tail', [b'', b'\0' * 100])
def test_a_jpeg_goes_in_untouched(file, tail):
    """Whatever quality is asked for; also with what some drivers leave behind it."""
    sent = FILES[file] + tail
    assert convert(sent, options=PictureOptions(jpeg_quality=1, max_width=48)).data == sent


def test_a_jpeg_that_not_every_viewer_reads_is_written_anew():
    picture = convert(FILES['JPEG_CMYK'])
    assert picture.data != FILES['JPEG_CMYK']
    assert same(seen(decoded(picture)), PATCHES, YUV_ERROR)


@pytest.mark.rule(74)
@pytest.mark.parametrize('file', ['JPEG', 'JPEG_TURNED', 'JPEG_GREY', 'PNG', 'WEBP'])
@pytest.mark.parametrize(('width', 'size'), [(47, (47, 31)), (24, (24, 16)), (16, (16, 11))])
def test_scaled(file, width, size):
    picture = convert(FILES[file], options=PictureOptions(100, width))
    assert (picture.width, picture.height) == size
    assert (picture.published_width, picture.published_height) == (48, 32)
    wanted = [(g, g, g) for g in GREYS] if file == 'JPEG_GREY' else PATCHES
    assert same(seen(decoded(picture)), wanted, 2 * YUV_ERROR)


# Depths

DEPTHS = np.array(DEPTHS_MM, np.uint16).repeat(8, 0).repeat(8, 1)
SHOWN = np.clip(np.rint(DEPTHS * 0.0255), 0, 255)  # 0 to 10 m


def grey(picture):
    return decoded(picture, cv2.IMREAD_UNCHANGED)


@pytest.mark.parametrize('name', ['', 'png', '16UC1; png compressed '])
def test_a_png_of_16_bits_is_a_depth(name):
    assert same(grey(convert(FILES['PNG_DEPTH'], name)), SHOWN, JPEG_ERROR)


def header(a=0.0, b=0.0):
    return struct.pack('<iff', 0, a, b)


@pytest.mark.parametrize(
    'name', ['16UC1; compressedDepth', '16UC1; compressedDepth png', 'compressedDepth', '', 'png']
)
@pytest.mark.parametrize('parameters', [(0.0, 0.0), (1e30, float('nan'))])
def test_compressed_depth_of_millimetres(name, parameters):
    """The parameters of its header are left as they were in memory then: anything."""
    sent = header(*parameters) + FILES['PNG_DEPTH']
    assert same(grey(convert(sent, name)), SHOWN, JPEG_ERROR)


def png(values):
    return cv2.imencode('.png', values)[1].tobytes()


def test_compressed_depth_of_metres():
    """Floats go in as their inverse: with a quantisation of 100 and depths up to 10 m."""
    a = 100.0 * 101.0
    b = 1.0 - a / 10.0
    metres = np.array([[0.5, 1.0, 2.0, 9.0]]).repeat(8, 0).repeat(8, 1)
    inverse = np.rint(a / metres + b).astype(np.uint16)
    inverse[:4] = 0  # no data
    shown = grey(convert(header(a, b) + png(inverse), '32FC1; compressedDepth png'))
    wanted = np.rint(metres * 25.5)
    wanted[:4] = 0
    assert same(shown[[1, 6]][:, 4::8], wanted[[1, 6]][:, 4::8], 3)
    assert isinstance(convert(header() + png(inverse), '32FC1; compressedDepth png'), Dropped)


def rvl(values):
    """Write RVL by its definition, nibble by nibble."""
    nibbles = []

    def number(value):
        while True:
            nibbles.append(value & 7 | (8 if value > 7 else 0))
            value >>= 3
            if not value:
                break

    pixels = [int(v) for v in values.ravel()]
    at = previous = 0
    while at < len(pixels):
        start = at
        while at < len(pixels) and pixels[at] == 0:
            at += 1
        number(at - start)
        start = at
        while at < len(pixels) and pixels[at] != 0:
            at += 1
        number(at - start)
        for value in pixels[start:at]:
            difference = value - previous
            number(2 * difference if difference >= 0 else -2 * difference - 1)
            previous = value
    nibbles += [0] * (-len(nibbles) % 8)
    words = [
        int(''.join(f'{n:x}' for n in nibbles[i : i + 8]), 16) for i in range(0, len(nibbles), 8)
    ]
    height, width = values.shape
    return struct.pack(f'<II{len(words)}I', width, height, *words)


RVL = '16UC1; compressedDepth rvl'


@given(
    st.integers(1, 9),
    st.lists(st.one_of(st.just(0), st.integers(0, 65535), st.integers(999, 1001)), min_size=1),
)
def test_rvl(width, values):
    values = (values * width)[: len(values) // width * width or width]
    depths = np.array(values, np.uint16).reshape(-1, width)
    options = PictureOptions(jpeg_quality=100, depth_range_m=(0.0, 65.535))
    picture = convert(header() + rvl(depths), RVL, options)
    wanted = convert(png(depths), '', options)
    assert picture.data == wanted.data


def test_a_long_run_of_rvl():
    assert same(grey(convert(header() + rvl(np.zeros((800, 1000), np.uint16)), RVL)), 0, 0)


def test_a_real_depth_by_rvl_and_png(depth):  # noqa: F811
    near = PictureOptions(depth_range_m=(0.0, 3.0))
    by_rvl = convert(header() + rvl(depth), RVL, near)
    by_png = convert(header() + png(depth), '16UC1; compressedDepth png', near)
    assert by_rvl.data == by_png.data
    assert psnr(grey(by_png), np.rint(depth / 3000 * 255)) > 44.0


@pytest.mark.parametrize(('suffix', 'decibels'), [('.png', 37.9), ('.jpg', 41.0), ('.webp', 37.0)])
def test_a_real_picture(color, suffix, decibels):  # noqa: F811
    sent = cv2.imencode(suffix, color)[1].tobytes()
    assert psnr(decoded(convert(sent, options=PictureOptions())), color) > decibels


# What is none


def jpeg(**changes):
    """Return the JPEG with its frame header changed."""
    data = bytearray(FILES['JPEG'])
    at = data.index(b'\xff\xc0')
    for offset, raw in changes.items():
        begin = at + int(offset[1:])
        data[begin : begin + len(raw)] = raw
    return bytes(data)


@pytest.mark.parametrize(
    ('data', 'name', 'says'),
    [
        (b'', 'jpeg', 'a picture without data'),
        (
            b'garbage',
            'jpeg',
            'neither JPEG nor PNG, WebP or compressedDepth: it begins with 67 61 72',
        ),
        (b'\xff\xd8\xff', 'jpeg', 'a JPEG that is cut off in its header'),
        (FILES['JPEG'][:-2], 'jpeg', 'a JPEG that is cut off: 711 bytes have no end marker'),
        (FILES['JPEG'][:300], 'jpeg', 'a JPEG that is cut off'),
        (FILES['JPEG'][:2] + FILES['JPEG'][-2:], 'jpeg', 'a JPEG that is cut off in its header'),
        (b'\xff\xd8\xff\xd9' + bytes(9), 'jpeg', 'a JPEG with 0x00 where a marker is wanted'),
        (b'\xff\xd8\xff\xda\0\2\xff\xd9', 'jpeg', 'a JPEG without a frame header'),
        (jpeg(_5=b'\0\0'), 'jpeg', '48x0: there are no pixels'),
        (FILES['PNG'][:-12], 'png', 'a PNG that is cut off'),
        (FILES['PNG'][:20], 'png', 'a PNG that is cut off'),
        # A chunk of 4 GB, for which OpenCV would make room.
        (FILES['PNG'][:33] + b'\xff' * 4 + FILES['PNG'][37:], 'png', 'a PNG that is cut off'),
        (FILES['PNG'][:-12] + b'\0\0\0\1IEND', 'png', 'a PNG that is cut off'),
        (FILES['PNG'][:-12] + b'\0\0\0\1IEND' + bytes(4), 'png', 'of which a part is missing'),
        (FILES['PNG'][:60] + bytes(10) + FILES['PNG'][70:], 'png', 'cannot decode'),
        (FILES['WEBP'][:-4], 'webp', 'a WebP that is cut off'),
        (FILES['WEBP'][:23] + bytes(3) + FILES['WEBP'][26:], 'webp', 'cannot decode'),
        (header(), '16UC1; compressedDepth', 'compressedDepth that is cut off, of 12 bytes'),
        (header() + bytes(20), '16UC1; compressedDepth', 'of neither PNG nor RVL'),
        (header() + FILES['PNG'], '16UC1; compressedDepth', 'compressedDepth of uint8'),
        (header() + struct.pack('<II', 9, 9), RVL, 'RVL that is cut off: 8 bytes for 9x9 pixels'),
        (header() + rvl(DEPTHS)[:-4], RVL, 'RVL that is cut off'),
        (header() + struct.pack('<II', 31, 16) + rvl(DEPTHS)[8:], RVL, 'RVL with more than'),
        (header() + struct.pack('<III', 9, 9, 0xFFFFFFFF), RVL, 'RVL that is cut off'),
        (
            header() + struct.pack('<IIII', 9, 9, 0xFFFFFFFF, 0xFF000000),
            RVL,
            'a number of 33 bits',
        ),
        (header() + struct.pack('<II', 0, 9), RVL, '0x9: there are no pixels'),
        (None, 'jpeg', 'a picture that cannot be read: TypeError'),
    ],
)
def test_what_no_picture_can_be_made_of(data, name, says):
    outcome = convert(data, name)
    assert isinstance(outcome, Dropped)
    assert outcome.reason is Drop.BAD_MESSAGE
    assert says in outcome.text


@pytest.mark.parametrize(
    'data',
    [
        jpeg(_5=b'\xff\xff'),
        jpeg(_5=b'\xff\0\xff\0'),
        FILES['PNG'][:16] + struct.pack('>II', 50_000, 50_000) + FILES['PNG'][24:],
        header() + FILES['PNG'][:16] + struct.pack('>II', 50_000, 50_000) + FILES['PNG'][24:],
        FILES['WEBP'][:26] + struct.pack('<HH', 0x3FFF, 0x3FFF) + FILES['WEBP'][30:],
        FILES['WEBP_LOSSLESS'][:21] + b'\xff' * 4 + FILES['WEBP_LOSSLESS'][25:],
        bytes(MAX_RECORD_BYTES + 1),
        FILES['JPEG'] + bytes(MAX_RECORD_BYTES),
    ],
)
def test_too_large(data):
    """What a file claims is looked at before it is decoded."""
    outcome = convert(data)
    assert isinstance(outcome, Dropped)
    assert outcome.reason is Drop.TOO_LARGE


def test_rvl_that_claims_to_be_large():
    outcome = convert(header() + struct.pack('<II', 50_000, 50_000), RVL)
    assert outcome.reason is Drop.TOO_LARGE


MANY = int(os.environ.get('C3D_FUZZ', '1500'))


def memory_mib(what):
    """Return what the kernel says of this process: VmRSS, what is in use, or VmHWM, its peak."""
    ctypes.CDLL(None).malloc_trim(0)  # what is only kept for the next allocation is not in use
    status = Path('/proc/self/status').read_text()
    return int(status.partition(f'{what}:')[2].split()[0]) // 1024


def memory_mib_from_now():
    """Have the peak counted anew, and return what is in use."""
    Path('/proc/self/clear_refs').write_text('5')
    return memory_mib('VmRSS')


def test_damaged_files_raise_nothing(capfd):
    """Files with bytes changed, cut out and put in; C3D_FUZZ says how many."""
    rng = random.Random(4)
    files = [*FILES.values(), header() + FILES['PNG_DEPTH'], header(1.0, 2.0) + rvl(DEPTHS)]
    outcomes = {Picture: 0, Dropped: 0}
    before_mib = memory_mib_from_now()
    for _ in range(MANY):
        data = bytearray(rng.choice(files))
        for _ in range(rng.choice([1, 1, 2, 5])):
            at = rng.randrange(len(data) or 1)
            kind = rng.randrange(4)
            if kind == 0:
                data[at : at + 1] = bytes([rng.randrange(256)])
            elif kind == 1:
                data[at : at + 4] = rng.choice([b'\0\0\0\0', b'\xff\xff\xff\xff', b'\0\1', b''])
            elif kind == 2:
                del data[at:]
                data += b'\0'
            else:
                data[at:at] = bytes(rng.randrange(256) for _ in range(5))
        options = PictureOptions(max_width=rng.choice([16, 40, 1280]))
        name = rng.choice([*FORMATS, RVL, '32FC1; compressedDepth rvl', None])
        outcomes[type(convert(bytes(data), name, options))] += 1
    capfd.readouterr()  # what the decoders themselves say of it
    assert min(outcomes.values()) > MANY // 20
    assert memory_mib('VmRSS') < before_mib + 50
    # The largest picture that is decoded takes a quarter of this.
    assert memory_mib('VmHWM') < before_mib + 1000
