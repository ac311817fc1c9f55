# SPDX-License-Identifier: MIT
"""What a service manager sends: an end in the middle of a drain, a second one, a reload of a
configuration that is wrong. Jobs go on in their runner, and the old settings stay."""

import signal

import pytest

from injection import injected
from jobs import Traces

JOBS = 3
LEASE_MS = 20000  # a worker that is started again is there before its jobs end, also when it is slow


class Busy:
    """A worker that runs some jobs, and will be told to end."""

    def __init__(self, site, **settings):
        self.site, self.ann = site, site.client(site.web())
        self.worker = site.worker(slots=JOBS, fleet_lease_ms=LEASE_MS, **settings)
        self.traces = Traces(site.path("traces"))
        self.jobs = {str(at): self.ann.submit(*self.traces.command(str(at))) for at in range(JOBS)}
        self.shells = {name: self.traces.wait_runs(name) for name in self.jobs}
        for job in self.jobs.values():
            self.ann.wait_status(job, "RUNNING")

    def finish(self):
        self.traces.open()
        for job in self.jobs.values():
            self.ann.wait_status(job, "FINISHED")
            assert self.site.job_row(job, "losses", "attempts") == ["0", "1"]
        assert {name: self.traces.runs(name) for name in self.jobs} == self.shells
        self.site.wait_clean()


def test_a_worker_that_ends_before_its_jobs_hands_them_over(fresh):
    with injected("F-37 drain", fresh) as hit:
        busy = Busy(fresh, worker_drain_ms=500)
        busy.worker.signal(signal.SIGTERM)
        assert busy.worker.wait() == 0
        hit.healed()
        busy.worker.start()
        busy.finish()


def test_a_second_signal_ends_a_worker_at_once_and_costs_no_job(fresh):
    with injected("F-37 twice", fresh) as hit:
        busy = Busy(fresh, worker_drain_ms=600000)
        busy.worker.signal(signal.SIGTERM)
        busy.worker.wait_log("worker.draining")
        busy.worker.signal(signal.SIGTERM)
        assert busy.worker.wait() == 1
        busy.worker.wait_log("daemon.ended_at_once")
        hit.healed()
        busy.worker.start()
        busy.finish()


def start_program(site, which, **settings):
    start = {"web": site.web, "worker": site.worker, "recovery": lambda **more: site.reader(
        "recovery", **more)}[which]
    return start(**settings)


@pytest.mark.parametrize("which", ["web", "worker", "recovery"])
def test_a_reload_of_a_wrong_file_keeps_the_settings_and_names_the_line(
        fresh, monkeypatch, which):
    path = fresh.path("sluice.conf")

    def write(*lines):
        with open(path, "w", encoding="ascii") as out:
            out.write("".join(line + "\n" for line in lines))
    with injected(f"F-37 {which}", fresh) as hit:
        write("[log]", "level = info")
        environment = fresh.environment
        monkeypatch.setattr(fresh, "environment",
                            lambda **more: environment(**more) | {"SLUICE_CONFIG": path})
        program = start_program(fresh, which)
        monkeypatch.undo()
        others = {"web": fresh.web, "worker": fresh.worker}
        web = program if which == "web" else others["web"]()
        if which != "worker":
            others["worker"]()
        write("[log]", "level = info", "no such setting = 1")
        program.signal(signal.SIGHUP)
        refused = program.wait_log("reload.refused")
        assert f"{path}:3" in refused, refused
        hit.healed()
        assert program.ready() == 200
        ann = fresh.client(web)
        ann.wait_status(ann.submit("true"), "FINISHED")
        write("[log]", "level = debug")
        program.signal(signal.SIGHUP)
        ann.wait_status(ann.submit("true"), "FINISHED")
        assert program.alive() and program.log_text().count("reload.refused") == 1
