# SPDX-License-Identifier: MIT
"""Workers as an operator sees them: drained and undrained, and equal names in different folders."""

import os
import shutil
import subprocess

import jobs
from sluice import BIN
from waiting import wait_until


def worker_rows(site):
    return site.sql("SELECT LOWER(HEX(id)), state FROM workers ORDER BY started_at")


def uuid_of(text):
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def test_a_drained_worker_ends_what_it_has_and_takes_nothing_more(fresh):
    site = fresh
    web, worker = site.web(), site.worker(slots=2)
    client = site.client(web, role="admin")
    traces = jobs.Traces(site.path("traces"))
    first = client.submit(*traces.command("first"))
    traces.wait_runs("first")
    name = uuid_of(worker_rows(site)[0][0])
    assert client.post(f"/v1/workers/{name}/drain").status in (200, 202)
    worker.wait_log("worker.drained")
    wait_until("the worker to say that it receives nothing", lambda: worker.ready() == 503, 10)
    second = client.submit("true")
    traces.open()
    assert client.wait_end(first)["status"] == "FINISHED"
    assert client.job(second)["status"] == "PENDING"
    assert worker.alive()
    assert client.post(f"/v1/workers/{name}/undrain").status in (200, 202)
    assert client.wait_end(second)["status"] == "FINISHED"
    wait_until("the worker to be ready", lambda: worker.ready() == 200, 10)


def test_the_command_line_drains(fresh):
    site = fresh
    web, worker = site.web(), site.worker()
    client = site.client(web, role="admin")
    name = uuid_of(worker_rows(site)[0][0])

    def sluice(*words):
        return subprocess.run([os.path.join(BIN, "sluice"), *words], env={
            "SLUICE_URL": client.url, "SLUICE_TOKEN": client.token}, capture_output=True, text=True,
            check=False)
    done = sluice("drain", name)
    assert done.returncode == 0 and "takes no further jobs" in done.stderr, done
    worker.wait_log("worker.drained")
    assert sluice("undrain", name).returncode == 0
    assert client.wait_end(client.submit("true"))["status"] == "FINISHED"
    gone = sluice("drain", "00000000-0000-7000-8000-000000000000", name)
    assert gone.returncode == 1 and "SLUICE-1020" in gone.stderr
    worker.wait_log("worker.drained")


def test_a_drain_whose_command_was_lost_comes_with_the_next_beat(fresh):
    site = fresh
    web, worker = site.web(), site.worker()
    client = site.client(web)
    site.sql("UPDATE workers SET draining = 1")
    worker.wait_log("worker.drained")
    job = client.submit("true")
    site.sql("UPDATE workers SET draining = 0")
    assert client.wait_end(job)["status"] == "FINISHED"


def test_workers_of_equal_names_in_different_folders_leave_each_other_alone(fresh):
    """As two containers with one host name have them."""
    site = fresh
    web = site.web()
    client = site.client(web)
    traces = jobs.Traces(site.path("traces"))
    site.worker(name="same", slots=1)
    first = client.submit(*traces.command("first"))
    traces.wait_runs("first")
    other = site.path("other-work")
    os.mkdir(other)
    site.worker(name="same", slots=1, worker_work_root=other)
    second = client.submit(*traces.command("second"))
    traces.wait_runs("second")
    assert [row[1] for row in worker_rows(site)] == ["live", "live"]
    traces.open()
    for job in (first, second):
        assert client.wait_end(job)["status"] == "FINISHED"
        assert site.job_row(job, "losses") == ["0"]
    assert not traces.overlapped()


def test_a_folder_keeps_its_identity_and_its_worker_is_known_by_it(fresh):
    site = fresh
    web, worker = site.web(), site.worker(name="again")
    with open(site.path("work", "again", "identity"), encoding="ascii") as kept:
        identity = kept.read()
    worker.kill9()
    worker.start()
    with open(site.path("work", "again", "identity"), encoding="ascii") as kept:
        assert kept.read() == identity
    wait_until("one to replace the other",
               lambda: sorted(row[1] for row in worker_rows(site)) == ["live", "replaced"])
    client = site.client(web)
    assert client.wait_end(client.submit("true"))["status"] == "FINISHED"


def test_a_copy_of_a_folder_whose_worker_lives_gets_an_identity_of_its_own(fresh):
    """As in a virtual machine that was cloned, or a folder that was copied for a second worker."""
    site = fresh
    web = site.web()
    client = site.client(web)
    traces = jobs.Traces(site.path("traces"))
    first = site.worker(name="first", slots=1)
    job = client.submit(*traces.command("job"))
    traces.wait_runs("job")
    os.mkdir(site.path("work", "second"))
    kept = [site.path("work", name, "identity") for name in ("first", "second")]
    shutil.copy(*kept)
    site.worker(name="second", slots=1).wait_log("worker.folder.copied")
    identities = set()
    for path in kept:
        with open(path, encoding="ascii") as identity:
            identities.add(identity.read())
    assert len(identities) == 2
    traces.open()
    assert client.wait_end(job)["status"] == "FINISHED"
    assert site.job_row(job, "losses") == ["0"]
    assert [row[1] for row in worker_rows(site)] == ["live", "live"]
    assert first.alive()
