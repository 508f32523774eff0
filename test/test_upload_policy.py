"""What an answer means, how long a wait is, when a door is tried: all by hand or against a small model."""

import random
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cognitive3d_ros.counters import UploadBlocked
from cognitive3d_ros.upload.exchange import Fault, Response, TransportFault
from cognitive3d_ros.upload.policy import (
    Backoff,
    BadPart,
    Delivered,
    Doors,
    Retry,
    Scope,
    Shut,
    classify,
    excerpt,
    retry_after_s,
)

ACK = {'cvr-request-time': '12'}
WALL = datetime(2026, 1, 1, 12, 0, 0, tzinfo=timezone.utc)
NETWORK, THROTTLED = UploadBlocked.NETWORK, UploadBlocked.THROTTLED


def judge(status, headers=None, body=b'', *, require_ack=True):
    return classify(
        Response(status, headers or {}, body), require_ack=require_ack, wall_s=WALL.timestamp()
    )


@pytest.mark.parametrize('status', [200, 201, 202, 204, 206, 299])
def test_a_2xx_is_a_delivery_only_with_the_acknowledgement(status):
    assert judge(status, ACK) == Delivered()
    assert isinstance(judge(status), Retry)
    assert judge(status).blocked is NETWORK
    assert judge(status, require_ack=False) == Delivered()


@pytest.mark.parametrize(
    ('headers', 'body'),
    [
        ({'content-type': 'text/html'}, b'<html>Welcome to Hotel WiFi</html>'),
        ({'content-type': 'application/json'}, b'{}'),
        ({}, b''),
    ],
)
def test_a_captive_portal_is_a_network_problem_and_not_a_delivery(headers, body):
    verdict = judge(200, headers, body)
    assert isinstance(verdict, Retry)
    assert verdict.blocked is NETWORK
    assert 'cvr-request-time' in verdict.reason
    assert '<html>' not in verdict.reason


@pytest.mark.parametrize('status', [300, 301, 302, 303, 304, 307, 308, 399, 511])
@pytest.mark.parametrize('headers', [{}, ACK, {'location': 'https://gateway.example/v0/gaze'}])
def test_redirects_and_511_are_network_problems_whatever_they_carry(status, headers):
    verdict = judge(status, headers, require_ack=False)
    assert isinstance(verdict, Retry)
    assert verdict.blocked is NETWORK
    assert verdict.not_before_s == 0


def test_a_redirect_is_named_with_its_target_on_one_line():
    reason = judge(302, {'location': 'http://login.hotel/\r\nX: y' + 'z' * 500}).reason
    assert 'http://login.hotel/ X: y' in reason
    assert reason.isprintable()
    assert len(reason) < 350


@pytest.mark.parametrize('status', [400, 409, 413, 415, 422])
def test_what_the_gateway_says_of_a_part_condemns_that_part(status):
    assert judge(status, ACK, b'{"error": "data[3].time is no number"}') == BadPart(
        f'answer {status}: {{"error": "data[3].time is no number"}}'
    )


PAGE = {'content-type': 'Text/HTML; charset=utf-8'}


@pytest.mark.parametrize('status', [400, 409, 413, 415, 422])
def test_a_web_page_condemns_no_part_unless_it_is_the_gateways(status):
    body = b'<html><center>nginx</center></html>'
    verdict = judge(status, PAGE, body)
    assert isinstance(verdict, Retry)
    assert verdict.blocked is NETWORK
    assert verdict.reason.startswith(f'answer {status} is a web page without the header')
    assert isinstance(judge(status, PAGE | ACK, body), BadPart)
    assert isinstance(judge(status, {'content-type': 'text/plain'}, body), BadPart)
    answer = Response(status, PAGE, body)
    assert isinstance(classify(answer, require_ack=False, wall_s=0), BadPart)


