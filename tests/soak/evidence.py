# SPDX-License-Identifier: MIT
"""evidence: what the jobs wrote down while they ran, held against what was promised.

The promise (docs/ownership.md): a job runs on at most one worker at a time, a launch happens once
per fence, and a run that the infrastructure ended is charged to `losses` and made good by another.
So a second run is legal, and counted as a rerun, when it has a higher fence, began after every
process of the first one was gone, is charged, and something struck the worker of the first run, its
runner, or both of its servers at a time: then its result was not yet committed, or its exit record
was lost with the runner. That holds also for a run that had come to its own end, but whose result its
worker did not commit before it lost the job. Every other second run is a doubled one.
"""

import collections
import os

from load import SCRIPT
from nemesis import ENDS_RUNS, NO_BROKER, NO_DATABASE

SLACK_S = 8.0  # a lease, its detection, the restart of a server on a busy machine
EXPECTED = {"cancel": ("CANCELLED", "FINISHED"), "fail": ("FAILED",)}
SHOWN = 12


class Stamps:
    """The lines of the jobs: who began and ended which run, and who found another one running."""

    def __init__(self, folder):
        self.folder = folder
        os.makedirs(os.path.join(folder, "locks"))
        with open(os.path.join(folder, "job.sh"), "w", encoding="ascii") as script:
            script.write(SCRIPT)

    def read(self):
        """{job: {fence: [starts, ends]}} and the jobs of which two runs met."""
        runs, met = collections.defaultdict(dict), set()
        try:
            with open(os.path.join(self.folder, "stamps"), encoding="ascii") as lines:
                for line in lines:
                    word, job, fence, _pid = line.split()
                    if word == "overlap":
                        met.add(job)
                        continue
                    run = runs[job].setdefault(int(fence), [0, 0])
                    run[word == "end"] += 1
        except FileNotFoundError:
            pass
        return runs, met


Row = collections.namedtuple("Row", "status condition exit_code attempts losses fence stdout_bytes")


class Verdict:
    """Lists of job ids, each with what is wrong about it."""

    def __init__(self):
        self.lost, self.doubled, self.stuck, self.wrong = {}, {}, {}, {}
        self.reruns = self.reruns_of_ended = 0
        self.outcomes = collections.Counter()

    def bad(self):
        return self.lost | self.doubled | self.stuck | self.wrong


def with_hyphens(job):
    """The id as jobs and log lines have it."""
    return "-".join((job[:8], job[8:12], job[12:16], job[16:20], job[20:]))


