"""Messages of any type to samples of series: (name, value), as the message says them.

What is recorded of the types that robots have in common stands in tables here; of any other type, or instead of
the table's, those fields are read that the parameters list by dotted path. A path is made of names of fields
and of indices into lists, counted from 0: ``status.0.level``.

A value that is missing or is marked as unknown by the message is NaN, and NaN and infinities are no samples:
whoever stores them leaves them out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter, itemgetter
from typing import Any, Final

import numpy as np

from cognitive3d_ros.convert.names import BoundedNames
from cognitive3d_ros.convert.outcome import MALFORMED, Dropped, dropped
from cognitive3d_ros.convert.taken import NAN, Converter, Sample, Taken, number

Read = Callable[[Any], Sequence[Any]]
"""Returns the values of a message's fields, in the order of their names."""

_MICROTESLA: Final = 1e6  # in a tesla: in tesla the change gate would never open
_UNKNOWN: Final = (NAN, NAN, NAN)

# Earth, by WGS 84: half the equator's diameter in metres, and the square of the eccentricity.
_EQUATOR_M: Final = 6_378_137.0
_ECCENTRICITY_SQUARED: Final = 6.694_379_990_141_316e-3


# Types whose fields are always the same


def _xyz(vector: Any) -> tuple[Any, Any, Any]:
    return vector.x, vector.y, vector.z


def _twist(twist: Any) -> Sequence[Any]:
    return *_xyz(twist.linear), *_xyz(twist.angular)


def _wrench(wrench: Any) -> Sequence[Any]:
    return *_xyz(wrench.force), *_xyz(wrench.torque)


def _known(vector: Any, covariance: Sequence[float]) -> Sequence[Any]:
    """Return a vector, unless its covariance says that there is none (REP-145: the first element is -1)."""
    return _UNKNOWN if len(covariance) and covariance[0] == -1 else _xyz(vector)


def _imu(imu: Any) -> Sequence[Any]:
    return (
        *_known(imu.angular_velocity, imu.angular_velocity_covariance),
        *_known(imu.linear_acceleration, imu.linear_acceleration_covariance),
    )


def _battery(battery: Any) -> Sequence[Any]:
    percentage = number(battery.percentage)
    return (
        battery.voltage,
        battery.current,
        NAN if percentage < 0 else percentage,
        battery.temperature,
        battery.charge,
    )


def _magnetic_field(message: Any) -> Sequence[Any]:
    return [number(tesla) * _MICROTESLA for tesla in _xyz(message.magnetic_field)]


def _scan(scan: Any) -> Sequence[Any]:
    """Return the least range within the limits, and how many of all are: neither where there are no rays."""
    ranges = np.asarray(scan.ranges, dtype=np.float64)
    if not ranges.size:
        return NAN, NAN
    low, high = number(scan.range_min), number(scan.range_max)
    valid = ranges[(ranges >= low) & (ranges <= high) & (ranges < math.inf)]
    return valid.min() if valid.size else NAN, valid.size / ranges.size


def _axes(*prefixes: str) -> tuple[str, ...]:
    return tuple(f'{prefix}_{axis}' for prefix in prefixes for axis in 'xyz')


def _one(field: str) -> Read:
    get = attrgetter(field)
    return lambda message: (get(message),)


_TWIST: Final = _axes('linear', 'angular')
_WRENCH: Final = _axes('force', 'torque')
_SCALARS: Final = (
    *('Bool', 'Float32', 'Float64'),
    *(f'{sign}nt{bits}' for sign in ('I', 'UI') for bits in (8, 16, 32, 64)),
)

SCALAR_TYPES: Final = frozenset(f'std_msgs/msg/{name}' for name in _SCALARS)
"""Types that are a single number, ``data``: their series has the name of the topic itself."""

