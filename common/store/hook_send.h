/* SPDX-License-Identifier: MIT */
#ifndef COMMON_STORE_HOOK_SEND_H
#define COMMON_STORE_HOOK_SEND_H

/* hook_send: what the sender of webhooks does in the database. One process sends at a time: each
 * of its transactions locks one row with its fencing number, so one that was replaced writes
 * nothing any more (ERR_FENCED). Threads: locked; all writes of a sender come from one thread. */

#include "common/base/buf.h"
#include "common/store/hook_store.h"

/* ---- who sends ------------------------------------------------------------------------------- */

struct hook_sender { /* the row, as it was read */
    uint64_t fencing;
    bool has_holder;
    uint64_t beat;
    uint64_t seq; /* the history was looked through up to here */
};
struct hook_lead {
    struct uuid holder;
    uint64_t fencing;
};
MUST_USE enum err_code hook_sender_look(struct store *store, struct hook_sender *ret_sender,
                                        struct err *err);
/* lead->holder sends from now on, unless the row changed since it was read: ERR_CONFLICT. */
MUST_USE enum err_code hook_lead_take(struct store *store, const struct hook_sender *seen,
                                      struct hook_lead *lead, struct err *err);
MUST_USE enum err_code hook_lead_beat(struct store *store, const struct hook_lead *lead,
                                      struct err *err);
/* The next one need not wait for a lease. */
MUST_USE enum err_code hook_lead_leave(struct store *store, const struct hook_lead *lead,
                                       struct err *err);

/* ---- from the history to deliveries ------------------------------------------------------------
 */

struct hook_event { /* an event that a subscription asked for */
    uint64_t seq;
    struct uuid hook;
    char hook_name[HOOK_NAME_SIZE];
    struct uuid lane;
    struct uuid job;
    char tenant[TENANT_SIZE];
    int64_t at_us;
    char kind[25];
    char from[25]; /* "" for the first one */
    char to[25];
    char condition[33];
    char detail[JOB_REASON_SIZE];
    char name[JOB_NAME_SIZE]; /* of the job, as it is now; the same down to reason */
    char owner[USER_SIZE];
    char queue[QUEUE_NAME_SIZE];
    bool has_exit_code;
    int exit_code;
    int term_signal;
    char reason[JOB_REASON_SIZE];
};
struct hook_fan_out {
    uint64_t upto; /* no further than feed_mark.safe */
    /* The bytes to send; delivery is the id that they carry. */
    void (*compose)(const struct hook_event *event, const struct uuid *delivery,
                    struct buf *ret_body);
    uint64_t span;     /* so many at most, 0: as many as may be; answer: a good one to go on with */
    uint64_t seq;      /* answer: looked through up to here */
    size_t deliveries; /* answer: so many were made */
};
/* Some events: call again until seq is upto. What was delivered is remembered by its event and
 * subscription, so nothing is made twice. */
MUST_USE enum err_code hook_fan_out(struct store *store, const struct hook_lead *lead,
                                    struct hook_fan_out *fan_out, struct err *err);

/* ---- sending --------------------------------------------------------------------------------- */

#define HOOK_LANES_MAX 256
struct hook_lane {
    struct uuid id;
    char tenant[TENANT_SIZE];
};
/* Lanes behind `after` in which something is due, in order. */
MUST_USE enum err_code hook_lanes(struct store *store, const struct uuid *after,
                                  struct hook_lane ret_lanes[HOOK_LANES_MAX], size_t *ret_count,
                                  struct err *err);

struct hook_delivery {
    struct uuid id;
    struct uuid subscription;
    struct uuid lane;
    struct uuid job;
    char tenant[TENANT_SIZE];
    char event[25];
    uint32_t attempts; /* so far */
    int64_t age_us;    /* since it was first due */
    char *body;        /* free() */
    bool is_wanted;    /* its subscription is there and enabled */
    char url[HOOK_URL_SIZE];
    bool lacks_secret; /* the subscription whose secret should sign is gone */
    bool has_seed;
    uint8_t seed[HOOK_SEED_SIZE];
    bool has_old_seed;
    uint8_t old_seed[HOOK_SEED_SIZE];
};
/* The longest due first; free() each body and the items. */
MUST_USE enum err_code hook_due(struct store *store, const struct uuid *lane, uint32_t limit,
                                struct hook_delivery **ret_items, size_t *ret_count,
                                struct err *err);

enum hook_outcome { HOOK_DELIVERED, HOOK_AGAIN, HOOK_DEAD };
struct hook_result {
    const struct hook_delivery *of;
    enum hook_outcome outcome;
    int64_t again_ms; /* with HOOK_AGAIN: the pause */
    uint32_t http_status;
    uint32_t took_ms;
    char error[JOB_REASON_SIZE];
};
/* All of them, and what they held up is due now. */
MUST_USE enum err_code hook_record(struct store *store, const struct hook_lead *lead,
                                   const struct hook_result *results, size_t count,
                                   struct err *err);
/* Some that were due longer ago than this are dead, though their turn has not come (their receiver
 * answers nobody); so many. */
MUST_USE enum err_code hook_give_up(struct store *store, const struct hook_lead *lead,
                                    uint32_t after_s, size_t *ret_rows, struct err *err);
/* Nothing waits for this subscription any more (it is gone or disabled). */
MUST_USE enum err_code hook_drop(struct store *store, const struct hook_lead *lead,
                                 const struct uuid *subscription, struct err *err);

/* ---- what is kept -----------------------------------------------------------------------------
 */

/* Some deliveries that ended before so many hours; and of some subscriptions, behind *after in the
 * order of their jobs, those of jobs that ended then and were looked through to their end (*after
 * is moved on, or nil at their end). *ret_more: there may be more to do at once. */
MUST_USE enum err_code hook_forget(struct store *store, const struct hook_lead *lead,
                                   uint32_t hours, struct uuid *after, bool *ret_more,
                                   struct err *err);
/* Whether anybody has subscribed to anything. */
MUST_USE enum err_code hook_any(struct store *store, bool *ret_any, struct err *err);
#define HOOK_COUNT_MAX 100000
MUST_USE enum err_code hook_waiting(struct store *store, uint64_t *ret_count, int64_t *ret_age_us,
                                    struct err *err);
/* A delivery that was tried at least so many times and still waits. */
struct hook_failing {
    bool found;
    char tenant[TENANT_SIZE];
    char name[HOOK_NAME_SIZE]; /* of its subscription; "": it has none */
    uint32_t attempts;
    char error[JOB_REASON_SIZE];
};
MUST_USE enum err_code hook_failing(struct store *store, uint32_t attempts,
                                    struct hook_failing *ret_failing, struct err *err);

#endif
