# SPDX-License-Identifier: MIT
"""What is said of requests that are refused, of faults of a site, and of servers that are away:
tests/support/explained_requests.py."""

import json
import os
import re
import socket
import subprocess
import time

import pytest

import tokens
from clocks import Clock
from explained import explained
from receiver import Receiver
from servers import free_port
from sluice import BIN
from waiting import wait_until

NOBODY = "01a1fafc-42e7-7000-bf62-354ff0827052"


@pytest.fixture(name="web", scope="module")
def fixture_web(site):
    return site.web()


@pytest.fixture(name="root", scope="module")
def fixture_root(site, web):
    return site.client(web, "root", "admin")


@pytest.fixture(name="ann", scope="module")
def fixture_ann(site, web):
    return site.client(web)


def detail(answer, status):
    return answer.problem(status)["detail"]


def faults(document):
    """{pointer: reason}"""
    return {one["pointer"]: one["reason"] for one in document["errors"]}


def told(site, client, *args, status=1, **settings):
    """What the command says on stderr."""
    done = site.run(*args, client=client, **settings)
    assert done.returncode == status, done
    return done.stderr


# ---- who asks ------------------------------------------------------------------------------------

def asked(site, web, key=None, **claims):
    client = site.client(web)
    client.token = tokens.token(key or site.key, tokens.claims("ann", ["user"], "acme", **claims))
    return client


def test_a_token_that_is_good_but_for_its_time_is_told_so(site, web):
    now = int(time.time())
    with explained("expired token") as row:
        row.said(detail(asked(site, web, exp=now - 3600).get("/v1/whoami"), 401),
                 cause=["the token expired"], limit=["60 min ago"], step=["get a new one"])
    with explained("token of a fast clock") as row:
        for claim in ("nbf", "iat"):
            row.said(detail(asked(site, web, **{claim: now + 600}).get("/v1/whoami"), 401),
                     cause=["the token is valid from 20", f"({claim})"],
                     limit=[re.compile(r"in (9 min|10 min|[56]\d\d s)")], step=["compare the clocks"])


def test_other_tokens_are_not_told_what_is_wrong(site, web):
    now = int(time.time())
    strange = tokens.Key(site.path("private"), "strange")
    wrong_kid = tokens.Key.__new__(tokens.Key)
    wrong_kid.__dict__ = dict(strange.__dict__, kid=site.key.kid)
    good = tokens.token(site.key, tokens.claims("ann", ["user"], "acme", exp=now - 3600))
    cut = asked(site, web)
    cut.token = good[:-8]
    vague = "the token is not valid; the log of the service has the reason under this request's id"
    clients = {"another key": asked(site, web, wrong_kid, exp=now - 3600), "cut": cut,
               "another tenant": asked(site, web, tenant="nobody", exp=now - 3600),
               "no end": asked(site, web, exp=None), "no user": asked(site, web, sub=None, exp=now - 9999)}
    with explained("forged token") as row:
        for name, client in clients.items():
            said = client.get("/v1/whoami").problem(401)
            assert said["detail"] == vague, name
            row.said(said["detail"], cause=["the token is not valid"], step=["the log", "request's id"],
                     never=["expired", "signature", "key"])
            row.said(told(site, client, "whoami"),
                     step=[re.compile(r"\[SLUICE-1010, request [0-9a-f-]{36}\]")])
    ids = re.findall(r'"request":"([^"]+)".*claim sub is missing', web.log_text())
    assert ids, "the log has the reason"


def test_roles_are_told_in_words(site, web, root, ann):
    vic = site.client(web, "vic", "viewer")
    with explained("role too weak") as row:
        row.said(detail(vic.post("/v1/jobs", {"name": "n", "command": ["true"]}), 403),
                 cause=["to submit a job"], limit=["the role user", "has viewer"],
                 step=["ask your administrator"], never=["job_submit"])
        row.said(detail(ann.put_queue("mine", 7), 403), limit=["the role admin", "has user"],
                 cause=["to make or change a queue you need"])
        nobody = site.client(web, "nil", "nothing")
        row.said(detail(nobody.get("/v1/jobs"), 403), limit=["the role viewer", "has none"])
    job = ann.submit("true")
    bob = site.client(web, "bob")
    with explained("job of somebody else") as row:
        row.said(detail(bob.post(f"/v1/jobs/{job}/cancel"), 403), cause=["the jobs of ann"],
                 limit=["the role operator", "has user"], step=["ask your administrator"])
    root.post(f"/v1/jobs/{job}/cancel").expect(200)


