"""Whose a folder is that has sessions in it: a recorder's spool, or a gateway's store.

They look alike, and a spool's parts are deleted once they are delivered: a store must never be taken for one.
"""

from __future__ import annotations

import os
from pathlib import Path

from cognitive3d_ros.spool.fs import REAL_FS
from cognitive3d_ros.spool.quarantine import REASON_SUFFIX
from cognitive3d_ros.spool.session import JOURNAL

LAST_SECOND = 'last_second'
LOCK = 'lock'
LOCK_OF_A_STORE = 'gateway, process '
"""How the lock of a gateway's store begins; that of a spool is a number."""
MARK_OF_A_STORE = 'store'
"""The file that a store has from its first opening on, whatever becomes of its lock."""


def is_store(root: Path) -> bool:
    """Say whether a folder is a gateway's, whether it runs or not: by its mark, or its lock."""
    return (root / MARK_OF_A_STORE).is_file() or _lock(root).startswith(LOCK_OF_A_STORE)


def is_spool(root: Path) -> bool:
    """Say whether a folder is a spool: it has sessions, and what a gateway's store has not."""
    ours = (
        os.path.lexists(root / LAST_SECOND)
        or _lock(root).strip().isdigit()
        or _is_quarantine_of_spool(root / 'quarantine')
    )
    return ours and (root / 'sessions').is_dir() and not is_store(root)


def why_no_spool(root: Path) -> str | None:
    """Say why no spool may be opened in a folder; None if one may, or if one is there."""
    if not is_store(root):
        return None
    return (
        f'{root} is the store of a gateway; a spool, from which parts are sent and then '
        'deleted, needs its own folder'
    )


def sign_of_a_spool(root: Path) -> str | None:
    """Return what in a folder only a recorder's spool has; None where there is nothing of the kind."""
    if (root / MARK_OF_A_STORE).is_file():
        return None
    for name in (LAST_SECOND, 'remote_variables.json'):
        if (root / name).exists():
            return name
    if (root / LOCK).is_file():
        lock = (root / LOCK).read_text(errors='replace').strip()
        if lock and not lock.startswith(LOCK_OF_A_STORE):
            return f'lock, which process {lock} has or had'
    quarantine = root / 'quarantine'
    if quarantine.is_dir() and not is_store(root) and not any(quarantine.iterdir()):
        return 'quarantine, which a store has only for a part that is in it'
    journal = next(root.glob(f'sessions/*/{JOURNAL}'), None)
    return None if journal is None else str(journal.relative_to(root))


def _is_quarantine_of_spool(folder: Path) -> bool:
    """Say whether a folder is a recorder's quarantine: it is empty, or there are reasons beside the files."""
    if not folder.is_dir():
        return False
    names = [path.name for path in folder.iterdir()]
    return not names or any(name.endswith(REASON_SUFFIX) for name in names)


def _lock(root: Path) -> str:
    """Return what a folder's lock says; nothing if there is none that can be read."""
    try:
        return REAL_FS.read(root / LOCK).decode('utf-8', 'replace')
    except OSError:
        return ''
