# SPDX-License-Identifier: MIT
"""faults: does what the schedule says, and remembers when it was done."""

import contextlib
import heapq
import json
import os
import signal

import sluice
from nemesis import ENDS_RUNS, KINDS, NO_BROKER, NO_DATABASE
from servers import USER
from sluice import TENANT

COPIES, SOME = 5, 20
TRY_AGAIN_S, TRY_FOR_S = 1.0, 120.0
# So many jobs wait on a queue that is purged in use, more than twice of what its two workers may hold;
# half of them have a new message within so long, whatever strikes meanwhile.
LOST, WAITS_S = 40, 60.0
GARBAGE = (b"\x00\xff not a message", b'{"v":9,"job":"x","epoch":1}', b"[]",
           b'{"v":1,"job":"01890000-0000-7000-8000-000000000000","epoch":1}', b"")
LOW, USUAL = "0.0000001", "0.6"


def queue_name(queue):
    return f"sluice.{TENANT}.submit.{queue}"


def _may_end_runs(fault, worker):
    return fault.target in ("site", worker) and fault.kind in ENDS_RUNS + NO_BROKER + NO_DATABASE


class Done:
    """A fault as it happened; seconds as Fleet.seconds() counts them."""

    def __init__(self, fault):
        self.fault, self.began_s, self.over_s = fault, None, None

    def covers(self, first_s, last_s, slack_s):
        """True if it may have had an effect in this time."""
        over_s = self.over_s if self.over_s is not None else float("inf")
        return (self.began_s is not None and self.began_s <= last_s + slack_s
                and over_s + slack_s >= first_s)


