/* SPDX-License-Identifier: MIT */
#include "common/store/job_insert.h"

#include "common/base/fault.h"

#include <assert.h>

struct submission {
    struct job_entry *entries;
    struct job_entry **some; /* room for as many */
    size_t count;
    bool all_or_none;
};

/* ---- checks --------------------------------------------------------------------------------- */

static bool fits(const char *text, size_t size)
{
    return !text || strlen(text) < size;
}

static enum err_code check(const struct job_new *job, struct err *err)
{
    bool all_fit = fits(job->tenant, TENANT_SIZE) && fits(job->owner, USER_SIZE) &&
                   fits(job->name, JOB_NAME_SIZE) && fits(job->app_id, APP_ID_SIZE) &&
                   fits(job->app_version, APP_VERSION_SIZE) &&
                   fits(job->system_id, SYSTEM_ID_SIZE) && fits(job->queue, QUEUE_NAME_SIZE) &&
                   fits(job->idempotency_key, 129) && fits(job->tags, 4097);
    return all_fit ? ERR_OK
                   : err_set(err, ERR_INVALID, "a text of the job is longer than its column");
}

/* ---- idempotency keys ----------------------------------------------------------------------- */

/* Whose key it is: ours now, or that of an earlier job, which is the answer for the same body. */
static enum err_code look_up_key(struct txn *txn, struct job_entry *entry, struct err *err)
{
    const struct job_new *job = entry->job;
    uint8_t hash[32];
    struct uuid id;
    bool found = false;
    enum err_code rc =
        db_one(txn->db, DB_IDEM_GET,
               DB_ARGS(db_text(job->tenant), db_text(job->owner), db_text(job->idempotency_key)),
               DB_COLS(COL_BYTES(hash), COL_UUID(&id)), &found, err);
    if (rc)
        return rc;
    if (!found) { /* it was forgotten meanwhile */
        txn->again = true;
        return err_set(err, ERR_DUPLICATE, "the key is being used by another request");
    }
    if (uuid_eq(&id, &job->id))
        return ERR_OK;
    char text[UUID_TEXT_SIZE];
    entry->settled = true;
    if (memcmp(hash, job->body_hash, sizeof(hash)) != 0)
        (void)err_set(&entry->fault, ERR_IDEMPOTENCY,
                      "the idempotency key '%s' was used for a request with another body, that of "
                      "job %s; take a new key for a new job",
                      job->idempotency_key, uuid_text(&id, text));
    else
        *entry->done = (struct job_submitted){.id = id, .replayed = true};
    return ERR_OK;
}

static enum err_code use_keys(struct txn *txn, const struct submission *sub, struct err *err)
{
    size_t count = 0;
    uint64_t fresh = 0;
    for (size_t i = 0; i < sub->count; i++) {
        if (!sub->entries[i].settled && sub->entries[i].job->idempotency_key)
            sub->some[count++] = &sub->entries[i];
    }
    enum err_code rc = job_insert_keys(txn->db, sub->some, count, &fresh, err);
    for (size_t i = 0; rc == ERR_OK && fresh < count && i < count; i++)
        rc = look_up_key(txn, sub->some[i], err);
    return rc;
}

/* ---- the transaction ------------------------------------------------------------------------ */

static enum err_code submit(struct txn *txn, void *ctx, struct err *err)
{
    const struct submission *sub = ctx;
    struct err failed = {0};
    size_t count = 0;
    for (size_t i = 0; i < sub->count; i++) {
        err_clear(&sub->entries[i].fault);
        sub->entries[i].settled = check(sub->entries[i].job, &sub->entries[i].fault) != ERR_OK;
    }
    enum err_code rc = use_keys(txn, sub, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < sub->count; i++) {
        const struct job_entry *entry = &sub->entries[i];
        if (sub->all_or_none && entry->fault.code) {
            *err = entry->fault;
            return err->code;
        }
        if (!entry->settled)
            sub->some[count++] = &sub->entries[i];
    }
    if (count == 0)
        return ERR_OK;
    rc = job_insert_rows(txn->db, sub->some, count, &failed);
    /* The ids are ours alone: if one is there, an earlier try was committed, and done still holds
     * the numbers of its outbox rows. */
    if (rc == ERR_DUPLICATE && txn->commit_unknown) {
        db_rollback(txn->db); /* the rows that came behind the duplicate */
        return ERR_OK;
    }
    if (rc)
        *err = failed;
    FAULT("job.submit.before_commit");
    return rc;
}

