# SPDX-License-Identifier: MIT
"""backlog: what waiting jobs cost those that are submitted, started and looked at."""

import time

import proc
import seed
from measure import Goal
from rig import TRUE, accepted
from waiting import wait_until

SIZES = {"full": (1_000, 10_000, 100_000, 1_000_000), "quick": (1_000, 10_000)}
MOST = 1.3  # times what it costs with the smallest backlog
READ_MS = 20
STARTED = 800  # jobs run to find the rate; fewer than the smallest backlog


def name_of(size):
    return f"{size // 1000}k" if size < 1_000_000 else f"{size // 1_000_000}M"


def start_rate(rig):
    """(jobs per second from the first to the STARTED-th end, with 8 slots; memory of web and worker
    in MiB)"""
    worker = rig.start_worker(slots=8)
    wait_until("the first jobs", lambda: rig.finished() >= 50, 60, 0.01)
    from_jobs, began = rig.finished(), time.monotonic()
    wait_until("more jobs", lambda: rig.finished() >= STARTED, 120, 0.02)
    rate = (rig.finished() - from_jobs) / (time.monotonic() - began)
    memory = sum(proc.pss_kib(pid) for pid in (rig.web.pid, worker.pid)) / 1024
    worker.stop()
    rig.forget_worker()
    return rate, memory


def read_p99(rig, path, count):
    report = rig.request(path, method="GET", count=count)
    assert set(report["statuses"]) == {"200"}, report
    return report["p99_ms"]


class Measures:
    def __init__(self, bench, sizes):
        last = sizes[-1]
        self.of = {}
        for size in sizes:
            goals = [Goal(READ_MS)] if size == last else []
            name = name_of(size)
            self.of[size] = {
                "submit": bench.measure(f"submission p99, 8 connections, {name} waiting", "ms"),
                "start": bench.measure(f"jobs run, 8 slots, {name} waiting", "1/s", "higher"),
                "list": bench.measure(f"list page p99, {name} waiting", "ms", "lower", goals),
                "why": bench.measure(f"why p99, {name} waiting", "ms", "lower", goals),
                "overview": bench.measure(f"overview p99, {name} waiting", "ms", "lower", goals),
                "search": bench.measure(f"page of a search without a hit, p99, {name} waiting",
                                        "ms"),
                "pss": bench.measure(f"PSS of web and worker, {name} waiting", "MiB"),
            }
        self.ratio = {key: bench.measure(f"{text}, {name_of(last)} against {name_of(sizes[0])}",
                                         "times", "lower", [Goal(MOST)])
                      for key, text in (("submit", "submission p99"), ("start", "slower start"),
                                        ("pss", "PSS of web and worker"))}

    def compare(self, sizes):
        first, last = self.of[sizes[0]], self.of[sizes[-1]]
        for key, measure in self.ratio.items():
            one, other = first[key].median("sluice"), last[key].median("sluice")
            measure.add("sluice", one / other if key == "start" else other / one)


def one_size(bench, size, measures):
    """A site of its own, filled, then measured."""
    with bench.rig("sluice", slots=0, users=8) as rig:
        began = time.monotonic()
        pattern = rig.site.client(rig.web, "user0").submit(*TRUE)
        wait_until("its message", lambda: rig.site.count("outbox") == 0, 20)
        seed.waiting(rig, pattern, 1, size)
        bench.say(f"{name_of(size)} jobs made in {time.monotonic() - began:.0f} s")
        rig.site.audited = size <= 100_000  # the audit reads every row
        # A job near the end: all others are before it.
        why = f"/v1/jobs/{seed.id_text(seed.prefix_of(pattern), size - 1)}/why"
        rig.load(TRUE, connections=8, count=100)
        for _ in range(bench.rounds):
            report = rig.load(TRUE, connections=8, seconds=bench.size(2, 1))
            accepted(report)
            measures["submit"].add("sluice", report["p99_ms"])
            measures["list"].add("sluice", read_p99(rig, "/v1/jobs?limit=50", 200))
            measures["why"].add("sluice", read_p99(rig, why, 200))
            measures["overview"].add("sluice", read_p99(rig, "/v1/overview", 50))
            measures["search"].add("sluice", read_p99(rig, "/v1/jobs?queue=none", 8))
        rate, memory = start_rate(rig)
        measures["start"].add("sluice", rate)
        measures["pss"].add("sluice", memory)
        bench.say(f"{name_of(size)}: " + ", ".join(
            f"{key} {measure.median('sluice'):.1f} {measure.unit}"
            for key, measure in measures.items()))


def run(bench):
    """1k to 1M waiting jobs"""
    sizes = SIZES["quick" if bench.quick else "full"]
    measures = Measures(bench, sizes)
    for size in sizes:
        one_size(bench, size, measures.of[size])
    measures.compare(sizes)
