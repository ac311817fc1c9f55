/* SPDX-License-Identifier: MIT */
/* Longer than 400 lines: what the child runs stands beside what is prepared for it. */
#include "worker/runner/launch.h"

#include "common/base/clock.h"
#include "common/base/fault.h"
#include "worker/runner/filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"
#define CANDIDATES_MAX 256
#define LIMITS_MAX 8
#define STACK_BYTES ((size_t)64 * 1024)
#ifndef SYS_landlock_restrict_self
#define SYS_landlock_restrict_self 446
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SHARED_MEMORY 0 /* a sanitizer's notes about the memory are of one process */
#else
#define SHARED_MEMORY CLONE_VM
#endif
#define IN_CHILD __attribute__((no_sanitize("address", "undefined", "thread")))

enum step { STEP_SETUP, STEP_CHDIR, STEP_CONFINE, STEP_LIMITS, STEP_EXEC, STEP_INTERPRETER };
static const char *const step_names[] = {"setup",  "chdir", "confine",
                                         "limits", "exec",  RUNNER_STEP_INTERPRETER};

/* Filled by a child that could not start its program. */
struct report {
    int step;
    int error;
};

struct launcher {
    uint64_t soft_files;
    int null;
    char *stack;           /* of the child until it execs */
    struct report *report; /* shared memory */
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
    const struct confine_job *confinement; /* borrowed */
    int null;                              /* borrowed */
    int out;
    int err;
    struct report *report; /* borrowed */
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
    add_limit(plan, RLIMIT_NOFILE, soft_files,
              limits->open_files ? limits->open_files : RLIM_INFINITY);
    add_limit(plan, RLIMIT_CORE, 0, 0);
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
    fd_close(&plan->out);
    fd_close(&plan->err);
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

/* ---- in the child: bare system calls only -------------------------------------------------- */

IN_CHILD static _Noreturn void child_fails(const struct plan *plan, enum step step, int error)
{
    plan->report->step = (int)step;
    plan->report->error = error;
    for (;;)
        (void)syscall(SYS_exit_group, 127);
}

IN_CHILD static void child_ties(const struct plan *plan)
{
    if (syscall(SYS_setsid) < 0 || syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        child_fails(plan, STEP_SETUP, errno);
}

/* The signal at the runner's death is set after the change of the user, which takes it back. */
IN_CHILD static void child_confine(const struct plan *plan)
{
    const struct confine_job *confinement = plan->confinement;
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};
    if (confinement->other_user &&
        (syscall(SYS_setgroups, 0, NULL) != 0 ||
         syscall(SYS_setresgid, confinement->gid, confinement->gid, confinement->gid) != 0 ||
         syscall(SYS_setresuid, confinement->uid, confinement->uid, confinement->uid) != 0))
        child_fails(plan, STEP_CONFINE, errno);
    if (syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0)
        child_fails(plan, STEP_SETUP, errno);
    if (syscall(SYS_getppid) != plan->runner) /* it died before it could be heard */
        child_fails(plan, STEP_SETUP, ESRCH);
    if (syscall(SYS_capset, &header, none) != 0 ||
        (confinement->ruleset >= 0 &&
         syscall(SYS_landlock_restrict_self, confinement->ruleset, 0) != 0))
        child_fails(plan, STEP_CONFINE, errno);
}

/* A kernel without filters goes without. */
IN_CHILD static void child_filter(const struct plan *plan)
{
    if (plan->confinement->filtered && filter_program.len > 0 &&
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW,
                &filter_program) != 0 &&
        errno != ENOSYS && errno != EINVAL)
        child_fails(plan, STEP_CONFINE, errno);
}

IN_CHILD static void child_files(const struct plan *plan)
{
    (void)syscall(SYS_umask, 077);
    if (syscall(SYS_dup3, plan->null, STDIN_FILENO, 0) < 0 ||
        syscall(SYS_dup3, plan->out, STDOUT_FILENO, 0) < 0 ||
        syscall(SYS_dup3, plan->err, STDERR_FILENO, 0) < 0 ||
        syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, 0) != 0)
        child_fails(plan, STEP_SETUP, errno);
}

IN_CHILD static bool is_elsewhere(int error) /* execvpe goes on to the next directory of PATH */
{
    return error == ENOENT || error == ENOTDIR || error == EACCES || error == ESTALE ||
           error == ENODEV || error == ETIMEDOUT;
}

/* The kernel says the same of a script whose interpreter it does not find. */
IN_CHILD static bool is_there(const char *path)
{
    return syscall(SYS_faccessat, AT_FDCWD, path, F_OK) == 0;
}

IN_CHILD static _Noreturn void child_execs(const struct plan *plan)
{
    enum step step = STEP_EXEC;
    int seen = 0;
    int error = ENOENT;
    for (size_t i = 0; plan->paths[i]; i++) {
        (void)syscall(SYS_execve, plan->paths[i], plan->argv, plan->env);
        error = errno;
        if (error == ENOEXEC) {
            plan->shell_argv[1] = plan->paths[i];
            (void)syscall(SYS_execve, plan->shell_argv[0], plan->shell_argv, plan->env);
        }
        if (error == EACCES)
            seen = error;
        else if (error == ENOENT && is_there(plan->paths[i]))
            step = STEP_INTERPRETER;
        if (!is_elsewhere(error))
            break;
        if (seen)
            error = seen;
    }
    child_fails(plan, error == ENOENT ? step : STEP_EXEC, error);
}