_FIXED: Final[Mapping[str, tuple[tuple[str, ...], Read]]] = {
    'nav_msgs/msg/Odometry': (_TWIST, lambda message: _twist(message.twist.twist)),
    'geometry_msgs/msg/Twist': (_TWIST, _twist),
    'geometry_msgs/msg/TwistStamped': (_TWIST, lambda message: _twist(message.twist)),
    'geometry_msgs/msg/Wrench': (_WRENCH, _wrench),
    'geometry_msgs/msg/WrenchStamped': (_WRENCH, lambda message: _wrench(message.wrench)),
    'sensor_msgs/msg/Imu': (_axes('angular_velocity', 'linear_acceleration'), _imu),
    'sensor_msgs/msg/BatteryState': (
        ('voltage', 'current', 'percentage', 'temperature', 'charge'),
        _battery,
    ),
    'sensor_msgs/msg/Range': (('range',), _one('range')),
    'sensor_msgs/msg/Temperature': (('temperature',), _one('temperature')),
    'sensor_msgs/msg/FluidPressure': (('pressure',), _one('fluid_pressure')),
    'sensor_msgs/msg/RelativeHumidity': (('humidity',), _one('relative_humidity')),
    'sensor_msgs/msg/Illuminance': (('illuminance',), _one('illuminance')),
    'sensor_msgs/msg/MagneticField': (('x_ut', 'y_ut', 'z_ut'), _magnetic_field),
    'sensor_msgs/msg/LaserScan': (('nearest', 'valid_fraction'), _scan),
    **{name: (('',), _one('data')) for name in SCALAR_TYPES},
}


class _Fields:
    """Reads a fixed list of fields."""

    def __init__(self, what: str, prefix: str, fields: Iterable[str], read: Read) -> None:
        self._what, self._read = what, read
        self._names = [f'{prefix}.{field}' if field else prefix for field in fields]

    def __call__(self, message: Any) -> Taken | Dropped:
        try:
            values = self._read(message)
            pairs = zip(self._names, values, strict=True)
            return Taken([(n, v if type(v) is float else number(v)) for n, v in pairs])
        except MALFORMED as error:
            return dropped(self._what, error)


# Types that need more than that


class _Joints:
    """``<joint>.position``, ``.velocity`` and ``.effort`` of a JointState.

    An array that is not one value a joint says of no joint what is its, and is passed over.
    """

    _FIELDS = ('position', 'velocity', 'effort')

    def __init__(self, prefix: str) -> None:
        self._names = BoundedNames(prefix, self._FIELDS)

    def __call__(self, message: Any) -> Taken | Dropped:
        try:
            joints = [self._names.series(joint) for joint in message.name]
            samples: list[Sample] = []
            left_out = no_name = 0
            for index, field in enumerate(self._FIELDS):
                values = getattr(message, field)
                if len(values) != len(joints):
                    continue
                for joint, names, value in zip(message.name, joints, values, strict=True):
                    if not joint:
                        no_name += 1
                    elif names is None:
                        left_out += 1
                    else:
                        samples.append((names[index], number(value)))
            return Taken(samples, left_out=left_out, no_name=no_name)
        except MALFORMED as error:
            return dropped('a joint state', error)


class _Satellites:
    """A NavSatFix, and where it is in the plane that touches the earth at the session's first fix."""

    _FIELDS = ('latitude', 'longitude', 'altitude', 'status', 'east_m', 'north_m')

    def __init__(self, prefix: str) -> None:
        self._names = [f'{prefix}.{field}' for field in self._FIELDS]
        self._plane: TangentPlane | None = None

    def __call__(self, message: Any) -> Taken | Dropped:
        try:
            status = number(message.status.status)
            fix = number(message.latitude), number(message.longitude), number(message.altitude)
        except MALFORMED as error:
            return dropped('a satellite fix', error)
        if status < 0:  # no fix, or not known yet: the position means nothing
            fix = _UNKNOWN
        latitude, longitude, altitude = fix
        east_north = (NAN, NAN)
        if abs(latitude) <= 90 and abs(longitude) <= 360:
            if self._plane is None:
                self._plane = TangentPlane(latitude, longitude, altitude)
            east_north = self._plane.east_north(latitude, longitude)
        return Taken(list(zip(self._names, (*fix, status, *east_north), strict=True)))


