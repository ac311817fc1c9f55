# SPDX-License-Identifier: MIT
"""A worker and its runner stand still together, as when their host is frozen, and the command ends
meanwhile: what it did counts, and it is not run again."""

import os
import signal
import time

import pytest

import sluice
from injection import injected
from jobs import Traces
from waiting import wait_until

LEASE_S = 4.0
GRANT = 0.75  # of a lease


@pytest.mark.parametrize("row, leases", [("F-6 both", (1 + GRANT) / 2), ("F-6 host", 1.5)])
def test_a_command_that_ended_while_all_stood_still_is_not_run_again(fresh, row, leases):
    traces = Traces(fresh.path("traces"))
    with injected(row, fresh) as hit:
        ann = fresh.client(fresh.web())
        worker = fresh.worker(slots=1, fleet_lease_ms=int(1000 * LEASE_S))
        job = ann.submit(*traces.command("job"))
        shell = traces.wait_runs("job")
        ann.wait_status(job, "RUNNING")
        stopped = (worker.pid, sluice.parent(shell[0]))
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        until = time.monotonic() + leases * LEASE_S
        traces.open()
        wait_until("its process to end", lambda: not sluice.running(shell[0]))
        wait_until("the grant to pass", lambda: time.monotonic() > until)
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
        hit.healed()
        ann.wait_status(job, "FINISHED")
        assert traces.runs("job") == shell
        assert fresh.job_row(job, "losses", "attempts", "exit_code") == ["0", "1", "0"]
        fresh.wait_clean()


def test_a_run_that_ended_with_its_silence_is_charged_and_begun_again_once(fresh):
    """The worker finds itself silent: until it registers anew it begins nothing, however long it takes
    to drop what it has."""
    traces = Traces(fresh.path("traces"))
    with injected("F-6 both", fresh) as hit:
        ann = fresh.client(fresh.web())
        worker = fresh.worker(slots=3, fleet_lease_ms=int(1000 * LEASE_S),
                              fault="worker.fenced=sleep:1000@1")
        jobs = [ann.submit(*traces.command(f"job{at}")) for at in range(3)]
        shells = [traces.wait_runs(f"job{at}")[0] for at in range(3)]
        for job in jobs:
            ann.wait_status(job, "RUNNING")
        stopped = [worker.pid, sluice.parent(shells[0]), *shells]
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        until = time.monotonic() + (1 + GRANT) / 2 * LEASE_S
        wait_until("the grant to pass", lambda: time.monotonic() > until)
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
        for at in range(3):
            traces.wait_runs(f"job{at}", 2)
        hit.healed()
        worker.wait_log("worker.silent")
        worker.wait_ready()
        traces.open()
        for at, job in enumerate(jobs):
            ann.wait_status(job, "FINISHED")
            assert len(traces.runs(f"job{at}")) == 2, fresh.moves(job)
            assert fresh.job_row(job, "losses", "attempts") == ["1", "1"]
        fresh.wait_clean()
