/* SPDX-License-Identifier: MIT */
#include "worker/runner/runner.h"

#include "common/base/fs.h"

#include <fcntl.h>
#include <unistd.h>

#define DEPTH_MAX 64 /* of the worker in its service manager's tree; jobs may be deeper */
#define STAT_MAX ((size_t)4096)

enum err_code peer_make_secret(struct runner *runner, struct err *err)
{
    static const char hex[] = "0123456789abcdef";
    uint8_t bytes[(RUNNER_SECRET_SIZE - 1) / 2];
    random_bytes(bytes, sizeof(bytes));
    for (size_t i = 0; i < sizeof(bytes); i++) {
        runner->secret[2 * i] = hex[bytes[i] >> 4];
        runner->secret[2 * i + 1] = hex[bytes[i] & 15];
    }
    runner->secret[RUNNER_SECRET_SIZE - 1] = 0;
    return fs_write_sync(runner->work_dir, RUNNER_SECRET, sv_of(runner->secret), 0600, err);
}

/* As long for a wrong one as for the right one. */
bool peer_knows_secret(const struct runner *runner, const char *secret)
{
    unsigned differs = 0;
    if (strlen(secret) != RUNNER_SECRET_SIZE - 1)
        return false;
    for (size_t i = 0; i < RUNNER_SECRET_SIZE - 1; i++)
        differs |= (unsigned char)secret[i] ^ (unsigned char)runner->secret[i];
    return differs == 0;
}

/* 0: above it is nothing that we see; -1: the process is gone. */
static pid_t parent_of(int proc, pid_t pid)
{
    char path[32];
    int parent = 0;
    struct err ignored = {0};
    BUF_AUTO struct buf bytes = BUF_INIT(STAT_MAX);
    (void)snprintf(path, sizeof(path), "%d/stat", (int)pid);
    if (fs_read(proc, path, &bytes, &ignored) != ERR_OK)
        return -1;
    const char *rest = strrchr(buf_text(&bytes), ')'); /* the name before it may hold anything */
    /* NOLINTNEXTLINE(cert-err34-c): the kernel writes the number */
    return rest && sscanf(rest, ") %*c %d", &parent) == 1 ? (pid_t)parent : -1;
}

bool peer_is_job(pid_t pid)
{
    FD_AUTO int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    pid_t self = getpid();
    for (int depth = 0; depth < DEPTH_MAX; depth++) {
        pid_t parent = proc < 0 ? -1 : parent_of(proc, pid);
        if (parent == 0 || parent == 1)
            return false;
        if (parent < 0 || parent == self)
            return true;
        pid = parent;
    }
    return true;
}
