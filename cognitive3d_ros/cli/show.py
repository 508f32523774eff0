"""``c3d show``: a session at a glance."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cognitive3d_ros.cli.output import (
    add_session,
    length,
    local_time,
    plural,
    print_json,
    printable,
    table,
    utc_time,
)

if TYPE_CHECKING:
    from cognitive3d_ros.cli.main import Commands

_FIRST = 15  # lines of a list that are shown without --all
_MADE_BY = (
    ('c3d.app.name', '{}'),
    ('c3d.version', '{}'),
    ('c3d.ros.distro', 'on ROS {}'),
    ('c3d.ros.rmw', '({})'),
    ('c3d.device.os', 'on {}'),
)


def add_parser(commands: Commands) -> None:
    """Add ``c3d show``."""
    parser = commands.add_parser(
        'show',
        help='summarise a session',
        description='Summarise a session: where and when, its path, events, series and losses.',
    )
    add_session(parser)
    parser.add_argument(
        '--all', action='store_true', help='all events, series and health, and the properties'
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the summary; 3 if anything of the session is missing or cannot be read."""
    from cognitive3d_ros import open_session
    from cognitive3d_ros.session.summary import summary

    facts = summary(open_session(args.session, args.session_id))
    if args.json:
        print_json(facts)
    else:
        first = None if args.all else _FIRST
        print('\n\n'.join(section for section in _sections(facts, first) if section))
    return 3 if facts['faults'] or facts['unaccounted'] else 0


def _sections(facts: Mapping[str, Any], first: int | None) -> Iterator[str]:
    yield _head(facts)
    yield _movement(facts)
    yield _events(facts, first)
    yield _series(facts['series'], first)
    yield _regions(facts['regions'])
    yield _inputs(facts['properties'], first)
    yield _health(facts, everything=first is None)
    if first is None:
        rows = [(key, _value(value)) for key, value in sorted(facts['properties'].items())]
        yield _titled(f'Properties: {len(rows)}', rows)
    unaccounted = [(text,) for text in facts['unaccounted']]
    yield _titled('Not whole, see c3d verify', unaccounted)
    faults = [(fault,) for fault in facts['faults']]
    yield _titled('Cannot be read, see c3d verify', faults)


def _head(facts: Mapping[str, Any]) -> str:
    properties = facts['properties']
    parts = ', '.join(f'{stream} {n}' for stream, n in facts['parts_by_stream'].items())
    made_by = ' '.join(text.format(properties[k]) for k, text in _MADE_BY if k in properties)
    rows = [
        ('name', facts['name'] if facts['name'] != facts['id'] else ''),
        ('comment', facts['comment']),
        ('device', facts['device_id']),
        ('participant', _other(properties.get('c3d.participant.id', ''), facts['device_id'])),
        ('scene', f'{facts["scene_id"]} version {facts["scene_version"]}'),
        ('start', f'{local_time(facts["start"])}  ({utc_time(facts["start"])})'),
        ('length', length(facts['duration'])),
        ('end', facts['state']),
        ('frame', _frame(facts)),
        ('recorded by', made_by),
        ('source', properties.get('c3d.ros.source', '')),
        ('parts', f'{facts["parts"]} ({parts})'),
    ]
    return _titled(f'Session {facts["id"]}', [(key, value) for key, value in rows if value])


def _frame(facts: Mapping[str, Any]) -> str:
    texts = [facts['reference_frame'] or 'no reference frame known']
    if facts['convention']:
        texts.append(f'pose convention {facts["convention"]}')
    gaze = facts['properties'].get('c3d.ros.gaze_frame')
    if gaze:
        texts.append(f'gaze frame {gaze}')
    return ', '.join(texts)


def _movement(facts: Mapping[str, Any]) -> str:
    from cognitive3d_ros.session.summary import metres

    line = facts['pose_timeline']
    rows: list[tuple[object, ...]] = []
    if line['samples']:
        x, y, z = map(metres, line['extent_m'])
        rate = f', {line["rate_hz"]:g} Hz' if line['rate_hz'] else ''
        rows += [
            ('samples', f'{line["samples"]}{rate}, longest gap {line["longest_gap_s"]:.2f} s'),
            (
                'path',
                f'{metres(line["path_m"])} m within {x} x {y} x {z} m (scene x, y, z)',
            ),
        ]
    for each in facts['dynamic_objects']:
        name = f' {each["name"]!r}, mesh {each["mesh"]!r}' if each['mesh'] else ''
        rows.append(('object', f'{each["id"]}{name}: {plural(each["snapshots"], "snapshot")}'))
    return _titled('Poses' if line['samples'] else 'Poses: none', rows, always=True)


