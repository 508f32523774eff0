"""``c3d report``: a session as one HTML file."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from cognitive3d_ros.cli.output import (
    add_session,
    bar,
    interruptible,
    print_json,
    printable,
    result_argument,
)

if TYPE_CHECKING:
    from cognitive3d_ros.cli.main import Commands

DESCRIPTION = """\
Write a session as one HTML file that opens in any browser, without a network: its path from above with events
and marked regions, series over time, pictures along the way, points that lidars saw, health and properties.
Exit code 0: all of it is there; 3: something is missing or cannot be read, and the report says what.
"""


def add_parser(commands: Commands) -> None:
    """Add ``c3d report``."""
    parser = commands.add_parser(
        'report', help='write a session as one HTML file', description=DESCRIPTION
    )
    add_session(parser)
    parser.add_argument(
        '-o', '--output', type=result_argument, required=True, metavar='FILE', help='report.html'
    )
    parser.add_argument('--force', action='store_true', help='replace a file that is there')
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write the report; 3 if something of the session is missing."""
    from cognitive3d_ros import open_session
    from cognitive3d_ros.report import make_report
    from cognitive3d_ros.results import place, written
    from cognitive3d_ros.session.verify import Kind

    session = open_session(args.session, args.session_id)
    with (
        interruptible(),
        written(args.output, replace=args.force) as work,
        bar(args.output.name, quiet=args.json) as progress,
    ):
        report = make_report(session, progress=progress)
        (work / place(args.output).name).write_text(report.page, 'utf-8')
    wrong = [finding for finding in report.findings if finding.kind is not Kind.NOTE]
    size = args.output.stat().st_size
    if args.json:
        found = [each.text for each in wrong]
        print_json({'id': session.id, 'output': str(args.output), 'bytes': size, 'wrong': found})
    else:
        told = f'{size / 1e6:.1f} MB' if size >= 100_000 else f'{size / 1e3:.0f} KB'
        print(f'{printable(args.output)}: {told}, session {printable(session.id)}')
        for each in wrong:
            print(f'  {each.kind.value}: {printable(each.text)}')
    return 3 if wrong else 0
