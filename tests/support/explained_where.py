# SPDX-License-Identifier: MIT
"""explained_where: rows of tests/scenario/test_explained.py: jobs that wait, queues, workers, losses."""

from explained_row import Row

ROWS = {
    "no worker": Row("a job waits, and no worker serves its queue",
                     "no worker serves it", "its place in the queue", "start one"),
}
