"""Which quality of service a subscription asks for: that of the publishers that were found, if it may choose.

A publisher and a subscription that do not fit exchange nothing, and DDS hardly says so. A best effort
subscription fits every publisher, a reliable one loses less; a transient local one gets what was published
before it came, and fits only publishers that keep it.
"""

from __future__ import annotations

from collections.abc import Sequence

from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

_SENSOR_DATA_DEPTH = 5


def profile(qos: str, publishers: Sequence[QoSProfile], depth: int) -> QoSProfile:
    """Return the profile for the parameter ``qos``, given those of the publishers found.

    ``auto`` is reliable if all of them are; ``reliable`` and ``best_effort`` are what they say. With these,
    what was published before comes too, where all publishers keep it. ``sensor_data`` is best effort with
    a short queue; ``latched`` is reliable and transient local until publishers are found, then as ``auto``.
    """
    if qos == 'sensor_data':
        return QoSProfile(depth=_SENSOR_DATA_DEPTH, reliability=ReliabilityPolicy.BEST_EFFORT)
    reliable = qos == 'reliable' or (qos != 'best_effort' and all(map(_reliable, publishers)))
    latched = all(map(_latched, publishers)) and (bool(publishers) or qos == 'latched')
    return QoSProfile(
        depth=depth,
        reliability=ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT,
        durability=DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE,
    )


def fits(publisher: QoSProfile, subscription: QoSProfile) -> bool:
    """Say whether a publisher's messages reach a subscription."""
    return (_reliable(publisher) or not _reliable(subscription)) and (
        _latched(publisher) or not _latched(subscription)
    )


def _reliable(found: QoSProfile) -> bool:
    return bool(found.reliability != ReliabilityPolicy.BEST_EFFORT)


def _latched(found: QoSProfile) -> bool:
    return bool(found.durability == DurabilityPolicy.TRANSIENT_LOCAL)
