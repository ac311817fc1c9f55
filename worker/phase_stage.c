/* SPDX-License-Identifier: MIT */
#include "worker/run.h"

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/log.h"
#include "common/base/shown_url.h"
#include "worker/fetch.h"
#include "worker/run_block.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

static bool interrupted(void *arg)
{
    const struct run *run = arg;
    return slot_mail(run->slot) & (MAIL_CANCEL | MAIL_FENCED | MAIL_LEAVE);
}

static enum err_code fill(struct run *run, const struct job_input *input, int fd,
                          struct fetch_cause *cause, struct err *err)
{
    const struct config *cfg = run->w->cfg;
    if (!input->source_url) {
        const char *at = input->content.ptr;
        for (size_t left = input->content.len; left > 0;) {
            ssize_t done = write(fd, at, left);
            if (done < 0 && errno != EINTR)
                return err_set_errno(err, ERR_IO, errno, "cannot write it");
            at += done > 0 ? done : 0;
            left -= done > 0 ? (size_t)done : 0;
        }
        return ERR_OK;
    }
    struct fetch fetch = {
        .url = input->source_url,
        .fd = fd,
        .max_bytes = cfg->worker_input_max_bytes,
        .deadline_ms = clock_mono_ms() + cfg->worker_stage_timeout_ms,
        .timeout_ms = cfg->worker_stage_timeout_ms,
        .roots = &cfg->worker_file_roots,
        .link_local = cfg->worker_input_link_local,
        .arg = run,
        .interrupted = interrupted,
        .cause = cause,
    };
    return fetch_run(&fetch, err);
}

static enum err_code stage_input(struct run *run, int home_fd, const struct job_input *input,
                                 struct fetch_cause *cause, struct err *err)
{
    FD_AUTO int fd = -1;
    enum err_code rc = ERR_OK;
    const char *slash = strrchr(input->target_path, '/');
    if (slash) {
        char *parent = strndup(input->target_path, (size_t)(slash - input->target_path));
        if (!parent)
            return err_set(err, ERR_NOMEM, "no memory for a path");
        rc = fs_make_dirs(home_fd, parent, 0755, NULL, err);
        free(parent);
    }
    if (rc == ERR_OK)
        rc = fs_open_beneath(home_fd, input->target_path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW,
                             0600, &fd, err);
    if (rc == ERR_OK)
        rc = fill(run, input, fd, cause, err);
    if (rc == ERR_OK && fchmod(fd, input->mode) != 0)
        rc = err_set_errno(err, ERR_IO, errno, "cannot set its mode");
    return rc;
}

static bool is_full(const struct err *err)
{
    return err->sys_errno == ENOSPC || err->sys_errno == EDQUOT;
}

static void name_input(const struct job_input *input, struct err *err)
{
    char shown[SHOWN_URL_SIZE];
    if (input->source_url)
        err_prefix(err, "input %.80s (%s): ", input->target_path,
                   shown_url(input->source_url, shown));
    else
        err_prefix(err, "input %.100s: ", input->target_path);
}

/* The disk is full of others' files: else it never had room for this job. */
static bool may_fit(const struct run *run)
{
    struct statvfs disk;
    uint64_t own_bytes = 0;
    struct err err = {0};
    if (fs_tree_size(run->w->work_fd, run->dir, &own_bytes, &err) ||
        fstatvfs(run->w->work_fd, &disk) != 0)
        return true;
    return own_bytes < (uint64_t)disk.f_blocks * disk.f_frsize / 2;
}

struct obstacle { /* an input that could not be had */
    const struct job_input *input;
    struct fetch_cause cause;
    struct err err;
};

static enum phase_result failed(struct run *run, struct obstacle *found)
{
    struct err *err = &found->err;
    bool full = is_full(err);
    bool waits = full && may_fit(run);
    name_input(found->input, err);
    if (full)
        run_remove_dir(run); /* others may need the room meanwhile */
    if (waits) {
        log_err("worker.disk.full", err);
        return run_disk_full(run);
    }
    if (found->cause.condition)
        return run_block_input(run, &found->cause, err);
    return run_fail(run, JOB_COND_INPUT_FAILED, err);
}

enum phase_result phase_stage(struct run *run)
{
    FD_AUTO int home_fd = -1;
    struct err err = {0};
    if (run->request->input_count == 0) /* the runner makes the folder */
        return run_interrupted(run);
    if (run_has_remote_inputs(run)) {
        enum phase_result result = run_commit_now(run); /* it may take a while: say so */
        if (result != PHASE_DONE)
            return result;
    }
    if (fs_make_dirs(run->w->work_fd, run->dir, 0700, &home_fd, &err))
        return is_full(&err) ? run_disk_full(run) : run_fail(run, JOB_COND_START_FAILED, &err);
    struct obstacle first = {0};
    for (size_t i = 0; i < run->request->input_count; i++) {
        const struct job_input *input = &run->request->inputs[i];
        struct obstacle found = {.input = input};
        enum phase_result result = run_interrupted(run);
        if (result != PHASE_DONE)
            return result;
        if (stage_input(run, home_fd, input, &found.cause, &found.err) == ERR_OK)
            continue;
        result = run_interrupted(run);
        if (result != PHASE_DONE)
            return result;
        /* One that can never be had is worth more than one to wait for: it is looked for, until a
         * second one would have to be waited for, too. */
        if (!found.cause.condition || first.input)
            return failed(run, found.cause.condition ? &first : &found);
        first = found;
    }
    return first.input ? failed(run, &first) : run_interrupted(run);
}
