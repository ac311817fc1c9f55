# SPDX-License-Identifier: MIT
"""load: the jobs of a soak, the clients that submit them, and what each was told."""

import heapq
import itertools
import random
import threading
import time
from typing import NamedTuple

from nemesis import QUEUES
from rest import AGAIN, Client

CLIENTS = 8
USERS = ("ann", "bob", "eve")
QUOTA_USER, QUOTA = "few", 3
APP, APP_VERSION, SYSTEM = "gate", "1", "hall"
CALL_S = 10.0
PAUSE_S = 0.3

# $1 = folder of the evidence, $2 = kind, $3 = its argument. The lock goes with the last process of a
# run: a second run at the same time finds it taken.
SCRIPT = """\
exec 9>>"$1/locks/$SLUICE_JOB_ID"
flock -n 9 || echo "overlap $SLUICE_JOB_ID $SLUICE_FENCE $$" >>"$1/stamps"
echo "start $SLUICE_JOB_ID $SLUICE_FENCE $$" >>"$1/stamps"
status=0
case $2 in
sleep) sleep "$3" ;;
output) head -c "$3" /dev/zero | tr '\\0' x ;;
fail) status=$3 ;;
esac
echo "end $SLUICE_JOB_ID $SLUICE_FENCE $$" >>"$1/stamps"
exit "$status"
"""

# kind of job, how many in a hundred
MIX = (("true", 27), ("sleep", 31), ("output", 10), ("fail", 10), ("cancel", 5), ("app", 4),
       ("system", 3), ("quota", 4), ("limit", 6))
LIMIT_S = 6  # of wall time; the command of such a job needs a quarter of it


class Job(NamedTuple):
    at_s: float
    kind: str
    does: str
    argument: str
    queue: str
    user: str
    cancel_after_s: float


def jobs_of(seed, count, seconds):
    """In the order of submission, spread evenly over the time."""
    dice = random.Random(f"jobs {seed}")
    names, weights = zip(*MIX)
    made = []
    for number in range(count):
        kind = dice.choices(names, weights)[0]
        does, argument, cancel_after_s = "true", "", 0.0
        if kind in ("sleep", "quota"):
            does, argument = "sleep", f"{dice.uniform(0.2, 3.0 if kind == 'sleep' else 0.6):.2f}"
        elif kind == "limit":
            does, argument = "sleep", f"{dice.uniform(0.8, 1.5):.2f}"
        elif kind == "cancel":
            does, argument, cancel_after_s = "sleep", "3", round(dice.uniform(0.0, 3.0), 2)
        elif kind == "output":
            does, argument = "output", str(dice.randrange(1, 200_000))
        elif kind == "fail":
            does, argument = "fail", str(dice.randrange(1, 125))
        made.append(Job(round(number * seconds / count, 3), kind, does, argument,
                        dice.choice(QUEUES), QUOTA_USER if kind == "quota" else dice.choice(USERS),
                        cancel_after_s))
    return made


