"""The recorder node in a process of its own, and a peer that talks to it over real DDS on loopback."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import yaml

with warnings.catch_warnings():
    # What messages import on first use warns of modules that Python will drop.
    warnings.simplefilter('ignore', DeprecationWarning)
    import rosidl_generator_py  # noqa: F401

import rclpy
from builtin_interfaces.msg import Time as TimeMessage
from cognitive3d_msgs.msg import Event, RecorderStatus
from cognitive3d_msgs.srv import EndSession, StartSession
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import TransformStamped
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState, GetState
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import SetParameters
from rclpy.context import Context
from rclpy.event_handler import PublisherEventCallbacks
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.qos import DurabilityPolicy, QoSProfile
from recording_rig import Stored
from rosgraph_msgs.msg import Clock
from std_msgs.msg import String
from tf2_msgs.msg import TFMessage

REQUIRED = {
    'device_id': 'rover-07',
    'scene_id': '5b2a1f4e-0c9d-4e8a-9a53-0f6d1c2b3a4d',
    'scene_version': 3,
}
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
NODE = 'cognitive3d'
LIMIT_S = 40.0  # of waiting for anything: the machine may be busy with other things
MAIN = ('-m', 'cognitive3d_ros.node.main')


def until(condition, timeout_s=LIMIT_S, *, what=None):
    """Wait until ``condition()`` is true, and return what it returned."""
    end_s = time.monotonic() + timeout_s
    while not (result := condition()):
        if time.monotonic() > end_s:
            raise AssertionError(f'not within {timeout_s} s: {what or condition}')
        time.sleep(0.01)
    return result


def shared_memory(process):
    """Return the shared memory files of DDS that a process maps or holds open; by its folder in /proc."""
    found = set()
    with contextlib.suppress(OSError):  # it may end, or be another user's
        words = (process / 'maps').read_text().split()
        links = [str(fd.readlink()) for fd in (process / 'fd').iterdir()]
        found.update(each for each in (*words, *links) if each.startswith('/dev/shm/fast'))
    return found


class NodeProcess:
    """A recorder node under test. ``params`` are those of the node, dots written as in ROS."""

    def __init__(self, folder, *, arguments=(), command=MAIN, environment=None, **params):
        folder.mkdir(parents=True, exist_ok=True)
        self.spool = folder / 'spool'
        self.stored = Stored(self.spool)
        self.params = {
            **REQUIRED,
            'spool.dir': str(self.spool),
            'spool.min_free_bytes': 0,
            'spool.flush_s': 0.2,
            'upload.enabled': False,
            **params,
        }
        given = {name: value for name, value in self.params.items() if value is not None}
        file = folder / 'params.yaml'
        file.write_text(yaml.safe_dump({'/**': {'ros__parameters': given}}))
        self.log = folder / 'stderr.txt'
        self._shared = set()  # what DDS may leave behind where the process is cut off
        with self.log.open('a') as stderr:
            self.process = subprocess.Popen(
                [sys.executable, *command, '--ros-args', '--params-file', str(file), *arguments],
                stderr=stderr,
                stdout=stderr,
                env={**os.environ, **(environment or {})},
            )

    @property
    def text(self):
        return self.log.read_text()

    def reasons(self):
        """Return the Reason of each session's end, the oldest session first."""
        ends = [e for e in self.stored.events() if e['name'] == 'c3d.sessionEnd']
        return [event['properties']['Reason'] for event in ends]

    def journal(self):
        """Return the journals as they are now: what is durable of open sessions."""
        return b''.join(path.read_bytes() for path in self.spool.glob('sessions/*/journal'))

    def says(self, text, timeout_s=LIMIT_S):
        until(lambda: text in self.text, timeout_s, what=f'{text!r} in {self.log}')

    def send(self, number):
        self._note_shared_memory()
        self.process.send_signal(number)

    def _note_shared_memory(self):
        self._shared |= shared_memory(Path('/proc', str(self.process.pid)))

    def wait(self, timeout_s=LIMIT_S):
        """Return the exit code; nothing that looks like a crash may have been written."""
        code = self.process.wait(timeout_s)
        assert 'Traceback' not in self.text
        assert 'terminate called' not in self.text
        return code

    def stop(self, number=signal.SIGTERM):
        self.send(number)
        return self.wait()

    def kill(self):
        """Kill it with -9, at the wall time ``killed_ns``."""
        self._note_shared_memory()
        self.killed_ns = time.time_ns()
        self.process.kill()
        self.process.wait()

    def close(self):
        """Make sure that it is gone, and with it what DDS leaves behind where a process is cut off."""
        if self.process.poll() is None:
            self.kill()
        used = set().union(*map(shared_memory, Path('/proc').glob('[0-9]*')))
        for path in self._shared - used:
            Path(path).unlink(missing_ok=True)


