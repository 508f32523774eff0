"""tf of the live door: what tf2 knows, in the terms of the recorder."""

from __future__ import annotations

import threading
import time

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.time import Time
from tf2_ros import (
    Buffer,
    ConnectivityException,
    ExtrapolationException,
    LookupException,
    TransformException,
    TransformListener,
)

from cognitive3d_ros.log import Log
from cognitive3d_ros.tf import Miss, Transform

from .spinning import spin

_DEPTH = 100
_LEFTOVER_NS = 5_000_000_000  # how long after a clear transforms from before may still arrive
_AHEAD_NS = 5_000_000_000  # how far ahead of what is asked for their stamps then are


class LiveTransforms:
    """A ``TransformSource`` fed by /tf and /tf_static. A look-up never blocks and never raises.

    It listens as a hidden node of its own, in a thread of its own: however much else arrives, what tf says
    waits behind none of it.
    """

    def __init__(self, node: Node, log: Log) -> None:
        self._node = _hidden_node(node)
        # The buffer gets no node: its own jump callback is broken on some distros, so the owner
        # of this object calls clear().
        self._buffer = Buffer()
        self._listener = TransformListener(
            self._buffer,
            self._node,
            qos=QoSProfile(depth=_DEPTH),
            static_qos=QoSProfile(depth=_DEPTH, durability=DurabilityPolicy.TRANSIENT_LOCAL),
        )
        self._cleared_mono_ns: int | None = None
        self._closed = False
        self._executor = SingleThreadedExecutor(context=node.context)
        self._executor.add_node(self._node)
        self._thread = threading.Thread(
            target=spin,
            args=(self._executor, lambda: self._closed, log, node.context),
            name='c3d-tf',
            daemon=True,
        )
        self._thread.start()

    def close(self) -> None:
        """Stop listening."""
        self._closed = True
        self._executor.wake()
        self._thread.join()
        self._listener.unregister()
        self._executor.shutdown(timeout_sec=1.0)
        self._node.destroy_node()

    def clear(self) -> None:
        """Forget all but the static transforms: the clock they are stamped with went back."""
        self._buffer.clear()
        self._cleared_mono_ns = time.monotonic_ns()

    def lookup(self, target: str, source: str, time_ns: int | None) -> Transform | Miss:
        """Return the transform that takes points in ``source`` to ``target``, or why there is none."""
        try:
            # Time 0 is tf2's word for the newest.
            return self._lookup(target, source, 0 if time_ns is None else max(time_ns, 1))
        except ExtrapolationException:
            return Miss.FUTURE if time_ns is None else self._beyond(target, source, time_ns)
        except LookupException:
            return Miss.UNKNOWN_FRAME
        except ConnectivityException:
            return Miss.DISCONNECTED
        except TransformException:
            return Miss.INVALID

    def _lookup(self, target: str, source: str, time_ns: int) -> Transform:
        # The core's look-up: the other asks first whether it could succeed, to wait until it does.
        found = self._buffer.lookup_transform_core(target, source, Time(nanoseconds=time_ns))
        stamp, moved = found.header.stamp, found.transform.translation
        turned = found.transform.rotation
        return Transform(
            stamp.sec * 1_000_000_000 + stamp.nanosec,
            (moved.x, moved.y, moved.z),
            (turned.x, turned.y, turned.z, turned.w),
        )

    def _beyond(self, target: str, source: str, time_ns: int) -> Transform | Miss:
        """Say on which side of the buffer a time lies that it did not hold a moment ago.

        Links that have no time in common yet will have one when their next transforms come: FUTURE.
        """
        try:
            newest_ns = self._lookup(target, source, 0).stamp_ns
        except TransformException:
            return Miss.FUTURE
        if time_ns > newest_ns:
            return Miss.FUTURE
        if self._is_leftover(newest_ns - time_ns):
            self.clear()
            return Miss.FUTURE
        try:
            return self._lookup(target, source, time_ns)  # tf has reached it between the two
        except TransformException:
            return Miss.PAST

    def _is_leftover(self, ahead_ns: int) -> bool:
        """Say whether a transform from before the clock went back came in after the clear.

        /tf and /clock are not ordered; tf2 would refuse all that is stamped after the jump as too old.
        """
        if self._cleared_mono_ns is None or ahead_ns < _AHEAD_NS:
            return False
        return time.monotonic_ns() - self._cleared_mono_ns < _LEFTOVER_NS


def _hidden_node(node: Node) -> Node:
    """Return a node that hears of /tf what another one would, under its remapping, and offers nothing."""
    remapped = [f'{topic}:={node.resolve_topic_name(topic)}' for topic in ('/tf', '/tf_static')]
    return rclpy.create_node(
        f'_{node.get_name()}_tf',
        context=node.context,
        namespace=node.get_namespace(),
        cli_args=['--ros-args', *(word for rule in remapped for word in ('-r', rule))],
        use_global_arguments=False,
        enable_rosout=False,
        start_parameter_services=False,
        parameter_overrides=[Parameter('start_type_description_service', value=False)],
    )
