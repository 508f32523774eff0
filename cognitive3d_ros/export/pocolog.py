"""A Rock log file, version 2: streams with their metadata, and samples in time order.

============================  ================================  ==============================================
stream                        type                              what
============================  ================================  ==============================================
pose                          /base/samples/RigidBodyState      the pose timeline
dynamics/<id>                 /base/samples/RigidBodyState      a Dynamic Object
camera/<name>                 /base/samples/frame/Frame         a picture, as JPEG
lidar/<name>                  /base/samples/LaserScan           millimetres
lidar/<name>                  /base/samples/Pointcloud          in the sensor's own axes
camera/<name>.pose, lidar/…   /base/samples/RigidBodyState      where the sensor was, at each of its samples
series/<name>                 /double                           a series
annotations, events           /logger/Annotations               log markers and comments; events
============================  ================================  ==============================================

Session properties are metadata of every stream. Real time and logical time are both the record's.
"""

from __future__ import annotations

import heapq
import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cognitive3d_ros.errors import ExportError
from cognitive3d_ros.export import rock_types as rock
from cognitive3d_ros.export.job import Job
from cognitive3d_ros.export.ros import RosView, note_snapshots, times_ns
from cognitive3d_ros.session.markers import (
    ABORT,
    ABORT_ALL,
    EVENT,
    START,
    STOP,
    STOP_ALL,
    RegionState,
    split_marker,
)
from cognitive3d_ros.session.records import (
    Annotation,
    CameraFrame,
    LaserScan,
    LidarRecord,
    PointCloud,
    SensorRecord,
)
from cognitive3d_ros.session.streams import Series
from cognitive3d_ros.session.tables import object_facts, property_text

_PROLOGUE: Final = struct.pack('<8sII', b'POCOSIM\0', 2, 0)  # version 2, little-endian
_BLOCK: Final = struct.Struct('<BBHI')  # kind, padding, stream, size of what follows
_SAMPLE: Final = struct.Struct('<IIIIIB')  # real time, logical time, size, compressed
_STREAM, _DATA = 1, 2
_DATA_STREAM: Final = b'\x01'
_TOO_FAR, _TOO_NEAR, _ERROR = 1, 2, 3  # instead of a range
_LAST_CODE: Final = 5


class _Stream(NamedTuple):
    """A stream that is declared."""

    number: int
    """Its place among the declarations: the index that its samples have."""
    type: rock.RockType


class _Sample(NamedTuple):
    time_ns: int
    stream: _Stream
    data: bytes


