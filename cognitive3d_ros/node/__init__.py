"""The live door: the ROS 2 lifecycle node."""
