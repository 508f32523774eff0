"""The actions of ``launch`` that the launch file uses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from launch import LaunchContext


@dataclass
class DeclareLaunchArgument:
    """An argument; without a default it must be given."""

    name: str
    default_value: str | None = None
    description: str = ''


@dataclass
class OpaqueFunction:
    """A function that makes further entities once the arguments are known."""

    function: Callable[[LaunchContext], list[object]]
