"""A disk in memory that fails, writes short, or loses power at any call.

After a power cut only what was synced is sure to be there. Of everything else any part may be there: any
subset of the names that were given, taken or changed since their folder was synced, and of content that
was not synced any torn piece. A sync that failed leaves a hole: a later sync that succeeds does not bring
it back.
"""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

from cognitive3d_ros.spool.fs import Entry, Fs


class PowerCut(BaseException):
    """The power went at this call; every later call raises it too."""


class File:
    def __init__(self) -> None:
        self.data = bytearray()
        self.durable = b''
        self.truncated = False  # since the last sync
        self.holes: list[tuple[int, int]] = []

    def truncate(self) -> None:
        self.data.clear()
        self.holes.clear()
        self.truncated = bool(self.durable)

    def sync(self) -> None:
        durable = bytearray(self.data)
        for start, end in self.holes:
            durable[start:end] = bytes(len(durable[start:end]))
        self.durable = bytes(durable)
        self.truncated = False

    def tear(self, chance: random.Random) -> None:
        """Become what a power cut leaves: what was synced, and a torn piece of what was not."""
        if self.truncated and chance.random() < 0.5:
            tail = b''
        else:
            start = 0 if self.truncated else len(self.durable)
            self.durable = self.durable[:start]
            tail = _torn(bytes(self.data[start:]), chance)
        self.durable += tail
        self.data = bytearray(self.durable)
        self.truncated = False
        self.holes.clear()


def _torn(data: bytes, chance: random.Random) -> bytes:
    """Return any piece of what was written and not synced."""
    kind = chance.randrange(4)
    cut = chance.randrange(len(data) + 1)
    if kind == 0:
        return data
    if kind == 1:
        return data[:cut]
    if kind == 2:
        return data[:cut] + bytes(len(data) - cut)  # the length got there, the content did not
    end = min(len(data), cut + 512)
    return data[:cut] + bytes(end - cut) + data[end:]


class Folder:
    def __init__(self) -> None:
        self.names: dict[str, File | Folder] = {}
        self.durable: dict[str, File | Folder] = {}


Change = tuple[Folder, str, 'File | Folder | None']


