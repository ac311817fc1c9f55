# SPDX-License-Identifier: MIT
"""replica: a MariaDB and its replica behind one address, which can be led from one to the other."""

import os
import shutil
import tempfile

import markdown
from partition import Forwarder
from servers import PASSWORD, USER, MariaDB, RabbitMQ, Together
from waiting import wait_until

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/operations.md")
DRAIN, PROMOTE = "STOP SLAVE IO_THREAD", "RESET SLAVE ALL"
APPLIED = "Slave has read all relay log"


def documented(statement):
    """The block of SQL of docs/operations.md with this statement in it."""
    with open(PAGE, encoding="utf-8") as text:
        blocks, _ = markdown.read("docs/operations.md", text.read())
    return next(block.text for block in blocks if block.language == "sql" and statement in block.text)


class ReplicatedServers(Together):
    """`mariadb` is the one that the address leads to."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="sluice-replica-")
        self.mariadb = self._server("primary", 1)
        self.replica = self._server("replica", 2)
        self.rabbitmq = RabbitMQ(os.path.join(self.folder, "rabbitmq"))
        self.address = None

    def _server(self, name, number):
        return MariaDB(os.path.join(self.folder, name), options=[
            f"--server-id={number}", "--log-bin=binlog", "--log-slave-updates", "--sync-binlog=1",
            "--gtid-strict-mode=ON"])

    def start(self):
        self.rabbitmq.start()
        self.mariadb.start()
        self.replica.start()
        self.mariadb.wait_ready()
        self.mariadb.create()
        self.replica.wait_ready()
        self._replicate()
        self.address = Forwarder(self.mariadb.port)
        self.rabbitmq.wait_ready()

    def _replicate(self):
        self.replica.sql(f"CHANGE MASTER TO master_host = '127.0.0.1', master_user = '{USER}', "
                         f"master_port = {self.mariadb.port}, master_password = '{PASSWORD}', "
                         "master_use_gtid = slave_pos; START SLAVE; SET GLOBAL read_only = ON")
        self.wait_applied()

    def semi_synchronous(self):
        self.replica.sql("STOP SLAVE; SET GLOBAL rpl_semi_sync_slave_enabled = ON; START SLAVE")
        self.mariadb.sql("SET GLOBAL rpl_semi_sync_master_wait_point = 'AFTER_SYNC';"
                         "SET GLOBAL rpl_semi_sync_master_timeout = 60000;"
                         "SET GLOBAL rpl_semi_sync_master_enabled = ON")
        wait_until("a semi-synchronous replica", lambda: self.mariadb.sql(
            "SHOW STATUS LIKE 'Rpl_semi_sync_master_clients'")[0][1] == "1", 20)

    def wait_applied(self):
        """All that the primary has committed up to now is on the replica."""
        position = self.mariadb.sql("SELECT @@gtid_binlog_pos")[0][0]
        assert self.replica.sql(f"SELECT MASTER_GTID_WAIT('{position}', 30)")[0][0] == "0"

    def cut_replica(self):
        self.replica.sql("STOP SLAVE")

    def promote(self):
        """By the page; the primary is gone."""
        self.replica.sql(documented(DRAIN))
        wait_until("the relay log to be applied", lambda: not self._applying(), 30)
        self.replica.sql(documented(PROMOTE))
        self.mariadb, self.replica = self.replica, self.mariadb
        self.address.target = self.mariadb.port

    def _applying(self):
        status = [cell or "" for cell in self.replica.sql("SHOW SLAVE STATUS")[0]]
        return "Yes" in status and not any(cell.startswith(APPLIED) for cell in status)

    def close(self):
        for server in (self.mariadb, self.replica, self.rabbitmq):
            server.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def environment(self):
        given = self.mariadb.environment() | self.rabbitmq.environment()
        return given | {"SLUICE_TEST_DB_PORT": str(self.address.port)}
