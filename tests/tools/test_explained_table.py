# SPDX-License-Identifier: MIT
"""The table of what people were told finds what it is there to find."""

import os
import re
import subprocess
import sys

import pytest

from explained import ROWS, explained
from explained_row import NONE

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "explained_table")
ROW = next(name for name, row in ROWS.items() if NONE not in row)
GOOD = {"cause": ["no worker"], "limit": [re.compile(r"\d jobs")], "step": ["start one"]}
TEXT = "2 jobs wait and no worker is there: start one."


@pytest.fixture
def table(tmp_path, monkeypatch):
    """Runs the table's program over what was written; its lines that are about the row, below the
    count."""
    folder = str(tmp_path / "results")
    monkeypatch.setenv("SLUICE_TEST_RESULTS", folder)

    def run():
        done = subprocess.run([sys.executable, TABLE, folder], capture_output=True, text=True,
                              check=False)
        table, _, faults = done.stdout.partition(" situations, ")
        assert done.returncode == (1 if len(faults.splitlines()) > 1 else 0), done
        assert f"{ROW}: {ROWS[ROW].situation}" in table
        return table, [line for line in faults.splitlines() if line.startswith(f"{ROW}: ")]
    return run


def test_what_was_said_well_is_in_the_table(table):
    with explained(ROW) as row:
        row.said(TEXT, **GOOD, never=["busy"])
    said, faults = table()
    assert not faults and TEXT in said


def test_a_row_that_nobody_tried_fails_it(table):
    assert table()[1] == [f"{ROW}: no test that tried it passed"]


@pytest.mark.parametrize("column", GOOD)
def test_a_column_that_is_missing_fails_it(table, column):
    with pytest.raises(AssertionError, match=f"no test looked for its {column}"):
        with explained(ROW) as row:
            row.said(TEXT, **(GOOD | {column: []}))
    assert f"{ROW}: no {column}" in table()[1]
    with pytest.raises(AssertionError, match=f"{column} 'what is not there' is not in"):
        with explained(ROW) as row:
            row.said(TEXT, **(GOOD | {column: ["what is not there"]}))


def test_what_is_false_fails_it(table):
    with pytest.raises(AssertionError, match="is false, but was said"):
        with explained(ROW) as row:
            row.said(TEXT, **GOOD, never=["2 jobs"])
    assert f"{ROW}: false: 2 jobs" in table()[1]


def test_each_answer_may_tell_a_part(table):
    with explained(ROW) as row:
        row.said("no worker, and 2 jobs", cause=GOOD["cause"], limit=GOOD["limit"])
        row.said("start one", step=GOOD["step"])
    assert not table()[1]
