/* SPDX-License-Identifier: MIT */
#include "worker/runner/launch.h"

#include "common/base/fault.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"
#define CANDIDATES_MAX 256
#define REPORT_FD 3 /* in the child, from when everything else is in place */
#define LIMITS_MAX 6

enum step { STEP_SETUP, STEP_CHDIR, STEP_LIMITS, STEP_EXEC };
static const char *const step_names[] = {"setup", "chdir", "limits", "exec"};

struct report {
    int step;
    int error;
};

/* All that the child needs. */
struct plan {
    char **paths;      /* programs to try, in this order, ended by NULL */
    char **argv;       /* as given */
    char **shell_argv; /* "/bin/sh", the program, its arguments: for a script without #! */
    char **env;
    struct {
        __rlimit_resource_t resource;
        struct rlimit value;
    } limits[LIMITS_MAX];
    size_t limit_count;
    pid_t runner;
    int working_dir;
    int null;
    int out;
    int err;
    int report;
};

static const char *path_of(const char *const *env)
{
    for (size_t i = 0; env[i]; i++) {
        if (strncmp(env[i], "PATH=", 5) == 0)
            return env[i] + 5;
    }
    return DEFAULT_PATH;
}

/* As execvpe(3) looks for a program, but before the fork. */
static bool find_candidates(const struct runner_start *start, char **paths)
{
    const char *program = start->argv[0] ? start->argv[0] : "";
    if (strchr(program, '/') || !program[0]) {
        paths[0] = strdup(program);
        return paths[0] != NULL;
    }
    const char *at = path_of(start->env);
    for (size_t count = 0; count < CANDIDATES_MAX; count++) {
        size_t length = strcspn(at, ":");
        const char *slash = length ? "/" : ""; /* an empty element is the working directory */
        if (asprintf(&paths[count], "%.*s%s%s", (int)length, at, slash, program) < 0) {
            paths[count] = NULL;
            return false;
        }
        if (!at[length])
            break;
        at += length + 1;
    }
    return true;
}

/* Never above what the runner itself may have. */
static void add_limit(struct plan *plan, __rlimit_resource_t resource, uint64_t soft, uint64_t hard)
{
    struct rlimit now;
    if (getrlimit(resource, &now) != 0)
        return;
    if (hard > now.rlim_max)
        hard = now.rlim_max;
    if (soft > hard)
        soft = hard;
    plan->limits[plan->limit_count].resource = resource;
    plan->limits[plan->limit_count].value = (struct rlimit){.rlim_cur = soft, .rlim_max = hard};
    plan->limit_count++;
}

static void plan_limits(struct plan *plan, const struct runner_limits *limits, uint64_t soft_files)
{
    if (limits->memory_bytes)
        add_limit(plan, RLIMIT_DATA, limits->memory_bytes, limits->memory_bytes);
    if (limits->cpu_s)
        add_limit(plan, RLIMIT_CPU, limits->cpu_s, limits->cpu_s + 1);
    if (limits->processes)
        add_limit(plan, RLIMIT_NPROC, limits->processes, limits->processes);
    if (limits->file_bytes)
        add_limit(plan, RLIMIT_FSIZE, limits->file_bytes, limits->file_bytes);
    if (limits->open_files)
        add_limit(plan, RLIMIT_NOFILE, limits->open_files, limits->open_files);
    else
        add_limit(plan, RLIMIT_NOFILE, soft_files, RLIM_INFINITY);
}

static char **lend(const char *const *list)
{
    union { /* execve takes pointers to char, and does not write there */
        const char *const *lent;
        char **taken;
    } either = {list};
    return either.taken;
}

static void plan_done(struct plan *plan)
{
    for (size_t i = 0; plan->paths && plan->paths[i]; i++)
        free(plan->paths[i]);
    free(plan->paths);
    free(plan->shell_argv);
    fd_close(&plan->null);
    fd_close(&plan->out);
    fd_close(&plan->err);
    fd_close(&plan->report);
}

static bool plan_words(struct plan *plan, const struct runner_start *start)
{
    static char shell[] = "/bin/sh";
    size_t count = 0;
    while (start->argv[count])
        count++;
    plan->argv = lend(start->argv);
    plan->env = lend(start->env);
    plan->paths = calloc(CANDIDATES_MAX + 1, sizeof(*plan->paths));
    plan->shell_argv = calloc(count + 2, sizeof(*plan->shell_argv));
    if (!plan->paths || !plan->shell_argv || !find_candidates(start, plan->paths))
        return false;
    plan->shell_argv[0] = shell; /* [1] is the program, known once one was found */
    for (size_t i = 1; i < count; i++)
        plan->shell_argv[i + 1] = plan->argv[i];
    return true;
}

/* ---- in the child: async-signal-safe calls only ---- */

static _Noreturn void child_fails(const struct plan *plan, int report, enum step step, int error)
{
    struct report what = {(int)step, error};
    ssize_t done = write(report >= 0 ? report : plan->report, &what, sizeof(what));
    (void)done;
    _exit(127);
}

