"""What runs from configure to cleanup, and is no ROS: spool, recorder, uploader, and their threads."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable

from cognitive3d_ros.alarm import Alarm
from cognitive3d_ros.clock import NS_PER_S, Clocks
from cognitive3d_ros.counters import Ledger
from cognitive3d_ros.errors import SessionError
from cognitive3d_ros.log import Complaints, Log
from cognitive3d_ros.memory import GIVE_BACK_S, give_freed_memory_back
from cognitive3d_ros.parameters import Config
from cognitive3d_ros.recording.properties import Host
from cognitive3d_ros.recording.recorder import Recorder
from cognitive3d_ros.recording.registry import inputs_of
from cognitive3d_ros.spool.spool import Spool, SpoolLimits
from cognitive3d_ros.tf import TransformSource
from cognitive3d_ros.upload import remote_variables
from cognitive3d_ros.upload.keys import ApplicationKey
from cognitive3d_ros.upload.transport import RequestsTransport
from cognitive3d_ros.upload.uploader import Uploader

_RETRY_START_S = 0.5  # how often a session that could not start yet is tried again
_RETRY_REFUSED_S = 2.0  # and one that the disk refused: each try takes a second of the ids
_SAY_AGAIN_S = 60.0  # how often it is said why there is none yet
_MIN_SIM_WAIT_S = 0.01  # a simulated clock may stand still just before a tick
_REST_S = 1.0  # after a fault in one of the threads


class Engine:
    """One configured recorder.

    The pose thread polls the recorder when that asks for it, the writer thread flushes it every
    ``spool.flush_s``, the uploader has a thread of its own. Methods may be called from any thread.
    """

    recorder: Recorder
    uploader: Uploader

    def __init__(
        self,
        config: Config,
        *,
        clocks: Clocks,
        transforms: TransformSource,
        host: Host,
        log: Log,
        resolve: Callable[[str], str] = lambda topic: topic,
    ) -> None:
        """Open the spool, close the sessions that never ended, and start the threads.

        Raises SpoolError; nothing is left open then.
        """
        self.config = config
        self.ledger = Ledger()
        self._log, self._complaints = log, Complaints(log)
        self._lock = threading.Lock()  # of starting and ending sessions
        self._wanted = False  # a session is to start as soon as the clock allows
        self._not_ready = ''
        self._waiting_since_s = self._say_again_at_s = self._start_again_at_s = 0.0
        self.lost_entries = 0  # at the end, which the disk refused to the last
        self._stopping = False
        self._give_back_at_s = 0.0
        self.variables = ''  # the remote variables fetched last, as JSON
        spool = config.spool
        limits = SpoolLimits(spool.max_bytes, spool.min_free_bytes)
        self.spool = Spool.open(spool.dir, ledger=self.ledger, limits=limits, log=log.warning)
        try:
            self._begin(clocks, transforms, host, resolve)
        except BaseException:
            self.spool.close()
            raise

    def _begin(
        self,
        clocks: Clocks,
        transforms: TransformSource,
        host: Host,
        resolve: Callable[[str], str],
    ) -> None:
        config, log = self.config, self._log
        spool, upload = config.spool, config.upload
        free_bytes = self.spool.usage().free_bytes
        if free_bytes < spool.min_free_bytes:
            log.error(
                f'the disk of {spool.dir} has {free_bytes >> 20} MiB left, less than '
                f'spool.min_free_bytes ({spool.min_free_bytes >> 20} MiB): parts will be dropped'
            )
        self._key = ApplicationKey(str(config.application_key_file or ''))
        interrupt = threading.Event()
        self._transport = RequestsTransport(
            timeout_s=upload.timeout_s, max_bytes_per_s=upload.max_bytes_per_s, interrupt=interrupt
        )
        self.uploader = Uploader(
            gateway=config.gateway,
            key=self._key,
            spool=self.spool,
            transport=self._transport,
            ledger=self.ledger,
            log=log,
            require_ack=upload.require_ack_header,
            interrupt=interrupt,
        )
        self.recorder = Recorder(
            config,
            spool=self.spool,
            clocks=clocks,
            transforms=transforms,
            ledger=self.ledger,
            host=host,
            log=log,
            resolve=resolve,
            upload_blocked=lambda: self.uploader.state,
        )
        self.inputs = inputs_of(
            config, self.recorder, self.ledger, self._complaints, node=host.node
        )
        self.recorder.recover()
        self._pose_alarm, self._writer_alarm = Alarm(), Alarm()
        self.spool.on_part_due = self._writer_alarm.ring
        self._threads = [
            threading.Thread(target=self._run, args=(work, alarm), name=name, daemon=True)
            for name, work, alarm in (
                ('c3d-pose', self._pose, self._pose_alarm),
                ('c3d-writer', self._write, self._writer_alarm),
            )
        ]
        for thread in self._threads:
            thread.start()
        if upload.enabled:
            self.uploader.start()

    # Sessions

    def activate(self) -> None:
        """Start the session that ``auto_start_session`` asks for, now or when the clock allows it."""
        with self._lock:
            self._wanted = self.config.auto_start_session
            self._waiting_since_s = time.monotonic()
            self._start_again_at_s = 0.0
            self._start_wanted()

    def start_session(self, name: str, participant_id: str, properties_json: str) -> str:
        """Start a session for a caller; see Recorder.start_session."""
        with self._lock:
            return self._start(name, participant_id, properties_json)

    def end_session(self, reason: str) -> str:
        """End the active session; raises SessionError where there is none, or the disk refused its end."""
        with self._lock:
            session_id = self.recorder.end_session(reason)
            if error := self.recorder.last_session.error:
                raise SessionError(f'session {session_id} has ended, but not on the disk: {error}')
            return session_id

    def deactivate(self, reason: str) -> None:
        """End the session, if one is active, and start no other."""
        with self._lock:
            self._wanted = False
            if self.recorder.session_id is not None:
                self.recorder.end_session(reason)

    def _start(self, name: str = '', participant_id: str = '', properties_json: str = '') -> str:
        session_id = self.recorder.start_session(name, participant_id, properties_json)
        self._wanted = False
        self._pose_alarm.ring()
        if self.config.remote_variables:
            identifier = participant_id or self.config.device_id
            threading.Thread(
                target=self._fetch_variables,
                args=(session_id, identifier),
                name='c3d-remote-variables',
                daemon=True,
            ).start()
        return session_id

    def _fetch_variables(self, session_id: str, identifier: str) -> None:
        """Ask for the remote variables of a session that has started, which never waits for them."""
        found = remote_variables.fetch(
            RequestsTransport(
                timeout_s=remote_variables.TIMEOUT_S,
                max_answer_bytes=remote_variables.MAX_ANSWER_BYTES,
            ),
            gateway=self.config.gateway,
            key=self._key(),
            identifier=identifier,
            spool_dir=self.config.spool.dir,
            require_ack=self.config.upload.require_ack_header,
        )
        for problem in found.problems:
            self._log.warning(f'remote variables: {problem}')
        if found.origin is remote_variables.Origin.NOWHERE:
            return
        self.variables = json.dumps(dict(found.values), ensure_ascii=False)
        with self._lock:
            if self.recorder.session_id == session_id:
                self.recorder.set_properties(
                    {f'c3d.remote_variable.{name}': value for name, value in found.values.items()}
                )

    def _start_wanted(self) -> None:
        if not self._wanted:
            return
        now_s = time.monotonic()
        reason = self.recorder.not_ready()
        if reason is None:
            if now_s < self._start_again_at_s:
                return
            try:
                self._start()
            except SessionError as error:
                reason = str(error)
                self._start_again_at_s = now_s + _RETRY_REFUSED_S
        if reason and (not self._not_ready or now_s >= self._say_again_at_s):
            self._log.warning(f'no session yet: {reason}; one starts as soon as that changes')
            self._say_again_at_s = now_s + _SAY_AGAIN_S
        self._not_ready = reason or ''

    @property
    def not_ready(self) -> str:
        """Why the session that is to start has not started yet; empty where none is waited for."""
        return f'no session yet: {self._not_ready}' if self._wanted and self._not_ready else ''

    @property
    def waiting_s(self) -> float:
        """How long it has been waited for; 0 where none is."""
        return time.monotonic() - self._waiting_since_s if self.not_ready else 0.0

    @property
    def durable(self) -> bool:
        """Whether nothing is in memory alone; asks the disk once more where it refused before."""
        return self.spool.error is None or self.spool.flush()

    def state(self) -> str:
        """Say what goes on: ``recording``, ``waiting`` for the clock to start a session, or ``idle``."""
        if self.recorder.session_id is not None:
            return 'recording'
        return 'waiting' if self._wanted else 'idle'

    # Threads

    def ros_time_moved(self) -> None:
        """Look at the clock at once where a tick, or the start of a session, may hang on it."""
        if self.config.sim_time_on_wire or self._wanted:
            self._pose_alarm.ring()

    def _pose(self) -> float:
        if self._wanted:
            with self._lock:
                self._start_wanted()
        wait_s = self.recorder.poll() / NS_PER_S
        if self._wanted:
            return min(wait_s, _RETRY_START_S)
        return max(wait_s, _MIN_SIM_WAIT_S) if self.config.sim_time_on_wire else wait_s

    def _write(self) -> float:
        begin_s = time.monotonic()
        self.recorder.flush()
        wait_s = write_wait_s(self.config.spool.flush_s, time.monotonic() - begin_s)
        if begin_s >= self._give_back_at_s:
            self._give_back_at_s = begin_s + GIVE_BACK_S
            give_freed_memory_back()
        return wait_s

    def _run(self, work: Callable[[], float], alarm: Alarm) -> None:
        while not self._stopping:
            try:
                wait_s = work()
            except Exception as error:  # noqa: BLE001 - one fault must not end a thread of the recording
                self._complaints.warn(work.__name__, f'the recorder has a fault: {error!r}')
                wait_s = _REST_S
            alarm.wait(wait_s)

    def close(self, delivery_s: float) -> None:
        """End the threads, deliver for ``delivery_s`` at most, and close the spool.

        A session that is still active is ended first, with the reason ``shutdown``. Nothing else may be
        called from here on; a second call does nothing.
        """
        if self._stopping:
            return
        try:
            self.deactivate('shutdown')
            self.recorder.close()
        finally:
            self._stopping = True
            for alarm in (self._pose_alarm, self._writer_alarm):
                alarm.ring()
            for thread in self._threads:
                thread.join()
            if self.uploader.stop(delivery_s):
                self._transport.close()
            if not self.durable:
                self._log.error(f'the spool cannot be written to the last: {self.spool.error}')
            self.spool.close()
            self.lost_entries = self.spool.lost_entries
            for alarm in (self._pose_alarm, self._writer_alarm):
                alarm.close()


def write_wait_s(flush_s: float, took_s: float) -> float:
    """Return how long to wait after a flush, so that what is recorded is durable ``flush_s`` later.

    What came too late for that flush has waited for as long as it took; the next one will take as long.
    """
    return max(flush_s - 2 * took_s, flush_s / 4)
