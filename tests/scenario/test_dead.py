# SPDX-License-Identifier: MIT
"""Messages that the broker cannot deliver: kept, listed, and their jobs settled."""

import base64
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
def worker(site, web, ann):
    ann.get("/v1/whoami").expect(200)  # the tenant is there, and its queue
    worker = site.worker(slots=2, amqp_delivery_limit=LIMIT)
    wait_until("it to receive", lambda: site.queues().get(QUEUE, (0, 0, 0))[2])
    yield worker
    worker.stop()


def publish(site, body, key=QUEUE, **options):
    with site.amqp() as link:
        link.publish("sluice.submit", key, body, **options)


def wait_routed(site):
    """The queue is declared and bound, and has what was submitted."""
    wait_until("the queue", lambda: QUEUE in site.queues())
    wait_until("the message to be there", lambda: site.count("outbox") == 0)


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
    publish(site, body, content_type="text/x", message_id="garbage-1")
    state, reason, outcome, kept = row_of(site, "message_id = 'garbage-1'")
    assert (state, reason, outcome) == ("open", "rejected", "kept")
    assert bytes.fromhex(kept) == body
    assert worker.alive()
    site.wait_clean()


def listed(client, message_id):
    """The message of this id, as the service shows it, whole."""
    def found():
        page = client.get("/v1/dead-messages?state=open").expect(200).json
        ids = [row["id"] for row in page["deadMessages"] if row["messageId"] == message_id]
        return ids[0] if ids else None
    message = wait_until(f"{message_id} in the list", found)
    return client.get(f"/v1/dead-messages/{message}").expect(200).json


def test_a_replay_with_a_good_body_runs_the_job_once(fresh):
    web = fresh.web()
    ann, olga = fresh.client(web), fresh.client(web, user="olga", role="operator")
    fresh.reader("deadletter")
    job = ann.submit("true")
    with fresh.amqp() as link:
        assert json.loads(link.take(QUEUE))["job"] == job  # its message is lost
    worker = fresh.worker()
    publish(fresh, b"\xffgarbage", message_id="bad-1")
    message = listed(olga, "bad-1")
    assert base64.b64decode(message["bodyBase64"]) == b"\xffgarbage"
    assert (message["reason"], message["queue"], message["bodyText"]) == ("rejected", QUEUE, None)
    path = f"/v1/dead-messages/{message['id']}"
    for bad in ({"v": 1, "job": UNKNOWN, "epoch": 1}, {"v": 1, "job": job, "epoch": 2}):
        olga.post(f"{path}/replay", {"body": bad}).problem(409)
    olga.post(f"{path}/replay", {"body": {"v": 1}}).problem(400)
    olga.post(f"{path}/replay", {"bodies": {}}).problem(400)
    assert ann.job(job)["status"] == "PENDING"
    done = olga.post(f"{path}/replay", {"body": json.loads(message_of(job))}).expect(200).json
    assert (done["state"], done["replays"], done["actedBy"]) == ("replayed", 1, "olga")
    ann.wait_status(job, "FINISHED")
    assert fresh.moves(job).count("RUNNING") == 1 and worker.alive()
    refused = olga.post(f"{path}/replay", {"body": json.loads(message_of(job))}).problem(409)
    assert "resubmit" in refused["detail"]
    fresh.wait_clean()
    assert web.log_events("dead.replay")[0]["user"] == "olga"


