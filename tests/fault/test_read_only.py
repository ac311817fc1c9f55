# SPDX-License-Identifier: MIT
"""The database takes no writes, as a primary that was demoted: it counts as one that is away."""

import json
import subprocess

import pytest

from injection import injected
from waiting import wait_until

ACCOUNT, PASSWORD = "plain", "plain-password"
REQUEST = {"name": "hello", "command": ["true"]}


@pytest.fixture
def plain(own):
    """Programs of this site connect without the right to write to a read-only server."""
    maria = own.servers.mariadb
    maria.sql(f"CREATE OR REPLACE USER '{ACCOUNT}'@'%' IDENTIFIED BY '{PASSWORD}'; "
              f"GRANT ALL ON {own.schema}.* TO '{ACCOUNT}'@'%'")
    environment = own.environment
    own.environment = lambda **more: environment(
        **({"db_user": ACCOUNT, "db_password": PASSWORD} | more))
    yield own
    maria.sql("SET GLOBAL read_only = 0")


def connections(site):
    return {row[0]: row[1] for row in site.sql(
        f"SELECT id, host FROM information_schema.processlist WHERE user = '{ACCOUNT}'")}


def kept(site, before):
    """Those that are still there, by the process that holds each."""
    ports = {host.rpartition(":")[2]: number for number, host in connections(site).items()
             if number in before}
    lines = subprocess.run(["ss", "-tnpH"], capture_output=True, text=True, check=True).stdout
    return [line.rpartition("users:")[2] for line in lines.splitlines()
            if line.split()[3].rpartition(":")[2] in ports and "users:" in line] or list(ports)


def test_a_database_that_turns_read_only_counts_as_away_until_it_takes_writes(plain, servers):
    with injected("F-5 read-only", plain) as hit:
        web, worker = plain.web(), plain.worker()
        readers = [plain.reader("recovery"), plain.reader("alternate"), plain.reader("webhook")]
        ann = plain.client(web)
        ann.wait_status(ann.submit("true"), "FINISHED")
        before = connections(plain)
        servers.mariadb.sql("SET GLOBAL read_only = 1")
        refused = ann.post("/v1/jobs", REQUEST)
        assert refused.status == 503, refused.body
        assert refused.headers["Retry-After"]
        for process in [web, worker, *readers]:
            wait_until(f"{process.name} not to be ready", lambda: process.ready() == 503, 60)  # pylint: disable=cell-var-from-loop
        # Whoever keeps its connection stays on a server that is no longer the primary.
        wait_until(lambda: f"new connections for {kept(plain, before)}",
                   lambda: not kept(plain, before), 60)
        servers.mariadb.sql("SET GLOBAL read_only = 0")
        hit.healed()
        for process in [web, worker, *readers]:
            process.wait_ready()
        ann.wait_status(ann.submit("true"), "FINISHED")


def test_the_doctor_says_that_the_database_is_read_only(plain, servers):
    """And not that readers have to be started, which cannot write a probe down now."""
    for kind in ("recovery", "alternate", "deadletter"):
        plain.reader(kind)
    servers.mariadb.sql("SET GLOBAL read_only = 1")
    done = plain.run("doctor", "-o", "json")
    assert done.returncode == 1, done
    found = {one["check"]: one for one in json.loads(done.stdout)}
    assert found["database"]["result"] == "fault" and "read_only = OFF" in found["database"]["cure"]
    for check in ("bindings", "submit path", "dead letter path", "alternate path"):
        assert found[check]["result"] == "cannot tell", found[check]
