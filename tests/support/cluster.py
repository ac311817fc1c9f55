# SPDX-License-Identifier: MIT
"""cluster: three RabbitMQ nodes that are one broker, beside a MariaDB."""

import os
import shutil
import tempfile

from servers import PASSWORD, USER, MariaDB, RabbitMQ, RabbitMQClient, Together

NODES = 3


class Node(RabbitMQ):
    """One node; the first one's port mapper and cookie are everybody's."""

    def __init__(self, folder, first=None):
        super().__init__(folder, epmd_port=first.epmd_port if first else None)
        self.first = first or self

    def know(self, nodes):
        for at, node in enumerate(nodes, 1):
            self.config[f"cluster_formation.classic_config.nodes.{at}"] = node.node
        self.config |= {"cluster_formation.peer_discovery_backend": "classic_config",
                        "cluster_partition_handling": "pause_minority"}

    def start(self):
        if self.first is not self:
            self.epmd = self.first.epmd
        super().start()

    def _write_files(self):
        cookie, own = f"{self.first.folder}/.erlang.cookie", f"{self.folder}/.erlang.cookie"
        if self.first is not self and not os.path.exists(own):
            shutil.copy2(cookie, own)
        super()._write_files()


class Cluster(RabbitMQClient):
    """The client half asks a node that lives."""

    def __init__(self, folder):
        first = Node(os.path.join(folder, "node0"))
        self.nodes = [first] + [Node(os.path.join(folder, f"node{at}"), first)
                                for at in range(1, NODES)]
        for node in self.nodes:
            node.know(self.nodes)
        super().__init__([], USER)

    def start(self):
        """One after the other: each joins those that are there."""
        for node in self.nodes:
            node.start()
            node.wait_ready()

    def alive(self):
        return [node for node in self.nodes if node.alive()]

    def ctl(self, *args):
        self.command = self.alive()[0].command
        return super().ctl(*args)

    def leader(self, queue, vhost):
        """The node that leads a quorum queue; None while there is none that lives."""
        text = self.ctl("--no-table-headers", "list_queues", "-p", vhost, "name", "leader")
        led = dict(line.split("\t") for line in text.splitlines() if "\t" in line)
        return next((node for node in self.alive() if node.node == led.get(queue)), None)

    def settle(self):
        for node in self.alive():
            node.settle()

    def close(self):
        for node in reversed(self.nodes):
            node.close()

    def environment(self):
        hosts = ", ".join(f"127.0.0.1:{node.port}" for node in self.nodes)
        return {"SLUICE_TEST_AMQP_HOST": hosts, "SLUICE_TEST_AMQP_PORT": "5672",
                "SLUICE_TEST_AMQP_USER": USER, "SLUICE_TEST_AMQP_PASSWORD": PASSWORD,
                "SLUICE_TEST_AMQP_VHOST": "sluice"}


class ClusterServers(Together):
    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="sluice-cluster-")
        self.mariadb = MariaDB(os.path.join(self.folder, "mariadb"))
        self.rabbitmq = Cluster(self.folder)

    def start(self):
        self.mariadb.start()
        self.rabbitmq.start()
        self.mariadb.wait_ready()
        self.mariadb.create()

    def close(self):
        self.mariadb.close()
        self.rabbitmq.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def environment(self):
        return self.mariadb.environment() | self.rabbitmq.environment()
