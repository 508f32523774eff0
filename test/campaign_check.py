"""What the kill campaign found: the gateway's store against logs of what was published and what came in.

Losses are measured from what reached the node's door. What the robot published and DDS did not bring is no
loss of the recorder: no recorder can store what it never had. Nothing is hidden by this: how much never came in
between others is told, of each kind, and the recorder must have counted it in c3d.messages_lost.

Two bounds are held to what was recorded, and is not there after the kill:

- what was recorded before the begin of a flush that returned is there, however busy the machine was;
- the rest is no older than the stated window. From what a session lost only the time is taken away in which
  nothing in its process could run, as its own beats tell: neither could the flush. Both are shown.

What is missing between others must have been counted, by its reason; what the recorder counts in its health
series must be what was seen at the door. Of what c3d verify finds only that is passed over which these logs
account for, to the number.
"""

from __future__ import annotations

import hashlib
import re
import statistics
from dataclasses import dataclass, field
from pathlib import Path

from campaign_door import STALE_S, TF_WAIT_S, Door, S, Tf
from campaign_traffic import PICTURE, RATES_HZ, RAYS, SPEED_M_S, picture_number
from recording_rig import Stored

from cognitive3d_ros.counters import Count, Drop, Fate
from cognitive3d_ros.session.session import open_session
from cognitive3d_ros.session.verify import Finding, Kind, verify
from cognitive3d_ros.wire.framing import parse, parse_part_name

POSE_HZ = 20.0
FLUSH_S = 1.0
WINDOW_S = {'event': FLUSH_S + TF_WAIT_S, 'pose': FLUSH_S + TF_WAIT_S, 'sample': FLUSH_S}
OPEN_PART_BYTES = 4 << 20
OPEN_PART_S = 5.0
ENTRY_BYTES = {'picture': len(PICTURE), 'scan': 4 * RAYS}
SOURCES = {'picture': 'camera.front', 'scan': 'lidar.top'}
TOGETHER_S = 0.005  # the wall and the monotonic clock are read one after the other
MARGIN_NS = S // 4  # from a note at the door to the record, or to the count, on a busy machine
ENOUGH = 20  # rounds, for a campaign to show something
HELD_S = 0.1  # what holds a canary up for longer holds a node up
LOSSES = {drop.value for drop in Drop if drop.is_loss}
UNSTORED = {fate.value for fate in (Fate.DECIMATED, Fate.DECODE_FAILURES, Fate.POSE_FAILURES)}
# Counts that the node notes one by one; the others have no bearing on what is missing.
SEEN = {
    count.value
    for count in (
        Count.POSE_FAILURES,
        Count.STALE_POSES,
        Count.MESSAGES_LOST,
        Count.PARTS_EVICTED,
        Count.PARTS_QUARANTINED,
    )
}


@dataclass(frozen=True)
class Round:
    """One life of a node: when it was begun and killed (wall time), and the session it said it started.

    ``held_s`` is how long something else on this machine was held up meanwhile, shortly before the kill;
    ``door`` the log of what came in.
    """

    begin_ns: int
    kill_ns: int
    session_id: str | None
    held_s: float
    door: Path


@dataclass(frozen=True)
class Loss:
    """What one kill cost of one kind: the time before it, and for how much of that the node stood still."""

    session_id: str
    lost_s: float
    stood_s: float

    @property
    def net_s(self) -> float:
        return max(0.0, self.lost_s - self.stood_s)


