/* SPDX-License-Identifier: MIT */
#include "worker/run.h"

#include "common/base/fault.h"
#include "common/base/fs.h"
#include "common/base/log.h"
#include "worker/archive.h"
#include "worker/disk_room.h"

#include <errno.h>
#include <fcntl.h>

/* Beyond these the copying takes long enough to be seen as a state of its own. */
#define QUICK_FILES 64
#define QUICK_BYTES ((uint64_t)8 * 1024 * 1024)

static bool interrupted(void *arg)
{
    const struct run *run = arg;
    return slot_mail(run->slot) & (MAIL_CANCEL | MAIL_FENCED | MAIL_LEAVE);
}

static bool wanted(const struct run *run)
{
    if (!run->request || run->request->includes.count == 0)
        return false;
    return run->request->archive == ARCHIVE_ALWAYS ||
           (run->request->archive == ARCHIVE_ON_SUCCESS && run->end.state == JOB_FINISHED);
}

/* The files were not kept: a job that went well did not, then; one that failed keeps its reason. */
static enum phase_result failed(struct run *run, struct err *err)
{
    char room[DISK_ROOM_SIZE];
    const struct outcome end = run->end;
    if (err->sys_errno == ENOSPC || err->sys_errno == EDQUOT)
        err_prefix(err,
                   "%s: ", disk_room_text(run->w->archive_fd, "archive.root", run->w->host, room));
    enum phase_result result = run_fail(run, JOB_COND_ARCHIVE_FAILED, err);
    if (result == PHASE_SHORT)
        return result;
    log_err("worker.archive.failed", err);
    if (end.state == JOB_FINISHED)
        return result;
    run->end = end;
    return PHASE_DONE;
}

/* A job that went well says which of its patterns were of no use: most likely they are wrong. */
static void tell_unmet(struct run *run, const struct archive_plan *plan)
{
    if (run->end.state == JOB_FINISHED && plan->unmet[0])
        (void)snprintf(run->end.reason, sizeof(run->end.reason), "no file matched --keep %s",
                       plan->unmet);
}

static enum phase_result copy(struct run *run, int home_fd, const struct archive_plan *plan)
{
    char path[TENANT_SIZE + UUID_TEXT_SIZE + 40];
    FD_AUTO int target_fd = -1;
    struct err err = {0};
    if (plan->count > QUICK_FILES || plan->bytes > QUICK_BYTES) {
        enum phase_result result = run_commit_now(run);
        if (result != PHASE_DONE)
            return result;
    }
    (void)snprintf(path, sizeof(path), "%s/%s/%llu/files", run->job->tenant, run->id_text,
                   (unsigned long long)run->run);
    enum err_code rc = fs_make_dirs(run->w->archive_fd, path, 0755, &target_fd, &err);
    if (rc == ERR_OK)
        rc = archive_copy(home_fd, target_fd, plan, interrupted, run, &err);
    if (rc == ERR_STOPPING)
        return run_interrupted(run);
    return rc ? failed(run, &err) : PHASE_DONE;
}

enum phase_result phase_archive(struct run *run)
{
    const struct config *cfg = run->w->cfg;
    struct archive_limits limits = {cfg->archive_max_files, cfg->archive_max_bytes};
    ARCHIVE_PLAN_AUTO struct archive_plan plan = {0};
    FD_AUTO int home_fd = -1;
    struct err err = {0};
    if (wanted(run)) {
        enum err_code rc = fs_open_beneath(run->w->work_fd, run->dir,
                                           O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, &home_fd, &err);
        if (rc == ERR_OK)
            rc = archive_scan(home_fd, run->request, &limits, &plan, &err);
        enum phase_result result = PHASE_DONE;
        if (rc)
            result = failed(run, &err);
        else if (plan.count)
            result = copy(run, home_fd, &plan);
        if (result != PHASE_DONE)
            return result;
        tell_unmet(run, &plan);
    }
    FAULT("worker.output_kept");
    return PHASE_DONE;
}
