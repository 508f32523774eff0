"""MRPT's rawlogs, read as recordings: observations as messages, movements and sensor poses as tf.

A rawlog of actions and frames, and one of observations, are read alike. The robot is ``base_link``; it is in
``map`` where the log says where it is (CObservationRobotPose), else in ``odom`` by its odometry. The comment of
a log that ``c3d export`` wrote names other frames, and holds events and annotations.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, NamedTuple

import numpy as np

from cognitive3d_ros.bags.rawlog_losses import lost
from cognitive3d_ros.bags.rawlog_messages import Converter, Made, Place, header, quaternion
from cognitive3d_ros.bags.reader import Bag, BagFacts, BagMessage
from cognitive3d_ros.comments import images_directory, parse_blocks
from cognitive3d_ros.errors import BagError, FormatError
from cognitive3d_ros.wire.mrpt import CutOffError, Reader, open_rawlog, stamp_ns
from cognitive3d_ros.wire.mrpt import classes as mrpt

_TF, _TF_STATIC, _ODOM = '/tf', '/tf_static', '/odom'
_EVENTS, _ANNOTATIONS = '/events', '/annotations'
_TYPES: Final = {
    _TF: 'tf2_msgs/msg/TFMessage',
    _TF_STATIC: 'tf2_msgs/msg/TFMessage',
    _ODOM: 'nav_msgs/msg/Odometry',
    _EVENTS: 'cognitive3d_msgs/msg/Event',
    _ANNOTATIONS: 'cognitive3d_msgs/msg/Annotation',
}
_OURS: Final = 'c3d.'
"""What our blocks in a comment, and our own events, begin with."""
_ANNOTATION: Final = 'c3d.annotation'
_SAME: Final = 1e-5  # metres, or of a quaternion's components: poses of a sensor that is fixed

# What places the robot, the best first.
_PLACING: Final = (mrpt.RobotPose, mrpt.Odometry, mrpt.Movement3D, mrpt.Movement2D)


class _Item(NamedTuple):
    """An observation or a movement, and when it was."""

    stamp_ns: int
    content: Any


class RawlogBag(Bag):
    """An open rawlog. It is read once to see what is in it, and again when its messages are asked for."""

    def __init__(self, path: Path) -> None:
        """Raise BagError if it cannot be read, or nothing of it is known."""
        self._path = path
        self._stack = ExitStack()
        self.problems = []
        comment = _comment(path)
        self._blocks = parse_blocks(comment)
        self._converter = Converter(images_directory(path), self._named('frames'))
        self._events = self._told_events()
        self._still: dict[str, Place] = {}
        counts = self._survey()
        session = self._named('session')
        reference = 'map' if self._placing is mrpt.RobotPose else 'odom'
        self._reference = session.get('reference_frame', reference)
        self._robot = session.get('robot_frame', 'base_link')
        self.facts = BagFacts(
            name=path.resolve().name,
            distro='unknown',
            start_ns=self._start_ns,
            end_ns=self._end_ns,
            message_count=sum(counts.values()),
            topics=self._topics,
            publishers={},
            comment=_own_text(comment),
            lost=tuple(self._lost),
        )

    def messages(self, topics: Collection[str] | None = None) -> Iterator[BagMessage]:
        """Give the messages of some topics (None: of all) by the times of their observations."""
        receive_ns = self._start_ns
        for stamp, made in self._all():
            receive_ns = max(receive_ns, stamp)  # a log may go back a little; time does not
            if topics is None or made.topic in topics:
                yield BagMessage(made.topic, made.type, receive_ns, b'', made.decode)

    # What is in it

    def _survey(self) -> Counter[str]:
        """Read all of it; return how many messages it has of each topic."""
        counts: Counter[str] = Counter()
        self._topics: dict[str, str] = {}
        kinds: Counter[type[Any]] = Counter()
        placed: Counter[str] = Counter()
        moving: set[str] = set()
        stamps = [stamp for stamp, _ in self._events]
        self._lost: dict[str, None] = {}  # in the order in which they were met
        for stamp, content in _items(self._path, self.problems):
            kinds[type(content)] += 1
            self._lost.update(dict.fromkeys(lost(content)))
            stamps = [min([stamp, *stamps]), max([stamp, *stamps])]
            for made in self._converter.messages(content, stamp):
                self._topics.setdefault(made.topic, made.type)
                counts[made.topic] += 1
                if made.place is not None:
                    frame = made.place.frame
                    placed[frame] += 1
                    if not _same(self._still.setdefault(frame, made.place), made.place):
                        moving.add(frame)
        if not stamps:
            raise BagError('; '.join((f'{self._path} holds no observations', *self.problems)))
        self._start_ns, self._end_ns = min(stamps), max(stamps)
        self._still = {name: at for name, at in self._still.items() if name not in moving}
        self._placing = next((kind for kind in _PLACING if kinds[kind]), None)
        counts[_TF] = sum(placed[frame] for frame in moving)
        counts[_TF] += kinds[self._placing] if self._placing else 0
        counts[_TF_STATIC] = bool(self._still)
        counts[_ODOM] = sum(kinds[kind] for kind in _PLACING[1:])
        counts.update(made.topic for _, made in self._events)
        self._topics |= {topic: kind for topic, kind in _TYPES.items() if counts[topic]}
        return counts

    def _named(self, block: str) -> dict[str, str]:
        """Return one of our blocks in the comment."""
        name = f'{_OURS}{block}'
        return dict(self._blocks[name]) if self._blocks.has_section(name) else {}

    def _told_events(self) -> list[tuple[int, Made]]:
        """Return the events and annotations that the comment holds, by time."""
        found = []
        for text in self._named('events').values():
            told = _told(text)
            if told is None:
                self.problems.append(f'its comment has an event that is none: {text[:80]}')
            else:
                found += told
        return sorted(found, key=lambda each: each[0])

    # Its messages

    def _all(self) -> Iterator[tuple[int, Made]]:
        """Give all messages with their times."""
        if self._still:
            places = list(self._still.values())
            message = self._tf(self._start_ns, *((self._robot, place) for place in places))
            yield self._start_ns, Made(_TF_STATIC, _TYPES[_TF_STATIC], lambda: message)
        events = list(reversed(self._events))
        robot = _Robot()
        for stamp, content in _items(self._path, []):
            while events and events[-1][0] <= stamp:
                yield events.pop()
            if isinstance(content, _PLACING):
                yield from self._robot_messages(stamp, robot, content)
            for made in self._converter.messages(content, stamp):
                if made.place is not None and made.place.frame not in self._still:
                    yield stamp, self._moved(stamp, self._robot, made.place)
                yield stamp, made
        yield from reversed(events)

    def _robot_messages(
        self, stamp: int, robot: _Robot, content: Any
    ) -> Iterator[tuple[int, Made]]:
        """Give where the robot is, and its odometry."""
        place = robot.after(content, self._robot)
        if type(content) is self._placing:
            yield stamp, self._moved(stamp, self._reference, place)
        if not isinstance(content, mrpt.RobotPose):
            yield stamp, Made(_ODOM, _TYPES[_ODOM], lambda: _odometry(stamp, place, content))

    def _moved(self, stamp: int, parent: str, place: Place) -> Made:
        return Made(_TF, _TYPES[_TF], lambda: self._tf(stamp, (parent, place)))

    def _tf(self, stamp: int, *links: tuple[str, Place]) -> SimpleNamespace:
        """Return a TFMessage of frames and what they are placed in."""
        transforms = [
            SimpleNamespace(
                header=header(stamp, parent),
                child_frame_id=place.frame,
                transform=SimpleNamespace(
                    translation=_named_values('xyz', place.xyz),
                    rotation=_named_values('xyzw', place.rotation),
                ),
            )
            for parent, place in links
        ]
        return SimpleNamespace(transforms=transforms)


class _Robot:
    """Where the robot is by what was read so far; movements are added up."""

    def __init__(self) -> None:
        self._xyz = np.zeros(3)
        self._rotation = np.eye(3)

    def after(self, content: Any, frame: str) -> Place:
        """Return where it is by an observation, or after a movement."""
        if isinstance(content, mrpt.Movement2D | mrpt.Movement3D):
            if isinstance(content, mrpt.Movement2D):
                xyz, rotation = _in_space(content.increment)
            else:
                xyz, rotation = np.array(content.change.mean.xyz), content.change.mean.rotation
            with np.errstate(all='ignore'):  # damage may have made anything of them
                self._xyz = self._xyz + self._rotation @ xyz
                self._rotation = self._rotation @ rotation
            return Place(frame, tuple(self._xyz.tolist()), quaternion(self._rotation))
        if isinstance(content, mrpt.RobotPose):
            mean = content.pose.mean
            return Place(frame, tuple(mean.xyz), quaternion(mean.rotation))
        xyz, rotation = _in_space(content.pose)
        return Place(frame, tuple(xyz.tolist()), quaternion(rotation))


def _in_space(pose: mrpt.Pose2D) -> tuple[Any, Any]:
    x, y, phi = pose.x_y_phi
    with np.errstate(all='ignore'):
        cosine, sine = np.cos(phi), np.sin(phi)
    return np.array([x, y, 0.0]), np.array([[cosine, -sine, 0], [sine, cosine, 0], [0, 0, 1.0]])


def _odometry(stamp: int, place: Place, content: Any) -> SimpleNamespace:
    velocity = getattr(content, 'velocity', None)
    known = isinstance(velocity, list)
    vx, vy, omega = velocity if isinstance(velocity, list) else [float('nan')] * 3
    still = 0.0 if known else float('nan')
    return SimpleNamespace(
        header=header(stamp, 'odom'),
        child_frame_id=place.frame,
        pose=SimpleNamespace(
            pose=SimpleNamespace(
                position=_named_values('xyz', place.xyz),
                orientation=_named_values('xyzw', place.rotation),
            )
        ),
        twist=SimpleNamespace(
            twist=SimpleNamespace(
                linear=SimpleNamespace(x=vx, y=vy, z=still),
                angular=SimpleNamespace(x=still, y=still, z=omega),
            )
        ),
    )


def _told(text: str) -> list[tuple[int, Made]] | None:
    """Return an event of a comment as a message, of the recorder's own none; None if it is no event."""
    try:
        event = json.loads(text)
        name, time_ns, properties = event['name'], _ns(event['time']), event['properties']
        if name == _ANNOTATION:
            message = SimpleNamespace(
                time=header(_ns(properties['annotation_time']), '').stamp,
                **{key: str(properties[key]) for key in ('stream_name', 'key', 'value')},
            )
            return [(time_ns, Made(_ANNOTATIONS, _TYPES[_ANNOTATIONS], lambda: message))]
        if name.startswith(_OURS):
            return []
        properties_json = json.dumps(properties)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    message = SimpleNamespace(
        header=header(time_ns, ''), name=name, properties_json=properties_json
    )
    return [(time_ns, Made(_EVENTS, _TYPES[_EVENTS], lambda: message))]


