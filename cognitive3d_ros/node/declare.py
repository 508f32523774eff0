"""The parameters, as ROS knows them: declared from the one declaration, read back for the one check."""

from __future__ import annotations

from rcl_interfaces.msg import ParameterDescriptor
from rclpy.node import Node

from cognitive3d_ros.parameters.declaration import (
    CLIENT_LIBRARY,
    FAMILIES,
    NAME,
    SCALARS,
    Parameter,
)


def declare(node: Node) -> None:
    """Declare all parameters, those of family members too; what is declared already is left alone.

    All are dynamically typed and without ranges: rclpy would end the process over the first value that
    does not fit, and the check that follows tells of all of them.
    """
    _declare(node, SCALARS)
    _declare(node, _of_members(node))


def given(node: Node) -> dict[str, object]:
    """Return the values to be checked: of all parameters there are, and of names given that are none."""
    names = [*SCALARS, *_of_members(node)]
    values = {name: node.get_parameter(name).value for name in names}
    for name, parameter in node._parameter_overrides.items():  # rclpy has no public way
        values.setdefault(name, parameter.value)
    return values


def _declare(node: Node, wanted: dict[str, Parameter]) -> None:
    for name, parameter in wanted.items():
        if name in CLIENT_LIBRARY or node.has_parameter(name):
            continue
        default = parameter.default
        node.declare_parameter(
            name,
            # rclpy takes an empty list for one of bytes; not set is empty too.
            (list(default) or None) if isinstance(default, tuple) else default,
            ParameterDescriptor(
                description=parameter.about,
                additional_constraints=f'must be {parameter.allowed}',
                dynamic_typing=True,
            ),
        )


def _of_members(node: Node) -> dict[str, Parameter]:
    """Return the parameters of the members that the families' lists name now."""
    found: dict[str, Parameter] = {}
    for family in FAMILIES.values():
        for list_name in family.lists:
            entries = node.get_parameter(list_name).value
            for entry in entries if isinstance(entries, list | tuple) else ():
                if isinstance(entry, str) and NAME.pattern.fullmatch(entry):
                    found |= {f'{family.word}.{entry}.{key.name}': key for key in family.keys}
    return found
