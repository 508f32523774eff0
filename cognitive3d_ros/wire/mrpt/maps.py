"""MRPT's maps of points; which versions of MRPT read which differs."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cognitive3d_ros.wire.mrpt.archive import Archive, MrptObject
from cognitive3d_ros.wire.mrpt.fields import Single, mrpt, none


@mrpt('mrpt::maps::TMapGenericParams', 0)
@dataclass(slots=True)
class MapParameters(MrptObject):
    """What is done with a map; of no matter to its points."""

    enabled: list[bool] = field(default_factory=lambda: [True] * 3)

    def _archive(self, ar: Archive) -> None:
        self.enabled = ar.numbers('bool', self.enabled, 3)


class _Points(MrptObject):
    """What maps of points share: columns of x, y and z, and parameters that MRPT stores with each."""

    xyz: Single

    def _archive_xyz(self, ar: Archive) -> int:
        count: int = ar.number('u32', len(self.xyz))
        columns = self.xyz.reshape(-1, 3).T if len(self.xyz) else [self.xyz] * 3
        self.xyz = np.stack([ar.plane('<f4', column, count) for column in columns], axis=-1)
        return count

    @staticmethod
    def _archive_parameters(ar: Archive, *, rendering: bool = False) -> None:
        """Write MRPT's defaults for inserting points, for likelihoods and for rendering, or pass them over."""
        ar.number('i8', 0)
        ar.number('f32', 0.02)
        ar.numbers('bool', [True, False, True, False, False], 5)
        ar.number('f32', np.float32(np.radians(0.05)))
        ar.number('f32', 2.0)
        ar.number('bool', False)
        ar.number('i8', 0)
        ar.numbers('f64', [0.0025, 1.0], 2)
        ar.number('u32', 10)
        if rendering:
            ar.number('i8', 0)
            ar.numbers('f32', [1.0, 0.0, 0.0, 1.0, 1.0], 5)
            ar.number('i8', -1)


@mrpt('mrpt::maps::CSimplePointsMap', 10)
@dataclass(slots=True, eq=False)
class SimplePoints(_Points):
    """Points (N, 3), which every version of MRPT reads."""

    xyz: Single = field(default_factory=partial(none, np.float32))

    def _archive(self, ar: Archive) -> None:
        self._archive_xyz(ar)
        ar.object(MapParameters(), MapParameters)
        self._archive_parameters(ar, rendering=True)


@mrpt('mrpt::maps::CPointsMapXYZI', 0)
@dataclass(slots=True, eq=False)
class IntensityPoints(_Points):
    """Points and their intensities, 0 to 1; up to MRPT 2."""

    xyz: Single = field(default_factory=partial(none, np.float32))
    intensity: Single = field(default_factory=partial(none, np.float32))

    def _archive(self, ar: Archive) -> None:
        count = self._archive_xyz(ar)
        self.intensity = ar.plane('<f4', self.intensity, count)
        self._archive_parameters(ar)


@mrpt('mrpt::maps::CColouredPointsMap', 9)
@dataclass(slots=True, eq=False)
class ColouredPoints(_Points):
    """Points and their colours, columns of 0 to 1; up to MRPT 2."""

    xyz: Single = field(default_factory=partial(none, np.float32))
    rgb: list[Single] = field(default_factory=lambda: [np.empty(0, np.float32)] * 3)

    def _archive(self, ar: Archive) -> None:
        self._archive_xyz(ar)
        self.rgb = [ar.vector('<f4', channel) for channel in self.rgb]
        ar.object(MapParameters(), MapParameters)
        self._archive_parameters(ar)


@mrpt('mrpt::maps::CGenericPointsMap', 3, 4)
@dataclass(slots=True, eq=False)
class GenericPoints(_Points):
    """Points and named columns; from MRPT 2.15 on."""

    xyz: Single = field(default_factory=partial(none, np.float32))
    fields: dict[str, NDArray[Any]] = field(default_factory=dict)

    def _archive(self, ar: Archive) -> None:
        self._archive_xyz(ar)
        mine, self.fields = self.fields, {}
        for dtype in ('<f4', '<f8', '<u2', 'u1', '<u4')[: 4 if ar.version == 3 else 5]:
            columns = [(k, v) for k, v in mine.items() if v.dtype == np.dtype(dtype)]
            count = ar.number('u32', len(columns))
            for name, values in columns or [('', np.empty(0, dtype))] * count:
                key = ar.text(name)  # it comes first
                self.fields[key] = ar.vector(dtype, values)
        self._archive_parameters(ar)
