"""Whether a stored session is whole: every part there and readable, every record where it may be."""

from __future__ import annotations

import enum
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from cognitive3d_ros.counters import Count
from cognitive3d_ros.errors import FormatError
from cognitive3d_ros.recording.accounts import LOSSES as LOST
from cognitive3d_ros.recording.accounts import PROPERTY, adds_up, nothing_came
from cognitive3d_ros.session.files import PartFile
from cognitive3d_ros.session.records import Event
from cognitive3d_ros.session.sensors import CAMERA, LIDAR, read_points, read_records
from cognitive3d_ros.session.session import SESSION_END, SESSION_START, Session
from cognitive3d_ros.session.streams import Floats
from cognitive3d_ros.wire.framing import STREAMS, PartHeader
from cognitive3d_ros.wire.schema import FORMAT_VERSIONS, read_body

CLOCK_STEP = 'c3d.clock_step'
_TICK_S = 1.5e-5  # a step of the five decimals, and what floats lose of it
FAR_M = 1e9
"""Farther than that is no place where a robot was."""
_UNIT = 0.01  # how far from 1 the norm of a rotation may be
_HOLE_INTERVALS = 1.5  # between two samples: more means that one is missing
_HAS_OBJECT = 'c3d.ros.robot_dynamic_object'
_HEALTH_END_S = 1.0  # before the end: the last health sample is taken just before it
_OTHER_FATES = ('decimated', 'dropped', 'decode_failures', 'pose_failures')
LOSSES = (
    Count.DROPPED_RECORDS,
    Count.DROPPED_EVENTS,
    Count.MESSAGES_LOST,
    Count.PARTS_EVICTED,
    Count.PARTS_QUARANTINED,
)
"""The recorder's own counts that mean that something is not here."""

Run = tuple[int, int]
"""Whole numbers from the first to the last, both included."""


class Kind(enum.Enum):
    """What is wrong; the value is what ``c3d verify`` calls it."""

    UNREADABLE = 'unreadable'
    MISSING = 'missing part'
    REPEATED = 'repeated part'
    MIXED = 'mixed up'
    NO_START = 'no start'
    NO_END = 'no end'
    ORDER = 'order'
    GAP = 'gap'
    CLOCK = 'clock step'
    SUM = 'sum'
    """What the recorder counted is not what is here."""
    LOSS = 'loss'
    NOTE = 'note'
    """Nothing wrong; something to know when judging the rest."""


_LACKS = (Kind.UNREADABLE, Kind.MISSING, Kind.NO_START, Kind.NO_END, Kind.GAP, Kind.LOSS)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be."""

    kind: Kind
    text: str
    fewer: bool = False
    """Of a sum: less is here than was counted."""

    @property
    def is_lack(self) -> bool:
        """Whether something is not here, or cannot be read; else what is here is wrong."""
        return self.fewer or self.kind in _LACKS


@np.errstate(over='ignore', invalid='ignore')
def verify(session: Session) -> list[Finding]:
    """Read a session whole and return what is wrong with it; notes come last."""
    parts = list(_read_parts(session))
    found = [item for item in parts if isinstance(item, Finding)]
    sound = [item for item in parts if isinstance(item, PartHeader)]
    found += _numbers(session)
    found += _streams(session)
    found += _one_session(sound)
    found += _records(session)
    found += _clock_steps(session)
    found += _sums(session)
    for stream in (CAMERA, LIDAR):
        found += _sensors(session, stream)
    read_faults = [Finding(Kind.UNREADABLE, str(fault)) for fault in session.faults]
    # A part that cannot be read is found by both ways of reading it.
    told = {finding.text for finding in found}
    found += [finding for finding in read_faults if finding.text not in told]
    # An operator's slip is data like any other: nothing of the session is missing.
    found += [Finding(Kind.NOTE, text) for text in session.markers.faults]
    found += _losses(session)
    found += _accounts(session)
    found += _places(session)
    return sorted(found, key=lambda finding: finding.kind is Kind.NOTE)


def known_faults(session: Session) -> list[Finding]:
    """Return what is known to be missing or wrong, of cameras and lidars only if they were read."""
    named = [*_numbers(session), *_streams(session), *_ends(session), *_sums(session)]
    for stream in (CAMERA, LIDAR):
        if session.was_read(stream):
            named += _sensors(session, stream)
    named += [Finding(Kind.UNREADABLE, str(fault)) for fault in session.faults]
    by_text: dict[str, Finding] = {}
    for each in named:
        if each.kind is not Kind.NOTE:
            by_text.setdefault(each.text, each)
    return list(by_text.values())


def _sums(session: Session) -> Iterator[Finding]:
    """Check what tells of parts that are missing at a session's end, where no number does."""
    yield from _gaps(session)
    yield from _snapshot_count(session)
    yield from _health_end(session)


