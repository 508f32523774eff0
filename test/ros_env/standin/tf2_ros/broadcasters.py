"""The publishers of /tf and /tf_static."""

from __future__ import annotations

from geometry_msgs.msg import TransformStamped
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from tf2_msgs.msg import TFMessage

Transforms = TransformStamped | list[TransformStamped]


class TransformBroadcaster:
    """Publishes transforms that move."""

    def __init__(self, node: Node, qos: QoSProfile | int | None = None) -> None:
        self.pub_tf = node.create_publisher(
            TFMessage, '/tf', QoSProfile(depth=100) if qos is None else qos
        )

    def sendTransform(self, transform: Transforms) -> None:
        """Publish one transform, or several in one message."""
        self.pub_tf.publish(TFMessage(transforms=_listed(transform)))


class StaticTransformBroadcaster:
    """Publishes transforms that stay, all of its own in each message, for those who join late."""

    def __init__(self, node: Node, qos: QoSProfile | int | None = None) -> None:
        if qos is None:
            qos = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self.pub_tf = node.create_publisher(TFMessage, '/tf_static', qos)
        self._sent: dict[str, TransformStamped] = {}

    def sendTransform(self, transform: Transforms) -> None:
        """Add one transform or several, and publish all."""
        self._sent.update({each.child_frame_id: each for each in _listed(transform)})
        self.pub_tf.publish(TFMessage(transforms=list(self._sent.values())))


def _listed(transform: Transforms) -> list[TransformStamped]:
    return transform if isinstance(transform, list) else [transform]
