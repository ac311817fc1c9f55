# SPDX-License-Identifier: MIT
"""Fixtures of the scenario and fault tests."""

import os
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))
# pylint: disable=wrong-import-position
from servers import Servers, SharedServers
from sluice import SHARED, Site
from witness import WITNESS


@pytest.fixture(scope="session", autouse=True)
def shared_folder(tmp_path_factory):
    """Jobs may reach what tests have in tmp_path."""
    os.environ[SHARED] = str(tmp_path_factory.getbasetemp())


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


JUDGED = ("contract", "scenario")  # folders; elsewhere servers are stopped and broken on purpose


@pytest.fixture(autouse=True)
def contract_kept(request):
    """What a service answers in a test is what its contract says."""
    WITNESS.take()
    yield
    found = WITNESS.take() if request.node.path.parent.name in JUDGED else []
    assert not found, "the contract says otherwise:\n" + "\n".join(found)


def pytest_sessionfinish(session):
    """Leaves what was seen for tests/tools/contract_table."""
    folder = os.environ.get("SLUICE_CONTRACT_RESULTS")
    files = sorted({item.path.stem for item in session.items
                    if item.path.parent.name in JUDGED})
    if folder and files and WITNESS.replies:
        WITNESS.write(folder, files[0])
