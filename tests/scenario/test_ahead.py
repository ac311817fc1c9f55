# SPDX-License-Identifier: MIT
"""A worker whose jobs are short takes more messages than it has slots: what must hold all the same."""

import collections

import jobs
from waiting import wait_until

# $1 = a file that all append to (one short write each), $2 = number of the job
SHORT = 'echo "$SLUICE_WORKER + $2" >>"$1"; echo "$SLUICE_WORKER - $2" >>"$1"'


class Side:
    """What the jobs themselves say of when they ran, and where."""

    def __init__(self, path):
        self.path = path

    def command(self, number):
        return ["sh", "-c", SHORT, "job", self.path, str(number)]

    def lines(self):
        with open(self.path, encoding="ascii") as lines:
            return [line.split() for line in lines]

    def runs(self):
        return collections.Counter(int(number) for _, sign, number in self.lines() if sign == "+")

    def most_at_once(self):
        now, most = collections.Counter(), collections.Counter()
        for worker, sign, _ in self.lines():
            now[worker] += 1 if sign == "+" else -1
            most[worker] = max(most[worker], now[worker])
        return most


def quick(site, name, slots):
    return site.worker(name=name, slots=slots, log_level="debug")


def went_ahead(worker):
    return any(event["on"] for event in worker.log_events("worker.slots.ahead"))


def test_no_job_waits_at_a_worker_whose_slots_are_taken(fresh):
    site = fresh
    client = site.client(site.web(), keep=True)
    side, traces = Side(site.path("side")), jobs.Traces(site.path("traces"))
    before = [client.submit(*side.command(number)) for number in range(80)]
    # One worker gets two of these, or all three: a slot of the other one at most is free then.
    long = [client.submit(*traces.command(f"long{at}")) for at in range(3)]
    behind = [client.submit(*side.command(number)) for number in range(80, 110)]
    workers = [quick(site, name, 2) for name in ("one", "two")]
    for at in range(3):
        traces.wait_runs(f"long{at}")
    for job in before + behind:
        assert client.wait_end(job)["status"] == "FINISHED"
    assert any(went_ahead(worker) for worker in workers)
    for job in long:
        assert client.job(job)["status"] == "RUNNING"
    traces.open()
    for job in long:
        assert client.wait_end(job)["status"] == "FINISHED"
    assert side.runs() == collections.Counter(range(110))
    assert max(side.most_at_once().values()) <= 2
    assert site.count("jobs", "losses > 0 OR attempts <> 1") == 0
    site.wait_clean()


def test_a_worker_that_dies_with_messages_in_hand_loses_and_doubles_nothing(fresh):
    site = fresh
    client = site.client(site.web(), keep=True)
    side = Side(site.path("side"))
    ids = [client.submit(*side.command(number)) for number in range(300)]
    worker = quick(site, "one", 1)
    for _ in range(2):
        began = len(worker.log_events("worker.slots.ahead"))
        wait_until("the worker to go ahead again",
                   lambda: len(worker.log_events("worker.slots.ahead")) > began, 20, 0.01)
        worker.kill9()
        worker.start()
    for job in ids:
        assert client.wait_end(job, 60)["status"] == "FINISHED"
    assert side.runs() == collections.Counter(range(300))
    assert side.most_at_once()["one"] == 1
    assert site.count("jobs", "losses > 0 OR attempts <> 1") == 0
    site.wait_clean()


def test_a_worker_that_is_drained_keeps_no_message(fresh):
    site = fresh
    client = site.client(site.web(), keep=True)
    side = Side(site.path("side"))
    ids = [client.submit(*side.command(number)) for number in range(150)]
    worker = quick(site, "one", 2)
    wait_until("the worker to go ahead", lambda: went_ahead(worker), 20, 0.01)
    site.sql("UPDATE workers SET draining = 1")
    worker.wait_log("worker.drained")
    wait_until("the queue to have all that is left", lambda: sum(
        unacknowledged for _, unacknowledged, _ in site.queues().values()) == 0, 20)
    site.sql("UPDATE workers SET draining = 0")
    for job in ids:
        assert client.wait_end(job, 60)["status"] == "FINISHED"
    assert side.runs() == collections.Counter(range(150))
    site.wait_clean()


def test_a_quota_as_large_as_the_slots_blocks_nobody(fresh):
    site = fresh
    web = site.web()
    site.client(web, "root", "admin").put("/v1/quotas/ann", {"maxActive": 2}).expect(201)
    client = site.client(web, keep=True)
    side = Side(site.path("side"))
    ids = [client.submit(*side.command(number)) for number in range(60)]
    worker = quick(site, "one", 2)
    for job in ids:
        assert client.wait_end(job)["status"] == "FINISHED"
    assert went_ahead(worker)
    assert site.count("job_events", "to_status = 'BLOCKED'") == 0
    site.wait_clean()
