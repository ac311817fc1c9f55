# SPDX-License-Identifier: MIT
"""A broker that takes back what is not acknowledged in time costs a channel, not a run."""

import pytest

from jobs import Traces
from servers import Servers
from sluice import Site
from injection import injected
from waiting import wait_until

TIMEOUT_MS = 3000


@pytest.fixture
def own():
    # The broker looks for late acknowledgements once a minute unless told.
    with Servers(config={"consumer_timeout": str(TIMEOUT_MS)},
                 erl="-rabbit channel_tick_interval 500") as servers, Site(servers) as made:
        yield made
        for process in made.processes:
            print(f"---- {process.name}\n{process.log_tail()}")


def test_a_job_that_runs_longer_than_the_timeout_runs_once(own):
    ann = own.client(own.web())
    worker = own.worker(slots=2)
    traces = Traces(own.path("traces"))
    with injected("F-8", own) as hit:
        job = ann.submit(*traces.command("long"))
        shell = traces.wait_runs("long")
        worker.wait_log("consumer_timeout")
        hit.healed()
        worker.wait_ready()
        # Other jobs go on meanwhile, and the message is taken back more than once.
        other = ann.submit("true")
        ann.wait_status(other, "FINISHED")
        wait_until("a second loss of the channel",
                   lambda: worker.log_text().count("consumer_timeout") >= 2, 30)
        assert traces.runs("long") == shell
        traces.open()
        ann.wait_status(job, "FINISHED")
        assert traces.runs("long") == shell and not traces.overlapped()
        assert own.job_row(job, "losses", "attempts") == ["0", "1"]
        own.wait_clean()
