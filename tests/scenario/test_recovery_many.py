# SPDX-License-Identifier: MIT
"""Thousands of jobs behind one cause: one test per interval, a ramp, and kills on the way."""

import datetime

from waiting import wait_until

JOBS, AT_ONCE = 5000, 1000
FAST = {"recovery_tick_ms": 200, "recovery_ramp_pause_ms": 100, "recovery_first_test_ms": 100}
POLICY = {"recovery_application_unavailable": "constant every=1s"}


def resident_mib(process):
    with open(f"/proc/{process.pid}/status", encoding="ascii") as status:
        line = next(line for line in status if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def lines(processes, event):
    return [line for process in processes for line in process.log_events(event)]


def test_five_thousand_jobs_of_one_disabled_application(fresh):
    web = fresh.web()
    root, ann = fresh.client(web, "root", "admin"), fresh.client(web)
    root.put("/v1/apps/demo/1", {"command": ["true"]}).expect(200, 201)
    root.post("/v1/apps/demo/1/disable").expect(200)
    request = {"name": "one of many", "appId": "demo", "appVersion": "1"}
    for _ in range(JOBS // AT_ONCE):
        ann.post("/v1/jobs:batch", {"jobs": [request] * AT_ONCE}).expect(200, 201)
    recovery = [fresh.reader("recovery", name="recovery-1", **FAST)]
    fresh.worker(slots=16, **FAST, **POLICY)
    wait_until(lambda: f"all blocked, {fresh.count('job_blocked')} are",
               lambda: fresh.count("job_blocked") == JOBS, 240, 0.5)
    assert fresh.count("job_recovery") == 1
    asked = len(lines(recovery, "recovery.tested"))
    wait_until("six more tests", lambda: len(lines(recovery, "recovery.tested")) >= asked + 6)
    first, last = (datetime.datetime.fromisoformat(line["time"].rstrip("Z")) for line in
                   lines(recovery, "recovery.tested")[asked:asked + 6:5])
    per_test = (last - first).total_seconds() / 5
    assert per_test > 0.7, f"a test every {per_test:.2f} s, not every second"
    for name in ("recovery-2", "recovery-3"):
        recovery[-1].kill9()
        recovery.append(fresh.reader("recovery", name=name, **FAST))
        if name == "recovery-2":
            root.post("/v1/apps/demo/1/enable").expect(200)
            wait_until("a quarter to go on",
                       lambda: fresh.count("job_blocked") < JOBS * 3 // 4, 120)
    wait_until(lambda: f"the end: {fresh.sql('SELECT status, COUNT(*) FROM jobs GROUP BY 1')}",
               lambda: fresh.count("jobs", "status = 'FINISHED'") == JOBS, 240, 0.5)
    batches = [line["jobs"] for line in lines(recovery, "recovery.released")]
    assert batches[0] == 1 and max(batches) <= 256, batches
    for process in recovery:  # one that is killed may have told nothing of its last batch
        told = [line["jobs"] for line in process.log_events("recovery.released")]
        assert all(later <= 2 * one for one, later in zip(told, told[1:])), told
    assert sum(batches) <= JOBS
    doubled = fresh.sql("SELECT job_id FROM job_events WHERE to_status = 'FINISHED' "
                        "GROUP BY job_id HAVING COUNT(*) <> 1")
    assert not doubled
    wait_until("nothing left", lambda: fresh.count("job_recovery") + fresh.count("job_blocked") == 0)
    print(f"recovery's memory at its height: {resident_mib(recovery[-1]):.1f} MiB; "
          f"{len(batches)} batches")
    assert resident_mib(recovery[-1]) < 200
    fresh.wait_clean()