static enum err_code submit_entries(struct store *store, struct submission *sub, struct err *err)
{
    enum err_code rc = store_txn(store, submit, sub, err);
    if (rc == ERR_OK)
        FAULT("job.submit.after_commit");
    return rc;
}

enum err_code job_store_submit(struct store *store, const struct job_new *job,
                               struct job_submitted *ret, struct err *err)
{
    struct job_submitted done = {0};
    struct job_entry entry = {.job = job, .done = &done};
    struct job_entry *some = NULL;
    struct submission sub = {.entries = &entry, .some = &some, .count = 1};
    enum err_code rc = submit_entries(store, &sub, err);
    if (rc == ERR_OK && entry.fault.code) {
        *err = entry.fault;
        return err->code;
    }
    if (rc == ERR_OK)
        *ret = done;
    return rc;
}

/* ---- many ----------------------------------------------------------------------------------- */

static void submission_done(struct submission *sub)
{
    free(sub->entries);
    free(sub->some);
}

static enum err_code submission_init(struct submission *sub, size_t count, struct err *err)
{
    *sub = (struct submission){.entries = calloc(count + 1, sizeof(*sub->entries)),
                               .some = calloc(count + 1, sizeof(struct job_entry *)),
                               .count = count};
    return sub->entries && sub->some ? ERR_OK : err_set(err, ERR_NOMEM, "out of memory");
}

enum err_code job_store_submit_many(struct store *store, const struct job_new *jobs, size_t count,
                                    struct job_submitted *ret, struct err *err)
{
    struct submission sub;
    enum err_code rc = submission_init(&sub, count, err);
    for (size_t i = 0; rc == ERR_OK && i < count; i++) {
        rc = check(&jobs[i], err);
        sub.entries[i] = (struct job_entry){.job = &jobs[i], .done = &ret[i]};
    }
    sub.all_or_none = true;
    if (rc == ERR_OK)
        rc = submit_entries(store, &sub, err);
    submission_done(&sub);
    return rc;
}

static void submit_alone(struct store *store, struct job_item *item)
{
    err_clear(&item->err);
    item->err.code = job_store_submit(store, &item->job, &item->done, &item->err);
}

/* Nothing that one of them could be blamed for: it would meet each of them. */
static bool is_of_all(enum err_code rc)
{
    return rc == ERR_DB_AWAY || rc == ERR_STOPPING || rc == ERR_NOMEM;
}

void job_store_submit_group(struct store *store, struct job_item *const *items, size_t count)
{
    struct submission sub;
    struct err err = {0};
    enum err_code rc = submission_init(&sub, count, &err);
    for (size_t i = 0; rc == ERR_OK && i < count; i++)
        sub.entries[i] = (struct job_entry){.job = &items[i]->job, .done = &items[i]->done};
    if (rc == ERR_OK)
        rc = submit_entries(store, &sub, &err);
    for (size_t i = 0; i < count; i++) {
        if (rc == ERR_OK)
            items[i]->err = sub.entries[i].fault;
        else if (count == 1 || is_of_all(rc))
            items[i]->err = err;
        else
            submit_alone(store, items[i]);
    }
    submission_done(&sub);
}

struct forget {
    uint32_t hours;
    uint32_t limit;
    uint64_t rows;
};

static enum err_code forget_keys(struct txn *txn, void *ctx, struct err *err)
{
    struct forget *forget = ctx;
    return db_exec(txn->db, DB_IDEM_FORGET, DB_ARGS(db_u64(forget->hours), db_u64(forget->limit)),
                   &forget->rows, err);
}

enum err_code job_store_forget_keys(struct store *store, uint32_t hours, uint32_t limit,
                                    uint64_t *ret_rows, struct err *err)
{
    struct forget forget = {.hours = hours, .limit = limit};
    enum err_code rc = store_once(store, forget_keys, &forget, err);
    if (rc == ERR_OK)
        *ret_rows = forget.rows;
    return rc;
}
