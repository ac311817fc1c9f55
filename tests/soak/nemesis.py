# SPDX-License-Identifier: MIT
"""nemesis: which faults strike a soak, whom, when and for how long. All of it comes from the seed."""

import random
from typing import NamedTuple

QUEUES = ("default", "quick", "slow")
WORKERS = tuple(f"{queue}-{number}" for queue in QUEUES for number in (1, 2))
WEBS = ("web-1", "web-2")
RECOVERIES = ("recovery-1", "recovery-2")
ALTERNATES = ("alternate-1", "alternate-2")
DEADLETTERS = ("deadletter-1", "deadletter-2")
WEBHOOKS = ("webhook-1", "webhook-2")
SITE = ("site",)

WARM_UP_S, COOL_DOWN_S = 8.0, 12.0


# Named failure points (common/base/fault.h): a program is started anew and dies when it passes there.
WORKER_POINTS = (
    "job.claim.after_commit", "job.move.after_commit", "job.block.after_commit",
    "job.hand_back.after_commit", "worker.received", "worker.claimed", "worker.runner_asked",
    "worker.started", "worker.child_ended", "worker.output_kept", "worker.terminal_committed",
    "worker.acknowledged")
RUNNER_POINTS = ("runner.asked", "runner.started", "runner.child_ended", "runner.record_written")
WEB_POINTS = ("job.submit.before_commit", "job.submit.after_commit", "web.row_committed",
              "web.published", "web.answered", "job.cancel.after_commit")
RECOVERY_POINTS = ("recovery.blocked_seen", "recovery.tested", "recovery.release_committed",
                   "recovery.published")
DEAD_POINTS = ("dead.stored", "dead.job_settled", "dead.before_ack")
HOOK_POINTS = ("webhook.due_read", "webhook.sent", "webhook.recorded")
# What may end the runs of a worker: of its own, or of both servers together.
ENDS_RUNS = ("worker-killed", "worker-gone", "worker-stopped", "worker-drained", "worker-off-both",
             "runner-killed", "worker-dies", "runner-dies", "worker-unsure")
NO_BROKER = ("broker-killed", "broker-hung", "broker-connections", "worker-off-broker")
NO_DATABASE = ("database-killed", "database-hung", "database-connections", "worker-off-database")
COMMIT_POINTS = ("store.commit.answer_lost", "store.commit.unsent")
LATEST_PASS = 12


class Kind(NamedTuple):
    targets: tuple
    shortest_s: float
    longest_s: float
    what: str
    points: tuple = ()
    action: str = "kill"


