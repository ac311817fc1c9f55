# SPDX-License-Identifier: MIT
"""sluice doctor: nothing to say of a good site; each fault of a broken one by name, with its cure."""

import json
import os
import shlex

import pytest

from servers import Servers
from sluice import Site
from waiting import wait_until

FAST = {"recovery_tick_ms": 200}
PROBED = ("submit path", "dead letter path", "alternate path", "bindings")


def doctor(site, **settings):
    """What it found, {check: [finding...]}, and its exit status."""
    settings = {"worker_work_root": site.path("work")} | settings
    done = site.run("doctor", "-o", "json", **settings)
    found = {}
    for finding in json.loads(done.stdout):
        found.setdefault(finding["check"], []).append(finding)
    return found, done.returncode


def results(found, check):
    return {finding["result"] for finding in found[check]}


def fault(found, check, *words):
    """The one finding of this check that has all these words in it; it has a cure."""
    hits = [one for one in found[check]
            if all(word in one["finding"] + " " + (one["cure"] or "") for word in words)]
    assert len(hits) == 1 and hits[0]["cure"], (words, found[check])
    return hits[0]["result"]


def start_readers(site, **settings):
    site.reader("alternate")
    site.reader("deadletter")
    site.reader("recovery", **FAST, **settings).wait_log("recovery.leads", 20)


def subscribe(site, web):
    site.client(web, "root", "admin").put(
        "/v1/subscriptions/portal", {"url": "https://example.org/", "states": ["PAUSED"]}).expect(201)


def test_a_good_site_has_no_fault_and_nothing_is_left_behind(fresh):
    web = fresh.web()
    ann = fresh.client(web)
    fresh.worker()
    subscribe(fresh, web)
    fresh.reader("webhook").wait_log("webhook.leading")
    ann.wait_status(ann.submit("true"), "FINISHED")  # the tenant is there now
    start_readers(fresh)
    found, status = doctor(fresh)
    assert status == 0, [one["finding"] for all_of in found.values() for one in all_of
                         if one["result"] == "fault"]
    for check in ("database", "schema", "clock", "broker", "exchanges", "queues", "readers",
                  "workers", "outbox", "keys", "versions", "retention", "webhooks", *PROBED):
        assert results(found, check) == {"ok"}, found[check]
    assert results(found, "consumer_timeout") == {"cannot tell"}
    assert fresh.count("dead_messages") == 0, "the probes' rows are removed"
    fresh.wait_clean()
    fresh.sql("INSERT INTO processes (id, service, host, pid, version, schema_number, started_at, "
              "seen_at) VALUES (0x01, 'sluice-web', 'far', 7, '0.0.1', 5, UTC_TIMESTAMP(6), "
              "UTC_TIMESTAMP(6)); UPDATE retention SET ended_at = NULL, "
              "created_at = created_at - INTERVAL 3 DAY, holder = 0x01, "  # recovery leaves it so
              "renewed_at = renewed_at + INTERVAL 1 DAY")
    table = fresh.run("doctor", worker_work_root=fresh.path("work"))
    assert table.returncode == 0 and "CURE" in table.stdout, table
    assert "sluice-web of host far (pid 7) is version 0.0.1 and knows schema 005" in table.stdout
    assert "not removed to the end for 72 h" in table.stdout


def test_incarnations_are_folded_and_leases_compared(fresh):
    fresh.worker(name="back", fleet_lease_ms=30000)
    columns = ("tenant, queue, host, boot_id, pid, version, slots, state, draining, started_at, "
               "beat_at, name")
    for name, deaths in (("back", 2), ("gone", 3)):
        values = columns.replace("state", "'dead'").replace("name", f"'{name}'")
        for at in range(deaths):
            fresh.sql(f"INSERT INTO workers (id, {columns}) SELECT UNHEX(MD5('{name}{at}')), {values} "
                      "FROM workers WHERE state = 'live'")
    found, _ = doctor(fresh)
    assert fault(found, "workers", "'gone'", "declared dead 3 times") == "warning"
    assert fault(found, "workers", "fleet.lease_ms is 2000 here", "30000") == "warning"
    assert not [one for one in found["workers"] if "'back'" in one["finding"]
                and "declared dead" in one["finding"]]
    folded = [one for one in found["workers"] if "live again" in one["finding"]]
    assert [one["finding"].split()[0] for one in folded] == ["2"]
    found, _ = doctor(fresh, fleet_lease_ms=30000)
    assert not [one for one in found["workers"] if "fleet.lease_ms" in one["finding"]]


@pytest.fixture(name="broken", scope="module")
def fixture_broken():
    with Servers(config={"consumer_timeout": "3000"},
                 mariadb_options=["--innodb-flush-log-at-trx-commit=0"]) as servers, \
            Site(servers) as made:
        yield made
        for process in made.processes:
            print(f"---- {process.name}\n{process.log_tail()}")


def tool_of(site):
    """A script that calls rabbitmqctl for the broker of this site."""
    path = site.path("rabbitmqctl")
    with open(path, "w", encoding="ascii") as script:
        script.write(f"#!/bin/sh\nexec {shlex.join(site.servers.rabbitmq.command)} \"$@\"\n")
    os.chmod(path, 0o755)
    return path


