# SPDX-License-Identifier: MIT
"""jobs: commands for test jobs that leave traces behind and wait until they are let go."""

import os

from waiting import wait_until

# $1 = prefix of the job's files, $2 = gate. A second process of the job at the same time would find
# the lock taken: the lock goes with the last process that holds it.
GATED = """
exec 9>"$1.lock"
flock -n 9 || echo "$$" >>"$1.overlap"
echo "$$ $SLUICE_FENCE $SLUICE_JOB_ID" >>"$1.runs"
while [ ! -e "$2" ]; do sleep 0.1; done
echo "$$ $SLUICE_FENCE $SLUICE_JOB_ID" >>"$1.ends"
echo done
"""


class Traces:
    """Files that the jobs of one test write and look at."""

    def __init__(self, folder):
        self.folder = folder
        os.makedirs(folder, exist_ok=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def command(self, name, gate="gate"):
        """Runs until open(gate); `name` tells the jobs apart."""
        return ["sh", "-c", GATED, "job", self.path(name), self.path(gate)]

    def open(self, gate="gate"):
        with open(self.path(gate), "w", encoding="ascii"):
            pass

    def lines(self, name):
        try:
            with open(self.path(name), encoding="utf-8") as lines:
                return lines.read().splitlines()
        except FileNotFoundError:
            return []

    def runs(self, name):
        """The pids of the job's main process, one per run."""
        return [int(line.split()[0]) for line in self.lines(name + ".runs")]

    def wait_runs(self, name, count=1, timeout_s=120.0):
        wait_until(lambda: f"run {count} of {name}", lambda: len(self.runs(name)) >= count,
                   timeout_s)
        return self.runs(name)

    def overlapped(self):
        return [name for name in os.listdir(self.folder) if name.endswith(".overlap")]
