"""``c3d gateway``: take what recorders send, on a machine of your own."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from cognitive3d_ros.cli.output import path_argument, printable
from cognitive3d_ros.memory import GIVE_BACK_S, give_freed_memory_back, keep_freed_memory

if TYPE_CHECKING:
    from cognitive3d_ros.cli.main import Commands

DESCRIPTION = """\
Take what recorders send, and keep it in a folder: for development, for tests, and for sites that keep their
data. No account is needed. A part is on the disk before it is acknowledged, and a repeat is stored once.
Point recorders at it with the parameter gateway: http://<host>:<port>. Look at what came with
c3d sessions DIR and c3d show DIR. Ctrl-C or SIGTERM stops it.
"""


def add_parser(commands: Commands) -> None:
    """Add ``c3d gateway``."""
    parser = commands.add_parser(
        'gateway',
        help='take what recorders send, on a machine of your own',
        description=DESCRIPTION,
    )
    parser.add_argument(
        '--store', type=path_argument, required=True, metavar='DIR', help='where it is kept'
    )
    parser.add_argument(
        '--host', default='127.0.0.1', help='address to listen on (%(default)s); others need a key'
    )
    parser.add_argument(
        '--port',
        type=int,
        default=8765,
        help='port to listen on (%(default)s); 0 takes a free one',
    )
    parser.add_argument(
        '--key',
        default=os.environ.get('C3D_APPLICATION_KEY'),
        help="the recorders' application key (default: the environment's C3D_APPLICATION_KEY)",
    )
    parser.add_argument(
        '--remote-variables',
        type=path_argument,
        metavar='FILE',
        help='JSON with abTests and remoteConfigurations, served to every recorder',
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Serve until a signal comes."""
    keep_freed_memory()
    from cognitive3d_ros.gateway.server import running_gateway

    with (
        _signals() as stop,
        running_gateway(
            args.store,
            host=args.host,
            port=args.port,
            key=args.key,
            remote_variables=args.remote_variables,
            log=_Throttle(),
        ) as gateway,
    ):
        access = 'only with the key' if gateway.has_key else 'from any process of this machine'
        print(
            f'{gateway.url} takes parts {access} and keeps them in '
            f'{printable(gateway.store.resolve())}',
            flush=True,
        )
        give_back_at_s = 0.0
        while gateway.alive:
            if stop.wait(0.5):
                return 0
            if time.monotonic() >= give_back_at_s:
                give_back_at_s = time.monotonic() + GIVE_BACK_S
                give_freed_memory_back()
    print('c3d: the gateway ended by itself', file=sys.stderr)
    return 1


@contextlib.contextmanager
def _signals() -> Iterator[threading.Event]:
    """Give an event that SIGINT and SIGTERM set."""
    stop = threading.Event()
    before = {
        number: signal.signal(number, lambda *_: stop.set())
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Throttle:
    """Prints lines, but of a flood of refusals only one a second and how many there were."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._next_s = 0.0
        self._held = 0

    def __call__(self, line: str) -> None:
        with self._lock:
            if line.startswith('refused'):
                now_s = time.monotonic()
                if now_s < self._next_s:
                    self._held += 1
                    return
                self._next_s = now_s + 1
                if self._held:
                    line += f' (and {self._held} more refusals before)'
                    self._held = 0
            print(f'gateway: {printable(line)}', file=sys.stderr, flush=True)
