"""Topics, sensors, actions, diagnostics and annotations through a recorder, and the sums that close."""

import dataclasses
import math
import random
from types import SimpleNamespace as Of

import pytest
from recording_rig import WALL, Rig, S

from cognitive3d_ros.counters import Drop, Fate, LeftOut
from cognitive3d_ros.log import Complaints
from cognitive3d_ros.recording.accounts import accounts, adds_up
from cognitive3d_ros.recording.inputs import Decimation, Publication
from cognitive3d_ros.recording.registry import inputs_of
from cognitive3d_ros.session.session import open_session
from cognitive3d_ros.session.verify import Kind, verify
from cognitive3d_ros.spool.session import RULES

HEALTH = (
    *('pose_failures', 'stale_poses', 'gaze_frame_failures', 'clock_resets', 'stamp_fallbacks'),
    *('messages_lost', 'dropped_records', 'dropped_events'),
    *('parts_written', 'parts_uploaded', 'parts_evicted', 'parts_quarantined', 'upload_failures'),
    *('spool_bytes', 'spool_parts', 'spool_oldest_s', 'disk_free_bytes', 'upload_blocked'),
)
FLOAT = 'std_msgs/msg/Float64'
DIAGNOSTICS = 'diagnostic_msgs/msg/DiagnosticArray'


class InputRig(Rig):
    """A recorder with its inputs; messages arrive when :meth:`send` is called."""

    def __init__(self, root, *, types=None, resolve=None, **params):
        super().__init__(root, **params)
        made = inputs_of(
            self.config,
            self.recorder,
            self.ledger,
            Complaints(self.log, lambda: self.clocks.mono_ns),
            node='cognitive3d',
        )
        self.inputs = {each.source: each for each in made}
        for source, type_name in (types or {}).items():
            assert self.find(source, type_name) is None

    def find(self, source, type_name, publisher='/driver'):
        topic = self.inputs[source].topic
        return self.inputs[source].found(Publication(topic, type_name, publisher))

    def send(self, source, message):
        """Let a message arrive; return whether it was due."""
        arrival = self.inputs[source].due()
        if arrival is not None:
            self.inputs[source].take(message, arrival)
        return arrival is not None

    def count(self, source, fate):
        return self.ledger.value((fate, source))

    def pace(self, source, values, *, hz=50.0):
        """Send values at a rate; return the wire times in seconds at which they arrived."""
        times = []
        for value in values:
            times.append(round(self.clocks.wall_ns / S, 5))
            self.send(source, Of(data=value))
            self.clocks.advance(round(S / hz))
        return times


@pytest.fixture
def rig(tmp_path):
    made = []

    def make(**params):
        made.append(InputRig(tmp_path / f'spool{len(made)}', **params))
        return made[-1]

    yield make
    for each in made:
        each.close()


def x(**params):
    """Parameters of one topic of numbers, /x."""
    return {'topics': ['x'], 'topic.x.topic': '/x', 'types': {'topic.x': FLOAT}, **params}


def ended(rig):
    """End the session; return the accounts by source."""
    before = rig.recorder._session._baseline.session
    session_id = rig.recorder.end_session('done')
    found = accounts(before, rig.ledger.snapshot())
    properties = rig.properties(session_id)
    lines = [text for text in rig.log.of('info') if ' received = ' in text]
    for account in found:
        assert account.open == 0, account
        assert f'{account.title}: {account}' in lines
        text = properties[f'c3d.account.{account.source}']
        assert text == str(account)
        assert adds_up(text)
    dropped = sum(account.fates.get(Fate.DROPPED, 0) for account in found)
    reasons = sum(sum(account.reasons.values()) for account in found)
    health = [
        rig.series(f'c3d.dropped_{what}', session_id)[-1][1] for what in ('records', 'events')
    ]
    no_value = sum(account.reasons.get(Drop.NO_VALUE, 0) for account in found)
    assert dropped == reasons == sum(health) + no_value  # what has no value is no loss
    assert 'no_value' not in properties.get('c3d.losses', '')
    return {account.source: account for account in found}


# The gate, at the recorder


def by_hand(samples):
    """Keep samples as the data format says it: a change over 0.001, or 2 s or more."""
    kept = []
    for time, value in samples:
        value = round(value, 5)
        if (
            not kept
            or round(abs(value - kept[-1][1]), 5) > 0.001
            or round(time - kept[-1][0], 5) >= 2
        ):
            kept.append((time, value))
    return kept


