# SPDX-License-Identifier: MIT
"""What check_migrations refuses, and what it lets pass."""

import importlib.machinery
import importlib.util
import os

import pytest

LOADER = importlib.machinery.SourceFileLoader(
    "check_migrations", os.path.join(os.path.dirname(os.path.abspath(__file__)), "check_migrations"))
SPEC = importlib.util.spec_from_loader("check_migrations", LOADER)
CHECK = importlib.util.module_from_spec(SPEC)
LOADER.exec_module(CHECK)


@pytest.mark.parametrize("text, why", [
    ("DROP TABLE jobs;\n", "takes away"),
    ("ALTER TABLE jobs\n    ADD COLUMN a INT NULL,\n    DROP KEY by_owner;\n", "takes away"),
    ("ALTER TABLE jobs RENAME COLUMN a TO b;\n", "name"),
    ("RENAME TABLE jobs TO old_jobs;\n", "name"),
    ("ALTER TABLE jobs CHANGE a b INT;\n", "name"),
    ("ALTER TABLE jobs MODIFY a BIGINT;\n", "changes a column"),
    ("ALTER TABLE jobs ADD COLUMN a INT NOT NULL;\n", "without DEFAULT"),
    ("ALTER TABLE jobs ADD COLUMN a DECIMAL(3, 2) NOT NULL, ADD COLUMN b INT NOT NULL DEFAULT 0;\n",
     "without DEFAULT"),
    ("ALTER TABLE jobs ADD UNIQUE KEY one (name);\n", "refuses rows"),
    ("ALTER TABLE jobs\n    ADD CONSTRAINT c CHECK (a > 0);\n", "refuses rows"),
    ("DELETE FROM outbox;\n", "removes rows"),
])
def test_what_would_break_the_version_before_is_refused(text, why):
    found = list(CHECK.faults(text))
    assert len(found) == 1 and why in found[0], found


@pytest.mark.parametrize("text", [
    "CREATE TABLE more (\n    id INT NOT NULL PRIMARY KEY,\n    UNIQUE KEY one (id)\n);\n",
    "ALTER TABLE jobs ADD COLUMN a INT NULL, ADD KEY by_a (a);\n",
    "ALTER TABLE jobs ADD COLUMN a VARCHAR(9) NOT NULL DEFAULT 'x';\n",
    "-- DROP is a word here.\nINSERT INTO more (id) VALUES (1);\n",
    "INSERT INTO more (text) VALUES ('DROP TABLE jobs');\n",
    "CREATE TABLE more (id INT NOT NULL);\nALTER TABLE more ADD UNIQUE KEY one (id);\n",
])
def test_what_only_adds_passes(text):
    assert not list(CHECK.faults(text))
