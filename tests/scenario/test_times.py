# SPDX-License-Identifier: MIT
"""`started` and `ended` are those of the process, whoever writes them down, and whenever."""

import json
import time
from datetime import datetime

import pytest

import sluice
from clocks import Clock
from jobs import Traces
from waiting import let_pass, wait_until

# Says how long it slept by its own clock, and when that was over.
SLEEPER = ("import json, select, sys, time; began = time.monotonic(); "
           "select.select([], [], [], float(sys.argv[1])); "
           "print(json.dumps([time.monotonic() - began, time.time()]))")
# The same, asleep until there is a file.
GATED = ("import json, os, select, sys, time; began = time.monotonic()\n"
         "while not os.path.exists(sys.argv[1]): select.select([], [], [], 0.02)\n"
         "print(json.dumps([time.monotonic() - began, time.time()]))")
HOUR = 3600


@pytest.fixture(scope="module")
def ann(site):
    web = site.web()
    site.worker()
    return site.client(web)


def sleeper(ann, seconds, **request):
    return ann.submit("/usr/bin/python3", "-c", SLEEPER, str(seconds), **request)


def parsed(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def span(job):
    """The job's run, and that its members agree."""
    assert job["created"] <= job["started"] <= job["ended"], job
    between = (parsed(job["ended"]) - parsed(job["started"])).total_seconds()
    assert abs(between - job["runSeconds"]) < 0.0021, job  # the times are cut to milliseconds
    waited = (parsed(job["started"]) - parsed(job["created"])).total_seconds()
    assert abs(waited - job["waitSeconds"]) < 0.0021, job
    return job["runSeconds"]


def own_measure(ann, job):
    slept, stamp = json.loads(ann.output(job))
    return slept, stamp


def test_three_seconds_are_three_seconds(ann):
    before = time.monotonic()
    job = ann.wait_end(sleeper(ann, 3))
    outside = time.monotonic() - before
    slept, stamp = own_measure(ann, job["id"])
    assert 3 <= slept <= span(job) <= outside
    assert parsed(job["ended"]).timestamp() >= int(stamp * 1000) / 1000


def test_a_short_command_takes_more_than_nothing(ann):
    job = ann.wait_end(ann.submit("true"))
    assert 0 < span(job)


def test_a_run_that_its_limit_ended_took_as_long_as_that(ann):
    job = ann.wait_end(ann.submit("sleep", "600", maxSeconds=1))
    assert job["condition"] == "TIME_LIMIT" and span(job) >= 1


def test_a_job_that_never_ran_has_waited_and_has_no_run(site, ann):
    root = site.client(site.processes[0], "root", "admin")
    root.put_queue("nowhere", 7, "'nowhere' IN tags").expect(201)
    job = ann.submit("true", tags=["nowhere"])
    view = ann.job(job)
    assert (view["started"], view["waitSeconds"], view["runSeconds"]) == (None, None, None)
    ann.cancel(job)
    view = ann.wait_end(job)
    assert view["started"] is None and view["runSeconds"] is None and view["waitSeconds"] > 0


def test_an_end_that_is_written_late_is_told_as_it_was(site, ann):
    traces = Traces(site.path("late"))
    job = ann.submit("/usr/bin/python3", "-c", GATED, traces.path("gate"))
    ann.wait_status(job, "RUNNING")
    with site.servers.mariadb.transaction(
            f"SELECT fence FROM jobs WHERE id = 0x{job.replace('-', '')} FOR UPDATE", site.schema):
        traces.open()
        wait_until("its output", lambda: ann.output(job))
        let_pass(1)
        freed = time.time()
    view = ann.wait_end(job)
    slept, stamp = own_measure(ann, job)
    assert slept <= span(view)
    assert int(stamp * 1000) / 1000 <= parsed(view["ended"]).timestamp() < freed


def test_an_adopted_run_has_the_times_of_its_process(fresh):
    ann = fresh.client(fresh.web())
    traces = Traces(fresh.path("traces"))
    worker = fresh.worker(fleet_lease_ms=30000)
    job = ann.submit(*traces.command("one"))
    traces.wait_runs("one")
    started = ann.wait_status(job, "RUNNING")["started"]
    before = time.monotonic()
    worker.kill9()
    worker.start()
    worker.wait_log("worker.job.claimed")
    wait_until("it to have its new owner", lambda: fresh.job_row(job, "fence") == ["2"])
    outside = time.monotonic() - before
    traces.open()
    view = ann.wait_end(job)
    assert span(view) >= outside and view["losses"] == 0
    assert abs((parsed(view["started"]) - parsed(started)).total_seconds()) < outside


@pytest.mark.parametrize("seconds", [HOUR, -HOUR])
def test_a_wall_clock_that_jumps_meanwhile_changes_nothing(fresh, seconds):
    clock = Clock(fresh.path("clock"))
    web, environment = fresh.web(), fresh.environment
    fresh.environment = lambda **more: environment(**more) | clock.environment
    fresh.worker()
    fresh.environment = environment
    ann = fresh.client(web)
    traces = Traces(fresh.path("traces"))
    before = time.monotonic()
    job = ann.submit(*traces.command("one"))
    traces.wait_runs("one")
    clock.step(seconds)
    let_pass(0.3)
    traces.open()
    view = ann.wait_end(job)
    assert 0.3 <= span(view) <= time.monotonic() - before
    assert abs(parsed(view["ended"]).timestamp() - time.time()) < HOUR / 2
    assert sluice.running(fresh.processes[0].pid)
