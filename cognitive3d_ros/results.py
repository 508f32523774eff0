"""Results appear whole or not at all: they are written in a folder of their own beside where they belong."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from cognitive3d_ros.errors import ExportError
from cognitive3d_ros.session.files import JOURNAL, is_session_folder
from cognitive3d_ros.spool.fs import REAL_FS
from cognitive3d_ros.wire.framing import parse_part_name

_WORK: Final = '.c3d-export-'
BESIDE: Final = re.compile(r'.*_[0-9]{6,}(_[0-9]+)?\.(jpg|bin)')
"""The names of the files that a rawlog has in a folder beside it."""
_BAG_FACT: Final = re.compile(r'^\s*session_id: ', re.MULTILINE)
"""What the metadata of a rosbag2 folder says if an export made it."""
_MOST_METADATA_BYTES: Final = 16 << 20


@contextlib.contextmanager
def written(
    out: Path, *, replace: bool, adds: bool = False, parts: Sequence[str] = ()
) -> Iterator[Path]:
    """Give an empty folder; what lies in it when the block ends well is moved beside ``out``.

    That is ``out`` itself, a file or a folder, and whatever else belongs to it. Where the block raises, nothing
    appears. With ``adds`` the files of a folder ``out`` are put into the one that is there already.

    ``parts`` are the names of what a result can have in it, or without ``adds`` beside it: what an earlier one
    had of them is removed with it.

    ``replace`` puts a result in the place of a file, or of a folder that an export made and that holds nothing
    else. Never of anything in a spool or a store, nor of a part of a session.

    Raises:
        ExportError: something is there already that is not to be replaced, or the disk refused.
    """
    out = place(out)
    _check_place(out)
    if adds:
        _check_folder(out)
    else:
        _check_target(out, replace=replace)
    if not out.parent.is_dir():
        raise ExportError(f'{out.parent} is no folder: {out.name} cannot be written there')
    try:
        with work_folder(out.parent) as work:
            yield work
            _put(work, out, parts, replace=replace, adds=adds)
    except (OSError, sqlite3.Error) as error:
        raise ExportError(f'{out} could not be written: {_why(error)}') from error


def _why(error: Exception) -> str:
    """Return what the disk refused, and where; the names of the work folder say nothing to anybody."""
    number = getattr(error, 'errno', None)
    why = os.strerror(number) if number else str(error)
    where = str(getattr(error, 'filename', None) or '')
    return f'{where}: {why}' if where and _WORK not in where else why


def place(out: Path) -> Path:
    """Return a result's path with the name that it has in its folder. Raises ExportError where it has none."""
    out = out.resolve() if out.name in ('', '..') else out.absolute()
    if not out.name:
        raise ExportError(f'{out} is no name for a file or a folder')
    return out


def _check_place(out: Path) -> None:
    """Raise ExportError for what lies in a spool or a store, and for the name of a part."""
    if parse_part_name(out.name) is not None or out.name == JOURNAL:
        raise ExportError(f'{out.name} is the name of a part of a session: give another one')
    where = Path(os.path.realpath(out))
    holding = next((each for each in (where, *where.parents) if _holds_sessions(each)), None)
    if holding is not None or _holds_sessions(where / 'sessions'):
        raise ExportError(
            f'{out} cannot be written: sessions are kept in {holding or where}, give a place outside of it'
        )


def _holds_sessions(folder: Path) -> bool:
    """Say whether a folder is a spool, the store of a gateway, or one that either keeps sessions in."""
    if is_session_folder(folder):
        return True
    if folder.name == 'sessions':
        with contextlib.suppress(OSError):
            return any(map(is_session_folder, folder.iterdir()))
    is_owned = any((folder / name).exists() for name in ('lock', 'last_second', 'store'))
    return is_owned and (folder / 'sessions').is_dir()


def _check_target(target: Path, *, replace: bool) -> None:
    """Raise ExportError for something that is there and not to be replaced."""
    if not os.path.lexists(target):
        return
    if not replace:
        raise ExportError(
            f'{target} is there already: give another name, or --force to replace it'
        )
    if target.is_symlink() or target.is_file():
        return
    if not target.is_dir():
        raise ExportError(f'{target} is no ordinary file: it is not replaced')
    if not _is_result(target):
        raise ExportError(
            f'{target} is a folder that no export of one session made, or that holds more: '
            'it is not replaced'
        )


def _check_folder(path: Path) -> None:
    """Raise ExportError for what is to be a folder, and is something else."""
    if path.exists() and not path.is_dir():
        raise ExportError(f'{path} is a file: a folder of tables of many sessions is wanted')