@dataclass
class Outcome:
    """What a campaign found. ``losses`` and ``lost_bytes`` have a value for each session killed."""

    seed: int
    rounds: list[Round] = field(default_factory=list)
    sessions: int = 0
    problems: list[str] = field(default_factory=list)
    records: dict[str, int] = field(default_factory=dict)
    losses: dict[str, list[Loss]] = field(default_factory=dict)
    lost_bytes: dict[str, list[int]] = field(default_factory=dict)
    never_came: dict[str, int] = field(
        default_factory=dict
    )  # published between others that came in
    refused: dict[str, int] = field(default_factory=dict)  # by source and reason, as counted
    silent: int = 0  # sessions in which tf never came in
    poses_off: int = 0  # not at their tick, to a millimetre: tf came too late
    stood_s: list[float] = field(default_factory=list)  # the longest standstill of each session
    flushes_s: list[float] = field(default_factory=list)
    half_written: set[Path] = field(
        default_factory=set
    )  # files of parts that a kill cut off, set aside
    acknowledged: int = 0
    gateway_kills: int = 0
    gateway_hit: int = 0  # of them, while it had a part in hand
    took_s: float = 0.0

    def __str__(self) -> str:
        return '\n'.join(
            [
                *self._conditions(),
                *self._table(),
                *self._accounts(),
                *(
                    self.problems
                    or ['nothing is missing, nothing is doubled, no part number has a gap']
                ),
            ]
        )

    def _conditions(self) -> list[str]:
        idle = sum(one.session_id is None for one in self.rounds)
        done = f'{len(self.rounds)} kills in {self.took_s:.0f} s, {idle} of them before a session began'
        held_s = [one.held_s for one in self.rounds] or [0.0]
        busy = sum(each > HELD_S for each in held_s)
        flushes_s = self.flushes_s or [0.0]
        return [
            f'seed {self.seed}: {done}; {self.sessions} sessions in the store',
            (
                f'the gateway was killed {self.gateway_kills} times, {self.gateway_hit} of them with a part in '
                f'hand; {self.acknowledged} parts that it had acknowledged are in the store'
            ),
            (
                f'others held the machine up for {statistics.median(held_s):.3f} s at the median, '
                f'{max(held_s):.3f} s at worst; for over {HELD_S} s before {busy} kills'
            ),
            (
                f'{len(flushes_s)} flushes took {statistics.median(flushes_s):.3f} s at the median, '
                f'{max(flushes_s):.3f} s at worst; nodes stood still for '
                f'{max(self.stood_s, default=0.0):.3f} s at worst, '
                f'{sum(each > 0 for each in self.stood_s)} of {len(self.stood_s)} at all'
            ),
        ]

    def _table(self) -> list[str]:
        lines = [
            'kind       stored  lost at a kill: median     worst  net worst    window  beyond  net beyond'
        ]
        beyond: list[str] = []
        for kind, losses in self.losses.items():
            window_s = WINDOW_S.get(kind, OPEN_PART_S)
            raw_s = [loss.lost_s for loss in losses] or [0.0]
            net_s = [loss.net_s for loss in losses] or [0.0]
            over = [loss for loss in losses if loss.lost_s > window_s]
            lines.append(
                f'{kind:<9} {self.records[kind]:>7}  {statistics.median(raw_s):>20.3f} s '
                f'{max(raw_s):>7.3f} s  {max(net_s):>7.3f} s {window_s:>7.1f} s  {len(over):>6}  '
                f'{sum(loss.net_s > window_s for loss in losses):>10}'
            )
            beyond += [
                f'beyond the window: {loss.session_id}: {kind} {loss.lost_s:.3f} s, of which the node '
                f'stood still for {loss.stood_s:.3f} s'
                for loss in over
            ]
        for kind, sizes in self.lost_bytes.items():
            median, worst = statistics.median(sizes or [0]) / 1e6, max(sizes, default=0) / 1e6
            lines.append(
                f'{kind}: {median:.2f} MB lost at a kill at the median, {worst:.2f} MB at worst, '
                f'of an open part of {OPEN_PART_BYTES / 1e6:.1f} MB'
            )
        return lines + beyond

    def _accounts(self) -> list[str]:
        def listed(counts: dict[str, int]) -> str:
            return ', '.join(f'{n} {name}' for name, n in sorted(counts.items())) or 'none'

        return [
            f'published between others, and never came in: {listed(self.never_came)}',
            f'came in between others, counted as not stored: {listed(self.refused)}',
            f'tf never came in in {self.silent} of {self.sessions} sessions',
            f'{len(self.half_written) // 2} parts were cut off while they were written',
            f'{self.poses_off} poses are not those of their tick to a millimetre',
        ]


