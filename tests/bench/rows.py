# SPDX-License-Identifier: MIT
"""rows: the rows of the table by name, in the order in which they run."""

import row_backlog
import row_blocked
import row_filters
import row_idle
import row_latency
import row_memory
import row_output
import row_recovery
import row_shares
import row_submit
import row_throughput

ROWS = {
    "throughput": row_throughput.run,
    "submit": row_submit.run,
    "latency": row_latency.run,
    "memory": row_memory.run,
    "backlog": row_backlog.run,
    "blocked": row_blocked.run,
    "filters": row_filters.run,
    "recovery": row_recovery.run,
    "output": row_output.run,
    "idle": row_idle.run,
    "shares": row_shares.run,
}
