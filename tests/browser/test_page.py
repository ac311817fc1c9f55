# SPDX-License-Identifier: MIT
"""The administrators' page in a browser, with real jobs, blocked jobs and dead messages."""

import json

import pytest

import browser
from receiver import Receiver
from servers import free_port
from waiting import wait_until

BLOCKED = 500
FAST = {"recovery_tick_ms": 200, "recovery_ramp_pause_ms": 50, "recovery_first_test_ms": 100,
        "recovery_connection_failed": "constant every=1h",
        "recovery_application_unavailable": "constant every=1h", "webhook_allow_networks": "127.0.0.0/8"}
TICKS = "i=0; while :; do i=$((i + 1)); echo tick $i; sleep 0.2; done"
GONE = "sluice.acme.submit.gone"
UNROUTABLE = "sluice.acme.submit.nowhere"
HELLOS = ("hello-0", "hello-1")


@pytest.fixture(scope="module", name="web")
def fixture_web(site):
    return site.web(**FAST)


@pytest.fixture(scope="module", name="admin")
def fixture_admin(site, web):
    return site.client(web, "admin", "admin")


@pytest.fixture(scope="module", name="receiver")
def fixture_receiver():
    with Receiver() as receiver:
        yield receiver


@pytest.fixture(scope="module", name="ids")
def fixture_ids(site, web, admin, receiver):
    """A site with something on every screen; the ids of what the tests look at."""
    for kind in ("alternate", "deadletter"):
        site.reader(kind)
    site.reader("recovery", **FAST)
    site.reader("webhook", **FAST)
    admin.put("/v1/subscriptions/portal", {"url": receiver.url, "description": "the portal"}).expect(201)
    admin.put_queue("quick", 20, "maxMinutes <= 5 AND NOT 'slow' IN tags").expect(201)
    admin.put_queue("slow", 10, "'slow' IN tags").expect(201)
    site.worker(slots=8, name="worker-one", **FAST)
    site.worker("quick", slots=2, name="worker-two", **FAST)
    port = free_port()
    ids = {"port": port, "blocked": BLOCKED, "unroutable": UNROUTABLE, "gone": GONE}
    source = {"sourceUrl": f"http://127.0.0.1:{port}/input", "targetPath": "input"}
    admin.post("/v1/jobs:batch", {"jobs": [
        {"name": f"align-{n}", "command": ["true"], "fileInputs": [source], "tags": ["genome"]}
        for n in range(BLOCKED)]}).expect(200)
    admin.put("/v1/apps/blast/2", {"command": ["true"]}).expect(201)
    admin.post("/v1/apps/blast/2/disable").expect(200)
    for n in range(3):
        admin.submit(name=f"search-{n}", appId="blast", appVersion="2")
    admin.put("/v1/systems/west", {"maxActive": 100, "description": "the cluster"}).expect(201)
    admin.post("/v1/systems/west/disable").expect(200)
    for owner, most in (("ann", 20), ("*", 500)):
        admin.put(f"/v1/quotas/{owner}", {"maxActive": most}).expect(201)
    ids["held"] = admin.submit("true", name="held", systemId="west")
    ids["waiting"] = admin.submit("true", name="patient", tags=["slow"])
    ids["failed"] = admin.submit("sh", "-c", "echo it broke >&2; exit 3", name="broken")
    ids["done"] = admin.submit("sh", "-c", "echo all good", name="good")
    ids["running"] = admin.submit("sh", "-c", TICKS, name="ticker")
    with site.amqp() as link:
        for name in HELLOS:
            link.publish("sluice.submit", "sluice.acme.submit.default", b'{"hi": "hello"}',
                         content_type="application/json", message_id=name)
        link.publish("sluice.submit", GONE, b"\xff\x00\x01", message_id="bytes")
    wait_until(lambda: f"the blocked jobs, {site.count('job_blocked')} are there",
               lambda: site.count("job_blocked") == BLOCKED + 4, 60, 0.3)
    wait_until("the dead messages", lambda: site.count("dead_messages", "outcome IS NOT NULL") == 3)
    admin.wait_status(ids["running"], "RUNNING")
    admin.wait_end(ids["failed"])
    admin.wait_end(ids["done"])
    add_messages_without_queue(site)
    admin.put_queue("nowhere", 5, "'nowhere' IN tags").expect(201)  # now they can be replayed
    causes = admin.get("/v1/recovery").expect(200).json["recovery"]
    ids["group"] = max(causes, key=lambda cause: cause["blocked"])["id"]
    ids["disabled"] = next(cause["id"] for cause in causes if cause["tester"] == "system_enabled")
    ids["delivery"] = wait_until("what the receiver was sent", lambda: delivered(admin, ids["failed"]))
    ids["message"] = dead_messages(admin)["hello-0"]["id"]
    return ids


