# SPDX-License-Identifier: MIT
"""A database that has lost its last commits: workers go by what it says now. Rows are set back by
hand here; failover.replica loses them with their server."""

from jobs import Traces
from sluice import running
from waiting import wait_until


def hexed(job):
    return f"0x{job.replace('-', '')}"


def test_a_run_whose_claim_is_forgotten_ends_and_a_job_whose_end_is_forgotten_runs_again(fresh):
    fresh.audited = False  # an end that is undone by hand is a breach
    ann = fresh.client(fresh.web())
    worker = fresh.worker(slots=2)
    fresh.reader("recovery", recovery_tick_ms=200, recovery_outbox_age_ms=1000)
    traces = Traces(fresh.path("traces"))
    long, short = [ann.submit(*traces.command(name, name)) for name in ("long", "short")]
    first = traces.wait_runs("long")[0]
    traces.open("short")
    ann.wait_end(short)
    ann.wait_status(long, "RUNNING")
    fresh.sql(f"UPDATE jobs SET owner_worker = NULL, fence = 0, status = 'PENDING', "
              f"started_at = NULL WHERE id = {hexed(long)}")
    fresh.sql("UPDATE jobs SET owner_worker = (SELECT id FROM workers), status = 'RUNNING', "
              f"ended_at = NULL, exit_code = NULL WHERE id = {hexed(short)}")
    wait_until("the run without a claim to end", lambda: not running(first))
    worker.wait_log("worker.job.fenced")
    worker.wait_log("worker.job.unknown", 15)
    traces.open("long")
    for name, job in (("long", long), ("short", short)):
        assert ann.wait_end(job)["status"] == "FINISHED"
        assert len(traces.runs(name)) == 2 and not traces.overlapped()
        assert ann.output(job) == b"done\n"
    fresh.wait_clean()