static void child_signals(void)
{
    static const unsigned long action[8]; /* the kernel's struct: all zero is SIG_DFL */
    sigset_t none;
    /* Not sigaction: it keeps the C library's own two signals, which posix_spawn had ignored. */
    for (int number = 1; number < NSIG; number++)
        (void)syscall(SYS_rt_sigaction, number, action, NULL, (size_t)(NSIG / 8));
    (void)sigemptyset(&none);
    (void)pthread_sigmask(SIG_SETMASK, &none, NULL);
}

static void child_ties(const struct plan *plan)
{
    if (setsid() < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        child_fails(plan, -1, STEP_SETUP, errno);
    if (getppid() != plan->runner) /* it died before it could be heard */
        _exit(127);
}

static void child_files(const struct plan *plan)
{
    (void)umask(077);
    if (fchdir(plan->working_dir) != 0)
        child_fails(plan, -1, STEP_CHDIR, errno);
    if (dup2(plan->null, STDIN_FILENO) < 0 || dup2(plan->out, STDOUT_FILENO) < 0 ||
        dup2(plan->err, STDERR_FILENO) < 0)
        child_fails(plan, -1, STEP_SETUP, errno);
    if (plan->report != REPORT_FD && dup3(plan->report, REPORT_FD, O_CLOEXEC) < 0)
        child_fails(plan, -1, STEP_SETUP, errno);
    if (close_range(REPORT_FD + 1, ~0U, 0) != 0)
        child_fails(plan, REPORT_FD, STEP_SETUP, errno);
}

static bool is_elsewhere(int error) /* execvpe goes on to the next directory of PATH */
{
    return error == ENOENT || error == ENOTDIR || error == EACCES || error == ESTALE ||
           error == ENODEV || error == ETIMEDOUT;
}

static _Noreturn void child_execs(const struct plan *plan)
{
    int seen = 0;
    int error = ENOENT;
    for (size_t i = 0; plan->paths[i]; i++) {
        (void)execve(plan->paths[i], plan->argv, plan->env);
        error = errno;
        if (error == ENOEXEC) {
            plan->shell_argv[1] = plan->paths[i];
            (void)execve(plan->shell_argv[0], plan->shell_argv, plan->env);
        }
        if (error == EACCES)
            seen = error;
        if (!is_elsewhere(error))
            break;
        if (seen)
            error = seen;
    }
    child_fails(plan, REPORT_FD, STEP_EXEC, error);
}

static _Noreturn void child_main(const struct plan *plan)
{
    child_ties(plan);
    child_files(plan);
    for (size_t i = 0; i < plan->limit_count; i++) {
        if (setrlimit(plan->limits[i].resource, &plan->limits[i].value) != 0)
            child_fails(plan, REPORT_FD, STEP_LIMITS, errno);
    }
    child_signals(); /* last: until here nothing interrupts */
    child_execs(plan);
}

/* ---- in the runner ---- */

static bool open_pipe(int *ret_read, int *ret_write)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    *ret_read = ends[0];
    *ret_write = ends[1];
    return fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0;
}

static pid_t fork_blocked(const struct plan *plan)
{
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t pid = FAULT_FAILS("runner.fork") ? (errno = EAGAIN, -1) : fork();
    if (pid == 0)
        child_main(plan);
    int error = errno;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return pid;
}

static void launched_done(struct launched *launched)
{
    fd_close(&launched->pidfd);
    fd_close(&launched->report);
    fd_close(&launched->out);
    fd_close(&launched->err);
}

enum err_code launch(const struct runner_start *start, int working_dir, uint64_t soft_files,
                     struct launched *ret, const char **ret_step, struct err *err)
{
    __attribute__((cleanup(plan_done))) struct plan plan = {
        .runner = getpid(), .working_dir = working_dir, .out = -1, .err = -1, .report = -1};
    struct launched launched = {.pid = -1, .pidfd = -1, .report = -1, .out = -1, .err = -1};
    *ret_step = step_names[STEP_SETUP];
    plan.null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (plan.null < 0)
        return err_set_errno(err, ERR_IO, errno, "cannot open /dev/null");
    if (!plan_words(&plan, start))
        return err_set_errno(err, ERR_NOMEM, ENOMEM, "no memory to start a job");
    plan_limits(&plan, &start->limits, soft_files);
    bool ready = open_pipe(&launched.out, &plan.out) && open_pipe(&launched.err, &plan.err) &&
                 open_pipe(&launched.report, &plan.report);
    if (ready) {
        *ret_step = "fork";
        launched.pid = fork_blocked(&plan);
        ready = launched.pid > 0;
    }
    if (ready)
        launched.pidfd = pidfd_open(launched.pid, 0);
    if (!ready || launched.pidfd < 0) {
        (void)err_set_errno(err, ERR_IO, errno, "cannot start a process");
        if (launched.pid > 0 && kill(launched.pid, SIGKILL) == 0)
            (void)waitpid(launched.pid, NULL, 0);
        launched_done(&launched);
        return ERR_IO;
    }
    *ret = launched;
    return ERR_OK;
}

int launch_report(int report_fd, const char **ret_step, int *ret_errno)
{
    struct report what;
    ssize_t got = read(report_fd, &what, sizeof(what));
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return -1;
    if (got != (ssize_t)sizeof(what))
        return 0; /* closed by exec; or killed before it: its exit status tells */
    *ret_step = step_names[what.step];
    *ret_errno = what.error;
    return 1;
}
