"""Topics, described sensors, diagnostics and annotations over real DDS: whatever a robot publishes, and how."""

import array
import json
import math
import random
import re

import pytest

pytest.importorskip('rclpy')
pytest.importorskip('c3d_test_msgs')

from c3d_test_msgs.msg import Gauge
from cognitive3d_msgs.msg import Annotation
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import Twist, TwistStamped, Vector3, Wrench, WrenchStamped
from nav_msgs.msg import Odometry
from node_rig import LATCHED, NODE, Peer, stamp, until
from rclpy.qos import QoSProfile, ReliabilityPolicy, qos_profile_sensor_data
from sensor_msgs.msg import (
    BatteryState,
    FluidPressure,
    Illuminance,
    Imu,
    JointState,
    LaserScan,
    MagneticField,
    NavSatFix,
    Range,
    RelativeHumidity,
    Temperature,
)
from std_msgs import msg as std

from cognitive3d_ros.cli.main import main
from cognitive3d_ros.recording.accounts import adds_up

pytestmark = pytest.mark.ros

BEST_EFFORT = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
S = 10**9

# Every type of the table, by the topic that it is published on.
KINDS = {
    **{
        kind.__name__.lower(): kind
        for kind in (
            *(Odometry, Twist, TwistStamped, Wrench, WrenchStamped, Imu, BatteryState, JointState),
            *(Range, Temperature, FluidPressure, RelativeHumidity, Illuminance, MagneticField),
            *(NavSatFix, LaserScan, DiagnosticArray),
        )
    },
    **{
        name.lower(): getattr(std, name)
        for name in (
            *('Bool', 'Float32', 'Float64'),
            *(f'{sign}nt{bits}' for sign in ('I', 'UI') for bits in (8, 16, 32, 64)),
        )
    },
}
FLOATS = (math.nan, math.inf, -math.inf, 0.0, -0.01, 1.5, 1e300, -1e300, 5e-324, 3.4e38)
BYTES = (b'\x00', b'\x02', b'2', b'\xff')


def fill(message, chance):
    """Fill a message with what a broken driver might publish."""
    for field, kind in message.get_fields_and_field_types().items():
        setattr(message, field, value_of(kind, getattr(message, field), chance))
    return message


def value_of(kind, now, chance):
    sequence = re.fullmatch(r'sequence<(.*?)(?:, \d+)?>', kind)
    if sequence:
        return list_of(sequence[1], now, chance)
    if kind.endswith(']'):  # of a fixed length
        return [value_of(kind.partition('[')[0], 0.0, chance) for _ in now]
    if kind in ('double', 'float'):
        value = chance.choice(FLOATS)
        return (
            value if kind == 'double' or abs(value) < 3.5e38 or not math.isfinite(value) else 9e9
        )
    if kind in ('boolean', 'bool'):
        return chance.random() < 0.5
    if kind == 'octet':
        return chance.choice(BYTES)
    if kind == 'string':
        return chance.choice(('', 'a', 'b/c', 'd e\n"', 'ü' * 300))
    if re.fullmatch(r'u?int\d+', kind):
        bits, signed = int(kind.rpartition('t')[2]), not kind.startswith('u')
        least = -(2 ** (bits - 1)) if signed else 0
        return chance.choice((0, 1, least, least + 2**bits - 1))
    return fill(now, chance)


def list_of(kind, now, chance):
    length = chance.choice((0, 1, 2, 3, 7))
    if isinstance(now, array.array):
        return array.array(now.typecode, [value_of(kind, 0, chance) for _ in range(length)])
    made = {'diagnostic_msgs/DiagnosticStatus': DiagnosticStatus}.get(kind)
    if made is not None:
        return [fill(made(), chance) for _ in range(length)]
    if '/' in kind:
        return []
    return [value_of(kind, '', chance) for _ in range(length)]


def accounts(node, session_id=None):
    """Return the account of each input; each adds up, and the log says the same."""
    found = {
        key.removeprefix('c3d.account.'): text
        for key, text in node.stored.properties(session_id).items()
        if key.startswith('c3d.account.')
    }
    assert all(adds_up(text) for text in found.values())
    assert all(text in node.text for text in found.values())
    return found


def received(text):
    return int(text.partition(' ')[0])


