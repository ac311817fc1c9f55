# SPDX-License-Identifier: MIT
"""fleet: the programs and servers of a soak, supervised: what ends is started again, what a fault
holds down is started when the fault is over."""

import os
import signal
import threading
import time

import sluice
from nemesis import ALTERNATES, DEADLETTERS, RECOVERIES, WEBHOOKS, WEBS, WORKERS
from partition import Forwarder
from report import resident_mib

SLOTS = 4
# Longer than other tests have it: both witnesses may be slow for 1.75 s at once before a job is ended,
# and a machine that is busy with other things is not a fault that the schedule knows of.
LEASE_MS, GRACE_MS = 3000, 500
# A failure point may strike one job again and again; it has to end well all the same.
MAX_LOSSES = 100
FAST = {"fleet_lease_ms": LEASE_MS, "recovery_tick_ms": 200, "recovery_ramp_pause_ms": 200,
        "recovery_first_test_ms": 200, "recovery_outbox_age_ms": 2000}
POLICIES = {f"recovery_{name}": "constant every=1s jitter=10" for name in (
    "system_unavailable", "application_unavailable", "quota_exceeded", "queue_unavailable",
    "database_unavailable")}
LOOK_S = 0.5
FAULT = "SLUICE_FAULT"
HERE = {"webhook_allow_networks": "127.0.0.0/8"}
HOOKS = HERE | {"webhook_retry_first_ms": 100, "webhook_retry_most_ms": 1000}
READERS = {"recovery": RECOVERIES, "alternate": ALTERNATES, "deadletter": DEADLETTERS}
ORDERLY = (0, 75)  # a leader that was replaced without noticing exits with 75


class Fleet:
    def __init__(self, site, servers):
        self.site, self.servers = site, {"broker": servers.rabbitmq, "database": servers.mariadb}
        self.programs, self.forwarders, self.held, self.armed = {}, {}, {}, {}
        self.begin = time.monotonic()
        self.ends = []  # (seconds, name, status) of programs that no fault had ended
        self.well_at = []  # seconds at which every program said that it is ready
        self.resident, self.starts = {}, {}
        self._stop = threading.Event()
        self._watch = threading.Thread(target=self._look_all, daemon=True)

    def seconds(self):
        return time.monotonic() - self.begin

    def start(self):
        given = self.site.servers.environment()
        for name in (*WEBS, *WORKERS, *WEBHOOKS):
            self.forwarders[name] = {"broker": Forwarder(int(given["SLUICE_TEST_AMQP_PORT"])),
                                     "database": Forwarder(int(given["SLUICE_TEST_DB_PORT"]))}
        for name in WEBS:
            self.programs[name] = self.site.web(name, **self._ways(name), **FAST, **HERE)
        for name in WORKERS:
            self.programs[name] = self.site.worker(
                name.rsplit("-", 1)[0], name, slots=SLOTS, wait=False,
                worker_grace_ms=GRACE_MS, worker_max_losses=MAX_LOSSES, **self._ways(name), **FAST,
                **POLICIES)
        for kind, names in READERS.items():
            for name in names:
                self.programs[name] = self.site.reader(kind, name, wait=False, **FAST, **POLICIES)
        for name in WEBHOOKS:
            self.programs[name] = self.site.reader("webhook", name, wait=False, **self._ways(name),
                                                   **FAST, **HOOKS)
        for program in self.programs.values():
            program.wait_ready()
        for name in self.programs:
            self.starts[name] = 1

    def begin_watch(self):
        """From now on seconds() counts."""
        self.begin = time.monotonic()
        self._watch.start()

    def end_watch(self):
        self._stop.set()
        self._watch.join()

    def _ways(self, name):
        """The settings that lead a program through its forwarders."""
        way = self.forwarders[name]
        return {"db_host": "127.0.0.1", "db_port": way["database"].port,
                "amqp_host": "127.0.0.1", "amqp_port": way["broker"].port}

    # ---- down and up

    def _is_server(self, name):
        return name in self.servers

    def kill(self, name, signo=signal.SIGKILL):
        """Ends it and keeps it down until as many release()s."""
        self.held[name] = self.held.get(name, 0) + 1
        one = self.servers[name] if self._is_server(name) else self.programs[name]
        if one.alive() and self._is_server(name):
            one.kill9()
        elif one.alive():
            one.signal(signo)
            if signo == signal.SIGKILL:
                one.wait()

    def release(self, name):
        self.held[name] -= 1
        self.supervise()

    def arm(self, name, point):
        """Has it killed and started again with this failure point."""
        self.armed[name] = point
        self._end_now(name)

    def disarm(self, name):
        """If it did not pass there it is killed, and started again without."""
        self.armed.pop(name, None)
        if self.programs[name].env.pop(FAULT, None):
            self._end_now(name)

    def _end_now(self, name):
        if self.programs[name].alive():
            self.programs[name].kill9()
        self.supervise()

    def supervise(self):
        """Starts what is down and not held; the caller is the main thread (see servers.py)."""
        for name, server in self.servers.items():
            if not self.held.get(name) and not server.alive():
                server.start()
        for name, program in self.programs.items():
            if program.alive():
                continue
            if not self.held.get(name):
                self._note_end(name, program.child.returncode)
                program.env.pop(FAULT, None)
                if name in self.armed:
                    program.env[FAULT] = self.armed.pop(name)
                program.start(wait=False)
                self.starts[name] += 1

    def _note_end(self, name, status):
        if status not in (0, -signal.SIGKILL):
            self.ends.append((self.seconds(), name, status))

    def crashes(self):
        return [end for end in self.ends if end[2] not in ORDERLY]

    def runner(self, name):
        """The pid of a worker's runner, or None."""
        return sluice.runner_of(self.site.path("work", name))

    # ---- what is seen

    def _look_all(self):
        while not self._stop.wait(LOOK_S):
            # One that is stopped costs its client's time limit; the others are asked all the same.
            answers = [program.ready() == 200 for program in self.programs.values()]
            if all(answers):
                self.well_at.append(self.seconds())

    def recovered_s(self, after):
        """From then on until every program was ready; None if that never came."""
        return next((at - after for at in self.well_at if at >= after), None)

    def sample(self):
        """Notes the resident memory of each program and runner."""
        for name, program in self.programs.items():
            self._note_memory(name, program.pid)
            if name in WORKERS:
                self._note_memory(f"{name} runner", self.runner(name))

    def _note_memory(self, name, pid):
        mib = resident_mib(pid)
        if mib:
            self.resident.setdefault(name, []).append(mib)

    def job_processes(self):
        return sluice.job_pids_below(self.site.path("work"))

    def run_folders(self):
        """What runs left in the workers' folders."""
        return [os.path.join(name, run) for name in WORKERS
                for run in os.listdir(self.site.path("work", name, "jobs"))]
