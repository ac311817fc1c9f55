# SPDX-License-Identifier: MIT
"""What systemd hears from the programs: that they are ready, that they work, and silence when they
do not."""

import glob
import os
import signal
import socket
import time

import pytest

from waiting import stays_true, wait_until

WATCHDOG_S = 0.8


class Manager:
    """The end of the socket that systemd would listen on."""

    def __init__(self, path):
        self.path, self.heard = path, []
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(path)
        self.socket.setblocking(False)

    def listen(self):
        """All that was said until now."""
        while True:
            try:
                self.heard += self.socket.recv(4096).decode().splitlines()
            except BlockingIOError:
                return self.heard

    def count(self, what="WATCHDOG=1"):
        return self.listen().count(what)


@pytest.fixture
def manager(site, request):
    made = Manager(site.path(f"n-{request.param}"))
    os.environ["NOTIFY_SOCKET"] = made.path
    os.environ["WATCHDOG_USEC"] = str(int(WATCHDOG_S * 1e6))
    yield made
    del os.environ["NOTIFY_SOCKET"], os.environ["WATCHDOG_USEC"]
    made.socket.close()


def start(site, kind):
    if kind == "web":
        return site.web()
    return site.worker() if kind == "worker" else site.reader(kind)


@pytest.mark.parametrize("manager", ["web", "worker", "recovery", "alternate", "deadletter",
                                     "webhook"],
                         indirect=True)
def test_systemd_hears_of_a_program_that_works_and_of_no_other(site, manager):
    program = start(site, manager.path.rsplit("-", 1)[1])
    wait_until("that it is ready", lambda: manager.count("READY=1"), 20)
    took = []
    while not took or took[-1] >= 4 * WATCHDOG_S:  # a busy machine delays some of them
        assert len(took) < 5, f"too seldom: {took}"
        before, began = manager.count(), time.monotonic()
        wait_until("signs of life", lambda: manager.count() >= before + 4, 20)
        took.append(time.monotonic() - began)
    program.signal(signal.SIGSTOP)
    os.waitid(os.P_PID, program.pid, os.WSTOPPED)
    stopped = manager.count()
    stays_true("silence", lambda: manager.count() == stopped, WATCHDOG_S)
    program.signal(signal.SIGCONT)
    wait_until("signs of life again", lambda: manager.count() > stopped, 20)
    assert program.stop() == 0
    assert manager.count("STOPPING=1") == 1


def test_no_unit_is_ended_because_it_waits_for_the_database():
    """READY=1 comes with the database, and systemd's patience with a start is 90 s by default."""
    units = glob.glob(os.path.join(os.path.dirname(__file__), "../../docker/systemd/*.service.in"))
    assert units
    for unit in units:
        with open(unit, encoding="utf-8") as lines:
            said = lines.read().splitlines()
        assert "Type=notify" not in said or "TimeoutStartSec=infinity" in said, unit
