/* SPDX-License-Identifier: MIT */
#ifndef COMMON_STORE_FEED_STORE_H
#define COMMON_STORE_FEED_STORE_H

/* feed_store: the history of all jobs in the order of its numbers, for those who listen. A number
 * is given when a row is written, not when it is committed: whoever reads up to the newest row
 * may miss one before it that is committed later. feed_advance() says how far it is safe to read.
 * Threads: locked; a struct feed_mark belongs to one thread. */

#include "common/store/job_store.h"

#define FEED_PAGE_MAX 2000

/* ---- how far it is safe to read -------------------------------------------------------------- */

#define FEED_SAMPLES 16

struct feed_mark { /* all zero at first */
    uint64_t safe; /* every row up to here is committed, or will never come */
    bool is_begun; /* if not: some row up to there may still come */
    int64_t since_ms;
    struct {
        int64_t at_ms;
        uint64_t newest;
    } samples[FEED_SAMPLES]; /* the newest number over the last second or so */
    unsigned next;
};

/* The first call puts mark->safe at the newest row; some calls and FEED_GRACE_MS later it has
 * begun. Then it moves mark->safe as far as is sure, by FEED_PAGE_MAX rows at most; *ret_more:
 * there were more. It stops before a number that is missing as long as its row is written and not
 * committed (however long that takes), and for FEED_GRACE_MS after a later number was seen: by then
 * a row has been written if it was ever going to be. What was rolled back leaves such holes. */
#define FEED_GRACE_MS 1000
MUST_USE enum err_code feed_advance(struct store *store, struct feed_mark *mark, bool *ret_more,
                                    struct err *err);

/* The number of the newest row. */
MUST_USE enum err_code feed_newest(struct store *store, uint64_t *ret_newest, struct err *err);

/* ---- reading --------------------------------------------------------------------------------- */

struct feed_event {
    struct job_event event;
    char tenant[TENANT_SIZE];
    char queue[QUEUE_NAME_SIZE]; /* of the job, as it is now; the same for the next two */
    char name[JOB_NAME_SIZE];
    char owner[USER_SIZE];
};
struct feed_page {
    const char *tenant; /* NULL: of all */
    uint64_t after;
    uint64_t upto; /* no further than feed_mark.safe */
    uint32_t limit;
};
struct feed_list {
    struct feed_event *items; /* free() */
    size_t count;
};
MUST_USE enum err_code feed_read(struct store *store, const struct feed_page *page,
                                 struct feed_list *ret_list, struct err *err);

#endif
