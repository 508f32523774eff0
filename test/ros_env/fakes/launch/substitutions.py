"""The substitutions of ``launch`` that the launch file uses."""

from __future__ import annotations

from dataclasses import dataclass

from launch import LaunchContext


@dataclass
class LaunchConfiguration:
    """The value of an argument."""

    variable_name: str

    def perform(self, context: LaunchContext) -> str:
        """Return the value."""
        return context.launch_configurations[self.variable_name]
