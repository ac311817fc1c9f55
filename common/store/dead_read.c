/* SPDX-License-Identifier: MIT */
/* dead_store for people: reading, and what they do. */
#include "common/store/dead_store.h"

#include "common/store/job_row.h"
#include "common/store/reading.h"

#include <assert.h>

#define WORD_SIZE 33

/* ---- reading --------------------------------------------------------------------------------- */

struct dead_row {
    struct dead_message message;
    char source[WORD_SIZE];
    char state[WORD_SIZE];
    char outcome[WORD_SIZE];
};

#define DEAD_ROW_COLS(row)                                                                         \
    COL_UUID(&(row)->message.id), COL_TEXT((row)->source), COL_TEXT((row)->message.tenant),        \
        COL_TEXT((row)->state), COL_TEXT((row)->message.reason),                                   \
        COL_TEXT((row)->message.exchange_name), COL_TEXT((row)->message.queue_name),               \
        COL_TEXT((row)->message.routing_key), COL_TEXT((row)->message.message_id),                 \
        COL_TEXT((row)->message.content_type), COL_TEXT((row)->message.traceparent),               \
        COL_U64(&(row)->message.death_count), COL_U32(&(row)->message.delivery_count),             \
        COL_I64(&(row)->message.died_us),                                                          \
        COL_UUID_OR(&(row)->message.job, &(row)->message.has_job), COL_U32(&(row)->message.epoch), \
        COL_U64(&(row)->message.size_bytes), COL_U64(&(row)->message.kept_bytes),                  \
        COL_TEXT((row)->outcome), COL_TEXT((row)->message.detail), COL_U32(&(row)->message.seen),  \
        COL_U32(&(row)->message.replays), COL_TEXT((row)->message.acted_by),                       \
        COL_I64(&(row)->message.acted_us), COL_I64(&(row)->message.created_us),                    \
        COL_I64(&(row)->message.seen_us)

static enum err_code read_words(void *read, struct err *err)
{
    struct dead_row *row = read;
    struct dead_message *message = &row->message;
    bool known = dead_state_parse(sv_of(row->state), &message->state);
    bool letter = sv_is(sv_of(row->source), dead_source_text(DEAD_LETTER));
    message->source = letter ? DEAD_LETTER : DEAD_ALTERNATE;
    int outcome = DEAD_NO_OUTCOME;
    while (outcome < DEAD_OUTCOME_COUNT &&
           strcmp(row->outcome, dead_outcome_text((enum dead_outcome)outcome)) != 0)
        outcome++;
    if (!known || outcome == DEAD_OUTCOME_COUNT)
        return err_set(err, ERR_DB,
                       "a dead message is '%s', '%s', which this program does not know", row->state,
                       row->outcome);
    message->outcome = (enum dead_outcome)outcome;
    return ERR_OK;
}

static enum err_code no_such_message(const struct uuid *id, struct err *err)
{
    char text[UUID_TEXT_SIZE];
    return err_set(err, ERR_NOT_FOUND, "there is no dead message %s", uuid_text(id, text));
}

enum err_code dead_store_get(struct store *store, const char *tenant, const struct uuid *id,
                             struct dead_message *ret_message, struct err *err)
{
    struct dead_row row = {.source = ""};
    const struct reading reading = {.stmt = DB_DEAD_GET,
                                    .args = DB_ARGS(db_uuid(id), db_text(tenant)),
                                    .cols =
                                        DB_COLS(DEAD_ROW_COLS(&row), COL_HEAP(&row.message.body)),
                                    .row = &row,
                                    .complete = read_words};
    bool found = false;
    enum err_code rc = read_one(store, &reading, &found, err);
    if (rc == ERR_OK && !found)
        rc = no_such_message(id, err);
    if (rc)
        dead_message_done(&row.message);
    else
        *ret_message = row.message;
    return rc;
}

