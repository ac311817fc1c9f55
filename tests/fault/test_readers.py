# SPDX-License-Identifier: MIT
"""The readers of dead messages die, or lose their servers: each message has one row, each job one
end, and nothing stays in a dead queue."""

import json
import signal

import pytest

from injection import injected
from matrix import DEAD_POINTS
from waiting import wait_until

QUEUE = "sluice.acme.submit.default"
LIMIT = 12


def start_unbound(site):
    """A web whose queue is there and not bound any more; a client."""
    web = site.web(amqp_delivery_limit=LIMIT)
    ann = site.client(web)
    ann.post(f"/v1/jobs/{ann.submit('true')}/cancel").expect(200)
    wait_until("the queue", lambda: QUEUE in site.queues())
    with site.amqp() as link:
        link.unbind(QUEUE, "sluice.submit", QUEUE)
    return ann


def settled(site, count=1):
    return site.count("dead_messages", "outcome IS NOT NULL") == count


@pytest.mark.parametrize("key", DEAD_POINTS)
def test_a_killed_alternate_reader_blocks_its_job_once(own, key):
    with injected(f"F-15 {key}", own, ends=("FINISHED", "CANCELLED")) as hit:
        ann = start_unbound(own)
        reader = own.reader("alternate", fault=f"{DEAD_POINTS[key][0]}=kill")
        job = ann.submit("true")
        assert reader.wait() == -9
        hit.healed()
        own.reader("alternate", "second")
        ann.wait_status(job, "BLOCKED")
        wait_until("the row", lambda: settled(own))
        assert own.sql("SELECT outcome, state FROM dead_messages") == [["job-blocked", "settled"]]
        assert own.moves(job).count("BLOCKED") == 1 and own.count("job_blocked") == 1
        wait_until("no message left", lambda: "sluice.alternate" not in own.messages())
        own.worker(amqp_delivery_limit=LIMIT)  # it declares and binds its queue
        own.reader("recovery", recovery_first_test_ms=100)
        ann.wait_status(job, "FINISHED")


@pytest.mark.parametrize("key", DEAD_POINTS)
def test_a_killed_dead_letter_reader_ends_its_job_once(own, key):
    with injected(f"F-16 {key}", own, ends=["FAILED"]) as hit:
        ann = own.client(own.web(amqp_delivery_limit=LIMIT))
        reader = own.reader("deadletter", fault=f"{DEAD_POINTS[key][0]}=kill")
        job = ann.submit("true")
        wait_until("the queue", lambda: QUEUE in own.queues())
        with own.amqp() as link:
            link.give_back(QUEUE, LIMIT + 1)
        assert reader.wait() == -9
        hit.healed()
        own.reader("deadletter", "second")
        ann.wait_status(job, "FAILED")
        wait_until("the row", lambda: settled(own))
        assert own.sql("SELECT outcome, state FROM dead_messages") == [["job-failed", "settled"]]
        assert own.moves(job).count("FAILED") == 1
        wait_until("no message left", lambda: "sluice.dead" not in own.messages())


@pytest.mark.parametrize("key", DEAD_POINTS)
def test_a_reader_that_stands_still_is_replaced_and_wakes_to_no_harm(own, key):
    with injected(f"F-36 {key}", own, ends=["FAILED"]) as hit:
        ann = own.client(own.web(amqp_delivery_limit=LIMIT))
        old = own.reader("deadletter", "old", fault=f"{DEAD_POINTS[key][0]}=stop@1")
        job = ann.submit("true")
        wait_until("the queue", lambda: QUEUE in own.queues())
        with own.amqp() as link:
            link.give_back(QUEUE, LIMIT + 1)
        old.wait_log("fault.injected")
        own.reader("deadletter", "new")
        hit.healed()
        ann.wait_status(job, "FAILED")
        wait_until("the row", lambda: settled(own))
        wait_until("no message left", lambda: "sluice.dead" not in own.messages())
        hit.recovered()
        old.signal(signal.SIGCONT)
        wait_until("it to stand by", lambda: old.ready() == 200)
        with own.amqp() as link:
            link.publish("sluice.dead", QUEUE, b"x", message_id="m-1")
        wait_until("the other row", lambda: settled(own, 2))
        assert own.sql("SELECT outcome FROM dead_messages WHERE job_id IS NOT NULL") == [
            ["job-failed"]]
        assert own.moves(job).count("FAILED") == 1 and old.alive()


@pytest.mark.parametrize("server", ["database", "broker"])
def test_an_outage_delays_dead_messages_and_loses_none(own, servers, server):
    with injected(f"F-16 {server}", own) as hit:
        own.reader("deadletter")
        standby = own.reader("deadletter", "standby")

        def publish(first, count):
            with own.amqp() as link:
                for number in range(first, first + count):
                    link.publish("sluice.dead", QUEUE, b"x", message_id=f"m-{number}")
        publish(0, 20)
        if server == "database":
            servers.mariadb.kill9()
            publish(20, 20)
            servers.mariadb.start()
            servers.mariadb.wait_ready()
        else:
            servers.rabbitmq.settle()
            servers.rabbitmq.kill9()
            servers.rabbitmq.start()
            servers.rabbitmq.wait_ready()
            publish(20, 20)
        hit.healed()
        wait_until("40 rows", lambda: settled(own, 40), 60)
        assert own.count("dead_messages") == 40
        wait_until("no message left", lambda: "sluice.dead" not in own.messages())
        assert standby.stop() == 0


def test_of_two_readers_one_works_and_the_other_takes_over(own):
    with injected("F-36 dead", own) as hit:
        first = own.reader("deadletter", "first")
        wait_until("it to read", lambda: own.queues().get("sluice.dead", (0, 0, 0))[2] == 1)
        second = own.reader("deadletter", "second")

        def work(number):
            with own.amqp() as link:
                link.publish("sluice.dead", QUEUE, json.dumps(number).encode(),
                             message_id=f"m-{number}")
            wait_until("its row", lambda: settled(own, number + 1))
            reader = (first, second)[number]
            wait_until("its reader to tell", lambda: reader.log_events("dead.message"))
            assert [len(r.log_events("dead.message")) for r in (first, second)] == [1, number]
        work(0)
        first.kill9()
        hit.healed()
        work(1)
