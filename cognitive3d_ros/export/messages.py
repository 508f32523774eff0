"""A session as ROS 2 messages in time order, serialised: what MCAP files and rosbag2 folders hold.

=============================  ==================================  ==========================================
topic                          type                                what
=============================  ==================================  ==========================================
/tf                            tf2_msgs/TFMessage                  robot and sensors in the reference frame
/pose                          geometry_msgs/PoseStamped           the pose timeline
/dynamics/<id>                 geometry_msgs/PoseStamped           a Dynamic Object
/camera/<name>/image/…         sensor_msgs/CompressedImage         ``…/compressed``, as it was stored
/camera/<name>/camera_info     sensor_msgs/CameraInfo              of the field of view, where it is known
/lidar/<name>/scan             sensor_msgs/LaserScan               as it was published
/lidar/<name>/points           sensor_msgs/PointCloud2             in the sensor's own axes
/series/<name>                 std_msgs/Float64                    a series
/events                        cognitive3d_msgs/Event              the users' events, as they can be played
/annotations                   cognitive3d_msgs/Annotation         annotations and log markers
/events/all                    std_msgs/String                     every event as JSON, with its place
/events/log                    rcl_interfaces/Log                  events and regions as lines of a log
/events/markers                visualization_msgs/MarkerArray      events and regions where they were
=============================  ==================================  ==========================================

An event whose place is not known has the place null in /events/all, and no marker. Where the session's axes are
not known there is no tf, no pose, no object, no cloud and no marker.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from typing import Any, Final, TypeVar

import numpy as np

from cognitive3d_ros.export.event_messages import EventMessages
from cognitive3d_ros.export.job import Job
from cognitive3d_ros.export.ros import RosView, note_numbers, note_snapshots, times_ns
from cognitive3d_ros.export.serialiser import NUMBER, POSE, TF, Message, Serialiser, Timed, Topic
from cognitive3d_ros.session.records import CameraFrame, LaserScan, PointCloud, SensorRecord
from cognitive3d_ros.session.sensors import Sensor

_IMAGE: Final = 'sensor_msgs/msg/CompressedImage'
_CAMERA_INFO: Final = 'sensor_msgs/msg/CameraInfo'
_SCAN: Final = 'sensor_msgs/msg/LaserScan'
_POINTS: Final = 'sensor_msgs/msg/PointCloud2'
_SHOWN: Final = 5  # of names that are told
_FLOAT32: Final = 7  # of sensor_msgs/PointField
R = TypeVar('R', bound=SensorRecord)


class RosMessages:
    """Makes the messages of one export."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._session = job.session
        self._view = RosView(job)
        self._made = Serialiser()
        self._tf = Topic('/tf', TF)
        self.store = self._made.store
        """The types of the messages."""

    def messages(self) -> Iterator[Message]:
        """Give all messages by time."""
        self._job.expect_all()
        note_numbers(self._job)
        note_snapshots(self._job)
        events = EventMessages(self._job, self._view, self._made).messages()
        streams = [self._path(), *self._objects(), *self._cameras(), *self._lidars()]
        streams += self._series()
        self._note_names()
        return heapq.merge(*streams, events, key=lambda message: message.time_ns)

    def _note_names(self) -> None:
        """Say which names no topic can have."""
        renamed = self._made.renamed
        if renamed:
            shown = [f'{text[:40]!r} is {name[:60]}' for text, name in renamed[:_SHOWN]]
            more = len(renamed) - len(shown)
            told = ', '.join([*shown, f'and {more} more'] if more else shown)
            self._job.note(f'names that no topic can have are changed: {told}')

    def _path(self) -> Iterator[Message]:
        topic, view = Topic('/pose', POSE, self._about('pose')), self._view
        path = view.path()
        poses = self._made.poses(view.reference, *path)
        transforms = self._made.transforms(view.reference, view.robot, *path)
        for (at_ns, pose), (_, transform) in zip(poses, transforms, strict=True):
            yield Message(at_ns, self._tf, transform)
            yield Message(at_ns, topic, pose)
            self._job.step()

    def _objects(self) -> Iterator[Iterator[Message]]:
        dynamics, view = self._session.dynamics, self._view
        if view.axes is None:
            return
        for object_id, own in dynamics.rows_by_id().items():
            rows = own[np.argsort(dynamics.time[own], kind='stable')]
            about = {**self._about('dynamics'), 'c3d.id': object_id}
            topic = Topic(self._made.name('/dynamics/', object_id), POSE, about)
            at_ns = times_ns(dynamics.time[rows])
            p = view.position(dynamics.p[rows])
            r = view.axes.ros_object_rotation(dynamics.r[rows])
            poses = self._made.poses(view.reference, at_ns, p, r)
            yield self._counted(topic, poses)

    def _series(self) -> Iterator[Iterator[Message]]:
        for series in self._session.series.values():
            name = self._made.name('/series/', series.name)
            topic = Topic(name, NUMBER, self._about(f'series/{series.name}'))
            order = np.argsort(series.time, kind='stable')
            at_ns = times_ns(series.time[order])
            numbers = self._made.numbers(at_ns, series.value[order])
            yield self._counted(topic, numbers)

    def _about(self, stream: str) -> dict[str, str]:
        """Return the metadata of a stream: its name, and where it came from."""
        known = self._session.streams.get(stream)
        return {'c3d.stream': stream, **({} if known is None else known.rock())}

    def _counted(self, topic: Topic, rows: Iterator[Timed]) -> Iterator[Message]:
        for at_ns, data in rows:
            yield Message(at_ns, topic, data)
            self._job.step()

    def _placed(self, sensor: Sensor[R]) -> Iterator[tuple[R, list[Message]]]:
        """Give the records of a sensor by time, each with the transform that says where it was.

        There is none where the sensor's frame is the one that all poses are in, or no place is known.
        """
        view, parent = self._view, self._view.reference
        order = np.argsort(sensor.time, kind='stable')
        placed = view.axes is not None
        kinds = sensor.kinds if placed else ()
        poses = {kind: view.sensor_poses(kind, sensor.pose[order]) for kind in kinds}
        templates: dict[str, bytes] = {}
        for row, index in enumerate(order.tolist()):
            for record in sensor.at([index]):
                child = record.frame_id
                if not placed or not child or child == parent:
                    yield record, []
                    continue
                p, r = poses[type(record)]
                if child not in templates:
                    templates[child] = self._made.transform(0, parent, child, p[row], r[row])
                where = (*p[row].tolist(), *r[row].tolist())
                data = self._made.moved(templates[child], record.time_ns, where)
                yield record, [Message(record.time_ns, self._tf, data)]

    def _cameras(self) -> Iterator[Iterator[Message]]:
        for name in self._session.cameras:
            base = self._made.name('/camera/', name)
            about = self._about(f'camera/{name}')
            image = Topic(f'{base}/image/compressed', _IMAGE, about)
            yield self._frames(name, image, Topic(f'{base}/camera_info', _CAMERA_INFO, about))

    def _frames(self, name: str, image: Topic, info: Topic) -> Iterator[Message]:
        # Of all messages of one camera little but the picture differs.
        images: dict[tuple[str, str], bytes] = {}
        infos: dict[tuple[object, ...], bytes] = {}
        for frame, placed in self._placed(self._session.camera(name)):
            at_ns = frame.time_ns
            yield from placed
            form = frame.frame_id, frame.format
            if form not in images:
                header = self._made.header(0, frame.frame_id)
                nothing = np.empty(0, np.uint8)
                made = self._made.message(
                    0, image, header=header, format=frame.format, data=nothing
                )
                images[form] = made.data
            yield Message(at_ns, image, self._made.with_data(images[form], at_ns, frame.data))
            if 0 < frame.hfov_degrees < 180 and 0 < frame.vfov_degrees < 180:
                view = frame.hfov_degrees, frame.vfov_degrees
                lens = frame.frame_id, frame.width, frame.height, *view
                if lens not in infos:
                    infos[lens] = self._camera_info(frame, info)
                yield Message(at_ns, info, self._made.stamped(infos[lens], at_ns))
            self._job.step()
        if infos:
            self._job.note(
                'camera_info is of the field of view: the principal point in the middle, no distortion'
            )

    def _camera_info(self, frame: CameraFrame, topic: Topic) -> bytes:
        """Return the pinhole camera that has the frame's field of view."""
        width, height = frame.width, frame.height
        fx = width / 2 / math.tan(math.radians(frame.hfov_degrees) / 2)
        fy = height / 2 / math.tan(math.radians(frame.vfov_degrees) / 2)
        cx, cy = (width - 1) / 2, (height - 1) / 2
        return self._made.message(
            0,
            topic,
            header=self._made.header(0, frame.frame_id),
            height=height,
            width=width,
            distortion_model='plumb_bob',
            d=np.zeros(5),
            k=np.array([fx, 0, cx, 0, fy, cy, 0, 0, 1]),
            r=np.eye(3).ravel(),
            p=np.array([fx, 0, cx, 0, 0, fy, cy, 0, 0, 0, 1, 0]),
            binning_x=0,
            binning_y=0,
            roi=self._made.make('sensor_msgs/RegionOfInterest', 0, 0, 0, 0, do_rectify=False),
        ).data

    def _lidars(self) -> Iterator[Iterator[Message]]:
        for name in self._session.lidars:
            base = self._made.name('/lidar/', name)
            about = self._about(f'lidar/{name}')
            scan = Topic(f'{base}/scan', _SCAN, about)
            yield self._sweeps(name, scan, Topic(f'{base}/points', _POINTS, about))

    def _sweeps(self, name: str, scan: Topic, points: Topic) -> Iterator[Message]:
        for record, placed in self._placed(self._session.lidar(name)):
            yield from placed
            header = self._made.header(record.time_ns, record.frame_id)
            if isinstance(record, LaserScan):
                yield self._scan(record, scan, header)
            elif self._view.axes is None:
                continue  # points are in scene axes
            elif isinstance(record, PointCloud):
                yield self._cloud(record, points, header)
            self._job.step()

    def _scan(self, record: LaserScan, topic: Topic, header: Any) -> Message:
        return self._made.message(
            record.time_ns,
            topic,
            header=header,
            angle_min=record.angle_min,
            angle_max=record.angle_max,
            angle_increment=record.angle_increment,
            time_increment=record.time_increment,
            scan_time=record.scan_time,
            range_min=record.range_min,
            range_max=record.range_max,
            ranges=record.ranges,
            intensities=record.intensities,
        )

    def _cloud(self, cloud: PointCloud, topic: Topic, header: Any) -> Message:
        xyz = self._view.points(cloud)
        columns: list[tuple[str, Any]] = [(name, xyz[:, i]) for i, name in enumerate('xyz')]
        if cloud.colors is not None:
            red, green, blue = cloud.colors.astype(np.uint32).T
            columns.append(('rgb', (red << 16 | green << 8 | blue).view(np.float32)))
        if cloud.intensities is not None:
            columns.append(('intensity', cloud.intensities.astype(np.float32)))
        data = np.empty((len(xyz), len(columns)), '<f4')
        for index, (_, values) in enumerate(columns):
            data[:, index] = values
        return self._made.message(
            cloud.time_ns,
            topic,
            header=header,
            height=1,
            width=len(xyz),
            fields=[
                self._made.make('sensor_msgs/PointField', name, 4 * index, _FLOAT32, 1)
                for index, (name, _) in enumerate(columns)
            ],
            is_bigendian=False,
            point_step=4 * len(columns),
            row_step=4 * len(columns) * len(xyz),
            data=data.view(np.uint8).ravel(),
            is_dense=True,
        )
