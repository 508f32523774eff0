"""What the kill campaign found: the gateway's store against logs of what was published and what came in."""

from __future__ import annotations

import statistics
from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from pathlib import Path

from campaign_robot import PICTURE, RATES_HZ, RAYS, SPEED_M_S, picture_number
from recording_rig import Stored

from cognitive3d_ros.session.session import open_session
from cognitive3d_ros.session.verify import Kind, verify

S = 1_000_000_000
POSE_HZ = 20.0
FLUSH_S = 1.0
TF_WAIT_S = 0.5
STALE_S = 1.0  # stale_pose_s
WINDOW_S = {'event': FLUSH_S + TF_WAIT_S, 'pose': FLUSH_S + TF_WAIT_S, 'sample': FLUSH_S}
OPEN_PART_BYTES = 4 << 20
OPEN_PART_S = 5.0
ENTRY_BYTES = {'picture': len(PICTURE), 'scan': 4 * RAYS}
TOGETHER_S = 0.005  # the wall and the monotonic clock are read one after the other
STOOD_S = 0.25
HELD_S = 0.1  # what holds a canary up for longer holds a node up


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


def read_log(path: Path) -> dict[str, dict[int, int]]:
    """Return when each number of each kind was published, or came in."""
    found: dict[str, dict[int, int]] = {kind: {} for kind in (*RATES_HZ, 'beat')}
    for line in path.read_text().splitlines() if path.exists() else []:
        kind, number, wall_ns = line.split()
        found[kind][int(number)] = int(wall_ns)
    return found


@dataclass
class Outcome:
    """What a campaign found. ``lost_s`` and ``lost_bytes`` have a value for each session killed."""

    seed: int
    rounds: list[Round] = field(default_factory=list)
    sessions: int = 0
    problems: list[str] = field(default_factory=list)
    records: dict[str, int] = field(default_factory=dict)
    lost_s: dict[str, list[tuple[float, float]]] = field(
        default_factory=dict
    )  # and how long it stood still
    lost_bytes: dict[str, list[int]] = field(default_factory=dict)
    in_transport: int = 0  # published between others that are stored, and never came in
    refused: int = 0  # pictures and scans that came in between others, and are not stored
    poses_off: int = 0  # not at their tick, to a millimetre: tf came too late
    stood_s: list[float] = field(default_factory=list)  # how long the node stood still
    took_s: float = 0.0

    def __str__(self) -> str:
        idle = sum(one.session_id is None for one in self.rounds)
        done = f'{len(self.rounds)} kills in {self.took_s:.0f} s, {idle} of them before a session began'
        held_s = [one.held_s for one in self.rounds] or [0.0]
        busy = sum(each > HELD_S for each in held_s)
        held_up = f'{statistics.median(held_s):.3f} s at the median, {max(held_s):.3f} s at worst'
        often = sum(each > STOOD_S for each in self.stood_s)
        worst_s = max(self.stood_s, default=0.0)
        stood_still = f'for {worst_s:.3f} s at worst, for over {STOOD_S} s before {often} kills'
        lines = [
            f'seed {self.seed}: {done}; {self.sessions} sessions in the store',
            f'others held the machine up for {held_up}; for over {HELD_S} s before {busy} kills',
            f'the node stood still {stood_still}',
            'kind      stored   lost at a kill: median     worst    window   beyond it',
        ]
        for kind, losses in self.lost_s.items():
            window = WINDOW_S.get(kind, OPEN_PART_S)
            beyond = [stood for loss, stood in losses if loss > window]
            stood = sum(each > STOOD_S for each in beyond)
            seconds = [loss for loss, _ in losses] or [0.0]
            lines.append(
                f'{kind:<9} {self.records[kind]:>6}   {statistics.median(seconds):>18.3f} s '
                f'{max(seconds):>7.3f} s {window:>7.1f} s   {len(beyond)} of {len(losses)}, '
                f'{stood} at a standstill'
            )
        for kind, sizes in self.lost_bytes.items():
            median, worst = statistics.median(sizes or [0]) / 1e6, max(sizes, default=0) / 1e6
            lines.append(
                f'{kind}: {median:.2f} MB lost at a kill at the median, {worst:.2f} MB at worst, '
                f'of an open part of {OPEN_PART_BYTES / 1e6:.1f} MB'
            )
        lines += [
            f'{self.in_transport} messages between others never came in',
            f'{self.refused} pictures and scans came in between others, and are not stored',
            f'{self.poses_off} poses are not those of their tick to a millimetre',
            *(
                self.problems
                or ['nothing is missing, nothing is doubled, no part number has a gap']
            ),
        ]
        return '\n'.join(lines)


