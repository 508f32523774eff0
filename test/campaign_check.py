"""What the kill campaign found: the gateway's store held against the robot's own log of what it published."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from pathlib import Path

from campaign_robot import PICTURE, RATES_HZ, RAYS, SPEED_M_S, picture_number
from recording_rig import Stored

from cognitive3d_ros.session.session import open_session
from cognitive3d_ros.session.verify import Kind, verify

S = 1_000_000_000
POSE_HZ = 20.0
FLUSH_S = 1.0
TF_WAIT_S = 0.5
WINDOW_S = {'event': FLUSH_S + TF_WAIT_S, 'pose': FLUSH_S + TF_WAIT_S, 'sample': FLUSH_S}
OPEN_PART_BYTES = 4 << 20
OPEN_PART_S = 5.0
ENTRY_BYTES = {'picture': len(PICTURE), 'scan': 4 * RAYS}
DISCOVERY_S = 4.0  # by then the node must have found the robot


def read_log(path: Path) -> tuple[int, dict[str, list[int]]]:
    """Return when the robot began, and the wall time of each number of each kind that it published."""
    first, *lines = path.read_text().splitlines()
    found: dict[str, list[int]] = {kind: [] for kind in RATES_HZ}
    for line in lines:
        kind, number, wall_ns = line.split()
        assert int(number) == len(found[kind])
        found[kind].append(int(wall_ns))
    return int(first), found


@dataclass(frozen=True)
class Round:
    """One life of a node: when it was begun and killed (wall time), and the session it said it started."""

    begin_ns: int
    kill_ns: int
    session_id: str | None


@dataclass
class Outcome:
    """What a campaign found. ``lost_s`` and ``lost_bytes`` have a value for each session killed."""

    seed: int
    rounds: list[Round] = field(default_factory=list)
    sessions: int = 0
    problems: list[str] = field(default_factory=list)
    records: dict[str, int] = field(default_factory=dict)
    lost_s: dict[str, list[float]] = field(default_factory=dict)
    lost_bytes: dict[str, list[int]] = field(default_factory=dict)
    held_back: dict[str, int] = field(
        default_factory=dict
    )  # of pictures and scans, before the recorder
    found_s: list[float] = field(default_factory=list)  # from a session's start to its first event
    poses_off: int = 0  # not at their tick, to a millimetre: tf came too late
    took_s: float = 0.0

    def __str__(self) -> str:
        idle = sum(one.session_id is None for one in self.rounds)
        done = f'{len(self.rounds)} kills in {self.took_s:.0f} s, {idle} of them before a session began'
        lines = [
            f'seed {self.seed}: {done}; {self.sessions} sessions in the store',
            'kind      stored   lost at a kill: median     worst    window   beyond it',
        ]
        for kind, losses in self.lost_s.items():
            window = WINDOW_S.get(kind, OPEN_PART_S)
            beyond = sum(loss > window for loss in losses)
            lines.append(
                f'{kind:<9} {self.records[kind]:>6}   {statistics.median(losses or [0]):>18.3f} s '
                f'{max(losses, default=0):>7.3f} s {window:>7.1f} s   {beyond} of {len(losses)}'
            )
        for kind, sizes in self.lost_bytes.items():
            lines.append(
                f'{kind}: {statistics.median(sizes or [0]) / 1e6:.2f} MB lost at a kill at the median, '
                f'{max(sizes, default=0) / 1e6:.2f} MB at worst, of a part of {OPEN_PART_BYTES / 1e6:.1f} MB; '
                f'{self.held_back.get(kind, 0)} never reached the recorder'
            )
        found = f'{statistics.median(self.found_s or [0]):.2f} s, at worst {max(self.found_s, default=0):.2f} s'
        lines.append(f'from the start of a session to its first event: {found}')
        lines.append(f'poses that are not those of their tick to a millimetre: {self.poses_off}')
        lines += self.problems or [
            'nothing is missing, nothing is doubled, no part number has a gap'
        ]
        return '\n'.join(lines)


class Comparison:
    """Holds the store against the robot's log."""

    def __init__(self, store: Path, log: Path, outcome: Outcome, slack_s: float) -> None:
        self._store, self._stored = store, Stored(store)
        self._begin_ns, self._published = read_log(log)
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
            self._problem(session_id, 'was started, and is not in the store')
        for session_id in ids:
            self._session(session_id, self._round(session_id))

    def _problem(self, session_id: str, text: str) -> None:
        self._outcome.problems.append(f'{session_id}: {text}')

    def _round(self, session_id: str) -> Round:
        """Return the round of a session: one may be killed before it can say what it has started."""
        second_ns = int(session_id.partition('_')[0]) * S
        for one in self._outcome.rounds:
            if one.session_id == session_id:
                return one
        (found,) = [r for r in self._outcome.rounds if r.begin_ns - S < second_ns < r.kill_ns]
        return found

    def _session(self, session_id: str, one: Round) -> None:
        numbers: dict[str, list[int]] = {}
        bodies: dict[str, list] = {}
        for stream, _, number, body in self._stored.parts(session_id):
            numbers.setdefault(stream, []).append(number)
            bodies.setdefault(stream, []).append(body)
        for stream, run in numbers.items():
            if run != list(range(1, len(run) + 1)):
                self._problem(session_id, f'{stream}: parts {run}')

        def records(stream):
            return [record for body in bodies.get(stream, []) for record in body['data']]

        events, poses = records('events'), records('gaze')
        samples = [
            pair
            for series in records('sensors')
            if series['name'] == 'count'
            for pair in series['data']
        ]
        frames = [frame for body in bodies.get('camera', []) for frame in body.frames]
        scans = [scan for body in bodies.get('lidar', []) for scan in body.scans]
        times = [record['time'] for record in events[:-1] + poses]
        times += [time_s for series in records('sensors') for time_s, _ in series['data']]
        times += [record.time_ms / 1000 for record in frames + scans]
        start_s = self._ends(session_id, events, max(times, default=0.0))
        if start_s is None:
            return
        ticks = [event['properties']['number'] for event in events if event['name'] == 'tick']
        self._numbered(session_id, one, start_s, 'event', ticks)
        if ticks:
            first_s = self._published['event'][ticks[0]] / S
            self._outcome.found_s.append(first_s - start_s)
        self._numbered(session_id, one, start_s, 'sample', [round(value) for _, value in samples])
        self._poses(session_id, one, start_s, poses)
        self._sensor(session_id, one, start_s, 'picture', [picture_number(f.data) for f in frames])
        self._sensor(session_id, one, start_s, 'scan', [round(s.scan.ranges[0]) for s in scans])
        for run in (frames, scans):
            if [record.seq for record in run] != list(range(len(run))):
                self._problem(session_id, f'seq {[record.seq for record in run]}')
        for finding in verify(open_session(self._store, session_id)):
            if finding.kind is not Kind.NOTE:
                self._problem(session_id, f'c3d verify: {finding.kind.value}: {finding.text}')

    def _ends(self, session_id: str, events: list[dict], latest_s: float) -> float | None:
        """Check a session's first and last event; return its start."""
        names = [event['name'] for event in events]
        if names[:1] != ['c3d.sessionStart'] or names[-1:] != ['c3d.sessionEnd']:
            self._problem(session_id, f'its events are {names[:2]} … {names[-2:]}')
            return None
        if names.count('c3d.sessionStart') + names.count('c3d.sessionEnd') != 2:
            self._problem(session_id, 'it starts or ends twice')
        start_s, end = float(events[0]['time']), events[-1]
        said = end['properties']
        if said.get('Reason') != 'abnormalEnd' or said.get('c3d.recovered') is not True:
            self._problem(session_id, f'its end says {said}')
        if abs(end['time'] - max(latest_s, start_s)) > 1e-3:
            self._problem(
                session_id, f'it ends at {end["time"]}, its latest record is of {latest_s}'
            )
        return start_s

    def _once(self, session_id: str, kind: str, numbers: list[int]) -> None:
        seen = self._seen[kind]
        if len(set(numbers)) != len(numbers) or seen & set(numbers):
            self._problem(session_id, f'{kind}: stored twice: {sorted(seen & set(numbers))}')
        if numbers != sorted(numbers):
            self._problem(session_id, f'{kind}: not in order')
        seen |= set(numbers)
        self._outcome.records[kind] += len(numbers)

    def _unstored(self, one: Round, kind: str, numbers: list[int], start_s: float) -> list[int]:
        """Return when what is missing behind the last record was published."""
        published = self._published[kind]
        if numbers:
            later = published[numbers[-1] + 1 :]
        else:
            later = [at for at in published if at > (start_s + DISCOVERY_S) * S]
        return [at for at in later if at < one.kill_ns]

    def _numbered(
        self, session_id: str, one: Round, start_s: float, kind: str, numbers: list[int]
    ) -> None:
        self._once(session_id, kind, numbers)
        if numbers and numbers != list(range(numbers[0], numbers[-1] + 1)):
            missing = sorted(set(range(numbers[0], numbers[-1])) - set(numbers))
            self._problem(session_id, f'{kind}: {missing} missing between others')
        self._lost(
            session_id, one, kind, self._unstored(one, kind, numbers, start_s), bool(numbers)
        )

    def _lost(
        self, session_id: str, one: Round, kind: str, lost_ns: list[int], measured: bool
    ) -> None:
        lost_s = (one.kill_ns - lost_ns[0]) / S if lost_ns else 0.0
        if measured:
            self._outcome.lost_s[kind].append(lost_s)
        if lost_s > WINDOW_S[kind] + self._slack_s:
            self._problem(
                session_id, f'{kind}: the last {lost_s:.3f} s before the kill are missing'
            )

    def _poses(self, session_id: str, one: Round, start_s: float, poses: list[dict]) -> None:
        ticks = [round((pose['time'] - start_s) * POSE_HZ) for pose in poses]
        self._outcome.records['pose'] += len(ticks)
        for tick, pose in zip(ticks, poses, strict=True):
            if abs(pose['time'] - start_s - tick / POSE_HZ) > 2e-5:
                self._problem(session_id, f'a pose at no tick: {pose["time"]}')
            x = (pose['time'] - self._begin_ns / S) * SPEED_M_S
            self._outcome.poses_off += abs(pose['p'][0] - x) > 1e-3
            if abs(pose['p'][0] - x) > SPEED_M_S * 1.5:
                self._problem(session_id, f'a pose that was never: {pose}, not x {x}')
        if ticks and ticks != list(range(ticks[0], ticks[-1] + 1)):
            missing = sorted(set(range(ticks[0], ticks[-1])) - set(ticks))
            self._problem(session_id, f'pose: ticks {missing} missing, or {ticks} not in order')
        first = ticks[-1] + 1 if ticks else round(DISCOVERY_S * POSE_HZ)
        start_ns = round(start_s * S)
        due_ns = start_ns + round(first / POSE_HZ * S)
        lost_ns = [due_ns] if due_ns < one.kill_ns else []
        self._lost(session_id, one, 'pose', lost_ns, bool(ticks))

    def _sensor(
        self, session_id: str, one: Round, start_s: float, kind: str, numbers: list[int]
    ) -> None:
        self._once(session_id, kind, numbers)
        outcome = self._outcome
        if numbers:
            between = numbers[-1] + 1 - numbers[0] - len(numbers)
            outcome.held_back[kind] = outcome.held_back.get(kind, 0) + between
        lost_ns = self._unstored(one, kind, numbers, start_s)
        lost_s = (one.kill_ns - lost_ns[0]) / S if lost_ns else 0.0
        lost_bytes = len(lost_ns) * ENTRY_BYTES[kind]
        outcome.lost_s[kind].append(lost_s)
        outcome.lost_bytes[kind].append(lost_bytes)
        # One that was on its way, and the one that closes the part.
        most = OPEN_PART_BYTES + ENTRY_BYTES[kind] * (2 + RATES_HZ[kind] * self._slack_s)
        if lost_s > OPEN_PART_S + FLUSH_S + self._slack_s or lost_bytes > most:
            text = (
                f'{kind}: {lost_bytes / 1e6:.2f} MB of {lost_s:.3f} s before the kill are missing'
            )
            self._problem(session_id, text)
