# SPDX-License-Identifier: MIT
"""told: whether a receiver was told of each event that it subscribed to, and in order per job."""

import collections

from waiting import wait_until


def wait_told(site, timeout_s=120):
    """Until the sender has looked at all that happened, and nothing waits any more."""
    wait_until("the sender to have looked through the history", lambda: site.sql(
        "SELECT s.seq >= COALESCE((SELECT MAX(e.seq) FROM job_events e), 0) "
        "FROM webhook_sender s")[0][0] == "1", timeout_s, 0.2)
    wait_until("every delivery to have ended", lambda: site.count(
        "webhook_deliveries", "state IN ('held', 'due')") == 0, timeout_s, 0.2)


def wanted(site, name):
    """{job: [number of each event that this subscription asked for]}, in order."""
    events = collections.defaultdict(list)
    for job, seq in site.sql(
            "SELECT LOWER(HEX(e.job_id)), e.seq FROM job_events e JOIN subscriptions s "
            f"ON s.tenant = e.tenant AND s.name = '{name}' WHERE e.seq > s.after_seq AND "
            "FIND_IN_SET(e.to_status, s.states) > 0 AND "
            "(e.from_status IS NULL OR e.from_status <> e.to_status) ORDER BY e.seq"):
        events[job].append(int(seq))
    return events


def breaches(site, name, calls, took):
    """{job: what is wrong}, and how many calls came again although they had been taken.

    took(call): whether the receiver answered 200.
    """
    seen, again, wrong = collections.defaultdict(list), 0, {}
    for call in calls:
        if not took(call):
            continue
        job, seq = call.job.replace("-", ""), call.said["seq"]
        if seq in seen[job]:
            again += 1
        else:
            seen[job].append(seq)
    expected = wanted(site, name)
    for job in set(expected) | set(seen):
        if seen[job] != expected.get(job, []):
            wrong[job] = f"told of {seen[job]}, asked for {expected.get(job, [])}"
    return wrong, again
