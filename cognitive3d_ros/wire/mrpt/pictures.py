"""MRPT's pictures, and the parameters of cameras."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from cognitive3d_ros.wire.mrpt.archive import Archive, MrptObject
from cognitive3d_ros.wire.mrpt.fields import mrpt, none, zeros


@mrpt('mrpt::img::TCamera', 6)
@dataclass(slots=True)
class Camera(MrptObject):
    """A camera's parameters: ``intrinsics`` are fx fy cx cy, in pixels."""

    focal_m: float = 0.0
    distortion: list[float] = field(default_factory=partial(zeros, 8))
    intrinsics: list[float] = field(default_factory=partial(zeros, 4))
    rows: int = 0
    columns: int = 0
    name: str = ''
    model: int = 1
    """0 none, 1 plumb_bob, 2 kannala_brandt."""

    def _archive(self, ar: Archive) -> None:
        self.focal_m = ar.number('f64', self.focal_m)
        self.distortion = ar.numbers('f64', self.distortion, 8)
        self.intrinsics = ar.numbers('f64', self.intrinsics, 4)
        self.rows = ar.number('u32', self.rows)
        self.columns = ar.number('u32', self.columns)
        self.name = ar.text(self.name)
        self.model = ar.number('u8', self.model)


@mrpt('mrpt::img::CImage', 9)
@dataclass(slots=True, eq=False)
class Image(MrptObject):
    """A picture: the name of a file, a JPEG, or pixels: ``rows`` of bytes (height, width · channels)."""

    file: str = ''
    jpeg: bytes = b''
    color: bool = True
    width: int = 0
    height: int = 0
    rows: NDArray[np.uint8] = field(default_factory=partial(none, np.uint8))

    def _archive(self, ar: Archive) -> None:
        if ar.number('bool', bool(self.file)):
            self.file = ar.text(self.file)
            return
        self.color = ar.number('bool', self.color)
        if not self.color:
            self._archive_grey(ar)
            return
        # Pixels, and no JPEG, where width and height are below zero.
        sign = 1 if self.jpeg else -1
        width = ar.number('i32', sign * self.width)
        height = ar.number('i32', sign * self.height)
        self.width, self.height = abs(width), abs(height)
        if width > 0 or height > 0:
            self.jpeg = ar.data(self.jpeg)
        else:
            size = 3 * self.width * self.height
            flat = ar.plane('u1', self.rows.ravel(), size)
            self.rows = flat.reshape(self.height, 3 * self.width)

    def _archive_grey(self, ar: Archive) -> None:
        self.width = ar.number('i32', self.width)
        self.height = ar.number('i32', self.height)
        ar.number('i32', 0)  # the origin is at the top
        size = ar.number('u32', self.rows.size)
        ar.number('i32', 0)  # eight bits
        ar.number('bool', False)  # not compressed
        self.rows = ar.plane('u1', self.rows.ravel(), size).reshape(self.height, -1)
