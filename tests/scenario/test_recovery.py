# SPDX-License-Identifier: MIT
"""Blocked jobs: one test per cause and interval, a ramp when it clears, leaders and standbys."""

import hashlib
import os
import signal
import socket
import uuid

import pytest

from waiting import wait_until

FAST = {"recovery_tick_ms": 200, "recovery_ramp_pause_ms": 100, "recovery_first_test_ms": 100,
        "recovery_outbox_age_ms": 1000}
EVERY_S = 1
POLICY = f"constant every={EVERY_S}s"


def hexed(text):
    return "0x" + text.encode().hex()


def block(site, jobs, condition, tester, params, policy=POLICY):
    """Blocks PENDING jobs that nobody owns, as a worker would in one transaction each."""
    cause = uuid.uuid4().hex
    digest = hashlib.sha256("\n".join((condition, tester, params, policy)).encode()).hexdigest()
    ids = ",".join("0x" + job.replace("-", "") for job in jobs)
    site.sql(f"INSERT INTO job_recovery (id, tenant, cause_hash, job_condition, tester, params, "
             f"policy, first_at, next_at) VALUES (0x{cause}, 'acme', 0x{digest}, '{condition}', "
             f"'{tester}', {hexed(params)}, '{policy}', UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))")
    site.sql(f"INSERT INTO job_events (job_id, tenant, at, kind, from_status, to_status, "
             f"job_condition, epoch, fence, detail) SELECT id, tenant, UTC_TIMESTAMP(6), "
             f"'blocked', status, 'BLOCKED', '{condition}', epoch, fence, 'by a test' FROM jobs "
             f"WHERE id IN ({ids})")
    site.sql(f"INSERT INTO job_blocked (job_id, recovery_id, tenant, resume_status, blocked_at) "
             f"SELECT id, 0x{cause}, tenant, status, UTC_TIMESTAMP(6) FROM jobs WHERE id IN ({ids})")
    site.sql(f"UPDATE jobs SET status = 'BLOCKED', job_condition = '{condition}', "
             f"reason = 'by a test' WHERE id IN ({ids})")
    return str(uuid.UUID(cause))


def made_tests(site, cause):
    rows = site.sql(f"SELECT tests FROM job_recovery WHERE id = 0x{cause.replace('-', '')}")
    return int(rows[0][0]) if rows else None


def leads(process):
    return process.log_events("recovery.leads")


def wait_leader(*processes, timeout_s=30.0):
    return wait_until("a leader", lambda: next((p for p in processes if leads(p)), None), timeout_s)


@pytest.fixture(name="web")
def fixture_web(fresh):
    return fresh.web()


def app_jobs(site, web, count):
    """Jobs that a worker has blocked because their application is disabled; and who enables it."""
    root, ann = site.client(web, "root", "admin"), site.client(web)
    root.put("/v1/apps/demo/1", {"command": ["true"]}).expect(200, 201)
    root.post("/v1/apps/demo/1/disable").expect(200)
    jobs = [ann.submit(appId="demo", appVersion="1") for _ in range(count)]
    worker = site.worker(recovery_application_unavailable=POLICY, **FAST)
    wait_until("all blocked", lambda: site.count("job_blocked") == count, 60)
    rows = site.sql("SELECT HEX(id) FROM job_recovery")
    assert len(rows) == 1, "one cause, one row"
    return root, ann, jobs, str(uuid.UUID(rows[0][0])), worker


def wait_finished(site, jobs, timeout_s=60.0):
    ids = ",".join("0x" + job.replace("-", "") for job in jobs)
    def finished():
        return site.count("jobs", f"id IN ({ids}) AND status = 'FINISHED'") == len(jobs)
    wait_until(lambda: f"all FINISHED: {site.sql('SELECT status, COUNT(*) FROM jobs GROUP BY 1')}",
               finished, timeout_s)


