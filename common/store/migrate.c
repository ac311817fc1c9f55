/* SPDX-License-Identifier: MIT */
#include "common/store/migrate.h"

#include "common/base/buf.h"
#include "common/base/fault.h"
#include "common/store/db.h"
#include "common/store/migration.h"

#define LOCK_WAIT_S 60
#define STATEMENT_TIMEOUT_MS 3600000 /* a large table takes its time to change */

/* MySQL and MariaDB commit each change of the schema by itself. So the number of statements that
 * are done is kept, and a migration that was cut short goes on where it stopped. The statement
 * behind those may be done as well, and not be counted: we died in between, or the server went on
 * by itself. Each is done whole or not at all, so "is there already" (or, of a key to drop, "is
 * not there") says that it is. */
static const char version_table[] =
    "CREATE TABLE IF NOT EXISTS schema_version (number INT UNSIGNED NOT NULL PRIMARY KEY, "
    "name VARCHAR(64) NOT NULL, sha256 CHAR(64) NOT NULL, statements INT UNSIGNED NOT NULL, "
    "applied_at DATETIME(6) NULL) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin";

uint32_t migrate_newest(void)
{
    return migrations[migration_count - 1].number;
}

static enum err_code lock(struct db *db, struct err *err)
{
    bool found = false;
    bool locked = false;
    enum err_code rc = db_one(db, DB_MIGRATE_LOCK, DB_ARGS(db_u64(LOCK_WAIT_S)),
                              DB_COLS(COL_BOOL(&locked)), &found, err);
    if (rc)
        return rc;
    return locked ? ERR_OK
                  : err_set(err, ERR_IN_USE,
                            "another migration of this schema has been running "
                            "for more than %d s",
                            LOCK_WAIT_S);
}

struct progress {
    uint32_t done; /* statements */
    bool begun;    /* by an earlier run */
    bool whole;
};

static enum err_code read_progress(struct db *db, const struct migration *file,
                                   struct progress *ret_progress, struct err *err)
{
    struct progress progress = {0};
    bool same = false;
    enum err_code rc =
        db_one(db, DB_MIGRATION_GET, DB_ARGS(db_text(file->text), db_u64(file->number)),
               DB_COLS(COL_BOOL(&same), COL_U32(&progress.done), COL_BOOL(&progress.whole)),
               &progress.begun, err);
    if (rc)
        return rc;
    *ret_progress = progress;
    if (!progress.begun)
        return db_exec(db, DB_MIGRATION_INSERT,
                       DB_ARGS(db_u64(file->number), db_text(file->name), db_text(file->text)),
                       NULL, err);
    if (!same)
        return err_set(err, ERR_STATE,
                       "sql/%03u_%s.sql has changed since it was applied; put the change into a "
                       "new file",
                       file->number, file->name);
    return ERR_OK;
}

static enum err_code apply(struct db *db, const struct migration *file,
                           const struct progress *progress, struct err *err)
{
    struct sv rest = sv_of(file->text);
    struct sv statement = {0};
    enum err_code rc = ERR_OK;
    for (uint32_t i = 1; rc == ERR_OK && migration_next(&rest, &statement); i++) {
        if (i <= progress->done)
            continue;
        rc = db_run_text(db, statement, err);
        if (rc == ERR_DUPLICATE && progress->begun && i == progress->done + 1) {
            err_clear(err);
            rc = ERR_OK;
        }
        FAULT("migrate.statement");
        if (rc == ERR_OK)
            rc =
                db_exec(db, DB_MIGRATION_STEP, DB_ARGS(db_u64(i), db_u64(file->number)), NULL, err);
    }
    if (rc == ERR_OK && rest.len > 0)
        rc = err_set(err, ERR_INTERNAL, "the last statement has no ';'");
    if (rc == ERR_OK)
        rc = db_exec(db, DB_MIGRATION_DONE, DB_ARGS(db_u64(file->number)), NULL, err);
    err_prefix(err, "sql/%03u_%s.sql: ", file->number, file->name);
    return rc;
}

static enum err_code migrate_file(struct db *db, const struct migration *file, bool *ret_applied,
                                  struct err *err)
{
    struct progress progress = {0};
    enum err_code rc = read_progress(db, file, &progress, err);
    *ret_applied = !progress.whole;
    if (rc || progress.whole)
        return rc;
    return apply(db, file, &progress, err);
}

enum err_code migrate_run(const struct store_config *cfg, uint32_t *ret_applied,
                          void (*report)(const struct migration *done), struct err *err)
{
    AUTO(db_free) struct db *db = NULL; /* the lock goes with the connection */
    uint32_t applied = 0;
    struct store_config patient = *cfg;
    patient.query_timeout_ms = STATEMENT_TIMEOUT_MS;
    enum err_code rc = db_open(&patient, &db, err);
    if (rc == ERR_OK)
        rc = lock(db, err);
    if (rc == ERR_OK)
        rc = db_run_text(db, SV(version_table), err);
    for (size_t i = 0; rc == ERR_OK && i < migration_count; i++) {
        bool new_one = false;
        rc = migrate_file(db, &migrations[i], &new_one, err);
        if (rc || !new_one)
            continue;
        applied++;
        if (report)
            report(&migrations[i]);
    }
    if (rc == ERR_OK)
        *ret_applied = applied;
    return rc;
}
