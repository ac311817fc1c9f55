/* SPDX-License-Identifier: MIT */
#include "worker/sweep.h"

#include "common/base/fs.h"
#include "common/base/log.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define JOBS "jobs"

static bool is_found(const char *path, const struct runner_job *found, size_t count)
{
    char dir[RUNNER_DIR_SIZE];
    for (size_t i = 0; i < count; i++) {
        if (strcmp(path, runner_job_dir(&found[i].job, found[i].run, dir)) == 0)
            return true;
    }
    return false;
}

void sweep_run_dirs(struct worker *w, const struct runner_job *found, size_t count)
{
    int fd = -1;
    struct err err = {0};
    const struct dirent *entry = NULL;
    if (fs_open_beneath(w->work_fd, JOBS, O_RDONLY | O_DIRECTORY, 0, &fd, &err))
        return; /* no run was here yet */
    DIR *jobs = fdopendir(fd);
    if (!jobs) {
        (void)close(fd);
        return;
    }
    while ((entry = readdir(jobs)) != NULL) { /* NOLINT(concurrency-mt-unsafe): own DIR */
        char path[sizeof(JOBS "/") + NAME_MAX];
        (void)snprintf(path, sizeof(path), JOBS "/%s", entry->d_name);
        if (entry->d_name[0] == '.' || is_found(path, found, count))
            continue;
        log_event(LOG_INFO, "worker.dir.swept", LOG_S("dir", path));
        err_clear(&err);
        if (fs_remove_tree(w->work_fd, path, &err))
            log_err("worker.dir.kept", &err);
    }
    (void)closedir(jobs);
}