def all_series(node):
    found = {}
    for body in node.stored.bodies('sensors'):
        for series in body['data']:
            found.setdefault(series['name'], []).extend(map(tuple, series['data']))
    return found


@pytest.mark.rule(39)
def test_a_robot_that_publishes_nonsense_on_every_type(start_node, peer):
    assert len(KINDS) == 28
    chance = random.Random(5)
    node = start_node(
        topics=list(KINDS),
        sensors=['sonar', 'line'],
        **{f'topic.{name}.topic': f'/t/{name}' for name in KINDS},
        **{f'topic.{name}.rate_hz': 0 for name in KINDS},
        **{
            'sensor.sonar.kind': 'cone_rangefinder',
            'sensor.sonar.topic': '/t/sonar',
            'sensor.sonar.cone_half_angle_degrees': 10.0,
            'sensor.line.kind': 'binary_array',
            'sensor.line.topic': '/t/line',
            'sensor.line.element_count': 3,
        },
    )
    published = {f'topic.{name}': (f'/t/{name}', kind) for name, kind in KINDS.items()}
    published |= {
        'sensor.sonar': ('/t/sonar', Range),
        'sensor.line': ('/t/line', std.Float32MultiArray),
    }
    peer.active()
    for topic, kind in published.values():
        peer.publisher(kind, topic, QoSProfile(depth=100), matched=False)
    for topic, kind in published.values():
        peer.publisher(kind, topic)  # matched
    for _ in range(60):
        for topic, kind in published.values():
            peer.publisher(kind, topic).publish(fill(kind(), chance))
    last = Annotation(key='comment', value='the last')
    peer.publisher(Annotation, f'/{NODE}/annotations').publish(last)
    until(lambda: b'the last' in node.journal())
    assert node.stop() == 0, node.text
    books = accounts(node)
    assert books.pop('annotations') == '1 received = 1 stored'
    assert {source: received(text) for source, text in books.items()} == dict.fromkeys(
        published, 60
    )
    assert all('unaccounted' not in text for text in books.values())
    for text in books.values():
        assert not re.search(r'bad_message|decode_failures', text), books
    assert 'wrong_length' in books['sensor.line']
    series = all_series(node)
    for name, samples in series.items():
        assert all(type(value) in (int, float) and math.isfinite(value) for _, value in samples)
        if name.endswith('.percentage'):
            assert all(value >= 0 for _, value in samples)
        if name.endswith('.level'):
            assert all(value in (0, 1, 2, 3) for _, value in samples)
        if name.startswith('line.'):
            assert all(value in (0, 1) for _, value in samples)
    for name in KINDS:
        assert any(key == f't.{name}' or key.startswith(f't.{name}.') for key in series), name


# How it is published


def test_the_qos_follows_the_publishers(start_node, peer):
    """Latched before the start, best effort, and one of each kind on one topic, one after the other."""
    names = ('latched', 'best', 'both', 'late')
    peer.publisher(std.Float64, '/latched', LATCHED, matched=False).publish(std.Float64(data=7.0))
    node = start_node(topics=[f'/{name}' for name in names])
    peer.active()
    until(lambda: b'"latched"' in node.journal(), what='what was published before')
    for name, qos in (('best', qos_profile_sensor_data), ('both', QoSProfile(depth=10))):
        peer.publisher(std.Float64, f'/{name}', qos).publish(std.Float64(data=1.0))
    until(lambda: b'"best"' in node.journal() and b'"both"' in node.journal())
    # A second publisher that a reliable subscription does not hear.
    first = peer.forget('/both')
    second = peer.publisher(std.Float64, '/both', BEST_EFFORT)
    assert first is not second

    def heard():
        second.publish(std.Float64(data=2.0))
        return re.search(rb'"both"\n\[[0-9.]+,2\]', node.journal())

    until(heard, what='the second publisher')
    # A topic that appears late.
    peer.publisher(std.Bool, '/late').publish(std.Bool(data=True))
    until(lambda: b'"late"' in node.journal(), what='the late topic')
    assert node.stop() == 0, node.text
    assert [value for _, value in node.stored.series('latched')] == [7]
    assert [value for _, value in node.stored.series('late')] == [1]
    properties = node.stored.properties()
    assert properties['c3d.ros.topic.late.type'] == 'std_msgs/msg/Bool'
    assert {properties[f'c3d.ros.topic.{name}.publisher'] for name in names} == {'/peer'}
    assert 'WARN' not in node.text


