"""The application key: where it comes from, and how little is kept of it.

It is no parameter, never logged, never part of an exception's text, and never stored in a part.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from cognitive3d_ros.upload.endpoint import header_safe

VARIABLE = 'C3D_APPLICATION_KEY'
KEY_SHOWN_AS = '<application key>'
_MAX_KEY_BYTES = 4096
_SHORT_CHARS = 8
_BEFORE, _AFTER = r'(?<![\w-])', r'(?![\w-])'  # what a word begins and ends at


@dataclass(frozen=True, slots=True)
class NoKey:
    """There is no key, and why."""

    reason: str


def without_key(text: str, key: str) -> str:
    """Return a text with a key blotted out; one so short that words hold it by chance only as a word."""
    pattern = re.escape(key)
    if len(key) < _SHORT_CHARS:
        pattern = f'{_BEFORE}{pattern}{_AFTER}'
    return re.sub(pattern, KEY_SHOWN_AS, text, flags=re.ASCII)


def key_fault(key: str) -> str | None:
    """Return why a text can be no application key, without showing it; None if it can."""
    if not key:
        return 'it is empty'
    if not header_safe(key) or len(key) > _MAX_KEY_BYTES:
        return 'it holds more than a key: spaces, lines or letters beyond ASCII'
    return None


KeySource = Callable[[], 'str | NoKey']
"""Gives the key as it is now; asked again whenever the gateway may have changed its mind."""


class ApplicationKey:
    """Reads the key from ``application_key_file``, or from the environment where no file is named."""

    def __init__(
        self, file: Path | str | None = None, environ: Mapping[str, str] = os.environ
    ) -> None:
        self._file, self._environ = str(file or ''), environ

    def __call__(self) -> str | NoKey:
        """Read the key, freshly each time."""
        if self._file:
            where = f'application_key_file {self._file}'
            try:
                with Path(self._file).expanduser().open('rb') as stream:
                    text = stream.read(_MAX_KEY_BYTES + 1).decode('utf-8-sig', 'replace')
            except (OSError, ValueError, RuntimeError) as error:
                return NoKey(f'{where}: {getattr(error, "strerror", None) or error}')
        else:
            where = VARIABLE
            text = self._environ.get(VARIABLE, '')
        key = text.strip()
        if not key:
            empty = f'{where} is empty' if self._file else 'there is none'
            return NoKey(f'{empty}: set application_key_file, or {VARIABLE} in the environment')
        if key_fault(key) or len(text) > _MAX_KEY_BYTES:
            return NoKey(f'{where} holds more than a key: spaces, lines or letters beyond ASCII')
        return key