def test_wrong_settings_are_named(broken):
    found, status = doctor(broken, doctor_rabbitmqctl=tool_of(broken))
    assert status == 1
    assert fault(found, "durability", "innodb_flush_log_at_trx_commit is 0", "= 1") == "fault"
    assert fault(found, "consumer_timeout", "is 3 s", "rabbitmq.conf") == "warning"


def test_an_old_schema_is_named(broken):
    newest = broken.sql("SELECT MAX(number) FROM schema_version")[0][0]
    broken.sql(f"UPDATE schema_version SET applied_at = NULL WHERE number = {newest}")
    found, status = doctor(broken)
    broken.sql(f"UPDATE schema_version SET applied_at = UTC_TIMESTAMP(6) WHERE number = {newest}")
    assert status == 1
    assert fault(found, "schema", "needs", "sluice migrate") == "fault"
    assert results(found, "workers") == {"cannot tell"}


def test_stopped_readers_a_missing_binding_and_a_stale_worker_are_named(broken):
    web = broken.web()
    ann = broken.client(web)
    worker = broken.worker(name="gone")
    subscribe(broken, web)
    ann.wait_status(ann.submit("true"), "FINISHED")
    found, status = doctor(broken)
    assert status == 1
    assert fault(found, "readers", "start sluice-deadletter") == "fault"
    assert fault(found, "readers", "start sluice-alternate") == "fault"
    assert fault(found, "readers", "start sluice-recovery", "acme") == "fault"
    assert fault(found, "webhooks", "start sluice-webhook", "the oldest event for") == "fault"
    for check in PROBED:
        assert results(found, check) == {"cannot tell"}

    start_readers(broken, fleet_lease_ms=60000)  # it is silent, and nobody declares it dead yet
    worker.kill9()
    sender = broken.reader("webhook")
    sender.wait_log("webhook.leading")
    wait_until("its row", lambda: broken.count("processes", "service = 'sluice-webhook'"))
    sender.kill9()
    broken.sql("UPDATE processes SET seen_at = seen_at - INTERVAL 1 MINUTE "
               "WHERE service = 'sluice-webhook'")
    name = "sluice.acme.submit.default"
    with broken.amqp() as link:
        link.unbind(name, "sluice.submit", name)
    seen = {}

    def stale():
        seen["found"], seen["status"] = doctor(broken)
        return "fault" in results(seen["found"], "workers")
    wait_until(lambda: f"a stale worker: {seen}", stale, 30)
    found = seen["found"]
    assert seen["status"] == 1
    assert fault(found, "workers", "'gone'", "has not been heard of") == "fault"
    assert fault(found, "workers", "no live worker", "sluice-worker --tenant acme") == "warning"
    assert fault(found, "bindings", name, "start a worker of this queue") == "fault"
    assert results(found, "alternate path") == {"ok"}
    assert fault(found, "webhooks", "sluice-webhook does not run") == "fault", "though it has the lead"

    broken.worker(name="back")
    ann.wait_status(ann.submit("true"), "FINISHED")
    found, _ = doctor(broken)
    assert results(found, "bindings") == {"ok"}, found["bindings"]


def test_keys_that_others_can_write_and_secrets_that_all_can_read_are_named(broken):
    secret = broken.path("keys", "acme", "s.hs256")
    with open(secret, "wb") as out:
        out.write(b"x" * 32)
    os.chmod(secret, 0o644)
    found, status = doctor(broken)
    assert status == 1
    assert fault(found, "keys", "s.hs256", "make a new secret") == "fault"
    os.chmod(secret, 0o662)
    found, _ = doctor(broken)
    assert fault(found, "keys", "s.hs256", "chmod go-w") == "fault"
    os.remove(secret)


def test_of_a_cluster_it_names_the_node_that_is_away(broken):
    given = broken.environment()
    found, _ = doctor(broken, amqp_host=f"127.0.0.1:1, 127.0.0.1:{given['SLUICE_AMQP_PORT']}")
    assert fault(found, "broker", "port 1:", "take it out") == "warning"
    assert results(found, "broker") == {"warning", "ok"}
    assert results(found, "exchanges") != {"cannot tell"}


def test_without_servers_it_says_so_and_ends(broken):
    found, status = doctor(broken, db_port=1, amqp_port=1)
    assert status == 1
    assert fault(found, "database", "db.host") == "fault"
    assert fault(found, "broker", "amqp.host") == "fault"
    assert results(found, "schema") == results(found, "exchanges") == {"cannot tell"}


def test_a_queue_whose_jobs_nobody_takes_is_a_fault(fresh):
    web = fresh.web()
    ann = fresh.client(web, "ann")
    root = fresh.client(web, "root", "admin")
    worker = fresh.worker()
    root.get("/v1/queues").expect(200)  # the default queue exists from the first look on
    assert "every live worker" not in str(doctor(fresh))
    live = root.get("/v1/workers").expect(200).json["workers"][0]["id"]
    root.post(f"/v1/workers/{live}/drain").expect(200)
    found, _ = doctor(fresh)
    assert fault(found, "workers", "every live worker of queue 'default'", "undrain") == "warning"
    job = ann.submit("true")
    found, status = doctor(fresh)
    assert fault(found, "workers", "is drained: 1 jobs wait", "undrain") == "fault" and status == 1
    worker.stop()
    found, _ = doctor(fresh)
    assert fault(found, "workers", "no live worker serves queue 'default'", "sluice-worker") == "fault"
    ann.cancel(job).expect(200)
