# SPDX-License-Identifier: MIT
"""throughput: jobs from their submission to their end, and what one costs."""

import contextlib
import time

from measure import Goal
from proc import CpuMeter
from rig import TRUE, accepted, tool

SLOTS, CLIENTS = 8, 8
AUDITED = 500


def batch(rig, jobs):
    """(jobs per second, {role: ms of processor time per job})"""
    meter = CpuMeter(rig.roles(), rig.parents)
    began = time.monotonic()
    report = rig.load(TRUE, connections=CLIENTS, count=jobs)
    assert accepted(report) == jobs
    rig.wait_finished(jobs)
    # The generator's own start and end are not part of it.
    seconds = time.monotonic() - max(began, report["start_ns"] / 1e9)
    used = meter.read() | {"load": report["cpu_s"]}
    rig.audit(jobs)
    rig.clear()
    return jobs / seconds, {role: spent * 1000 / jobs for role, spent in used.items()}


def raw_spawn(bench, jobs):
    one = bench.measure("posix_spawn and wait of /bin/true, 1 thread", "1/s", "higher")
    two = bench.measure("posix_spawn and wait of /bin/true, 2 threads", "1/s", "higher")
    return lambda: (one.add("raw", tool("spawn", 1, jobs, *TRUE)["per_s"]),
                    two.add("raw", tool("spawn", 2, jobs, *TRUE)["per_s"]))


def note_costs(bench, system, costs):
    middle = sorted(costs, key=lambda cost: sum(cost.values()))[len(costs) // 2]
    bench.note(f"cpu_ms_per_job_{system}", middle)
    parts = ", ".join(f"{role} {spent:.2f}" for role, spent in middle.items())
    total = sum(spent for role, spent in middle.items() if role != "load")
    bench.say(f"{system}: {total:.2f} ms of processor time per job ({parts}; load is not counted)")
    return total


def run(bench):
    """jobs /bin/true to FINISHED, 8 slots, 8 clients"""
    jobs = bench.size(5000, 1000)
    systems = bench.systems("celery", "bullmq")
    rate = bench.measure(f"{jobs:,} jobs /bin/true to their end, 8 slots, 8 clients", "jobs/s",
                         "higher", [Goal(5, "celery"), Goal(0.4, "raw", "40 % of the raw rate")])
    spawn = raw_spawn(bench, jobs)
    cost = bench.measure("processor time per job, all processes and the command", "ms")
    costs = {system: [] for system in systems}
    with contextlib.ExitStack() as stack:
        rigs = {system: stack.enter_context(bench.rig(system, slots=SLOTS)) for system in systems}
        for rig in rigs.values():
            rig.warm_up()
        for at, system in bench.turns(systems):
            if system == "sluice":
                rate.add("raw", spawn()[1])
            per_s, spent = batch(rigs[system], jobs)
            rate.add(system, per_s)
            costs[system].append(spent)
            bench.say(f"round {at + 1}: {system} {per_s:.0f} jobs/s")
            cost.add(system, sum(ms for role, ms in spent.items() if role != "load"))
        for rig in rigs.values():
            rig.audited_batch(min(jobs, AUDITED))
    for system in systems:
        note_costs(bench, system, costs[system])
