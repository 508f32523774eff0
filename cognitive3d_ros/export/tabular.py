"""What the formats of tables share: where their files lie, and how rows are counted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cognitive3d_ros.export.job import Job
from cognitive3d_ros.session.session import Session
from cognitive3d_ros.session.tables import Rows, Table, tables

_NOT_RECORDS = ('properties', 'regions', 'gaze')  # the last are of records that are counted


def table_rows(job: Job) -> Iterator[Table]:
    """Give the tables of the session; the records in their batches are counted as they are taken."""
    job.expect_all()
    for table in tables(job.session, job.known_axes()):
        yield (
            table
            if table.name in _NOT_RECORDS
            else Table(table.name, table.columns, _Counted(job, table))
        )


class _Counted:
    """Batches of a table that are counted when they have been used."""

    def __init__(self, job: Job, table: Table) -> None:
        self._job = job
        self._table = table

    def __call__(self) -> Iterator[Rows]:
        for rows in self._table.batches():
            yield rows
            self._job.step(len(rows['time']))


def partition(job: Job, work: Path, table: str) -> Path:
    """Return the folder of the session's rows in a table, and make it."""
    folder = work / job.name / _partition(job.session, table)
    folder.mkdir(parents=True)
    return folder


def all_files(session: Session, name: str) -> list[str]:
    """Return where the files of this name lie that a session can have, one for each table."""
    return [f'{_partition(session, table.name)}/{name}' for table in tables(session, None)]


def _partition(session: Session, table: str) -> str:
    return f'{table}/device_id={session.device_id}/session_id={session.id}'
