# SPDX-License-Identifier: MIT
"""Systems, applications and quotas: what is not available holds its jobs, and says so."""

import http.server
import json
import threading
import urllib.parse

import pytest

from jobs import Traces
from servers import free_port
from waiting import wait_until


@pytest.fixture(scope="module")
def web(site):
    return site.web()


@pytest.fixture(scope="module")
def workers(site):
    return [site.worker(name="one", slots=4), site.worker(name="two", slots=4)]


@pytest.fixture(scope="module")
def root(site, web):
    return site.client(web, "root", "admin")


@pytest.fixture(scope="module")
def ann(site, web, workers):
    return site.client(web, "ann")


def cause_of(site, job):
    """Condition, tester and parameters of what a BLOCKED job waits for, and its resume state."""
    rows = site.sql(
        "SELECT r.job_condition, r.tester, r.params, b.resume_status, HEX(r.id) FROM job_blocked b "
        f"JOIN job_recovery r ON r.id = b.recovery_id WHERE b.job_id = 0x{job.replace('-', '')}")
    assert len(rows) == 1, rows
    condition, tester, params, resume, cause = rows[0]
    return condition, tester, json.loads(params), resume, cause


def wait_blocked(site, client, job, condition):
    seen = client.wait_status(job, "BLOCKED")
    assert seen["condition"] == condition and seen["reason"] and seen["worker"] is None, seen
    assert site.moves(job)[-1] == "BLOCKED"
    return cause_of(site, job)


# ---- what an administrator sees

def test_a_system_is_made_changed_and_deleted(root, site, web):
    path = "/v1/systems/east"
    made = root.put(path, {"maxActive": 5, "description": "the east hall"}).expect(201)
    assert made.headers["Location"] == path
    assert made.json["kind"] == "local" and made.json["enabled"] is True
    assert made.json["maxActivePerOwner"] is None
    root.put(path, {}, {"If-None-Match": "*"}).problem(412)
    root.put(path, {}, {"If-Match": '"7"'}).problem(412)
    changed = root.put(path, {"maxActivePerOwner": 2}, {"If-Match": made.headers["ETag"]})
    assert changed.expect(200).json["maxActive"] is None and changed.json["version"] == 2
    assert root.post(path + "/disable").expect(200).json["enabled"] is False
    assert root.put(path, {}).expect(200).json["enabled"] is False  # a change does not enable it
    assert root.post(path + "/enable").expect(200).json["enabled"] is True
    assert "east" in [item["id"] for item in root.get("/v1/systems").expect(200).json["systems"]]
    bob = site.client(web, "bob")
    bob.get(path).expect(200)
    bob.put(path, {}).problem(403)
    bob.post(path + "/disable").problem(403)
    root.delete(path).expect(204)
    root.get(path).problem(404)


@pytest.mark.parametrize("body,pointer", [
    ({"kind": "slurm"}, "/kind"), ({"maxActive": 0}, "/maxActive"), ({"maxActive": "5"}, "/maxActive"),
    ({"maxActivePerOwner": -1}, "/maxActivePerOwner"), ({"enabled": True}, "/enabled"),
    ({"description": "x" * 401}, "/description")])
def test_a_system_that_makes_no_sense_is_refused(root, body, pointer):
    assert root.put("/v1/systems/odd", body).problem(400)["errors"][0]["pointer"] == pointer


def test_a_quota_is_made_changed_and_deleted(root, site, web):
    for owner in ("*", "eve", "eve%40example.org"):
        made = root.put(f"/v1/quotas/{owner}", {"maxActive": 50}).expect(201)
        assert made.json["active"] == 0
        root.put(f"/v1/quotas/{owner}", {"maxActive": 60}).expect(200)
    listed = root.get("/v1/quotas").expect(200).json["quotas"]
    assert {item["owner"]: item["maxActive"] for item in listed} == {
        "*": 60, "eve": 60, "eve@example.org": 60}
    for body in ({}, {"maxActive": 0}, {"maxActive": None}, {"maxActive": 1, "x": 1}):
        root.put("/v1/quotas/eve", body).problem(400)
    root.put(f"/v1/quotas/{'x' * 129}", {"maxActive": 1}).problem(400)
    site.client(web, "bob").put("/v1/quotas/bob", {"maxActive": 1000}).problem(403)
    for owner in ("*", "eve", "eve%40example.org"):
        root.delete(f"/v1/quotas/{owner}").expect(204)
    root.delete("/v1/quotas/eve").problem(404)


def test_the_command_line_does_the_same(site, root):
    def sluice(*args):
        done = site.run(*args, client=root)
        assert done.returncode == 0, done.stderr
        return done.stdout
    sluice("system", "put", "cli", "--max-active", "3", "--description", "by hand")
    sluice("system", "put", "cli", "--max-active-per-owner", "1")
    seen = json.loads(sluice("system", "get", "cli", "-o", "json"))
    assert (seen["maxActive"], seen["maxActivePerOwner"]) == (3, 1)
    assert "by hand" in sluice("systems")
    assert json.loads(sluice("system", "disable", "cli", "-o", "json"))["enabled"] is False
    sluice("system", "rm", "cli")
    sluice("quota", "put", "*", "9")
    assert "*" in sluice("quotas", "-o", "name")
    assert json.loads(sluice("quota", "get", "*", "-o", "json"))["maxActive"] == 9
    sluice("quota", "rm", "*")
    assert site.run("quota", "put", "eve", "many", client=root).returncode == 2


