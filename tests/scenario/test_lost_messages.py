# SPDX-License-Identifier: MIT
"""The broker loses messages of waiting jobs: a purge, a virtual host made anew, a queue deleted by
hand. All of them are sent again soon, oldest first, and those of a healthy queue are not."""

import threading

import pytest

from waiting import wait_until

QUEUE = "sluice.acme.submit.default"
FAST = {"recovery_tick_ms": 200, "recovery_outbox_age_ms": 1000}
AT_ONCE = 200
SOON_S = 90.0  # many leases: the machine may be busy; what repaired 200 jobs per look took hours


@pytest.fixture(name="web")
def fixture_web(fresh):
    return fresh.web()


def submit(client, count, *command):
    ids = []
    while len(ids) < count:
        jobs = [{"name": "wait", "command": list(command or ["true"])}] * min(AT_ONCE, count - len(ids))
        ids += [item["job"]["id"] for item in
                client.post("/v1/jobs:batch", {"jobs": jobs}).expect(200).json["items"]]
    return ids


def all_of(ids):
    return "id IN (" + ",".join("0x" + job.replace("-", "") for job in ids) + ")"


def wait_sent(site):
    wait_until("all messages to be confirmed", lambda: site.count("outbox") == 0, 120)


def purge(site):
    with site.amqp() as link:
        link.purge(QUEUE)


def sent_again(site):
    return site.count("jobs", "epoch > 1")


class Stream:
    """Somebody who submits on and on."""

    def __init__(self, client, *command, gate=lambda: True):
        self.client, self.command, self.gate, self.ids = client, command, gate, []
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        while not self.stopping.wait(0.05):
            if self.gate():
                self.ids += submit(self.client, 10, *self.command)

    def __enter__(self):
        self.thread.start()
        wait_until("jobs to come", lambda: len(self.ids) >= 10)
        return self

    def __exit__(self, *unused):
        self.stopping.set()
        self.thread.join()


def test_ten_thousand_are_sent_again_after_a_purge_while_new_ones_come(fresh, web):
    ann = fresh.client(web)
    lost = submit(ann, 10000)
    wait_sent(fresh)
    purge(fresh)
    with Stream(ann) as stream:
        fresh.reader("recovery", **FAST)
        wait_until(lambda: f"sent again: {sent_again(fresh)}",
                   lambda: sent_again(fresh) >= len(lost) * 98 // 100, SOON_S, 0.5)
    # New messages hide as many lost ones as come between the looks at the rows and at the queue.
    wait_until(lambda: f"all sent again: {sent_again(fresh)}",
               lambda: sent_again(fresh) >= len(lost), SOON_S, 0.5)
    wait_sent(fresh)
    new = stream.ids
    assert fresh.count("jobs", f"epoch > 1 AND {all_of(new)}") == 0, "messages that were there"
    sent = [row[0] for row in fresh.sql(
        "SELECT HEX(job_id) FROM job_events WHERE kind = 'requeued' ORDER BY seq")]
    assert sent == sorted(sent), "not the oldest first"
    assert len(sent) == len(set(sent)) == len(lost), "some were sent twice"
    wait_until("a message for each job",
               lambda: fresh.messages().get(QUEUE, 0) >= len(lost) + len(new))


def test_those_that_were_lost_do_not_wait_until_the_queue_is_empty(fresh, web):
    ann = fresh.client(web)
    lost = submit(ann, 8)
    wait_sent(fresh)
    purge(fresh)
    recovery = fresh.reader("recovery", **FAST)
    fresh.worker(slots=2)

    def few():
        return fresh.count("jobs", "status = 'PENDING'") < 60
    with Stream(ann, "sleep", "0.1", gate=few):
        wait_until(lambda: str(fresh.sql(f"SELECT status, epoch FROM jobs WHERE {all_of(lost)}")),
                   lambda: fresh.count("jobs", f"status = 'FINISHED' AND {all_of(lost)}") == 8, SOON_S)
        assert fresh.messages().get(QUEUE), "the queue was never empty"
    assert fresh.count("jobs", f"epoch <> 2 AND {all_of(lost)}") == 0
    assert recovery.log_events("recovery.messages.lost")


def test_a_virtual_host_that_is_made_anew_costs_no_job(fresh, web):
    ann = fresh.client(web)
    lost = submit(ann, 1000)
    wait_sent(fresh)
    fresh.reader("recovery", **FAST)
    wait_until("a leader", lambda: fresh.count("recovery_leader"))
    fresh.servers.rabbitmq.delete_vhost(fresh.vhost)
    fresh.servers.rabbitmq.add_vhost(fresh.vhost)
    wait_until(lambda: str(fresh.sql("SELECT epoch, COUNT(*) FROM jobs GROUP BY 1")),
               lambda: fresh.count("jobs", "epoch > 1") == len(lost), SOON_S, 0.5)
    fresh.worker(slots=8)
    wait_until(lambda: str(fresh.sql("SELECT status, COUNT(*) FROM jobs GROUP BY 1")),
               lambda: fresh.count("jobs", "status = 'FINISHED'") == len(lost), 120, 0.5)


def test_a_queue_that_is_deleted_by_hand_is_there_again_with_its_messages(fresh, web):
    """With a lease as in production: two of them are less than this test waits."""
    slow = {"fleet_lease_ms": 10000, "fleet_beat_ms": 2500}
    ann = fresh.client(web)
    fresh.reader("recovery", **FAST, **slow)
    fresh.worker(slots=2, **slow)
    ann.wait_end(ann.submit("true"))
    gate = fresh.path("gate")
    held = [ann.submit("sh", "-c", f"while [ ! -e {gate} ]; do sleep 0.1; done") for _ in range(2)]
    for job in held:
        ann.wait_status(job, "RUNNING")
    waiting = submit(ann, 20)
    wait_sent(fresh)
    with fresh.amqp() as link:
        link.delete_queue(QUEUE)
    with open(gate, "w", encoding="ascii"):
        pass
    wait_until(lambda: str(fresh.sql("SELECT status, COUNT(*) FROM jobs GROUP BY 1")),
               lambda: fresh.count("jobs", f"status = 'FINISHED' AND {all_of(waiting)}") == 20, SOON_S)
    for job in held:
        ann.wait_status(job, "FINISHED")
    wait_until("the workers to consume", lambda: fresh.queues()[QUEUE][2] >= 2)


def test_a_healthy_queue_gets_no_message_twice(fresh, web):
    """A backlog of several leases, short jobs (messages ahead), long ones, cancelled ones."""
    ann = fresh.client(web)
    recovery = fresh.reader("recovery", **FAST)
    jobs = submit(ann, 300, "sleep", "0.1") + submit(ann, 1200) + submit(ann, 100, "sleep", "0.1")
    for job in jobs[1400:1440]:
        ann.cancel(job).expect(200)
    fresh.worker(slots=4, name="a")
    fresh.worker(slots=4, name="b")
    with Stream(ann, gate=lambda: fresh.count("jobs", "status = 'PENDING'") < 1000):
        wait_until(lambda: str(fresh.sql("SELECT status, COUNT(*) FROM jobs GROUP BY 1")),
                   lambda: fresh.count("jobs", f"ended_at IS NOT NULL AND {all_of(jobs)}") == len(jobs),
                   180, 0.5)
    assert fresh.count("job_events", "kind = 'requeued'") == 0
    assert not recovery.log_events("recovery.messages.lost")