def test_a_topic_that_changes_its_type_goes_on(start_node, peer):
    """And one on which another type appears beside it goes on as it was."""
    node = start_node(topics=['/level'], **{'spool.flush_s': 0.05})
    peer.active()
    other = Peer()
    try:
        first = peer.publisher(std.Float32, '/level')
        said = sent_until(first, std.Float32(data=1.0), lambda: b'"level"' in node.journal())
        assert said
        stranger = other.publisher(std.Int32, '/level', matched=False)
        node.says('are published on it')
        sent_until(first, std.Float32(data=2.0), lambda: b',2]' in node.journal())
        peer.node.destroy_publisher(peer.forget('/level'))
        node.says('is no longer published on it')
        sent_until(stranger, std.Int32(data=77), lambda: b',77]' in node.journal())
    finally:
        other.close()
    assert node.stop() == 0
    values = [value for _, value in node.stored.series('level')]
    assert {1, 2, 77} == set(values)


def sent_until(publisher, message, condition):
    """Publish again and again until the condition holds; return how many times."""
    count = 0

    def send():
        nonlocal count
        count += 1
        publisher.publish(message)
        return condition()

    until(send)
    return count


def test_what_cannot_be_recorded_is_said_once(start_node, peer, tmp_path):
    # To the recorder, this package is not built.
    (tmp_path / 'hidden' / 'c3d_test_msgs').mkdir(parents=True)
    (tmp_path / 'hidden' / 'c3d_test_msgs' / '__init__.py').write_text('')
    peer.publisher(Gauge, '/gauge', matched=False)
    peer.publisher(std.String, '/words', matched=False)
    peer.publisher(std.Float64, '/best', BEST_EFFORT, matched=False)
    node = start_node(
        topics=['gauge', '/words', 'best'],
        environment={'PYTHONPATH': str(tmp_path / 'hidden')},
        **{
            'topic.gauge.topic': '/gauge',
            'topic.gauge.fields': ['pressure'],
            'topic.best.topic': '/best',
            'topic.best.qos': 'reliable',
        },
    )
    for text in (
        'topic.gauge (/gauge): c3d_test_msgs/msg/Gauge is published and is not installed here: install',
        'topic.words (/words): std_msgs/msg/String is published, and what to record of it is not known',
        'topic.best (/best): no publisher fits qos reliable: nothing will come; auto would fit them',
    ):
        node.says(text)
    peer.watch()
    until(lambda: len(peer.statuses) > 2)
    assert node.stop() == 0, node.text
    assert node.text.count('WARN') == 3


def test_a_package_that_is_half_installed_stops_nothing_else(start_node, peer, tmp_path):
    package = tmp_path / 'half' / 'c3d_test_msgs'
    package.mkdir(parents=True)
    (package / '__init__.py').write_text('')
    (package / 'msg.py').write_text('class Gauge: pass\n')
    peer.publisher(Gauge, '/gauge', matched=False)
    node = start_node(
        topics=['gauge', '/x'],
        environment={'PYTHONPATH': str(tmp_path / 'half')},
        **{'topic.gauge.topic': '/gauge', 'topic.gauge.fields': ['pressure']},
    )
    node.says('c3d_test_msgs/msg/Gauge cannot be subscribed to')
    peer.publisher(std.Float64, '/x').publish(std.Float64(data=1.0))
    until(lambda: b'"x"' in node.journal())
    assert node.stop() == 0, node.text
    assert node.text.count('WARN') == 1


