"""What this project uses of ``tf2_ros``, for machines without a ROS install.

The same names and signatures as on a robot, over the real tf2::BufferCore. Its reader is the test of
the node: nothing here is installed with the package.
"""

from tf2_ros._core import (
    ConnectivityException,
    ExtrapolationException,
    InvalidArgumentException,
    LookupException,
    TimeoutException,
    TransformException,
)
from tf2_ros.broadcasters import StaticTransformBroadcaster, TransformBroadcaster
from tf2_ros.buffer import Buffer
from tf2_ros.transform_listener import TransformListener

__all__ = [
    'Buffer',
    'ConnectivityException',
    'ExtrapolationException',
    'InvalidArgumentException',
    'LookupException',
    'StaticTransformBroadcaster',
    'TimeoutException',
    'TransformBroadcaster',
    'TransformException',
    'TransformListener',
]