class Comparison:
    """Holds the store against the logs."""

    def __init__(self, store: Path, log: Path, outcome: Outcome, slack_s: float) -> None:
        self._store, self._stored = store, Stored(store)
        self._published = read_log(log)
        self._begin_ns = self._published['tf'][0]
        self._outcome, self._slack_s = outcome, slack_s
        self._seen: dict[str, set[int]] = {kind: set() for kind in RATES_HZ}

    def run(self) -> None:
        ids = sorted(path.name for path in (self._store / 'sessions').iterdir())
        outcome = self._outcome
        outcome.sessions = len(ids)
        outcome.records = dict.fromkeys((*WINDOW_S, *ENTRY_BYTES), 0)
        outcome.lost_s = {kind: [] for kind in outcome.records}
        outcome.lost_bytes = {kind: [] for kind in ENTRY_BYTES}
        started = {one.session_id for one in outcome.rounds} - {None}
        for session_id in sorted(started - set(ids)):
            outcome.problems.append(f'{session_id} was started, and is not in the store')
        for session_id in ids:
            one = self._round(session_id)
            _Session(self, session_id, one).check()

    def _round(self, session_id: str) -> Round:
        """Return the round of a session: one may be killed before it can say what it has started."""
        for one in self._outcome.rounds:
            if one.session_id == session_id:
                return one
        second_ns = int(session_id.partition('_')[0]) * S
        unsaid = [one for one in self._outcome.rounds if one.session_id is None]
        return min(unsaid, key=lambda one: abs(one.kill_ns - second_ns))


class _Session:
    """One session of a comparison."""

    def __init__(self, comparison: Comparison, session_id: str, one: Round) -> None:
        self._all = comparison
        self._outcome, self._published = comparison._outcome, comparison._published
        self._id, self._round = session_id, one
        self._door = read_log(one.door)
        # A flush does several times what the canary does; where the node stood still, it could not flush.
        self._stood_s = self._standstill()
        self._slack_s = comparison._slack_s + 4 * one.held_s + self._stood_s
        self._start_s = 0.0
        self._tf = _Known(self._door['tf'])
        self._outcome.stood_s.append(self._stood_s)

    def _standstill(self) -> float:
        """Return the longest that nothing in the node could run, in the last four seconds."""
        kill_ns = self._round.kill_ns
        beats_ns = sorted([*self._door['beat'].values(), kill_ns])
        pairs = pairwise(at for at in beats_ns if kill_ns - 4 * S < at <= kill_ns)
        return max((later - at for at, later in pairs), default=0) / S

    def _problem(self, text: str) -> None:
        held = f' (held up for {self._round.held_s:.3f} s, stood still for {self._stood_s:.3f} s)'
        self._outcome.problems.append(f'{self._id}: {text}{held}')

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
        ticks = [event['properties']['number'] for event in events if event['name'] == 'tick']
        self._numbered('event', ticks)
        self._numbered('sample', [round(value) for value in samples])
        self._poses(poses)
        self._sensor('picture', [picture_number(frame.data) for frame in frames])
        self._sensor('scan', [round(scan.scan.ranges[0]) for scan in scans])
        for run in (frames, scans):
            if [record.seq for record in run] != list(range(len(run))):
                self._problem(f'seq {[record.seq for record in run]}')
        for finding in verify(open_session(self._all._store, self._id)):
            # Losses are pictures that came before tf did, and the like: counted, as they should be. Gaps are
            # looked into above: the kill came before the recorder could say that tf had been silent.
            if finding.kind not in (Kind.NOTE, Kind.LOSS, Kind.GAP):
                self._problem(f'c3d verify: {finding.kind.value}: {finding.text}')

    def _ends(self, events: list[dict], latest_s: float) -> bool:
        """Check the first and the last event."""
        names = [event['name'] for event in events]
        if names[:1] != ['c3d.sessionStart'] or names[-1:] != ['c3d.sessionEnd']:
            self._problem(f'its events are {names[:2]} … {names[-2:]}')
            return False
        if names.count('c3d.sessionStart') + names.count('c3d.sessionEnd') != 2:
            self._problem('it starts or ends twice')
        self._start_s, end = float(events[0]['time']), events[-1]
        said = end['properties']
        if said.get('Reason') != 'abnormalEnd' or said.get('c3d.recovered') is not True:
            self._problem(f'its end says {said}')
        # Properties that have become known are records too, and do not tell their time.
        latest_s = max(latest_s, self._start_s)
        if not latest_s - 1e-3 < end['time'] < self._round.kill_ns / S:
            self._problem(f'it ends at {end["time"]}, its latest record is of {latest_s}')
        return True

    def _once(self, kind: str, numbers: list[int]) -> None:
        seen = self._all._seen[kind]
        if len(set(numbers)) != len(numbers) or seen & set(numbers):
            self._problem(f'{kind}: stored twice: {sorted(seen & set(numbers))}')
        if numbers != sorted(numbers):
            self._problem(f'{kind}: not in order')
        if unknown := [number for number in numbers if number not in self._door[kind]]:
            self._problem(f'{kind}: {unknown} never came in')
        seen |= set(numbers)
        self._outcome.records[kind] += len(numbers)

    def _missing(self, kind: str, numbers: list[int]) -> tuple[list[int], list[int]]:
        """Return what came in in the session and is not stored: between others, and behind the last."""
        stored = set(numbers)
        last = numbers[-1] if numbers else -1
        # When it comes in in the moment of the start it may be before it.
        begin_ns, end_ns = round((self._start_s + 0.1) * S), self._round.kill_ns
        came = [n for n, at in self._door[kind].items() if begin_ns < at < end_ns]
        if numbers:
            span = range(numbers[0], last)
            published = [n for n in self._published[kind] if n in span]
            came_at_all = self._door[kind]
            self._outcome.in_transport += sum(n not in came_at_all for n in published)
        between = [n for n in came if n < last and n not in stored]
        return between, [n for n in came if n > last]

    def _numbered(self, kind: str, numbers: list[int]) -> None:
        self._once(kind, numbers)
        between, behind = self._missing(kind, numbers)
        if between:
            self._problem(f'{kind}: {between} missing between others')
        lost = [self._door[kind][number] for number in behind]
        self._lost(kind, min(lost, default=None))

    def _lost(self, kind: str, since_ns: int | None) -> None:
        lost_s = 0.0 if since_ns is None else (self._round.kill_ns - since_ns) / S
        self._outcome.lost_s[kind].append((lost_s, self._stood_s))
        if lost_s > WINDOW_S[kind] + self._slack_s:
            self._problem(f'{kind}: the last {lost_s:.3f} s before the kill are missing')

    def _poses(self, poses: list[dict]) -> None:
        start_s = self._start_s
        ticks = [round((pose['time'] - start_s) * POSE_HZ) for pose in poses]
        self._outcome.records['pose'] += len(ticks)
        begin_s = self._all._begin_ns / S
        for tick, pose in zip(ticks, poses, strict=True):
            if abs(pose['time'] - start_s - tick / POSE_HZ) > TOGETHER_S:
                self._problem(f'a pose at no tick: {pose["time"]}')
            off = abs(pose['p'][0] - (pose['time'] - begin_s) * SPEED_M_S)
            self._outcome.poses_off += off > 1e-3
            if off > SPEED_M_S * (STALE_S + TF_WAIT_S):
                self._problem(f'a pose that was never: {pose}')
        if ticks != sorted(set(ticks)):
            self._problem(f'pose: not in order, or doubled: {ticks}')
        last = ticks[-1] if ticks else -1
        between = set(range(ticks[0], last)) - set(ticks) if ticks else set()
        if missing := [tick for tick in sorted(between) if self._tf.known(self._tick_ns(tick))]:
            self._problem(f'pose: ticks {missing} missing between others')
        behind = range(last + 1, round((self._round.kill_ns / S - start_s) * POSE_HZ))
        due_ns = (self._tick_ns(tick) for tick in behind)
        self._lost('pose', next((at for at in due_ns if self._tf.known(at)), None))

    def _tick_ns(self, tick: int) -> int:
        return round((self._start_s + tick / POSE_HZ) * S)

    def _sensor(self, kind: str, numbers: list[int]) -> None:
        self._once(kind, numbers)
        # Where tf did not come in in time they have no pose: that is counted, and no matter here.
        between, behind = (
            [n for n in run if self._tf.reached(self._published[kind][n], self._door[kind][n])]
            for run in self._missing(kind, numbers)
        )
        outcome, one = self._outcome, self._round
        outcome.refused += len(between)
        since_ns = min((self._door[kind][number] for number in behind), default=one.kill_ns)
        lost_s, lost_bytes = (one.kill_ns - since_ns) / S, len(behind) * ENTRY_BYTES[kind]
        outcome.lost_s[kind].append((lost_s, self._stood_s))
        outcome.lost_bytes[kind].append(lost_bytes)
        # The one that closes the part, one at work, and what came in while the part was written.
        most = OPEN_PART_BYTES + ENTRY_BYTES[kind] * (2 + RATES_HZ[kind] * self._slack_s)
        if lost_s > OPEN_PART_S + FLUSH_S + self._slack_s or lost_bytes > most:
            text = f'{lost_bytes / 1e6:.2f} MB of {lost_s:.3f} s before the kill are missing'
            self._problem(f'{kind}: {text}')


