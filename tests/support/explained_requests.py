# SPDX-License-Identifier: MIT
"""explained_requests: rows of tests/scenario/test_explained_requests.py: refusals, doctor, servers that are away."""

from explained_row import Row  # pylint: disable=unused-import

ROWS = {
}