def test_many_jobs_of_one_cause_cost_one_test_per_interval_and_all_go_on(fresh, web):
    root, _, jobs, cause, _ = app_jobs(fresh, web, 50)
    recovery = fresh.reader("recovery", **FAST)
    wait_until("five tests", lambda: made_tests(fresh, cause) >= 5)

    def tested():
        return recovery.log_events("recovery.tested")
    wait_until("each test to be counted and told once",  # a second is long enough to see both
               lambda: len(tested()) == made_tests(fresh, cause))
    assert {line["result"] for line in tested()} == {"not yet"}
    recovery.kill9()
    recovery = fresh.reader("recovery", name="recovery-b", **FAST)
    wait_leader(recovery)
    root.post("/v1/apps/demo/1/enable").expect(200)
    wait_until("a batch", lambda: recovery.log_events("recovery.released"))
    recovery.kill9()
    recovery = fresh.reader("recovery", name="recovery-c", **FAST)
    wait_finished(fresh, jobs)
    assert fresh.count("job_blocked") == 0
    wait_until("the cause to go", lambda: fresh.count("job_recovery") == 0)
    batches = [line["jobs"] for line in fresh_log(fresh, "recovery.released")]
    assert batches[0] == 1 and max(batches) <= 32, f"not a ramp: {batches}"
    runs = fresh.sql("SELECT job_id, COUNT(*) FROM job_events WHERE to_status = 'FINISHED' "
                     "GROUP BY job_id HAVING COUNT(*) <> 1")
    assert not runs
    fresh.wait_clean()
    assert recovery.stop() == 0


def fresh_log(site, event):
    return [line for process in site.processes if process.program == "sluice-recovery"
            for line in process.log_events(event)]


def test_a_standby_takes_over_when_the_leader_is_killed(fresh, web):
    root, _, jobs, _, _ = app_jobs(fresh, web, 5)
    one = fresh.reader("recovery", name="one", **FAST)
    wait_leader(one)
    two = fresh.reader("recovery", name="two", **FAST)
    assert not leads(two)
    one.kill9()
    wait_leader(two)
    root.post("/v1/apps/demo/1/enable").expect(200)
    wait_finished(fresh, jobs)
    numbers = [leads(p)[0]["fencing"] for p in (one, two)]
    assert numbers[0] < numbers[1]


def test_a_leader_that_was_stopped_writes_nothing_when_it_wakes(fresh, web, monkeypatch):
    root, _, jobs, cause, _ = app_jobs(fresh, web, 5)
    monkeypatch.setenv("SLUICE_FAULT", "recovery.tested=stop@1")
    old = fresh.reader("recovery", name="old", wait=False, **FAST)
    old.wait_log("recovery.tested")
    monkeypatch.delenv("SLUICE_FAULT")
    os.waitid(os.P_PID, old.pid, os.WSTOPPED)
    assert made_tests(fresh, cause) == 0
    root.post("/v1/apps/demo/1/enable").expect(200)
    new = fresh.reader("recovery", name="new", **FAST)
    wait_leader(new)
    wait_finished(fresh, jobs)
    old.signal(signal.SIGCONT)
    # A write of its own is refused; if it was stopped within a transaction, the database has
    # given that up, and it stands by.
    wait_until("the old leader to notice",
               lambda: not old.alive() or old.log_events("recovery.stands_by"))
    assert old.alive()
    assert all(fresh.moves(job)[-1] == "FINISHED" for job in jobs)


def test_patience_ends_after_the_tries_with_the_first_condition(fresh, web):
    ann = fresh.client(web)
    job = ann.submit("true")
    block(fresh, [job], "CONNECTION_FAILED", "tcp_connect", '{"host":"127.0.0.1","port":1}',
          "constant every=200ms tries=3")
    fresh.reader("recovery", **FAST)
    ended = ann.wait_status(job, "FAILED")
    assert ended["condition"] == "CONNECTION_FAILED"
    assert "gave up after 3 tests" in ended["reason"], ended
    assert "127.0.0.1 port 1" in ended["reason"], ended


