"""From raw values to a :class:`Config`, telling every fault at once."""

from __future__ import annotations

import dataclasses
import difflib
import ipaddress
import re
import urllib.parse
import uuid
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from cognitive3d_ros.errors import ParameterError

from .config import (
    ActionConfig,
    CameraConfig,
    Config,
    LidarConfig,
    SensorConfig,
    SpoolConfig,
    TopicConfig,
    UploadConfig,
)
from .declaration import (
    ARRAY,
    CLIENT_LIBRARY,
    CLIENT_LIBRARY_PREFIX,
    CONE,
    FAMILIES,
    SCALARS,
    Parameter,
    Value,
)
from .values import (
    check_gateway,
    convert,
    expand_path,
    is_empty,
    show,
    type_properties,
)

Fields = dict[str, Any]

_SECRET = re.compile(r'key|secret|token|passw', re.IGNORECASE)
_LEAST_LIKENESS = 0.7  # of a name that is probably meant, 1 for the same name
_LONGEST_NAME = 200  # beyond which no nearest name is looked for


def parse(values: Mapping[str, object]) -> Config:
    """Check all parameters and return them.

    ``values`` are as ROS hands them over: flat names, plain values and lists. A list that is None or
    empty is empty, any other None is not given, an integer is taken where a number is wanted. What
    the ROS client library declares for itself is passed over. "~" in paths is expanded by HOME.

    Raises ParameterError with one sentence for each fault.
    """
    check = _Check(values)
    fields = check.scalars()
    fields |= check.families(fields)
    if fields['ignore_unknown_parameters'] is False:
        check.unknown()
    if check.faults:
        raise ParameterError(check.faults)
    for name, kind in (('spool', SpoolConfig), ('upload', UploadConfig)):
        keys = [field.name for field in dataclasses.fields(kind)]
        fields[name] = kind(**{key: fields.pop(f'{name}_{key}') for key in keys})
    return Config(**fields)


def warnings(config: Config) -> list[str]:
    """Return what is allowed and yet hardly meant, one sentence each."""
    found = []
    url = urllib.parse.urlsplit(config.gateway)
    if url.scheme == 'http' and not _is_loopback(url.hostname or ''):
        found.append(
            f'gateway is {config.gateway}: the application key and all data travel unencrypted; use '
            'https'
        )
    if not _is_uuid(config.scene_id):
        found.append(
            f"scene_id is {show(config.scene_id)}: the dashboard's ids look like "
            '01234567-89ab-cdef-0123-456789abcdef'
        )
    if not config.spool.dir.is_absolute():
        found.append(
            f"spool.dir is '{config.spool.dir}', relative to where the node is started: started "
            'elsewhere it does not find what is left to deliver; write the whole path'
        )
    found += [
        f'sensor.{sensor.name}.mount_xyz_meters is set and mount_parent is not: set both'
        for sensor in config.sensors
        if sensor.mount_xyz_meters and not sensor.mount_parent
    ]
    return found


def series_prefix(topic: str) -> str:
    """Return what the series of a topic begin with: ``/robot/odom`` gives ``robot.odom``."""
    return topic.removeprefix('/').replace('/', '.')


def sibling_info_topic(image_topic: str) -> str:
    """Return the ``camera_info`` beside an image topic, also beside its compressed form."""
    base = image_topic.removesuffix('/compressed').removesuffix('/compressedDepth')
    folder, slash, _ = base.rpartition('/')
    return f'{folder}{slash}camera_info'


