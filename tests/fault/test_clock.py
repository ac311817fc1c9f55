# SPDX-License-Identifier: MIT
"""The wall clock of a program, or of both servers, is an hour off from one moment to the next:
nobody is taken for dead, no job is lost, and only tokens feel it."""

import os

import pytest

import sluice
import tokens
from clocks import Clock
from injection import injected
from jobs import Traces
from servers import Servers
from sluice import TENANT, Site
from waiting import stays_true, wait_until

HOUR = 3600
JOBS = 4
WATCH_S = 2 * sluice.LEASE_MS / 1000
REQUEST = {"name": "clock", "command": ["true"]}


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    clock = Clock(str(tmp_path_factory.mktemp("clock") / "servers"))
    os.environ.update(clock.environment)  # the servers inherit it
    try:
        made = Servers().__enter__()
    finally:
        for name in clock.environment:
            del os.environ[name]
    made.clock = clock
    yield made
    made.close()


@pytest.fixture
def own(servers):
    with Site(servers) as made:
        yield made
        servers.clock.step(0)
        for process in made.processes:
            print(f"---- {process.name}\n{process.log_tail()}")


class Running:
    """A site with a clock for each program, and jobs that run."""

    def __init__(self, site):
        self.site, environment = site, site.environment
        self.clocks = {"servers": site.servers.clock}

        def start(name, program, **settings):
            self.clocks[name] = Clock(site.path(f"clock-{name}"))
            site.environment = lambda **more: environment(**more) | self.clocks[name].environment
            try:
                return program(**settings)
            finally:
                site.environment = environment
        self.web = start("web", site.web)
        self.worker = start("worker", site.worker, slots=JOBS)
        site.worker("default", "well", slots=JOBS)
        site.reader("recovery", recovery_outbox_age_ms=1000)
        self.traces = Traces(site.path("traces"))
        self.ann = site.client(self.web)
        self.jobs = [self.ann.submit(*self.traces.command(str(at))) for at in range(JOBS)]
        self.shells = [self.traces.wait_runs(str(at))[0] for at in range(JOBS)]

    def nobody_dies(self):
        return (all(sluice.running(pid) for pid in self.shells)
                and self.site.count("workers", "state <> 'live'") == 0)

    def client_at(self, seconds):
        """ann with a token that was made when the clock showed so many seconds more."""
        made = tokens.claims("ann", ["user"], TENANT, life_s=600)
        made |= {"iat": made["iat"] + seconds, "exp": made["exp"] + seconds}
        client = self.site.client(self.web)
        client.token = tokens.token(self.site.key, made)
        return client


def check_tokens(running, seconds):
    """A token lives by the clock of the web that looks at it."""
    running.client_at(0).post("/v1/jobs", REQUEST).problem(401)
    return running.client_at(seconds)


@pytest.mark.parametrize("seconds", [HOUR, -HOUR])
@pytest.mark.parametrize("who", ["worker", "web", "servers"])
def test_a_clock_that_is_an_hour_off_costs_nothing(own, who, seconds):
    with injected(f"F-11 {who} {seconds // HOUR:+d}h", own) as hit:
        running = Running(own)
        running.clocks[who].step(seconds)
        stays_true("all live and run", running.nobody_dies, WATCH_S)
        client = check_tokens(running, seconds) if who == "web" else running.ann
        job = client.submit(*running.traces.command("new"))
        running.traces.wait_runs("new")
        running.traces.open("gate")
        client.wait_status(job, "FINISHED")
        running.clocks[who].step(0)
        hit.healed()
        stays_true("nobody is dead", lambda: own.count("workers", "state <> 'live'") == 0, WATCH_S)
        for job in running.jobs + [running.ann.submit("true")]:
            running.ann.wait_status(job, "FINISHED")
        own.wait_clean()
        wrong = own.sql("SELECT COUNT(*) FROM jobs WHERE losses > 0 OR attempts <> 1")
        assert wrong == [["0"]]
