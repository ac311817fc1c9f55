# SPDX-License-Identifier: MIT
"""Every route of the contract, asked well and asked badly: what comes back is what the contract
says. The comparison itself happens at every call (tests/support/witness.py)."""

import concurrent.futures
import http.client
import json
import re
import subprocess
import urllib.parse

import pytest

from rest import Answer
from servers import free_port
from sluice import TENANT, BIN
from waiting import wait_until
from witness import WITNESS, Exchange

REPLIES = 300
NOBODY = "01890000-0000-7000-8000-000000000000"
NAMES = {"id": NOBODY, "name": "q.none", "version": "1", "owner": "nobody", "stream": "stdout",
         "path": "a/b", "file": "none.js", "code": "SLUICE-9999"}


@pytest.fixture(scope="module")
def document():
    said = subprocess.run([f"{BIN}/sluice-web", "--contract"], stdout=subprocess.PIPE, check=True)
    return json.loads(said.stdout)


@pytest.fixture(scope="module")
def web(site):
    site.worker()
    return site.web()


@pytest.fixture(scope="module")
def admin(site, web):
    return site.client(web, user="root", role="admin")


def operations(document):
    """(method, path with names of nothing, operation) of each."""
    for path, item in document["paths"].items():
        for method, operation in item.items():
            if method != "parameters":
                yield method.upper(), re.sub(r"\{(\w+)\}", lambda m: NAMES[m[1]], path), operation


def has_body(operation):
    return "requestBody" in operation


def ask(client, method, path, operation, **more):
    """As a good client would, were there something of this name."""
    return client.call(method, path, {} if has_body(operation) else None, **more)


def replies():
    return sum(WITNESS.replies.values())


# ---- badly


def test_without_a_token_and_with_a_bad_one(document, site, web):
    for token in (None, "not.a.token"):
        client = site.client(web)
        client.token = token
        for method, path, operation in operations(document):
            status = ask(client, method, path, operation).status
            if operation.get("security") != []:
                assert status == 401, (operation["operationId"], status)


def test_with_too_weak_a_role(document, site, web):
    viewer = site.client(web, user="vic", role="viewer")
    for method, path, operation in operations(document):
        status = ask(viewer, method, path, operation).status
        if operation.get("x-role", "viewer") != "viewer":
            assert status == 403, (operation["operationId"], status)


def test_of_what_is_not_there(document, admin):
    for method, path, operation in operations(document):
        ask(admin, method, path, operation)


def test_with_a_parameter_that_nobody_knows(document, admin):
    for method, path, operation in operations(document):
        answer = ask(admin, method, f"{path}?colour=red", operation)
        assert answer.status == 400, (operation["operationId"], answer)


def test_with_bodies_that_are_none(document, admin):
    bad = [b"{", b"[]", b'{"colour": 1}', b"\xff", b'{"a":1,"a":2}']
    for method, path, operation in operations(document):
        if not has_body(operation):
            continue
        for body in bad:
            headers = {"Content-Type": "application/json"}
            assert admin.call(method, path, body, headers).status in (400, 404)
        assert admin.call(method, path, b"a=1", {"Content-Type": "text/plain"}).status == 415


def test_with_a_wrong_method_and_a_wrong_path(document, admin):
    for path in document["paths"]:
        path = re.sub(r"\{(\w+)\}", lambda m: NAMES[m[1]], path)
        admin.call("PATCH", path)
        assert admin.call("OPTIONS", path).status == 204
        assert admin.call("HEAD", path).status in (200, 304, 400, 404, 405)
    for path in ("/v1", "/v2/jobs", "/v1/jobs/", "/v1/colours", "/errors/none"):
        assert admin.get(path).status == 404


def test_with_parameters_of_wrong_values(document, admin):
    for method, path, operation in operations(document):
        for parameter in operation["parameters"]:
            name = parameter["$ref"].split("/")[-1]
            about = document["components"]["parameters"][name]
            if about["in"] == "query" and about["schema"]["type"] != "string":
                admin.call(method, f"{path}?{name}=colour", {} if has_body(operation) else None)


def test_with_conditions_that_do_not_hold(admin):
    for path, body in (("queues/q.if", {"priority": 77}), ("apps/if/1", {"command": ["true"]}),
                       ("systems/if", {}), ("quotas/if", {"maxActive": 3})):
        path = f"/v1/{path}"
        assert admin.put(path, body, {"If-Match": '"7"'}).status == 412
        assert admin.put(path, body, {"If-None-Match": "*"}).status == 201
        assert admin.put(path, body, {"If-None-Match": "*"}).status == 412
        tag = admin.get(path).expect(200).headers["ETag"]
        assert admin.put(path, body, {"If-Match": tag}).status == 200
        assert admin.put(path, body, {"If-Match": tag, "If-None-Match": "*"}).status == 400
        assert admin.delete(path, {"If-Match": '"99"'}).status == 412
        assert admin.delete(path).status == 204
        assert admin.delete(path).status == 404


