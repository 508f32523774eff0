"""The pose timeline: which frame a session is in, where the robot was at a tick, and what is skipped.

Source: data format, The pose timeline. A sample belongs to its tick: the pose is looked up at the tick's ROS
time as soon as tf reaches it, for at most half a second; then the newest common transform is taken,
unless it is stale.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from cognitive3d_ros.clock import NS_PER_S
from cognitive3d_ros.parameters import Config
from cognitive3d_ros.tf import Miss, Transform, TransformSource

TF_WAIT_NS = NS_PER_S // 2  # how long a record waits for tf to reach it


@dataclass(frozen=True, slots=True)
class Tick:
    """One tick of the pose timeline: wire time, ROS time, session time, and how long it waits for tf."""

    wire_ns: int
    ros_ns: int
    session_ns: int
    deadline_mono_ns: int


class Skip(enum.Enum):
    """Why a tick has no sample."""

    TF = 'tf'
    STALE = 'stale'
    GAZE = 'gaze'


@dataclass(frozen=True, slots=True)
class Sample:
    """The robot frame and the frame the timeline is drawn from, both in the reference frame."""

    robot: Transform
    gaze: Transform


class FrameChoice:
    """Which reference frame the session is in: the preferred one, or the next after a while.

    ``frame`` is None until it is chosen; while the preferred one is waited for, ``waiting`` is true.
    """

    def __init__(self, config: Config) -> None:
        self._frames = config.reference_frames
        self._robot = config.robot_frame
        self._wait_ns = round(config.reference_wait_s * NS_PER_S)
        self.frame: str | None = None

    @property
    def preferred(self) -> str:
        """The frame the session would rather be in."""
        return self._frames[0]

    def waiting(self, session_ns: int) -> bool:
        """Say whether the preferred frame is still waited for (``reference_wait_s``; 0 = for ever)."""
        return self.frame is None and (self._wait_ns == 0 or session_ns < self._wait_ns)

    def choose(self, transforms: TransformSource, session_ns: int) -> str | None:
        """Choose where that can be done now; return the frame."""
        if self.frame is None:
            frames = self._frames[:1] if self.waiting(session_ns) else self._frames
            for frame in frames:
                if isinstance(transforms.lookup(frame, self._robot, None), Transform):
                    self.frame = frame
                    break
        return self.frame


class PoseSource:
    """Where the robot is, and whether what tf says of it still moves on."""

    def __init__(self, config: Config, transforms: TransformSource) -> None:
        self._transforms = transforms
        self._robot = config.robot_frame
        self._gaze = config.gaze_frame if config.gaze_frame != config.robot_frame else ''
        self._stale_ns = round(config.stale_pose_s * NS_PER_S)
        self._newest_ns: int | None = None  # stamp of the newest transform seen
        self._advanced_ns = 0  # session time at which that stamp last advanced

    def clock_jumped(self) -> None:
        """Forget stamps of a ROS clock that jumped."""
        self._newest_ns = None

    def robot_at(self, frame: str, ros_ns: int) -> Transform | Miss:
        """Return the robot frame in ``frame`` at a ROS time."""
        return self._transforms.lookup(frame, self._robot, max(ros_ns, 1))

    def sample(self, frame: str, tick: Tick, *, last_chance: bool) -> Sample | Skip | None:
        """Return the sample of a tick, why there is none, or None while tf may still reach it."""
        robot = self.robot_at(frame, tick.ros_ns)
        if robot is Miss.FUTURE and not last_chance:
            return None
        if isinstance(robot, Transform):
            self._advance(tick.ros_ns, tick)
        else:
            newest = self._newest(robot, frame, self._robot)
            if newest is None:
                return Skip.TF
            if self._stale(newest, tick):
                return Skip.STALE
            robot = newest
        if not self._gaze:
            return Sample(robot, robot)
        gaze = self._transforms.lookup(frame, self._gaze, max(tick.ros_ns, 1))
        if gaze is Miss.FUTURE and not last_chance:
            return None
        if not isinstance(gaze, Transform):
            newest = self._newest(gaze, frame, self._gaze)
            if newest is None:
                return Skip.GAZE
            gaze = newest
        return Sample(robot, gaze)

    def _newest(self, miss: Miss, frame: str, source: str) -> Transform | None:
        """Return the newest common transform where only the time asked for was out of reach."""
        if miss not in (Miss.FUTURE, Miss.PAST):
            return None
        newest = self._transforms.lookup(frame, source, None)
        return newest if isinstance(newest, Transform) else None

    def _advance(self, stamp_ns: int, tick: Tick) -> None:
        self._newest_ns = max(stamp_ns, self._newest_ns or 0)
        self._advanced_ns = tick.session_ns

    def _stale(self, newest: Transform, tick: Tick) -> bool:
        """Say whether the stamp has not advanced for ``stale_pose_s``; a static chain's never does."""
        if newest.stamp_ns == 0:
            return False
        if self._newest_ns is None:
            # Never seen before: it advanced when it was stamped, as far as the ROS clock tells.
            age_ns = max(0, tick.ros_ns - newest.stamp_ns)
            self._newest_ns = newest.stamp_ns
            self._advanced_ns = tick.session_ns - age_ns
        elif newest.stamp_ns > self._newest_ns:
            self._advance(newest.stamp_ns, tick)
        return tick.session_ns - self._advanced_ns > self._stale_ns
