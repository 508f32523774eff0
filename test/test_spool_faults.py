"""The spool on a disk that fails, writes short or loses power at every call of a run."""

from __future__ import annotations

import errno
from contextlib import suppress

import pytest
from faulty_fs import FaultyFs, PowerCut
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from spool_model import STREAMS, World

from cognitive3d_ros.errors import SpoolError

S = 1_000_000_000


def run(world: World) -> None:
    """A run with everything in it: two sessions, all classes, parts by time, size and seal, deliveries."""
    world.open()
    first = world.start()
    world.append(first, 'properties')
    world.append(first, 'events')
    world.flush(first)
    for second in range(12):
        world.at_ns += S
        world.append(first, 'pose', 20)
        world.append(first, 'series')
        if second % 4 == 0:
            world.append(first, 'camera', 3000)
        if second % 5 == 0:
            world.append(first, 'lidar', 1000)
            world.seal(first, 'lidar')
        if second == 6:
            world.append(first, 'properties')
        if second % 3 == 0:
            world.flush(first)
    world.flush(first)
    world.deliver(4)
    world.append(first, 'events', 300_000)  # a part by size
    world.append(first, 'pose')
    world.flush(first)
    world.finish(first)
    second_one = world.start()
    world.append(second_one, 'properties')
    world.append(second_one, 'pose')
    world.append(second_one, 'camera', 500)
    world.seal(second_one, 'camera')
    world.flush(second_one)
    world.deliver()
    world.append(second_one, 'events')
    world.flush(second_one)
    world.append(second_one, 'series')


def calls_of(function) -> int:
    world = World(FaultyFs())
    function(world)
    return world.fs.calls


def cut_at(world: World, number: int, function) -> bool:
    """Run until the power is cut at a call; True if it was."""
    base = world.fs.calls
    world.fs.fault = lambda call, name: -1 if call == base + number else None
    try:
        function(world)
    except PowerCut:
        return True
    finally:
        world.fs.fault = lambda call, name: None
    return False


def test_the_run_itself():
    world = World(FaultyFs())
    run(world)
    world.verify()
    assert world.fs.calls > 100
    assert {key[1] for key in world.gateway} == set(STREAMS.values())


def calls_named(name: str) -> list[int]:
    """Return which calls of the run are of a kind."""
    names: dict[int, str] = {}
    world = World(FaultyFs())
    world.fs.fault = lambda call, name: names.__setitem__(call, name)
    run(world)
    return [call for call, one in names.items() if one == name]


@pytest.mark.parametrize('kind', ['power', 'kill'])
def test_power_cut_at_every_call(kind):
    """The power is cut, or the process killed, at every call of the run."""
    for number in range(1, calls_of(run) + 1):
        for seed in range(2):
            world = World(FaultyFs(seed=number * 10 + seed))
            assert cut_at(world, number, run)
            world.cut_power() if kind == 'power' else world.kill()
            world.verify()


@pytest.mark.parametrize(
    ('kind', 'name'), [('power', 'sync_folder'), ('kill', 'sync_folder'), ('kill', 'sync')]
)
def test_power_cut_while_recovering(kind, name):
    """And once more while the spool is opened and the sessions are closed.

    A process killed at ``sync`` leaves a temporary file that is whole, and not on the disk yet.
    """
    recover = World.recover
    for number in calls_named(name):
        for second in range(1, 40):
            world = World(FaultyFs(seed=number * 100 + second))
            assert cut_at(world, number, run)
            world.cut_power() if kind == 'power' else world.kill()
            if not cut_at(world, second, recover):
                break
            world.cut_power()
            world.verify()


def test_a_call_that_fails_and_then_a_power_cut():
    """What the disk refused once must not be missed later, though the later calls succeed."""
    for number in range(10, calls_of(run) + 1):
        world = World(FaultyFs(seed=number))
        world.fs.fault = lambda call, name, at=number: errno.EIO if call == at else None
        run_on(world)
        world.cut_power()
        world.verify()


