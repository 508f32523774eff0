"""An MRPT rawlog of observations, in time order, compressed with gzip.

=================  =====================================================================================
in the session     in the rawlog
=================  =====================================================================================
pose timeline      CObservationRobotPose "pose"; CObservationOdometry "odometry", its x, y and yaw
camera             CObservationImage: its picture in ``<name>_Images/`` beside the rawlog, or inside
laser scan         CObservation2DRangeScan, its x axis along the middle ray
point cloud        CObservationPointCloud: points inside, or with intensities a file of KITTI's form
series             CObservationRawDAQ of one reading; of a described rangefinder CObservationRange too
comment            the comment, at the head; behind it, as blocks of an ini file, properties, events,
                   annotations and regions
=================  =====================================================================================

Labels are the names of cameras, lidars and series. Sensor poses are on the robot: where the sensor was, seen
from where the pose timeline says that the robot was at that moment.
"""

from __future__ import annotations

import gzip
import json
import math
import operator
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cognitive3d_ros.conventions import BODY_FORWARD_X
from cognitive3d_ros.export.file_names import FileNames, images_folder
from cognitive3d_ros.export.job import Job
from cognitive3d_ros.export.kitti import matrices
from cognitive3d_ros.export.rangefinders import rangefinders
from cognitive3d_ros.export.ros import RosView, Times, event_facts, note_numbers, times_ns
from cognitive3d_ros.export.rows import Stream, copies, merged
from cognitive3d_ros.quaternions import Array, about_z, multiply_array, rotate_array
from cognitive3d_ros.session.records import (
    CameraFrame,
    DynamicSnapshot,
    LaserScan,
    PointCloud,
    SensorRecord,
)
from cognitive3d_ros.session.sensors import Sensor
from cognitive3d_ros.session.streams import Series
from cognitive3d_ros.session.tables import property_text
from cognitive3d_ros.wire.mrpt import Writer, ticks
from cognitive3d_ros.wire.mrpt import classes as mrpt
from cognitive3d_ros.wire.mrpt.archive import NS_PER_TICK, MrptObject

POSE, ODOMETRY = 'pose', 'odometry'
_LONG_GAP_S: Final = 1.0
_INT32: Final = (-(1 << 31), (1 << 31) - 1)
_WRITE_BYTES: Final = 1 << 18
_BODY_TO_OPTICAL: Final = (-0.5, 0.5, -0.5, 0.5)
# What stands in a template for the numbers of each copy: no text has these bytes.
_TICKS: Final = 0xFFFFFFFFFFFFFF01
_DOUBLES: Final = np.arange(0x7FEFFFFFFFFFFF01, 0x7FEFFFFFFFFFFF0D).view(np.float64)
_SINGLE: Final = np.finfo(np.float32).max


def export(job: Job, work: Path) -> None:
    """Write the rawlog, and the folder of what lies beside it."""
    rawlog = _Rawlog(job, work)
    with gzip.GzipFile(work / job.name, 'wb', compresslevel=6, mtime=0) as file:
        file.write(rawlog.comment())
        held: list[bytes] = []
        held_bytes = 0
        for data in rawlog.observations():
            held.append(data)
            held_bytes += len(data)
            if held_bytes >= _WRITE_BYTES:
                file.write(b''.join(held))
                held, held_bytes = [], 0
        file.write(b''.join(held))


