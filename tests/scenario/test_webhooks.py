# SPDX-License-Identifier: MIT
"""Webhooks: told at least once, in order per job, signed, and never to where they must not go."""

import json
import re
import signal
import socket

import pytest

from receiver import Receiver, signed_by
from waiting import wait_until

QUICK = {"webhook_retry_first_ms": 50, "webhook_retry_most_ms": 200, "webhook_poll_ms": 20}
HERE = {"webhook_allow_networks": "127.0.0.0/8"}


@pytest.fixture(name="place", scope="module")
def _place(shared_servers, site):
    """A site with web, a worker and a sender that may send to this machine."""
    del shared_servers
    web = site.web(**HERE)
    site.worker()
    site.reader("webhook", **QUICK, **HERE)
    site.admin = site.client(web, "root", "admin")
    site.ann = site.client(web)
    wait_until("somebody to send", lambda: site.count("webhook_sender", "holder IS NOT NULL"))
    return site


def subscribe(admin, name, url, **more):
    made = admin.put(f"/v1/subscriptions/{name}", {"url": url} | more).expect(201).json
    assert made["secret"].startswith("whsec_")
    return made


def run(client, command=("true",), **more):
    job = client.post("/v1/jobs", {"name": "told", "command": list(command)} | more).expect(201)
    return job.json["id"]


def deliveries(client, job):
    """Oldest first."""
    page = client.get(f"/v1/deliveries?job={job}&limit=1000").expect(200).json
    return sorted(page["deliveries"], key=lambda row: row["seq"])


def states_of(client, job):
    return [row["state"] for row in deliveries(client, job)]


def states(place, job):
    return states_of(place.ann, job)


def delivery(place, job, name, event=None):
    return next((row for row in deliveries(place.ann, job) if row["subscription"] == name
                 and event in (None, row["event"])), None)


def wait_delivered(place, job, name, event=None):
    def delivered():
        row = delivery(place, job, name, event)
        return row if row and row["state"] == "delivered" else None
    return wait_until(f"{name} to have been told of {job}", delivered)


def test_a_subscriber_is_told_of_the_end_of_a_job_once_and_signed(place):
    with Receiver() as receiver:
        made = subscribe(place.admin, "first", receiver.url + "/hook?x=1")
        job = run(place.ann, ("sh", "-c", "exit 3"))
        call = wait_until("a call", lambda: next(iter(receiver.of(job)), None))
        assert call.path == "/hook?x=1" and call.attempt == 1
        assert call.said["id"] == call.id and call.said["subscription"] == "first"
        assert call.said["to"] == "FAILED" and call.said["job"]["exitCode"] == 3
        assert signed_by(made["secret"], call.headers, call.body)
        assert not signed_by("whsec_other", call.headers, call.body)
        place.admin.delete("/v1/subscriptions/first").expect(204)
        assert len(receiver.of(job)) == 1


def test_one_that_fails_three_times_gets_the_event_once_after(place):
    def answer(call):
        return 200 if call.attempt > 3 else 500
    with Receiver(answer) as receiver:
        subscribe(place.admin, "shaky", receiver.url)
        job = run(place.ann)
        wait_until("four calls", lambda: len(receiver.of(job)) >= 4)
        row = wait_delivered(place, job, "shaky")
        place.admin.delete("/v1/subscriptions/shaky").expect(204)
        calls = receiver.of(job)
        assert [call.attempt for call in calls] == [1, 2, 3, 4]
        assert len({(call.id, call.body) for call in calls}) == 1
        assert row["attempts"] == 4 and row["httpStatus"] == 200 and row["error"] is None
        log = place.ann.get(f"/v1/deliveries/{row['id']}").expect(200).json["attemptLog"]
        assert [entry["httpStatus"] for entry in log] == [200, 500, 500, 500]