def test_doors():
    for status in (401, 403):
        verdict = judge(status)
        assert isinstance(verdict, Shut)
        assert verdict.scope is Scope.KEY
    for status in (402, 404, 405, 406, 407, 410, 411, 414, 421, 426, 431, 451, 499):
        verdict = judge(status)
        assert isinstance(verdict, Shut)
        assert verdict.scope is Scope.SCENE


@pytest.mark.parametrize(
    ('status', 'blocked'),
    [
        *((code, NETWORK) for code in (408, 500, 501, 502, 504, 505, 507, 599)),
        *((code, THROTTLED) for code in (429, 503)),
    ],
)
def test_what_is_retried_for_ever(status, blocked):
    verdict = judge(status)
    assert isinstance(verdict, Retry)
    assert verdict.blocked is blocked
    assert verdict.not_before_s == 0
    asked = judge(status, {'retry-after': '90'})
    assert isinstance(asked, Retry)
    assert asked.blocked is THROTTLED
    assert asked.not_before_s == 90


@pytest.mark.parametrize('fault', list(Fault))
def test_no_answer_is_a_network_problem(fault):
    assert classify(TransportFault(fault, 'why'), wall_s=0) == Retry(NETWORK, 'why')


@given(
    st.integers(0, 1000),
    st.dictionaries(
        st.sampled_from(['retry-after', 'date', 'location', 'cvr-request-time']), st.text()
    ),
    st.binary(max_size=2000),
)
def test_every_answer_has_a_verdict_and_a_reason_of_one_line(status, headers, body):
    verdict = judge(status, headers, body)
    if 'cvr-request-time' not in headers or not 200 <= status < 300:
        assert not isinstance(verdict, Delivered)
        assert verdict.reason.isprintable()
        assert len(verdict.reason) < 350
    if isinstance(verdict, BadPart):
        assert status in {400, 409, 413, 415, 422}


# --- Retry-After -------------------------------------------------------------------------------------


def after(text, *, date=None, wall=WALL):
    headers = {'retry-after': text} | ({'date': date} if date else {})
    return retry_after_s(headers, wall.timestamp())


@pytest.mark.parametrize(
    ('text', 'seconds'),
    [
        *(('0', 0), ('1', 1), (' 120 ', 120), ('3600', 3600), ('3601', 3600), ('9' * 400, 3600)),
        *((text, 0) for text in ('', '-5', '1.5', '1e3', 'soon', '٣', '0x10', '²')),
    ],
)
def test_retry_after_in_seconds(text, seconds):
    assert after(text) == seconds


@pytest.mark.parametrize(
    ('text', 'seconds'),
    [
        ('Thu, 01 Jan 2026 12:02:00 GMT', 120),
        ('Thursday, 01-Jan-26 12:02:00 GMT', 120),
        ('Thu Jan  1 12:02:00 2026', 120),
        ('Thu, 01 Jan 2026 11:00:00 GMT', 0),
        ('Fri, 02 Jan 2026 12:00:00 GMT', 3600),
        ('Thu, 99 Jan 2026 12:02:00 GMT', 0),
        ('Thu, 01 Jan 99999 12:02:00 GMT', 0),
    ],
)
def test_retry_after_as_a_date(text, seconds):
    assert after(text) == seconds


def test_a_date_is_measured_by_the_servers_clock_when_it_shows_it():
    nineteen_seventy = datetime(1970, 1, 1, tzinfo=timezone.utc)
    there = WALL + timedelta(seconds=45)
    date, until = format_datetime(WALL, usegmt=True), format_datetime(there, usegmt=True)
    assert after(until, date=date, wall=nineteen_seventy) == 45
    assert after(until, date='nonsense', wall=WALL) == 45
    assert after(until, wall=nineteen_seventy) == 3600  # the cap holds what the clock gets wrong


@given(st.text(), st.text(), st.floats(-1e12, 1e12))
def test_retry_after_is_never_more_than_an_hour_and_never_raises(text, date, wall_s):
    assert 0 <= retry_after_s({'retry-after': text, 'date': date}, wall_s) <= 3600


