"""``c3d sessions``: list the sessions of a spool or a store."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from cognitive3d_ros.cli.output import (
    add_json,
    length,
    local_time,
    path_argument,
    print_json,
    printable,
    table,
    utc_time,
)

if TYPE_CHECKING:
    from cognitive3d_ros.cli.main import Commands


def add_parser(commands: Commands) -> None:
    """Add ``c3d sessions``."""
    parser = commands.add_parser(
        'sessions',
        help='list the sessions of a spool or a store',
        description='List the sessions of a spool or of a store of c3d gateway, oldest first.',
    )
    parser.add_argument(
        'store',
        type=path_argument,
        metavar='STORE',
        help="a spool, or a gateway's store; loose parts too",
    )
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the list; 3 if anything of a session cannot be read."""
    from cognitive3d_ros import list_sessions
    from cognitive3d_ros.session.summary import row

    facts = [row(session) for session in list_sessions(args.store)]
    if args.json:
        print_json(facts)
    elif facts:
        head = ['session', 'start', '(UTC)', 'length', 'scene', 'parts', 'poses', 'events', 'end']
        print(table([head, *map(_cells, facts)], right=(3, 5, 6, 7)))
    else:
        print(f'{printable(args.store)} holds no sessions yet')
    return 3 if any(each['unreadable'] for each in facts) else 0


def _cells(facts: dict[str, Any]) -> list[object]:
    end = facts['state']
    if facts['unreadable']:
        end += f'; {facts["unreadable"]} unreadable, see c3d verify'
    return [
        facts['id'],
        local_time(facts['start']),
        utc_time(facts['start'])[11:],
        length(facts['duration']),
        f'{facts["scene_id"]} v{facts["scene_version"]}',
        facts['parts'],
        facts['poses'],
        facts['events'],
        end,
    ]
