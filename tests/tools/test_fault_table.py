# SPDX-License-Identifier: MIT
"""The table of faults finds what it is there to find."""

import os
import subprocess
import sys

import pytest

from injection import impossible, injected
from jobs import Traces
from matrix import ROWS

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fault_table")
JOB = "01900000-0000-7000-8000-000000000001"
ROW = next(iter(ROWS))


class Site:
    """One job that was promised, and the row that the database has of it."""

    def __init__(self, folder, *row):
        self.folder, self.accepted, self.accounted = str(folder), [JOB], 0
        self.rows = [[JOB.replace("-", ""), *row]] if row else []

    def sql(self, _text):
        return self.rows


@pytest.fixture
def table(tmp_path, monkeypatch):
    """Runs the table's program over what was written; its answer."""
    folder = str(tmp_path / "results")
    monkeypatch.setenv("SLUICE_TEST_RESULTS", folder)
    monkeypatch.setattr("injection.DEADLINE_S", 0.1)
    return lambda: subprocess.run([sys.executable, TABLE, folder], capture_output=True, text=True,
                                  check=False)


def runs(folder, *begun, complete=(), overlap=False):
    traces = Traces(str(folder / "traces"))
    for name, fences in (("j.runs", begun), ("j.ends", complete)):
        with open(traces.path(name), "w", encoding="ascii") as out:
            out.writelines(f"1 {fence} {JOB}\n" for fence in fences)
    if overlap:
        traces.open("j.overlap")


def told(table, site):
    """What the table says of the first row: (injected, lost, doubled, stuck)."""
    try:
        with injected(ROW, site):
            pass
    except AssertionError:
        pass
    done = table()
    line = next(line for line in done.stdout.splitlines() if line.startswith(ROW))
    return [int(word) for word in line[line.index(ROWS[ROW]) + len(ROWS[ROW]):].split()[:4]]


def test_what_went_well_counts_as_injected(tmp_path, table):
    runs(tmp_path, 1, 2, complete=(2,))
    assert told(table, Site(tmp_path, "FINISHED", "1", "1", "1")) == [1, 0, 0, 0]


def test_a_job_without_a_row_is_lost(tmp_path, table):
    assert told(table, Site(tmp_path))[1:] == [1, 0, 0]


def test_a_job_that_ended_otherwise_than_the_fault_allows_is_lost(tmp_path, table):
    assert told(table, Site(tmp_path, "FAILED", "1", "0", "1"))[1:] == [1, 0, 0]


def test_a_job_that_does_not_end_is_stuck(tmp_path, table):
    assert told(table, Site(tmp_path, "PENDING", "0", "0", "0"))[1:] == [0, 0, 1]


def test_two_ends_are_doubled(tmp_path, table):
    assert told(table, Site(tmp_path, "FINISHED", "1", "0", "2"))[1:] == [0, 1, 0]


@pytest.mark.parametrize("begun, complete, overlap", [
    ((1, 2), (2,), True), ((1, 1), (1,), False), ((1, 2, 3), (1, 2, 3), False)])
def test_runs_that_overlap_or_are_too_many_are_doubled(tmp_path, table, begun, complete, overlap):
    runs(tmp_path, *begun, complete=complete, overlap=overlap)
    assert told(table, Site(tmp_path, "FINISHED", "1", "1", "1"))[1:] == [0, 1, 0]


def test_rows_that_nobody_injected_fail_the_table_unless_the_machine_does_not_allow_them(table):
    done = table()
    assert done.returncode == 1 and f"{ROW}: not injected" in done.stdout
    impossible(ROW, "no such thing here")
    done = table()
    assert f"{ROW}: not injected" not in done.stdout and "not here: no such thing" in done.stdout


def test_a_test_that_failed_counts_for_nothing(tmp_path, table):
    with pytest.raises(ZeroDivisionError):
        with injected(ROW, Site(tmp_path, "FINISHED", "1", "0", "1")):
            _ = 1 / 0
    done = table()
    assert done.returncode == 1 and f"{ROW}: failed: " in done.stdout
