# SPDX-License-Identifier: MIT
"""matrix: the faults that the fault tests must inject, by family and point, in plain words.

A row that no test injected fails the table, and so does an injection that has no row.
"""

# Where a worker is killed, or held up while its job is cancelled.
WORKER_POINTS = {
    "K5": ("worker.received", "received the message"),
    "claim": ("job.claim.after_commit", "committed the claim"),
    "K6": ("worker.claimed", "claimed the job"),
    "K7": ("worker.runner_asked", "asked the runner"),
    "K8": ("worker.started", "started the job"),
    "move": ("job.move.after_commit", "committed a move"),
    "K9": ("worker.child_ended", "saw the job end"),
    "K10": ("worker.output_kept", "kept the output"),
    "K11": ("worker.terminal_committed", "committed the end"),
    "forgotten": ("worker.forgotten", "had its runner forget the run"),
    "K12": ("worker.acknowledged", "acknowledged the message"),
}
WEB_POINTS = {
    "begin": ("job.submit.before_commit", "is about to commit the row"),
    "commit": ("job.submit.after_commit", "committed the row"),
    "K1": ("web.row_committed", "left the database"),
    "K2": ("web.published", "published the message"),
    "K3": ("web.confirmed", "got the confirm"),
    "K4": ("web.answered", "answered"),
}
RECOVERY_POINTS = {
    "R1": ("recovery.blocked_seen", "saw the blocked row"),
    "R2": ("recovery.tested", "tested the cause"),
    "R3": ("recovery.release_committed", "committed the release"),
    "R4": ("recovery.published", "published the message"),
    "R5": ("recovery.confirmed", "got the confirm"),
}
DEAD_POINTS = {
    "D1": ("dead.stored", "stored the message"),
    "D2": ("dead.job_settled", "settled its job"),
    "D3": ("dead.before_ack", "is about to acknowledge"),
}


def _killed(family, points, who):
    return {f"{family} {key}": f"{who} killed when it {words}"
            for key, (_point, words) in points.items()}


