# SPDX-License-Identifier: MIT
"""Cancel in every state: CANCELLED, nothing left, within a second plus grace."""

import fcntl
import http.server
import os
import signal
import threading
import time

import pytest

import sluice
from jobs import Traces
from waiting import wait_until

GRACE_S = 1.0
LIMIT_S = 1.0 + GRACE_S
TRIES = 5  # a busy machine delays some of them, not what it takes

STUBBORN = """
trap '' TERM INT HUP
setsid sh -c 'trap "" TERM; while :; do sleep 0.2; done' &
(sh -c 'trap "" TERM; while :; do sleep 0.2; done' & ) &
echo up
while :; do sleep 0.2; done
"""


@pytest.fixture(scope="module")
def ann(site):
    web = site.web()
    site.worker(slots=4)
    root = site.client(web, "root", "admin")
    root.put_queue("idle", 1, "'idle' IN tags").expect(201)
    root.put_queue("lonely", 2, "'lonely' IN tags").expect(201)
    root.put_queue("polite", 3, "'polite' IN tags").expect(201)
    site.worker("polite", slots=1, worker_grace_ms=20000)
    return site.client(web)


def cancel(ann, job):
    began = time.monotonic()
    answer = ann.cancel(job).expect(200, 202)
    ended = ann.wait_status(job, "CANCELLED")
    assert ended["condition"] == "CANCELLED_BY_USER", ended
    return answer.status, time.monotonic() - began


def cancel_within(limit_s, ann, begin):
    """The first of some jobs that are begun alike that is cancelled in time."""
    took = []
    while not took or took[-1] >= limit_s:
        assert len(took) < TRIES, took
        job = begin()
        status, seconds = cancel(ann, job)
        took.append(seconds)
    return job, status, took[-1]


def test_a_waiting_job_is_cancelled_at_once(site, ann):
    job, status, _ = cancel_within(1, ann, lambda: ann.submit("true", tags=["idle"]))
    assert status == 200
    assert site.moves(job) == ["PENDING", "CANCELLED"]


def test_its_message_is_found_stale_and_goes(site, ann):
    cancel(ann, ann.submit("true", tags=["idle"]))
    worker = site.worker("idle", slots=1)
    site.wait_clean()
    worker.stop()


class Stalling(http.server.BaseHTTPRequestHandler):
    asked = threading.Event()
    let_go = threading.Event()

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        self.asked.set()
        self.let_go.wait(60)

    def log_message(self, *unused):
        pass


@pytest.fixture
def stalling():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Stalling)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/input"
    Stalling.let_go.set()
    server.shutdown()
    server.server_close()


def test_staging_is_interrupted(ann, stalling):
    def begin():
        Stalling.asked.clear()
        job = ann.submit("true", fileInputs=[{"sourceUrl": stalling, "targetPath": "in"}])
        assert Stalling.asked.wait(30)
        return job
    cancel_within(LIMIT_S, ann, begin)


def test_a_running_job_that_ignores_term_goes_with_all_its_descendants(ann):
    def begin():
        job = ann.submit("sh", "-c", STUBBORN)
        ann.wait_status(job, "RUNNING")
        wait_until("its processes", lambda: len(sluice.job_pids(job)) >= 4)
        return job
    job, status, took = cancel_within(LIMIT_S, ann, begin)
    assert status == 202 and took >= GRACE_S * 0.5
    assert not sluice.job_pids(job)


def test_a_polite_job_is_gone_before_its_grace_is_over(ann):
    job = ann.submit("sleep", "600", tags=["polite"])
    wait_until("its process", lambda: sluice.job_pids(job))
    _status, took = cancel(ann, job)
    assert took < 15 and not sluice.job_pids(job)


def test_a_job_that_has_ended_answers_409_with_its_state(ann):
    job = ann.submit("true")
    ann.wait_end(job)
    problem = ann.cancel(job).problem(409)
    assert "FINISHED" in problem["detail"]


def test_cancelling_twice_is_one_cancellation(site, ann):
    traces = Traces(site.path("twice"))
    job = ann.submit(*traces.command("a"))
    traces.wait_runs("a")
    ann.cancel(job).expect(200, 202)
    ann.cancel(job).expect(200, 202, 409)
    ann.wait_status(job, "CANCELLED")
    assert site.moves(job).count("CANCELLED") == 1


def test_a_cancelled_job_can_be_submitted_again(ann):
    job = ann.submit("true", tags=["idle"])
    cancel(ann, job)
    again = ann.post(f"/v1/jobs/{job}/resubmit").expect(201).json
    assert again["id"] != job and again["status"] == "PENDING"
    cancel(ann, again["id"])


@pytest.fixture
def lonely(site):
    """A worker of its own, and its folder."""
    yield site.worker("lonely", slots=1), site.path("work", "lonely-1")


class HeldLock:
    """No runner can start in the folder: we hold its lock, and the former one is killed."""

    def __init__(self, worker, folder):
        worker.signal(signal.SIGSTOP)
        os.waitid(os.P_PID, worker.pid, os.WSTOPPED)
        os.kill(sluice.runner_of(folder), signal.SIGKILL)
        self.file = open(os.path.join(folder, "runner.lock"), "r+", encoding="ascii")
        fcntl.flock(self.file, fcntl.LOCK_EX)
        worker.signal(signal.SIGCONT)

    def release(self):
        self.file.close()


def test_a_job_whose_process_cannot_be_started_is_cancelled(site, ann, lonely):
    worker, folder = lonely
    lock = HeldLock(worker, folder)
    try:
        job = ann.submit("sleep", "300", tags=["lonely"])
        worker.wait_log("worker.start.waits")
        cancel(ann, job)
    finally:
        lock.release()
    after = ann.submit("true", tags=["lonely"])
    ann.wait_status(after, "FINISHED", timeout_s=20)
    worker.stop()


def test_a_job_that_its_runner_does_not_know_is_cancelled(site, ann, lonely):
    worker, folder = lonely
    job = ann.submit("sleep", "300", tags=["lonely"])
    ann.wait_status(job, "RUNNING")
    lock = HeldLock(worker, folder)
    for name in ("runner.journal.0", "runner.journal.1"):
        os.unlink(os.path.join(folder, name))
    lock.release()
    wait_until("another runner", lambda: sluice.runner_of(folder))
    cancel(ann, job)
    worker.stop()
