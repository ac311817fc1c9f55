# SPDX-License-Identifier: MIT
"""Fixtures of the scenario and fault tests."""

import os
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))
# pylint: disable=wrong-import-position
from servers import Servers, SharedServers
from sluice import Site


@pytest.fixture(scope="session")
def shared_servers():
    """Servers that no test stops: those of with_servers, or a pair for this run of pytest."""
    if "SLUICE_TEST_DB_HOST" in os.environ:
        yield SharedServers(os.environ)
        return
    with Servers() as servers:
        yield servers


@pytest.fixture(scope="module")
def site(shared_servers):
    """A site for the tests of one file; each starts the programs that it needs."""
    with Site(shared_servers) as made:
        yield made


@pytest.fixture
def fresh(shared_servers):
    """A site for one test alone, on the shared servers."""
    with Site(shared_servers) as made:
        yield made
        _tell(made)


def _tell(made):
    """The ends of the logs; pytest shows them if the test failed."""
    for process in made.processes:
        print(f"---- {process.name}\n{process.log_tail()}")