ROWS = {
    **_killed("F-1", WEB_POINTS, "web"),
    **_killed("F-2", WORKER_POINTS, "worker"),
    "F-2 block": "worker killed when it committed BLOCKED",
    "F-2 blocked": "worker killed when it acknowledged a blocked job",
    "F-2 runner": "runner killed under its worker",
    "F-2 journal": "runner killed, its journal lost",
    "F-2 former": "calls to end a former run lost",
    "F-2 all": "every process of a worker's service told to stop",
    "F-2 transaction": "worker killed inside a transaction; the server has no limit for idle ones",
    "F-2 unasked": "worker killed when it claimed the job; it comes back to its runner",
    "F-2 fresh runner": "worker and runner killed when it claimed the job; both come back",
    "F-2 locked row": "worker killed; a row of its jobs is locked when it comes back",
    "F-2 slow discard": "worker killed; a run that it must end takes long to die",
    "F-2 defer": "host of a worker gone; its messages are deferred for long",
    "F-2 cancel": "host of a worker gone just after a cancel; nobody else serves its queue",
    "F-2 drain": "worker declared dead while it drains",
    "F-2 cancelled": "worker killed, its job cancelled meanwhile",
    **_killed("F-3", RECOVERY_POINTS, "recovery"),
    "F-4 kill": "broker killed under running and waiting jobs",
    "F-4 restart": "broker restarted under running and waiting jobs",
    "F-4 lease": "broker away for three leases",
    "F-4 submit": "broker away while jobs are submitted",
    "F-4 relay": "broker away, then web killed",
    "F-4 blocked": "broker killed while jobs are blocked",
    "F-4 release": "broker killed in the middle of a release",
    "F-5 kill": "database killed under running and waiting jobs",
    "F-5 restart": "database restarted under running and waiting jobs",
    "F-5 lease": "database away for three leases",
    "F-5 blocked": "database killed while jobs are blocked",
    "F-5 release": "database killed in the middle of a release",
    "F-5 hang": "database hangs under submissions",
    "F-5 submit": "database killed before a submission",
    "F-5 read-only": "database takes no writes any more",
    "F-5 both": "neither server is there when programs start",
    "F-6 worker": "worker stopped for longer than its lease",
    "F-6 other": "worker stopped; another takes its job; it wakes",
    "F-6 lease up": "worker with a longer lease than the others stopped: it was raised first",
    "F-6 lease down": "worker with a longer lease than the others stopped: theirs was lowered first",
    "F-6 lease own": "worker stopped that came back with a shorter lease than before",
    "F-6 lease none": "host of a worker gone that did not say its lease",
    "F-6 runner": "runner stopped for two leases",
    "F-6 both": "worker and runner stopped for less than a lease; the command ends",
    "F-6 host": "worker and runner stopped for longer than a lease; the command ends",
    **{f"F-7 worker-{which} {sides}": f"worker cut off the {server}{how}"
       for which, server in (("db", "database"), ("broker", "broker"))
       for sides, how in (("both", ""), ("there", ": what it sends"),
                          ("back", ": what it is answered"))},
    "F-7 worker-all": "worker cut off database and broker",
    "F-7 worker-half": "worker refused by database and broker for less than half a lease",
    "F-7 web-db": "web cut off the database",
    "F-7 web-broker": "web cut off the broker",
    "F-7 loss": "30 % of the packets lost",
    "F-8": "broker takes back what is not acknowledged in time",
    "F-9 memory": "broker short of memory",
    "F-9 disk": "broker short of disk",
    "F-9 acks": "broker short of memory while a job ends",
    "F-10 archive": "disk of the output full",
    "F-10 work": "disk of the work folder full",
    "F-10 database": "disk of the database full",
    "F-11 suspended": "host suspended for a lease, both servers away when it wakes",
    **{f"F-11 {who} {step}": f"clock of {words} {step[0]}1 hour"
       for who, words in (("worker", "a worker"), ("web", "the web"), ("servers", "both servers"))
       for step in ("+1h", "-1h")},
    "F-12 copies": "100 copies of a message while its job runs",
    "F-12 order": "copies, stale and future epochs, shuffled",
    "F-12 ended": "100 messages for a job that has ended",
    "F-13 non-JSON": "message that is not JSON",
    "F-13 huge": "message of 100 MB",
    "F-13 version": "message of a version that is not ours",
    "F-13 lost": "job whose runner is killed three times",
    "F-14 deleted": "queue deleted under its worker",
    "F-14 vhost": "virtual host deleted and made again, empty",
    "F-14 closed": "all connections closed by the broker",
    "F-15 unbound": "binding of a queue removed",
    **_killed("F-15", DEAD_POINTS, "alternate reader"),
    **_killed("F-16", DEAD_POINTS, "dead letter reader"),
    "F-16 limit": "message given back more often than the limit",
    "F-16 database": "database killed while dead letters come",
    "F-16 broker": "broker killed while dead letters come",
    "F-33": "1,000 jobs held by one cause, recovery killed in the release",
    **{f"F-34 {key}": f"cancel when the worker {words}"
       for key, (_point, words) in WORKER_POINTS.items()},
    "F-34 command": "web killed when it committed a cancel",
    "F-34 queued": "cancel of a job that waits",
    "F-34 blocked": "cancel of a job that is held",
    "F-34 twice": "cancel said twice",
    "F-34 race": "cancel races with the end, 24 jobs",
    "F-35 claim": "answer to the commit of a claim lost, 15 times",
    "F-35 running": "answers to the commits of a run lost, 12 times",
    **{f"F-36 {key}": f"recovery stopped when it {words}; another leads"
       for key, (_point, words) in RECOVERY_POINTS.items()},
    "F-35 killed": "connections ended by the database, 60 of them",
    "F-35 unknown": "answers to every fourth commit lost",
    "F-35 locks": "deadlocks and row locks under load",
    "F-35 held": "all rows locked for three leases",
    **{f"F-36 {key}": f"dead letter reader stopped when it {words}"
       for key, (_point, words) in DEAD_POINTS.items()},
    "F-36 dead": "dead letter reader killed, its standby takes over",
    "F-37 drain": "worker told to end; its jobs take longer",
    "F-37 twice": "worker told to end twice",
    "F-37 web": "web told to read a wrong configuration",
    "F-37 worker": "worker told to read a wrong configuration",
    "F-37 recovery": "recovery told to read a wrong configuration",
}
