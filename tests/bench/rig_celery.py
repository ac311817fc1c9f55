# SPDX-License-Identifier: MIT
"""rig_celery: Celery over the same RabbitMQ and MariaDB."""

import json
import os
import signal
import subprocess
import sys

import proc
import sluice
from database import Database
from rig import HERE, Rig
from servers import PASSWORD, USER
from waiting import wait_until

NAME = "celery"  # its virtual host and schema


class CeleryRig(Rig):
    name = "celery"
    parents = ("workers",)

    def __init__(self, servers, slots=8):
        self.servers, self.slots = servers, slots
        self.database = self.worker = None
        self.log_path = os.path.join(servers.folder, "celery.log")
        servers.rabbitmq.add_vhost(NAME)
        servers.mariadb.sql(f"CREATE OR REPLACE DATABASE {NAME} CHARACTER SET utf8mb4")
        self.env = os.environ | {
            "BENCH_BROKER": f"amqp://{USER}:{PASSWORD}@127.0.0.1:{servers.rabbitmq.port}/{NAME}",
            "BENCH_BACKEND": f"db+mysql://{USER}:{PASSWORD}@127.0.0.1:{servers.mariadb.port}/{NAME}",
            "PYTHONPATH": HERE, "PYTHONDONTWRITEBYTECODE": "1", "C_FORCE_ROOT": "1"}
        self.database = Database(servers, NAME)
        if slots:
            try:
                self.start_worker()
            except BaseException:
                self.close()
                raise

    def start_worker(self):
        self.start_again()
        self._first_task()

    def start_again(self):
        with open(self.log_path, "ab") as log:
            self.worker = subprocess.Popen(
                [sys.executable, "-m", "celery", "-A", "celery_app", "worker", "-n", "bench@localhost",
                 "-P", "prefork", "-c", str(self.slots), "-O", "fair", "--without-gossip",
                 "--without-mingle", "-l", "warning"],
                env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                cwd=self.servers.folder)

    def _first_task(self):
        """It makes the tables, which several processes at once cannot."""
        self.load(["/bin/true"], connections=1, count=1)

        def there():
            assert self.worker.poll() is None, self.log_tail()
            return bool(self.tables()) and self.finished() >= 1
        wait_until(lambda: f"Celery\n{self.log_tail()}", there, 60)
        self.clear()

    def tables(self):
        return self.database.rows("SHOW TABLES LIKE 'celery_taskmeta'")

    def log_tail(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as log:
            return log.read()[-4000:]

    def stop_worker(self, signo=signal.SIGTERM):
        if self.worker and self.worker.poll() is None:
            pids = self.pids()
            self.worker.send_signal(signo)
            try:
                self.worker.wait(20)
            except subprocess.TimeoutExpired:
                self.worker.kill()
                self.worker.wait()
            for pid in pids:
                if sluice.running(pid):
                    os.kill(pid, signal.SIGKILL)
        self.worker = None

    def close(self):
        self.stop_worker()
        self.database.close()
        self.servers.rabbitmq.delete_vhost(NAME)
        self.servers.mariadb.sql(f"DROP DATABASE {NAME}")

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def pids(self):
        return [self.worker.pid, *proc.children(self.worker.pid)]

    def load(self, command, **options):
        argv = [sys.executable, os.path.join(HERE, "celery_load.py")]
        for name, value in options.items():
            argv += [f"--{name}", str(value)]
        done = subprocess.run([*argv, "--", *command], env=self.env, capture_output=True,
                              text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr)
        return json.loads(done.stdout)

    def finished(self):
        return self.database.one("SELECT COUNT(*) FROM celery_taskmeta")

    def roles(self):
        roles = {"broker": [self.servers.rabbitmq.process.pid],
                 "database": [self.servers.mariadb.process.pid]}
        if self.worker:
            roles["workers"] = self.pids()
        return roles

    def audit(self, jobs):
        rows = self.database.rows("SELECT status, COUNT(*) FROM celery_taskmeta GROUP BY status")
        assert rows == (("SUCCESS", jobs),), rows

    def clear(self):
        self.database.run("TRUNCATE TABLE celery_taskmeta")
