# SPDX-License-Identifier: MIT
"""Leases that are not the same everywhere, outages shorter than one, and hosts that stood still:
no job runs twice at the same time, and none ends without need."""

import os
import signal

import pytest

import sluice
from clocks import Clock
from injection import injected
from jobs import Traces
from partition import Forwarder
from waiting import stays_true, wait_until

SHORT, LONG = 4000, 14000  # a worker that is restarted is back within the shorter one
# What has to be noticed within an eighth of a lease is to be noticed on a busy machine as well.
CALM = {"fleet_beat_ms": 4000, "fleet_lease_ms": 16000, "worker_grace_ms": 10000}


def start_job(site, traces, name="job"):
    ann = site.client(site.web())
    job = ann.submit(*traces.command(name))
    shell = traces.wait_runs(name)[0]
    ann.wait_status(job, "RUNNING")
    return ann, job, shell


def restart(worker, **settings):
    """It comes back as another process of this name, with other settings, and goes on."""
    worker.kill9()
    worker.env |= {f"SLUICE_{name.upper()}": str(value) for name, value in settings.items()}
    worker.start()


@pytest.mark.parametrize("way, before, one, other", [
    ("up", SHORT, LONG, SHORT), ("down", LONG, LONG, SHORT), ("own", LONG, SHORT, SHORT)])
def test_a_change_of_the_lease_from_worker_to_worker_doubles_nothing(own, way, before, one, other):
    """The worker that is stopped grants its runs time by its own lease."""
    traces = Traces(own.path("traces"))
    with injected(f"F-6 lease {way}", own) as hit:
        stopped = own.worker("default", "one", fleet_lease_ms=before)
        ann, job, shell = start_job(own, traces)
        well = own.worker("default", "two", fleet_lease_ms=before)
        own.reader("recovery", fleet_lease_ms=other).wait_log("recovery.leads")
        short = [ann.submit("true") for _ in range(40)]
        restart(stopped, fleet_lease_ms=one)
        restart(well, fleet_lease_ms=other)
        if one != other:
            wait_until("the log to say so", lambda: well.log_events("fleet.lease.differs"))
            ready = own.client(well).get("/readyz")
            assert ready.json["leases_differ"] is True, ready.json
        own.wait_beats()
        stopped.signal(signal.SIGSTOP)
        hit.healed()
        traces.wait_runs("job", 2)
        assert not sluice.running(shell)
        stopped.signal(signal.SIGCONT)
        traces.open()
        for each in [job, *short]:
            ann.wait_status(each, "FINISHED")
        assert not traces.overlapped() and len(traces.runs("job")) == 2
        assert own.job_row(job, "losses", "attempts") == ["1", "1"]
        own.wait_clean()


def test_a_worker_that_did_not_say_its_lease_is_waited_for_by_the_longest(own):
    """As one of the version before would."""
    traces = Traces(own.path("traces"))
    with injected("F-6 lease none", own) as hit:
        worker = own.worker("default", "one")
        ann, job, shell = start_job(own, traces)
        own.sql("UPDATE workers SET lease_ms = NULL")
        worker.signal(signal.SIGSTOP)
        own.worker("default", "two")
        stays_true("it counts as live", lambda: own.count(
            "workers", "state = 'dead'") == 0, 3 * sluice.LEASE_MS / 1000)
        worker.signal(signal.SIGCONT)
        hit.healed()
        traces.open()
        ann.wait_status(job, "FINISHED")
        assert not traces.overlapped() and shell in traces.runs("job")
        own.wait_clean()


