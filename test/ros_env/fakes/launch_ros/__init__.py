"""As much of ``launch_ros`` as the launch file uses: every object remembers what it was given."""
