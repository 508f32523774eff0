"""The drain on a virtual clock: what is sent, when, in what order, and what is said of it."""

import random
import re
import threading
import time
from collections import Counter, defaultdict
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from upload_rig import GATEWAY, KEY, OK, SCENE, MemorySpool, Rig, make_part

from cognitive3d_ros.alarm import Alarm
from cognitive3d_ros.counters import Count, Ledger, UploadBlocked
from cognitive3d_ros.errors import FormatError, SpoolError
from cognitive3d_ros.upload.exchange import Fault, Response, TransportFault
from cognitive3d_ros.upload.keys import NoKey
from cognitive3d_ros.upload.uploader import (
    LIVE_IN_A_ROW,
    Activity,
    KeyDoor,
    Phase,
    Uploader,
    part_request,
)

OLD, NEW = '1767225600_rover', '1767229200_rover'
NO_NETWORK = TransportFault(Fault.UNREACHABLE, 'gateway.example: Network is unreachable')


def status(code, **headers):
    return Response(code, {name.replace('_', '-'): value for name, value in headers.items()})


def where(request):
    """Return (session, stream, number) of a request."""
    session, stream, number = request.headers['Idempotency-Key'].split('/')
    return session, stream, int(number)


def script(*answers):
    """Answer by a list, its last entry for ever."""
    left = list(answers)
    return lambda request: left.pop(0) if len(left) > 1 else left[0]


# --- the request ------------------------------------------------------------------------------------


def test_the_request_of_a_part():
    part = make_part(OLD, 'gaze', 12, 'pose', body=b'{"data":[]}')
    request = part_request('https://data.cognitive3d.com', part, 'abc')
    assert request.method == 'POST'
    assert request.url == f'https://data.cognitive3d.com/v0/gaze/{SCENE}?version=3'
    assert dict(request.headers) == {
        'Authorization': 'APIKEY:DATA abc',
        'Content-Type': 'application/json',
        'Idempotency-Key': '1767225600_rover/gaze/12',
        'User-Agent': 'cognitive3d_ros/1.0.0',
    }
    assert request.body == b'{"data":[]}'
    assert 'abc' not in repr(request)


def test_a_camera_part_is_sent_to_the_scene_it_was_recorded_for():
    part = make_part(OLD, 'camera', 1, 'camera', scene='a/../b?c', version=11, body=b'\0\1')
    request = part_request('http://127.0.0.1:8765/', part, None)
    assert request.url == 'http://127.0.0.1:8765/v0/camera/a%2F..%2Fb%3Fc?version=11'
    assert request.headers['Content-Type'] == 'application/octet-stream'
    assert 'Authorization' not in request.headers


def test_a_part_that_cannot_stand_in_a_header_is_put_aside():
    rig = Rig()
    rig.spool.put('1767225600_röver')
    rig.spool.put(OLD, 'events')
    rig.run(1)
    assert [ref.session_id for ref, _ in rig.spool.quarantined] == ['1767225600_röver']
    assert rig.done == [(OLD, 'events', 1)]


# --- rows of the contract ---------------------------------------------------------------------------


def test_a_delivered_part_is_deleted_and_the_next_one_follows_at_once():
    rig = Rig()
    rig.spool.fill(OLD, 'gaze', range(1, 6))
    rig.run(0.5)
    assert rig.done == [(OLD, 'gaze', n) for n in range(1, 6)]
    assert not rig.spool.parts
    assert rig.ledger.value(Count.PARTS_UPLOADED) == 5
    assert rig.ledger.value(Count.UPLOAD_FAILURES) == 0
    assert (rig.uploader.state, rig.uploader.last_error) == (UploadBlocked.DRAINING, '')
    assert rig.log.lines == []