@pytest.mark.parametrize('code', [errno.ENOSPC, errno.EIO, errno.EROFS])
@pytest.mark.parametrize('length', [1, 4])
def test_a_call_that_fails(code, length):
    """The disk refuses one call, or several; it all gets there once the disk is well again."""
    for number in range(10, calls_of(run) + 1):
        world = World(FaultyFs(seed=number))
        world.fs.fault = lambda call, name, at=number: code if at <= call < at + length else None
        run_on(world)
        world.fs.fault = lambda call, name: None
        world.verify()


def run_on(world: World) -> None:
    """The run, by a recorder that tries again what may raise."""
    open_, start, deliver = world.open, world.start, world.deliver

    def retrying(call):
        def retry(*args):
            for _ in range(20):
                with suppress(SpoolError):
                    return call(*args)
            raise AssertionError('it never worked')

        return retry

    world.open, world.start, world.deliver = retrying(open_), retrying(start), retrying(deliver)
    run(world)


def test_short_writes():
    """A write that takes half is gone on with."""
    world = World(FaultyFs())
    world.fs.fault = lambda call, name: 0 if name == 'write' else None
    run(world)
    world.verify()


class SpoolMachine(RuleBasedStateMachine):
    """Any order of work, faults, kills and power cuts; checked at the end, and after each recovery."""

    @property
    def sessions(self) -> list[str]:
        return list(self.world.live)

    def __init__(self) -> None:
        super().__init__()
        self.world = World(FaultyFs())
        self.world.open()

    def attempt(self, call, *args) -> None:
        try:
            call(*args)
        except SpoolError:
            assert self.faulty
        except PowerCut:
            self.world.cut_power()
            self.world.recover()

    faulty = False

    @rule(
        seed=st.integers(0, 99),
        at=st.integers(1, 30),
        length=st.integers(1, 8),
        code=st.sampled_from([-1, 0, errno.ENOSPC, errno.EIO]),
    )
    def break_disk(self, seed, at, length, code) -> None:
        fs = self.world.fs
        fs.chance.seed(seed)
        start = fs.calls + at
        fs.fault = lambda call, name: code if start <= call < start + length else None
        self.faulty = True

    @rule()
    def mend_disk(self) -> None:
        self.world.fs.fault = lambda call, name: None
        self.faulty = False

    @precondition(lambda self: len(self.world.live) < 2)
    @rule()
    def start(self) -> None:
        self.attempt(self.world.start)

    @precondition(lambda self: self.sessions)
    @rule(
        which=st.integers(0, 9),
        klass=st.sampled_from(list(STREAMS)),
        size=st.sampled_from([0, 0, 0, 100, 300_000]),
        count=st.integers(1, 4),
        after_s=st.sampled_from([0, 0, 1, 6, 11]),
    )
    def append(self, which, klass, size, count, after_s) -> None:
        session_id = self.sessions[which % len(self.sessions)]
        self.world.at_ns += after_s * S
        if not self.world.told[session_id].finishing:
            for _ in range(count):
                self.world.append(session_id, klass, size)

    @precondition(lambda self: self.sessions)
    @rule(which=st.integers(0, 9), klass=st.sampled_from(list(STREAMS)))
    def seal(self, which, klass) -> None:
        self.world.seal(self.sessions[which % len(self.sessions)], klass)

    @precondition(lambda self: self.sessions)
    @rule(which=st.integers(0, 9))
    def flush(self, which) -> None:
        self.attempt(self.world.flush, self.sessions[which % len(self.sessions)])

    @precondition(lambda self: self.sessions)
    @rule(which=st.integers(0, 9))
    def finish(self, which) -> None:
        self.attempt(self.world.finish, self.sessions[which % len(self.sessions)])

    @rule(most=st.integers(1, 6))
    def deliver(self, most) -> None:
        self.attempt(self.world.deliver, most)

    @rule(power=st.booleans())
    def crash(self, power) -> None:
        self.world.cut_power() if power else self.world.kill()
        self.faulty = False
        self.world.recover()

    @invariant()
    def numbers_are_whole(self) -> None:
        """What was delivered so far has no gap: the deliveries assert it as they go."""

    def teardown(self) -> None:
        self.mend_disk()
        self.world.verify()


TestSpoolMachine = SpoolMachine.TestCase
TestSpoolMachine.settings = settings(
    max_examples=300,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
