/* SPDX-License-Identifier: MIT */
#ifndef COMMON_STORE_RETENTION_STORE_H
#define COMMON_STORE_RETENTION_STORE_H

/* retention_store: the statements behind retention.h: what is old is found, counted and removed in
 * small transactions. The statements themselves say what may go: jobs in a terminal state that
 * ended before a time, whatever ids they are given. Times are microseconds since 1970, UTC, by the
 * database's clock; one that is ahead of ours makes nothing old. Threads: locked. */

#include "common/base/uuid.h"
#include "common/store/store.h"

enum retention_kind {
#define RETENTION(id, name, state, what) RETENTION_OF_##id,
#include "common/store/retention.def"
#undef RETENTION
    RETENTION_KIND_COUNT
};
const char *retention_name(enum retention_kind kind);  /* "finished" */
const char *retention_what(enum retention_kind kind);  /* "FINISHED jobs" */
const char *retention_state(enum retention_kind kind); /* of jobs; NULL: the kind is no jobs */

/* ---- who removes, and how far it has come ---------------------------------------------------- */

struct retention_row {
    int64_t now_us;       /* by the database's clock or by ours, whichever is behind */
    int64_t outbox_us;    /* the oldest message that is not sent yet; 0: all are */
    int64_t key_us;       /* the oldest Idempotency-Key that is not forgotten yet; 0: all are */
    int64_t hook_us;      /* the oldest event that sluice-webhook has not looked through, if anybody
                             subscribes; 0: none */
    int64_t created_us;   /* since when there is retention at all */
    int64_t ended_us;     /* the last pass that went through; 0: none yet */
    int64_t swept_us;     /* the last walk through the archive; 0: none yet */
    uint64_t events_upto; /* events up to this number may be gone */
    uint64_t archive_jobs;
    uint64_t archive_bytes;
};
MUST_USE enum err_code retention_store_get(struct store *store, struct retention_row *ret_row,
                                           struct err *err);
/* One removes at a time: takes the lead, or keeps it; ERR_IN_USE while another has it and has said
 * so within lease_ms (a time in the future, when the clock was set back, says nothing). Two at once
 * would do no harm but the load. */
MUST_USE enum err_code retention_store_lead(struct store *store, const struct uuid *holder,
                                            int64_t lease_ms, struct err *err);
MUST_USE enum err_code retention_store_begun(struct store *store, const struct uuid *holder,
                                             struct err *err);
/* Gives the lead up; whole: the pass went through. */
MUST_USE enum err_code retention_store_done(struct store *store, const struct uuid *holder,
                                            bool whole, struct err *err);
MUST_USE enum err_code retention_store_swept(struct store *store, const struct uuid *holder,
                                             uint64_t jobs, uint64_t bytes, struct err *err);

/* ---- jobs ------------------------------------------------------------------------------------ */

#define RETENTION_AT_ONCE 64 /* jobs in one transaction */

struct retention_search {
    const char *tenant;
    enum retention_kind kind; /* one of jobs */
    struct uuid after;        /* nil: from the oldest on */
    int64_t limit_us;         /* they ended before this */
    int64_t untold_us;        /* with deliveries that are not sent yet: before this */
};
/* The next of them by id, RETENTION_AT_ONCE at most. */
MUST_USE enum err_code retention_store_find(struct store *store,
                                            const struct retention_search *search,
                                            struct uuid *ret_ids, size_t *ret_count,
                                            struct err *err);
struct retention_removed {
    uint64_t jobs;
    uint64_t untold; /* of these: sluice-webhook had not looked through their history */
    uint64_t events;
};
/* One transaction: those of the ids that are ended since before limit_us, their history, and what
 * they subscribed to unless deliveries need it. Told
 * zeros after a commit of unknown outcome that was done. */
MUST_USE enum err_code retention_store_remove_jobs(struct store *store, const struct uuid *ids,
                                                   size_t count, int64_t limit_us,
                                                   struct retention_removed *ret, struct err *err);
MUST_USE enum err_code retention_store_count_events(struct store *store, const struct uuid *ids,
                                                    size_t count, uint64_t *ret_events,
                                                    struct err *err);

/* ---- what is no job -------------------------------------------------------------------------- */

MUST_USE enum err_code retention_store_remove(struct store *store, enum retention_kind kind,
                                              int64_t limit_us, uint32_t most, uint64_t *ret_rows,
                                              struct err *err);
MUST_USE enum err_code retention_store_count(struct store *store, enum retention_kind kind,
                                             int64_t limit_us, uint64_t *ret_rows, struct err *err);

/* ---- sizes ----------------------------------------------------------------------------------- */

#define TABLE_SIZES_MAX 16
struct table_size {
    char table[65];
    uint64_t rows; /* both as the server estimates them */
    uint64_t bytes;
};
MUST_USE enum err_code retention_store_sizes(struct store *store,
                                             struct table_size ret_sizes[TABLE_SIZES_MAX],
                                             size_t *ret_count, struct err *err);

#endif
