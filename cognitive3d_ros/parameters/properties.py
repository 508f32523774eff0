"""Names and values of session and event properties, wherever a user gives them."""

from __future__ import annotations

import math
import re

Property = str | int | float | bool

RESERVED = 'c3d.'
OPEN_TO_USERS = ('c3d.session_tag.', 'c3d.participant.')

_INTEGER = re.compile(r'-?(0|[1-9][0-9]*)')
_NUMBER = re.compile(r'-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?')
_INT64 = range(-(2**63), 2**63)
_INT64_DIGITS = (
    20  # the longest int64 with its sign; longer ones need not be converted to be judged
)


def typed_property(text: str) -> Property:
    """Return the value that a text stands for, by JSON's grammar.

    An integer within int64 is an int; any other number a float (``1e3``, and an integer beyond int64);
    exactly ``true`` or ``false`` a bool; everything else the text itself, among it ``007``, ``nan``,
    ``True`` and numbers that no double holds.
    """
    if text in ('true', 'false'):
        return text == 'true'
    if _INTEGER.fullmatch(text) and len(text) <= _INT64_DIGITS and int(text) in _INT64:
        return int(text)
    if _NUMBER.fullmatch(text) and math.isfinite(float(text)):
        return float(text)
    return text


def check_property_name(name: str) -> str | None:
    """Return why users may not name a property so, or None if they may."""
    if not name:
        return 'a property needs a name'
    if name.startswith(RESERVED) and not name.startswith(OPEN_TO_USERS):
        return (
            'names that begin with c3d. belong to the recorder, '
            'but for c3d.session_tag.* and c3d.participant.*'
        )
    return check_text(name)


def check_property_value(value: object) -> str | None:
    """Return why a property cannot hold the value, or None if it can."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        return check_text(value)
    if not isinstance(value, int | float):
        return 'a property is a text, a number or a boolean'
    try:
        finite = math.isfinite(value)
    except OverflowError:
        finite = False
    return None if finite else 'a number must be finite, and within what a double holds'


def check_text(text: str) -> str | None:
    """Return why a text cannot be stored as UTF-8 JSON, or None if it can."""
    if '\0' in text:
        return 'a text must not hold the character NUL'
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return f'the character {error.object[error.start]!a} has no meaning alone'
    return None