def test_of_a_service_without_its_database(document, site):
    """Each question waits for the database as long as it may, so they are asked side by side."""
    web = site.web("blind", wait=False, db_host="127.0.0.1", db_port=free_port())
    wait_until("it to listen", lambda: web.ready() == 503)

    def status_of(asked):
        method, path, operation = asked
        return ask(site.client(web, user="root", role="admin"), method, path, operation).status

    asked = [each for each in operations(document)
             if each[2]["operationId"] not in ("job_file", "job_output")]
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        seen = set(pool.map(status_of, asked))
    assert 503 in seen, seen
    web.stop()


def test_of_a_service_with_small_limits(document, site):
    web = site.web("small", web_body_max_bytes=20000, web_requests_per_s_per_user=5,
                   web_header_max_bytes=4096)
    ann = site.client(web)
    large = {"name": "large", "command": ["true"], "notes": "x" * 30000}
    assert ann.post("/v1/jobs", large).status == 413
    assert ann.get("/livez", **{"X-Long": "x" * 5000}).status == 431
    wait_until("too many", lambda: ann.get("/v1/whoami").status == 429, pause_s=0)
    for method, path, operation in operations(document):
        ask(ann, method, path, operation)
    web.stop()


# ---- well


def test_of_all_that_is_there(site, web, admin):
    ann = site.client(web)
    job = ann.submit("sh", "-c", "echo out; echo err >&2; echo kept >kept",
                     archive={"includes": ["*"]}, env={"A": "b"}, tags=["one"], notes="a note")
    ann.wait_end(job)
    for path in ("", "/events", "/events?limit=2", "/why", "/files", "/files/kept"):
        ann.get(f"/v1/jobs/{job}{path}").expect(200)
    for stream in ("stdout", "stderr"):
        ann.get(f"/v1/jobs/{job}/output/{stream}").expect(200)
        ann.get(f"/v1/jobs/{job}/output/{stream}", Range="bytes=0-1").expect(206)
        ann.get(f"/v1/jobs/{job}/output/{stream}", Range="bytes=99-").expect(416)
        ann.get(f"/v1/jobs/{job}/output/{stream}?follow").expect(200)
    ann.get("/v1/events").expect(200)
    for path in ("/v1/jobs", "/v1/jobs?limit=1", "/v1/jobs?status=FINISHED,FAILED&orderBy=created:asc",
                 "/v1/jobs?filter=" + urllib.parse.quote("owner = 'ann'"), "/v1/queues", "/v1/apps",
                 "/v1/systems", "/v1/quotas", "/v1/workers", "/v1/recovery", "/v1/dead-messages",
                 "/v1/overview?minutes=3", "/v1/audit?limit=5", "/v1/whoami", "/v1/openapi.json",
                 "/livez", "/readyz", "/metrics"):
        admin.get(path).expect(200)
    admin.get("/").expect(200, 404)  # the page may not be built
    worker = admin.get("/v1/workers").json["workers"][0]["id"]
    admin.get(f"/v1/workers/{worker}").expect(200)
    for act in ("drain", "undrain"):
        admin.post(f"/v1/workers/{worker}/{act}").expect(200)
    for act in ("hide", "unhide"):
        ann.post(f"/v1/jobs/{job}/{act}").expect(200)
    again = ann.post(f"/v1/jobs/{job}/resubmit").expect(201).json["id"]
    ann.wait_end(again)
    key = {"Idempotency-Key": "contract-again"}
    ann.post(f"/v1/jobs/{job}/resubmit", headers=key).expect(201)
    ann.post(f"/v1/jobs/{job}/resubmit", headers=key).expect(200)
    ann.get(f"/v1/jobs/{job}/files/kept", Range="bytes=1-2").expect(206)
    ann.post(f"/v1/jobs/{job}/cancel").expect(409)
    ann.get("/v1/jobs?filter=" + urllib.parse.quote("owner = ")).expect(400)


