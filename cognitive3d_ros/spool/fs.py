"""The disk: the only module that opens, renames or syncs files that must survive.

:class:`Fs` is a handful of system calls, so that a test can put one in its place that fails, writes
short or loses power at any of them. Everything raises OSError and nothing else.

What survives a power cut: the content of a file that was synced, under a name whose folder was synced
after it got the name. Nothing else does, in any order.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

_PAGE_BYTES = os.sysconf('SC_PAGE_SIZE')
_WRITE = os.O_WRONLY | os.O_CLOEXEC | os.O_NONBLOCK  # which waits for no reader of a pipe


def open_file(path: Path) -> BinaryIO:
    """Open an ordinary file for reading: the one way in which files of sessions are.

    A pipe, device or socket under the name of one is refused at once, where reading would wait for ever.

    Raises:
        OSError: it cannot be opened, or is none.
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    mode = os.fstat(fd).st_mode
    if not stat.S_ISREG(mode):
        os.close(fd)
        code = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
        why = os.strerror(code) if code == errno.EISDIR else 'no ordinary file'
        raise OSError(code, why, str(path))
    return open(fd, 'rb')  # noqa: PTH123 - a descriptor has no path


class Entry(NamedTuple):
    """One name in a folder; ``kind`` is ``file``, ``folder`` or ``other`` (links are not followed)."""

    name: str
    kind: str
    size_bytes: int


class Fs:
    """The real disk."""

    def make_folder(self, path: Path) -> None:
        """Make one folder; its parent must exist."""
        path.mkdir(mode=0o755)

    def remove_folder(self, path: Path) -> None:
        """Remove an empty folder."""
        path.rmdir()

    def scan(self, path: Path) -> Iterator[Entry]:
        """Give what lies in a folder, in no order. Names that vanish meanwhile are left out."""
        with os.scandir(path) as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):
                    if entry.is_file(follow_symlinks=False):
                        yield Entry(entry.name, 'file', entry.stat(follow_symlinks=False).st_size)
                    else:
                        folder = entry.is_dir(follow_symlinks=False)
                        yield Entry(entry.name, 'folder' if folder else 'other', 0)

    def read(self, path: Path) -> bytes:
        """Return a file's content."""
        with open_file(path) as file:
            return file.read()

    def age_s(self, path: Path, now_s: float) -> float:
        """Return how long before ``now_s`` (epoch) a file was last written."""
        return now_s - path.stat().st_mtime

    def create(self, path: Path) -> int:
        """Open an empty file for writing, in the place of one that had the name."""
        return os.open(path, _WRITE | os.O_CREAT | os.O_TRUNC, 0o644)

    def open(self, path: Path) -> int:
        """Open a file that is there, to write at its end."""
        return os.open(path, _WRITE | os.O_APPEND)

    def write(self, fd: int, data: bytes | memoryview) -> int:
        """Write at the end of what was written; return how much was taken, maybe not all."""
        return os.write(fd, data)

    def start_writeback(self, fd: int, size_bytes: int = 0) -> None:
        """Ask the kernel to begin writing out now; returns at once. A hint, so it never fails.

        ``size_bytes``: how much of the file (0: all). The page in which it ends is left out if more is to
        be written into it, which would have to wait until the page is out, and write it a second time.
        """
        whole_pages = size_bytes // _PAGE_BYTES * _PAGE_BYTES
        if size_bytes == 0 or whole_pages > 0:
            with contextlib.suppress(OSError):
                os.posix_fadvise(fd, 0, whole_pages, os.POSIX_FADV_DONTNEED)

    def sync(self, fd: int) -> None:
        """Return when what was written is on the disk."""
        os.fdatasync(fd)

    def close(self, fd: int) -> None:
        """Close a file."""
        os.close(fd)

    def rename(self, old: Path, new: Path) -> None:
        """Give a file another name, in one step, in the place of one that had it."""
        old.rename(new)

    def remove(self, path: Path) -> None:
        """Remove a file."""
        path.unlink()

    def sync_folder(self, path: Path) -> None:
        """Return when the names in a folder are on the disk."""
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        except OSError as error:
            if error.errno != errno.EINVAL:  # some network file systems cannot, and need not
                raise
        finally:
            os.close(fd)

    def free_bytes(self, path: Path) -> int:
        """Return what an ordinary user may still write to the file system."""
        stat = os.statvfs(path)
        return stat.f_bavail * stat.f_frsize

    def is_at(self, fd: int, path: Path) -> bool:
        """Say whether a name is still that of an open file; True where the disk does not tell."""
        try:
            return os.path.samestat(os.fstat(fd), path.stat())
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            return True  # the next call that matters fails alike

    def lock(self, path: Path, text: str) -> int | str:
        """Take the lock file; return its descriptor, or what the process that has it wrote there.

        The lock is the kernel's (flock), so that it ends with its process; the text is a hint for people.
        """
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            try:
                return os.read(fd, 100).decode(errors='replace').strip()
            finally:
                os.close(fd)
        except OSError:
            os.close(fd)
            raise
        with contextlib.suppress(OSError):  # a full disk: the lock holds without its hint
            os.ftruncate(fd, 0)
            os.pwrite(fd, text.encode(), 0)
        return fd

    def lock_holder(self, path: Path) -> str | None:
        """Return what the process that has a lock file wrote there; None if no process has it."""
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return os.read(fd, 100).decode(errors='replace').strip() or 'unknown'
        finally:
            os.close(fd)
        return None


REAL_FS = Fs()
TEMPORARY = '.tmp'
"""What a file's name ends in until its content is on the disk."""


def make_folders(fs: Fs, path: Path) -> None:
    """Make a folder and those above it, durably, where they are not there; also what a dead link names."""
    try:
        fs.make_folder(path)
    except FileExistsError:
        target = Path(os.path.realpath(path))
        if target != path:
            make_folders(fs, target)
        return
    except FileNotFoundError:
        make_folders(fs, path.parent)
        fs.make_folder(path)
    fs.sync_folder(path.parent)


def write_all(fs: Fs, fd: int, data: bytes | memoryview) -> None:
    """Write all of ``data``, in as many calls as it takes."""
    taken = fs.write(fd, data)
    while taken < len(data):
        data = memoryview(data)[taken:]
        taken = fs.write(fd, data)
        if taken == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def replace_file(fs: Fs, path: Path, data: bytes) -> int:
    """Put ``data`` durably in the place of a file, whole or not at all; return its open descriptor."""
    temporary = path.with_name(path.name + TEMPORARY)
    fd = fs.create(temporary)
    try:
        write_all(fs, fd, data)
        fs.sync(fd)
        fs.rename(temporary, path)
        fs.sync_folder(path.parent)
    except OSError:
        fs.close(fd)
        with contextlib.suppress(OSError):
            fs.remove(temporary)
        raise
    return fd
