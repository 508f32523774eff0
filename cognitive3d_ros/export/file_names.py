"""Names of the files that an export puts beside its result: what was recorded may hold anything."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

_UNSAFE = re.compile('[^A-Za-z0-9._-]+')
_MOST_CHARS = 150  # file systems take 255 bytes


def images_folder(rawlog: str) -> str:
    """Return the name of the folder beside a rawlog: the one in which MRPT looks for its pictures."""
    return f'{Path(rawlog).stem}_Images'


class FileNames:
    """Names for the files of one folder, each given once."""

    def __init__(self) -> None:
        self._given: set[str] = set()
        self._numbers: Counter[str] = Counter()

    def free(self, label: str, rest: str) -> str:
        """Return a name of letters, digits and ``._-`` that was not given yet: ``front_000001.jpg``.

        ``label`` is a name from the session, which may hold a path; ``rest`` what follows it, with a suffix.
        """
        stem, dot, suffix = rest.rpartition('.')
        base = _UNSAFE.sub('_', label)[:_MOST_CHARS].lstrip('.') + stem
        name = f'{base}{dot}{suffix}'
        while name.lower() in self._given:  # some file systems do not tell them apart
            self._numbers[base] += 1
            name = f'{base}_{self._numbers[base] + 1}{dot}{suffix}'
        self._given.add(name.lower())
        return name
