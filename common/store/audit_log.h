/* SPDX-License-Identifier: MIT */
#ifndef COMMON_STORE_AUDIT_LOG_H
#define COMMON_STORE_AUDIT_LOG_H

/* audit_log: who did what, and what was refused. Rows are only added. An act that is done by a
 * transaction has its row in that transaction: the thread says so before, and the store writes the
 * row with whatever that thread commits next. Threads: locked; what is armed belongs to a thread.
 */

#include "common/model/job.h"
#include "common/store/store.h"

#define AUDIT_PAGE_MAX 1000
#define AUDIT_SUBJECT_SIZE 256

enum audit_outcome { AUDIT_DONE, AUDIT_REFUSED, AUDIT_FAILED, AUDIT_OUTCOME_COUNT };
const char *audit_outcome_text(enum audit_outcome outcome);
MUST_USE bool audit_outcome_parse(struct sv text, enum audit_outcome *ret_outcome);

struct audit_entry {
    struct uuid id;           /* UUIDv7 */
    int64_t at_us;            /* of rows that were read */
    char tenant[TENANT_SIZE]; /* "" if no token was good; the same for the actor */
    char actor[USER_SIZE];
    char action[41];
    char method[9];
    char subject[AUDIT_SUBJECT_SIZE];
    char address[65];
    char request_id[64];
    enum audit_outcome outcome;
    unsigned status; /* 0: written with the act */
    unsigned code;   /* 0: none */
    char detail[JOB_REASON_SIZE];
};

/* ---- with a transaction ---------------------------------------------------------------------- */

/* Until audit_disarm() the first transaction of this thread that writes something has this row; the
 * entry is borrowed. */
void audit_arm(const struct audit_entry *entry);
bool audit_disarm(void); /* true: its row is committed */

/* For pool.c. */
struct txn;
bool audit_is_armed(void); /* and not written yet */
/* Nothing, if nothing is armed or the transaction wrote nothing. */
MUST_USE enum err_code audit_write_armed(struct txn *txn, struct err *err);
void audit_committed(void); /* that transaction was */

/* ---- by itself ------------------------------------------------------------------------------- */

/* All or none; entries that are there already are left as they are. */
MUST_USE enum err_code audit_log_add(struct store *store, const struct audit_entry *entries,
                                     size_t count, struct err *err);

struct audit_query {
    const char *tenant;
    const char *actor; /* NULL: any; the same for the next two */
    const char *action;
    const char *subject;
    bool has_outcome;
    enum audit_outcome outcome;
    const struct uuid *after; /* keyset, newest first; NULL for the first page */
    uint32_t limit;           /* 1..AUDIT_PAGE_MAX */
};
struct audit_list {
    struct audit_entry *items; /* free() */
    size_t count;
    bool more;
};
MUST_USE enum err_code audit_log_list(struct store *store, const struct audit_query *query,
                                      struct audit_list *ret_list, struct err *err);

struct audit_act {
    char actor[USER_SIZE];
    int64_t age_us; /* ago, by the database's clock */
};
/* Who did this to it last, of the tenant's newest AUDIT_LOOK_MAX entries. ERR_NOT_FOUND: nobody, as
 * far as these go. */
#define AUDIT_LOOK_MAX 2000u
MUST_USE enum err_code audit_log_newest(struct store *store, const char *tenant, const char *action,
                                        const char *subject, struct audit_act *ret_act,
                                        struct err *err);

#endif
