/* SPDX-License-Identifier: MIT */
#include "webapp/job_run.h"

#include "common/base/fs.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_SIZE 256

/* The greatest number among the names; 0: none. A run that is adopted by a restarted worker keeps
 * its folder though the fence rises, so the row's fence does not name it. */
static uint64_t newest_run(int job_fd)
{
    uint64_t newest = 0;
    int fd = openat(job_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir) {
        fd_close(&fd);
        return 0;
    }
    struct dirent *entry = NULL;
    while ((entry = readdir(dir)) != NULL) {
        uint64_t run = 0;
        if (sv_u64(sv_of(entry->d_name), INT64_MAX, &run) && run > newest)
            newest = run;
    }
    (void)closedir(dir);
    return newest;
}

enum err_code job_run_open(int archive_fd, const struct job *job, int *ret_fd, uint64_t *ret_run,
                           struct err *err)
{
    FD_AUTO int job_fd = -1;
    char path[PATH_SIZE];
    char id[UUID_TEXT_SIZE];
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;
    if (job_state_ends(job->status) && job->run_fence == 0)
        return err_set(err, ERR_NOT_FOUND, "the job never ran");
    (void)snprintf(path, sizeof(path), "%s/%s", job->tenant, uuid_text(&job->id, id));
    enum err_code rc = fs_open_beneath(archive_fd, path, flags, 0, &job_fd, err);
    if (rc)
        return rc;
    uint64_t run = job_state_ends(job->status) ? job->run_fence : newest_run(job_fd);
    (void)snprintf(path, sizeof(path), "%llu", (unsigned long long)run);
    rc = fs_open_beneath(job_fd, path, flags, 0, ret_fd, err);
    if (rc == ERR_OK)
        *ret_run = run;
    return rc;
}

enum err_code job_run_file(int run_fd, const char *path, int *ret_fd, uint64_t *ret_size,
                           struct err *err)
{
    FD_AUTO int fd = -1;
    struct stat status;
    /* O_NONBLOCK: a pipe that somebody left there must not hold us. */
    enum err_code rc =
        fs_open_beneath(run_fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0, &fd, err);
    if (rc)
        return rc;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
        return err_set(err, ERR_NOT_FOUND, "%s is not a file", path);
    *ret_size = (uint64_t)status.st_size;
    *ret_fd = fd;
    fd = -1;
    return ERR_OK;
}
