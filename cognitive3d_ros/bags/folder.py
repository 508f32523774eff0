"""rosbag2 folders: what ``metadata.yaml`` says, and what is there without it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

import yaml

from cognitive3d_ros.errors import BagError

METADATA = 'metadata.yaml'
_STORAGE = re.compile(r'\.(mcap|db3)(\.zstd)?$')


@dataclass(frozen=True, slots=True)
class Folder:
    """The files of a rosbag2 folder in their order.

    ``distro`` is empty where none is named; ``compressed``: each message by itself, with zstd.
    """

    files: tuple[Path, ...]
    distro: str
    compressed: bool
    problems: tuple[str, ...]


def look(folder: Path) -> Folder:
    """Find the files of a rosbag2 folder. A recorder that is killed leaves no ``metadata.yaml``.

    Raises:
        BagError: it holds none, or is compressed in a way that is not known.
    """
    there = sorted((path for path in folder.iterdir() if _STORAGE.search(path.name)), key=_order)
    try:
        said = _metadata(folder / METADATA)
    except ValueError as error:
        if not there:
            raise BagError(
                f'{folder} is no rosbag2 folder: it holds no .mcap or .db3 file, and {error}'
            ) from None
        found = f'its {len(there)} files are read in the order of their numbers'
        return Folder(tuple(there), '', compressed=False, problems=(f'{error}; {found}',))
    named = [folder / PurePath(name).name for name in said.get('relative_file_paths') or ()]
    missing = [path.name for path in named if not path.exists()]
    mode = str(said.get('compression_mode') or 'none').lower()
    form = said.get('compression_format') or 'zstd'
    if mode not in ('none', 'file', 'message') or form != 'zstd':
        raise BagError(f'{folder} is compressed with {form!r} by {mode!r}: only zstd is read')
    files = tuple(path for path in named if path.exists())
    if not files:
        raise BagError(f'{folder} holds none of the files that its {METADATA} names: {missing}')
    return Folder(
        files,
        distro=str(said.get('ros_distro') or ''),
        compressed=mode == 'message',
        problems=(f'{", ".join(missing)} of {folder.name} is missing',) if missing else (),
    )


def _metadata(path: Path) -> dict[str, Any]:
    """Return what ``metadata.yaml`` says of the recording; raises ValueError."""
    try:
        content = yaml.safe_load(path.read_text('utf-8'))
        said = content['rosbag2_bagfile_information']
        if not isinstance(said, dict):
            raise TypeError
    except OSError as error:
        raise ValueError(f'{METADATA} cannot be read ({error.strerror})') from None
    except (yaml.YAMLError, ValueError, KeyError, TypeError):
        raise ValueError(f'{METADATA} is not what rosbag2 writes') from None
    return said


def _order(path: Path) -> tuple[list[int], str]:
    """Order by the numbers in a name: run_2.mcap comes before run_10.mcap."""
    return [int(digits) for digits in re.findall(r'\d+', path.name)], path.name