@pytest.mark.parametrize(
    ('answer', 'blocked'),
    [
        (NO_NETWORK, UploadBlocked.NETWORK),
        (TransportFault(Fault.TIMEOUT, 'x'), UploadBlocked.NETWORK),
        (TransportFault(Fault.CERTIFICATE_DATE, 'x'), UploadBlocked.NETWORK),
        (TransportFault(Fault.CERTIFICATE, 'x'), UploadBlocked.NETWORK),
        (Response(200, {}, b'<html>'), UploadBlocked.NETWORK),
        (Response(204), UploadBlocked.NETWORK),
        (status(302, location='http://login.hotel/'), UploadBlocked.NETWORK),
        (status(307, cvr_request_time='1'), UploadBlocked.NETWORK),
        (status(511), UploadBlocked.NETWORK),
        (status(408), UploadBlocked.NETWORK),
        (status(500), UploadBlocked.NETWORK),
        (status(502), UploadBlocked.NETWORK),
        (status(429), UploadBlocked.THROTTLED),
        (status(503), UploadBlocked.THROTTLED),
        (status(500, retry_after='7'), UploadBlocked.THROTTLED),
    ],
)
def test_what_is_sent_again_with_the_same_bytes_until_it_is_delivered(answer, blocked):
    rig = Rig(script(answer, answer, answer, OK))
    rig.spool.fill(OLD, 'gaze', (1, 2))
    rig.steps(3)
    assert rig.uploader.state is blocked
    assert rig.spool.done == []
    assert rig.spool.quarantined == []
    rig.run(600)
    assert rig.done == [(OLD, 'gaze', 1), (OLD, 'gaze', 2)]
    assert len({(r.url, r.body, tuple(r.headers.items())) for _, r in rig.sent[:4]}) == 1
    times = [at for at, _ in rig.sent[:4]]
    assert all(later - earlier >= 1 for earlier, later in pairwise(times))
    assert rig.ledger.value(Count.UPLOAD_FAILURES) == 3
    assert rig.uploader.state is UploadBlocked.DRAINING
    assert [level for level, _ in rig.log.lines] == ['warning', 'info']


@pytest.mark.parametrize('code', [400, 409, 413, 415, 422])
def test_a_bad_part_is_put_aside_and_the_queue_goes_on(code):
    rig = Rig(script(Response(code, {}, b'no such field'), OK))
    rig.spool.fill(OLD, 'gaze', (1, 2, 3))
    rig.run(0.5)
    assert rig.done == [(OLD, 'gaze', 2), (OLD, 'gaze', 3)]
    assert [(ref.number, reason) for ref, reason in rig.spool.quarantined] == [
        (1, f'answer {code}: no such field')
    ]
    assert rig.ledger.value(Count.PARTS_QUARANTINED) == 1
    assert 'part 1 of gaze' in rig.uploader.last_error


@pytest.mark.parametrize('code', [401, 403])
def test_a_refused_key_keeps_all_parts_and_asks_once_a_minute_with_one_part(code):
    rig = Rig(script(status(code)))
    for stream in ('gaze', 'events', 'sensors', 'dynamics'):
        rig.spool.fill(OLD, stream, range(1, 51))
    rig.run(3600)
    assert rig.uploader.state is UploadBlocked.REFUSED
    assert len(rig.spool.parts) == 200
    assert 58 <= len(rig.sent) <= 61
    times = [at for at, _ in rig.sent]
    assert all(later - earlier >= 60 for earlier, later in pairwise(times))
    assert [level for level, _ in rig.log.lines] == ['error']
    rig.answer = lambda request: OK
    rig.run(61)
    assert len(rig.spool.done) == 200
    assert [level for level, _ in rig.log.lines] == ['error', 'info']


def test_a_new_key_is_read_at_the_next_try_and_opens_the_door():
    key = 'old-key'
    rig = Rig(key=lambda: key)

    def answer(request):
        return OK if request.headers['Authorization'] == 'APIKEY:DATA new-key' else status(401)

    rig.answer = answer
    rig.spool.fill(OLD, 'gaze', range(1, 101))
    rig.run(30)
    assert len(rig.sent) == 1
    key = 'new-key'
    rig.run(61)
    assert rig.done == [(OLD, 'gaze', n) for n in range(1, 101)]
    assert len(rig.sent) == 101
    assert rig.uploader.state is UploadBlocked.DRAINING


