# SPDX-License-Identifier: MIT
"""A worker that comes back to its runner: the runs that it finds live on while it takes them over,
and a claim that never came to a run is known as such."""

import os
import signal

import pytest

import sluice
from injection import injected
from jobs import Traces
from waiting import stays_true, wait_until

LEASE_MS = 8000
LONG = {"fleet_lease_ms": LEASE_MS}


@pytest.fixture
def ann(fresh):
    return fresh.client(fresh.web())


def start_jobs(site, ann, traces, count, **settings):
    worker = site.worker("default", "one", slots=count, **LONG, **settings)
    jobs = [ann.submit(*traces.command(str(at))) for at in range(count)]
    shells = [traces.wait_runs(str(at))[0] for at in range(count)]
    for job in jobs:
        ann.wait_status(job, "RUNNING")
    return worker, jobs, shells


def come_back(worker):
    worker.env.pop("SLUICE_FAULT", None)
    worker.start(wait=False)


def test_a_row_that_is_locked_does_not_cost_the_other_runs_their_time(fresh, ann):
    traces = Traces(fresh.path("traces"))
    with injected("F-2 locked row", fresh) as hit:
        worker, jobs, shells = start_jobs(fresh, ann, traces, 3)
        fresh.worker("default", "two", **LONG)
        locked = jobs[0].replace("-", "")
        with fresh.servers.mariadb.transaction(
                f"SELECT 1 FROM jobs WHERE id = 0x{locked} FOR UPDATE", fresh.schema):
            worker.kill9()
            come_back(worker)
            hit.healed()
            worker.wait_log("worker.runner.connected")
            stays_true("all jobs run", lambda: all(sluice.running(pid) for pid in shells),
                       2 * LEASE_MS / 1000)
            assert fresh.count("workers", "state = 'dead'") == 0
        worker.wait_ready()
        traces.open()
        for at, job in enumerate(jobs):
            ann.wait_status(job, "FINISHED")
            assert traces.runs(str(at)) == [shells[at]]
            assert fresh.job_row(job, "losses", "attempts") == ["0", "1"]
        fresh.wait_clean()


def test_a_run_that_takes_long_to_die_keeps_nothing_waiting(fresh, ann):
    traces = Traces(fresh.path("traces"))
    with injected("F-2 slow discard", fresh, ends=["FINISHED", "CANCELLED"]) as hit:
        worker, jobs, shells = start_jobs(fresh, ann, traces, 2)
        worker.kill9()
        # What a failover to a replica that lagged may leave: a process of a job that has ended.
        fresh.sql(f"UPDATE jobs SET owner_worker = NULL WHERE id = 0x{jobs[0].replace('-', '')}")
        ann.cancel(jobs[0])
        ann.wait_status(jobs[0], "CANCELLED")
        worker.env["SLUICE_FAULT"] = f"worker.discard=sleep:{2 * LEASE_MS}@1"
        worker.start(wait=False)
        worker.wait_ready(LEASE_MS / 1000)
        hit.healed()
        assert not worker.log_events("worker.run.removed")
        assert sluice.running(shells[1])
        traces.open()
        ann.wait_status(jobs[1], "FINISHED")
        assert fresh.job_row(jobs[1], "losses", "attempts") == ["0", "1"]
        worker.wait_log("worker.run.removed")
        assert not sluice.running(shells[0]) and traces.runs("1") == [shells[1]]
        fresh.wait_clean()


def test_a_claim_that_its_runner_never_heard_of_is_no_loss(fresh, ann):
    with injected("F-2 unasked", fresh) as hit:
        worker = fresh.worker("default", "one", **LONG)
        ann.wait_status(ann.submit("true"), "FINISHED")
        worker.kill9()
        worker.env["SLUICE_FAULT"] = "worker.claimed=kill@1"
        worker.start()
        job = ann.submit("true")
        assert worker.wait() == -signal.SIGKILL
        hit.healed()
        come_back(worker)
        ann.wait_status(job, "FINISHED")
        assert fresh.job_row(job, "losses", "attempts") == ["0", "1"]
        assert fresh.job_row(job, "fence") == ["2"]
        fresh.wait_clean()


def test_a_runner_that_was_started_anew_proves_nothing(fresh, ann):
    with injected("F-2 fresh runner", fresh) as hit:
        worker = fresh.worker("default", "one", fault="worker.claimed=kill@1", **LONG)
        job = ann.submit("true")
        assert worker.wait() == -signal.SIGKILL
        os.kill(sluice.runner_of(fresh.path("work", worker.name)), signal.SIGKILL)
        wait_until("the runner to be gone",
                   lambda: sluice.runner_of(fresh.path("work", worker.name)) is None)
        hit.healed()
        come_back(worker)
        ann.wait_status(job, "FINISHED")
        assert fresh.job_row(job, "losses", "attempts") == ["1", "1"]
        fresh.wait_clean()
