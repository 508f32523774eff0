"""``c3d verify``: check that a session is whole."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from cognitive3d_ros.cli.output import add_session, plural, print_json, printable, table

if TYPE_CHECKING:
    from cognitive3d_ros.cli.main import Commands
    from cognitive3d_ros.session.verify import Finding, Kind

_LINES = 20  # of findings of one kind

DESCRIPTION = """\
Read a session whole and name what is wrong with it: parts that are missing, there twice or unreadable, records
that cannot be read or lie outside the session, a session without an end, parts of several scenes, and what the
recorder itself counted as lost. Exit code 0: nothing; 3: something.
"""


def add_parser(commands: Commands) -> None:
    """Add ``c3d verify``."""
    parser = commands.add_parser(
        'verify', help='check that a session is whole', description=DESCRIPTION
    )
    add_session(parser)
    parser.set_defaults(run=run)


def _rows(findings: list[Finding]) -> Iterator[tuple[str, str]]:
    """Give the lines of the findings; of a kind that fills the screen, how many more there are."""
    told: Counter[Kind] = Counter()
    for each in findings:
        told[each.kind] += 1
        if told[each.kind] <= _LINES:
            yield each.kind.value, each.text
    for kind, count in told.items():
        if count > _LINES:
            yield kind.value, f'… and {count - _LINES} more: --json prints all'


def run(args: argparse.Namespace) -> int:
    """Print the findings; 3 if there are any but notes."""
    from cognitive3d_ros import open_session
    from cognitive3d_ros.session.verify import Kind, verify

    session = open_session(args.session, args.session_id)
    findings = verify(session)
    wrong = [finding for finding in findings if finding.kind is not Kind.NOTE]
    if args.json:
        facts = [{'kind': each.kind.value, 'text': each.text} for each in findings]
        print_json({'id': session.id, 'whole': not wrong, 'findings': facts})
        return 3 if wrong else 0
    if findings:
        print(table(_rows(findings)))
    what = f'{plural(len(session.parts), "part")}, {plural(len(session), "record")}'
    verdict = f'{plural(len(wrong), "thing")} wrong' if wrong else 'nothing wrong'
    print(f'{printable(session.id)}: {what}: {verdict}')
    return 3 if wrong else 0
