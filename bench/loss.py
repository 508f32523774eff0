"""What is lost at worst: at power cuts, of a disk in memory, and at kill -9, of a real node.

The longer form of the latter is ``python test/campaign.py``.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.table import Pair, Row

KILLS = 12
sys.path.insert(0, str(Path(__file__).parents[1] / 'test'))


def power_cuts() -> Iterator[Pair]:
    """Give the seconds of poses lost at each power cut."""
    import power_cut

    return ((lost['gaze'], 0.0) for lost in power_cut.losses())


def kills() -> Iterator[Pair]:
    """Give the seconds of poses lost at each kill -9."""
    os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'
    os.environ['ROS_DOMAIN_ID'] = str(1 + os.getpid() % 101)
    import campaign

    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        seed = random.randrange(10**6)
        found = campaign.run(Path(folder), rounds=KILLS, seed=seed, limit_s=300, slack_s=1.0)
    assert not found.problems, found
    return ((loss.lost_s, 0.0) for loss in found.losses['pose'])


def rows() -> list[Row]:
    """Return the rows of power cuts and kills; the spread shows the worst."""
    return [
        Row('loss: poses at a power cut, flush_s 1 s', '', 1.0, power_cuts),
        Row('loss: poses at kill -9 under full load, flush_s 1 s', '', 1.5, kills),
    ]
