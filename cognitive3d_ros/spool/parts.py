"""Writing one part file durably."""

from __future__ import annotations

import contextlib
from pathlib import Path

from cognitive3d_ros.spool.fs import TEMPORARY, Fs, write_all
from cognitive3d_ros.wire import framing
from cognitive3d_ros.wire.framing import PartHeader, part_name


def write_part(fs: Fs, folder: Path, header: PartHeader, body: bytes) -> int:
    """Write a part into a folder, durably, whole or not at all; return its size in bytes.

    Temporary file in the same folder, sync, rename, sync of the folder. The kernel is asked to write the
    body out while the checksum is computed, which hides most of the checksum's time.

    Raises OSError. A part of the same name may then be there or not: writing it again is always right.
    """
    path = folder / part_name(header.stream, header.number, header.klass)
    temporary = path.with_name(path.name + TEMPORARY)
    head = framing.head(header, len(body))
    fd = fs.create(temporary)
    try:
        try:
            write_all(fs, fd, head)
            write_all(fs, fd, body)
            fs.start_writeback(fd, len(head) + len(body))
            trailer = framing.trailer(head, body)
            write_all(fs, fd, trailer)
            fs.sync(fd)
        finally:
            fs.close(fd)
        fs.rename(temporary, path)
    except OSError:
        with contextlib.suppress(OSError):
            fs.remove(temporary)
        raise
    fs.sync_folder(folder)
    return len(head) + len(body) + len(trailer)
