# SPDX-License-Identifier: MIT
"""proc: what processes cost, read from /proc."""

import os

import sluice

TICKS = os.sysconf("SC_CLK_TCK")


def _stat(pid):
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return stat.read().rpartition(b")")[2].split()
    except OSError:
        return None


def cpu_s(pid):
    """(its own, that of the children it has waited for), user and system together."""
    fields = _stat(pid)
    if fields is None:
        return 0.0, 0.0
    ticks = [int(field) for field in fields[11:15]]
    return (ticks[0] + ticks[1]) / TICKS, (ticks[2] + ticks[3]) / TICKS


def pss_kib(pid):
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("Pss:"):
                    return int(line.split()[1])
    except OSError:
        pass
    return 0


def named(folder, comm):
    """Processes of this name that belong to a folder."""
    found = []
    for pid in sluice.pids_below(folder):
        try:
            with open(f"/proc/{pid}/comm", encoding="ascii") as name:
                if name.read().strip() == comm[:15]:
                    found.append(pid)
        except OSError:
            pass
    return sorted(found)


def children(pid):
    """Direct children."""
    return [other for other in (int(name) for name in os.listdir("/proc") if name.isdigit())
            if (fields := _stat(other)) is not None and int(fields[1]) == pid]


class CpuMeter:
    """Seconds of processor time by role between its making and read().

    roles: {role: [pid]}. What the processes of the roles in `parents` waited for is the role
    "child": the commands themselves.
    """

    def __init__(self, roles, parents=()):
        self.roles, self.parents = roles, parents
        self.before = self._sample()

    def _sample(self):
        seen = {"child": 0.0}
        for role, pids in self.roles.items():
            own = [cpu_s(pid) for pid in pids]
            seen[role] = sum(part[0] for part in own)
            if role in self.parents:
                seen["child"] += sum(part[1] for part in own)
        return seen

    def read(self):
        return {role: after - self.before[role] for role, after in self._sample().items()}
