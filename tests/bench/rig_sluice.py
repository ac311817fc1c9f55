# SPDX-License-Identifier: MIT
"""rig_sluice: Sluice as a site runs it: default beats, leases and logs."""

import json
import os
import shutil

import proc
import sluice
from database import Database
from rig import Rig, tool
from waiting import wait_until

# One user and one address may take all that the machine gives: that is what is measured.
SITE = {"web_requests_per_s_per_user": 1000000, "web_requests_per_s_per_address": 1000000,
        "web_requests_per_user": 65535, "amqp_heartbeat_s": 10, "fleet_beat_ms": 5000, "fleet_lease_ms": 20000,
        "fleet_defer_ms": 10000}
TABLES = ("jobs", "job_events", "outbox", "idempotency_keys", "job_blocked", "job_recovery")


class SluiceRig(Rig):
    name = "sluice"
    parents = ("runner",)

    def __init__(self, servers, slots=8, users=64, **settings):
        self.servers, self.slots, self.settings = servers, slots, SITE | settings
        self.site = sluice.Site(servers)
        self.web = self.worker = self.database = None
        try:
            self.database = Database(servers, self.site.schema)
            self.tokens = self._write("tokens", "\n".join(
                self.site.token(f"user{at}", "user", life_s=86400) for at in range(users)))
            self.web = self.site.web(**self.settings)
            if slots:
                self.start_worker()
        except BaseException:
            self.close()
            raise

    def _write(self, name, text):
        path = self.site.path(name)
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
        return path

    def start_worker(self, slots=None, **options):
        self.worker = self.site.worker(slots=slots or self.slots, **(self.settings | options))
        return self.worker

    def forget_worker(self):
        """It was stopped, and another one may take its name."""
        self.site.processes.remove(self.worker)
        self.worker = None

    def queue_name(self, queue="default"):
        return f"sluice.{sluice.TENANT}.submit.{queue}"

    def empty_archive(self):
        shutil.rmtree(self.site.path("archive", sluice.TENANT), ignore_errors=True)

    def close(self):
        if self.database:
            self.database.close()
        self.site.close()

    def __enter__(self):
        return self

    def __exit__(self, kind, *unused):
        if kind:
            self.site.audited = False
        self.close()

    def request(self, path, method="POST", body=None, connections=1, **options):
        """bench-load against one path."""
        args = ["--port", self.web.url.rpartition(":")[2], "--tokens", self.tokens,
                "--method", method, "--path", path, "--connections", connections]
        if body is not None:
            args += ["--body", self._write("body", json.dumps(body))]
        for name, value in options.items():
            args += [f"--{name}", value]
        return tool("load", *args)

    def load(self, command, connections=8, **options):
        return self.request("/v1/jobs", body={"name": "bench", "command": command},
                            connections=connections, **options)

    def finished(self):
        return self.database.one("SELECT COUNT(*) FROM jobs WHERE tenant = %s AND "
                                 "status = 'FINISHED'", (sluice.TENANT,))

    def wait_ended(self, jobs, timeout_s=60):
        """So many are terminal, however they ended, and their messages are gone."""
        wait_until(f"{jobs} ends", lambda: self.database.one(
            "SELECT COUNT(*) FROM jobs WHERE status IN ('FINISHED', 'FAILED', 'CANCELLED')")
            == jobs, timeout_s)

    def roles(self):
        roles = {"web": [self.web.pid], "broker": [self.servers.rabbitmq.process.pid],
                 "database": [self.servers.mariadb.process.pid]}
        if self.worker:
            roles["worker"] = [self.worker.pid]
            roles["runner"] = proc.named(self.site.folder, "sluice-runner")
        return roles

    def audit(self, jobs):
        """Each job finished after one attempt, with one start in its history, nothing left."""
        bad = self.database.rows(
            "SELECT status, attempts, losses, COUNT(*) FROM jobs "
            "WHERE status <> 'FINISHED' OR attempts <> 1 OR losses <> 0 GROUP BY 1, 2, 3")
        assert not bad, bad
        count = self.database.one("SELECT COUNT(*) FROM jobs")
        assert count == jobs, f"{count} rows of {jobs} jobs"
        starts = self.database.one("SELECT COUNT(*) FROM job_events WHERE to_status = 'RUNNING'")
        assert starts == jobs, f"{starts} starts of {jobs} jobs"

    def clear(self):
        """Forgets all jobs. Their messages must be gone already."""
        for table in TABLES:
            self.database.run(f"TRUNCATE TABLE {table}")

    def log_bytes(self):
        return sum(os.path.getsize(process.log_path) for process in self.site.processes)
