# SPDX-License-Identifier: MIT
"""blocked: a great many jobs behind one cause, asked after and then let go."""

import time

import seed
from measure import Goal
from waiting import wait_until

PAUSE_MS, RAMP = 1000, 256  # the defaults of recovery.ramp_pause_ms and recovery.ramp_max
INTERVAL_S = 2
POLICY = {"recovery_application_unavailable": f"constant every={INTERVAL_S}s"}
MEMORY_MIB = 100


def height_mib(process):
    with open(f"/proc/{process.pid}/status", encoding="ascii") as status:
        line = next(line for line in status if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def block_one(rig):
    """Its rows are the pattern of the others."""
    root = rig.site.client(rig.web, "root", "admin")
    root.put("/v1/apps/demo/1", {"command": ["/bin/true"]}).expect(200, 201)
    root.post("/v1/apps/demo/1/disable").expect(200)
    worker = rig.start_worker(slots=1, **POLICY)
    job = rig.site.client(rig.web, "user0").submit(appId="demo", appVersion="1")
    wait_until("a blocked job", lambda: rig.site.count("job_blocked") == 1, 30)
    worker.stop()
    rig.forget_worker()
    return root, job


def fill(rig, job, jobs):
    seed.copy(rig.database, "job_events", "job_id", job, 1, jobs - 1)
    seed.copy(rig.database, "jobs", "id", job, 1, jobs - 1)
    seed.copy(rig.database, "job_blocked", "job_id", job, 1, jobs - 1)


def tests_of(rig):
    return int(rig.database.one("SELECT tests FROM job_recovery"))


def tests_per_interval(rig, intervals):
    before = tests_of(rig)
    wait_until("a test", lambda: tests_of(rig) > before, 4 * INTERVAL_S, 0.01)
    before, began = tests_of(rig), time.monotonic()
    wait_until("tests", lambda: tests_of(rig) >= before + intervals, 4 * INTERVAL_S * intervals,
               0.01)
    return (tests_of(rig) - before) * INTERVAL_S / (time.monotonic() - began)


def full_batches(reader):
    """(when, jobs) of the batches at the ceiling, by the reader's own log."""
    return [line for line in reader.log_events("recovery.released") if line["jobs"] == RAMP]


def seconds_of(line):
    stamp, _, rest = line["time"].rstrip("Z").partition(".")
    return time.mktime(time.strptime(stamp, "%Y-%m-%dT%H:%M:%S")) + float("0." + (rest or "0"))


def release_rate(reader, batches):
    """Jobs per second between batches at the ceiling."""
    wait_until("batches at the ceiling", lambda: len(full_batches(reader)) > batches, 120, 0.5)
    lines = full_batches(reader)
    return RAMP * (len(lines) - 1) / (seconds_of(lines[-1]) - seconds_of(lines[0]))


def release_rest(rig, reader, jobs):
    """With the pause taken away, to see that all are let go and each once."""
    reader.stop()
    began, left = time.monotonic(), rig.site.count("job_blocked")
    fast = rig.site.reader("recovery", name="recovery-fast", **(
        rig.settings | {"recovery_ramp_pause_ms": 10, "recovery_ramp_max": 1000}))
    wait_until(lambda: f"no blocked job, {rig.site.count('job_blocked')} are",
               lambda: rig.site.count("job_blocked") == 0, 300, 0.2)
    rate = left / (time.monotonic() - began)
    wait_until("an empty outbox", lambda: rig.site.count("outbox") == 0, 120, 0.5)
    wrong = rig.site.count("jobs", "status = 'BLOCKED' OR epoch <> 2")
    assert wrong == 0 and rig.site.count("jobs") == jobs, f"{wrong} jobs were not let go once"
    return rate, height_mib(fast)


def run(bench):
    """jobs behind one disabled application, asked after, then released"""
    jobs = bench.size(100_000, 5_000)
    name = f"{jobs // 1000}k blocked jobs"
    tests = bench.measure(f"{name}: tests per interval", "", "lower", [Goal(1.05)])
    rate = bench.measure(f"{name}: release, share of the ramp's ceiling", "%", "higher", [Goal(90)])
    most = bench.measure(f"{name}: release without a pause", "jobs/s", "higher")
    memory = bench.measure(f"{name}: reader's memory at its height", "MiB", "lower",
                           [Goal(MEMORY_MIB)])
    with bench.rig("sluice", slots=0, users=8) as rig:
        root, job = block_one(rig)
        fill(rig, job, jobs)
        reader = rig.site.reader("recovery", **rig.settings)
        for _ in range(bench.rounds):
            tests.add("sluice", tests_per_interval(rig, 3))
        root.post("/v1/apps/demo/1/enable").expect(200)
        rate.add("sluice", release_rate(reader, bench.size(10, 4)) * PAUSE_MS / 1000 / RAMP * 100)
        memory.add("sluice", height_mib(reader))
        rest, height = release_rest(rig, reader, jobs)
        most.add("sluice", rest)
        memory.add("sluice", height)
        bench.say(f"{name}: {tests.median('sluice'):.2f} tests per interval, "
                  f"{rate.median('sluice'):.0f} % of the ceiling, {rest:.0f}/s without a pause, "
                  f"{memory.median('sluice'):.1f} MiB")
