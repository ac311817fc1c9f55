# SPDX-License-Identifier: MIT
"""What one user or one address may take, and what it hears beyond that."""

import http.client
import json
import select
import socket
import threading

from waiting import wait_until

GOOD = json.dumps({"name": "good", "command": ["true"]}).encode()
JSON = {"Content-Type": "application/json"}


def test_a_user_who_asks_too_often_is_told_and_others_are_served(site):
    web = site.web("often", web_requests_per_s_per_user=1)
    ann, bob = site.client(web, "ann", keep=True), site.client(web, "bob")
    answers = [ann.get("/v1/whoami") for _ in range(40)]
    refused = [answer for answer in answers if answer.status != 200]
    assert len(refused) > 20
    for answer in refused:
        assert answer.problem(429)["code"] == "SLUICE-1044"
        assert int(answer.headers["Retry-After"]) > 0
    bob.get("/v1/whoami").expect(200)
    ann.get("/livez").expect(200)
    wait_until("his turn", lambda: ann.get("/v1/whoami").status == 200)
    assert b'sluice_http_limited_total{whose="user"}' in ann.get("/metrics").expect(200).body


def test_an_address_that_asks_too_often_is_told(site):
    web = site.web("address", web_requests_per_s_per_address=5)
    ann = site.client(web, keep=True)
    answers = [ann.get("/v1/whoami") for _ in range(40)]
    assert {answer.status for answer in answers} == {200, 429}
    wait_until("its turn", lambda: ann.get("/v1/whoami").status == 200)
    ann.get("/readyz").expect(200)


def test_a_connection_over_the_share_of_its_address_is_told(site):
    web = site.web("crowded", web_connections_per_address=8)
    host, port = web.url.removeprefix("http://").split(":")
    token = {"Authorization": f"Bearer {site.token()}"}
    links = [http.client.HTTPConnection(host, int(port), timeout=20) for _ in range(9)]
    try:
        for link in links[:8]:
            link.request("GET", "/v1/whoami", headers=token)
            assert link.getresponse().read()
        links[8].request("GET", "/v1/whoami", headers=token)
        answer = links[8].getresponse()
        assert answer.status == 429 and answer.headers["Connection"].lower() == "close"
        assert json.loads(answer.read())["code"] == "SLUICE-1044"
        links[0].close()
        ann = site.client(web)

        def served():
            return ann.get("/v1/whoami").status == 200
        wait_until("room", served)
    finally:
        for link in links:
            link.close()


def test_a_user_has_so_many_requests_under_way_and_no_more(site):
    web = site.web("waits", web_requests_per_user=3)
    ann, bob = site.client(web), site.client(web, "bob")
    job = ann.submit("true")

    def hold():
        while ann.get(f"/v1/jobs/{job}?wait=60").status == 429:
            pass  # the question whether the limit is reached takes a place itself
    waits = [threading.Thread(target=hold) for _ in range(3)]
    for wait in waits:
        wait.start()
    wait_until("the limit", lambda: ann.get("/v1/whoami").status == 429)
    bob.get(f"/v1/jobs/{job}").expect(200)
    root = site.client(web, "root", "admin")
    root.cancel(job).expect(200)
    for wait in waits:
        wait.join()
    wait_until("room", lambda: ann.get("/v1/whoami").status == 200)  # its end comes behind its answer


def test_bodies_that_one_address_holds_are_bounded(site):
    web = site.web("bodies", web_bytes_per_address=200000, web_bytes_per_user=10 ** 9)
    host, port = web.url.removeprefix("http://").split(":")
    head = (f"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {site.token()}\r\n"
            "Content-Type: application/json\r\nContent-Length: 150000\r\n\r\n").encode()
    ann = site.client(web)
    large = b" " * 100000 + GOOD

    def hold():
        link = socket.create_connection((host, int(port)))
        link.sendall(head + b" " * 140000)
        return link
    held = [hold()]

    def limited():
        if select.select(held, [], [], 0)[0]:  # the other one was first: it was refused itself
            held.pop().close()
            held.append(hold())
            return False
        return ann.post("/v1/jobs", large, JSON).status == 429
    wait_until("the limit", limited, 60)
    ann.post("/v1/jobs", GOOD, JSON).expect(201)
    held.pop().close()
    wait_until("room", lambda: ann.post("/v1/jobs", large, JSON).status == 201)
