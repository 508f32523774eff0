"""Start the recorder: ``ros2 launch cognitive3d_ros recorder.launch.py params_file:=/path/to.yaml``."""

from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

# Parameters that the command line may set over the file; left empty, the file decides.
OVERRIDES = ('autostart', 'use_sim_time')


def generate_launch_description() -> LaunchDescription:
    """Declare the arguments and the one node."""
    return LaunchDescription(
        [
            DeclareLaunchArgument(
                'params_file', description='YAML file with the parameters of the recorder'
            ),
            DeclareLaunchArgument(
                'namespace', default_value='', description='namespace of the node'
            ),
            DeclareLaunchArgument(
                'name', default_value='cognitive3d', description='name of the node'
            ),
            DeclareLaunchArgument(
                'autostart',
                default_value='',
                description='true or false: configure and activate without a lifecycle manager;'
                ' empty: as the file says, else true',
            ),
            DeclareLaunchArgument(
                'use_sim_time',
                default_value='',
                description='true or false: take the ROS time from /clock;'
                ' empty: as the file says, else false',
            ),
            DeclareLaunchArgument(
                'log_level', default_value='info', description='debug, info, warn, error or fatal'
            ),
            OpaqueFunction(function=recorder),
        ]
    )


def recorder(context: LaunchContext) -> list[Node]:
    """Make the node once the values of the arguments are known."""
    given = {
        name: ParameterValue(LaunchConfiguration(name), value_type=bool)
        for name in OVERRIDES
        if LaunchConfiguration(name).perform(context)
    }
    return [
        Node(
            package='cognitive3d_ros',
            executable='recorder',
            namespace=LaunchConfiguration('namespace'),
            name=LaunchConfiguration('name'),
            parameters=[LaunchConfiguration('params_file'), *([given] if given else [])],
            ros_arguments=['--log-level', LaunchConfiguration('log_level')],
            output='screen',
        )
    ]
