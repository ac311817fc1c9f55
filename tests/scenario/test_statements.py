# SPDX-License-Identifier: MIT
"""The database's server ends a statement that takes too long: nobody reads its answer any more."""

import threading
from urllib.parse import quote

import pytest

from waiting import wait_until

ACCOUNT, PASSWORD = "costly", "costly-password"
JOBS, TERMS = 400, 60
# Each term reads the whole request of each job; none is ever true.
COSTLY = " OR ".join(f"env.V{at} LIKE '%y%z{at}%'" for at in range(TERMS))


@pytest.fixture(scope="module")
def large(site):
    """Jobs of half a megabyte, of an account of the database by which its statements are known."""
    user = f"{ACCOUNT}_{site.tag}"
    site.servers.mariadb.sql(f"CREATE USER '{user}'@'%' IDENTIFIED BY '{PASSWORD}'; "
                               f"GRANT ALL ON {site.schema}.* TO '{user}'@'%'")
    web = site.web("first")
    ann = site.client(web)
    job = ann.submit("true", env={f"V{at}": "y" * 8000 for at in range(TERMS)})
    assert web.stop() == 0
    columns = [row[0] for row in site.sql("SHOW COLUMNS FROM jobs")]
    made = ", ".join("UNHEX(REPLACE(UUID(), '-', ''))" if name == "id" else name
                     for name in columns)
    for copies in (1, 19, JOBS - 21):
        site.sql(f"INSERT INTO jobs ({', '.join(columns)}) SELECT {made} FROM jobs, "
                 f"seq_1_to_{copies} LIMIT {copies}")
    site.audited = False  # the copies have no history
    yield site, user, job
    site.servers.mariadb.sql(f"DROP USER '{user}'@'%'")


def statements(site, user):
    return site.sql("SELECT id, time_ms, LEFT(info, 40) FROM information_schema.processlist "
                    f"WHERE user = '{user}' AND info LIKE 'SELECT COUNT(*) FROM (SELECT 1 FROM%'")


def costly_web(site, user, name, query_ms):
    return site.web(name, db_user=user, db_password=PASSWORD, db_query_timeout_ms=query_ms,
                    web_deadline_ms=60000)


def count_costly(client):
    return client.post(f"/v1/jobs:cancel?filter={quote(COSTLY)}", {"dryRun": True})


def test_a_search_over_the_limit_is_refused_and_leaves_no_statement(large):
    site, user, _job = large
    web = costly_web(site, user, "limited", 2000)
    ann = site.client(web, role="admin")
    answer = count_costly(ann)
    problem = answer.problem(504)
    assert problem["code"] == "SLUICE-1055", problem
    assert "db.query_timeout_ms" in problem["detail"]
    assert not statements(site, user)
    assert ann.get("/v1/jobs?limit=1").status == 200
    assert web.stop() == 0


def test_a_search_whose_client_is_gone_ends_by_itself(large):
    site, user, _job = large
    web = costly_web(site, user, "killed", 6000)
    ann = site.client(web, role="admin")

    def ask():
        try:
            count_costly(ann)
        except OSError:
            pass  # the service is killed under it
    asking = threading.Thread(target=ask)
    asking.start()
    wait_until("the statement", lambda: statements(site, user), 30, 0.02)
    web.kill9()
    asking.join()
    wait_until(lambda: f"its end: {statements(site, user)}", lambda: not statements(site, user), 15)


def test_a_list_whose_filter_reads_large_requests_goes_on_page_by_page(large):
    site, user, _job = large
    web = costly_web(site, user, "paged", 4000)
    ann = site.client(web)
    cursor, pages = "", 0
    while pages < 3:
        page = ann.get(f"/v1/jobs?filter={quote(COSTLY)}" + (f"&cursor={cursor}" if cursor else ""))
        cursor, pages = page.expect(200).json["nextCursor"], pages + 1
        assert cursor
    assert web.stop() == 0