enum err_code dead_store_list(struct store *store, const struct dead_query *query,
                              struct dead_list *ret_list, struct err *err)
{
    const struct db_arg tenant = db_text(query->tenant);
    const struct db_arg limit = db_u64((uint64_t)query->limit + 1);
    struct uuid first;
    struct dead_row row = {.source = ""};
    struct rows rows = ROWS_OF(struct dead_message);
    memset(first.bytes, 0xFF, sizeof(first.bytes));
    const struct db_arg after = db_uuid(query->after ? query->after : &first);
    struct reading reading = {
        .stmt = query->has_state ? DB_DEAD_LIST_STATE : DB_DEAD_LIST,
        .args = query->has_state
                    ? DB_ARGS(db_text(dead_state_text(query->state)), tenant, after, limit)
                    : DB_ARGS(tenant, after, limit),
        .cols = DB_COLS(DEAD_ROW_COLS(&row)),
        .row = &row,
        .complete = read_words,
        .rows = &rows};
    assert(query->limit >= 1 && query->limit <= DEAD_PAGE_MAX);
    enum err_code rc = read_all(store, &reading, err);
    if (rc)
        return rc;
    ret_list->more = rows.count > query->limit;
    ret_list->count = ret_list->more ? query->limit : rows.count;
    ret_list->items = rows_take(&rows);
    return ERR_OK;
}

/* ---- what people do -------------------------------------------------------------------------- */

struct act {
    const char *tenant;
    const struct uuid *id;
    const char *actor;
    enum dead_state to;
    uint32_t replays; /* that an earlier try wrote, or this one */
};

static enum err_code refused(const struct act *ctx, enum dead_state state, struct err *err)
{
    char text[UUID_TEXT_SIZE];
    (void)uuid_text(ctx->id, text);
    if (state == DEAD_DISCARDED)
        return err_set(err, ERR_STATE, "dead message %s was discarded", text);
    return err_set(err, ERR_STATE, "dead message %s is being replayed now; look again in a minute",
                   text);
}

static enum err_code act(struct txn *txn, void *ctx_, struct err *err)
{
    struct act *ctx = ctx_;
    char state_text[WORD_SIZE];
    char actor[USER_SIZE];
    enum dead_state state = DEAD_OPEN;
    uint32_t replays = 0;
    bool is_old = false;
    bool found = false;
    enum err_code rc =
        db_one(txn->db, DB_DEAD_LOCK, DB_ARGS(db_uuid(ctx->id), db_text(ctx->tenant)),
               DB_COLS(COL_TEXT(state_text), COL_U32(&replays), COL_TEXT(actor), COL_BOOL(&is_old)),
               &found, err);
    if (rc)
        return rc;
    if (!found)
        return no_such_message(ctx->id, err);
    if (!dead_state_parse(sv_of(state_text), &state))
        return err_set(err, ERR_DB, "a dead message is '%s'", state_text);
    if (state == ctx->to &&
        (ctx->to == DEAD_DISCARDED ||
         (txn->commit_unknown && replays == ctx->replays && strcmp(actor, ctx->actor) == 0)))
        return ERR_OK; /* done before, or by our own earlier try */
    if (state == DEAD_DISCARDED || (state == DEAD_REPLAYING && !is_old))
        return refused(ctx, state, err);
    ctx->replays = replays + (ctx->to == DEAD_REPLAYING);
    return db_exec(txn->db, DB_DEAD_ACT,
                   DB_ARGS(db_text(dead_state_text(ctx->to)), db_u64(ctx->replays),
                           db_text(ctx->actor), db_uuid(ctx->id)),
                   NULL, err);
}

enum err_code dead_store_replay_begin(struct store *store, const char *tenant,
                                      const struct uuid *id, const char *actor,
                                      uint32_t *ret_replay, struct err *err)
{
    struct act ctx = {.tenant = tenant, .id = id, .actor = actor, .to = DEAD_REPLAYING};
    enum err_code rc = store_txn(store, act, &ctx, err);
    if (rc == ERR_OK)
        *ret_replay = ctx.replays;
    return rc;
}

enum err_code dead_store_discard(struct store *store, const char *tenant, const struct uuid *id,
                                 const char *actor, struct err *err)
{
    struct act ctx = {.tenant = tenant, .id = id, .actor = actor, .to = DEAD_DISCARDED};
    return store_txn(store, act, &ctx, err);
}

struct replay_end {
    const struct uuid *id;
    uint32_t replay;
    bool sent;
};

static enum err_code end_replay(struct txn *txn, void *ctx_, struct err *err)
{
    const struct replay_end *ctx = ctx_;
    return db_exec(txn->db, DB_DEAD_REPLAY_END,
                   DB_ARGS(db_u64(ctx->sent), db_uuid(ctx->id), db_u64(ctx->replay)), NULL, err);
}

enum err_code dead_store_replay_end(struct store *store, const struct uuid *id, uint32_t replay,
                                    bool sent, struct err *err)
{
    struct replay_end ctx = {id, replay, sent};
    return store_once(store, end_replay, &ctx, err);
}
