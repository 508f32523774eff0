# Sourced by the scripts here: the environment that all of them run in.

# The virtual environments stand alone. What a sourced ROS install, or the Python of another such environment, has
# left behind would put other builds of the same libraries before theirs.
if [ -n "${AMENT_PREFIX_PATH:-}${_ROS_WHEELS_BOOTSTRAP_COMPLETE:-}" ]; then
    unset LD_LIBRARY_PATH PYTHONPATH
fi
unset _ROS_WHEELS_BOOTSTRAP_COMPLETE AMENT_PREFIX_PATH CMAKE_PREFIX_PATH COLCON_PREFIX_PATH
unset RMW_IMPLEMENTATION ROS_DISTRO ROS_LOCALHOST_ONLY ROS_PYTHON_VERSION ROS_VERSION

# DDS stays on this machine.
export ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST
