/* SPDX-License-Identifier: MIT */
#include "worker/runner/procs.h"

#include "common/base/buf.h"
#include "common/base/fs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define ENVIRON_MAX ((size_t)4 * 1024 * 1024)
#define STAT_MAX ((size_t)4096)
#define CHILDREN_MAX ((size_t)1024 * 1024)
#define DEPTH_MAX 100000
#define LOOKS_MAX 3

struct proc {
    pid_t pid;
    pid_t parent;
    pid_t group;
    pid_t session;
    char state;
    unsigned long long started; /* ticks since boot: with the pid, names a process for ever */
    enum { ORIGIN_UNREAD, ORIGIN_NONE, ORIGIN_KNOWN } origin; /* what its environment says */
    struct uuid job;
    uint64_t run;
};

struct table {
    struct proc *at;
    size_t count;
    size_t capacity;
    bool fresh;  /* filled since procs_refresh */
    bool unsure; /* memory was short, or a parent went while we looked */
};

/* One view serves all jobs that are swept in one go; the runner has one thread. */
static struct table view;
static int proc_fd = -1; /* of /proc, once it was needed */

/* Reads a file of /proc/<pid>; false if the process is gone. */
static bool read_file(pid_t pid, const char *name, struct buf *ret_bytes)
{
    char path[64];
    struct err ignored = {0};
    (void)snprintf(path, sizeof(path), "%d/%s", (int)pid, name);
    return fs_read(proc_fd, path, ret_bytes, &ignored) == ERR_OK;
}

static bool read_stat(pid_t pid, struct proc *ret_proc)
{
    BUF_AUTO struct buf bytes = BUF_INIT(STAT_MAX);
    if (!read_file(pid, "stat", &bytes))
        return false;
    const char *rest = strrchr(buf_text(&bytes), ')'); /* the name before it may hold anything */
    struct proc proc = {.pid = pid};
    /* NOLINTNEXTLINE(cert-err34-c): the kernel writes the numbers */
    if (!rest || sscanf(rest,
                        ") %c %d %d %d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
                        "%*d %llu",
                        &proc.state, &proc.parent, &proc.group, &proc.session, &proc.started) != 5)
        return false;
    *ret_proc = proc;
    return true;
}

static int by_pid(const void *a, const void *b)
{
    pid_t left = ((const struct proc *)a)->pid;
    pid_t right = ((const struct proc *)b)->pid;
    return (left > right) - (left < right);
}

static struct proc *find(const struct table *table, pid_t pid)
{
    struct proc wanted = {.pid = pid};
    return bsearch(&wanted, table->at, table->count, sizeof(wanted), by_pid);
}

static bool table_add(struct table *table, const struct proc *proc)
{
    if (table->count == table->capacity) {
        size_t capacity = table->capacity ? table->capacity * 2 : 512;
        struct proc *grown = realloc(table->at, capacity * sizeof(*grown));
        if (!grown)
            return false;
        table->at = grown;
        table->capacity = capacity;
    }
    table->at[table->count++] = *proc;
    return true;
}

/* A process number, or 0 if the name is none. */
static pid_t pid_of(const char *name)
{
    uint64_t number = 0;
    return sv_u64(sv_of(name), INT32_MAX, &number) ? (pid_t)number : 0;
}

/* All processes, by number. */
static void look(struct table *table)
{
    if (proc_fd < 0)
        proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int fd = proc_fd < 0 ? -1 : openat(proc_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry = NULL;
    table->count = 0;
    table->unsure = dir == NULL;
    while (dir && (entry = readdir(dir)) != NULL) { /* NOLINT(concurrency-mt-unsafe) */
        pid_t pid = pid_of(entry->d_name);
        struct proc proc = {0};
        if (pid > 0 && read_stat(pid, &proc) && !table_add(table, &proc))
            table->unsure = true;
    }
    if (dir)
        (void)closedir(dir);
    else
        fd_close(&fd);
    if (table->count > 0)
        qsort(table->at, table->count, sizeof(*table->at), by_pid);
    table->fresh = !table->unsure;
}

void procs_refresh(void)
{
    view.fresh = false;
}

/* The value of a variable, ptr NULL if it is not there. */
static struct sv environ_value(const struct buf *bytes, const char *name)
{
    size_t length = strlen(name);
    const char *at = buf_text(bytes);
    const char *end = at + bytes->len;
    while (at < end) {
        size_t size = strnlen(at, (size_t)(end - at));
        if (size > length && at[length] == '=' && memcmp(at, name, length) == 0)
            return (struct sv){at + length + 1, size - length - 1};
        at += size + 1;
    }
    return (struct sv){NULL, 0};
}

/* Which run a process says it belongs to; false if it says nothing. */
static bool read_origin(struct proc *proc)
{
    if (proc->origin != ORIGIN_UNREAD)
        return proc->origin == ORIGIN_KNOWN;
    BUF_AUTO struct buf bytes = BUF_INIT(ENVIRON_MAX);
    proc->origin = ORIGIN_NONE;
    if (!read_file(proc->pid, "environ", &bytes))
        return false;
    struct sv job = environ_value(&bytes, "SLUICE_JOB_ID");
    struct sv run = environ_value(&bytes, "SLUICE_FENCE");
    if (job.ptr && run.ptr && uuid_parse(job, &proc->job) && sv_u64(run, INT64_MAX, &proc->run))
        proc->origin = ORIGIN_KNOWN;
    return proc->origin == ORIGIN_KNOWN;
}

static int compare_pids(const void *a, const void *b)
{
    pid_t left = *(const pid_t *)a;
    pid_t right = *(const pid_t *)b;
    return (left > right) - (left < right);
}

static bool is_main(const pid_t *mains, size_t count, pid_t pid)
{
    return count > 0 && bsearch(&pid, mains, count, sizeof(pid), compare_pids) != NULL;
}

static bool is_live(const struct proc *proc)
{
    return proc->state != 'Z' && proc->state != 'X' && proc->state != 'x';
}

static bool belongs(struct table *table, struct proc *proc, const struct procs_job *job)
{
    pid_t runner = getpid();
    struct proc *at = proc;
    for (int depth = 0; depth < DEPTH_MAX && at->pid != runner; depth++) {
        if (at->pid == job->main || at->session == job->main || at->group == job->main)
            return true;
        if (at->parent <= 1 || is_main(job->mains, job->main_count, at->pid))
            return false;
        struct proc *parent = find(table, at->parent);
        if (!parent) {
            table->unsure = true;
            return false;
        }
        at = parent;
    }
    if (job->alone)
        return true;
    for (at = proc; at && at->pid != runner; at = find(table, at->parent)) {
        if (read_origin(at) && at->run == job->run && uuid_eq(&at->job, &job->job))
            return true;
    }
    return false;
}

/* The process as it was seen, not another one that got its number since. */
static void signal_process(const struct proc *seen, int signal_number)
{
    FD_AUTO int pidfd = pidfd_open(seen->pid, 0);
    struct proc now;
    if (pidfd >= 0 && read_stat(seen->pid, &now) && now.started == seen->started)
        (void)pidfd_send_signal(pidfd, signal_number, NULL, 0);
}

/* The numbers in the file, or NULL. */
static char *read_children(struct buf *ret_bytes)
{
    static int fd = -1; /* as long as the process lives */
    char chunk[4096];
    char path[64];
    ssize_t got = 0;
    if (fd < 0) {
        (void)snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
        fd = open(path, O_RDONLY | O_CLOEXEC);
    }
    do {
        got = pread(fd, chunk, sizeof(chunk), (off_t)ret_bytes->len);
        if (got > 0 && !buf_add(ret_bytes, chunk, (size_t)got))
            return NULL;
    } while (got == (ssize_t)sizeof(chunk) || (got < 0 && errno == EINTR));
    if (got < 0)
        return NULL;
    return buf_add(ret_bytes, "", 1) ? ret_bytes->ptr : NULL;
}

bool procs_orphans(void)
{
    BUF_AUTO struct buf bytes = BUF_INIT(CHILDREN_MAX);
    char *at = read_children(&bytes);
    bool found = at == NULL;
    for (char *word = at ? strsep(&at, " ") : NULL; word; word = strsep(&at, " ")) {
        pid_t pid = pid_of(word);
        if (pid > 0 && waitpid(pid, NULL, WNOHANG) != pid)
            found = true;
    }
    return found;
}

size_t procs_signal(const struct procs_job *job, int signal_number)
{
    size_t count = 0;
    for (int looks = 0; looks < LOOKS_MAX; looks++) {
        if (!view.fresh)
            look(&view);
        for (size_t i = 0; i < view.count; i++) {
            struct proc *proc = &view.at[i];
            if (proc->pid == getpid() || !is_live(proc) || !belongs(&view, proc, job))
                continue;
            signal_process(proc, signal_number);
            count++;
        }
        if (count > 0 || !view.unsure)
            break;
        view.fresh = false;
    }
    return count;
}

static struct procs_lost *find_lost(struct procs_lost *runs, size_t count, const struct uuid *job,
                                    uint64_t run)
{
    for (size_t i = 0; i < count; i++) {
        if (runs[i].run == run && uuid_eq(&runs[i].job, job))
            return &runs[i];
    }
    return NULL;
}

size_t procs_signal_lost(struct procs_lost *runs, size_t count, int signal_number)
{
    size_t total = 0;
    look(&view);
    for (size_t i = 0; i < count; i++)
        runs[i].left = 0;
    for (size_t i = 0; i < view.count; i++) {
        struct proc *proc = &view.at[i];
        if (proc->pid == getpid() || !is_live(proc) || !read_origin(proc))
            continue;
        struct procs_lost *lost = find_lost(runs, count, &proc->job, proc->run);
        if (!lost)
            continue;
        signal_process(proc, signal_number);
        lost->left++;
        total++;
    }
    return total;
}