class Judge:
    def __init__(self, site, load, injector, stamps):
        self.site, self.load, self.injector = site, load, injector
        self.runs, self.met = stamps.read()
        self.rows = self._read_rows()

    def _read_rows(self):
        return {row[0]: Row(row[1], row[2], *(None if cell is None else int(cell)
                                              for cell in row[3:]))
                for row in self.site.sql(
                    "SELECT LOWER(HEX(id)), status, job_condition, exit_code, attempts, losses, fence,"
                    " stdout_bytes FROM jobs")}

    def verdict(self):
        found = Verdict()
        ids = {job.replace("-", ""): number for number, job in self.load.ids.items()}
        for job in set(self.rows) - set(ids):
            found.doubled[job] = "nobody was told of it: a submission made two jobs"
        for job, number in ids.items():
            if job not in self.rows:
                found.lost[job] = "accepted, and there is no row"
                continue
            self._look(found, job, self.load.jobs[number], self.load.cancels.get(number))
        return found

    def _look(self, found, job, plan, cancel):
        row = self.rows[job]
        if row.status not in ("FINISHED", "FAILED", "CANCELLED"):
            found.stuck[job] = f"{row.status} {row.condition}"
        found.outcomes[f"{row.status} {row.condition or ''}".strip()] += 1
        wrong = self._wrong_end(row, plan, cancel)
        if wrong:
            found.wrong[job] = f"{plan.kind}: {wrong}: {row}"
        doubled = self._doubled(found, job, row)
        if doubled:
            found.doubled[job] = doubled

    def _runs_of(self, job):
        return self.runs.get(with_hyphens(job), {}), with_hyphens(job) in self.met

    def _wrong_end(self, row, plan, cancel):
        if row.status not in EXPECTED.get(plan.kind, ("FINISHED",)):
            return "ended otherwise than it should"
        if plan.kind == "fail" and row.exit_code != int(plan.argument):
            return f"its exit code was {plan.argument}"
        if plan.kind == "output" and row.stdout_bytes != int(plan.argument):
            return f"it wrote {plan.argument} bytes"
        if cancel and cancel[0] == 200 and row.status != "CANCELLED":
            return f"its cancel was answered {cancel}"
        return None

    def _doubled(self, found, job, row):
        runs, met = self._runs_of(job)
        if met:
            return f"two runs at the same time: {runs}"
        twice = [fence for fence, (starts, _) in runs.items() if starts != 1]
        if twice:
            return f"one fence, several starts: {runs}"
        if runs and max(runs) > row.fence:
            return f"a run after the last fence {row.fence}: {runs}"
        if row.status == "FINISHED" and not any(ends for _, ends in runs.values()):
            return f"FINISHED without a run that ended: {runs}"
        charged = row.attempts + row.losses + (row.status == "CANCELLED")
        if len(runs) > charged:
            return f"{len(runs)} runs, {charged} charged: {runs} {row}"
        return self._reruns(found, job, runs) if len(runs) > 1 else None

    def _reruns(self, found, job, runs):
        owners = self._owners(job)
        for first, second in zip(sorted(runs), sorted(runs)[1:]):
            found.reruns += 1
            found.reruns_of_ended += bool(runs[first][1])
            # Later fences are those of workers that came back and went on with the same run.
            held = [owners[fence] for fence in sorted(owners) if first <= fence < second]
            until_s = owners[second][1] if second in owners else self.injector.fleet.seconds()
            if not any(self._struck(name, at_s, until_s) for name, at_s in held):
                return f"run again though nothing had struck its worker: {runs} {owners}"
        return None

    def _owners(self, job):
        """{fence: (worker's name, seconds at which it claimed the job)}"""
        rows = self.site.sql(
            "SELECT e.fence, w.name, MIN(TIMESTAMPDIFF(MICROSECOND, e.at, UTC_TIMESTAMP(6))) / 1e6 "
            "FROM job_events e JOIN workers w ON w.id = e.worker "
            f"WHERE e.job_id = 0x{job} GROUP BY 1, 2")
        now_s = self.injector.fleet.seconds()
        return {int(fence): (name, now_s - float(ago)) for fence, name, ago in rows}

    def _struck(self, name, first_s, last_s):
        kinds = {done.fault.kind for done in self.injector.done
                 if done.fault.target in ("site", name)
                 and done.covers(first_s, last_s, SLACK_S)}
        return bool(kinds.intersection(ENDS_RUNS)
                    or kinds.intersection(NO_BROKER) and kinds.intersection(NO_DATABASE))

    def story(self, job):
        """What is known of a job, for a person who looks for the reason."""
        lines = [f"job {job}", f"  stamps {self._runs_of(job)}"]
        lines += ["  " + " ".join(str(cell) for cell in row) for row in self.site.sql(
            "SELECT e.at, e.kind, e.from_status, e.to_status, e.job_condition, e.epoch, e.fence, "
            "w.name, e.actor, e.detail FROM job_events e LEFT JOIN workers w ON w.id = e.worker "
            f"WHERE e.job_id = 0x{job} ORDER BY e.seq")]
        text = with_hyphens(job)
        for process in self.site.processes:
            for line in process.log_text().splitlines():
                if text in line:
                    lines.append(f"  {process.name}: {line[:400]}")
        return "\n".join(lines)

