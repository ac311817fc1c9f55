# SPDX-License-Identifier: MIT
"""Fixtures of tests that stop servers: the servers are those of one file."""

import pytest

from servers import Servers
from sluice import Site


@pytest.fixture(scope="module")
def servers():
    with Servers() as made:
        yield made


@pytest.fixture
def own(servers):
    """A site for one test, on servers that it may stop and kill."""
    with Site(servers) as made:
        yield made
        for process in made.processes:
            print(f"---- {process.name}\n{process.log_tail()}")
        for server in (servers.mariadb, servers.rabbitmq):
            if not server.alive():  # a test that failed left it so
                server.start()
                server.wait_ready()
