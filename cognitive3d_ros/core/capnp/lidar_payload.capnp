@0xcf228468ee61b82d;
# Laser scans and point clouds, as they are uploaded: one packed LidarPart a part.

using Common = import "common_payload.capnp";

struct LidarPart {
  # All lidars of a session share one sequence of parts.

  sessionId @0 :Text;
  deviceId @1 :Text;
  sceneId @2 :Text;
  sceneVersion @3 :UInt32;
  sdkVersion @4 :Text;
  part @5 :UInt32;  # From 1 in each session.
  scans @6 :List(LidarScan);
}

struct LidarScan {
  # One scan and the pose it was taken from.

  sensorId @0 :Text;  # The lidar's name.
  time @1 :UInt64;  # When it was taken, in epoch milliseconds.
  seq @2 :UInt32;  # The lidar's scan counter, from 0 in each session.
  frameId @3 :Text;  # The tf frame the pose is for.
  pose @4 :Common.Pose;
  union {
    laserScan @5 :LaserScan;
    pointCloud @6 :PointCloud;
  }
}

struct LaserScan {
  # A scan as the sensor published it, in its own units and frame.

  angleMin @0 :Float32;  # Radians.
  angleMax @1 :Float32;
  angleIncrement @2 :Float32;
  timeIncrement @3 :Float32;  # Seconds.
  scanTime @4 :Float32;
  rangeMin @5 :Float32;  # Metres.
  rangeMax @6 :Float32;
  ranges @7 :List(Float32);  # One a ray; infinities and NaNs mean that nothing came back.
  intensities @8 :List(Float32);  # One a ray, or empty.
}

struct PointCloud {
  # A block of points in scene axes, relative to the sensor, ordered by position.

  pointCount @0 :UInt32;  # N, the number of points in the block.
  position @1 :Text;  # int16_mm or float32
  color @2 :Text;  # none, rgb565, rgb332 or rgb888
  intensity @3 :Text;  # none or uint8
  voxelLeafMm @4 :UInt16;  # The downsampling cube's size; 0 when not downsampled.
  zstdLevel @5 :UInt8;  # 0 when the block is stored as it is.
  data @6 :Data;  # Little-endian planes X[N] Y[N] Z[N] C[N] I[N], zstd-compressed when zstdLevel is above 0.
}