def test_what_cannot_be_told_never_fails_a_job(fresh, web):
    ann = fresh.client(web)
    job = ann.submit("true")
    cause = block(fresh, [job], "CONNECTION_FAILED", "no_such_tester", "{}",
                  "constant every=100ms tries=1")
    fresh.reader("recovery", **FAST)
    wait_until("some tests", lambda: made_tests(fresh, cause) >= 3)
    assert ann.job(job)["status"] == "BLOCKED"


def test_jobs_of_a_host_that_comes_back_go_on(fresh, web):
    ann = fresh.client(web)
    port = int(web.url.rpartition(":")[2])
    job = ann.submit("true")
    block(fresh, [job], "CONNECTION_FAILED", "tcp_connect",
          f'{{"host":"127.0.0.1","port":{port}}}')
    other = ann.submit("true")
    block(fresh, [other], "QUEUE_UNAVAILABLE", "queue_ready", '{"queue":"default"}')
    fresh.reader("recovery", **FAST)
    fresh.worker()
    wait_finished(fresh, [job, other])


def test_what_should_never_be_is_repaired_and_counted(fresh, web):
    ann = fresh.client(web)
    job = ann.submit("true")
    fresh.audited = False  # the history knows nothing of this
    fresh.sql("UPDATE jobs SET status = 'BLOCKED'")
    recovery = fresh.reader("recovery", **FAST)
    fresh.worker()
    wait_finished(fresh, [job])
    recovery.wait_log("recovery.repaired")
    text = fresh.client(recovery).get("/metrics").body.decode()
    assert 'sluice_reconcile_repairs_total{kind="blocked_without_row"} 1' in text, text


def test_a_job_whose_message_the_broker_lost_runs_all_the_same(fresh, web):
    ann = fresh.client(web)
    job = ann.submit("true")
    wait_until("the message to be confirmed", lambda: fresh.count("outbox") == 0)
    with fresh.amqp() as link:
        assert link.take("sluice.acme.submit.default")
    wait_until("the queue to be empty", lambda: not fresh.messages())
    recovery = fresh.reader("recovery", fleet_lease_ms=500, fleet_beat_ms=100, **FAST)
    fresh.worker()
    recovery.wait_log("recovery.messages.lost")
    wait_finished(fresh, [job])


