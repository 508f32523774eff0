"""``c3d spool``: look after a spool."""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from cognitive3d_ros.cli.output import (
    add_json,
    interruptible,
    path_argument,
    plural,
    print_json,
    printable,
    table,
)
from cognitive3d_ros.log import StderrLog

if TYPE_CHECKING:
    from cognitive3d_ros.cli.main import Commands
    from cognitive3d_ros.spool import Spool
    from cognitive3d_ros.spool.survey import Survey

DESCRIPTION = """\
Look after a spool: what a recorder has recorded and not delivered yet. status and verify only read, also while
the recorder runs. recover, drain and retry need the spool for themselves: stop the recorder first.
"""
DRAIN = """\
Close the sessions that have no end, deliver all there is, and end when nothing is left, or after --timeout.
Where to and with which key say --params, as for the node cognitive3d, or --gateway and --key.
"""


def add_parser(commands: Commands) -> None:
    """Add ``c3d spool`` and its five actions."""
    parser = commands.add_parser(
        'spool',
        help='look after a spool: status, verify, recover, drain, retry',
        description=DESCRIPTION,
    )
    actions = parser.add_subparsers(title='actions', metavar='ACTION', required=True)
    for name, function, does in (
        ('status', status, 'say what waits for delivery, and what lies in quarantine'),
        ('verify', verify, 'read all of it, and name what is wrong'),
        ('recover', recover, 'close the sessions that have no end, as the next start would'),
        ('drain', drain, 'deliver all of it'),
        ('retry', retry, 'put quarantined parts that are whole back'),
    ):
        action = actions.add_parser(
            name,
            help=does,
            description=DRAIN if name == 'drain' else f'{does[0].upper()}{does[1:]}.',
        )
        action.add_argument(
            'spool', type=path_argument, metavar='DIR', help='the spool (spool.dir)'
        )
        if name == 'drain':
            _add_drain(action)
        add_json(action)
        action.set_defaults(run=function)


def _add_drain(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--params', type=path_argument, metavar='FILE', help='the parameters of the node'
    )
    parser.add_argument(
        '--gateway', type=_gateway, metavar='URL', help='instead of the one in the parameters'
    )
    parser.add_argument(
        '--key',
        type=_key,
        help="the application key (default: the parameters', or C3D_APPLICATION_KEY)",
    )
    parser.add_argument(
        '--timeout',
        type=_seconds,
        metavar='S',
        help='give up after this many seconds, with exit code 1',
    )


def _gateway(text: str) -> str:
    """Return a gateway's URL, checked as the parameter is."""
    from cognitive3d_ros.parameters import check_gateway

    faults: list[str] = []
    url = check_gateway(text, faults.append)
    if faults:
        raise argparse.ArgumentTypeError(faults[0])
    return url


def _key(text: str) -> str:
    """Return an application key that can stand in a header."""
    from cognitive3d_ros.upload.keys import key_fault

    if fault := key_fault(text):
        raise argparse.ArgumentTypeError(fault)
    return text


