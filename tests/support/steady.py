# SPDX-License-Identifier: MIT
"""steady: clients that submit short jobs all the time, and what must be true of the jobs at the end
whatever happened to the site meanwhile."""

import threading
import uuid

from rest import AGAIN, Client
from waiting import let_pass, wait_until

SUBMITTERS = 3
PAUSE_S = 0.05
# One line for each run, written at once: lines of two runs do not mix.
SHORT = 'echo "$SLUICE_JOB_ID" >>"$1"; sleep 0.$2'


class Load:
    """Clients that submit short jobs, each with a key, until it is told how it went."""

    def __init__(self, site, url, runs, pause_s=PAUSE_S):
        self.site, self.url, self.runs, self.pause_s = site, url, runs, pause_s
        self.lock = threading.Lock()
        self.accepted, self.tries, self.over, self.faults = [], 0, threading.Event(), []
        self.threads = [threading.Thread(target=self.submit, daemon=True)
                        for _ in range(SUBMITTERS)]
        for thread in self.threads:
            thread.start()

    def submit(self):
        client = Client(self.url, self.site.token(), timeout_s=15)
        try:
            while not self.over.is_set():
                self.submit_one(client)
                let_pass(self.pause_s)
        except Exception as fault:  # pylint: disable=broad-except
            self.faults.append(repr(fault))
            raise

    def submit_one(self, client):
        key = str(uuid.uuid4())
        request = {"name": "short",
                   "command": ["sh", "-c", SHORT, "job", self.runs, str(len(self.accepted) % 4)]}
        while True:
            with self.lock:
                self.tries += 1
            try:
                answer = client.post("/v1/jobs", request, {"Idempotency-Key": key})
            except OSError:
                let_pass(PAUSE_S)
                continue
            if answer.status in AGAIN:
                let_pass(PAUSE_S)
                continue
            with self.lock:
                self.accepted.append(answer.expect(200, 201).json["id"])
            return

    def wait_more(self, count):
        """So many more jobs are taken: the load goes on."""
        wanted = len(self.accepted) + count
        wait_until(lambda: f"more jobs to be taken {self.faults}",
                   lambda: self.faults or len(self.accepted) >= wanted, 60)
        assert not self.faults, self.faults

    def stop(self):
        self.over.set()
        for thread in self.threads:
            thread.join(60)
        assert not self.faults, self.faults


def check_runs(site, load, traces, long_jobs):
    ended = site.sql("SELECT LOWER(HEX(id)), status, attempts, losses FROM jobs")
    accepted = {job.replace("-", "") for job in load.accepted + long_jobs}
    assert len(accepted) == len(load.accepted) + len(long_jobs), "a key was answered with two jobs"
    assert {row[0] for row in ended} == accepted, "lost, or there without having been promised"
    wrong = [row for row in ended if tuple(row[1:]) != ("FINISHED", "1", "0")]
    assert ended and not wrong, wrong
    runs = traces.lines("short")
    assert sorted(runs) == sorted(load.accepted), "lost, or run twice"
    for number in range(len(long_jobs)):
        assert len(traces.runs(f"long{number}")) == 1, "a long job was started again"
    assert not traces.overlapped()
    assert site.count("dead_messages") == 0