class Load:
    """Threads that submit the jobs, each until it is accepted, and cancel some of them.

    Threads: ids, cancels and the lists are written by the clients and read when they have ended, but
    for some_ids().
    """

    def __init__(self, site, webs, jobs, evidence):
        self.urls, self.jobs, self.evidence = [web.url for web in webs], jobs, evidence
        self.ids, self.cancels = {}, {}
        self.latencies_s, self.patience_s, self.refused, self.faults = [], [], {}, []
        self._next, self._due = iter(range(len(jobs))), []
        self._lock, self._stop = threading.Lock(), threading.Event()
        self._submitting = CLIENTS
        self._tokens = {user: site.token(user, life_s=36000) for user in (*USERS, QUOTA_USER)}
        self._threads = [threading.Thread(target=self._guarded, args=(self._submit_all,), daemon=True)
                         for _ in range(CLIENTS)]
        self._threads.append(threading.Thread(target=self._guarded, args=(self._cancel_all,),
                                              daemon=True))

    def start(self, begin):
        """begin: the moment 0 of time.monotonic()."""
        self._begin = begin
        for thread in self._threads:
            thread.start()

    def running(self):
        return any(thread.is_alive() for thread in self._threads)

    def give_up(self):
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def some_ids(self, queue, count):
        """Some jobs of this queue that were accepted so far: the oldest and the youngest."""
        ids = [job for number, job in list(self.ids.items()) if self.jobs[number].queue == queue]
        return ids[:count // 2] + ids[-(count // 2):]

    def limited(self, ids):
        """Those of these jobs that have a limit."""
        ours = {job for number, job in list(self.ids.items()) if self.jobs[number].kind == "limit"}
        return ours.intersection(ids)

    def _guarded(self, body):
        try:
            body()
        except BaseException as fault:  # pylint: disable=broad-except
            self.faults.append(fault)
            self._stop.set()

    def _clients(self, user):
        """One user's clients of all web processes in turn; the kept connections are our thread's."""
        return itertools.cycle([Client(url, self._tokens[user], keep=True, timeout_s=CALL_S)
                                for url in self.urls])

    def _submit_all(self):
        users = {user: self._clients(user) for user in self._tokens}
        while not self._stop.is_set():
            with self._lock:
                number = next(self._next, None)
            if number is None:
                break
            job = self.jobs[number]
            self._stop.wait(max(0.0, self._begin + job.at_s - time.monotonic()))
            self._submit(number, job, users[job.user])
        with self._lock:
            self._submitting -= 1

    def _request(self, number, job):
        command = ["sh", f"{self.evidence}/job.sh", self.evidence, job.does, job.argument]
        request = {"name": f"{job.kind} {number}", "command": command, "tags": [job.queue]}
        if job.kind == "app":
            del request["command"]  # the application has the rest of it
            request |= {"appId": APP, "appVersion": APP_VERSION, "args": [job.does, job.argument]}
        elif job.kind == "system":
            request |= {"systemId": SYSTEM}
        elif job.kind == "limit":
            request |= {"maxSeconds": LIMIT_S}
        return request

    def _submit(self, number, job, clients):
        begun = time.monotonic()
        while not self._stop.is_set():
            called = time.monotonic()
            try:
                answer = next(clients).post("/v1/jobs", self._request(number, job),
                                            {"Idempotency-Key": f"soak-{number}"})
                status = answer.status
            except OSError:
                status = "no answer"
            if status in (200, 201):
                self.latencies_s.append(time.monotonic() - called)
                self.patience_s.append(time.monotonic() - begun)
                self.ids[number] = answer.json["id"]
                if job.kind == "cancel":
                    with self._lock:
                        heapq.heappush(self._due, (time.monotonic() + job.cancel_after_s, number))
                return
            assert status == "no answer" or status in AGAIN, answer
            with self._lock:
                self.refused[status] = self.refused.get(status, 0) + 1
            self._stop.wait(PAUSE_S)

    def _cancel_all(self):
        users = {user: self._clients(user) for user in self._tokens}
        while not self._stop.is_set():
            with self._lock:
                due = heapq.heappop(self._due) if self._due else None
                if due is None and self._submitting == 0:
                    return
            if due is None:
                self._stop.wait(PAUSE_S)
                continue
            self._stop.wait(max(0.0, due[0] - time.monotonic()))
            self._cancel(due[1], users[self.jobs[due[1]].user])

    def _cancel(self, number, clients):
        while not self._stop.is_set():
            try:
                answer = next(clients).cancel(self.ids[number])
            except OSError:
                answer = None
            if answer is not None and answer.status not in AGAIN:
                assert answer.status in (200, 202, 409), answer
                self.cancels[number] = (answer.status, answer.json.get("status"))
                return
            self._stop.wait(PAUSE_S)
