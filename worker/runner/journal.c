/* SPDX-License-Identifier: MIT */
#include "worker/runner/journal.h"

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/spare.h"
#include "worker/runner/journal_inside.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- opening ------------------------------------------------------------------------------- */

/* Bytes that are there already need no change of the file's size when they are synced. */
static enum err_code fill(int fd, struct err *err)
{
    static const char zeros[4096];
    struct stat status;
    if (fstat(fd, &status) != 0)
        return err_set_errno(err, ERR_IO, errno, "cannot look at the journal");
    size_t at = (size_t)status.st_size;
    if (at >= JOURNAL_SIZE)
        return ERR_OK;
    while (at < JOURNAL_SIZE) {
        size_t size = sizeof(zeros) - at % sizeof(zeros);
        ssize_t done = pwrite(fd, zeros, size, (off_t)at);
        if (done <= 0)
            return err_set_errno(err, ERR_IO, errno, "cannot fill the journal");
        at += (size_t)done;
    }
    return fsync(fd) == 0 ? ERR_OK : err_set_errno(err, ERR_IO, errno, "cannot sync the journal");
}

static enum err_code open_files(struct journal *journal, int work_dir, struct err *err)
{
    enum err_code rc = ERR_OK;
    for (size_t i = 0; i < JOURNAL_FILES && rc == ERR_OK; i++) {
        rc = fs_open_beneath(work_dir, journal_names[i], O_RDWR | O_CREAT | O_NOFOLLOW, 0600,
                             &journal->files[i], err);
        if (rc == ERR_OK)
            rc = fill(journal->files[i], err);
    }
    if (rc == ERR_OK && fsync(work_dir) != 0)
        rc = err_set_errno(err, ERR_IO, errno, "cannot sync the worker's directory");
    return rc;
}

static enum err_code find_current(struct journal *journal, int work_dir, struct err *err)
{
    BUF_AUTO struct buf bytes = BUF_INIT(JOURNAL_MAX);
    return journal_files_read(work_dir, &bytes, &journal->generation, &journal->current, err);
}

enum err_code journal_open(int work_dir_fd, int wake_fd, struct journal **ret_journal,
                           struct err *err)
{
    sigset_t all;
    sigset_t before;
    struct journal *journal = calloc(1, sizeof(*journal));
    if (!journal)
        return err_set(err, ERR_NOMEM, "no memory for the journal");
    *journal = (struct journal){.wake = wake_fd,
                                .files = {-1, -1},
                                .fresh = true,
                                .synced = true,
                                .bytes = BUF_INIT(JOURNAL_MAX)};
    (void)pthread_mutex_init(&journal->file_lock, NULL);
    (void)pthread_mutex_init(&journal->lock, NULL);
    clock_cond_init(&journal->news);
    enum err_code rc = find_current(journal, work_dir_fd, err);
    if (rc == ERR_OK)
        rc = open_files(journal, work_dir_fd, err);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = rc ? 0 : pthread_create(&journal->thread, NULL, journal_main, journal);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    journal->has_thread = rc == ERR_OK && error == 0;
    if (error)
        rc = err_set_errno(err, ERR_NOMEM, error, "cannot start a thread");
    if (rc) {
        journal_close(journal);
        return rc;
    }
    *ret_journal = journal;
    return ERR_OK;
}

static void free_list(struct journal_entry *entry)
{
    while (entry) {
        struct journal_entry *next = entry->next;
        buf_done(&entry->text);
        free(entry);
        entry = next;
    }
}

void journal_close(struct journal *journal)
{
    if (!journal)
        return;
    (void)pthread_mutex_lock(&journal->lock);
    journal->stop = true;
    (void)pthread_cond_signal(&journal->news);
    (void)pthread_mutex_unlock(&journal->lock);
    if (journal->has_thread)
        (void)pthread_join(journal->thread, NULL);
    for (size_t i = 0; i < JOURNAL_FILES; i++)
        fd_close(&journal->files[i]);
    free_list(journal->held);
    free_list(journal->forgotten);
    buf_done(&journal->bytes);
    (void)pthread_cond_destroy(&journal->news);
    (void)pthread_mutex_destroy(&journal->lock);
    (void)pthread_mutex_destroy(&journal->file_lock);
    free(journal);
}