def test_the_command_line_lists_shows_replays_and_discards(fresh):
    web = fresh.web()
    ann, olga = fresh.client(web), fresh.client(web, user="olga", role="operator")
    fresh.reader("deadletter")
    job = ann.submit("true")
    with fresh.amqp() as link:
        link.take(QUEUE)
        for number in range(3):
            link.publish("sluice.dead", QUEUE, b"\0raw\xff", message_id=f"cli-{number}")
    listed(olga, "cli-2")

    def sluice(*args, status=0):
        done = fresh.run("dead", *args, client=olga)
        assert done.returncode == status, done.stderr
        return done.stdout if status == 0 else done.stderr

    first, second, third = sluice("ls", "-o", "name").split()
    assert "unknown" in sluice("ls", "--state", "open") and first in sluice("ls")
    assert json.loads(sluice("show", first, "-o", "json"))["bodyBase64"] == "AHJhd/8="
    assert "raised" not in sluice("ls", "--limit", "1")
    assert sluice("discard", second, third).split()[1] == "discarded"
    assert sluice("replay", first, "--job", job).split() == [first, "replayed"]
    fresh.worker()
    ann.wait_status(job, "FINISHED")
    assert f"sluice resubmit {job}" in sluice("replay", first, "--job", job, status=1)
    assert "discarded" in sluice("replay", second, status=1)
    assert "not JSON" in sluice("replay", first, "--body", "{", status=2)


def test_garbage_that_is_replayed_as_it_is_comes_back_as_another_message(site, web, ann, readers,
                                                                        worker):
    olga = site.client(web, user="olga", role="operator")
    publish(site, b"again", message_id="again-1")
    message = listed(olga, "again-1")
    olga.post(f"/v1/dead-messages/{message['id']}/replay").expect(200)
    back = listed(olga, f"replay-{message['id']}-1")
    assert back["id"] != message["id"] and back["bodyText"] == "again"
    path = f"/v1/dead-messages/{back['id']}"
    assert olga.post(f"{path}/discard").expect(200).json["state"] == "discarded"
    olga.post(f"{path}/replay").problem(409)


def test_dead_messages_are_for_operators_of_their_tenant(site, web, ann, readers, worker):
    olga = site.client(web, user="olga", role="operator")
    publish(site, b"mine", message_id="mine-1")
    path = f"/v1/dead-messages/{listed(olga, 'mine-1')['id']}"
    eve = site.stranger(web)
    assert eve.get("/v1/dead-messages").expect(200).json["deadMessages"] == []
    for call in (lambda: eve.get(path), lambda: eve.post(f"{path}/replay"),
                 lambda: eve.post(f"{path}/discard")):
        call().problem(404)
    for call in (lambda: ann.get("/v1/dead-messages"), lambda: ann.get(path),
                 lambda: ann.post(f"{path}/replay"), lambda: ann.post(f"{path}/discard")):
        call().problem(403)


def test_the_list_comes_in_pages_newest_first(site, web, ann, readers):
    olga = site.client(web, user="olga", role="operator")
    with site.amqp() as link:
        for number in range(5):
            link.publish("sluice.dead", QUEUE, b"page", message_id=f"page-{number}")
    listed(olga, "page-4")
    seen, cursor = [], ""
    while True:
        page = olga.get(f"/v1/dead-messages?state=open&limit=2{cursor}").expect(200).json
        seen += [row["messageId"] for row in page["deadMessages"]]
        assert all("bodyBase64" not in row for row in page["deadMessages"])
        if not page["nextCursor"]:
            break
        cursor = f"&cursor={page['nextCursor']}"
    assert seen[:5] == [f"page-{number}" for number in (4, 3, 2, 1, 0)]
    assert len(seen) == len(set(seen)) == site.count("dead_messages", "state = 'open'")
    olga.get(f"/v1/dead-messages?limit=2{cursor}").problem(400)
    olga.get("/v1/dead-messages?state=gone").problem(400)


def test_of_a_large_message_the_size_is_told_and_the_beginning_kept(site, web, ann, readers, worker):
    publish(site, b"x" * 3_000_000, message_id="large-1")
    row_of(site, "message_id = 'large-1'")
    assert site.sql("SELECT size_bytes, LENGTH(body) FROM dead_messages "
                    "WHERE message_id = 'large-1'") == [["3000000", "65536"]]
    olga = site.client(web, user="olga", role="operator")
    path = f"/v1/dead-messages/{listed(olga, 'large-1')['id']}"
    assert "65536" in olga.post(f"{path}/replay").problem(413)["detail"]


