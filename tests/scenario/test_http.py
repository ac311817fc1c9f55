# SPDX-License-Identifier: MIT
"""The HTTP side: slow, large and odd requests, and what every answer carries."""

import base64
import concurrent.futures
import http.client
import json
import signal
import socket
import time

import pytest

from rest import Client
from waiting import wait_until
from witness import WITNESS

DEADLINE_MS = 1500
PER_ADDRESS = 60


@pytest.fixture(scope="module")
def web(site):
    return site.web(web_deadline_ms=DEADLINE_MS, web_body_max_bytes=100000,
                    web_connections_per_address=PER_ADDRESS)


@pytest.fixture(scope="module")
def ann(site, web):
    return site.client(web)


def connect(web):
    return socket.create_connection(("127.0.0.1", int(web.url.rsplit(":", 1)[1])), timeout=10)


def read_all(link):
    got = b""
    while True:
        try:
            part = link.recv(65536)
        except ConnectionResetError:
            return got
        if not part:
            return got
        got += part


def status_of(raw):
    WITNESS.note_raw(raw)
    return int(raw.split(b" ", 2)[1]) if raw.startswith(b"HTTP/1.1 ") else None


def head(ann, method="POST", path="/v1/jobs", **more):
    lines = [f"{method} {path} HTTP/1.1", "Host: x", f"Authorization: Bearer {ann.token}",
             "Content-Type: application/json"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in more.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def drip(link, text, pause_s=0.1):
    """Sends byte by byte until the other side has had enough; its last words."""
    link.settimeout(pause_s)
    for at in range(len(text)):
        try:
            link.sendall(text[at:at + 1])
            got = link.recv(65536)
            return got
        except socket.timeout:
            continue
        except OSError:
            break
    link.settimeout(10)
    return read_all(link)


def test_a_request_whose_head_drips_in_is_ended_with_408(web, ann):
    with connect(web) as link:
        began = time.monotonic()
        got = drip(link, head(ann, "GET", "/v1/whoami") + b"x" * 100)
        took = time.monotonic() - began
    assert status_of(got) == 408, got
    assert b"application/problem+json" in got and b"SLUICE-1046" in got
    assert took < 10  # all of it takes 20 s and more


def test_a_body_that_drips_in_is_ended_with_408(web, ann):
    with connect(web) as link:
        link.sendall(head(ann, Content_Length=1000))
        got = drip(link, b"{" + b" " * 998)
    assert status_of(got) == 408, got


def test_a_body_without_an_end_is_413_and_memory_does_not_grow(web, ann):
    def resident():
        with open(f"/proc/{web.child.pid}/statm", encoding="ascii") as statm:
            return int(statm.read().split()[1]) * 4096
    with connect(web) as link:
        link.sendall(head(ann, Transfer_Encoding="chunked"))
        before, chunk, sent = resident(), b"8000\r\n" + b" " * 0x8000 + b"\r\n", 0
        try:
            while sent < 64 << 20:
                link.sendall(chunk)
                sent += 0x8000
        except OSError:
            pass
        got = read_all(link)
        assert sent < 64 << 20
    assert status_of(got) in (413, None), got  # the answer may be lost with what we still send
    assert resident() - before < 32 << 20


def test_a_body_over_the_limit_is_413_also_in_chunks(web, ann):
    with connect(web) as link:
        link.sendall(head(ann, Transfer_Encoding="chunked", Connection="close"))
        for _ in range(8):
            link.sendall(b"8000\r\n" + b" " * 0x8000 + b"\r\n")
        link.sendall(b"0\r\n\r\n")
        got = read_all(link)
    assert status_of(got) == 413 and b"100000" in got, got


def test_expect_100_continue_is_refused_before_the_body_comes(web, ann):
    with connect(web) as link:
        link.sendall(head(ann, Content_Length=200000, Expect="100-continue"))
        assert status_of(link.recv(65536)) == 413
    with connect(web) as link:
        link.sendall(head(ann, Content_Length=2, Expect="100-continue"))
        assert status_of(link.recv(65536)) == 100


def test_without_a_token_a_large_body_is_not_kept(web):
    stranger = Client(web.url)
    stranger.post("/v1/jobs", b" " * 90000, {"Content-Type": "application/json"}).problem(401)
    stranger.post("/v1/jobs", b"{}", {"Content-Type": "application/json"}).problem(401)


def test_a_large_body_with_a_token_is_taken(ann):
    request = {"name": "big", "command": ["true"], "notes": "n" * 4000,
               "env": {f"V{at}": "x" * 100 for at in range(400)}}
    assert len(json.dumps(request)) > 40000
    ann.post("/v1/jobs", request).expect(201)


def test_too_large_a_header_is_431(ann):
    ann.get("/v1/whoami", **{"X-Filler": "x" * 40000}).problem(431)
    ann.get("/v1/whoami").expect(200)


@pytest.mark.parametrize("raw", [
    b"\r\n\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\nHost: x\r\n\r\n", b"\x00\x01\x02\r\n\r\n",
    b"GET /%00 HTTP/1.1\r\nHost: x\r\n\r\n", b"GET /v1/jobs/%ff HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /" + b"/" * 200 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
    b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n"])
def test_what_is_no_request_is_refused_and_harms_nobody(web, ann, raw):
    with connect(web) as link:
        link.sendall(raw)
        got = link.recv(65536)
    assert status_of(got) in (None, 400, 404, 408, 413, 505), got
    ann.get("/v1/whoami").expect(200)


def test_silent_connections_of_one_address_do_not_grow_without_bound(web, ann):
    links = [connect(web) for _ in range(PER_ADDRESS * 2)]
    try:
        def closed():
            count = 0
            for link in links:
                link.setblocking(False)
                try:
                    count += link.recv(65536) == b""
                except BlockingIOError:
                    pass
                except OSError:
                    count += 1
            return count
        wait_until("the ones too many to be closed", lambda: closed() >= PER_ADDRESS)
    finally:
        for link in links:
            link.close()
    wait_until("others to be served again", lambda: served_alone(ann), 30)


def served_alone(ann):
    try:
        return gauge(ann, "sluice_http_connections") == 1
    except (OSError, IndexError):
        return False


def test_others_are_served_while_many_requests_drip(web, ann):
    links = [connect(web) for _ in range(PER_ADDRESS // 2)]
    try:
        for link in links:
            link.sendall(b"GET /v1/whoami HTTP/1.1\r\n")
        times = []
        for _ in range(50):
            began = time.monotonic()
            ann.get("/v1/whoami").expect(200)
            times.append(time.monotonic() - began)
        assert sorted(times)[45] < DEADLINE_MS / 2000, times
    finally:
        for link in links:
            link.close()


def test_a_crowd_of_idle_connections_keeps_nobody_out(site):
    small = site.web("small", web_connections_max=100, web_connections_per_address=30,
                     web_deadline_ms=60000)
    port = int(small.url.rsplit(":", 1)[1])
    crowd = []
    try:
        for at in range(120):
            link = socket.socket()
            link.bind((f"127.0.0.{2 + at // 24}", 0))
            link.connect(("127.0.0.1", port))
            link.sendall(b"GET /v1/who")
            crowd.append(link)
        client = site.client(small)
        client.timeout_s = 30
        began = time.monotonic()
        client.get("/v1/whoami").expect(200)
        assert time.monotonic() - began < 15
    finally:
        for link in crowd:
            link.close()


def test_a_hangup_signal_reloads_and_a_bad_file_is_refused(site, tmp_path):
    path = tmp_path / "sluice.conf"
    path.write_text("[log]\nlevel = info\n")
    own = site.web("reload", config=path)
    own.signal(signal.SIGHUP)
    own.wait_log("config.reloaded")
    path.write_text("[log]\nlevel = loud\n")
    own.signal(signal.SIGHUP)
    line = own.wait_log("config.reload.refused")
    assert "loud" in line and "sluice.conf" in line
    site.client(own).get("/v1/whoami").expect(200)


def test_every_answer_carries_its_id_and_is_not_cached(ann):
    answer = ann.get("/v1/whoami", **{"X-Request-Id": "my-id.1"})
    assert answer.headers["X-Request-Id"] == "my-id.1"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Cache-Control"] == "no-store" and "Server" not in answer.headers
    bad = ann.get("/v1/nothing", **{"X-Request-Id": "a b\"<>"})
    assert bad.headers["X-Request-Id"] == bad.problem(404)["requestId"] != "a b\"<>"
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    assert ann.get("/livez", traceparent=trace).headers["traceparent"] == trace
    assert "traceparent" not in ann.get("/livez", traceparent="rubbish").headers


def test_head_options_and_allow_are_answered(ann):
    answer = ann.call("HEAD", "/v1/whoami").expect(200)
    assert answer.body == b"" and int(answer.headers["Content-Length"]) > 10
    answer = ann.call("OPTIONS", "/v1/queues/x").expect(204)
    assert answer.headers["Allow"] == "GET, HEAD, PUT, DELETE, OPTIONS"
    ann.call("DELETE", "/v1/jobs").problem(405)


def test_unknown_query_parameters_are_refused(ann):
    problem = ann.get("/v1/jobs?colour=red").problem(400)
    assert problem["errors"][0]["pointer"] == "?colour"
    ann.get("/v1/jobs?limit=x").problem(400)
    ann.get("/v1/jobs?status=RUNNING,SLEEPING").problem(400)
    ann.get("/v1/jobs?orderBy=name").problem(400)


def test_a_cursor_is_good_for_its_own_query_only(ann):
    for _ in range(3):
        ann.submit("true")
    page = ann.get("/v1/jobs?limit=1&owner=ann").expect(200)
    cursor = page.json["nextCursor"]
    assert f"cursor={cursor}>; rel=\"next\"" in page.headers["Link"]
    ann.get(f"/v1/jobs?limit=2&owner=ann&cursor={cursor}").expect(200)
    ann.get(f"/v1/jobs?limit=1&cursor={cursor}").problem(400)
    other = "B" if cursor.endswith("A") else "A"
    ann.get(f"/v1/jobs?limit=1&owner=ann&cursor={cursor[:-1]}{other}").problem(400)


@pytest.mark.parametrize("text", [
    "name = 'x'' OR 1 = 1 --'", "owner = 'ann' AND 'a' IN tags", "env.A = '\"; DROP TABLE jobs'",
    "name LIKE '%'' OR ''%'", "created > '2020-01-01' AND exitCode IS NULL", "worker IS NULL",
    "maxMinutes >= 1 AND hour BETWEEN 0 AND 23 AND weekday < 8 AND attempt = 1",
    "archive.mode = 'always'", "status IN ('PENDING', 'RUNNING') AND NOT visible = FALSE"])
def test_any_filter_searches_and_none_harms(site, ann, text):
    before = site.count("jobs")
    http_text = "".join(f"%{byte:02x}" for byte in text.encode())
    ann.get(f"/v1/jobs?filter={http_text}").expect(200)
    assert site.count("jobs") == before


def test_paths_of_files_cannot_leave_the_job(site, ann):
    job = ann.submit("true")
    for path in ("../../../../etc/passwd", "..%2F..%2Fetc", "%2Fetc%2Fpasswd", "a/../../b", "./a",
                 "a//b", "%2e%2e/x"):
        ann.get(f"/v1/jobs/{job}/files/{path}").expect(400, 404)
    ann.get(f"/v1/jobs/{job}/output/../../x").expect(400, 404)


def test_a_wait_that_is_over_answers_202_with_the_state(ann):
    began = time.monotonic()
    answer = ann.post("/v1/jobs?wait=1", {"name": "w", "command": ["true"]}).expect(202)
    assert answer.json["status"] == "PENDING" and answer.headers["Location"]
    assert 0.9 < time.monotonic() - began < 10


def test_a_wait_that_nobody_reads_is_given_up(web, ann):
    with connect(web) as link:
        body = json.dumps({"name": "left", "command": ["true"]}).encode()
        link.sendall(head(ann, path="/v1/jobs?wait=100", Content_Length=len(body)) + body)
        wait_until("the wait", lambda: gauge(ann, "sluice_http_waits") == 1)
        before = gauge(ann, "sluice_http_connections")
    wait_until("the connection to be closed",
               lambda: gauge(ann, "sluice_http_connections") < before)


def gauge(ann, name):
    return int(ann.get("/metrics").body.decode().split(f"\n{name} ")[1].split("\n")[0])


def test_many_waits_hold_no_thread(site):
    few = site.web("few", web_threads=2)
    client = site.client(few)
    with concurrent.futures.ThreadPoolExecutor(30) as pool:
        waits = [pool.submit(client.post, "/v1/jobs?wait=50", {"name": "crowd", "command": ["true"]})
                 for _ in range(30)]
        wait_until("all to wait", lambda: gauge(client, "sluice_http_waits") == 30, 30)
        began = time.monotonic()
        client.get("/v1/whoami").expect(200)
        assert time.monotonic() - began < 10
        client.post("/v1/jobs:cancel?name=crowd", {"expectedCount": 30}).expect(200)
        answers = [wait.result() for wait in waits]
    assert {(answer.status, answer.json["status"]) for answer in answers} == {(200, "CANCELLED")}


class Stream:
    """Server-sent events as they come."""

    def __init__(self, ann, job, last=None):
        self.link = http.client.HTTPConnection(ann.host, ann.port, timeout=20)
        headers = {"Authorization": f"Bearer {ann.token}"} | (
            {"Last-Event-ID": last} if last else {})
        self.link.request("GET", f"/v1/jobs/{job}/output/stdout?follow", headers=headers)
        self.answer = self.link.getresponse()
        assert self.answer.status == 200, self.answer.read()
        assert self.answer.headers["Content-Type"] == "text/event-stream"

    def events(self):
        event = {}
        for line in self.answer:
            text = line.decode().rstrip("\n")
            if text == "" and event:
                yield event
                event = {}
            elif text and not text.startswith(":"):
                name, value = text.split(": ", 1)
                event[name] = value


@pytest.fixture(scope="module")
def served(site, web):
    """Tags of jobs that run; all others wait."""
    site.client(web, "root", "admin").put_queue("served", 1, "'served' IN tags").expect(201)
    site.worker("served")
    return ["served"]


def test_output_is_followed_and_taken_up_again(ann, served, tmp_path):
    gate = tmp_path / "gate"
    job = ann.submit("sh", "-c", f"echo one; while [ ! -e {gate} ]; do sleep 0.05; done; echo two",
                     tags=served)
    events = Stream(ann, job).events()
    first = next(events)
    assert first["event"] == "output" and base64.b64decode(first["data"]) == b"one\n"
    assert first["id"] == "4"
    gate.touch()
    rest = list(events)
    assert b"".join(base64.b64decode(e["data"]) for e in rest[:-1]) == b"two\n"
    assert rest[-1]["event"] == "end" and json.loads(rest[-1]["data"])["status"] == "FINISHED"
    again = list(Stream(ann, job, "4").events())
    assert [e["event"] for e in again] == ["output", "end"]
    assert base64.b64decode(again[0]["data"]) == b"two\n"


def test_a_follower_that_is_gone_or_slow_holds_up_nobody(ann, served):
    job = ann.submit("sh", "-c", "head -c 20000000 /dev/zero", tags=served)
    slow = Stream(ann, job)
    next(slow.events())
    gone = Stream(ann, job)
    gone.link.close()
    ann.wait_end(job)
    total = sum(len(base64.b64decode(e["data"])) for e in Stream(ann, job).events()
                if e["event"] == "output")
    assert total == len(ann.output(job))
    slow.link.close()
    ann.get("/v1/whoami").expect(200)


def test_a_stop_finishes_what_is_under_way(site):
    own = site.web("stopping")
    client = site.client(own)
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        wait = pool.submit(client.post, "/v1/jobs?wait=60", {
            "name": "stop", "command": ["sleep", "100"]})
        wait_until("the job", lambda: site.count("jobs", "name = 'stop'") == 1)
        job = client.get("/v1/jobs?name=stop").json["jobs"][0]["id"]
        follow = pool.submit(lambda: list(Stream(client, job).events()))
        wait_until("the stream", lambda: b"sluice_http_followers 1" in client.get(
            "/metrics").body)
        own.signal(signal.SIGTERM)
        assert wait.result().status in (200, 202)
        follow.result()
    assert own.wait() == 0
    site.client(site.web("next")).cancel(job).expect(200, 202)


def test_a_readers_mistake_in_the_configuration_is_told_at_start(site):
    broken = site.web("broken", wait=False, web_listen="not-an-address")
    assert broken.wait() == 1
    assert "web.listen" in broken.log_text()


def test_a_fault_of_the_database_names_no_account_and_no_host(site):
    """Its words are in the log, under the request's id; who asks is told that it failed."""
    web = site.web("no-account", wait=False, db_user="svc_of_the_site", db_password="wrong")
    web.wait_log("web.listening")
    ann = site.client(web)
    answers = [ann.get("/readyz").expect(503), ann.get("/v1/jobs").expect(500, 503),
               ann.post("/v1/jobs", {"name": "x", "command": ["true"]}).expect(500, 503)]
    for answer in answers:
        text = answer.body.decode()
        for word in ("svc_of_the_site", "Access denied", "127.0.0.1", "localhost", "SQL", "using password"):
            assert word not in text, text
    assert "svc_of_the_site" in web.wait_log("web.database.away")
    asked = answers[1].headers["X-Request-Id"]
    assert asked == answers[1].json["requestId"]
    assert "svc_of_the_site" in web.wait_log(asked)


def test_a_statement_that_fails_is_not_told_to_the_client(site, web):
    root = site.client(web, "root", "admin")
    site.sql("ALTER TABLE systems ADD CONSTRAINT of_the_site CHECK (id <> 'never')")
    try:
        answer = root.put("/v1/systems/never", {}).expect(500)
        row = wait_until("the row of the failure", lambda: root.get(
            "/v1/audit?outcome=failed&subject=/v1/systems/never").expect(200).json["audit"] or None)[0]
    finally:
        site.sql("ALTER TABLE systems DROP CONSTRAINT of_the_site")
    assert "of_the_site" not in answer.body.decode() and "of_the_site" not in row["detail"]
    assert row["code"] == "SLUICE-1063" == answer.json["code"]
