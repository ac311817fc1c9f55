# SPDX-License-Identifier: MIT
"""A worker that dies at a named point: its job is adopted or run again, and ends once.

Points up to `worker.started` are passed while the job waits at its gate, the others after its end.
"""

import pytest

import sluice
from jobs import Traces
from waiting import wait_until

# point: is there a process when the worker dies there
POINTS = {
    "worker.received": False,
    "job.claim.after_commit": False,
    "worker.claimed": False,
    "worker.runner_asked": True,
    "worker.started": True,
    "job.move.after_commit": True,
}
END_POINTS = ["worker.child_ended", "worker.output_kept", "worker.terminal_committed",
              "worker.acknowledged"]


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
    ended = ann.wait_end(job, timeout_s=30)
    assert ended["status"] == "FINISHED" and ended["losses"] <= 1 and ann.output(job) == b"done\n"
    assert not traces.overlapped(), "two runs at the same time"
    assert site.moves(job).count("FINISHED") == 1
    assert not sluice.job_pids(job)
    site.wait_clean()


def die(site, ann, queue, point, traces):
    """A worker that gets one job and is killed at this point."""
    worker = site.worker(queue, f"{queue}-a", slots=1, fault=f"{point}=kill@1")
    job = ann.submit(*traces.command("job"), tags=[queue])
    assert worker.wait() == -9, worker.log_tail()
    return worker, job


@pytest.mark.parametrize("point", [*POINTS, *END_POINTS])
def test_a_worker_that_comes_back_goes_on(site, ann, queue, point):
    traces = Traces(site.path(queue))
    if point in END_POINTS:
        traces.open()
    worker, job = die(site, ann, queue, point, traces)
    shells = traces.wait_runs("job") if POINTS.get(point, True) else []
    del worker.env["SLUICE_FAULT"]
    worker.start()
    traces.wait_runs("job")
    if point in POINTS:
        ann.wait_status(job, "RUNNING")
    traces.open()
    check_end(site, ann, job, traces)
    runs = traces.runs("job")
    assert len(runs) == 1 and runs[:1] == (shells or runs)
    assert site.job_row(job, "attempts") == ["1"]


@pytest.mark.parametrize("point", [*POINTS, *END_POINTS])
def test_another_worker_runs_it_after_the_lease(site, ann, queue, point):
    traces = Traces(site.path(queue))
    if point in END_POINTS:
        traces.open()
    _, job = die(site, ann, queue, point, traces)
    site.worker(queue, f"{queue}-b", slots=1)
    traces.open()
    check_end(site, ann, job, traces)
    assert len(traces.runs("job")) <= 2
    assert site.job_row(job, "attempts") == ["1"]


@pytest.mark.parametrize("point", [*POINTS, *END_POINTS])
def test_a_cancel_at_any_point_leaves_one_end_and_no_process(site, ann, queue, point):
    traces = Traces(site.path(queue))
    if point in END_POINTS:
        traces.open()
    worker = site.worker(queue, f"{queue}-a", slots=1, fault=f"{point}=sleep:1000@1")
    job = ann.submit(*traces.command("job"), tags=[queue])
    worker.wait_log("fault.injected")
    answer = ann.cancel(job)
    ended = ann.wait_end(job, timeout_s=10)
    wait_until("its processes to be gone", lambda: not sluice.job_pids(job), 5)
    if point in ("worker.terminal_committed", "worker.acknowledged"):
        assert answer.status == 409 and ended["status"] == "FINISHED"
    elif point in POINTS:
        assert ended["status"] == "CANCELLED"
    else:
        assert ended["status"] in ("CANCELLED", "FINISHED")
    assert sum(site.moves(job).count(end) for end in ("CANCELLED", "FINISHED", "FAILED")) == 1
    assert ann.cancel(job).status == 409
    assert len(traces.runs("job")) <= 1
    site.wait_clean()
