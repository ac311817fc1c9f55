# SPDX-License-Identifier: MIT
"""Held jobs go on by themselves: application, system, host, credentials, and room in a quota."""

import http.server
import threading

import pytest

from servers import free_port
from waiting import wait_until

OFTEN = "constant every=500ms"
CAUSES = ("connection_failed", "authentication_failed")
RARELY = "constant every=1h"  # so that only what has changed can tell that jobs may go on
RARE_CAUSES = ("quota_exceeded", "system_unavailable", "application_unavailable")

# $1 = folder. Tells how many run at this moment, itself included.
COUNTED = 'touch "$1/$SLUICE_JOB_ID"; ls "$1" | wc -l; sleep 0.4; rm "$1/$SLUICE_JOB_ID"'


@pytest.fixture(scope="module")
def web(site):
    return site.web()


@pytest.fixture(scope="module")
def workers(site):
    policies = {f"recovery_{cause}": OFTEN for cause in CAUSES}
    policies |= {f"recovery_{cause}": RARELY for cause in RARE_CAUSES}
    policies |= {"recovery_first_test_ms": 100}
    return [site.worker(name=name, slots=4, **policies) for name in ("one", "two")]


@pytest.fixture(scope="module")
def recovery(site):
    return site.reader("recovery", recovery_tick_ms=200, recovery_ramp_pause_ms=100,
                       recovery_outbox_age_ms=1000)


@pytest.fixture(scope="module")
def root(site, web):
    return site.client(web, "root", "admin")


@pytest.fixture(scope="module")
def ann(site, web, workers, recovery):
    return site.client(web, "ann")


def wait_finished(ann, jobs, timeout_s=30):
    for job in jobs:
        ended = ann.wait_end(job, timeout_s)
        assert ended["status"] == "FINISHED" and ended["attempts"] == 1, ended


def most_at_once(site, jobs):
    """The highest number of these jobs that were RUNNING at the same time, by their history."""
    ids = ",".join("0x" + job.replace("-", "") for job in jobs)
    now = most = 0
    for before, after in site.sql(f"SELECT COALESCE(from_status, ''), to_status FROM job_events "
                                  f"WHERE job_id IN ({ids}) AND NOT from_status <=> to_status "
                                  f"ORDER BY seq"):
        now += (after == "RUNNING") - (before == "RUNNING")
        most = max(most, now)
    return most


def wait_tested(site):
    """Every cause was tested once and is not due again for long."""
    wait_until("the first test", lambda: site.count("job_recovery", "next_at < UTC_TIMESTAMP(6) + "
                                                    "INTERVAL 10 MINUTE") == 0)


def test_jobs_of_a_disabled_application_go_on_when_it_is_enabled(site, root, ann):
    root.put("/v1/apps/tool/1", {"command": ["true"]}).expect(201)
    root.post("/v1/apps/tool/1/disable").expect(200)
    jobs = [ann.submit(appId="tool", appVersion="1") for _ in range(10)]
    for job in jobs:
        ann.wait_status(job, "BLOCKED")
    wait_tested(site)
    root.post("/v1/apps/tool/1/enable").expect(200)
    wait_finished(ann, jobs)
    assert site.moves(jobs[0])[:5] == ["PENDING", "PROCESSING_INPUTS", "BLOCKED",
                                       "PROCESSING_INPUTS", "STAGING_INPUTS"]


def test_jobs_of_a_disabled_system_go_on_when_it_is_enabled(site, root, ann):
    root.put("/v1/systems/west", {}).expect(201)
    root.post("/v1/systems/west/disable").expect(200)
    jobs = [ann.submit("true", systemId="west") for _ in range(3)]
    for job in jobs:
        ann.wait_status(job, "BLOCKED")
    wait_tested(site)
    root.post("/v1/systems/west/enable").expect(200)
    wait_finished(ann, jobs)


class Files(http.server.BaseHTTPRequestHandler):
    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        if not self.server.open:
            self.send_error(401)
            return
        self.send_response(200)
        self.send_header("Content-Length", "6")
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(b"hello\n")

    def log_message(self, *unused):
        pass


def serve(port, is_open=True):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Files)
    server.open = is_open
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def test_jobs_go_on_when_the_host_of_their_input_is_back(site, ann):
    port = free_port()
    jobs = [ann.submit("cat", "in", fileInputs=[
        {"sourceUrl": f"http://127.0.0.1:{port}/{at}", "targetPath": "in"}]) for at in range(4)]
    for job in jobs:
        assert ann.wait_status(job, "BLOCKED")["condition"] == "CONNECTION_FAILED"
    assert site.count("job_recovery", "tester = 'tcp_connect'") == 1
    server = serve(port)
    try:
        wait_finished(ann, jobs)
    finally:
        server.shutdown()
        server.server_close()
    assert ann.output(jobs[0]) == b"hello\n"


def test_a_job_goes_on_when_its_credentials_are_taken(ann):
    server = serve(0, is_open=False)
    try:
        job = ann.submit("cat", "in", fileInputs=[
            {"sourceUrl": f"http://127.0.0.1:{server.server_port}/a", "targetPath": "in"}])
        assert ann.wait_status(job, "BLOCKED")["condition"] == "AUTHENTICATION_FAILED"
        server.open = True
        wait_finished(ann, [job])
    finally:
        server.shutdown()
        server.server_close()


def test_a_quota_of_two_is_never_passed_and_all_jobs_run(site, root, web, ann, tmp_path):
    root.put("/v1/quotas/dan", {"maxActive": 2}).expect(201)
    dan = site.client(web, "dan")
    request = {"name": "test", "command": ["sh", "-c", COUNTED, "job", str(tmp_path)]}
    items = dan.post("/v1/jobs:batch", {"jobs": [request] * 6}).expect(200).json["items"]
    jobs = [item["job"]["id"] for item in items]
    wait_finished(dan, jobs)
    assert most_at_once(site, jobs) <= 2
    assert {int(dan.output(job)) for job in jobs} <= {1, 2}
    assert any("BLOCKED" in site.moves(job) for job in jobs)
    wait_until("the cause to go", lambda: site.count("job_recovery", "tester = 'quota'") == 0)


def test_a_higher_quota_lets_more_jobs_run(site, root, web, ann, tmp_path):
    root.put("/v1/quotas/eve", {"maxActive": 1}).expect(201)
    eve = site.client(web, "eve")
    jobs = [eve.submit("sh", "-c", COUNTED, "job", str(tmp_path)) for _ in range(4)]
    eve.wait_end(jobs[0])
    root.delete("/v1/quotas/eve").expect(204)
    wait_finished(eve, jobs)