def test_events_of_a_job_come_in_order_and_hold_up_no_other_job(place):
    def answer(call):
        stubborn = call.said["job"]["name"] == "stubborn"
        return 503 if stubborn and call.to == "PENDING" and call.attempt < 6 else 204
    with Receiver(answer) as receiver:
        subscribe(place.admin, "all", receiver.url, states=[
            "PENDING", "PROCESSING_INPUTS", "RUNNING", "ARCHIVING", "FINISHED"])
        stubborn, other = run(place.ann, name="stubborn"), run(place.ann)
        wait_until("the end of the other", lambda: any(c.to == "FINISHED" for c in receiver.of(other)))
        for job in (other, stubborn):
            wait_delivered(place, job, "all", "FINISHED")
            taken = [c for c in receiver.of(job) if answer(c) == 204]
            assert [c.to for c in taken] == [
                "PENDING", "PROCESSING_INPUTS", "RUNNING", "ARCHIVING", "FINISHED"]
            assert [c.said["seq"] for c in taken] == sorted(c.said["seq"] for c in taken)
        first, late = receiver.of(stubborn)[5:7]
        assert first.attempt == 6 and late.to == "PROCESSING_INPUTS" and late.at > first.at
        place.admin.delete("/v1/subscriptions/all").expect(204)


def test_a_redirect_is_not_followed(place):
    with Receiver() as inside, Receiver(lambda call: (302, {"Location": inside.url})) as receiver:
        subscribe(place.admin, "moved", receiver.url)
        job = run(place.ann)
        wait_until("two calls", lambda: len(receiver.of(job)) >= 2)
        row = delivery(place, job, "moved")
        assert "redirects are not followed" in row["error"] and row["httpStatus"] == 302
        place.admin.delete("/v1/subscriptions/moved").expect(204)
        wait_until("it to be dropped", lambda: states(place, job) == ["dropped"])
        assert not inside.calls


def test_a_job_brings_subscriptions_of_its_own(place):
    with Receiver() as receiver, Receiver() as plain:
        made = subscribe(place.admin, "signer", receiver.url, states=["PAUSED"])
        job = run(place.ann, subscriptions=[
            {"url": receiver.url + "/mine", "states": ["RUNNING", "FINISHED"], "secret": "signer"},
            {"url": plain.url}])
        wait_until("the end", lambda: any(c.to == "FINISHED" for c in receiver.of(job)))
        wait_until("the other", lambda: bool(plain.of(job)))
        assert [c.to for c in receiver.of(job)] == ["RUNNING", "FINISHED"]
        assert [c.to for c in plain.of(job)] == ["FINISHED"]
        assert all(signed_by(made["secret"], c.headers, c.body) for c in receiver.of(job))
        assert "Sluice-Signature" not in plain.of(job)[0].headers
        other = run(place.ann)
        place.ann.wait_end(other)
        again = place.ann.post(f"/v1/jobs/{job}/resubmit").expect(201).json["id"]
        wait_until("the end of its twin", lambda: bool(plain.of(again)))
        assert not plain.of(other) and not receiver.of(other)
        place.admin.delete("/v1/subscriptions/signer").expect(204)


def test_a_secret_signs_for_its_own_receiver_only(place):
    """A user with a receiver of his own gets nothing that somebody else's secret has signed, and
    cannot tell by the refusal what subscriptions there are."""
    with Receiver() as receiver, Receiver() as own:
        subscribe(place.admin, "guarded", receiver.url, states=["PAUSED"])
        request = {"name": "x", "command": ["true"]}
        elsewhere = [own.url, own.url + "/mine", receiver.url.replace("127.0.0.1", "127.0.0.2"),
                     receiver.url.replace("http:", "https:"), receiver.url.rsplit(":", 1)[0]]
        for url in elsewhere:
            told = []
            for name in ("guarded", "not-there"):
                problem = place.ann.post("/v1/jobs", request | {
                    "subscriptions": [{"url": url, "secret": name}]}).problem(404)
                assert problem["errors"][0]["pointer"] == "/subscriptions/0/secret"
                told.append(problem["detail"].replace(name, "NAME"))
            assert told[0] == told[1]
        assert not own.calls
        place.ann.post("/v1/jobs", request | {
            "subscriptions": [{"url": receiver.url + "/any?x=1", "secret": "guarded"}]}).expect(201)
        place.admin.delete("/v1/subscriptions/guarded").expect(204)


