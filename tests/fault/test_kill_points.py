# SPDX-License-Identifier: MIT
"""A worker that dies at a named point: its job is adopted or run again, and ends once.

Points up to `worker.started` are passed while the job waits at its gate, the others after its end.
"""

import os

import pytest

import sluice
from injection import injected
from jobs import Traces
from matrix import WORKER_POINTS
from waiting import wait_until

# is there a process when the worker dies there
POINTS = {"K5": False, "claim": False, "K6": False, "K7": True, "K8": True, "move": True}
LONG_LEASE_MS = 20000  # a worker that comes back is there before its jobs end, also when it is slow
END_POINTS = ["K9", "K10", "K11", "forgotten", "K12"]


@pytest.fixture(scope="module")
def ann(site):
    return site.client(site.web())


@pytest.fixture
def queue(site, ann, request):
    """A queue of this test alone."""
    name = f"q{site.count('job_queues')}"
    root = site.client(site.processes[0], "root", "admin")
    root.put_queue(name, site.count("job_queues") + 1, f"'{name}' IN tags").expect(201)
    yield name
    for process in site.processes[1:]:
        print(f"---- {process.name}\n{process.log_tail()}")
        if process.alive():
            process.stop()
    del site.processes[1:]


def check_end(site, ann, job, traces):
    ended = ann.wait_end(job)
    assert ended["status"] == "FINISHED" and ended["losses"] <= 1 and ann.output(job) == b"done\n"
    assert not traces.overlapped(), "two runs at the same time"
    assert site.moves(job).count("FINISHED") == 1
    assert not sluice.job_pids(job)
    site.wait_clean()


def die(site, ann, queue, key, traces, **settings):
    """A worker that gets one job and is killed at this point."""
    worker = site.worker(queue, f"{queue}-a", slots=1, fault=f"{WORKER_POINTS[key][0]}=kill@1",
                         **settings)
    job = ann.submit(*traces.command("job"), tags=[queue])
    assert worker.wait() == -9, worker.log_tail()
    return worker, job


@pytest.mark.parametrize("key", [*POINTS, *END_POINTS])
def test_a_worker_that_comes_back_goes_on(site, ann, queue, key):
    traces = Traces(site.path(queue))
    if key in END_POINTS:
        traces.open()
    with injected(f"F-2 {key}", site) as hit:
        worker, job = die(site, ann, queue, key, traces, fleet_lease_ms=LONG_LEASE_MS)
        shells = traces.wait_runs("job") if POINTS.get(key, True) else []
        del worker.env["SLUICE_FAULT"]
        hit.healed()
        worker.start()
        traces.wait_runs("job")
        if key in POINTS:
            ann.wait_status(job, "RUNNING")
        traces.open()
        check_end(site, ann, job, traces)
        runs = traces.runs("job")
        assert len(runs) == 1 and runs[:1] == (shells or runs)
        folder = site.path("work", worker.name, "jobs")
        wait_until("no folder of a run to be left", lambda: not os.listdir(folder))
        assert site.job_row(job, "attempts") == ["1"]


@pytest.mark.parametrize("key", [*POINTS, *END_POINTS])
def test_another_worker_runs_it_after_the_lease(site, ann, queue, key):
    traces = Traces(site.path(queue))
    if key in END_POINTS:
        traces.open()
    with injected(f"F-2 {key}", site) as hit:
        _, job = die(site, ann, queue, key, traces)
        hit.healed()
        site.worker(queue, f"{queue}-b", slots=1)
        traces.open()
        check_end(site, ann, job, traces)
        assert len(traces.runs("job")) <= 2
        assert site.job_row(job, "attempts") == ["1"]


@pytest.mark.parametrize("key", [*POINTS, *END_POINTS])
def test_a_cancel_at_any_point_leaves_one_end_and_no_process(site, ann, queue, key):
    traces = Traces(site.path(queue))
    if key in END_POINTS:
        traces.open()
    with injected(f"F-34 {key}", site, ends=("CANCELLED", "FINISHED")) as hit:
        worker = site.worker(queue, f"{queue}-a", slots=1,
                             fault=f"{WORKER_POINTS[key][0]}=sleep:1000@1")
        job = ann.submit(*traces.command("job"), tags=[queue])
        worker.wait_log("fault.injected")
        hit.healed()
        answer = ann.cancel(job)
        ended = ann.wait_end(job)
        wait_until("its processes to be gone", lambda: not sluice.job_pids(job))
        if key in ("K11", "forgotten", "K12"):
            assert answer.status == 409 and ended["status"] == "FINISHED"
        elif key in POINTS:
            assert ended["status"] == "CANCELLED"
        else:
            assert ended["status"] in ("CANCELLED", "FINISHED")
        assert sum(site.moves(job).count(end) for end in ("CANCELLED", "FINISHED", "FAILED")) == 1
        assert ann.cancel(job).status == 409
        assert len(traces.runs("job")) <= 1
        site.wait_clean()
