"""The worker pool: order, bounds, drains. Tasks wait for events that the tests set."""

import threading

import pytest

from cognitive3d_ros.counters import Drop
from cognitive3d_ros.recording.workers import Task, Workers

WAIT_S = 10.0


class Pool:
    """Workers, and what became of their tasks."""

    def __init__(self, threads=2, depth=3, *, patient=False):
        self.errors = []
        self.ends = []
        self.changed = threading.Condition()
        self.workers = Workers(
            threads=threads, depth=depth, patient=patient, report=self.errors.append
        )

    def end(self, *what):
        with self.changed:
            self.ends.append(what)
            self.changed.notify_all()

    def wait(self, ends):
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.ends) >= ends, WAIT_S), self.ends

    def task(self, name, work=lambda: None):
        return Task(
            work=work,
            finish=lambda _: self.end(name, 'done'),
            lose=lambda reason: self.end(name, reason),
        )

    def put(self, sensor, name, work=lambda: None):
        self.workers.put(sensor, self.task(name, work))

    def hold(self, sensor, name):
        """Put a task that is at work when this returns; return what lets it go on."""
        begun, go_on = threading.Event(), threading.Event()

        def work():
            begun.set()
            assert go_on.wait(WAIT_S)

        self.put(sensor, name, work)
        assert begun.wait(WAIT_S)
        return go_on


@pytest.fixture
def pool():
    pools = []

    def make(*args, **kwargs):
        pools.append(Pool(*args, **kwargs))
        return pools[-1]

    yield make
    for each in pools:
        each.workers.close()


def test_a_sensor_keeps_its_order(pool):
    it = pool(threads=4, depth=1000)
    for index in range(500):
        it.put('a', ('a', index))
        it.put('b', ('b', index))
    it.wait(1000)
    for sensor in 'ab':
        done = [name[1] for name, what in it.ends if name[0] == sensor and what == 'done']
        assert done == list(range(500))


def test_a_full_queue_loses_its_oldest(pool):
    it = pool(threads=1, depth=2)
    go_on = it.hold('a', 'first')
    for name in ('second', 'third', 'fourth', 'fifth'):
        it.put('a', name)
    assert it.ends == [('second', Drop.QUEUE_FULL), ('third', Drop.QUEUE_FULL)]
    go_on.set()
    it.wait(5)
    assert it.ends[2:] == [('first', 'done'), ('fourth', 'done'), ('fifth', 'done')]


def test_one_sensor_does_not_starve_another(pool):
    it = pool(threads=1, depth=50)
    go_on = it.hold('busy', 'held')
    for index in range(50):
        it.put('busy', index)
    it.put('other', 'other')
    go_on.set()
    it.wait(52)
    names = [name for name, _ in it.ends]
    assert names.index('other') <= 2


def test_a_patient_queue_loses_nothing(pool):
    it = pool(threads=2, depth=2, patient=True)
    go_on = it.hold('a', 'held')
    feeder = threading.Thread(target=lambda: [it.put('a', index) for index in range(200)])
    feeder.start()
    go_on.set()
    feeder.join(WAIT_S)
    it.wait(201)
    assert [what for _, what in it.ends] == ['done'] * 201


def test_a_drain_waits_for_all(pool):
    it = pool(threads=2, depth=100)
    for index in range(60):
        it.put(str(index % 3), index)
    it.workers.drain(WAIT_S)
    assert sorted(name for name, what in it.ends if what == 'done') == list(range(60))


def test_a_drain_gives_up_what_takes_too_long(pool):
    it = pool(threads=1, depth=5)
    go_on = it.hold('a', 'at work')
    it.put('a', 'waiting')
    it.put('b', 'other')
    it.workers.drain(0.01)
    lost = {'at work', 'waiting', 'other'}
    assert {name for name, what in it.ends if what is Drop.SESSION_ENDED} == lost
    # Whatever comes of the one at work is not taken; the next one is.
    go_on.set()
    it.put('a', 'next')
    it.wait(4)
    it.workers.drain(WAIT_S)
    assert it.ends[3:] == [('next', 'done')]


def test_a_drain_waits_for_a_result_on_its_way(pool):
    """However long that takes: the task has been done, and is not lost."""
    it = pool(threads=1)
    begun, go_on = threading.Event(), threading.Event()

    def finish(_):
        begun.set()
        assert go_on.wait(WAIT_S)
        it.end('task', 'done')

    it.workers.put('a', Task(lambda: None, finish, lambda reason: it.end('task', reason)))
    assert begun.wait(WAIT_S)
    drain = threading.Thread(target=it.workers.drain, args=(0.0,))
    drain.start()
    go_on.set()
    drain.join(WAIT_S)
    assert it.ends == [('task', 'done')]


def test_a_task_that_fails_costs_only_itself(pool):
    it = pool(threads=1)

    def fail():
        raise MemoryError('no room')

    def bad_finish(_):
        it.end('bad finish', 'done')
        raise ValueError('a fault')

    it.put('a', 'fails', fail)
    it.workers.put('a', Task(lambda: None, bad_finish, lambda _: None))
    it.put('a', 'works')
    it.wait(3)
    it.workers.drain(WAIT_S)
    assert it.ends == [('fails', Drop.BAD_MESSAGE), ('bad finish', 'done'), ('works', 'done')]
    assert [type(error) for error in it.errors] == [MemoryError, ValueError]


def test_threads_end(pool):
    it = pool(threads=3)
    it.put('a', 'task')
    it.wait(1)
    it.workers.close()
    assert not [t for t in threading.enumerate() if t.name.startswith('c3d-worker')]
    it.put('a', 'late')
    assert it.ends[1:] == [('late', Drop.QUEUE_FULL)]
    pool().workers.close()  # one that never had anything to do


def test_each_task_has_one_end(pool):
    it = pool(threads=3, depth=2)
    threads = [
        threading.Thread(
            target=lambda sensor=sensor: [it.put(sensor, (sensor, i)) for i in range(400)]
        )
        for sensor in 'abcd'
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
    it.workers.drain(WAIT_S)
    names = [name for name, _ in it.ends]
    assert sorted(names) == sorted((sensor, i) for sensor in 'abcd' for i in range(400))
