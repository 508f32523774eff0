"""tf out of a recording: from /tf and /tf_static, or derived from odometry where it has none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from cognitive3d_ros.bags.reader import Bag, BagMessage, topic_name
from cognitive3d_ros.clock import NS_PER_S
from cognitive3d_ros.errors import BagError
from cognitive3d_ros.parameters import Config
from cognitive3d_ros.tf import Transform, TransformBuffer, frame_name

TF: Final = '/tf'
TF_STATIC: Final = '/tf_static'
_TF_TYPES: Final = ('tf2_msgs/msg/TFMessage', 'tf/msg/tfMessage')
_ODOMETRY: Final = 'nav_msgs/msg/Odometry'

_FAR_NS: Final = (
    10 * NS_PER_S
)  # a stamp further than this from its receive time is of another clock


class TfTopics:
    """Puts what a recording says of frames into a tf buffer.

    ``topics`` are those to hand to :meth:`take`.
    """

    def __init__(self, bag: Bag, config: Config, odom_tf: str | None) -> None:
        """Raise BagError where ``odom_tf`` is no topic of nav_msgs/Odometry in the recording."""
        found = bag.facts.topics
        self.buffer = TransformBuffer()
        self.topics = {name for name in (TF, TF_STATIC) if found.get(name) in _TF_TYPES}
        self._robot = config.robot_frame
        self._references = config.reference_frames
        self._odometry = [name for name, kind in found.items() if kind == _ODOMETRY]
        self._said: set[str] = set()  # child frames that tf itself places
        self._behind_ns: int | None = None
        if odom_tf is not None:
            odom_tf = topic_name(odom_tf)
            if odom_tf not in self._odometry:
                there = ', '.join(self._odometry) or 'none'
                raise BagError(
                    f'--odom-tf {odom_tf}: {bag.facts.name} has no such topic of nav_msgs/Odometry; '
                    f'of that type it has: {there}'
                )
            self.topics.add(odom_tf)

    def take(self, message: BagMessage) -> None:
        """Take a message of one of ``topics``; raises FormatError where it cannot be read."""
        if message.topic in (TF, TF_STATIC):
            static = message.topic == TF_STATIC
            for stamped in message.message.transforms:
                self._said.add(frame_name(stamped.child_frame_id))
                at, turn = stamped.transform.translation, stamped.transform.rotation
                self._set(message, stamped.header, stamped.child_frame_id, at, turn, static=static)
        else:
            odometry = message.message
            child = odometry.child_frame_id or self._robot
            if frame_name(child) not in self._said:
                pose = odometry.pose.pose
                self._set(message, odometry.header, child, pose.position, pose.orientation)

    def _set(
        self,
        message: BagMessage,
        header: Any,
        child: str,
        at: Any,
        turn: Any,
        *,
        static: bool = False,
    ) -> None:
        stamp_ns = header.stamp.sec * NS_PER_S + header.stamp.nanosec
        self.buffer.set_transform(
            header.frame_id,
            child,
            stamp_ns,
            (at.x, at.y, at.z),
            (turn.x, turn.y, turn.z, turn.w),
            static=static,
        )
        if not static and self._behind_ns is None:
            self._behind_ns = message.receive_ns - stamp_ns

    def newest_ns(self) -> int:
        """Return the newest time for which tf knows where the robot is; 0 if there is none."""
        found = (self.buffer.lookup(frame, self._robot, None) for frame in self._references)
        return max((each.stamp_ns for each in found if isinstance(each, Transform)), default=0)

    def advice(self, *, use_sim_time: bool, poses: int) -> Iterator[str]:
        """Say why the poses of a session are wrong, or why there are none, as far as tf tells."""
        behind_ns = self._behind_ns or 0
        if not use_sim_time and abs(behind_ns) > _FAR_NS:
            yield (
                f'the first transform is stamped {behind_ns / NS_PER_S:.1f} s before it was received, '
                'by another clock: set use_sim_time to true'
            )
        if poses:
            return
        frames = ' or '.join(self._references)
        if not self.topics:
            told = '/tf is not in the recording'
            if self._odometry:
                told += f'; --odom-tf {self._odometry[0]} would derive it from odometry'
        else:
            told = f'tf never linked {self._robot} with {frames}'
        yield f'no pose could be recorded: {told}'
