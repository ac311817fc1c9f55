# SPDX-License-Identifier: MIT
"""The soak: jobs of all sorts while a seeded nemesis strikes. docs/development.md tells how to run it.

SLUICE_SOAK_SEED, SLUICE_SOAK_SECONDS, SLUICE_SOAK_JOBS, SLUICE_SOAK_FAULTS (per minute, 0: none),
SLUICE_SOAK_LOGS (a folder that takes the logs if something is wrong).
"""

import os
import random
import shutil

import pytest

import report
import told
from evidence import SHOWN, Judge, Stamps
from faults import Injector
from fleet import Fleet
from load import APP, APP_VERSION, QUOTA, QUOTA_USER, SYSTEM, Load, jobs_of
from nemesis import QUEUES, WEBS, schedule
from receiver import Receiver
from rest import AGAIN
from servers import Servers
from sluice import Site
from waiting import wait_until

SEED = int(os.environ.get("SLUICE_SOAK_SEED") or random.randrange(1_000_000))
SECONDS = float(os.environ.get("SLUICE_SOAK_SECONDS", "600"))
JOBS = int(os.environ.get("SLUICE_SOAK_JOBS", "5000"))
LOGS = os.environ.get("SLUICE_SOAK_LOGS")
FAULTS = float(os.environ.get("SLUICE_SOAK_FAULTS", "3"))
SAMPLE_S = 10.0
END_S = 240.0  # from the last fault to the last end: the rarest repair looks every 15 leases
CALL_S, QUIET_CALL_S = 10.0, 120.0
HOOK = "soak"
TOLD_OF = ["PENDING", "FINISHED", "FAILED", "CANCELLED"]
BROKER = {"vm_memory_high_watermark.relative": "0.6"}


@pytest.fixture(name="site")
def _site():
    with Servers(config=BROKER) as servers, Site(servers) as made:
        yield made


class Operator:
    """Makes queues, an application, a system and a quota, and closes and opens the gates."""

    def __init__(self, site, fleet):
        self.fleet = fleet
        self.clients = [site.client(fleet.programs[name], "root", "admin", timeout_s=CALL_S)
                        for name in WEBS]
        self.plan = [(SECONDS * part, act) for part, act in (
            (0.05, "disable"), (0.35, "enable"), (0.5, "disable"), (0.8, "enable"))]

    def call(self, method, path, body=None):
        """Until it is done; the web or its database may be away."""
        def done():
            self.clients.reverse()
            try:
                answer = self.clients[0].call(method, path, body)
            except OSError:
                return False
            return answer.status not in AGAIN and answer.expect(200, 201)
        return wait_until(f"{method} {path}", done, END_S, 0.2)

    def prepare(self, receiver, evidence):
        self.call("PUT", f"/v1/subscriptions/{HOOK}", {"url": receiver.url, "states": TOLD_OF})
        for priority, name in enumerate(QUEUES[1:], 1):
            self.call("PUT", f"/v1/queues/{name}", {"priority": priority,
                                                    "filter": f"'{name}' IN tags"})
        self.call("PUT", f"/v1/apps/{APP}/{APP_VERSION}", {
            "command": ["sh", f"{evidence}/job.sh", evidence]})
        self.call("PUT", f"/v1/systems/{SYSTEM}", {})
        self.call("PUT", f"/v1/quotas/{QUOTA_USER}", {"maxActive": QUOTA})

    def set_gates(self, act):
        self.call("POST", f"/v1/apps/{APP}/{APP_VERSION}/{act}")
        self.call("POST", f"/v1/systems/{SYSTEM}/{act}")

    def act(self):
        """One step of the plan that is due; the main loop comes again if nobody answers."""
        if self.plan and self.plan[0][0] <= self.fleet.seconds():
            path = f"/v1/apps/{APP}/{APP_VERSION}/"
            self.clients.reverse()
            try:
                answers = [self.clients[0].post(where + self.plan[0][1])
                           for where in (path, f"/v1/systems/{SYSTEM}/")]
            except OSError:
                return
            if all(answer.status == 200 for answer in answers):
                self.plan.pop(0)


def limit_calls(site, timeout_s):
    """Our own calls hang with a server that hangs, and it is us who let it go on."""
    site.servers.mariadb.timeout_s = site.servers.rabbitmq.timeout_s = timeout_s


def run(fleet, load, injector, operator):
    """Until all is submitted and every fault is over."""
    next_sample_s = 0.0
    deadline_s = SECONDS + END_S

    def over():
        nonlocal next_sample_s
        fleet.supervise()
        operator.act()
        if fleet.seconds() >= next_sample_s:
            fleet.sample()
            next_sample_s = fleet.seconds() + SAMPLE_S
        return not injector.act() and not load.running() and not operator.plan
    wait_until("the load and the faults to be over", over, deadline_s, 0.05)


