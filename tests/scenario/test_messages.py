# SPDX-License-Identifier: MIT
"""What a worker does with messages that are wrong, doubled or stale."""

import json

import pytest

from jobs import Traces
from waiting import wait_until

QUEUE = "sluice.acme.submit.default"
UNKNOWN = "01900000-0000-7000-8000-000000000001"


@pytest.fixture(scope="module")
def ann(site):
    return site.client(site.web())


@pytest.fixture(scope="module", autouse=True)
def worker(site, ann):
    ann.get("/v1/whoami").expect(200)  # the tenant is there, and its queue
    worker = site.worker(slots=2)
    wait_until("it to receive", lambda: site.queues().get(QUEUE, (0, 0, 0))[2])
    return worker


def publish(site, body):
    with site.amqp() as link:
        link.publish("sluice.submit", QUEUE, body)


def take_dead(site):
    with site.amqp() as link:
        return link.take("sluice.dead")


@pytest.mark.parametrize("body", [
    b"not json", b"", b"{}", b"[1]", b'{"v":2,"job":"x","epoch":1}', b'{"v":1,"job":7,"epoch":1}',
    json.dumps({"v": 1, "job": UNKNOWN, "epoch": -1}).encode(), b"\xff\xfe"])
def test_what_cannot_be_parsed_is_rejected_and_logged(site, worker, ann, body):
    before = worker.log_text().count("\n")
    publish(site, body)
    assert take_dead(site) == body
    wait_until("a line in the log", lambda: worker.log_text().count("\n") > before)
    assert worker.alive()


def test_an_unknown_job_is_rejected_and_logged(site, worker, ann):
    publish(site, json.dumps({"v": 1, "job": UNKNOWN, "epoch": 1}).encode())
    assert UNKNOWN in take_dead(site).decode()
    worker.wait_log(UNKNOWN)


def test_a_hundred_copies_of_a_message_are_one_run(site, ann):
    traces = Traces(site.path("copies"))
    job = ann.submit(*traces.command("a"))
    traces.wait_runs("a")
    body = json.dumps({"v": 1, "job": job, "epoch": 1}).encode()
    with site.amqp() as link:
        for _ in range(100):
            link.publish("sluice.submit", QUEUE, body)
    traces.open()
    ann.wait_status(job, "FINISHED")
    site.wait_clean(40)
    assert len(traces.runs("a")) == 1 and site.moves(job).count("FINISHED") == 1


def test_a_stale_epoch_and_an_ended_job_are_acknowledged(site, ann):
    job = ann.submit("true")
    ann.wait_status(job, "FINISHED")
    row = site.job_row(job, "updated_at", "fence")
    for epoch in (1, 7):
        publish(site, json.dumps({"v": 1, "job": job, "epoch": epoch}).encode())
    site.wait_clean()
    assert site.job_row(job, "updated_at", "fence") == row
