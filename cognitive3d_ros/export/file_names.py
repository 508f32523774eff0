"""Names of the files that an export puts beside its result: what was recorded may hold anything."""

from __future__ import annotations

import re
from pathlib import Path

_UNSAFE = re.compile('[^A-Za-z0-9._-]+')
_MOST_CHARS = 150  # file systems take 255 bytes


def free_name(folder: Path, label: str, rest: str) -> str:
    """Return a name of letters, digits and ``._-`` for a file that is not in the folder: ``front_000001.jpg``.

    ``label`` is a name from the session, which may hold a path; ``rest`` what follows it, with a suffix.
    """
    stem, dot, suffix = rest.rpartition('.')
    base = _UNSAFE.sub('_', label)[:_MOST_CHARS].lstrip('.') + stem
    name, number = f'{base}{dot}{suffix}', 1
    while (folder / name).exists():
        number += 1
        name = f'{base}_{number}{dot}{suffix}'
    return name
