# SPDX-License-Identifier: MIT
"""Messages that are doubled, stale, spoilt or gone, and queues that vanish: a job runs once."""

import json
import os
import random
import signal

import pytest

import sluice
from injection import injected
from jobs import Traces
from waiting import wait_until

QUEUE = "sluice.acme.submit.default"
SUBMIT = "sluice.submit"
LIMIT = 12
FAST = {"recovery_tick_ms": 200, "recovery_ramp_pause_ms": 100, "recovery_first_test_ms": 100,
        "recovery_outbox_age_ms": 1000, "recovery_queue_unavailable": "constant every=500ms"}
HUGE = b"x" * 100_000_000
POISON = {"non-JSON": b"\xff\x00 not json", "huge": HUGE,
          "version": b'{"v":2,"job":"01900000-0000-7000-8000-000000000001","epoch":1}'}


def message_of(job, epoch):
    return json.dumps({"v": 1, "job": job, "epoch": epoch}).encode()


def metric(site, process, name):
    text = site.client(process).get("/metrics").expect(200).body.decode()
    return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith(name))


def test_a_hundred_copies_in_any_order_and_after_the_end_are_one_run(fresh):
    ann, worker = fresh.client(fresh.web()), fresh.worker(slots=2)
    traces = Traces(fresh.path("traces"))

    def publish(bodies):
        with fresh.amqp() as link:
            for body in bodies:
                link.publish(SUBMIT, QUEUE, body)
    with injected("F-12 copies", fresh) as hit:
        job = ann.submit(*traces.command("one"))
        traces.wait_runs("one")
        publish([message_of(job, 1)] * 100)
        traces.open()
        hit.healed()
        ann.wait_status(job, "FINISHED")
        fresh.wait_clean()
        assert len(traces.runs("one")) == 1
    with injected("F-12 order", fresh) as hit:
        jobs = [ann.submit(*traces.command(f"mixed{at}")) for at in range(10)]
        bodies = [message_of(job, epoch) for job in jobs for epoch in (1, 1, 2, 7, 99)]
        random.Random(12).shuffle(bodies)
        publish(bodies)
        hit.healed()
        for job in jobs:
            ann.wait_status(job, "FINISHED")
        fresh.wait_clean()
        assert {len(traces.runs(f"mixed{at}")) for at in range(10)} == {1}
    with injected("F-12 ended", fresh) as hit:
        again = ann.submit(*traces.command("ended"))
        ann.wait_status(again, "FINISHED")
        row = fresh.job_row(again, "updated_at", "fence")
        before = metric(fresh, worker, "sluice_stale_deliveries_total")
        publish([message_of(again, epoch) for epoch in range(1, 101)])
        hit.healed()
        fresh.wait_clean()
        # What the broker says of its queues is half a second old.
        wait_until("all to be found stale", lambda: metric(
            fresh, worker, "sluice_stale_deliveries_total") >= before + 99)
        assert fresh.job_row(again, "updated_at", "fence") == row


@pytest.mark.parametrize("key", POISON)
def test_poison_is_kept_and_costs_its_neighbours_nothing(fresh, key):
    ann, worker = fresh.client(fresh.web()), fresh.worker()
    fresh.reader("deadletter")
    with injected(f"F-13 {key}", fresh) as hit:
        jobs = [ann.submit("true") for _ in range(10)]
        with fresh.amqp() as link:
            link.publish(SUBMIT, QUEUE, POISON[key], message_id="poison-1")
        hit.healed()
        jobs += [ann.submit("true") for _ in range(10)]
        for job in jobs:
            ann.wait_status(job, "FINISHED", timeout_s=60)
        kept = wait_until("its row", lambda: fresh.sql(
            "SELECT reason, size_bytes, HEX(LEFT(body, 16)) FROM dead_messages "
            "WHERE message_id = 'poison-1' AND outcome IS NOT NULL") or None, 60)
        assert kept == [["rejected", str(len(POISON[key])), POISON[key][:16].hex().upper()]]
        fresh.wait_clean()
        assert worker.alive()


