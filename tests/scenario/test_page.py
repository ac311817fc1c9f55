# SPDX-License-Identifier: MIT
"""The files of the administrators' page, as the service hands them out."""

import gzip
import os

import pytest

PLAIN = b"<!doctype html><title>page</title>"
SCRIPT = b"console.log('page')"


@pytest.fixture(scope="module", name="web")
def fixture_web(site):
    folder = site.path("ui")
    os.mkdir(folder)
    for name, text in (("index.html", PLAIN), ("app.js", SCRIPT)):
        for ending, data in (("", text), (".gz", gzip.compress(text))):
            with open(os.path.join(folder, name + ending), "wb") as out:
                out.write(data)
    return site.web(web_ui_dir=folder)


@pytest.fixture(name="client")
def fixture_client(site, web):
    client = site.client(web)
    client.token = None
    return client


def test_the_page_needs_no_token_and_may_load_nothing_from_elsewhere(client):
    answer = client.get("/").expect(200)
    assert answer.body == PLAIN
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    policy = answer.headers["Content-Security-Policy"]
    for rule in ("default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'",
                 "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"):
        assert rule in policy
    assert "unsafe" not in policy
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Referrer-Policy"] == "no-referrer"


def test_it_is_packed_for_those_who_take_it_so(client):
    packed = client.call("GET", "/ui/app.js", headers={"Accept-Encoding": "br, gzip"}).expect(200)
    assert packed.headers["Content-Encoding"] == "gzip"
    assert packed.headers["Content-Type"] == "text/javascript; charset=utf-8"
    assert packed.headers["Vary"] == "Accept-Encoding"
    assert gzip.decompress(packed.body) == SCRIPT
    for accepted in ("identity", "br", "gzip;q=0"):
        plain = client.call("GET", "/ui/app.js", headers={"Accept-Encoding": accepted}).expect(200)
        assert plain.body == SCRIPT and plain.headers["Content-Encoding"] is None
        assert plain.headers["ETag"] != packed.headers["ETag"]


def test_what_is_known_is_not_sent_again(client):
    first = client.get("/ui/app.js").expect(200)
    assert first.headers["Cache-Control"] == "no-cache" and not first.headers["ETag"].startswith("W/")
    again = client.call("GET", "/ui/app.js", headers={"If-None-Match": first.headers["ETag"]})
    assert again.expect(304).body == b""
    client.call("GET", "/ui/app.js", headers={"If-None-Match": '"other"'}).expect(200)
    head = client.call("HEAD", "/ui/app.js").expect(200)
    assert head.headers["Content-Length"] == str(len(SCRIPT)) and head.body == b""


def test_nothing_else_is_handed_out(client):
    for path in ("/ui/none", "/ui/..%2fkeys", "/ui/%2e%2e", "/ui/" + "a" * 300, "/ui/", "/ui",
                 "/ui/a/b"):
        client.get(path).problem(404)
    client.post("/").problem(405)


def test_without_its_files_the_service_runs_and_says_so(site):
    web = site.web("bare", web_ui_dir=site.path("work"))
    assert "not installed" in site.client(web).get("/").problem(404)["detail"]


def test_a_filter_is_checked_and_nothing_is_stored(site, web):
    client = site.client(web, "rob", "viewer")
    body = {"priority": 5, "filter": "memoryMB > 10"}
    assert client.post("/v1/queues/big/check", body).expect(200).json == {"warnings": []}
    wrong = client.post("/v1/queues/big/check", {"priority": 5, "filter": "memoryMb > 10"})
    assert wrong.problem(400)["position"]["offset"] == 0
    assert "memoryMB" in wrong.json["detail"]
    client.get("/v1/queues/big").problem(404)


def test_each_filter_can_be_tried_also_behind_the_queue_chosen(site, web):
    admin = site.client(web, "eve", "admin")
    for name, priority in (("first", 20), ("second", 10)):
        admin.put_queue(name, priority, "memoryMB > 10").expect(201)
    request = {"name": "x", "command": ["true"], "memoryMB": 20}
    seen = admin.post("/v1/queues:explain?all", request).expect(200).json["filters"]
    assert [(one["queue"], one["verdict"], one["chosen"]) for one in seen[:2]] == [
        ("first", "TRUE", True), ("second", "TRUE", False)]
    assert seen[1]["values"] == {"memoryMB": 20}
    seen = admin.post("/v1/queues:explain", request).expect(200).json["filters"]
    assert seen[1]["verdict"] == "not tried"
