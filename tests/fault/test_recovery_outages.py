# SPDX-License-Identifier: MIT
"""Recovery while the broker or the database is away: it waits, leads again and loses nothing."""

import pytest

from injection import injected
from waiting import wait_until

JOBS = 40
FAST = {"recovery_tick_ms": 200, "recovery_ramp_pause_ms": 300, "recovery_first_test_ms": 100,
        "recovery_outbox_age_ms": 1000}
POLICY = {"recovery_application_unavailable": "constant every=1s"}


class Held:
    """Jobs that a worker has blocked, with a leader and a standby."""

    def __init__(self, site):
        self.site, self.web = site, site.web()
        self.root, ann = site.client(self.web, "root", "admin"), site.client(self.web)
        self.root.put("/v1/apps/demo/1", {"command": ["true"]}).expect(200, 201)
        self.root.post("/v1/apps/demo/1/disable").expect(200)
        for _ in range(JOBS):
            ann.submit(appId="demo", appVersion="1")
        self.worker = site.worker(**FAST, **POLICY)
        wait_until("all blocked", lambda: site.count("job_blocked") == JOBS, 60)
        self.readers = [site.reader("recovery", name=name, **FAST) for name in ("one", "two")]
        wait_until("a test", lambda: self.told("recovery.tested"))

    def told(self, event):
        return [line for reader in self.readers for line in reader.log_events(event)]

    def enable(self):
        self.root.post("/v1/apps/demo/1/enable").expect(200)

    def finish(self):
        wait_until(lambda: str(self.site.sql("SELECT status, COUNT(*) FROM jobs GROUP BY 1")),
                   lambda: self.site.count("jobs", "status = 'FINISHED'") == JOBS, 180, 0.5)
        doubled = self.site.sql("SELECT job_id FROM job_events WHERE to_status = 'RUNNING' "
                                "GROUP BY job_id HAVING COUNT(*) <> 1")
        assert not doubled
        self.site.wait_clean()
        assert all(reader.alive() for reader in self.readers)
        assert [reader.stop() for reader in self.readers] == [0, 0]


def kill_and_start(server):
    server.kill9()
    server.start()
    server.wait_ready()


@pytest.mark.parametrize("family, which", [("F-4", "rabbitmq"), ("F-5", "mariadb")])
def test_a_server_that_dies_while_jobs_wait(own, servers, family, which):
    with injected(f"{family} blocked", own) as hit:
        held = Held(own)
        if which == "rabbitmq":
            servers.rabbitmq.settle()
        kill_and_start(getattr(servers, which))
        hit.healed()
        held.web.wait_ready()
        held.enable()
        held.finish()


@pytest.mark.parametrize("family, which", [("F-4", "rabbitmq"), ("F-5", "mariadb")])
def test_a_server_that_dies_in_the_middle_of_a_release(own, servers, family, which):
    with injected(f"{family} release", own) as hit:
        held = Held(own)
        if which == "rabbitmq":
            servers.rabbitmq.settle()
        held.enable()
        wait_until("a batch", lambda: held.told("recovery.released"))
        kill_and_start(getattr(servers, which))
        hit.healed()
        held.finish()
