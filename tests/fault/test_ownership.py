# SPDX-License-Identifier: MIT
"""Corners of the ownership protocol that an ordinary death of a worker does not reach."""

import os
import signal

import pytest

import sluice
from injection import injected
from jobs import Traces
from partition import Forwarder
from waiting import stays_true, wait_until


@pytest.fixture(scope="module")
def ann(site):
    return site.client(site.web())


@pytest.fixture
def queue(site, ann, request):
    """A queue of this test alone."""
    name = f"q{site.count('job_queues')}"
    root = site.client(site.processes[0], "root", "admin")
    root.put_queue(name, site.count("job_queues") + 1, f"'{name}' IN tags").expect(201)
    yield name
    for process in site.processes[1:]:
        print(f"---- {process.name}\n{process.log_tail()}")
        if process.alive():
            process.kill9()
    del site.processes[1:]


def wait_empty(site, queue):
    """No message of this queue is left."""
    wait_until("its messages to go",
               lambda: not any(queue in name for name in site.messages()))


def start_one(site, ann, queue, traces, **settings):
    worker = site.worker(queue, f"{queue}-a", slots=1, **settings)
    job = ann.submit(*traces.command("job"), tags=[queue])
    shell = traces.wait_runs("job")
    ann.wait_status(job, "RUNNING")
    return worker, job, shell


@pytest.mark.parametrize("who", ["same", "other"])
def test_a_job_cancelled_while_its_worker_is_dead_is_not_started_again(site, ann, queue, who):
    traces = Traces(site.path(queue))
    with injected("F-2 cancelled", site, ends=["CANCELLED"]) as hit:
        worker, job, shell = start_one(site, ann, queue, traces)
        worker.kill9()
        ann.cancel(job)
        hit.healed()
        if who == "same":
            worker.start()
        else:
            site.worker(queue, f"{queue}-b", slots=1)
        ann.wait_status(job, "CANCELLED")
        assert traces.runs("job") == shell and not sluice.job_pids(job)
        wait_empty(site, queue)


def test_a_runner_that_hung_and_has_pings_waiting_ends_nothing(site, ann, queue):
    traces = Traces(site.path(queue))
    with injected("F-6 runner", site) as hit:
        worker, job, shell = start_one(site, ann, queue, traces)
        runner = sluice.parent(shell[0])
        os.kill(runner, signal.SIGSTOP)
        stays_true("the job runs", lambda: sluice.running(shell[0]), 2 * sluice.LEASE_MS / 1000)
        os.kill(runner, signal.SIGCONT)
        stays_true("the job runs", lambda: sluice.running(shell[0]), sluice.LEASE_MS / 1000)
        hit.healed()
        traces.open()
        ann.wait_status(job, "FINISHED")
        assert traces.runs("job") == shell
        assert site.job_row(job, "losses", "attempts") == ["0", "1"]
        assert worker.alive()


def test_a_runner_that_dies_while_its_worker_starts_is_replaced(site, ann, queue):
    traces = Traces(site.path(queue))
    traces.open()
    broker = Forwarder(int(site.servers.environment()["SLUICE_TEST_AMQP_PORT"]))
    broker.cut = True  # a worker that starts waits a second for its broker
    worker = site.worker(queue, f"{queue}-a", slots=1, wait=False, amqp_host="127.0.0.1",
                         amqp_port=broker.port)
    worker.wait_log("worker.runner.connected")
    os.kill(sluice.runner_of(site.path("work", worker.name)), signal.SIGKILL)
    worker.wait_log("worker.ready")
    broker.cut = False
    job = ann.submit(*traces.command("job"), tags=[queue])
    ann.wait_status(job, "FINISHED")
    assert worker.alive() and site.job_row(job, "losses", "attempts") == ["0", "1"]


def test_a_worker_declared_dead_before_its_first_beat_registers_anew(site, ann, queue):
    traces, name = Traces(site.path(queue)), f"{queue}-a"
    traces.open()
    broker = Forwarder(int(site.servers.environment()["SLUICE_TEST_AMQP_PORT"]))
    broker.cut = True  # a worker that starts waits a second for its broker, and then beats
    worker = site.worker(queue, name, slots=1, wait=False, amqp_host="127.0.0.1", amqp_port=broker.port)
    wait_until("its row", lambda: site.count("workers", f"name = '{name}'"), pause_s=0.01)
    site.sql(f"UPDATE workers SET state = 'dead' WHERE name = '{name}'")
    broker.cut = False
    worker.wait_ready()
    wait_until("its next row", lambda: site.count("workers", f"name = '{name}' AND state = 'live'") == 1)
    job = ann.submit(*traces.command("job"), tags=[queue])
    ann.wait_status(job, "FINISHED")
    assert worker.alive() and site.count("workers", f"name = '{name}'") == 2


def test_a_killed_runner_costs_one_run_and_no_overlap(site, ann, queue):
    traces = Traces(site.path(queue))
    with injected("F-2 runner", site) as hit:
        _, job, shell = start_one(site, ann, queue, traces)
        os.kill(sluice.parent(shell[0]), signal.SIGKILL)
        hit.healed()
        runs = traces.wait_runs("job", 2)
        assert not sluice.running(shell[0]) and len(runs) == 2
        traces.open()
        ann.wait_status(job, "FINISHED")
        assert not traces.overlapped()
        assert site.job_row(job, "losses", "attempts") == ["1", "1"]
        wait_empty(site, queue)