class TangentPlane:
    """East and north in metres, in the plane that touches the ellipsoid of WGS 84 at an origin.

    With N = a / sqrt(1 - e² sin² φ), a point at latitude φ, longitude λ and height h lies at
    x = (N + h) cos φ cos λ, y = (N + h) cos φ sin λ, z = (N (1 - e²) + h) sin φ. Of the way d from the origin
    (φ₀, λ₀, h) there, east is -sin λ₀ dx + cos λ₀ dy and north is
    -sin φ₀ cos λ₀ dx - sin φ₀ sin λ₀ dy + cos φ₀ dz. All heights are taken to be that of the origin, so that
    the noise of the altitude does not shake the plane. Angles are in degrees; an unknown altitude is 0.
    """

    __slots__ = ('_at', '_east', '_height', '_north')

    def __init__(self, latitude: float, longitude: float, altitude: float) -> None:
        phi, lam = math.radians(latitude), math.radians(longitude)
        self._height = altitude if abs(altitude) < 1e5 else 0.0
        self._at = self._cartesian(latitude, longitude)
        self._east = (-math.sin(lam), math.cos(lam))
        sine = math.sin(phi)
        self._north = (-sine * math.cos(lam), -sine * math.sin(lam), math.cos(phi))

    def _cartesian(self, latitude: float, longitude: float) -> tuple[float, float, float]:
        phi, lam = math.radians(latitude), math.radians(longitude)
        sine, cosine = math.sin(phi), math.cos(phi)
        normal = _EQUATOR_M / math.sqrt(1 - _ECCENTRICITY_SQUARED * sine * sine)
        across = (normal + self._height) * cosine
        up = (normal * (1 - _ECCENTRICITY_SQUARED) + self._height) * sine
        return across * math.cos(lam), across * math.sin(lam), up

    def east_north(self, latitude: float, longitude: float) -> tuple[float, float]:
        """Return how far east and north of the origin a place is."""
        here = self._cartesian(latitude, longitude)
        dx, dy, dz = (b - a for a, b in zip(self._at, here, strict=True))
        (ex, ey), (nx, ny, nz) = self._east, self._north
        return ex * dx + ey * dy, nx * dx + ny * dy + nz * dz


_SPECIAL: Final[Mapping[str, Callable[[str], Converter]]] = {
    'sensor_msgs/msg/JointState': _Joints,
    'sensor_msgs/msg/NavSatFix': _Satellites,
}


# Any type, by path


def _getter(path: str) -> Callable[[Any], Any]:
    """Return what reads the field of a path; it raises one of MALFORMED where there is no such field."""
    words = path.split('.')
    if not any(word.isdigit() for word in words):
        return attrgetter(path)
    steps: list[Callable[[Any], Any]] = [
        itemgetter(int(word)) if word.isdigit() else attrgetter(word) for word in words
    ]

    def get(message: Any) -> Any:
        for step in steps:
            message = step(message)
        return message

    return get


def _value(get: Callable[[Any], Any], message: Any) -> Any:
    try:
        return get(message)
    except MALFORMED:
        return NAN


def _paths(fields: Sequence[str]) -> Read:
    getters = [_getter(path) for path in fields]

    def read(message: Any) -> Sequence[Any]:
        try:
            return [get(message) for get in getters]
        except MALFORMED:
            return [_value(get, message) for get in getters]

    return read


def unreadable(message: Any, fields: Iterable[str]) -> list[str]:
    """Return the paths at which a message has nothing, or something that is never a number."""
    found = []
    for path in fields:
        try:
            value = _getter(path)(message)
        except IndexError:
            continue  # a list may be longer another time
        except MALFORMED:
            found.append(path)
            continue
        if not isinstance(value, (int, float, bytes, np.integer, np.floating, np.bool_)):
            found.append(path)
    return found


# What the doors ask for


def known(type_name: str) -> bool:
    """Say whether it is known what to record of a type."""
    return type_name in _FIXED or type_name in _SPECIAL


def converter(type_name: str, prefix: str, fields: Sequence[str] = ()) -> Converter | None:
    """Return what converts the messages of one topic in one session.

    Args:
        type_name: such as ``nav_msgs/msg/Odometry``.
        prefix: what the names of the series begin with, and before them a dot.
        fields: dotted paths to read, instead of what is recorded of a type that is known.

    Returns:
        None where the type is not known and there are no fields.
    """
    if fields:
        return _Fields(f'a {type_name}', prefix, fields, _paths(fields))
    if type_name in _FIXED:
        return _Fields(f'a {type_name}', prefix, *_FIXED[type_name])
    if type_name in _SPECIAL:
        return _SPECIAL[type_name](prefix)
    return None