def unaccounted(session: Session) -> list[str]:
    """Return what does not add up: the parts by their streams and numbers, and the accounts of inputs."""
    findings = [*_numbers(session), *_streams(session), *_accounts(session)]
    return [f'{each.kind.value}: {each.text}' for each in findings if each.kind is not Kind.NOTE]


def _read_parts(session: Session) -> Iterator[PartHeader | Finding]:
    """Read every part, the binary ones too: its checksum, and what it says of itself."""
    for file in session.listing.parts:
        yield _read_part(session, file)
    for path in session.listing.others:
        yield Finding(Kind.NOTE, f'{path.name}: not a part')
    replay = session.listing.journal
    if replay is not None:
        if replay.lost_entries:
            yield Finding(Kind.LOSS, f'journal: {replay.lost_entries} entries cannot be read')
        if replay.newer is not None:
            yield Finding(Kind.UNREADABLE, f'journal: format {replay.newer} is newer than this')
        elif replay.state is None:
            yield Finding(Kind.UNREADABLE, 'journal: cannot be read')


def _read_part(session: Session, file: PartFile) -> PartHeader | Finding:
    try:
        part = session.load(file)
        if file.stream in FORMAT_VERSIONS:
            said = read_body(file.stream, part.body).part
            if said != file.name.number:
                text = f'{file.path.name}: its body is numbered {said}'
                return Finding(Kind.MIXED, text)
        else:
            for record in read_records(file.stream, session.id, file.name.number, part.body):
                read_points(record)
        return part.header
    except FormatError as error:
        return Finding(Kind.UNREADABLE, f'{file.path.name}: {error}')
    except FileNotFoundError:
        return Finding(Kind.NOTE, f'{file.path.name}: gone since the folder was listed')
    except OSError as error:
        return Finding(Kind.UNREADABLE, f'{file.path.name}: cannot be read: {error.strerror}')


def _numbers(session: Session) -> Iterator[Finding]:
    """Check that the parts of each stream are numbered 1, 2, 3 … with none missing or twice."""
    for stream in STREAMS:
        counts = Counter(part.number for part in session.parts if part.stream == stream)
        if not counts:
            continue
        first, last = min(counts), max(counts)
        if session.files.in_spool and first > 1:
            text = f'{stream}: {_ranges([(1, first - 1)])} not here: delivered, or evicted'
            yield Finding(Kind.NOTE, text)
        lowest = first if session.files.in_spool else 1
        if missing := _missing(counts, lowest):
            yield Finding(Kind.MISSING, f'{stream}: {_ranges(missing)}, the last is {last}')
        repeated = sorted(number for number, count in counts.items() if count > 1)
        if repeated:
            text = f'{stream}: {_ranges(_runs(repeated))} more than once'
            yield Finding(Kind.REPEATED, text)


def _streams(session: Session) -> Iterator[Finding]:
    """Check that there is something of what every session has, where no number tells that it is missing."""
    there = {part.stream for part in session.listing.parts}
    there |= {part.stream for part in session.listing.open_parts}
    kind, where = Kind.MISSING, 'none is here'
    if session.files.in_spool:
        kind, where = Kind.NOTE, 'none is here: delivered, or evicted'
    if 'events' not in there:
        yield Finding(kind, f'events: {where}')
    if 'gaze' not in there:
        yield Finding(kind, f'gaze, poses and session properties: {where}')
    elif not session.properties:
        yield Finding(kind, f'session properties: {where}')


