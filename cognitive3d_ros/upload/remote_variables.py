"""Remote variables: what the dashboard sets for this robot or participant, fetched as a session starts."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from pathlib import Path

from cognitive3d_ros.spool.fs import REAL_FS, Fs, replace_file
from cognitive3d_ros.upload import endpoint, policy
from cognitive3d_ros.upload.exchange import Request, Response, Transport, TransportFault
from cognitive3d_ros.upload.keys import NoKey, without_key

TIMEOUT_S = 3.0
MAX_ANSWER_BYTES = 1 << 20
FILE_NAME = 'remote_variables.json'

Value = int | str | bool | float

_MAX_NAME_CHARS = 128
_INT64 = range(-(1 << 63), 1 << 63)


class Origin(Enum):
    """Where variables come from."""

    GATEWAY = 'gateway'
    KEPT = 'kept'
    NOWHERE = 'nowhere'


@dataclass(frozen=True, slots=True)
class RemoteVariables:
    """Variables by name, where they come from, and what was wrong with those that are missing."""

    values: Mapping[str, Value] = field(default_factory=dict)
    origin: Origin = Origin.NOWHERE
    problems: tuple[str, ...] = ()


def fetch(
    transport: Transport,
    *,
    gateway: str,
    key: str | NoKey,
    identifier: str,
    spool_dir: Path,
    require_ack: bool = True,
    timeout_s: float = TIMEOUT_S,
    fs: Fs = REAL_FS,
) -> RemoteVariables:
    """Ask for the variables of a participant or device; the last answer stands in for one that fails.

    Takes ``timeout_s`` at most, whatever the network does (looking up a name has no time limit of its
    own), and never raises for it. A good answer is kept in ``spool_dir``. The transport should have the
    same time limit, and take answers of :data:`MAX_ANSWER_BYTES`.
    """
    if isinstance(key, NoKey) and not endpoint.is_loopback(gateway):
        return _kept(fs, spool_dir, f'no application key: {key.reason}')
    shown = key if isinstance(key, str) else None
    request = Request(
        'GET',
        endpoint.remote_variables_url(gateway, identifier),
        {'User-Agent': endpoint.USER_AGENT, **endpoint.authorization(shown)},
    )
    answers: list[Response | TransportFault] = []
    asking = threading.Thread(
        target=lambda: answers.append(transport.send(request)),
        name='c3d-remote-variables',
        daemon=True,
    )
    asking.start()
    asking.join(timeout_s)
    if not answers:
        return _kept(fs, spool_dir, f'no answer within {timeout_s:g} s')
    answer = answers[0]
    if isinstance(answer, Response) and shown is not None:
        answer = answer.blotted(partial(without_key, key=shown))
    verdict = policy.classify(answer, require_ack=require_ack, wall_s=0.0)
    if not isinstance(verdict, policy.Delivered) or not isinstance(answer, Response):
        reason = '' if isinstance(verdict, policy.Delivered) else verdict.reason
        return _kept(fs, spool_dir, reason)
    try:
        values, problems = parse(answer.body)
    except ValueError as error:
        return _kept(fs, spool_dir, f'the answer is not what it should be: {error}')
    try:
        fs.close(replace_file(fs, spool_dir / FILE_NAME, answer.body))
    except OSError as error:
        problems += (f'the answer could not be kept: {spool_dir / FILE_NAME}: {error.strerror}',)
    return RemoteVariables(values, Origin.GATEWAY, problems)


def _kept(fs: Fs, spool_dir: Path, problem: str) -> RemoteVariables:
    """Return the last good answer, if there is one."""
    path = spool_dir / FILE_NAME
    try:
        values, problems = parse(fs.read(path))
    except FileNotFoundError:
        return RemoteVariables(problems=(problem,))
    except (OSError, ValueError) as error:
        return RemoteVariables(
            problems=(problem, f'the kept answer is of no use: {path}: {error}')
        )
    return RemoteVariables(values, Origin.KEPT, (problem, *problems))


def parse(answer: bytes) -> tuple[dict[str, Value], tuple[str, ...]]:
    """Return the variables of an answer, and what is wrong with those that cannot be taken.

    A/B tests come first: of two entries with one name the first is taken.

    Raises:
        ValueError: the answer is not a JSON object with ``abTests`` and ``remoteConfigurations``.
    """
    try:
        document = json.loads(answer.decode('utf-8'), parse_constant=_no_number)
    except RecursionError:
        raise ValueError('it is nested too deeply') from None
    if not isinstance(document, dict):
        raise ValueError(f'it is a JSON {type(document).__name__}, not an object')
    values: dict[str, Value] = {}
    problems: list[str] = []
    for part in ('abTests', 'remoteConfigurations'):
        entries = document.get(part, [])
        if not isinstance(entries, list):
            raise ValueError(f'{part} is no list')
        for index, entry in enumerate(entries):
            found = _variable(entry)
            if isinstance(found, str):
                problems.append(f'{part}[{index}]: {found}')
            else:
                values.setdefault(*found)
    return values, tuple(problems)


def _variable(entry: object) -> tuple[str, Value] | str:
    """Return name and value of an entry, or what is wrong with it."""
    if not isinstance(entry, dict):
        return 'it is no object'
    name = entry.get('remoteVariableName')
    if not isinstance(name, str) or not name.isprintable() or not 0 < len(name) <= _MAX_NAME_CHARS:
        return f'remoteVariableName must be 1 to {_MAX_NAME_CHARS} printable characters'
    kind = entry.get('type')
    if not isinstance(kind, str) or kind not in _TYPED:
        return f'{name}: its type is none of {", ".join(_TYPED)}'
    value_name, typed = _TYPED[kind]
    value = typed(entry.get(value_name))
    return f'{name}: {value_name} is no {kind}' if value is None else (name, value)


def _int(value: object) -> int | None:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return (
        value
        if isinstance(value, int) and not isinstance(value, bool) and value in _INT64
        else None
    )


def _float(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def _bool(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _text(value: object) -> str | None:
    if not isinstance(value, str):
        return None
    half = any('\ud800' <= letter <= '\udfff' for letter in value)  # of a character: no UTF-8
    return None if half else value


_TYPED: Mapping[str, tuple[str, Callable[[object], Value | None]]] = {
    'int': ('valueInt', _int),
    'string': ('valueString', _text),
    'boolean': ('valueBoolean', _bool),
    'float': ('valueFloat', _float),
}


def _no_number(text: str) -> object:
    raise ValueError(f'{text} is no JSON')
