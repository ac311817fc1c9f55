# SPDX-License-Identifier: MIT
"""explained_jobs: rows of tests/scenario/test_explained_jobs.py: recovery groups, and how runs ended."""

from explained_row import Row  # pylint: disable=unused-import

ROWS = {
}
