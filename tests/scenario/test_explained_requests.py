# SPDX-License-Identifier: MIT
"""What is said of requests that are refused, of faults of a site, and of servers that are away:
tests/support/explained_requests.py."""

import re
import time

import pytest

import tokens
from explained import explained
from servers import free_port

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
