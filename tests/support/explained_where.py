# SPDX-License-Identifier: MIT
"""explained_where: rows of tests/scenario/test_explained.py: jobs that wait, queues, workers, losses."""

from explained_row import Row

ROWS = {
    # ---- jobs that wait for a slot
    "behind others": Row("a job waits behind others, all slots are busy",
                         "the jobs before it, and whose; all slots busy, as of when",
                         "jobs, slots, how long it has waited", "nothing to do; a further worker"),
    "when will it start": Row("a job waits, and others have run on its queue",
                              "the median run time of the last hour", "the estimated start, and its basis",
                              "nothing to do"),
    "no worker": Row("a job waits, and no worker serves its queue",
                     "no worker serves it; the last one, its host, its end", "since when", "start one"),
    "drained worker": Row("a job waits, and its only worker was drained",
                          "the worker, its host, who drained it", "when", "undrain it"),
    "disabled queue": Row("a job waits on a queue that was disabled since",
                          "the queue is disabled, by whom; all slots busy", "since when, how many slots",
                          "nothing to do"),
    "lost message": Row("a job waits, a slot is free and nothing is before it",
                        "its message seems lost", "sent again within two leases", "nothing to do"),
    "worker misses beats": Row("a job waits, and its only worker is silent for less than a lease",
                               "it was not heard of", "its silence, the lease", "nothing to do"),
    "silent worker": Row("a job waits, and its only worker is stopped for longer than a lease",
                         "the worker that is silent, its host", "its silence, the lease",
                         "look at its host, start another"),
}
