# SPDX-License-Identifier: MIT
"""output: many jobs that write much at once."""

import threading
import time

import proc
from measure import Goal

MIB = 1024 * 1024
EACH = 10 * MIB
GROWTH_MIB = 32


class Watch:
    """The greatest memory of some processes while something goes on."""

    def __init__(self, pids):
        self.pids, self.most, self.over = pids, 0, threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)

    def sum_mib(self):
        return sum(proc.pss_kib(pid) for pid in self.pids) / 1024

    def _watch(self):
        while not self.over.wait(0.05):
            self.most = max(self.most, self.sum_mib())

    def __enter__(self):
        self.before = self.most = self.sum_mib()
        self.thread.start()
        return self

    def __exit__(self, *unused):
        self.over.set()
        self.thread.join()


def run(bench):
    """jobs with 10 MiB of output each at once"""
    jobs = bench.size(200, 20)
    name = f"{jobs} jobs with 10 MiB each"
    growth = bench.measure(f"{name}: growth of worker and runner", "MiB", "lower",
                           [Goal(GROWTH_MIB, text=f"flat: <= {GROWTH_MIB} MiB")])
    short = bench.measure(f"{name}: jobs whose output is not whole", "jobs", "lower", [Goal(0)])
    speed = bench.measure(f"{name}: output kept", "MiB/s", "higher")
    with bench.rig("sluice", slots=jobs) as rig:
        roles = rig.roles()
        for _ in range(1 if bench.quick else min(bench.rounds, 2)):
            began = time.monotonic()
            with Watch(roles["worker"] + roles["runner"]) as watch:
                rig.load(["/usr/bin/head", "-c", str(EACH), "/dev/zero"], connections=8, count=jobs)
                rig.wait_finished(jobs)
            seconds = time.monotonic() - began
            growth.add("sluice", watch.most - watch.before)
            short.add("sluice", rig.database.one(
                "SELECT COUNT(*) FROM jobs WHERE stdout_bytes <> %s OR stdout_kept <> %s",
                (EACH, EACH)))
            speed.add("sluice", jobs * EACH / MIB / seconds)
            bench.say(f"{name}: from {watch.before:.1f} to {watch.most:.1f} MiB, {seconds:.1f} s")
            rig.audit(jobs)
            rig.clear()
            rig.empty_archive()