def _ns(seconds: float) -> int:
    """Return seconds of five decimals in nanoseconds."""
    return round(seconds * 100_000) * 10_000


def _named_values(names: str, values: tuple[float, ...]) -> SimpleNamespace:
    return SimpleNamespace(**dict(zip(names, values, strict=True)))


def _same(one: Place, other: Place) -> bool:
    with np.errstate(all='ignore'):
        apart = np.abs(np.subtract(one.xyz, other.xyz)).max()
        turned = min(
            np.abs(np.subtract(one.rotation, other.rotation)).max(),
            np.abs(np.add(one.rotation, other.rotation)).max(),
        )
    return bool(max(apart, turned) <= _SAME)


def _own_text(comment: str) -> str:
    """Return a comment without the blocks that an export has added to it."""
    return comment.partition(f'[{_OURS}')[0].rstrip('\n')


def _comment(path: Path) -> str:
    """Return the comment at the head of a rawlog, or nothing."""
    for content in _objects(path, []):
        return content.text if isinstance(content, mrpt.Comment) else ''
    return ''


def _items(path: Path, problems: list[str]) -> Iterator[_Item]:
    """Give observations and movements, those without a time with the time of the next that has one."""
    waiting: list[Any] = []
    latest = 0
    for content in _objects(path, problems):
        for each in _parts(content):
            known = stamp_ns(each.ticks)
            if known is None:
                waiting.append(each)
                continue
            latest = known
            yield from (_Item(known, one) for one in waiting)
            waiting.clear()
            yield _Item(known, each)
    yield from (_Item(latest, one) for one in waiting if latest)


def _parts(content: Any) -> list[Any]:
    """Return the observations or movements in an object of a rawlog."""
    if isinstance(content, mrpt.SensoryFrame):
        return content.observations
    if isinstance(content, mrpt.ActionCollection):
        return content.actions
    return [] if isinstance(content, mrpt.Comment) else [content]


def _objects(path: Path, problems: list[str]) -> Iterator[Any]:
    """Give the objects of a rawlog; one that was cut off ends where it was.

    Raises BagError for a class, or a version of one, that is not read: nothing behind it can be.
    """
    count = 0
    try:
        with open_rawlog(path) as file:
            for content in Reader(file, mrpt.CLASSES).objects():
                yield content
                count += 1
    except CutOffError as error:
        problems.append(f'{path.name} is cut off in its object {count + 1}: {error}')
    except FormatError as error:
        raise BagError(f'{path}: object {count + 1}: {error}') from None
    except OSError as error:
        raise BagError(f'{path}: {error.strerror or error}') from None
