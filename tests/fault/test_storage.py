# SPDX-License-Identifier: MIT
"""Full disks, and a broker that takes no messages: a job ends with a reason or waits, and goes on
when there is room again."""

import contextlib
import os
import subprocess

import pytest

import sluice
from injection import impossible, injected
from jobs import Traces
from servers import Servers
from sluice import Site
from waiting import wait_until

REQUEST = {"name": "full", "command": ["true"]}


@contextlib.contextmanager
def small_disk(row, path, size):
    """A file system of this size at `path`; the test is skipped where that is not allowed."""
    os.makedirs(path, exist_ok=True)
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=0755", "none", path],
                          capture_output=True, check=False)
    if done.returncode:
        impossible(row, "needs root: it mounts small file systems")
        pytest.skip("no mount")
    try:
        yield path
    finally:
        subprocess.run(["umount", "-l", path], check=True)


def fill(path):
    """Leaves no room at all; the name of the file that takes it."""
    name = os.path.join(path, "filler")
    with open(name, "wb", buffering=0) as out, contextlib.suppress(OSError):
        for size in (1 << 16, 1 << 12, 1):
            with contextlib.suppress(OSError):
                while out.write(b"\0" * size):
                    pass
    return name


def test_a_full_archive_ends_jobs_with_a_reason_and_the_service_lives(fresh):
    row = "F-10 archive"
    with small_disk(row, fresh.path("small"), "16m") as disk:
        with injected(row, fresh, ends=("FAILED", "FINISHED")) as hit:
            ann = fresh.client(fresh.web(archive_root=disk))
            worker = fresh.worker(archive_root=disk)
            ann.wait_status(ann.submit("true"), "FINISHED")
            writer = ann.submit("sh", "-c", "head -c 40000000 /dev/urandom")
            ended = ann.wait_end(writer)
            assert (ended["status"], ended["condition"]) == ("FAILED", "OUTPUT_DISK_FULL"), ended
            filler = fill(disk)
            full = ann.submit("echo", "x")
            assert ann.wait_end(full)["status"] in ("FAILED", "FINISHED")
            assert worker.ready() == 200
            os.unlink(filler)
            for path, _folders, files in os.walk(disk):
                for name in files:
                    os.unlink(os.path.join(path, name))
            hit.healed()
            good = ann.submit("echo", "room")
            ann.wait_status(good, "FINISHED")
            assert ann.output(good) == b"room\n"
            fresh.wait_clean()


def test_a_full_work_folder_holds_jobs_up_and_loses_none(fresh):
    row = "F-10 work"
    with small_disk(row, fresh.path("small"), "16m") as disk:
        with injected(row, fresh, ends=("FAILED", "FINISHED")) as hit:
            ann = fresh.client(fresh.web())
            worker = fresh.worker(worker_work_root=disk)
            traces = Traces(fresh.path("traces"))
            running = ann.submit(*traces.command("running"))
            traces.wait_runs("running")
            ann.wait_status(running, "RUNNING")
            filler = fill(disk)
            traces.open()
            late = ann.submit(*traces.command("late"))
            wait_until("its process to end", lambda: not sluice.job_pids(running))
            assert worker.alive() and worker.ready() == 200
            os.unlink(filler)
            hit.healed()
            ended = [ann.wait_end(job) for job in (running, late)]
            assert ended[0]["status"] == "FINISHED", ended
            assert ended[1]["status"] == "FINISHED" or "ENOSPC" in ended[1]["reason"], ended
            ann.wait_status(ann.submit("true"), "FINISHED")
            fresh.wait_clean()


def test_a_database_without_room_refuses_and_goes_on_when_there_is_some(tmp_path):
    row = "F-10 database"
    with small_disk(row, str(tmp_path / "mariadb"), "400m") as disk, \
            Servers(str(tmp_path)) as servers, Site(servers) as own:
        with injected(row, own) as hit:
            ann = own.client(own.web())
            traces = Traces(own.path("traces"))
            worker = own.worker()
            running = ann.submit(*traces.command("running"))
            traces.wait_runs("running")
            ann.wait_status(running, "RUNNING")
            filler = fill(disk)
            big = REQUEST | {"command": ["true", "x" * 100_000]}
            refused = wait_until("a refusal", lambda: next((answer for answer in [
                ann.post("/v1/jobs", big)] if answer.status not in (200, 201)), None), 60)
            assert refused.status in (500, 503, 504), refused
            traces.open()
            os.unlink(filler)
            servers.mariadb.kill9()  # it may hang or end when it cannot write its own log
            servers.mariadb.start()
            servers.mariadb.wait_ready()
            hit.healed()
            wait_until("submissions", lambda: ann.post("/v1/jobs", REQUEST).status == 201, 60)
            assert worker.alive()
            wait_until(lambda: str(own.sql("SELECT status, COUNT(*) FROM jobs GROUP BY 1")),
                       lambda: not own.count("jobs", "status <> 'FINISHED'"), 60)
            own.wait_clean()


@pytest.mark.parametrize("row, limit", [
    ("F-9 disk", ("set_disk_free_limit", "100000GB")),
    ("F-9 acks", ("set_vm_memory_high_watermark", "0.00001"))])
def test_while_the_broker_takes_nothing_what_runs_ends_and_is_acknowledged(
        own, servers, row, limit):
    usual = {"set_disk_free_limit": "50MB", "set_vm_memory_high_watermark": "0.6"}
    with injected(row, own) as hit:
        ann, worker = own.client(own.web()), own.worker()
        traces = Traces(own.path("traces"))
        job = ann.submit(*traces.command("one"))
        traces.wait_runs("one")
        ann.wait_status(job, "RUNNING")
        servers.rabbitmq.ctl(*limit)
        try:
            wait_until("the refusal", lambda: ann.post("/v1/jobs", REQUEST).status == 503)
            assert ann.post("/v1/jobs", REQUEST).problem(503)["code"] == "SLUICE-1052"
            traces.open()
            ann.wait_status(job, "FINISHED")
            wait_until("its acknowledgement", lambda: own.queues()[
                "sluice.acme.submit.default"][1] == 0)
        finally:
            servers.rabbitmq.ctl(limit[0], usual[limit[0]])
        hit.healed()
        wait_until("submissions", lambda: ann.post("/v1/jobs", REQUEST).status == 201, 60)
        wait_until("all to end", lambda: not own.count("jobs", "status <> 'FINISHED'"), 60)
        assert worker.alive()
        own.wait_clean()
