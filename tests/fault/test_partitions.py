# SPDX-License-Identifier: MIT
"""One worker is cut off the database, the broker or both while another one is well."""

import pytest

import sluice
from jobs import Traces
from partition import Forwarder
from waiting import stays_true, wait_until

JOBS = 4
CUT_S = 3 * sluice.LEASE_MS / 1000


class Parted:
    """A worker behind forwarders that runs all jobs, and one that could take them."""

    def __init__(self, site):
        given = site.servers.environment()
        self.site = site
        self.db = Forwarder(int(given["SLUICE_TEST_DB_PORT"]))
        self.broker = Forwarder(int(given["SLUICE_TEST_AMQP_PORT"]))
        self.ann = site.client(site.web())
        self.traces = Traces(site.path("traces"))
        self.worker = site.worker(
            "default", "cut-off", slots=JOBS, db_host="127.0.0.1", db_port=self.db.port,
            amqp_host="127.0.0.1", amqp_port=self.broker.port)
        self.jobs = {str(at): self.ann.submit(*self.traces.command(str(at))) for at in range(JOBS)}
        for job in self.jobs.values():
            self.ann.wait_status(job, "RUNNING")
        self.shells = {name: self.traces.wait_runs(name)[0] for name in self.jobs}
        site.worker("default", "well", slots=JOBS)

    def all_run(self):
        return all(sluice.running(pid) for pid in self.shells.values())

    def finish(self, runs):
        self.db.cut = self.broker.cut = False
        self.traces.open()
        for job in self.jobs.values():
            self.ann.wait_status(job, "FINISHED", timeout_s=30)
            assert self.site.job_row(job, "losses", "attempts") == [str(runs - 1), "1"]
        assert {len(self.traces.runs(name)) for name in self.jobs} == {runs}
        assert not self.traces.overlapped()
        wait_until("it to be ready again", lambda: self.worker.ready() == 200, 30)
        self.site.wait_clean(40)


@pytest.mark.parametrize("which", ["db", "broker"])
def test_a_worker_cut_off_one_server_keeps_its_jobs(fresh, which):
    parted = Parted(fresh)
    getattr(parted, which).cut = True
    stays_true("its jobs run", parted.all_run, CUT_S)
    parted.finish(runs=1)


def test_a_worker_cut_off_both_ends_its_jobs_before_another_begins_them(fresh):
    parted = Parted(fresh)
    parted.db.cut = parted.broker.cut = True
    for name in parted.jobs:
        parted.traces.wait_runs(name, 2, timeout_s=20)
        assert not sluice.running(parted.shells[name])
    parted.finish(runs=2)
    assert parted.worker.log_events("worker.silent")