@pytest.mark.parametrize('code', [404, 410, 405])
def test_an_unknown_scene_shuts_that_door_alone(code):
    def answer(request):
        return status(code) if '/sensors/old-scene?version=1' in request.url else OK

    rig = Rig(answer)
    rig.spool.fill(OLD, 'sensors', range(1, 51), scene='old-scene', version=1)
    rig.spool.fill(OLD, 'gaze', range(1, 51), scene='old-scene', version=1)
    rig.spool.fill(NEW, 'sensors', range(1, 51), scene='old-scene', version=2)
    rig.run(3600)
    assert Counter((s, stream) for s, stream, _ in rig.done) == {
        (OLD, 'gaze'): 50,
        (NEW, 'sensors'): 50,
    }
    probes = [at for at, r in rig.sent if 'version=1' in r.url and '/sensors/' in r.url]
    assert 58 <= len(probes) <= 61
    assert all(later - earlier >= 60 for earlier, later in pairwise(probes))
    assert rig.uploader.state is UploadBlocked.REFUSED
    assert 'sensors of scene old-scene version 1' in rig.uploader.last_error
    assert [level for level, _ in rig.log.lines] == ['error']
    rig.answer = lambda request: OK
    rig.run(61)
    assert not rig.spool.parts
    assert rig.uploader.state is UploadBlocked.DRAINING


def test_two_sessions_of_one_scene_share_a_door():
    rig = Rig(script(status(404)))
    for second in range(20):
        rig.spool.fill(f'{1767225600 + second}_rover', 'gaze', (1, 2))
    rig.run(600)
    assert len(rig.sent) <= 11


def test_a_probe_that_meets_an_outage_leaves_the_door_shut():
    rig = Rig(script(status(404), NO_NETWORK, OK))
    rig.spool.put(OLD, 'gaze')
    rig.run(59)
    assert len(rig.sent) == 1
    rig.run(2)
    assert len(rig.sent) == 2
    assert rig.uploader.state is UploadBlocked.NETWORK
    rig.run(57)
    assert len(rig.sent) == 2
    rig.run(3)
    assert rig.done == [(OLD, 'gaze', 1)]


def test_a_404_says_that_the_key_is_good_again():
    rig = Rig(script(status(401), status(404), OK))
    rig.spool.put(OLD, 'gaze')
    rig.spool.fill(OLD, 'events', range(1, 11))
    rig.run(62)
    assert len(rig.spool.done) == 10  # the other stream's, at once
    assert rig.uploader.state is UploadBlocked.REFUSED
    assert [text.split(': ')[1][:10] for _, text in rig.log.lines] == ['answer 401', 'gaze of sc']


def test_a_door_whose_parts_were_evicted_does_not_trouble_the_others():
    def answer(request):
        return status(404) if 'old-scene' in request.url else OK

    rig = Rig(answer)
    ref = rig.spool.put(OLD, 'gaze', scene='old-scene')
    rig.spool.put(NEW, 'gaze', 1)
    rig.run(10)
    assert rig.uploader.state is UploadBlocked.REFUSED
    del rig.spool.parts[ref]
    rig.run(110)
    rig.spool.put(NEW, 'gaze', 2)
    rig.run(2)
    assert rig.uploader.state is UploadBlocked.DRAINING


def test_doors_without_parts_behind_them_are_forgotten():
    rig = Rig(script(status(404)))
    rig.spool.put(OLD, 'gaze')
    rig.run(30)
    assert rig.uploader.state is UploadBlocked.REFUSED
    rig.spool.parts.clear()  # evicted
    rig.run(120)
    assert rig.uploader.state is UploadBlocked.DRAINING


def test_throttling_by_seconds_and_by_date_and_not_beyond_an_hour():
    rig = Rig(script(status(429, retry_after='90'), OK))
    rig.spool.put(OLD, 'gaze')
    rig.run(89)
    assert rig.uploader.state is UploadBlocked.THROTTLED
    assert len(rig.sent) == 1
    rig.run(2)
    assert len(rig.spool.done) == 1

    rig = Rig(script(status(503, retry_after='Thu, 01 Jan 2026 00:10:00 GMT'), OK))
    rig.spool.put(OLD, 'gaze')
    rig.run(599)
    assert len(rig.sent) == 1
    rig.run(2)
    assert len(rig.spool.done) == 1

    rig = Rig(script(status(503, retry_after='86400'), OK))
    rig.spool.put(OLD, 'gaze')
    rig.run(3599)
    assert len(rig.sent) == 1
    rig.run(2)
    assert len(rig.spool.done) == 1