@pytest.mark.rule(14, 39, 40)
def test_every_message_is_gated_and_carries_the_time_it_arrived(rig):
    rig = rig(**x(**{'topic.x.rate_hz': 0}))
    rig.recorder.start_session()
    chance = random.Random(3)
    values = [chance.choice([1.0, 1.0005, 1.001, 1.00101, 2.0]) for _ in range(300)] + [7.0] * 300
    times = rig.pace('topic.x', values)
    account = ended(rig)['topic.x']
    kept = by_hand(zip(times, values, strict=True))
    assert rig.series('x') == kept
    assert account.fates == {
        Fate.RECEIVED: 600,
        Fate.STORED: len(kept),
        Fate.GATED: 600 - len(kept),
    }


@pytest.mark.rule(40)
def test_a_value_after_a_gap_is_stored(rig):
    rig = rig(**x(**{'topic.x.rate_hz': 0}))
    rig.recorder.start_session()
    rig.pace('topic.x', [1.0, math.nan, 1.0, math.inf, 2.0, math.nan, -math.inf], hz=10)
    account = ended(rig)['topic.x']
    assert [value for _, value in rig.series('x')] == [1.0, 2.0]
    assert account.fates == {
        Fate.RECEIVED: 7,
        Fate.STORED: 2,
        Fate.GATED: 1,
        Fate.DROPPED: 4,
    }
    assert account.reasons == {Drop.NO_VALUE: 4}
    assert str(account) == '7 received = 2 stored + 1 gated + 4 dropped (4 no_value)'


@pytest.mark.rule(41)
def test_the_gate_is_fresh_in_each_session(rig):
    rig = rig(**x())
    ids = []
    for _ in range(2):
        ids.append(rig.recorder.start_session())
        rig.pace('topic.x', [5.0] * 3, hz=1.5)
        ended(rig)
    assert [len(rig.series('x', session_id)) for session_id in ids] == [1, 1]


# Decimation


@pytest.mark.parametrize(
    ('source_hz', 'jitter_ms', 'rate_hz'),
    [
        (50, 0, 10),
        (50, 8, 10),
        (10, 20, 10),
        (14.3, 5, 10),
        (3, 0, 10),
        (1000, 0.4, 50),
        (30, 3, 1),
    ],
)
def test_the_rate_is_met_whatever_the_rate_of_the_messages(source_hz, jitter_ms, rate_hz):
    decimation, chance, seconds = Decimation(rate_hz), random.Random(1), 60
    times = [
        round((n / source_hz + chance.uniform(-1, 1) * jitter_ms / 1e3) * S)
        for n in range(round(seconds * source_hz))
    ]
    passed = [time for time in sorted(times) if decimation.passes(time)]
    wanted = seconds * min(source_hz, rate_hz)
    assert wanted * (0.9 if source_hz == 14.3 else 0.97) <= len(passed) <= seconds * rate_hz + 1