IN_CHILD static int child_main(void *arg)
{
    const struct plan *plan = arg;
    const unsigned long no_signal = 0;
    child_ties(plan);
    if (syscall(SYS_fchdir, plan->confinement->working_dir) != 0)
        child_fails(plan, STEP_CHDIR, errno);
    child_confine(plan);
    child_files(plan);
    for (size_t i = 0; i < plan->limit_count; i++) {
        if (syscall(SYS_prlimit64, 0, plan->limits[i].resource, &plan->limits[i].value, NULL) != 0)
            child_fails(plan, STEP_LIMITS, errno);
    }
    child_filter(plan);
    /* Last: until here nothing interrupts. The runner has no handlers and ignores nothing. */
    (void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &no_signal, NULL, sizeof(no_signal));
    child_execs(plan);
}

/* ---- in the runner ------------------------------------------------------------------------- */

enum err_code launcher_open(uint64_t soft_files, struct launcher **ret_launcher, struct err *err)
{
    const int anywhere = MAP_SHARED | MAP_ANONYMOUS;
    struct launcher *launcher = calloc(1, sizeof(*launcher));
    if (!launcher)
        return err_set(err, ERR_NOMEM, "no memory for a launcher");
    launcher->soft_files = soft_files;
    launcher->null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    launcher->stack = malloc(STACK_BYTES);
    void *shared = mmap(NULL, sizeof(struct report), PROT_READ | PROT_WRITE, anywhere, -1, 0);
    launcher->report = shared == MAP_FAILED ? NULL : shared;
    if (launcher->null < 0 || !launcher->stack || !launcher->report) {
        launcher_free(launcher);
        return err_set_errno(err, ERR_IO, errno, "cannot make ready to start processes");
    }
    *ret_launcher = launcher;
    return ERR_OK;
}

void launcher_free(struct launcher *launcher)
{
    if (!launcher)
        return;
    fd_close(&launcher->null);
    free(launcher->stack);
    if (launcher->report)
        (void)munmap(launcher->report, sizeof(struct report));
    free(launcher);
}

/* Only the read end does not block: the job may read from its own pipe as well, so what poll saw
 * may be gone. The two ends have flags of their own. */
static bool open_pipe(int *ret_read, int *ret_write)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    *ret_read = ends[0];
    *ret_write = ends[1];
    return fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0;
}

/* The number is in watch->pid before the child makes its first step. */
static pid_t clone_child(struct launcher *launcher, struct plan *plan, struct launch_watch *watch)
{
    const int flags = CLONE_VFORK | CLONE_PARENT_SETTID | SHARED_MEMORY | SIGCHLD;
    if (FAULT_FAILS("runner.fork")) {
        errno = EAGAIN;
        return -1;
    }
    if (atomic_load(&watch->called_off)) {
        errno = ECANCELED;
        return -1;
    }
    *launcher->report = (struct report){0};
    return clone(child_main, launcher->stack + STACK_BYTES, flags, plan, &watch->pid);
}

static void launched_done(struct launched *launched)
{
    fd_close(&launched->pidfd);
    fd_close(&launched->out);
    fd_close(&launched->err);
}

/* 0, or the error of the step; launched->pid is set if there was a process. */
static int start_child(struct launcher *launcher, struct plan *plan, struct launch_watch *watch,
                       struct launched *launched)
{
    const struct confine_job *confinement = plan->confinement;
    if (!open_pipe(&launched->out, &plan->out) || !open_pipe(&launched->err, &plan->err))
        return errno;
    /* So that the job may open /dev/stdout by that name. */
    if (confinement->other_user && (fchown(plan->out, confinement->uid, confinement->gid) != 0 ||
                                    fchown(plan->err, confinement->uid, confinement->gid) != 0))
        return errno;
    launched->step = "fork";
    launched->at_us = clock_boot_us();
    launched->at_wall_us = clock_wall_us();
    pid_t pid = clone_child(launcher, plan, watch);
    if (pid < 0)
        return errno;
    launched->pid = pid;
    if (launcher->report->error) {
        launched->step = step_names[launcher->report->step];
        return launcher->report->error;
    }
    launched->pidfd = pidfd_open(pid, 0);
    if (launched->pidfd >= 0)
        return 0;
    int error = errno;
    (void)kill(pid, SIGKILL);
    return error;
}

enum err_code launch(struct launcher *launcher, const struct runner_start *start,
                     const struct confine_job *confinement, struct launch_watch *watch,
                     struct launched *ret, struct err *err)
{
    __attribute__((cleanup(plan_done))) struct plan plan = {.runner = getpid(),
                                                            .confinement = confinement,
                                                            .null = launcher->null,
                                                            .out = -1,
                                                            .err = -1,
                                                            .report = launcher->report};
    struct launched launched = {.pidfd = -1, .out = -1, .err = -1, .step = step_names[STEP_SETUP]};
    ret->step = launched.step;
    if (!plan_words(&plan, start))
        return err_set_errno(err, ERR_NOMEM, ENOMEM, "no memory to start a job");
    plan_limits(&plan, &start->limits, launcher->soft_files);
    int error = start_child(launcher, &plan, watch, &launched);
    ret->pid = launched.pid;
    ret->step = launched.step;
    if (error) {
        launched_done(&launched);
        return err_set_errno(err, ERR_IO, error, "cannot start a process");
    }
    *ret = launched;
    return ERR_OK;
}
