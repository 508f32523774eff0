"""The properties of a session, and those that users give.

Source: data format, Session properties. The SDK's own come first, the user's stand beside them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from cognitive3d_ros.clock import NS_PER_S
from cognitive3d_ros.conventions import resolve_gaze_convention
from cognitive3d_ros.parameters import (
    Config,
    SensorConfig,
    check_property_name,
    check_property_value,
)
from cognitive3d_ros.wire.bodies import PropertyValue
from cognitive3d_ros.wire.identity import SessionIdentity
from cognitive3d_ros.wire.numbers import rounded

MAX_JSON_BYTES = 65_536  # of the JSON of one event, or of one session's properties
MAX_TEXT_CHARS = 1_024  # of a session's name or its participant's id


@dataclass(frozen=True, slots=True)
class Host:
    """Where the recorder runs: facts that the door finds out.

    ``domain_id`` is text or ``unset``; ``discovery_range`` is None where the distro has none (Humble);
    ``source`` is the file's name where a recording is read instead of a robot.
    """

    ros_distro: str = 'unknown'
    rmw: str = 'unknown'
    domain_id: str = 'unset'
    discovery_range: str | None = 'unset'
    namespace: str = '/'
    node: str = 'cognitive3d'
    os_name: str = 'unknown'
    source: str | None = None


def os_name(os_release: str) -> str:
    """Return the operating system's name from the text of /etc/os-release: PRETTY_NAME, else NAME."""
    fields: dict[str, str] = {}
    for line in os_release.splitlines():
        key, equals, value = line.strip().partition('=')
        if equals and not key.startswith('#'):
            fields[key] = value.strip().strip('"\'')
    return fields.get('PRETTY_NAME') or fields.get('NAME') or 'unknown'


def parse_properties(text: str) -> dict[str, PropertyValue]:
    """Read a JSON object of properties given by a user; an empty text is an empty object.

    Raises ValueError that names the key at fault: no object, a reserved name, a value that is no string,
    number or boolean, or more than 64 KiB of it.
    """
    if len(text) > MAX_JSON_BYTES:
        raise ValueError(f'{len(text)} characters of JSON: at most {MAX_JSON_BYTES} are taken')
    if not text.strip():
        return {}
    try:
        properties = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f'not JSON: {error}') from None
    return check_properties(properties)


def check_properties(properties: object) -> dict[str, PropertyValue]:
    """Return a user's properties as they are, or raise ValueError naming the key at fault."""
    if not isinstance(properties, Mapping):
        raise ValueError(f'a JSON object is wanted, not {type(properties).__name__}')
    checked: dict[str, PropertyValue] = {}
    for key, value in properties.items():
        reason = check_property_name(key) or check_property_value(value)
        if reason:
            raise ValueError(f'property {key!r}: {reason}')
        checked[key] = value
    return checked


def session_properties(
    config: Config,
    host: Host,
    identity: SessionIdentity,
    *,
    name: str,
    participant_id: str,
    offset_ns: int,
    user: Mapping[str, PropertyValue],
    resolve: Callable[[str], str],
) -> dict[str, PropertyValue]:
    """Return all properties that are known when a session starts.

    ``name``, ``participant_id`` and ``user`` are what ~/start_session was given, ``resolve`` gives a
    topic its full name. A
    ``c3d.participant.id`` among the user's properties stands where no participant_id was given.
    """
    properties: dict[str, PropertyValue] = {
        'c3d.version': identity.sdk_version,
        'c3d.app.name': 'cognitive3d_ros',
        'c3d.app.version': identity.sdk_version,
        'c3d.app.engine': 'ROS2',
        'c3d.app.engine.version': host.ros_distro,
        'c3d.app.sdktype': 'ros',
        'c3d.deviceid': identity.device_id,
        'c3d.device.os': host.os_name,
        'c3d.participant.id': identity.device_id,
        'c3d.sessionname': name or config.session_name or identity.session_id,
        'c3d.ros.distro': host.ros_distro,
        'c3d.ros.rmw': host.rmw,
        'c3d.ros.domain_id': host.domain_id,
        'c3d.ros.namespace': host.namespace,
        'c3d.ros.node': host.node,
        'c3d.ros.robot_frame': config.robot_frame,
        'c3d.ros.pose_convention': config.pose_convention,
        'c3d.ros.use_sim_time': config.use_sim_time,
        'c3d.ros.sim_time_on_wire': config.sim_time_on_wire,
        'c3d.ros.robot_dynamic_object': config.robot_dynamic_object,
        'c3d.ros.clock_offset_s': rounded(offset_ns / NS_PER_S),
    }
    if host.discovery_range is not None:
        properties['c3d.ros.discovery_range'] = host.discovery_range
    if host.source is not None:
        properties['c3d.ros.source'] = host.source
    if config.session_comment:
        properties['c3d.ros.comment'] = config.session_comment
    if config.gaze_frame:
        properties['c3d.ros.gaze_frame'] = config.gaze_frame
        properties['c3d.ros.gaze_frame_convention'] = resolve_gaze_convention(
            config.gaze_frame, config.gaze_frame_convention
        )
    properties |= _stream_properties(config, resolve)
    properties |= sensor_properties(config.sensors, resolve)
    properties |= dict(config.session_properties)
    properties |= user
    if participant_id:
        properties['c3d.participant.id'] = participant_id
    return properties