class Peer:
    """The robot's side of the graph: a node that is spun by a thread of its own."""

    def __init__(self):
        self.context = Context()
        rclpy.init(context=self.context)
        self.node = rclpy.create_node('peer', context=self.context)
        self.executor = SingleThreadedExecutor(context=self.context)
        self.executor.add_node(self.node)
        self.statuses = []
        self.diagnostics = []
        self._publishers = {}
        self._clients = {}
        self._thread = threading.Thread(target=self._spin)
        self._thread.start()

    def _spin(self):
        try:
            while self.context.ok():
                self.executor.spin_once(timeout_sec=0.1)
        except ExternalShutdownException:
            pass

    def close(self):
        rclpy.shutdown(context=self.context)
        self._thread.join()
        self.executor.shutdown()
        self.node.destroy_node()

    def watch(self):
        """Collect ``statuses`` and ``diagnostics`` from now on."""
        add = self.statuses.append
        self.node.create_subscription(RecorderStatus, f'/{NODE}/status', add, LATCHED)
        self.node.create_subscription(DiagnosticArray, '/diagnostics', self.diagnostics.append, 10)

    def status(self, state, timeout_s=LIMIT_S):
        """Wait for a status with this state, from now on, and return it."""
        seen = len(self.statuses)
        return until(
            lambda: next((s for s in self.statuses[seen:] if s.state == state), None),
            timeout_s,
            what=f'status {state}',
        )

    # Services

    def call(self, kind, name, timeout_s=LIMIT_S, /, **fields):
        client = self._clients.get(name)
        if client is None:
            client = self._clients[name] = self.node.create_client(kind, f'/{NODE}/{name}')
        assert client.wait_for_service(timeout_s), f'there is no service {name}'
        done = threading.Event()
        future = client.call_async(kind.Request(**fields))
        future.add_done_callback(lambda _: done.set())
        assert done.wait(timeout_s), f'{name} did not answer'
        return future.result()

    def change(self, transition, timeout_s=LIMIT_S):
        """Ask for a lifecycle transition by its name, such as ``configure``; return its success."""
        ids = {
            'configure': Transition.TRANSITION_CONFIGURE,
            'activate': Transition.TRANSITION_ACTIVATE,
            'deactivate': Transition.TRANSITION_DEACTIVATE,
            'cleanup': Transition.TRANSITION_CLEANUP,
            'unconfigured_shutdown': Transition.TRANSITION_UNCONFIGURED_SHUTDOWN,
            'inactive_shutdown': Transition.TRANSITION_INACTIVE_SHUTDOWN,
            'active_shutdown': Transition.TRANSITION_ACTIVE_SHUTDOWN,
        }
        request = Transition(id=ids[transition])
        return self.call(ChangeState, 'change_state', timeout_s, transition=request).success

    def active(self):
        """Wait until the node is active."""
        until(lambda: self.state == 'active', what='active')

    @property
    def state(self):
        return self.call(GetState, 'get_state').current_state.label

    def start_session(self, **fields):
        return self.call(StartSession, 'start_session', **fields)

    def end_session(self, reason=''):
        return self.call(EndSession, 'end_session', reason=reason)

    # Topics

    def publisher(self, kind, topic, qos=10, *, matched=True):
        """Return a publisher, once the node has found it."""
        found = self._publishers.get(topic)
        if found is None:
            # rclpy's own answer to a subscription that does not fit is a deprecated call.
            events = PublisherEventCallbacks(use_default_callbacks=False)
            found = self._publishers[topic] = self.node.create_publisher(
                kind, topic, qos, event_callbacks=events
            )
        if matched:
            until(found.get_subscription_count, what=f'a subscription of {topic}')
        return found

    def forget(self, topic):
        """Return the publisher of a topic; the next :meth:`publisher` is another one beside it."""
        return self._publishers.pop(topic)

    def event(self, name, properties_json='', stamp_ns=0):
        message = Event(name=name, properties_json=properties_json)
        message.header.stamp = stamp(stamp_ns)
        self.publisher(Event, f'/{NODE}/events').publish(message)

    def event_json(self, text):
        self.publisher(String, f'/{NODE}/events_json').publish(String(data=text))

    def clock(self, time_ns):
        self.publisher(Clock, '/clock').publish(Clock(clock=stamp(time_ns)))

    def tf(self, x, stamp_ns, *, parent='map', child='base_link', topic='/tf'):
        message = TFMessage(transforms=[transform(x, stamp_ns, parent, child)])
        self.publisher(TFMessage, topic, 100).publish(message)

    def static_tf(self, x, *, parent='map', child='base_link', topic='/tf_static', matched=False):
        publisher = self.publisher(TFMessage, topic, LATCHED, matched=matched)
        publisher.publish(TFMessage(transforms=[transform(x, 0, parent, child)]))


def stamp(time_ns):
    """Return a time as a message."""
    return TimeMessage(sec=time_ns // 10**9, nanosec=time_ns % 10**9)


def transform(x, stamp_ns, parent, child):
    """Return a transform that moves along x and does not turn."""
    message = TransformStamped(child_frame_id=child)
    message.header.frame_id = parent
    message.header.stamp = stamp(stamp_ns)
    message.transform.translation.x = float(x)
    message.transform.rotation.w = 1.0
    return message


def set_parameter(peer, name, value):
    """Set one parameter of the node; return why it was refused, empty where it was not."""
    kinds = {
        bool: (ParameterType.PARAMETER_BOOL, 'bool_value'),
        int: (ParameterType.PARAMETER_INTEGER, 'integer_value'),
        float: (ParameterType.PARAMETER_DOUBLE, 'double_value'),
        str: (ParameterType.PARAMETER_STRING, 'string_value'),
        list: (ParameterType.PARAMETER_STRING_ARRAY, 'string_array_value'),
    }
    kind, field = kinds[type(value)]
    parameter = Parameter(name=name, value=ParameterValue(type=kind, **{field: value}))
    (result,) = peer.call(SetParameters, 'set_parameters', parameters=[parameter]).results
    return '' if result.successful else result.reason
