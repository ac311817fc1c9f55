# SPDX-License-Identifier: MIT
"""report: the table at the end of a soak."""

import collections

from nemesis import KINDS


def resident_mib(pid):
    """0 when there is no such process, or it is a zombie."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii") as status:
            line = next((line for line in status if line.startswith("VmRSS")), "VmRSS: 0 kB")
    except OSError:
        return 0.0
    return int(line.split()[1]) / 1024


def share(values, part):
    """The value that this part of all does not exceed; 0 without values."""
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * part))] if values else 0.0


def print_faults(injector, fleet):
    times, worst = collections.Counter(), {}
    for done in injector.done:
        if done.began_s is None or done.over_s is None:
            continue
        kind = done.fault.kind
        times[kind] += 1
        took_s = fleet.recovered_s(done.over_s)
        worst[kind] = max(worst.get(kind, 0.0), float("inf") if took_s is None else took_s)
    print(f"\n{'fault':22} {'times':>5}  {'all ready after':>15}")
    for kind in KINDS:
        if times[kind]:
            print(f"{kind:22} {times[kind]:5}  {worst[kind]:13.1f} s")
    print(f"{'  ends past a limit':22} {len(injector.past_limit):5}")
    print(f"{'all':22} {sum(times.values()):5}  {max(worst.values(), default=0.0):13.1f} s")


def print_jobs(load, verdict, waits_s):
    print(f"\n{'jobs':28} {len(load.ids):6}")
    for outcome, count in sorted(verdict.outcomes.items()):
        print(f"  {outcome:26} {count:6}")
    for name in ("lost", "doubled", "stuck", "wrong"):
        print(f"{name:28} {len(getattr(verdict, name)):6}")
    print(f"{'reruns (legal)':28} {verdict.reruns:6}")
    print(f"{'  of runs that had ended':28} {verdict.reruns_of_ended:6}")
    told = ", ".join(f"{count} {status}" for status, count in sorted(
        load.refused.items(), key=str)) or "none"
    print(f"{'submissions tried again':28} {told}")
    for name, values in (("submit", load.latencies_s), ("submit, until accepted", load.patience_s),
                         ("accepted to started", waits_s)):
        print(f"{name:28} p50 {share(values, 0.5):.3f} s  p99 {share(values, 0.99):.3f} s  "
              f"worst {max(values, default=0):.3f} s")


def print_programs(fleet):
    print(f"\n{'resident MiB':22} {'first':>7} {'most':>7} {'last':>7}  starts")
    for name, samples in sorted(fleet.resident.items()):
        print(f"{name:22} {samples[0]:7.1f} {max(samples):7.1f} {samples[-1]:7.1f}  "
              f"{fleet.starts.get(name, '')}")
    for at_s, name, status in fleet.ends:
        print(f"{at_s:7.1f} s  {name} ended by itself with status {status}")
