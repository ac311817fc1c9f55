# SPDX-License-Identifier: MIT
"""What is said of jobs that recovery holds: tests/support/explained_jobs.py."""

import contextlib
import http.server
import re
import socket
import threading

import pytest

from explained import explained
from servers import free_port
from waiting import wait_until

LATER = re.compile(r"given up at 20\d\d-\d\d-\d\d \d\d:\d\d UTC")
AGO = re.compile(r", by root [\d.]+ s ago")
HOUR = 3600000


class Statuses(http.server.BaseHTTPRequestHandler):
    """/403: that status."""

    def do_GET(self):
        self.send_error(int(self.path.partition("?")[0].strip("/")))

    do_HEAD = do_GET

    def log_message(self, *unused):
        pass


@pytest.fixture(name="url", scope="module")
def fixture_url():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Statuses)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(name="web", scope="module")
def fixture_web(site):
    return site.web()


@pytest.fixture(name="root", scope="module")
def fixture_root(site, web):
    return site.client(web, "root", "admin")


@pytest.fixture(name="ann", scope="module")
def fixture_ann(site, web):
    site.worker(slots=8, recovery_first_test_ms=200)
    site.reader("recovery", recovery_tick_ms=200, recovery_ramp_pause_ms=HOUR // 6)
    return site.client(web)


def why(client, job):
    return client.get(f"/v1/jobs/{job}/why").expect(200).json["why"]


def held(client, *command, **more):
    job = client.submit(*command, **more)
    client.wait_status(job, "BLOCKED")
    return job


def with_input(client, source):
    return held(client, "true", fileInputs=[{"sourceUrl": source, "targetPath": "a"}])


# ---- applications and systems --------------------------------------------------------------------

def test_a_disabled_or_deleted_application_tells_by_whom(root, ann):
    for name in ("off", "gone"):
        root.put(f"/v1/apps/{name}/1", {"command": ["true"]}).expect(201)
        root.post(f"/v1/apps/{name}/1/disable").expect(200)
    jobs = {name: held(ann, appId=name, appVersion="1") for name in ("off", "gone")}
    root.delete("/v1/apps/gone/1").expect(204)
    with explained("application disabled") as row:
        row.said(why(ann, jobs["off"]), cause=["application off version 1 is disabled, by root"],
                 limit=[AGO, LATER], step=["Ask an administrator of this site to enable it."],
                 never=["no longer there", "missing", "sluice app"])
        row.said(why(root, jobs["off"]), step=["Enable it: 'sluice app enable off 1'"])
    with explained("application deleted") as row:
        row.said(why(ann, jobs["gone"]), cause=["application gone version 1 was deleted, by root"],
                 limit=[AGO, LATER], step=["to define it again", f"'sluice cancel {jobs['gone']}'"],
                 never=["disabled"])
        row.said(why(root, jobs["gone"]), step=["'sluice app put gone 1 FILE'"])
    with explained("cancelled while held") as row:
        root.cancel(jobs["off"]).expect(200)
        row.said(why(ann, jobs["off"]), cause=["root cancelled it", "application off version 1"],
                 limit=[re.compile(r"it had been held for [\d.]+ s")], step=["sluice resubmit"])
    ann.cancel(jobs["gone"]).expect(200)


def test_a_disabled_or_deleted_system_tells_by_whom(root, ann):
    for name in ("west", "east"):
        root.put(f"/v1/systems/{name}", {}).expect(201)
        root.post(f"/v1/systems/{name}/disable").expect(200)
    jobs = {name: held(ann, "true", systemId=name) for name in ("west", "east")}
    root.delete("/v1/systems/east").expect(204)
    with explained("system disabled") as row:
        row.said(why(ann, jobs["west"]), cause=["system west is disabled, by root"],
                 limit=[AGO, LATER], step=["Ask an administrator"], never=["no longer there"])
        row.said(why(root, jobs["west"]), step=["'sluice system enable west'"])
    with explained("system deleted") as row:
        row.said(why(ann, jobs["east"]), cause=["system east was deleted, by root"],
                 limit=[AGO, LATER], step=["sluice cancel"], never=["disabled"])
        row.said(why(root, jobs["east"]), step=["'sluice system put east'"])
    for job in jobs.values():
        ann.cancel(job).expect(200)


# ---- limits --------------------------------------------------------------------------------------

@pytest.mark.parametrize("row, system, quota, cause, command", [
    ("system full", {"maxActive": 1}, None, "system SYSTEM has 1 active job,",
     "sluice system put SYSTEM --max-active 2"),
    ("user full on system", {"maxActivePerOwner": 1}, None,
     "user USER, on system SYSTEM, has 1 active job,",
     "sluice system put SYSTEM --max-active-per-owner 2"),
    ("quota of a user", {}, "USER", "user USER has 1 active job,", "sluice quota put 'USER' 2"),
    ("quota of the tenant", {}, "*", "tenant acme has 1 active job,", "sluice quota put '*' 2")])
def test_a_full_limit_is_named_with_its_numbers(site, web, root, ann, row, system, quota, cause,
                                                command):
    # pylint: disable=too-many-arguments
    name = row.replace(" ", "-")
    dan = site.client(web, f"dan-{name}")
    names = {"SYSTEM": name, "USER": f"dan-{name}"}
    for word, real in names.items():
        cause, command = cause.replace(word, real), command.replace(word, real)
        quota = quota and quota.replace(word, real)
    root.put(f"/v1/systems/{name}", system).expect(201)
    if quota:
        root.put(f"/v1/quotas/{quota.replace('*', '%2A')}", {"maxActive": 1}).expect(201)
    runs = dan.submit("sleep", "600", systemId=name)
    dan.wait_status(runs, "RUNNING")
    waits = [held(dan, "true", systemId=name) for _ in range(2)]
    with explained(row) as told:
        told.said(why(dan, waits[1]), cause=[cause], limit=["at most 1 may be"],
                  step=["goes on by itself", "Ask an administrator of this site to allow more"],
                  never=["this user", "this system"])
        if quota == "*":
            told.said(why(dan, waits[1]), limit=["there is 1 job that waits for it before this one"])
        told.said(why(root, waits[0]), step=[f"'{command}'"], never=["before this one"])
    for job in (*waits, runs):
        root.cancel(job).expect(200, 202)
    dan.wait_end(runs)
    if quota:
        root.delete(f"/v1/quotas/{quota.replace('*', '%2A')}").expect(204)


# ---- hosts ---------------------------------------------------------------------------------------

def group_of(client, job):
    return client.get(f"/v1/jobs/{job}/why").expect(200).json["data"]["blocked"]["recovery"]


def test_a_host_that_refuses_is_tried_until_a_day_that_is_told(site, web, ann):
    port = free_port()
    oskar = site.client(web, "oskar", "operator")
    job = with_input(ann, f"http://ann:hush@127.0.0.1:{port}/x?hush")
    with explained("host refuses") as row:
        wait_until(lambda: why(ann, job), lambda: "failed check" in why(ann, job))
        row.said(why(ann, job), cause=[f"input a (http://127.0.0.1:{port}/x)", f"port {port}"],
                 limit=[LATER, "after 7 d", re.compile(r"\d+ failed checks?")],
                 step=[f"if the address is wrong: 'sluice cancel {job}'"], never=["hush"])
        row.said(why(site.client(web, "bob"), job), step=["Ask an operator of this site to cancel it"])
    with explained("released in vain") as row:
        group = group_of(ann, job)
        oskar.post(f"/v1/recovery/{group}/release").expect(200, 202)
        wait_until(lambda: why(ann, job), lambda: "oskar released it" in why(ann, job))
        row.said(why(ann, job), cause=["oskar released it", "the cause is the same"],
                 limit=[re.compile(r"[\d.]+ s ago, and it was held again [\d.]+ s later")],
                 step=["sluice cancel"])
    with explained("given up by an operator") as row:
        oskar.post(f"/v1/recovery/{group_of(ann, job)}/fail").expect(200, 202)
        ann.wait_end(job)
        row.said(why(ann, job), cause=["It failed: a host cannot be reached (given up by oskar"],
                 limit=[re.compile(r"oskar after \d+ s")],
                 step=[f"'sluice resubmit {job}'"])


def test_a_name_without_an_address_is_most_likely_misspelt(ann):
    with explained("host without address") as row:
        job = with_input(ann, "http://data.nowhere.invalid/x")
        row.said(why(ann, job), cause=["data.nowhere.invalid", "That name has no address"],
                 limit=[LATER], step=["sluice cancel"])
    ann.cancel(job).expect(200)


@pytest.mark.parametrize("status, word", [("403", "forbidden"), ("401", "unauthorized")])
def test_refused_credentials_name_the_address(ann, url, status, word):
    with explained(f"input {status}") as row:
        job = with_input(ann, f"{url.replace('//', '//ann:hush@')}/{status}?hush")
        row.said(why(ann, job), cause=[f"input a ({url}/{status})", f"status {status} ({word})"],
                 limit=[LATER, "after 3 d"], never=["hush"],
                 step=["ask without credentials", "credentials are wrong: 'sluice cancel"])
    ann.cancel(job).expect(200)


def test_a_silent_host_is_named_while_it_is_asked(ann):
    with explained("input silent") as row, socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(8)  # it is never answered
        address = f"127.0.0.1:{server.getsockname()[1]}"
        job = ann.submit("true", fileInputs=[{"sourceUrl": f"http://x:hush@{address}/d.csv",
                                              "targetPath": "a"}])
        ann.wait_status(job, "STAGING_INPUTS")
        row.said(why(ann, job), cause=[f"a from http://{address}/d.csv"],
                 limit=["600 s, worker.stage_timeout_ms"], never=["hush"])
        ann.cancel(job)
        ann.wait_end(job)


def test_a_missing_input_is_found_behind_a_host_that_is_down(ann, url):
    with explained("one input missing, one host down") as row:
        job = ann.submit("true", fileInputs=[
            {"sourceUrl": f"http://127.0.0.1:{free_port()}/x", "targetPath": "b"},
            {"sourceUrl": f"{url}/404", "targetPath": "a"}])
        ann.wait_end(job)
        row.said(why(ann, job), cause=[f"input a ({url}/404)"], limit=["status 404"],
                 step=["correct the address"])


def test_a_release_under_way_tells_the_next_batch(ann):
    with explained("release under way") as row, contextlib.ExitStack() as closes:
        port = free_port()
        jobs = [with_input(ann, f"http://127.0.0.1:{port}/404?{at}") for at in range(4)]
        server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Statuses)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        closes.callback(server.server_close)
        closes.callback(server.shutdown)
        wait_until(lambda: why(ann, jobs[3]), lambda: "has cleared" in why(ann, jobs[3]), 60)
        row.said(why(ann, jobs[3]), cause=["this has cleared"],
                 limit=["2 of them before this one", "at most 2 in ", "min"], never=["checked again"])
        for job in jobs[1:]:
            ann.cancel(job)
