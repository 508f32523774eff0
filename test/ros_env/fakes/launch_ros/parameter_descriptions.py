"""The parameter descriptions of ``launch_ros`` that the launch file uses."""

from __future__ import annotations

from dataclasses import dataclass

from launch.substitutions import LaunchConfiguration


@dataclass
class ParameterValue:
    """The value of a parameter, read as a type."""

    value: LaunchConfiguration
    value_type: type
