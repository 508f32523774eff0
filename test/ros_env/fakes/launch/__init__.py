"""As much of ``launch`` as the launch file uses: every object remembers what it was given."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class LaunchContext:
    """The values of the launch arguments."""

    launch_configurations: dict[str, str] = field(default_factory=dict)


@dataclass
class LaunchDescription:
    """What a launch file describes."""

    entities: list[object]
