"""Pictures of raw images: each encoding by a message worked out by hand, and a real picture in many of them."""

import os
import random
from array import array
from types import SimpleNamespace

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from picture_files import PATCHES

from cognitive3d_ros.convert.images import ENCODINGS, convert_image
from cognitive3d_ros.convert.outcome import MAX_RECORD_BYTES, Dropped
from cognitive3d_ros.convert.pictures import MAX_PIXELS, MAX_SIDE, Picture, PictureOptions
from cognitive3d_ros.counters import Drop

BEST = PictureOptions(jpeg_quality=100)
SIDE = 32  # of a picture of the four patches
GREYS = tuple(round(0.299 * r + 0.587 * g + 0.114 * b) for r, g, b in PATCHES)
JPEG_ERROR = 2  # of a colour, at the best quality
YUV_ERROR = 4


# Messages, by hand


def patches(colours=PATCHES):
    """Return four patches as a picture, (side, side) or (side, side, channels)."""
    two_by_two = np.array(colours, np.uint8).reshape(2, 2, *np.shape(colours)[1:])
    return two_by_two.repeat(SIDE // 2, 0).repeat(SIDE // 2, 1)


def image(encoding, width, height, *planes, big_endian=False, pad=0, tail=b''):
    """Return an image of planes of bytes, (rows, bytes); rows are padded, those twice as long twice so."""
    data, step = b'', 0
    for plane in planes:
        rows = np.ascontiguousarray(plane).view(np.uint8).reshape(len(plane), -1)
        step = step or rows.shape[1]
        times = rows.shape[1] // step
        data += b''.join(row.tobytes() + b'\xa5' * pad * times for row in rows)
    return SimpleNamespace(
        width=width,
        height=height,
        encoding=encoding,
        is_bigendian=int(big_endian),
        step=step + pad,
        data=data + tail,
    )


def of_pixels(encoding, pixels, **more):
    height, width = pixels.shape[:2]
    return image(encoding, width, height, pixels, **more)


def wide(samples, big_endian):
    """Return samples of 8 bits as the high bytes of 16 bits, with noise below."""
    low = np.random.default_rng(1).integers(0, 256, samples.shape, np.uint16)
    return ((samples.astype(np.uint16) << 8) | low).astype('>u2' if big_endian else '<u2')


def mosaic(rgb, order):
    """Return a Bayer mosaic: ``order`` names the first two pixels of the first row, then of the second."""
    raw = np.zeros(rgb.shape[:2], np.uint8)
    for place, colour in enumerate(order):
        i, j = divmod(place, 2)
        raw[i::2, j::2] = rgb[i::2, j::2, 'rgb'.index(colour)]
    return raw


def yuv(rgb, shared):
    """Return Y, U and V by BT.601 of limited range, with one pair of colours for so many columns."""
    r, g, b = np.moveaxis(rgb / 255.0, -1, 0)
    y = 16 + 65.481 * r + 128.553 * g + 24.966 * b
    u = 128 - 37.797 * r - 74.203 * g + 112.0 * b
    v = 128 + 112.0 * r - 93.786 * g - 18.214 * b
    u, v = (c.reshape(len(rgb), -1, shared).mean(axis=2) for c in (u, v))
    return [np.rint(c).astype(np.uint8) for c in (y, u, v)]


def interleave(*planes):
    return np.stack(planes, axis=-1).reshape(len(planes[0]), -1)


def made_of(encoding, rgb, *, big_endian=False, **more):
    """Return an image in an encoding that has colours."""
    height, width = rgb.shape[:2]
    kind = encoding.lower()
    if kind.startswith('bayer'):
        raw = mosaic(rgb, kind[6:10])
    elif kind in ('yuv422', 'uyvy'):
        y, u, v = yuv(rgb, 2)
        raw = interleave(u, y[:, ::2], v, y[:, 1::2])
    elif kind in ('yuv422_yuy2', 'yuyv'):
        y, u, v = yuv(rgb, 2)
        raw = interleave(y[:, ::2], u, y[:, 1::2], v)
    elif kind.startswith('nv'):
        shared = 1 if kind == 'nv24' else 2
        y, u, v = yuv(rgb, shared)
        u, v = u[::shared], v[::shared]
        pairs = interleave(v, u) if kind == 'nv21' else interleave(u, v)
        return image(encoding, width, height, y, pairs, **more)
    else:
        raw = rgb if kind.startswith('rgb') else rgb[..., ::-1]
        if 'a' in kind or 'c4' in kind:
            unseen = np.indices((height, width)).sum(axis=0) % 256
            raw = np.dstack([raw, unseen.astype(np.uint8)])
    if '16' in kind:
        raw = wide(raw, big_endian)
    return image(encoding, width, height, raw, big_endian=big_endian, **more)


# What was stored


def decoded(picture, flags=cv2.IMREAD_COLOR):
    assert isinstance(picture, Picture), picture
    pixels = cv2.imdecode(np.frombuffer(picture.data, np.uint8), flags)
    assert pixels.shape[1::-1] == (picture.width, picture.height)
    return pixels


def seen(pixels):
    """Return the middle of each patch, colours in RGB."""
    h, w = pixels.shape[:2]
    middles = [pixels[h // 4 + i * h // 2, w // 4 + j * w // 2] for i in (0, 1) for j in (0, 1)]
    return [m[::-1].tolist() if pixels.ndim == 3 else int(m) for m in middles]


def same(found, wanted, error):
    return np.abs(np.array(found, int) - np.array(wanted, int)).max() <= error


# Encodings

COLOURS = (
    *('rgb8', 'rgba8', 'rgb16', 'rgba16', 'bgr8', 'bgra8', 'bgr16', 'bgra16'),
    *('8UC3', '8UC4', '16UC3', '16UC4'),
    *('bayer_rggb8', 'bayer_bggr8', 'bayer_gbrg8', 'bayer_grbg8'),
    *('bayer_rggb16', 'bayer_bggr16', 'bayer_gbrg16', 'bayer_grbg16'),
    *('yuv422', 'uyvy', 'yuv422_yuy2', 'yuyv', 'nv12', 'nv21', 'nv24'),
)
GREY = ('mono8', '8UC1', '8UC2', '16UC2')
DEPTH = ('mono16', '16UC1', '16SC1', '32SC1', '32FC1', '64FC1')


def test_every_encoding_is_tested_here():
    assert sorted(ENCODINGS) == sorted(name.lower() for name in (*COLOURS, *GREY, *DEPTH))


@pytest.mark.parametrize(
    'layout', [{}, {'pad': 6}, {'pad': 7, 'tail': b'more'}, {'big_endian': True}]
)
@pytest.mark.parametrize('encoding', COLOURS)
def test_colours(encoding, layout):
    picture = convert_image(made_of(encoding, patches(), **layout), BEST)
    error = YUV_ERROR if encoding[:2] in ('yu', 'uy', 'nv') else JPEG_ERROR
    assert same(seen(decoded(picture)), PATCHES, error)
    assert (picture.published_width, picture.published_height) == (SIDE, SIDE)


@pytest.mark.parametrize('layout', [{}, {'pad': 5, 'tail': b'more'}, {'big_endian': True}])
@pytest.mark.parametrize('encoding', GREY)
def test_greys(encoding, layout):
    """They are stored in grey; of two channels the first is shown."""
    pixels = patches(GREYS)
    if encoding.endswith('2'):
        pixels = np.dstack([pixels, 255 - pixels])
    if encoding.startswith('16'):
        pixels = wide(pixels, layout.get('big_endian', False))
    picture = convert_image(of_pixels(encoding, pixels, **layout), BEST)
    shown = decoded(picture, cv2.IMREAD_UNCHANGED)
    assert shown.ndim == 2
    assert same(seen(shown), GREYS, JPEG_ERROR)


@pytest.mark.parametrize('encoding', COLOURS)
def test_red_is_red(encoding):
    """A picture of one colour, also one as small as an encoding can be."""
    for colour, channel in (((255, 0, 0), 2), ((0, 255, 0), 1), ((0, 0, 255), 0)):
        for size in ((4, 4), (2, 2)):
            rgb = np.full((*size, 3), colour, np.uint8)
            shown = decoded(convert_image(made_of(encoding, rgb), BEST))
            others = [c for c in (0, 1, 2) if c != channel]
            assert (shown[..., channel] > 240).all()
            assert (shown[..., others] < 15).all()


@pytest.mark.parametrize('order', ['<', '>'])
@pytest.mark.parametrize(
    ('encoding', 'dtype', 'unit'),
    [
        ('mono16', 'u2', 1),
        ('16UC1', 'u2', 1),
        ('16SC1', 'i2', 1),
        ('32SC1', 'i4', 1),
        ('32FC1', 'f4', 0.001),
        ('64FC1', 'f8', 0.001),
    ],
)
def test_depths(encoding, dtype, unit, order):
    """0 to 10 m are black to white; millimetres in whole numbers, metres in floats (REP 118)."""
    mm = np.array([[0, 2000], [5000, 12_000]])
    depths = (mm * unit).astype(order + dtype).repeat(SIDE // 2, 0).repeat(SIDE // 2, 1)
    sent = of_pixels(encoding, depths, big_endian=order == '>', pad=3)
    shown = decoded(convert_image(sent, BEST), cv2.IMREAD_UNCHANGED)
    assert same(seen(shown), [0, 51, 128, 255], JPEG_ERROR)
    near = PictureOptions(jpeg_quality=100, depth_range_m=(1.0, 3.0))
    shown = decoded(convert_image(sent, near), cv2.IMREAD_UNCHANGED)
    assert same(seen(shown), [0, 128, 255, 255], JPEG_ERROR)


@pytest.mark.parametrize('bad', [np.nan, np.inf, -np.inf, -1.0, 1e300])
def test_depths_that_are_none(bad):
    depths = np.full((16, 16), 1.0)
    depths[:8] = bad
    for encoding, dtype in (('32FC1', '<f4'), ('64FC1', '<f8')):
        with np.errstate(over='ignore'):
            sent = of_pixels(encoding, depths.astype(dtype))
        shown = decoded(convert_image(sent, BEST), cv2.IMREAD_UNCHANGED)
        assert (shown[:8] <= 2).all()
        assert (abs(shown[8:].astype(int) - 26) <= 2).all()


def test_the_same_depth_is_the_same_grey_in_every_picture():
    for other in (0, 1500, 9000):
        depths = np.full((16, 16), 5000, '<u2')
        depths[:8] = other
        shown = decoded(convert_image(of_pixels('16UC1', depths), BEST), cv2.IMREAD_UNCHANGED)
        assert abs(int(shown[12, 8]) - 128) <= 2


def test_the_encoding_can_be_set_right():
    """A driver that sends YUYV and says UYVY."""
    sent = made_of('yuyv', patches())
    sent.encoding = 'yuv422'
    assert not same(seen(decoded(convert_image(sent, BEST))), PATCHES, 40)
    put_right = PictureOptions(jpeg_quality=100, encoding='yuv422_yuy2')
    assert same(seen(decoded(convert_image(sent, put_right))), PATCHES, YUV_ERROR)


@pytest.mark.parametrize('name', [' RGB8', 'Rgb8\n', 'rgb8'])
def test_names_are_taken_as_they_are_meant(name):
    sent = made_of('rgb8', patches())
    sent.encoding = name
    assert same(seen(decoded(convert_image(sent, BEST))), PATCHES, JPEG_ERROR)


@pytest.mark.parametrize(
    'kind',
    [bytes, bytearray, memoryview, lambda d: array('B', d), lambda d: np.frombuffer(d, np.uint8)],
)
def test_data_of_any_kind(kind):
    sent = made_of('rgb8', patches())
    sent.data = kind(sent.data)
    assert same(seen(decoded(convert_image(sent, BEST))), PATCHES, JPEG_ERROR)


# Sizes


@pytest.mark.rule(74)
@pytest.mark.parametrize('encoding', ['rgb8', 'bgra16', 'mono8', 'nv12', 'yuyv', 'bayer_grbg8'])
def test_scaled_to_the_width(encoding):
    rgb = cv2.resize(patches(), (320, 180), interpolation=cv2.INTER_NEAREST)
    grey = encoding == 'mono8'
    sent = of_pixels(encoding, rgb[..., 1]) if grey else made_of(encoding, rgb)
    picture = convert_image(sent, PictureOptions(jpeg_quality=100, max_width=100))
    assert (picture.width, picture.height) == (100, 56)
    assert (picture.published_width, picture.published_height) == (320, 180)
    wanted = [[c[1]] * 3 for c in PATCHES] if grey else PATCHES
    assert same(seen(decoded(picture)), wanted, YUV_ERROR)


def test_a_scaled_depth_is_one_that_was_measured():
    """Halves of 1 m and 9 m: nothing lies between them."""
    depths = np.full((64, 99), 1000, '<u2')
    depths[:, 50:] = 9000
    sent = of_pixels('16UC1', depths)
    shown = decoded(convert_image(sent, PictureOptions(100, 32)), cv2.IMREAD_UNCHANGED)
    assert shown.shape == (21, 32)
    assert (np.minimum(abs(shown.astype(int) - 26), abs(shown.astype(int) - 230)) < 12).all()


def test_a_narrow_picture_is_not_scaled_to_nothing():
    picture = convert_image(
        of_pixels('mono8', np.zeros((1, 3000), np.uint8)), PictureOptions(80, 16)
    )
    assert (picture.width, picture.height) == (16, 1)


def test_a_missing_last_padding_is_none_missing():
    sent = made_of('rgb8', patches(), pad=8)
    sent.data = sent.data[:-8]
    assert same(seen(decoded(convert_image(sent, BEST))), PATCHES, JPEG_ERROR)


def without(sent, n=1):
    sent.data = sent.data[:-n]
    return sent


def with_fields(sent, **fields):
    sent.__dict__.update(fields)
    return sent


def rgb(**fields):
    return with_fields(made_of('rgb8', patches()), **fields)


@pytest.mark.parametrize(
    ('sent', 'says'),
    [
        (without(rgb()), '3071 bytes of data: 32x32 in rgb8 with a step of 96 has 3072'),
        (without(made_of('nv12', patches())), '1535 bytes of data: 32x32 in nv12'),
        (without(made_of('nv24', patches(), pad=4), 9), 'bytes of data: 32x32 in nv24'),
        (
            with_fields(of_pixels('16UC1', np.zeros((4, 5), '<u2')), step=5),
            'step is 5: a row of 5 pixels in 16UC1 has 10',
        ),
        (rgb(step=95), 'step is 95: a row of 32 pixels in rgb8 has 96'),
        (rgb(step=0), 'step is 0'),
        (rgb(width=0), '0x32: there are no pixels'),
        (rgb(height=0), '32x0: there are no pixels'),
        (rgb(width=-1), 'there are no pixels'),
        (rgb(data=b''), 'a picture without data'),
        (rgb(encoding=''), "no picture can be made of the encoding ''"),
        (rgb(encoding='32FC3'), "the encoding '32FC3'"),
        (rgb(encoding=None), "the encoding 'None'"),
        (rgb(encoding='x' * 10_000), "the encoding 'xxxx"),
        (rgb(data=None), 'a picture that cannot be read: TypeError'),
        (rgb(data='text'), 'a picture that cannot be read: TypeError'),
        (rgb(width=3.5), 'a picture that cannot be read: TypeError'),
        (rgb(step='96'), 'a picture that cannot be read: TypeError'),
        (SimpleNamespace(), 'a picture that cannot be read: AttributeError'),
        (of_pixels('uyvy', np.zeros((2, 3, 2), np.uint8)), '3x2 cannot be: pixels share their'),
        (of_pixels('nv12', np.zeros((3, 4), np.uint8)), '4x3 cannot be'),
    ],
)
def test_what_no_picture_can_be_made_of(sent, says):
    outcome = convert_image(sent, BEST)
    assert isinstance(outcome, Dropped)
    assert outcome.reason is Drop.BAD_MESSAGE
    assert says in outcome.text
    assert len(outcome.text) < 300


@pytest.mark.parametrize(
    'sent',
    [
        rgb(width=MAX_SIDE + 1, height=1),
        rgb(width=1, height=MAX_SIDE + 1),
        rgb(width=2**31, height=2**31),
        rgb(width=2**200, height=2**200, step=2**300),
        rgb(width=MAX_PIXELS // 1000 + 1, height=1000),
        rgb(data=bytes(MAX_RECORD_BYTES + 1)),
    ],
)
def test_too_large(sent):
    outcome = convert_image(sent, BEST)
    assert isinstance(outcome, Dropped)
    assert outcome.reason is Drop.TOO_LARGE


def test_a_step_beyond_all_bounds_of_a_single_row():
    sent = of_pixels('mono8', np.full((1, 16), 7, np.uint8))
    sent.step = 2**300
    assert abs(decoded(convert_image(sent, BEST)).astype(int) - 7).max() <= 1


# A real picture


def psnr(a, b):
    return 10 * np.log10(255**2 / np.mean((a.astype(float) - b.astype(float)) ** 2))


@pytest.fixture(scope='session')
def color(shared_data):
    return cv2.imread(str(shared_data / 'rgbd_color.png'))


@pytest.fixture(scope='session')
def depth(shared_data):
    return cv2.imread(str(shared_data / 'rgbd_depth_mm.png'), cv2.IMREAD_UNCHANGED)


@pytest.mark.parametrize(
    ('encoding', 'decibels'),
    [
        ('bgr8', 37.9),
        ('rgb8', 37.9),
        ('bgra8', 37.9),
        ('rgb16', 37.9),
        ('yuyv', 37.5),
        ('uyvy', 37.5),
        ('nv12', 37.5),
        ('nv21', 37.5),
        ('nv24', 37.5),
        ('bayer_rggb8', 32.5),
        ('bayer_bggr8', 32.5),
        ('bayer_gbrg8', 32.5),
        ('bayer_grbg16', 32.5),
    ],
)
def test_a_real_picture(color, encoding, decibels):
    """At the default quality. What is below 37.9 dB went with the colours that the encoding leaves out."""
    sent = made_of(encoding, color[..., ::-1], pad=0)
    assert psnr(decoded(convert_image(sent, PictureOptions())), color) > decibels


@pytest.mark.parametrize('width', [639, 427, 320, 300, 214, 101])
def test_a_real_picture_scaled(color, width):
    """As near to the mean over what each pixel covers as a viewer could tell."""
    sent = made_of('bgr8', color[..., ::-1])
    stored = decoded(convert_image(sent, PictureOptions(100, width)))
    assert stored.shape[1] == width
    by_area = cv2.resize(color, stored.shape[1::-1], interpolation=cv2.INTER_AREA)
    assert psnr(stored, by_area) > 29.0


def test_a_real_picture_in_grey(color):
    grey = cv2.cvtColor(color, cv2.COLOR_BGR2GRAY)
    stored = decoded(
        convert_image(of_pixels('mono8', grey), PictureOptions()), cv2.IMREAD_UNCHANGED
    )
    assert psnr(stored, grey) > 40.0


@pytest.mark.parametrize(
    ('encoding', 'dtype', 'unit'), [('16UC1', '<u2', 1), ('32FC1', '<f4', 0.001)]
)
def test_a_real_depth(depth, encoding, dtype, unit):
    near = PictureOptions(depth_range_m=(0.0, 3.0))
    sent = of_pixels(encoding, (depth * unit).astype(dtype))
    stored = decoded(convert_image(sent, near), cv2.IMREAD_UNCHANGED)
    assert psnr(stored, np.rint(depth / 3000 * 255)) > 44.0


# Anything at all

MANY = int(os.environ.get('C3D_FUZZ', '2000'))


def test_malformed_images_raise_nothing():
    """Sizes, steps, encodings and data at odds with each other; C3D_FUZZ says how many."""
    rng = random.Random(3)
    data = bytes(rng.randrange(256) for _ in range(4096))
    sizes = [0, 1, 2, 3, 4, 7, 16, 31, 32, 64, 1000, -1, 2**16, 2**31, 2**32 - 1, 2**64]
    names = [*ENCODINGS, *(n.upper() for n in ENCODINGS), '', 'jpeg', '8UC5', '64FC4', None, 3]
    made = 0
    for _ in range(MANY):
        sent = SimpleNamespace(
            width=rng.choice(sizes),
            height=rng.choice(sizes),
            step=rng.choice([*sizes, 48, 96, 128]),
            encoding=rng.choice(names),
            is_bigendian=rng.choice([0, 1, True, 255, None]),
            data=data[: rng.choice([0, 1, 3, 64, 1000, 4096])],
        )
        if rng.random() < 0.02:
            setattr(
                sent,
                rng.choice(sorted(sent.__dict__)),
                rng.choice([None, 'x', 1.5, [1], b'', object()]),
            )
        options = PictureOptions(max_width=rng.choice([16, 17, 1280]))
        outcome = convert_image(sent, options)
        made += isinstance(outcome, Picture)
        assert isinstance(outcome, (Picture, Dropped))
    assert made > MANY // 100


@given(
    st.sampled_from(
        ['rgb8', 'mono8', 'bgra8', '16UC1', 'rgb16', 'bayer_rggb8', 'uyvy', 'nv12', 'nv24']
    ),
    st.integers(1, 20),
    st.integers(1, 20),
    st.integers(0, 9),
    st.integers(0, 1),
)
def test_sizes_that_agree_make_a_picture(encoding, half_width, half_height, pad, odd):
    width, height = 2 * half_width, 2 * half_height
    if encoding[:2] not in ('uy', 'nv'):
        width, height = width + odd, height + odd
    rgb = np.random.default_rng(5).integers(0, 256, (height, width, 3), np.uint8)
    if encoding == 'mono8':
        sent = of_pixels(encoding, rgb[..., 0], pad=pad)
    elif encoding == '16UC1':
        sent = of_pixels(encoding, rgb[..., 0].astype('<u2'), pad=pad)
    else:
        sent = made_of(encoding, rgb, pad=pad)
    picture = convert_image(sent, BEST)
    decoded(picture)
    assert (picture.width, picture.height) == (width, height)
