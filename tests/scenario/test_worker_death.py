# SPDX-License-Identifier: MIT
"""kill -9 of a worker: its jobs go on if it comes back, and run elsewhere if it does not."""

import pytest

import sluice
from jobs import Traces
from waiting import wait_until

JOBS = 8


@pytest.fixture(scope="module")
def ann(site):
    return site.client(site.web())


@pytest.fixture
def queue(site, ann, request):
    """A queue of this test alone."""
    name = request.node.name.replace("_", "-")[5:40]
    root = site.client(site.processes[0], "root", "admin")
    root.put_queue(name, site.count("job_queues") + 1, f"'{name}' IN tags").expect(201)
    return name


def submit_gated(ann, queue, traces, count=JOBS):
    return {str(at): ann.submit(*traces.command(str(at)), tags=[queue]) for at in range(count)}


def wait_all(ann, jobs, *statuses, timeout_s=30):
    for job in jobs.values():
        ann.wait_status(job, *statuses, timeout_s=timeout_s)


def pids(jobs):
    return {job: {(pid, sluice.start_time(pid)) for pid in sluice.job_pids(job)}
            for job in jobs.values()}


def steady_pids(jobs):
    """The shells of the jobs: what does not come and go between two looks."""
    first = pids(jobs)
    second = pids(jobs)
    return {job: first[job] & second[job] for job in first}


def test_jobs_go_on_when_their_worker_comes_back_by_its_name(fresh):
    """However long that takes within its lease; so nobody else is here who has a shorter one."""
    site, queue, ann = fresh, "default", fresh.client(fresh.web())
    traces = Traces(site.path(queue))
    worker = site.worker(queue, slots=JOBS, fleet_lease_ms=30000)
    jobs = submit_gated(ann, queue, traces)
    wait_all(ann, jobs, "RUNNING")
    shells = {name: traces.wait_runs(name) for name in jobs}
    before = {name: sluice.start_time(pid[0]) for name, pid in shells.items()}
    former = site.job_row(jobs["0"], "HEX(owner_worker)")
    worker.kill9()
    worker.start()
    wait_until("the jobs to have their new owner", lambda: all(
        site.job_row(job, "HEX(owner_worker)") not in (former, [None]) for job in jobs.values()))
    for name, (pid,) in shells.items():
        assert sluice.start_time(pid) == before[name], "the process is another"
    wait_until("it to be replaced", lambda: site.sql(
        "SELECT state FROM workers ORDER BY started_at") == [["replaced"], ["live"]])
    traces.open()
    wait_all(ann, jobs, "FINISHED")
    for name, job in jobs.items():
        assert traces.runs(name) == shells[name] and ann.output(job) == b"done\n"
        assert site.job_row(job, "losses", "attempts") == ["0", "1"]
        assert site.moves(job).count("FINISHED") == 1
    assert not traces.overlapped()
    site.wait_clean()


def test_jobs_run_elsewhere_when_their_worker_does_not_come_back(site, ann, queue):
    traces = Traces(site.path(queue))
    first = site.worker(queue, f"{queue}-a", slots=JOBS)
    jobs = submit_gated(ann, queue, traces)
    wait_all(ann, jobs, "RUNNING")
    shells = {name: traces.wait_runs(name)[0] for name in jobs}
    site.worker(queue, f"{queue}-b", slots=JOBS)
    first.kill9()
    for name, job in jobs.items():
        runs = traces.wait_runs(name, 2, timeout_s=sluice.LEASE_MS / 1000 + 15)
        assert runs[0] == shells[name] and not sluice.running(shells[name])
        assert len(runs) == 2
        assert site.job_row(job, "losses") == ["1"]
    traces.open()
    wait_all(ann, jobs, "FINISHED")
    assert not traces.overlapped(), "two runs of a job at the same time"
    for name, job in jobs.items():
        assert len(traces.runs(name)) == 2 and site.moves(job).count("FINISHED") == 1
        assert ann.output(job) == b"done\n"
    assert site.count("workers", f"name = '{queue}-a' AND state = 'dead'") == 1
    site.wait_clean()


def test_a_job_that_is_lost_three_times_is_poison(site, ann, queue):
    traces = Traces(site.path(queue))
    job = submit_gated(ann, queue, traces, 1)["0"]
    for loss in range(1, 4):
        worker = site.worker(queue, f"{queue}-{loss}", slots=1)
        traces.wait_runs("0", loss, timeout_s=20)
        ann.wait_status(job, "RUNNING")
        worker.kill9()
    site.worker(queue, f"{queue}-last", slots=1)
    ended = ann.wait_end(job, timeout_s=30)
    assert (ended["status"], ended["condition"], ended["losses"]) == ("FAILED", "POISON", 3)
    assert len(traces.runs("0")) == 3 and not traces.overlapped()


def test_a_worker_that_hangs_is_fenced_and_never_writes(site, ann, queue):
    import signal
    traces = Traces(site.path(queue))
    first = site.worker(queue, f"{queue}-a", slots=2)
    jobs = submit_gated(ann, queue, traces, 2)
    wait_all(ann, jobs, "RUNNING")
    for name in jobs:
        traces.wait_runs(name)
    site.worker(queue, f"{queue}-b", slots=2)
    first.signal(signal.SIGSTOP)
    for name in jobs:
        traces.wait_runs(name, 2, timeout_s=30)
    first.signal(signal.SIGCONT)
    traces.open()
    wait_all(ann, jobs, "FINISHED")
    assert not traces.overlapped()
    for name, job in jobs.items():
        assert len(traces.runs(name)) == 2 and site.moves(job).count("FINISHED") == 1
    wait_until("it to register anew", lambda: first.ready() == 200, 20)


def test_a_second_worker_of_the_same_name_is_refused(site, ann, queue):
    site.worker(queue, "only-one", slots=1)
    twin = site.worker(queue, "only-one", slots=1, wait=False)
    assert twin.wait() == 1
    assert "only-one" in twin.log_text()
    site.processes.remove(twin)


def test_a_drained_worker_ends_what_it_runs_and_takes_no_more(site, ann, queue):
    import signal
    traces = Traces(site.path(queue))
    worker = site.worker(queue, slots=1)
    jobs = submit_gated(ann, queue, traces, 2)
    wait_until("one to run", lambda: any(traces.runs(name) for name in jobs))
    worker.signal(signal.SIGTERM)
    worker.wait_log("drain")
    traces.open()
    assert worker.wait() == 0
    counts = dict(site.sql(f"SELECT status, COUNT(*) FROM jobs WHERE queue = '{queue}' "
                           "GROUP BY status"))
    assert counts == {"FINISHED": "1", "PENDING": "1"}
    site.worker(queue, f"{queue}-b", slots=1)
    wait_all(ann, jobs, "FINISHED")
    assert site.count("workers", f"queue = '{queue}' AND state = 'stopped'") == 1
