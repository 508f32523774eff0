"""Results appear whole or not at all: they are written in a folder of their own beside where they belong."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from cognitive3d_ros.errors import ExportError
from cognitive3d_ros.spool.fs import REAL_FS


@contextlib.contextmanager
def written(out: Path, *, replace: bool, adds: bool = False) -> Iterator[Path]:
    """Give an empty folder; what lies in it when the block ends well is moved beside ``out``.

    That is ``out`` itself, a file or a folder, and whatever else belongs to it. Where the block raises, nothing
    appears. With ``adds`` the files of a folder ``out`` are put into the one that is there already.

    Raises:
        ExportError: something is there already, and ``replace`` is not set.
    """
    out = out.absolute()
    if out.exists() and not (replace or adds):
        raise ExportError(f'{out} is there already: give another name, or --force to replace it')
    if not out.parent.is_dir():
        raise ExportError(f'{out.parent} is no folder: {out.name} cannot be written there')
    work = Path(tempfile.mkdtemp(prefix='.c3d-export-', dir=out.parent))
    try:
        yield work
        # What belongs to the result first: the result itself says that all is there.
        made = sorted(work.iterdir(), key=lambda each: (each.name == out.name, each.name))
        if adds:
            moves = [
                (each, out / each.relative_to(work / out.name)) for each in _files(work / out.name)
            ]
        else:
            moves = [(each, out.with_name(each.name)) for each in made]
        taken = [target for _, target in moves if target.exists()]
        if taken and not replace:
            raise ExportError(f'{taken[0]} is there already: --force replaces it')
        for source, target in moves:
            _move(source, target, work)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _files(folder: Path) -> list[Path]:
    return sorted(each for each in folder.rglob('*') if each.is_file())


def _move(source: Path, target: Path, work: Path) -> None:
    """Move a file or a folder to its place, durably, in one step."""
    for file in _files(source) if source.is_dir() else [source]:
        fd = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
        try:
            REAL_FS.sync(fd)
        finally:
            os.close(fd)
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.is_dir() or (target.exists() and source.is_dir()):
        target.rename(work / f'{target.name}.replaced')  # no folder can be put in the place of one
    REAL_FS.rename(source, target)
    REAL_FS.sync_folder(target.parent)
