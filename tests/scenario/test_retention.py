# SPDX-License-Identifier: MIT
"""What is old goes, with its output, and nothing else does; a removal that was cut short goes on."""

import json
import os
import signal
import uuid

import pytest

from waiting import stays_true, wait_until

DAY_MS = 86400000
FAST = {"recovery_tick_ms": 200, "retention_interval_s": 1}


def age(site, job, days):
    """The job as if it had been submitted and had ended so many days before; its id by then."""
    number = uuid.UUID(job).int - (days * DAY_MS << 80)
    older = str(uuid.UUID(int=number))
    old, new = job.replace("-", ""), older.replace("-", "")
    site.sql(f"UPDATE job_events SET job_id = 0x{new}, at = at - INTERVAL {days} DAY "
             f"WHERE job_id = 0x{old}; UPDATE jobs SET id = 0x{new}, "
             f"created_at = created_at - INTERVAL {days} DAY, "
             f"started_at = started_at - INTERVAL {days} DAY, "
             f"ended_at = ended_at - INTERVAL {days} DAY WHERE id = 0x{old}; "
             f"UPDATE job_blocked SET job_id = 0x{new} WHERE job_id = 0x{old}; "
             f"DELETE FROM idempotency_keys WHERE job_id = 0x{old}")
    if os.path.exists(folder(site, job)):
        os.rename(folder(site, job), folder(site, older))
    return older


def folder(site, job):
    return site.path("archive", "acme", job)


def is_there(site, job):
    return site.job_row(job, "status") is not None


def finished(site, client, count):
    """Jobs that have run and wrote something."""
    before = site.count("jobs", "status = 'FINISHED'")
    request = {"name": "test", "command": ["sh", "-c", "echo hello; echo trouble >&2"]}
    answer = client.post("/v1/jobs:batch", {"jobs": [request] * count}).expect(200)
    wait_until("all to end",
               lambda: site.count("jobs", "status = 'FINISHED'") == before + count, 60, 0.2)
    # A row of the outbox would keep them, and name them by the id they had.
    wait_until("their messages to be off the outbox", lambda: site.count("outbox") == 0)
    site.accepted.clear()  # they are meant to go
    return [item["job"]["id"] for item in answer.json["items"]]


@pytest.fixture(name="client", scope="module")
def fixture_client(site):
    """Of a site with a worker, for the tests that leave nothing behind."""
    web = site.web()
    site.worker()
    return site.client(web)


def purge(site, *words, code=0, **settings):
    done = site.run("purge", "-o", "json", *words, **settings)
    assert done.returncode == code, done
    return {line["what"]: line | {"before": None} for line in json.loads(done.stdout)} \
        if done.stdout else done.stderr


def test_old_jobs_go_and_active_ones_stay(fresh):
    site = fresh
    web = site.web()
    client, root = site.client(web), site.client(web, "root", "admin")
    worker = site.worker()
    young, old, older = finished(site, client, 3)
    old, older = age(site, old, 31), age(site, older, 29)
    bad = client.submit("sh", "-c", "echo no; exit 1")
    assert client.wait_end(bad)["status"] == "FAILED"
    bad, bad_old = age(site, bad, 31), client.submit("sh", "-c", "echo no; exit 1")
    assert client.wait_end(bad_old)["status"] == "FAILED"
    bad_old = age(site, bad_old, 91)
    root.put("/v1/apps/demo/1", {"command": ["true"]}).expect(201)
    root.post("/v1/apps/demo/1/disable").expect(200)
    blocked = client.submit(appId="demo", appVersion="1")
    client.wait_status(blocked, "BLOCKED")
    blocked = age(site, blocked, 400)
    assert worker.stop() == 0
    waiting = age(site, client.submit("true"), 400)
    site.sql("DELETE FROM outbox")
    recovery = site.reader("recovery", **FAST)
    passed = recovery.wait_log("retention.passed", 20)
    assert json.loads(passed)["finished"] == 1 and json.loads(passed)["failed"] == 1, passed
    for job, stays in ((young, True), (old, False), (older, True), (bad, True), (bad_old, False),
                       (blocked, True), (waiting, True)):
        assert is_there(site, job) == stays, job
        if job not in (blocked, waiting):
            assert os.path.isdir(folder(site, job)) == stays, job
    assert client.get(f"/v1/jobs/{old}").status == 404
    assert client.output(young) == b"hello\n"
    assert site.count("job_events", f"job_id = 0x{old.replace('-', '')}") == 0
    def shown():
        return site.client(recovery).get("/metrics").body.decode()
    wait_until(shown, lambda: "sluice_archive_jobs 3\n" in shown())  # young, older, bad
    assert 'sluice_retention_removed_total{kind="finished"} 1' in shown()
    assert 'sluice_table_bytes{table="jobs"}' in shown()
    site.accepted.clear()


