"""What a power cut costs is what was recorded since the last flush, and no more."""

import statistics

import power_cut


def test_a_power_cut_costs_one_flush_period_at_most():
    found = list(power_cut.losses())
    for kind in ('gaze', 'events'):
        lost_s = [each[kind] for each in found]
        print(
            f'{kind}: {len(lost_s)} power cuts, {statistics.median(lost_s):.3f} s lost at the median, '
            f'{max(lost_s):.3f} s at worst'
        )
        assert 0.5 < max(lost_s) < power_cut.FLUSH_S + 1e-4
