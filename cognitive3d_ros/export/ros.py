"""A session in ROS terms: frames by name, poses and points in REP-103 axes, times in nanoseconds."""

from __future__ import annotations

from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cognitive3d_ros.conventions import OPTICAL_FORWARD_Z
from cognitive3d_ros.errors import ExportError
from cognitive3d_ros.export.job import Job
from cognitive3d_ros.quaternions import Array
from cognitive3d_ros.session.records import Event, LaserScan, PointCloud, SensorRecord
from cognitive3d_ros.session.sensors import Sensor
from cognitive3d_ros.session.session import Session
from cognitive3d_ros.session.streams import Floats

Times = NDArray[np.int64]
_TICKS_PER_S = 100_000
_NS_PER_TICK = 10_000


class Path(NamedTuple):
    """Poses in time order, in the reference frame."""

    time_ns: Times
    p: Array
    """(N, 3), metres."""
    r: Array
    """(N, 4), x y z w."""


def times_ns(times: Floats) -> Times:
    """Return stored times in nanoseconds, exactly: they have five decimals, or whole milliseconds."""
    ns: Times = np.rint(times * _TICKS_PER_S).astype(np.int64) * _NS_PER_TICK
    return ns


def event_facts(event: Event, point: list[float] | None) -> dict[str, object]:
    """Return all of an event as plain values, at a point in the reference frame, or at none that is known."""
    facts: dict[str, object] = {'name': event.name, 'time': event.time, 'point': point}
    facts['properties'] = dict(event.properties)
    return facts if event.dynamic_id is None else {**facts, 'dynamic_id': event.dynamic_id}


_ENABLED = ({'enabled': True},)
"""What the first snapshot of an object says, and every other one too by being there."""


def note_numbers(job: Job) -> None:
    """Say that frames and scans are without the numbers that the recorder gave them."""
    if job.session.cameras or job.session.lidars:
        job.note('not in it: seq, the numbers of frames and scans (parquet and csv have them)')


def note_snapshots(job: Job) -> None:
    """Say that snapshots of Dynamic Objects are without the properties that some have."""
    if any(each != _ENABLED for each in job.session.dynamics.properties.values()):
        job.note('not in it: properties of snapshots (parquet and csv have them)')


def _sensor_frames(session: Session) -> set[str]:
    """Return the tf frames of cameras and lidars: those that are told, and that of each one's first record."""
    frames = {stream.frame for stream in session.streams.values()}
    sensors: list[Sensor[Any]] = [session.camera(name) for name in session.cameras]
    sensors += [session.lidar(name) for name in session.lidars]
    return frames | {record.frame_id for sensor in sensors for record in islice(sensor, 1)}


class RosView:
    """What exporters want to know of a session.

    Where its pose convention is not known ``axes`` is None, and with it every place.
    """

    def __init__(self, job: Job, *, frames: bool = True) -> None:
        """Take the job, and whether the format names frames: those that had to be guessed are noted then."""
        session = job.session
        if session.poses.g is not None:
            job.note(
                'not in it: the gaze points of a session from before 1.0.0 (parquet has them)'
            )
        self.axes = job.known_axes()
        self._track = session.track
        properties = session.properties
        self.reference = str(properties.get('c3d.ros.reference_frame', 'map'))
        """The frame that all poses are in."""
        if frames and 'c3d.ros.reference_frame' not in properties:
            job.note('the session does not say its reference frame: it is called map')
        robot = str(properties.get('c3d.ros.robot_frame', 'base_link'))
        gaze = str(properties.get('c3d.ros.gaze_frame', ''))
        is_said = gaze or 'c3d.ros.robot_frame' in properties or job.options.robot_frame
        if frames and self.axes is not None and not is_said and len(session.poses):
            job.note(
                'the session does not say which frame its poses are of: it is called base_link, '
                '--robot-frame names it'
            )
        turned = properties.get('c3d.ros.gaze_frame_convention') == OPTICAL_FORWARD_Z
        self.followed = f'{gaze}_body' if gaze and turned else gaze or robot
        """The frame that the pose timeline follows, as the session calls it. An optical one was turned into
        that of its body."""
        self.robot = self._renamed(job, gaze)
        """What it is called."""

    def _renamed(self, job: Job, gaze: str) -> str:
        """Return the name of the frame that is followed. Raises ExportError where another one has it."""
        name = job.options.robot_frame
        if name in ('', self.followed):
            return self.followed
        if gaze:
            raise ExportError(
                f'the poses are those of the frame {gaze}: --robot-frame is not its name'
            )
        if name == self.reference:
            raise ExportError(
                f'the robot cannot be called {name}: so is the frame that it moves in'
            )
        if name in _sensor_frames(job.session):
            raise ExportError(f'the robot cannot be called {name}: so is the frame of a sensor')
        return name

    def path(self) -> Path:
        """Return the pose timeline."""
        track = self._track
        if self.axes is None:
            return Path(np.empty(0, np.int64), np.empty((0, 3)), np.empty((0, 4)))
        return Path(
            times_ns(track.time),
            self.axes.ros_position(track.p) + 0.0,  # no −0
            self.axes.ros_pose_rotation(track.r) + 0.0,
        )

    def position(self, point: ArrayLike) -> Array:
        """Return scene positions (…, 3) in the reference frame. Wants axes that are known."""
        assert self.axes is not None
        return self.axes.ros_position(point) + 0.0

    def where(self, event: Event) -> list[float] | None:
        """Return where an event was in the reference frame; None where that is not known."""
        if self.axes is None or not event.is_placed:
            return None
        return self.position(event.point).tolist()  # type: ignore[no-any-return]

    def sensor_pose(self, record: SensorRecord) -> tuple[Array, Array]:
        """Return where a sensor was in the reference frame: position (3,) and rotation (4,)."""
        p, r = self.sensor_poses(type(record), [record.pose])
        return p[0], r[0]

    def sensor_poses(self, kind: type[SensorRecord], poses: ArrayLike) -> tuple[Array, Array]:
        """Return stored poses (N, 7) of sensors in the reference frame: (N, 3) and (N, 4)."""
        assert self.axes is not None
        stored = np.asarray(poses, dtype=np.float64)
        turn = self.axes.ros_scan_rotation if kind is LaserScan else self.axes.ros_object_rotation
        return self.axes.ros_position(stored[:, :3]), turn(stored[:, 3:])

    def points(self, cloud: PointCloud) -> NDArray[np.float32]:
        """Return the points of a cloud in the sensor's own axes, (N, 3) in metres."""
        assert self.axes is not None
        # A change of axes and signs: exact in any type.
        return self.axes.ros_position(cloud.positions).astype(np.float32)
