"""A ROS 2 parameter file, read as rcl reads it: for the doors without ROS, and for the doctor.

What surprises people who know YAML, and holds here too: ``on``, ``off``, ``yes``, ``no``, ``y`` and
``n`` are booleans; a leading 0 makes an octal (``0755`` is 493); ``inf`` and ``nan`` are numbers;
``null`` and ``~`` are texts; only a tag ``!!str`` or quotes make a text of something else; a list
holds one type; an empty list has none, and arrives as nothing (None).
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any

import yaml

from cognitive3d_ros.errors import ParameterError

Scalar = str | int | float | bool

_TRUE = {'y', 'Y', 'yes', 'Yes', 'YES', 'true', 'True', 'TRUE', 'on', 'On', 'ON'}
_FALSE = {'n', 'N', 'no', 'No', 'NO', 'false', 'False', 'FALSE', 'off', 'Off', 'OFF'}
_INT64 = range(-(2**63), 2**63)
_DECIMAL = re.compile(r'[+-]?(0|[1-9][0-9]*)')
_OCTAL = re.compile(r'[+-]?0[0-7]+')
_HEX = re.compile(r'[+-]?0[xX][0-9a-fA-F]+')
_FLOAT = re.compile(r'[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?')
_HEX_FLOAT = re.compile(
    r'[+-]?0[xX]([0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)([pP][+-]?[0-9]+)?'
)
_INF = re.compile(r'[+-]?(\.inf|\.Inf|\.INF|(?i:inf|infinity))')
_NAN = re.compile(r'\.nan|\.NaN|\.NAN|[+-]?(?i:nan)(\([A-Za-z0-9_]*\))?')
_SECTION = re.compile(r'/?(\*\*?|[A-Za-z_][A-Za-z0-9_]*)(/(\*\*?|[A-Za-z_][A-Za-z0-9_]*))*')
_WILD = {'**': r'(/[A-Za-z0-9_]+)*', '*': r'/[A-Za-z0-9_]+'}
_TYPES: dict[type, str] = {str: 'texts', bool: 'booleans', int: 'integers', float: 'numbers'}
_MARKER = 'ros__parameters'
_UNTAGGED, _COLLECTION = 'scalar', 'collection'  # tags of what has none
_TEXT_TAG = 'tag:yaml.org,2002:str'


def load_yaml(
    path: str | PathLike[str], node_name: str = 'cognitive3d', namespace: str = '/'
) -> dict[str, object]:
    """Return the parameters that a file holds for a node, by their full names.

    Sections are matched as rcl matches them: ``cognitive3d`` or ``/ns/cognitive3d``, nested or in
    one word, ``*`` for one word of the name and ``**`` for any number. All that match count, in the
    order of the file, later ones over earlier ones. An empty list is None.

    Raises ParameterError with every fault: a file that cannot be read, is no YAML or would be
    refused by rcl, and one without a section for the node.
    """
    path = Path(path)
    reader = _Reader(path.name)
    try:
        for document in yaml.compose_all(path.read_bytes().decode('utf-8-sig'), _Loader):
            reader.sections('', document)
    except OSError as error:
        raise ParameterError([f'{path} cannot be read: {error.strerror}']) from error
    except UnicodeDecodeError as error:
        text = f'{path.name} is not UTF-8: {error.reason} at byte {error.start}'
        raise ParameterError([text]) from error
    except yaml.YAMLError as error:
        text = f'{path.name} is no YAML that ROS reads: {" ".join(str(error).split())}'
        raise ParameterError([text]) from error
    except RecursionError as error:
        raise ParameterError([f'{path.name} is nested too deeply']) from error
    if reader.faults:
        raise ParameterError(reader.faults)
    node = '/'.join(['', *filter(None, namespace.split('/')), node_name])
    matching = [values for name, values in reader.found.items() if _matches(name, node)]
    if not matching:
        held = f'for {", ".join(reader.found)} only' if reader.found else 'for no node'
        text = (
            f'{path.name} holds parameters {held}, and none for {node}: write "{node}:" or "/**:", '
            f'below it "{_MARKER}:", and below that the parameters'
        )
        raise ParameterError([text])
    return {name: value for values in matching for name, value in values.items()}


def scalar(text: str) -> Scalar:
    """Return what rcl makes of a scalar without quotes."""
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    for pattern, base in ((_OCTAL, 8), (_HEX, 16), (_DECIMAL, 10)):
        if pattern.fullmatch(text) and len(text) < 66 and int(text, base) in _INT64:
            return int(text, base)
    if _INF.fullmatch(text):
        return -math.inf if text.startswith('-') else math.inf
    if _NAN.fullmatch(text):
        return math.nan
    is_hex = _HEX_FLOAT.fullmatch(text)
    if not is_hex and not _FLOAT.fullmatch(text):
        return text
    try:
        number = float.fromhex(text) if is_hex else float(text)
    except OverflowError:
        return text
    # What a double cannot hold in full precision, rcl takes as a text.
    mantissa = re.split('[pP]' if is_hex else '[eE]', text)[0]
    is_zero = not re.search('[1-9a-fA-F]', mantissa)
    return number if is_zero or sys.float_info.min <= abs(number) < math.inf else text


def _matches(section: str, node: str) -> bool:
    words = section.removeprefix('/').split('/')
    return re.fullmatch(''.join(_WILD.get(word, f'/{word}') for word in words), node) is not None


class _Loader(yaml.SafeLoader):
    """Composes nodes as rcl sees them: scalars not yet resolved, no aliases."""

    def resolve(self, kind: type[yaml.Node], *_: Any) -> str:
        """Mark scalars without a tag."""
        return _UNTAGGED if kind is yaml.ScalarNode else _COLLECTION

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Refuse aliases."""
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.MarkedYAMLError(problem='ROS reads no aliases (*)', problem_mark=mark)
        return super().compose_node(parent, index)


