"""``c3d``: finds the module of the command that was asked for, runs it, and turns what it raises into one line.

A command is a module with ``add_parser(commands)``, which adds one parser and sets its default ``run``, a
function that takes the parsed arguments and returns the exit code. Only the module of the command that was
asked for is imported, so that ``c3d --help`` answers at once and needs no library.

Exit codes of every command: 0 well; 3 well, but something was lost or is wrong in the data; 1 failed; 2 usage.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

from cognitive3d_ros import __version__
from cognitive3d_ros.errors import Cognitive3dError, ParameterError
from cognitive3d_ros.log import printable

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

WELL, FAILED, USAGE, LOSSY = 0, 1, 2, 3

# Command: (module, what it does), in the order of the help.
COMMANDS = {
    'record': ('record', 'record bags and logs as sessions, without ROS'),
    'gateway': ('gateway', 'take what recorders send, on a machine of your own'),
    'spool': ('spool', 'look after a spool: status, verify, recover, drain, retry'),
    'sessions': ('sessions', 'list the sessions of a spool or a store'),
    'show': ('show', 'summarise a session'),
    'verify': ('verify', 'check that a session is whole'),
    'export': ('export', 'write a session in another format: mcap, rosbag2, rawlog, parquet, …'),
    'report': ('report', 'write a session as one HTML file'),
    'markers': ('markers', 'list the annotations and marked regions of a session'),
}

EPILOG = 'Exit codes: 0 well; 3 well, but something was lost or is wrong in the data; 1 failed; 2 usage.'


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``c3d`` with these arguments (default: the process's) and return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    _complete_streams()
    for stream in (sys.stdout, sys.stderr):
        # A name that the terminal cannot show is no reason to fail.
        if hasattr(stream, 'reconfigure'):
            stream.reconfigure(errors='backslashreplace')
    code, complaint = _run(arguments)
    try:
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of our output has seen enough (`c3d show … | head`)
        _silence(sys.stdout)
    except OSError as error:
        _silence(sys.stdout)
        if not complaint:
            code, complaint = FAILED, [f'standard output: {error.strerror}']
    if complaint:
        try:
            print('c3d: ' + '\n  '.join(map(printable, complaint)), file=sys.stderr, flush=True)
        except OSError:
            _silence(sys.stderr)  # the exit code says it
    return code


def _run(arguments: Sequence[str]) -> tuple[int, list[str]]:
    """Run a command; return its exit code, and lines that say why it failed."""
    _take_one_interrupt()
    try:
        args = _parser(_command_of(arguments)).parse_args(arguments)
        code: int = args.run(args)
    except SystemExit as stop:  # argparse's way to end: 0 after --help, 2 after a usage error
        return stop.code if isinstance(stop.code, int) else FAILED, []
    except KeyboardInterrupt:
        return FAILED, ['interrupted']
    except BrokenPipeError:
        return WELL, []
    except ParameterError as error:
        return USAGE, [str(error).partition(': ')[0] + ':', *error.faults]
    except Cognitive3dError as error:
        return FAILED, [str(error)]
    except ModuleNotFoundError as error:
        return FAILED, [_missing(error)]
    except OSError as error:
        where = f'{error.filename}: ' if error.filename else ''
        return FAILED, [f'{where}{error.strerror or error}']
    return code, []


def _complete_streams() -> None:
    """Open what the caller closed (``c3d … >&-``): else the next file that is opened is taken for it."""
    for name, mode in (('stdin', 'r'), ('stdout', 'w'), ('stderr', 'w')):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115, PTH123 - open to the end


def _silence(stream: TextIO) -> None:
    """Let what is still buffered not fail again when the interpreter flushes it."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _take_one_interrupt() -> None:
    """Let the first Ctrl-C interrupt, and no other: that would hit what tidies up after the first."""

    def interrupt(*_: object) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        raise KeyboardInterrupt

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        with contextlib.suppress(ValueError):  # only the main thread is interrupted
            signal.signal(signal.SIGINT, interrupt)


def _command_of(arguments: Sequence[str]) -> str | None:
    """Return the command asked for: the first word that is no option."""
    return next((word for word in arguments if not word.startswith('-')), None)


def _parser(command: str | None) -> argparse.ArgumentParser:
    """Return the parser; of all commands only ``command`` has its own arguments, the others their name."""
    parser = argparse.ArgumentParser(
        prog='c3d',
        description='Record what a robot does as Cognitive3D sessions, and look at such sessions.',
        epilog=EPILOG,
    )
    parser.add_argument('--version', action='version', version=f'c3d {__version__}')
    commands = parser.add_subparsers(title='commands', metavar='COMMAND', required=True)
    for name, (module, does) in COMMANDS.items():
        if name == command:
            importlib.import_module(f'cognitive3d_ros.cli.{module}').add_parser(commands)
        else:
            commands.add_parser(name, help=does)
    return parser


def _missing(error: ModuleNotFoundError) -> str:
    """Say what is not installed, and how to get it."""
    name = (error.name or '').partition('.')[0]
    extras = {'rosbags': 'bags', 'mcap': 'export', 'pyarrow': 'export', 'pandas': 'pandas'}
    extras |= dict.fromkeys(('starlette', 'uvicorn', 'anyio'), 'gateway')
    if name == 'cognitive3d_ros':
        return f'this installation has no {error.name}'
    wanted = f'cognitive3d_ros[{extras[name]}]' if name in extras else name
    return f"the Python package '{name}' is not installed; try: python3 -m pip install '{wanted}'"


if __name__ == '__main__':
    sys.exit(main())