def test_any_2xx_is_a_delivery_where_the_acknowledgement_is_not_required():
    rig = Rig(script(Response(201)), require_ack=False)
    rig.spool.put(OLD, 'gaze')
    rig.run(0.5)
    assert len(rig.spool.done) == 1


# --- outages ----------------------------------------------------------------------------------------


@pytest.mark.parametrize('sessions', [1, 12])
def test_four_days_without_network_and_a_thousand_parts(sessions):
    days = 4 * 86400
    rig = Rig(lambda request: NO_NETWORK if rig.clock.now < 1000 + days else OK)
    for session in range(sessions):
        for stream in ('gaze', 'events', 'sensors'):
            name = f'{1767225600 + session}_rover'
            rig.spool.fill(name, stream, range(1, 1000 // (3 * sessions) + 1))
    parts = len(rig.spool.parts)
    rig.run(days)
    assert rig.spool.done == []
    assert len(rig.sent) == pytest.approx(days / 150, rel=0.1)  # the mean of 1 to 300 s
    times = [at for at, _ in rig.sent]
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert min(gaps) >= 1
    assert max(gaps) <= 300
    rig.run(310)
    assert len(rig.spool.done) == parts
    numbers = defaultdict(list)
    for session, stream, number in rig.done:
        numbers[session, stream].append(number)
    assert all(found == sorted(found) for found in numbers.values())
    assert [level for level, _ in rig.log.lines] == ['warning', 'info']


def test_an_outage_holds_nothing_back_once_it_is_over():
    rig = Rig(lambda request: NO_NETWORK if rig.clock.now < 1000 + 86400 else OK)
    for stream in ('gaze', 'events', 'sensors', 'dynamics', 'camera', 'lidar'):
        rig.spool.fill(OLD, stream, (1, 2))
    rig.run(86400)
    first = next(at for at, _ in rig.sent if at > 1000 + 86000)
    rig.run(300)
    first = min(at for at, _ in rig.sent if at >= 1000 + 86400)
    last = max(at for at, _ in rig.sent)
    assert len(rig.spool.done) == 12
    assert last - first <= 2  # each lane that failed waits once, its first and shortest time


def test_failures_far_between_stay_cheap():
    """A success begins anew: neither the gateway's waits nor a lane's grow over failures that passed."""
    rig = Rig()
    for number in range(1, 40):
        rig.answer = script(status(500), OK)
        rig.spool.put(OLD, 'gaze', number)
        rig.spool.put(OLD, 'events', number)
        rig.run(5)
        assert len(rig.spool.done) == 2 * number


def test_a_part_that_always_fails_costs_the_others_little():
    def answer(request):
        return status(500) if where(request) == (OLD, 'camera', 3) else OK

    rig = Rig(answer)
    rig.spool.fill(OLD, 'camera', range(1, 10))
    rig.spool.live = frozenset({NEW})
    for minute in range(60):
        rig.spool.fill(NEW, 'gaze', range(6 * minute + 1, 6 * minute + 7))
        rig.spool.fill(NEW, 'sensors', range(6 * minute + 1, 6 * minute + 7))
        rig.run(60)
    counts = Counter((session, stream) for session, stream, _ in rig.done)
    assert counts == {(OLD, 'camera'): 2, (NEW, 'gaze'): 360, (NEW, 'sensors'): 360}
    tries = [at for at, r in rig.sent if where(r) == (OLD, 'camera', 3)]
    assert 15 <= len(tries) <= 40  # an hour at 150 s each, and the shorter ones before
    gaps = [later - earlier for earlier, later in pairwise(tries)]
    assert min(gaps) >= 1
    assert max(gaps) <= 361


# --- order and shares -------------------------------------------------------------------------------


def test_the_live_sessions_poses_and_events_go_before_a_backlog_that_goes_on_too():
    rig = Rig()
    rig.spool.fill(OLD, 'camera', range(1, 101))
    rig.spool.live = frozenset({NEW})
    rig.spool.fill(NEW, 'gaze', range(1, 41))
    rig.spool.fill(NEW, 'events', range(1, 11))
    rig.spool.fill(NEW, 'camera', range(1, 11))
    rig.run(0.5)
    assert LIVE_IN_A_ROW <= 5  # or the backlog starves
    first = rig.done[: 50 + 50 // LIVE_IN_A_ROW]
    live = [one for one in first if one[0] == NEW]
    assert len(live) == 50
    for start in range(len(first) - LIVE_IN_A_ROW):
        assert any(one[0] == OLD for one in first[start : start + LIVE_IN_A_ROW + 1])
    rest = [one for one in rig.done if one[1] == 'camera']
    assert rest == [(OLD, 'camera', n) for n in range(1, 101)] + [
        (NEW, 'camera', n) for n in range(1, 11)
    ]


def test_what_is_live_waits_for_one_part_of_the_backlog_at_most():
    rig = Rig()
    rig.spool.fill(OLD, 'lidar', range(1, 1001))
    rig.spool.live = frozenset({NEW})
    for number in range(1, 101):
        rig.steps(3)
        rig.spool.put(NEW, 'gaze', number)
        rig.steps(2)
        assert (NEW, 'gaze', number) in rig.done[-2:]


def test_sessions_go_oldest_first_and_numbers_as_numbers():
    rig = Rig()
    rig.spool.fill('1767229200_a', 'gaze', (9, 10, 100, 11))
    rig.spool.fill('999999999_a', 'gaze', (2, 1))
    rig.run(0.5)
    assert rig.done == [
        ('999999999_a', 'gaze', 1),
        ('999999999_a', 'gaze', 2),
        *(('1767229200_a', 'gaze', n) for n in (9, 10, 11, 100)),
    ]


ANSWERS = [
    OK,
    OK,
    OK,
    NO_NETWORK,
    status(200),
    status(302),
    status(400),
    status(401),
    status(404),
    status(429, retry_after='30'),
    status(500),
    status(503),
]
RETRIED = [NO_NETWORK, status(200), status(302), *ANSWERS[-3:]]


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([OLD, NEW]),
            st.sampled_from(['gaze', 'events', 'camera']),
            st.integers(1, 30),
        ),
        unique=True,
        max_size=25,
    ),
    st.lists(st.sampled_from(range(len(ANSWERS))), max_size=60),
    st.integers(0, 10**6),
    st.booleans(),
)
def test_whatever_the_gateway_answers(parts, answers, seed, live):
    """Nothing is lost, doubled or out of order; all arrives in the end; no answer is met in haste."""
    rng = random.Random(seed)
    rig = Rig(uniform=rng.random)
    verdicts, log = {}, []
    left = list(answers)

    def answer(request):
        chosen = ANSWERS[left.pop()] if left else OK
        log.append(chosen)
        verdicts.setdefault(where(request), []).append(chosen)
        return chosen

    rig.answer = answer
    for session, stream, number in parts:
        rig.spool.put(session, stream, number)
    rig.spool.live = frozenset({NEW} if live else ())
    rig.run(len(answers) * 400 + 400)
    assert not rig.spool.parts
    quarantined = [(r.session_id, r.stream, r.number) for r, _ in rig.spool.quarantined]
    assert sorted(rig.done + quarantined) == sorted(parts)
    for part, given_answers in verdicts.items():
        *before, last = given_answers
        assert last is OK if part in rig.done else last.status == 400
        assert OK not in before
    for lane in {one[:2] for one in parts}:
        numbers = [
            n for *where_, n in map(where, (r for _, r in rig.sent)) if tuple(where_) == lane
        ]
        assert numbers == sorted(numbers)
    times = [at for at, _ in rig.sent]
    for (before, later), one in zip(pairwise(times), log, strict=False):
        if one in RETRIED:
            assert later - before >= 1
    assert rig.ledger.value(Count.UPLOAD_FAILURES) == len(rig.sent) - len(rig.done)


