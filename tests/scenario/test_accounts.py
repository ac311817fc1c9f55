# SPDX-License-Identifier: MIT
"""What the accounts of the database refuse to the programs that connect as them."""

import os
import re
import subprocess

import pytest

from sluice import ACCOUNT_PASSWORD, ACCOUNTS
from waiting import stays_true, wait_until

DENIED = re.compile(r"ERROR (1142|1044|1227|1370|1045)\b")
FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")


def ask(site, account, text):
    """What the database says to this account: "" or an error."""
    address = [word for word in site.servers.mariadb.address if not word.startswith("--user=")]
    done = subprocess.run(["mariadb", *address, f"--user={site.account(account)}", site.schema],
                          input=text, capture_output=True, text=True, check=False,
                          env=os.environ | {"MYSQL_PWD": ACCOUNT_PASSWORD})
    return done.stderr


@pytest.fixture(scope="module")
def busy(site):
    """A site with rows in its tables, audit_log among them."""
    web, _worker = site.web(), site.worker()
    ann = site.client(web, "ann", "admin")
    ann.put("/v1/queues/other", {"priority": 1, "filter": "name = 'other'"}).expect(201)
    ann.wait_status(ann.submit("true"), "FINISHED")
    assert site.count("audit_log")
    return site


@pytest.mark.parametrize("text", [
    "DELETE FROM audit_log", "UPDATE audit_log SET actor = 'nobody'", "TRUNCATE audit_log",
    "SELECT * FROM audit_log", "INSERT INTO audit_log (id) VALUES ('x')",
    "DELETE FROM jobs", "DELETE FROM job_events", "UPDATE job_events SET actor = 'nobody'",
    "UPDATE job_queues SET filter = NULL", "SELECT * FROM site_secrets", "DROP TABLE jobs",
    "ALTER TABLE jobs ADD COLUMN mine INT", "CREATE TABLE mine (a INT)", "DROP DATABASE {schema}",
    "CREATE DATABASE mine_{schema}", "GRANT ALL ON {schema}.* TO '{account}'@'%'",
    "SELECT * FROM mysql.global_priv", "SELECT 1 INTO OUTFILE '/tmp/{schema}'",
    "SELECT LENGTH(LOAD_FILE('/etc/passwd')) + 'x' FROM audit_log", "SET GLOBAL read_only = 1",
    "INSERT INTO schema_version VALUES (99, 'x', 'x', 1, NULL)"])
def test_the_account_of_workers_is_refused(busy, text):
    text = text.format(schema=busy.schema, account=busy.account("worker"))
    assert DENIED.search(ask(busy, "worker", text)), ask(busy, "worker", text)
    assert busy.count("audit_log") and busy.count("jobs")


@pytest.mark.parametrize("account", sorted(set(ACCOUNTS.values())))
def test_no_account_changes_a_row_of_the_audit_log_or_a_table(busy, account):
    for text in ("UPDATE audit_log SET actor = 'nobody'", "DROP TABLE audit_log",
                 "ALTER TABLE audit_log DROP COLUMN actor", "TRUNCATE audit_log",
                 "CREATE TRIGGER t BEFORE INSERT ON audit_log FOR EACH ROW SET NEW.actor = 'x'"):
        assert DENIED.search(ask(busy, account, text)), (account, text)
    deletes = ask(busy, account, "DELETE FROM audit_log WHERE tenant = 'no such tenant'")
    assert bool(DENIED.search(deletes)) == (account != "recovery"), deletes


def test_a_program_whose_account_lacks_a_right_says_which(fresh):
    fresh.may_be_denied = True
    web = fresh.web()
    ann = fresh.client(web, "ann", "admin")
    fresh.sql(f"REVOKE INSERT ON {fresh.schema}.job_queues FROM '{fresh.account('web')}'@'%'")
    ann.put("/v1/queues/other", {"priority": 1, "filter": "name = 'other'"}).problem(500)
    web.wait_log("sluice grants")
    fresh.run("grants", "--apply", "--prefix", fresh.account("")).check_returncode()
    ann.put("/v1/queues/other", {"priority": 1, "filter": "name = 'other'"}).expect(201)


def test_a_program_whose_account_has_no_right_at_all_says_the_cure(fresh):
    """The server refuses the connection then, not a statement."""
    fresh.may_be_denied = True
    fresh.sql(f"REVOKE ALL PRIVILEGES, GRANT OPTION FROM '{fresh.account('web')}'@'%'")
    web = fresh.web(wait=False)
    web.wait_log("(1044); `sluice grants`")
    fresh.run("grants", "--apply", "--prefix", fresh.account("")).check_returncode()
    web.wait_ready()


def test_what_recovery_cannot_do_is_said_once_until_it_can(fresh):
    """Between two looks that fail it does other things, which work: the failure is not over then."""
    fresh.may_be_denied = True
    ann = fresh.client(fresh.web())
    worker = fresh.worker()
    recovery = fresh.reader("recovery")
    ann.wait_status(ann.submit("true"), "FINISHED")
    assert worker.stop() == 0
    job = ann.submit("true")
    wait_until("its message", lambda: fresh.messages())  # pylint: disable=unnecessary-lambda
    fresh.sql(f"REVOKE UPDATE ON {fresh.schema}.jobs FROM '{fresh.account('recovery')}'@'%'")
    fresh.servers.rabbitmq.ctl("purge_queue", "-p", fresh.vhost, "sluice.acme.submit.default")
    recovery.wait_log("recovery.reconcile.failed")
    stays_true("one line", lambda: "recovery.reconcile.works" not in recovery.log_text(), 5)
    fresh.run("grants", "--apply", "--prefix", fresh.account("")).check_returncode()
    recovery.wait_log("recovery.reconcile.works")
    assert len(recovery.log_events("recovery.reconcile.failed")) == 1
    fresh.worker()
    ann.wait_status(job, "FINISHED")


def test_rights_are_never_granted_to_an_account_that_is_not_there(fresh):
    done = fresh.run("grants", "--apply", "--prefix", "nobody_")
    assert done.returncode == 1 and "1133" in done.stderr, done.stderr
    assert not fresh.sql("SELECT user FROM mysql.user WHERE user LIKE 'nobody%'")
    done = fresh.run("grants", "--host", "%'; DROP TABLE jobs")
    assert done.returncode == 2 and not done.stdout


def test_the_key_of_cursors_is_not_made_of_how_the_database_is_reached(fresh):
    """Or every cursor could be tried against guesses of a password, by anybody who was given one."""
    given = fresh.servers.environment()
    one = fresh.client(fresh.web("one"))
    other = fresh.client(fresh.web("other", db_user=given["SLUICE_TEST_DB_USER"],
                                   db_password=given["SLUICE_TEST_DB_PASSWORD"]))
    own = fresh.client(fresh.web("own", web_cursor_key="a key of its own"))
    for _ in range(2):
        one.submit("true")
    cursor = one.get("/v1/jobs?limit=1").expect(200).json["nextCursor"]
    assert cursor
    other.get(f"/v1/jobs?limit=1&cursor={cursor}").expect(200)
    own.get(f"/v1/jobs?limit=1&cursor={cursor}").problem(400)
    assert fresh.sql("SELECT LENGTH(secret) FROM site_secrets WHERE name = 'cursor'") == [["32"]]
