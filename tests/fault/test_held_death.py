# SPDX-License-Identifier: MIT
"""A worker that dies while it holds a job, or lets it in: the job goes on, and runs once."""

import pytest

from injection import injected
from waiting import wait_until

OFTEN = "constant every=500ms"
POLICIES = {"recovery_first_test_ms": 100, "recovery_application_unavailable": OFTEN,
            "recovery_quota_exceeded": OFTEN, "recovery_connection_failed": OFTEN}
POINTS = {"block": "job.block.after_commit", "blocked": "worker.acknowledged"}


@pytest.fixture(scope="module")
def ann(site):
    site.reader("recovery", recovery_tick_ms=200, recovery_ramp_pause_ms=100,
                recovery_outbox_age_ms=1000)
    return site.client(site.web())


@pytest.fixture(scope="module")
def root(site, ann):
    return site.client(ann, "root", "admin")


@pytest.fixture
def queue(site, root):
    """A queue of this test alone, so that only the worker that shall die gets its job."""
    name = f"q{site.count('job_queues')}"
    root.put_queue(name, site.count("job_queues") + 1, f"'{name}' IN tags").expect(201)
    yield name
    for process in [each for each in site.processes if each.program == "sluice-worker"]:
        print(f"---- {process.name}\n{process.log_tail()}")
        if process.alive():
            process.stop()
        site.processes.remove(process)


def start(site, queue, name, **more):
    return site.worker(queue, f"{queue}-{name}", slots=1, **(POLICIES | more))


def check_end(site, ann, job):
    ended = ann.wait_end(job)
    assert ended["status"] == "FINISHED" and ended["losses"] == 0 and ended["attempts"] == 1, ended
    assert site.moves(job).count("RUNNING") == 1
    assert site.count("job_blocked", f"job_id = 0x{job.replace('-', '')}") == 0
    site.wait_clean()


@pytest.mark.parametrize("key", POINTS)
def test_a_job_that_is_held_stays_held_until_its_application_is_enabled(
        site, root, ann, queue, key):
    root.put(f"/v1/apps/{queue}/1", {"command": ["true"], "tags": [queue]}).expect(201)
    root.post(f"/v1/apps/{queue}/1/disable").expect(200)
    with injected(f"F-2 {key}", site) as hit:
        worker = start(site, queue, "a", fault=f"{POINTS.get(key, 'worker.claimed')}=kill@1")
        job = ann.submit(appId=queue, appVersion="1")
        assert worker.wait() == -9, worker.log_tail()
        start(site, queue, "b")
        assert ann.job(job)["status"] == "BLOCKED"
        site.wait_clean()  # the message that came back was acknowledged
        hit.healed()
        root.post(f"/v1/apps/{queue}/1/enable").expect(200)
        check_end(site, ann, job)


@pytest.mark.parametrize("key", ["K6", *POINTS])
def test_a_place_in_a_quota_is_not_lost_with_a_worker(site, root, ann, queue, key):
    """The only place is taken; then it is free, and who dies had it, or had just not got it."""
    user = site.client(ann, f"user-{queue}")
    root.put(f"/v1/quotas/user-{queue}", {"maxActive": 1}).expect(201)
    gate = site.path(f"gate-{queue}")
    with injected(f"F-2 {key}", site) as hit:
        first = user.submit("sh", "-c", f"while [ ! -e {gate} ]; do sleep 0.1; done", tags=[queue])
        start(site, queue, "a")
        user.wait_status(first, "RUNNING")
        worker = start(site, queue, "b", fault=f"{POINTS.get(key, 'worker.claimed')}=kill@1")
        second = user.submit("true", tags=[queue])
        assert worker.wait() == -9, worker.log_tail()
        with open(gate, "w", encoding="ascii"):
            pass
        hit.healed()
        for job in (first, second):
            check_end(site, user, job)
        wait_until("the cause to go", lambda: site.count("job_recovery", "tester = 'quota'") == 0)
