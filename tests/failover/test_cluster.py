# SPDX-License-Identifier: MIT
"""Three RabbitMQ nodes, of which one or two are killed under load: nothing is lost, run twice or
started again, and submissions go on. Programs know the addresses of all three."""

import json

import pytest

import jobs
from cluster import ClusterServers
from sluice import TENANT, Site
from steady import Load, check_runs
from waiting import wait_until

LONG_JOBS = 2
PAUSE_S = 0.2  # between two submissions of one of the three clients
SUBMIT = f"sluice.{TENANT}.submit.default"


@pytest.fixture(scope="module")
def servers():
    with ClusterServers() as made:
        yield made


@pytest.fixture(name="site")
def clustered(servers):
    with Site(servers) as made:
        yield made
        for process in made.processes:
            print(f"---- {process.name}\n{process.log_tail()}")


class Running:
    """A whole site under load, with long jobs that must run through everything."""

    def __init__(self, site):
        self.site, self.cluster = site, site.servers.rabbitmq
        self.web = site.web(amqp_connect_timeout_ms=2000)
        self.ann = site.client(self.web)
        for name in ("one", "two"):
            site.worker(name=name, slots=8)
        for kind in ("recovery", "alternate", "deadletter"):
            site.reader(kind, recovery_tick_ms=200)
        self.traces = jobs.Traces(site.path("traces"))
        self.long = [self.ann.submit(*self.traces.command(f"long{n}")) for n in range(LONG_JOBS)]
        for number in range(LONG_JOBS):
            self.traces.wait_runs(f"long{number}")
        self.load = Load(site, self.web.url, self.traces.path("short"), PAUSE_S)
        self.load.wait_more(30)
        self.cluster.settle()

    def wait_through(self):
        """All that is taken up to now ends: messages flow."""
        taken = list(self.load.accepted)
        ids = ", ".join("0x" + job.replace("-", "") for job in taken[-40:])

        def left():
            return self.site.sql("SELECT LOWER(HEX(id)), status FROM jobs WHERE ended_at IS NULL "
                                 f"AND id IN ({ids})")
        wait_until(lambda: f"jobs to end: {left()} {self.site.queues()}", lambda: not left(), 40, 0.3)

    def wait_all_ready(self):
        for process in self.site.processes:
            process.wait_ready()

    def finish(self):
        self.load.stop()
        assert self.load.tries == len(self.load.accepted), "no submission was refused"
        self.traces.open()
        for job in self.long:
            assert self.ann.wait_end(job, 60)["status"] == "FINISHED"
        wait_until("every job to end", lambda: not self.site.count("jobs", "ended_at IS NULL"), 60)
        check_runs(self.site, self.load, self.traces, self.long)
        self.site.wait_clean(30)
        print(f"\n{len(self.load.accepted)} short jobs and {len(self.long)} long ones: "
              "lost 0, doubled 0, started again 0, submissions refused 0")


def broker_findings(site):
    found = json.loads(site.run("doctor", "-o", "json", worker_work_root=site.path("work")).stdout)
    return [(one["result"], one["finding"]) for one in found if one["check"] == "broker"]


def test_the_queue_is_on_three_nodes_and_the_doctor_sees_them(site):
    web = site.web()
    site.worker()
    site.client(web).wait_end(site.client(web).submit("true"))
    cluster = site.servers.rabbitmq
    members = cluster.ctl("--no-table-headers", "list_queues", "-p", site.vhost, "name", "type",
                          "members")
    row = next(line for line in members.splitlines() if line.startswith(SUBMIT))
    assert "quorum" in row and all(node.node in row for node in cluster.nodes), row
    assert [result for result, _ in broker_findings(site)] == ["ok"] * 3


def test_each_node_that_leads_the_queue_is_killed_in_turn_under_load(site):
    running = Running(site)
    for turn in range(3):
        leader = wait_until("a leader", lambda: running.cluster.leader(SUBMIT, site.vhost), 30, 0.5)
        leader.kill9()
        running.load.wait_more(30)
        running.wait_through()
        running.wait_all_ready()
        if turn == 0:
            found = broker_findings(site)
            assert sorted(result for result, _ in found) == ["ok", "ok", "warning"], found
            assert any(str(leader.port) in text for result, text in found if result == "warning")
        leader.start()
        leader.wait_ready()
        running.load.wait_more(10)
        running.wait_through()
        running.cluster.settle()
    running.finish()


def test_without_a_majority_submissions_are_taken_and_all_flows_when_it_is_back(site):
    running = Running(site)
    lost = running.cluster.nodes[1:]
    for node in lost:
        node.kill9()
    running.load.wait_more(60)
    wait_until("messages to wait in the outbox", lambda: site.count("outbox") > 10, 30)
    for node in lost:
        node.start()
    for node in lost:
        node.wait_ready()
    running.wait_all_ready()
    running.wait_through()
    running.finish()
