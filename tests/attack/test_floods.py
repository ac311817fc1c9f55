# SPDX-License-Identifier: MIT
"""Floods: somebody takes all that he can get, and everybody else is served as before.

Whoever attacks is a process of the least priority: he has a machine of his own. His address is
127.0.0.1, that of everybody else 127.0.0.2 (tests/support/neighbour.py).
"""

import collections
import contextlib
import os
import resource
import select
import socket
import subprocess
import sys
import urllib.parse

import pytest

from attacks import FULL, WINDOW_S, Stand, attacked
from sluice import Site, read_proc
from waiting import let_pass, wait_until

MIB = 1 << 20
WAITERS, WAITS_OF_ONE = 900, 100  # one user may have web.waits_per_user, 128
SETTINGS = {"web_deadline_ms": 1000, "web_connections_per_address": 200}


def port_of(web):
    return int(web.url.rsplit(":", 1)[1])


def resident(process):
    return int(read_proc(process.pid, "statm").split()[1]) * 4096


@pytest.fixture
def site_of_its_own(shared_servers):
    """Two threads, and room for many who wait."""
    with Site(shared_servers) as site:
        made = Stand(site, web_threads=2, web_queue_max=100, web_connections_per_address=1000)
        yield made
        made.end()


@contextlib.contextmanager
def attacker(how, web, *args):
    """tests/attack/flood.py, with the least priority; gives what it counted, when it has ended."""
    argv = [sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "flood.py"), how,
            str(port_of(web)), *map(str, args)]
    counts = {}
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout.readline() == "ready\n"
            yield counts
        finally:
            child.stdin.close()
            for line in child.stdout:
                name, value = line.split()
                counts[name] = counts.get(name, 0) + int(value)


def flooded(row, stand, how, *args, expected, settle_s=0.0):
    """Beside the flood everybody else is served; `expected` is all that it may get."""
    with attacked(row, stand) as hit:
        counts = collections.Counter()

        def attack(begin):
            with attacker(how, stand.web, *args) as got:
                let_pass(settle_s)
                begin()
                let_pass(WINDOW_S)
            counts.update(got)
        hit.beside(attack)
        hit.attacks = hit.good = counts.total()
        print(row, counts, f"{hit.before_ms:.1f} {hit.during_ms:.1f} ms")
        assert counts and not set(counts) - set(expected), counts


def test_slow_heads(stand):
    flooded("F-17 heads", stand, "heads", 200, expected=("408", "429", "open", "closed"))


def test_slow_bodies(stand, ann):
    flooded("F-17 bodies", stand, "bodies", 100, ann.token, expected=("408", "429", "open", "closed"))


def test_silent_connections(stand):
    flooded("F-17 idle", stand, "idle", 10000, expected=("open", "closed", "408", "429"))


def test_slow_readers(stand, ann):
    big = ann.submit("true", env={f"V{at}": "x" * 1000 for at in range(100)})
    # What fits on the way to them is made and sent at once; it is what comes then that is slow.
    flooded("F-17 readers", stand, "readers", 10, ann.token, f"/v1/jobs/{big}",
            expected=("open", "closed", "429"), settle_s=2.0)


def test_questions_without_a_pause(stand, ann):
    flooded("F-17 requests", stand, "requests", 16, ann.token, expected=("200", "429", "503"))


def test_strangers_without_a_pause(stand):
    flooded("F-17 strangers", stand, "requests", 8, "x.y.z", expected=("401", "429", "503"))


