# SPDX-License-Identifier: MIT
"""How quick the page is with 100,000 jobs, a tenth of them blocked."""

import browser

BLOCKS = 100       # of 1000 jobs
BLOCKED_BLOCKS = 10
NUMBERS = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) "
JOB_COLUMNS = ("id, tenant, owner, name, queue, status, job_condition, epoch, node_count, cores_per_node, "
               "memory_mb, max_seconds, request, created_at, updated_at")


def seed(site):
    """Ids in the order of time, as those of real jobs."""
    site.audited = False  # rows without a history
    site.sql(
        "INSERT INTO job_recovery (id, tenant, cause_hash, job_condition, tester, params, policy, first_at, next_at) "
        "VALUES (UNHEX(REPEAT('0b', 16)), 'acme', UNHEX(REPEAT('0b', 32)), 'CONNECTION_FAILED', 'tcp_connect', "
        """'{"host":"away.example","port":443}', 'constant every=1h', UTC_TIMESTAMP(6), """
        "UTC_TIMESTAMP(6) + INTERVAL 1 HOUR)")
    for block in range(BLOCKS):
        blocked = block < BLOCKED_BLOCKS
        status, condition = ("BLOCKED", "'CONNECTION_FAILED'") if blocked else (
            "PENDING" if block % 2 else "FINISHED", "NULL")
        site.sql(
            f"INSERT INTO jobs ({JOB_COLUMNS}) {NUMBERS}"
            f"SELECT UNHEX(CONCAT('0190', LPAD(HEX({block} * 1000 + n.i), 8, '0'), '70008', REPEAT('0', 15))), 'acme', "
            f"ELT(1 + n.i % 3, 'ann', 'bob', 'eve'), CONCAT('job-', {block} * 1000 + n.i), "
            f"'default', '{status}', {condition}, 1, 1, 1, 0, 3600, "
            """'{"name":"job","command":["true"]}', """
            "UTC_TIMESTAMP(6) - INTERVAL n.i SECOND, UTC_TIMESTAMP(6) FROM n")
    site.sql("INSERT INTO job_blocked (job_id, recovery_id, tenant, resume_status, blocked_at) "
             "SELECT id, UNHEX(REPEAT('0b', 16)), tenant, 'STAGING_INPUTS', created_at FROM jobs WHERE status = 'BLOCKED'")
    site.sql("ANALYZE TABLE jobs, job_blocked")


def test_it_is_small_and_quick_with_100000_jobs(fresh):
    web = fresh.web()
    fresh.client(web, "admin", "admin").get("/v1/queues").expect(200)
    seed(fresh)
    assert fresh.count("jobs") == 100000 and fresh.count("job_blocked") == 10000
    print(browser.run("speed.mjs", fresh, web,
                      ids={"group": "0b0b0b0b-0b0b-0b0b-0b0b-0b0b0b0b0b0b"}))