def test_a_job_that_is_not_there_is_kept(site, ann, readers, worker):
    publish(site, message_of(UNKNOWN))
    row = row_of(site, f"job_id = 0x{UNKNOWN.replace('-', '')}")
    assert row[:3] == ["open", "rejected", "kept"]


def test_an_unbound_queue_blocks_its_job_at_once(site, ann, readers):
    ann.post(f"/v1/jobs/{ann.submit('true')}/cancel").expect(200)  # the queue is declared now
    wait_routed(site)
    with site.amqp() as link:
        link.unbind(QUEUE, "sluice.submit", QUEUE)
    job = ann.submit("true")
    ann.wait_status(job, "BLOCKED")  # nobody else is here to find out
    assert ann.job(job)["condition"] == "QUEUE_UNAVAILABLE"
    state, reason, outcome, _body = row_of(site, f"job_id = 0x{job.replace('-', '')}")
    assert (state, reason, outcome) == ("settled", "unroutable", "job-blocked")


def test_a_probe_leaves_a_settled_row_with_its_id_and_alarms_nobody(site, web, readers):
    probes = {"sluice.submit": "01900000-0000-7000-8000-00000000000a",
              "sluice.dead": "01900000-0000-7000-8000-00000000000b"}
    for (exchange, probe), reader in zip(probes.items(), readers):
        with site.amqp() as link:
            link.publish(exchange, "sluice.nobody", b"?", message_id=f"sluice-probe-{probe}")
        row = row_of(site, f"id = 0x{probe.replace('-', '')}")
        assert row[0] == "settled" and row[2] == "left-alone"
        reader.wait_log(probe)
        told = [line for line in reader.log_events("dead.message") if line["id"] == probe]
        assert [line["level"] for line in told] == ["info"]


def test_many_jobs_of_an_unbound_queue_wait_for_one_cause_and_finish(fresh):
    web = fresh.web()
    ann = fresh.client(web)
    fresh.reader("alternate")
    ann.post(f"/v1/jobs/{ann.submit('true')}/cancel").expect(200)
    wait_routed(fresh)
    with fresh.amqp() as link:
        link.unbind(QUEUE, "sluice.submit", QUEUE)
    jobs = [{"name": f"j{number}", "command": ["true"]} for number in range(100)]
    items = ann.post("/v1/jobs:batch", {"jobs": jobs}).expect(200).json["items"]
    assert all(item["status"] == 201 for item in items)
    wait_until("all blocked", lambda: fresh.count("jobs", "status = 'BLOCKED'") == 100, 60)
    assert fresh.count("job_recovery") == 1
    wait_until("all messages to tell so",
               lambda: fresh.count("dead_messages", "outcome = 'job-blocked'") == 100)
    fresh.reader("recovery", recovery_tick_ms=200, recovery_ramp_pause_ms=100)
    fresh.worker()
    wait_until("all finished", lambda: fresh.count("jobs", "status = 'FINISHED'") == 100, 60)
    fresh.wait_clean()
    assert fresh.count("dead_messages") == 100
    assert fresh.count("job_events", "to_status = 'RUNNING'") == 100


