# SPDX-License-Identifier: MIT
"""The broker or the database goes away and comes back: nothing is lost and nothing runs twice.

Each test has servers of its own: it stops them.
"""

import pytest

import sluice
from injection import injected
from jobs import Traces
from waiting import wait_until

LONG, WAITING = 8, 100


class Load:
    """Long jobs that run until they are let go, and short ones that wait behind them."""

    def __init__(self, site, slots=LONG):
        self.site = site
        self.web = site.web()
        self.ann = site.client(self.web)
        self.worker = site.worker(slots=slots)
        self.traces = Traces(site.path("traces"))
        self.jobs = {}

    def start(self, waiting=WAITING):
        for at in range(LONG):
            gate = "even" if at % 2 == 0 else "odd"
            self.jobs[f"long{at}"] = self.ann.submit(*self.traces.command(f"long{at}", gate))
        for at in range(LONG):
            self.traces.wait_runs(f"long{at}")
        for job in self.jobs.values():
            self.ann.wait_status(job, "RUNNING")
        self.site.wait_beats()
        for at in range(waiting):
            self.jobs[f"short{at}"] = self.ann.submit(*self.traces.command(f"short{at}", "even"))

    def pids(self):
        return {f"long{at}": self.traces.runs(f"long{at}") for at in range(LONG)}

    def finish(self):
        """Lets all go; all must end well, each after exactly one run."""
        for gate in ("even", "odd"):
            self.traces.open(gate)
        for job in self.jobs.values():
            self.ann.wait_status(job, "FINISHED", timeout_s=60)
        # Those that only asked whether the service was back are not among them.
        wait_until("the others to end",
                   lambda: not self.site.count("jobs", "status <> 'FINISHED'"))
        ran = {name: len(self.traces.runs(name)) for name in self.jobs}
        assert set(ran.values()) == {1}, ran
        assert not self.traces.overlapped()
        assert self.site.count("jobs", "losses > 0") == 0
        self.site.wait_clean()


@pytest.mark.parametrize("way", ["restart", "kill"])
def test_a_broker_that_restarts_costs_no_job(own, servers, way):
    with injected(f"F-4 {way}", own) as hit:
        load = Load(own)
        load.start()
        before = load.pids()
        servers.rabbitmq.settle()
        servers.rabbitmq.stop() if way == "restart" else servers.rabbitmq.kill9()
        load.jobs["while away"] = load.ann.submit(*load.traces.command("while away", "even"))
        assert own.count("outbox") >= 1
        servers.rabbitmq.start()
        servers.rabbitmq.wait_ready()
        hit.healed()
        load.web.wait_ready()
        load.worker.wait_ready()
        assert load.pids() == before
        assert all(sluice.running(pids[0]) for pids in before.values())
        load.finish()


@pytest.mark.parametrize("way", ["restart", "kill"])
def test_a_database_that_restarts_costs_no_job(own, servers, way):
    with injected(f"F-5 {way}", own) as hit:
        load = Load(own)
        load.start()
        before = load.pids()
        servers.mariadb.stop() if way == "restart" else servers.mariadb.kill9()
        answer = load.ann.post("/v1/jobs", {"name": "x", "command": ["true"]})
        assert answer.problem(503)["code"] == "SLUICE-1050"
        assert int(answer.headers["Retry-After"]) > 0
        # Half of the long jobs end now: their results wait beside them.
        load.traces.open("even")
        wait_until("four to end", lambda: not any(
            sluice.running(pids[0]) for name, pids in before.items() if int(name[4:]) % 2 == 0))
        servers.mariadb.start()
        servers.mariadb.wait_ready()
        hit.healed()
        wait_until("submissions", lambda: load.ann.post(
            "/v1/jobs", {"name": "x", "command": ["true"]}).status == 201, 20)
        assert load.pids() == before
        assert all(sluice.running(pids[0]) for name, pids in before.items() if int(name[4:]) % 2)
        load.finish()


def test_submissions_are_taken_while_only_the_broker_is_away(own, servers):
    with injected("F-4 submit", own) as hit:
        web = own.web()
        ann = own.client(web)
        servers.rabbitmq.settle()
        servers.rabbitmq.kill9()
        jobs = [ann.submit("true") for _ in range(20)]
        assert own.count("outbox") == 20
        assert own.client(web).get("/readyz").status in (200, 503)
        servers.rabbitmq.start()
        servers.rabbitmq.wait_ready()
        hit.healed()
        own.worker()
        for job in jobs:
            ann.wait_status(job, "FINISHED")
        own.wait_clean()


def test_rows_left_by_another_web_process_are_sent(own, servers):
    with injected("F-4 relay", own) as hit:
        first = own.web("first")
        servers.rabbitmq.settle()
        servers.rabbitmq.kill9()
        job = own.client(first).submit("true")
        first.kill9()
        servers.rabbitmq.start()
        servers.rabbitmq.wait_ready()
        hit.healed()
        second = own.web("second")
        own.worker()
        own.client(second).wait_status(job, "FINISHED")
        own.wait_clean()


def test_programs_that_start_first_wait_for_the_servers(own, servers):
    with injected("F-5 both", own) as hit:
        servers.rabbitmq.stop()
        servers.mariadb.stop()
        web = own.web(wait=False)
        worker = own.worker(wait=False)
        for program in (web, worker):
            program.wait_log("store.wait")
            assert program.alive() and program.ready() != 200
        servers.mariadb.start()
        servers.rabbitmq.start()
        servers.mariadb.wait_ready()
        servers.rabbitmq.wait_ready()
        hit.healed()
        web.wait_ready()
        worker.wait_ready()
        ann = own.client(web)
        ann.wait_status(ann.submit("true"), "FINISHED")
