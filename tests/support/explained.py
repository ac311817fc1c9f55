# SPDX-License-Identifier: MIT
"""explained: situations that people ask about, a row each, and what they were told.

  with explained("no worker") as row:
      row.said(why(ann), cause=["no worker serves"], limit=["has waited for"],
               step=["Ask an administrator"], never=["sluice-worker"])
      row.said(why(root), step=["sluice-worker --tenant acme --queue idle"])

Each list has texts or compiled patterns; all of cause, limit and step must be in what was said, and
none of never, which is what would be false here. A column is good once a part of it was found by some
said() of the row's test; every column that the row has must be (NONE: there is no such question).
One line goes to the folder of SLUICE_TEST_RESULTS; tests/tools/explained_table makes the table. A row
that no test tried fails it.

The rows are in the modules below, one for each file of tests.
"""

import contextlib
import json
import os
import re
import time

import explained_jobs
import explained_requests
import explained_where
from explained_row import COLUMNS, NONE

PARTS = (explained_where.ROWS, explained_jobs.ROWS, explained_requests.ROWS)
ROWS = {name: row for part in PARTS for name, row in part.items()}
assert len(ROWS) == sum(len(part) for part in PARTS), "a row has the name of another one"


def has(text, part):
    return part.search(text) is not None if isinstance(part, re.Pattern) else part in text


class Told:
    def __init__(self, row):
        assert row in ROWS, f"{row} is not in tests/support/explained_*.py"
        self.row, self.texts, self.false = row, [], []
        self.columns = {name: False for name in COLUMNS if getattr(ROWS[row], name) != NONE}

    def said(self, text, cause=(), limit=(), step=(), never=()):
        """What somebody who asked was told. AssertionError if a part of it is missing or false."""
        text = str(text).strip()
        self.texts.append(text)
        self.false += [str(part) for part in never if has(text, part)]
        assert not self.false, f"{self.row}: {self.false} is false, but was said: {text}"
        for column, parts in (("cause", cause), ("limit", limit), ("step", step)):
            for part in parts:
                assert has(text, part), f"{self.row}: {column} {part!r} is not in: {text}"
                assert column in self.columns, f"{self.row} has no {column}"
                self.columns[column] = True

    def check(self):
        missing = [column for column, good in self.columns.items() if not good]
        assert not missing, f"{self.row}: no test looked for its {', '.join(missing)}"


def _write(line):
    folder = os.environ.get("SLUICE_TEST_RESULTS")
    if folder is None:
        return
    folder = folder.replace("fault-results", "explained-results")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, f"{os.getpid()}.jsonl"), "a", encoding="utf-8") as out:
        out.write(json.dumps(line) + "\n")


@contextlib.contextmanager
def explained(row):
    told, passed = Told(row), False
    try:
        yield told
        told.check()
        passed = True
    finally:
        _write({"row": row, "test": os.environ.get("PYTEST_CURRENT_TEST", "").partition(" ")[0],
                "at": time.time(), "passed": passed, "columns": told.columns, "false": told.false,
                "said": told.texts})
