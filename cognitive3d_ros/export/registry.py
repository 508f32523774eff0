"""The formats, and the one way in which all of them are written."""

from __future__ import annotations

import importlib
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cognitive3d_ros.errors import ExportError
from cognitive3d_ros.export.file_names import images_folder
from cognitive3d_ros.export.job import Job, Options, Progress
from cognitive3d_ros.export.tabular import all_files
from cognitive3d_ros.results import place, written
from cognitive3d_ros.session.session import Session
from cognitive3d_ros.session.within import within


@dataclass(frozen=True, slots=True)
class Format:
    """One format: the module that writes it, and what it is.

    ``adds``: the result is a folder that may hold other sessions already, in files of this name.
    ``before_s``: the times that it can hold, in seconds from the epoch up to this. ``options``: the fields of
    :class:`Options` that it knows of.
    """

    module: str
    what: str
    adds: str = ''
    before_s: int | None = None
    options: tuple[str, ...] = ()

    @property
    def path_only(self) -> bool:
        """Whether it holds the pose timeline alone."""
        return self.module in ('tum', 'kitti')


_FOREVER_S = 1 << 62

FORMATS: Mapping[str, Format] = {
    'mcap': Format(
        'mcap_file', 'one MCAP file of ROS 2 messages', before_s=1 << 31, options=('robot_frame',)
    ),
    'rosbag2': Format(
        'rosbag2', 'a folder that ros2 bag plays', before_s=1 << 31, options=('robot_frame',)
    ),
    'rawlog': Format(
        'rawlog',
        "an MRPT rawlog, with its pictures' folder beside it",
        options=('robot_frame', 'images', 'mrpt'),
    ),
    'pocolog': Format(
        'pocolog',
        'a Rock log file, <name>.0.log',
        before_s=1 << 32,
        options=('robot_frame',),
    ),
    'parquet': Format('parquet', 'a folder of tables, for many sessions', adds='data.parquet'),
    'csv': Format('csv_tables', 'the same as CSV files', adds='data.csv'),
    'tum': Format('tum', 'the path as a TUM trajectory', before_s=_FOREVER_S),
    'kitti': Format('kitti', 'the path as KITTI poses'),
}


@dataclass(frozen=True, slots=True)
class Exported:
    """What an export has made: ``notes`` say what the format cannot hold."""

    path: Path
    records: int
    notes: tuple[str, ...]


@np.errstate(over='ignore', invalid='ignore')  # what is no place stays none
def export_session(
    session: Session,
    to: str,
    out: Path,
    *,
    options: Options | None = None,
    replace: bool = False,
    progress: Progress | None = None,
) -> Exported:
    """Write a session in a format of :data:`FORMATS`.

    ``out`` appears when it is whole; what is there already is kept unless ``replace``. What of the session
    cannot be read is left out, and in ``session.faults``.

    Raises:
        ExportError: it cannot be written there, or not in this format, or the disk refused.
        ReadError: the session does not say which axes its poses are in.
    """
    if to not in FORMATS:
        raise ExportError(f'{to!r} is no format: known are {", ".join(FORMATS)}')
    form = FORMATS[to]
    module = importlib.import_module(f'cognitive3d_ros.export.{form.module}')

    def made(job: Job) -> Exported:
        parts = _parts(job, form)
        with written(out, replace=replace, adds=bool(form.adds), parts=parts) as work:
            if form.before_s is not None:
                _leave_out(job, form)
            module.export(job, work)
        return Exported(out, job.done, tuple(job.notes))

    name, options = place(out).name, options or Options()
    try:
        return made(Job(session, name, options, progress))
    except UnicodeEncodeError:  # rare, and looking for it in all texts would cost every export
        encodable = Session(session.files, utf8=True)
        job = Job(encodable, name, options, progress)
        job.note('halves of characters in texts, which UTF-8 cannot hold, are ?')
        exported = made(job)
        session.faults += [fault for fault in encodable.faults if fault not in session.faults]
        return exported


def _parts(job: Job, form: Format) -> list[str]:
    """Return the names of what else a result can consist of."""
    if form.adds:
        return all_files(job.session, form.adds)
    return [images_folder(job.name)] if 'images' in form.options else []


def _leave_out(job: Job, form: Format) -> None:
    """Take the records out of a job whose time its format cannot hold, and note them."""
    assert form.before_s is not None
    job.session, count = within(job.session, 0, form.before_s, sensors=not form.path_only)
    if count:
        to = 'on' if form.before_s == _FOREVER_S else f'to {time.gmtime(form.before_s).tm_year}'
        records = 'record' if count == 1 else 'records'
        job.note(f'not in it: {count} {records} of times that it cannot hold: it knows 1970 {to}')
