/* SPDX-License-Identifier: MIT */

/* sluice-runner --dir DIR --name NAME: parent of the job processes of one worker. The worker's
 * client starts it; it puts itself into the background once it listens (exit code 0 of the first
 * process), or says why not: 75 if another one of this directory lives, else 1. It ends when no
 * job runs and the worker is gone for longer than its last ping granted, when the worker says so,
 * or on SIGTERM, which ends all jobs first (reason runner_stopped). */

#include "common/base/fs.h"
#include "common/base/log.h"
#include "common/base/spare.h"
#include "common/base/wake.h"
#include "worker/runner/runner.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#define FIRST_GRANT_MS 10000 /* for the worker to connect, and to ping */
#define LOG_MAX_BYTES (1024 * 1024)
#define BACKLOG 16

static enum err_code lock(struct runner *runner, bool *ret_other, struct err *err)
{
    enum err_code rc =
        fs_open_beneath(runner->work_dir, LOCK_FILE, O_RDWR | O_CREAT, 0600, &runner->lock, err);
    if (rc)
        return rc;
    *ret_other = flock(runner->lock, LOCK_EX | LOCK_NB) != 0; /* open and locked until we end */
    return ERR_OK;
}

/* The lock file tells people and tools which process it is. */
static void write_pid(const struct runner *runner)
{
    if (ftruncate(runner->lock, 0) != 0 || dprintf(runner->lock, "%d\n", (int)getpid()) < 0)
        log_event(LOG_WARN, "runner.pid.not_written");
}

static enum err_code open_log(int work_dir, struct err *err)
{
    FD_AUTO int fd = -1;
    struct stat status;
    if (fstatat(work_dir, LOG_FILE, &status, 0) == 0 && status.st_size > LOG_MAX_BYTES)
        (void)renameat(work_dir, LOG_FILE, work_dir, LOG_FILE ".1");
    enum err_code rc =
        fs_open_beneath(work_dir, LOG_FILE, O_WRONLY | O_CREAT | O_APPEND, 0600, &fd, err);
    if (rc)
        return rc;
    FD_AUTO int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(fd, STDOUT_FILENO) < 0 ||
        dup2(fd, STDERR_FILENO) < 0)
        return err_set_errno(err, ERR_IO, errno, "cannot open the standard descriptors");
    log_open("sluice-runner", STDOUT_FILENO, LOG_INFO);
    return ERR_OK;
}

/* A path to a socket may have 107 bytes, so it is reached through the open directory. */
static enum err_code listen_at(struct runner *runner, struct err *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s",
                   runner->work_dir, RUNNER_SOCKET);
    (void)unlinkat(runner->work_dir, RUNNER_SOCKET, 0);
    mode_t before = umask(0177);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    runner->listener.fd = fd;
    bool done = fd >= 0 && bind(fd, (const struct sockaddr *)&address, sizeof(address)) == 0 &&
                listen(fd, BACKLOG) == 0;
    int error = errno;
    (void)umask(before);
    return done ? ERR_OK : err_set_errno(err, ERR_IO, error, "cannot listen at %s", RUNNER_SOCKET);
}

static void raise_file_limit(struct runner *runner)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        return;
    runner->soft_files = files.rlim_cur;
    files.rlim_cur = files.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &files);
}

static enum err_code prepare(struct runner *runner, const char *dir, bool *ret_other,
                             struct err *err)
{
    enum err_code rc = fs_open_dir(dir, false, &runner->work_dir, err);
    if (rc == ERR_OK)
        rc = lock(runner, ret_other, err);
    if (rc == ERR_OK && !*ret_other)
        rc = open_log(runner->work_dir, err);
    if (rc == ERR_OK && !*ret_other)
        rc = peer_make_secret(runner, err);
    if (rc == ERR_OK && !*ret_other)
        rc = listen_at(runner, err);
    return rc;
}