# --- supervision ------------------------------------------------------------------------------------


def test_a_part_that_cannot_be_read_now_holds_up_its_lane_alone():
    rig = Rig()
    bad = rig.spool.put(OLD, 'gaze', 1)
    rig.spool.put(OLD, 'gaze', 2)
    rig.spool.fill(OLD, 'events', range(1, 21))
    part = rig.spool.parts[bad]
    rig.spool.parts[bad] = SpoolError('gaze.000001.pose.c3d: Input/output error')
    rig.run(120)
    assert rig.done == [(OLD, 'events', n) for n in range(1, 21)]
    assert 'Input/output error' in rig.uploader.last_error
    assert rig.ledger.value(Count.UPLOAD_FAILURES) >= 3
    rig.spool.parts[bad] = part
    rig.run(300)
    assert rig.done[-2:] == [(OLD, 'gaze', 1), (OLD, 'gaze', 2)]


def test_a_transport_that_raises_is_one_more_failed_exchange():
    def answer(request):
        if where(request)[1] == 'gaze' and rig.clock.now < 1100:
            raise RuntimeError('a bug, with the headers: ' + request.headers['Authorization'])
        return OK

    rig = Rig(answer)
    rig.spool.fill(OLD, 'gaze', (1, 2))
    rig.spool.fill(OLD, 'events', range(1, 21))
    rig.run(50)
    assert rig.done == [(OLD, 'events', n) for n in range(1, 21)]
    assert 'a bug' in rig.uploader.last_error
    assert KEY not in str(rig.log.lines) + rig.uploader.last_error
    rig.run(300)
    assert len(rig.spool.done) == 22


