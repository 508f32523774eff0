"""Fields of view against angles worked out by hand."""

import math
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cognitive3d_ros.convert.camera import (
    NOT_RECORDED,
    CameraInfos,
    FieldOfView,
    field_of_view,
    is_rectified,
)

NO_ROI = {'x_offset': 0, 'y_offset': 0, 'width': 0, 'height': 0, 'do_rectify': False}


def info(fx=640.0, fy=None, *, width=1280, height=720, px=None, model='plumb_bob', **fields):
    """Return a camera info: 1280 pixels at 640 pixels of focal length are 90 degrees."""
    fy = fx if fy is None else fy
    px = fx if px is None else px
    return SimpleNamespace(
        **{
            'width': width,
            'height': height,
            'k': [fx, 0.0, 639.5, 0.0, fy, 359.5, 0.0, 0.0, 1.0],
            'p': [px, 0.0, 639.5, 0.0, 0.0, px, 359.5, 0.0, 0.0, 0.0, 1.0, 0.0],
            'd': [],
            'distortion_model': model,
            'binning_x': 0,
            'binning_y': 0,
            'roi': SimpleNamespace(**NO_ROI),
            **fields,
        }
    )


def fov(message, width=1280, height=720, *, rectified=False):
    return field_of_view(message, width, height, rectified=rectified)


def angle(size, focal):
    """Return 2·atan(size / 2f) in degrees."""
    return pytest.approx(2 * math.degrees(math.atan2(size / 2, focal)), abs=1e-4)


@pytest.mark.rule(75)
def test_pinhole():
    assert fov(info()) == (pytest.approx(90.0, abs=1e-5), angle(720, 640))
    # 58.7155… degrees, worked out elsewhere.
    assert fov(info()).vfov_degrees == pytest.approx(58.7155, abs=1e-3)


def test_k_for_raw_pictures_and_p_for_rectified_ones():
    both = info(640.0, px=500.0)
    assert fov(both).hfov_degrees == angle(1280, 640)
    assert fov(both, rectified=True).hfov_degrees == angle(1280, 500)


@pytest.mark.rule(75)
@pytest.mark.parametrize(
    ('message', 'expected'),
    [
        (info(0.0, px=640.0), (90.0, 58.7155)),  # K of zeros, P good
        (info(640.0, px=0.0), (90.0, 58.7155)),
        (info(0.0, px=0.0), (0.0, 0.0)),
        (info(math.nan, px=640.0), (90.0, 58.7155)),
        (info(math.nan, px=math.nan), (0.0, 0.0)),
        (info(-640.0, px=0.0), (0.0, 0.0)),
        (info(640.0, fy=0.0, px=0.0), (0.0, 0.0)),  # both or neither
        (info(math.inf, px=0.0), (0.0, 0.0)),
        (info(1e-12), (0.0, 0.0)),  # 180 degrees, in 32 bits
        (info(640.0, fy=1e-12), (0.0, 0.0)),
        (info(1e300), (0.0, 0.0)),  # 0 degrees, in 32 bits
        (info(width=0), (0.0, 0.0)),
        (info(height=0), (0.0, 0.0)),
    ],
)
def test_falls_back_and_is_0_when_unknown(message, expected):
    assert fov(message) == pytest.approx(expected, abs=1e-3)


def test_rectified_pictures_fall_back_on_k():
    assert fov(info(640.0, px=0.0), rectified=True).hfov_degrees == angle(1280, 640)


def roi(width, height):
    return SimpleNamespace(**{**NO_ROI, 'width': width, 'height': height})