def test_a_job_whose_run_is_lost_three_times_is_given_up(fresh):
    ann, worker = fresh.client(fresh.web()), fresh.worker(slots=2)
    traces = Traces(fresh.path("traces"))
    with injected("F-13 lost", fresh, ends=("FAILED", "FINISHED")) as hit:
        job = ann.submit(*traces.command("poison"))
        for loss in range(1, 4):
            shell = traces.wait_runs("poison", loss)[-1]
            ann.wait_status(job, "RUNNING")
            os.kill(sluice.parent(shell), signal.SIGKILL)
        hit.healed()
        ended = ann.wait_end(job)
        assert (ended["status"], ended["condition"], ended["losses"]) == ("FAILED", "POISON", 3)
        ann.wait_status(ann.submit("true"), "FINISHED")
        assert worker.alive()
        fresh.wait_clean()


def test_a_message_that_came_back_too_often_is_settled_and_its_job_can_be_had_again(fresh):
    web = fresh.web(amqp_delivery_limit=LIMIT)
    ann = fresh.client(web)
    fresh.reader("deadletter")
    with injected("F-16 limit", fresh, ends=("FAILED", "FINISHED")) as hit:
        job = ann.submit("true")
        wait_until("the queue", lambda: QUEUE in fresh.queues())
        with fresh.amqp() as link:
            link.give_back(QUEUE, LIMIT + 1)
        hit.healed()
        ended = ann.wait_status(job, "FAILED")
        assert ended["condition"] == "DEAD_LETTERED" and "resubmit" in ended["reason"]
        hit.recovered()
        again = ann.post(f"/v1/jobs/{job}/resubmit").expect(200, 201).json["id"]
        fresh.accepted.append(again)
        fresh.worker(amqp_delivery_limit=LIMIT)
        ann.wait_status(again, "FINISHED")


def test_a_queue_that_is_bound_no_more_delays_its_jobs(fresh):
    ann, worker = fresh.client(fresh.web()), fresh.worker(**FAST)
    fresh.reader("alternate")
    fresh.reader("recovery", **FAST)
    with injected("F-15 unbound", fresh) as hit:
        ann.wait_status(ann.submit("true"), "FINISHED")
        with fresh.amqp() as link:
            link.unbind(QUEUE, SUBMIT, QUEUE)
        hit.healed()
        jobs = [ann.submit("true") for _ in range(5)]
        wait_until("a job that is held", lambda: fresh.count(
            "job_events", "to_status = 'BLOCKED' AND job_condition = 'QUEUE_UNAVAILABLE'"))
        for job in jobs:
            ann.wait_status(job, "FINISHED", timeout_s=60)
        fresh.wait_clean()
        assert worker.alive()


class Waiting:
    """Jobs that run, and jobs that wait behind them with messages in the queue."""

    def __init__(self, site):
        self.site, self.ann = site, site.client(site.web())
        self.worker = site.worker(slots=2)
        site.reader("recovery", **FAST)
        site.reader("alternate")
        self.traces = Traces(site.path("traces"))
        self.jobs = {}
        for name in ("run1", "run2", "wait1", "wait2", "wait3"):
            self.jobs[name] = self.ann.submit(*self.traces.command(name))
        wait_until("two to run", lambda: site.count("jobs", "status = 'RUNNING'") == 2)
        wait_until("no message unsent", lambda: site.count("outbox") == 0)

    def finish(self, runs=1):
        self.worker.wait_ready()
        self.traces.open()
        for job in self.jobs.values():
            self.ann.wait_status(job, "FINISHED", timeout_s=60)
        assert {len(self.traces.runs(name)) for name in self.jobs} == {runs}
        self.site.wait_clean()


def delete_queue(site):
    site.servers.rabbitmq.ctl("delete_queue", "-p", site.vhost, QUEUE)


def reset_vhost(site):
    site.servers.rabbitmq.delete_vhost(site.vhost)
    site.servers.rabbitmq.add_vhost(site.vhost)


def close_connections(site):
    site.servers.rabbitmq.close_connections(site.vhost)


@pytest.mark.parametrize("key, strike", [
    ("deleted", delete_queue), ("vhost", reset_vhost), ("closed", close_connections)])
def test_what_the_broker_loses_is_made_again(fresh, key, strike):
    with injected(f"F-14 {key}", fresh) as hit:
        waiting = Waiting(fresh)
        strike(fresh)
        hit.healed()
        waiting.finish()
