"""A short form of the kill campaign; ``python test/campaign.py`` is the long one."""

import time

import pytest

pytest.importorskip('rclpy', reason='needs ROS')
pytest.importorskip('cognitive3d_msgs')

import campaign

pytestmark = [pytest.mark.ros, pytest.mark.slow, pytest.mark.alone, pytest.mark.timeout(900)]


@pytest.mark.rule(9, 77)
def test_nothing_is_missing_after_kill_9(tmp_path):
    seed = time.time_ns() % 10**6
    print(f'seed {seed}')
    outcome = campaign.run(tmp_path, rounds=6, seed=seed, limit_s=45, slack_s=1.0)
    print(outcome)
    assert outcome.problems == []
    assert len(outcome.rounds) >= 3
    assert outcome.sessions
    assert outcome.records['event']