def test_a_new_secret_signs_beside_the_old_one(place):
    with Receiver() as receiver:
        old = subscribe(place.admin, "turned", receiver.url)["secret"]
        new = place.admin.post("/v1/subscriptions/turned/rotate").expect(200).json["secret"]
        job = run(place.ann)
        call = wait_until("a call", lambda: next(iter(receiver.of(job)), None))
        assert old != new
        assert signed_by(old, call.headers, call.body) and signed_by(new, call.headers, call.body)
        place.admin.delete("/v1/subscriptions/turned").expect(204)


def test_a_receiver_that_is_gone_for_good_is_told_again_by_hand(place):
    gone = [True]
    with Receiver(lambda call: 410 if gone[0] else 200) as receiver:
        subscribe(place.admin, "gone", receiver.url)
        job = run(place.ann)
        wait_until("it to be dead", lambda: states(place, job) == ["dead"])
        row = delivery(place, job, "gone")
        gone[0] = False
        place.ann.post(f"/v1/deliveries/{row['id']}/redeliver").problem(403)
        place.admin.post(f"/v1/deliveries/{row['id']}/redeliver").expect(200)
        wait_until("it to be delivered", lambda: states(place, job) == ["delivered"])
        assert [(call.id, call.attempt) for call in receiver.of(job)] == [(row["id"], 1), (row["id"], 2)]
        place.admin.delete("/v1/subscriptions/gone").expect(204)
        place.admin.post(f"/v1/deliveries/{row['id']}/redeliver").problem(409)


def test_secrets_are_told_once_and_acts_are_audited(place):
    made = subscribe(place.admin, "quiet", "https://example.org/x")
    seen = [place.admin.get("/v1/subscriptions").expect(200).body,
            place.admin.get("/v1/subscriptions/quiet").expect(200).body,
            place.admin.put("/v1/subscriptions/quiet", {"url": "https://example.org/y"},
                            {"If-Match": '"1"'}).expect(200).body]
    place.admin.put("/v1/subscriptions/quiet", {"url": "https://example.org/y"},
                    {"If-Match": '"1"'}).problem(412)
    assert not any(b"whsec_" in body for body in seen)
    assert not any(made["secret"] in process.log_text() for process in place.processes)
    place.ann.get("/v1/subscriptions").problem(403)
    place.client(place.processes[0], "olga", "operator").put(
        "/v1/subscriptions/quiet", {"url": "https://example.org/"}).problem(403)
    stranger = place.stranger(place.processes[0])
    stranger.get("/v1/subscriptions/quiet").problem(404)
    assert stranger.get("/v1/deliveries").expect(200).json["deliveries"] == []
    place.admin.post("/v1/subscriptions/quiet/disable").expect(200)
    place.admin.delete("/v1/subscriptions/quiet").expect(204)
    acts = [row["action"] for row in place.admin.get(
        "/v1/audit?actor=root&outcome=done&limit=3").expect(200).json["audit"]]
    assert acts == ["subscription_delete", "subscription_disable", "subscription_put"]


def test_the_command_line_knows_subscriptions_and_deliveries(place):
    def sluice(*args, status=0):
        done = place.run(*args, client=place.admin)
        assert done.returncode == status, (args, done.stdout, done.stderr)
        return done.stdout

    with Receiver() as receiver:
        secret = sluice("subscription", "put", "line", "--url", receiver.url, "-o", "name").strip()
        assert "line" in sluice("subscriptions") and secret.startswith("whsec_")
        sluice("subscription", "put", "line", "--states", "FINISHED", "--description", "mine")
        kept = json.loads(sluice("subscription", "get", "line", "-o", "json"))
        assert (kept["url"], kept["states"], kept["description"]) == (receiver.url, ["FINISHED"], "mine")
        job = run(place.ann)
        call = wait_until("a call", lambda: next(iter(receiver.of(job)), None))
        assert signed_by(secret, call.headers, call.body)
        row = wait_delivered(place, job, "line")
        assert row["id"] in sluice("deliveries", "--job", job, "--state", "delivered")
        sluice("redeliver", row["id"])
        wait_until("the second call", lambda: len(receiver.of(job)) == 2)
        assert '"to": "FINISHED"' in sluice("delivery", row["id"], "-o", "json")
        sluice("subscription", "disable", "line")
        sluice("subscription", "enable", "line")
        assert sluice("subscription", "rotate", "line", "-o", "name").strip() != secret
        sluice("subscription", "rm", "line")
        sluice("subscription", "get", "line", status=1)