# What lasts longer than a lease (fleet.LEASE_MS, 3 s) lets another worker take over.
KINDS = {
    "worker-killed": Kind(WORKERS, 0.2, 1.0, "kill -9; its supervisor starts it at once"),
    "worker-gone": Kind(WORKERS, 4.5, 9.0, "kill -9; started again after more than a lease"),
    "worker-stopped": Kind(WORKERS, 3.5, 8.0, "SIGSTOP for longer than a lease, SIGCONT"),
    "worker-drained": Kind(WORKERS, 0.2, 1.0, "SIGTERM; started again"),
    "worker-off-broker": Kind(WORKERS, 2.0, 8.0, "cut off the broker: nothing passes"),
    "worker-off-database": Kind(WORKERS, 2.0, 8.0, "cut off the database: nothing passes"),
    "worker-off-both": Kind(WORKERS, 4.0, 9.0, "cut off both"),
    "runner-killed": Kind(WORKERS, 0.0, 0.0, "kill -9 of a worker's runner"),
    "runner-stopped": Kind(WORKERS, 7.5, 9.0,
                           "SIGSTOP past the limit of a job whose command ends in time, SIGCONT"),
    "worker-dies": Kind(WORKERS, 10.0, 15.0, "at a named failure point", WORKER_POINTS),
    "runner-dies": Kind(WORKERS, 10.0, 15.0, "at a named failure point", RUNNER_POINTS),
    "worker-unsure": Kind(WORKERS, 10.0, 15.0, "its commits fail, or nobody tells that they did not",
                          COMMIT_POINTS, "fail"),
    "web-dies": Kind(WEBS, 10.0, 15.0, "at a named failure point", WEB_POINTS),
    "web-unsure": Kind(WEBS, 10.0, 15.0, "as worker-unsure", COMMIT_POINTS, "fail"),
    "recovery-dies": Kind(RECOVERIES, 10.0, 15.0, "at a named failure point", RECOVERY_POINTS),
    "recovery-unsure": Kind(RECOVERIES, 10.0, 15.0, "as worker-unsure", COMMIT_POINTS, "fail"),
    "reader-dies": Kind(ALTERNATES + DEADLETTERS, 10.0, 15.0, "at a named failure point", DEAD_POINTS),
    "web-killed": Kind(WEBS, 0.2, 3.0, "kill -9; started again"),
    "web-stopped": Kind(WEBS, 1.0, 6.0, "SIGSTOP, SIGCONT"),
    "web-off-database": Kind(WEBS, 2.0, 6.0, "cut off the database"),
    "recovery-killed": Kind(RECOVERIES, 0.2, 5.0, "kill -9; started again"),
    "recovery-stopped": Kind(RECOVERIES, 3.0, 8.0, "SIGSTOP until the other one leads, SIGCONT"),
    "alternate-killed": Kind(ALTERNATES, 0.2, 5.0, "kill -9; started again"),
    "deadletter-killed": Kind(DEADLETTERS, 0.2, 5.0, "kill -9; started again"),
    "webhook-killed": Kind(WEBHOOKS, 0.2, 5.0, "kill -9; started again"),
    "webhook-stopped": Kind(WEBHOOKS, 3.5, 8.0, "SIGSTOP for longer than a lease, SIGCONT"),
    "webhook-off-database": Kind(WEBHOOKS, 2.0, 8.0, "cut off the database: nothing passes"),
    "webhook-dies": Kind(WEBHOOKS, 10.0, 15.0, "at a named failure point", HOOK_POINTS),
    "broker-killed": Kind(SITE, 0.2, 6.0, "kill -9 of RabbitMQ; started again"),
    "broker-hung": Kind(SITE, 1.0, 5.0, "SIGSTOP, SIGCONT of RabbitMQ"),
    "broker-connections": Kind(SITE, 0.0, 0.0, "all connections to the broker closed"),
    "database-killed": Kind(SITE, 0.2, 6.0, "kill -9 of MariaDB; started again"),
    "database-hung": Kind(SITE, 1.0, 5.0, "SIGSTOP, SIGCONT of MariaDB"),
    "database-connections": Kind(SITE, 0.0, 0.0, "all connections to the database killed"),
    "memory-alarm": Kind(SITE, 2.0, 6.0, "the broker takes no messages"),
    "unbound": Kind(QUEUES, 2.0, 6.0, "the binding of a submission queue is removed"),
    "purged": Kind(QUEUES, 0.0, 0.0, "the broker loses all messages that wait in a queue"),
    "purged-in-use": Kind(QUEUES, 2.0, 4.0,
                          "as purged, with drained workers, so that it is not empty until they go on"),
    "doubled-messages": Kind(QUEUES, 0.0, 0.0, "messages of old and new jobs sent again, five times"),
    "garbage": Kind(QUEUES, 0.0, 0.0, "messages that are none"),
}


class Fault(NamedTuple):
    at_s: float
    kind: str
    target: str
    for_s: float
    point: str  # for SLUICE_FAULT; empty for most kinds

    def __str__(self):
        lasts = f" for {self.for_s:.1f} s" if self.for_s else ""
        return f"{self.at_s:7.1f} s  {self.kind} {self.target}{lasts} {self.point}".rstrip()


def _point(kind, dice):
    if not kind.points:
        return ""
    passes = sorted(dice.sample(range(1, LATEST_PASS + 1), 1 if kind.action == "kill" else 4))
    name = dice.choice(kind.points)
    return ";".join(f"{name}={kind.action}@{number}" for number in passes)


def schedule(seed, seconds, per_minute=3.0):
    """Faults in the order of time. Kinds are dealt like cards, so that each has its turn. With three
    per minute the pauses are 15 to 30 s; a fault may strike while an earlier one lasts."""
    dice = random.Random(f"faults {seed}")
    pause_s = 60.0 / per_minute
    faults, deck, at_s = [], [], WARM_UP_S
    while True:
        at_s += dice.uniform(pause_s * 0.75, pause_s * 1.5)
        if not deck:
            deck = sorted(KINDS)
            dice.shuffle(deck)
        name = deck.pop()
        kind = KINDS[name]
        fault = Fault(round(at_s, 1), name, dice.choice(kind.targets),
                      round(dice.uniform(kind.shortest_s, kind.longest_s), 1), _point(kind, dice))
        if fault.at_s + fault.for_s > seconds - COOL_DOWN_S:
            return faults
        faults.append(fault)