class Comparison:
    """Holds the store against the logs.

    ``slack_s`` is what a loss may be beyond the window; ``offered`` has the SHA-256 of each part that the
    gateway said it had, by its key, empty of one that was sent and not acknowledged; ``numbered`` says
    whether the middleware tells the numbers of messages.
    """

    def __init__(
        self,
        store: Path,
        log: Path,
        outcome: Outcome,
        slack_s: float,
        offered: dict[str, str] | None = None,
        *,
        numbered: bool = True,
    ) -> None:
        self.numbered = numbered
        self._store, self._stored = store, Stored(store)
        self._published = Door.read(log).came
        self._begin_ns = self._published['tf'][0]
        self._outcome, self._slack_s = outcome, slack_s
        self._offered = offered or {}
        self._seen: dict[str, set[int]] = {kind: set() for kind in RATES_HZ}

    def run(self) -> None:
        ids = sorted(path.name for path in (self._store / 'sessions').iterdir())
        outcome = self._outcome
        outcome.sessions = len(ids)
        outcome.records = dict.fromkeys((*WINDOW_S, *ENTRY_BYTES), 0)
        outcome.losses = {kind: [] for kind in outcome.records}
        outcome.lost_bytes = {kind: [] for kind in ENTRY_BYTES}
        self._acknowledgements()
        if aside := [path.name for path in self._store.glob('quarantine/*')]:
            outcome.problems.append(f'the gateway found damaged parts in its store: {aside}')
        if torn := [path.name for path in self._store.glob('sessions/*/*.tmp')]:
            # Such a part was not acknowledged, so it has come again since.
            outcome.problems.append(
                f'what a gateway that died had half written is still there: {torn}'
            )
        started = {one.session_id for one in outcome.rounds} - {None}
        for session_id in sorted(started - set(ids)):
            outcome.problems.append(f'{session_id} was started, and is not in the store')
        taken: dict[Path, str] = {}
        for session_id in ids:
            one = self._round(session_id)
            if one is None:
                outcome.problems.append(f'{session_id} is of no node')
            elif other := taken.get(one.door):
                outcome.problems.append(f'{session_id} is of the node that recorded {other}')
            else:
                taken[one.door] = session_id
                _Session(self, session_id, one).check()
        self._worth()

    def _worth(self) -> None:
        """Check that a campaign of some length shows something: robots whose messages do not arrive do not."""
        outcome = self._outcome
        if len(outcome.rounds) < ENOUGH:
            return
        for kind in (kind for kind, n in outcome.records.items() if n < outcome.sessions):
            outcome.problems.append(f'{outcome.records[kind]} of {kind} stored: nothing is shown')
        if outcome.silent > outcome.sessions / 4:
            outcome.problems.append(f'tf never came in in {outcome.silent} sessions')

    def _acknowledgements(self) -> None:
        """Check that what was sent is there; what was acknowledged, so that it is deleted, to the byte."""
        there: dict[str, str] = {}
        for path in self._store.glob('sessions/*/*'):
            if name := parse_part_name(path.name):
                body = parse(path.read_bytes()).body
                key = f'{path.parent.name}/{name.stream}/{name.number}'
                there[key] = hashlib.sha256(body).hexdigest()
        for key, digest in self._offered.items():
            if key not in there:
                said = 'was acknowledged' if digest else 'was sent'
                self._outcome.problems.append(f'{key} {said}, and is not there')
            elif digest and there[key] != digest:
                self._outcome.problems.append(f'{key} was acknowledged, and is another')
        self._outcome.acknowledged = sum(map(bool, self._offered.values()))

    def _round(self, session_id: str) -> Round | None:
        """Return the round of a session: one may be killed before it can say what it has started."""
        rounds = self._outcome.rounds
        second_ns = int(session_id.partition('_')[0]) * S
        unsaid = (one for one in rounds if one.session_id is None)
        within = (one for one in unsaid if one.begin_ns - S < second_ns < one.kill_ns)
        said = (one for one in rounds if one.session_id == session_id)
        return next(said, None) or next(within, None)


