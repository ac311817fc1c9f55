# SPDX-License-Identifier: MIT
"""One of the two witnesses is away for several leases: the jobs live on the other one."""

import pytest

import sluice
from injection import injected
from jobs import Traces
from waiting import stays_true, wait_until

JOBS = 2
AWAY_S = 3 * sluice.LEASE_MS / 1000


@pytest.mark.parametrize("family, which", [("F-4", "rabbitmq"), ("F-5", "mariadb")])
def test_jobs_live_on_one_witness(own, servers, family, which):
    with injected(f"{family} lease", own) as hit:
        ann = own.client(own.web())
        # Nothing but the jobs: the connection to the broker is as quiet as it can be.
        own.worker("default", "one", slots=JOBS)
        own.worker("default", "two", slots=JOBS)
        traces = Traces(own.path("traces"))
        jobs = {str(at): ann.submit(*traces.command(str(at))) for at in range(JOBS)}
        shells = {name: traces.wait_runs(name) for name in jobs}
        for job in jobs.values():
            ann.wait_status(job, "RUNNING")
        own.wait_beats()
        servers.rabbitmq.settle()
        server = getattr(servers, which)
        server.kill9()
        stays_true("all jobs run", lambda: all(
            sluice.running(pid) for pids in shells.values() for pid in pids), AWAY_S)
        server.start()
        server.wait_ready()
        hit.healed()
        wait_until("submissions", lambda: ann.get("/readyz").status == 200)
        traces.open()
        for job in jobs.values():
            ann.wait_status(job, "FINISHED")
            assert own.job_row(job, "losses", "attempts") == ["0", "1"]
        assert {name: traces.runs(name) for name in jobs} == shells and not traces.overlapped()
        own.wait_clean()
