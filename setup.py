"""The ROS 2 package, for colcon and for pip."""

from pathlib import Path

from setuptools import find_packages, setup

NAME = 'cognitive3d_ros'
HERE = Path(__file__).parent


def files(folder: str, *patterns: str) -> list[str]:
    """Return the files of a folder, relative to the package as setuptools wants them."""
    found = {path for pattern in patterns for path in (HERE / folder).glob(pattern)}
    return sorted(str(path.relative_to(HERE)) for path in found)


SHARE = f'share/{NAME}'

setup(
    name=NAME,
    version='1.0.0',
    description='Records what a robot does as Cognitive3D sessions.',
    license='Apache-2.0',
    maintainer='cognitive3d_ros maintainers',
    maintainer_email='cognitive3d_ros@example.org',
    python_requires='>=3.10',
    packages=find_packages(include=[NAME, f'{NAME}.*']),
    package_data={NAME: ['py.typed', 'core/capnp/*.capnp', 'report/assets/*']},
    data_files=[
        ('share/ament_index/resource_index/packages', [f'resource/{NAME}']),
        (SHARE, ['package.xml']),
        (f'{SHARE}/launch', files('launch', '*.launch.py')),
        (f'{SHARE}/config', files('config', '*.yaml', '*.service')),
    ],
    zip_safe=False,
    # What a robot has from apt is not asked for in newer versions than its apt has (package.xml): a numpy or
    # an OpenCV from pip would break rclpy there. So OpenCV, which apt's Python does not list, is an extra.
    install_requires=[
        'numpy>=1.21',
        'pycapnp>=2.2.4,<3',  # older ones end the process when they meet a damaged part
        'PyYAML>=5.4',
        'requests>=2.25,<3',
        'zstandard>=0.15',
    ],
    extras_require={
        # Away from a robot: recording from bags, and reading sessions with their pictures.
        'bags': ['opencv-python-headless>=4.5', 'rosbags>=0.11.9,<0.12'],
        'reader': ['opencv-python-headless>=4.5'],
        'pandas': ['pandas>=1.5'],
        'export': [
            'mcap>=1.1,<2',
            'mcap-ros2-support>=0.5,<1',
            'pyarrow>=14',
            'rosbags>=0.10,<0.12',
        ],
        'gateway': ['starlette>=0.37,<2', 'uvicorn>=0.27,<1'],
        # Exact versions, and ROS itself, are in test/requirements.
        'test': ['httpx>=0.27', 'hypothesis>=6', 'pytest>=8', 'pytest-timeout>=2'],
    },
    entry_points={
        'console_scripts': [
            'c3d = cognitive3d_ros.cli.main:main',
            'recorder = cognitive3d_ros.node.main:main',
        ],
    },
)
