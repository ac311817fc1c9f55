# SPDX-License-Identifier: MIT
"""2,000 jobs from 8 clients over 3 queues with 2 workers each: every one runs once."""

import collections
import threading

import sluice
from waiting import wait_until

JOBS, CLIENTS = 2000, 8
QUEUES = {"quick": "'quick' IN tags", "long": "'long' IN tags", "default": None}
TAGS = [["quick"], ["long"], []]


def submit_share(ann, share, side_file, ids, faults):
    try:
        for number in share:
            # One short write in append mode: lines of several processes do not mix.
            ids[number] = ann.submit("sh", "-c", f"echo {number} >>{side_file}",
                                     tags=TAGS[number % len(TAGS)])
    except BaseException as fault:  # pylint: disable=broad-except
        faults.append(fault)


def test_all_finish_and_each_ran_once(fresh):
    web = fresh.web()
    root = fresh.client(web, "root", "admin")
    for priority, (name, text) in enumerate(QUEUES.items(), 1):
        if text:
            root.put_queue(name, priority, text).expect(201)
    for name in QUEUES:
        fresh.worker(name, f"{name}-1", slots=4)
        fresh.worker(name, f"{name}-2", slots=4)
    side_file, ids, faults = fresh.path("side"), {}, []
    threads = [threading.Thread(target=submit_share, args=(
        fresh.client(web, f"user{at}", keep=True), range(at, JOBS, CLIENTS), side_file, ids,
        faults)) for at in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults and len(set(ids.values())) == JOBS

    def states():
        return dict(fresh.sql("SELECT status, COUNT(*) FROM jobs GROUP BY status"))
    wait_until(lambda: f"all to finish: {states()}",
               lambda: states() == {"FINISHED": str(JOBS)}, 150, 0.5)
    with open(side_file, encoding="ascii") as lines:
        ran = collections.Counter(int(line) for line in lines)
    assert ran == collections.Counter(range(JOBS))
    assert fresh.count("jobs", "losses > 0 OR attempts <> 1") == 0
    assert fresh.sql("SELECT COUNT(DISTINCT owner_worker), COUNT(DISTINCT queue) FROM jobs")[0][
        1] == "3"
    fresh.wait_clean()
    assert not sluice.pids_below(fresh.path("work") + "/nothing")
