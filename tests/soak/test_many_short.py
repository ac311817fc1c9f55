# SPDX-License-Identifier: MIT
"""Many short jobs, and nothing grows: not the memory of any process, nor what it leaves behind.

SLUICE_SOAK_SHORT says how many; the first 10,000, or the first tenth, are the warm-up.
"""

import os
import time

import pytest

import sluice
from report import resident_mib
from servers import Servers
from waiting import wait_until

JOBS = int(os.environ.get("SLUICE_SOAK_SHORT", "100000"))
WARM_UP = max(10_000, JOBS // 10)
SAMPLES = 10
AT_ONCE, BACKLOG = 500, 3000
SLOTS = 8
END_S = 1200.0
PAUSE_S = 0.2
# What the allocator keeps varies a little; a leak of 100 bytes a job would be 10 MiB.
ROOM_MIB, ROOM_SHARE = 2.0, 0.10
# A pool that opens one more connection to the database keeps it; a leak would be thousands.
POOLED = 4
OFTEN = {"recovery_tick_ms": 200, "recovery_outbox_age_ms": 2000}


@pytest.fixture(name="site")
def _site():
    with Servers() as servers, sluice.Site(servers) as made:
        yield made


class Crew:
    """The programs, runners included, and what each of them holds."""

    def __init__(self, site):
        self.site = site
        self.web = site.web()
        self.programs = [self.web, site.worker(name="one", slots=SLOTS),
                         site.worker(name="two", slots=SLOTS)]
        self.programs += [site.reader(kind, **OFTEN)
                          for kind in ("recovery", "alternate", "deadletter")]
        self.ann = site.client(self.web, keep=True)
        self.submitted = 0

    def pids(self):
        found = {program.name: program.pid for program in self.programs}
        for name in ("one", "two"):
            found[f"{name} runner"] = sluice.runner_of(self.site.path("work", name))
        return found

    def ended(self):
        return int(self.site.sql("SELECT COUNT(*) FROM jobs WHERE tenant = 'acme' AND status = "
                                 "'FINISHED'")[0][0])

    def run(self, upto):
        """Submits until so many jobs were accepted, with a bounded number on their way."""
        request = {"name": "one of many", "command": ["true"], "tags": ["short"]}
        while self.submitted < upto:
            count = min(AT_ONCE, upto - self.submitted)
            answer = self.ann.post("/v1/jobs:batch", {"jobs": [request] * count}).expect(200)
            assert all(item["status"] == 201 for item in answer.json["items"]), answer
            self.submitted += count
            wait_until(lambda: f"the backlog to shrink, {self.ended()} of {self.submitted} ended",
                       lambda: self.submitted - self.ended() < BACKLOG, 120, PAUSE_S)

    def drain(self):
        wait_until(lambda: f"the end of all, {self.ended()} of {self.submitted} ended",
                   lambda: self.ended() == self.submitted, 240, PAUSE_S)
        self.site.wait_clean(60)

    def resident(self):
        return {name: resident_mib(pid) for name, pid in self.pids().items()}

    def held(self):
        """Descriptors and threads of each process, queues of the broker, files but for logs and
        archive."""
        held = {"queues": len(self.site.queues()), "files": count_files(self.site.path("work"))}
        for name, pid in self.pids().items():
            held[f"{name}: descriptors"] = len(os.listdir(f"/proc/{pid}/fd"))
            held[f"{name}: threads"] = len(os.listdir(f"/proc/{pid}/task"))
            held[f"{name}: children"] = len(children(pid))
        return held


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as found:
        return found.read().split()


def count_files(folder):
    return sum(len(folders) + len(files) for _, folders, files in os.walk(folder))


def print_samples(samples):
    print(f"\n{'resident MiB after':20}" + "".join(f"{jobs:>8}" for jobs, _ in samples))
    for name in samples[0][1]:
        print(f"{name:20}" + "".join(f"{resident[name]:8.1f}" for _, resident in samples))


def check_flat(samples):
    """The last third against the first."""
    third = len(samples) // 3
    for name in samples[0][1]:
        first = max(resident[name] for _, resident in samples[:third])
        last = max(resident[name] for _, resident in samples[-third:])
        assert last <= first + max(ROOM_MIB, first * ROOM_SHARE), f"{name} grows"


def grown(before, after):
    return {name: (before[name], after[name]) for name in before
            if after[name] > before[name] + (POOLED if name.endswith("descriptors") else 0)}


def test_nothing_grows_with_the_number_of_jobs(site):
    crew = Crew(site)
    crew.run(WARM_UP)
    crew.drain()
    settled = crew.held()
    begun = time.monotonic()
    samples = [(crew.submitted, crew.resident())]
    for part in range(1, SAMPLES + 1):
        crew.run(WARM_UP + (JOBS - WARM_UP) * part // SAMPLES)
        samples.append((crew.submitted, crew.resident()))
        print(f"{crew.submitted} after {time.monotonic() - begun:.0f} s", flush=True)
    crew.drain()
    took_s = time.monotonic() - begun
    samples.append((crew.submitted, crew.resident()))
    print_samples(samples)
    print(f"{(JOBS - WARM_UP) / took_s:.0f} jobs a second")
    check_flat(samples)
    held = {}

    def no_more_than_before():
        held.update(crew.held())
        return not grown(settled, held)
    wait_until(lambda: f"nothing to be left behind: {grown(settled, held)}",
               no_more_than_before, 60, 0.5)
    print("held at the end: " + ", ".join(
        f"{name} {count}" for name, count in held.items()))
