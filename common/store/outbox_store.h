/* SPDX-License-Identifier: MIT */
#ifndef COMMON_STORE_OUTBOX_STORE_H
#define COMMON_STORE_OUTBOX_STORE_H

/* outbox_store: messages that committed rows promise and the broker has not confirmed. */

#include "common/model/job.h"
#include "common/store/store.h"

struct outbox_row {
    uint64_t id;
    struct uuid job;
    uint32_t epoch; /* of the row; a job that has moved on makes the message stale, harmlessly */
    char tenant[TENANT_SIZE];
    char queue[QUEUE_NAME_SIZE];
    char queue_type[16];
};

struct outbox_list {
    struct outbox_row *items; /* free() */
    size_t count;
};
/* Rows with id > after_id that are at least age_ms old by the database's clock, in order. */
MUST_USE enum err_code outbox_store_read(struct store *store, uint64_t after_id, uint32_t age_ms,
                                         uint32_t limit, struct outbox_list *ret_list,
                                         struct err *err);
/* Any count; in batches. */
MUST_USE enum err_code outbox_store_delete(struct store *store, const uint64_t *ids, size_t count,
                                           struct err *err);
MUST_USE enum err_code outbox_store_count(struct store *store, uint64_t *ret_rows, struct err *err);

#endif
