/* SPDX-License-Identifier: MIT */
#include "common/store/dead_store.h"

#include "common/base/fault.h"
#include "common/store/job_row.h"
#include "common/store/rows.h"

#include <assert.h>

#define WORD_SIZE 33

static const char *const sources[] = {[DEAD_LETTER] = "dead", [DEAD_ALTERNATE] = "alternate"};
static const char *const states[] = {[DEAD_OPEN] = "open",
                                     [DEAD_SETTLED] = "settled",
                                     [DEAD_REPLAYING] = "replaying",
                                     [DEAD_REPLAYED] = "replayed",
                                     [DEAD_DISCARDED] = "discarded"};
static const char *const outcomes[] = {[DEAD_NO_OUTCOME] = "",
                                       [DEAD_KEPT] = "kept",
                                       [DEAD_JOB_FAILED] = "job-failed",
                                       [DEAD_JOB_BLOCKED] = "job-blocked",
                                       [DEAD_LEFT_ALONE] = "left-alone"};

const char *dead_source_text(enum dead_source source)
{
    return sources[source];
}

const char *dead_state_text(enum dead_state state)
{
    return states[state];
}

const char *dead_outcome_text(enum dead_outcome outcome)
{
    return outcomes[outcome];
}

static bool find_word(const char *const *words, size_t count, struct sv text, unsigned *ret_index)
{
    for (size_t i = 0; i < count; i++) {
        if (sv_is(text, words[i])) {
            *ret_index = (unsigned)i;
            return true;
        }
    }
    return false;
}

bool dead_state_parse(struct sv text, enum dead_state *ret_state)
{
    unsigned index = 0;
    bool known = find_word(states, ARRAY_LEN(states), text, &index);
    if (known)
        *ret_state = (enum dead_state)index;
    return known;
}

void dead_message_done(struct dead_message *message)
{
    text_free(&message->body);
}

/* ---- arrival --------------------------------------------------------------------------------- */

struct arrival {
    const struct dead_arrival *in;
    struct dead_arrived out;
};

static enum err_code insert(struct txn *txn, const struct dead_arrival *in, struct err *err)
{
    const struct dead_message *m = in->message;
    char reason[sizeof(m->reason)];
    char exchange[DEAD_TEXT_SIZE];
    char queue[DEAD_TEXT_SIZE];
    char key[DEAD_TEXT_SIZE];
    char message_id[sizeof(m->message_id)];
    char type[sizeof(m->content_type)];
    char trace[sizeof(m->traceparent)];
    return db_exec(txn->db, DB_DEAD_PUT,
                   DB_ARGS(db_uuid(&m->id), db_bytes(in->digest, sizeof(in->digest)),
                           db_text(sources[m->source]), db_text_or_null(m->tenant),
                           db_text(text_fit(m->reason, reason, sizeof(reason))),
                           db_text(text_fit(m->exchange_name, exchange, sizeof(exchange))),
                           db_text(text_fit(m->queue_name, queue, sizeof(queue))),
                           db_text(text_fit(m->routing_key, key, sizeof(key))),
                           db_text(text_fit(m->message_id, message_id, sizeof(message_id))),
                           db_text(text_fit(m->content_type, type, sizeof(type))),
                           db_text(text_fit(m->traceparent, trace, sizeof(trace))),
                           db_u64(m->death_count), db_u64(m->delivery_count),
                           m->died_us ? db_i64(m->died_us) : db_null(),
                           db_uuid(m->has_job ? &m->job : NULL), db_u64(m->epoch),
                           db_u64(m->size_bytes), db_bytes(in->body.ptr, in->body.len),
                           db_u64(!in->redelivered), db_u64(!in->redelivered)),
                   NULL, err);
}

static enum err_code find_row(struct txn *txn, struct arrival *ctx, bool *ret_found,
                              struct err *err)
{
    char outcome[WORD_SIZE] = "";
    unsigned index = 0;
    enum err_code rc = db_one(txn->db, DB_DEAD_BY_DIGEST,
                              DB_ARGS(db_bytes(ctx->in->digest, sizeof(ctx->in->digest))),
                              DB_COLS(COL_UUID(&ctx->out.id), COL_TEXT(outcome)), ret_found, err);
    if (rc || !*ret_found)
        return rc;
    if (!find_word(outcomes, ARRAY_LEN(outcomes), sv_of(outcome), &index))
        return err_set(err, ERR_DB, "a dead message has the unknown outcome '%s'", outcome);
    ctx->out.outcome = (enum dead_outcome)index;
    return ERR_OK;
}

/* The id of a probe comes from the message, so another message may have it: then the row gets an
 * id of its own. */
static enum err_code put(struct txn *txn, void *ctx_, struct err *err)
{
    struct arrival *ctx = ctx_;
    struct dead_message message = *ctx->in->message;
    struct dead_arrival in = *ctx->in;
    bool found = false;
    in.message = &message;
    enum err_code rc = insert(txn, &in, err);
    if (rc == ERR_OK)
        rc = find_row(txn, ctx, &found, err);
    if (rc == ERR_OK && !found) {
        message.id = uuid_v7();
        rc = insert(txn, &in, err);
        if (rc == ERR_OK)
            rc = find_row(txn, ctx, &found, err);
    }
    if (rc)
        return rc;
    if (!found)
        return err_set(err, ERR_DB, "the row of a dead message is not as it was written");
    ctx->out.is_new = uuid_eq(&ctx->out.id, &message.id);
    return ERR_OK;
}