def test_an_outage_of_both_servers_of_less_than_half_a_lease_ends_nothing(own):
    given = own.servers.environment()
    ways = [Forwarder(int(given["SLUICE_TEST_DB_PORT"])),
            Forwarder(int(given["SLUICE_TEST_AMQP_PORT"]))]
    traces = Traces(own.path("traces"))
    with injected("F-7 worker-half", own) as hit:
        worker = own.worker("default", "one", db_host="127.0.0.1", db_port=ways[0].port,
                            amqp_host="127.0.0.1", amqp_port=ways[1].port, **CALM)
        ann, job, shell = start_job(own, traces)
        own.worker("default", "two", **CALM)
        own.wait_beats(1)  # the worst moment: a whole interval until the next one
        for way in ways:
            way.away(True)
        stays_true("the job runs", lambda: sluice.running(shell), 0.47 * CALM["fleet_lease_ms"] / 1000)
        for way in ways:
            way.away(False)
        hit.healed()
        stays_true("the job runs", lambda: sluice.running(shell), CALM["fleet_lease_ms"] / 2000)
        wait_until("it to be ready again", lambda: worker.ready() == 200)
        traces.open()
        ann.wait_status(job, "FINISHED")
        assert traces.runs("job") == [shell]
        assert own.job_row(job, "losses", "attempts") == ["0", "1"]
        own.wait_clean()


def test_a_host_that_was_suspended_for_a_lease_has_been_silent_for_a_lease(own):
    """Only the boot clock goes on in a suspended host. Nothing can be heard when it wakes."""
    given, lease_ms = own.servers.environment(), 60000
    ways = [Forwarder(int(given["SLUICE_TEST_DB_PORT"])),
            Forwarder(int(given["SLUICE_TEST_AMQP_PORT"]))]
    clock = Clock(own.path("clock"))
    environment = own.environment
    own.environment = lambda **more: environment(**more) | clock.environment
    worker = own.worker("default", "one", db_host="127.0.0.1", db_port=ways[0].port,
                        amqp_host="127.0.0.1", amqp_port=ways[1].port, fleet_lease_ms=lease_ms)
    own.environment = environment
    traces = Traces(own.path("traces"))
    with injected("F-11 suspended", own) as hit:
        ann, job, shell = start_job(own, traces)
        own.wait_beats()
        for way in ways:
            way.away(True)
        worker.wait_log("worker.beat.failed")
        clock.suspend(lease_ms // 1000)
        wait_until("the run to end", lambda: not sluice.running(shell), lease_ms / 4000)
        assert traces.runs("job") == [shell]
        for way in ways:
            way.away(False)
        hit.healed()
        traces.wait_runs("job", 2)
        traces.open()
        ann.wait_status(job, "FINISHED")
        assert not traces.overlapped()
        own.wait_clean()


def crash_host(worker):
    """The worker's process and its runner at once: nothing of it is left."""
    runner = sluice.runner_of(worker.site.path("work", worker.name))
    worker.kill9()
    os.kill(runner, signal.SIGKILL)


def test_the_jobs_of_a_dead_worker_do_not_wait_for_their_deferred_messages(own):
    traces = Traces(own.path("traces"))
    with injected("F-2 defer", own) as hit:
        worker = own.worker("default", "one")
        ann, job, _ = start_job(own, traces)
        own.worker("default", "two", fleet_defer_ms=600000)
        own.wait_beats()
        crash_host(worker)
        hit.healed()
        traces.wait_runs("job", 2)
        traces.open()
        ann.wait_status(job, "FINISHED")
        assert not traces.overlapped()
        assert own.job_row(job, "losses", "attempts") == ["1", "1"]
        # The deferred copy of its first message stays where it is, and is of an old epoch.
        assert own.job_row(job, "epoch") == ["2"]


def test_a_cancel_just_before_a_crash_ends_the_job_when_its_worker_is_declared_dead(own):
    traces = Traces(own.path("traces"))
    with injected("F-2 cancel", own, ends=["CANCELLED"]) as hit:
        worker = own.worker("default", "one")
        ann, job, _ = start_job(own, traces)
        own.reader("recovery").wait_log("recovery.leads")
        own.wait_beats()
        worker.signal(signal.SIGSTOP)  # it hears no cancel
        ann.cancel(job)
        crash_host(worker)
        hit.healed()
        ann.wait_status(job, "CANCELLED")
        assert len(traces.runs("job")) == 1 and not sluice.job_pids(job)
