/* SPDX-License-Identifier: MIT */
#ifndef COMMON_STORE_DEAD_STORE_H
#define COMMON_STORE_DEAD_STORE_H

/* dead_store: messages that the broker could not deliver, and what became of them. A reader writes
 * the row before it acknowledges, so that a message is in a dead queue or in this table, always.
 * Threads: locked. Texts from messages are cut to their columns, bytes that are not UTF-8 in them
 * are replaced; the body is kept as it is. */

#include "common/model/job.h"
#include "common/store/store.h"

#define DEAD_TEXT_SIZE 200 /* exchange, queue and routing key */
#define DEAD_PAGE_MAX 1000
/* A message with this and a UUID for its id is a probe: it gets a row with that id, settled. */
#define DEAD_PROBE_PREFIX "sluice-probe-"

enum dead_source {
    DEAD_LETTER,    /* a queue gave it up */
    DEAD_ALTERNATE, /* no queue was bound for it */
};

/* What is left to do. */
enum dead_state {
    DEAD_OPEN,      /* somebody should look at it */
    DEAD_SETTLED,   /* the reader did what there was to do */
    DEAD_REPLAYING, /* being published again */
    DEAD_REPLAYED,
    DEAD_DISCARDED,
    DEAD_STATE_COUNT
};

/* What the reader found to do. */
enum dead_outcome {
    DEAD_NO_OUTCOME,  /* it stored the message and did not come further yet */
    DEAD_KEPT,        /* nothing can be done without a person */
    DEAD_JOB_FAILED,  /* its job ended FAILED, DEAD_LETTERED */
    DEAD_JOB_BLOCKED, /* its job waits until its queue is back */
    DEAD_LEFT_ALONE,  /* the job does not need it: it ended, moved on, or runs */
    DEAD_OUTCOME_COUNT
};

const char *dead_source_text(enum dead_source source);
const char *dead_state_text(enum dead_state state);
MUST_USE bool dead_state_parse(struct sv text, enum dead_state *ret_state);
const char *dead_outcome_text(enum dead_outcome outcome); /* "" for DEAD_NO_OUTCOME */

struct dead_message {
    struct uuid id;
    enum dead_source source;
    char tenant[TENANT_SIZE]; /* "" if its origin is no queue of a tenant */
    enum dead_state state;
    char reason[33]; /* "rejected", "delivery_limit", "expired", "maxlen", "unroutable", ... */
    char exchange_name[DEAD_TEXT_SIZE]; /* where it was published to */
    char queue_name[DEAD_TEXT_SIZE];    /* that gave it up; "" if unroutable */
    char routing_key[DEAD_TEXT_SIZE];   /* it was published with */
    char message_id[65];
    char content_type[65];
    char traceparent[65];
    uint64_t death_count;
    uint32_t delivery_count;
    int64_t died_us; /* 0: unknown */
    bool has_job;    /* the body names one; nothing says that it exists */
    struct uuid job;
    uint32_t epoch;
    uint64_t size_bytes; /* of the message */
    uint64_t kept_bytes; /* of its body, here */
    char *body;          /* kept_bytes; NULL in lists */
    enum dead_outcome outcome;
    char detail[JOB_REASON_SIZE];
    uint32_t seen;    /* how often the same message was published */
    uint32_t replays; /* begun */
    char acted_by[USER_SIZE];
    int64_t acted_us;
    int64_t created_us;
    int64_t seen_us;
};
void dead_message_done(struct dead_message *message);
#define DEAD_MESSAGE_AUTO __attribute__((cleanup(dead_message_done)))

/* ---- for the readers ------------------------------------------------------------------------- */

/* Of what was received: all of a dead_message up to and including size_bytes but its state. */
struct dead_arrival {
    const struct dead_message *message; /* its id is used if the row is new and no other has it */
    uint8_t digest[32];                 /* the same for the same message */
    struct sv body;
    bool redelivered; /* by the broker: not published once more */
};
struct dead_arrived {
    struct uuid id; /* of the row */
    bool is_new;
    enum dead_outcome outcome; /* of an earlier delivery */
};
/* A row for this digest: a new one (open), or the one that is there, counted up. One that was
 * replayed or discarded is opened again when the same message is published once more. */
MUST_USE enum err_code dead_store_put(struct store *store, const struct dead_arrival *arrival,
                                      struct dead_arrived *ret, struct err *err);
/* What the reader did: the state follows from it (open or settled), unless a person has acted.
 * DEAD_LEFT_ALONE does not replace what an earlier delivery did. */
MUST_USE enum err_code dead_store_settle(struct store *store, const struct uuid *id,
                                         enum dead_outcome outcome, const char *detail,
                                         struct err *err);
/* Rows that are open. */
MUST_USE enum err_code dead_store_count_open(struct store *store, uint64_t *ret_count,
                                             struct err *err);
/* The job as it was read (its epoch, owner and fence are compared) ends FAILED, DEAD_LETTERED: the
 * broker has given up the message that it waits for. Nobody may own it, or somebody who is not
 * live. ERR_CONFLICT: it has moved on. */
MUST_USE enum err_code job_store_dead_letter(struct store *store, const struct job *job,
                                             const char *detail, struct err *err);

/* Removes the row of a probe; *ret_found: it was there. */
MUST_USE enum err_code dead_store_take_probe(struct store *store, const struct uuid *id,
                                             bool *ret_found, struct err *err);

/* ---- for people ------------------------------------------------------------------------------ */

/* With its body. ERR_NOT_FOUND. */
MUST_USE enum err_code dead_store_get(struct store *store, const char *tenant,
                                      const struct uuid *id, struct dead_message *ret_message,
                                      struct err *err);
struct dead_query {
    const char *tenant;
    bool has_state;
    enum dead_state state;
    const struct uuid *after; /* keyset, newest first; NULL for the first page */
    uint32_t limit;           /* 1..DEAD_PAGE_MAX */
};
struct dead_list {
    struct dead_message *items; /* free() */
    size_t count;
    bool more;
};
MUST_USE enum err_code dead_store_list(struct store *store, const struct dead_query *query,
                                       struct dead_list *ret_list, struct err *err);
/* Takes the row for a replay: replaying, replays + 1. ERR_NOT_FOUND; ERR_STATE: it was discarded,
 * or somebody replays it now (whoever began more than a minute ago does not any more). */
MUST_USE enum err_code dead_store_replay_begin(struct store *store, const char *tenant,
                                               const struct uuid *id, const char *actor,
                                               uint32_t *ret_replay, struct err *err);
/* sent: replayed; otherwise as it was before. Nothing if another replay was begun since. */
MUST_USE enum err_code dead_store_replay_end(struct store *store, const struct uuid *id,
                                             uint32_t replay, bool sent, struct err *err);
/* ERR_NOT_FOUND; ERR_STATE while it is being replayed. Twice is fine. */
MUST_USE enum err_code dead_store_discard(struct store *store, const char *tenant,
                                          const struct uuid *id, const char *actor,
                                          struct err *err);

#endif
