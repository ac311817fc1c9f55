# SPDX-License-Identifier: MIT
"""filters: what the choice of a queue costs."""

from measure import Goal
from rig import tool

COUNTS = (1, 10, 100, 1000)


def run(bench):
    """queue selection with 1 to 1,000 queues, none of whose filters matches"""
    each = bench.measure("one simple filter, of 1,000", "ns", "lower", [Goal(1000)])
    allocations = bench.measure("allocations by a choice", "", "lower", [Goal(0)])
    found = {count: bench.measure(f"choice among {count:,} queues", "us", "lower",
                                  [Goal(300)] if count == 1000 else []) for count in COUNTS}
    for _ in range(bench.rounds):
        for count in COUNTS:
            report = tool("filters", count)
            assert report["matched"] == 0, report
            found[count].add("sluice", report["selection_us"])
            allocations.add("sluice", report["allocations"])
        each.add("sluice", report["filter_ns"])