class Injector:
    """Main thread only: it starts servers."""

    def __init__(self, fleet, load, faults):
        self.fleet, self.load, self.site = fleet, load, fleet.site
        self.done = [Done(fault) for fault in faults]
        self.garbage = 0
        self.stopped_runners = {}  # worker: (its runner's pid, a job with a limit)
        self.past_limit = []  # jobs whose limit passed while their runner was stopped
        self.purges = {}  # fault: (since when it waits, the jobs whose messages are lost)
        self.not_sent_again = []
        self._due = [(done.fault.at_s, at, "begin") for at, done in enumerate(self.done)]
        heapq.heapify(self._due)

    def act(self):
        """Does all that is due; returns False when nothing is left."""
        while self._due and self._due[0][0] <= self.fleet.seconds():
            _, at, step = heapq.heappop(self._due)
            self._step(at, step)
        return bool(self._due)

    def _step(self, at, step):
        done = self.done[at]
        fault = done.fault
        act = getattr(self, f"_{step}_" + fault.kind.replace("-", "_"), None)
        try:
            if step == "begin":
                self._check_runners(fault)
            if act:
                act(fault)
        except (OSError, AssertionError, RuntimeError):
            # The server that it needs is away because of another fault: it waits for it. The end of a
            # fault has to come, its beginning not at any price.
            if self.fleet.seconds() > fault.at_s + fault.for_s + TRY_FOR_S:
                if step == "end":
                    raise
                print(f"{self.fleet.seconds():7.1f} s  {fault.kind} {fault.target} LEFT OUT")
                return
            heapq.heappush(self._due, (self.fleet.seconds() + TRY_AGAIN_S, at, step))
            return
        if step == "begin":
            done.began_s = self.fleet.seconds()
            print(f"{done.began_s:7.1f} s  {fault.kind} {fault.target} {fault.point}", flush=True)
            heapq.heappush(self._due, (done.began_s + fault.for_s, at, "end"))
        else:
            done.over_s = self.fleet.seconds()

    # ---- programs

    def _kill(self, fault):
        self.fleet.kill(fault.target)

    def _release(self, fault):
        self.fleet.release(fault.target)

    _begin_worker_killed = _begin_worker_gone = _begin_web_killed = _kill
    _begin_recovery_killed = _begin_alternate_killed = _begin_deadletter_killed = _kill
    _begin_webhook_killed = _kill
    _end_worker_killed = _end_worker_gone = _end_web_killed = _end_worker_drained = _release
    _end_recovery_killed = _end_alternate_killed = _end_deadletter_killed = _release
    _end_webhook_killed = _release

    def _begin_worker_drained(self, fault):
        self.fleet.kill(fault.target, signal.SIGTERM)

    def _stop(self, fault):
        if self.fleet.programs[fault.target].alive():
            self.fleet.programs[fault.target].signal(signal.SIGSTOP)

    def _continue(self, fault):
        if self.fleet.programs[fault.target].alive():
            self.fleet.programs[fault.target].signal(signal.SIGCONT)

    _begin_worker_stopped = _begin_web_stopped = _begin_recovery_stopped = _stop
    _begin_webhook_stopped = _stop
    _end_worker_stopped = _end_web_stopped = _end_recovery_stopped = _continue
    _end_webhook_stopped = _continue

    def _begin_runner_killed(self, fault):
        pid = self.fleet.runner(fault.target)
        if pid is None:
            raise RuntimeError("no runner at this moment")
        os.kill(pid, signal.SIGKILL)

    # ---- a runner that is stopped: it kills nothing, so nothing may take its runs away meanwhile

    def _check_runners(self, fault):
        if any(_may_end_runs(fault, worker) for worker in self.stopped_runners):
            raise RuntimeError("a runner is stopped")

    def _check_quiet(self, worker):
        for done in self.done:
            if done.began_s is not None and _may_end_runs(done.fault, worker) and (
                    done.over_s is None or self.fleet.recovered_s(done.over_s) is None):
                raise RuntimeError(f"{done.fault.kind} is not over")

    def _begin_runner_stopped(self, fault):
        self._check_quiet(fault.target)
        runner = self.fleet.runner(fault.target)
        jobs = self.load.limited(sluice.jobs_below(self.site.path("work", fault.target)))
        if runner is None or not jobs:
            raise RuntimeError("no job with a limit at this moment")
        os.kill(runner, signal.SIGSTOP)
        job = next((job for job in jobs if sluice.stopped(runner) and sluice.job_pids(job)), None)
        if job is None:
            os.kill(runner, signal.SIGCONT)
            raise RuntimeError("the job has ended meanwhile")
        self.stopped_runners[fault.target] = (runner, job)

    def _end_runner_stopped(self, fault):
        runner, job = self.stopped_runners.pop(fault.target)
        with contextlib.suppress(ProcessLookupError):
            os.kill(runner, signal.SIGCONT)
        self.past_limit.append(job)

    # ---- named failure points

    def _arm(self, fault):
        self.fleet.arm(fault.target, fault.point)

    def _disarm(self, fault):
        self.fleet.disarm(fault.target)

    _begin_worker_dies = _begin_worker_unsure = _begin_web_dies = _begin_web_unsure = _arm
    _begin_recovery_dies = _begin_recovery_unsure = _begin_reader_dies = _arm
    _begin_webhook_dies = _arm
    _end_worker_dies = _end_worker_unsure = _end_web_dies = _end_web_unsure = _disarm
    _end_recovery_dies = _end_recovery_unsure = _end_reader_dies = _disarm
    _end_webhook_dies = _disarm

    def _begin_runner_dies(self, fault):
        """A worker that finds no runner starts one, which inherits the failure point."""
        self._begin_runner_killed(fault)
        self.fleet.arm(fault.target, fault.point)

    def _end_runner_dies(self, fault):
        self.fleet.disarm(fault.target)
        pid = self.fleet.runner(fault.target)
        if pid is not None and fault.point.encode() in sluice.read_proc(pid, "environ"):
            os.kill(pid, signal.SIGKILL)

    # ---- the network

    def _cut(self, name, servers, cut):
        for server in servers:
            self.fleet.forwarders[name][server].cut = cut

    def _begin_worker_off_broker(self, fault):
        self._cut(fault.target, ["broker"], True)

    def _end_worker_off_broker(self, fault):
        self._cut(fault.target, ["broker"], False)

    def _begin_worker_off_database(self, fault):
        self._cut(fault.target, ["database"], True)

    def _end_worker_off_database(self, fault):
        self._cut(fault.target, ["database"], False)

    def _begin_worker_off_both(self, fault):
        self._cut(fault.target, ["broker", "database"], True)

    def _end_worker_off_both(self, fault):
        self._cut(fault.target, ["broker", "database"], False)

    _begin_web_off_database = _begin_webhook_off_database = _begin_worker_off_database
    _end_web_off_database = _end_webhook_off_database = _end_worker_off_database

    # ---- the servers

    def _begin_broker_killed(self, _fault):
        self.fleet.kill("broker")

    def _end_broker_killed(self, _fault):
        self.fleet.release("broker")

    def _begin_database_killed(self, _fault):
        self.fleet.kill("database")

    def _end_database_killed(self, _fault):
        self.fleet.release("database")

    def _hang(self, name, signo):
        server = self.fleet.servers[name]
        if server.alive():
            server.process.send_signal(signo)

    def _begin_broker_hung(self, _fault):
        self._hang("broker", signal.SIGSTOP)

    def _end_broker_hung(self, _fault):
        self._hang("broker", signal.SIGCONT)

    def _begin_database_hung(self, _fault):
        self._hang("database", signal.SIGSTOP)

    def _end_database_hung(self, _fault):
        self._hang("database", signal.SIGCONT)

    def _begin_broker_connections(self, _fault):
        self.fleet.servers["broker"].close_connections(self.site.vhost)

    def _begin_database_connections(self, _fault):
        self.site.sql(f"KILL CONNECTION USER '{USER}'")

    def _begin_memory_alarm(self, _fault):
        self.fleet.servers["broker"].ctl("set_vm_memory_high_watermark", LOW)

    def _end_memory_alarm(self, _fault):
        self.fleet.servers["broker"].ctl("set_vm_memory_high_watermark", USUAL)

    # ---- messages

    def _begin_unbound(self, fault):
        with self.site.amqp() as link:
            link.unbind(queue_name(fault.target), "sluice.submit", queue_name(fault.target))

    def _end_unbound(self, fault):
        with self.site.amqp() as link:
            link.bind(queue_name(fault.target), "sluice.submit", queue_name(fault.target))

    def _begin_purged(self, fault):
        with self.site.amqp() as link:
            link.purge(queue_name(fault.target))

    def _drain(self, queue, draining):
        """As an operator does; a worker that is started anew begins undrained."""
        self.site.sql(f"UPDATE workers SET draining = {draining} WHERE state = 'live' "
                      f"AND tenant = '{TENANT}' AND queue = '{queue}'")

    def _begin_purged_in_use(self, fault):
        self._drain(fault.target, 1)

    def _end_purged_in_use(self, fault):
        """Once enough jobs wait their messages are lost; the workers go on when new ones are there."""
        began_s, lost = self.purges.setdefault(fault, (self.fleet.seconds(), []))
        late = self.fleet.seconds() > began_s + WAITS_S
        if not lost and not late:
            self._purge_used(fault)
        left = len(set(lost).intersection(self._waiting(fault.target)))
        if (not lost or left * 2 > len(lost)) and not late:
            raise RuntimeError("too few jobs wait, or their messages are not sent again yet")
        self._drain(fault.target, 0)
        if not lost:
            print(f"{self.fleet.seconds():7.1f} s  {fault.kind} {fault.target} LEFT OUT")
        else:
            print(f"{self.fleet.seconds():7.1f} s  {left} of {len(lost)} wait as before")
        if left * 2 > len(lost):
            self.not_sent_again.append(f"{fault}: {left} of {len(lost)} after {WAITS_S:g} s")

    def _waiting(self, queue):
        """[id, epoch] of the jobs that wait on a queue."""
        return [tuple(row) for row in self.site.sql(
            "SELECT HEX(id), epoch FROM jobs WHERE status = 'PENDING' AND owner_worker IS NULL "
            f"AND tenant = '{TENANT}' AND queue = '{queue}'")]

    def _purge_used(self, fault):
        waiting = self._waiting(fault.target)
        if len(waiting) < LOST:
            return
        with self.site.amqp() as link:
            link.purge(queue_name(fault.target))
            job = self.load.some_ids(fault.target, SOME)[-1]  # the queue is not empty
            body = json.dumps({"v": 1, "job": job, "epoch": 1}).encode()
            link.publish("sluice.submit", queue_name(fault.target), body, message_id=job)
        self.purges[fault] = (self.fleet.seconds(), waiting)
        print(f"{self.fleet.seconds():7.1f} s  {len(waiting)} messages are lost", flush=True)

    def _begin_doubled_messages(self, fault):
        with self.site.amqp() as link:
            for job in self.load.some_ids(fault.target, SOME) * COPIES:
                body = json.dumps({"v": 1, "job": job, "epoch": 1}).encode()
                link.publish("sluice.submit", queue_name(fault.target), body, message_id=job)

    def _begin_garbage(self, fault):
        with self.site.amqp() as link:
            for body in GARBAGE:
                self.garbage += 1
                link.publish("sluice.submit", queue_name(fault.target), body,
                             message_id=f"soak-garbage-{self.garbage}")


assert all(hasattr(Injector, "_begin_" + kind.replace("-", "_")) for kind in KINDS)
