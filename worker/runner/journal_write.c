/* SPDX-License-Identifier: MIT */
#include "worker/runner/journal_inside.h"

#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/base/log.h"
#include "common/base/wake.h"

#include <errno.h>
#include <unistd.h>

#define RETRY_MS 500 /* after a write that failed */
#define FORGET_MS 50 /* forgotten runs are collected this long before they are written */

void journal_queue_add(struct queue *queue, struct journal_entry *entry)
{
    entry->queued = NULL;
    if (!queue->first)
        queue->last = &queue->first;
    *queue->last = entry;
    queue->last = &entry->queued;
}

/* ---- writing; file_lock is held ------------------------------------------------------------ */

static void put_frame(struct journal *journal, enum journal_kind kind, struct sv text)
{
    struct journal_frame frame = {kind, journal->generation, journal->number++, text};
    journal_frame_put(&journal->bytes, &frame);
}

/* What was put goes to the file. */
static enum err_code write_frames(struct journal *journal, struct err *err)
{
    size_t done = 0;
    bool failed = journal->bytes.failed;
    FAULT("runner.journal.hang");
    while (!failed && done < journal->bytes.len) {
        ssize_t size = pwrite(journal->files[journal->current], journal->bytes.ptr + done,
                              journal->bytes.len - done, (off_t)(journal->at + done));
        failed = size <= 0 && errno != EINTR;
        done += size > 0 ? (size_t)size : 0;
    }
    int error = journal->bytes.failed ? ENOMEM : errno;
    journal->bytes.failed = false;
    buf_clear(&journal->bytes);
    journal->at += done;
    if (!failed)
        return ERR_OK;
    journal->fresh = true;
    return err_set_errno(err, ERR_IO, error, "cannot write the journal");
}

/* The next generation, in the other file; what is durable stays whole until this one is. */
static enum err_code turn_over(struct journal *journal, struct err *err)
{
    if (!journal->synced && !journal->fresh && fdatasync(journal->files[journal->current]) == 0)
        journal->synced = true;
    if (journal->synced)
        journal->current = !journal->current;
    journal->synced = false;
    journal->fresh = false;
    journal->generation++;
    journal->number = journal->at = 0;
    (void)pthread_mutex_lock(&journal->lock);
    for (struct journal_entry *entry = journal->held; entry; entry = entry->next) {
        if (entry->text.len > 0)
            put_frame(journal, JOURNAL_JOB, buf_sv(&entry->text));
    }
    (void)pthread_mutex_unlock(&journal->lock);
    put_frame(journal, JOURNAL_SEAL, SV(""));
    enum err_code rc = write_frames(journal, err);
    journal->room = journal->at > JOURNAL_SIZE / 2 ? 2 * journal->at : JOURNAL_SIZE;
    return rc;
}

static enum err_code make_room(struct journal *journal, size_t size, struct err *err)
{
    if (!journal->fresh && journal->at + size <= journal->room)
        return ERR_OK;
    return turn_over(journal, err);
}

static size_t text_size(struct journal *journal, const struct journal_entry *entry)
{
    (void)pthread_mutex_lock(&journal->lock);
    size_t size = entry->text.len;
    (void)pthread_mutex_unlock(&journal->lock);
    return size + FRAME_EXTRA;
}

enum err_code journal_write_one(struct journal *journal, const struct journal_entry *entry,
                                struct err *err)
{
    (void)pthread_mutex_lock(&journal->file_lock);
    enum err_code rc = make_room(journal, text_size(journal, entry), err);
    if (rc == ERR_OK) {
        (void)pthread_mutex_lock(&journal->lock);
        put_frame(journal, JOURNAL_JOB, buf_sv(&entry->text));
        (void)pthread_mutex_unlock(&journal->lock);
        rc = write_frames(journal, err);
    }
    (void)pthread_mutex_unlock(&journal->file_lock);
    return rc;
}

void journal_drop(struct journal *journal, struct journal_entry *entry)
{
    *entry->at = entry->next;
    if (entry->next)
        entry->next->at = entry->at;
    entry->next = journal->forgotten;
    journal->forgotten = entry;
}

static size_t batch_size(struct journal *journal, const struct journal_entry *batch)
{
    size_t size = 0;
    (void)pthread_mutex_lock(&journal->lock);
    for (const struct journal_entry *entry = batch; entry; entry = entry->queued)
        size += entry->text.len + FRAME_EXTRA;
    for (const struct journal_entry *entry = journal->forgotten; entry; entry = entry->next)
        size += KEY_SIZE + FRAME_EXTRA;
    (void)pthread_mutex_unlock(&journal->lock);
    return size;
}