class _Known:
    """What tf could answer, by what of it had come in."""

    def __init__(self, door: dict[int, int]) -> None:
        came = sorted((at_ns, stamp_ns) for stamp_ns, at_ns in door.items() if stamp_ns)
        self._at_ns = [at_ns for at_ns, _ in came]
        self._newest_ns = list(accumulate((stamp_ns for _, stamp_ns in came), max))
        self._first_ns = min((stamp_ns for _, stamp_ns in came), default=0)
        self._fixed_at_ns = door.get(0)  # where the sensors are on the robot

    def _newest(self, at_ns: int) -> int:
        index = bisect_right(self._at_ns, at_ns)
        return self._newest_ns[index - 1] if index else 0

    def known(self, tick_ns: int) -> bool:
        """Say whether half a second after a tick what was known was not stale."""
        return self._newest(tick_ns + round(TF_WAIT_S * S)) > tick_ns - round(STALE_S * S)

    def reached(self, stamp_ns: int, at_ns: int) -> bool:
        """Say whether it reached the stamp of what came in then, well within half a second."""
        fixed = self._fixed_at_ns is not None and self._fixed_at_ns < at_ns
        newest_ns = self._newest(at_ns + round(0.8 * TF_WAIT_S * S))
        return fixed and self._first_ns <= stamp_ns <= newest_ns
