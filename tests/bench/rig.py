# SPDX-License-Identifier: MIT
"""rig: what the systems under measurement have in common.

A rig submits jobs, waits for their ends and audits them. `command` is the argv of the jobs; it may
hold @NUMBER@, which is the job's number in eight digits.
"""

import json
import os
import subprocess
import tempfile

import sluice
from waiting import wait_until

HERE = os.path.dirname(os.path.abspath(__file__))
TRUE = ["/bin/true"]
POLL_S = 0.05
END_S = 600.0


def tool(name, *args, stdin=None, timeout_s=900):
    """Runs a program of the kit; its report."""
    argv = [os.path.join(sluice.BIN, f"bench-{name}"), *(str(arg) for arg in args)]
    done = subprocess.run(argv, stdin=stdin, capture_output=True, text=True, timeout=timeout_s,
                          check=False)
    if done.returncode:
        raise RuntimeError(f"{argv}: {done.stderr}")
    return json.loads(done.stdout)


class Side:
    """The file to which bench-stamp appends: which jobs ran, when, how often."""

    def __init__(self):
        handle, self.path = tempfile.mkstemp(prefix="sluice-side-", dir=sluice.shared_folder())
        os.close(handle)
        self.command = [os.path.join(sluice.BIN, "bench-stamp"), self.path, "@NUMBER@"]

    def starts(self):
        """{number: ns of its start}; a second start of a number is a fault."""
        found = {}
        with open(self.path, encoding="ascii") as lines:
            for line in lines:
                number, start_ns, _pid = line.split()
                if int(number) in found:
                    raise AssertionError(f"job {number} ran twice")
                found[int(number)] = int(start_ns)
        return found

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        os.unlink(self.path)


def read_log(path):
    """{number: (due, sent, answered)} in ns of what was accepted."""
    found = {}
    with open(path, encoding="ascii") as lines:
        for line in lines:
            number, due, sent, done, status, _id = line.split()
            if status == "201":
                found[int(number)] = (int(due), int(sent), int(done))
    return found


def accepted(report):
    """How many it took; whatever else came is a fault of the run."""
    refused = {status: count for status, count in report["statuses"].items() if status != "201"}
    if refused:
        raise AssertionError(f"refused: {refused}")
    return report["requests"]


class Rig:
    """One system. Subclasses say how it submits (`load`), what it has finished (`finished`), which
    processes it has (`roles`) and how it forgets all jobs (`clear`)."""

    name = "rig"
    parents = ()

    def load(self, command, **options):
        """Options as those of bench-load: connections, count, rate, seconds, log."""
        raise NotImplementedError

    def finished(self):
        raise NotImplementedError

    def roles(self):
        raise NotImplementedError

    def clear(self):
        raise NotImplementedError

    def audit(self, jobs):
        """AssertionError unless so many jobs ended well, each once."""
        raise NotImplementedError

    def wait_finished(self, jobs, timeout_s=END_S):
        wait_until(lambda: f"{self.name}: {jobs} jobs, {self.finished()} have finished",
                   lambda: self.finished() >= jobs, timeout_s, POLL_S)

    def warm_up(self, jobs=200):
        self.load(TRUE, connections=8, count=jobs)
        self.wait_finished(jobs)
        self.clear()

    def audited_batch(self, jobs):
        """Not measured: jobs that leave a trace show that each ran once."""
        with Side() as side:
            taken = accepted(self.load(side.command, connections=8, count=jobs))
            self.wait_finished(taken)
            starts = side.starts()
            assert len(starts) == jobs, f"{self.name}: {len(starts)} of {jobs} jobs ran"
            self.audit(jobs)
        self.clear()
