# SPDX-License-Identifier: MIT
"""sluice audit: silent on a site in order, a line and status 1 for each invariant that is broken."""

import json

import pytest

GHOST = "0x" + "ab" * 16

BROKEN = {
    "history_lost": ("I1", "DELETE FROM job_events"),
    "message_of_no_job": ("I1", "INSERT INTO outbox (job_id, epoch, tenant, queue, created_at) "
                                f"VALUES ({GHOST}, 1, 'acme', 'default', UTC_TIMESTAMP(6))"),
    "fence_of_two": ("I2", "INSERT INTO job_events (job_id, tenant, at, kind, from_status, "
                           "to_status, epoch, fence, worker) SELECT job_id, tenant, at, 'claimed', "
                           f"to_status, to_status, epoch, fence, {GHOST} FROM job_events "
                           "WHERE kind = 'claimed'"),
    "owner_of_an_ended_job": ("I3", f"UPDATE jobs SET owner_worker = {GHOST}"),
    "blocked_without_a_row": ("I3", "UPDATE jobs SET status = 'BLOCKED'"),
    "blocked_row_of_another": ("I3", "INSERT INTO job_blocked (job_id, recovery_id, tenant, "
                                     "resume_status, blocked_at) SELECT id, id, tenant, 'PENDING', "
                                     "UTC_TIMESTAMP(6) FROM jobs"),
    "epoch_ahead": ("I3", "INSERT INTO outbox (job_id, epoch, tenant, queue, created_at) SELECT "
                          "id, epoch + 1, tenant, queue, UTC_TIMESTAMP(6) FROM jobs"),
    "illegal_move": ("I4", "UPDATE job_events SET from_status = 'PENDING' "
                           "WHERE to_status = 'FINISHED'"),
    "fence_lowered": ("I4", "UPDATE job_events SET fence = 0 WHERE to_status = 'FINISHED'"),
    "owner_gone": ("I5", f"UPDATE jobs SET status = 'RUNNING', owner_worker = {GHOST}"),
    "moved_after_the_end": ("I6", "INSERT INTO job_events (job_id, tenant, at, kind, from_status, "
                                  "to_status, epoch, fence) SELECT id, tenant, UTC_TIMESTAMP(6), "
                                  "'status', 'FINISHED', 'PENDING', epoch, fence FROM jobs"),
    "changed_after_the_end": ("I6", "UPDATE jobs SET status = 'FAILED'"),
    "dead_message_without_reason": (
        "I7", "INSERT INTO dead_messages (id, digest, source, state, reason, exchange_name, "
              "queue_name, routing_key, message_id, content_type, traceparent, death_count, "
              "delivery_count, epoch, size_bytes, body, created_at, seen_at) VALUES "
              f"({GHOST}, REPEAT('x', 32), 'dead', 'open', '', '', '', '', '', '', '', 0, 0, 0, 0, "
              "'', UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))"),
    "losses_not_told": ("I8", "UPDATE jobs SET losses = 2"),
}


def audit(site):
    done = site.run("audit", "-o", "json")
    assert done.returncode in (0, 1), done.stderr
    found = json.loads(done.stdout)
    assert bool(found) == bool(done.returncode)
    return {breach["invariant"] for breach in found}


@pytest.fixture(scope="module")
def finished(site):
    """A site with one job that has run."""
    web = site.web()
    worker = site.worker()
    client = site.client(web)
    assert site.run("run", "--", "true", client=client).returncode == 0
    site.wait_clean()
    worker.stop()
    web.stop()
    site.audited = False
    return site


TABLES = ("jobs", "job_events", "job_blocked", "outbox", "dead_messages")


@pytest.fixture
def rows(finished):
    """The rows, put back after the test."""
    for table in TABLES:
        finished.sql(f"CREATE TABLE kept_{table} AS SELECT * FROM {table}")
    yield finished
    for table in TABLES:
        finished.sql(f"DELETE FROM {table}")
        finished.sql(f"INSERT INTO {table} SELECT * FROM kept_{table}")
        finished.sql(f"DROP TABLE kept_{table}")


def test_a_site_in_order_has_no_breach(finished):
    done = finished.run("audit")
    assert (done.returncode, done.stdout) == (0, "no breach found\n")


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_row_is_told(rows, name):
    invariant, damage = BROKEN[name]
    rows.sql(damage)
    assert invariant in audit(rows)


def test_a_breach_is_a_line_with_the_job(rows):
    job = rows.sql("SELECT LOWER(HEX(id)) FROM jobs")[0][0]
    rows.sql("UPDATE jobs SET losses = 2")
    done = rows.run("audit")
    assert done.returncode == 1
    assert any("I8" in line and job in line for line in done.stdout.splitlines())
