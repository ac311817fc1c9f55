/* SPDX-License-Identifier: MIT */
#include "worker/runner/journal.h"

#include "common/base/log.h"
#include "worker/runner/journal_file.h"

/* The latest frame of each run that is held. */
struct latest {
    struct sv *texts;
    size_t count;
    size_t capacity;
};

static struct sv key_of(struct sv text)
{
    const char *end = text.len > 0 ? memchr(text.ptr, ' ', text.len) : NULL;
    return (struct sv){text.ptr, end ? (size_t)(end - text.ptr) : text.len};
}

static bool same_key(struct sv a, struct sv b)
{
    a = key_of(a);
    b = key_of(b);
    return a.len == b.len && memcmp(a.ptr, b.ptr, a.len) == 0;
}

static bool latest_put(struct latest *latest, struct sv text)
{
    size_t at = latest->count; /* from the end: most frames follow closely on the one before */
    while (at > 0 && !same_key(latest->texts[at - 1], text))
        at--;
    if (at > 0) {
        latest->texts[at - 1] = text;
        return true;
    }
    if (latest->count == latest->capacity) {
        size_t capacity = latest->capacity ? latest->capacity * 2 : 64;
        struct sv *grown = realloc(latest->texts, capacity * sizeof(*grown));
        if (!grown)
            return false;
        latest->texts = grown;
        latest->capacity = capacity;
    }
    latest->texts[latest->count++] = text;
    return true;
}

static void latest_drop(struct latest *latest, struct sv text)
{
    for (size_t i = 0; i < latest->count; i++) {
        if (same_key(latest->texts[i], text)) {
            latest->texts[i] = latest->texts[--latest->count];
            return;
        }
    }
}

static bool collect(struct sv bytes, struct latest *latest)
{
    struct journal_frame frame = {0};
    struct journal_frame before = {0};
    size_t at = 0;
    while (journal_frame_take(bytes, &at, at > 0 ? &before : NULL, &frame)) {
        if (frame.kind == JOURNAL_JOB && !latest_put(latest, frame.text))
            return false;
        if (frame.kind == JOURNAL_FORGET)
            latest_drop(latest, frame.text);
        before = frame;
    }
    return true;
}

static bool parse(struct sv text, struct runner_job *ret_job)
{
    struct err err = {0};
    size_t skip = key_of(text).len + 1;
    json_t *json = skip < text.len
                       ? json_loadb(text.ptr + skip, text.len - skip, JSON_REJECT_DUPLICATES, NULL)
                       : NULL;
    enum err_code rc = runner_job_parse(json, ret_job, &err);
    json_decref(json);
    if (rc)
        log_event(LOG_WARN, "runner.record.unreadable", LOG_S("detail", err.text));
    return rc == ERR_OK;
}

enum err_code journal_read(int work_dir_fd, bool (*each)(void *arg, const struct runner_job *job),
                           void *arg, struct err *err)
{
    BUF_AUTO struct buf bytes = BUF_INIT(JOURNAL_MAX);
    struct latest latest = {0};
    uint64_t generation = 0;
    size_t file = 0;
    enum err_code rc = journal_files_read(work_dir_fd, &bytes, &generation, &file, err);
    if (rc == ERR_OK && !collect(buf_sv(&bytes), &latest))
        rc = err_set(err, ERR_NOMEM, "no memory for the journal");
    for (size_t i = 0; rc == ERR_OK && i < latest.count; i++) {
        struct runner_job job = {0};
        if (parse(latest.texts[i], &job) && !each(arg, &job))
            break;
    }
    free(latest.texts);
    return rc;
}
