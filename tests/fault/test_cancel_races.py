# SPDX-License-Identifier: MIT
"""Cancel that is cut short, said twice, or races with the end: one end, and no process left."""

import concurrent.futures

import pytest

import sluice
from injection import injected
from jobs import Traces
from waiting import wait_until

ENDS = ("CANCELLED", "FINISHED")
TERMINAL = ("CANCELLED", "FINISHED", "FAILED")


@pytest.fixture(scope="module")
def web(site):
    return site.web()


@pytest.fixture(scope="module")
def ann(site, web):
    return site.client(web)


@pytest.fixture(scope="module")
def worker(site, web):  # pylint: disable=unused-argument
    return site.worker(slots=8)


def check_one_end(site, job):
    moves = site.moves(job)
    assert sum(moves.count(end) for end in TERMINAL) == 1, moves
    wait_until("its processes to be gone", lambda: not sluice.job_pids(job))


def test_a_cancel_whose_web_dies_after_the_commit_reaches_the_owner(site, ann, worker):
    del worker
    traces = Traces(site.path("cut"))
    with injected("F-34 command", site, ends=["CANCELLED"]) as hit:
        second = site.web("dies", fault="job.cancel.after_commit=kill@1")
        job = ann.submit(*traces.command("one"))
        traces.wait_runs("one")
        ann.wait_status(job, "RUNNING")
        with pytest.raises(OSError):
            site.client(second).cancel(job)
        assert second.wait() == -9
        hit.healed()
        ann.wait_status(job, "CANCELLED")
        check_one_end(site, job)
        site.wait_clean()


def test_a_waiting_job_is_cancelled_and_its_message_is_stale(site, web, ann):
    site.client(web, "root", "admin").put_queue("idle", 1, "'idle' IN tags").expect(201)
    with injected("F-34 queued", site, ends=["CANCELLED"]) as hit:
        job = ann.submit("true", tags=["idle"])
        ann.cancel(job).expect(200)
        hit.healed()
        late = site.worker("idle", slots=1)
        site.wait_clean()
        assert site.moves(job) == ["PENDING", "CANCELLED"]
        assert late.stop() == 0


def test_a_blocked_job_is_cancelled_for_good(site, web, ann, worker):
    del worker
    root = site.client(web, "root", "admin")
    root.put("/v1/apps/held/1", {"command": ["true"]}).expect(200, 201)
    root.post("/v1/apps/held/1/disable").expect(200)
    with injected("F-34 blocked", site, ends=["CANCELLED"]) as hit:
        job = ann.submit(appId="held", appVersion="1")
        ann.wait_status(job, "BLOCKED")
        ann.cancel(job).expect(200)
        hit.healed()
        assert ann.job(job)["status"] == "CANCELLED"
        root.post("/v1/apps/held/1/enable").expect(200)
        site.wait_clean()
        assert site.moves(job)[-2:] == ["BLOCKED", "CANCELLED"]
        assert site.count("job_blocked") == 0


def test_a_second_cancel_changes_nothing(site, ann, worker):
    del worker
    traces = Traces(site.path("twice"))
    with injected("F-34 twice", site, ends=["CANCELLED"]) as hit:
        job = ann.submit(*traces.command("one"))
        traces.wait_runs("one")
        ann.cancel(job).expect(200, 202)
        ann.cancel(job).expect(200, 202, 409)
        hit.healed()
        ann.wait_status(job, "CANCELLED")
        assert ann.cancel(job).problem(409)
        check_one_end(site, job)
        site.wait_clean()


def test_of_cancel_and_end_one_wins(site, ann, worker):
    del worker
    traces = Traces(site.path("race"))
    with injected("F-34 race", site, ends=ENDS) as hit:
        jobs = [ann.submit(*traces.command(str(at), f"gate{at}")) for at in range(24)]
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            def race(at):
                traces.wait_runs(str(at), timeout_s=60)
                traces.open(f"gate{at}")
                return ann.cancel(jobs[at]).expect(200, 202, 409).status
            answers = list(pool.map(race, range(len(jobs))))
        hit.healed()
        ended = [ann.wait_status(job, *ENDS)["status"] for job in jobs]
        for job, answer, status in zip(jobs, answers, ended):
            assert answer != 409 or status == "FINISHED"
            check_one_end(site, job)
        site.wait_clean()
