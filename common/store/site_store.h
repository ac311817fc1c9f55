/* SPDX-License-Identifier: MIT */
#ifndef COMMON_STORE_SITE_STORE_H
#define COMMON_STORE_SITE_STORE_H

/* site_store: what a diagnosis asks of the database server itself, whatever its schema is.
 * Threads: any (a connection of its own for each call). */

#include "common/store/job_store.h"
#include "common/store/store.h"

struct site_look {
    char version[128]; /* of the server */
    int64_t now_us;    /* its clock, since 1970 UTC */
    uint32_t flush;    /* innodb_flush_log_at_trx_commit */
    bool read_only;    /* it takes no writes, but of administrators */
    bool has_schema;   /* some migration was applied */
    uint32_t schema;   /* the newest of them */
};
/* ERR_DB_AWAY, ERR_DB. */
MUST_USE enum err_code site_store_look(const struct store_config *cfg, struct site_look *ret_look,
                                       struct err *err);
/* Messages that are promised and not confirmed, and the age of the oldest (0: none). */
MUST_USE enum err_code site_store_outbox(struct store *store, uint64_t *ret_rows,
                                         int64_t *ret_age_us, struct err *err);

#define SITE_SECRET_SIZE 32
/* What only the web processes of this site know, made with the schema. ERR_NOT_FOUND. */
MUST_USE enum err_code site_store_secret(struct store *store, const char *name,
                                         uint8_t ret_secret[SITE_SECRET_SIZE], struct err *err);

/* Of the jobs that ended last, up to five whose output is kept; free() them. */
struct site_output {
    char tenant[TENANT_SIZE];
    struct uuid job;
};
MUST_USE enum err_code site_store_outputs(struct store *store, struct site_output **ret_rows,
                                          size_t *ret_count, struct err *err);

#endif