class _Reader:
    """Collects the parameters of all sections, and the faults with their lines."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.found: dict[str, dict[str, object]] = {}
        self.faults: list[str] = []

    def fault(self, node: yaml.Node, text: str) -> None:
        """Note a fault, once where a line has it several times."""
        said = f'{self.file}, line {node.start_mark.line + 1}: {text}'
        if said not in self.faults:
            self.faults.append(said)

    def items(self, node: yaml.Node) -> Iterator[tuple[str, yaml.Node, yaml.Node]]:
        """Yield a mapping's keys as texts, with their nodes and the values'."""
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value:
                yield key.value, key, value
            else:
                self.fault(key, 'a key must be a text')

    def sections(self, parent: str, node: yaml.Node) -> None:
        """Read what lies above the parameters: namespaces and node names."""
        if not isinstance(node, yaml.MappingNode):
            where = f'"{parent}"' if parent else 'the file'
            self.fault(node, f'{where} must hold a mapping with "{_MARKER}:" in it')
            return
        for key, key_node, value in self.items(node):
            name = f'{parent.rstrip("/")}/{key}' if parent else key
            if key != _MARKER:
                self.sections(name, value)
            elif not _SECTION.fullmatch(parent):
                self.fault(key_node, f'"{parent}" is no name of a node')
            elif not isinstance(value, yaml.MappingNode):
                self.fault(value, f'"{_MARKER}" of "{parent}" must hold a mapping')
            else:
                self.parameters('', value, self.found.setdefault(parent, {}))

    def parameters(self, prefix: str, node: yaml.Node, found: dict[str, object]) -> None:
        """Read parameters, flattening nested mappings with dots."""
        for key, key_node, value in self.items(node):
            name = prefix + key
            if not isinstance(value, yaml.MappingNode):
                typed, before = self.value(name, value), found.get(name)
                if None not in (typed, before) and _type(typed) != _type(before):
                    self.fault(key_node, f'{name} stands twice, with values of different types')
                found[name] = before if typed is None else typed
            elif value.value:
                self.parameters(f'{name}.', value, found)
            else:
                self.fault(value, f'{name} is an empty mapping, which ROS misreads: leave it out')

    def value(self, name: str, node: yaml.Node) -> Scalar | list[Scalar] | None:
        """Return the value of one parameter, None for an empty list."""
        if isinstance(node, yaml.ScalarNode):
            return self.item(name, node)
        items = [self.item(name, item) for item in node.value]
        types = {type(item) for item in items if item is not None}
        if types == {int, float}:
            whole = ', '.join(str(float(item)) for item in items if isinstance(item, int | float))
            self.fault(
                node,
                f'{name} mixes integers and other numbers, which ROS refuses in a list: write '
                f'[{whole}]',
            )
        elif len(types) > 1:
            names = ', '.join(sorted(_TYPES[kind] for kind in types))
            self.fault(
                node, f'{name} mixes {names} in a list, which ROS refuses: put texts in quotes'
            )
        return [item for item in items if item is not None] or None

    def item(self, name: str, node: yaml.Node) -> Scalar | None:
        """Return one scalar, or None after a fault."""
        if not isinstance(node, yaml.ScalarNode):
            self.fault(node, f'{name} holds a list or mapping in a list, which ROS cannot read')
            return None
        if node.style in ('"', "'"):
            return str(node.value)
        if not node.value:
            self.fault(node, f"{name} has no value: an empty text is written ''")
            return None
        return str(node.value) if node.tag == _TEXT_TAG else scalar(node.value)


def _type(value: object) -> tuple[type, type]:
    return type(value), type(value[0]) if isinstance(value, list) else type(None)