def test_a_removal_that_was_killed_goes_on_where_it_was(fresh):
    """kill -9 between the output and the rows: the job is still there, and goes next time."""
    site = fresh
    web = site.web()
    client = site.client(web)
    worker = site.worker()
    jobs = [age(site, job, 40) for job in finished(site, client, 66)]
    worker.stop()
    victim = site.reader("recovery", wait=False, fault="retention.output.removed=kill@2", **FAST)
    assert victim.wait(30) == -signal.SIGKILL
    left = site.count("jobs")
    assert left == 66 - 64, "one batch had gone"
    assert not any(os.path.exists(folder(site, job)) for job in jobs), "and the output of the next"
    half = next(job for job in jobs if is_there(site, job))
    gone = client.get(f"/v1/jobs/{half}/output/stdout").problem(410)
    assert gone["code"] == "SLUICE-1022"
    del victim.env["SLUICE_FAULT"]
    victim.start()
    wait_until("the rest to go", lambda: site.count("jobs") == 0, 30)
    assert site.count("job_events") == 0
    site.accepted.clear()


def test_output_without_a_job_is_found_and_removed(site, client):
    young, = finished(site, client, 1)
    orphans = []
    for days in (10, 100):
        number = uuid.UUID(young).int - (days * DAY_MS << 80)
        orphans.append(str(uuid.UUID(int=number)))
        os.makedirs(os.path.join(folder(site, orphans[-1]), "1"))
        with open(os.path.join(folder(site, orphans[-1]), "1", "stdout"), "wb") as out:
            out.write(b"x" * 1000)
    os.makedirs(site.path("archive", "acme", "not-a-job"))
    told = purge(site, "--dry-run", "--sweep")
    assert told["output"]["rows"] == 1 and told["output"]["bytes"] == 1000
    assert os.path.isdir(folder(site, orphans[1]))
    assert purge(site, "--sweep") == told
    assert not os.path.exists(folder(site, orphans[1]))
    for kept in (folder(site, orphans[0]), folder(site, young), site.path("archive", "acme", "not-a-job")):
        assert os.path.isdir(kept), kept


def test_purge_tells_what_would_go_and_then_does_it(site, client):
    old, young = finished(site, client, 2)
    old = age(site, old, 31)
    site.sql("INSERT INTO tenants (name, created_at) VALUES ('empty', NOW(6))")
    before = site.sql("CHECKSUM TABLE jobs, job_events")
    told = purge(site, "--dry-run")
    assert told["FINISHED jobs"]["rows"] == 1 and told["output"]["bytes"] == 14
    assert told["events of these jobs"]["rows"] >= 3
    assert before == site.sql("CHECKSUM TABLE jobs, job_events")
    assert os.path.isdir(folder(site, old))
    assert purge(site, "--tenant", "empty")["FINISHED jobs"]["rows"] == 0
    assert is_there(site, old)
    assert purge(site) == told
    assert not is_there(site, old) and is_there(site, young)
    assert not os.path.exists(folder(site, old))
    young = age(site, young, 2)
    assert purge(site, "--before", "2000-01-01")["FINISHED jobs"]["rows"] == 0
    refused = purge(site, "--before", "2999-01-01", code=1)
    assert "Idempotency-Key" in refused
    assert "is no time" in purge(site, "--before", "yesterday", code=2)
    purge(site, "--before", "1970-01-01", code=2)
    (hours,), = site.sql("SELECT DATE_FORMAT(UTC_TIMESTAMP() - INTERVAL 26 HOUR, "
                         "'%Y-%m-%dT%H:%i:%sZ')")
    assert purge(site, "--before", hours)["FINISHED jobs"]["rows"] == 1
    site.accepted.clear()