def add_messages_without_queue(site):
    with site.amqp() as link:
        for n in range(4):
            link.publish("sluice.submit", UNROUTABLE, b'{"many": true}', content_type="application/json", message_id=f"many-{n}")
    wait_until("the messages without a queue",
               lambda: site.count("dead_messages", "message_id LIKE 'many-%' AND outcome IS NOT NULL") == 4)


def delivered(admin, job):
    """The delivery of the end of this job, once it was accepted."""
    path = f"/v1/deliveries?job={job}&state=delivered"
    return next((one["id"] for one in admin.get(path).expect(200).json["deliveries"]), None)


def dead_messages(admin):
    """By the ids that their senders gave them."""
    messages = admin.get("/v1/dead-messages").expect(200).json["deadMessages"]
    return {message["messageId"]: message for message in messages}


def test_every_screen_is_free_of_serious_faults_in_light_and_dark(site, web, ids):
    print(browser.run("screens.mjs", site, web, ids=ids))


def test_nobody_is_offered_what_would_be_refused(site, web, ids):
    print(browser.run("roles.mjs", site, web, ids=ids))


def test_the_keyboard_alone_is_enough(site, web, ids):
    print(browser.run("keyboard.mjs", site, web, ids=ids))


def test_on_a_phone_everything_can_be_reached(site, web, ids):
    print(browser.run("phone.mjs", site, web, ids=ids))


def test_the_chart_draws_failures_and_its_legend_counts_them(site, web, ids):
    print(browser.run("chart.mjs", site, web, ids=ids))


def test_many_dead_messages_are_replayed_and_discarded_at_once(site, web, admin, ids):
    print(browser.run("dead.mjs", site, web, ids=ids))
    messages = dead_messages(admin)
    many = [messages[f"many-{n}"] for n in range(4)]
    assert sorted((one["replays"], one["state"] == "discarded") for one in many) == [(0, True)] * 2 + [(1, False)] * 2, many


def test_resources_are_made_changed_switched_and_deleted(site, web, ids):
    print(browser.run("resources.mjs", site, web, ids=ids))


def test_the_walk_by_visible_text_alone(site, web, admin, ids):
    said = json.loads(browser.run("walk.mjs", site, web, ids=ids))
    assert site.count("jobs", "name LIKE 'align-%' AND status = 'FINISHED'") == BLOCKED
    messages = dead_messages(admin)
    assert {name for name in HELLOS if messages[name]["state"] == "replayed"} == {said["replayed"]}
    deeds = {"recovery_check", "recovery_release", "dead_replay", "queue_put", "job_cancel", "worker_drain"}
    rows = admin.get("/v1/audit?actor=admin&outcome=done&limit=200").expect(200).json["audit"]
    seen = {row["action"] for row in rows}
    assert deeds <= seen and not seen & {"queue_check", "queue_explain"}, seen
    site.audited = False  # the job whose message was replayed has two messages, and no worker


def test_empty_and_failing_screens_say_what_to_do(fresh):
    web = fresh.web()
    print(browser.run("empty.mjs", fresh, web))