/* A job must not inherit what this process ignores; nothing is handled here. */
static void reset_signals(void)
{
    struct kernel_action {
        unsigned long words[4];
    } action;
    /* Not sigaction: it keeps the C library's own two signals, which posix_spawn had ignored. */
    for (int number = 1; number < NSIG; number++) {
        const struct kernel_action defaults = {{0}};
        if (syscall(SYS_rt_sigaction, number, NULL, &action, (size_t)(NSIG / 8)) == 0 &&
            action.words[0] == (unsigned long)SIG_IGN)
            (void)syscall(SYS_rt_sigaction, number, &defaults, NULL, (size_t)(NSIG / 8));
    }
}

static enum err_code open_helpers(struct runner *runner, struct err *err)
{
    runner->helpers.fd = wake_open();
    if (runner->helpers.fd < 0)
        return err_set_errno(err, ERR_IO, errno, "cannot make a wake");
    int wake = runner->helpers.fd;
    enum err_code rc = journal_open(runner->work_dir, wake, &runner->journal, err);
    if (rc == ERR_OK)
        rc = confine_new(&runner->confine, err);
    struct starter_setup setup = {runner->work_dir, runner->journal, runner->confine,
                                  runner->soft_files, wake};
    if (rc == ERR_OK)
        rc = starter_open(&setup, &runner->starter, err);
    if (rc == ERR_OK)
        rc = writer_open(wake, &runner->writer, err);
    return rc;
}

/* In this order: the journal is last, so that it writes what the others left. */
static void close_helpers(struct runner *runner)
{
    starter_close(runner->starter);
    confine_free(runner->confine);
    writer_close(runner->writer);
    journal_close(runner->journal);
    fd_close(&runner->helpers.fd);
}

static int run(struct runner *runner)
{
    struct err err = {0};
    /* Not dumpable: no job may trace the process that watches over it. */
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0 || prctl(PR_SET_DUMPABLE, 0) != 0 || chdir("/") != 0)
        return EXIT_FAILURE;
    write_pid(runner);
    raise_file_limit(runner);
    runner->grant_until = protocol_boot_ms() + FIRST_GRANT_MS;
    log_event(LOG_INFO, "runner.started", LOG_S("name", runner->name));
    reset_signals();
    enum err_code rc = open_helpers(runner, &err);
    if (rc == ERR_OK) {
        lost_settle(runner);
        rc = runner_loop(runner, &err);
        close_helpers(runner);
    }
    (void)unlinkat(runner->work_dir, RUNNER_SOCKET, 0);
    if (rc) {
        log_err("runner.failed", &err);
        return EXIT_FAILURE;
    }
    log_event(LOG_INFO, "runner.ended", LOG_U("records", runner->run_count));
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"dir", required_argument, NULL, 'd'}, {"name", required_argument, NULL, 'n'}, {0}};
    static struct runner runner = {.work_dir = -1,
                                   .lock = -1,
                                   .epoll = -1,
                                   .peer = {.watch = {.fd = -1}},
                                   .guest = {.watch = {.fd = -1}},
                                   .listener = {.fd = -1}};
    const char *dir = NULL;
    struct err err = {0};
    bool other = false;
    int option = 0;
    /* Whatever started it: what the runner holds open outlives its worker, and no server would see
     * that the worker's connections have ended. */
    if (close_range(STDERR_FILENO + 1, ~0U, 0) != 0)
        return EXIT_FAILURE;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): there is one thread */
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'd')
            dir = optarg;
        else if (option == 'n')
            runner.name = optarg;
    }
    if (!dir || !runner.name || optind != argc) {
        (void)fprintf(stderr, "usage: sluice-runner --dir DIR --name NAME\n");
        return 2;
    }
    json_set_alloc_funcs(spare_malloc, spare_free);
    if (prepare(&runner, dir, &other, &err) != ERR_OK) {
        (void)fprintf(stderr, "sluice-runner: %s\n", err.text);
        return EXIT_FAILURE;
    }
    if (other)
        return EXIT_LOCKED;
    pid_t pid = fork();
    if (pid != 0)
        return pid > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
    return run(&runner);
}