class SlowHost:
    """A web server that answers 401 when it is let, and no test before."""

    def __init__(self, backlog=None):
        self.socket = socket.create_server(("127.0.0.1", 0), backlog=backlog)
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}/x"

    def wait_test(self, timeout_s=60):
        self.socket.settimeout(timeout_s)
        link, _ = self.socket.accept()
        link.settimeout(60)
        assert link.recv(4096).startswith(b"HEAD ")
        return link

    def refuse(self, link):
        link.sendall(b"HTTP/1.1 401 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        link.close()


@pytest.mark.parametrize("wish", ["release", "fail", "check"])
def test_an_operators_wish_is_obeyed_that_comes_during_a_test(fresh, web, wish):
    olga, host = fresh.client(web, "olga", "operator"), SlowHost()
    job = fresh.client(web).submit("true")
    cause = block(fresh, [job], "AUTHENTICATION_FAILED", "http_auth", f'{{"url":"{host.url}"}}',
                  "constant every=1h elapsed=30d")
    fresh.reader("recovery", recovery_test_timeout_ms=60000, **FAST)
    fresh.worker()
    link = host.wait_test()
    olga.post(f"/v1/recovery/{cause}/{wish}").expect(202)
    host.refuse(link)
    if wish == "check":
        host.refuse(host.wait_test())
        wait_until("both tests to be kept", lambda: made_tests(fresh, cause) == 2)
    else:
        fresh.client(web).wait_status(job, "FINISHED" if wish == "release" else "FAILED")


def test_targets_that_hang_hold_up_nobody_else(fresh, web):
    """Forty conditions of one user, whose host takes connections and answers nothing."""
    hour = "constant every=1h"
    root, ann, bob = (fresh.client(web, name, role) for name, role in
                      (("root", "admin"), ("ann", "user"), ("bob", "user")))
    fresh.add_tenant("globex")
    gus, boss = fresh.client(web, "gus", tenant="globex"), fresh.client(web, "boss", "admin", "globex")
    wait_until("globex to be known", lambda: gus.get("/v1/whoami").status == 200)
    fresh.worker(recovery_application_unavailable=POLICY, **FAST)
    fresh.worker(tenant="globex", name="globex", recovery_application_unavailable=POLICY, **FAST)
    apps = []
    for admin, user in ((root, bob), (boss, gus)):
        admin.put("/v1/apps/demo/1", {"command": ["true"]}).expect(200, 201)
        admin.post("/v1/apps/demo/1/disable").expect(200)
        apps.append((user, user.submit(appId="demo", appVersion="1")))
    wait_until("both blocked", lambda: fresh.count("job_blocked") == 2)
    host = SlowHost(backlog=100)
    root.put_queue("idle", 1, "'idle' IN tags").expect(201)  # no worker serves it
    held = [ann.submit("true", tags=["idle"]) for _ in range(40)]
    causes = [block(fresh, [job], "AUTHENTICATION_FAILED", "http_auth",
                    f'{{"url":"{host.url}/{at}"}}', hour) for at, job in enumerate(held)]
    fresh.reader("recovery", recovery_test_timeout_ms=300000, recovery_reread_ms=500, **FAST)
    links = [host.wait_test()]  # as long as they are held the tests hang
    for _ in range(3):
        links.append(host.wait_test())
    for admin in (root, boss):
        admin.post("/v1/apps/demo/1/enable").expect(200)
    for user, job in apps:
        user.wait_status(job, "FINISHED")
    port = int(web.url.rpartition(":")[2])
    job = bob.submit("true", tags=["idle"])
    block(fresh, [job], "CONNECTION_FAILED", "tcp_connect", f'{{"host":"127.0.0.1","port":{port}}}')
    wait_until("bob's to be tested", lambda: bob.job(job)["status"] == "PENDING")
    olga = fresh.client(web, "olga", "operator")
    olga.post(f"/v1/recovery/{causes[-1]}/fail").expect(202)  # one that waits for its turn
    ann.wait_status(held[-1], "FAILED")
    with pytest.raises(TimeoutError):  # a fifth of ann's
        host.wait_test(2)


def test_tests_go_to_no_address_that_is_not_allowed(fresh, web):
    """Host names and addresses of the process's own machine, which users may write into inputs."""
    ann, host = fresh.client(web), SlowHost()
    port = host.url.split(":")[2].split("/")[0]
    fresh.client(web, "root", "admin").put_queue("idle", 1, "'idle' IN tags").expect(201)
    jobs = [ann.submit("true", tags=["idle"]) for _ in range(4)]
    causes = [
        block(fresh, jobs[:1], "AUTHENTICATION_FAILED", "http_auth", f'{{"url":"{host.url}"}}'),
        block(fresh, jobs[1:2], "AUTHENTICATION_FAILED", "http_auth",
              f'{{"url":"http://localhost:{port}/x"}}'),
        block(fresh, jobs[2:3], "CONNECTION_FAILED", "tcp_connect",
              f'{{"host":"127.0.0.1","port":{port}}}'),
        block(fresh, jobs[3:], "CONNECTION_FAILED", "tcp_connect",
              f'{{"host":"::ffff:127.0.0.1","port":{port}}}'),
    ]
    fresh.reader("recovery", recovery_test_networks="10.0.0.0/8", **FAST)
    for cause in causes:
        wait_until("a test", lambda cause=cause: made_tests(fresh, cause))
    details = [row[0] for row in fresh.sql("SELECT last_detail FROM job_recovery")]
    assert len(details) == 4 and all("recovery.test_networks" in text for text in details), details
    with pytest.raises(TimeoutError):
        host.wait_test(1)


def test_a_leader_fenced_for_one_tenant_goes_on_for_the_others(fresh, web):
    root, ann = fresh.client(web, "root", "admin"), fresh.client(web)
    fresh.add_tenant("globex")
    gus, boss = fresh.client(web, "gus", tenant="globex"), fresh.client(web, "boss", "admin", "globex")
    wait_until("globex to be known", lambda: gus.get("/v1/whoami").status == 200)
    jobs = []
    for admin, user, tenant in ((root, ann, "acme"), (boss, gus, "globex")):
        admin.put("/v1/apps/demo/1", {"command": ["true"]}).expect(200, 201)
        admin.post("/v1/apps/demo/1/disable").expect(200)
        jobs.append(user.submit(appId="demo", appVersion="1"))
        fresh.worker(tenant=tenant, name=tenant, recovery_application_unavailable=POLICY, **FAST)
    wait_until("both blocked", lambda: fresh.count("job_blocked") == 2)
    recovery = fresh.reader("recovery", **FAST)
    wait_until("both to be led", lambda: len(leads(recovery)) == 2)
    fresh.sql("UPDATE recovery_leader SET fencing = fencing + 1 WHERE role = 'acme'")
    wait_until("it to notice", lambda: not recovery.alive() or [
        line for line in recovery.log_events("recovery.fenced") if line.get("tenant") == "acme"])
    assert recovery.alive(), "its other tenants have no leader now"
    for admin in (root, boss):
        admin.post("/v1/apps/demo/1/enable").expect(200)
    gus.wait_status(jobs[1], "FINISHED")
    ann.wait_status(jobs[0], "FINISHED")  # nobody else is there: it leads again, with a new number
    assert [line["tenant"] for line in leads(recovery)].count("globex") == 1
    assert recovery.stop() == 0


def test_cancelling_a_blocked_job_is_final(fresh, web):
    _, ann, jobs, cause, _ = app_jobs(fresh, web, 1)
    fresh.reader("recovery", **FAST)
    ann.cancel(jobs[0]).expect(200)
    assert ann.job(jobs[0])["status"] == "CANCELLED"
    wait_until("the cause to go", lambda: made_tests(fresh, cause) is None)


def host_jobs(site, web, count):
    """Jobs that wait for a port where nobody listens."""
    ann = site.client(web)
    jobs = [ann.submit("true") for _ in range(count)]
    params = '{"host":"127.0.0.1","port":1}'
    return ann, jobs, block(site, jobs, "CONNECTION_FAILED", "tcp_connect", params)


def test_operators_look_check_release_and_fail(fresh, web):
    ann, jobs, cause = host_jobs(fresh, web, 5)
    fresh.sql("UPDATE job_recovery SET policy = 'constant every=1h'")
    fresh.reader("recovery", **FAST)
    olga = fresh.client(web, "olga", "operator")
    wait_until("the first test", lambda: made_tests(fresh, cause) == 1)
    listed = olga.get("/v1/recovery").expect(200).json["recovery"]
    assert [(item["id"], item["blocked"], item["lastResult"]) for item in listed] == [
        (cause, 5, "not yet")]
    assert listed[0]["params"] == {"host": "127.0.0.1", "port": 1}
    page = olga.get(f"/v1/recovery/{cause}?limit=3").expect(200).json
    rest = olga.get(f"/v1/recovery/{cause}?limit=3&cursor={page['nextCursor']}").expect(200).json
    assert [item["id"] for item in page["jobs"] + rest["jobs"]] == jobs
    assert rest["nextCursor"] is None
    ann.post(f"/v1/recovery/{cause}/release").problem(403)
    fresh.client(web, "eve", "admin", "other").get(f"/v1/recovery/{cause}").expect(401, 404)
    assert fresh.run("recovery", "check", cause, client=olga).returncode == 0
    wait_until("the second test", lambda: made_tests(fresh, cause) == 2)
    history = olga.get(f"/v1/recovery/{cause}").expect(200).json["history"]
    assert [(item["test"], item["result"]) for item in history] == [(2, "not yet"), (1, "not yet")]
    shown = fresh.run("recovery", "ls", "-o", "json", client=olga)
    assert shown.returncode == 0 and '"not yet"' in shown.stdout, shown
    fresh.worker()
    olga.post(f"/v1/recovery/{cause}/release").expect(202)
    wait_finished(fresh, jobs)
    wait_until("the cause to go", lambda: made_tests(fresh, cause) is None)
    assert fresh.count("recovery_tests") == 0


def test_groups_come_in_pages_and_the_command_shows_all(fresh):
    web = fresh.web(limits_page_max=2)
    olga = fresh.client(web, "olga", "operator")
    groups = [block(fresh, [olga.submit("true")], "CONNECTION_FAILED", "tcp_connect",
                    f'{{"host":"127.0.0.1","port":{port}}}') for port in range(1, 6)]
    pages = [olga.get("/v1/recovery").expect(200).json]
    while pages[-1]["nextCursor"]:
        pages.append(olga.get(f"/v1/recovery?cursor={pages[-1]['nextCursor']}").expect(200).json)
    assert [len(page["recovery"]) for page in pages] == [2, 2, 1]
    assert [item["id"] for page in pages for item in page["recovery"]] == sorted(groups)
    assert all(item["blocked"] == 1 for page in pages for item in page["recovery"])
    olga.get("/v1/recovery?limit=3").problem(400)
    cursor = pages[0]["nextCursor"]
    olga.get(f"/v1/recovery/{groups[0]}?cursor={cursor}").problem(400)
    eve = fresh.stranger(web)
    eve.get(f"/v1/recovery?cursor={cursor}").problem(400)
    assert eve.get("/v1/recovery").expect(200).json == {"recovery": [], "nextCursor": None}
    shown = fresh.run("recovery", "ls", "-o", "name", client=olga)
    assert shown.stdout.split() == sorted(groups), shown


def test_an_operator_gives_a_group_up(fresh, web):
    ann, jobs, cause = host_jobs(fresh, web, 3)
    fresh.reader("recovery", **FAST)
    olga = fresh.client(web, "olga", "operator")
    wait_until("the first test", lambda: made_tests(fresh, cause))
    told = fresh.run("recovery", "fail", cause, client=olga)
    assert told.returncode == 0, told
    for job in jobs:
        ended = ann.wait_status(job, "FAILED")
        assert ended["condition"] == "CONNECTION_FAILED"
        assert "olga" in ended["reason"], ended


@pytest.mark.parametrize("point", ["recovery.blocked_seen", "recovery.tested",
                                   "recovery.release_committed", "recovery.published",
                                   "recovery.confirmed"])
def test_recovery_killed_at_any_point_loses_and_doubles_nothing(fresh, web, monkeypatch, point):
    root, _, jobs, _, _ = app_jobs(fresh, web, 5)
    root.post("/v1/apps/demo/1/enable").expect(200)
    monkeypatch.setenv("SLUICE_FAULT", f"{point}=kill@2")
    victim = fresh.reader("recovery", name="victim", wait=False, **FAST)
    assert victim.wait() == -signal.SIGKILL
    monkeypatch.delenv("SLUICE_FAULT")
    fresh.reader("recovery", **FAST)
    wait_finished(fresh, jobs)
    doubled = fresh.sql("SELECT job_id FROM job_events WHERE to_status = 'RUNNING' "
                        "GROUP BY job_id HAVING COUNT(*) <> 1")
    assert not doubled
    fresh.wait_clean()