def _seconds(text: str) -> float:
    """Return a time to wait."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not seconds >= 0:  # NaN too
        raise argparse.ArgumentTypeError(f'{text!r}: a number of seconds from 0 is wanted')
    return seconds


def status(args: argparse.Namespace) -> int:
    """Print what the spool holds; 3 if anything is in quarantine."""
    from cognitive3d_ros.spool.survey import survey

    found = survey(args.spool)
    if args.json:
        print_json(
            {
                'parts': found.parts,
                'bytes': found.size_bytes,
                'free_bytes': found.free_bytes,
                'in_use_by': found.owner,
                'sessions': [
                    {
                        'id': session.session_id,
                        'ended': session.ended,
                        'parts': session.parts,
                        'bytes': session.size_bytes,
                    }
                    for session in found.sessions
                ],
                'quarantined': [
                    {'file': file.name, 'reason': file.reason} for file in found.quarantined
                ],
            }
        )
    else:
        _print_status(args.spool, found)
    return 3 if found.quarantined else 0


def _print_status(root: Path, found: Survey) -> None:
    from cognitive3d_ros.wire.framing import CLASSES

    use = f'in use ({found.owner})' if found.owner else 'not in use'
    print(
        f'{printable(root)}: {plural(found.parts, "part")} of {plural(len(found.sessions), "session")}, '
        f'{_megabytes(found.size_bytes)}; {_megabytes(found.free_bytes)} free on the disk; {printable(use)}'
    )
    if found.sessions:
        head = ['session', 'end', 'size', *CLASSES]
        rows = [
            [
                session.session_id,
                'yes' if session.ended else 'no',
                _megabytes(session.size_bytes),
                *(session.parts.get(klass, 0) for klass in CLASSES),
            ]
            for session in found.sessions
        ]
        print(table([head, *rows], right=range(2, len(head)), indent=2))
    if found.quarantined:
        print(f'{plural(len(found.quarantined), "file")} in quarantine:')
        print(table([(file.name, file.reason) for file in found.quarantined], indent=2))


def verify(args: argparse.Namespace) -> int:
    """Print what is wrong; 3 if anything is."""
    from cognitive3d_ros.spool.survey import check, survey

    found = survey(args.spool)
    wrong = list(check(args.spool))
    if args.json:
        print_json({'parts': found.parts, 'whole': not wrong, 'findings': wrong})
        return 3 if wrong else 0
    for finding in wrong:
        print(printable(finding))
    verdict = f'{plural(len(wrong), "thing")} wrong' if wrong else 'nothing wrong'
    print(f'{printable(args.spool)}: {plural(found.parts, "part")} read: {verdict}')
    return 3 if wrong else 0


def recover(args: argparse.Namespace) -> int:
    """Close the sessions that have no end; 3 if anything was not as it should be, 1 if one stays open."""
    spool = _open(args.spool)
    try:
        closed = _close_sessions(spool)
        left = _left_open(spool)
        quarantined = _quarantined(spool)
    finally:
        spool.close()
    if args.json:
        print_json(
            {
                'closed': closed,
                'left_open': left,
                'faults': spool.faults,
                'quarantined': quarantined,
            }
        )
    else:
        print(f'{printable(args.spool)}: {plural(len(closed), "session")} closed')
        for session_id in closed:
            print(f'  {printable(session_id)}')
    if left:
        return 1
    return 3 if spool.faults or quarantined else 0


def drain(args: argparse.Namespace) -> int:
    """Deliver all there is; 1 if something is left, 3 if something was not as it should be."""
    with interruptible():
        return _drain(args)


def _drain(args: argparse.Namespace) -> int:
    from cognitive3d_ros.parameters import load_yaml, parse
    from cognitive3d_ros.upload.keys import ApplicationKey
    from cognitive3d_ros.upload.transport import RequestsTransport
    from cognitive3d_ros.upload.uploader import Uploader

    if args.params is None and args.gateway is None:
        print('c3d: drain needs --params FILE, or --gateway URL', file=sys.stderr)
        return 2
    config = None if args.params is None else parse(load_yaml(args.params))
    file = None if config is None else config.application_key_file
    key = ApplicationKey(file) if args.key is None else (lambda: str(args.key))
    spool = _open(args.spool)
    transport = (
        RequestsTransport()
        if config is None
        else RequestsTransport(
            timeout_s=config.upload.timeout_s, max_bytes_per_s=config.upload.max_bytes_per_s
        )
    )
    try:
        _close_sessions(spool)
        before = spool.usage()
        uploader = Uploader(
            gateway=args.gateway or (config.gateway if config is not None else ''),
            spool=spool,
            transport=transport,
            key=key,
            ledger=spool.ledger,
            log=StderrLog(),
            require_ack=config is None or config.upload.require_ack_header,
        )
        interrupted = empty = False
        try:
            empty = uploader.drain(float('inf') if args.timeout is None else args.timeout)
        except KeyboardInterrupt:
            interrupted = True  # what has become of it is told first
        left_open = _left_open(spool)
        left, quarantined = spool.usage(), _quarantined(spool)
        delivered = _delivered(spool)
    finally:
        transport.close()
        spool.close()
    if args.json:
        print_json(
            {
                'found': before.parts,
                'delivered': delivered,
                'quarantined': quarantined,
                'left': left.parts,
                'left_bytes': left.size_bytes,
                'left_open': left_open,
                'faults': spool.faults,
                'last_error': uploader.last_error,
            }
        )
    else:
        print(
            f'{printable(args.spool)}: {plural(delivered, "part")} delivered, {quarantined} put in '
            f'quarantine, {left.parts} left'
        )
    if interrupted:
        raise KeyboardInterrupt
    if not empty:
        if uploader.last_error:
            print(f'c3d: {printable(uploader.last_error)}', file=sys.stderr)
        return 1
    if left_open:
        return 1
    return 3 if quarantined or spool.faults else 0


def _left_open(spool: Spool) -> list[str]:
    """Return the sessions that should have been closed, and are not."""
    return sorted(spool.live | {one.session_id for one in spool.unended()})


def retry(args: argparse.Namespace) -> int:
    """Put quarantined parts back; 3 if some stay."""
    spool = _open(args.spool)
    try:
        files = spool.retry()
    finally:
        spool.close()
    back = [name for name, why in files if why is None]
    stay = {name: why for name, why in files if why is not None}
    if args.json:
        print_json({'put_back': back, 'stay': stay})
    else:
        print(f'{printable(args.spool)}: {plural(len(back), "part")} put back, {len(stay)} stay')
        if stay:
            print(table(list(stay.items()), indent=2))
    return 3 if stay else 0


def _open(root: Path) -> Spool:
    """Take possession of a spool that is there; nothing of it is evicted."""
    from cognitive3d_ros.spool import Spool, SpoolLimits
    from cognitive3d_ros.spool.survey import check_is_spool

    check_is_spool(root)
    log = StderrLog()
    return Spool.open(root, limits=SpoolLimits(1 << 62, 0), log=log.warning)


def _close_sessions(spool: Spool) -> list[str]:
    from cognitive3d_ros.recording.recovery import close_unended

    return close_unended(spool, StderrLog())


def _quarantined(spool: Spool) -> int:
    from cognitive3d_ros.counters import Count

    return spool.ledger.value(Count.PARTS_QUARANTINED)


def _delivered(spool: Spool) -> int:
    from cognitive3d_ros.counters import Count

    return spool.ledger.value(Count.PARTS_UPLOADED)


def _megabytes(size_bytes: int) -> str:
    return f'{size_bytes / 1e6:.1f} MB'
