"""The buffer: tf2's core with ROS messages and times around it."""

from __future__ import annotations

import time as clock

from geometry_msgs.msg import TransformStamped
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.time import Time
from tf2_ros._core import Core

_DEFAULT_CACHE = Duration(seconds=10)
_NO_WAIT = Duration()
_POLL_S = 0.02


class Buffer:
    """Keeps the transforms of the last ``cache_time``."""

    def __init__(self, cache_time: Duration | None = None, node: Node | None = None) -> None:
        """Take ``node`` for the signature's sake: the service it is for needs all of tf2_msgs."""
        self._core = Core((cache_time or _DEFAULT_CACHE).nanoseconds)

    def clear(self) -> None:
        """Forget all but the static transforms."""
        self._core.clear()

    def set_transform(self, transform: TransformStamped, authority: str) -> None:
        """Add a transform as heard on /tf."""
        self._set(transform, authority, static=False)

    def set_transform_static(self, transform: TransformStamped, authority: str) -> None:
        """Add a transform as heard on /tf_static."""
        self._set(transform, authority, static=True)

    def lookup_transform(
        self, target_frame: str, source_frame: str, time: Time, timeout: Duration = _NO_WAIT
    ) -> TransformStamped:
        """Return the transform that takes points of source to target; time 0 is the newest."""
        self.can_transform(target_frame, source_frame, time, timeout)
        return self.lookup_transform_core(target_frame, source_frame, time)

    def lookup_transform_core(
        self, target_frame: str, source_frame: str, time: Time
    ) -> TransformStamped:
        """Look up without waiting."""
        found = self._core.lookup(target_frame, source_frame, time.nanoseconds)
        return _message(target_frame, source_frame, *found)

    def lookup_transform_full(
        self,
        target_frame: str,
        target_time: Time,
        source_frame: str,
        source_time: Time,
        fixed_frame: str,
    ) -> TransformStamped:
        """Look up between two times, over a frame that does not move."""
        found = self._core.lookup_full(
            target_frame,
            target_time.nanoseconds,
            source_frame,
            source_time.nanoseconds,
            fixed_frame,
        )
        return _message(target_frame, source_frame, *found)

    def can_transform(
        self,
        target_frame: str,
        source_frame: str,
        time: Time,
        timeout: Duration = _NO_WAIT,
        return_debug_tuple: bool = False,
    ) -> bool | tuple[bool, str]:
        """Return whether a look-up would succeed, waiting up to ``timeout`` until it does."""
        end_s = clock.monotonic() + timeout.nanoseconds / 1e9
        answer = self.can_transform_core(target_frame, source_frame, time)
        while not answer[0] and clock.monotonic() < end_s:
            clock.sleep(_POLL_S)
            answer = self.can_transform_core(target_frame, source_frame, time)
        return answer if return_debug_tuple else answer[0]

    def can_transform_core(
        self, target_frame: str, source_frame: str, time: Time
    ) -> tuple[bool, str]:
        """Return whether a look-up would succeed, and why not."""
        return self._core.can(target_frame, source_frame, time.nanoseconds)

    def _set(self, transform: TransformStamped, authority: str, *, static: bool) -> None:
        moved, turned = transform.transform.translation, transform.transform.rotation
        self._core.set(
            transform.header.frame_id,
            transform.child_frame_id,
            Time.from_msg(transform.header.stamp).nanoseconds,
            (moved.x, moved.y, moved.z, turned.x, turned.y, turned.z, turned.w),
            authority,
            static=static,
        )


def _message(target: str, source: str, values: list[float], stamp_ns: int) -> TransformStamped:
    message = TransformStamped()
    message.header.frame_id = target
    message.header.stamp = Time(nanoseconds=stamp_ns).to_msg()
    message.child_frame_id = source
    moved, turned = message.transform.translation, message.transform.rotation
    moved.x, moved.y, moved.z = values[:3]
    turned.x, turned.y, turned.z, turned.w = values[3:]
    return message
