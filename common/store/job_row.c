/* SPDX-License-Identifier: MIT */
#include "common/store/job_row.h"

#include <assert.h>

#define EVENTS_AT_ONCE 8
#define EVENT_PARAMS 11

void job_row_done(struct job_row *row)
{
    text_free(&row->job.request);
    text_free(&row->job.tags);
}

enum err_code state_of(const char *text, enum job_state *ret_state, struct err *err)
{
    if (job_state_parse(sv_of(text), ret_state))
        return ERR_OK;
    return err_set(err, ERR_DB, "the database holds a state '%s' that this program does not know",
                   text);
}

enum err_code condition_of(const char *text, enum job_condition *ret_condition, struct err *err)
{
    if (job_condition_parse(sv_of(text), ret_condition))
        return ERR_OK;
    return err_set(err, ERR_DB,
                   "the database holds a condition '%s' that this program does not know", text);
}

enum err_code no_such_job(const struct uuid *id, struct err *err)
{
    char text[UUID_TEXT_SIZE];
    return err_set(err, ERR_NOT_FOUND,
                   "there is no job %s: it was removed after its time, or is of another tenant, or "
                   "never was",
                   uuid_text(id, text));
}

enum err_code job_row_take(struct job_row *row, struct job **ret_job, struct err *err)
{
    enum err_code rc = state_of(row->status, &row->job.status, err);
    if (rc == ERR_OK)
        rc = condition_of(row->condition, &row->job.condition, err);
    if (rc)
        return rc;
    struct job *job = malloc(sizeof(*job));
    if (!job)
        return err_set(err, ERR_NOMEM, "no memory for a job");
    *job = row->job;
    row->job.request = NULL;
    row->job.tags = NULL;
    *ret_job = job;
    return ERR_OK;
}

/* ---- history ------------------------------------------------------------------------------ */

static enum err_code write_some(struct db *db, const struct history *history,
                                const struct job_move *moves, size_t count, struct err *err)
{
    struct db_arg args[EVENTS_AT_ONCE * EVENT_PARAMS];
    char details[EVENTS_AT_ONCE][DETAIL_SIZE];
    enum job_state from = history->from;
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        bool last = i + 1 == count;
        const char *condition = last ? job_condition_text(history->condition) : NULL;
        args[n++] = db_uuid(history->job);
        args[n++] = db_uuid(history->job);
        args[n++] = db_text(moves[i].kind ? moves[i].kind : "status");
        args[n++] = db_text(job_state_text(from));
        args[n++] = db_text(job_state_text(moves[i].to));
        args[n++] = db_text_or_null(condition);
        args[n++] = db_uuid(history->job);
        args[n++] = db_u64(history->fence);
        args[n++] = db_uuid(history->worker);
        args[n++] = db_text(history->actor);
        args[n++] = db_text(text_fit(moves[i].detail, details[i], DETAIL_SIZE));
        from = moves[i].to;
    }
    return db_exec(db, (enum db_stmt_id)(DB_EVENTS_1 + count - 1), (struct db_args){args, n}, NULL,
                   err);
}

enum err_code history_write(struct db *db, const struct history *history,
                            const struct job_move *moves, size_t count, uint64_t *ret_seq,
                            struct err *err)
{
    struct history part = *history;
    uint64_t first = 0;
    for (size_t done = 0; done < count;) {
        size_t some = count - done < EVENTS_AT_ONCE ? count - done : EVENTS_AT_ONCE;
        part.condition = done + some == count ? history->condition : JOB_COND_NONE;
        enum err_code rc = write_some(db, &part, moves + done, some, err);
        if (rc)
            return rc;
        if (done == 0)
            first = db_insert_id(db);
        part.from = moves[done + some - 1].to;
        done += some;
    }
    *ret_seq = first;
    return ERR_OK;
}

enum err_code history_has(struct txn *txn, const struct uuid *job, uint64_t seq, bool *ret_there,
                          struct err *err)
{
    uint64_t found_seq = 0;
    *ret_there = false;
    if (!txn->commit_unknown || seq == 0)
        return ERR_OK;
    return db_one(txn->db, DB_EVENT_THERE, DB_ARGS(db_u64(seq), db_uuid(job)),
                  DB_COLS(COL_U64(&found_seq)), ret_there, err);
}

bool moves_are_legal(enum job_state from, const struct job_move *moves, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!job_state_can(from, moves[i].to))
            return false;
        from = moves[i].to;
    }
    return count > 0 && count <= JOB_MOVES_MAX;
}

const struct job_move *moves_find(enum job_state state, const struct job_move *moves, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (moves[i].to == state)
            return &moves[i];
    }
    return NULL;
}

const char *kept_conditions(enum job_condition new_one, char *ret_text, size_t size)
{
    size_t used = 0;
    ret_text[0] = 0;
    for (int i = JOB_COND_NONE + 1; i < JOB_CONDITION_COUNT; i++) {
        enum job_condition old = (enum job_condition)i;
        if (job_condition_keep(old, new_one) != old)
            continue;
        int length = snprintf(ret_text + used, size - used, "%s%s", used ? "," : "",
                              job_condition_text(old));
        assert(length > 0 && (size_t)length < size - used);
        used += (size_t)length;
    }
    return ret_text;
}

/* ---- text from outside ---------------------------------------------------------------------- */

const char *text_fit(const char *text, char *ret_text, size_t size)
{
    if (!text)
        return NULL;
    size_t length = strnlen(text, size - 1);
    while (length > 0 && text[length] && ((unsigned char)text[length] & 0xC0) == 0x80)
        length--;
    bool valid = sv_is_utf8((struct sv){text, length});
    for (size_t i = 0; i < length; i++)
        ret_text[i] = valid || (unsigned char)text[i] < 0x80 ? text[i] : '?';
    ret_text[length] = 0;
    return ret_text;
}
