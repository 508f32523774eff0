"""What cameras and lidars record in one session: from the arrival of a message to its place in a part.

A message becomes a :class:`Ticket` when it is taken. Its pose is looked up by tf at its stamp, from then on
and for a bounded time, while a worker makes a record of it. A sensor's records are stored in the order in
which their messages arrived, as soon as each has both. Every method runs under the recorder's lock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Final

from cognitive3d_ros.clock import NS_PER_S, Arrival, Placed
from cognitive3d_ros.conventions import Convention
from cognitive3d_ros.convert.outcome import Dropped
from cognitive3d_ros.counters import Drop, Fate, Key, Ledger, LeftOut
from cognitive3d_ros.errors import ParameterError
from cognitive3d_ros.log import Complaints
from cognitive3d_ros.parameters import Config
from cognitive3d_ros.recording.poses import TF_WAIT_NS
from cognitive3d_ros.spool import SessionSpool
from cognitive3d_ros.tf import Miss, Transform, TransformSource
from cognitive3d_ros.wire.records import (
    CameraFrameRecord,
    LaserScanData,
    LidarScanRecord,
    PointCloudData,
    Pose,
)

CAMERA: Final = 'camera'
LIDAR: Final = 'lidar'

_INFO_WAIT_NS: Final = NS_PER_S // 20  # how long a picture waits for its info
_AT_LAST_NS: Final = 1 << 100  # later than any deadline
_MAX_WAITING: Final = 64  # records of a sensor that may wait for tf
_MAX_HELD_BYTES: Final = 64 << 20  # of all sensors
_MISSES: Final = {
    Miss.FUTURE: 'tf did not reach its stamp in time',
    Miss.PAST: 'its stamp is older than what tf knows',
    Miss.UNKNOWN_FRAME: 'tf does not know one of the two',
    Miss.DISCONNECTED: 'nothing links the two',
    Miss.INVALID: 'that is no name of a frame',
}

# The last words of the health series of a camera and a lidar.
_COMMON: Final = (
    ('received', Fate.RECEIVED),
    ('decimated', Fate.DECIMATED),
    ('dropped', Fate.DROPPED),
    ('decode_failures', Fate.DECODE_FAILURES),
    ('pose_failures', Fate.POSE_FAILURES),
)
_SERIES: Final[Mapping[str, tuple[tuple[str, Fate | LeftOut], ...]]] = {
    CAMERA: (*_COMMON, ('frames', Fate.STORED)),
    LIDAR: (*_COMMON, ('scans', Fate.STORED), ('out_of_range', LeftOut.OUT_OF_RANGE)),
}


@dataclass(frozen=True, slots=True)
class Frame:
    """A camera's picture.

    ``field_of_view`` returns None while the picture's own info may still come, but at its last chance.
    """

    width: int
    height: int
    jpeg: bytes
    field_of_view: Callable[[bool], tuple[float, float] | None]


@dataclass(frozen=True, slots=True)
class Sweep:
    """A lidar's scan or cloud; ``left_out`` counts what is not in there, ``warning`` says more of it."""

    scan: LaserScanData | PointCloudData
    left_out: Mapping[LeftOut, int] = field(default_factory=dict)
    warning: str = ''


Made = Frame | Sweep | Dropped
"""What a worker makes of a message."""


def codec() -> ModuleType:
    """Return the Cap'n Proto codec, which only a robot with a camera or a lidar needs.

    Raises ParameterError where pycapnp is missing.
    """
    try:
        from cognitive3d_ros.wire import capnp_codec
    except ImportError as error:
        raise ParameterError(
            [f'cameras, lidars: pycapnp cannot be imported ({error}): pip install pycapnp']
        ) from error
    return capnp_codec


def health_series(source: str) -> list[tuple[str, Key]]:
    """Return the health series of a camera or lidar, each with what the ledger counts it as."""
    kind = source.partition('.')[0]
    return [(f'c3d.{source}.{word}', (what, source)) for word, what in _SERIES[kind]]


def _size(made: Frame | Sweep) -> int:
    """Return about how much a record holds in memory."""
    if isinstance(made, Frame):
        return len(made.jpeg)
    if isinstance(made.scan, PointCloudData):
        return len(made.scan.data)
    return made.scan.ranges.nbytes + made.scan.intensities.nbytes


