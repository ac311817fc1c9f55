# SPDX-License-Identifier: MIT
"""explained_row: what a row of explained.ROWS has."""

import collections

COLUMNS = ("cause", "limit", "step")
NONE = "-"  # there is no such question here: no value, or nothing to be done

# situation: what is so; the others: what an answer names.
Row = collections.namedtuple("Row", ("situation", *COLUMNS))