/* What changed or was forgotten since the room was made may go beyond it: a file may grow. */
static enum err_code write_batch(struct journal *journal, const struct journal_entry *batch,
                                 struct err *err)
{
    enum err_code rc = make_room(journal, batch_size(journal, batch), err);
    if (rc)
        return rc;
    (void)pthread_mutex_lock(&journal->lock);
    for (const struct journal_entry *entry = batch; entry; entry = entry->queued)
        put_frame(journal, JOURNAL_JOB, buf_sv(&entry->text));
    while (journal->forgotten) {
        struct journal_entry *entry = journal->forgotten;
        journal->forgotten = entry->next;
        put_frame(journal, JOURNAL_FORGET, sv_of(entry->key));
        buf_done(&entry->text);
        free(entry);
    }
    (void)pthread_mutex_unlock(&journal->lock);
    return write_frames(journal, err);
}

/* ---- the thread ---------------------------------------------------------------------------- */

/* lock is held. */
static void settle_batch(struct journal *journal, struct journal_entry *batch, bool done)
{
    bool told = false;
    while (batch) {
        struct journal_entry *entry = batch;
        batch = entry->queued;
        if (!done || entry->again) {
            entry->again = false;
            entry->place = QUEUED;
            journal_queue_add(&journal->asked, entry);
        } else {
            entry->place = KEPT;
            journal_queue_add(&journal->kept, entry);
            told = true;
        }
    }
    if (told)
        wake_raise(journal->wake);
}

/* Writes the batch and syncs it; notes meanwhile may go on. No lock is held. */
static enum err_code make_durable(struct journal *journal, const struct journal_entry *batch,
                                  struct err *err)
{
    (void)pthread_mutex_lock(&journal->file_lock);
    enum err_code rc = batch && FAULT_FAILS("runner.record.write")
                           ? err_set(err, ERR_IO, "a failure point")
                           : write_batch(journal, batch, err);
    uint64_t generation = journal->generation;
    int fd = journal->files[journal->current];
    if (rc == ERR_OK && batch) {
        (void)pthread_mutex_unlock(&journal->file_lock);
        if (fdatasync(fd) != 0)
            rc = err_set_errno(err, ERR_IO, errno, "cannot sync the journal");
        (void)pthread_mutex_lock(&journal->file_lock);
    }
    if (rc == ERR_OK && batch && generation == journal->generation)
        journal->synced = true;
    if (rc && generation == journal->generation)
        journal->fresh = true;
    (void)pthread_mutex_unlock(&journal->file_lock);
    return rc;
}

/* One batch; false: the disk did not take it. lock is held before and after. */
static bool keep_asked(struct journal *journal, bool log_failure)
{
    struct err err = {0};
    struct journal_entry *batch = journal->asked.first;
    journal->asked.first = NULL;
    for (struct journal_entry *entry = batch; entry; entry = entry->queued)
        entry->place = WRITING;
    (void)pthread_mutex_unlock(&journal->lock);
    enum err_code rc = make_durable(journal, batch, &err);
    if (rc && log_failure)
        log_err("runner.record.failed", &err);
    (void)pthread_mutex_lock(&journal->lock);
    settle_batch(journal, batch, rc == ERR_OK);
    return rc == ERR_OK;
}

static void wait_until(struct journal *journal, int64_t until_ms, bool for_ends)
{
    while (!journal->stop && !(for_ends && journal->asked.first) &&
           clock_cond_wait_until(&journal->news, &journal->lock, until_ms))
        continue;
}

void *journal_main(void *arg)
{
    struct journal *journal = arg; /* close joins us before it frees it */
    bool healthy = true;
    (void)pthread_mutex_lock(&journal->lock);
    for (;;) {
        while (!journal->stop && !journal->asked.first && !journal->forgotten)
            (void)pthread_cond_wait(&journal->news, &journal->lock);
        if (!journal->asked.first)
            wait_until(journal, clock_mono_ms() + FORGET_MS, true);
        bool last = journal->stop;
        healthy = keep_asked(journal, healthy);
        if (last)
            break;
        if (!healthy)
            wait_until(journal, clock_mono_ms() + RETRY_MS, false);
    }
    (void)pthread_mutex_unlock(&journal->lock);
    return NULL;
}
