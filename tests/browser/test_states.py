# SPDX-License-Identifier: MIT
"""The page while something is down: it says so, on every screen, and never shows old data as new."""

import pytest

import browser
from servers import Servers
from sluice import PACE, Site
from waiting import wait_until


@pytest.fixture(name="site")
def fixture_site():
    """On servers that it may stop."""
    with Servers() as servers, Site(servers) as made:
        yield made
        for process in made.processes:
            print(f"---- {process.name}\n{process.log_tail()}")
        for server in (servers.mariadb, servers.rabbitmq):
            if not server.alive():  # the test has failed meanwhile
                server.start()
                server.wait_ready()


def test_what_is_wrong_is_shown_in_ten_seconds_on_every_screen(site):
    web = site.web()
    worker = site.worker()
    admin = site.client(web, "admin", "admin")
    job = admin.submit("true", name="first")
    admin.wait_end(job)

    def start(server):
        server.start()
        server.wait_ready()

    def stop_worker():
        worker.stop()
        wait_until("no worker is live", lambda: site.count("workers", "state = 'live'") == 0)

    ids = {"web": web.pid, "job": job}
    print(browser.run_with({
        "web_stop": web.stop, "web_start": web.start,
        "database_stop": site.servers.mariadb.kill9, "database_start": lambda: start(site.servers.mariadb),
        "broker_stop": site.servers.rabbitmq.kill9, "broker_start": lambda: start(site.servers.rabbitmq),
        "worker_stop": stop_worker, "worker_start": worker.start,
    }, "states.mjs", site, web, ids=ids, pace=PACE))
