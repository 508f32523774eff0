"""The inputs that become series and events: topics, described sensors, actions.

Their messages are converted as they arrive, under the recorder's lock: that takes microseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from cognitive3d_ros.clock import Arrival
from cognitive3d_ros.convert import described, topics
from cognitive3d_ros.convert.actions import GOAL_STATUS_ARRAY, STATUS_TOPIC, GoalChange, Goals
from cognitive3d_ros.convert.diagnostics import DIAGNOSTIC_ARRAY, Own, Statuses
from cognitive3d_ros.convert.outcome import Dropped
from cognitive3d_ros.convert.taken import Converter
from cognitive3d_ros.counters import Drop, Fate, Ledger, LeftOut
from cognitive3d_ros.log import Complaints
from cognitive3d_ros.parameters import ActionConfig, SensorConfig, TopicConfig
from cognitive3d_ros.recording.inputs import Publication, why_silent
from cognitive3d_ros.recording.recorder import Recorder
from cognitive3d_ros.recording.session import Session
from cognitive3d_ros.wire.bodies import PropertyValue
from cognitive3d_ros.wire.numbers import rounded

_S: Final = 1e9


class _SeriesInput:
    """What topics and described sensors share: a message is converted to samples of series."""

    def __init__(
        self,
        source: str,
        topic: str,
        qos: str,
        recorder: Recorder,
        ledger: Ledger,
        log: Complaints,
    ) -> None:
        self.source, self.topic, self.qos = source, topic, qos
        self.expects = ''
        self._recorder, self._ledger, self._complaints = recorder, ledger, log
        self._type = ''

    def found(self, publication: Publication) -> str | None:
        """Take note of a publication; return why its messages cannot be recorded, or None."""
        reason = None
        if self._converter(publication.type) is None:
            reason = self._unsupported(publication.type)
        else:
            self._type = publication.type
        self._recorder.silent(self.source, why_silent(publication, reason, self.qos))
        return reason

    def due(self) -> Arrival | None:
        """Count a message that arrives now. None: it is not to be taken (no session, or decimated)."""
        return self._recorder.due(self.source)

    def take(self, message: Any, arrival: Arrival) -> None:
        """Record a message that was due."""
        self._recorder.record(
            self.source, arrival, lambda session: self._record(session, message, arrival)
        )

    def _record(self, session: Session, message: Any, arrival: Arrival) -> None:
        convert = session.state(self.source, lambda: self._begin(message))
        taken = convert(message)
        if isinstance(taken, Dropped):
            self._drop(taken.reason, taken.text)
            return
        if taken.only_own:
            # Nothing came in that is the robot's: it was counted before anybody could look at it.
            self._ledger.came(self.source, Fate.RECEIVED, -1)
            return
        if taken.no_name:
            self._ledger.leave_out(LeftOut.NO_NAME, self.source, taken.no_name)
            self._warn(LeftOut.NO_NAME, 'has values of things without a name, which are left out')
        if taken.left_out:
            self._ledger.leave_out(LeftOut.BEYOND_LIMIT, self.source, taken.left_out)
            self._warn(
                LeftOut.BEYOND_LIMIT, 'names more series than one topic may have, or endless names'
            )
        for change in taken.changes:
            session.event('c3d.diagnostic', change._asdict(), arrival)
        session.samples(self.source, taken.samples, arrival)

    def _begin(self, message: Any) -> Converter:
        """Return the converter for one session, at its first message."""
        del message
        converter = self._converter(self._type)
        if converter is None:  # a door that did not ask
            converter = self._refusing
        return converter

    def _refusing(self, message: Any) -> Dropped:
        del message
        return Dropped(Drop.BAD_MESSAGE, self._unsupported(self._type))

    def _drop(self, reason: Drop, text: str) -> None:
        self._ledger.drop(reason, self.source)
        self._warn(reason, f'{text}; it is dropped')

    def _warn(self, what: Drop | LeftOut, text: str) -> None:
        self._complaints.warn(f'{self.source} {what.value}', f'{self.source}: {text}')

    def _converter(self, type_name: str) -> Converter | None:
        raise NotImplementedError

    def _unsupported(self, type_name: str) -> str:
        raise NotImplementedError


class TopicInput(_SeriesInput):
    """A topic that is recorded as series."""

    def __init__(
        self,
        topic: TopicConfig,
        recorder: Recorder,
        ledger: Ledger,
        log: Complaints,
        own: Own,
    ) -> None:
        super().__init__(f'topic.{topic.name}', topic.topic, topic.qos, recorder, ledger, log)
        self._config, self._own = topic, own
        self._diagnostics = False

    def found(self, publication: Publication) -> str | None:
        """Take note of a publication; return why its messages cannot be recorded, or None."""
        reason = super().found(publication)
        if reason is None:
            self._diagnostics = self._is_diagnostics(publication.type)
            facts: dict[str, PropertyValue] = {f'c3d.ros.{self.source}.type': publication.type}
            if publication.publisher:
                facts[f'c3d.ros.{self.source}.publisher'] = publication.publisher
            self._recorder.know(facts)
        return reason

    def due(self) -> Arrival | None:
        """Count a message that arrives now; None where it is not to be taken.

        Of diagnostics every message is: each may be another publisher's, and any of them may tell of a change.
        """
        return self._recorder.due(self.source, every=self._diagnostics)

    def _is_diagnostics(self, type_name: str) -> bool:
        return type_name == DIAGNOSTIC_ARRAY and not self._config.fields

    def _converter(self, type_name: str) -> Converter | None:
        if self._is_diagnostics(type_name):
            return Statuses(self._config.prefix, self._own)
        return topics.converter(type_name, self._config.prefix, self._config.fields)

    def _begin(self, message: Any) -> Converter:
        missing = topics.unreadable(message, self._config.fields)
        if missing:
            self._complaints.warn(
                f'{self.source} fields',
                f'{self.source}: {self._type} has no number at {", ".join(missing)}: correct '
                f'topic.{self._config.name}.fields',
            )
        return super()._begin(message)

    def _unsupported(self, type_name: str) -> str:
        return (
            f'{type_name} is published, and what to record of it is not known: name its numeric fields in '
            f'topic.{self._config.name}.fields'
        )


class DescribedInput(_SeriesInput):
    """A described sensor."""

    def __init__(
        self, sensor: SensorConfig, recorder: Recorder, ledger: Ledger, log: Complaints
    ) -> None:
        super().__init__(f'sensor.{sensor.name}', sensor.topic, sensor.qos, recorder, ledger, log)
        self._config = sensor

    def _converter(self, type_name: str) -> Converter | None:
        return described.described(self._config, type_name)

    def _unsupported(self, type_name: str) -> str:
        wanted = described.wanted_types(self._config)
        return f'{type_name} is published: a {self._config.kind} is {wanted}'


class ActionInput:
    """An action: what becomes of its goals is recorded as events.

    They are followed between sessions too, so that a session knows which goals run as it starts.
    """

    qos = 'latched'
    expects = GOAL_STATUS_ARRAY

    def __init__(
        self, action: ActionConfig, recorder: Recorder, ledger: Ledger, log: Complaints
    ) -> None:
        self.source = f'action.{action.name}'
        self.topic = action.action + STATUS_TOPIC
        self._prefix = action.prefix
        self._recorder, self._ledger, self._complaints = recorder, ledger, log
        self._last: Any = None
        recorder.at_start(self._begin)

    def found(self, publication: Publication) -> str | None:
        """Return why its messages cannot be used, or None."""
        reason = None
        if publication.type != GOAL_STATUS_ARRAY:
            reason = f'{publication.type} is published: {GOAL_STATUS_ARRAY} is wanted'
        self._recorder.silent(self.source, why_silent(publication, reason, self.qos))
        return reason

    def due(self) -> Arrival | None:
        """Count a message that arrives now, while a session is active; every one is taken."""
        return self._recorder.due(self.source) or _BETWEEN_SESSIONS

    def take(self, message: Any, arrival: Arrival) -> None:
        """Record what a message says that is new."""
        self._last = message
        if arrival is not _BETWEEN_SESSIONS:
            self._recorder.record(
                self.source, arrival, lambda session: self._record(session, message, arrival)
            )

    def _begin(self, session: Session, arrival: Arrival) -> None:
        if self._last is not None:
            goals = session.state(self.source, Goals)
            changes = goals.take(self._last, arrival.session_ns, arrival.ros_ns)
            if not isinstance(changes, Dropped):
                self._tell(session, changes, arrival, [''] * len(changes))

    def _record(self, session: Session, message: Any, arrival: Arrival) -> None:
        changes = session.state(self.source, Goals).take(
            message, arrival.session_ns, arrival.ros_ns
        )
        if isinstance(changes, Dropped):
            self._ledger.drop(changes.reason, self.source)
            self._complaints.warn(self.source, f'{self.source}: {changes.text}; it is dropped')
        elif not changes:
            self._ledger.came(self.source, Fate.GATED)
        else:
            # What becomes of the first event is what becomes of the message.
            self._tell(session, changes, arrival, [self.source] + [''] * (len(changes) - 1))

    def _tell(
        self,
        session: Session,
        changes: Sequence[GoalChange],
        arrival: Arrival,
        sources: Sequence[str],
    ) -> None:
        for change, source in zip(changes, sources, strict=True):
            properties: dict[str, PropertyValue] = {'goal_id': change.goal_id}
            if change.duration_ns is not None:
                properties['duration'] = rounded(change.duration_ns / _S)
            session.event(f'{self._prefix}.{change.what}', properties, arrival, source=source)


_BETWEEN_SESSIONS: Final = Arrival(0, 0, 0, 0)
