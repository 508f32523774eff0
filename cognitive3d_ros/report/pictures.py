"""Camera pictures along the session, small enough to travel in the page."""

from __future__ import annotations

import base64
from typing import Final

from cognitive3d_ros.report.svg import clock, plural, tag, text
from cognitive3d_ros.report.view import View
from cognitive3d_ros.session.records import CameraFrame

_PICTURES: Final = 16  # of each camera
_WIDTH_PX: Final = 400
_QUALITY: Final = 72
_MOST_BYTES: Final = 6 << 20  # of all, where they cannot be made smaller


def pictures(view: View) -> str:
    """Return a row of pictures for each camera."""
    session = view.session
    if not session.cameras:
        return ''
    rows = []
    for name in session.cameras:
        camera = session.camera(name)
        count = plural(len(camera), 'frame')
        head = tag('h3', text(name), tag('span', count, class_='count'))
        left = _MOST_BYTES // len(session.cameras)
        drawn, damaged = [], []
        for frame in view.spread(camera, _PICTURES):
            data = _small(frame)
            if data is None:
                damaged.append(clock(frame.time - view.start))
            elif len(data) <= left:
                left -= len(data)
                drawn.append(_figure(view, frame, data))
        if damaged:
            told = f'Not shown, as they cannot be read: those at {", ".join(damaged)}.'
            head += tag('p', told, class_='hint')
        rows.append(head + tag('div', *drawn, class_='pictures'))
    return ''.join(rows)


def _figure(view: View, frame: CameraFrame, data: bytes) -> str:
    at = frame.time - view.start
    source = f'data:image/jpeg;base64,{base64.b64encode(data).decode()}'
    image = tag('img', src=source, alt=f'{frame.camera_id} at {clock(at)}', loading='lazy')
    # No closing tag: it has no content.
    return tag(
        'figure', image.removesuffix('</img>'), tag('figcaption', clock(at)), data_t=f'{at:.2f}'
    )


def _small(frame: CameraFrame) -> bytes | None:
    """Return a picture at the size of the page, or as it is where OpenCV is not installed.

    None for one that cannot be read.
    """
    try:
        import cv2
    except ImportError:
        return frame.data or None
    import numpy as np

    try:
        picture = cv2.imdecode(np.frombuffer(frame.data, np.uint8), cv2.IMREAD_COLOR)
        if picture is None:
            return None
        if picture.shape[1] <= _WIDTH_PX:
            return frame.data
        height = max(1, round(picture.shape[0] * _WIDTH_PX / picture.shape[1]))
        small = cv2.resize(picture, (_WIDTH_PX, height), interpolation=cv2.INTER_AREA)
        done, data = cv2.imencode('.jpg', small, [cv2.IMWRITE_JPEG_QUALITY, _QUALITY])
    except cv2.error:  # no bytes, or more pixels than it takes
        return None
    return data.tobytes() if done else frame.data