def test_a_message_that_came_back_too_often_ends_its_job(fresh):
    web = fresh.web(amqp_delivery_limit=LIMIT)
    ann = fresh.client(web)
    fresh.reader("deadletter")
    job = ann.submit("true")
    wait_routed(fresh)
    with fresh.amqp() as link:
        link.give_back(QUEUE, LIMIT + 1)
    ann.wait_status(job, "FAILED")
    assert ann.job(job)["condition"] == "DEAD_LETTERED"
    assert "resubmit" in ann.job(job)["reason"]
    state, reason, outcome, _body = row_of(fresh, f"job_id = 0x{job.replace('-', '')}")
    assert (state, reason, outcome) == ("settled", "delivery_limit", "job-failed")
    olga = fresh.client(web, user="olga", role="operator")
    message = olga.get("/v1/dead-messages").expect(200).json["deadMessages"][0]
    assert (message["job"], message["state"]) == (job, "settled")
    refused = olga.post(f"/v1/dead-messages/{message['id']}/replay").problem(409)
    assert f"sluice resubmit {job}" in refused["detail"]


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
    wait_until("40 rows", lambda: fresh.count("dead_messages", "outcome IS NOT NULL") == 40, 60)
    assert fresh.count("dead_messages") == 40
    assert standby.stop() == 0


# ---- no message stops a reader

def dead(site, body, message_id=None, exchange="sluice.dead"):
    with site.amqp() as link:
        link.publish(exchange, "anything", body, message_id=message_id)


def bodies(site, where="1 = 1"):
    return sorted(bytes.fromhex(row[0]).decode() for row in site.sql(
        f"SELECT HEX(body) FROM dead_messages WHERE outcome IS NOT NULL AND {where}"))


def test_the_id_of_a_probe_that_another_message_has_stops_no_reader(fresh):
    probe = "sluice-probe-01900000-0000-7000-8000-0000000000aa"
    for kind in ("deadletter", "alternate"):
        fresh.reader(kind)
    dead(fresh, b"first", probe)
    wait_until("the first", lambda: bodies(fresh) == ["first"])
    fresh.sql("UPDATE dead_messages SET state = 'discarded', seen = 7")
    dead(fresh, b"second", probe)
    dead(fresh, b"third", probe, "sluice.alternate")
    dead(fresh, b"behind the second")
    dead(fresh, b"behind the third", exchange="sluice.alternate")
    wait_until(lambda: str(bodies(fresh)), lambda: bodies(fresh) == [
        "behind the second", "behind the third", "first", "second", "third"])
    assert fresh.sql("SELECT state, seen FROM dead_messages WHERE body = 'first'") == [
        ["discarded", "7"]], "the row of another message was changed"
    fresh.wait_clean()


def test_a_message_that_cannot_be_handled_is_kept_and_the_others_go_on(fresh):
    reader = fresh.reader("deadletter")
    fresh.sql("CREATE TRIGGER refuse BEFORE INSERT ON dead_messages FOR EACH ROW SET NEW.reason = "
              "IF(NEW.message_id = 'refused', NULL, NEW.reason)")
    dead(fresh, b"refused by the database", "refused")
    dead(fresh, b"behind it")
    wait_until(lambda: str(bodies(fresh)),
               lambda: bodies(fresh) == ["behind it", "refused by the database"])
    row = fresh.sql("SELECT state, outcome, detail FROM dead_messages WHERE body LIKE 'refused%'")[0]
    assert row[:2] == ["open", "kept"] and "could not be handled" in row[2], row
    text = fresh.client(reader).get("/metrics").body.decode()
    assert "sluice_dead_messages_set_aside_total 1" in text, text
    fresh.wait_clean()
    assert reader.ready() == 200


def test_a_reader_that_cannot_keep_anything_says_so_and_loses_nothing(fresh):
    reader = fresh.reader("deadletter")
    fresh.sql("CREATE TRIGGER refuse BEFORE INSERT ON dead_messages FOR EACH ROW SET NEW.reason = NULL")
    dead(fresh, b"one")
    dead(fresh, b"two")
    wait_until("it to say so", lambda: reader.ready() == 503)
    assert b'"database":true' in fresh.client(reader).get("/readyz").body
    assert bodies(fresh) == []
    fresh.sql("DROP TRIGGER refuse")
    wait_until(lambda: str(bodies(fresh)), lambda: bodies(fresh) == ["one", "two"])
    wait_until("it to be ready", lambda: reader.ready() == 200)
    fresh.wait_clean()