def export(job: Job, work: Path) -> None:
    """Write the log."""
    if not job.name.endswith('.log'):
        raise ExportError(f'{job.name}: the names of Rock logs end in .log, as in run.0.log')
    with (work / job.name).open('wb') as file:
        file.write(_PROLOGUE)
        log = _Log(job, file)
        for time_ns, stream, data in log.samples():
            seconds, rest_ns = divmod(time_ns, 1_000_000_000)
            head = _SAMPLE.pack(seconds, rest_ns // 1000, seconds, rest_ns // 1000, len(data), 0)
            size = len(head) + len(data)
            file.write(_BLOCK.pack(_DATA, 0, stream.number, size) + head + data)


class _Log:
    """Declares streams, at the head of the file, and makes their samples."""

    def __init__(self, job: Job, file: IO[bytes]) -> None:
        self._job = job
        self._session = job.session
        self._view = RosView(job)
        self._file = file
        self._count = 0

    def samples(self) -> Iterator[_Sample]:
        """Declare all streams, and give their samples by time."""
        self._job.expect_all()
        session = self._session
        streams = [self._path(), *self._objects()]
        streams += [self._camera(name) for name in session.cameras]
        streams += [self._lidar(name) for name in session.lidars]
        streams += [self._series(series) for series in session.series.values()]
        streams += [self._annotations(), self._events()]
        return heapq.merge(*streams, key=lambda sample: sample.time_ns)

    def _declare(self, name: str, kind: rock.RockType, of: str, *, stamp: str = 'time') -> _Stream:
        """Write the declaration of a stream; its metadata are those of the session's stream ``of``."""
        known = self._session.streams.get(of)
        metadata = {} if known is None else known.rock()
        if 'rock_orocos_type_name' in metadata:
            metadata['ros_message_type'] = metadata['rock_orocos_type_name']
        metadata |= {
            'rock_stream_type': 'annotations' if kind is rock.ANNOTATIONS else 'port',
            'rock_orocos_type_name': kind.cxx_name,
            'rock_cxx_type_name': kind.cxx_name,
            'rock_timestamp_field': stamp,
            'c3d_session_id': self._session.id,
            'c3d_scene_id': self._session.scene_id,
            'c3d_scene_version': str(self._session.scene_version),
        }
        metadata |= {key: property_text(value) for key, value in self._session.properties.items()}
        if of == 'dynamics':
            metadata |= object_facts(self._session)
        # Texts in quotes, as JSON escapes them, are YAML.
        lines = [f'{_quoted(key)}: {_quoted(value)}\n' for key, value in metadata.items() if value]
        payload = _DATA_STREAM + b''.join(
            struct.pack('<I', len(each)) + each
            for each in (
                name.encode(),
                kind.name.encode(),
                rock.registry(kind).encode(),
                ('---\n' + ''.join(lines)).encode(),
            )
        )
        self._file.write(_BLOCK.pack(_STREAM, 0, self._count, len(payload)) + payload)
        self._count += 1
        return _Stream(self._count - 1, kind)

    # Poses

    def _path(self) -> Iterator[_Sample]:
        stream = self._declare('pose', rock.BODY_STATE, 'pose')
        view = self._view

        def give() -> Iterator[_Sample]:
            path = view.path()
            for at_ns, p, r in zip(path.time_ns.tolist(), path.p, path.r, strict=True):
                data = rock.body_state(at_ns, view.robot, view.reference, p, r)
                yield _Sample(at_ns, stream, data)
                self._job.step()

        return give()

    def _objects(self) -> list[Iterator[_Sample]]:
        if self._view.axes is None:
            return []
        note_snapshots(self._job)
        streams = [
            (self._declare(f'dynamics/{each}', rock.BODY_STATE, 'dynamics'), each, rows)
            for each, rows in self._session.dynamics.rows_by_id().items()
        ]
        return [self._object(*each) for each in streams]

    def _object(
        self, stream: _Stream, object_id: str, rows: NDArray[np.intp]
    ) -> Iterator[_Sample]:
        dynamics, view = self._session.dynamics, self._view
        rows = rows[np.argsort(dynamics.time[rows], kind='stable')]
        p = view.position(dynamics.p[rows])
        assert view.axes is not None
        r = view.axes.ros_object_rotation(dynamics.r[rows])
        for at_ns, xyz, q in zip(times_ns(dynamics.time[rows]).tolist(), p, r, strict=True):
            data = rock.body_state(at_ns, object_id, view.reference, xyz, q)
            yield _Sample(at_ns, stream, data)
            self._job.step()

    def _sensor_pose(self, record: SensorRecord, stream: _Stream) -> Iterator[_Sample]:
        if self._view.axes is None:
            return
        p, r = self._view.sensor_pose(record)
        at_ns = record.time_ns
        data = rock.body_state(at_ns, record.frame_id, self._view.reference, p, r)
        yield _Sample(at_ns, stream, data)

    # Cameras and lidars

    def _camera(self, name: str) -> Iterator[_Sample]:
        of = f'camera/{name}'
        stream = self._declare(of, rock.FRAME, of)
        poses = self._declare(f'{of}.pose', rock.BODY_STATE, of)

        def give(frames: Iterator[CameraFrame]) -> Iterator[_Sample]:
            for frame in frames:
                attributes = {
                    'hfov_degrees': f'{frame.hfov_degrees:g}',
                    'vfov_degrees': f'{frame.vfov_degrees:g}',
                    'frame_id': frame.frame_id,
                    'seq': str(frame.seq),
                }
                size = frame.width, frame.height
                data = rock.frame(frame.time_ns, frame.data, *size, attributes)
                yield from self._sensor_pose(frame, poses)
                yield _Sample(frame.time_ns, stream, data)
                self._job.step()

        return give(self._session.camera(name).by_time())

    def _lidar(self, name: str) -> Iterator[_Sample]:
        of = f'lidar/{name}'
        lidar = self._session.lidar(name)
        kinds = lidar.kinds
        self._job.note(
            'not in it: seq, the numbers of scans and clouds (parquet and csv have them)'
        )
        # One stream has one type; a lidar that gave both, which none does, would have two streams.
        poses = self._declare(f'{of}.pose', rock.BODY_STATE, of)
        scans = clouds = None
        if LaserScan in kinds or not kinds:
            scans = self._declare(of, rock.LASER_SCAN, of)
        if PointCloud in kinds:
            points = of if scans is None else f'{of}.points'
            clouds = self._declare(points, rock.POINTCLOUD, of)

        def give(records: Iterator[LidarRecord]) -> Iterator[_Sample]:
            for record in records:
                yield from self._sensor_pose(record, poses)
                if isinstance(record, LaserScan) and scans is not None:
                    yield _Sample(record.time_ns, scans, self._scan(record))
                elif self._view.axes is None:
                    continue  # points are in scene axes
                elif isinstance(record, PointCloud) and clouds is not None:
                    yield _Sample(record.time_ns, clouds, self._cloud(record))
                self._job.step()

        return give(lidar.by_time())

    def _scan(self, scan: LaserScan) -> bytes:
        self._job.note(
            'ranges of laser scans are whole millimetres, and codes where there is none'
        )
        if scan.scan_time:
            self._job.note('not in it: scan_time of laser scans')
        step_s = scan.time_increment
        return rock.laser_scan(
            scan.time_ns,
            start_angle=scan.angle_min,
            resolution=scan.angle_increment,
            speed=scan.angle_increment / step_s if step_s else 0.0,
            ranges_mm=_millimetres(scan),
            limits_mm=(_limit(scan.range_min), _limit(scan.range_max)),
            remission=scan.intensities,
        )

    def _cloud(self, cloud: PointCloud) -> bytes:
        if cloud.intensities is not None:
            self._job.note('not in it: intensities of point clouds')
        colors = np.empty((0, 4))
        if cloud.colors is not None:
            opaque = np.ones((len(cloud.colors), 1))
            colors = np.concatenate([cloud.colors / 255, opaque], axis=1)
        return rock.pointcloud(cloud.time_ns, self._view.points(cloud).astype(np.float64), colors)

    # Series, events, annotations

    def _series(self, series: Series) -> Iterator[_Sample]:
        name = f'series/{series.name}'
        stream = self._declare(name, rock.DOUBLE, name, stamp='')

        def give() -> Iterator[_Sample]:
            order = np.argsort(series.time, kind='stable')
            values = series.value[order].tolist()
            for at_ns, value in zip(times_ns(series.time[order]).tolist(), values, strict=True):
                yield _Sample(at_ns, stream, rock.double(value))
                self._job.step()

        return give()

    def _annotations(self) -> Iterator[_Sample]:
        stream = self._declare('annotations', rock.ANNOTATIONS, 'annotations')
        made: list[_Sample] = []
        if self._session.annotations:
            self._job.note('not in it: where the robot was at an annotation (its pose is)')
        for each in self._session.annotations:
            at_ns = round(each.annotation_time * 1e9)
            for key, value in self._markers(each):
                data = rock.annotation(at_ns, each.stream_name, key, value)
                made.append(_Sample(at_ns, stream, data))
            self._job.step()
        return iter(sorted(made, key=lambda sample: sample.time_ns))

    def _markers(self, annotation: Annotation) -> Iterator[tuple[str, str]]:
        """Give an annotation as Rock's readers take it: an index in angle brackets, one line.

        They close no region at the markers that close all of them: each region is closed before by itself.
        """
        key, value = annotation.key, annotation.value
        if key in (STOP_ALL, ABORT_ALL):
            state = RegionState.COMPLETED if key == STOP_ALL else RegionState.ABORTED
            at = annotation.annotation_time
            for region in self._session.regions():
                if (region.stop, region.state, region.stop_text) == (at, state, value):
                    yield STOP if key == STOP_ALL else ABORT, _marker(region.index, value)
        elif key in (START, STOP, ABORT):
            index, text = split_marker(value)
            value = _marker(index, text)
        yield key, _one_line(value) if key.startswith('log_marker') else value

    def _events(self) -> Iterator[_Sample]:
        stream = self._declare('events', rock.ANNOTATIONS, 'events')
        made: list[_Sample] = []
        for event in self._session.events:
            if isinstance(event, Annotation):
                continue
            pairs = [(EVENT, _one_line(event.name))]
            point = self._view.where(event)
            if point is not None:
                pairs.append((f'{event.name}.point', ' '.join(map(str, point))))
            pairs += [
                (f'{event.name}.{key}', property_text(value))
                for key, value in event.properties.items()
            ]
            if event.dynamic_id is not None:
                pairs.append((f'{event.name}.dynamic_id', event.dynamic_id))
            for key, value in pairs:
                data = rock.annotation(event.time_ns, '', key, value)
                made.append(_Sample(event.time_ns, stream, data))
            self._job.step()
        return iter(sorted(made, key=lambda sample: sample.time_ns))


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _marker(index: int | None, text: str) -> str:
    # Without an index there are no brackets: Rock's readers take an empty one for 0.
    return _one_line(text) if index is None else f'<{index}>;{_one_line(text)}'


def _one_line(text: str) -> str:
    return ' '.join(text.splitlines())


def _limit(metres: float) -> int:
    return int(min(max(0.0, round(metres * 1000)), 0xFFFFFFFF)) if np.isfinite(metres) else 0


def _millimetres(scan: LaserScan) -> NDArray[np.uint32]:
    """Return ranges as Rock has them: whole millimetres, or why there is none."""
    ranges = scan.ranges.astype(np.float64)
    whole = np.nan_to_num(np.rint(ranges * 1000), posinf=0, neginf=0)
    mm: NDArray[np.uint32] = np.clip(whole, 0, 0xFFFFFFFF).astype(np.uint32)
    mm[mm <= _LAST_CODE] = _TOO_NEAR
    mm[ranges < scan.range_min] = _TOO_NEAR
    mm[ranges > scan.range_max] = _TOO_FAR
    mm[np.isnan(ranges)] = _ERROR
    return mm
