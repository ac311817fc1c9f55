# SPDX-License-Identifier: MIT
"""Recovery dies or stands still at each of its points: its jobs are released once, by one."""

import signal

import pytest

from injection import injected
from matrix import RECOVERY_POINTS
from waiting import wait_until

JOBS, BATCH = 5, 100
FAST = {"recovery_tick_ms": 200, "recovery_ramp_pause_ms": 100, "recovery_first_test_ms": 100,
        "recovery_outbox_age_ms": 1000}
POLICY = {"recovery_application_unavailable": "constant every=500ms"}
RAMP_MAX = 256  # as the configuration has it


class Held:
    """Jobs that a worker has blocked because their application is disabled."""

    def __init__(self, site, count=JOBS):
        self.site, web = site, site.web()
        self.root, ann = site.client(web, "root", "admin"), site.client(web)
        self.root.put("/v1/apps/demo/1", {"command": ["true"]}).expect(201)
        self.root.post("/v1/apps/demo/1/disable").expect(200)
        for _ in range(count // BATCH):
            job = {"name": "held", "appId": "demo", "appVersion": "1"}
            ann.post("/v1/jobs:batch", {"jobs": [job] * BATCH}).expect(200)
        for _ in range(count % BATCH):
            ann.submit(appId="demo", appVersion="1")
        site.worker(**FAST, **POLICY)
        wait_until("all blocked", lambda: site.count("job_blocked") == count, 120)

    def enable(self):
        self.root.post("/v1/apps/demo/1/enable").expect(200)

    def wait_finished(self, timeout_s=120.0):
        wait_until(lambda: str(self.site.sql("SELECT status, COUNT(*) FROM jobs GROUP BY 1")),
                   lambda: not self.site.count("jobs", "status <> 'FINISHED'"), timeout_s)
        twice = self.site.sql("SELECT job_id FROM job_events WHERE to_status = 'RUNNING' "
                              "GROUP BY job_id HAVING COUNT(*) <> 1")
        assert not twice
        self.site.wait_clean()


def leads(reader):
    return reader.log_events("recovery.leads")


@pytest.mark.parametrize("key", RECOVERY_POINTS)
def test_recovery_killed_at_any_point_and_started_again(fresh, key):
    with injected(f"F-3 {key}", fresh) as hit:
        held = Held(fresh)
        held.enable()
        victim = fresh.reader("recovery", wait=False, fault=f"{RECOVERY_POINTS[key][0]}=kill@2",
                              **FAST)
        assert victim.wait() == -signal.SIGKILL
        del victim.env["SLUICE_FAULT"]
        hit.healed()
        victim.start()
        held.wait_finished()


@pytest.mark.parametrize("key", RECOVERY_POINTS)
def test_recovery_stopped_at_any_point_while_another_takes_over(fresh, key):
    with injected(f"F-36 {key}", fresh) as hit:
        held = Held(fresh)
        held.enable()
        old = fresh.reader("recovery", "old", wait=False, **FAST,
                           fault=f"{RECOVERY_POINTS[key][0]}=stop@1")
        old.wait_log("fault.injected")
        new = fresh.reader("recovery", "new", **FAST)
        hit.healed()
        wait_until("the other to lead", lambda: leads(new), 30)
        held.wait_finished()
        hit.recovered()
        old.signal(signal.SIGCONT)
        # What it still writes is refused; if the database has given its transaction up, or
        # it had nothing left to write, it stands by.
        wait_until("the old leader to notice",
                   lambda: not old.alive() or old.log_events("recovery.stands_by"), 30)
        assert old.alive()
        assert leads(old)[0]["fencing"] < leads(new)[0]["fencing"]
        held.wait_finished()


def test_a_thousand_jobs_of_one_cause_are_released_with_a_ramp(fresh):
    with injected("F-33", fresh) as hit:
        held = Held(fresh, 1000)
        first = fresh.reader("recovery", "first", **FAST)
        wait_until("a test", lambda: first.log_events("recovery.tested"))
        held.enable()
        hit.healed()
        wait_until("some to go", lambda: fresh.count("job_blocked") < 950, 30)
        first.kill9()
        second = fresh.reader("recovery", "second", **FAST)
        held.wait_finished(240)
        batches = [line["jobs"] for reader in (first, second)
                   for line in reader.log_events("recovery.released")]
        # One that was committed when its reader died was not told.
        assert sum(batches) >= 1000 - RAMP_MAX, batches
        assert batches[0] == 1 and max(batches) <= RAMP_MAX, batches