def test_a_claim_whose_commit_stays_unknown_charges_no_loss(site, ann, queue):
    traces = Traces(site.path(queue))
    with injected("F-35 claim", site):
        traces.open()
        faults = ";".join(["store.commit.answer_lost=fail@1"] * 15)
        site.worker(queue, f"{queue}-a", slots=1, fault=faults)
        job = ann.submit(*traces.command("job"), tags=[queue])
        ann.wait_status(job, "FINISHED", timeout_s=60)
        assert len(traces.runs("job")) == 1
        assert site.job_row(job, "losses", "attempts") == ["0", "1"]
        wait_empty(site, queue)


def test_a_worker_that_is_declared_dead_while_it_drains_drops_its_jobs(site, ann, queue):
    traces = Traces(site.path(queue))
    with injected("F-2 drain", site) as hit:
        worker, job, shell = start_one(site, ann, queue, traces, worker_drain_ms=600000)
        worker.signal(signal.SIGTERM)
        worker.wait_log("drain")
        site.sql(f"UPDATE workers SET state = 'dead' WHERE queue = '{queue}'")
        assert worker.wait() == 0
        assert not sluice.running(shell[0])
        hit.healed()
        site.worker(queue, f"{queue}-b", slots=1)
        traces.open()
        ann.wait_status(job, "FINISHED")
        assert not traces.overlapped() and len(traces.runs("job")) == 2
        wait_empty(site, queue)


def test_a_worker_that_hangs_for_longer_than_its_lease_runs_on(site, ann, queue):
    """SIGSTOP with no other worker there: the run is lost, the job is not."""
    traces = Traces(site.path(queue))
    with injected("F-6 worker", site) as hit:
        worker, job, shell = start_one(site, ann, queue, traces)
        worker.signal(signal.SIGSTOP)
        wait_until("its runner to end the job", lambda: not sluice.running(shell[0]))
        stays_true("no second run", lambda: len(traces.runs("job")) == 1, 3)
        worker.signal(signal.SIGCONT)
        hit.healed()
        traces.wait_runs("job", 2)
        traces.open()
        ann.wait_status(job, "FINISHED")
        assert not traces.overlapped()
        assert site.job_row(job, "losses", "attempts") == ["1", "1"]
        wait_empty(site, queue)


def test_a_run_that_ends_while_the_commit_of_running_is_unknown_counts(site, ann, queue):
    traces = Traces(site.path(queue))
    with injected("F-35 running", site) as hit:
        # The claim is committed; the commits after it are as well, but nobody says so for a while.
        faults = ";".join(["store.commit.answer_lost=fail@2"] * 12)
        worker = site.worker(queue, f"{queue}-a", slots=1, fault=faults)
        job = ann.submit(*traces.command("job"), tags=[queue])
        traces.wait_runs("job")
        wait_until("RUNNING to be tried", lambda: worker.log_text().count("answer_lost") >= 3)
        traces.open()
        hit.healed()
        ann.wait_status(job, "FINISHED", timeout_s=60)
        assert len(traces.runs("job")) == 1
        assert site.job_row(job, "losses", "attempts") == ["0", "1"]
        moves = site.moves(job)
        assert moves.count("RUNNING") == moves.count("ARCHIVING") == moves.count("FINISHED") == 1
        wait_empty(site, queue)


def test_a_worker_that_is_told_to_stop_begins_no_lost_job_again(site, ann, queue):
    """As a service manager does that signals every process of a service."""
    traces = Traces(site.path(queue))
    with injected("F-2 all", site) as hit:
        worker, job, shell = start_one(site, ann, queue, traces)
        worker.signal(signal.SIGTERM)
        worker.wait_log("daemon.stopping")
        os.kill(sluice.parent(shell[0]), signal.SIGTERM)
        assert worker.wait() == 0
        assert traces.runs("job") == shell and not sluice.job_pids(job)
        assert site.job_row(job, "losses", "owner_worker") == ["1", None]
        hit.healed()
        site.worker(queue, f"{queue}-b", slots=1)
        traces.open()
        ann.wait_status(job, "FINISHED")
        assert site.job_row(job, "losses", "attempts") == ["1", "1"]
        wait_empty(site, queue)


def test_a_worker_that_wakes_after_others_took_its_job_is_refused(site, ann, queue):
    """SIGSTOP for longer than a lease, with another worker there, then SIGCONT."""
    traces = Traces(site.path(queue))
    with injected("F-6 other", site) as hit:
        worker, job, shell = start_one(site, ann, queue, traces)
        site.worker(queue, f"{queue}-b", slots=1)
        worker.signal(signal.SIGSTOP)
        traces.wait_runs("job", 2)
        assert not sluice.running(shell[0])
        worker.signal(signal.SIGCONT)
        hit.healed()
        fenced = worker.wait_log("worker.job.fenced")
        assert '"fence":1' in fenced and '"fence_now":2' in fenced, fenced
        traces.open()
        ann.wait_status(job, "FINISHED")
        assert len(traces.runs("job")) == 2
        assert site.job_row(job, "losses", "attempts", "fence") == ["1", "1", "2"]
        wait_until("it to register anew", lambda: worker.ready() == 200)
        wait_empty(site, queue)