class FaultyFs(Fs):
    """See the module. ``calls`` counts; ``fault`` is asked before each call, by number and name."""

    def __init__(self, seed: int = 0) -> None:
        self.root = Folder()
        self.calls = 0
        self.fault: Callable[[int, str], int | None] = lambda number, name: None
        """Returns None, an errno, -1 for a power cut, or 0 for a short write."""
        self.free = 1 << 40
        self.chance = random.Random(seed)
        self._pending: list[tuple[Change, ...]] = []
        self._open: dict[int, File] = {}
        self._next = 3
        self._locked: dict[Path, int] = {}  # with the descriptor that has it
        self._dead = False

    # What the tests do

    def kill(self) -> None:
        """Let the process die: descriptors and locks go, the kernel's view stays."""
        self._open.clear()
        self._locked.clear()
        self._dead = False
        self.fault = lambda number, name: None

    def cut_power(self) -> None:
        """Lose power and start again from what is on the disk."""
        for changes in self._pending:
            if self.chance.random() < 0.5:
                for folder, name, node in changes:
                    _apply(folder.durable, name, node)
        self._pending.clear()
        self._settle(self.root, set())
        self.kill()

    def tree(self) -> dict[str, bytes]:
        """Return all files with their content."""
        found: dict[str, bytes] = {}

        def walk(folder: Folder, path: str) -> None:
            for name, node in folder.names.items():
                if isinstance(node, File):
                    found[f'{path}/{name}'] = bytes(node.data)
                else:
                    walk(node, f'{path}/{name}')

        walk(self.root, '')
        return found

    def _settle(self, folder: Folder, seen: set[int]) -> None:
        folder.names = dict(folder.durable)
        for node in folder.names.values():
            if id(node) in seen:
                continue
            seen.add(id(node))
            if isinstance(node, File):
                node.tear(self.chance)
            else:
                self._settle(node, seen)

    # The calls

    def _call(self, name: str, effect: Callable[[int], object] = lambda fault: None) -> bool:
        """Count a call and let it fail, perhaps with an effect; True if a write is to be short."""
        if self._dead:
            raise PowerCut
        self.calls += 1
        fault = self.fault(self.calls, name)
        if fault is None:
            return False
        if fault == 0:
            return True
        if self.chance.random() < 0.5:
            effect(fault)
        if fault < 0:
            self._dead = True
            raise PowerCut
        raise OSError(fault, os.strerror(fault))

    def _folder(self, path: Path) -> Folder:
        node: File | Folder = self.root
        for part in path.parts[1:]:
            if not isinstance(node, Folder):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
            if part not in node.names:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
            node = node.names[part]
        if not isinstance(node, Folder):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
        return node

    def _file(self, path: Path) -> File:
        node = self._folder(path.parent).names.get(path.name)
        if node is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        if isinstance(node, Folder):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        return node

    def _change(self, *changes: Change) -> None:
        for folder, name, node in changes:
            _apply(folder.names, name, node)
        self._pending.append(changes)

    def _descriptor(self, file: File) -> int:
        self._next += 1
        self._open[self._next] = file
        return self._next

    def make_folder(self, path: Path) -> None:
        if path == Path('/'):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        parent = self._folder(path.parent)
        if path.name in parent.names:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        self._call('make_folder')
        self._change((parent, path.name, Folder()))

    def remove_folder(self, path: Path) -> None:
        if self._folder(path).names:
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY))
        self._call('remove_folder')
        self._change((self._folder(path.parent), path.name, None))

    def scan(self, path: Path) -> Iterator[Entry]:
        self._call('scan')
        names = list(self._folder(path).names.items())
        self.chance.shuffle(names)
        for name, node in names:
            if isinstance(node, File):
                yield Entry(name, 'file', len(node.data))
            else:
                yield Entry(name, 'folder', 0)

    def read(self, path: Path) -> bytes:
        self._call('read')
        return bytes(self._file(path).data)

    def age_s(self, path: Path, now_s: float) -> float:
        self._call('age_s')
        self._file(path)
        return 1.0

    def create(self, path: Path) -> int:
        self._call('create')
        folder = self._folder(path.parent)
        node = folder.names.get(path.name)
        if isinstance(node, Folder):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if node is None:
            node = File()
            self._change((folder, path.name, node))
        node.truncate()
        return self._descriptor(node)

    def open(self, path: Path) -> int:
        self._call('open')
        return self._descriptor(self._file(path))

    def write(self, fd: int, data: bytes | memoryview) -> int:
        file = self._open[fd]
        part = bytes(data[: self.chance.randrange(len(data) + 1)])
        if self._call('write', lambda fault: file.data.extend(part)) and len(data) > 1:
            data = data[: len(data) // 2]
        file.data += data
        return len(data)

    def start_writeback(self, fd: int, size_bytes: int = 0) -> None:
        assert fd in self._open

    def sync(self, fd: int) -> None:
        file = self._open[fd]

        def fail(fault: int) -> None:
            if fault > 0:
                file.holes.append((len(file.durable), len(file.data)))

        self._call('sync', fail)
        file.sync()

    def close(self, fd: int) -> None:
        if self._dead:
            raise PowerCut
        del self._open[fd]
        self._locked = {path: holder for path, holder in self._locked.items() if holder != fd}

    def rename(self, old: Path, new: Path) -> None:
        self._call('rename')
        source, target = self._folder(old.parent), self._folder(new.parent)
        node = source.names.get(old.name)
        if node is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(old))
        if isinstance(target.names.get(new.name), Folder):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(new))
        self._change((source, old.name, None), (target, new.name, node))

    def remove(self, path: Path) -> None:
        self._call('remove')
        self._file(path)
        self._change((self._folder(path.parent), path.name, None))

    def sync_folder(self, path: Path) -> None:
        folder = self._folder(path)
        self._call('sync_folder')
        for changes in self._pending[:]:
            if any(changed is folder for changed, _, _ in changes):
                for changed, name, node in changes:
                    _apply(changed.durable, name, node)
                self._pending.remove(changes)

    def free_bytes(self, path: Path) -> int:
        self._call('free_bytes')
        return self.free

    def is_at(self, fd: int, path: Path) -> bool:
        return self._folder(path.parent).names.get(path.name) is self._open[fd]

    def lock(self, path: Path, text: str) -> int | str:
        self._call('lock')
        if path in self._locked:
            return 'somebody'
        folder = self._folder(path.parent)
        if path.name not in folder.names:
            self._change((folder, path.name, File()))
        self._locked[path] = self._descriptor(self._file(path))
        return self._locked[path]


def _apply(names: dict[str, File | Folder], name: str, node: File | Folder | None) -> None:
    if node is None:
        names.pop(name, None)
    else:
        names[name] = node
