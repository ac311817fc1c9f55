# SPDX-License-Identifier: MIT
"""The database server is killed, restarted and frozen while jobs are driven through it."""

import os
import subprocess
import sys
import threading

import pytest

from servers import MariaDB
from waiting import wait_until

STORE_LOAD = os.path.join(os.environ["SLUICE_BIN"], "store_load")


@pytest.fixture(name="server")
def a_server(tmp_path):
    server = MariaDB(str(tmp_path / "mariadb"))
    try:
        server.start()
        server.wait_ready()
        server.create()
        yield server
    finally:
        server.close()


class Load:
    """store_load at work; `done` is what it printed last."""

    def __init__(self, server):
        self.done = 0
        self.process = subprocess.Popen([STORE_LOAD], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True,
                                        env=os.environ | server.environment())
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            if line.startswith("done "):
                self.done = int(line.split()[1])

    def wait_progress(self, jobs=300):
        aim = self.done + jobs
        wait_until(f"{aim} jobs", lambda: self.done >= aim or self.process.poll() is not None, 180)
        assert self.process.poll() is None, "store_load ended early"

    def end(self):
        self.process.stdin.close()
        status = self.process.wait(180)
        self.reader.join()
        return status


def test_a_server_that_dies_and_returns_loses_and_doubles_nothing(server):
    load = Load(server)
    try:
        for _ in range(3):
            load.wait_progress()
            server.kill9()
            server.start()
            server.wait_ready()
        load.wait_progress()
        server.restart()
        load.wait_progress()
        assert load.end() == 0
    finally:
        load.process.kill()
    print(f"{load.done} jobs", file=sys.stderr)
