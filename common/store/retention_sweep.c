/* SPDX-License-Identifier: MIT */
/* The walk through the archive. */
#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/log.h"
#include "common/store/job_store.h"
#include "common/store/retention_impl.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

struct sweep {
    struct retention_pass *pass;
    int64_t limit_us;
    int tenant_fd;
    struct uuid ids[RETENTION_AT_ONCE];
    size_t count;
};

/* Ids begin with the milliseconds of their time; the version stands behind it. */
static bool is_older(const struct uuid *id, int64_t limit_us)
{
    uint64_t ms = 0;
    for (int i = 0; i < 6; i++)
        ms = ms << 8 | id->bytes[i];
    return id->bytes[6] >> 4 == 7 && (int64_t)ms < limit_us / 1000;
}

static void look_at(struct sweep *sweep, const struct uuid *id, bool has_job)
{
    struct retention_report *report = &sweep->pass->report;
    char text[UUID_TEXT_SIZE];
    struct err err = {0};
    uint64_t bytes = 0;
    struct err ignored = {0};
    enum err_code rc = ERR_OK;
    (void)!fs_tree_size(sweep->tenant_fd, uuid_text(id, text), &bytes,
                        &ignored); /* or not counted */
    report->archive_jobs++;
    report->archive_bytes += bytes;
    if (has_job || !is_older(id, sweep->limit_us))
        return;
    if (!sweep->pass->is_dry)
        rc = fs_remove_tree(sweep->tenant_fd, text, &err);
    if (rc) {
        report->failed++;
        log_event(LOG_WARN, "retention.output.stays", LOG_S("job", text),
                  LOG_S("detail", err.text));
        return;
    }
    report->orphans++;
    report->bytes += bytes;
    report->archive_jobs--;
    report->archive_bytes -= bytes;
}

static enum err_code flush(struct sweep *sweep, struct err *err)
{
    enum job_state states[RETENTION_AT_ONCE];
    int64_t began_ms = clock_mono_ms();
    enum err_code rc = job_store_states(sweep->pass->store, sweep->ids, sweep->count, states, err);
    for (size_t i = 0; rc == ERR_OK && i < sweep->count; i++)
        look_at(sweep, &sweep->ids[i], states[i] != JOB_STATE_COUNT);
    sweep->count = 0;
    return rc ? rc : retention_rest(sweep->pass, began_ms, err);
}

/* A folder of the archive, for reading its names; NULL: it is none (any more). */
static DIR *open_folder(int dir_fd, const char *name)
{
    FD_AUTO int fd = -1;
    struct err ignored = {0};
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;
    if (fs_open_beneath(dir_fd, name, flags, 0, &fd, &ignored) != ERR_OK)
        return NULL;
    DIR *dir = fdopendir(fd);
    if (dir)
        fd = -1;
    return dir;
}

static enum err_code sweep_tenant(struct sweep *sweep, const char *tenant, struct err *err)
{
    DIR *dir = open_folder(sweep->pass->archive_fd, tenant);
    struct dirent *entry = NULL;
    enum err_code rc = ERR_OK;
    if (!dir)
        return ERR_OK;
    sweep->tenant_fd = dirfd(dir);
    while (rc == ERR_OK && (entry = readdir(dir)) != NULL) { /* NOLINT(concurrency-mt-unsafe) */
        if (!uuid_parse(sv_of(entry->d_name), &sweep->ids[sweep->count]))
            continue;
        if (++sweep->count == RETENTION_AT_ONCE)
            rc = flush(sweep, err);
    }
    if (rc == ERR_OK && sweep->count > 0)
        rc = flush(sweep, err);
    (void)closedir(dir);
    return rc;
}

#define MARK ".site-"

bool retention_archive_is_ours(const struct retention_pass *pass, int64_t created_us)
{
    FD_AUTO int fd = -1;
    char mark[64];
    struct err err = {0};
    struct dirent *entry = NULL;
    bool is_ours = true;
    (void)snprintf(mark, sizeof(mark), MARK "%" PRId64, created_us);
    if (!pass->is_dry && fs_open_beneath(pass->archive_fd, mark, O_WRONLY | O_CREAT | O_NOFOLLOW,
                                         0644, &fd, &err) != ERR_OK) {
        log_event(LOG_WARN, "retention.archive.unmarked", LOG_S("detail", err.text));
        return false;
    }
    DIR *dir = open_folder(pass->archive_fd, ".");
    while (dir && is_ours && (entry = readdir(dir)) != NULL) { /* NOLINT(concurrency-mt-unsafe) */
        if (strncmp(entry->d_name, MARK, strlen(MARK)) != 0 || strcmp(entry->d_name, mark) == 0)
            continue;
        is_ours = false;
        if (pass->sweeps)
            log_event(LOG_WARN, "retention.archive.shared", LOG_S("mark", entry->d_name),
                      LOG_S("ours", mark));
    }
    if (dir)
        (void)closedir(dir);
    return dir && is_ours;
}

enum err_code retention_sweep(struct retention_pass *pass, int64_t limit_us, struct err *err)
{
    struct sweep *sweep = calloc(1, sizeof(*sweep));
    DIR *dir = open_folder(pass->archive_fd, ".");
    struct dirent *entry = NULL;
    enum err_code rc = ERR_OK;
    if (!sweep || !dir)
        rc = err_set(err, sweep ? ERR_IO : ERR_NOMEM, "the archive cannot be read");
    if (sweep) {
        sweep->pass = pass;
        sweep->limit_us = limit_us;
    }
    while (rc == ERR_OK && (entry = readdir(dir)) != NULL) { /* NOLINT(concurrency-mt-unsafe) */
        bool is_tenant =
            entry->d_name[0] != '.' && (!pass->tenant || strcmp(entry->d_name, pass->tenant) == 0);
        if (is_tenant)
            rc = sweep_tenant(sweep, entry->d_name, err);
    }
    if (dir)
        (void)closedir(dir);
    free(sweep);
    if (rc)
        return rc;
    pass->report.swept = true;
    if (pass->is_dry || pass->tenant)
        return ERR_OK;
    return retention_store_swept(pass->store, &pass->holder, pass->report.archive_jobs,
                                 pass->report.archive_bytes, err);
}
