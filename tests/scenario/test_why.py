# SPDX-License-Identifier: MIT
"""Why a job is where it is: plain words, and the data behind it, from submission to the end."""

import json
import re
import time

import pytest

from jobs import Traces
from waiting import wait_until

MANY = 20000


@pytest.fixture(name="web", scope="module")
def fixture_web(site):
    return site.web()


@pytest.fixture(name="ann", scope="module")
def fixture_ann(site, web):
    site.client(web, "root", "admin").put_queue("idle", 1, "'idle' IN tags").expect(201)
    return site.client(web)


def why(client, job):
    answer = client.get(f"/v1/jobs/{job}/why").expect(200).json
    assert answer["id"] == job
    assert answer["why"].endswith("."), answer
    return answer


def spanless(text):
    """Two answers differ by the time between them."""
    return re.sub(r"\d+(\.\d)? (s|min)", "SPAN", text)


def test_without_a_worker_the_command_that_starts_one_is_told(ann):
    first, second = ann.submit("true", tags=["idle"]), ann.submit("true", tags=["idle"])
    told = why(ann, second)
    assert "1 job is before it" in told["why"]
    assert "Ask an administrator of this site to start one" in told["why"]
    assert told["data"]["queue"] | {"broker": "up"} == {
        "name": "idle", "exists": True, "enabled": True, "ahead": 1, "aheadIsAll": True, "workers": 0,
        "silent": 0, "drained": 0, "slots": 0, "busy": 0, "beatAgeSeconds": None, "broker": "up"}
    assert "it is the next" in why(ann, first)["why"]
    ann.cancel(first).expect(200)
    assert "ann cancelled it before it had begun" in why(ann, first)["why"]
    ann.cancel(second).expect(200)


def test_a_job_whose_message_is_lost_is_said_to_be_sent_again(fresh):
    web = fresh.web()
    ann = fresh.client(web)
    job = ann.submit("true")
    wait_until("its message to be confirmed", lambda: fresh.count("outbox") == 0)
    with fresh.amqp() as link:
        link.purge("sluice.acme.submit.default")
    fresh.worker(slots=2)
    wait_until(lambda: why(ann, job)["why"],
               lambda: "sluice-recovery sends it again within two leases" in why(ann, job)["why"])


def test_from_a_full_queue_to_the_end(site, web, ann, tmp_path):
    traces = Traces(str(tmp_path / "t"))
    worker = site.worker(slots=1)
    runs = ann.submit(*traces.command("a"), maxMinutes=5)
    ann.wait_status(runs, "RUNNING")
    told = why(ann, runs)
    assert "Its command runs" in told["why"] and "worker 'default-1'" in told["why"]
    assert 0 < told["data"]["leftSeconds"] <= told["data"]["limitSeconds"] == 300
    assert told["data"]["worker"]["state"] == "live"
    waits = ann.submit("sh", "-c", "exit 3")
    wait_until("the slot to be counted", lambda: why(ann, waits)["data"]["queue"]["busy"] == 1)
    assert "1 of 1 slots of its 1 worker are busy" in why(ann, waits)["why"]
    said = site.run("why", waits, client=ann)
    assert said.returncode == 0
    assert spanless(said.stdout.strip()) == spanless(why(ann, waits)["why"])
    said = site.run("why", waits, "-o", "json", client=ann)
    assert json.loads(said.stdout)["status"] == "PENDING"
    traces.open()
    ann.wait_status(waits, "FAILED")
    assert "exit code 3" in why(ann, waits)["why"]
    ann.wait_status(runs, "FINISHED")
    assert "exit code 0" in why(ann, runs)["why"]
    assert worker.stop() == 0


def test_a_held_job_names_the_cause_and_that_nobody_checks(site, web, ann):
    root = site.client(web, "root", "admin")
    root.put("/v1/apps/off/1", {"command": ["true"]}).expect(201)
    root.post("/v1/apps/off/1/disable").expect(200)
    worker = site.worker(name="blocker")
    job = ann.submit(appId="off", appVersion="1")
    ann.wait_status(job, "BLOCKED")
    told = why(ann, job)
    assert "application off version 1 is disabled, by root" in told["why"]
    assert told["data"]["blocked"]["params"] == {"app": "off", "version": "1"}
    assert told["data"]["blocked"]["resumeStatus"]
    site.sql("UPDATE job_recovery SET next_at = UTC_TIMESTAMP(6) - INTERVAL 1 HOUR")
    assert "sluice-recovery may not be running" in why(ann, job)["why"]
    worker.kill9()
    assert worker.pid


def test_the_job_of_another_tenant_is_not_there(site, web, ann):
    job = ann.submit("true", tags=["idle"])
    site.stranger(web).get(f"/v1/jobs/{job}/why").expect(404)
    ann.cancel(job).expect(200)


def test_it_is_quick_however_many_wait(site, ann):
    job = ann.submit("true", tags=["idle"])
    key = job.replace("-", "")
    site.audited = False  # what comes now has no history
    site.sql("INSERT INTO jobs (id, tenant, owner, name, queue, status, epoch, node_count, "
             "cores_per_node, memory_mb, max_seconds, request, created_at, updated_at) "
             "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 900) "
             "SELECT UNHEX(LPAD(HEX(a.i * 1000 + b.i), 32, '0')), tenant, owner, name, queue, "
             "status, epoch, 1, 1, 0, 60, '{}', created_at, updated_at "
             f"FROM n a, n b, jobs WHERE jobs.id = 0x{key} AND a.i <= {MANY // 900 + 1}")
    assert site.count("jobs", "status = 'PENDING'") > MANY
    took = []
    while len(took) < 7 or (min(took) >= 0.02 and len(took) < 100):
        began = time.monotonic()
        told = why(ann, job)
        took.append(time.monotonic() - began)
    assert "more than 1000 jobs are before it" in told["why"], told
    assert min(took) < 0.02, took  # a busy machine delays some of them, not what it takes