@dataclass(slots=True, eq=False)
class Ticket:
    """A message on its way; ``pose`` and ``made`` are None while they are waited for."""

    arrival: Arrival
    placed: Placed
    frame_id: str
    pose: Transform | None = None
    made: Frame | Sweep | None = None
    field_of_view: tuple[float, float] | None = None  # of a camera
    gone: bool = False  # counted: nothing becomes of it any more

    @property
    def deadline_ns(self) -> int | None:
        """The monotonic time at which it waits no more, for tf or for a camera's info; None if it does not."""
        if self.gone:
            return None
        if self.pose is None:
            return self.arrival.mono_ns + TF_WAIT_NS
        return None if self.made is None else self.arrival.mono_ns + _INFO_WAIT_NS


def _is_over(ticket: Ticket, now_ns: int) -> bool:
    """Say whether what a ticket waits for has had its time."""
    deadline_ns = ticket.deadline_ns
    return deadline_ns is not None and now_ns >= deadline_ns


class _Sensor:
    """One camera or lidar in one session."""

    def __init__(self, kind: str, name: str) -> None:
        self.kind, self.name = kind, name
        self.source = f'{kind}.{name}'  # in the ledger
        self.seq = 0
        self.tickets: deque[Ticket] = deque()


class SensorRecords:
    """The cameras and lidars of one session; see the module."""

    def __init__(
        self,
        config: Config,
        *,
        spool: SessionSpool,
        transforms: TransformSource,
        ledger: Ledger,
        complaints: Complaints,
    ) -> None:
        self._spool = spool
        self._transforms = transforms
        self._ledger = ledger
        self._complaints = complaints
        self._convention = Convention(config.pose_convention)
        self._frame = ''  # the session's reference frame, once it is chosen
        self._held_bytes = 0
        self._at_ns = 0  # session time, as far as records have come
        self._over = False
        sensors = [
            *(_Sensor(CAMERA, camera.name) for camera in config.cameras),
            *(_Sensor(LIDAR, lidar.name) for lidar in config.lidars),
        ]
        self._sensors = {sensor.source: sensor for sensor in sensors}

    @property
    def sources(self) -> tuple[str, ...]:
        """The ledger's names of all sensors."""
        return tuple(self._sensors)

    # A message's way

    def take(
        self, source: str, arrival: Arrival, placed: Placed, frame_id: str, reference: str | None
    ) -> Ticket | None:
        """Begin with a message: ``frame_id`` is the sensor's tf frame, ``reference`` the session's.

        None where it is certain already that it will not be stored, which is counted.
        """
        if reference is None:
            self._ledger.drop(Drop.NO_REFERENCE_FRAME, source)
            return None
        self._frame = reference
        sensor = self._sensors[source]
        ticket = Ticket(arrival, placed, frame_id)
        self._look_up(sensor, ticket, last_chance=False)
        if ticket.gone:
            return None
        sensor.tickets.append(ticket)
        if len(sensor.tickets) > _MAX_WAITING:
            self._try(sensor, _AT_LAST_NS)  # too much is held
        return ticket

    def made(self, source: str, ticket: Ticket, made: Made) -> None:
        """Take what a worker made of a message."""
        if ticket.gone or self._over:
            return
        sensor = self._sensors[source]
        if isinstance(made, Dropped):
            self._complaints.warn(source, f'{source}: {made.text}; it is not stored')
            self.lose(source, ticket, made.reason)
            return
        ticket.made = made
        self._held_bytes += _size(made)
        self._store(sensor)
        if self._held_bytes > _MAX_HELD_BYTES:
            self._try(sensor, _AT_LAST_NS)  # too much is held

    def lose(self, source: str, ticket: Ticket, reason: Drop) -> None:
        """Give a message up of which no record was made."""
        if ticket.gone or self._over:
            return
        ticket.gone = True
        if reason is Drop.BAD_MESSAGE:
            self._ledger.came(source, Fate.DECODE_FAILURES)
        else:
            self._ledger.drop(reason, source)
        self._store(self._sensors[source])

    def resolve(self, arrival: Arrival, *, last_chance: bool = False) -> None:
        """Look up the poses that tf may have reached, and store what is complete."""
        now_ns = _AT_LAST_NS if last_chance else arrival.mono_ns
        for sensor in self._sensors.values():
            self._try(sensor, now_ns)

    def end(self) -> None:
        """Decide what is left: nothing is stored after it."""
        for sensor in self._sensors.values():
            for ticket in sensor.tickets:
                if not ticket.gone:
                    self._ledger.drop(Drop.SESSION_ENDED, sensor.source)
                    ticket.gone = True
            sensor.tickets.clear()
        self._over = True

    def deadline_ns(self) -> int | None:
        """Return the monotonic time at which the first that waits has waited enough; None if none does."""
        deadlines = (
            ticket.deadline_ns for sensor in self._sensors.values() for ticket in sensor.tickets
        )
        return min((each for each in deadlines if each is not None), default=None)

    # Inside

    def _look_up(self, sensor: _Sensor, ticket: Ticket, *, last_chance: bool) -> None:
        # Time 0 would ask for the newest transform.
        at_ns = max(ticket.placed.ros_ns, 1)
        found = self._transforms.lookup(self._frame, ticket.frame_id, at_ns)
        if isinstance(found, Transform):
            ticket.pose = found
        elif found is not Miss.FUTURE or last_chance:
            self._no_pose(sensor, ticket, _MISSES[found])

    def _no_pose(self, sensor: _Sensor, ticket: Ticket, why: str) -> None:
        self._ledger.came(sensor.source, Fate.POSE_FAILURES)
        self._complaints.warn(
            f'{sensor.source} pose',
            f'{sensor.source}: not stored, its pose is not known: {ticket.frame_id[:64]!r} in '
            f'{self._frame!r}: {why}',
        )
        self._gone(ticket)

    def _gone(self, ticket: Ticket) -> None:
        ticket.gone = True
        if ticket.made is not None:
            self._held_bytes -= _size(ticket.made)

    def _try(self, sensor: _Sensor, now_ns: int) -> None:
        """Look up what is waited for, at its last chance where its time is over, and store."""
        for ticket in sensor.tickets:
            if ticket.pose is None and not ticket.gone:
                self._look_up(sensor, ticket, last_chance=_is_over(ticket, now_ns))
        self._store(sensor, now_ns)

    def _store(self, sensor: _Sensor, now_ns: int = 0) -> None:
        """Store the records that are complete, up to the first that is not."""
        tickets = sensor.tickets
        while tickets:
            ticket = tickets[0]
            if not ticket.gone:
                pose, made = ticket.pose, ticket.made
                if pose is None or made is None:
                    return
                if isinstance(made, Frame):
                    ticket.field_of_view = made.field_of_view(_is_over(ticket, now_ns))
                    if ticket.field_of_view is None:
                        return
                self._keep(sensor, ticket, pose, made)
            tickets.popleft()

    def _keep(
        self, sensor: _Sensor, ticket: Ticket, transform: Transform, made: Frame | Sweep
    ) -> None:
        pose = self._pose(transform, made)
        if pose is None:
            self._no_pose(sensor, ticket, 'its transform is made of no usable numbers')
            return
        self._gone(ticket)
        # When it arrived, not now: parts do not depend on how long workers take.
        self._at_ns = max(self._at_ns, ticket.arrival.session_ns)
        stored = self._spool.append(
            sensor.kind,
            sensor.kind,
            self._entry(sensor, ticket, pose, made),
            time_ns=ticket.placed.wire_ns,
            at_ns=self._at_ns,
            source=sensor.source,
        )
        if not stored:
            return  # and counted there
        sensor.seq += 1
        self._ledger.came(sensor.source, Fate.STORED)
        if isinstance(made, Sweep):
            for what, count in made.left_out.items():
                self._ledger.leave_out(what, sensor.source, count)
            if made.warning:
                self._complaints.warn(f'{sensor.source} part', f'{sensor.source}: {made.warning}')

    def _pose(self, transform: Transform, made: Frame | Sweep) -> Pose | None:
        """Return a pose by the rule of its record, or None where it holds no usable numbers."""
        if isinstance(made, Sweep) and isinstance(made.scan, LaserScanData):
            rotation = self._convention.scan_rotation_tuple(transform.rotation)
        else:
            rotation = self._convention.object_rotation_tuple(transform.rotation)
        if rotation is None or not all(-3e38 < x < 3e38 for x in transform.translation):
            return None
        return Pose(*self._convention.position_tuple(transform.translation), *rotation)

    def _entry(self, sensor: _Sensor, ticket: Ticket, pose: Pose, made: Frame | Sweep) -> bytes:
        time_ms = max(0, (ticket.placed.wire_ns + 500_000) // 1_000_000)
        if isinstance(made, Frame):
            hfov, vfov = ticket.field_of_view or (0.0, 0.0)
            entry: bytes = codec().camera_entry(
                CameraFrameRecord(
                    camera_id=sensor.name,
                    time_ms=time_ms,
                    seq=sensor.seq,
                    frame_id=ticket.frame_id,
                    pose=pose,
                    format='jpeg',
                    width=made.width,
                    height=made.height,
                    data=made.jpeg,
                    hfov_degrees=hfov,
                    vfov_degrees=vfov,
                )
            )
        else:
            entry = codec().lidar_entry(
                LidarScanRecord(
                    sensor_id=sensor.name,
                    time_ms=time_ms,
                    seq=sensor.seq,
                    frame_id=ticket.frame_id,
                    pose=pose,
                    scan=made.scan,
                )
            )
        return entry
