"""``c3d markers``: the annotations of a session, and the regions that its log markers make."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from cognitive3d_ros.cli.output import add_session, print_json, printable, table

if TYPE_CHECKING:
    from cognitive3d_ros.cli.main import Commands


def add_parser(commands: Commands) -> None:
    """Add ``c3d markers``."""
    parser = commands.add_parser(
        'markers',
        help='list the annotations and marked regions of a session',
        description='List the annotations of a session, and the regions that its log markers make. '
        'Times are seconds from the start of the session.',
    )
    add_session(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print them; 3 if a marker has no meaning, or anything cannot be read."""
    from cognitive3d_ros import open_session
    from cognitive3d_ros.session.summary import region_facts

    session = open_session(args.session, args.session_id)
    start = session.start
    regions = [region_facts(region, start) for region in session.regions()]
    annotations = [
        {
            'at': round(each.annotation_time - start, 5),
            'stream_name': each.stream_name,
            'key': each.key,
            'value': each.value,
        }
        for each in session.annotations
    ]
    faults = [*session.markers.faults, *map(str, session.faults)]
    if args.json:
        facts = {'regions': regions, 'annotations': annotations, 'faults': faults}
        print_json({'id': session.id, **facts})
        return 3 if faults else 0
    if not annotations:
        print(f'{printable(session.id)} has no annotations')
    if regions:
        head = ('region', 'from', 'to', 'state', 'at the start', 'at the end')
        rows = [
            (
                '-' if each['index'] is None else each['index'],
                f'{each["start"]:.2f}',
                '' if each['stop'] is None else f'{each["stop"]:.2f}',
                each['state'],
                each['start_text'],
                each['stop_text'],
            )
            for each in regions
        ]
        print(table([head, *rows], right=(0, 1, 2)), end='\n\n')
    if annotations:
        lines = [
            (f'{each["at"]:.2f}', each['stream_name'] or '-', each['key'], each['value'])
            for each in annotations
        ]
        print(table([('at', 'stream', 'key', 'value'), *lines], right=(0,)))
    for fault in faults:
        print(f'wrong: {printable(fault)}')
    return 3 if faults else 0
