# SPDX-License-Identifier: MIT
"""A program is cut off the database, the broker or both, or packets are lost on the way, while
another worker is well: no job is lost, none runs twice, and all heals without a restart."""

import contextlib

import pytest

import sluice
from injection import impossible, injected
from jobs import Traces
from partition import Way, enter_namespace
from servers import Servers
from sluice import Site
from waiting import stays_true, wait_until

JOBS = 4
CUT_S = 3 * sluice.LEASE_MS / 1000
SOON = {"db_query_timeout_ms": 3000, "db_connect_timeout_ms": 1000, "amqp_connect_timeout_ms": 1000}
# A lost packet is sent again after 0.2 s, then 0.4 s and so on: a lease of 2 s would be too short.
PATIENT = {"fleet_beat_ms": 1000, "fleet_lease_ms": 10000, "amqp_heartbeat_s": 5}
REQUEST = {"name": "cut", "command": ["true"]}


@pytest.fixture(scope="module")
def packets():
    return enter_namespace()


@pytest.fixture(scope="module")
def servers(packets):  # pylint: disable=unused-argument
    with Servers() as made:  # within the namespace
        yield made


@pytest.fixture
def own(servers):
    with Site(servers) as made:
        yield made
        for process in made.processes:
            print(f"---- {process.name}\n{process.log_tail()}")


class Ways:
    """A way of its own to each server, for one program."""

    def __init__(self, site, packets):
        given = site.servers.environment()
        self.db = Way(int(given["SLUICE_TEST_DB_PORT"]), packets)
        self.broker = Way(int(given["SLUICE_TEST_AMQP_PORT"]), packets)

    def settings(self):
        return {"db_host": "127.0.0.1", "db_port": self.db.port,
                "amqp_host": "127.0.0.1", "amqp_port": self.broker.port}

    def heal(self):
        self.db.heal()
        self.broker.heal()


class Parted:
    """A worker with ways of its own that runs all jobs, and one that could take them."""

    def __init__(self, site, packets):
        self.site, self.ways = site, Ways(site, packets)
        self.ann = site.client(site.web())
        self.traces = Traces(site.path("traces"))
        self.worker = site.worker("default", "cut-off", slots=JOBS, **SOON,
                                  **self.ways.settings())
        self.jobs = {str(at): self.ann.submit(*self.traces.command(str(at))) for at in range(JOBS)}
        for job in self.jobs.values():
            self.ann.wait_status(job, "RUNNING")
        self.shells = {name: self.traces.wait_runs(name)[0] for name in self.jobs}
        site.worker("default", "well", slots=JOBS)
        site.wait_beats()

    def all_run(self):
        return all(sluice.running(pid) for pid in self.shells.values())

    def finish(self, runs):
        self.ways.heal()
        self.traces.open()
        for job in self.jobs.values():
            self.ann.wait_status(job, "FINISHED", timeout_s=60)
            assert self.site.job_row(job, "losses", "attempts") == [str(runs - 1), "1"]
        assert {len(self.traces.runs(name)) for name in self.jobs} == {runs}
        assert not self.traces.overlapped()
        wait_until("it to be ready again", lambda: self.worker.ready() == 200, 60)
        self.site.wait_clean()


@pytest.mark.parametrize("sides", ["both", "there", "back"])
@pytest.mark.parametrize("which", ["db", "broker"])
def test_a_worker_cut_off_one_server_keeps_its_jobs(own, packets, which, sides):
    with injected(f"F-7 worker-{which} {sides}", own) as hit:
        parted = Parted(own, packets)
        getattr(parted.ways, which).cut(sides)
        stays_true("its jobs run", parted.all_run, CUT_S)
        hit.healed()
        parted.finish(runs=1)


def test_a_worker_cut_off_both_ends_its_jobs_before_another_begins_them(own, packets):
    with injected("F-7 worker-all", own) as hit:
        parted = Parted(own, packets)
        parted.ways.db.cut()
        parted.ways.broker.cut()
        hit.healed()  # the other worker does not wait for the network
        for name in parted.jobs:
            parted.traces.wait_runs(name, 2)
            assert not sluice.running(parted.shells[name])
        hit.recovered()
        parted.finish(runs=2)
        assert parted.worker.log_events("worker.silent")


def test_a_web_cut_off_the_database_refuses_and_heals(own, packets):
    with injected("F-7 web-db", own) as hit:
        ways = Ways(own, packets)
        web = own.web(web_deadline_ms=8000, **SOON, **ways.settings())
        ann = own.client(web)
        ann.submit("true")
        ways.db.cut()
        assert ann.post("/v1/jobs", REQUEST).status in (503, 504)
        wait_until("it to say that it is not ready", lambda: web.ready() == 503)
        ann.get("/livez").expect(200)
        ways.heal()
        hit.healed()
        wait_until("submissions", lambda: ann.post("/v1/jobs", REQUEST).status == 201, 60)
        own.worker()
        # What was refused may be there all the same: the answer to the commit was cut off.
        wait_until("all to end", lambda: not own.count("jobs", "status <> 'FINISHED'"), 60)
        own.wait_clean()


def test_a_web_cut_off_the_broker_takes_jobs_and_sends_them_later(own, packets):
    with injected("F-7 web-broker", own) as hit:
        ways = Ways(own, packets)
        web = own.web(**SOON, **ways.settings())
        ann = own.client(web)
        own.worker()
        ann.wait_status(ann.submit("true"), "FINISHED")
        ways.broker.cut()
        jobs = [ann.submit("true") for _ in range(10)]
        ways.heal()
        hit.healed()
        for job in jobs:
            ann.wait_status(job, "FINISHED", timeout_s=60)
        own.wait_clean()


def test_three_packets_in_ten_are_lost_and_no_job_is(own, packets):
    if not packets:
        impossible("F-7 loss", "needs root and iptables: packets are dropped by the kernel")
        pytest.skip("no packet filter")
    with injected("F-7 loss", own) as hit:
        ways = Ways(own, packets)
        web = own.web(**PATIENT, **ways.settings())
        ann = own.client(web)
        worker = own.worker("default", "lossy", **PATIENT, **ways.settings())
        traces = Traces(own.path("traces"))
        for way in (ways.db, ways.broker):
            way.lose(0.3)
        jobs, tries = [], 0
        while len(jobs) < 5 and tries < 60:
            tries += 1
            request = {"name": "x", "command": traces.command(str(len(jobs)))}
            with contextlib.suppress(OSError):  # it took longer than we wait: the key is the same
                answer = ann.post("/v1/jobs", request, {"Idempotency-Key": f"loss {len(jobs)}"})
                jobs += [answer.json["id"]] if answer.status in (200, 201) else []
        assert len(jobs) == 5
        wait_until("a run on this way", lambda: own.count("jobs", "status = 'RUNNING'"), 180)
        ways.heal()
        hit.healed()
        traces.open()
        for job in jobs:
            ann.wait_status(job, "FINISHED", timeout_s=60)
        assert not traces.overlapped()
        wait_until("it to be ready again", lambda: worker.ready() == 200, 60)
        own.wait_clean()