def test_a_spool_that_cannot_be_listed_is_asked_again():
    rig = Rig()
    rig.spool.put(OLD)
    sessions, rig.spool.sessions = rig.spool.sessions, None
    rig.run(10)
    assert 'nothing can be chosen' in rig.uploader.last_error
    rig.spool.sessions = sessions
    rig.run(10)
    assert len(rig.spool.done) == 1


def test_parts_that_are_evicted_meanwhile_are_no_trouble():
    rig = Rig()
    rig.spool.fill(OLD, 'gaze', (1, 2))
    read = rig.spool.read

    def evicted(ref):
        if ref.number == 1:
            del rig.spool.parts[ref]
            raise SpoolError('gaze.000001.pose.c3d is not there any more')
        return read(ref)

    rig.spool.read = evicted
    rig.run(0.5)
    assert rig.done == [(OLD, 'gaze', 2)]
    assert rig.uploader.last_error == ''
    assert rig.ledger.value(Count.UPLOAD_FAILURES) == 0


def test_a_part_that_cannot_be_read_is_put_aside_by_the_spool_and_the_next_one_goes():
    rig = Rig()
    bad, _ = rig.spool.fill(OLD, 'gaze', (1, 2))
    rig.spool.parts[bad] = FormatError('damaged')
    rig.run(0.5)
    assert rig.done == [(OLD, 'gaze', 2)]
    assert rig.ledger.value(Count.PARTS_QUARANTINED) == 1
    assert rig.ledger.value(Count.UPLOAD_FAILURES) == 0
    assert 'damaged' in rig.uploader.last_error


# --- the key ----------------------------------------------------------------------------------------


def test_without_a_key_nothing_is_sent_until_there_is_one():
    key = NoKey(
        'there is none: set application_key_file, or C3D_APPLICATION_KEY in the environment'
    )
    rig = Rig(key=lambda: key)
    rig.spool.fill(OLD, 'gaze', (1, 2))
    rig.run(600)
    assert rig.sent == []
    assert rig.uploader.state is UploadBlocked.REFUSED
    assert 'C3D_APPLICATION_KEY' in rig.uploader.last_error
    assert [level for level, _ in rig.log.lines] == ['error']
    key = 'now-there-is'
    rig.run(61)
    assert len(rig.spool.done) == 2
    assert rig.uploader.state is UploadBlocked.DRAINING


def test_a_gateway_on_this_machine_is_tried_without_a_key():
    rig = Rig(key=lambda: NoKey('none'), gateway='http://127.0.0.1:8765')
    rig.spool.put(OLD)
    rig.run(1)
    assert len(rig.spool.done) == 1
    assert 'Authorization' not in rig.sent[0][1].headers


def test_a_gateway_on_this_machine_that_wants_a_key_gets_it_once_it_is_there():
    key = NoKey('none')
    rig = Rig(key=lambda: key, gateway='http://127.0.0.1:8765')
    rig.answer = lambda request: OK if 'Authorization' in request.headers else status(401)
    rig.spool.put(OLD)
    rig.run(600)
    assert rig.spool.done == []
    assert len(rig.sent) <= 11
    key = 'the-key'
    rig.run(61)
    assert len(rig.spool.done) == 1