def test_a_purge_by_hand_is_in_the_audit_log(site, client):
    root = site.client(site.processes[0], "root", "admin")

    def of_site():
        return [row[0] for row in site.sql("SELECT detail FROM audit_log WHERE tenant IS NULL AND "
                                           "action = 'purge' AND actor LIKE 'os:%' ORDER BY id")]
    old, = finished(site, client, 1)
    age(site, old, 31)
    before = len(of_site())
    purge(site, "--dry-run")
    assert len(of_site()) == before
    purge(site)
    begun, removed = of_site()[before:]
    assert begun.startswith("begun: finished 30 failed 90") and removed.startswith("removed: finished 1,")
    row = root.get("/v1/audit?action=purge&limit=1").expect(200).json["audit"][0]
    assert row["detail"] == "removed: 1 jobs, with history and output"
    assert row["actor"].startswith("os:") and row["method"] == "CLI" and row["outcome"] == "done"
    purge(site, "--tenant", "acme")
    purge(site)
    seen = root.get("/v1/audit?action=purge&limit=3").expect(200).json["audit"]
    assert [row["detail"].split(":")[0] for row in seen] == ["removed", "begun", "removed"]
    assert seen[2]["id"] == row["id"], "nothing of this tenant went with the last one"
    site.accepted.clear()


def test_output_that_cannot_be_removed_keeps_its_job(site, client):
    """The first removal fails, as that of a mount point does for every user: that of the older job."""
    stays, goes = finished(site, client, 2)
    stays, goes = age(site, stays, 50), age(site, goes, 40)
    with pytest.MonkeyPatch.context() as faults:
        faults.setenv("SLUICE_FAULT", "fs.remove=fail@1")
        done = site.run("purge")
    assert done.returncode == 1 and "could not be removed" in done.stderr, done
    assert is_there(site, stays) and not is_there(site, goes)
    assert site.run("purge").returncode == 0 and not is_there(site, stays)


def test_somebody_else_removes_now(site):
    patient = {"fleet_lease_ms": 60000}  # so long his silence is no sign that he has gone
    site.sql("UPDATE retention SET holder = 0x01, renewed_at = UTC_TIMESTAMP(6)")
    done = site.run("purge", **patient)
    assert done.returncode == 1 and "sluice-recovery" in done.stderr, done
    assert site.run("purge", "--dry-run").returncode == 0
    recovery = site.reader("recovery", **FAST, **patient)
    stays_true("nothing is done", lambda: not recovery.log_events("retention.passed"), 1.5)
    assert recovery.log_events("retention.failed") == []
    site.sql("UPDATE retention SET holder = NULL")
    recovery.wait_log("retention.passed")
    assert recovery.stop() == 0


def test_a_reader_of_events_is_told_that_some_are_gone(site, client):
    old, young = finished(site, client, 2)
    first = int(site.sql("SELECT MIN(seq) FROM job_events")[0][0])
    old = age(site, old, 40)
    purge(site)
    (mark,), = site.sql("SELECT events_upto FROM retention")
    assert int(mark) >= first
    gone = client.get("/v1/events", **{"Last-Event-ID": str(first)}).problem(410)
    assert mark in gone["detail"]
    assert client.get("/v1/events", **{"Last-Event-ID": mark}).status == 200
    assert client.get(f"/v1/events?after={mark}").status == 200
    assert client.get("/v1/events?after=0").status == 200, "from what there is on"
    assert is_there(site, young)
    site.accepted.clear()