def test_after_a_gap_it_goes_on_at_its_rate():
    decimation = Decimation(10.0)
    times = [*range(0, 1000, 20), *range(60_000, 61_000, 20)]
    passed = [time for time in times if decimation.passes(time * S // 1000)]
    assert len(passed) == pytest.approx(20, abs=2)


def test_decimated_messages_are_counted_and_no_loss(rig):
    rig = rig(**x())
    rig.recorder.start_session()
    rig.pace('topic.x', range(500))
    account = ended(rig)['topic.x']
    # One in a tenth of a second, the first at once.
    assert account.fates == {Fate.RECEIVED: 500, Fate.STORED: 101, Fate.DECIMATED: 399}
    assert str(account) == '500 received = 101 stored + 399 decimated'
    assert account.title == 'x topic'
    assert len(rig.series('x')) == 101


def test_while_no_session_is_active_nothing_is_counted(rig):
    rig = rig(**x())
    assert not rig.send('topic.x', Of(data=1.0))
    rig.recorder.start_session()
    assert ended(rig) == {}
    assert not rig.send('topic.x', Of(data=1.0))
    assert rig.count('topic.x', Fate.RECEIVED) == 0
    assert rig.properties()['c3d.account.topic.x'] == '0 received = 0 stored'


def test_a_message_of_a_session_that_has_ended_is_dropped(rig):
    rig = rig(**x())
    rig.recorder.start_session()
    arrival = rig.inputs['topic.x'].due()
    rig.recorder.end_session('done')
    rig.clocks.advance(S)
    rig.recorder.start_session()
    rig.inputs['topic.x'].take(Of(data=1.0), arrival)
    assert rig.ledger.value((Drop.SESSION_ENDED, 'topic.x')) == 1


# Types


def test_types_that_cannot_be_recorded_say_why(rig):
    rig = rig(
        topics=['x'],
        sensors=['line'],
        actions=['/dock'],
        **{
            'topic.x.topic': 'x',
            'sensor.line.kind': 'binary_array',
            'sensor.line.topic': '/line',
            'sensor.line.element_count': 2,
        },
    )
    assert 'topic.x.fields' in rig.find('topic.x', 'my_msgs/msg/Thing')
    assert 'multi-array' in rig.find('sensor.line', FLOAT)
    assert 'GoalStatusArray' in rig.find('action.dock', FLOAT)
    # A door that subscribes nevertheless changes nothing.
    rig.recorder.start_session()
    rig.send('topic.x', Of(data=1.0))
    assert ended(rig)['topic.x'].reasons == {Drop.BAD_MESSAGE: 1}


def test_a_path_that_leads_nowhere_is_warned_about_once_a_session(rig):
    rig = rig(
        topics=['x'],
        types={'topic.x': 'my_msgs/msg/Thing'},
        **{'topic.x.topic': 'x', 'topic.x.fields': ['a.b', 'c'], 'topic.x.rate_hz': 0},
    )
    rig.recorder.start_session()
    for value in range(3):
        rig.send('topic.x', Of(c=value))
    assert rig.log.of('warning') == [
        'topic.x: my_msgs/msg/Thing has no number at a.b: correct topic.x.fields'
    ]
    ended(rig)
    assert [value for _, value in rig.series('x.c')] == [0, 1, 2]


def test_broken_messages_are_counted_and_warned_about_sparingly(rig):
    rig = rig(**x(**{'topic.x.rate_hz': 0}))
    rig.recorder.start_session()
    rig.pace('topic.x', [])
    for _ in range(50):
        rig.send('topic.x', Of())
    (warning,) = rig.log.of('warning')
    assert warning.startswith(
        'topic.x: a std_msgs/msg/Float64 that cannot be read: AttributeError'
    )
    assert ended(rig)['topic.x'].reasons == {Drop.BAD_MESSAGE: 50}


def test_more_series_than_a_topic_may_have(rig):
    rig = rig(
        topics=['/joints'],
        types={'topic.joints': 'sensor_msgs/msg/JointState'},
    )
    rig.recorder.start_session()
    state = Of(
        name=[f'j{n}' for n in range(1000)],
        position=[0.5] * 1000,
        velocity=[],
        effort=[1.0] * 1000,
    )
    rig.send('topic.joints', state)
    account = ended(rig)['topic.joints']
    assert account.fates == {Fate.RECEIVED: 1, Fate.STORED: 1}
    assert account.left_out == {LeftOut.BEYOND_LIMIT: 2 * (1000 - 666)}
    assert str(account).endswith('1 stored; left out of these: 668 beyond_limit')
    assert len(rig.series('joints.j665.effort')) == 1
    assert len(rig.series('joints.j666.effort')) == 0
    assert any('more series' in text for text in rig.log.of('warning'))


def test_things_without_a_name_are_no_series_and_counted_apart(rig):
    rig = rig(topics=['/diagnostics'], types={'topic.diagnostics': DIAGNOSTICS})
    rig.recorder.start_session()
    nameless = status('', b'\x01', '', 'h')
    rig.send('topic.diagnostics', Of(status=[nameless, status('base', b'\x00', '', 'h')]))
    rig.send('topic.diagnostics', Of(status=[nameless]))
    account = ended(rig)['topic.diagnostics']
    assert str(account) == (
        '2 received = 1 stored + 1 dropped (1 no_value); left out of these: 2 no_name'
    )
    warnings = [text for text in rig.log.of('warning') if 'diagnostics' in text]
    assert any('without a name' in text for text in warnings)
    assert not any('more series' in text for text in warnings)


def test_an_input_that_nothing_came_in_on_is_named(rig):
    rig = rig(topics=['/none', '/odd', '/still', '/here'], actions=['/go'])
    rig.recorder.start_session()
    assert rig.find('topic.odd', 'a_msgs/msg/B') is not None
    assert rig.find('topic.still', FLOAT) is None
    assert rig.find('topic.here', FLOAT) is None
    rig.send('topic.here', Of(data=1.0))
    session_id = rig.recorder.end_session('done')
    told = [text for text in rig.log.of('info') if 'nothing was received' in text]
    assert [text.partition(' is published')[0] for text in told] == [
        'go action: nothing was received: no publisher was found',
        'none topic: nothing was received: no publisher was found',
        'odd topic: nothing was received: a_msgs/msg/B',
        f'still topic: nothing was received: {FLOAT}',
    ]
    properties = rig.properties(session_id)
    assert properties['c3d.account.topic.none'] == '0 received = 0 stored'
    assert properties['c3d.account.topic.here'] == '1 received = 1 stored'
    assert adds_up('0 received = 0 stored')
    found = verify(open_session(rig.root, session_id))
    assert {each.kind for each in found} == {Kind.NOTE}
    assert 'topic.none: nothing was received' in [each.text for each in found]


# Properties


@pytest.mark.rule(59, 62)
def test_what_becomes_known_is_in_every_session(rig):
    rig = rig(
        topics=['x', '/odom'],
        sensors=['sonar'],
        types={'topic.x': FLOAT, 'topic.odom': 'nav_msgs/msg/Odometry'},
        **{
            'topic.x.topic': 'x',
            'topic.x.prefix': 'speed',
            'topic.x.rate_hz': 2.5,
            'sensor.sonar.kind': 'cone_rangefinder',
            'sensor.sonar.topic': '/sonar',
            'sensor.sonar.cone_half_angle_degrees': 15,
        },
    )
    expected = {
        'c3d.ros.topics': 'x,odom',
        'c3d.ros.topic.x.topic': 'x',
        'c3d.ros.topic.x.type': FLOAT,
        'c3d.ros.topic.x.publisher': '/driver',
        'c3d.ros.topic.x.prefix': 'speed',
        'c3d.ros.topic.x.rate_hz': 2.5,
        'c3d.ros.topic.odom.topic': '/odom',
        'c3d.ros.topic.odom.type': 'nav_msgs/msg/Odometry',
        'c3d.ros.topic.odom.publisher': '/driver',
        'c3d.ros.topic.odom.prefix': 'odom',
        'c3d.ros.topic.odom.rate_hz': 10,
        'c3d.ros.sensors': 'sonar',
    }
    for _ in range(2):
        session_id = rig.recorder.start_session()
        rig.recorder.end_session('done')
        assert expected.items() <= rig.properties(session_id).items()
        at_start, at_end = (body['properties'] for body in rig.bodies('gaze', session_id))
        assert expected.items() <= at_start.items()
        assert all(name.startswith('c3d.account.') for name in at_end)


def test_what_becomes_known_later_travels_together_at_the_next_flush(rig):
    rig = rig(topics=['/a', '/b'])
    session_id = rig.recorder.start_session()
    rig.find('topic.a', FLOAT, publisher='')
    rig.find('topic.b', FLOAT)
    rig.recorder.flush()
    rig.find('topic.b', FLOAT)  # again, nothing new
    rig.recorder.flush()
    rig.find('topic.a', FLOAT, publisher='/late')
    rig.recorder.end_session('done')
    _, second, third = (body['properties'] for body in rig.bodies('gaze', session_id))
    assert second == {
        'c3d.ros.topic.a.type': FLOAT,
        'c3d.ros.topic.b.type': FLOAT,
        'c3d.ros.topic.b.publisher': '/driver',
    }
    nothing = '0 received = 0 stored'
    assert third == {
        'c3d.ros.topic.a.publisher': '/late',
        'c3d.account.topic.a': nothing,
        'c3d.account.topic.b': nothing,
    }


# Described sensors


@pytest.mark.rule(67, 69)
def test_described_sensors_are_recorded_under_their_own_names(rig):
    rig = rig(
        sensors=['sonar', 'line'],
        types={
            'sensor.sonar': 'sensor_msgs/msg/Range',
            'sensor.line': 'std_msgs/msg/UInt8MultiArray',
        },
        **{
            'sensor.sonar.kind': 'cone_rangefinder',
            'sensor.sonar.topic': '/sonar',
            'sensor.sonar.cone_half_angle_degrees': 15,
            'sensor.line.kind': 'binary_array',
            'sensor.line.topic': '/line',
            'sensor.line.element_count': 3,
        },
    )
    rig.recorder.start_session()
    for value in (0.5, math.inf, 0.52):
        rig.send('sensor.sonar', Of(range=value))
    for data in ([0, 1, 1], [0, 1], [0, 1, 9], [1, 1, 0]):
        rig.send('sensor.line', Of(data=data))
    found = ended(rig)
    assert [value for _, value in rig.series('sonar')] == [50, 52]
    assert [value for _, value in rig.series('line.0')] == [0, 1]
    assert [value for _, value in rig.series('line.1')] == [1]
    assert [value for _, value in rig.series('line.2')] == [1, 0]
    assert str(found['sensor.line']) == (
        '4 received = 2 stored + 1 gated + 1 dropped (1 wrong_length)'
    )
    assert str(found['sensor.sonar']) == '3 received = 2 stored + 1 dropped (1 no_value)'


# Diagnostics


def status(name, level, message='', hardware_id=''):
    return Of(name=name, level=level, message=message, hardware_id=hardware_id)


def test_diagnostics_are_levels_and_events_and_never_decimated(rig):
    rig = rig(topics=['/diagnostics'], types={'topic.diagnostics': DIAGNOSTICS})
    rig.robot(1, 2, 0)
    rig.recorder.start_session()
    levels = [b'\x00'] * 20 + [b'\x02', b'\x00', b'2'] + [1]
    for level in levels:
        rig.send('topic.diagnostics', Of(status=[status('base: motor', level, 'hot', 'm1')]))
        rig.clocks.advance(S // 1000)
    account = ended(rig)['topic.diagnostics']
    assert account.fates == {Fate.RECEIVED: 24, Fate.STORED: 5, Fate.GATED: 19}
    assert [value for _, value in rig.series('diagnostics.base: motor.level')] == [0, 2, 0, 2, 1]
    events = [event for event in rig.events() if event['name'] == 'c3d.diagnostic']
    assert [event['properties']['level'] for event in events] == [2, 0, 2, 1]
    assert events[0]['properties'] == {
        'name': 'base: motor',
        'level': 2,
        'message': 'hot',
        'hardware_id': 'm1',
    }


def test_our_own_diagnostics_are_neither_recorded_nor_lost(rig):
    rig = rig(topics=['/diagnostics'], types={'topic.diagnostics': DIAGNOSTICS})
    rig.recorder.start_session()
    ours = [
        status(f'cognitive3d: {name}', b'\x01', '', 'rover-07') for name in ('recorder', 'spool')
    ]
    theirs = status('cognitive3d: recorder', b'\x00', '', 'rover-08')
    rig.send('topic.diagnostics', Of(status=ours))
    rig.send('topic.diagnostics', Of(status=[*ours, theirs]))
    account = ended(rig)['topic.diagnostics']
    assert account.fates == {Fate.RECEIVED: 1, Fate.STORED: 1}  # ours did not come in
    names = {series['name'] for body in rig.bodies('sensors') for series in body['data']}
    assert {name for name in names if not name.startswith('c3d.')} == {
        'diagnostics.cognitive3d: recorder.level'
    }


# Actions


def goal(rig, n, state, accepted_s):
    stamp_ns = WALL + round(accepted_s * S)
    stamp = Of(sec=stamp_ns // S, nanosec=stamp_ns % S)
    return Of(goal_info=Of(goal_id=Of(uuid=n.to_bytes(16, 'big')), stamp=stamp), status=state)


def test_actions_become_events(rig):
    rig = rig(
        actions=['nav'], **{'topic.nav.topic': '/navigate_to_pose', 'topic.nav.prefix': 'nav'}
    )
    assert rig.inputs['action.nav'].topic == '/navigate_to_pose/_action/status'
    # Between sessions: one goal is over, one runs.
    rig.send('action.nav', Of(status_list=[goal(rig, 1, 4, -9), goal(rig, 2, 2, -5)]))
    rig.recorder.start_session()
    rig.clocks.advance(2 * S)
    for states in (
        [(1, 4, -9), (2, 2, -5)],
        [(2, 4, -5), (3, 1, 2)],
        [(3, 2, 2)],
        [(3, 6, 2), (4, 5, 1)],
    ):
        rig.clocks.advance(S)
        rig.send('action.nav', Of(status_list=[goal(rig, *each) for each in states]))
    rig.send('action.nav', Of())
    account = ended(rig)['action.nav']
    assert account.fates == {
        Fate.RECEIVED: 5,
        Fate.STORED: 2,
        Fate.GATED: 2,
        Fate.DROPPED: 1,
    }
    events = [
        (event['name'], int(event['properties'].pop('goal_id'), 16), event['properties'])
        for event in rig.events()
        if event['name'].startswith('nav.')
    ]
    unknown = {'c3d.position_unknown': True}
    assert events == [
        ('nav.started', 2, unknown),
        ('nav.succeeded', 2, {'duration': 9, **unknown}),
        ('nav.started', 3, unknown),
        ('nav.aborted', 3, {'duration': 4, **unknown}),
        ('nav.started', 4, unknown),
        ('nav.canceled', 4, {'duration': 5, **unknown}),
    ]
    # The next session starts with none of them.
    second = rig.recorder.start_session()
    ended(rig)
    assert [event['name'] for event in rig.events(second)] == [
        'c3d.sessionStart',
        'c3d.sessionEnd',
    ]


def test_events_that_the_spool_refuses_are_the_losses_of_whom_they_came_from(rig, monkeypatch):
    rig = rig(topics=['/diagnostics'], types={'topic.diagnostics': DIAGNOSTICS}, actions=['/dock'])
    rig.recorder.start_session()
    rule = dataclasses.replace(RULES['events'], pending_bytes=0)
    with monkeypatch.context() as patched:
        patched.setitem(RULES, 'events', rule)
        for level in (0, 1):
            rig.send('topic.diagnostics', Of(status=[status('a', level)]))
        rig.send('action.dock', Of(status_list=[goal(rig, 1, 2, 0), goal(rig, 2, 2, 0)]))
        rig.recorder.event('e', '')
        rig.recorder.annotation('', 'comment', '')
    before = rig.recorder._session._baseline.session
    rig.recorder.end_session('done')
    found = {each.source: each for each in accounts(before, rig.ledger.snapshot())}
    assert all(each.open == 0 for each in found.values())
    for source in ('action.dock', 'events', 'annotations'):
        assert str(found[source]) == '1 received = 1 dropped (1 queue_full)'
    assert found['topic.diagnostics'].fates == {Fate.RECEIVED: 2, Fate.STORED: 2}
    # One of each, the other goal's, and the change of level.
    assert rig.series('c3d.dropped_events')[-1][1] == 5


# Annotations


def test_annotations_are_events_at_their_instant(rig):
    rig = rig()
    session_id = rig.recorder.start_session()
    rig.clocks.advance(100 * S)
    rig.robot(1, 0, 0)
    now = rig.clocks.ros_ns
    instants = [0, now - 3 * S, now + S // 2, now + 2 * S, now - 200 * S, now - 7200 * S, 1]
    for n, instant in enumerate(instants):
        assert rig.recorder.annotation('camera/front', 'comment', f'{n}', instant)
    assert not rig.recorder.annotation('', 'comment', 'x' * 70_000)
    assert not rig.recorder.annotation('', 'com\0ment', '')
    account = ended(rig)['annotations']
    assert str(account) == '9 received = 7 stored + 2 dropped (2 bad_event)'
    found = {
        event['properties']['value']: (
            round(event['time'] - WALL / S, 5),
            round(event['properties']['annotation_time'] - WALL / S, 5),
        )
        for event in rig.events(session_id)
        if event['name'] == 'c3d.annotation'
    }
    assert found == {
        '0': (100, 100),
        '1': (97, 97),
        '2': (100.5, 100.5),
        '3': (100, 100),  # more than a second ahead: no clock says so
        '4': (0, -100),  # the event is clamped to the start, its instant is not
        '5': (100, -7100),  # nor does the rule of the hour touch it
        '6': (100, -WALL // S),
    }
    (event,) = [e for e in rig.events() if e['properties'].get('value') == '1']
    assert event['properties'].items() >= {
        ('annotation_time', WALL // S + 97),
        ('stream_name', 'camera/front'),
        ('key', 'comment'),
        ('value', '1'),
    }


def test_without_a_session_annotations_are_nothing(rig):
    rig = rig()
    assert not rig.recorder.annotation('', 'comment', 'x')
    assert rig.count('annotations', Fate.RECEIVED) == 0


# Health


@pytest.mark.rule(42, 43)
def test_health_is_every_series_every_five_seconds(rig):
    rig = rig()
    rig.robot(0)
    session_id = rig.recorder.start_session()
    for _ in range(23):
        rig.run(0.5, step=0.25)
        rig.recorder.event('', '')  # refused, and counted
    rig.recorder.end_session('done')
    names = {
        series['name'] for body in rig.bodies('sensors', session_id) for series in body['data']
    }
    assert names == {f'c3d.{name}' for name in HEALTH}
    for name in names:
        times = [round(time - WALL / S, 5) for time, _ in rig.series(name, session_id)]
        assert times == [5, 10, 11.5], name
    assert [value for _, value in rig.series('c3d.dropped_events', session_id)] == [9, 19, 23]
    # Counts begin anew with each session.
    second = rig.recorder.start_session()
    rig.recorder.end_session('done')
    assert [value for _, value in rig.series('c3d.dropped_events', second)] == [0]


@pytest.mark.rule(44)
def test_cameras_and_lidars_add_their_own(rig):
    rig = rig(
        cameras=['front'],
        lidars=['top'],
        **{'camera.front.topic': '/front', 'lidar.top.topic': '/top'},
    )
    session_id = rig.recorder.start_session()
    rig.recorder.end_session('done')
    names = {
        series['name'] for body in rig.bodies('sensors', session_id) for series in body['data']
    }
    common = ('received', 'decimated', 'dropped', 'decode_failures', 'pose_failures')
    assert {name for name in names if name.count('.') > 1} == {
        *(f'c3d.camera.front.{word}' for word in (*common, 'frames')),
        *(f'c3d.lidar.top.{word}' for word in (*common, 'scans', 'out_of_range')),
    }


# Everything at once


@pytest.mark.parametrize('seed', range(5))
def test_the_sums_close_whatever_comes_in(rig, seed):
    chance = random.Random(seed)
    rig = rig(
        topics=['/f', '/imu', '/joints', '/diagnostics', 'any'],
        sensors=['line'],
        actions=['/dock'],
        types={
            'topic.f': FLOAT,
            'topic.imu': 'sensor_msgs/msg/Imu',
            'topic.joints': 'sensor_msgs/msg/JointState',
            'topic.diagnostics': DIAGNOSTICS,
            'topic.any': 'my_msgs/msg/Any',
            'sensor.line': 'std_msgs/msg/UInt8MultiArray',
        },
        **{
            'topic.any.topic': '/any',
            'topic.any.fields': ['a', 'b.0'],
            'topic.any.rate_hz': 5,
            'sensor.line.kind': 'binary_array',
            'sensor.line.topic': '/line',
            'sensor.line.element_count': 2,
        },
    )
    rig.robot(0)
    rig.recorder.start_session()
    values = (0.0, 1.0, math.nan, math.inf, -1e300, None, 'x', b'\x02', b'', [], 10**400)

    def any_value():
        return chance.choice(values)

    def any_list():
        return [any_value() for _ in range(chance.randrange(4))]

    for _ in range(400):
        source = chance.choice(list(rig.inputs))
        message = Of(
            data=chance.choice((any_value, any_list))(),
            a=any_value(),
            b=any_list(),
            name=any_list(),
            position=any_list(),
            velocity=any_list(),
            effort=any_list(),
            status=[status(any_value(), any_value(), any_value(), any_value())],
            status_list=[goal(rig, chance.randrange(5), chance.randrange(8), chance.randrange(9))],
        )
        if chance.random() < 0.1:
            message = any_value()
        rig.send(source, message)
        rig.recorder.annotation('', chance.choice(('k', 'k\0')), 'v')
        rig.recorder.event(chance.choice(('e', '', 'c3d.x')), '')
        rig.run(0.02, step=0.02)
    found = ended(rig)
    assert set(found) == {*rig.inputs, 'events', 'annotations'}
    for body in rig.bodies('sensors'):
        for series in body['data']:
            assert all(math.isfinite(value) for _, value in series['data'])


def test_what_is_no_account_does_not_add_up():
    assert adds_up(
        '5 received = 3 stored + 2 dropped (1 no_value, 1 queue_full); left out of these: 9 x'
    )
    assert not adds_up('5 received = 3 stored + 1 gated')
    assert not adds_up('5 received = 3 stored + 2 unaccounted')
    assert not adds_up('5 = 3 stored + 2 gated')
    assert not adds_up('')
