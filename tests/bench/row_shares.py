# SPDX-License-Identifier: MIT
"""shares: what one user's followers and costly searches cost a user of another tenant."""

import http.client
import statistics
import threading
import urllib.parse

from measure import Goal
from rig import TRUE, tool
from waiting import wait_until

# What a site has: the limits of one user are what is measured.
LIMITS = {"web_requests_per_s_per_user": 2000, "web_requests_per_user": 256}
FOLLOWERS = 256
SEARCHES = 24
JOBS = 200
NOTES_BYTES = 1_000_000
RATE = 25
GOAL = 2
COSTLY = "/v1/jobs?" + urllib.parse.urlencode(
    {"filter": " OR ".join(f"env.V{at} LIKE '%y%z{at}%'" for at in range(60))})


class Followers:
    """Streams of one job's output; those that are refused are closed."""

    def __init__(self, client, job):
        self.links, self.statuses = [], {}
        for _ in range(FOLLOWERS):
            link = http.client.HTTPConnection(client.host, client.port, timeout=60)
            link.request("GET", f"/v1/jobs/{job}/output/stdout?follow",
                         headers={"Authorization": f"Bearer {client.token}"})
            answer = link.getresponse()
            self.statuses[answer.status] = self.statuses.get(answer.status, 0) + 1
            self.links.append((link, answer))

    def close(self):
        for link, answer in self.links:
            answer.close()
            link.close()


class Searches:
    """Clients that search again and again; one that is refused waits as it is asked to."""

    def __init__(self, clients):
        self.over, self.statuses, self.lock = threading.Event(), {}, threading.Lock()
        self.threads = [threading.Thread(target=self._run, args=(client,)) for client in clients]
        for thread in self.threads:
            thread.start()
        wait_until("searches that are limited", lambda: 429 in self.statuses, 60)

    def _run(self, client):
        while not self.over.is_set():
            answer = client.get(COSTLY)
            with self.lock:
                self.statuses[answer.status] = self.statuses.get(answer.status, 0) + 1
            if answer.status == 429:
                self.over.wait(int(answer.headers["Retry-After"]))

    def close(self):
        self.over.set()
        for thread in self.threads:
            thread.join()


def tenants(rig):
    """The clients that take much: one user; and the token of another tenant's."""
    rig.site.audited = False  # rows are changed by hand
    takers = [rig.site.client(rig.web, "eve", timeout_s=120) for _ in range(SEARCHES)]
    other = rig.site.stranger(rig.web, "carl", "user", "globex")
    takers[0].post("/v1/jobs:batch", {"jobs": [{"name": "wide", "command": TRUE}] * JOBS}).expect(200)
    rig.database.run("UPDATE jobs SET request = JSON_SET(request, '$.notes', REPEAT('x', %s))",
                     (NOTES_BYTES,))
    other.submit(*TRUE)
    path = rig.site.path("others")
    with open(path, "w", encoding="utf-8") as out:
        out.write(other.token)
    return takers, path


def p99_ms(rig, tokens, seconds):
    report = tool("load", "--port", rig.web.url.rpartition(":")[2], "--tokens", tokens,
                  "--method", "GET", "--path", "/v1/jobs?limit=10", "--connections", 1,
                  "--rate", RATE, "--seconds", seconds)
    assert set(report["statuses"]) == {"200"}, report
    return report["p99_ms"]


def run(bench):
    """GET /v1/jobs of another tenant while one user takes what it can get, against an idle time"""
    seconds = bench.size(16, 6)
    kinds = {"followers": f"{FOLLOWERS} followers of one user",
             "searches": f"{SEARCHES} costly searches of one user"}
    ratios = {kind: bench.measure(f"{text}: another tenant's p99, of its idle p99", "x", "lower",
                                  [Goal(GOAL, text=f"below {GOAL}x")])
              for kind, text in kinds.items()}
    idle = bench.measure("p99 of GET /v1/jobs, idle", "ms")
    with bench.rig("sluice", slots=0, users=1, **LIMITS) as rig:
        takers, tokens = tenants(rig)
        job = takers[0].submit(*TRUE)
        p99_ms(rig, tokens, seconds)  # connections are made, statements are prepared
        for _ in range(bench.rounds):
            before = p99_ms(rig, tokens, seconds)
            for kind, ratio in ratios.items():
                taken = Followers(takers[0], job) if kind == "followers" else Searches(takers)
                try:
                    loaded = p99_ms(rig, tokens, seconds)
                finally:
                    taken.close()
                wait_until("the connections to be free", lambda: quiet(takers[0]), 60)
                after = p99_ms(rig, tokens, seconds)
                ratio.add("sluice", loaded / statistics.mean((before, after)))
                idle.add("sluice", before)
                bench.say(f"{kind}: p99 {before:.2f} ms idle, {loaded:.2f} ms, {after:.2f} ms idle; "
                          f"answers {taken.statuses}")
                before = after


def quiet(client):
    """What was taken has been returned."""
    return client.get("/v1/jobs?limit=1").status == 200 and \
        b"\nsluice_http_followers 0\n" in client.get("/metrics").body
