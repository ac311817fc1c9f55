# SPDX-License-Identifier: MIT
"""What one user holds of what all share: streams, waits, costly searches, answers that it does not
read. The others of its tenant, and the other tenants, are served meanwhile."""

import http.client
import socket
import threading
import urllib.parse

import pytest

from waiting import wait_until

COSTLY = "/v1/jobs?" + urllib.parse.urlencode(
    {"name": "wide", "filter": " OR ".join(f"env.V{at} LIKE '%y%z{at}%'" for at in range(4))})


class Held:
    """Streams that stay open; the answers of those that were refused."""

    def __init__(self):
        self.links, self.statuses, self.refusals = [], [], []

    def ask(self, client, path):
        link = http.client.HTTPConnection(client.host, client.port, timeout=30)
        link.request("GET", path, headers={"Authorization": f"Bearer {client.token}"})
        answer = link.getresponse()
        self.statuses.append(answer.status)
        if answer.status == 200:
            self.links.append((link, answer))
        else:
            self.refusals.append((answer.headers["Retry-After"], answer.read().decode()))
            link.close()
        return answer.status

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        for link, answer in self.links:
            answer.close()
            link.close()


@pytest.fixture(scope="module")
def web(site):
    return site.web(web_listeners_per_user=20, web_listeners_per_tenant=30,
                    web_waits_per_user=4, web_searches_per_user=1, web_searches_per_tenant=2,
                    web_batches_per_user=1,
                    web_answer_bytes_per_user=10 << 20)


@pytest.fixture(scope="module")
def eve(site, web):
    return site.client(web, "eve")


@pytest.fixture(scope="module")
def others(site, web):
    """A user of the same tenant, and one of another."""
    return site.client(web, "bob"), site.stranger(web, "carl", "user", "globex")


def test_256_followers_of_one_user_leave_room(eve, others):
    path = "/v1/jobs/{}/output/stdout?follow"
    mine, theirs = eve.submit("true"), [other.submit("true") for other in others]
    with Held() as held:
        for _ in range(256):
            held.ask(eve, path.format(mine))
        assert held.statuses == [200] * 32 + [429] * 224
        retry, text = held.refusals[0]
        assert int(retry) > 0
        assert "33 outputs" in text and "32 (web.followers_per_user)" in text, text
        for other, job in zip(others, theirs):
            assert [held.ask(other, path.format(job)) for _ in range(32)] == [200] * 32


def test_listeners_of_one_user_and_of_one_tenant_leave_room(eve, others):
    with Held() as held:
        for _ in range(40):
            held.ask(eve, "/v1/events")
        assert held.statuses == [200] * 20 + [429] * 20
        assert "20 (web.listeners_per_user)" in held.refusals[0][1]
        bob, carl = others
        assert [held.ask(bob, "/v1/events") for _ in range(11)] == [200] * 10 + [429]
        assert "30 (web.listeners_per_tenant)" in held.refusals[-1][1]
        assert held.ask(carl, "/v1/events") == 200


def test_a_wait_too_many_is_refused_before_its_job_is_stored(site, web, eve, others):
    job = eve.submit("true")
    waits = [threading.Thread(target=eve.get, args=(f"/v1/jobs/{job}?wait=60",)) for _ in range(4)]
    for wait in waits:
        wait.start()
    wait_until("the waits", lambda: b"sluice_http_waits 4" in eve.get("/metrics").body)
    before = site.count("jobs")
    refused = eve.post("/v1/jobs?wait=60", {"name": "late", "command": ["true"]}).problem(429)
    assert "5 requests" in refused["detail"] and "web.waits_per_user" in refused["detail"], refused
    eve.get(f"/v1/jobs/{job}?wait=60").problem(429)
    assert site.count("jobs") == before
    other = others[0].submit("true")
    other_wait = threading.Thread(target=others[0].get, args=(f"/v1/jobs/{other}?wait=60",))
    other_wait.start()
    wait_until("another's wait", lambda: b"sluice_http_waits 5" in eve.get("/metrics").body)
    root = site.client(web, "root", "admin")
    for each in (job, other):
        root.cancel(each).expect(200)
    for wait in [*waits, other_wait]:
        wait.join()
    wait_until("room", lambda: b"sluice_http_waits 0" in eve.get("/metrics").body)
    eve.get(f"/v1/jobs/{job}?wait=1").expect(200)


