# SPDX-License-Identifier: MIT
"""A whole site of the version before becomes one of this version, under load.

Submitters go on all the time; short jobs come and go, long ones run through the restart of their
worker. Nothing is lost, doubled or run again; the doctor names what is still old.
"""

import json
import os
import subprocess
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
# pylint: disable=wrong-import-position
import jobs
import previous
import sluice
import told
from receiver import Receiver
from servers import Servers
from steady import Load, check_runs
from waiting import wait_until

LONG_JOBS = 3
SERVICES = {"sluice-web", "sluice-recovery", "sluice-alternate", "sluice-deadletter"}
WORKERS = {"worker 'one'", "worker 'two'"}
LEASE = {"fleet_lease_ms": 20000}  # the default: a restart on a busy machine is shorter than that


def doctor(site):
    """What it says of versions: [(result, finding)]."""
    done = site.run("doctor", "-o", "json", worker_work_root=site.path("work"))
    return [(one["result"], one["finding"]) for one in json.loads(done.stdout)
            if one["check"] == "versions"]


def named_as_old(site):
    found = doctor(site)
    assert all(result == "warning" for result, _ in found), found
    return {finding.split(" of host ")[0] for _, finding in found}


def reach(site):
    """What a worker of the version before would refuse to start with."""
    return {f"SLUICE_{name.upper()}": value for name, value in site.reach().items()}


def version_of(folder):
    done = subprocess.run([os.path.join(folder, "sluice"), "version"], capture_output=True,
                          text=True, check=True)
    return done.stdout.split()[1].rstrip(",")


HOOK = "upgraded"
HERE = "127.0.0.0/8"


class Fleet:
    """Every program of a site, and how one after the other is replaced. One that the version before
    did not have comes as soon as sluice-web is new, so that somebody can subscribe.
    """

    def __init__(self, site):
        self.site, self.web = site, site.web(**LEASE)
        self.workers = [site.worker(name=name, worker_drain_ms=1000, **LEASE)
                        for name in ("one", "two")]
        self.readers = [site.reader(kind, recovery_tick_ms=200, **LEASE)
                        for kind in ("recovery", "alternate", "deadletter")]

    def tell(self, receiver):
        self.site.reader("webhook", webhook_allow_networks=HERE, **LEASE)
        self.site.client(self.web, "root", "admin").put(
            f"/v1/subscriptions/{HOOK}",
            {"url": receiver.url, "states": ["PENDING", "FINISHED"]}).expect(201)

    def replace(self, load, receiver):
        self.web.env["SLUICE_WEBHOOK_ALLOW_NETWORKS"] = HERE
        for process in (*self.readers, self.web, *self.workers):
            assert process.stop() == 0, process.log_tail()
            if process in self.workers:
                process.env |= reach(self.site)
            process.start()
            if process is self.web:
                self.tell(receiver)
            load.wait_more(10)
            yield process


def test_a_site_is_upgraded_under_load():
    name = previous.tag()
    if name is None:
        pytest.skip("the version before is not here: no tag, or no git")
    old = previous.build(name)
    with Servers() as servers, Receiver() as receiver, \
            sluice.Site(servers, programs=old) as site:
        fleet = Fleet(site)
        ann = site.client(fleet.web)
        traces = jobs.Traces(site.path("traces"))
        long_jobs = [ann.submit(*traces.command(f"long{n}")) for n in range(LONG_JOBS)]
        for number in range(LONG_JOBS):
            traces.wait_runs(f"long{number}")
        load = Load(site, fleet.web.url, traces.path("short"))
        load.wait_more(30)
        pids = [traces.runs(f"long{n}")[0] for n in range(LONG_JOBS)]

        site.programs = sluice.BIN
        migrated = site.run("migrate")
        assert migrated.returncode == 0, migrated
        load.wait_more(30)
        said = set() if version_of(old).startswith("0.1.") else SERVICES  # that one did not say
        assert named_as_old(site) == said | WORKERS
        for number, _ in enumerate(fleet.replace(load, receiver)):
            if number == 4:  # one worker is new, the other is not
                middle = doctor(site)
        assert len(middle) == 1 and "'two'" in middle[0][1] and version_of(old) in middle[0][1]
        at_end = doctor(site)
        assert [result for result, _ in at_end] == ["ok"], at_end

        assert all(sluice.running(pid) for pid in pids), "they run through it"
        load.stop()
        traces.open()
        for job in long_jobs:
            assert ann.wait_end(job, 60)["status"] == "FINISHED"
        wait_until("every job to end", lambda: not site.count("jobs", "ended_at IS NULL"), 120)
        check_runs(site, load, traces, long_jobs)
        told.wait_told(site)
        wrong, _ = told.breaches(site, HOOK, list(receiver.calls), lambda call: True)
        assert not wrong and len(receiver.calls) > len(long_jobs), wrong
        site.wait_clean()
        done = site.run("audit")
        assert done.returncode == 0, done.stdout
        print(f"\nfrom {name} ({version_of(old)}) to {version_of(sluice.BIN)}: "
              f"{len(load.accepted)} short jobs taken in {load.tries} tries, {len(long_jobs)} long "
              f"ones; lost 0, doubled 0, started again 0\n"
              f"in the middle the doctor said: {middle[0][1]}")


def test_a_runner_of_the_version_before_is_served_until_its_jobs_have_ended():
    """It cannot confine: its jobs go on, and those that start after them are confined."""
    name = previous.tag()
    if name is None:
        pytest.skip("the version before is not here: no tag, or no git")
    old = previous.build(name)
    with Servers() as servers, sluice.Site(servers, programs=old) as site:
        web, worker = site.web(**LEASE), site.worker(name="one", slots=2, **LEASE)
        ann, traces = site.client(web), jobs.Traces(site.path("traces"))
        long_job = ann.submit(*traces.command("long"))
        pid = traces.wait_runs("long")[0]
        folder = site.path("work", "one")
        runner = sluice.runner_of(folder)
        site.programs = sluice.BIN
        assert site.run("migrate").returncode == 0
        for process in (web, worker):
            process.kill9()
            if process is worker:
                process.env |= reach(site)
            process.start()
        worker.wait_log("worker.runner.former")
        assert sluice.runner_of(folder) == runner and sluice.running(pid)
        traces.open()
        assert ann.wait_end(long_job, 60)["status"] == "FINISHED"
        assert traces.runs("long") == [pid]
        wait_until("a runner of this version", lambda: sluice.runner_of(folder) not in (runner, None))
        job = ann.submit("cat", os.path.join(folder, "identity"))
        assert ann.wait_end(job, 60)["status"] == "FAILED"
