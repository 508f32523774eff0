"""The three clocks of the live door, read together."""

from __future__ import annotations

import time
from collections.abc import Callable

from rclpy.clock import ROSClock

from cognitive3d_ros.clock import Reading

_TOGETHER_NS = 2_000_000  # between reads further apart than this the thread was interrupted
_ATTEMPTS = 5


class LiveClocks:
    """Reads the wall, the monotonic and the ROS clock at one moment. Thread safe."""

    def __init__(
        self,
        ros_clock: ROSClock,
        *,
        wall_ns: Callable[[], int] = time.time_ns,
        mono_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._ros, self._wall_ns, self._mono_ns = ros_clock, wall_ns, mono_ns
        # Asked once: it is a parameter, which cannot be set while the node is configured.
        self._simulated = bool(ros_clock.ros_time_is_active)

    def read(self) -> Reading:
        """Return one look at the clocks; one that was interrupted is taken again."""
        closest_ns, reading = -1, Reading(0, 0, 0)
        for _ in range(_ATTEMPTS):
            mono_ns = self._mono_ns()
            wall_ns = self._wall_ns()
            # Without use_sim_time ROS time is the wall clock: the two are one reading, exactly.
            ros_ns = int(self._ros.now().nanoseconds) if self._simulated else wall_ns
            apart_ns = self._mono_ns() - mono_ns
            if closest_ns < 0 or apart_ns < closest_ns:
                closest_ns, reading = apart_ns, Reading(wall_ns, mono_ns, ros_ns)
            if apart_ns <= _TOGETHER_NS:
                break
        return reading
