"""Where the gateway keeps parts: the framed part files of the spool, in the same folders.

::

    <root>/store                               says that this is a store, whatever becomes of the lock
    <root>/lock                                held by the one gateway that serves this store
    <root>/sessions/<session id>/<part file>   as wire/framing.py makes and names them
    <root>/quarantine/                         stored parts that were found damaged when they came again

A part's identity is its session, stream and number. Once :meth:`Store.put` has returned, the part survives a
power cut.
"""

from __future__ import annotations

import contextlib
import enum
import errno
import os
import threading
from pathlib import Path

from cognitive3d_ros.errors import FormatError, GatewayError, NewerFormatError
from cognitive3d_ros.gateway.recent import Recent
from cognitive3d_ros.spool.fs import REAL_FS, Fs, make_folders, replace_file, write_all
from cognitive3d_ros.spool.whose import (
    LOCK,
    LOCK_OF_A_STORE,
    MARK_OF_A_STORE,
    sign_of_a_spool,
)
from cognitive3d_ros.wire.framing import PartHeader, head, parse, part_name, trailer

_MARK = b'The store of a gateway of cognitive3d_ros; a recorder keeps out of it.\n'
_TEMPORARY = '.tmp'
_LOCKS = 64
_CLASSES_OF = {'gaze': ('properties', 'pose')}
"""The classes of which one stream's numbers may be; all other streams have one."""


class Outcome(enum.Enum):
    """What became of a part that was put."""

    STORED = 'stored'
    REPEAT = 'repeat'
    """The same part is there already."""
    CONFLICT = 'conflict'
    """Another body, or one of another scene, is there under the same identity; it stays as it is."""


class Store:
    """The parts of many sessions in a folder. Thread safe; one process owns it until :meth:`close`.

    Raises GatewayError when the folder cannot be used, or is another gateway's or a recorder's.
    """

    def __init__(self, root: Path, *, fs: Fs = REAL_FS) -> None:
        self.root = root
        self._fs = fs
        self._sessions = root / 'sessions'
        self._part_locks = tuple(threading.Lock() for _ in range(_LOCKS))
        self._folder_lock = threading.Lock()
        self._folders = Recent[Path]()  # those whose names are known to be on the disk
        try:
            root.mkdir(parents=True, exist_ok=True)
            if sign := sign_of_a_spool(root):
                raise GatewayError(
                    f'{root} is the spool of a recorder, see {sign}; a store needs its own folder'
                )
            lock = self._take()
            if isinstance(lock, str):
                raise GatewayError(f'{root} is in use by another process ({lock or "not known"})')
            self._lock = lock
            try:
                self._mark()
            except OSError as error:
                if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                    raise  # a full disk is tried again with each part
            self._durable_folder(self._sessions)
        except OSError as error:
            raise GatewayError(f'the store {root} cannot be used: {error.strerror}') from None

    def close(self) -> None:
        """Leave the store to others."""
        self._fs.close(self._lock)

    def put(self, header: PartHeader, body: bytes) -> Outcome:
        """Store a part durably, unless it is there already. Raises OSError when the disk refuses."""
        self._hold()
        try:
            return self._put(header, body)
        except FileNotFoundError:  # somebody has removed a folder by hand
            with self._folder_lock:
                self._folders.clear()
            self._hold()
            self._durable_folder(self._sessions)
            return self._put(header, body)

    def _put(self, header: PartHeader, body: bytes) -> Outcome:
        session_id = header.identity.session_id
        folder = self._sessions / session_id
        key = (session_id, header.stream, header.number)
        with self._part_locks[hash(key) % _LOCKS]:
            self._durable_folder(folder)
            outcome = self._compare(folder, header, body)
            if outcome is Outcome.STORED:
                self._write(
                    folder / part_name(header.stream, header.number, header.klass), header, body
                )
            if outcome is not Outcome.CONFLICT:
                # For a repeat too: whoever stored it first may have died before this.
                self._fs.sync_folder(folder)
        return outcome

    def _take(self) -> int | str:
        """Take the lock; a text says who has it."""
        return self._fs.lock(self.root / LOCK, f'{LOCK_OF_A_STORE}{os.getpid()}\n')

    def _mark(self) -> None:
        """Say durably whose the folder is, unless it says so."""
        path = self.root / MARK_OF_A_STORE
        if not path.is_file():
            self._fs.close(replace_file(self._fs, path, _MARK))

    def _hold(self) -> None:
        """See that the folder is still this store; make its lock and its mark again where they are gone.

        Raises:
            OSError: the disk refuses, or another process has come in meanwhile.
        """
        with self._folder_lock:
            if not self._fs.is_at(self._lock, self.root / LOCK):
                if sign := sign_of_a_spool(self.root):
                    raise OSError(
                        errno.EBUSY, f'a recorder has taken it, see {sign}', str(self.root)
                    )
                make_folders(self._fs, self.root)
                lock = self._take()
                if isinstance(lock, str):
                    raise OSError(errno.EBUSY, f'another process has it ({lock})', str(self.root))
                self._fs.close(self._lock)
                self._lock = lock
            self._mark()

    def _compare(self, folder: Path, header: PartHeader, body: bytes) -> Outcome:
        """Hold a part against what is stored under its identity; STORED means that nothing is."""
        for klass in _CLASSES_OF.get(header.stream, (header.klass,)):
            path = folder / part_name(header.stream, header.number, klass)
            try:
                stored = parse(self._fs.read(path))
            except FileNotFoundError:
                continue
            except NewerFormatError:
                raise  # whole, and not ours to judge
            except FormatError:
                self._set_aside(path)
                continue
            scene = (stored.header.identity.scene_id, stored.header.identity.scene_version)
            same = scene == (header.identity.scene_id, header.identity.scene_version)
            return Outcome.REPEAT if same and stored.body == body else Outcome.CONFLICT
        return Outcome.STORED

    def _write(self, path: Path, header: PartHeader, body: bytes) -> None:
        temporary = path.with_name(path.name + _TEMPORARY)
        start = head(header, len(body))
        fd = self._fs.create(temporary)
        try:
            try:
                write_all(self._fs, fd, start)
                write_all(self._fs, fd, body)
                self._fs.start_writeback(fd)
                write_all(self._fs, fd, trailer(start, body))
                self._fs.sync(fd)
            finally:
                self._fs.close(fd)
            self._fs.rename(temporary, path)
        except OSError:
            with contextlib.suppress(OSError):
                self._fs.remove(temporary)
            raise

    def _set_aside(self, path: Path) -> None:
        """Move a stored part that cannot be read out of the way of the good one that has come."""
        quarantine = self.root / 'quarantine'
        self._durable_folder(quarantine)
        self._fs.rename(path, quarantine / f'{path.parent.name}.{path.name}')
        self._fs.sync_folder(quarantine)

    def _durable_folder(self, folder: Path) -> None:
        """Make a folder whose name survives, and clear it of what a dead process left half written."""
        with self._folder_lock:
            if self._folders.knows(folder):
                return
            with contextlib.suppress(FileExistsError):
                self._fs.make_folder(folder)
            self._fs.sync_folder(folder.parent)
            for entry in self._fs.scan(folder):
                if entry.kind == 'file' and entry.name.endswith(_TEMPORARY):
                    self._fs.remove(folder / entry.name)
            self._folders.add(folder)
