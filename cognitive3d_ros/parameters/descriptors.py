"""What the node declares to ROS, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .declaration import CLIENT_LIBRARY, FAMILIES, NAME, SCALARS, Kind, Parameter, Value
from .values import is_list


@dataclass(frozen=True, slots=True)
class Descriptor:
    """One parameter for ROS.

    To be declared dynamically typed and without a ROS range: ROS would refuse an integer where a
    number is wanted, and raise for the first value out of range, while :func:`parse` takes the one
    and tells all faults at once. So ``constraints`` (the descriptor's ``additional_constraints``)
    says in words what is allowed. ``default`` None: not set.
    """

    name: str
    kind: Kind
    default: Value
    description: str
    constraints: str


def descriptors() -> tuple[Descriptor, ...]:
    """Return all parameters but those of families' members and of the ROS client library."""
    return tuple(_descriptor(p, name) for name, p in SCALARS.items() if name not in CLIENT_LIBRARY)


def member_descriptors(values: Mapping[str, object]) -> tuple[Descriptor, ...]:
    """Return the parameters of the members that the lists in ``values`` name."""
    return tuple(
        _descriptor(key, f'{word}.{name}.{key.name}')
        for word, names in member_names(values).items()
        for name in names
        for key in FAMILIES[word].keys
    )


def member_names(values: Mapping[str, object]) -> dict[str, tuple[str, ...]]:
    """Return the members' names by family (``topic``, ``sensor``, ``camera``, ``lidar``).

    Entries that are no names are left out: :func:`parse` speaks of them.
    """
    found: dict[str, tuple[str, ...]] = {}
    for word, family in FAMILIES.items():
        lists = [values.get(name) for name in family.lists]
        entries = [entry for entries in lists if is_list(entries) for entry in entries]
        names = [e for e in entries if isinstance(e, str) and NAME.pattern.fullmatch(e)]
        found[word] = tuple(dict.fromkeys(names))
    return found


def _descriptor(p: Parameter, name: str) -> Descriptor:
    fallback = f' Default: {p.fallback}.' if p.fallback else ''
    constraints = p.allowed + (', required' if p.required else '')
    return Descriptor(name, p.kind, p.default, f'{p.about}{fallback}', constraints)
