"""The one declaration of all parameters.

Everything that knows a parameter's name, type, default, range or meaning is made from this page: the
check (:mod:`.check`), what the node declares to ROS, ``config/cognitive3d.yaml`` and
``docs/parameters.md`` (:mod:`.documents`).
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass, replace
from typing import Any

Value = str | int | float | bool | tuple[str, ...] | tuple[float, ...] | None


class Kind(enum.Enum):
    """The type of a parameter; the value is ROS's name for it."""

    TEXT = 'string'
    FLAG = 'bool'
    INTEGER = 'integer'
    NUMBER = 'double'
    TEXTS = 'string_array'
    NUMBERS = 'double_array'

    @property
    def is_list(self) -> bool:
        """Whether the value is a list."""
        return self is not self.item

    @property
    def item(self) -> Kind:
        """The type of a list's items; of anything else its own."""
        return {Kind.TEXTS: Kind.TEXT, Kind.NUMBERS: Kind.NUMBER}.get(self, self)


@dataclass(frozen=True, slots=True)
class Form:
    """How a text (or each text of a list) must look, and how that is said."""

    pattern: re.Pattern[str]
    words: str


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter, or one key of a family's members.

    ``default`` None: not set unless given. ``fallback`` says what stands in where it is not set or
    empty. ``limits`` bound each number, ``length`` a list. ``only`` is the kind of sensor that a key
    belongs to. ``example`` is what the commented YAML shows where the default would not do. ``hint``
    ends the message that a required one is missing.
    """

    name: str
    kind: Kind
    default: Value
    about: str
    required: bool = False
    limits: tuple[float, float] | None = None
    unit: str = ''
    choices: tuple[str, ...] = ()
    form: Form | None = None
    length: tuple[int, int] | None = None
    fallback: str = ''
    only: str = ''
    example: Value = None
    hint: str = ''

    @property
    def field(self) -> str:
        """The name of the attribute that holds it."""
        return self.name.replace('.', '_')

    @property
    def allowed_item(self) -> str:
        """What is allowed (in a list: of each item), in words that follow "must be"."""
        if self.choices:
            return 'one of ' + ', '.join(self.choices)
        if self.kind is Kind.FLAG:
            return 'true or false'
        if self.kind.item is Kind.TEXT:
            return self.form.words if self.form else 'a text'
        noun = 'an integer' if self.kind is Kind.INTEGER else 'a number'
        unit = f' {self.unit}' if self.unit else ''
        if not self.limits:
            return noun + unit
        low, high = (f'{limit:.10g}' for limit in self.limits)
        if self.limits[1] == INT64_MAX:
            return f'{noun} of at least {low}{unit}'
        return f'{noun} from {low} to {high}{unit}'

    @property
    def allowed(self) -> str:
        """What is allowed, in words that follow "must be"."""
        if not self.kind.is_list:
            return self.allowed_item
        length = ''
        if self.length:
            low, high = self.length
            length = f' of {low}' if low == high else f' of {low} to {high}'
        return f'a list{length}, each {self.allowed_item}'


@dataclass(frozen=True, slots=True)
class Family:
    """Members named in lists, each with its own keys ``<word>.<name>.<key>``."""

    word: str
    lists: tuple[str, ...]
    keys: tuple[Parameter, ...]
    # Members for the commented YAML, each with the sensor kind it is to show.
    examples: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Section:
    """Parameters that belong together in the YAML and the documentation."""

    title: str
    parameters: tuple[Parameter, ...]
    family: Family | None = None


def _text(name: str, default: str | None, about: str, **more: Any) -> Parameter:
    return Parameter(name, Kind.TEXT, default, about, **more)


def _texts(name: str, default: tuple[str, ...], about: str, **more: Any) -> Parameter:
    return Parameter(name, Kind.TEXTS, default, about, **more)


def _flag(name: str, default: bool, about: str, **more: Any) -> Parameter:  # noqa: FBT001
    return Parameter(name, Kind.FLAG, default, about, **more)


def _integer(
    name: str, default: int | None, limits: tuple[int, int], about: str, **more: Any
) -> Parameter:
    return Parameter(name, Kind.INTEGER, default, about, limits=limits, **more)


def _number(
    name: str, default: float | None, limits: tuple[float, float], about: str, **more: Any
) -> Parameter:
    return Parameter(name, Kind.NUMBER, default, about, limits=limits, **more)


UINT16_MAX, UINT32_MAX, INT64_MAX = 2**16 - 1, 2**32 - 1, 2**63 - 1
CONE, ARRAY = 'cone_rangefinder', 'binary_array'

_NAME = r'[A-Za-z0-9][A-Za-z0-9_-]{0,63}'
_TOPIC = r'(?:~/|/)?[A-Za-z_][A-Za-z0-9_]*(?:/[A-Za-z_][A-Za-z0-9_]*)*'

NAME = Form(re.compile(_NAME), 'at most 64 letters, digits, "_" and "-", a letter or digit first')
DEVICE = Form(
    re.compile(r'[A-Za-z0-9][A-Za-z0-9._-]{0,63}'),
    'at most 64 letters, digits, ".", "_" and "-", a letter or digit first',
)
TOPIC = Form(re.compile(_TOPIC), 'a ROS name such as /robot/odom')
TOPIC_OR_NAME = Form(
    re.compile(f'(?=.*/){_TOPIC}|{_NAME}'),
    'a ROS name with a "/" such as /odom, or the name of a member',
)
FRAME = Form(re.compile(r'[^/\s][^\x00-\x1f]*'), 'a tf frame, which does not begin with "/"')
FIELD = Form(re.compile(r'[A-Za-z0-9_]+(?:\.[A-Za-z0-9_]+)*'), 'a field such as pose.position.x')
SERIES = Form(
    re.compile(r'(?!c3d(?:\.|$))[^\s,]+'),
    'a text without blanks or commas that does not begin with "c3d."',
)
SCENE_ID = Form(re.compile(r'[^\s/?#]+'), 'the id of a scene, without blanks, "/", "?" and "#"')

_QOS = _text(
    'qos',
    'auto',
    'The quality of service of the subscription. `auto` matches the publishers found, and again when '
    'one appears later.',
    choices=('auto', 'reliable', 'best_effort', 'sensor_data'),
)
_TOPIC_KEY = _text('topic', None, 'The topic.', required=True, form=TOPIC)
_FRAME_KEY = _text(
    'frame',
    '',
    'The tf frame, where the messages name a wrong one.',
    form=FRAME,
    fallback="the messages' frame_id",
)
_RATE_KEY = _number('rate_hz', 2.0, (0.0, 1000.0), '', unit='Hz')

SCENE = Section(
    'Robot and scene',
    (
        _text(
            'device_id',
            None,
            "The robot's own id. Two robots that share one can produce the same session id.",
            required=True,
            form=DEVICE,
            example='robot-1',
        ),
        _text(
            'scene_id',
            None,
            'The id of the scene that sessions belong to, as the dashboard shows it.',
            required=True,
            form=SCENE_ID,
            example='00000000-0000-4000-8000-000000000000',
        ),
        _integer(
            'scene_version',
            None,
            (1, UINT32_MAX),
            "The number of the scene's version.",
            required=True,
            example=1,
        ),
    ),
)

SESSION = Section(
    'Sessions',
    (
        _flag(
            'autostart',
            True,
            'Whether the node configures and activates itself when it is launched. Turn it off under a '
            'lifecycle manager.',
        ),
        _flag('auto_start_session', True, 'Whether activation starts a session.'),
        _text('session_name', '', 'The name of the sessions.', fallback='the session id'),
        _texts(
            'session_properties',
            (),
            'Properties of every session, each as `key=value`. The value is typed by the grammar of '
            'JSON: an integer within 64 bits, another number, exactly `true` or `false`, else a text '
            '(`007`, `nan` and `True` are texts). Names that begin with `c3d.` are refused, but for '
            '`c3d.session_tag.*` and `c3d.participant.*`.',
            form=Form(re.compile(r'[^=]+=.*', re.DOTALL), 'key=value'),
        ),
        _text('session_comment', '', 'A comment that is stored with every session.'),
        _flag('remote_variables', False, 'Whether remote variables are fetched at session start.'),
        _flag(
            'ignore_unknown_parameters',
            False,
            'Whether parameters of unknown name are passed over instead of refused: the way out where a '
            '`/**` section serves several nodes.',
        ),
    ),
)

POSE = Section(
    'Frames, pose and time',
    (
        _text('robot_frame', 'base_link', "The robot's tf frame.", form=FRAME),
        _texts(
            'reference_frames',
            ('map', 'odom'),
            'The frames that poses may be in, the preferred one first. A session uses one of them.',
            form=FRAME,
            length=(1, 64),
        ),
        _number(
            'reference_wait_s',
            10.0,
            (0.0, 86400.0),
            'How long to wait for a reference frame before the next one is taken; 0 is for ever.',
            unit='s',
        ),
        _text(
            'gaze_frame',
            '',
            'The frame whose pose the pose timeline holds, such as that of a camera.',
            form=FRAME,
            fallback='robot_frame',
        ),
        _text(
            'gaze_frame_convention',
            'auto',
            'Which way the gaze frame looks. `auto` takes a frame whose name ends in `_optical_frame` '
            'or `_optical` for optical.',
            choices=('auto', 'body_forward_x', 'optical_forward_z'),
        ),
        _text(
            'pose_convention',
            'gltf_authored',
            'The axes that positions and rotations are stored in.',
            choices=('gltf_authored', 'unity', 'rep103'),
        ),
        _number('sample_rate_hz', 10.0, (0.1, 100.0), 'Pose samples per second.', unit='Hz'),
        _number(
            'stale_pose_s',
            1.0,
            (0.05, 3600.0),
            'A transform whose stamp has not advanced for this long has stopped.',
            unit='s',
        ),
        _flag(
            'use_sim_time',
            False,
            'Whether ROS time is that of /clock. The ROS client library declares this one.',
        ),
        _flag(
            'sim_time_on_wire',
            False,
            'Whether records are spaced by simulated time. Needs `use_sim_time`.',
        ),
    ),
)

OBJECT = Section(
    "The robot's Dynamic Object",
    (
        _flag(
            'robot_dynamic_object',
            False,
            'Whether sessions hold the robot as a Dynamic Object. Needs `robot_mesh`.',
        ),
        _text('robot_object_id', '', "The object's id.", fallback='device_id'),
        _text('robot_display_name', '', "The object's name.", fallback='device_id'),
        _text('robot_mesh', '', "The object's mesh, as it is called on the dashboard."),
        _number(
            'mesh_yaw_offset_deg',
            0.0,
            (-360.0, 360.0),
            "Turns the mesh about the robot frame's Z axis, counter-clockwise.",
            unit='degrees',
        ),
    ),
)

TOPICS = Section(
    'Topics and actions',
    (
        _texts(
            'topics',
            (),
            'The topics recorded as sensor series. An entry with a "/" is the topic itself, with '
            'default settings; an entry without one names a member with settings of its own.',
            form=TOPIC_OR_NAME,
            example=('/imu/data', 'odom'),
        ),
        _texts(
            'actions',
            (),
            'The actions whose outcomes are recorded as events; entries as in `topics`. Of a member, '
            'only `topic` (the action) and `prefix` count.',
            form=TOPIC_OR_NAME,
            example=('/navigate_to_pose',),
        ),
    ),
    Family(
        'topic',
        ('topics', 'actions'),
        (
            replace(
                _TOPIC_KEY,
                about='The topic, or the action.',
                example='/odom',
                hint='an entry without "/" names a member; one that is the topic itself has a "/"',
            ),
            _text(
                'prefix',
                '',
                'What the names of the series (of an action: of its events) begin with.',
                form=SERIES,
                fallback='the topic without its leading "/", the others turned into "."',
            ),
            replace(
                _RATE_KEY,
                default=10.0,
                about='Messages taken per second at most, before the change gate; 0 is every one. '
                'Of diagnostics every one is taken.',
            ),
            _texts(
                'fields',
                (),
                'The numeric fields to record, by dotted path (`status.0.level` for an element of a list), of '
                'a message type that the recorder has no list for, or instead of that list.',
                form=FIELD,
            ),
            _QOS,
        ),
        (('odom', ''),),
    ),
)

SENSORS = Section(
    'Described sensors',
    (
        _texts(
            'sensors',
            (),
            'The names of simple sensors, which are described in the session properties and recorded as '
            'series of their own name. Provisional.',
            form=NAME,
            example=('sonar', 'line'),
        ),
    ),
    Family(
        'sensor',
        ('sensors',),
        (
            _text('kind', None, 'What the sensor is.', required=True, choices=(CONE, ARRAY)),
            replace(
                _TOPIC_KEY,
                about='Of a cone_rangefinder a sensor_msgs/Range, or a number in `units`; of a '
                'binary_array any std_msgs multi-array.',
                example='/sensor',
            ),
            replace(_FRAME_KEY, about="The sensor's tf frame.", fallback='not stored'),
            _text(
                'mount_parent',
                '',
                'The tf frame that the sensor is mounted on.',
                form=FRAME,
                fallback='not stored',
            ),
            _flag('mount_measured', False, 'Whether the mount was measured, not estimated.'),
            _text(
                'units',
                'centimeters',
                'The unit of the series. A sensor_msgs/Range is converted to it.',
                choices=('meters', 'centimeters', 'millimeters', 'inches'),
                only=CONE,
            ),
            _number(
                'cone_half_angle_degrees',
                None,
                (0.0, 90.0),
                "The cone's half-angle.",
                required=True,
                unit='degrees',
                only=CONE,
                example=7.5,
            ),
            _number(
                'range_min_centimeters',
                None,
                (0.0, 1e6),
                'The least range, in centimeters whatever `units` says.',
                unit='cm',
                only=CONE,
                example=2.0,
            ),
            _number(
                'range_max_centimeters',
                None,
                (0.0, 1e6),
                'The greatest range, in centimeters whatever `units` says.',
                unit='cm',
                only=CONE,
                example=400.0,
            ),
            Parameter(
                'mount_xyz_meters',
                Kind.NUMBERS,
                None,
                'Where the sensor sits in `mount_parent`: x, y, z.',
                limits=(-1000.0, 1000.0),
                unit='m',
                length=(3, 3),
                only=CONE,
                example=(0.1, 0.0, 0.05),
            ),
            _number(
                'mount_yaw_radians',
                0.0,
                (-6.3, 6.3),
                'Which way the sensor looks. Needs `mount_xyz_meters`.',
                unit='rad',
                only=CONE,
            ),
            _integer(
                'element_count',
                None,
                (1, 1024),
                'The number of elements of a message.',
                required=True,
                only=ARRAY,
                example=4,
            ),
            _text('meaning_0', '', 'What a 0 means.', only=ARRAY, fallback='not stored'),
            _text('meaning_1', '', 'What a 1 means.', only=ARRAY, fallback='not stored'),
            _QOS,
        ),
        (('sonar', CONE), ('line', ARRAY)),
    ),
)

CAMERAS = Section(
    'Cameras',
    (_texts('cameras', (), 'The names of the cameras.', form=NAME, example=('front',)),),
    Family(
        'camera',
        ('cameras',),
        (
            replace(_TOPIC_KEY, about='The image topic.', example='/camera/image_raw'),
            _text(
                'info_topic',
                '',
                'The topic of the camera info.',
                form=TOPIC,
                fallback='`camera_info` beside the image topic',
            ),
            _text(
                'transport',
                'auto',
                'The messages: sensor_msgs/Image (raw) or sensor_msgs/CompressedImage.',
                choices=('auto', 'raw', 'compressed'),
            ),
            replace(_RATE_KEY, about='Frames stored per second at most; 0 is every one.'),
            _integer('jpeg_quality', 80, (1, 100), 'The quality of the JPEG.'),
            _integer(
                'max_width',
                1280,
                (16, UINT16_MAX),
                'A wider picture is scaled down to this width.',
                unit='pixels',
            ),
            _text(
                'encoding',
                '',
                'The encoding of raw images, where the messages name a wrong one.',
                fallback="the messages' own",
            ),
            _FRAME_KEY,
            Parameter(
                'depth_range_m',
                Kind.NUMBERS,
                (0.0, 10.0),
                'The depths stored as black and as white, of 16- and 32-bit single-channel images.',
                limits=(0.0, 10000.0),
                unit='m',
                length=(2, 2),
            ),
            _QOS,
        ),
        (('front', ''),),
    ),
)

LIDARS = Section(
    'Lidars',
    (_texts('lidars', (), 'The names of the lidars.', form=NAME, example=('top',)),),
    Family(
        'lidar',
        ('lidars',),
        (
            replace(_TOPIC_KEY, about='The topic of the scans or clouds.', example='/points'),
            _text(
                'type',
                'auto',
                'The messages: sensor_msgs/LaserScan or sensor_msgs/PointCloud2.',
                choices=('auto', 'laserscan', 'pointcloud'),
            ),
            replace(_RATE_KEY, about='Scans stored per second at most; 0 is every one.'),
            _FRAME_KEY,
            _flag(
                'laserscan.intensities', False, "Whether a laser scan's intensities are stored."
            ),
            _text(
                'pointcloud.position',
                'int16_mm',
                'How positions are stored. int16_mm reaches 32.767 m; points beyond are left out and '
                'counted.',
                choices=('int16_mm', 'float32'),
            ),
            _text(
                'pointcloud.color',
                'none',
                'How colours are stored.',
                choices=('none', 'rgb565', 'rgb332', 'rgb888'),
            ),
            _text(
                'pointcloud.intensity',
                'none',
                'How intensities are stored.',
                choices=('none', 'uint8'),
            ),
            _text(
                'pointcloud.intensity_field',
                '',
                'The field that holds the intensity.',
                fallback='found by its usual names',
            ),
            _integer(
                'pointcloud.voxel_leaf_mm',
                50,
                (0, UINT16_MAX),
                'The size of the cubes whose points are averaged; 0 is no averaging.',
                unit='mm',
            ),
            _integer('pointcloud.zstd_level', 3, (0, 22), 'The level of compression; 0 is none.'),
            _QOS,
        ),
        (('top', ''),),
    ),
)

SPOOL = Section(
    'Spool',
    (
        _text(
            'spool.dir',
            '~/.local/state/cognitive3d/spool',
            'The folder that holds what is not delivered yet. "~" is the home folder.',
            form=Form(re.compile('.+'), 'the path of a folder'),
        ),
        _integer(
            'spool.max_bytes',
            8 * 2**30,
            (65536, INT64_MAX),
            'The size (by default 8 GiB), its quarantine included, at which the spool is full and drops its '
            'least important parts. What is less than one part of a camera (4 MiB) holds none.',
            unit='bytes',
        ),
        _integer(
            'spool.min_free_bytes',
            2**30,
            (0, INT64_MAX),
            'The free space of the disk (by default 1 GiB) below which the spool is full.',
            unit='bytes',
        ),
        _number(
            'spool.flush_s',
            1.0,
            (0.05, 60.0),
            'How often what was recorded is made durable: the most that a power cut costs.',
            unit='s',
        ),
    ),
)

UPLOAD = Section(
    'Gateway and upload',
    (
        _text(
            'gateway',
            'https://data.cognitive3d.com',
            'Where sessions are delivered.',
            form=Form(re.compile('.*', re.DOTALL), 'an http or https URL'),
        ),
        _text(
            'application_key_file',
            '',
            'The file that holds the application key. The key itself is no parameter, because ROS shows '
            'parameters to everyone.',
            fallback="the environment's C3D_APPLICATION_KEY",
        ),
        _flag('upload.enabled', True, 'Whether parts are delivered.'),
        _number(
            'upload.timeout_s',
            10.0,
            (0.1, 600.0),
            'How long a request may go without progress, and how long its whole answer may take.',
            unit='s',
        ),
        _integer(
            'upload.max_bytes_per_s',
            0,
            (0, INT64_MAX),
            'The most that is sent per second; 0 is no limit.',
            unit='bytes',
        ),
        _flag(
            'upload.require_ack_header',
            True,
            'Whether an answer counts as a delivery only with the header `cvr-request-time`, which the '
            'page of a captive portal lacks.',
        ),
    ),
)

SECTIONS = (SCENE, SESSION, POSE, OBJECT, TOPICS, SENSORS, CAMERAS, LIDARS, SPOOL, UPLOAD)
SCALARS = {p.name: p for section in SECTIONS for p in section.parameters}
FAMILIES = {s.family.word: s.family for s in SECTIONS if s.family}

# The ROS client library's own: it declares them, and other nodes' files may hold them.
CLIENT_LIBRARY = ('use_sim_time', 'start_type_description_service')
CLIENT_LIBRARY_PREFIX = 'qos_overrides.'
