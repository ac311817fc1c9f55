# SPDX-License-Identifier: MIT
"""Messages that the broker cannot deliver: kept, listed, and their jobs settled."""

import json

import pytest

from waiting import wait_until

QUEUE = "sluice.acme.submit.default"
UNKNOWN = "01900000-0000-7000-8000-000000000001"
LIMIT = 12


@pytest.fixture(scope="module")
def web(site):
    return site.web(amqp_delivery_limit=LIMIT)


@pytest.fixture(scope="module")
def ann(site, web):
    return site.client(web)


@pytest.fixture(scope="module")
def readers(site):
    return site.reader("alternate"), site.reader("deadletter")


@pytest.fixture
def worker(site, web):
    worker = site.worker(slots=2, amqp_delivery_limit=LIMIT)
    yield worker
    worker.stop()


def publish(site, body, key=QUEUE, **options):
    with site.amqp() as link:
        link.publish("sluice.submit", key, body, **options)


def message_of(job, epoch=1):
    return json.dumps({"v": 1, "job": job, "epoch": epoch}).encode()


def row_of(site, where):
    """(state, reason, outcome, body) of the one row."""
    def found():
        rows = site.sql(f"SELECT state, reason, outcome, HEX(body) FROM dead_messages WHERE {where} "
                        "AND outcome IS NOT NULL")
        assert len(rows) < 2, rows
        return rows[0] if rows else None
    return wait_until(f"a dead message with {where}", found)


def test_garbage_is_kept_and_the_worker_lives(site, ann, readers, worker):
    body = b"\xff\x00 not json"
    ann.get("/v1/whoami").expect(200)
    publish(site, body, content_type="text/x", message_id="garbage-1")
    state, reason, outcome, kept = row_of(site, "message_id = 'garbage-1'")
    assert (state, reason, outcome) == ("open", "rejected", "kept")
    assert bytes.fromhex(kept) == body
    assert worker.alive()
    site.wait_clean()


def test_of_a_large_message_the_size_is_told_and_the_beginning_kept(site, ann, readers, worker):
    publish(site, b"x" * 3_000_000, message_id="large-1")
    row_of(site, "message_id = 'large-1'")
    assert site.sql("SELECT size_bytes, LENGTH(body) FROM dead_messages "
                    "WHERE message_id = 'large-1'") == [["3000000", "65536"]]


def test_a_job_that_is_not_there_is_kept(site, ann, readers, worker):
    publish(site, message_of(UNKNOWN))
    row = row_of(site, f"job_id = 0x{UNKNOWN.replace('-', '')}")
    assert row[:3] == ["open", "rejected", "kept"]


def test_an_unbound_queue_blocks_its_job_at_once(site, ann, readers):
    ann.post(f"/v1/jobs/{ann.submit('true')}/cancel").expect(200)  # the queue is declared now
    wait_until("the queue", lambda: QUEUE in site.queues())
    with site.amqp() as link:
        link.unbind(QUEUE, "sluice.submit", QUEUE)
    job = ann.submit("true")
    ann.wait_status(job, "BLOCKED", timeout_s=2)
    assert ann.job(job)["condition"] == "QUEUE_UNAVAILABLE"
    state, reason, outcome, _body = row_of(site, f"job_id = 0x{job.replace('-', '')}")
    assert (state, reason, outcome) == ("settled", "unroutable", "job-blocked")


def test_a_message_that_came_back_too_often_ends_its_job(fresh):
    web = fresh.web(amqp_delivery_limit=LIMIT)
    ann = fresh.client(web)
    fresh.reader("deadletter")
    job = ann.submit("true")
    wait_until("the queue", lambda: QUEUE in fresh.queues())
    with fresh.amqp() as link:
        link.give_back(QUEUE, LIMIT + 1)
    ann.wait_status(job, "FAILED")
    assert ann.job(job)["condition"] == "DEAD_LETTERED"
    assert "resubmit" in ann.job(job)["reason"]
    state, reason, outcome, _body = row_of(fresh, f"job_id = 0x{job.replace('-', '')}")
    assert (state, reason, outcome) == ("settled", "delivery_limit", "job-failed")


def test_a_job_with_a_live_owner_is_left_alone(site, ann, readers, worker):
    job = ann.submit("sleep", "30")
    ann.wait_status(job, "RUNNING")
    with site.amqp() as link:
        link.publish("sluice.dead", QUEUE, message_of(job))
    assert row_of(site, f"job_id = 0x{job.replace('-', '')}")[2] == "left-alone"
    assert ann.job(job)["status"] == "RUNNING"
    ann.post(f"/v1/jobs/{job}/cancel").expect(202)
    ann.wait_status(job, "CANCELLED")


def test_a_killed_reader_loses_and_doubles_nothing(fresh):
    fresh.web().ready()
    reader = fresh.reader("deadletter")
    standby = fresh.reader("deadletter", "standby")
    with fresh.amqp() as link:
        for number in range(40):
            link.publish("sluice.dead", QUEUE, b"x", message_id=f"m-{number}")
            if number == 20:
                reader.kill9()
    wait_until("40 rows", lambda: fresh.count("dead_messages", "outcome IS NOT NULL") == 40)
    assert fresh.count("dead_messages") == 40
    assert standby.stop() == 0
