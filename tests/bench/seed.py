# SPDX-License-Identifier: MIT
"""seed: a great many jobs at once. A job that was submitted by REST is the pattern; its rows are
copied by multi-row inserts under new ids, and the messages are published in bulk. Nothing that is
measured goes this way: it only makes the backlog."""

from rig import tool

# Submitted now; the last four bytes of the id are the number.
PREFIX_DIGITS = 24
AT_ONCE = 100_000


def prefix_of(job):
    return job.replace("-", "")[:PREFIX_DIGITS]


def id_text(prefix, number):
    text = f"{prefix}{number:08x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def columns(database, table):
    return [row[0] for row in database.rows(
        "SELECT column_name FROM information_schema.columns WHERE table_schema = DATABASE() "
        "AND table_name = %s AND extra NOT LIKE '%%auto_increment%%' ORDER BY ordinal_position",
        (table,))]


def copy(database, table, column, job, first, count):
    """Copies the row (of the column's value `job`) `count` times, numbered from `first`."""
    names = columns(database, table)
    values = [f"UNHEX(CONCAT('{prefix_of(job)}', LPAD(HEX(s.seq), 8, '0')))" if name == column
              else f"t.{name}" for name in names]
    for at in range(first, first + count, AT_ONCE):
        last = min(at + AT_ONCE, first + count) - 1
        database.run(f"INSERT INTO {table} ({', '.join(names)}) SELECT {', '.join(values)} "
                     f"FROM {table} t CROSS JOIN seq_{at}_to_{last} s "
                     f"WHERE t.{column} = UNHEX('{job.replace('-', '')}')")


def waiting(rig, job, first, count):
    """More waiting jobs like this one."""
    copy(rig.database, "job_events", "job_id", job, first, count)
    copy(rig.database, "jobs", "id", job, first, count)
    servers = rig.servers.environment()
    tool("fill", servers["SLUICE_TEST_AMQP_PORT"], servers["SLUICE_TEST_AMQP_USER"],
         servers["SLUICE_TEST_AMQP_PASSWORD"], rig.site.vhost, rig.queue_name(), prefix_of(job),
         first, count)
