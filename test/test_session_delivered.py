"""The recorder's own sessions, read from the spool and from the gateway they were delivered to."""

import math

import pytest
import requests
from recording_rig import Rig

from cognitive3d_ros import open_session
from cognitive3d_ros.gateway.server import running_gateway
from cognitive3d_ros.session.records import Event, PoseSample
from cognitive3d_ros.session.verify import Kind, verify


@pytest.fixture
def rig(tmp_path):
    made = Rig(
        tmp_path / 'spool',
        robot_dynamic_object=True,
        robot_mesh='rover',
        session_comment='wet floor',
    )
    yield made
    made.close()


def drive(rig, seconds):
    """Drive a circle of 2 m radius at 1 m/s."""

    def place(t):
        return (2 * math.cos(t / 2), 2 * math.sin(t / 2))

    rig.robot(2.0)
    rig.recorder.start_session()
    rig.run(seconds, robot=place)
    rig.recorder.event('dock.reached', {'dock': 'A', 'ok': True})
    rig.run(1)


def deliver(spool, gateway):
    for ref in spool.parts():
        part = spool.read(ref)
        identity = part.header.identity
        answer = requests.post(
            f'{gateway.url}/v0/{ref.stream}/{identity.scene_id}?version={identity.scene_version}',
            data=part.body,
            headers={
                'Content-Type': part.header.content_type,
                'Idempotency-Key': f'{ref.session_id}/{ref.stream}/{ref.number}',
            },
            timeout=20,
        )
        assert answer.status_code == 200, answer.text


def test_what_is_read_from_the_gateway_is_what_was_in_the_spool(rig, tmp_path):
    drive(rig, 25)
    rig.recorder.end_session('test')
    local = open_session(tmp_path / 'spool')
    with running_gateway(tmp_path / 'store') as gateway:
        deliver(rig.spool, gateway)
    remote = open_session(tmp_path / 'store')
    assert verify(local) == []
    assert verify(remote) == []
    assert list(remote) == list(local)
    assert remote.properties == local.properties
    assert remote.dynamics.manifest == local.dynamics.manifest
    assert remote.parts == local.parts
    assert (remote.start, remote.end) == (local.start, local.end)
    assert remote.comment == 'wet floor'
    # A circle of 2 m at 1 m/s for 25 s, sampled at 10 Hz, then a second at rest.
    assert len(remote.poses) == pytest.approx(260, abs=2)
    steps = [math.dist(a.p, b.p) for a, b in zip(remote.poses, remote.poses[1:], strict=False)]
    assert sum(steps) == pytest.approx(25, abs=0.2)
    assert all(math.hypot(*pose.p) == pytest.approx(2, abs=1e-4) for pose in remote.poses)
    assert [e.name for e in remote.find(Event)] == [
        *('c3d.sessionStart', 'dock.reached', 'c3d.sessionEnd')
    ]
    assert remote.end_reason == 'test'
    assert remote.nearest(PoseSample, remote.start).time - remote.start < 0.2


def test_a_session_is_whole_so_far_at_any_moment_of_its_recording(rig, tmp_path):
    drive(rig, 12)
    rig.recorder.flush()
    session = open_session(tmp_path / 'spool')
    assert [finding.kind.value for finding in verify(session)] == ['no end']
    # The last half second still waits for tf.
    assert len(session.poses) == pytest.approx(127, abs=3)
    assert session.events[-1].name == 'dock.reached'
    assert session.properties['c3d.deviceid'] == 'rover-07'
    assert session.dynamics.manifest['rover-07'].mesh == 'rover'


@pytest.mark.rule(9)
def test_a_session_that_was_cut_reads_as_recovered_once_it_is(tmp_path):
    rig = Rig(tmp_path / 'spool')
    drive(rig, 12)
    rig.recorder.flush()
    before = open_session(tmp_path / 'spool')
    poses = len(before.poses)
    rig.close()
    rig = Rig(tmp_path / 'spool')
    (recovered,) = rig.recorder.recover()
    session = open_session(tmp_path / 'spool', recovered)
    assert session.recovered
    assert session.end_reason == 'abnormalEnd'
    assert len(session.poses) == poses
    (finding,) = verify(session)
    assert finding.kind is Kind.NOTE
    assert 'abnormalEnd' in finding.text
    rig.close()
