# SPDX-License-Identifier: MIT
"""The primary of a MariaDB is killed under load and its replica takes its place, as docs/operations.md
says. With all commits nothing is lost or run again; without the last ones all that is left ends."""

import uuid

import jobs
from replica import ReplicatedServers
from rest import AGAIN
from sluice import Site, running
from steady import Load, check_runs
from waiting import wait_until

LONG_JOBS = 2
PAUSE_S = 0.2
QUICK = {"recovery_tick_ms": 200, "recovery_outbox_age_ms": 1000}


def start(site, slots):
    web = site.web()
    for name, count in slots.items():
        site.worker(name=name, slots=count)
    for kind in ("recovery", "alternate", "deadletter"):
        site.reader(kind, **QUICK)
    return web


def fail_over(servers):
    servers.mariadb.kill9()
    servers.promote()


def test_a_replica_that_has_all_commits_takes_over_and_nothing_is_lost_or_run_again():
    with ReplicatedServers() as servers, Site(servers) as site:
        servers.semi_synchronous()
        web = start(site, {"one": 8, "two": 8})
        ann = site.client(web)
        traces = jobs.Traces(site.path("traces"))
        long = [ann.submit(*traces.command(f"long{n}")) for n in range(LONG_JOBS)]
        for number in range(LONG_JOBS):
            traces.wait_runs(f"long{number}")
        load = Load(site, web.url, traces.path("short"), PAUSE_S)
        load.wait_more(60)
        fail_over(servers)
        load.wait_more(60)
        load.stop()
        traces.open()
        for job in long:
            assert ann.wait_end(job, 60)["status"] == "FINISHED"
        wait_until("every job to end", lambda: not site.count("jobs", "ended_at IS NULL"), 60)
        check_runs(site, load, traces, long)
        site.wait_clean(30)
        print(f"\nsemi-synchronous: {len(load.accepted)} short jobs in {load.tries} tries: "
              "lost 0, doubled 0, run again 0")


class Rewound:
    """What a site does of which the replica knows no more than the beginning: one slot, so that
    `second` is claimed when `first` has ended."""

    def __init__(self, servers, site):
        self.servers, self.site = servers, site
        self.ann = site.client(start(site, {"one": 1}))
        self.traces = jobs.Traces(site.path("traces"))
        self.first, self.second, self.third = [
            self.ann.submit(*self.traces.command(name, name)) for name in ("a", "b", "c")]
        self.traces.wait_runs("a")
        self.ann.wait_status(self.first, "RUNNING")
        servers.wait_applied()
        servers.cut_replica()
        self.key = str(uuid.uuid4())
        self.unknown = self.submit_unknown().expect(201).json["id"]
        self.traces.open("a")
        self.ann.wait_end(self.first)
        self.traces.wait_runs("b")
        self.ann.wait_status(self.second, "RUNNING")

    def submit_unknown(self):
        return self.ann.post("/v1/jobs", {"name": "d", "command": ["true"]},
                             {"Idempotency-Key": self.key})

    def wait_up(self):
        wait_until("the service", lambda: self.ann.get("/v1/whoami").status not in AGAIN
                   and self.ann.get(f"/v1/jobs/{self.first}").status == 200, 30)


def supervise(site):
    """A leader whose number the replica does not know ends with 75; whoever supervises it starts it
    again, as the units and compose.yml do."""
    for process in site.processes:
        if not process.alive():
            print(f"---- {process.name} ended {process.child.returncode}\n{process.log_tail()}")
            assert process.child.returncode == 75
            process.start()


def test_a_replica_without_the_last_commits_leaves_nothing_stuck():
    with ReplicatedServers() as servers, Site(servers) as site:
        was = Rewound(servers, site)
        fail_over(servers)
        was.wait_up()
        pid = was.traces.runs("b")[0]
        assert was.ann.get(f"/v1/jobs/{was.unknown}").status == 404
        assert was.ann.job(was.first)["status"] == "RUNNING"
        wait_until("the run without a claim to be ended", lambda: not running(pid), 20)
        was.traces.wait_runs("b", 2, 60)  # in the one slot
        for gate in ("b", "c"):
            was.traces.open(gate)
        was.traces.wait_runs("a", 2, 60)
        for job in (was.first, was.second, was.third):
            assert was.ann.wait_end(job, 60)["status"] == "FINISHED"
            assert was.ann.output(job) == b"done\n"
        wait_until("the message without a job to be a dead one",
                   lambda: site.count("dead_messages", "job_id IS NOT NULL") > 0, 40)
        site.accepted.remove(was.unknown)
        again = was.submit_unknown().expect(201).json["id"]
        assert again != was.unknown
        supervise(site)
        assert was.ann.wait_end(again, 30)["status"] == "FINISHED"
        try:
            site.wait_clean(30)
        except AssertionError:
            for process in site.processes:
                print(f"---- {process.name} {process.alive()}\n{process.log_tail()}")
            raise
        assert not was.traces.overlapped()
        done = site.run("audit")
        assert done.returncode == 0, done.stdout
