/* SPDX-License-Identifier: MIT */
#include "common/store/worker_store.h"

#include "common/base/clock.h"
#include "common/store/pool.h"

/* A beat that takes longer is of no use to anybody: try the next one. */
#define BEAT_TIMEOUT_MS 5000

struct beat {
    struct store_config cfg;
    char *texts[STORE_CONFIG_TEXTS]; /* owned copies behind cfg */
    struct uuid worker;
    struct db *db; /* NULL: not connected */
};

void beat_free(struct beat *beat)
{
    if (!beat)
        return;
    db_free(beat->db);
    for (size_t i = 0; i < ARRAY_LEN(beat->texts); i++)
        free(beat->texts[i]);
    free(beat);
}

DEFINE_AUTO(struct beat *, beat_free)

enum err_code beat_open(const struct store_config *cfg, const struct uuid *worker,
                        struct beat **ret_beat, struct err *err)
{
    AUTO(beat_free) struct beat *beat = calloc(1, sizeof(*beat));
    if (!beat || !store_config_copy(cfg, &beat->cfg, beat->texts))
        return err_set(err, ERR_NOMEM, "no memory for the beat");
    beat->worker = *worker;
    if (beat->cfg.connect_timeout_ms > BEAT_TIMEOUT_MS)
        beat->cfg.connect_timeout_ms = BEAT_TIMEOUT_MS;
    if (beat->cfg.query_timeout_ms > BEAT_TIMEOUT_MS)
        beat->cfg.query_timeout_ms = BEAT_TIMEOUT_MS;
    *ret_beat = TAKE(beat);
    return ERR_OK;
}

static enum err_code write_row(struct beat *beat, enum db_stmt_id stmt, const struct uuid *worker,
                               uint32_t value, struct err *err)
{
    uint64_t rows = 0;
    enum err_code rc = ERR_OK;
    if (!beat->db)
        rc = db_open(&beat->cfg, &beat->db, err);
    if (rc == ERR_OK)
        rc = db_exec(beat->db, stmt,
                     DB_ARGS(db_u64(value), db_i64(clock_wall_us()), db_uuid(worker)), &rows, err);
    if (rc == ERR_OK && rows == 0) {
        char text[UUID_TEXT_SIZE];
        rc = err_set(err, ERR_FENCED, "worker %s is no longer live: declared dead, or replaced",
                     uuid_text(worker, text));
    }
    if (beat->db && db_is_lost(beat->db)) {
        db_free(beat->db);
        beat->db = NULL;
    }
    return rc;
}

enum err_code beat_write_former(struct beat *beat, const struct uuid *former, uint32_t lease_ms,
                                struct err *err)
{
    return write_row(beat, DB_WORKER_BEAT_FORMER, former, lease_ms, err);
}

/* A second try at once, on a new connection: the server may have closed the old one. Beating twice
 * does no harm. */
enum err_code beat_write(struct beat *beat, uint32_t busy, struct err *err)
{
    struct err first = {0};
    bool had_connection = beat->db != NULL;
    enum err_code rc = write_row(beat, DB_WORKER_BEAT, &beat->worker, busy, &first);
    if (rc == ERR_DB_AWAY && had_connection)
        return write_row(beat, DB_WORKER_BEAT, &beat->worker, busy, err);
    if (rc)
        *err = first;
    return rc;
}