def test_a_job_that_is_not_there(site, web, ann):
    job = ann.submit("true")
    eve = site.stranger(web)
    with explained("unknown job") as row:
        for path in ("", "/events", "/output/stdout", "/why"):
            theirs = detail(eve.get(f"/v1/jobs/{job}{path}"), 404)
            nobodys = detail(eve.get(f"/v1/jobs/{NOBODY}{path}"), 404)
            assert theirs.replace(job, NOBODY) == nobodys, "another tenant's job is as one that never was"
            row.said(theirs, cause=["there is no job"], limit=[job],
                     step=["removed after its time", "of another tenant"], never=["acme", "ann"])
    with explained("no id of a job") as row:
        row.said(detail(ann.get("/v1/jobs/1234"), 404), cause=["there is no job 1234"],
                 limit=["a UUID"], step=["sluice jobs"])
    ann.cancel(job).expect(200)


# ---- what is asked for ---------------------------------------------------------------------------

def test_all_faults_of_a_request_are_told_at_once(site, root, ann):
    with explained("unknown member") as row:
        said = ann.post("/v1/jobs", {"name": "n", "command": ["true"], "maxMinute": 5}).problem(400)
        row.said(said["detail"], cause=["'maxMinute' is not a member of a job request"],
                 step=["did you mean 'maxMinutes'?"])
        row.said(said["errors"][0]["pointer"], limit=["/maxMinute"])
        for path, body, meant in (
                ("queues/q", {"priority": 3, "filtr": "name = 'x'"}, "filter"),
                ("systems/s", {"max_active": 3}, "maxActive"),
                ("quotas/ann", {"maxactive": 3}, "maxActive"),
                ("subscriptions/s", {"URL": "https://example.org"}, "url"),
                ("apps/a/1", {"comand": ["true"]}, "command")):
            row.said(detail(root.put(f"/v1/{path}", body), 400), step=[f"did you mean '{meant}'?"])
        row.said(detail(root.post("/v1/jobs:cancel", {"expectedcount": 1}), 400),
                 step=["did you mean 'expectedCount'?"])
    body = {"comand": ["true"], "memoryMB": "4", "env": {"1X": "", "Y": 7}, "tags": ["", "good", 5],
            "fileInputs": [{"sourceUrl": "ftp://x"}, {"content": "x", "targetPath": "../x"}]}
    wanted = {"/comand": "did you mean 'command'?", "/memoryMB": "a whole number from 1",
              "/env/1X": "does not begin with a digit", "/env/Y": "a string is wanted",
              "/tags/0": "must not be empty", "/tags/2": "a string is wanted",
              "/fileInputs/0/sourceUrl": "http://, https:// or file:///",
              "/fileInputs/0": "targetPath is missing", "/fileInputs/1/targetPath": "a relative path",
              "/name": "name is missing", "/command": "command is missing"}
    with explained("many faults") as row:
        found = faults(ann.post("/v1/jobs", body).problem(400))
        assert set(found) == set(wanted), found
        for pointer, reason in wanted.items():
            row.said(found[pointer], step=[reason])
        queue = faults(root.put("/v1/queues/q", {
            "priority": "high", "filter": "nme = 'x'", "enabled": 1, "tpe": "quorum"}).problem(400))
        assert set(queue) == {"/priority", "/filter", "/enabled", "/tpe"}, queue
        row.said(queue["/filter"], step=["did you mean 'name'?"])
        system = faults(root.put("/v1/systems/s", {"maxActive": 0, "kind": "slurm", "x": 1}).problem(400))
        assert set(system) == {"/maxActive", "/kind", "/x"}, system
        app = faults(root.put("/v1/apps/a/1", {"name": "n", "maxMinutes": -1}).problem(400))
        assert set(app) == {"/name", "/maxMinutes", ""}, app
        # The command prints each of them.
        with open(site.path("private", "wrong.json"), "w", encoding="ascii") as out:
            out.write('{"comand": ["true"], "memoryMB": "4", "nme": "n"}')
        row.said(told(site, ann, "submit", "--file", site.path("private", "wrong.json")),
                 cause=["did you mean 'command'?", "also: a whole number from 1 to",
                        "did you mean 'name'?"],
                 limit=["(at /comand)", "(at /memoryMB)", "(at /nme)", re.compile(r"\[SLUICE-100., request ")])


