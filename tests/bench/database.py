# SPDX-License-Identifier: MIT
"""database: a connection that stays open, for reads that must cost little."""

import MySQLdb


class Database:
    def __init__(self, servers, schema):
        given = servers.environment()
        self.link = MySQLdb.connect(
            host=given["SLUICE_TEST_DB_HOST"], port=int(given["SLUICE_TEST_DB_PORT"]),
            user=given["SLUICE_TEST_DB_USER"], password=given["SLUICE_TEST_DB_PASSWORD"],
            database=schema, autocommit=True, charset="utf8mb4")

    def rows(self, text, args=()):
        with self.link.cursor() as cursor:
            cursor.execute(text, args)
            return cursor.fetchall()

    def one(self, text, args=()):
        return self.rows(text, args)[0][0]

    def run(self, text, args=()):
        with self.link.cursor() as cursor:
            return cursor.execute(text, args)

    def close(self):
        self.link.close()