enum err_code dead_store_put(struct store *store, const struct dead_arrival *arrival,
                             struct dead_arrived *ret, struct err *err)
{
    struct arrival ctx = {.in = arrival};
    enum err_code rc = store_txn(store, put, &ctx, err);
    if (rc)
        return rc;
    FAULT("dead.stored");
    *ret = ctx.out;
    return ERR_OK;
}

struct settling {
    const struct uuid *id;
    enum dead_outcome outcome;
    const char *detail;
};

static enum err_code settle(struct txn *txn, void *ctx_, struct err *err)
{
    const struct settling *ctx = ctx_;
    char detail[DETAIL_SIZE];
    enum dead_state state = ctx->outcome == DEAD_KEPT ? DEAD_OPEN : DEAD_SETTLED;
    return db_exec(txn->db, DB_DEAD_SETTLE,
                   DB_ARGS(db_text(states[state]),
                           db_text(text_fit(ctx->detail, detail, sizeof(detail))),
                           db_text(outcomes[ctx->outcome]), db_uuid(ctx->id),
                           db_u64(ctx->outcome != DEAD_LEFT_ALONE)),
                   NULL, err);
}

enum err_code dead_store_settle(struct store *store, const struct uuid *id,
                                enum dead_outcome outcome, const char *detail, struct err *err)
{
    struct settling ctx = {id, outcome, detail};
    assert(outcome != DEAD_NO_OUTCOME);
    return store_once(store, settle, &ctx, err);
}

static enum err_code count_open(struct txn *txn, void *ctx, struct err *err)
{
    bool found = false;
    return db_one(txn->db, DB_DEAD_COUNT_OPEN, DB_NO_ARGS, DB_COLS(COL_U64((uint64_t *)ctx)),
                  &found, err);
}

enum err_code dead_store_count_open(struct store *store, uint64_t *ret_count, struct err *err)
{
    return store_once(store, count_open, ret_count, err);
}

struct probe {
    const struct uuid *id;
    bool found;
};

static enum err_code take_probe(struct txn *txn, void *ctx_, struct err *err)
{
    struct probe *ctx = ctx_;
    uint64_t rows = 0;
    enum err_code rc =
        db_exec(txn->db, DB_DEAD_TAKE_PROBE,
                DB_ARGS(db_uuid(ctx->id), db_text(DEAD_PROBE_PREFIX "%")), &rows, err);
    ctx->found = ctx->found || rows > 0;
    return rc;
}

enum err_code dead_store_take_probe(struct store *store, const struct uuid *id, bool *ret_found,
                                    struct err *err)
{
    struct probe ctx = {.id = id};
    enum err_code rc = store_once(store, take_probe, &ctx, err);
    if (rc == ERR_OK)
        *ret_found = ctx.found;
    return rc;
}

/* ---- the job's end --------------------------------------------------------------------------- */

struct ending {
    const struct job *job;
    const char *detail;
    uint64_t seq;
};

static enum err_code end_job(struct txn *txn, void *ctx_, struct err *err)
{
    struct ending *ctx = ctx_;
    const struct job *job = ctx->job;
    const struct job_move move = {.to = JOB_FAILED, .kind = "dead-lettered", .detail = ctx->detail};
    const struct history history = {.job = &job->id,
                                    .fence = job->fence,
                                    .from = job->status,
                                    .condition = JOB_COND_DEAD_LETTERED};
    char kept[KEPT_CONDITIONS_SIZE];
    char reason[JOB_REASON_SIZE];
    char text[UUID_TEXT_SIZE];
    uint64_t rows = 0;
    bool ours = false;
    enum err_code rc = db_exec(
        txn->db, DB_JOB_DEAD_LETTER,
        DB_ARGS(db_text(kept_conditions(JOB_COND_DEAD_LETTERED, kept, sizeof(kept))),
                db_text(job_condition_text(JOB_COND_DEAD_LETTERED)),
                db_text(text_fit(ctx->detail, reason, sizeof(reason))), db_uuid(&job->id),
                db_u64(job->epoch), db_u64(job->fence), db_text(job_state_text(job->status)),
                db_uuid(job->has_owner ? &job->owner_worker : NULL)),
        &rows, err);
    if (rc == ERR_OK && rows > 0)
        return history_write(txn->db, &history, &move, 1, &ctx->seq, err);
    if (rc == ERR_OK)
        rc = history_has(txn, &job->id, ctx->seq, &ours, err);
    if (rc || ours)
        return rc;
    return err_set(err, ERR_CONFLICT, "job %s has moved on", uuid_text(&job->id, text));
}

enum err_code job_store_dead_letter(struct store *store, const struct job *job, const char *detail,
                                    struct err *err)
{
    struct ending ctx = {.job = job, .detail = detail};
    assert(job_state_is_active(job->status));
    return store_txn(store, end_job, &ctx, err);
}
