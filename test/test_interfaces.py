"""The messages and services are those that other programs were promised."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.ros
messages = pytest.importorskip('cognitive3d_msgs.msg')
services = pytest.importorskip('cognitive3d_msgs.srv')

MESSAGES = {
    'Event': {'header': 'std_msgs/Header', 'name': 'string', 'properties_json': 'string'},
    'Annotation': {
        'time': 'builtin_interfaces/Time',
        'stream_name': 'string',
        'key': 'string',
        'value': 'string',
    },
    'RecorderStatus': {
        'header': 'std_msgs/Header',
        'state': 'string',
        'session_id': 'string',
        'session_seconds': 'double',
        'pose_samples': 'uint64',
        'events': 'uint64',
        'dropped_records': 'uint64',
        'spool_bytes': 'uint64',
        'spool_parts': 'uint32',
        'spool_oldest_seconds': 'double',
        'upload_state': 'string',
        'last_error': 'string',
    },
}
ANSWER = {'success': 'boolean', 'session_id': 'string', 'message': 'string'}
SERVICES = {
    'StartSession': {'name': 'string', 'participant_id': 'string', 'properties_json': 'string'},
    'EndSession': {'reason': 'string'},
}


@pytest.mark.parametrize('name', MESSAGES)
def test_message(name: str) -> None:
    assert getattr(messages, name).get_fields_and_field_types() == MESSAGES[name]


@pytest.mark.parametrize('name', SERVICES)
def test_service(name: str) -> None:
    service = getattr(services, name)
    assert service.Request.get_fields_and_field_types() == SERVICES[name]
    assert service.Response.get_fields_and_field_types() == ANSWER
