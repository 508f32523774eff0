"""What the commands share: how a session is named, and how facts are printed."""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path

from cognitive3d_ros.log import printable as printable

_EVERY_S = 0.1


def path_argument(text: str) -> Path:
    """Return the path that an argument names; an empty one, of a variable that is not set, is refused."""
    if not text:
        raise argparse.ArgumentTypeError('is empty: a path is wanted')
    return Path(text)


def result_argument(text: str) -> Path:
    """Return the path of a result; ``-`` is refused, which elsewhere means standard output."""
    if text == '-':
        raise argparse.ArgumentTypeError(
            "'-' is no name: a result is a file or a folder, ./- is one"
        )
    return path_argument(text)


def add_session(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that name a session, and ``--json``."""
    parser.add_argument(
        'session',
        type=path_argument,
        metavar='SESSION',
        help="a spool, a gateway's store, the folder of a session, or loose part files",
    )
    parser.add_argument(
        '--session', dest='session_id', metavar='ID', help='which one, if there are several'
    )
    add_json(parser)


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add ``--json``."""
    parser.add_argument('--json', action='store_true', help='print the facts as JSON')


def print_json(facts: object) -> None:
    """Print facts as JSON that any reader takes: a number that JSON does not have is ``null``."""
    try:
        print(json.dumps(facts, indent=2, allow_nan=False))
    except ValueError:
        print(json.dumps(_known(facts), indent=2, allow_nan=False))


def _known(value: object) -> object:
    """Return facts with None for what is infinite or not a number."""
    if isinstance(value, Mapping):
        return {key: _known(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_known(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def table(rows: Iterable[Sequence[object]], *, right: Sequence[int] = (), indent: int = 0) -> str:
    """Return rows as aligned columns; those in ``right`` are aligned to the right."""
    cells = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = []
    for row in cells:
        padded = [
            cell.rjust(width) if index in right else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append(' ' * indent + '  '.join(padded).rstrip())
    return '\n'.join(lines)


def local_time(seconds: float) -> str:
    """Return an instant as the clock on this wall shows it, with its offset."""
    return datetime.fromtimestamp(seconds).astimezone().strftime('%Y-%m-%d %H:%M:%S %z')


def utc_time(seconds: float) -> str:
    """Return an instant in UTC."""
    return datetime.fromtimestamp(seconds, timezone.utc).strftime('%Y-%m-%d %H:%M:%SZ')


def length(seconds: float) -> str:
    """Return a length of time: ``1:02:03.4``."""
    tenths = round(seconds * 10)
    sign, tenths = ('-', -tenths) if tenths < 0 else ('', tenths)
    minutes, tenths = divmod(tenths, 600)
    hours, minutes = divmod(minutes, 60)
    return f'{sign}{hours}:{minutes:02d}:{tenths // 10:02d}.{tenths % 10}'


def plural(count: int, word: str) -> str:
    """Return ``1 part`` or ``2 parts``."""
    return f'{count} {word}' if count == 1 else f'{count} {word}s'


@contextlib.contextmanager
def bar(name: str, *, quiet: bool = False) -> Iterator[Callable[[float], None] | None]:
    """Give what shows progress, 0 to 1, on a line of standard error that is cleared at the end.

    None where nobody looks: no terminal, or ``quiet``.
    """
    if quiet or not sys.stderr.isatty():
        yield None
        return
    shown_s = 0.0

    def show(done: float) -> None:
        nonlocal shown_s
        now_s = time.monotonic()
        if now_s - shown_s >= _EVERY_S:
            shown_s = now_s
            print(f'\r{printable(name)}: {done:.0%}', end='', file=sys.stderr, flush=True)

    try:
        yield show
    finally:
        print('\r\x1b[K', end='', file=sys.stderr, flush=True)


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Let SIGTERM end the block as Ctrl-C does, so that what was written so far goes away.

    From then on it is ignored: a second one would hit what tidies up, or says what was done.
    """

    def stop(*_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGTERM) is stop:
            signal.signal(signal.SIGTERM, before)
