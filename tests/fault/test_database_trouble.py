# SPDX-License-Identifier: MIT
"""A database that ends connections, chooses our transactions as the victims of deadlocks or keeps
them waiting for locks: each is tried again, and what was committed is not done twice."""

import random
import subprocess
import threading

import pytest

from injection import injected
from jobs import Traces
from waiting import wait_until

JOBS = 40
SEED = 35


class Load:
    """Jobs that are submitted and run while something goes on in the database."""

    def __init__(self, site):
        self.site, self.traces, self.taken = site, Traces(site.path("traces")), 0
        self.web = site.web(db_query_timeout_ms=4000)
        self.workers = [site.worker("default", name, slots=4, db_query_timeout_ms=4000)
                        for name in ("one", "two")]
        site.reader("recovery", recovery_outbox_age_ms=1000)
        self.traces.open()

    def submit(self, count=JOBS):
        """All are taken in the end, each once: the key says that it is the same one."""
        ann = self.site.client(self.web)
        for at in range(self.taken, self.taken + count):
            body = {"name": "load", "command": self.traces.command(str(at))}
            wait_until(f"submission {at}", lambda: ann.post(  # pylint: disable=cell-var-from-loop
                "/v1/jobs", body, {"Idempotency-Key": f"load {at}"}).status in (200, 201), 120)
        self.taken += count

    def finish(self):
        wait_until(lambda: str(self.site.sql("SELECT status, COUNT(*) FROM jobs GROUP BY 1")),
                   lambda: self.site.count("jobs", "status = 'FINISHED'") == self.taken, 240)
        assert self.site.count("jobs") == self.taken
        assert not self.traces.overlapped()
        assert all(process.alive() for process in self.site.processes)
        self.site.wait_clean()


class Trouble:
    """strike(), again and again in a thread of its own, until the block ends."""

    def __init__(self, strike):
        self.strike, self.stop, self.count, self.fault = strike, threading.Event(), 0, None
        self.thread = threading.Thread(target=self._run)

    def _run(self):
        try:
            while not self.stop.wait(0.05):
                self.count += self.strike()
        except Exception as fault:  # pylint: disable=broad-except
            self.fault = fault

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *unused):
        self.stop.set()
        self.thread.join()
        assert self.fault is None, self.fault


def ask(site, text, check=True):
    """As site.sql, on a connection that may be told from those of the programs."""
    maria = site.servers.mariadb
    done = subprocess.run(["mariadb", *maria.address, "--batch", "--skip-column-names",
                           site.schema], input=text, capture_output=True, text=True, check=False,
                          env={"MYSQL_PWD": maria.password, "PATH": "/usr/bin:/bin"})
    assert not check or done.returncode == 0, done.stderr
    return done.stdout.split()


def test_connections_that_the_database_ends_cost_no_job(fresh):
    chance = random.Random(SEED)

    def kill_one():
        found = ask(fresh, "SELECT id FROM information_schema.processlist "
                    f"WHERE db = '{fresh.schema}' AND id <> CONNECTION_ID()")
        if found:
            ask(fresh, f"KILL CONNECTION {chance.choice(found)}", check=False)
        return bool(found)
    with injected("F-35 killed", fresh) as hit:
        load = Load(fresh)
        with Trouble(kill_one) as trouble:
            load.submit()
            wait_until("enough kills", lambda: trouble.count >= 60, 180)
        hit.healed()
        load.finish()


def test_commits_whose_answer_is_lost_are_not_made_twice(fresh):
    """Web, one worker and recovery lose the answer to many of their commits."""
    fault = ";".join(f"store.commit.answer_lost=fail@{at}" for at in range(3, 60, 4))
    with injected("F-35 unknown", fresh) as hit:
        environment = fresh.environment
        fresh.environment = lambda **more: environment(**more) | {"SLUICE_FAULT": fault}
        load = Load(fresh)
        fresh.environment = environment
        load.submit()

        def lost():
            return [process.log_text().count("answer_lost")
                    for process in [load.web, *load.workers]]
        # Nobody says which worker gets a job, and several may share a commit.
        wait_until(lambda: f"five for each: {lost()}",
                   lambda: min(lost()) >= 5 or load.submit(5), 180)
        hit.healed()
        load.finish()


def test_deadlocks_and_locks_that_are_held_are_tried_again(fresh):
    fresh.sql("CREATE TABLE weight (n INT PRIMARY KEY) ENGINE=InnoDB")

    def take_all():
        """Heavier than any of ours, so that ours is the victim; then it holds all rows. Whoever
        submits meanwhile has a row of jobs and waits for the outbox."""
        ask(fresh, "BEGIN; INSERT INTO weight SELECT seq FROM seq_1_to_2000; "
            "SELECT COUNT(*) FROM (SELECT id FROM outbox FOR UPDATE) o; DO SLEEP(0.1); "
            "SELECT COUNT(*) FROM (SELECT id FROM jobs FOR UPDATE) j; "
            "DO SLEEP(0.3); ROLLBACK", check=False)
        return 1

    def deadlocks():
        return int(ask(fresh, "SELECT variable_value FROM information_schema.global_status "
                       "WHERE variable_name = 'INNODB_DEADLOCKS'")[0])
    with injected("F-35 locks", fresh) as hit:
        load = Load(fresh)
        before = deadlocks()
        with Trouble(take_all) as trouble:
            load.submit()
            wait_until("enough rounds", lambda: trouble.count >= 20, 180)
            wait_until("a deadlock", lambda: load.submit(5) or deadlocks() > before, 180)
        hit.healed()
        load.finish()
    fresh.sql("DROP TABLE weight")


def test_a_lock_that_outlasts_every_patience_delays_and_loses_nothing(fresh):
    """Longer than a statement may wait, and than a lease."""
    with injected("F-35 held", fresh) as hit:
        load = Load(fresh)
        load.submit()
        holder = threading.Thread(target=ask, args=(
            fresh, "BEGIN; SELECT COUNT(*) FROM (SELECT id FROM jobs FOR UPDATE) j; "
            "DO SLEEP(6); ROLLBACK"))
        holder.start()
        holder.join()
        hit.healed()
        load.finish()


@pytest.fixture(autouse=True)
def tell(fresh):
    """The log of whoever failed."""
    yield
    for process in fresh.processes:
        print(f"---- {process.name}\n{process.log_tail()}")