class _Session:
    """One session of a comparison."""

    def __init__(self, comparison: Comparison, session_id: str, one: Round) -> None:
        self._all = comparison
        self._outcome, self._published = comparison._outcome, comparison._published
        self._id, self._round = session_id, one
        self._door = Door.read(one.door)
        self._tf = Tf(self._door.came['tf'])
        self._slack_s = comparison._slack_s
        self._start_ns = 0
        self._holes = 0  # ticks without a pose
        self._on_the_way = 0  # lost there

    def _problem(self, text: str) -> None:
        stood_s = self._door.stood_s(self._start_ns, self._round.kill_ns)
        state = f'others were held up for {self._round.held_s:.3f} s, it stood still for {stood_s:.3f} s'
        self._outcome.problems.append(f'{self._id}: {text} ({state})')

    def check(self) -> None:
        numbers: dict[str, list[int]] = {}
        bodies: dict[str, list] = {}
        for stream, _, number, body in self._all._stored.parts(self._id):
            numbers.setdefault(stream, []).append(number)
            bodies.setdefault(stream, []).append(body)
        for stream, run in numbers.items():
            if run != list(range(1, len(run) + 1)):
                self._problem(f'{stream}: parts {run}')

        def records(stream):
            return [record for body in bodies.get(stream, []) for record in body['data']]

        events, poses, series = records('events'), records('gaze'), records('sensors')
        samples = [v for each in series if each['name'] == 'count' for _, v in each['data']]
        frames = [frame for body in bodies.get('camera', []) for frame in body.frames]
        scans = [scan for body in bodies.get('lidar', []) for scan in body.scans]
        times = [record['time'] for record in events[:-1] + poses]
        times += [time_s for each in series for time_s, _ in each['data']]
        times += [record.time_ms / 1000 for record in frames + scans]
        if not self._ends(events, max(times, default=0.0)):
            return
        self._conditions()
        self._never_came()
        ticks = [event['properties']['number'] for event in events if event['name'] == 'tick']
        self._numbered('event', ticks)
        self._numbered('sample', [round(value) for value in samples])
        self._poses(poses)
        self._sensor('picture', [picture_number(frame.data) for frame in frames])
        self._sensor('scan', [round(scan.scan.ranges[0]) for scan in scans])
        for run in (frames, scans):
            if [record.seq for record in run] != list(range(len(run))):
                self._problem(f'seq {[record.seq for record in run]}')
        for each in series:
            if each['name'].startswith('c3d.'):
                self._health(each['name'], each['data'])
        for finding in verify(open_session(self._all._store, self._id)):
            if finding.kind is not Kind.NOTE and not self._explained(finding):
                self._problem(f'c3d verify: {finding.kind.value}: {finding.text}')

    def _conditions(self) -> None:
        begin_ns, end_ns = self._start_ns, self._round.kill_ns
        runs = self._door.standstills(begin_ns, end_ns)
        self._outcome.silent += not self._door.came['tf']
        self._outcome.stood_s.append(max((later - at for at, later in runs), default=0) / S)
        self._outcome.flushes_s += [
            (end - begin) / S for begin, end in self._door.flushes if begin > begin_ns
        ]

    def _never_came(self) -> None:
        """Check that what did not come in between others was counted: publishers number their messages."""
        for kind in (*SOURCES, 'event', 'sample'):
            came = self._door.came[kind]
            if came and (never := max(came) + 1 - min(came) - len(came)):
                self._on_the_way += never
                self._outcome.never_came[kind] = self._outcome.never_came.get(kind, 0) + never
        counted = self._counted(Count.MESSAGES_LOST.value, 0, self._round.kill_ns) or 0
        if self._all.numbered and self._on_the_way > counted:
            text = (
                f'{self._on_the_way} messages never came in between others, {counted} were counted'
            )
            self._problem(text)

    def _ends(self, events: list[dict], latest_s: float) -> bool:
        """Check the first and the last event."""
        names = [event['name'] for event in events]
        if names[:1] != ['c3d.sessionStart'] or names[-1:] != ['c3d.sessionEnd']:
            self._problem(f'its events are {names[:2]} … {names[-2:]}')
            return False
        if names.count('c3d.sessionStart') + names.count('c3d.sessionEnd') != 2:
            self._problem('it starts or ends twice')
        start_s, end = float(events[0]['time']), events[-1]
        self._start_ns = round(start_s * S)
        said = end['properties']
        if said.get('Reason') != 'abnormalEnd' or said.get('c3d.recovered') is not True:
            self._problem(f'its end says {said}')
        # Properties that have become known are records too, and do not tell their time.
        latest_s = max(latest_s, start_s)
        if not latest_s - 1e-3 < end['time'] < self._round.kill_ns / S:
            self._problem(f'it ends at {end["time"]}, its latest record is of {latest_s}')
        return True

    # What is there, and what is not

    def _once(self, kind: str, numbers: list[int]) -> None:
        seen = self._all._seen[kind]
        if len(set(numbers)) != len(numbers) or seen & set(numbers):
            twice = {number for number in numbers if numbers.count(number) > 1}
            self._problem(f'{kind}: stored twice: {sorted(twice | seen & set(numbers))}')
        if numbers != sorted(numbers):
            self._problem(f'{kind}: not in order')
        if unknown := [number for number in numbers if number not in self._door.came[kind]]:
            self._problem(f'{kind}: {unknown} never came in')
        seen |= set(numbers)
        self._outcome.records[kind] += len(numbers)

    def _missing(self, kind: str, numbers: list[int]) -> tuple[list[int], list[int]]:
        """Return what came in in the session and is not stored: between others, and behind the last."""
        stored = set(numbers)
        last = numbers[-1] if numbers else -1
        # When it comes in in the moment of the start it may be before it.
        begin_ns, end_ns = self._start_ns + S // 10, self._round.kill_ns
        door = self._door.came[kind]
        came = [n for n, at in door.items() if begin_ns < at < end_ns]
        between = [n for n in came if n < last and n not in stored]
        return between, [n for n in came if n > last]

    def _numbered(self, kind: str, numbers: list[int]) -> None:
        self._once(kind, numbers)
        between, behind = self._missing(kind, numbers)
        if between:
            self._problem(f'{kind}: {between} missing between others')
        came = self._door.came[kind]
        recorded_ns = came
        if kind == 'event':  # it waits for tf
            recorded_ns = {
                n: self._tf.reached_ns(self._published[kind][n], came[n]) for n in behind
            }
        self._lost(kind, [(came[n], recorded_ns[n]) for n in behind])

    def _lost(self, kind: str, lost: list[tuple[int, int]]) -> None:
        """Judge what is lost at the kill; each with its time, and the time at which it was recorded."""
        kill_ns = self._round.kill_ns
        since_ns = min((at_ns for at_ns, _ in lost), default=kill_ns)
        loss = Loss(self._id, (kill_ns - since_ns) / S, self._door.stood_s(since_ns, kill_ns))
        self._outcome.losses[kind].append(loss)
        if loss.net_s > WINDOW_S[kind] + self._slack_s:
            self._problem(f'{kind}: the last {loss.lost_s:.3f} s before the kill are missing')
        durable_ns = self._door.durable_ns()
        broken = [at for at, recorded_ns in lost if self._by_now(recorded_ns) < durable_ns]
        if broken:
            late_s = (durable_ns - min(broken)) / S
            text = f'{len(broken)} came in up to {late_s:.3f} s before a flush that returned'
            self._problem(f'{kind}: {text}, and are missing')

    def _by_now(self, at_ns: int) -> int:
        """Return when something that was to happen has happened for sure, whoever else wanted to run."""
        runs = self._door.standstills(at_ns - MARGIN_NS, self._round.kill_ns)
        ends_ns = [later for begin, later in runs if begin <= at_ns + MARGIN_NS]
        return max([at_ns, *ends_ns]) + MARGIN_NS

    # Poses

    def _poses(self, poses: list[dict]) -> None:
        start_s = self._start_ns / S
        ticks = [round((pose['time'] - start_s) * POSE_HZ) for pose in poses]
        self._outcome.records['pose'] += len(ticks)
        begin_s = self._all._begin_ns / S
        for tick, pose in zip(ticks, poses, strict=True):
            if abs(pose['time'] - start_s - tick / POSE_HZ) > TOGETHER_S:
                self._problem(f'a pose at no tick: {pose["time"]}')
            off = abs(pose['p'][0] - (pose['time'] - begin_s) * SPEED_M_S)
            self._outcome.poses_off += off > 1e-3
            tick_ns = self._tick_ns(tick)
            late_s = STALE_S + TF_WAIT_S
            if self._tf.covered(tick_ns):
                late_s = 2 * TOGETHER_S  # tf was there in time
            if off > SPEED_M_S * late_s:
                self._problem(f'a pose that was never: {pose}, {off:.3f} m off')
        if ticks != sorted(set(ticks)):
            self._problem(f'pose: not in order, or doubled: {ticks}')
        last = ticks[-1] if ticks else -1
        between = set(range(ticks[0], last)) - set(ticks) if ticks else set()
        self._holes = len(between)
        if missing := [tick for tick in sorted(between) if self._tf.known(self._tick_ns(tick))]:
            self._problem(f'pose: ticks {missing} missing between others')
        frame_ns = self._by_now(self._tf.came_ns)  # from then on there is a frame to be in
        early = (
            [tick for tick in range(ticks[0]) if self._tick_ns(tick) > frame_ns] if ticks else []
        )
        if missing := [tick for tick in early if self._tf.known(self._tick_ns(tick))]:
            self._problem(f'pose: ticks {missing} missing before the first')
        behind = range(last + 1, round((self._round.kill_ns / S - start_s) * POSE_HZ))
        due_ns = [at for at in map(self._tick_ns, behind) if self._tf.known(at)]
        if not ticks:  # those that were due before there was a frame have no pose
            due_ns = [at for at in due_ns if at > frame_ns]
        self._lost('pose', [(at, self._tf.reached_ns(at, at)) for at in due_ns])

    def _tick_ns(self, tick: int) -> int:
        return self._start_ns + round(tick / POSE_HZ * S)

    # Cameras and lidars

    def _sensor(self, kind: str, numbers: list[int]) -> None:
        self._once(kind, numbers)
        between, behind = self._missing(kind, numbers)
        outcome, one, source = self._outcome, self._round, SOURCES[kind]
        counts = self._door.counts(source, one.kill_ns)
        self._refused(kind, between, counts)
        if between:
            for reason, n in counts.items():
                name = f'{source} {reason}'
                outcome.refused[name] = outcome.refused.get(name, 0) + n
        # What has no place when it comes is not lost at the kill.
        behind = self._placed(kind, behind)
        came = self._door.came[kind]
        since_ns = min((came[number] for number in behind), default=one.kill_ns)
        stood_s = self._door.stood_s(since_ns, one.kill_ns)
        loss = Loss(self._id, (one.kill_ns - since_ns) / S, stood_s)
        lost_bytes = len(behind) * ENTRY_BYTES[kind]
        outcome.losses[kind].append(loss)
        outcome.lost_bytes[kind].append(lost_bytes)
        # The one that closes the part, one at work, and what came in while the part was written.
        late = RATES_HZ[kind] * (self._slack_s + stood_s + self._door.wrote_s(one.kill_ns))
        most = OPEN_PART_BYTES + ENTRY_BYTES[kind] * (2 + late)
        if loss.net_s > OPEN_PART_S + FLUSH_S + self._slack_s or lost_bytes > most:
            text = f'{lost_bytes / 1e6:.2f} MB of {loss.lost_s:.3f} s before the kill are missing'
            self._problem(f'{kind}: {text}')

    def _placed(self, kind: str, numbers: list[int]) -> list[int]:
        """Return those that tf told the place of well in time."""
        stamps_ns, came = self._published[kind], self._door.came[kind]
        return [n for n in numbers if self._tf.placed(stamps_ns[n], came[n])]

    def _refused(self, kind: str, between: list[int], counts: dict[str, int]) -> None:
        """Check that what is missing between others was counted, and for want of a pose only without one."""
        others = sum(counts.values()) - counts.get(Fate.POSE_FAILURES.value, 0)
        placed = self._placed(kind, between)
        if len(between) > sum(counts.values()):
            self._problem(f'{kind}: {between} missing between others; counted: {counts}')
        elif len(placed) > others:
            self._problem(
                f'{kind}: {placed} missing between others though tf was there; counted: {counts}'
            )

    # What the recorder says itself

    def _health(self, name: str, samples: list) -> None:
        """Hold a health series against what was counted at the door, where the door knows of it."""
        for time_s, value in samples:
            at_ns = round(time_s * S)
            low = self._counted(name, self._start_ns + MARGIN_NS, at_ns - MARGIN_NS)
            high = self._counted(name, self._start_ns - MARGIN_NS, self._by_now(at_ns))
            if low is not None and high is not None and not low <= value <= high:
                text = f'{name} is {value:g} at {time_s}, at the door it was {low} to {high}'
                self._problem(text)

    def _counted(self, name: str, begin_ns: int, end_ns: int) -> int | None:
        """Return what a health series should say; None of one that the door knows nothing of."""
        door = self._door
        if name == Count.DROPPED_EVENTS.value:
            return self._dropped(end_ns, events=True)
        if name == Count.DROPPED_RECORDS.value:
            return self._dropped(end_ns, events=False)
        if name in SEEN:
            return sum(n for at, each, n in door.counted if each == name and at < end_ns)
        source, _, word = name.removeprefix('c3d.').rpartition('.')
        for kind, each in SOURCES.items():
            if source == each:
                counts = door.counts(source, end_ns)
                if word == Fate.RECEIVED.value:
                    return sum(begin_ns <= at < end_ns for at in door.came[kind].values())
                if word == Fate.DROPPED.value:
                    return sum(counts.get(drop.value, 0) for drop in Drop)
                if word in UNSTORED:
                    return counts.get(word, 0)
        return None

    def _dropped(self, before_ns: int, *, events: bool) -> int:
        return sum(
            n
            for at, name, n in self._door.counted
            if at < before_ns
            and name.rpartition(':')[2] in LOSSES
            and (name.rpartition(':')[0] == 'events') is events
        )

    def _explained(self, finding: Finding) -> bool:
        """Say whether the logs account for what c3d verify finds, to the number."""
        if finding.kind is Kind.GAP:
            # Of each hole it has been seen that tf had no pose: the kill came before that was recorded.
            found = re.match(r'poses: (\d+) missing in ', finding.text)
            return found is not None and int(found[1]) == self._holes
        if finding.kind is not Kind.LOSS:
            return False
        found = re.fullmatch(r'(\S+) reached (\d+)', finding.text)
        if found is None:
            return False
        name, n, kill_ns = found[1], int(found[2]), self._round.kill_ns
        if name == Count.DROPPED_RECORDS.value:
            return n <= self._dropped(kill_ns, events=False)
        if name == Count.PARTS_QUARANTINED.value:
            # By this node, of one before it.
            most = len(self._outcome.half_written) // 2
            return n <= min(most, self._counted(name, 0, kill_ns) or 0)
        if name == Count.MESSAGES_LOST.value:
            return n <= min(self._on_the_way, self._counted(name, 0, kill_ns) or 0)
        return False
