# SPDX-License-Identifier: MIT
"""rig_bullmq: BullMQ over a Redis that fsyncs each write before it answers."""

import json
import os
import shutil
import socket
import subprocess

from rig import HERE, Rig
from servers import Server, free_port
from waiting import wait_until

MODULES = os.environ.get("BENCH_NODE_MODULES", "")


def available():
    """None, or what is missing."""
    if not shutil.which("redis-server"):
        return "no redis-server"
    if not shutil.which("node"):
        return "no node"
    if not os.path.isdir(os.path.join(MODULES, "bullmq")):
        return "bullmq is not installed"
    return None


class Redis(Server):
    name = "redis"

    def __init__(self, folder):
        super().__init__(folder)
        self.port = free_port()
        self.link = None

    def start(self):
        self.process = self._spawn([
            "redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--dir", self.folder,
            "--appendonly", "yes", "--appendfsync", "always", "--save", "",
            "--maxmemory-policy", "noeviction"])

    def answers(self):
        try:
            self.link = socket.create_connection(("127.0.0.1", self.port), timeout=10)
        except OSError:
            return False
        return self.ask("PING") == "+PONG"

    def ask(self, words):
        """The first line of the answer to an inline command."""
        self.link.sendall(words.encode() + b"\r\n")
        line = b""
        while not line.endswith(b"\r\n"):
            line += self.link.recv(1)
        return line.decode().strip()

    def count(self, command, key):
        return int(self.ask(f"{command} {key}").lstrip(":"))


class BullmqRig(Rig):
    name = "bullmq"
    parents = ("worker",)

    def __init__(self, servers, slots=8):
        self.slots, self.worker = slots, None
        folder = os.path.join(servers.folder, "redis")
        shutil.rmtree(folder, ignore_errors=True)
        self.redis = Redis(folder)
        self.log_path = os.path.join(servers.folder, "bullmq.log")
        # node finds modules beside the script: the scripts are copied beside the modules.
        self.scripts = os.path.join(os.path.dirname(MODULES), "bench")
        shutil.copytree(os.path.join(HERE, "bullmq"), self.scripts, dirs_exist_ok=True)
        try:
            self.redis.start()
            self.redis.wait_ready()
            if slots:
                self.start_worker()
        except BaseException:
            self.close()
            raise

    def _script(self, name):
        return ["node", os.path.join(self.scripts, name)]

    def start_worker(self):
        with open(self.log_path, "ab") as log:
            self.worker = subprocess.Popen(
                [*self._script("worker.js"), str(self.redis.port), str(self.slots)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)

        def ready():
            with open(self.log_path, encoding="utf-8") as text:
                seen = text.read()
            assert self.worker.poll() is None, seen
            return "ready" in seen
        wait_until("BullMQ", ready, 60)

    def stop_worker(self):
        if self.worker:
            self.worker.kill()
            self.worker.wait()
        self.worker = None

    def close(self):
        self.stop_worker()
        self.redis.close()
        shutil.rmtree(self.redis.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def load(self, command, connections=8, **options):
        given = {"port": self.redis.port, "connections": connections, "command": command} | options
        done = subprocess.run([*self._script("load.js"), json.dumps(given)], capture_output=True,
                              text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr)
        return json.loads(done.stdout)

    def finished(self):
        return self.redis.count("ZCARD", "bull:bench:completed")

    def roles(self):
        roles = {"redis": [self.redis.process.pid]}
        if self.worker:
            roles["worker"] = [self.worker.pid]
        return roles

    def audit(self, jobs):
        failed = self.redis.count("ZCARD", "bull:bench:failed")
        waiting = self.redis.count("LLEN", "bull:bench:wait")
        done = self.finished()
        assert (done, failed, waiting) == (jobs, 0, 0), (done, failed, waiting)

    def clear(self):
        """Forgets the jobs but not the queue's own settings."""
        self.redis.ask("EVAL \"for _, k in ipairs(redis.call('keys', 'bull:bench:*')) do "
                       "if k ~= 'bull:bench:meta' and k ~= 'bull:bench:id' then "
                       "redis.call('del', k) end end return 1\" 0")
