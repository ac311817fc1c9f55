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
SITE = ("site",)

WARM_UP_S, COOL_DOWN_S = 8.0, 12.0


class Kind(NamedTuple):
    targets: tuple
    shortest_s: float
    longest_s: float
    what: str


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
    "web-killed": Kind(WEBS, 0.2, 3.0, "kill -9; started again"),
    "web-stopped": Kind(WEBS, 1.0, 6.0, "SIGSTOP, SIGCONT"),
    "web-off-database": Kind(WEBS, 2.0, 6.0, "cut off the database"),
    "recovery-killed": Kind(RECOVERIES, 0.2, 5.0, "kill -9; started again"),
    "recovery-stopped": Kind(RECOVERIES, 3.0, 8.0, "SIGSTOP until the other one leads, SIGCONT"),
    "alternate-killed": Kind(ALTERNATES, 0.2, 5.0, "kill -9; started again"),
    "deadletter-killed": Kind(DEADLETTERS, 0.2, 5.0, "kill -9; started again"),
    "broker-killed": Kind(SITE, 0.2, 6.0, "kill -9 of RabbitMQ; started again"),
    "broker-hung": Kind(SITE, 1.0, 5.0, "SIGSTOP, SIGCONT of RabbitMQ"),
    "broker-connections": Kind(SITE, 0.0, 0.0, "all connections to the broker closed"),
    "database-killed": Kind(SITE, 0.2, 6.0, "kill -9 of MariaDB; started again"),
    "database-hung": Kind(SITE, 1.0, 5.0, "SIGSTOP, SIGCONT of MariaDB"),
    "database-connections": Kind(SITE, 0.0, 0.0, "all connections to the database killed"),
    "memory-alarm": Kind(SITE, 2.0, 6.0, "the broker takes no messages"),
    "unbound": Kind(QUEUES, 2.0, 6.0, "the binding of a submission queue is removed"),
    "purged": Kind(QUEUES, 0.0, 0.0, "the broker loses all messages that wait in a queue"),
    "doubled-messages": Kind(QUEUES, 0.0, 0.0, "messages of old and new jobs sent again, five times"),
    "garbage": Kind(QUEUES, 0.0, 0.0, "messages that are none"),
}


class Fault(NamedTuple):
    at_s: float
    kind: str
    target: str
    for_s: float

    def __str__(self):
        lasts = f" for {self.for_s:.1f} s" if self.for_s else ""
        return f"{self.at_s:7.1f} s  {self.kind} {self.target}{lasts}"


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
                      round(dice.uniform(kind.shortest_s, kind.longest_s), 1))
        if fault.at_s + fault.for_s > seconds - COOL_DOWN_S:
            return faults
        faults.append(fault)
