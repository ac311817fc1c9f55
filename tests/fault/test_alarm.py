# SPDX-License-Identifier: MIT
"""The broker is short of memory and reads nothing from connections that publish: jobs go on, and
workers that die are found out all the same."""

import json
import os
import signal

import pytest

import sluice
from jobs import Traces
from waiting import wait_until

QUEUE = "sluice.acme.submit.default"
COPIES = 3  # more than the worker has slots


@pytest.fixture
def alarm(servers):
    """Raises it; after the test it is over."""
    yield lambda: servers.rabbitmq.ctl("set_vm_memory_high_watermark", "0.00001")
    servers.rabbitmq.ctl("set_vm_memory_high_watermark", "0.6")


def blocked(worker):
    return worker.log_events("bus.blocked")


def test_messages_that_cannot_be_deferred_take_no_slot(own, alarm, servers):
    ann, traces = own.client(own.web()), Traces(own.path("traces"))
    first = own.worker(name="first", slots=1)
    long = ann.submit(*traces.command("long"))
    traces.wait_runs("long")
    with own.amqp() as link:
        for _ in range(COPIES):
            link.publish("sluice.submit", QUEUE,
                         json.dumps({"v": 1, "job": long, "epoch": 1}).encode())
    short = ann.submit("true")  # behind the copies
    wait_until("all of them to be on the queue", lambda: own.queues()[QUEUE][0] == COPIES + 1)
    alarm()
    second = own.worker(name="second", slots=1, wait=False)
    ann.wait_status(short, "FINISHED")
    assert blocked(second) and not second.log_events("bus.unblocked")
    assert ann.job(long)["status"] == "RUNNING"
    servers.rabbitmq.ctl("set_vm_memory_high_watermark", "0.6")
    traces.open()
    ann.wait_status(long, "FINISHED")
    own.wait_clean()
    assert len(traces.runs("long")) == 1 and own.count("jobs", "losses > 0") == 0
    assert first.stop() == 0 and second.stop() == 0


def test_a_worker_that_dies_is_declared_dead_meanwhile(own, alarm, servers):
    ann, traces = own.client(own.web()), Traces(own.path("traces"))
    first = own.worker(name="first", slots=1)
    job = ann.submit(*traces.command("one"))
    traces.wait_runs("one")
    second = own.worker(name="second", slots=1)
    alarm()
    runner = sluice.runner_of(own.path("work", "first"))
    first.kill9()  # its message goes to the second one, which cannot defer it
    os.kill(runner, signal.SIGKILL)
    wait_until("the job to be taken over", lambda: len(traces.runs("one")) == 2)
    assert blocked(second) and not second.log_events("bus.unblocked")
    traces.open()
    ann.wait_status(job, "FINISHED")
    servers.rabbitmq.ctl("set_vm_memory_high_watermark", "0.6")
    own.wait_clean()
    assert second.stop() == 0


def test_the_doctor_says_that_the_broker_is_blocked(own, alarm):
    """And not that readers have to be started again, to which no message comes now."""
    for kind in ("recovery", "alternate", "deadletter"):
        own.reader(kind)
    alarm()
    done = own.run("doctor", "-o", "json")
    assert done.returncode == 1, done
    found = [one for one in json.loads(done.stdout) if one["result"] == "fault"]
    assert len(found) == 1 and "short of memory or disk" in found[0]["finding"], found
    assert "make room" in found[0]["cure"]
