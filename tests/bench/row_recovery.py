# SPDX-License-Identifier: MIT
"""recovery: a worker that is killed with all its slots busy, and started again at once."""

import collections
import os
import signal
import tempfile
import time

import sluice
from measure import Goal
from waiting import wait_until

JOBS = 64
LIVE = ("SELECT COUNT(*) FROM jobs JOIN workers w ON w.id = owner_worker "
        "WHERE jobs.status = 'RUNNING' AND w.state = 'live' AND w.pid = %s")


class Traces:
    """Each start of a job is a line: its number and pid."""

    def __init__(self):
        handle, self.path = tempfile.mkstemp(prefix="sluice-starts-", dir=sluice.shared_folder())
        os.close(handle)
        self.command = ["/bin/sh", "-c", 'echo "$1 $$" >>"$0"; exec sleep 600', self.path,
                        "@NUMBER@"]

    def starts(self):
        with open(self.path, encoding="ascii") as lines:
            return [tuple(int(word) for word in line.split()) for line in lines]

    def close(self):
        for _number, pid in self.starts():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        os.unlink(self.path)


def sluice_once(bench, rig):
    """Seconds from the kill until every job belongs to the new worker."""
    traces = Traces()
    rig.load(traces.command, connections=8, count=JOBS)
    wait_until("all to run", lambda: rig.database.one(LIVE, (rig.worker.pid,)) == JOBS, 60)
    began = time.monotonic()
    rig.worker.kill9()
    rig.worker.start(wait=False)
    wait_until(lambda: f"all to be adopted, {rig.database.one(LIVE, (rig.worker.pid,))} are",
               lambda: rig.database.one(LIVE, (rig.worker.pid,)) == JOBS, 60, 0.005)
    seconds = time.monotonic() - began
    starts = traces.starts()
    assert len(starts) == JOBS and all(sluice.running(pid) for _number, pid in starts), starts
    traces.close()  # they end by the signal, and are counted once
    rig.wait_ended(JOBS)
    assert rig.database.one("SELECT COUNT(*) FROM jobs WHERE losses > 0 OR attempts <> 1") == 0
    rig.clear()
    bench.say(f"sluice: {JOBS} jobs adopted in {seconds:.2f} s, none started again")
    return seconds, 0


def celery_once(bench, rig):
    """Seconds until as many tasks have been started again; what they had done is lost."""
    traces = Traces()
    rig.load(traces.command, connections=8, count=JOBS)
    wait_until("all to run", lambda: len(traces.starts()) >= JOBS, 120)
    began = time.monotonic()
    rig.stop_worker(signal.SIGKILL)
    rig.start_again()

    def again():
        seen = collections.Counter(number for number, _pid in traces.starts())
        return sum(count > 1 for count in seen.values()) == JOBS
    wait_until(lambda: f"{JOBS} tasks to run again, {len(traces.starts())} starts", again, 180, 0.02)
    seconds = time.monotonic() - began
    started = len(traces.starts()) - JOBS
    rig.stop_worker(signal.SIGKILL)
    traces.close()
    bench.say(f"celery: {started} tasks started anew, all of them after {seconds:.2f} s")
    return seconds, started


def run(bench):
    """kill -9 of a worker with 64 jobs, started again at once"""
    seconds = bench.measure(f"until {JOBS} jobs have a live worker again", "s", "lower", [Goal(2)])
    again = bench.measure(f"of {JOBS} jobs, started anew", "jobs", "lower", [Goal(0)])
    for _at, system in bench.turns(bench.systems("celery")):
        with bench.rig(system, slots=JOBS) as rig:
            once = sluice_once if system == "sluice" else celery_once
            spent, started = once(bench, rig)
            seconds.add(system, spent)
            again.add(system, started)
