# SPDX-License-Identifier: MIT
"""idle: what a site with many tenants costs when nobody does anything."""

import os
import shutil

import sluice
from measure import Goal
from proc import CpuMeter
from rig import TRUE
from waiting import let_pass

GOAL_PERCENT = 1


def add_tenants(rig, count):
    """As if each had been seen before: keys, row, default queue."""
    for at in range(count - 1):
        name = f"tenant-{at:04}"
        shutil.copytree(os.path.join(rig.site.path("keys"), sluice.TENANT),
                        os.path.join(rig.site.path("keys"), name))
    rig.site.client(rig.web).submit(*TRUE)  # web makes the first tenant
    last = count - 2
    for table, column in (("tenants", "name"), ("job_queues", "tenant")):
        names = [row[0] for row in rig.database.rows(
            "SELECT column_name FROM information_schema.columns WHERE table_schema = DATABASE() "
            "AND table_name = %s ORDER BY ordinal_position", (table,))]
        values = [f"CONCAT('tenant-', LPAD(s.seq, 4, '0'))" if name == column else f"t.{name}"
                  for name in names]
        rig.database.run(f"INSERT INTO {table} ({', '.join(names)}) SELECT {', '.join(values)} "
                         f"FROM {table} t CROSS JOIN seq_0_to_{last} s "
                         f"WHERE t.{column} = '{sluice.TENANT}'")
    found = rig.site.count("tenants"), rig.site.count("job_queues")
    assert found == (count, count), found


def run(bench):
    """tenants without work: web, worker, recovery, alternate, deadletter"""
    tenants = bench.size(1000, 100)
    seconds = bench.size(20, 10)
    ours = bench.measure(f"{tenants:,} idle tenants: our processes", "% of a core", "lower",
                         [Goal(GOAL_PERCENT)])
    theirs = {role: bench.measure(f"{tenants:,} idle tenants: {role}", "% of a core")
              for role in ("broker", "database")}
    with bench.rig("sluice", slots=0, users=1) as rig:
        add_tenants(rig, tenants)
        rig.start_worker(slots=8)
        roles = rig.roles()
        for kind in ("recovery", "alternate", "deadletter"):
            roles[kind] = [rig.site.reader(kind, **rig.settings).pid]
        let_pass(bench.size(15, 8))  # connections are made, queues declared
        for _ in range(min(bench.rounds, 3)):
            meter = CpuMeter(roles)
            let_pass(seconds)
            spent = {role: used * 100 / seconds for role, used in meter.read().items()}
            for role, measure in theirs.items():
                measure.add("sluice", spent.pop(role))
            spent.pop("child")
            ours.add("sluice", sum(spent.values()))
            bench.say(", ".join(f"{role} {used:.2f} %" for role, used in spent.items()))
        bench.note("percent_by_process", spent)