def _events(facts: Mapping[str, Any], first: int | None) -> str:
    rows = [
        (
            f'{event["at"]:+.2f} s',
            event['name'],
            _said(event['properties']),
        )
        for event in facts['event_list']
    ]
    return _titled(f'Events: {len(rows)}', rows, first=first, right=(0,))


def _said(properties: Mapping[str, Any]) -> str:
    """Return an event's properties in one line; of an annotation only what it says."""
    if {'annotation_time', 'key', 'value'} <= properties.keys():
        of = properties.get('stream_name')
        return f'{properties["key"]}: {properties["value"]}' + (f' (of {of})' if of else '')
    return ', '.join(f'{key}={_value(value)}' for key, value in properties.items())


def _series(series: Sequence[Mapping[str, Any]], first: int | None) -> str:
    head = ('', 'samples', 'Hz', 'least', 'mean', 'most', 'last')
    keys = ('rate_hz', 'min', 'mean', 'max', 'last')
    rows = [
        (each['name'], each['samples'], *(f'{each[k]:.5g}' if k in each else '' for k in keys))
        for each in series
    ]
    if not rows:
        return ''
    title = f'Series: {len(rows)}'
    return _titled(title, [head, *rows], first=first and first + 1, right=range(1, 7))


def _regions(regions: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        (
            '' if each['index'] is None else each['index'],
            f'{each["start"]:+.2f} s',
            '' if each['stop'] is None else f'{each["stop"]:+.2f} s',
            each['state'],
            each['start_text'],
        )
        for each in regions
    ]
    return _titled(f'Regions: {len(rows)}', rows, right=(0, 1, 2))


def _inputs(properties: Mapping[str, Any], first: int | None) -> str:
    """Return what came in on each input and what became of it, as the recorder accounted for it."""
    from cognitive3d_ros.recording.accounts import PROPERTY

    accounts = sorted((k, v) for k, v in properties.items() if k.startswith(PROPERTY))
    rows = [(name.removeprefix(PROPERTY), text) for name, text in accounts]
    return _titled(f'Inputs: {len(rows)}', rows, first=first)


def _health(facts: Mapping[str, Any], *, everything: bool) -> str:
    """Return the last values; without ``everything`` only those that say that something happened.

    That the recorder counted no loss is told only of a session that is all there.
    """
    from cognitive3d_ros.counters import Count
    from cognitive3d_ros.recording.accounts import LOSSES
    from cognitive3d_ros.session.summary import UPLOAD_BLOCKED, blocked_by

    quiet = {Count.PARTS_WRITTEN.value, Count.PARTS_UPLOADED.value}
    counts = {count.value for count in Count} - quiet
    lost = facts['properties'].get(LOSSES)
    rows = [(LOSSES, lost)] if lost else []
    for name, value in facts['health'].items():
        happened = value > 0 and (name in counts or name == UPLOAD_BLOCKED)
        if everything or happened:
            meaning = f'  {blocked_by(value)}' if name == UPLOAD_BLOCKED else ''
            rows.append((name, f'{value:.12g}{meaning}'))
    if rows or not facts['health'] or facts['faults'] or facts['unaccounted']:
        return _titled('Health', rows)
    return 'Health: the recorder counted no loss'


def _titled(
    title: str,
    rows: Sequence[Sequence[object]],
    *,
    first: int | None = None,
    right: Sequence[int] = (),
    always: bool = False,
) -> str:
    """Return a title and its rows, of a long list the first; nothing if there are none."""
    if not rows:
        return printable(title) if always else ''
    lines = [printable(title), table(rows[:first], right=right, indent=2)]
    if first is not None and len(rows) > first:
        lines.append(f'  … {len(rows) - first} more with --all')
    return '\n'.join(lines)


def _value(value: object) -> str:
    if isinstance(value, bool):
        return 'true' if value else 'false'
    return str(value)


def _other(value: object, usual: object) -> object:
    return '' if value == usual else value