@pytest.fixture(scope="module")
def large(site, eve, others):
    """A job whose document has 6 MB, more than a socket holds; and 40 with one of 100 kB, which take
    the database a while to search."""
    site.audited = False  # rows are changed by hand
    jobs = [{"name": "wide", "command": ["true"]}] * 40
    for client in (eve, others[1]):
        client.post("/v1/jobs:batch", {"jobs": jobs}).expect(200)
    site.sql("UPDATE jobs SET request = JSON_SET(request, '$.notes', REPEAT('x', 100000)) "
             "WHERE name = 'wide' AND tenant = 'acme'")
    job = eve.submit("true", name="large")
    args = ", ".join(["REPEAT('x', 125000)"] * 48)
    site.sql(f"UPDATE jobs SET request = JSON_SET(request, '$.args', JSON_ARRAY({args})) "
             "WHERE name = 'large' AND tenant = 'acme'")
    return job


def test_answers_that_one_user_does_not_read_are_bounded(eve, others, large):
    path = f"/v1/jobs/{large}"
    head = f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {eve.token}\r\n\r\n".encode()
    links = []
    try:
        for _ in range(30):
            link = socket.socket()
            link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            link.connect((eve.host, eve.port))
            link.sendall(head)
            links.append(link)
        refused = {}

        def limited():
            answer = eve.get(path)
            refused["answer"] = answer
            return answer.status == 429
        wait_until("the limit", limited)
        detail = refused["answer"].problem(429)["detail"]
        assert "10485760 (web.answer_bytes_per_user)" in detail, detail
        others[0].get(path).expect(200)
        eve.get("/v1/whoami").expect(200)  # there is room for a small one
    finally:
        for link in links:
            link.close()
    wait_until("room", lambda: eve.get(path).status == 200)


def test_batches_of_one_user_leave_threads(eve, others):
    """Each item asks the database for an application; none is there, so nothing is stored."""
    over, refused, batch = threading.Event(), [], {
        "jobs": [{"name": "x", "appId": "none", "appVersion": "1"}] * 1000}

    def send():
        while not over.is_set():
            answer = eve.post("/v1/jobs:batch", batch)
            if answer.status == 429:
                assert int(answer.headers["Retry-After"]) > 0
                refused.append(answer.problem(429)["detail"])
            else:
                answer.expect(200)
    senders = [threading.Thread(target=send) for _ in range(20)]
    try:
        for thread in senders:
            thread.start()
        wait_until("the limit", lambda: any("1 (web.batches_per_user)" in text for text in refused), 60)
        for other in others:
            other.get("/v1/jobs").expect(200)
            other.post("/v1/jobs:batch", {"jobs": batch["jobs"][:1]}).expect(200)
    finally:
        over.set()
        for thread in senders:
            thread.join()


def test_costly_searches_of_one_user_and_one_tenant_are_bounded(site, web, eve, others, large):
    bob, carl = others
    over, seen, detail = threading.Event(), {}, {}

    def search(client, who):
        while not over.is_set():
            answer = client.get(COSTLY)
            if answer.status == 429:
                detail[who] = answer.problem(429)["detail"]
                assert int(answer.headers["Retry-After"]) > 0
            seen[who, answer.status] = seen.get((who, answer.status), 0) + 1
    searches = [threading.Thread(target=search, args=(eve, "eve")) for _ in range(24)]
    for user in ("bob", "dan"):
        client = site.client(web, user)
        searches += [threading.Thread(target=search, args=(client, user)) for _ in range(2)]
    try:
        for thread in searches:
            thread.start()
        wait_until(lambda: f"the limits: {detail}", lambda: (
            "1 (web.searches_per_user)" in detail.get("eve", "")
            and any("2 (web.searches_per_tenant)" in text for text in detail.values())), 60)
        wait_until(lambda: f"bob's turn: {seen}", lambda: ("bob", 200) in seen, 60)
        eve.get("/v1/jobs?name=wide&status=PENDING&limit=1").expect(200)  # it is cheap
        carl.get(COSTLY).expect(200)
        wait_until("a cancel's turn or refusal", lambda: carl.post(
            "/v1/jobs:cancel?name=wide", {"dryRun": True}).status == 200)
        cancel = "/v1/jobs:cancel?" + COSTLY.partition("?")[2]
        wait_until("a cancel that is refused", lambda: eve.post(
            cancel, {"dryRun": True}).status == 429, 60)
    finally:
        over.set()
        for thread in searches:
            thread.join()
