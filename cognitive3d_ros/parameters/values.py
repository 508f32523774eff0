"""The check of single values: type, range and form, and what texts with a meaning hold."""

from __future__ import annotations

import array
import os
import re
import urllib.parse
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeGuard

from .declaration import Kind, Parameter, Value
from .properties import Property, check_property_name, check_text, typed_property

_SHOWN_TEXT = 60  # characters that a message repeats
_SHOWN_ITEMS = 4


# Takes what follows a parameter's name in a sentence about a fault.
Fault = Callable[[str], None]


def show(value: object) -> str:
    """Return a value about as YAML has it, cut to a length that a message can carry."""
    if isinstance(value, bool):
        return 'true' if value else 'false'
    if isinstance(value, str):
        return repr(value if len(value) <= _SHOWN_TEXT else f'{value[: _SHOWN_TEXT - 1]}…')
    if isinstance(value, int):
        return str(value) if value.bit_length() <= 64 else 'an integer beyond 64 bits'
    if isinstance(value, float):
        return repr(value)
    if is_list(value):
        items = ['[…]' if is_list(item) else show(item) for item in value[:_SHOWN_ITEMS]]
        return f'[{", ".join([*items, "…"] if len(value) > _SHOWN_ITEMS else items)}]'
    return 'nothing' if value is None else f'of type {type(value).__name__}'


def is_list(value: object) -> TypeGuard[Sequence[object]]:
    """Whether a value is a list, in any form that rclpy has for one."""
    return isinstance(value, list | tuple | array.array)


def is_empty(value: object) -> bool:
    """Whether a value is nothing, an empty text or an empty list."""
    return value is None or ((isinstance(value, str) or is_list(value)) and not len(value))


def convert(p: Parameter, value: object, fault: Fault) -> Value:
    """Return a value in the parameter's own type; after a fault the default, or what is good of a list."""
    if not p.kind.is_list:
        typed = _item(p, value)
        if typed is None:
            fault(f'is {show(value)}: it must be {p.allowed}{_hint(p, value)}')
            return p.default
        return typed
    if not is_list(value) or (p.length and not p.length[0] <= len(value) <= p.length[1]):
        fault(f'is {show(value)}: it must be {p.allowed}')
        return p.default
    items: list[Any] = []
    for item in value:
        typed = _item(p, item)
        if typed is None:
            fault(f'holds {show(item)}: each must be {p.allowed_item}{_hint(p, item)}')
        else:
            items.append(typed)
    return tuple(items) if len(items) == len(value) or not p.length else p.default


def _item(p: Parameter, item: object) -> str | int | float | bool | None:
    """Return one value in the parameter's own type, or None where it is not allowed."""
    kind = p.kind.item
    if kind is Kind.FLAG:
        return item if isinstance(item, bool) else None
    if kind is Kind.TEXT:
        if not isinstance(item, str) or check_text(item) or (p.choices and item not in p.choices):
            return None
        return item if p.form is None or p.form.pattern.fullmatch(item) else None
    wanted = int if kind is Kind.INTEGER else (int, float)
    if not isinstance(item, wanted) or isinstance(item, bool) or p.limits is None:
        return None
    low, high = p.limits
    if not low <= item <= high:  # so is NaN
        return None
    return item if kind is Kind.INTEGER else float(item)


def _hint(p: Parameter, item: object) -> str:
    """Say why a text may have arrived as something else."""
    if p.kind.item is not Kind.TEXT:
        return ''
    if isinstance(item, bool | int | float):
        return ' (in YAML, put it in quotes)'
    reason = check_text(item) if isinstance(item, str) else None
    return f' ({reason})' if reason else ''


def type_properties(texts: Iterable[str], fault: Fault) -> dict[str, Property]:
    """Return session properties given as ``key=value``, without the bad ones."""
    properties: dict[str, Property] = {}
    for text in texts:
        key, _, value = text.partition('=')
        reason = check_property_name(key)
        if key != key.strip():
            reason = 'the key begins or ends with a blank'
        elif key in properties:
            reason = f'{show(key)} stands twice'
        if reason:
            fault(f'holds {show(text)}: {reason}')
        else:
            properties[key] = typed_property(value)
    return properties


def check_gateway(text: str, fault: Fault) -> str:
    """Return a gateway's URL without a trailing "/"."""
    reason = ''
    try:
        url = urllib.parse.urlsplit(text)
        if re.search(r'[^!-~]', text):
            reason = 'must not hold blanks or characters beyond ASCII'
        elif url.scheme not in ('http', 'https') or not url.hostname:
            reason = 'must be an http or https URL'
        elif '@' in url.netloc:
            reason = 'must not hold a user or a password; the key belongs in application_key_file'
        elif '?' in text or '#' in text:
            reason = 'must not hold "?" or "#"'
        elif url.port == 0:
            reason = 'must have a port from 1 to 65535, or none'
    except ValueError as error:  # the brackets of an IPv6 address, a port beyond 65535
        reason = f'must be an http or https URL ({error})'
    if reason:
        fault(f'is {show(re.sub("//.*@", "//…@", text))}: it {reason}')
    return text.rstrip('/')


def expand_path(text: str, fault: Fault) -> Path | None:
    """Return a path with "~" expanded, None for an empty text."""
    if not text.startswith('~'):
        return Path(text) if text else None
    if text.split('/')[0] == '~' and not os.environ.get('HOME'):
        fault(f'is {show(text)}, and the environment has no HOME: write the whole path')
        return None
    expanded = os.path.expanduser(text)  # noqa: PTH111 (leaves a user that it does not know)
    if expanded.startswith('~'):
        fault(f'is {show(text)}: there is no such user; write the whole path')
    return Path(expanded)
