"""The subscriptions of the live door: one for each input, made when its publisher is found.

Which types there are, who publishes them and how, is only known at run time; a topic may appear late, and
another publisher later still. So the graph is looked at again and again.
"""

from __future__ import annotations

import functools
import importlib
import time
from collections.abc import Sequence
from typing import Any

from rclpy.node import Node
from rclpy.qos import QoSProfile

from cognitive3d_ros.counters import Ledger
from cognitive3d_ros.log import Log
from cognitive3d_ros.recording.inputs import Input, Publication

from . import qos
from .arrivals import Arrivals

try:
    from rclpy.event_handler import SubscriptionEventCallbacks
except ImportError:  # Humble
    from rclpy.qos_event import SubscriptionEventCallbacks

SCAN_S = 0.1
"""How often :meth:`Subscriptions.scan` is to be called."""

_EAGER_S = 10.0  # after configure; from then on the graph is looked at once a second
_CALM_S = 1.0
_DEPTH = 100
_BIG_DEPTH = 5  # of messages that take megabytes
_AND_OWN = 2  # publishers: one, and the node's own beside it
_UNKNOWN_NODE = '_NODE_NAME_UNKNOWN_'  # while only a part of a node has been discovered


def message_class(type_name: str) -> Any:
    """Return the class of a type such as ``nav_msgs/msg/Odometry``, or None where it is not installed."""
    package, _, rest = type_name.partition('/')
    folder, _, name = rest.partition('/')
    try:
        return getattr(importlib.import_module(f'{package}.{folder}'), name, None)
    except ImportError:
        return None


class Subscriptions:
    """Keeps every input subscribed; see the module. All of it runs in the thread of the executor."""

    def __init__(self, node: Node, inputs: Sequence[Input], ledger: Ledger, log: Log) -> None:
        self._feeds = [_Feed(node, each, ledger, log) for each in inputs]
        self._eager_until_s = time.monotonic() + _EAGER_S
        self._next_s = 0.0
        self.scan()

    def scan(self) -> None:
        """Look at the graph: subscribe to what is new, and anew where another publisher asks for it."""
        now_s = time.monotonic()
        every = now_s >= self._next_s
        if every:
            self._next_s = now_s + _CALM_S
        eager = now_s < self._eager_until_s
        for feed in self._feeds:
            if every or (eager and not feed.settled):
                feed.look()

    def close(self) -> None:
        """Unsubscribe from everything."""
        for feed in self._feeds:
            feed.unsubscribe()