def test_the_number_of_faults_is_bounded(ann, root):
    body = {"name": "n", "command": ["true"]} | {f"wrong{i}": i for i in range(5000)}
    assert len(ann.post("/v1/jobs", body).problem(400)["errors"]) == 20
    most = root.post("/v1/jobs:batch", {"jobs": [{f"wrong{i}": i for i in range(100)}] * 100}).expect(200)
    counts = [len(item["problem"]["errors"]) for item in most.json["items"]]
    assert counts[0] == 20 and counts[-1] == 1 and sum(counts) < 400, counts


def test_the_faults_of_a_batch(ann):
    answer = ann.post("/v1/jobs:batch", {"jobs": [
        {"name": "n", "command": ["true"]}, {"comand": ["true"], "tgs": [], "coresPerNode": 0}]}).expect(200)
    good, bad = answer.json["items"]
    assert good["status"] == 201 and bad["status"] == 400
    found = faults(bad["problem"])
    with explained("faults of a batch") as row:
        row.said(found, cause=["'comand' is not", "'tgs' is not", "a whole number from 1", "name is missing"],
                 limit=["/jobs/1/comand", "/jobs/1/tgs", "/jobs/1/coresPerNode", "/jobs/1/name"],
                 step=["did you mean 'command'?", "did you mean 'tags'?"])
    ann.cancel(good["job"]["id"]).expect(200)


def test_text_of_strangers_is_cut(ann):
    long = "x" * 60000 + "\u202e\u0000"[:1]
    said = ann.post("/v1/jobs", {"name": "n", "command": ["true"], long: 1}).problem(400)
    assert len(str(said)) < 4000, said


