# SPDX-License-Identifier: MIT
"""The seed of a soak decides everything that strikes it."""

from load import jobs_of
from nemesis import KINDS, schedule

TEN_MINUTES = 600


def test_the_same_seed_gives_the_same_faults_and_jobs():
    assert schedule(7, TEN_MINUTES) == schedule(7, TEN_MINUTES)
    assert jobs_of(7, 500, TEN_MINUTES) == jobs_of(7, 500, TEN_MINUTES)


def test_another_seed_gives_others():
    assert schedule(7, TEN_MINUTES) != schedule(8, TEN_MINUTES)
    assert jobs_of(7, 500, TEN_MINUTES) != jobs_of(8, 500, TEN_MINUTES)


def test_two_to_four_faults_strike_a_minute():
    for seed in range(50):
        faults = schedule(seed, TEN_MINUTES)
        pauses = [later.at_s - one.at_s for one, later in zip(faults, faults[1:])]
        assert 14.9 <= min(pauses) and max(pauses) < 60, pauses
        assert 18 <= len(faults) <= 40
        for fault in faults:
            kind = KINDS[fault.kind]
            assert fault.target in kind.targets
            assert kind.shortest_s - 0.1 <= fault.for_s <= kind.longest_s + 0.1
            assert fault.at_s + fault.for_s < TEN_MINUTES


def test_each_kind_has_its_turn():
    longer = schedule(1, 3 * TEN_MINUTES)
    assert {fault.kind for fault in longer} == set(KINDS)
