"""The classes of MRPT's objects that rawlogs of robots hold, in the versions of MRPT 2.4 to 2.14.

Layouts: MRPT's sources, each held to bytes that MRPT itself wrote.
"""

from cognitive3d_ros.wire.mrpt.fields import CLASSES
from cognitive3d_ros.wire.mrpt.maps import (
    ColouredPoints,
    GenericPoints,
    IntensityPoints,
    MapParameters,
    SimplePoints,
)
from cognitive3d_ros.wire.mrpt.movements import (
    ActionCollection,
    Movement2D,
    Movement3D,
    SensoryFrame,
)
from cognitive3d_ros.wire.mrpt.observations import (
    INLINE,
    KITTI_BIN,
    SERIALIZED,
    TEXT_FILE,
    Battery,
    CameraImage,
    Comment,
    DepthScan,
    Imu,
    Observation,
    Odometry,
    PointCloud,
    Ranges,
    RangeScan,
    RawDaq,
    RobotPose,
)
from cognitive3d_ros.wire.mrpt.pictures import (
    Camera,
    Image,
)
from cognitive3d_ros.wire.mrpt.poses import (
    Pose2D,
    Pose2DGaussian,
    Pose3D,
    Pose3DGaussian,
)

__all__ = [
    'CLASSES',
    'INLINE',
    'KITTI_BIN',
    'SERIALIZED',
    'TEXT_FILE',
    'ActionCollection',
    'Battery',
    'Camera',
    'CameraImage',
    'ColouredPoints',
    'Comment',
    'DepthScan',
    'GenericPoints',
    'Image',
    'Imu',
    'IntensityPoints',
    'MapParameters',
    'Movement2D',
    'Movement3D',
    'Observation',
    'Odometry',
    'PointCloud',
    'Pose2D',
    'Pose2DGaussian',
    'Pose3D',
    'Pose3DGaussian',
    'RangeScan',
    'Ranges',
    'RawDaq',
    'RobotPose',
    'SensoryFrame',
    'SimplePoints',
]
