"""The records of cameras and lidars: a day of them is 40 GB, so only what is small about each is held.

The parts of a stream are read once, when a record of it is first asked for, and what is kept of each record
is where it lies, its time and its pose. The record itself is read again when it is asked for, with the part it
lies in; a few parts stay in memory, for neighbours.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from cognitive3d_ros.errors import FormatError, ReadError
from cognitive3d_ros.session.files import PartFile
from cognitive3d_ros.session.fixed import fixed
from cognitive3d_ros.session.records import (
    CameraFrame,
    LaserScan,
    PointCloud,
    SensorRecord,
)
from cognitive3d_ros.session.streams import MOST_S, Floats, LazyColumn, split
from cognitive3d_ros.session.timeline import readable
from cognitive3d_ros.wire.records import (
    CameraFrameRecord,
    CameraPart,
    LidarPart,
    LidarScanRecord,
    PointCloudData,
)

CAMERA, LIDAR = 'camera', 'lidar'

_PARTS_HELD = 4
_MS_PER_S = 1000

WireRecord = CameraFrameRecord | LidarScanRecord
ReadPart = Callable[[PartFile], Sequence[WireRecord] | None]
"""Reads the records of a part; None, and reported, if it cannot be read."""
Report = Callable[[str], None]
S = TypeVar('S', bound=SensorRecord)


def read_records(stream: str, session_id: str, number: int, body: bytes) -> Sequence[WireRecord]:
    """Return the records in the body of a camera or lidar part; raises FormatError."""
    try:
        from cognitive3d_ros.wire import capnp_codec  # only here: most sessions need no pycapnp
    except ImportError as error:
        raise FormatError(f'pycapnp is wanted to read it ({error}): pip install pycapnp') from None
    part: CameraPart | LidarPart
    if stream == CAMERA:
        part = camera = capnp_codec.decode_camera(body)
        records: Sequence[WireRecord] = camera.frames
    else:
        part = lidar = capnp_codec.decode_lidar(body)
        records = lidar.scans
    if (part.session_id, part.part) != (session_id, number):
        raise FormatError(f'its body is part {part.part} of session {part.session_id}')
    return records


def quick_times(part: PartFile) -> Floats | None:
    """Return when the records of a part were, in seconds, from its first bytes; None if they do not tell.

    A part that is damaged further on may say something here and hold nothing that can be read.
    """
    try:
        from cognitive3d_ros.wire import capnp_codec

        times = capnp_codec.record_times(part.read_start())
    except (ImportError, FormatError, OSError):
        return None  # it is reported where it is read
    return None if times is None else times / _MS_PER_S


def record_fault(record: WireRecord) -> str:
    """Return why a record is not what it says, or nothing. Points are not decompressed."""
    if record.time_ms / _MS_PER_S >= MOST_S:
        return f'{record.time_ms} ms is no time'
    if isinstance(record, CameraFrameRecord):
        return ''
    if isinstance(record.scan, PointCloudData):
        from cognitive3d_ros.wire import clouds

        try:
            clouds.check(record.scan)
        except FormatError as error:
            return str(error)
        return ''
    rays, intensities = len(record.scan.ranges), len(record.scan.intensities)
    return '' if intensities in (0, rays) else f'{intensities} intensities for {rays} rays'


def read_points(record: WireRecord) -> None:
    """Read the points of a cloud; raises FormatError where they cannot be read. Other records have none."""
    if isinstance(record, LidarScanRecord) and isinstance(record.scan, PointCloudData):
        from cognitive3d_ros.wire import clouds

        clouds.read(record.scan)


def sensor_name(record: WireRecord) -> str:
    """Return the camera's or the lidar's name."""
    return record.camera_id if isinstance(record, CameraFrameRecord) else record.sensor_id


class Sensor(LazyColumn[S], Generic[S]):
    """The records of one camera or lidar, as they arrived; each is read when it is asked for.

    One that cannot be read any more, as when its part was delivered meanwhile, is passed over in iteration
    and reported; by its index it raises ReadError.
    """

    def __init__(self, name: str, stream: SensorStream) -> None:
        """Take the stream that its records are in."""
        self.name = name
        self._stream = stream

    @cached_property
    def _rows(self) -> NDArray[np.intp]:
        return self._stream.rows_of(self.name)

    @cached_property
    def time(self) -> Floats:  # type: ignore[override]
        """(N,), seconds since the epoch."""
        return fixed(self._stream.time[self._rows])

    @cached_property
    def seq(self) -> NDArray[np.int64]:
        """(N,), 0, 1, 2 … in a session that is whole."""
        return fixed(self._stream.seq[self._rows])

    @cached_property
    def pose(self) -> NDArray[np.float32]:
        """(N, 7), ``px py pz qx qy qz qw``, scene axes."""
        return fixed(self._stream.pose[self._rows])

    def _item(self, index: int) -> S:
        record: Any = self._stream.record(int(self._rows[index]))
        return record  # type: ignore[no-any-return]

    @property
    def loaded(self) -> bool:
        """Whether all of it was read."""
        return self._stream.indexed

    def _streamed(self) -> Iterator[S]:
        found: Any = self._stream.streamed(self.name)
        return found  # type: ignore[no-any-return]

    def __iter__(self) -> Iterator[S]:
        return self.at(range(len(self))) if self.loaded else self._streamed()

    def columns(self) -> dict[str, Any]:
        """Return ``time``, ``seq``, and the pose ``px py pz qx qy qz qw``; not what the records hold."""
        return {'time': self.time, 'seq': self.seq, **split('px py pz qx qy qz qw', self.pose)}

    @property
    def kinds(self) -> frozenset[type[SensorRecord]]:
        """The kinds of its records."""
        return frozenset(self._stream.kinds[row] for row in self._rows)

    def by_time(self) -> Iterator[S]:
        """Give the records by their stamps, which need not ascend as they arrive."""
        return self.at(np.argsort(self.time, kind='stable'))

    def at(self, indices: Iterable[int]) -> Iterator[S]:
        """Give the records at indices; those that cannot be read any more are passed over."""
        return readable(self._item, indices)


class _Index(NamedTuple):
    """What is held of each record."""

    names: tuple[str, ...]
    kinds: list[type[SensorRecord]]
    rows: NDArray[np.int64]
    """(N, 5): milliseconds, seq, which of the names, which part, where in it."""
    pose: NDArray[np.float32]


class SensorStream:
    """All records of the stream ``camera`` or ``lidar``, in the order in which they arrived."""

    def __init__(
        self, parts: Sequence[PartFile], read: ReadPart, convention: str, report: Report
    ) -> None:
        self._parts = parts
        self._read = read
        self._convention = convention
        self._report = report
        self._held: OrderedDict[int, Sequence[WireRecord] | None] = OrderedDict()

    @property
    def indexed(self) -> bool:
        """Whether all its parts were read."""
        return '_index' in self.__dict__

    @property
    def names(self) -> tuple[str, ...]:
        """The sensors that it has records of."""
        return self._index.names

    @property
    def kinds(self) -> list[type[SensorRecord]]:
        """The kind of each record."""
        return self._index.kinds

    @cached_property
    def time(self) -> Floats:
        """(N,), seconds since the epoch."""
        return fixed(self._index.rows[:, 0] / _MS_PER_S)

    @property
    def seq(self) -> NDArray[np.int64]:
        """(N,)."""
        return self._index.rows[:, 1]

    @property
    def pose(self) -> NDArray[np.float32]:
        """(N, 7)."""
        return self._index.pose

    def rows_of(self, name: str) -> NDArray[np.intp]:
        """Return the rows of one sensor, maybe none."""
        code = self.names.index(name) if name in self.names else -1
        return np.flatnonzero(self._index.rows[:, 2] == code)

    def streamed(self, name: str) -> Iterator[SensorRecord]:
        """Read the records of one sensor part by part, before there is an index."""
        for part in range(len(self._parts)):
            for _, record in self._sound(part):
                if sensor_name(record) == name:
                    yield to_record(record, self._convention)

    def only(self, keep: NDArray[np.bool_]) -> SensorStream:
        """Return some of the records: those where ``keep`` (N,) is true."""
        index = self._index
        kinds = [index.kinds[row] for row in np.flatnonzero(keep).tolist()]
        kept = SensorStream(self._parts, self._read, self._convention, self._report)
        kept._index = index._replace(
            kinds=kinds, rows=fixed(index.rows[keep]), pose=fixed(index.pose[keep])
        )
        return kept

    @cached_property
    def _index(self) -> _Index:
        names: dict[str, int] = {}
        kinds: list[type[SensorRecord]] = []
        poses = [np.empty((0, 7), np.float32)]
        rows = [np.empty((0, 5), np.int64)]
        for part in range(len(self._parts)):
            sound = list(self._sound(part))
            kinds += [_kind(record) for _, record in sound]
            poses.append(_table([record.pose for _, record in sound], 7, np.float32))
            held = [
                (r.time_ms, r.seq, names.setdefault(sensor_name(r), len(names)), part, at)
                for at, r in sound
            ]
            rows.append(_table(held, 5, np.int64))
        every = fixed(np.concatenate(rows)), fixed(np.concatenate(poses))
        return _Index(tuple(names), kinds, *every)

    def _sound(self, part: int) -> Iterator[tuple[int, WireRecord]]:
        """Give the records of a part that can be read, each with its place in it; report the others."""
        for at, record in enumerate(self._records(part) or ()):
            fault = record_fault(record)
            if fault:
                self._report(f'{self._parts[part].label}: record {at}: {fault}')
            else:
                yield at, record

    def record(self, row: int) -> SensorRecord:
        """Read a record. Raises ReadError if it cannot be read any more."""
        part, at = self._index.rows[row, 3:].tolist()
        records = self._records(part)
        if records is None or at >= len(records):
            raise ReadError(f'{self._parts[part].label} cannot be read any more')
        return to_record(records[at], self._convention)

    def _records(self, part: int) -> Sequence[WireRecord] | None:
        if part in self._held:
            self._held.move_to_end(part)
        else:
            self._held[part] = self._read(self._parts[part])
            if len(self._held) > _PARTS_HELD:
                self._held.popitem(last=False)
        return self._held[part]


def to_record(record: WireRecord, convention: str) -> SensorRecord:
    """Return a record as the reader gives it."""
    where: dict[str, Any] = {
        'time': record.time_ms / _MS_PER_S,
        'seq': record.seq,
        'frame_id': record.frame_id,
        'pose': record.pose,
        'convention': convention,
    }
    if isinstance(record, CameraFrameRecord):
        return CameraFrame(
            **where,
            camera_id=record.camera_id,
            format=record.format,
            width=record.width,
            height=record.height,
            data=record.data,
            hfov_degrees=record.hfov_degrees,
            vfov_degrees=record.vfov_degrees,
        )
    scan: Any = record.scan
    content = {name: getattr(scan, name) for name in type(scan).__dataclass_fields__}
    for name, value in content.items():
        if isinstance(value, np.ndarray):
            content[name] = fixed(value)  # its part is held for the next who asks
    return _kind(record)(**where, sensor_id=record.sensor_id, **content)  # type: ignore[call-arg]


def to_wire(record: SensorRecord) -> WireRecord:
    """Return a record as it is on the wire."""
    time_ms = round(record.time * _MS_PER_S)
    if isinstance(record, CameraFrame):
        return CameraFrameRecord(
            record.camera_id,
            time_ms,
            record.seq,
            record.frame_id,
            record.pose,
            record.format,
            record.width,
            record.height,
            record.data,
            record.hfov_degrees,
            record.vfov_degrees,
        )
    assert isinstance(record, LaserScan | PointCloud)
    return LidarScanRecord(
        record.sensor_id, time_ms, record.seq, record.frame_id, record.pose, record.content
    )


def _table(rows: list[Any], width: int, dtype: Any) -> NDArray[Any]:
    return np.array(rows, dtype=dtype).reshape(-1, width)


def _kind(record: WireRecord) -> type[SensorRecord]:
    if isinstance(record, CameraFrameRecord):
        return CameraFrame
    return PointCloud if isinstance(record.scan, PointCloudData) else LaserScan
