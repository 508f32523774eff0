@0xf8432310e803f157;
# What camera and lidar records share.

struct Pose {
  # The pose of a sensor's tf frame in the session's reference frame, in scene axes: metres, and a unit
  # quaternion with w last. A pose that was never written reads as the identity at the origin.

  px @0 :Float32;
  py @1 :Float32;
  pz @2 :Float32;
  qx @3 :Float32;
  qy @4 :Float32;
  qz @5 :Float32;
  qw @6 :Float32 = 1;
}