# ---- what holds a job

def test_an_unknown_system_is_refused(ann):
    refused = ann.post("/v1/jobs", {"name": "x", "command": ["true"], "systemId": "nowhere"})
    assert refused.problem(404)["errors"][0]["pointer"] == "/systemId"


def test_a_disabled_application_holds_its_jobs(site, root, ann):
    root.put("/v1/apps/held/1", {"command": ["true"]}).expect(201)
    root.post("/v1/apps/held/1/disable").expect(200)
    jobs = [ann.submit(appId="held", appVersion="1") for _ in range(3)]
    causes = [wait_blocked(site, ann, job, "APPLICATION_UNAVAILABLE") for job in jobs]
    assert causes[0][:4] == ("APPLICATION_UNAVAILABLE", "app_enabled",
                             {"app": "held", "version": "1"}, "PROCESSING_INPUTS")
    assert len({cause[4] for cause in causes}) == 1  # one cause, however many jobs
    site.wait_clean()
    assert ann.cancel(jobs[0]).expect(200).json["status"] == "CANCELLED"
    assert site.count("job_blocked", f"job_id = 0x{jobs[0].replace('-', '')}") == 0


def test_a_disabled_system_holds_its_jobs_and_so_does_one_that_is_gone(site, root, ann):
    root.put("/v1/systems/south", {}).expect(201)
    job = ann.submit("true", systemId="south")
    assert ann.wait_end(job)["status"] == "FINISHED"
    root.post("/v1/systems/south/disable").expect(200)
    job = ann.submit("true", systemId="south")
    cause = wait_blocked(site, ann, job, "SYSTEM_UNAVAILABLE")
    assert cause[:3] == ("SYSTEM_UNAVAILABLE", "system_enabled", {"system": "south"})
    root.delete("/v1/systems/south").expect(204)
    ann.post("/v1/jobs", {"name": "x", "command": ["true"], "systemId": "south"}).problem(404)


def test_a_host_that_is_away_holds_all_jobs_by_one_cause(site, ann):
    port = free_port()
    jobs = [ann.submit("cat", "in", fileInputs=[
        {"sourceUrl": f"http://127.0.0.1:{port}/{name}", "targetPath": "in"}])
        for name in ("a", "b?secret=1")]
    causes = [wait_blocked(site, ann, job, "CONNECTION_FAILED") for job in jobs]
    assert causes[0][:4] == ("CONNECTION_FAILED", "tcp_connect",
                             {"host": "127.0.0.1", "port": port}, "STAGING_INPUTS")
    assert causes[0][4] == causes[1][4]
    job = ann.submit("cat", "in", fileInputs=[
        {"sourceUrl": "http://no-such-host.invalid/a", "targetPath": "in"}])
    assert wait_blocked(site, ann, job, "CONNECTION_FAILED")[2] == {
        "host": "no-such-host.invalid", "port": 80}


class Guarded(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path.startswith("/away"):
            self.send_response(302)
            self.send_header("Location", self.server.elsewhere)
            self.end_headers()
        else:
            self.send_error(int(self.path[1:4]))

    def log_message(self, *unused):
        pass


@pytest.fixture(scope="module")
def guarded():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Guarded)
    server.elsewhere = f"http://127.0.0.1:{free_port()}/x"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("status", [401, 403])
def test_refused_credentials_hold_the_job_and_are_not_kept(site, ann, guarded, status):
    address = f"127.0.0.1:{guarded.server_port}"
    job = ann.submit("cat", "in", fileInputs=[
        {"sourceUrl": f"http://me:secret@{address}/{status}/data?token=secret", "targetPath": "in"}])
    cause = wait_blocked(site, ann, job, "AUTHENTICATION_FAILED")
    assert cause[:3] == ("AUTHENTICATION_FAILED", "http_auth",
                         {"url": f"http://{address}/{status}/data"})
    assert "secret" not in ann.job(job)["reason"]


@pytest.mark.parametrize("status", [404, 410])
def test_an_input_that_is_not_there_fails_the_job(ann, guarded, status):
    job = ann.submit("cat", "in", fileInputs=[
        {"sourceUrl": f"http://127.0.0.1:{guarded.server_port}/{status}", "targetPath": "in"}])
    ended = ann.wait_end(job)
    assert (ended["status"], ended["condition"]) == ("FAILED", "INPUT_FAILED")


def test_the_host_that_a_redirection_names_is_the_one_that_is_away(site, ann, guarded):
    job = ann.submit("cat", "in", fileInputs=[
        {"sourceUrl": f"http://127.0.0.1:{guarded.server_port}/away", "targetPath": "in"}])
    cause = wait_blocked(site, ann, job, "CONNECTION_FAILED")
    assert f":{cause[2]['port']}/x" in guarded.elsewhere


