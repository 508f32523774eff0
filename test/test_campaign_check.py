"""The checker of the kill campaign: a store that is as it should be has nothing, and each fault is found."""

import json
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip('cv2')
pytest.importorskip('capnp')

from campaign_check import Comparison, Outcome, Round
from campaign_traffic import RAYS, SPEED_M_S, picture_bytes
from recording_rig import WALL, S
from sensor_rig import SensorRig, jpeg, scan

from cognitive3d_ros.counters import Drop, Fate
from cognitive3d_ros.recording.inputs import Publication
from cognitive3d_ros.recording.registry import inputs_of
from cognitive3d_ros.wire.capnp_codec import decode_camera, encode_camera
from cognitive3d_ros.wire.framing import frame, parse, part_name

PARAMS = {
    'sample_rate_hz': 20.0,
    'pose_convention': 'rep103',
    'topics': ['count'],
    'topic.count.topic': '/count',
    'topic.count.rate_hz': 0.0,
    'cameras': ['front'],
    'camera.front.topic': '/image/compressed',
    'camera.front.rate_hz': 0.0,
    'lidars': ['top'],
    'lidar.top.topic': '/scan',
    'lidar.top.rate_hz': 0.0,
}
RATES_HZ = {'tf': 50.0, 'event': 20.0, 'sample': 50.0, 'picture': 15.0, 'scan': 2.0}
STEP_NS = S // 100
LIFE_S = 6.9  # from the start of the session to the kill
SESSION = '1767225600_rover-07'


class Number:
    """A std_msgs/Float64."""

    def __init__(self, data):
        self.data = data


