"""Where files go that cannot be read, or that the gateway will never take: kept, with the reason."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path

from cognitive3d_ros.errors import FormatError
from cognitive3d_ros.spool import recovery
from cognitive3d_ros.spool.fs import Fs, make_folders, write_all
from cognitive3d_ros.spool.index import session_order
from cognitive3d_ros.wire import framing
from cognitive3d_ros.wire.framing import parse_part_name, part_name

REASON_SUFFIX = '.reason.json'
_COUNT = re.compile(r'\.[0-9]+$')  # of files of one name


class Quarantine:
    """The quarantine folder of a spool. Not thread safe by itself; raises OSError."""

    def __init__(self, fs: Fs, folder: Path) -> None:
        self.folder = folder
        self.size_bytes = 0
        """What all files here take, those with the reasons too."""
        self._fs = fs
        self._unreadable: set[str] = set()  # never to be deleted

    def measure(self) -> None:
        """Find out what the files take; where the disk does not tell, it is what it was."""
        with contextlib.suppress(OSError):
            self.size_bytes = sum(entry.size_bytes for entry in self._fs.scan(self.folder))

    def victims(self, klass: str) -> Iterator[tuple[str, int]]:
        """Give the files that may be evicted, the oldest session's first, with their sizes.

        Those are whole parts of this class: the gateway has refused them. What cannot be read is kept.
        """
        found = []
        for name, kind, size_bytes in self._fs.scan(self.folder):
            words = _COUNT.sub('', name).split('.')
            session_id, part = '.'.join(words[:-4]), parse_part_name('.'.join(words[-4:]))
            if part is None or part.klass != klass or kind != 'file':
                continue
            if framing.is_session_id(session_id):
                found.append((session_order(session_id), part, name, size_bytes))
        for _, _, name, size_bytes in sorted(found):
            if name not in self._unreadable and self._is_whole(name):
                yield name, size_bytes

    def evict(self, name: str, size_bytes: int) -> None:
        """Delete one of :meth:`victims`, and its reason."""
        self._fs.remove(self.folder / name)
        self.size_bytes -= size_bytes
        with contextlib.suppress(OSError):
            self._fs.remove(self.folder / (name + REASON_SUFFIX))

    def _is_whole(self, name: str) -> bool:
        try:
            framing.parse(self._fs.read(self.folder / name))
        except (FormatError, OSError):
            self._unreadable.add(name)
            return False
        return True

    def move(self, path: Path, session_id: str, reason: str) -> str:
        """Move a file (or whatever has its name) here; return the name it has now."""
        name = self._note(path.name, session_id, reason)
        try:
            self._fs.rename(path, self.folder / name)
        except OSError:
            with contextlib.suppress(OSError):
                self._fs.remove(self.folder / (name + REASON_SUFFIX))
            raise
        self.measure()
        return name

    def keep(self, filename: str, data: bytes, session_id: str, reason: str) -> str:
        """Keep a copy of bytes here, durably; return the name they have."""
        name = self._note(filename, session_id, reason)
        self._write(self.folder / name, data)
        self._fs.sync_folder(self.folder)
        self.measure()
        return name

    def put_back(self, sessions: Path) -> list[tuple[str, str | None]]:
        """Move the parts that are whole back to their sessions.

        Returns:
            The name of each file, and why it stays, or None if it was put back.
        """
        entries = sorted(self._fs.scan(self.folder))
        return [
            (name, self._put_back(name, sessions) if kind == 'file' else 'it is no ordinary file')
            for name, kind, _ in entries
            if not name.endswith(REASON_SUFFIX)
        ]

    def _put_back(self, name: str, sessions: Path) -> str | None:
        """Put one file back; return why it stays."""
        fs = self._fs
        try:
            header = framing.parse(fs.read(self.folder / name)).header
        except (FormatError, OSError) as error:
            return getattr(error, 'strerror', None) or str(error)
        if not framing.is_session_id(header.identity.session_id):
            return 'it names no session'
        folder = sessions / header.identity.session_id
        target = folder / part_name(header.stream, header.number, header.klass)
        make_folders(fs, folder)
        found = recovery.look(fs, folder)
        if any(ref[1:3] == (header.stream, header.number) for ref in found.parts):
            return f'part {header.number} of {header.stream} is there already'
        fs.rename(self.folder / name, target)
        fs.sync_folder(folder)
        with contextlib.suppress(FileNotFoundError):
            fs.remove(self.folder / (name + REASON_SUFFIX))
        return None

    def _note(self, filename: str, session_id: str, reason: str) -> str:
        """Write the reason down under a name that is free, and return that name."""
        make_folders(self._fs, self.folder)  # somebody may have removed it
        taken = {entry.name for entry in self._fs.scan(self.folder)}
        name = first = f'{session_id}.{filename}'
        count = 1
        while name in taken or name + REASON_SUFFIX in taken:
            count += 1
            name = f'{first}.{count}'
        note = {'session': session_id, 'file': filename, 'reason': reason}
        text = json.dumps(note, indent=2, ensure_ascii=False)
        self._write(self.folder / (name + REASON_SUFFIX), text.encode(errors='replace'))
        return name

    def _write(self, path: Path, data: bytes) -> None:
        fd = self._fs.create(path)
        try:
            write_all(self._fs, fd, data)
            self._fs.sync(fd)
        finally:
            self._fs.close(fd)