@pytest.mark.rule(39)
def test_a_type_that_the_recorder_does_not_know(start_node, peer):
    node = start_node(
        topics=['gauge'],
        **{
            'topic.gauge.topic': '/gauge',
            'topic.gauge.fields': [
                *('pressure', 'steps.1', 'weights.3', 'color.r', 'open', 'mode'),
                'header.stamp.sec',
                'nothing',
            ],
        },
    )
    peer.active()
    message = Gauge(
        pressure=1.5, steps=[4, 5], weights=[0.0, 0.0, 0.0, 2.0], open=True, mode=b'\x03'
    )
    message.color.r, message.header.stamp = 0.5, stamp(9 * S)
    peer.publisher(Gauge, '/gauge').publish(message)
    until(lambda: b'gauge.pressure' in node.journal())
    assert node.stop() == 0, node.text
    assert accounts(node) == {'topic.gauge': '1 received = 1 stored'}
    found = {
        name: samples[0][1] for name, samples in all_series(node).items() if name[:4] != 'c3d.'
    }
    assert found == {
        'gauge.pressure': 1.5,
        'gauge.steps.1': 5,
        'gauge.weights.3': 2,
        'gauge.color.r': 0.5,
        'gauge.open': 1,
        'gauge.mode': 3,
        'gauge.header.stamp.sec': 9,
    }
    assert 'has no number at nothing: correct topic.gauge.fields' in node.text


@pytest.mark.rule(62, 66)
def test_names_are_as_written_and_topics_as_resolved(start_node, peer):
    node = start_node(
        topics=['wheels/speed', '/battery'],
        sensors=['sonar'],
        arguments=('-r', '__ns:=/fleet/r7', '-r', '/battery:=/power/main'),
        **{
            'sensor.sonar.kind': 'cone_rangefinder',
            'sensor.sonar.topic': 'sonar',
            'sensor.sonar.cone_half_angle_degrees': 10,
        },
    )
    for topic, kind in (
        ('/fleet/r7/wheels/speed', std.Float32),
        ('/power/main', BatteryState),
        ('/fleet/r7/sonar', std.Int16),
    ):
        peer.publisher(kind, topic)
    peer.publisher(std.Float32, '/fleet/r7/wheels/speed').publish(std.Float32(data=0.5))
    peer.publisher(BatteryState, '/power/main').publish(BatteryState(voltage=24.0))
    peer.publisher(std.Int16, '/fleet/r7/sonar').publish(std.Int16(data=30))
    until(
        lambda: all(
            name in node.journal()
            for name in (b'"wheels.speed"', b'"battery.voltage"', b'"sonar"\n')
        )
    )
    assert node.stop() == 0, node.text
    properties = node.stored.properties()
    assert properties['c3d.ros.topic.wheels.speed.topic'] == '/fleet/r7/wheels/speed'
    assert properties['c3d.ros.topic.battery.topic'] == '/power/main'
    assert properties['c3d.ros.sensor.sonar.topic'] == '/fleet/r7/sonar'
    assert properties['c3d.ros.topic.battery.publisher'] == '/peer'


def test_the_robots_diagnostics_and_not_our_own(start_node, peer):
    node = start_node(topics=['/diagnostics'])
    peer.active()
    peer.watch()
    publisher = peer.publisher(DiagnosticArray, '/diagnostics')
    until(lambda: publisher.get_subscription_count() == 2)  # the recorder and we
    for level in (b'\x00', b'\x01', b'2', b'\x00'):
        status = DiagnosticStatus(level=level, name='base: motor', message='m', hardware_id='h')
        publisher.publish(DiagnosticArray(status=[status]))
    until(lambda: len(peer.diagnostics) > 7)  # ours among them
    until(lambda: node.journal().count(b'c3d.diagnostic') == 3, what='three changes of level')
    assert node.stop() == 0, node.text
    names = [name for name in all_series(node) if not name.startswith('c3d.')]
    assert names == ['diagnostics.base: motor.level']
    assert [value for _, value in node.stored.series(names[0])] == [0, 1, 2, 0]
    levels = [
        event['properties']['level']
        for event in node.stored.events()
        if event['name'] == 'c3d.diagnostic'
    ]
    assert levels == [1, 2, 0]
    assert 'dropped' not in accounts(node)['topic.diagnostics']


# Annotations and log markers