def _one_session(headers: list[PartHeader]) -> Iterator[Finding]:
    """Check that all parts are of one device and one scene version."""
    scenes = Counter((h.identity.scene_id, h.identity.scene_version) for h in headers)
    if len(scenes) > 1:
        each = ', '.join(
            f'{scene} version {version} ({n} parts)' for (scene, version), n in scenes.items()
        )
        yield Finding(Kind.MIXED, f'parts of {len(scenes)} scene versions: {each}')


def _records(session: Session) -> Iterator[Finding]:
    """Check what the data format says of a session's first and last records, and of their order."""
    yield from _ends(session)
    events, starts, ends = _start_and_end(session)
    for name, found in ((SESSION_START, starts), (SESSION_END, ends)):
        if len(found) > 1:
            yield Finding(Kind.ORDER, f'{len(found)} events {name}')
    if starts and events[0] is not starts[0]:
        yield Finding(Kind.ORDER, f'the first event is {events[0].name!r}, not {SESSION_START}')
    if ends and events[-1] is not ends[-1]:
        yield Finding(Kind.ORDER, f'the last event is {events[-1].name!r}, not {SESSION_END}')
    second = int(session.id.partition('_')[0])
    if starts and math.floor(starts[0].time) != second:
        text = f'{SESSION_START} is at {starts[0].time:.5f}, the session id says {second}'
        yield Finding(Kind.ORDER, text)
    if starts and ends:
        length, said = ends[-1].time - starts[0].time, ends[-1].properties.get('sessionlength')
        if not isinstance(said, (int, float)) or abs(length - said) > _TICK_S:
            text = f'sessionlength says {said}, from start to end it is {length:.5f} s'
            yield Finding(Kind.ORDER, text)
    start = starts[0].time if starts else session.start
    end = ends[-1].time if ends else math.inf
    columns = [('poses', session.poses.time, True), *_snapshots(session)]
    columns.append(('events', np.array([event.time for event in events]), False))
    columns += [(f'series {name}', each.time, True) for name, each in session.series.items()]
    for name, times, ascending in columns:
        yield from _order(name, times, start, end, ascending=ascending)


def _start_and_end(session: Session) -> tuple[Sequence[Event], list[Event], list[Event]]:
    """Return all events, those that start the session and those that end it."""
    events = session.events
    starts = [event for event in events if event.name == SESSION_START]
    ends = [event for event in events if event.name == SESSION_END]
    return events, starts, ends


def _ends(session: Session) -> Iterator[Finding]:
    """Check that a session has its start and its end."""
    _, starts, ends = _start_and_end(session)
    delivered = session.files.in_spool and 'events' in {
        part.stream for part in session.parts if part.number > 1
    }
    if not starts and not delivered:
        yield Finding(Kind.NO_START, f'there is no {SESSION_START}')
    if not ends:
        state = (
            'it is being recorded, or is to be recovered' if session.has_journal else 'it was cut'
        )
        yield Finding(Kind.NO_END, f'there is no {SESSION_END}: {state}')
    elif session.recovered:
        text = (
            'its recorder did not end it (abnormalEnd): what it was to hold after that is not here'
        )
        yield Finding(Kind.NOTE, text)


def _snapshots(session: Session) -> Iterator[tuple[str, Floats, bool]]:
    for object_id, rows in session.dynamics.rows_by_id().items():
        yield f'snapshots of {object_id}', session.dynamics.time[rows], True


def _order(
    name: str, times: Floats, start: float, end: float, *, ascending: bool
) -> Iterator[Finding]:
    """Check that records lie within the session, and, of a kind taken by the recorder's clock, ascend."""
    before, after = int((times < start).sum()), int((times > end).sum())
    if before:
        text = f'{name}: {before} before {SESSION_START}, the first at {times.min():.5f}'
        yield Finding(Kind.ORDER, text)
    if after:
        text = f'{name}: {after} after {SESSION_END}, the last at {times.max():.5f}'
        yield Finding(Kind.ORDER, text)
    backwards = np.flatnonzero(np.diff(times) < 0)
    if ascending and len(backwards):
        at = int(backwards[0])
        often = 'once' if len(backwards) == 1 else f'{len(backwards)} times'
        yield Finding(
            Kind.ORDER,
            f'{name}: time goes back {often}, first from {times[at]:.5f} to {times[at + 1]:.5f}',
        )


