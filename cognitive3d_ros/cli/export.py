"""``c3d export``: a session in the formats that people use."""

from __future__ import annotations

import argparse
import functools
import sys
from typing import TYPE_CHECKING

from cognitive3d_ros.cli.output import (
    add_session,
    bar,
    interruptible,
    plural,
    print_json,
    printable,
    result_argument,
)

if TYPE_CHECKING:
    from cognitive3d_ros.cli.main import Commands

DESCRIPTION = """\
Write a session in another format. Poses and points are in REP-103 axes, in the session's reference frame. The
result appears under its name when it is whole; what the format cannot hold is told in a line. parquet and csv
are folders of tables that many sessions can be exported to. Exit code 0: all there is was written; 3: something
of the session is missing, wrong, or cannot be read.
"""


def add_parser(commands: Commands) -> None:
    """Add ``c3d export``."""
    from cognitive3d_ros.conventions import CONVENTIONS
    from cognitive3d_ros.export import FORMATS

    parser = commands.add_parser(
        'export',
        help='write a session in another format',
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog='formats:\n'
        + '\n'.join(f'  {name:<9}{form.what}' for name, form in FORMATS.items()),
    )
    add_session(parser)
    parser.add_argument('--to', required=True, choices=FORMATS, metavar='FORMAT', help='see below')
    parser.add_argument(
        '-o',
        '--output',
        type=result_argument,
        required=True,
        metavar='OUT',
        help='the file or folder',
    )
    parser.add_argument(
        '--force', action='store_true', help='replace a file, or an earlier export, that is there'
    )
    parser.add_argument(
        '--robot-frame',
        type=_frame,
        metavar='NAME',
        help="what mcap, rosbag2, rawlog and pocolog call the robot's frame (default: as the session does)",
    )
    parser.add_argument(
        '--pose-convention',
        choices=CONVENTIONS,
        default='',
        help='that of a session that does not say its own',
    )
    parser.add_argument(
        '--images',
        choices=('external', 'inside'),
        help='where the pictures of a rawlog go (default: a folder beside it)',
    )
    parser.add_argument(
        '--mrpt',
        type=int,
        choices=(2, 3),
        help='the version of MRPT that is to read a rawlog (default: 2)',
    )
    parser.set_defaults(run=functools.partial(run, parser))


def _frame(text: str) -> str:
    if not text.strip() or text.startswith('/') or not text.isprintable():
        raise argparse.ArgumentTypeError(f'{text!r} is no name of a frame')
    return text


def run(parser: argparse.ArgumentParser, args: argparse.Namespace) -> int:
    """Export; 3 if something of the session is missing or wrong."""
    from cognitive3d_ros import open_session
    from cognitive3d_ros.export import FORMATS, Options, export_session
    from cognitive3d_ros.session.verify import known_faults

    chosen = {name: getattr(args, name) for name in ('robot_frame', 'images', 'mrpt')}
    chosen = {name: value for name, value in chosen.items() if value is not None}
    for name in chosen:
        if name not in FORMATS[args.to].options:
            known = ', '.join(to for to, form in FORMATS.items() if name in form.options)
            parser.error(f'--{name.replace("_", "-")} is for {known}: {args.to} has no use for it')
    session = open_session(args.session, args.session_id)
    options = Options(pose_convention=args.pose_convention, **chosen)
    with interruptible(), bar(args.output.name, quiet=args.json) as progress:
        made = export_session(
            session, args.to, args.output, options=options, replace=args.force, progress=progress
        )
    found = known_faults(session)
    if args.json:
        print_json(
            {
                'id': session.id,
                'format': args.to,
                'output': str(made.path),
                'records': made.records,
                'notes': made.notes,
                'missing': [each.text for each in found if each.is_lack],
                'wrong': [each.text for each in found if not each.is_lack],
            }
        )
        return 3 if found else 0
    print(f'{printable(made.path)}: {plural(made.records, "record")} of {printable(session.id)}')
    for note in made.notes:
        print(f'  {printable(note)}')
    for each in found:
        word = 'missing' if each.is_lack else 'wrong'
        print(f'  {word}: {printable(each.text)}', file=sys.stderr)
    return 3 if found else 0
