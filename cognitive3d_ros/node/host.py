"""The facts of the machine and of the ROS graph that every session states."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from cognitive3d_ros.recording.properties import Host, os_name

_OS_RELEASE = Path('/etc/os-release')


def host_of(
    namespace: str, node: str, rmw: str, environment: Mapping[str, str] | None = None
) -> Host:
    """Return the host of a live node (data format, Session properties)."""
    env = os.environ if environment is None else environment
    distro = env.get('ROS_DISTRO') or 'unknown'
    try:
        system = os_name(_OS_RELEASE.read_text('utf-8', 'replace'))
    except OSError:
        system = 'unknown'
    # Humble has no such variable, and a session of it no such property.
    discovery = None if distro == 'humble' else env.get('ROS_AUTOMATIC_DISCOVERY_RANGE') or 'unset'
    return Host(
        ros_distro=distro,
        rmw=rmw,
        domain_id=env.get('ROS_DOMAIN_ID') or 'unset',
        discovery_range=discovery,
        namespace=namespace,
        node=node,
        os_name=system,
    )