class _Rawlog:
    def __init__(self, job: Job, work: Path) -> None:
        self._job = job
        self._session = job.session
        self._view = RosView(job)
        self._images = work / images_folder(job.name)
        self._beside_made = False
        self._names = FileNames()
        self._writer = Writer()
        self._cones = rangefinders(job, self._view.followed)

    def observations(self) -> Iterator[bytes]:
        """Give the observations by time, serialised."""
        counts = self._session.counts()
        if counts.get(DynamicSnapshot):
            self._job.note(f'not in it: {counts[DynamicSnapshot]} snapshots of Dynamic Objects')
        self._job.expect_all()
        note_numbers(self._job)
        session = self._session
        streams = []
        if self._view.axes is not None:
            streams += [self._path()]
            streams += [self._sensor(session.camera(name)) for name in session.cameras]
            streams += [self._sensor(session.lidar(name)) for name in session.lidars]
        elif session.cameras or session.lidars:
            self._job.note('not in it: cameras and lidars: where they were is not known')
        streams += [self._series(series) for series in session.series.values()]
        return merged(streams)

    # The head

    def comment(self) -> bytes:
        """Return the comment: the only one, as MRPT keeps the last it finds."""
        session = self._session
        blocks: dict[str, dict[str, object]] = {
            'c3d.session': {
                'session_id': session.id,
                'device_id': session.device_id,
                'scene_id': session.scene_id,
                'scene_version': session.scene_version,
                'reference_frame': self._view.reference,
                'robot_frame': self._view.robot,
            },
            'c3d.frames': self._frames(),
            'c3d.properties': {
                key: _line(property_text(value)) for key, value in session.properties.items()
            },
            'c3d.events': dict(self._events()),
            'c3d.regions': dict(self._regions()),
        }
        lines = [session.comment, ''] if session.comment else []
        for name, pairs in blocks.items():
            if pairs:
                lines += [f'[{name}]', *(f'{k} = {v}' for k, v in pairs.items()), '']
        self._job.step(len(session.events))
        text = '\n'.join(lines)
        return self._bytes(mrpt.Comment(text, ticks(round(session.start * 1e9))))

    def _frames(self) -> dict[str, object]:
        """Return the tf frames of cameras and lidars, which observations do not name."""
        streams = self._session.streams
        named = {
            name.partition('/')[2]: about.frame
            for name, about in streams.items()
            if name.startswith(('camera/', 'lidar/'))
        }
        return {name: frame for name, frame in named.items() if frame}

    def _events(self) -> Iterator[tuple[str, str]]:
        for number, event in enumerate(self._session.events):
            facts = event_facts(event, self._view.where(event))
            yield f'event.{number:05d}', json.dumps(facts, ensure_ascii=False)

    def _regions(self) -> Iterator[tuple[str, str]]:
        for number, region in enumerate(self._session.regions()):
            facts = {
                'index': region.index,
                'state': region.state.value,
                'start': region.start,
                'stop': region.stop,
                'start_text': region.start_text,
                'stop_text': region.stop_text,
            }
            yield f'region.{number:05d}', json.dumps(facts, ensure_ascii=False)

    # The robot

    def _path(self) -> Stream[bytes]:
        time_ns, p, r = self._view.path()
        mean = mrpt.Pose3DGaussian(mrpt.Pose3D(_DOUBLES[:3].tolist(), _DOUBLES[3:].reshape(3, 3)))
        pose = self._bytes(mrpt.RobotPose(mean, POSE, _TICKS))
        flat = mrpt.Pose2D(_DOUBLES[:3].tolist())
        odometry = self._bytes(mrpt.Odometry(flat, ODOMETRY, _TICKS))

        def give(low: int, high: int) -> Iterator[bytes]:
            turns = _matrices(r[low:high])
            yaws = map(math.atan2, turns[:, 1, 0].tolist(), turns[:, 0, 0].tolist())
            places = np.concatenate([p[low:high], turns.reshape(-1, 9)], axis=1)
            planes = np.column_stack([p[low:high, :2], np.fromiter(yaws, np.float64, high - low)])
            poses = _copies(pose, time_ns[low:high], _DOUBLES, places)
            odometries = _copies(odometry, time_ns[low:high], _DOUBLES[:3], planes)
            self._job.step(high - low)
            return map(operator.add, poses, odometries)

        return Stream(time_ns, give)

    # Cameras and lidars

    def _sensor(self, sensor: Sensor[Any]) -> Stream[bytes]:
        order = np.argsort(sensor.time, kind='stable')
        kinds = sensor.kinds

        def give(low: int, high: int) -> Iterator[bytes | None]:
            rows = order[low:high]
            known, *robot, gaps = self._session.track.at(sensor.time[rows])
            on_robot = {kind: self._on_robot(sensor, kind, robot, rows) for kind in kinds}
            for row, index in enumerate(rows.tolist()):
                found = next(iter(sensor.at([index])), None)
                made = None
                if found is not None:
                    if self._is_known(bool(known[row]), float(gaps[row])):
                        p, turn = (each[row] for each in on_robot[type(found)])
                        if isinstance(found, LaserScan):
                            to_middle = about_z(math.degrees(_middle(found)))
                            turn = _matrices(multiply_array(turn, to_middle)[None])[0]
                        pose = mrpt.Pose3D(p.tolist(), turn)
                        made = self._bytes(self._observation(found, pose))
                    self._job.step()
                yield made

        return Stream(times_ns(sensor.time[order]), give)

    def _observation(self, record: SensorRecord, pose: mrpt.Pose3D) -> MrptObject:
        if isinstance(record, CameraFrame):
            return self._picture(record, pose)
        if isinstance(record, LaserScan):
            return self._scan(record, pose)
        assert isinstance(record, PointCloud)
        return self._cloud(record, pose)

    def _is_known(self, known: bool, gap_s: float) -> bool:  # noqa: FBT001
        """Say whether the robot's place is known at a record of a sensor, and note what is wrong with it."""
        if not known:
            self._job.note(
                'records of cameras and lidars before the first pose sample and after the last are not '
                'in it: where they were on the robot is not known'
            )
        elif gap_s > _LONG_GAP_S:
            self._job.note(
                f'some sensor poses are interpolated between pose samples more than {_LONG_GAP_S:g} s apart'
            )
        return known

    def _on_robot(
        self,
        sensor: Sensor[Any],
        kind: type[SensorRecord],
        robot: list[Array],
        rows: NDArray[np.intp],
    ) -> tuple[Array, Array]:
        """Return where a sensor was on the robot as MRPT has it, (N, 3) and matrices (N, 3, 3).

        Those of scans are rotations (N, 4) that are still to be turned to the middle of each.
        """
        axes = self._view.axes
        assert axes is not None
        robot_p, robot_r = axes.ros_position(robot[0]), axes.ros_pose_rotation(robot[1])
        sensor_p, sensor_r = self._view.sensor_poses(kind, sensor.pose[rows])
        back = robot_r * (-1.0, -1.0, -1.0, 1.0)
        p, r = rotate_array(back, sensor_p - robot_p), multiply_array(back, sensor_r)
        if kind is LaserScan:
            return p + 0.0, r
        if kind is CameraFrame and self._looks_along_x(sensor.name):
            r = multiply_array(r, _BODY_TO_OPTICAL)
        return p + 0.0, _matrices(r)

    def _looks_along_x(self, camera: str) -> bool:
        """Say whether the frame of a camera is one of a body, x ahead, where MRPT's has z ahead."""
        name = f'c3d.ros.camera.{camera}.convention'
        return self._session.properties.get(name) == BODY_FORWARD_X

    def _picture(self, frame: CameraFrame, pose: mrpt.Pose3D) -> MrptObject:
        width, height = frame.width, frame.height
        camera = mrpt.Camera(rows=height, columns=width, name=frame.camera_id)
        if 0 < frame.hfov_degrees < 180 and 0 < frame.vfov_degrees < 180:
            camera.intrinsics = [
                width / 2 / math.tan(math.radians(frame.hfov_degrees) / 2),
                height / 2 / math.tan(math.radians(frame.vfov_degrees) / 2),
                (width - 1) / 2,
                (height - 1) / 2,
            ]
            self._job.note(
                'camera parameters are of the field of view: the principal point in the middle, no distortion'
            )
        if self._job.options.images == 'inside':
            image = mrpt.Image(jpeg=frame.data, width=width, height=height)
        else:
            image = mrpt.Image(
                file=self._beside(frame.camera_id, f'_{frame.seq:06d}.jpg', frame.data)
            )
        return mrpt.CameraImage(pose, camera, image, ticks(frame.time_ns), frame.camera_id)

    def _scan(self, scan: LaserScan, pose: mrpt.Pose3D) -> MrptObject:
        rays = len(scan.ranges)
        finite = np.isfinite(scan.ranges)
        valid = finite & (scan.ranges >= scan.range_min) & (scan.ranges <= scan.range_max)
        if not finite.all():
            self._job.note('ranges that are infinite or no number are 0, and not valid')
        if scan.range_min > 0 or scan.time_increment or scan.scan_time:
            self._job.note('not in it: range_min, time_increment and scan_time of laser scans')
        intensities = None
        if len(scan.intensities):
            whole = np.nan_to_num(np.rint(scan.intensities), posinf=0, neginf=0)
            intensities = np.clip(whole.astype(np.float64), *_INT32).astype(np.int32)
            if (intensities != scan.intensities).any():
                self._job.note('intensities of laser scans are whole numbers')
        return mrpt.RangeScan(
            aperture=abs(scan.angle_increment) * max(0, rays - 1),
            right_to_left=scan.angle_increment >= 0,
            max_range=scan.range_max,
            pose=pose,
            ranges=np.where(finite, scan.ranges, np.float32(0)),
            valid=valid.astype(np.uint8),
            ticks=ticks(scan.time_ns),
            label=scan.sensor_id,
            intensities=intensities,
        )

    def _cloud(self, cloud: PointCloud, pose: mrpt.Pose3D) -> MrptObject:
        made = mrpt.PointCloud(cloud.sensor_id, ticks(cloud.time_ns), pose)
        xyz, rgb = self._view.points(cloud), cloud.colors
        intensity = None
        if cloud.intensities is not None:
            intensity = cloud.intensities.astype(np.float32) / np.float32(255)
        if self._job.options.mrpt == 3 and (rgb is not None or intensity is not None):
            columns: dict[str, Any] = {}
            if intensity is not None:
                columns['intensity'] = intensity
            if rgb is not None:
                columns |= {f'color_{name}': rgb[:, i] for i, name in enumerate('rgb')}
            made.points = mrpt.GenericPoints(xyz, columns)
        elif rgb is not None:
            if intensity is not None:
                self._job.note(
                    'not in it: intensities of clouds that have colours too (--mrpt 3 has both)'
                )
            channels = [rgb[:, i].astype(np.float32) / np.float32(255) for i in range(3)]
            made.points = mrpt.ColouredPoints(xyz, channels)
        elif intensity is None:
            made.points = mrpt.SimplePoints(xyz)
        elif self._job.options.images == 'inside':
            made.points = mrpt.IntensityPoints(xyz, intensity)
        else:
            made.storage = mrpt.KITTI_BIN
            rows = np.column_stack([xyz, intensity]).astype('<f4')
            made.file = self._beside(cloud.sensor_id, f'_{cloud.seq:06d}.bin', rows.tobytes())
        return made

    def _beside(self, label: str, rest: str, data: bytes) -> str:
        """Put a file into the folder beside the rawlog; return what the rawlog calls it."""
        self._images.mkdir(exist_ok=True)
        name = self._names.free(label, rest)
        (self._images / name).write_bytes(data)
        return name

    # Series

    def _series(self, series: Series) -> Stream[bytes]:
        order = np.argsort(series.time, kind='stable')
        time_ns, values = times_ns(series.time[order]), series.value[order]
        cone = self._cones.get(series.name)
        reading = self._bytes(mrpt.RawDaq(series.name, _TICKS, analogue=_DOUBLES[:1]))
        measured = (
            b''
            if cone is None
            else self._bytes(cone.measured(float(_SINGLE) / cone.unit_m, _TICKS))
        )

        def give(low: int, high: int) -> Iterator[bytes]:
            numbers = values[low:high]
            made = _copies(reading, time_ns[low:high], _DOUBLES[:1], numbers)
            self._job.step(high - low)
            if cone is None:
                return iter(made)
            metres = (numbers * cone.unit_m).astype('<f4')
            single = np.array([_SINGLE], '<f4')
            return map(operator.add, made, _copies(measured, time_ns[low:high], single, metres))

        return Stream(time_ns, give)

    def _bytes(self, value: MrptObject) -> bytes:
        self._writer.object(value)
        return self._writer.take()


def _copies(template: bytes, time_ns: Times, stand_in: Array, numbers: Array) -> list[bytes]:
    """Return copies of an observation with their own times, and numbers in the place of those that stand in."""
    stamps = (ticks(0) + time_ns // NS_PER_TICK).astype('<u8')
    at = [template.index(each.tobytes()) for each in (np.array([_TICKS], '<u8'), stand_in)]
    return copies(template, (at[0], stamps), (at[1], numbers))


def _middle(scan: LaserScan) -> float:
    """Return the angle of the middle of a scan, about which MRPT has it symmetric."""
    return scan.angle_min + scan.angle_increment * max(0, len(scan.ranges) - 1) / 2


def _matrices(r: Array) -> Array:
    """Return rotations (N, 4) as matrices (N, 3, 3)."""
    return matrices(np.zeros((len(r), 3)), r)[:, :, :3] + 0.0  # no −0


def _line(text: str) -> str:
    """Return a text as it fits a line of an ini file."""
    return text.replace('\\', '\\\\').replace('\n', '\\n').replace('\r', '\\r')