# --- texts from outside -----------------------------------------------------------------------------


def test_excerpts():
    assert excerpt(b'') == ''
    assert excerpt(b' \r\n <!DOCTYPE html><h1>') == ''
    assert excerpt(b'no\x00such\x1b[31mscene\r\nX') == ': no such [31mscene X'
    assert excerpt(b'\xff\xfe') == ': \ufffd\ufffd'
    assert len(excerpt(b'a' * 100_000)) < 200


# --- backoff ----------------------------------------------------------------------------------------


class Time:
    now = 50.0

    def __call__(self):
        return self.now


def test_waits_are_spread_evenly_from_one_second_to_a_bound_that_doubles():
    time, rng = Time(), random.Random(1)
    for failures, most_s in [(1, 2), (2, 4), (3, 8), (5, 32), (8, 256), (9, 300), (40, 300)]:
        waits = []
        for _ in range(4000):
            backoff = Backoff(rng.random, time)
            for _ in range(failures):
                backoff.failed()
            waits.append(backoff.wait_s())
        assert min(waits) >= 1
        assert max(waits) <= most_s
        # ten bins of a uniform distribution: 400 each, six standard deviations of 19 at most
        bins = [0] * 10
        for wait_s in waits:
            bins[min(int((wait_s - 1) / (most_s - 1) * 10), 9)] += 1
        assert all(abs(count - 400) < 6 * 19 for count in bins), (failures, bins)


def test_a_fleet_that_fails_together_does_not_come_back_together():
    rng = random.Random(2)
    returns = []
    for _ in range(1000):
        time = Time()
        backoff = Backoff(rng.random, time)
        for _ in range(12):
            backoff.failed()
            time.now += backoff.wait_s()
        returns.append(time.now)
    per_second = [0] * 5000
    for at in returns:
        per_second[int(at)] += 1
    assert max(per_second) < 20


def test_a_wait_ends_and_success_begins_anew():
    time = Time()
    backoff = Backoff(lambda: 1.0, time)
    assert backoff.wait_s() == 0
    backoff.failed()
    assert backoff.wait_s() == 2
    time.now += 1.5
    assert backoff.wait_s() == 0.5
    time.now += 60
    assert backoff.wait_s() == 0
    backoff.failed()
    assert backoff.wait_s() == 4
    backoff.succeeded()
    assert backoff.wait_s() == 0
    backoff.failed()
    assert backoff.wait_s() == 2


def test_a_wait_that_the_gateway_asked_for_is_a_lower_bound():
    time = Time()
    backoff = Backoff(lambda: 0.0, time)
    backoff.failed(90)
    assert backoff.wait_s() == 90
    backoff.failed(0)
    assert backoff.wait_s() == 1


# --- doors ------------------------------------------------------------------------------------------


@given(
    st.lists(
        st.tuples(
            st.sampled_from(['shut', 'open', 'pass', 'keep']),
            st.sampled_from('abc'),
            st.floats(0, 50),
        ),
        max_size=60,
    )
)
def test_doors_against_a_model(moves):
    time = Time()
    doors = Doors(time)
    passed: dict[str, float] = {}  # of shut doors: when a part last went there
    for move, door, seconds in moves:
        time.now += seconds
        if move == 'shut':
            assert doors.shut(door, door) is (door not in passed)
            passed[door] = time.now
        elif move == 'open':
            assert doors.open(door) is (passed.pop(door, None) is not None)
        elif move == 'keep':
            doors.keep({door})
            passed = {one: at for one, at in passed.items() if one == door}
        elif doors.wait_s(door) == 0:
            if door in passed:
                assert time.now - passed[door] >= 60 - 1e-9
                passed[door] = time.now
            doors.probing(door)
        for one in 'abc':
            assert doors.is_shut(one) is (one in passed)
            left = passed[one] + 60 - time.now if one in passed else 0
            assert doors.wait_s(one) == pytest.approx(max(left, 0))
        assert (doors.reason() is None) is (not passed)
