"""The actions of ``launch_ros`` that the launch file uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from launch import LaunchContext
from launch.substitutions import LaunchConfiguration
from launch_ros.parameter_descriptions import ParameterValue

Text = str | LaunchConfiguration


@dataclass(kw_only=True)
class Node:
    """A process with a node."""

    package: str
    executable: str
    namespace: Text
    name: Text
    parameters: Sequence[Text | Mapping[str, ParameterValue]]
    ros_arguments: Sequence[Text]
    output: str

    def command_line(self, context: LaunchContext) -> list[str]:
        """Return the arguments that the executable is started with."""
        arguments = ['--ros-args', *(perform(each, context) for each in self.ros_arguments)]
        arguments += ['-r', f'__node:={perform(self.name, context)}']
        if namespace := perform(self.namespace, context):
            arguments += ['-r', f'__ns:=/{namespace.strip("/")}']
        for each in self.parameters:
            if isinstance(each, Mapping):
                for name, value in each.items():
                    arguments += ['-p', f'{name}:={perform(value.value, context)}']
            else:
                arguments += ['--params-file', perform(each, context)]
        return arguments


def perform(text: Text, context: LaunchContext) -> str:
    """Return the text that an argument stands for."""
    return text if isinstance(text, str) else text.perform(context)