def _gaps(session: Session) -> Iterator[Finding]:
    """Check that the pose timeline has no holes but those that the recorder counted."""
    interval = 0.0 if session.identity is None else session.identity.interval_s
    times = session.track.time
    if _ended_well(session) and 'c3d.ros.reference_frame' in session.properties:
        # It goes on up to the end, once there is a frame that the robot can be in.
        first = times if len(times) else np.array([session.start])
        times = np.append(first, max(session.end, first[-1]))
    steps = np.diff(times)
    holes = np.flatnonzero(steps > _HOLE_INTERVALS * interval)
    if interval <= 0 or not len(holes):
        return
    missing = float(np.rint(steps[holes] / interval - 1).sum())
    longest = int(holes[np.argmax(steps[holes])])
    counted = _last(session, Count.POSE_FAILURES.value) or 0
    gaps = 'a gap of' if len(holes) == 1 else f'{len(holes)} gaps, the longest'
    text = (
        f'poses: {missing:.15g} missing in {gaps} {steps[longest]:.2f} s from {times[longest]:.5f}'
    )
    if missing <= counted:
        yield Finding(Kind.NOTE, f'{text}: tf had no pose then, as the recorder counted')
    else:
        said = str(session.properties.get(LOST, '')).split('; ')
        lost = ''.join(f', and said: {each}' for each in said if each.startswith('gaze: '))
        yield Finding(Kind.GAP, f'{text}; the recorder counted {counted:g} without a pose{lost}')


def _places(session: Session) -> Iterator[Finding]:
    """Name places and rotations that are none: stored as they came, and of no use."""
    poses, dynamics, events = session.poses, session.dynamics, session.events
    points = np.array([event.point for event in events], dtype=np.float64).reshape(-1, 3)
    when = np.array([event.time for event in events], dtype=np.float64)
    placed = [
        ('poses', poses.time, poses.p, poses.r),
        ('snapshots', dynamics.time, dynamics.p, dynamics.r),
        ('events', when, points, None),
    ]
    for stream, names in ((CAMERA, session.cameras), (LIDAR, session.lidars)):
        for name in names:
            sensor = session.camera(name) if stream == CAMERA else session.lidar(name)
            where = sensor.pose.astype(np.float64)
            placed.append((f'{stream} {name}', sensor.time, where[:, :3], where[:, 3:]))
    for name, times, p, r in placed:
        far = np.flatnonzero(~(np.abs(p) <= FAR_M).all(axis=1))  # NaN is no place either
        yield from _odd(f'{name}: {{}} at no place that can be', far, times, p)
        if r is not None:
            turned = np.flatnonzero(~(np.abs(np.linalg.norm(r, axis=1) - 1) <= _UNIT))
            yield from _odd(f'{name}: {{}} with a rotation that is none', turned, times, r)


def _odd(text: str, at: NDArray[np.intp], times: Floats, values: Floats) -> Iterator[Finding]:
    if len(at):
        value = ', '.join(f'{each:g}' for each in values[at[0]].tolist())
        told = f'{text.format(len(at))}, the first at {times[at[0]]:.5f}: ({value})'
        yield Finding(Kind.NOTE, told)


def _ended_well(session: Session) -> bool:
    """Say whether the recorder wrote all it had to: it ended the session, and nothing was delivered since."""
    return session.ended and not session.recovered and not session.files.in_spool


def _snapshot_count(session: Session) -> Iterator[Finding]:
    """Check that there is a snapshot of the robot for each pose sample."""
    if not _ended_well(session) or session.properties.get(_HAS_OBJECT) is not True:
        return
    poses, snapshots = len(session.poses), len(session.dynamics)
    if poses != snapshots:
        text = f'dynamics: {snapshots} snapshots of the robot, and {poses} pose samples'
        yield Finding(Kind.SUM, text, fewer=snapshots < poses)


def _health_end(session: Session) -> Iterator[Finding]:
    """Check that the health series go on up to the end, where the recorder takes them once more."""
    if not _ended_well(session) or not session.by_recorder:
        return
    health = [s.time.max() for n, s in session.series.items() if n.startswith('c3d.') and len(s)]
    last = max(map(float, health), default=session.start)
    if session.end - last > _HEALTH_END_S:
        text = f'sensors: the health series end {session.end - last:.2f} s before the session does'
        yield Finding(Kind.MISSING, text)


