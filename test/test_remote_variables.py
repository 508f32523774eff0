"""Remote variables: typed, checked, and the last answer in the place of one that fails."""

import json
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from upload_rig import KEY

from cognitive3d_ros.spool.fs import Fs
from cognitive3d_ros.upload.exchange import Fault, Response, TransportFault
from cognitive3d_ros.upload.keys import NoKey
from cognitive3d_ros.upload.remote_variables import Origin, RemoteVariables, fetch, parse

ANSWER = {
    'abTests': [
        {
            'name': 'speed trial',
            'description': '',
            'remoteVariableName': 'max_speed_pct',
            'type': 'int',
            'valueInt': 80,
            'valueString': '',
            'valueBoolean': False,
        }
    ],
    'remoteConfigurations': [
        {'remoteVariableName': 'greet', 'type': 'boolean', 'valueBoolean': True},
        {'remoteVariableName': 'max_speed_pct', 'type': 'int', 'valueInt': 50},
        {'remoteVariableName': 'text', 'type': 'string', 'valueString': 'grüß\u0000'},
        {'remoteVariableName': 'gain', 'type': 'float', 'valueFloat': 2},
    ],
}
VALUES = {'max_speed_pct': 80, 'greet': True, 'text': 'grüß\0', 'gain': 2.0}
ACK = {'cvr-request-time': '1'}


def body(document=ANSWER):
    return json.dumps(document).encode()


def one(kind, **values):
    return body({'remoteConfigurations': [{'remoteVariableName': 'v', 'type': kind, **values}]})


# --- reading an answer ------------------------------------------------------------------------------


def test_the_first_of_a_name_is_taken_and_tests_come_first():
    values, problems = parse(body())
    assert values == VALUES
    assert [type(value) for value in values.values()] == [int, bool, str, float]
    assert problems == ()


def test_lists_that_are_missing_are_empty():
    assert parse(b'{}') == ({}, ())
    assert parse(b'{"abTests": []}') == ({}, ())


@pytest.mark.parametrize(
    ('kind', 'values', 'expected'),
    [
        ('int', {'valueInt': -(2**63)}, -(2**63)),
        ('int', {'valueInt': 80.0}, 80),
        ('float', {'valueFloat': 1.5}, 1.5),
        ('string', {'valueString': ''}, ''),
        ('boolean', {'valueBoolean': False}, False),
    ],
)
def test_values_that_are_taken(kind, values, expected):
    (value,) = parse(one(kind, **values))[0].values()
    assert value == expected
    assert type(value) is type(expected)


@pytest.mark.parametrize(
    ('kind', 'values'),
    [
        ('int', {}),
        ('int', {'valueInt': True}),
        ('int', {'valueInt': '80'}),
        ('int', {'valueInt': 1.5}),
        ('int', {'valueInt': 2**63}),
        ('int', {'valueInt': None}),
        ('int', {'valueInt': [1]}),
        ('int', {'valueString': 'x'}),
        ('float', {'valueFloat': '1.5'}),
        ('float', {'valueFloat': True}),
        ('float', {'valueFloat': 10**400}),
        ('boolean', {'valueBoolean': 1}),
        ('boolean', {'valueBoolean': 'true'}),
        ('string', {'valueString': 3}),
        ('string', {'valueString': '\ud800'}),
        ('text', {'valueText': 'x'}),
        ('', {}),
        (None, {}),
        (['int'], {'valueInt': 1}),
        ({'int': 1}, {'valueInt': 1}),
    ],
)
def test_values_that_are_not_what_they_say_are_left_out_and_named(kind, values):
    found, problems = parse(one(kind, **values))
    assert found == {}
    (problem,) = problems
    assert problem.startswith('remoteConfigurations[0]: v: ')


@pytest.mark.parametrize(
    'entry',
    [
        None,
        3,
        [],
        'x',
        {},
        {'remoteVariableName': 3},
        {'remoteVariableName': ''},
        {'remoteVariableName': 'a\nb'},
        {'remoteVariableName': '\ud800'},
        {'remoteVariableName': 'x' * 129},
    ],
)
def test_entries_without_a_usable_name_are_left_out_and_named(entry):
    good = {'remoteVariableName': 'v', 'type': 'int', 'valueInt': 1}
    if isinstance(entry, dict):
        entry = {'type': 'int', 'valueInt': 1} | entry
    found, problems = parse(body({'abTests': [entry, good]}))
    assert found == {'v': 1}
    (problem,) = problems
    assert problem.startswith('abTests[0]: ')