def _stream_properties(config: Config, resolve: Callable[[str], str]) -> dict[str, PropertyValue]:
    """Return what the configuration says of topics, cameras and lidars; the doors add what they find out."""
    properties: dict[str, PropertyValue] = {}
    for kind, members in (
        ('camera', config.cameras),
        ('lidar', config.lidars),
        ('topic', config.topics),
    ):
        if members:
            properties[f'c3d.ros.{kind}s'] = ','.join(member.name for member in members)
        for member in members:
            properties[f'c3d.ros.{kind}.{member.name}.topic'] = resolve(member.topic)
            properties[f'c3d.ros.{kind}.{member.name}.rate_hz'] = rounded(member.rate_hz)
    for topic in config.topics:
        # By it a reader tells of which topic a series is.
        properties[f'c3d.ros.topic.{topic.name}.prefix'] = topic.prefix
    for camera in config.cameras:
        prefix = f'c3d.ros.camera.{camera.name}'
        properties[f'{prefix}.jpeg_quality'] = camera.jpeg_quality
        properties[f'{prefix}.max_width'] = camera.max_width
    for lidar in config.lidars:
        prefix = f'c3d.ros.lidar.{lidar.name}'
        properties[f'{prefix}.laserscan.intensities'] = lidar.laserscan_intensities
        properties[f'{prefix}.pointcloud.position'] = lidar.pointcloud_position
        properties[f'{prefix}.pointcloud.color'] = lidar.pointcloud_color
        properties[f'{prefix}.pointcloud.intensity'] = lidar.pointcloud_intensity
        properties[f'{prefix}.pointcloud.voxel_leaf_mm'] = lidar.pointcloud_voxel_leaf_mm
        properties[f'{prefix}.pointcloud.zstd_level'] = lidar.pointcloud_zstd_level
    return properties


def sensor_properties(
    sensors: Sequence[SensorConfig], resolve: Callable[[str], str]
) -> dict[str, PropertyValue]:
    """Return what the configuration says of described sensors (data format, Described sensors)."""
    if not sensors:
        return {}
    properties: dict[str, PropertyValue] = {
        'c3d.ros.sensors': ','.join(sensor.name for sensor in sensors)
    }
    for sensor in sensors:
        values: dict[str, PropertyValue | None] = {
            'kind': sensor.kind,
            'topic': resolve(sensor.topic),
            'series': ','.join(sensor.series),
            'frame': sensor.frame or None,
            'mount_parent': sensor.mount_parent or None,
            'mount_measured': sensor.mount_measured,
        }
        if sensor.element_count is None:
            xyz = sensor.mount_xyz_meters
            values |= {
                'units': sensor.units,
                'cone_half_angle_degrees': _rounded(sensor.cone_half_angle_degrees),
                'range_min_centimeters': _rounded(sensor.range_min_centimeters),
                'range_max_centimeters': _rounded(sensor.range_max_centimeters),
                'mount_xyz_meters': ','.join(map(_metres, xyz)) if xyz else None,
                # Always a double: + 0.0 turns -0.0 into 0.0.
                'mount_yaw_radians': round(sensor.mount_yaw_radians, 5) + 0.0 if xyz else None,
            }
        else:
            values |= {
                'element_count': sensor.element_count,
                'meaning_0': sensor.meaning_0 or None,
                'meaning_1': sensor.meaning_1 or None,
            }
        for key, value in values.items():
            if value is not None:
                properties[f'c3d.ros.sensor.{sensor.name}.{key}'] = value
    return properties


def _rounded(value: float | None) -> int | float | None:
    return None if value is None else rounded(value)


def _metres(value: float) -> str:
    """Return metres with two to five decimals: ``0.10``, ``-1.00005``."""
    whole, _, decimals = f'{round(value, 5) + 0.0:.5f}'.partition('.')
    return f'{whole}.{decimals.rstrip("0").ljust(2, "0")}'
