/* SPDX-License-Identifier: MIT */
#include "worker/home.h"

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/log.h"
#include "common/service/daemon.h"
#include "worker/runner/journal_file.h"

#include <errno.h>
#include <unistd.h>

#define IDENTITY_FILE "identity"
#define LOOKS_PER_BEAT 4

static enum err_code make(struct worker *w, struct err *err)
{
    char text[UUID_TEXT_SIZE];
    w->home = uuid_v7();
    (void)uuid_text(&w->home, text);
    return fs_write_sync(w->work_fd, IDENTITY_FILE, sv_of(text), 0600, err);
}

enum err_code home_open(struct worker *w, struct err *err)
{
    BUF_AUTO struct buf bytes = BUF_INIT(64);
    struct err missing = {0};
    enum err_code rc = fs_read(w->work_fd, IDENTITY_FILE, &bytes, &missing);
    if (rc == ERR_NOT_FOUND)
        return make(w, err);
    if (rc == ERR_OK && uuid_parse((struct sv){bytes.ptr, bytes.len}, &w->home))
        return ERR_OK;
    return err_set(err, ERR_CONFIG,
                   "%s/" IDENTITY_FILE " is not the id of a work folder (%s); if no job of this "
                   "worker runs, delete it: another one is made",
                   w->work_dir, rc ? missing.text : "it holds something else");
}

/* ---- copies -------------------------------------------------------------------------------- */

/* Former incarnations that may live elsewhere. One of this name and boot cannot: we hold its lock.
 */
static enum err_code find_strange(struct worker *w, struct worker_row **ret_rows, size_t *ret_count,
                                  struct err *err)
{
    struct worker_row *rows = NULL;
    size_t all = 0;
    size_t count = 0;
    enum err_code rc = worker_store_former(w->store, &w->home, &rows, &all, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < all; i++) {
        if (strcmp(rows[i].name, w->cfg->worker_name) != 0 ||
            strcmp(rows[i].boot_id, w->boot_id) != 0)
            rows[count++] = rows[i];
    }
    *ret_rows = rows;
    *ret_count = count;
    return ERR_OK;
}

static bool has_beaten(const struct worker_row *before, const struct worker_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (uuid_eq(&before->id, &rows[i].id))
            return rows[i].beat != before->beat;
    }
    return false;
}

/* One look at those that were found before. */
static enum err_code look(struct worker *w, const struct worker_row *before, size_t count,
                          bool *ret_live, struct err *err)
{
    struct worker_row *rows = NULL;
    size_t now_count = 0;
    enum err_code rc = find_strange(w, &rows, &now_count, err);
    for (size_t i = 0; rc == ERR_OK && i < count; i++)
        *ret_live = *ret_live || has_beaten(&before[i], rows, now_count);
    free(rows);
    return rc;
}

/* The runs that its journal tells of are those of the other worker. */
static enum err_code renew(struct worker *w, struct err *err)
{
    log_event(LOG_WARN, "worker.folder.copied", LOG_S("dir", w->work_dir));
    for (size_t i = 0; i < JOURNAL_FILES; i++) {
        if (unlinkat(w->work_fd, journal_names[i], 0) != 0 && errno != ENOENT)
            return err_set_errno(err, ERR_IO, errno, "cannot remove %s/%s", w->work_dir,
                                 journal_names[i]);
    }
    return make(w, err);
}

enum err_code home_check(struct worker *w, struct err *err)
{
    struct worker_row *before = NULL;
    size_t count = 0;
    bool live = false;
    int64_t beat_ms = w->cfg->fleet_beat_ms;
    int64_t until_ms = clock_mono_ms() + 2 * beat_ms;
    enum err_code rc = find_strange(w, &before, &count, err);
    while (rc == ERR_OK && count > 0 && !live && clock_mono_ms() < until_ms) {
        if (daemon_sleep_until(clock_mono_ms() + beat_ms / LOOKS_PER_BEAT))
            rc = err_set(err, ERR_STOPPING, "stopped while looking for copies of the folder");
        else
            rc = look(w, before, count, &live, err);
    }
    free(before);
    return rc == ERR_OK && live ? renew(w, err) : rc;
}
