"""``c3d record``: recordings made by ROS become sessions in a spool."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from cognitive3d_ros.cli.output import (
    add_json,
    interruptible,
    length,
    path_argument,
    plural,
    print_json,
    printable,
)
from cognitive3d_ros.errors import BagError, Cognitive3dError, SessionError, SpoolError
from cognitive3d_ros.log import StderrLog

if TYPE_CHECKING:
    from cognitive3d_ros.bags.door import BagResult
    from cognitive3d_ros.cli.main import Commands


def add_parser(commands: Commands) -> None:
    """Add ``c3d record``."""
    parser = commands.add_parser(
        'record',
        help='record bags and logs as sessions, without ROS',
        description='Record each bag as one session, as the node would have, as fast as the disk takes it.',
    )
    parser.add_argument(
        'bags',
        type=path_argument,
        nargs='+',
        metavar='BAG',
        help='a ROS 1 bag, a rosbag2 folder, an MCAP or SQLite file of one, or an MRPT rawlog',
    )
    parser.add_argument(
        '--params',
        type=path_argument,
        required=True,
        metavar='FILE',
        help='the parameters, as for the node cognitive3d',
    )
    parser.add_argument(
        '--spool',
        type=path_argument,
        required=True,
        metavar='DIR',
        help='where the sessions are stored, whatever spool.dir says',
    )
    parser.add_argument(
        '--odom-tf',
        metavar='TOPIC',
        help='derive tf from this nav_msgs/Odometry, for frames that the bag has no tf of',
    )
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Record; 1 if a bag could not be recorded, 3 if something of one was lost or is wrong in it."""
    from cognitive3d_ros.bags.door import record_bag
    from cognitive3d_ros.memory import keep_freed_memory
    from cognitive3d_ros.parameters import load_yaml, parse

    keep_freed_memory()
    config = parse({**load_yaml(args.params), 'spool.dir': str(args.spool)})
    facts: list[dict[str, object]] = []
    code = 0
    for bag in args.bags:
        progress = _no_progress if args.json or not sys.stderr.isatty() else _progress(bag.name)
        outcome: BagResult | Cognitive3dError
        try:
            with interruptible():
                outcome = record_bag(
                    bag,
                    config,
                    args.spool,
                    odom_tf=args.odom_tf,
                    log=_Warnings(),
                    on_progress=progress,
                )
        except (BagError, SessionError, SpoolError) as error:
            outcome = error  # the next bag may be better
        progress(1.0)
        if isinstance(outcome, Cognitive3dError):
            print(f'c3d: {printable(bag.name)}: {printable(outcome)}', file=sys.stderr)
            facts.append({'source': bag.name, 'error': str(outcome)})
            code = 1
            continue
        facts.append(dataclasses.asdict(outcome))
        if not args.json:
            print(_told(outcome))
        if outcome.lossy and code == 0:
            code = 3
    if args.json:
        print_json({'recordings': facts})
    return code


class _Warnings(StderrLog):
    """What is told of a session is in the result: only what went wrong is worth a line before it."""

    def info(self, text: str) -> None:
        """Say nothing."""


def _no_progress(_: float) -> None:
    """Show nothing."""


def _progress(name: str) -> Callable[[float], None]:
    """Return what shows the progress in a terminal, on a line that it clears when all is done."""

    def show(done: float) -> None:
        text = f'\r{printable(name)}: {done:.0%}' if done < 1 else '\r\x1b[K'
        print(text, end='', file=sys.stderr, flush=True)

    return show


def _told(result: BagResult) -> str:
    """Return what became of a recording, in lines."""
    frame = f' in {result.reference_frame}' if result.reference_frame else ''
    lines = [
        f'{result.source}: session {result.session_id}, {length(result.session_s)} long',
        f'  {plural(result.pose_samples, "pose sample")}{frame}, {plural(result.events, "event")}',
        f'  {result.messages} of {plural(result.in_bag, "message")} used',
    ]
    if result.pose_failures:
        lines.append(f'  {plural(result.pose_failures, "pose tick")} without a sample')
    dropped = result.dropped_records + result.dropped_events
    if dropped:
        lines.append(f'  {plural(dropped, "record")} dropped: see c3d show')
    for topic, count in sorted(result.unreadable.items()):
        lines.append(f'  {plural(count, "message")} on {topic} could not be read')
    if result.not_held:
        lines.append(f'  not in the session: {", ".join(result.not_held)}')
    lines += [f'  {problem}' for problem in result.problems]
    return '\n'.join(printable(line) for line in lines)
