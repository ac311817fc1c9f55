# SPDX-License-Identifier: MIT
"""Which descriptors each process of a site has. A process that outlives another one must hold
none of its connections: the server would not see that the other one has died."""

import os
import re
import signal

import sluice
from injection import injected
from jobs import Traces
from waiting import wait_until

CLOEXEC, PATH_ONLY = 0o2000000, 0o10000000
ANONYMOUS = ("eventpoll", "timerfd", "signalfd", "eventfd", "pidfd")  # of the runner itself


def descriptors(pid):
    """{number: (where it leads, its flags)}"""
    found = {}
    for number in os.listdir(f"/proc/{pid}/fd"):
        try:
            where = os.readlink(f"/proc/{pid}/fd/{number}")
            flags = re.search(r"^flags:\s*(\d+)", sluice.read_proc(pid, f"fdinfo/{number}").decode(), re.M)
        except OSError:
            continue  # closed meanwhile
        if flags:
            found[int(number)] = (where, int(flags.group(1), 8))
    return found


def unix_sockets(pid):
    lines = sluice.read_proc(pid, "net/unix").decode().splitlines()[1:]
    return {f"socket:[{line.split()[6]}]" for line in lines}


def inherited(pid):
    """What a program that it starts would get, beside the first three."""
    return {number: where for number, (where, flags) in descriptors(pid).items()
            if number > 2 and not flags & CLOEXEC}


def foreign(runner, folder):
    """What a runner has that is not its own work. Folders that its jobs may reach are open by their
    path only: nothing can be read or locked by these."""
    unix = unix_sockets(runner)

    def own(where):
        kind = re.fullmatch(r"anon_inode:\[?(\w+)\]?", where)
        return (kind and kind.group(1) in ANONYMOUS or where in unix or where.startswith("pipe:")
                or where.startswith(folder) or where in ("/dev/null", "/proc")
                or where == f"/proc/{runner}/task/{runner}/children")
    return {number: where for number, (where, flags) in descriptors(runner).items()
            if not flags & PATH_ONLY and not own(where)}


def wait_connected(worker, times):
    wait_until(lambda: f"runner {times} of {worker.name}\n{worker.log_tail()}",
               lambda: len(worker.log_events("worker.runner.connected")) >= times)


def test_no_process_has_a_descriptor_of_another(fresh):
    worker = fresh.worker(slots=2)
    programs = [fresh.web(), worker, fresh.reader("alternate"), fresh.reader("deadletter"),
                fresh.reader("recovery"), fresh.reader("webhook")]
    ann, traces = fresh.client(programs[0]), Traces(fresh.path("traces"))
    fresh.wait_beats()
    for times in (1, 2):  # a runner that is started beside a worker that works has most to inherit
        wait_connected(worker, times)
        job = ann.submit(*traces.command(f"job{times}", f"gate{times}"))
        shell = traces.wait_runs(f"job{times}")[0]
        ann.wait_status(job, "RUNNING")
        runner = sluice.parent(shell)
        assert {process.name: inherited(process.pid) for process in programs} == {
            process.name: {} for process in programs}
        assert foreign(runner, fresh.folder) == {} and inherited(runner) == {}
        of_job = [where for _, (where, _) in sorted(descriptors(shell).items())]
        assert of_job[0] == "/dev/null" and of_job[3] == traces.path(f"job{times}.lock"), of_job
        assert [where[:5] for where in of_job[1:3]] == ["pipe:", "pipe:"] and len(of_job) == 4
        traces.open(f"gate{times}")
        ann.wait_status(job, "FINISHED")
        if times == 1:
            os.kill(runner, signal.SIGKILL)


def test_a_worker_that_dies_in_a_transaction_keeps_no_row(fresh):
    """On a server that does not end idle transactions, with a runner that lives on."""
    traces = Traces(fresh.path("traces"))
    traces.open()
    with injected("F-2 transaction", fresh) as hit:
        no_limit = "db.no_idle_limit=fail"
        ann = fresh.client(fresh.web())
        worker = fresh.worker(slots=1, fault=f"{no_limit};job.writer.before_commit=kill")
        fresh.wait_beats()
        os.kill(sluice.runner_of(fresh.path("work", worker.name)), signal.SIGKILL)
        wait_connected(worker, 2)
        job = ann.submit(*traces.command("job"))
        assert worker.wait() == -signal.SIGKILL
        fresh.worker(slots=1, fault=no_limit)
        hit.healed()
        ann.wait_status(job, "FINISHED")
        assert len(traces.runs("job")) == 1
        assert fresh.job_row(job, "losses", "attempts") == ["0", "1"]