class _Feed:
    """One input and its subscription."""

    def __init__(self, node: Node, recorded: Input, ledger: Ledger, log: Log) -> None:
        self.settled = False
        self._node, self._input, self._log = node, recorded, log
        self._topic = node.resolve_topic_name(recorded.topic)
        self._subscription: Any = None
        self._profile = QoSProfile(depth=1)
        self._type = ''
        self._seen: object = None  # of the graph, when it was last looked at
        self._said: set[str] = set()
        self._arrivals = Arrivals(
            self._receive,
            functools.partial(ledger.lost, recorded.source),
            functools.partial(only_publisher, node, self._topic),
        )
        if recorded.expects and recorded.qos != 'auto':
            self._subscribe(recorded.expects, [])

    def look(self) -> None:
        """Look at who publishes the topic."""
        count = self._node.count_publishers(self._topic)
        if not count and not self._seen:
            return
        found = publishers(self._node, self._topic)
        seen = sorted((info.topic_type, _name(info), bytes(info.endpoint_gid)) for info in found)
        if seen == self._seen:
            return
        self._seen = seen
        self.settled = bool(found) and not any(_UNKNOWN_NODE in _name(info) for info in found)
        if found:
            self._follow(found)

    def _follow(self, found: list[Any]) -> None:
        # A type that is recorded already is kept while somebody publishes it.
        types = sorted({info.topic_type for info in found}, key=lambda t: (t != self._type, t))
        if len(types) > 1:
            self._warn(
                f'{" and ".join(sorted(types))} are published on it: one type can be recorded'
            )
        for type_name in types:
            of_type = [info for info in found if info.topic_type == type_name]
            if self._accepts(type_name, of_type):
                self._match(type_name, [info.qos_profile for info in of_type])
                return

    def _accepts(self, type_name: str, found: list[Any]) -> bool:
        names = sorted({_name(info) for info in found if _UNKNOWN_NODE not in _name(info)})
        reason = self._input.found(Publication(self._topic, type_name, ','.join(names)))
        if reason is not None:
            self._warn(reason)
        elif message_class(type_name) is None:
            package = type_name.partition('/')[0]
            self._warn(f'{type_name} is published and is not installed here: install {package}')
            return False
        return reason is None

    def _match(self, type_name: str, publishers: list[QoSProfile]) -> None:
        if type_name == self._type and all(qos.fits(each, self._profile) for each in publishers):
            return
        if self._subscription is not None and type_name != self._type:
            # Two types of one topic cannot be in one node, and the events executor holds a subscription until
            # its callback returns: the new one is made when the graph is looked at next.
            self._warn(f'{self._type} is no longer published on it, {type_name} is')
            self.unsubscribe()
            self._look_again()
            return
        self._subscribe(type_name, publishers)
        if not any(qos.fits(each, self._profile) for each in publishers):
            self._warn(
                f'no publisher fits qos {self._input.qos}: nothing will come; auto would fit them'
            )

    def _subscribe(self, type_name: str, publishers: list[QoSProfile]) -> None:
        self.unsubscribe()
        big = self._input.source.startswith(('camera.', 'lidar.'))
        self._type = type_name
        self._profile = qos.profile(self._input.qos, publishers, _BIG_DEPTH if big else _DEPTH)
        kind = message_class(type_name)
        if kind is None:
            return
        try:
            self._subscription = subscribe(
                self._node, kind, self._input.topic, self._arrivals, self._profile
            )
        except Exception as error:  # noqa: BLE001 - a package that is half installed; the others go on
            self._warn(f'{type_name} cannot be subscribed to: {error!r}')
            self._look_again()

    def _look_again(self) -> None:
        self._seen, self.settled = None, False

    def unsubscribe(self) -> None:
        """Drop the subscription, if there is one."""
        subscription, self._subscription, self._type = self._subscription, None, ''
        if subscription is not None:
            self._node.destroy_subscription(subscription)

    def _receive(self, message: Any) -> None:
        arrival = self._input.due()
        if arrival is not None:
            self._input.take(message, arrival)

    def _warn(self, text: str) -> None:
        """Warn of something once: it stays as it is until somebody changes it."""
        if text not in self._said:
            self._said.add(text)
            self._log.warning(f'{self._input.source} ({self._topic}): {text}')


def publishers(node: Node, topic: str) -> list[Any]:
    """Return what is known of the publishers of a topic, but for the node's own."""
    own = (node.get_namespace(), node.get_name())
    return [
        info
        for info in node.get_publishers_info_by_topic(topic)
        if (info.node_namespace, info.node_name) != own
    ]


def only_publisher(node: Node, topic: str) -> bytes | None:
    """Return the identity of a topic's only publisher; None if there is none, or several."""
    if node.count_publishers(topic) > _AND_OWN:  # the cheap question first
        return None
    found = publishers(node, topic)
    return bytes(found[0].endpoint_gid) if len(found) == 1 else None


def subscribe(node: Node, kind: Any, topic: str, arrivals: Arrivals, profile: QoSProfile) -> Any:
    """Subscribe to a topic, and count what is lost of it before it comes here."""
    take = arrivals.callback
    try:
        callbacks = SubscriptionEventCallbacks(
            message_lost=arrivals.told_lost, use_default_callbacks=False
        )
        return node.create_subscription(kind, topic, take, profile, event_callbacks=callbacks)
    except RuntimeError:  # a middleware that cannot tell of lost messages
        callbacks = SubscriptionEventCallbacks(use_default_callbacks=False)
        return node.create_subscription(kind, topic, take, profile, event_callbacks=callbacks)


def _name(info: Any) -> str:
    """Return the full name of the node that an endpoint belongs to."""
    return f'{info.node_namespace.rstrip("/")}/{info.node_name}'
