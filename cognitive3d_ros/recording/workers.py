"""Work on messages off the threads that receive them: a bounded queue for each sensor, and a few threads.

A sensor's tasks are done one at a time, in the order in which they came. Live, a full queue loses its oldest
task; offline, whoever brings one waits. Every task has exactly one end: its ``finish`` or its ``lose``.
"""

from __future__ import annotations

import functools
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from cognitive3d_ros.alarm import Alarm
from cognitive3d_ros.counters import Drop

T = TypeVar('T')


@dataclass(frozen=True, slots=True, eq=False)
class Task(Generic[T]):
    """``work`` is done by a worker, then ``finish`` takes its result.

    ``lose`` is called instead where the task was given up, or failed.
    """

    work: Callable[[], T]
    finish: Callable[[T], None]
    lose: Callable[[Drop], None]


@dataclass(slots=True)
class _Queue(Generic[T]):
    waiting: deque[Task[T]] = field(default_factory=deque)
    running: Task[T] | None = None
    finishing: bool = False


class Workers(Generic[T]):
    """Threads that do tasks. Thread safe; ``finish`` and ``lose`` are called without any lock held.

    Args:
        threads: how many; they are started with the first task.
        depth: how many tasks of a sensor may wait.
        patient: whether :meth:`put` waits for room, rather than losing the oldest task.
        report: is told of an exception that a task let out.
    """

    def __init__(
        self,
        *,
        threads: int,
        depth: int,
        patient: bool,
        report: Callable[[Exception], None],
    ) -> None:
        self._count = threads
        self._depth = depth
        self._patient = patient
        self._report = report
        self._changed = threading.Condition()
        self._queues: dict[str, _Queue[T]] = {}  # the one that waits longest for a worker first
        self._threads: list[threading.Thread] = []
        self._closed = False
        self._idle = Alarm()

    def put(self, sensor: str, task: Task[T]) -> None:
        """Queue a task of a sensor."""
        lost = None
        with self._changed:
            queue = self._queues.setdefault(sensor, _Queue())
            while self._patient and len(queue.waiting) >= self._depth and not self._closed:
                self._changed.wait()
            if self._closed:
                lost = task
            else:
                if len(queue.waiting) >= self._depth:
                    lost = queue.waiting.popleft()
                queue.waiting.append(task)
                self._start()
                self._changed.notify_all()
        if lost is not None:
            lost.lose(Drop.QUEUE_FULL)

    def drain(self, timeout_s: float | None) -> None:
        """Wait until nothing is left to do; after ``timeout_s`` give up what is.

        Nobody may put tasks meanwhile. A task that is at work then goes on, but its result is not taken.
        """
        if not self._empty_by(timeout_s):
            lost: list[Task[T]] = []
            with self._changed:
                for queue in self._queues.values():
                    if queue.running is not None and not queue.finishing:
                        lost.append(queue.running)
                        queue.running = None
                    lost += queue.waiting
                    queue.waiting.clear()
                self._changed.notify_all()
            for task in lost:
                task.lose(Drop.SESSION_ENDED)
            self._empty_by(None)

    def close(self) -> None:
        """Give up what is left and end the threads."""
        self.drain(0.0)
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _empty_by(self, timeout_s: float | None) -> bool:
        """Wait until nothing waits or runs; False if that takes longer."""
        # Not by waiting on the condition: locks sleep on the wall clock in Python 3.10.
        end_s = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            with self._changed:
                if not any(queue.waiting or queue.running for queue in self._queues.values()):
                    return True
            left_s = 1.0 if end_s is None else end_s - time.monotonic()
            if left_s <= 0:
                return False
            self._idle.wait(left_s)

    def _start(self) -> None:
        if not self._threads:
            self._threads = [
                threading.Thread(target=self._run, name=f'c3d-worker-{index}', daemon=True)
                for index in range(self._count)
            ]
            for thread in self._threads:
                thread.start()

    def _next(self) -> tuple[_Queue[T], Task[T]] | None:
        """Wait for a task that may be done; None when it is over."""
        with self._changed:
            while not self._closed:
                for sensor, queue in self._queues.items():
                    if queue.waiting and queue.running is None:
                        # To the end of the line.
                        self._queues[sensor] = self._queues.pop(sensor)
                        queue.running = task = queue.waiting.popleft()
                        self._changed.notify_all()
                        return queue, task
                self._changed.wait()
            return None

    def _run(self) -> None:
        while (found := self._next()) is not None:
            try:
                self._do(*found)
            except Exception as error:  # noqa: BLE001 - a worker must outlive whatever a task does
                self._report(error)
            del found  # no message is held while the next one is waited for
            self._idle.ring()

    def _do(self, queue: _Queue[T], task: Task[T]) -> None:
        try:
            result = task.work()
        except Exception as error:  # noqa: BLE001 - no task may end without one of its ends
            self._report(error)
            end = functools.partial(task.lose, Drop.BAD_MESSAGE)
        else:
            end = functools.partial(task.finish, result)
        with self._changed:
            if queue.running is not task:
                return  # it was given up meanwhile
            queue.finishing = True
        try:
            end()
        finally:
            with self._changed:
                queue.running = None
                queue.finishing = False
                self._changed.notify_all()
