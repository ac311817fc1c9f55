# SPDX-License-Identifier: MIT
"""injection: one fault, injected by a test, and what became of the jobs of its site.

  with injected("F-4 kill", site) as hit:
      ...                # submit, let the fault happen
      hit.healed()       # its cause is gone: the time to recover counts from here
      ...                # wait until all is well again

At the end of the block the evidence is read from the database and from the files that the jobs
wrote (jobs.Traces); nothing here leans on what the test asserts. One line goes to the folder named
by SLUICE_TEST_RESULTS; tests/tools/fault_table makes the table. Every job that a client of the site
was answered 200 or 201 for is accounted for, by the first injection that ends after it:

  lost     its row is not there, or it ended otherwise than this fault allows
  doubled  two of its runs overlapped, one claim ran twice, it has two terminal events, or more
           complete runs than the attempts and losses that are written
  stuck    it is not in a terminal state DEADLINE_S after the test was content
"""

import contextlib
import glob
import json
import os
import time

from matrix import ROWS
from rest import TERMINAL
from waiting import wait_until

DEADLINE_S = 60.0
FAILED_DEADLINE_S = 3.0


class Injection:
    def __init__(self, row, site, ends):
        assert row in ROWS, f"{row} is not in tests/support/matrix.py"
        self.row, self.site, self.ends = row, site, set(ends)
        self.began, self.ended = time.monotonic(), None

    def healed(self):
        """The cause is gone, or there is none that lasts: from here on it recovers."""
        self.began, self.ended = time.monotonic(), None

    def recovered(self):
        """All is well; without a call that is the end of the block."""
        self.ended = time.monotonic()

    def evidence(self, passed):
        if passed and self.ended is None:
            self.recovered()
        jobs = self.site.accepted[self.site.accounted:]
        self.site.accounted = len(self.site.accepted)
        rows = wait_rows(self.site, jobs, DEADLINE_S if passed else FAILED_DEADLINE_S)
        runs = traced(self.site.folder)
        return {
            "jobs": len(jobs),
            "lost": [job for job in jobs if job not in rows or (
                rows[job].ended and rows[job].status not in self.ends)],
            "doubled": [job for job in jobs if job in rows and doubled(rows[job], runs.get(job))],
            "stuck": [job for job in jobs if job in rows and not rows[job].ended],
            "recover_s": round(self.ended - self.began, 2) if passed else None}


class JobRow:
    def __init__(self, status, attempts, losses, ends):
        self.status, self.ended = status, status in TERMINAL
        self.runs = max(1, int(attempts) + int(losses))
        self.ends = int(ends)


class JobRuns:
    """What the job's own processes wrote down."""

    def __init__(self):
        self.begun, self.complete, self.overlapped = [], [], False


def read_rows(site, jobs):
    if not jobs:
        return {}
    ids = ",".join("0x" + job.replace("-", "") for job in jobs)
    ends = ",".join(f"'{state}'" for state in TERMINAL)
    found = site.sql(
        "SELECT LOWER(HEX(j.id)), j.status, j.attempts, j.losses, "
        "(SELECT COUNT(*) FROM job_events e "
        f"WHERE e.job_id = j.id AND e.to_status IN ({ends}) AND e.from_status <> e.to_status) "
        f"FROM jobs j WHERE j.id IN ({ids})")
    rows = {row[0]: JobRow(*row[1:]) for row in found}
    return {job: rows[job.replace("-", "")] for job in jobs if job.replace("-", "") in rows}


def wait_rows(site, jobs, timeout_s):
    """The rows, as soon as all have ended or the deadline has come."""
    rows = {}

    def ended():
        rows.update(read_rows(site, jobs))
        return all(row.ended for row in rows.values())
    with contextlib.suppress(AssertionError):  # what has not ended is told as stuck
        wait_until("all jobs to end", ended, timeout_s, 0.25)
    return rows


def traced(folder):
    """{job: JobRuns} from the files that jobs.Traces' commands left anywhere below this folder."""
    found = {}
    for path in glob.glob(os.path.join(folder, "**", "*.runs"), recursive=True):
        for kind, name in (("begun", path), ("complete", path[:-5] + ".ends")):
            for fence, job in lines(name):
                getattr(found.setdefault(job, JobRuns()), kind).append(fence)
        overlapped = os.path.exists(path[:-5] + ".overlap")
        for _fence, job in lines(path):
            found[job].overlapped |= overlapped
    return found


def lines(path):
    """(fence, job) of each run; the line is "PID FENCE JOB"."""
    try:
        with open(path, encoding="utf-8") as text:
            return [tuple(line.split()[1:3]) for line in text.read().splitlines()]
    except FileNotFoundError:
        return []


def doubled(row, runs):
    if row.ends > 1:
        return True
    return runs is not None and (runs.overlapped or len(set(runs.begun)) < len(runs.begun)
                                 or len(runs.complete) > row.runs)


def write_line(document):
    folder = os.environ.get("SLUICE_TEST_RESULTS")
    if folder:
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, f"{os.getpid()}.jsonl"), "a", encoding="utf-8") as out:
            out.write(json.dumps(document) + "\n")


def _line(row):
    return {"row": row, "at": time.time(),
            "test": os.environ.get("PYTEST_CURRENT_TEST", "").partition(" ")[0]}


def impossible(row, why):
    """This machine does not let us inject it; the table says why."""
    write_line(_line(row) | {"impossible": why})


@contextlib.contextmanager
def injected(row, site, ends=("FINISHED",)):
    """ends: the terminal states that are right for jobs that this fault hits."""
    hit = Injection(row, site, ends)
    line = _line(row)
    try:
        yield hit
    except BaseException:
        with contextlib.suppress(Exception):  # what the test says is what counts
            line |= hit.evidence(passed=False)
        write_line(line | {"passed": False})
        raise
    line |= hit.evidence(passed=True)
    write_line(line | {"passed": True})
    assert not line["lost"] + line["doubled"] + line["stuck"], line