@pytest.mark.parametrize('code', [200, 302, 400, 401, 404, 429, 500])
def test_the_key_is_in_no_text_even_when_the_gateway_says_it(code):
    def answer(request):
        echo = request.headers['Authorization']
        return Response(code, {'location': f'http://x/?{echo}'}, f'you said {echo}'.encode())

    rig = Rig(answer)
    rig.spool.put(OLD)
    rig.run(120)
    said = f'{rig.log.lines}{rig.uploader.last_error}{rig.spool.quarantined}{KeyDoor(KEY)}'
    assert KEY not in said
    assert rig.uploader.last_error
    if code in (302, 400, 401, 404, 429, 500):
        assert '<application key>' in said


# --- what goes on -----------------------------------------------------------------------------------


def test_what_goes_on_is_told_as_it_is():
    rig = Rig()
    said = lambda: str(rig.uploader.activity())  # noqa: E731
    assert said() == 'idle'
    rig.spool.fill(OLD, 'gaze', range(1, 9))
    assert said() == 'draining'
    rig.answer = lambda _: NO_NETWORK
    rig.steps(1)
    rig.uploader.step()
    assert re.fullmatch(r'waiting: .*Network is unreachable \(next try in [12] s\)', said())
    rig.answer = lambda _: status(401)
    rig.steps(1)
    rig.uploader.step()
    assert re.fullmatch(r'door shut: answer 401: .* \(next try in 60 s\)', said())
    rig.answer = lambda _: Response(400, {}, b'no')
    rig.steps(2)
    assert said() == f'refused: part 2 of gaze of session {OLD} is in quarantine: answer 400: no'
    assert rig.uploader.state is UploadBlocked.REFUSED
    rig.answer = lambda _: OK
    rig.steps(1)
    assert (said(), rig.uploader.state) == ('draining', UploadBlocked.DRAINING)
    rig.answer = lambda _: status(404)
    rig.steps(1)
    assert said().startswith(f'door shut: gaze of scene {SCENE} version 3: answer 404')
    rig.answer = lambda _: OK
    rig.run(120)
    assert said() == 'idle'


def test_a_refusal_is_told_until_something_is_delivered():
    rig = Rig(script(status(400)))
    rig.spool.fill(OLD, 'gaze', range(1, 9))
    rig.run(600)
    assert len(rig.spool.quarantined) == 8
    assert rig.uploader.activity().phase is Phase.REFUSED
    rig.answer = lambda _: OK
    rig.spool.put(OLD, 'gaze', 9)
    rig.run(1)
    assert rig.uploader.activity() == Activity(Phase.IDLE)


def test_a_part_that_cannot_be_sent_is_told_until_something_is_delivered():
    rig = Rig()
    ref = rig.spool.put(OLD)
    rig.spool.parts[ref] = SpoolError('it sticks')
    rig.run(1)
    assert 'it sticks' in rig.uploader.activity().reason
    assert rig.uploader.activity().phase is Phase.WAITING
    rig.spool.put(NEW)
    while not rig.spool.done:
        rig.clock.now += rig.uploader.step()
    assert rig.uploader.activity().good


@pytest.mark.parametrize('code', [400, 409, 413, 415, 422])
def test_a_page_of_a_proxy_is_no_refusal_of_a_gateway(code):
    page = Response(code, {'content-type': 'text/html; charset=utf-8'}, b'<html>nginx</html>')
    rig = Rig(script(page, page, OK))
    rig.spool.fill(OLD, 'gaze', (1, 2))
    rig.steps(1)
    assert rig.uploader.state is UploadBlocked.NETWORK
    assert f'answer {code} is a web page' in str(rig.uploader.activity())
    rig.run(600)
    assert (len(rig.spool.done), rig.spool.quarantined) == (2, [])


# --- what is said -----------------------------------------------------------------------------------


def test_one_line_for_each_change_of_state():
    answers = [NO_NETWORK] * 5 + [status(429)] * 5 + [status(401)] * 3 + [OK]
    rig = Rig(script(*answers))
    rig.spool.fill(OLD, 'gaze', (1, 2, 3))
    rig.run(86400)
    assert [level for level, _ in rig.log.lines] == ['warning', 'warning', 'error', 'info']
    assert all(text.startswith('uploads to gateway.example: ') for _, text in rig.log.lines)
    assert 'Network is unreachable' in rig.log.lines[0][1]