# ---- quotas

def test_a_quota_of_two_lets_two_of_six_jobs_run(site, root, web, workers, tmp_path):
    dan, traces = site.client(web, "dan"), Traces(str(tmp_path))
    root.put("/v1/quotas/dan", {"maxActive": 2}).expect(201)
    jobs = [dan.submit(*traces.command(f"q{at}")) for at in range(6)]

    def states():
        return sorted(dan.job(job)["status"] for job in jobs)
    wait_until(lambda: f"two to run, four held: {states()}",
               lambda: states() == ["BLOCKED"] * 4 + ["RUNNING"] * 2, 20)
    assert root.get("/v1/quotas/dan").json["active"] == 2
    held = [job for job in jobs if dan.job(job)["status"] == "BLOCKED"]
    cause = wait_blocked(site, dan, held[0], "QUOTA_EXCEEDED")
    assert cause[:4] == ("QUOTA_EXCEEDED", "quota", {"owner": "dan", "scope": "owner"},
                         "PROCESSING_INPUTS")
    other = site.client(web, "fay").submit("true")
    assert site.client(web, "fay").wait_end(other)["status"] == "FINISHED"
    traces.open()
    for job in set(jobs) - set(held):
        assert dan.wait_end(job)["status"] == "FINISHED"
    root.delete("/v1/quotas/dan").expect(204)
    for job in held:
        dan.cancel(job).expect(200)


def test_a_system_limits_its_jobs_and_those_of_one_user(site, root, web, workers, tmp_path):
    gus, hal, traces = site.client(web, "gus"), site.client(web, "hal"), Traces(str(tmp_path))
    root.put("/v1/systems/small", {"maxActive": 2, "maxActivePerOwner": 1}).expect(201)
    first = gus.submit(*traces.command("first"), systemId="small")
    gus.wait_status(first, "RUNNING")
    second = gus.submit("true", systemId="small")
    assert wait_blocked(site, gus, second, "QUOTA_EXCEEDED")[2] == {
        "owner": "gus", "scope": "system_owner", "system": "small"}
    third = hal.submit(*traces.command("third"), systemId="small")
    hal.wait_status(third, "RUNNING")
    fourth = site.client(web, "ira").submit("true", systemId="small")
    assert wait_blocked(site, root, fourth, "QUOTA_EXCEEDED")[2] == {
        "scope": "system", "system": "small"}
    traces.open()
    for job in (first, third):
        assert root.wait_end(job)["status"] == "FINISHED"


def all_pages(client, path, member):
    """What the pages of a list show, page by page."""
    pages = [client.get(path).expect(200).json]
    while pages[-1]["nextCursor"]:
        pages.append(client.get(f"{path}?cursor={pages[-1]['nextCursor']}").expect(200).json)
    return [page[member] for page in pages]


def test_lists_by_name_come_in_pages_and_the_commands_show_all(fresh):
    web = fresh.web(limits_page_max=2)
    root = fresh.client(web, "root", "admin")
    eve = fresh.stranger(web)
    apps = [(app, version) for app in ("a", "b.c") for version in ("1", "1.0", "2")]
    owners = ["\x01", "*", "a b", "ann", "\u00fc" * 60]
    for app, version in apps:
        root.put(f"/v1/apps/{app}/{version}", {"command": ["true"]}).expect(201)
    for name in ("s1", "s2", "s3"):
        root.put(f"/v1/systems/{name}", {"kind": "local"}).expect(201)
    for owner in owners:
        root.put(f"/v1/quotas/{urllib.parse.quote(owner)}", {"maxActive": 3}).expect(201)
    found = all_pages(root, "/v1/apps", "apps")
    assert [len(page) for page in found] == [2, 2, 2]
    assert [(item["id"], item["version"]) for page in found for item in page] == apps
    found = all_pages(root, "/v1/systems", "systems")
    assert [[item["id"] for item in page] for page in found] == [["s1", "s2"], ["s3"]]
    found = all_pages(root, "/v1/quotas", "quotas")
    assert [[item["owner"] for item in page] for page in found] == [owners[:2], owners[2:4], owners[4:]]
    cursor = root.get("/v1/systems?limit=1").expect(200).json["nextCursor"]
    root.get(f"/v1/quotas?cursor={cursor}").problem(400)
    eve.get(f"/v1/systems?cursor={cursor}").problem(400)
    for bad in ("", ".", cursor[:-1], cursor[:-2] + "34", f"{cursor}00", cursor.partition(".")[0]):
        root.get(f"/v1/systems?cursor={bad}").problem(400)
    root.get("/v1/systems?limit=3").problem(400)
    for command, member, names in (("apps", "id", [app for app, _ in apps]), ("quotas", "owner", owners),
                                   ("systems", "id", ["s1", "s2", "s3"])):
        shown = fresh.run(command, "-o", "json", client=root)
        assert [item[member] for item in json.loads(shown.stdout)] == names, shown