def test_of_submissions(site, web, admin):
    ann = site.client(web)
    request = {"name": "key", "command": ["true"]}
    key = {"Idempotency-Key": "contract-1"}
    ann.post("/v1/jobs", request, key).expect(201)
    ann.post("/v1/jobs", request, key).expect(200)
    ann.post("/v1/jobs", request | {"name": "other"}, key).expect(422)
    ann.post("/v1/jobs?wait=50", request).expect(200)
    long = ann.post("/v1/jobs?wait=1", {"name": "long", "command": ["sleep", "60"]}).expect(202)
    ann.get(f"/v1/jobs/{long.json['id']}?wait=1").expect(202)
    ann.post(f"/v1/jobs/{long.json['id']}/cancel").expect(200, 202)
    ann.post("/v1/jobs", {"name": "app", "appId": "none", "appVersion": "1"}).expect(404)
    ann.post("/v1/jobs:batch", {"jobs": [request, {"name": ""}, {"colour": 1}]}).expect(200)
    ann.post("/v1/jobs:cancel", {"ids": [NOBODY, long.json["id"]]}).expect(200)
    ann.post("/v1/jobs:cancel?name=none", {"dryRun": True}).expect(200)
    ann.post("/v1/jobs:cancel", {}).expect(400)
    ann.post("/v1/queues:explain", request).expect(200)
    admin.post("/v1/queues:explain?owner=bob&all", request).expect(200)
    admin.post("/v1/queues/q.new/check", {"priority": 4, "filter": "1 = 1"}).expect(200)
    admin.post("/v1/queues/q.new/check", {"priority": 4, "filter": "1 ="}).expect(400)


def test_of_what_is_blocked(site, web, admin):
    admin.put("/v1/systems/away", {"description": "is away"}).expect(201)
    admin.post("/v1/systems/away/disable").expect(200)
    ann = site.client(web)
    job = ann.submit("true", systemId="away")
    assert ann.wait_status(job, "BLOCKED")["condition"] == "SYSTEM_UNAVAILABLE"
    ann.get(f"/v1/jobs/{job}/why").expect(200)
    group = admin.get("/v1/recovery").expect(200).json["recovery"][0]["id"]
    admin.get(f"/v1/recovery/{group}").expect(200)
    admin.get("/v1/overview").expect(200)
    for act in ("check", "release", "fail"):
        admin.post(f"/v1/recovery/{group}/{act}").expect(202)
    admin.put("/v1/apps/gone/1", {"command": ["true"]}).expect(201)
    admin.post("/v1/apps/gone/1/disable").expect(200)
    admin.post("/v1/apps/gone/1/enable").expect(200)
    admin.post("/v1/systems/away/enable").expect(200)


# ---- the checker itself


def test_the_checker_sees_what_differs(web, admin):
    """Of each kind one, so that silence means something."""
    port = admin.port
    contract = WITNESS.ports[port]
    good = admin.get("/v1/whoami").expect(200)

    def told(status=200, body=None, path="/v1/whoami", **headers):
        link = http.client.HTTPMessage()
        for name, value in (dict(good.headers) | headers).items():
            if value is not None:
                link[name] = value
        bytes_ = good.body if body is None else json.dumps(body).encode()
        return contract.compare(Exchange("GET", path, None, Answer(status, link, bytes_)))[1]
    assert not told()
    identity = good.json
    assert "not a status" in told(status=418)[0]
    assert "unexpected" in told(body=identity | {"colour": "red"})[0]
    assert "required" in told(body={name: identity[name] for name in ("user", "tenant")})[0]
    assert "not of type" in told(body=identity | {"user": 7})[0]
    assert "not a 'date-time'" in told(body=identity | {"expires": "soon"})[0]
    assert "not one of its types" in told(**{"Content-Type": "text/html"})[0]
    assert "no header" in told(**{"X-Request-Id": None})[0]
    assert "is not told" in told(**{"X-Colour": "red"})[0]
    assert "taken and is not told" in told(path="/v1/whoami?colour=red")[0]
    assert "is not a refusal" in told(path="/v1/none/none")[0]


def test_there_were_enough(capsys):
    """The last: it tells what came of all."""
    by_status = {}
    for (_, status), count in WITNESS.replies.items():
        by_status[status] = by_status.get(status, 0) + count
    with capsys.disabled():
        print(f"\n{replies()} replies compared, {len(WITNESS.all)} differences")
        print(", ".join(f"{status}: {count}" for status, count in sorted(by_status.items())))
    assert replies() >= REPLIES and not WITNESS.all, WITNESS.all
    assert {200, 201, 202, 204, 206, 400, 401, 403, 404, 405, 409, 412, 413, 415, 416, 422, 429,
            431, 503} <= set(by_status), by_status