/* ---- calls --------------------------------------------------------------------------------- */

struct journal_entry *journal_add(struct journal *journal, const struct uuid *job, uint64_t run,
                                  void *owner)
{
    char text[UUID_TEXT_SIZE];
    struct journal_entry *entry = calloc(1, sizeof(*entry));
    if (!entry)
        return NULL;
    entry->owner = owner;
    entry->text = BUF_INIT(JOURNAL_SIZE);
    (void)snprintf(entry->key, sizeof(entry->key), "%s.%llu", uuid_text(job, text),
                   (unsigned long long)run);
    (void)pthread_mutex_lock(&journal->lock);
    entry->next = journal->held;
    entry->at = &journal->held;
    if (entry->next)
        entry->next->at = &entry->next;
    journal->held = entry;
    (void)pthread_mutex_unlock(&journal->lock);
    return entry;
}

static enum err_code make_text(const struct journal_entry *entry, const struct runner_job *job,
                               struct buf *ret_text, struct err *err)
{
    json_t *json = runner_job_json(job);
    TEXT_AUTO char *text = json ? spare_text(json_dumps(json, JSON_COMPACT)) : NULL;
    json_decref(json);
    *ret_text = BUF_INIT(JOURNAL_SIZE);
    if (text && buf_add_text(ret_text, entry->key) && buf_add_text(ret_text, " ") &&
        buf_add_text(ret_text, text))
        return ERR_OK;
    buf_done(ret_text);
    return err_set_errno(err, ERR_NOMEM, ENOMEM, "no memory to note a run");
}

enum err_code journal_hold(struct journal *journal, struct journal_entry *entry,
                           const struct runner_job *job, struct err *err)
{
    struct buf text;
    enum err_code rc = make_text(entry, job, &text, err);
    if (rc)
        return rc;
    (void)pthread_mutex_lock(&journal->lock);
    buf_done(&entry->text);
    entry->text = text;
    (void)pthread_mutex_unlock(&journal->lock);
    return ERR_OK;
}

enum err_code journal_note(struct journal *journal, struct journal_entry *entry,
                           const struct runner_job *job, struct err *err)
{
    enum err_code rc = journal_hold(journal, entry, job, err);
    return rc ? rc : journal_write_one(journal, entry, err);
}

enum err_code journal_keep(struct journal *journal, struct journal_entry *entry,
                           const struct runner_job *job, struct err *err)
{
    enum err_code rc = journal_hold(journal, entry, job, err);
    if (rc)
        return rc;
    (void)pthread_mutex_lock(&journal->lock);
    if (entry->place == AT_REST) {
        entry->place = QUEUED;
        if (!journal->asked.first)
            (void)pthread_cond_signal(&journal->news);
        journal_queue_add(&journal->asked, entry);
    } else if (entry->place != QUEUED) {
        entry->again = true;
    }
    (void)pthread_mutex_unlock(&journal->lock);
    return ERR_OK;
}

void *journal_kept(struct journal *journal)
{
    void *owner = NULL;
    (void)pthread_mutex_lock(&journal->lock);
    while (!owner && journal->kept.first) {
        struct journal_entry *entry = journal->kept.first;
        journal->kept.first = entry->queued;
        entry->place = AT_REST;
        owner = entry->owner;
        if (entry->again && !entry->forgotten) {
            entry->again = false;
            entry->place = QUEUED;
            journal_queue_add(&journal->asked, entry);
            (void)pthread_cond_signal(&journal->news);
            owner = NULL;
        } else if (entry->forgotten) {
            journal_drop(journal, entry);
        }
    }
    (void)pthread_mutex_unlock(&journal->lock);
    return owner;
}

void journal_forget(struct journal *journal, struct journal_entry *entry)
{
    (void)pthread_mutex_lock(&journal->lock);
    entry->owner = NULL;
    entry->forgotten = true;
    if (entry->place == AT_REST) {
        if (!journal->forgotten && !journal->asked.first)
            (void)pthread_cond_signal(&journal->news);
        journal_drop(journal, entry);
    }
    (void)pthread_mutex_unlock(&journal->lock);
}
