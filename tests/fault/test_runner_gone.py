# SPDX-License-Identifier: MIT
"""A runner that does not know the run that a worker waits for, and one that did not hear a kill."""

import os
import signal

import sluice
from injection import injected
from jobs import Traces


def start(site, **settings):
    ann, traces = site.client(site.web()), Traces(site.path("traces"))
    worker = site.worker(slots=1, **settings)
    job = ann.submit(*traces.command("job"))
    shell = traces.wait_runs("job")[0]
    ann.wait_status(job, "RUNNING")
    return ann, traces, worker, job, shell


def test_a_run_that_the_next_runner_does_not_know_is_lost_and_begins_again(fresh):
    with injected("F-2 journal", fresh) as hit:
        ann, traces, worker, job, shell = start(fresh, fleet_lease_ms=6000)
        runner = sluice.parent(shell)
        worker.signal(signal.SIGSTOP)  # it starts the next runner when the journal is gone
        os.kill(runner, signal.SIGKILL)
        for number in (0, 1):
            os.unlink(fresh.path("work", worker.name, f"runner.journal.{number}"))
        worker.signal(signal.SIGCONT)
        hit.healed()
        traces.wait_runs("job", 2)
        assert not sluice.running(shell) and not traces.overlapped()
        traces.open()
        ann.wait_status(job, "FINISHED")
        assert fresh.job_row(job, "losses", "attempts") == ["1", "1"]


def test_a_kill_that_is_lost_is_asked_for_again(fresh):
    """The run is nobody's by its row: the next worker of this name ends it, and starts another."""
    with injected("F-2 former", fresh) as hit:
        # The first two calls are lost; the thread that discards it comes too late to help.
        lost = ";".join(["runner.kill.lost=fail@1"] * 2 + ["worker.discard=sleep:20000@1"])
        ann, traces, worker, job, shell = start(fresh, fleet_lease_ms=60000, fault=lost)
        worker.kill9()
        fresh.sql("UPDATE jobs SET owner_worker = NULL")
        worker.start()
        hit.healed()
        worker.wait_log("worker.run.former")
        traces.wait_runs("job", 2)
        assert not sluice.running(shell) and not traces.overlapped()
        traces.open()
        ann.wait_status(job, "FINISHED")