class Robot:
    """A robot and a recorder, in the test's hands, with the logs that the campaign's processes write."""

    def __init__(self, root):
        self.rig = SensorRig(root, **PARAMS)
        (self.count,) = (
            one
            for one in inputs_of(
                self.rig.config,
                self.rig.recorder,
                self.rig.ledger,
                self.rig.recorder._complaints,
                node='cognitive3d',
            )
            if one.source == 'topic.count'
        )
        assert self.count.found(Publication('/count', 'std_msgs/msg/Float64', '/robot')) is None
        self.published, self.door = [], []
        self.sent = dict.fromkeys(RATES_HZ, 0)
        self.due = False
        self.rig.spool.on_part_due = self.part_is_due

    def part_is_due(self):
        self.due = True

    @property
    def now_ns(self):
        return self.rig.clocks.wall_ns

    def send(self, kind):
        number, now_ns = self.sent[kind], self.now_ns
        self.sent[kind] += 1
        self.published.append(f'{kind} {number} {now_ns}')
        self.door.append(f'{kind} {now_ns if kind == "tf" else number} {now_ns}')
        if kind == 'tf':
            self.rig.robot((now_ns - WALL) / S * SPEED_M_S)
        elif kind == 'event':
            self.rig.recorder.event('tick', {'number': number}, now_ns)
        elif kind == 'sample':
            arrival = self.count.due()
            if arrival is not None:
                self.count.take(Number(float(number)), arrival)
        elif kind == 'picture':
            self.rig.send('camera.front', jpeg('base_link', now_ns, picture_bytes(number)))
        else:
            self.rig.send('lidar.top', scan([number] * RAYS, 'base_link', now_ns))

    def flush(self):
        self.due = False
        self.flushed_ns = self.now_ns
        self.rig.recorder.flush()
        self.door.append(f'flush {self.now_ns} {self.now_ns}')

    def live(self):
        self.door.append(f'tf 0 {self.now_ns}')
        for step in range(round((LIFE_S + 0.1) * S) // STEP_NS):
            if step == 10:
                assert self.rig.recorder.start_session() == SESSION
            for kind, rate_hz in RATES_HZ.items():
                if step * STEP_NS >= self.sent[kind] * S / rate_hz:
                    self.send(kind)
            self.rig.settle()
            self.rig.recorder.poll()
            if step % 5 == 0:
                self.door.append(f'beat {step // 5} {self.now_ns}')
            if self.due or step % 100 == 10:
                self.flush()
            self.rig.clocks.advance(STEP_NS)

    def die(self):
        """End as a process that is killed does."""
        self.rig.spool.close()
        self.rig.recorder._workers.close()
        reasons = [(fate, Fate.POSE_FAILURES) for fate in ('camera.front', 'lidar.top')]
        for source, fate in reasons:
            assert self.rig.ledger.value((fate, source)) == 0
        for source in ('camera.front', 'lidar.top'):
            # What came before the session had a frame was counted.
            if n := self.rig.ledger.value((Drop.NO_REFERENCE_FRAME, source)):
                self.door.append(f'count:{source}:{Drop.NO_REFERENCE_FRAME.value} {n} {WALL}')


class Campaign:
    """The files of a campaign of one round, to be spoilt; its node was killed, and had flushed last, then."""

    def __init__(self, folder, kill_ns, flushed_ns):
        self.folder, self.kill_ns, self.flushed_ns = folder, kill_ns, flushed_ns
        self.store, self.session = folder / 'store', folder / 'store' / 'sessions' / SESSION
        self.offered = {}

    def parts(self, stream):
        paths = sorted(self.session.glob(f'{stream}.*'))
        return [(path, parse(path.read_bytes())) for path in paths]

    def write(self, path, part, body, **changes):
        path.unlink(missing_ok=True)
        header = replace(part.header, **changes)
        path = path.with_name(part_name(header.stream, header.number, header.klass))
        path.write_bytes(b''.join(frame(header, body)))

    def edit(self, stream, change):
        """Let ``change`` edit the records of each part of a stream; it is to change at least one."""
        changed = 0
        for path, part in self.parts(stream):
            body = json.loads(part.body)
            change(body.setdefault('data', []))
            edited = json.dumps(body).encode()
            changed += json.loads(part.body) != body
            self.write(path, part, edited)
        assert changed, f'nothing was changed in {stream}'

    def edit_frames(self, change):
        (path, part), *_ = self.parts('camera')
        frames = change(list(decode_camera(part.body).frames))
        self.write(path, part, encode_camera(part.header.identity, part.header.number, frames))

    def door(self, change):
        path = self.folder / 'door.txt'
        lines = change(path.read_text().splitlines())
        path.unlink()
        path.write_text('\n'.join(lines) + '\n')

    def check(self, rounds=1):
        one = Round(WALL - S, self.kill_ns, SESSION, 0.0, self.folder / 'door.txt')
        outcome = Outcome(1, [one] * rounds)
        log = self.folder / 'published.txt'
        Comparison(self.store, log, outcome, 0.25, self.offered).run()
        return outcome


@pytest.fixture(scope='module')
def good(tmp_path_factory):
    """A campaign as it should be: recorded, killed, recovered."""
    folder: Path = tmp_path_factory.mktemp('campaign')
    robot = Robot(folder / 'spool')
    robot.live()
    robot.die()
    kill_ns = robot.now_ns
    again = SensorRig(folder / 'spool', **PARAMS)
    assert again.recorder.recover() == [SESSION]
    again.close()
    (folder / 'store').mkdir()
    shutil.move(folder / 'spool' / 'sessions', folder / 'store' / 'sessions')
    (folder / 'published.txt').write_text('\n'.join(robot.published) + '\n')
    (folder / 'door.txt').write_text('\n'.join(robot.door) + '\n')
    return Campaign(folder, kill_ns, robot.flushed_ns)


@pytest.fixture
def campaign(good, tmp_path):
    folder = tmp_path / 'campaign'
    shutil.copytree(good.folder, folder, copy_function=os.link)  # what is edited is written anew
    return Campaign(folder, good.kill_ns, good.flushed_ns)


def test_what_is_as_it_should_be_has_no_problem(good):
    outcome = good.check()
    assert outcome.problems == []
    assert all(outcome.records.values())
    since_flush_s = (good.kill_ns - good.flushed_ns) / S
    assert outcome.losses['sample'][0].lost_s == pytest.approx(since_flush_s, abs=0.05)
    assert outcome.losses['picture'][0].lost_s > 0
    assert 'nothing is missing' in str(outcome)


def first(change):
    """Return an edit of the first part that has enough records."""
    done = []

    def edit(records):
        if len(records) > 45 and not done:
            done.append(change(records))

    return edit


def remove_event(campaign):
    campaign.edit('events', first(lambda records: records.pop(30)))


def double_event(campaign):
    campaign.edit('events', first(lambda records: records.insert(31, records[30])))


def swap_events(campaign):
    campaign.edit('events', first(lambda records: records.insert(31, records.pop(30))))


def invent_event(campaign):
    campaign.edit('events', first(lambda records: records[30]['properties'].update(number=99999)))


def lose_the_end_of_events(campaign):
    lose_events(campaign, WALL / S + LIFE_S - 2.5)


def lose_what_was_flushed(campaign):
    lose_events(campaign, campaign.flushed_ns / S - 0.4)


def lose_events(campaign, since_s):
    def late(record):
        return record['name'] == 'tick' and record['time'] > since_s

    def change(records):
        records[:] = [record for record in records if not late(record)]

    campaign.edit('events', change)


def end(change):
    def spoil(campaign):
        def edit(records):
            if records[-1]['name'] == 'c3d.sessionEnd':
                change(records)

        campaign.edit('events', edit)

    return spoil


def series(change, name='count'):
    """Return an edit of the first long run of a series."""
    done = []

    def edit(records):
        for each in records:
            if each['name'] == name and (name != 'count' or len(each['data']) > 100) and not done:
                done.append(change(each['data']))

    return lambda campaign: campaign.edit('sensors', edit)


def remove_sample(campaign):
    series(lambda run: run.pop(60))(campaign)


def double_sample(campaign):
    series(lambda run: run.insert(60, run[60]))(campaign)


def lose_the_end_of_samples(campaign):
    def change(records):
        for each in records:
            if each['name'] == 'count':
                each['data'] = [one for one in each['data'] if one[0] < WALL / S + LIFE_S - 2]

    campaign.edit('sensors', change)


def health(name, value):
    return series(lambda run: run[-1].__setitem__(1, value), name)


def remove_pose(campaign):
    campaign.edit('gaze', first(lambda records: records.pop(40)))


def remove_the_first_poses(campaign):
    campaign.edit('gaze', first(lambda records: records.__delitem__(slice(20))))


def move_pose(campaign):
    def change(records):
        records[40]['p'][0] += 0.1

    campaign.edit('gaze', first(change))


def remove_picture(campaign):
    def change(frames):
        del frames[5]
        return [
            replace(one, seq=one.seq - (at >= 5)) if at >= 5 else one
            for at, one in enumerate(frames)
        ]

    campaign.edit_frames(change)
    # Those of the parts behind are numbered on, as if it had never been.
    for path, part in campaign.parts('camera')[1:]:
        frames = [replace(one, seq=one.seq - 1) for one in decode_camera(part.body).frames]
        body = encode_camera(part.header.identity, part.header.number, frames)
        campaign.write(path, part, body)


def lose_a_picture_on_the_way(campaign):
    remove_picture(campaign)
    (missing,) = re.findall(r'picture: \[(\d+)\] missing', campaign.check().problems[0])
    campaign.door(lambda lines: [e for e in lines if not e.startswith(f'picture {missing} ')])


def remove_picture_by_its_seq(campaign):
    campaign.edit_frames(lambda frames: frames[:5] + frames[6:])


def double_picture(campaign):
    campaign.edit_frames(lambda frames: frames[:5] + frames[4:])


def remove_part(campaign):
    campaign.parts('camera')[1][0].unlink()


def double_part(campaign):
    path, part = campaign.parts('gaze')[-1]
    (path.with_name(part_name('gaze', 1, part.header.klass))).write_bytes(path.read_bytes())


def remove_the_last_parts(campaign):
    for path, _ in campaign.parts('camera')[-2:]:
        path.unlink()


def remove_session(campaign):
    shutil.move(campaign.session, campaign.session.with_name('1767225601_rover-07'))


def acknowledge_nothing(campaign):
    campaign.offered = {f'{SESSION}/events/7': '00'}


def send_in_vain(campaign):
    campaign.offered = {f'{SESSION}/camera/99': ''}


def acknowledge_another(campaign):
    campaign.offered = {f'{SESSION}/events/1': '00'}


def set_aside(campaign):
    (campaign.store / 'quarantine').mkdir()
    (campaign.store / 'quarantine' / 'part').touch()


def leave_half_a_part(campaign):
    (campaign.session / f'{part_name("events", 9, "events")}.tmp').touch()


@pytest.mark.parametrize(
    ('spoil', 'found'),
    [
        (remove_event, r'event: \[\d+\] missing between others'),
        (double_event, r'event: stored twice: \[\d+\]'),
        (swap_events, 'event: not in order'),
        (invent_event, r'event: \[99999\] never came in'),
        (lose_the_end_of_events, r'event: the last 2\.\d+ s before the kill are missing'),
        (lose_what_was_flushed, r'event: \d+ came in up to 0\.\d+ s before a flush that returned'),
        (end(lambda records: records.pop()), 'its events are'),
        (end(lambda records: records[-1]['properties'].update(Reason='shutdown')), 'its end says'),
        (remove_sample, r'sample: \[\d+\] missing between others'),
        (double_sample, r'sample: stored twice: \[\d+\]'),
        (lose_the_end_of_samples, r'sample: the last \d\.\d+ s before the kill are missing'),
        (
            health('c3d.camera.front.pose_failures', 3),
            r'pose_failures is 3 at .*, at the door it was 0',
        ),
        (health('c3d.camera.front.received', 3), r'received is 3 at .*, at the door it was \d\d'),
        (health('c3d.messages_lost', 5), 'c3d verify: loss: c3d.messages_lost reached 5'),
        (health('c3d.parts_evicted', 1), 'c3d verify: loss: c3d.parts_evicted reached 1'),
        (health('c3d.dropped_events', 1), 'c3d verify: loss: c3d.dropped_events reached 1'),
        (remove_pose, r'pose: ticks \[\d+\] missing between others'),
        (remove_the_first_poses, r'pose: ticks \[.*19\] missing before the first'),
        (move_pose, r'a pose that was never: .* 0\.100 m off'),
        (remove_picture, r'picture: \[\d+\] missing between others; counted: '),
        (lose_a_picture_on_the_way, '1 messages never came in between others, 0 were counted'),
        (remove_picture_by_its_seq, r'seq \['),
        (double_picture, r'picture: stored twice: \[\d+\]'),
        (remove_part, r'camera: parts \[1, 3'),
        (double_part, r'gaze: parts \[1, 1'),
        (remove_the_last_parts, r'picture: \d+\.\d+ MB of \d\.\d+ s before the kill are missing'),
        (remove_session, 'was started, and is not in the store'),
        (acknowledge_nothing, 'events/7 was acknowledged, and is not there'),
        (send_in_vain, 'camera/99 was sent, and is not there'),
        (acknowledge_another, 'events/1 was acknowledged, and is another'),
        (leave_half_a_part, 'half written is still there'),
        (set_aside, 'found damaged parts in its store'),
    ],
    ids=lambda value: getattr(value, '__name__', ''),
)
def test_each_fault_is_found(campaign, spoil, found):
    spoil(campaign)
    problems = campaign.check().problems
    assert any(re.search(found, each) for each in problems), problems


def stand_still(campaign, from_s):
    """Let there be neither beats nor flushes from a time before the kill on."""
    since_ns = campaign.kill_ns - round(from_s * S)

    def change(lines):
        late = [int(line.split()[2]) >= since_ns for line in lines]
        return [
            line
            for line, is_late in zip(lines, late, strict=True)
            if not (is_late and line.startswith(('beat', 'flush')))
        ]

    campaign.door(change)


def test_a_loss_is_excused_by_a_standstill_alone_and_is_told(campaign):
    lose_the_end_of_samples(campaign)
    stand_still(campaign, 1.6)
    outcome = campaign.check()
    assert outcome.problems == []
    assert re.search(
        r'beyond the window: \S+: sample 2\.\d+ s, of which .* 1\.\d+ s', str(outcome)
    )


def test_a_picture_that_was_counted_as_dropped_may_be_missing(campaign):
    remove_picture(campaign)
    counted = f'count:camera.front:{Drop.QUEUE_FULL.value} 1 {campaign.kill_ns - S}'
    campaign.door(lambda lines: [*lines, counted])
    outcome = campaign.check()
    assert outcome.problems == []
    assert outcome.refused['camera.front queue_full'] == 1


def test_a_picture_that_tf_could_place_is_not_missing_for_want_of_a_pose(campaign):
    remove_picture(campaign)
    counted = f'count:camera.front:{Fate.POSE_FAILURES.value} 1 {campaign.kill_ns - S}'
    campaign.door(lambda lines: [*[e for e in lines if 'no_reference' not in e], counted])
    assert 'though tf was there' in campaign.check().problems[0]


def test_a_campaign_without_tf_shows_nothing(campaign):
    campaign.door(lambda lines: [line for line in lines if not line.startswith('tf')])
    assert 'tf never came in in 1 sessions' in campaign.check(rounds=20).problems


def test_ticks_before_the_first_of_tf_are_not_lost_at_the_kill(campaign):
    campaign.edit('gaze', lambda records: records.clear())

    def late(lines):
        return [
            line
            for line in lines
            if not line.startswith('tf 1') or int(line.split()[2]) > campaign.flushed_ns
        ]

    campaign.door(late)
    outcome = campaign.check()
    assert outcome.problems == []
    assert outcome.losses['pose'][0].lost_s < (campaign.kill_ns - campaign.flushed_ns) / S - 0.2
