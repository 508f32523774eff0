"""An edited copy of a session: records taken out and put in, and the result saved as a session of its own.

The copy refers to the session it was made of: what is not saved changes nothing, and records are read when they
are asked for, as there.
"""

from __future__ import annotations

import bisect
import os
from collections.abc import Iterator, Mapping, Sequence
from configparser import ConfigParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cognitive3d_ros.comments import parse_blocks
from cognitive3d_ros.errors import ExportError, ReadError
from cognitive3d_ros.session.records import (
    CameraFrame,
    DynamicSnapshot,
    Event,
    LaserScan,
    PointCloud,
    PoseSample,
    PropertyValue,
    Record,
    SeriesSample,
)
from cognitive3d_ros.session.saving import check_new, save
from cognitive3d_ros.session.timeline import is_number

if TYPE_CHECKING:
    from cognitive3d_ros.session.session import Session

COMMENT = 'c3d.ros.comment'
_STORED = (
    PoseSample,
    DynamicSnapshot,
    Event,
    SeriesSample,
    CameraFrame,
    LaserScan,
    PointCloud,
)


class EditedSession(Sequence[Record]):
    """The records of a session in time order, to be edited. Made by :meth:`Session.edit`."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._timeline = session.timeline()
        self._times: list[float] = self._timeline.time.tolist()
        # A record by its place in the session, or below zero in what was put in.
        self._refs: list[int] = list(range(len(self._timeline)))
        self._new: list[Record] = []
        self.comment = session.comment
        """The comment, ``c3d.ros.comment``."""

    def __len__(self) -> int:
        return len(self._refs)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self._record(ref) for ref in self._refs[index]]
        return self._record(self._refs[index])

    @property
    def properties(self) -> Mapping[str, PropertyValue]:
        """The session properties, with the comment as it is now."""
        properties = {k: v for k, v in self._session.properties.items() if k != COMMENT}
        return properties | ({COMMENT: self.comment} if self.comment else {})

    def comment_config(self) -> ConfigParser:
        """Return the ini blocks of the comment."""
        return parse_blocks(self.comment)

    def insert(self, record: Record) -> int:
        """Put a record in at its time, behind those of the same time; return its index.

        Raises TypeError for what is no record, or has no time.
        """
        if not isinstance(record, _STORED):
            raise TypeError(f'a record of a session is wanted, not {type(record).__name__}')
        if not is_number(record.time):
            wanted = 'a time in seconds since the epoch is wanted'
            raise TypeError(f'{wanted}, not {record.time!r:.80}')
        at = bisect.bisect_right(self._times, record.time)
        self._new.append(record)
        self._times.insert(at, record.time)
        self._refs.insert(at, -len(self._new))
        return at

    def remove(self, first: int, last: int | None = None) -> None:
        """Take out the record at an index, or those from ``first`` to ``last``, both included.

        Raises IndexError if either is no index.
        """
        last = first if last is None else last
        for index in (first, last):
            if not 0 <= index < len(self):
                raise IndexError(f'record {index} of {len(self)}: there is none')
        if last < first:
            raise IndexError(f'records {first} to {last}: the last is before the first')
        del self._refs[first : last + 1]
        del self._times[first : last + 1]

    def clear(self) -> None:
        """Take out all records."""
        self._refs.clear()
        self._times.clear()

    def set_comment(self, text: str) -> None:
        """Set the comment."""
        self.comment = text

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write it as the folder of a session, which :func:`open_session` opens; return the folder.

        It has the id of the session it was made of, and parts of its own. The folder appears when all is
        written. Raises ExportError if there is something already, or a record cannot be read or written.
        """
        identity = self._session.identity
        if identity is None:
            raise ExportError(f'no part of session {self._session.id} says whose it is')
        manifest = self._session.dynamics.manifest.values()
        save(Path(path), identity, self.properties, manifest, self._records())
        return Path(path)

    def _records(self) -> Iterator[Record]:
        for ref in self._refs:
            try:
                record = self._record(ref)
            except ReadError as error:
                raise ExportError(str(error)) from None
            if ref < 0:
                check_new(record)
            yield record

    def _record(self, ref: int) -> Record:
        record: Record = self._new[-ref - 1] if ref < 0 else self._timeline[ref]
        return record
