"""Events and marked regions as ROS 2 messages: to be played, read, seen in a log, and seen where they were."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

import numpy as np

from cognitive3d_ros.export.job import Job
from cognitive3d_ros.export.ros import RosView, event_facts
from cognitive3d_ros.export.serialiser import ANNOTATION, EVENT, Message, Serialiser
from cognitive3d_ros.quaternions import IDENTITY
from cognitive3d_ros.session.markers import Region, RegionState
from cognitive3d_ros.session.records import Annotation, Event

_STRING: Final = 'std_msgs/msg/String'
_LOG: Final = 'rcl_interfaces/msg/Log'
_MARKERS: Final = 'visualization_msgs/msg/MarkerArray'
_INFO, _WARN = 20, 30  # of rcl_interfaces/Log
_TEXT, _LINE_STRIP = 9, 4  # of visualization_msgs/Marker
_OWN: Final = 'c3d.'
"""What the recorder's own events begin with, which it takes from nobody."""

Color = tuple[float, float, float]
_WHITE: Final = (1.0, 1.0, 1.0)
_COLORS: Final = {
    RegionState.COMPLETED: (0.1, 0.7, 0.2),
    RegionState.ABORTED: (0.9, 0.2, 0.1),
    RegionState.RESTARTED: (0.9, 0.6, 0.1),
    RegionState.OPEN: (0.5, 0.5, 0.5),
}


class EventMessages:
    """Makes the messages of a session's events and regions."""

    def __init__(self, job: Job, view: RosView, serialiser: Serialiser) -> None:
        self._job = job
        self._session = job.session
        self._view = view
        self._made = serialiser
        self._streams = job.session.streams
        self._markers = 0

    def messages(self) -> Iterator[Message]:
        """Give the messages by time."""
        made = [message for event in self._session.events for message in self._event(event)]
        for region in self._session.regions():
            made += self._region(region)
        return iter(sorted(made, key=lambda message: message.time_ns))

    def _event(self, event: Event) -> Iterator[Message]:
        made, at_ns = self._made, event.time_ns
        point = self._view.where(event)
        properties = dict(event.properties)
        told = json.dumps(properties, ensure_ascii=False) if properties else ''
        if isinstance(event, Annotation):
            yield made.message(
                at_ns,
                made.topic('/annotations', ANNOTATION, self._streams['annotations'].rock()),
                time=made.time(round(event.annotation_time * 1e9)),
                stream_name=event.stream_name,
                key=event.key,
                value=event.value,
            )
            label, text = event.value, f'{event.key}: {event.value}'
        else:
            if not event.name.startswith(_OWN):
                yield made.message(
                    at_ns,
                    made.topic('/events', EVENT, self._streams['events'].rock()),
                    header=made.header(at_ns, self._view.reference),
                    name=event.name,
                    properties_json=told,
                )
            label, text = event.name, f'{event.name} {told}'.rstrip()
        facts = event_facts(event, point)
        yield made.message(
            at_ns,
            made.topic('/events/all', _STRING),
            data=json.dumps(facts, ensure_ascii=False),
        )
        yield self._log_line(at_ns, _INFO, text)
        if point is not None:
            yield self._marker(at_ns, 'events', point=point, text=label)
        self._job.step()

    def _region(self, region: Region) -> Iterator[Message]:
        stop = self._session.end if region.stop is None else region.stop
        at_ns = round(stop * 1e9)
        index = '' if region.index is None else f' {region.index}'
        text = f'region{index} {region.state.value} after {stop - region.start:.2f} s'
        said = '; '.join(each for each in (region.start_text, region.stop_text) if each)
        level = _WARN if region.state is RegionState.ABORTED else _INFO
        yield self._log_line(at_ns, level, f'{text}: {said}' if said else text)
        track = self._session.track
        within = (track.time >= region.start) & (track.time <= stop)
        if self._view.axes is not None and within.sum() >= 2:  # a line has two ends
            line = self._view.position(track.p[within]).tolist()
            yield self._marker(at_ns, 'regions', line=line, color=_COLORS[region.state])

    def _log_line(self, at_ns: int, level: int, text: str) -> Message:
        return self._made.message(
            at_ns,
            self._made.topic('/events/log', _LOG),
            stamp=self._made.time(at_ns),
            level=level,
            name=self._session.id,
            msg=text,
            file='',
            function='',
            line=0,
        )

    def _marker(
        self,
        at_ns: int,
        namespace: str,
        *,
        point: list[float] | None = None,
        text: str = '',
        line: list[list[float]] | None = None,
        color: Color = _WHITE,
    ) -> Message:
        """Return an array of one marker: a text at a point, or a line."""
        make = self._made.make
        self._markers += 1
        marker = make(
            'visualization_msgs/Marker',
            header=self._made.header(at_ns, self._view.reference),
            ns=namespace,
            id=self._markers,
            type=_TEXT if line is None else _LINE_STRIP,
            action=0,
            pose=make(
                'geometry_msgs/Pose',
                make('geometry_msgs/Point', *(point or (0.0, 0.0, 0.0))),
                make('geometry_msgs/Quaternion', *IDENTITY),
            ),
            scale=make('geometry_msgs/Vector3', 0.1, 0.1, 0.4),
            color=make('std_msgs/ColorRGBA', *color, 1.0),
            lifetime=make('builtin_interfaces/Duration', 0, 0),
            frame_locked=False,
            points=[make('geometry_msgs/Point', *each) for each in line or ()],
            colors=[],
            texture_resource='',
            texture=make(
                'sensor_msgs/CompressedImage', self._made.header(0, ''), '', np.zeros(0, np.uint8)
            ),
            uv_coordinates=[],
            text=text,
            mesh_resource='',
            mesh_file=make('visualization_msgs/MeshFile', '', np.zeros(0, np.uint8)),
            mesh_use_embedded_materials=False,
        )
        topic = self._made.topic('/events/markers', _MARKERS)
        return self._made.message(at_ns, topic, markers=[marker])
