/* SPDX-License-Identifier: MIT */
#ifndef COMMON_STORE_RECOVERY_STORE_H
#define COMMON_STORE_RECOVERY_STORE_H

/* recovery_store: the causes that jobs wait for, and what the leader of a tenant's recovery does
 * with them. Every write of a leader is one transaction that looks at his fencing number first;
 * ERR_FENCED: another leads now, and nothing was written.
 * Threads: locked. Times are told and taken as durations by the database's clock.
 * Longer than 160 lines: who reads, leads and releases shares one set of types. */

#include "common/model/job.h"
#include "common/store/block_store.h"
#include "common/store/outbox_store.h"

#define RECOVERY_RESULT_SIZE 17

struct recovery { /* one cause */
    struct uuid id;
    char tenant[TENANT_SIZE];
    enum job_condition condition;
    char tester[BLOCK_TESTER_SIZE];
    char params[BLOCK_PARAMS_SIZE];
    char policy[BLOCK_POLICY_SIZE];
    uint32_t tests;     /* made so far */
    uint32_t tries;     /* of these, in vain since the last time that it was clear */
    int64_t first_us;   /* since then, or since the first job was blocked */
    int64_t next_us;    /* the next test */
    int64_t last_us;    /* 0: none yet */
    int64_t next_in_us; /* from now; negative: overdue */
    char last_result[RECOVERY_RESULT_SIZE];
    char last_detail[JOB_REASON_SIZE];
    uint32_t ramp;     /* jobs in the next batch of the release under way; 0: none is */
    uint64_t released; /* jobs so far */
    char asked[17];    /* "release", "fail" or "": what an operator wants */
    char asked_by[USER_SIZE];
    int64_t asked_us; /* when; also of what was done since */
    uint64_t blocked; /* jobs now */
};

struct recovery_list {
    struct recovery *items; /* free() */
    size_t count;
};

struct recovery_page {
    struct uuid after; /* nil: from the first on */
    uint32_t limit;
};
/* All of a tenant, for its leader. */
MUST_USE enum err_code recovery_store_list(struct store *store, const char *tenant,
                                           struct recovery_list *ret_list, struct err *err);
/* In the order of their ids. */
MUST_USE enum err_code recovery_store_page(struct store *store, const char *tenant,
                                           const struct recovery_page *page,
                                           struct recovery_list *ret_list, struct err *err);
MUST_USE enum err_code recovery_store_get(struct store *store, const char *tenant,
                                          const struct uuid *id, struct recovery *ret,
                                          struct err *err);

/* Who submitted the first of the jobs that wait; "" if none does. */
MUST_USE enum err_code recovery_store_user(struct store *store, const struct uuid *id,
                                           char ret_user[USER_SIZE], struct err *err);

struct recovery_job {
    struct uuid id;
    enum job_state resume;
    int64_t blocked_us;
    char name[JOB_NAME_SIZE];
    char owner[USER_SIZE];
};
struct recovery_job_list {
    struct recovery_job *items; /* free() */
    size_t count;
};
/* In the order of submission. */
MUST_USE enum err_code recovery_store_jobs(struct store *store, const struct recovery *recovery,
                                           const struct recovery_page *page,
                                           struct recovery_job_list *ret_list, struct err *err);
#define RECOVERY_HISTORY_MAX 20
struct recovery_test {
    uint32_t number;
    int64_t at_us;
    char result[RECOVERY_RESULT_SIZE];
    char detail[JOB_REASON_SIZE];
};
/* The newest tests of a cause, newest first; ret_tests has RECOVERY_HISTORY_MAX items. */
MUST_USE enum err_code recovery_store_tests(struct store *store, const struct recovery *recovery,
                                            struct recovery_test *ret_tests, size_t *ret_count,
                                            struct err *err);
/* Blocked jobs of the whole site by condition. */
MUST_USE enum err_code recovery_store_counts(struct store *store,
                                             uint64_t ret_counts[JOB_CONDITION_COUNT],
                                             struct err *err);
/* An operator's wish, for the leader: "release", "fail", or NULL: only test now. ERR_NOT_FOUND. */
MUST_USE enum err_code recovery_store_ask(struct store *store, const char *tenant,
                                          const struct uuid *id, const char *what,
                                          const char *actor, struct err *err);

/* ---- leading -------------------------------------------------------------------------------- */

struct recovery_lead {
    char tenant[TENANT_SIZE];
    struct uuid holder;
    uint64_t fencing;
};
/* Makes lead->holder the leader: the fencing number rises. */
MUST_USE enum err_code recovery_lead_take(struct store *store, struct recovery_lead *lead,
                                          struct err *err);
MUST_USE enum err_code recovery_lead_renew(struct store *store, const struct recovery_lead *lead,
                                           struct err *err);

struct recovery_verdict { /* of a test, or of an operator in its place */
    uint32_t tests;       /* 1; 0: none was made */
    uint32_t tries;       /* 1: it was in vain; 0 */
    const char *result;
    const char *detail;
    int64_t next_ms; /* until the next one; of a batch: from its beginning */
    int64_t due_us;  /* next_us as read before the test: changed since, it is due at once; 0: any */
};
/* Not clear: the ramp ends. A cause without jobs is deleted: *ret_gone. */
MUST_USE enum err_code recovery_store_tested(struct store *store, const struct recovery_lead *lead,
                                             const struct uuid *id,
                                             const struct recovery_verdict *verdict, bool *ret_gone,
                                             struct err *err);

#define RECOVERY_BATCH_MAX 1000
struct recovery_batch {
    struct uuid id;
    uint32_t limit;     /* jobs at most, 1..RECOVERY_BATCH_MAX */
    uint32_t ramp;      /* for the batch after it; 0: the ramp is over */
    bool asked;         /* only the jobs that were blocked when an operator asked */
    int64_t asked_us;   /* as it was read: another question that came since is not answered by it */
    int64_t waited_ms;  /* only jobs that have waited so long, and the next test stays as it is */
    const char *actor;  /* NULL: recovery itself */
    const char *detail; /* for the event, and (giving up) for `reason` */
};
struct recovery_done {
    uint32_t jobs;
    bool more;                   /* there are further jobs for the next batch */
    bool gone;                   /* none is left at all: the cause was deleted */
    struct outbox_list messages; /* of a release: to be sent; free() items */
};
/* One transaction: jobs resume at their states with epoch + 1, blocked rows go, outbox rows and
 * events come, the verdict is kept. After an unknown commit it may release the batch after it as
 * well; the messages of the first are then sent by the relay. */
MUST_USE enum err_code recovery_store_release(struct store *store, const struct recovery_lead *lead,
                                              const struct recovery_batch *batch,
                                              const struct recovery_verdict *verdict,
                                              struct recovery_done *ret, struct err *err);
/* The same, but they end FAILED; the condition that blocked them is kept. */
MUST_USE enum err_code recovery_store_give_up(struct store *store, const struct recovery_lead *lead,
                                              const struct recovery_batch *batch,
                                              const struct recovery_verdict *verdict,
                                              struct recovery_done *ret, struct err *err);

/* For recovery_*.c. A cause that was tested: keeps what the test found. */
struct txn;
MUST_USE enum err_code recovery_test_keep(struct txn *txn, const struct uuid *id, struct err *err);
/* Deletes a cause that no job waits for, and its tests. */
MUST_USE enum err_code recovery_drop(struct txn *txn, const struct uuid *id, bool *ret_gone,
                                     struct err *err);
/* The transaction's first statement. */
MUST_USE enum err_code recovery_lead_check(struct txn *txn, const struct recovery_lead *lead,
                                           struct err *err);

#endif
