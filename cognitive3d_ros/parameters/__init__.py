"""Parameters: one declaration, and what is made from it.

- :mod:`.declaration`: every parameter's name, type, default, range and meaning;
- :func:`parse`: the check of everything at once, into a frozen :class:`Config`;
- :func:`descriptors`, :func:`member_descriptors`: what the node declares to ROS;
- :func:`load_yaml`: a ROS 2 parameter file read as ROS reads it, without ROS;
- ``python -m cognitive3d_ros.parameters yaml|table``: ``config/cognitive3d.yaml`` and
  ``docs/parameters.md``.
"""

from .check import parse, series_prefix, warnings
from .config import (
    ActionConfig,
    CameraConfig,
    Config,
    LidarConfig,
    SensorConfig,
    SpoolConfig,
    TopicConfig,
    UploadConfig,
)
from .declaration import CLIENT_LIBRARY, CLIENT_LIBRARY_PREFIX, Kind
from .descriptors import Descriptor, descriptors, member_descriptors, member_names
from .properties import Property, check_property_name, check_property_value, typed_property
from .rosyaml import load_yaml
from .values import check_gateway

__all__ = [
    'CLIENT_LIBRARY',
    'CLIENT_LIBRARY_PREFIX',
    'ActionConfig',
    'CameraConfig',
    'Config',
    'Descriptor',
    'Kind',
    'LidarConfig',
    'Property',
    'SensorConfig',
    'SpoolConfig',
    'TopicConfig',
    'UploadConfig',
    'check_gateway',
    'check_property_name',
    'check_property_value',
    'descriptors',
    'load_yaml',
    'member_descriptors',
    'member_names',
    'parse',
    'series_prefix',
    'typed_property',
    'warnings',
]