@pytest.mark.parametrize(
    'answer',
    [
        b'',
        b'<html>',
        b'[]',
        b'null',
        b'3',
        b'{"abTests": {}}',
        b'{"remoteConfigurations": null}',
        b'\xff{}',
        b'{"abTests": [NaN]}',
        b'{"abTests": [{"remoteVariableName": "v", "type": "float", "valueFloat": Infinity}]}',
        b'[' * 100_000,
        b'{"abTests": ' + b'[' * 100_000 + b']' * 100_000 + b'}',
        b'{"abTests": [' + b'9' * 10_000 + b']}',
        body()[:-1],
    ],
)
def test_what_is_no_answer_is_a_value_error(answer):
    with pytest.raises(ValueError):
        parse(answer)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ['abTests', 'remoteConfigurations', 'remoteVariableName', 'type', 'valueInt']
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()))
def test_no_answer_does_harm(answer):
    try:
        values, problems = parse(answer)
    except ValueError:
        return
    assert all(type(value) in (int, str, bool, float) for value in values.values())
    json.dumps(values, allow_nan=False).encode()
    assert all(isinstance(problem, str) for problem in problems)


# --- fetching ---------------------------------------------------------------------------------------


class Gateway:
    """A transport that gives one answer and keeps the request."""

    def __init__(self, answer):
        self.answer, self.request = answer, None

    def send(self, request):
        self.request = request
        return self.answer


def ask(folder, answer, **more):
    gateway = Gateway(answer)
    more = {'gateway': 'https://gateway.example', 'key': KEY, 'identifier': 'rover 07'} | more
    return gateway, fetch(gateway, spool_dir=folder, **more)


def test_an_answer_is_taken_and_kept(tmp_path):
    gateway, found = ask(tmp_path, Response(200, ACK, body()))
    assert found == RemoteVariables(VALUES, Origin.GATEWAY)
    request = gateway.request
    assert request.method == 'GET'
    assert request.url == 'https://gateway.example/v0/remotevariables?identifier=rover%2007'
    assert request.headers['Authorization'] == f'APIKEY:DATA {KEY}'
    assert (tmp_path / 'remote_variables.json').read_bytes() == body()
    assert [path.name for path in tmp_path.iterdir()] == ['remote_variables.json']


@pytest.mark.parametrize(
    'answer',
    [
        TransportFault(Fault.TIMEOUT, 'no progress for 3 s'),
        Response(200, {}, body({})),
        Response(200, ACK, b'<html>'),
        Response(302, {'location': 'http://login'}),
        Response(401),
        Response(404),
        Response(500, {}, f'you said {KEY}'.encode()),
    ],
)
def test_the_last_answer_stands_in(tmp_path, answer):
    _, nothing = ask(tmp_path, answer)
    assert nothing.values == {}
    assert nothing.origin is Origin.NOWHERE
    (problem,) = nothing.problems
    assert problem
    ask(tmp_path, Response(200, ACK, body()))
    _, found = ask(tmp_path, answer)
    assert found == RemoteVariables(VALUES, Origin.KEPT, (problem,))
    assert KEY not in str(found)


def test_without_a_key_nobody_is_asked_but_a_gateway_on_this_machine(tmp_path):
    answer = Response(200, ACK, body())
    gateway, found = ask(tmp_path, answer, key=NoKey('there is none'))
    assert gateway.request is None
    assert found.problems == ('no application key: there is none',)
    gateway, found = ask(tmp_path, answer, key=NoKey('x'), gateway='http://127.0.0.1:8765')
    assert 'Authorization' not in gateway.request.headers
    assert found.values == VALUES


def test_it_takes_no_longer_than_it_says(tmp_path):
    release = threading.Event()

    class Stuck:
        def send(self, request):
            release.wait(60)
            return Response(200, ACK, body())

    ask(tmp_path, Response(200, ACK, body()))
    found = fetch(
        Stuck(),
        gateway='https://gateway.example',
        key=KEY,
        identifier='rover',
        spool_dir=tmp_path,
        timeout_s=0.05,
    )
    release.set()
    assert found == RemoteVariables(VALUES, Origin.KEPT, ('no answer within 0.05 s',))


def test_a_kept_answer_that_is_damaged_is_named(tmp_path):
    (tmp_path / 'remote_variables.json').write_bytes(b'{"abTests"')
    _, found = ask(tmp_path, Response(500))
    assert found.origin is Origin.NOWHERE
    assert 'remote_variables.json' in found.problems[1]


def test_a_disk_that_refuses_costs_the_keeping_alone(tmp_path):
    class Full(Fs):
        def create(self, path):
            raise OSError(28, 'No space left on device')

    _, found = ask(tmp_path, Response(200, ACK, body()), fs=Full())
    assert found.values == VALUES
    assert found.origin is Origin.GATEWAY
    assert 'No space left' in found.problems[0]


def test_an_answer_of_the_wrong_kind_does_not_replace_the_kept_one(tmp_path):
    ask(tmp_path, Response(200, ACK, body()))
    ask(tmp_path, Response(200, ACK, b'[]'))
    assert (tmp_path / 'remote_variables.json').read_bytes() == body()
