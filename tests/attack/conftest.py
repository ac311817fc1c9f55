# SPDX-License-Identifier: MIT
"""Fixtures of the attack tests: a stand is a site with its programs, for one file."""

import pytest

from attacks import Stand
from sluice import Site

SETTINGS = {"web_deadline_ms": 3000, "web_connections_per_address": 200}


@pytest.fixture(scope="module")
def stand(request, shared_servers):
    with Site(shared_servers) as site:
        made = Stand(site, **getattr(request.module, "SETTINGS", SETTINGS))
        yield made
        made.end()


@pytest.fixture(scope="module")
def ann(stand):
    return stand.ann
