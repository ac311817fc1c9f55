/* SPDX-License-Identifier: MIT */
#include "worker/run.h"

#include "common/base/fs.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

/* The highest number among the folders of the job's runs; 0 if there is none. Takes dir_fd. */
static uint64_t highest_run(int dir_fd)
{
    uint64_t highest = 0;
    DIR *dir = fdopendir(dir_fd);
    const struct dirent *entry = NULL;
    if (!dir) {
        fd_close(&dir_fd);
        return 0;
    }
    while ((entry = readdir(dir))) { /* NOLINT(concurrency-mt-unsafe): own DIR */
        uint64_t number = 0;
        if (sv_u64(sv_of(entry->d_name), UINT64_MAX, &number) && number > highest)
            highest = number;
    }
    (void)closedir(dir);
    return highest;
}

static struct job_stream size_of(int archive_fd, const char *dir, const char *stream)
{
    char path[TENANT_SIZE + UUID_TEXT_SIZE + 40];
    struct stat st;
    FD_AUTO int fd = -1;
    struct err err = {0};
    (void)snprintf(path, sizeof(path), "%s/%s", dir, stream);
    if (fs_open_beneath(archive_fd, path, O_RDONLY | O_NONBLOCK, 0, &fd, &err) ||
        fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        return (struct job_stream){0};
    return (struct job_stream){(uint64_t)st.st_size, (uint64_t)st.st_size};
}

void kept_output_find(const struct run *run, struct job_outcome *row)
{
    char dir[TENANT_SIZE + UUID_TEXT_SIZE + 24];
    int fd = -1;
    struct err err = {0};
    int length = snprintf(dir, sizeof(dir), "%s/%s", run->job->tenant, run->id_text);
    if (fs_open_beneath(run->w->archive_fd, dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, &fd, &err))
        return;
    row->run_fence = highest_run(fd);
    if (row->run_fence == 0)
        return;
    (void)snprintf(dir + length, sizeof(dir) - (size_t)length, "/%llu",
                   (unsigned long long)row->run_fence);
    row->out = size_of(run->w->archive_fd, dir, "stdout");
    row->errs = size_of(run->w->archive_fd, dir, "stderr");
}
