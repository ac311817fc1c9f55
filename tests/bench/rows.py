# SPDX-License-Identifier: MIT
"""rows: the rows of the table by name, in the order in which they run."""

import row_latency
import row_submit
import row_throughput

ROWS = {
    "throughput": row_throughput.run,
    "submit": row_submit.run,
    "latency": row_latency.run,
}
