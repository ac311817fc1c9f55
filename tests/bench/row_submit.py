# SPDX-License-Identifier: MIT
"""submit: how fast work is taken durably, and how long one waits for the answer."""

import contextlib
import os
import subprocess

import sluice
from measure import Goal
from proc import CpuMeter
from rig import TRUE, accepted, tool
from waiting import wait_until

CONNECTIONS = (1, 8, 64)
P99_MS = 50


class Echo:
    """libmicrohttpd alone, under the same load."""

    def __init__(self):
        self.child = subprocess.Popen([os.path.join(sluice.BIN, "bench-echo")], text=True,
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.port = self.child.stdout.readline().strip()

    def per_s(self, rig, connections, seconds):
        body = rig.site.path("body")  # that of the request before
        report = tool("load", "--port", self.port, "--connections", connections, "--seconds",
                      seconds, "--body", body, "--tokens", rig.tokens)
        return accepted(report) / report["seconds"]

    def close(self):
        self.child.stdin.close()
        self.child.wait()
        self.child.stdout.close()


def raw_servers(bench):
    """What broker and database can do at all."""
    servers = bench.servers.environment()
    amqp = [servers[f"SLUICE_TEST_AMQP_{name}"] for name in ("PORT", "USER", "PASSWORD", "VHOST")]
    base = [servers[f"SLUICE_TEST_DB_{name}"] for name in ("PORT", "USER", "PASSWORD", "NAME")]
    count = bench.size(5000, 1000)
    alone = bench.measure("publish and confirm, one at a time (quorum queue)", "1/s", "higher")
    flight = bench.measure("publish and confirm, 200 in flight (quorum queue)", "1/s", "higher")
    rows = bench.measure("rows of 600 bytes, one per commit, 1 thread", "1/s", "higher")
    group = bench.measure("rows of 600 bytes, 50 per commit, 1 thread", "1/s", "higher")
    for _ in range(bench.rounds):
        alone.add("raw", tool("confirm", *amqp, count, 1)["per_s"])
        flight.add("raw", tool("confirm", *amqp, count * 4, 200)["per_s"])
        rows.add("raw", tool("commit", *base, 1, count, 1)["rows_per_s"])
        group.add("raw", tool("commit", *base, 1, count // 10, 50)["rows_per_s"])


def check_sluice(rig, taken):
    rows = rig.database.one("SELECT COUNT(*) FROM jobs")
    assert rows == taken, f"{taken} answers 201, {rows} jobs"


def one(rig, system, connections, seconds):
    meter = CpuMeter(rig.roles())
    report = rig.load(TRUE, connections=connections, seconds=seconds)
    taken = accepted(report)
    if system == "sluice":
        check_sluice(rig, taken)
    return report, {role: spent * 1000 / taken for role, spent in meter.read().items()}


def run(bench):
    """durable 201s over keep-alive connections, RS256 tokens"""
    seconds = bench.size(3, 1.5)
    systems = bench.systems("celery", "bullmq")
    with contextlib.ExitStack() as stack:
        rigs = {system: stack.enter_context(bench.rig(system, slots=0)) for system in systems}
        echo = Echo()
        stack.callback(echo.close)
        for connections in CONNECTIONS:
            last = connections == CONNECTIONS[-1]
            rate = bench.measure(f"durable submissions, {connections} connections", "1/s", "higher",
                                 [Goal(2, "celery")])
            p99 = bench.measure(f"submission p99, {connections} connections", "ms", "lower",
                                [Goal(P99_MS)] if last else [])
            cpu = {}
            for _at, system in bench.turns(systems):
                report, spent = one(rigs[system], system, connections, seconds)
                rate.add(system, report["requests"] / report["seconds"])
                p99.add(system, report["p99_ms"])
                cpu[system] = spent
                if system == "sluice":
                    rate.add("raw", echo.per_s(rigs[system], connections, 1))
                empty(rigs[system], system)
            for system in systems:
                bench.say(f"{connections} connections, {system}: {rate.median(system):.0f}/s, p99 "
                          f"{p99.median(system):.1f} ms; " + ", ".join(
                              f"{role} {ms:.2f}" for role, ms in cpu[system].items())
                          + " ms of processor time per submission")
            bench.note(f"cpu_ms_per_submission_{connections}", cpu)
    raw_servers(bench)


def empty(rig, system):
    """Forgets what was submitted, messages too."""
    rabbitmq = rig.servers.rabbitmq if system != "bullmq" else None
    if system == "sluice":
        wait_until("an empty outbox", lambda: rig.site.count("outbox") == 0, 60)
        rabbitmq.ctl("purge_queue", "-p", rig.site.vhost, rig.queue_name())
    elif system == "celery":
        rabbitmq.ctl("purge_queue", "-p", "celery", "bench")
    if system != "celery":
        rig.clear()