def test_limits_are_told_in_the_units_of_the_request(root, ann):
    job = {"name": "n", "command": ["true"]}
    with explained("past the site's limit") as row:
        row.said(detail(ann.post("/v1/jobs", job | {"maxMinutes": 99999}), 400), cause=["too long"],
                 limit=["99999 minutes", "at most 10080"], step=["limits.max_minutes"],
                 never=["seconds"])
        row.said(detail(ann.post("/v1/jobs", job | {"maxSeconds": 99999999 // 4}), 400),
                 limit=["24999999 seconds", "at most 604800"])
    root.put("/v1/queues/short", {"priority": 50, "maxMinutes": 5, "filter": "'short' IN tags"}).expect(201)
    with explained("past the queue's limit") as row:
        said = ann.post("/v1/jobs", job | {"tags": ["short"], "maxMinutes": 30}).problem(400)
        row.said(said["detail"], cause=["too long for queue short"], limit=["30 minutes", "at most 5"],
                 step=["ask for less", "sluice explain"])
        assert set(faults(said)) == {"/maxMinutes"}
        said = ann.post("/v1/jobs", job | {"tags": ["short"], "maxSeconds": 301}).problem(400)
        row.said(said["detail"], limit=["301 seconds", "at most 300"])
        assert set(faults(said)) == {"/maxSeconds"}


def test_too_many_requests(site):
    web = site.web("narrow", web_requests_per_s_per_user=1)
    client = site.client(web)
    with explained("too many requests") as row:
        for _ in range(100):
            answer = client.get("/v1/whoami")
            if answer.status == 429:
                break
        row.said(detail(answer, 429), cause=["more than 1 requests in a second"],
                 limit=["web.requests_per_s_per_user"])
        for _ in range(100):
            done = site.run("whoami", client=client)
            if done.returncode != 0:
                break
        row.said(done.stderr, step=["; try again in 2 s"])
    web.stop()


def test_what_is_named_and_not_there(ann):
    job = {"name": "n", "command": ["true"]}
    with explained("key used again") as row:
        first = ann.post("/v1/jobs", job | {"idempotencyKey": "mine"}).expect(201).json["id"]
        row.said(detail(ann.post("/v1/jobs", job | {"idempotencyKey": "mine", "tags": ["x"]}), 422),
                 cause=["was used"], limit=["'mine'", first], step=["take a new key"])
        ann.cancel(first).expect(200)
    with explained("unknown application") as row:
        row.said(detail(ann.post("/v1/jobs", {"name": "n", "appId": "nosuch", "appVersion": "1"}), 404),
                 cause=["there is no application"], limit=["nosuch version 1"], step=["'sluice apps'"])
    with explained("unknown system") as row:
        row.said(detail(ann.post("/v1/jobs", job | {"systemId": "nosuch"}), 404),
                 cause=["there is no system"], limit=["nosuch"], step=["'sluice systems'"])
    with explained("wrong state of a webhook") as row:
        hook = {"url": "https://example.org/", "states": ["FINISH"]}
        row.said(detail(ann.post("/v1/jobs", job | {"subscriptions": [hook]}), 400),
                 cause=["not a state of a job"], limit=["'FINISH'"], step=["did you mean 'FINISHED'?"])


def test_queues_that_are_in_the_way(root, ann):
    root.put_queue("busy", 40, "'busy' IN tags").expect(201)
    job = ann.submit("true", tags=["busy"])
    with explained("queue in use") as row:
        row.said(detail(root.delete("/v1/queues/busy"), 409), cause=["is on queue busy"],
                 limit=["1 job that has not ended"], step=["disable it"])
    with explained("priority taken") as row:
        root.put_queue("above", 41, "'above' IN tags").expect(201)
        said = root.put_queue("twice", 40, "'twice' IN tags").problem(409)
        row.said(said["detail"], cause=["queue busy has"], limit=["priority 40"], step=["39 is free"])
        assert said["title"] == "It is not as the request expects"
        root.put_queue("twice", 39, "'twice' IN tags").expect(201)
    with explained("not the number expected") as row:
        said = root.post("/v1/jobs:cancel?queue=busy", {"expectedCount": 0}).problem(409)
        row.said(said["title"] + ": " + said["detail"], cause=["the search finds"],
                 limit=["finds 1,", "expected 0"], step=["look at the search again"],
                 never=["Somebody else was first"])
    ann.cancel(job).expect(200)


# ---- the command line ----------------------------------------------------------------------------

def test_the_command_says_what_it_cannot_do(site, ann):
    path = site.path("private", "big.txt")
    with open(path, "wb") as out:
        out.write(b"x" * 3000000)
    with explained("local input too large") as row:
        row.said(told(site, ann, "submit", "--input", path, "--", "true", status=2),
                 cause=[f"--input {path} has"], limit=["3000000 bytes", "1048576"], step=["address"])
    away = site.client(site.processes[0])
    away.url = f"http://127.0.0.1:{free_port()}"
    with explained("service away") as row:
        row.said(told(site, away, "whoami", status=3), cause=["connect"], limit=[away.url],
                 step=["is sluice-web running there?", "SLUICE_URL"])


# ---- filters -------------------------------------------------------------------------------------

def test_which_part_of_a_filter_is_not_true(site, root, ann):
    root.put_queue("wide", 990, "'wide' IN tags").expect(201)
    root.put_queue("big", 980, "memoryMB > 16000 AND ('big' IN tags OR name LIKE 'x%')").expect(201)
    root.put_queue("project", 970, "'big' IN tags and env.PROJECT <> 'test'").expect(201)
    root.put_queue("off", 960, "'big' IN tags", enabled=False).expect(201)

    def seen(**request):
        answer = ann.post("/v1/queues:explain", {"name": "n", "command": ["true"]} | request)
        return {one["queue"]: one for one in answer.expect(200).json["filters"]}
    found = seen(memoryMB=16000, tags=["big"])
    with explained("filter that is false") as row:
        row.said(found["big"]["explanation"], cause=["memoryMB > 16000 is false"],
                 limit=["(memoryMB is 16000)"], step=["the rest is true"], never=["LIKE", "unknown"])
        both = seen(memoryMB=5, tags=["no"])["big"]["explanation"]
        row.said(both, cause=["memoryMB > 16000 is false (memoryMB is 5)",
                              "'big' IN tags OR name LIKE 'x%' is false (tags has 1 value, name is 'n')"],
                 never=["the rest"])
    with explained("filter that is unknown") as row:
        row.said(found["project"]["explanation"], cause=["env.PROJECT <> 'test' is unknown"],
                 limit=["(env.PROJECT is not set)"], step=["what is unknown is no match"])
    with explained("queue that is disabled") as row:
        row.said(found["off"]["explanation"], cause=["the queue is disabled"],
                 limit=["its filter would be true"], step=["sluice queue put NAME --enabled true"])
    with explained("queue that is tried later") as row:
        row.said(seen(tags=["wide", "big"], memoryMB=16001)["big"]["explanation"],
                 cause=["queue wide"], limit=["priority 990"], step=["its filter would be true"])
    table = site.run("explain", "--tag", "big", "--memory-mb", "16000", "--", "true", client=ann)
    assert table.returncode == 0 and "memoryMB > 16000 is false (memoryMB is 16000)" in table.stdout, table


# ---- programs that do not start ------------------------------------------------------------------

def refused_start(site, program, **settings):
    done = subprocess.run([os.path.join(BIN, program)], env=site.environment(program=program, **settings),
                          capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode != 0, done
    return done.stderr + done.stdout


def test_programs_say_why_they_do_not_start(site):
    work = {"worker_work_root": site.path("work"), "worker_queue": "default"}
    with explained("worker without a tenant") as row:
        row.said(refused_start(site, "sluice-worker", **work), cause=["worker.tenant is not set"],
                 step=["--tenant", "SLUICE_WORKER_TENANT"])
    with socket.create_server(("127.0.0.1", 0)) as taken, explained("port that is taken") as row:
        port = taken.getsockname()[1]
        row.said(refused_start(site, "sluice-web", web_port=port), cause=["Address already in use"],
                 limit=[f"127.0.0.1 port {port}"], step=["web.listen, web.port", "ss -ltnp"])
        row.said(refused_start(site, "sluice-worker", worker_tenant="acme", worker_name="portless",
                               worker_monitor_port=port, **site.reach(), **work),
                 limit=[f"port {port}"], step=["worker.monitor_port"])
        row.said(refused_start(site, "sluice-recovery", recovery_monitor_port=port),
                 step=["recovery.monitor_port"])


def doctor(site, check, **settings):
    """What it says of this check, a line for each finding."""
    done = site.run("doctor", "-o", "json", worker_work_root=site.path("work"), **settings)
    return "\n".join(f"{one['result']}: {one['finding']} | {one['cure']}" for one in json.loads(done.stdout)
                     if one["check"] == check)


def test_the_doctor_says_first_what_is_most_likely(site):
    with explained("wrong password of the database") as row:
        row.said(doctor(site, "database", db_password="wrong"), cause=["Access denied"],
                 step=["check db.user and db.password: the server runs"], never=["start the server"])
    with explained("wrong password of the broker") as row:
        row.said(doctor(site, "broker", amqp_password="wrong"), cause=["ACCESS_REFUSED"],
                 step=["check amqp.user and amqp.password: the broker runs"], never=["start the broker"])
    port = free_port()
    with explained("broker away") as row:
        row.said(doctor(site, "broker", amqp_port=port), cause=["Connection refused"],
                 limit=[f"127.0.0.1 port {port}"], step=["start the broker"], never=["password"])
    with explained("database away") as row:
        row.said(doctor(site, "database", db_port=port), cause=["onnect"], limit=["127.0.0.1"],
                 step=["start the server", "db.port"], never=["password"])


def test_a_schema_of_the_future_is_left_alone(fresh):
    newest = int(fresh.sql("SELECT MAX(number) FROM schema_version")[0][0])
    fresh.sql("INSERT INTO schema_version (number, name, sha256, statements, applied_at) VALUES "
              f"({newest + 1}, 'future', REPEAT('0', 64), 1, UTC_TIMESTAMP(6))")
    done = fresh.run("migrate")
    assert done.returncode == 0, done
    with explained("schema that is newer") as row:
        row.said(done.stdout, cause=["newer than this program"],
                 limit=[f"{newest + 1:03}", f"{newest:03}"], step=["install the programs"],
                 never=["already"])


def test_a_database_that_is_away_is_told_without_names(site):
    web = site.web("cut", db_port=free_port(), wait=False)
    wait_until("it to listen", lambda: web.alive() and answers(web))
    with explained("database that refuses") as row:
        answer = wait_until("a refusal", lambda: refused(site.client(web)))
        row.said(answer, cause=["the database cannot be reached"], limit=["are safe"],
                 step=["Try again", "sluice doctor"],
                 never=[site.account(""), site.schema, "127.0.0.1", "root"])
    said = site.client(web).get("/readyz").body.decode()
    assert site.account("") not in said and site.schema not in said, said
    web.kill9()


def answers(web):
    try:
        return web and socket.create_connection(("127.0.0.1", int(web.url.rsplit(":", 1)[1])), 1)
    except OSError:
        return None


def refused(client):
    answer = client.get("/v1/jobs")
    return answer.problem(503)["detail"] if answer.status == 503 else None


# ---- folders and receivers -----------------------------------------------------------------------

def test_output_that_this_service_does_not_see(site, web, ann):
    site.worker()
    job = ann.submit("echo", "abc")
    ann.wait_status(job, "FINISHED")
    assert ann.get(f"/v1/jobs/{job}/output/stdout").expect(200).body == b"abc\n"
    elsewhere = site.path("elsewhere")
    os.makedirs(elsewhere, exist_ok=True)
    other = site.web("elsewhere", archive_root=elsewhere)
    with explained("output of another archive") as row:
        row.said(detail(site.client(other).get(f"/v1/jobs/{job}/output/stdout"), 410),
                 cause=["is not in the archive"], limit=["4 bytes"],
                 step=["archive.root", "is not mounted here", "sluice doctor"], never=[elsewhere])
    other.stop()
    assert web.alive()


def test_the_doctor_names_a_webhook_that_fails(fresh):
    quick = {"webhook_retry_first_ms": 20, "webhook_retry_most_ms": 50, "webhook_poll_ms": 20,
             "webhook_allow_networks": "127.0.0.0/8"}
    web = fresh.web(webhook_allow_networks="127.0.0.0/8")
    root, ann = fresh.client(web, "root", "admin"), fresh.client(web)
    fresh.reader("webhook", **quick)
    wait_until("somebody to send", lambda: fresh.count("webhook_sender", "holder IS NOT NULL"))
    with Receiver(lambda call: 500) as receiver, explained("webhook that fails") as row:
        root.put("/v1/subscriptions/portal", {"url": receiver.url, "states": ["CANCELLED"]}).expect(201)
        ann.cancel(ann.submit("true")).expect(200)
        wait_until("three tries", lambda: fresh.count("webhook_deliveries", "state = 'due' AND attempts >= 3"))
        row.said(doctor(fresh, "webhooks"), cause=["a webhook named portal of tenant acme fails", "500"],
                 limit=[re.compile(r"failed \d+ times"), re.compile(r"given up after \d+ s")],
                 step=["sluice deliveries --state due", "the receiver"])


def test_the_doctor_names_clocks_and_archives_that_differ(fresh):
    clock = Clock(fresh.path("clock"))
    clock.step(-90)
    environment = fresh.environment
    fresh.environment = lambda **more: environment(**more) | clock.environment
    fresh.web("slow")
    fresh.worker(name="slow")
    fresh.environment = environment
    web = fresh.web()
    ann = fresh.client(web)
    job = ann.submit("echo", "abc")
    ann.wait_status(job, "FINISHED")
    fresh.wait_beats()
    wait_until("both processes to be written", lambda: fresh.count("processes", "service = 'sluice-web'") == 2)
    said = doctor(fresh, "clocks")
    with explained("clock of a worker") as row:
        row.said(said, cause=["worker 'slow'", "behind the database's"],
                 limit=[re.compile(r"its clock is (89|90|91) s behind")], step=["NTP"])
    with explained("clock of a service") as row:
        row.said(said, cause=["fault: sluice-web of host", "it refuses good tokens"],
                 limit=[re.compile(r"its clock is (89|90|91) s behind"), "auth.leeway_s (30 s)"], step=["NTP"])
    assert said.count("sluice-web of host") == 1, said
    assert doctor(fresh, "archive").startswith("ok: 1 of the 1"), doctor(fresh, "archive")
    elsewhere = fresh.path("elsewhere")
    os.makedirs(elsewhere)
    with explained("two archives") as row:
        row.said(doctor(fresh, "archive", archive_root=elsewhere), cause=["has none of the", "that workers kept last"],
                 limit=["1 outputs", elsewhere], step=["mount the folder", "same archive.root"])
