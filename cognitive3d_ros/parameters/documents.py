"""``config/cognitive3d.yaml`` and ``docs/parameters.md``, made from the declaration."""

from __future__ import annotations

import json
import textwrap

from .declaration import SECTIONS, Family, Parameter, Value

_WIDTH = 92
_GENERATED = 'python -m cognitive3d_ros.parameters'
_YAML_HEAD = f"""\
# All parameters of the recorder, with their defaults. Three have none and must be filled in: device_id,
# scene_id and scene_version. Made by `{_GENERATED} yaml`.
#
# ROS reads YAML in its own way: on, off, yes and no are booleans and 0755 is the integer 493, unless
# they stand in quotes; a list holds one type, so [0.0, 10.5] and not [0, 10.5].
/**:
  ros__parameters:
"""

_TABLE_HEAD = f"""\
# Parameters

<!-- Made by `{_GENERATED} table`. -->

All parameters of the recorder. A name that is not known, a value of the wrong type or out of range and
a required parameter that is missing fail `configure`, with one message that tells every fault. They
are read at `configure`: a change takes effect after `cleanup`. An integer is taken where a number is
wanted. `use_sim_time`, `qos_overrides.*` and `start_type_description_service` belong to the ROS client
library.

ROS reads YAML in its own way: `on`, `off`, `yes` and `no` are booleans and `0755` is the integer 493,
unless they stand in quotes; a list holds one type, so `[0.0, 10.5]` and not `[0, 10.5]`.

Lists name the members of a family; the settings of each follow as `<family>.<name>.<key>`. Names begin
with a letter or digit and hold at most 64 letters, digits, `_` and `-`.
"""


def yaml_text() -> str:
    """Return ``config/cognitive3d.yaml``: every parameter with its default and a comment.

    A line of an example begins with "#" and no blank, so that dropping the "#" puts it in force.
    """
    lines: list[str] = []
    for section in SECTIONS:
        lines += ['', f'# --- {section.title} ---']
        for p in section.parameters:
            lines += ['', *_comment(p), f'{p.name}: {_yaml(p.default)}']
        if section.family:
            lines += _family_lines(section.family)
    return _YAML_HEAD + ''.join(f'    {line}'.rstrip() + '\n' for line in lines)


def table_text() -> str:
    """Return ``docs/parameters.md``."""
    parts = [_TABLE_HEAD]
    for section in SECTIONS:
        parts.append(f'\n## {section.title}\n\n{_table(section.parameters)}')
        if section.family:
            word = section.family.word
            parts.append(
                f'\nOf each member, `{word}.<name>.` and:\n\n{_table(section.family.keys)}'
            )
    return ''.join(parts)


def _comment(p: Parameter) -> list[str]:
    facts = [p.allowed] if p.required or p.allowed not in ('true or false', 'a text') else []
    facts += [f'empty: {p.fallback}'] if p.fallback else []
    facts += [f'for example {_yaml(p.example)}'] if p.example and p.kind.is_list else []
    text = '; '.join(facts)
    text = f'Required: {text}' if p.required else text[:1].upper() + text[1:]
    return [f'# {line}' for line in textwrap.wrap(f'{p.about} {text}' + '.' * bool(text), _WIDTH)]


def _family_lines(family: Family) -> list[str]:
    lines: list[str] = []
    for name, kind in family.examples:
        what = f' and a {kind}' if kind else ''
        lines += ['', f'# The settings of a {family.word}, here called "{name}"{what}:']
        for key in family.keys:
            if key.only in ('', kind):
                setting = f'#{family.word}.{name}.{key.name}: {_yaml(_example(key, kind))}'
                lines += ['', *_comment(key), setting]
    return lines


def _example(key: Parameter, kind: str) -> Value:
    if key.name == 'kind':
        return kind
    return key.default if key.example is None else key.example


def _table(parameters: tuple[Parameter, ...]) -> str:
    rows = ['| parameter | default | must be | |', '|---|---|---|---|']
    for p in parameters:
        only = f' Only of a {p.only}.' if p.only else ''
        rows.append(f'| `{p.name}` | {_default(p)} | {p.allowed} | {p.about}{only} |')
    return ''.join(f'{row}\n' for row in rows)


def _default(p: Parameter) -> str:
    if p.required:
        return 'required'
    if p.default is None:
        return 'not set'
    return p.fallback or f'`{_yaml(p.default)}`'


def _yaml(value: Value) -> str:
    """Return a value in YAML's flow style."""
    if value is None:
        return "''"
    if isinstance(value, tuple):
        return f'[{", ".join(_yaml(item) for item in value)}]'
    if isinstance(value, str):
        return "'{}'".format(value.replace("'", "''"))
    return json.dumps(value)
