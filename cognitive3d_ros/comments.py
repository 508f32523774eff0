"""Comments that hold blocks of parameters, and where the pictures of a log lie that holds none itself.

Both as users of MRPT's rawlogs know them: a comment is text in which blocks in the form of an ini file may
stand, and pictures lie in a folder beside the log.
"""

from __future__ import annotations

import os
import re
from configparser import ConfigParser
from pathlib import Path

_SECTION = re.compile(r'\s*\[([^\]\r\n]*)\]\s*')
_PAIR = re.compile(r'\s*([^=;#\s][^=]*?)\s*=\s*(.*?)\s*')
_FOLDERS = ('{}_Images', '{}_images', '{}_IMAGES')
_LAST_FOLDER = 'Images'


def parse_blocks(text: str) -> ConfigParser:
    """Return the ini blocks in a text: ``[section]`` and ``key = value`` lines, the rest passed over.

    Names are kept as they are written. Of a key that a section has twice the last value counts.
    """
    blocks = ConfigParser(interpolation=None, default_section='')
    blocks.optionxform = str  # type: ignore[assignment, method-assign]
    section = None
    for line in text.splitlines():
        if match := _SECTION.fullmatch(line):
            section = match[1].strip()
            if section and not blocks.has_section(section):
                blocks.add_section(section)
        elif section and (match := _PAIR.fullmatch(line)):
            blocks.set(section, match[1], match[2])
    return blocks


def images_directory(rawlog: str | os.PathLike[str]) -> Path:
    """Return the folder of a log's external pictures.

    That is ``<name>_Images``, ``<name>_images`` or ``<name>_IMAGES`` beside it, the first that is there;
    otherwise ``Images``, be it there or not.
    """
    path = Path(rawlog)
    folders = [path.with_name(form.format(path.stem)) for form in _FOLDERS]
    return next((each for each in folders if each.is_dir()), path.with_name(_LAST_FOLDER))