def test_a_flood_of_faults_is_no_flood_of_lines():
    rig = Rig()
    for number in range(1, 1001):
        ref = rig.spool.put(OLD, 'gaze', number)
        rig.spool.parts[ref] = SpoolError('no')
    rig.run(3600)
    assert len(rig.log.lines) <= 361


# --- threads ----------------------------------------------------------------------------------------


class Gate:
    """A transport that waits in its first request until it is told to answer."""

    def __init__(self):
        self.entered, self.answer, self.sent = threading.Event(), threading.Event(), 0

    def send(self, request):
        self.sent += 1
        self.entered.set()
        assert self.answer.wait(60)
        return OK


class WaitingSpool(MemorySpool):
    """The same, with a real wait."""

    def __init__(self):
        super().__init__(Ledger())
        self._alarm = Alarm()
        self.wait, self.wake = self._alarm.wait, self._alarm.ring


def real(transport, spool, **more):
    rig = Rig()
    return Uploader(
        gateway=GATEWAY,
        spool=spool,
        transport=transport,
        key=lambda: KEY,
        ledger=spool.ledger,
        log=rig.log,
        **more,
    )


def test_stop_leaves_a_request_without_an_answer_to_itself():
    spool, gate, interrupt = WaitingSpool(), Gate(), threading.Event()
    spool.fill(OLD, 'gaze', (1, 2))
    uploader = real(gate, spool, interrupt=interrupt)
    uploader.start()
    assert gate.entered.wait(10)
    assert uploader.stop(0.05) is False
    assert interrupt.is_set()
    gate.answer.set()
    uploader._thread.join(10)
    assert not uploader._thread.is_alive()
    assert spool.done == []  # the answer came too late: the part is kept for the next uploader
    assert len(spool.parts) == 2
    assert gate.sent == 1


def test_stop_delivers_what_is_there_and_ends_at_once():
    spool, gate = WaitingSpool(), Gate()
    gate.answer.set()
    uploader = real(gate, spool)
    uploader.start()
    spool.fill(OLD, 'gaze', range(1, 101))
    assert uploader.stop(30) is True
    assert len(spool.done) == 100


def test_stop_does_not_wait_for_an_outage():
    spool = WaitingSpool()
    rig = Rig(script(NO_NETWORK))
    uploader = real(rig, spool)
    spool.put(OLD)
    uploader.start()
    assert uploader.stop(30) is True
    assert len(spool.parts) == 1


def test_a_new_part_ends_the_idle_wait():
    spool, gate = WaitingSpool(), Gate()
    gate.answer.set()
    uploader = real(gate, spool)
    uploader.start()
    spool.put(OLD)
    spool.wake()
    assert gate.entered.wait(30)
    assert uploader.stop(30) is True
    assert len(spool.done) == 1


def test_drain_ends_in_time_whatever_a_request_does():
    spool, gate, interrupt = WaitingSpool(), Gate(), threading.Event()
    spool.fill(OLD, 'gaze', (1, 2))
    uploader = real(gate, spool, interrupt=interrupt)
    started_s = time.monotonic()
    assert uploader.drain(0.1) is False
    assert time.monotonic() - started_s < 10  # the gate alone takes a minute
    assert interrupt.is_set()
    assert uploader.last_error == '0.1 s are over: gateway.example had not answered yet'
    gate.answer.set()
    uploader._thread.join(10)
    assert (spool.done, len(spool.parts), gate.sent) == ([], 2, 1)


def test_drain_in_one_go():
    spool, gate = WaitingSpool(), Gate()
    gate.answer.set()
    spool.fill(OLD, 'gaze', range(1, 11))
    assert real(gate, spool).drain(30) is True
    assert len(spool.done) == 10
    spool.put(NEW)
    assert real(Rig(script(NO_NETWORK)), spool).drain(0.05) is False
    assert len(spool.parts) == 1


def test_stop_before_start():
    assert real(Gate(), WaitingSpool()).stop(1) is True
