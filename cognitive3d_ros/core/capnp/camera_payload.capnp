@0x96030320e0828d3d;
# Camera frames, as they are uploaded: one packed CameraPart a part.

using Common = import "common_payload.capnp";

struct CameraPart {
  # All cameras of a session share one sequence of parts.

  sessionId @0 :Text;
  deviceId @1 :Text;
  sceneId @2 :Text;
  sceneVersion @3 :UInt32;
  sdkVersion @4 :Text;
  part @5 :UInt32;  # From 1 in each session.
  frames @6 :List(CameraFrame);
}

struct CameraFrame {
  # One picture and the pose it was taken from.

  cameraId @0 :Text;  # The camera's name.
  time @1 :UInt64;  # When it was taken, in epoch milliseconds.
  seq @2 :UInt32;  # The camera's frame counter, from 0 in each session.
  frameId @3 :Text;  # The tf frame the pose is for.
  pose @4 :Common.Pose;
  format @5 :Text;  # jpeg
  width @6 :UInt16;  # Of the stored picture, in pixels.
  height @7 :UInt16;
  data @8 :Data;
  hfovDegrees @9 :Float32;  # Full angles, above 0 and below 180; both 0 when not recorded.
  vfovDegrees @10 :Float32;
}