@pytest.mark.parametrize(
    ('message', 'size', 'seen'),
    [
        # The matrices are of the whole sensor, 1280x720; the picture is a part of it.
        (info(binning_x=2, binning_y=2), (640, 360), (1280, 720)),
        (info(binning_x=1, binning_y=1), (1280, 720), (1280, 720)),
        (info(binning_x=2, binning_y=1), (640, 720), (1280, 720)),
        (info(binning_x=3, binning_y=3), (426, 240), (1280, 720)),  # rounded down
        (info(roi=roi(640, 480)), (640, 480), (640, 480)),
        (info(roi=roi(640, 480), binning_x=2, binning_y=2), (320, 240), (640, 480)),
        (info(roi=roi(1280, 720)), (1280, 720), (1280, 720)),
        # Scaled somewhere between the driver and us.
        (info(), (640, 360), (1280, 720)),
        # The matrices are of the picture as it is, whatever else is said.
        (info(width=640, height=360, binning_x=2, binning_y=2), (640, 360), (640, 360)),
        (info(width=640, height=360, roi=roi(1280, 720)), (640, 360), (640, 360)),
    ],
)
def test_regions_and_binning(message, size, seen):
    """What is seen spans so many pixels of those that the focal length is measured in."""
    assert fov(message, *size) == (angle(seen[0], 640), angle(seen[1], 640))


@pytest.mark.parametrize('size', [(640, 480), (720, 1280), (1000, 100), (0, 720), (1280, -1)])
def test_an_info_of_another_picture(size):
    assert fov(info(), *size) == NOT_RECORDED


@pytest.mark.parametrize('model', ['equidistant', 'Kannala Brandt', 'fisheye'])
def test_fisheye(model):
    """r = f θ: 1280 pixels at 600 pixels a radian are 122.23 degrees, not the 93.7 of a pinhole."""
    wide = fov(info(600.0, model=model))
    assert wide == pytest.approx((122.2310, 68.7549), abs=1e-3)
    assert fov(info(300.0, model=model)) == NOT_RECORDED  # 244 degrees
    # Rectified, it is a pinhole.
    assert fov(info(600.0, model=model), rectified=True).hfov_degrees == angle(1280, 600)


@pytest.mark.parametrize('model', ['omnidirectional', 'thin_prism_fisheye', 'ftheta', 'EUCM'])
def test_lenses_that_a_focal_length_does_not_describe(model):
    assert fov(info(model=model)) == NOT_RECORDED
    assert fov(info(model=model), rectified=True).hfov_degrees == angle(1280, 640)


@pytest.mark.parametrize('model', ['', 'rational_polynomial', 'inverse_brown_conrady', 'none'])
def test_any_other_lens_is_a_pinhole(model):
    assert fov(info(model=model)).hfov_degrees == angle(1280, 640)


def test_ros_1_names():
    message = info()
    message.K, message.P = message.__dict__.pop('k'), message.__dict__.pop('p')
    assert fov(message).hfov_degrees == angle(1280, 640)


@pytest.mark.parametrize(
    ('topic', 'rectified'),
    [
        ('/camera/image_raw', False),
        ('/camera/image_rect', True),
        ('/camera/image_rect_color', True),
        ('/camera/image_rect/compressed', True),
        ('/depth/image_rect_raw/compressedDepth', True),
        ('/image_rect/left', False),
        ('image_rect', True),
        ('', False),
    ],
)
def test_which_topics_are_rectified(topic, rectified):
    assert is_rectified(topic) is rectified


def test_infos_are_those_of_the_picture():
    infos = CameraInfos()
    assert infos.at(10) is None
    infos.add(20, 'at 20')
    assert infos.at(10) == 'at 20'  # better than none
    infos.add(10, 'at 10')
    infos.add(30, 'at 30')
    assert infos.at(10) == 'at 10'
    assert infos.at(19) == 'at 10'
    assert infos.at(25) == 'at 20'
    assert infos.at(99) == 'at 30'
    infos.add(30, 'at 30 again')
    assert infos.at(30) == 'at 30 again'
    for stamp in range(1000):
        infos.add(100 + stamp, stamp)
    assert infos.at(30) == 999  # long forgotten


ANY = st.one_of(
    st.none(),
    st.text(max_size=3),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.lists(st.floats(), max_size=12),
    st.just(SimpleNamespace()),
)


@given(st.dictionaries(st.sampled_from(sorted(info().__dict__)), ANY), ANY, ANY, st.booleans())
def test_no_info_raises(fields, width, height, rectified):
    message = SimpleNamespace(**{**info().__dict__, **fields})
    result = field_of_view(message, width, height, rectified=rectified)
    assert isinstance(result, FieldOfView)
    h, v = result
    assert (h == v == 0) or (0 < h < 180 and 0 < v < 180)
