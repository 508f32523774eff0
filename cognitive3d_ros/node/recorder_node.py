"""The lifecycle node: parameters, transitions, services, topics. :mod:`.engine` does the work."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from rcl_interfaces.msg import SetParametersResult
from rclpy.clock import Clock, ClockType, JumpThreshold, TimeJump
from rclpy.duration import Duration
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import String

from cognitive3d_ros import parameters
from cognitive3d_ros.errors import Cognitive3dError, ParameterError, SessionError

from . import status
from .arrivals import Arrivals
from .clocks import LiveClocks
from .declare import declare, given
from .engine import Engine
from .host import host_of
from .log import NodeLog
from .stop import DELIVERY_S, EXIT_FAILED, EXIT_PARAMETERS
from .subscriptions import SCAN_S, Subscriptions, only_publisher, subscribe
from .transforms import LiveTransforms

try:
    from cognitive3d_msgs.msg import Annotation, Event, RecorderStatus
    from cognitive3d_msgs.srv import EndSession, StartSession

    NO_MESSAGES = ''
except ImportError as error:
    NO_MESSAGES = (
        f'cognitive3d_msgs cannot be imported ({error}): only ~/events_json is served; build it with '
        'colcon build --base-paths . interfaces'
    )

_SUCCESS = TransitionCallbackReturn.SUCCESS
_FAILURE = TransitionCallbackReturn.FAILURE
_ERROR = TransitionCallbackReturn.ERROR

_INPUTS = QoSProfile(depth=100)  # reliable
_LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
_TICK_S = 1.0
_ANY_JUMP = JumpThreshold(
    min_forward=Duration(nanoseconds=1), min_backward=Duration(nanoseconds=-1)
)


class RecorderNode(LifecycleNode):  # type: ignore[misc] # rclpy has no types
    """The node ``cognitive3d``.

    ``exit_code`` is set when the process is to end by itself: ``autostart`` failed. Where there are
    ``lost_entries``, it fails too, however it ends.
    """

    def __init__(self, stopping: Callable[[], bool] = lambda: False) -> None:
        """Make the node; where ``stopping`` says so, ``autostart`` begins with nothing more."""
        super().__init__('cognitive3d')
        self._stopping = stopping
        self.log = NodeLog(self.get_logger())
        self.exit_code: int | None = None
        self.lost_entries = 0  # which the disk refused until the spool was given up
        self._failure_code = EXIT_FAILED
        self._engine: Engine | None = None
        self._transforms: LiveTransforms | None = None
        self._inputs: Subscriptions | None = None
        self._jumps: Any = None  # the callback for jumps of the ROS clock
        self._active = False
        self._at_rest = 'unconfigured'  # the state while there is no engine
        self._variables = ''  # as published
        self._answer_invalid_transitions()
        declare(self)
        self.add_on_set_parameters_callback(self._on_set_parameters)

        # Made once and kept: rclpy's events executor never forgets a timer that was destroyed.
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._timer = self.create_timer(_TICK_S, self._tick, clock=steady)
        self._scan_timer = self.create_timer(SCAN_S, self._scan, clock=steady)
        self._diagnostics = self.create_publisher(DiagnosticArray, '/diagnostics', 10)
        self._remote_variables = self.create_publisher(String, '~/remote_variables', _LATCHED)
        self._subscribe(String, '~/events_json', self._on_event_json, 'events')
        self._status = None
        if NO_MESSAGES:
            self.log.error(NO_MESSAGES)
        else:
            self._status = self.create_publisher(RecorderStatus, '~/status', _LATCHED)
            self._subscribe(Event, '~/events', self._on_event, 'events')
            self._subscribe(Annotation, '~/annotations', self._on_annotation, 'annotations')
            self.create_service(StartSession, '~/start_session', self._on_start_session)
            self.create_service(EndSession, '~/end_session', self._on_end_session)
        if given(self).get('autostart', True) is not False:
            self._autostart_timer = self.create_timer(0.001, self._autostart, clock=steady)

    def _subscribe(self, kind: Any, topic: str, take: Callable[[Any], None], source: str) -> None:
        """Subscribe to a topic of our own, as an input of the ledger."""

        def lost(n: int) -> None:
            if self._engine is not None:
                self._engine.ledger.lost(source, n)

        publisher = functools.partial(only_publisher, self, self.resolve_topic_name(topic))
        subscribe(self, kind, topic, Arrivals(take, lost, publisher), _INPUTS)

    # Transitions

    def _answer_invalid_transitions(self) -> None:
        """Answer the caller of an invalid transition; up to Jazzy rclpy raises instead, out of the executor."""
        service = self._service_change_state
        change: Callable[[Any, Any], Any] = service.callback

        def answer(request: Any, response: Any) -> Any:
            try:
                return change(request, response)
            except RuntimeError as error:
                self.log.error(f'a transition that is not possible now was asked for: {error}')
                response.success = False
                return response

        service.callback = answer

    def _autostart(self) -> None:
        """Configure and activate; the process ends where that fails."""
        self._autostart_timer.cancel()
        try:
            for begin in (self.trigger_configure, self.trigger_activate):
                if self._stopping():
                    return
                if begin() != _SUCCESS:
                    self.exit_code = self._failure_code
                    return
        except RuntimeError as error:  # somebody else was faster
            self.log.error(f'autostart failed: {error}')
            self.exit_code = self._failure_code

    def _transition(
        self, name: str, work: Callable[[], None], failed: TransitionCallbackReturn
    ) -> TransitionCallbackReturn:
        """Run the work of a transition. rclpy swallows exceptions and gets stuck on None."""
        try:
            work()
        except Cognitive3dError as error:
            self._failure_code = (
                EXIT_PARAMETERS if isinstance(error, ParameterError) else EXIT_FAILED
            )
            self.log.error(f'{name} failed: {error}')
            return failed
        except Exception as error:  # noqa: BLE001 - whatever it is, it must be said here or never
            self._failure_code = EXIT_FAILED
            self.log.error(f'{name} failed: {error!r}')
            return failed
        return _SUCCESS

    def on_configure(self, _state: LifecycleState) -> TransitionCallbackReturn:
        """Check the parameters, open the spool, close what never ended, begin to deliver."""
        outcome = self._transition('configure', self._configure, _FAILURE)
        if outcome != _SUCCESS:
            self.release()
        return outcome

    def on_activate(self, _state: LifecycleState) -> TransitionCallbackReturn:
        """Start a session where ``auto_start_session`` asks for it."""
        return self._transition('activate', self._activate, _FAILURE)

    def on_deactivate(self, _state: LifecycleState) -> TransitionCallbackReturn:
        """End the session."""
        return self._transition('deactivate', lambda: self._end('deactivate'), _ERROR)

    def on_cleanup(self, _state: LifecycleState) -> TransitionCallbackReturn:
        """Release everything that configure made."""
        return self._transition('cleanup', self._release, _ERROR)

    def on_shutdown(self, _state: LifecycleState) -> TransitionCallbackReturn:
        """End the session, deliver for a moment, and release everything."""
        self._at_rest = 'finalized'
        return self._transition('shutdown', self._release, _ERROR)

    def on_error(self, _state: LifecycleState) -> TransitionCallbackReturn:
        """End the session and release everything: the node is unconfigured again."""
        self._transition('error processing', lambda: self._end('error'), _ERROR)
        return self._transition('error processing', self._release, _FAILURE)

    def _configure(self) -> None:
        declare(self)
        config = parameters.parse(given(self))
        for text in parameters.warnings(config):
            self.log.warning(text)
        self._transforms = LiveTransforms(self, self.log)
        host = host_of(
            self.get_namespace(), self.get_name(), rclpy.get_rmw_implementation_identifier()
        )
        self._engine = Engine(
            config,
            clocks=LiveClocks(self.get_clock()),
            transforms=self._transforms,
            host=host,
            log=self.log,
            resolve=self.resolve_topic_name,
        )
        self._inputs = Subscriptions(self, self._engine.inputs, self._engine.ledger, self.log)
        if config.use_sim_time:
            self._jumps = self.get_clock().create_jump_callback(
                _ANY_JUMP, post_callback=self._on_clock
            )

    def _activate(self) -> None:
        self._running().activate()
        self._active = True

    def _end(self, reason: str) -> None:
        self._active = False
        if self._engine is not None:
            self._engine.deactivate(reason)

    def end_durably(self) -> bool:
        """End the session on disk, without any use of ROS: the process is about to end.

        Returns:
            Whether all that was recorded is on the disk.
        """
        self.log.detach()
        self._transition('the end of the session', lambda: self._end('shutdown'), _ERROR)
        return self._engine is None or self._engine.durable

    def release(self, delivery_s: float = DELIVERY_S) -> None:
        """Deliver for a moment, and release everything that configure made. Never raises."""
        self._transition('the release of resources', lambda: self._release(delivery_s), _ERROR)

    def _release(self, delivery_s: float = DELIVERY_S) -> None:
        self._active = False
        engine, self._engine = self._engine, None
        transforms, self._transforms = self._transforms, None
        subscriptions, self._inputs = self._inputs, None
        jumps, self._jumps = self._jumps, None
        if jumps is not None:
            jumps.unregister()
        if subscriptions is not None:
            subscriptions.close()
        if engine is not None:
            engine.close(delivery_s)
            self.lost_entries += engine.lost_entries
        if transforms is not None:
            transforms.close()

    def _running(self) -> Engine:
        if self._engine is None:
            raise SessionError('the node is not configured')
        return self._engine

    def _ready(self) -> Engine:
        """Return the engine where sessions may exist; raises SessionError where they may not."""
        engine = self._running()
        if not self._active:
            raise SessionError('the node is not active: sessions exist in the active state only')
        return engine

    def _on_set_parameters(self, changed: list[Parameter]) -> SetParametersResult:
        if self._engine is None:
            return SetParametersResult(successful=True)
        names = ', '.join(parameter.name for parameter in changed)
        return SetParametersResult(successful=False, reason=f'{names}: takes effect after cleanup')

    def _on_clock(self, jump: TimeJump) -> None:
        """Follow /clock; called for each of its messages, before anything else sees the new time."""
        if self._engine is not None:
            if jump.delta.nanoseconds < 0:
                self._engine.recorder.clock_jumped()
            self._engine.ros_time_moved()

    # Services and topics

    def _on_start_session(self, request: Any, response: Any) -> Any:
        return self._answer(
            response,
            lambda: self._ready().start_session(
                request.name, request.participant_id, request.properties_json
            ),
        )

    def _on_end_session(self, request: Any, response: Any) -> Any:
        return self._answer(
            response, lambda: self._ready().end_session(request.reason or 'serviceCall')
        )

    def _answer(self, response: Any, work: Callable[[], str]) -> Any:
        try:
            response.session_id, response.success = work(), True
        except Cognitive3dError as error:
            response.message = str(error)
        except Exception as error:  # noqa: BLE001 - a caller waits for an answer
            response.message = f'the recorder has a fault: {error!r}'
            self.log.error(response.message)
        return response

    def _on_event(self, message: Any) -> None:
        if self._engine is not None:
            stamp = message.header.stamp
            self._engine.recorder.event(
                message.name, message.properties_json, stamp.sec * 1_000_000_000 + stamp.nanosec
            )

    def _on_annotation(self, message: Any) -> None:
        if self._engine is not None:
            stamp_ns = message.time.sec * 1_000_000_000 + message.time.nanosec
            self._engine.recorder.annotation(
                message.stream_name, message.key, message.value, stamp_ns
            )

    def _on_event_json(self, message: String) -> None:
        if self._engine is not None:
            self._engine.recorder.event_json(message.data)

    def _scan(self) -> None:
        if self._inputs is not None:
            self._inputs.scan()

    def _tick(self) -> None:
        """Publish the status and the diagnostics."""
        engine = self._engine
        state = self._at_rest
        if engine is not None:
            state = engine.state() if self._active else 'inactive'
        stamp = self.get_clock().now().to_msg()
        if self._status is not None:
            self._status.publish(status.message(RecorderStatus(), stamp, state, engine))
        if engine is not None:
            array = status.diagnostics(stamp, self.get_name(), state, engine)
            self._diagnostics.publish(array)
            if engine.variables != self._variables:
                self._variables = engine.variables
                self._remote_variables.publish(String(data=engine.variables))
