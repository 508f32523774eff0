"""The parameters, as ROS knows them: declared from the one declaration, read back for the one check."""

from __future__ import annotations

from collections.abc import Iterable

from rcl_interfaces.msg import ParameterDescriptor
from rclpy.node import Node

from cognitive3d_ros.parameters import (
    CLIENT_LIBRARY,
    Descriptor,
    descriptors,
    member_descriptors,
)


def declare(node: Node) -> None:
    """Declare all parameters, those of family members too; what is declared already is left alone."""
    _declare(node, descriptors())
    _declare(node, member_descriptors(_values(node, descriptors())))


def given(node: Node) -> dict[str, object]:
    """Return the values to be checked: of all parameters there are, and of names given that are none."""
    values = _values(node, descriptors())
    values |= _values(node, member_descriptors(values))
    for name in CLIENT_LIBRARY:
        if node.has_parameter(name):
            values[name] = node.get_parameter(name).value
    for name, parameter in node._parameter_overrides.items():  # rclpy has no public way
        values.setdefault(name, parameter.value)
    return values


def _values(node: Node, wanted: Iterable[Descriptor]) -> dict[str, object]:
    """Return the values of parameters; a member named since the last :func:`declare` has none yet."""
    return {d.name: node.get_parameter(d.name).value for d in wanted if node.has_parameter(d.name)}


def _declare(node: Node, wanted: Iterable[Descriptor]) -> None:
    for each in wanted:
        if node.has_parameter(each.name):
            continue
        default = each.default
        node.declare_parameter(
            each.name,
            # rclpy takes an empty list for one of bytes; not set is empty too.
            (list(default) or None) if isinstance(default, tuple) else default,
            ParameterDescriptor(
                description=each.description,
                additional_constraints=each.constraints,
                dynamic_typing=True,
            ),
        )