def test_markers_through_the_node_and_the_command_line(start_node, peer, capsys):
    node = start_node()
    peer.active()
    publisher = peer.publisher(Annotation, f'/{NODE}/annotations', QoSProfile(depth=100))
    script = [
        ('log_marker_start', '1;drive'),
        ('log_marker_start', '<2>;turn'),
        ('log_marker_event', 'a door'),
        ('log_marker_stop', '2;turned'),
        ('log_marker_stop', '<1>;driven'),
        ('log_marker_stop', '9;never opened'),
        ('log_marker_start', '3;grasp'),
        ('log_marker_start', '3;grasp again'),
        ('log_marker_abort', '3;dropped'),
        ('comment', 'all well; really'),
        ('log_marker_start', '4;left open'),
    ]
    for key, value in script:
        publisher.publish(Annotation(stream_name='camera/front', key=key, value=value))
    # One that speaks of an instant before all others, and comes last.
    early = Annotation(
        key='comment', value='before', time=stamp(peer.node.get_clock().now().nanoseconds - 60 * S)
    )
    publisher.publish(early)
    until(lambda: b'"before"' in node.journal())
    assert node.stop() == 0, node.text
    assert (
        accounts(node)['annotations'] == f'{len(script) + 1} received = {len(script) + 1} stored'
    )
    assert main(['markers', str(node.spool), '--json']) == 3  # a stop with nothing open
    facts = json.loads(capsys.readouterr().out)
    assert [
        (r['index'], r['state'], r['start_text'], r['stop_text']) for r in facts['regions']
    ] == [
        (1, 'completed', 'drive', 'driven'),
        (2, 'completed', 'turn', 'turned'),
        (3, 'restarted', 'grasp', ''),
        (3, 'aborted', 'grasp again', 'dropped'),
        (4, 'open', 'left open', ''),
    ]
    (fault,) = facts['faults']
    assert 'no region 9 is open' in fault
    assert len(facts['annotations']) == len(script) + 1
    assert next(each for each in facts['annotations'] if each['value'] == 'before')['at'] < -50
    assert main(['markers', str(node.spool)]) == 3
    shown = capsys.readouterr().out
    assert 'grasp again' in shown
    assert 'camera/front' in shown


def test_vectors_are_what_was_published(start_node, peer):
    """The numbers of a good driver, once through DDS."""
    node = start_node(topics=['/cmd_vel', '/imu'])
    peer.publisher(Twist, '/cmd_vel').publish(
        Twist(linear=Vector3(x=0.25, y=0.0, z=0.0), angular=Vector3(x=0.0, y=0.0, z=-1.5))
    )
    imu = Imu(linear_acceleration=Vector3(x=0.01, y=0.02, z=9.81))
    imu.angular_velocity_covariance[0] = -1.0
    peer.publisher(Imu, '/imu').publish(imu)
    until(lambda: b'cmd_vel' in node.journal() and b'imu.' in node.journal())
    assert node.stop() == 0, node.text
    found = {n: s[0][1] for n, s in all_series(node).items() if not n.startswith('c3d.')}
    assert found == {
        'cmd_vel.linear_x': 0.25,
        'cmd_vel.linear_y': 0,
        'cmd_vel.linear_z': 0,
        'cmd_vel.angular_x': 0,
        'cmd_vel.angular_y': 0,
        'cmd_vel.angular_z': -1.5,
        'imu.linear_acceleration_x': 0.01,
        'imu.linear_acceleration_y': 0.02,
        'imu.linear_acceleration_z': 9.81,
    }


@pytest.mark.slow
def test_subscriptions_come_and_go_under_traffic(start_node, peer):
    """Configured again and again while messages arrive, and publishers appear and disappear."""
    names = [f'x{n}' for n in range(20)]
    node = start_node(topics=[f'/{name}' for name in names], autostart=False, actions=['/dock'])
    for turn in range(12):
        for name in names:
            peer.publisher(std.Float64, f'/{name}', matched=False)
        assert peer.change('configure')
        assert peer.change('activate')
        for name in names:
            peer.publisher(std.Float64, f'/{name}').publish(std.Float64(data=float(turn)))
        gone = peer.forget('/x0')
        peer.node.destroy_publisher(gone)
        for name in names[1:]:
            peer.publisher(std.Float64, f'/{name}').publish(std.Float64(data=-1.0))
        assert peer.change('deactivate')
        assert peer.change('cleanup')
        # Nobody listens any more.
        last = peer.publisher(std.Float64, '/x19', matched=False)
        until(lambda last=last: not last.get_subscription_count())
    assert node.stop() == 0, node.text
    assert len(node.reasons()) == 12
    assert 'ERROR' not in node.text
