# SPDX-License-Identifier: MIT
"""latency: from the moment at which a job was meant to be sent to the start of its process."""

import contextlib
import os
import tempfile

from measure import Goal
from rig import Side, accepted, read_log

RATES = (10, 50, 200)
CONNECTIONS = 16
GOAL_RATE = 50
GOALS = {"p50": [Goal(5), Goal(1, "celery", "below Celery")],
         "p99": [Goal(20), Goal(1, "celery", "below Celery")]}
PARTS = {"p50": 0.5, "p99": 0.99}


def one(rig, rate, seconds):
    """{p50, p99} in ms of one open loop; every job is audited by its trace."""
    with Side() as side, tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "log")
        taken = accepted(rig.load(side.command, connections=CONNECTIONS, rate=rate,
                                  seconds=seconds, log=log))
        rig.wait_finished(taken)
        starts = side.starts()
        sent = read_log(log)
        assert starts.keys() == sent.keys(), f"{len(sent)} sent, {len(starts)} started"
        rig.audit(taken)
    rig.clear()
    times = sorted((starts[number] - due) / 1e6 for number, (due, _sent, _done) in sent.items())
    return {name: times[min(len(times) - 1, int(part * len(times)))]
            for name, part in PARTS.items()}


def run(bench):
    """open loop, from intended send to process start"""
    systems = bench.systems("celery", "bullmq")
    with contextlib.ExitStack() as stack:
        rigs = {system: stack.enter_context(bench.rig(system, slots=8)) for system in systems}
        for rig in rigs.values():
            rig.warm_up()
        for rate in RATES:
            seconds = bench.size(5, 3)
            measures = {part: bench.measure(f"{part} to process start at {rate} jobs/s", "ms",
                                            "lower", GOALS[part] if rate == GOAL_RATE else [])
                        for part in PARTS}
            for _at, system in bench.turns(systems):
                found = one(rigs[system], rate, seconds)
                for part, value in found.items():
                    measures[part].add(system, value)
            for system in systems:
                bench.say(f"{rate} jobs/s, {system}: " + ", ".join(
                    f"{part} {each.median(system):.1f} ms" for part, each in measures.items()))