def _is_result(folder: Path) -> bool:
    """Say whether an export made a folder, and nothing else lies in it."""
    with os.scandir(folder) as entries:
        found = list(entries)
    names = [entry.name for entry in found]
    if not all(entry.is_file(follow_symlinks=False) for entry in found):
        return False
    if folder.name.endswith('_Images') or not names:
        return all(BESIDE.fullmatch(name) for name in names)
    metadata = folder / 'metadata.yaml'
    if 'metadata.yaml' not in names or metadata.stat().st_size > _MOST_METADATA_BYTES:
        return False
    made = _BAG_FACT.search(metadata.read_text('utf-8', 'replace')) is not None
    return made and all(name.endswith('.db3') for name in names if name != 'metadata.yaml')


@contextlib.contextmanager
def work_folder(parent: Path) -> Iterator[Path]:
    """Give a folder that is gone afterwards; those that killed processes left behind go before.

    Its lock is the kernel's, and ends with the process: a process's number would tell nothing about one in
    another container. Where a file system knows no locks, none is taken for left behind.
    """
    for left in parent.glob(f'{_WORK}*'):
        with contextlib.suppress(OSError), _locked(left):
            shutil.rmtree(left, ignore_errors=True)
    with contextlib.ExitStack() as stack:
        work = None
        while work is None:
            work = Path(tempfile.mkdtemp(prefix=f'{_WORK}{os.getpid()}-', dir=parent))
            stack.callback(shutil.rmtree, work, ignore_errors=True)
            try:
                stack.enter_context(_locked(work))
            except (BlockingIOError, FileNotFoundError):
                work = None  # another export came between, and took it for left behind
            except OSError:
                pass
        yield work


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold a folder's lock. Raises OSError where another process does, and where there are none."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        folder.stat()  # raises if it went meanwhile
        yield
    finally:
        os.close(fd)


def _put(work: Path, out: Path, parts: Sequence[str], *, replace: bool, adds: bool) -> None:
    """Move what was made to its place, durably; all of it or nothing."""
    if adds:
        made = work / out.name
        moves = [(each, out / each.relative_to(made)) for each in _files(made)]
    else:
        # What belongs to the result first: the result itself says that all is there.
        every = sorted(work.iterdir(), key=lambda each: (each.name == out.name, each.name))
        moves = [(each, out.with_name(each.name)) for each in every]
    for source, target in moves:
        _check_target(target, replace=replace)
        for folder in target.relative_to(out.parent).parents:
            _check_folder(out.parent / folder)
        for file in _files(source) if source.is_dir() else [source]:
            _sync(file)
    left = _left(out, parts, {target for _, target in moves}, adds=adds)
    for target in left:
        _check_target(target, replace=replace)
    old = work / '.replaced'
    old.mkdir()
    done: list[tuple[Path, Path | None]] = []
    try:
        for number, (source, target) in enumerate(moves):
            target.parent.mkdir(parents=True, exist_ok=True)
            before = old / str(number) if os.path.lexists(target) else None
            if before is not None:
                _keep(target, before, source)
            done.append((target, before))
            REAL_FS.rename(source, target)
            REAL_FS.sync_folder(target.parent)
        for number, target in enumerate(left, len(moves)):
            before = old / str(number)
            done.append((target, before))
            REAL_FS.rename(target, before)
            REAL_FS.sync_folder(target.parent)
    except BaseException:
        for target, before in reversed(done):
            _take_back(target, before)
        raise
    for target in left:
        with contextlib.suppress(OSError):  # up to the folder that holds something else
            for folder in target.relative_to(out if adds else out.parent).parents[:-1]:
                (out / folder).rmdir()


def _left(out: Path, parts: Sequence[str], again: set[Path], *, adds: bool) -> list[Path]:
    """Return what an earlier result has left of the parts that are not made again."""
    where = out if adds else out.parent
    there = [where / each for each in parts if os.path.lexists(where / each)]
    if not adds:  # what lies beside a result may be somebody else's
        there = [each for each in there if out.is_file() and each.is_dir() and _is_result(each)]
    return [each for each in there if each not in again]


def _keep(target: Path, before: Path, source: Path) -> None:
    """Keep what is to be replaced, until all is in its place."""
    if target.is_symlink() or target.is_file():
        with contextlib.suppress(OSError):  # some file systems know no links
            os.link(target, before, follow_symlinks=False)
        if not source.is_dir():
            return  # it is replaced in one step
        target.unlink()
    else:
        REAL_FS.rename(target, before)  # no folder can be put in the place of one


def _take_back(target: Path, before: Path | None) -> None:
    """Put what was there before a result in its place again."""
    with contextlib.suppress(OSError):
        if before is not None and not os.path.lexists(before):
            return
        if target.is_dir() and not target.is_symlink():
            shutil.rmtree(target)
        elif before is None or before.is_dir():
            target.unlink(missing_ok=True)
        if before is not None:
            REAL_FS.rename(before, target)


def _files(folder: Path) -> list[Path]:
    return sorted(each for each in folder.rglob('*') if each.is_file())


def _sync(file: Path) -> None:
    fd = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        REAL_FS.sync(fd)
    finally:
        os.close(fd)
