/* SPDX-License-Identifier: MIT */
#include "common/store/job_insert.h"

#include "common/model/hook.h"
#include "common/store/job_row.h"

#define ROWS_MAX 16u /* of one statement */
#define WIDTHS 5
#define JOB_PARAMS 14
#define EVENT_PARAMS 4
#define OUTBOX_PARAMS 3
#define KEY_PARAMS 5
/* A statement with many rows must stay well below the server's max_allowed_packet. */
#define REQUESTS_SIZE_MAX 1000000

/* One statement for each width: 1, 2, 4... rows. */
#define BY_WIDTH(name)                                                                             \
    {                                                                                              \
        DB_##name##_1, DB_##name##_2, DB_##name##_4, DB_##name##_8, DB_##name##_16                 \
    }
static const enum db_stmt_id job_stmts[WIDTHS] = BY_WIDTH(JOB_INSERT);
static const enum db_stmt_id event_stmts[WIDTHS] = BY_WIDTH(SUBMITTED);
static const enum db_stmt_id outbox_stmts[WIDTHS] = BY_WIDTH(OUTBOX_INSERT);
static const enum db_stmt_id key_stmts[WIDTHS] = BY_WIDTH(IDEM_INSERT);

struct part { /* the rows of one statement */
    struct job_entry *const *entries;
    size_t count; /* 1 << width */
    unsigned width;
};

/* What the statements of one part are given. */
struct values {
    struct db_arg jobs[ROWS_MAX * JOB_PARAMS];
    struct db_arg events[ROWS_MAX * EVENT_PARAMS];
    struct db_arg outbox[ROWS_MAX * OUTBOX_PARAMS];
    char details[ROWS_MAX][DETAIL_SIZE];
};

static struct db_args job_values(const struct part *part, struct values *values)
{
    struct db_arg *args = values->jobs;
    size_t n = 0;
    for (size_t i = 0; i < part->count; i++) {
        const struct job_new *job = part->entries[i]->job;
        args[n++] = db_uuid(&job->id);
        args[n++] = db_text(job->tenant);
        args[n++] = db_text(job->owner);
        args[n++] = db_text(job->name);
        args[n++] = db_text_or_null(job->app_id);
        args[n++] = db_text_or_null(job->app_version);
        args[n++] = db_text_or_null(job->system_id);
        args[n++] = db_text(job->queue);
        args[n++] = db_u64(job->node_count);
        args[n++] = db_u64(job->cores_per_node);
        args[n++] = db_u64(job->memory_mb);
        args[n++] = db_u64(job->max_seconds);
        args[n++] = db_text(job->tags ? job->tags : "[]");
        args[n++] = db_sv(job->request);
    }
    return (struct db_args){args, n};
}

static struct db_args event_values(const struct part *part, struct values *values)
{
    struct db_arg *args = values->events;
    size_t n = 0;
    for (size_t i = 0; i < part->count; i++) {
        const struct job_new *job = part->entries[i]->job;
        args[n++] = db_uuid(&job->id);
        args[n++] = db_text(job->tenant);
        args[n++] = db_text(job->owner);
        args[n++] = db_text(text_fit(job->detail, values->details[i], DETAIL_SIZE));
    }
    return (struct db_args){args, n};
}

static struct db_args outbox_values(const struct part *part, struct values *values)
{
    struct db_arg *args = values->outbox;
    size_t n = 0;
    for (size_t i = 0; i < part->count; i++) {
        const struct job_new *job = part->entries[i]->job;
        args[n++] = db_uuid(&job->id);
        args[n++] = db_text(job->tenant);
        args[n++] = db_text(job->queue);
    }
    return (struct db_args){args, n};
}

/* All that a part needs, in one round trip. */
static enum err_code insert_part(struct db *db, const struct part *part, struct err *err)
{
    struct values values;
    struct db_call calls[] = {
        {.id = job_stmts[part->width], .args = job_values(part, &values)},
        {.id = event_stmts[part->width], .args = event_values(part, &values)},
        {.id = outbox_stmts[part->width], .args = outbox_values(part, &values)},
    };
    enum err_code rc = db_exec_all(db, calls, ARRAY_LEN(calls), err);
    if (rc)
        return rc;
    /* One INSERT of a known number of rows numbers them without gaps. */
    for (size_t i = 0; i < part->count; i++) {
        *part->entries[i]->done =
            (struct job_submitted){.id = part->entries[i]->job->id,
                                   .outbox_id = calls[2].insert_id + i * db_auto_step(db),
                                   .created_us = (int64_t)calls[0].insert_id};
    }
    return ERR_OK;
}

static enum err_code insert_hooks(struct db *db, const struct job_new *job, struct err *err)
{
    char states[HOOK_STATES_SIZE];
    enum err_code rc = ERR_OK;
    for (size_t i = 0; i < job->hook_count && rc == ERR_OK; i++) {
        const struct job_new_hook *hook = &job->hooks[i];
        const struct uuid id = uuid_v7();
        rc = db_exec(db, DB_HOOK_INSERT_JOB,
                     DB_ARGS(db_uuid(&id), db_text(job->tenant), db_uuid(&job->id), db_null(),
                             db_text(job->owner), db_text(hook->url),
                             db_text(hook_states_text(hook->states, states)), db_text(""),
                             db_text(hook->secret), db_null(), db_uuid(&hook->lane)),
                     NULL, err);
    }
    return rc;
}

/* The longest statement that takes no more than there are, and no more bytes than it should. */
static void choose_width(struct part *part, size_t left)
{
    size_t room = left < ROWS_MAX ? left : ROWS_MAX;
    size_t bytes = 0;
    size_t some = 0;
    while (some < room && (some == 0 || bytes < REQUESTS_SIZE_MAX))
        bytes += part->entries[some++]->job->request.len;
    part->width = 0;
    while ((size_t)2 << part->width <= some)
        part->width++;
    part->count = (size_t)1 << part->width;
}

enum err_code job_insert_rows(struct db *db, struct job_entry *const *entries, size_t count,
                              struct err *err)
{
    struct part part = {0};
    enum err_code rc = ERR_OK;
    for (size_t done = 0; rc == ERR_OK && done < count; done += part.count) {
        part.entries = entries + done;
        choose_width(&part, count - done);
        rc = insert_part(db, &part, err);
        for (size_t i = 0; i < part.count && rc == ERR_OK; i++)
            rc = insert_hooks(db, part.entries[i]->job, err);
    }
    return rc;
}

enum err_code job_insert_keys(struct db *db, struct job_entry *const *entries, size_t count,
                              uint64_t *ret_new, struct err *err)
{
    struct db_arg args[ROWS_MAX * KEY_PARAMS];
    struct part part = {0};
    uint64_t rows = 0;
    *ret_new = 0;
    for (size_t done = 0; done < count; done += part.count) {
        size_t n = 0;
        part.entries = entries + done;
        choose_width(&part, count - done);
        for (size_t i = 0; i < part.count; i++) {
            const struct job_new *job = part.entries[i]->job;
            args[n++] = db_text(job->tenant);
            args[n++] = db_text(job->owner);
            args[n++] = db_text(job->idempotency_key);
            args[n++] = db_bytes(job->body_hash, sizeof(job->body_hash));
            args[n++] = db_uuid(&job->id);
        }
        enum err_code rc =
            db_exec(db, key_stmts[part.width], (struct db_args){args, n}, &rows, err);
        if (rc)
            return rc;
        *ret_new += rows;
    }
    return ERR_OK;
}