def _is_loopback(host: str) -> bool:
    if host == 'localhost' or host.endswith('.localhost'):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_uuid(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text.lower()
    except ValueError:
        return False


def _always(_: Parameter) -> bool:
    return True


class _Check:
    """One run over a set of values. A fault does not end it: a default stands in."""

    def __init__(self, values: Mapping[str, object]) -> None:
        self.values = values
        self.faults: list[str] = []
        self.faulty: set[str] = set()
        self.known = set(SCALARS)
        self.owners: dict[tuple[str, str], str] = {}  # who records series, or events, of a name

    def fault(self, name: str, text: str) -> None:
        """Note a fault of a parameter, once where several entries of a list have it."""
        if f'{name} {text}' not in self.faults:
            self.faults.append(f'{name} {text}')
        self.faulty.add(name)

    def read(self, p: Parameter, name: str, *, required: bool = True) -> Value:
        """Return the value of one parameter, or its default where it is not given or faulty."""
        value = self.values.get(name)
        if value is None:
            value = () if p.kind.is_list and name in self.values else p.default
        if is_empty(value) and is_empty(p.default):
            if p.required and required:
                hint = f'; {p.hint}' if p.hint else ''
                self.fault(name, f'is required: it must be {p.allowed}{hint}')
            return p.default
        return convert(p, value, partial(self.fault, name))

    def given(self, name: str, value: object) -> bool:
        """Whether a parameter is set, or was meant to be."""
        return bool(value) or name in self.faulty

    # Scalars

    def scalars(self) -> Fields:
        """Read everything but the members of families."""
        fields: Fields = {p.field: self.read(p, name) for name, p in SCALARS.items()}
        for name, refine in (
            ('session_properties', type_properties),
            ('gateway', check_gateway),
            ('application_key_file', expand_path),
            ('spool.dir', expand_path),
        ):
            field = SCALARS[name].field
            fields[field] = refine(fields[field], partial(self.fault, name))
        for name in ('robot_object_id', 'robot_display_name'):
            fields[name] = fields[name] or fields['device_id']
        if fields['sim_time_on_wire'] and not self.given('use_sim_time', fields['use_sim_time']):
            self.fault('sim_time_on_wire', 'is true: use_sim_time must be true as well')
        if fields['robot_dynamic_object'] and not self.given('robot_mesh', fields['robot_mesh']):
            self.fault('robot_mesh', 'is required: robot_dynamic_object is true')
        return fields

    # Families

    def families(self, fields: Fields) -> Fields:
        """Read the members of all families; they take the place of the lists that name them."""
        lists: dict[str, list[str]] = {}
        for word, family in FAMILIES.items():
            lists |= self.entries(word, {name: fields[name] for name in family.lists})
        return {
            'topics': tuple(self.topic(entry) for entry in lists['topics']),
            'actions': tuple(self.action(entry) for entry in lists['actions']),
            'sensors': tuple(self.sensor(name) for name in lists['sensors']),
            'cameras': tuple(self.camera(name) for name in lists['cameras']),
            'lidars': tuple(LidarConfig(**self.member('lidar', name)) for name in lists['lidars']),
        }

    def entries(self, word: str, lists: Mapping[str, tuple[str, ...]]) -> dict[str, list[str]]:
        """Return lists without the entries whose name is taken; the keys of members become known."""
        members: set[str] = set()
        unique: dict[str, list[str]] = {}
        for list_name, entries in lists.items():
            names: set[str] = set()
            unique[list_name] = []
            for entry in entries:
                name = series_prefix(entry)  # a member's name is its own
                if name == entry:
                    self.known.update(f'{word}.{name}.{key.name}' for key in FAMILIES[word].keys)
                if name in names or entry in members:
                    self.fault(list_name, f'holds {show(entry)}: the name {name} is used twice')
                    continue
                unique[list_name].append(entry)
                names.add(name)
                if name == entry:
                    members.add(name)
        return unique

    def member(
        self, word: str, name: str, applies: Callable[[Parameter], bool] = _always, to: str = ''
    ) -> Fields:
        """Read the keys of one member. Those that do not apply ``to`` it must not be set."""
        fields: Fields = {'name': name}
        for key in FAMILIES[word].keys:
            full = f'{word}.{name}.{key.name}'
            value = self.read(key, full, required=applies(key))
            # The node declares all keys of a member: one that holds its default says nothing.
            if to and not applies(key) and value != key.default:
                self.fault(full, f'is {show(value)}: it has no meaning for {to}')
            fields[key.field] = value
        return fields

    def topic_or_action(self, entry: str, **what: Any) -> Fields:
        """Read a member, or make one with default settings of an entry that is its own topic."""
        if '/' in entry:
            fields: Fields = {key.field: key.default for key in FAMILIES['topic'].keys}
            fields |= {'name': series_prefix(entry), 'topic': entry}
        else:
            fields = self.member('topic', entry, **what)
        fields['prefix'] = fields['prefix'] or series_prefix(fields['topic'] or entry)
        return fields

    def topic(self, entry: str) -> TopicConfig:
        """Read a topic."""
        topic = TopicConfig(**self.topic_or_action(entry))
        if len(set(topic.fields)) < len(topic.fields):
            self.fault(f'topic.{entry}.fields', f'is {show(topic.fields)}: one stands twice')
        names = [topic.prefix, *(f'{topic.prefix}.{field}' for field in topic.fields)]
        self.claim('topics', entry, 'series', names)
        return topic

    def action(self, entry: str) -> ActionConfig:
        """Read an action."""
        fields = self.topic_or_action(
            entry, applies=lambda key: key.name in ('topic', 'prefix'), to='an action'
        )
        self.claim('actions', entry, 'events', [fields['prefix']])
        return ActionConfig(fields['name'], fields['topic'], fields['prefix'])

    def sensor(self, name: str) -> SensorConfig:
        """Read a described sensor."""
        kind = self.values.get(f'sensor.{name}.kind')
        if not isinstance(kind, str) or kind not in (CONE, ARRAY):
            return SensorConfig(**self.member('sensor', name, lambda key: not key.only))
        fields = self.member('sensor', name, lambda key: key.only in ('', kind), f'a {kind}')
        key = f'sensor.{name}.'
        low, high = fields['range_min_centimeters'], fields['range_max_centimeters']
        if low is not None and high is not None and low >= high:
            text = f'is {show(low)}: it must be less than range_max_centimeters, {show(high)}'
            self.fault(f'{key}range_min_centimeters', text)
        yaw = fields['mount_yaw_radians']
        if yaw and not self.given(f'{key}mount_xyz_meters', fields['mount_xyz_meters']):
            text = f'is {show(yaw)}: it needs mount_xyz_meters to be set as well'
            self.fault(f'{key}mount_yaw_radians', text)
        sensor = SensorConfig(**fields)
        self.claim('sensors', name, 'series', [name, *sensor.series])
        return sensor

    def camera(self, name: str) -> CameraConfig:
        """Read a camera."""
        fields = self.member('camera', name)
        low, high = fields['depth_range_m']
        if low >= high:
            self.fault(
                f'camera.{name}.depth_range_m',
                f'is {show((low, high))}: the first must be less than the second',
            )
        fields['info_topic'] = fields['info_topic'] or sibling_info_topic(fields['topic'] or '')
        return CameraConfig(**fields)

    def claim(self, list_name: str, entry: str, what: str, names: Iterable[str]) -> None:
        """Note who records series or events of these names (or of names that begin so)."""
        owner = f'{entry} in {list_name}'
        for name in names:
            taken = self.owners.setdefault((what, name), owner)
            if name == 'c3d' or name.startswith('c3d.'):
                reason = "would begin with c3d. like the recorder's own"
            elif taken != owner:
                reason = f'named {name} are those of {taken} too'
            else:
                continue
            text = f'holds {show(entry)}, whose {what} {reason}: give it another name or prefix'
            self.fault(list_name, text)
            return

    def unknown(self) -> None:
        """Note the names that are no parameters."""
        names: Iterable[object] = self.values  # a mapping may hold what its type denies
        for name in names:
            if not isinstance(name, str):
                self.faults.append(f'{show(name)} is given as a name: a name must be a text')
            elif not (
                name in self.known
                or name in CLIENT_LIBRARY
                or name.startswith(CLIENT_LIBRARY_PREFIX)
            ):
                self.faults.append(self.why_unknown(name))

    def why_unknown(self, name: str) -> str:
        """Return what is wrong with a name, and what is probably meant."""
        # Who takes the key for a parameter must not find it in a log.
        value = '(hidden)' if _SECRET.search(name) else show(self.values[name])
        shown = show(name)[1:-1]
        word, _, rest = name.partition('.')
        member, _, key = rest.partition('.')
        family = FAMILIES.get(word)
        if family and any(key == k.name for k in family.keys):
            lists = ' or '.join(family.lists)
            return f'{shown} is {value}: no such parameter, for {lists} must name {show(member)} first'
        near = difflib.get_close_matches(
            name[:_LONGEST_NAME], sorted(self.known), 1, _LEAST_LIKENESS
        )
        hint = f', the nearest is {near[0]}' if near else ''
        return f'{shown} is {value}: no such parameter{hint}'