@pytest.mark.parametrize("member, pointer", [
    ({"url": "ftp://example.org/"}, "/url"), ({"url": "http://u:p@example.org/"}, "/url"),
    ({"url": "http://10.0.0.1/"}, "/url"), ({"url": "http://[::ffff:169.254.169.254]/"}, "/url"),
    ({"url": "http://example.org/", "states": []}, "/states"),
    ({"url": "http://example.org/", "states": ["GONE"]}, "/states/0"),
    ({"url": "http://example.org/", "more": 1}, "/more"), ({}, "/url")])
def test_a_subscription_is_read_strictly(place, member, pointer):
    refused = place.admin.put("/v1/subscriptions/bad", member).problem(400)
    assert refused["errors"][0]["pointer"] == pointer
    request = {"name": "x", "command": ["true"], "subscriptions": [member]}
    refused = place.ann.post("/v1/jobs", request).problem(400)
    assert refused["errors"][0]["pointer"] == "/subscriptions/0" + pointer


def test_no_name_and_no_spelling_leads_to_a_private_address(fresh):
    web = fresh.web()
    fresh.worker()
    fresh.reader("webhook", **QUICK)
    admin, ann = fresh.client(web, "root", "admin"), fresh.client(web)
    with Receiver() as receiver:
        hosts = ("localhost", "2130706433", "0x7f000001", "127.1", "0")
        for number, host in enumerate(hosts):
            subscribe(admin, f"inside-{number}", f"http://{host}:{receiver.port}/")
        admin.put("/v1/subscriptions/plain", {"url": receiver.url}).problem(400)
        job = run(ann)
        wait_until("an attempt each", lambda: len(
            [row for row in deliveries(ann, job) if row["error"]]) == len(hosts))
        assert all("not public" in row["error"] for row in deliveries(ann, job)), deliveries(ann, job)
        assert not receiver.calls


def test_a_sender_that_dies_after_the_call_calls_again_with_the_same_id(fresh):
    web = fresh.web(**HERE)
    fresh.worker()
    sender = fresh.reader("webhook", fault="webhook.sent=kill@1", **QUICK, **HERE)
    admin, ann = fresh.client(web, "root", "admin"), fresh.client(web)
    with Receiver() as receiver:
        subscribe(admin, "all", receiver.url, states=["PENDING", "FINISHED"])
        job = run(ann)
        sender.wait()
        ann.wait_end(job)
        fresh.sql("DELETE FROM processes WHERE service = 'sluice-webhook'")  # as if it were old
        wait_until("the lag to be told", lambda: re.search(
            r"^sluice_webhook_lag_seconds [1-9]", ann.get("/metrics").expect(200).body.decode(), re.M))
        fresh.reader("webhook", "next", **QUICK, **HERE)
        wait_until("both", lambda: states_of(ann, job) == ["delivered", "delivered"], 30)
        assert [call.to for call in receiver.of(job)] == ["PENDING", "PENDING", "FINISHED"]
        assert receiver.of(job)[0].id == receiver.of(job)[1].id


def test_a_dead_receiver_holds_up_nobody_else(fresh):
    web = fresh.web(**HERE)
    fresh.worker(slots=8)
    fresh.reader("webhook", **QUICK, **HERE, webhook_threads=2, webhook_timeout_ms=1000)
    admin, ann = fresh.client(web, "root", "admin"), fresh.client(web)
    with Receiver() as receiver, socket.create_server(("127.0.0.1", 0)) as silent:
        for number in range(3):  # more than there are threads
            subscribe(admin, f"silent-{number}", f"http://127.0.0.1:{silent.getsockname()[1]}/")
        subscribe(admin, "good", receiver.url)
        jobs = [run(ann) for _ in range(40)]
        for job in jobs:
            ann.wait_end(job)
        wait_until("all of them", lambda: {call.job for call in receiver.calls} == set(jobs), 60)
        wait_until("the silent ones alone to be left", lambda: fresh.count(
            "webhook_deliveries", "state = 'due'") == 3 * len(jobs))


