"""Where the fields of a ``sensor_msgs/PointCloud2`` lie in each of its points."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

__all__ = ['DATATYPES', 'UINT32', 'Field', 'dtype_from_fields', 'plain_dtype_from_fields']

UINT32: Final = 6
DATATYPES: Final[Mapping[int, np.dtype[Any]]] = {
    1: np.dtype('i1'),
    2: np.dtype('u1'),
    3: np.dtype('i2'),
    4: np.dtype('u2'),
    5: np.dtype('i4'),
    6: np.dtype('u4'),
    7: np.dtype('f4'),
    8: np.dtype('f8'),
}
"""The numbers that ``sensor_msgs/PointField`` gives its types."""


@dataclass(frozen=True, slots=True)
class Field:
    """One value of a point, with the attributes of ``sensor_msgs/PointField``; ``offset`` in bytes."""

    name: str
    offset: int
    datatype: int
    count: int = 1


def plain_dtype_from_fields(fields: Iterable[Any], point_step: int | None = None) -> np.dtype[Any]:
    """Return the structured dtype of one point, with a native byte order.

    The same as :func:`sensor_msgs_py.point_cloud2.dtype_from_fields`, for where that is not installed:
    each field at its offset, a field of several values as ``<name>_0``, ``<name>_1``, …, one without a
    name as ``unnamed_field_<i>``, and ``point_step`` as the size.

    Raises:
        KeyError: a datatype is unknown.
        AssertionError: a count is 0 or a name is there twice.
        ValueError: a field does not fit into ``point_step``.
    """
    names: list[str] = []
    formats: list[str] = []
    offsets: list[int] = []
    for i, field in enumerate(fields):
        kind = DATATYPES[field.datatype]
        name = field.name or f'unnamed_field_{i}'
        if field.count < 1:
            raise AssertionError(f'field {name!r} has a count of {field.count}')
        for k in range(field.count):
            value = name if field.count == 1 else f'{name}_{k}'
            if value in names:
                raise AssertionError(f'field {value!r} is there twice')
            names.append(value)
            formats.append(kind.str)
            offsets.append(field.offset + k * kind.itemsize)
    layout: Any = {'names': names, 'formats': formats, 'offsets': offsets}
    if point_step is not None:
        layout['itemsize'] = point_step
    point: np.dtype[Any] = np.dtype(layout)
    return point


try:
    from sensor_msgs_py.point_cloud2 import dtype_from_fields
except ImportError:  # no package index has it; on a robot it is there
    dtype_from_fields = plain_dtype_from_fields