def test_waits_that_end_at_once(site_of_its_own):
    """They were in nobody's way while they waited, and are in nobody's when they end."""
    stand = site_of_its_own
    users = [stand.site.client(stand.web, f"user{at}") for at in range(WAITERS // WAITS_OF_ONE)]
    jobs = [user.submit("true") for user in users]

    def waiting():
        text = stand.ann.get("/metrics").expect(200).body.decode()
        return int(text.split("\nsluice_http_waits ")[1].split("\n")[0])
    with attacked("F-17 waits", stand) as hit, contextlib.ExitStack() as opened:
        links = set()
        for at in range(WAITERS):
            user, job = users[at // WAITS_OF_ONE], jobs[at // WAITS_OF_ONE]
            link = opened.enter_context(socket.create_connection(("127.0.0.1", port_of(stand.web)), 10))
            link.sendall(f"GET /v1/jobs/{job}?wait=60 HTTP/1.1\r\nHost: x\r\n"
                         f"Authorization: Bearer {user.token}\r\n\r\n".encode())
            links.add(link)
            if len(links) % 50 == 0:  # no more than may be in line at once
                wait_until("all of them to wait", lambda: waiting() == len(links), 30)
        for user, job in zip(users, jobs):
            user.cancel(job).expect(200)
        while links:
            stand.ann.get("/v1/whoami").expect(200)
            for link in select.select(links, [], [], 0)[0]:
                got = link.recv(65536)
                hit.held(got.startswith(b"HTTP/1.1 200 "), f"a wait is answered {got}")
                links.remove(link)


def test_output_without_an_end(stand, ann):
    worker = stand.site.worker(worker_output_max_bytes=4 * MIB)
    seconds = 6 if FULL else 2
    commands = {"lines": "yes", "one line": "tr '\\0' x </dev/zero", "zeros": "cat /dev/zero"}
    with attacked("F-27 flood", stand) as hit:
        before = resident(worker)
        for what, command in commands.items():
            job = ann.submit("sh", "-c", f"echo head; {command}", maxSeconds=seconds)
            ended = ann.wait_end(job, 60)
            told, kept = ended["output"]["stdout"], ann.output(job)
            hit.held(ended["status"] == "FAILED" and kept.startswith(b"head\n"), f"{what}: {ended}")
            hit.held(len(kept) < 5 * MIB < told["bytes"], f"{what}: {len(kept)} of {told}")
        hit.held(resident(worker) - before < 32 * MIB, "the worker grows with the output")


def test_followers_that_do_not_read(stand, ann):
    stand.site.worker(name="follow-1")
    job = ann.submit("sh", "-c", "head -c 30000000 /dev/zero; sleep 2")
    head = (f"GET /v1/jobs/{job}/output/stdout?follow HTTP/1.1\r\nHost: x\r\n"
            f"Authorization: Bearer {ann.token}\r\n\r\n").encode()
    events = head.replace(f"/v1/jobs/{job}/output/stdout?follow".encode(), b"/v1/events?after=0")
    with attacked("F-27 follow", stand) as hit, contextlib.ExitStack() as opened:
        before = resident(stand.web)

        def follow(begin):
            for at in range(32):
                link = opened.enter_context(socket.socket())
                link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                link.connect(("127.0.0.1", port_of(stand.web)))
                link.sendall(head if at % 2 else events)
            let_pass(WINDOW_S)  # what fits on the way to them is on its way
            begin()
            let_pass(WINDOW_S)
            opened.close()
        hit.beside(follow)
        ann.wait_end(job, 60)
        for _ in range(32):  # the sanitizer keeps what was freed for a while: 256 MB of it
            hit.held(resident(stand.web) - before < 320 * MIB, "memory grows with who does not read")


def test_without_descriptors(stand, ann):
    site = stand.site
    web = site.web("poor")
    client = site.client(web, keep=True)
    folder = site.path("archive", "acme", stand.job, "1")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "stdout"), "wb") as out:
        out.write(b"told")
    client.get("/v1/whoami").expect(200)
    others = []

    def used_up():
        """So many descriptors, if none is free below the last; another connection takes one."""
        held = [int(name) for name in os.listdir(f"/proc/{web.pid}/fd")]
        if len(held) == max(held) + 1:
            return len(held)
        others.append(site.client(web, keep=True))
        others[-1].get("/v1/whoami").expect(200)
        return None
    used = wait_until("no gap between its descriptors", used_up)
    soft, hard = resource.prlimit(web.pid, resource.RLIMIT_NOFILE)
    with attacked("F-28 descriptors", stand) as hit:
        resource.prlimit(web.pid, resource.RLIMIT_NOFILE, (used, hard))
        for _ in range(3):
            answer = client.get(f"/v1/jobs/{stand.job}/output/stdout")
            hit.refused(answer, 503, "SLUICE-1053")
            assert answer.headers["Retry-After"]
        resource.prlimit(web.pid, resource.RLIMIT_NOFILE, (soft, hard))
        hit.held(client.output(stand.job) == b"told", "it recovers")


COSTLY = ["name LIKE '" + "%a" * 60 + "'", " OR ".join(f"name LIKE '%{at}%a%'" for at in range(40)),
          " AND ".join(f"env.V{at} <> 'x'" for at in range(60)), "NOT " * 50 + "TRUE",
          " + ".join(["nodeCount"] * 200) + " > 1", "name IN (" + ",".join(f"'{at}'" for at in range(400)) + ")"]
BOMBS = ["(" * 100000, "(" * 5000 + "TRUE" + ")" * 5000, "NOT " * 20000 + "TRUE", "TRUE AND " * 20000 + "TRUE",
         "name LIKE '" + "%" * 60000 + "'", "nodeCount > " + "9" * 60000, "1/0 = 1 AND nope = 1", "name REGEXP 'x'",
         "SLEEP(9) = 0", "name = 'x", "-" * 50000 + "1 > 0", "name = '" + "''" * 40000 + "'", "\x00", "\ud7ff = 1"]


def test_filters_are_bounded_when_they_are_made(stand, ann):
    with attacked("F-29 filters", stand) as hit:
        for text in BOMBS:
            answer = stand.root.put_queue("bomb", 5, text)
            problem = hit.refused(answer, (400, 413))
            assert problem["code"] in ("SLUICE-1004", "SLUICE-1040", "SLUICE-1001", "SLUICE-1002"), problem
            hit.refused(stand.root.post("/v1/queues/bomb/check", {"priority": 5, "filter": text}),
                        (200, 400, 413))
        for at, text in enumerate(COSTLY):
            stand.root.put_queue(f"costly-{at}", 5 + at, text)

        def submit(begin):
            begin()
            for _ in range(30):
                ann.post("/v1/jobs", {"name": "a" * 120, "command": ["true"]}).expect(201)
        hit.beside(submit)
        for at in range(len(COSTLY)):
            stand.root.delete(f"/v1/queues/costly-{at}")


def test_searches_that_cost_much(stand, ann):
    for at in range(20):
        ann.post("/v1/jobs:batch", {"jobs": [
            {"name": "a" * 100 + str(one), "command": ["true"], "env": {"A": "a" * 100}}
            for one in range(50)]}).expect(200)
    texts = [urllib.parse.quote(text) for text in COSTLY] + [urllib.parse.quote(
        "name LIKE '%a%a%a%a%a%b' OR env.A LIKE '%a%a%a%a%a%b' OR 'x' IN tags")]
    flooded("F-29 searches", stand, "searches", ann.token, *texts,
            expected=("200", "400", "413", "429", "503", "504"))