def test_nothing_waits_longer_than_patience_for_one_who_does_not_answer(fresh):
    web = fresh.web(**HERE)
    fresh.worker(slots=8)
    fresh.reader("webhook", **QUICK, **HERE, webhook_give_up_s=2, webhook_per_receiver=1)
    admin, ann = fresh.client(web, "root", "admin"), fresh.client(web)
    with socket.socket() as closed:  # a port of ours where nobody listens
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/"
        subscribe(admin, "closed", url, states=["RUNNING", "FINISHED"])
        job = [run(ann) for _ in range(10)][-1]
        wait_until("the last one to be given up", lambda: states_of(ann, job)[:1] == ["dead"], 30)


def test_of_two_senders_one_sends_and_the_other_takes_over(fresh):
    web = fresh.web(**HERE)
    fresh.worker()
    one = fresh.reader("webhook", "one", **QUICK, **HERE)
    one.wait_log("webhook.leading")
    two = fresh.reader("webhook", "two", **QUICK, **HERE)
    admin, ann = fresh.client(web, "root", "admin"), fresh.client(web)
    with Receiver() as receiver:
        subscribe(admin, "all", receiver.url)
        one.signal(signal.SIGSTOP)
        job = run(ann)
        two.wait_log("webhook.leading", 30)
        wait_until("the call", lambda: bool(receiver.of(job)), 20)
        one.signal(signal.SIGCONT)
        assert one.wait() == 75
        third = fresh.reader("webhook", "three", **QUICK, **HERE, fleet_lease_ms=120000)
        assert two.stop() == 0
        third.wait_log("webhook.leading", 30)  # it need not wait for a lease
        job = run(ann)
        wait_until("the call", lambda: bool(receiver.of(job)))
        assert [call.attempt for call in receiver.calls] == [1, 1]


def test_a_sender_whose_database_hung_sends_nothing_old(fresh):
    """It read what is due, and comes back when another has sent that and what came after."""
    web = fresh.web(**HERE)
    one = fresh.reader("webhook", "one", fault="webhook.due_read=sleep:8000@1", **QUICK, **HERE)
    one.wait_log("webhook.leading")
    two = fresh.reader("webhook", "two", **QUICK, **HERE)
    fresh.worker()
    admin, ann = fresh.client(web, "root", "admin"), fresh.client(web)
    with Receiver() as receiver:
        subscribe(admin, "all", receiver.url, states=["PENDING", "FINISHED"])
        job = run(ann)
        one.wait_log("fault.injected")
        two.wait_log("webhook.leading")
        wait_until("both calls", lambda: [call.to for call in receiver.of(job)]
                   == ["PENDING", "FINISHED"], 20)
        assert one.wait() == 75
        assert [call.to for call in receiver.of(job)] == ["PENDING", "FINISHED"]
        assert states_of(ann, job) == ["delivered", "delivered"]


def test_silent_receivers_of_one_tenant_hold_up_no_other(fresh):
    web = fresh.web(**HERE)
    fresh.reader("webhook", **QUICK, **HERE, webhook_threads=4, webhook_timeout_ms=1000)
    ann, eve = fresh.client(web), fresh.stranger(web)
    with Receiver() as receiver, socket.create_server(("0.0.0.0", 0), backlog=500) as silent:
        port, at_once = silent.getsockname()[1], {"states": ["PENDING"]}
        for row in range(25):  # each host is a receiver of its own
            run(eve, subscriptions=[{"url": f"http://127.0.{row}.{1 + n}:{port}/"} | at_once
                                    for n in range(8)])
        wait_until("eve's calls", lambda: fresh.count("webhook_attempts") > 0)
        hosts = ("localhost", "127.0.0.1", "127.1")
        job = run(ann, subscriptions=[{"url": f"http://{host}:{receiver.port}/"} | at_once
                                      for host in hosts])
        wait_until("ann's calls", lambda: len(receiver.of(job)) == len(hosts), 20)
        assert fresh.count("webhook_deliveries", "state = 'due' AND attempts = 0") > 50
