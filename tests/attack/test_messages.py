# SPDX-License-Identifier: MIT
"""What somebody who has got at the broker can do: nothing that the database does not say."""

import json
import os

import pytest

from attacks import attacked
from jobs import Traces
from waiting import stays_true, wait_until

SUBMIT, QUEUE = "sluice.submit", "sluice.acme.submit.default"
UNKNOWN = "01900000-0000-7000-8000-000000000001"


@pytest.fixture(scope="module")
def worker(stand):
    made = stand.site.worker(slots=2)
    for kind in ("deadletter", "alternate", "recovery"):
        stand.site.reader(kind)
    return made


def body(**members):
    return json.dumps({"v": 1, "job": UNKNOWN, "epoch": 1} | members).encode()


def runs_one(stand, name):
    stand.ann.wait_status(stand.ann.submit("true", name=name), "FINISHED", timeout_s=60)


def test_what_is_no_message_becomes_a_dead_letter(stand, worker):
    bodies = [b"", b"not json", b"{}", b"[1]", b"null", b"\xff\xfe", b"\x00" * 100, b"[" * 1000, b"7",
              body(v=2), body(v="1"), body(v=1.0), body(job=7), body(job=None), body(job=["x"]),
              body(job="' OR 1=1"), body(job="../../etc"), body(job=UNKNOWN + "0"), body(epoch=0),
              body(epoch=-1), body(epoch=2 ** 32), body(epoch=2 ** 63), body(epoch="1"), body(epoch=1.5),
              body(epoch=None), body(epoch=True), b'{"v":1,"v":1,"job":"x","epoch":1}',
              body(more="x" * 2000), b" " * 1_000_000, body()[:-1], body() + b"x"]
    before = stand.site.count("dead_messages")
    with attacked("broker bodies", stand) as hit:
        with stand.site.amqp() as link:
            for data in bodies:
                link.publish(SUBMIT, QUEUE, data, content_type="text/\u202ex", message_id="x" * 255)
        wait_until(lambda: f"{stand.site.count('dead_messages') - before} of {len(bodies)} rows",
                   lambda: stand.site.count("dead_messages") - before == len(bodies), 60)
        runs_one(stand, "after-bodies")
        listed = stand.root.get("/v1/dead-messages?limit=100").expect(200).json["deadMessages"]
        for message in listed:
            hit.held(stand.root.get(f"/v1/dead-messages/{message['id']}").status == 200, message)
        with stand.site.amqp() as link:
            for data in bodies[:8]:
                link.publish("sluice.dead", "", data)
                link.publish("sluice.alternate", "sluice.nobody.submit.none", data)
        wait_until("all of them", lambda: stand.site.count("dead_messages") - before >= len(bodies) + 16, 60)
        hit.held(stand.root.get("/v1/dead-messages").status == 200, "the list")


def test_a_message_makes_no_job_run_that_should_not(stand, worker):
    eve = stand.site.stranger(stand.web)
    traces = Traces(stand.site.path("traces"))
    theirs = eve.submit(*traces.command("theirs"))  # their tenant has no worker
    stand.root.put("/v1/systems/none-such", {}).expect(201)
    stand.root.post("/v1/systems/none-such/disable").expect(200)
    held = stand.ann.submit(*traces.command("waiting"), systemId="none-such")
    done = stand.ann.submit("true")
    stand.ann.wait_status(done, "FINISHED", timeout_s=60)
    stand.ann.wait_status(held, "BLOCKED", timeout_s=60)
    cancelled = stand.ann.submit(*traces.command("cancelled"), systemId="none-such")
    stand.ann.wait_status(cancelled, "BLOCKED", timeout_s=60)
    stand.ann.cancel(cancelled).expect(200)
    with attacked("broker jobs", stand) as hit:
        with stand.site.amqp() as link:
            for job in (theirs, held, done, cancelled, UNKNOWN):
                for epoch in (1, 2, 7, 4294967295):
                    link.publish(SUBMIT, QUEUE, body(job=job, epoch=epoch))
        runs_one(stand, "after-forged")
        wait_until(
            "the queue to be empty", lambda: not stand.site.messages().get(QUEUE), 60, 0.5)
        for job, who, status in ((theirs, eve, "PENDING"), (held, stand.ann, "BLOCKED"),
                                 (done, stand.ann, "FINISHED"), (cancelled, stand.ann, "CANCELLED")):
            now = who.job(job)
            hit.held(now["status"] == status, now)
        hit.held(not os.listdir(traces.folder), os.listdir(traces.folder))
    stand.ann.cancel(held)
    eve.cancel(theirs)


def test_a_command_is_only_a_reason_to_look(stand, worker):
    traces = Traces(stand.site.path("commands"))
    job = stand.ann.submit(*traces.command("one"))
    traces.wait_runs("one")
    row = stand.site.sql("SELECT LOWER(HEX(id)) FROM workers WHERE state = 'live'")[0][0]
    worker_id = "-".join((row[:8], row[8:12], row[12:16], row[16:20], row[20:]))
    bodies = [b"", b"x" * 100000, b"\xff", json.dumps({"cancel": job}).encode(), b"drain", body(job=job),
              json.dumps({"op": "kill", "job": job, "fence": 1}).encode(), b"[" * 5000]
    with attacked("broker commands", stand) as hit:
        with stand.site.amqp() as link:
            for data in bodies:
                for key in (worker_id, "all", "queue.default", "queue.acme.default"):
                    link.publish("sluice.command", key, data)
                link.publish("sluice.recovery", "acme", data)
                for event in ("job.ended", "x", "FINISHED"):
                    link.publish("sluice.events", f"acme.{event}.{job}", data)
        stays_true("the job runs", lambda: stand.ann.job(job)["status"] == "RUNNING", 1.0)
        for data in bodies:
            hit.held(stand.ann.job(job)["status"] == "RUNNING", data[:40])
        traces.open()
        stand.ann.wait_status(job, "FINISHED", timeout_s=60)
        hit.held(len(traces.runs("one")) == 1, "it ran once")
        runs_one(stand, "after-commands")
