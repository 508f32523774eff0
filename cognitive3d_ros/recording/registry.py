"""All inputs of a recorder, made of its configuration: what both doors subscribe to."""

from __future__ import annotations

from cognitive3d_ros.counters import Ledger
from cognitive3d_ros.log import Complaints
from cognitive3d_ros.parameters import Config
from cognitive3d_ros.recording.inputs import Input
from cognitive3d_ros.recording.recorder import Recorder
from cognitive3d_ros.recording.sensor_inputs import sensor_inputs
from cognitive3d_ros.recording.topic_inputs import ActionInput, DescribedInput, TopicInput


def inputs_of(
    config: Config, recorder: Recorder, ledger: Ledger, complaints: Complaints, *, node: str
) -> list[Input]:
    """Return the inputs that a configuration asks for; ``node`` is the name of the recorder's node.

    Its own diagnostics are not recorded, and those of the node that recorded a bag by its usual name neither.
    Raises ParameterError where a library is missing that one of them needs.
    """
    prefixes = (f'{node}: ', 'cognitive3d: ')

    def own(status: str, hardware_id: str) -> bool:
        return hardware_id == config.device_id and status.startswith(prefixes)

    return [
        *(TopicInput(each, recorder, ledger, complaints, own) for each in config.topics),
        *(DescribedInput(each, recorder, ledger, complaints) for each in config.sensors),
        *(ActionInput(each, recorder, ledger, complaints) for each in config.actions),
        *sensor_inputs(config, recorder),
    ]
