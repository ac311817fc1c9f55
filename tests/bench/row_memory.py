# SPDX-License-Identifier: MIT
"""memory: what a slot costs, idle and busy: proportional set sizes of worker and runner, of Celery's
processes, of BullMQ's process; without the commands themselves."""

import proc
from measure import Goal
from waiting import wait_until

SLOTS = {"sluice": (1, 8, 64, 256, 1000), "celery": (1, 8, 32), "bullmq": (1, 8, 256)}
QUICK = {"sluice": (1, 8, 64), "celery": (1, 8), "bullmq": (1, 8)}
GOAL_KIB = 256
SLEEP = ["/bin/sleep", "600"]


def pids_of(rig):
    if rig.name == "sluice":
        return [rig.worker.pid, *proc.named(rig.site.folder, "sluice-runner")]
    return rig.pids() if rig.name == "celery" else [rig.worker.pid]


def pss_mib(rig):
    return sum(proc.pss_kib(pid) for pid in pids_of(rig)) / 1024


def busy(rig, slots):
    """All slots hold a job that sleeps."""
    rig.site.audited = False  # they are killed at the end
    rig.load(SLEEP, connections=8, count=slots)
    wait_until(lambda: f"{slots} running jobs, {rig.site.sql('SELECT status, COUNT(*) FROM jobs GROUP BY 1')}",
               lambda: rig.database.one("SELECT COUNT(*) FROM jobs WHERE status = 'RUNNING'")
               == slots, 120, 0.2)
    return pss_mib(rig)


def one(bench, system, slots):
    """(idle, busy) in MiB; busy is None for peers."""
    with bench.rig(system, slots=slots) as rig:
        if system != "sluice":
            rig.warm_up(slots * 4)
            return pss_mib(rig), None
        return pss_mib(rig), busy(rig, slots)


def run(bench):
    """resident set (PSS) by slots"""
    wanted = QUICK if bench.quick else SLOTS
    idle, used = {}, {}
    for slots in wanted["sluice"]:
        idle[slots] = bench.measure(f"PSS of {slots:,} idle slots", "MiB")
        used[slots] = bench.measure(f"PSS of {slots:,} busy slots", "MiB")
    share = bench.measure(f"idle slot, of {wanted['sluice'][-1]:,}: all of it", "KiB", "lower",
                          [Goal(GOAL_KIB)])
    more = bench.measure("a further idle slot", "KiB", "lower", [Goal(10, "celery")])
    for system in bench.systems("celery", "bullmq"):
        sizes = {}
        for slots in wanted[system]:
            sizes[slots], filled = one(bench, system, slots)
            if slots in idle:
                idle[slots].add(system, sizes[slots])
            if filled is not None:
                used[slots].add(system, filled)
            bench.say(f"{system}: {slots} slots, idle {sizes[slots]:.1f} MiB, busy "
                      f"{'-' if filled is None else format(filled, '.1f')} MiB")
        first, last = wanted[system][0], wanted[system][-1]
        # A process that has shrunk since has no price for a slot.
        more.add(system, max(0, sizes[last] - sizes[first]) * 1024 / (last - first))
        if system == "sluice":
            share.add(system, sizes[last] * 1024 / last)