def settle(site, fleet):
    """Until every job has ended and nothing is left over. Jobs that do not end are for the judge; what
    else is left is returned."""
    def ended():
        fleet.supervise()
        return site.count("jobs", "status NOT IN ('FINISHED', 'FAILED', 'CANCELLED')") == 0
    try:
        wait_until("all jobs to end", ended, END_S, 0.5)
    except AssertionError as late:
        print(late)
        return []
    left = []
    for wait in (
            lambda: site.wait_clean(60),
            lambda: wait_until(lambda: f"no process of a job: {fleet.job_processes()}",
                               lambda: not fleet.job_processes(), 20),
            lambda: wait_until(lambda: f"no folder of a run: {fleet.run_folders()}",
                               lambda: not fleet.run_folders(), 20)):
        try:
            wait()
        except AssertionError as late:
            left.append(f"{late}; queues (ready, held, consumers): {site.queues()}")
    return left


def took(call):
    """One event in twenty is refused twice, so that others have to wait for it."""
    return call.attempt > 2 or call.said["seq"] % 20 != 0


def check_told(site, receiver):
    """Each event of each job was taken, and in order; those that came again are counted."""
    told.wait_told(site)
    wrong, again = told.breaches(site, HOOK, list(receiver.calls), took)
    print(f"{'webhooks, calls':28} {len(receiver.calls):6}\n{'  taken before':28} {again:6}\n"
          f"{'  lost or out of order':28} {len(wrong):6}")
    for job, what in list(wrong.items())[:SHOWN]:
        print(f"job {job}: {what}")
    return wrong


def check_garbage(site, injector):
    """Each message that was none is kept with a reason."""
    wait_until("a row for each piece of garbage", lambda: int(site.sql(
        "SELECT COUNT(DISTINCT message_id) FROM dead_messages WHERE message_id LIKE 'soak-garbage-%' "
        "AND reason <> ''")[0][0]) == injector.garbage, 30)


@pytest.fixture(name="receiver")
def _receiver():
    with Receiver(lambda call: 200 if took(call) else 503) as receiver:
        yield receiver


def test_jobs_survive_the_nemesis(site, receiver):
    faults = schedule(SEED, SECONDS, FAULTS) if FAULTS else []
    print(f"\nseed {SEED}, {SECONDS:g} s, {JOBS} jobs, {len(faults)} faults:")
    for fault in faults:
        print(fault)
    fleet, stamps = Fleet(site, site.servers), Stamps(site.path("evidence"))
    fleet.start()
    operator = Operator(site, fleet)
    operator.prepare(receiver, stamps.folder)
    site.servers.rabbitmq.settle()
    load = Load(site, [fleet.programs[name] for name in WEBS], jobs_of(SEED, JOBS, SECONDS),
                stamps.folder)
    injector = Injector(fleet, load, faults)
    print("what happens:")
    limit_calls(site, CALL_S)
    fleet.begin_watch()
    load.start(fleet.begin)
    try:
        run(fleet, load, injector, operator)
    finally:
        load.give_up()
        limit_calls(site, QUIET_CALL_S)
    left = settle(site, fleet)
    fleet.sample()
    finish(site, fleet, load, injector, stamps, receiver, left)


def finish(site, fleet, load, injector, stamps, receiver, left):  # pylint: disable=too-many-arguments
    breaches = site.breaches()
    untold = check_told(site, receiver)
    fleet.end_watch()
    judge = Judge(site, load, injector, stamps)
    verdict = judge.verdict()
    report.print_faults(injector, fleet)
    report.print_jobs(load, verdict, waits(site))
    report.print_programs(fleet)
    for job, what in list(verdict.bad().items())[:SHOWN]:
        print(f"\n{what}\n{judge.story(job)}")
    print(f"\nseed {SEED}: {len(breaches)} breaches found by the audit, "
          f"{len(fleet.crashes())} programs that ended by themselves")
    if LOGS and (load.faults or verdict.bad() or breaches or untold or left or fleet.crashes()):
        shutil.copytree(site.folder, os.path.join(LOGS, f"soak-{SEED}"), dirs_exist_ok=True,
                        ignore=lambda folder, names: [] if folder != site.folder else [
                            name for name in names if not name.endswith((".log", "evidence"))])
    assert not load.faults, load.faults
    assert len(load.ids) == JOBS
    assert not left, left
    assert not injector.not_sent_again, injector.not_sent_again
    assert not verdict.bad() and not breaches and not untold and not fleet.crashes()
    check_garbage(site, injector)


def waits(site):
    """Seconds from submission to the first run, of jobs that nothing was to hold."""
    return [float(row[0]) for row in site.sql(
        "SELECT TIMESTAMPDIFF(MICROSECOND, j.created_at, MIN(e.at)) / 1e6 FROM jobs j "
        "JOIN job_events e ON e.job_id = j.id AND e.to_status = 'RUNNING' "
        "WHERE j.name NOT LIKE 'app %' AND j.name NOT LIKE 'system %' AND j.name NOT LIKE 'quota %' "
        "GROUP BY j.id")]