def _clock_steps(session: Session) -> Iterator[Finding]:
    """Report where the robot's clock was set back."""
    for event in session.events:
        if event.name == CLOCK_STEP:
            step = event.properties.get('step_s', 'an unknown number of')
            text = f'the clock of the robot went back by {step} s at {event.time:.5f}'
            yield Finding(Kind.CLOCK, text)


def _sensors(session: Session, stream: str) -> Iterator[Finding]:
    """Check that the records of each camera or lidar are all there, by their own count and the recorder's."""
    for name in session.cameras if stream == CAMERA else session.lidars:
        sensor = session.camera(name) if stream == CAMERA else session.lidar(name)
        label, seq = f'{stream} {name}', sensor.seq
        if len(seq):
            first = int(seq[0]) if session.files.in_spool else 0  # those before may be delivered
            if missing := _missing(seq.tolist(), first):
                yield Finding(Kind.MISSING, f'{label}: {_ranges(missing, "record")} by their seq')
            if (np.diff(seq) <= 0).any():
                yield Finding(Kind.ORDER, f'{label}: seq does not ascend')
        if not session.ended or session.recovered:
            continue  # the recorder's last count may be older than the last records
        prefix, word = f'c3d.{stream}.{name}', 'frames' if stream == CAMERA else 'scans'
        stored = _last(session, f'{prefix}.{word}')
        if stored is not None and stored != len(seq) and not session.files.in_spool:
            text = f'{label}: {len(seq)} here, the recorder counted {stored:g} in {prefix}.{word}'
            yield Finding(Kind.SUM, text, fewer=len(seq) < stored)
        fates = [_last(session, f'{prefix}.{fate}') for fate in (word, *_OTHER_FATES)]
        received = _last(session, f'{prefix}.received')
        known = [count for count in fates if count is not None]
        if received is not None and len(known) == len(fates) and sum(known) != received:
            text = f'{label}: {received:g} received, and {sum(known):g} accounted for'
            yield Finding(Kind.SUM, text)


def _last(session: Session, series: str) -> float | None:
    """Return the last value of a series, or None if there is none."""
    values = session.series.get(series)
    return float(values.value[-1]) if values is not None and len(values) else None


def _losses(session: Session) -> Iterator[Finding]:
    """Report what the recorder itself counted as lost."""
    for count in LOSSES:
        series = session.series.get(count.value)
        if series is not None and len(series) and series.value.max() > 0:
            yield Finding(Kind.LOSS, f'{count.value} reached {series.value.max():g}')
    if lost := session.properties.get(LOST):
        yield Finding(Kind.LOSS, f'the recorder said: {lost}')


def _accounts(session: Session) -> Iterator[Finding]:
    """Check that what the recorder says of each input adds up: what came in is what it tells the fate of."""
    for name, text in session.properties.items():
        if not name.startswith(PROPERTY):
            continue
        source = name.removeprefix(PROPERTY)
        if not adds_up(str(text)):
            yield Finding(Kind.SUM, f'{source}: {text}: does not add up')
        elif nothing_came(str(text)):
            yield Finding(Kind.NOTE, f'{source}: nothing was received')


def _missing(numbers: Iterable[int], lowest: int) -> list[Run]:
    """Return which numbers from the lowest on are missing before the last one that is there.

    As runs, because a single number that is far off makes billions of them.
    """
    runs = _runs(sorted({lowest - 1, *numbers}))
    gaps = [(before[1] + 1, after[0] - 1) for before, after in pairwise(runs)]
    return [gap for gap in gaps if gap[0] >= lowest]


def _runs(numbers: Iterable[int]) -> list[Run]:
    """Return ascending numbers as runs without a gap."""
    runs: list[Run] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1] = runs[-1][0], number
        else:
            runs.append((number, number))
    return runs


def _ranges(runs: Sequence[Run], word: str = 'part') -> str:
    """Return ``part 4`` or ``parts 1–3, 7``."""
    texts = [str(low) if low == high else f'{low}–{high}' for low, high in runs]
    plural = 's' if len(texts) > 1 or '–' in texts[0] else ''
    shown = texts if len(texts) <= 10 else [*texts[:10], f'… ({len(texts) - 10} more ranges)']
    return f'{word}{plural} ' + ', '.join(shown)
