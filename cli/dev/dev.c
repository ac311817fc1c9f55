/* SPDX-License-Identifier: MIT */
/* sluice dev: everything on this machine, no configuration. In the foreground it supervises until
 * ^C; with --detach a supervisor stays behind and the call returns when all is ready. */

#include "cli/dev/stack.h"

#include "common/base/clock.h"
#include "common/base/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

struct config_flag flags_dev[] = {
    {.name = "state",
     .argument = "FOLDER",
     .doc = "where everything is kept (~/.local/state/sluice)"},
    {.name = "fresh", .doc = "begin with an empty state folder"},
    {.name = "detach", .letter = 'd', .doc = "return when all is ready; it goes on"},
    {.name = "stop", .doc = "stop what --detach left running"},
    {.name = "status", .doc = "processes with pids and ports"},
    {.name = NULL},
};

#define RESTART_PAUSE_MS 1000
#define STATUS_EVERY_MS 1000
/* A server that ends so often, each time sooner than this, does not stay up. */
#define SERVER_RESTARTS_MAX 5
#define SERVER_STAYS_MS 60000
#define STOP_WAIT_MS 60000

static int progress_fd = STDERR_FILENO;

static void tell(const char *text)
{
    char line[256];
    int length = snprintf(line, sizeof(line), "==> %s\n", text);
    ssize_t done = write(progress_fd, line, length > 0 ? (size_t)length : 0);
    (void)done; /* nobody listens any more: the work goes on all the same */
}

static int open_state(const struct cli *cli, struct stack *stack)
{
    struct err err = {0};
    char wanted[STACK_PATH_SIZE];
    const char *home = getenv("HOME"); /* NOLINT(concurrency-mt-unsafe): one thread */
    (void)snprintf(wanted, sizeof(wanted), "%s/.local/state/sluice", home ? home : "/tmp");
    if (fs_open_dir(cli_value(cli, "state", wanted), true, &stack->state_dir, &err))
        return cli_fail_err(CLI_REFUSED, &err);
    char link[64];
    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", stack->state_dir);
    ssize_t length = readlink(link, stack->state, sizeof(stack->state) - 1);
    ssize_t program = readlink("/proc/self/exe", stack->bin, sizeof(stack->bin) - 1);
    if (length <= 0 || program <= 0)
        return cli_fail(CLI_REFUSED, "the state folder's path is longer than %d bytes",
                        STACK_PATH_SIZE - 1);
    stack->state[length] = 0;
    stack->bin[program] = 0;
    *strrchr(stack->bin, '/') = 0;
    stack->log_dir = -1;
    stack->progress = tell;
    return CLI_DONE;
}

/* The pid of the supervisor that holds the lock, 0 if none does and the lock is ours now. */
static pid_t take_lock(const struct stack *stack, int *ret_fd, struct err *err)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fs_open_beneath(stack->state_dir, "dev.lock", O_RDWR | O_CREAT, 0600, ret_fd, err))
        return -1;
    if (fcntl(*ret_fd, F_SETLK, &lock) == 0)
        return 0;
    lock.l_type = F_WRLCK;
    if (fcntl(*ret_fd, F_GETLK, &lock) != 0)
        return -1;
    return lock.l_type == F_UNLCK ? 0 : lock.l_pid;
}

static enum err_code start_all(struct stack *stack, char **ret_token, struct err *err)
{
    enum err_code rc = stack_prepare(stack, err);
    if (rc == ERR_OK)
        rc = stack_write_status(stack, false, err);
    if (rc == ERR_OK)
        rc = stack_start_servers(stack, err);
    if (rc == ERR_OK)
        rc = stack_setup(stack, ret_token, err);
    if (rc == ERR_OK)
        rc = stack_start_programs(stack, err);
    stack->token = *ret_token;
    if (rc == ERR_OK)
        rc = stack_make_queues(stack, err);
    return rc;
}

/* Starts what ended by itself again, not faster than once a second. */
static void revive(struct stack *stack)
{
    struct err err = {0};
    for (int i = 0; i < CHILD_COUNT; i++) {
        struct child *child = &stack->children[i];
        if (child_runs(child) || !child->restart ||
            clock_mono_ms() - child->started_ms < RESTART_PAUSE_MS)
            continue;
        child->restarts++;
        if (stack_start_program(stack, (enum stack_child)i, &err))
            child->started_ms = clock_mono_ms();
        err_clear(&err);
    }
}

/* The programs wait for it meanwhile, and nothing that they were given is lost. */
static bool revive_server(struct stack *stack, enum stack_child which, struct err *err)
{
    char text[160];
    struct child *child = &stack->children[which];
    int64_t ran_ms = clock_mono_ms() - child->started_ms;
    if (child_runs(child) || ran_ms < RESTART_PAUSE_MS)
        return true;
    if (ran_ms >= SERVER_STAYS_MS)
        child->restarts = 0;
    if (child->restarts >= SERVER_RESTARTS_MAX) {
        (void)err_set(err, ERR_STATE,
                      "%s ended %d times, each within %d s of its start; %s/log/%s.log tells why",
                      child->name, SERVER_RESTARTS_MAX + 1, SERVER_STAYS_MS / 1000, stack->state,
                      child->name);
        return false;
    }
    child->restarts++;
    (void)snprintf(text, sizeof(text), "%s ended: starting it again (%u of %d)", child->name,
                   child->restarts, SERVER_RESTARTS_MAX);
    tell(text);
    return stack_start_server(stack, which, err) == ERR_OK;
}

/* Until a signal asks for the end, or a server that others need cannot be kept up. */
static int supervise(struct stack *stack, int signals)
{
    struct err err = {0};
    struct pollfd events = {.fd = signals, .events = POLLIN};
    for (;;) {
        (void)poll(&events, 1, STATUS_EVERY_MS);
        struct signalfd_siginfo info;
        ssize_t got = read(signals, &info, sizeof(info));
        if (got == (ssize_t)sizeof(info) && info.ssi_signo != SIGCHLD)
            return CLI_DONE;
        (void)child_reap(stack->children, CHILD_COUNT);
        for (int i = CHILD_EPMD; i < CHILD_WEB; i++) {
            if (!revive_server(stack, (enum stack_child)i, &err))
                return cli_fail_err(CLI_REFUSED, &err);
        }
        revive(stack);
        (void)!stack_write_status(stack, true, &err);
        err_clear(&err);
    }
}

static int block_signals(void)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGHUP);
    (void)sigaddset(&set, SIGCHLD);
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void print_summary(const struct stack *stack, const char *token)
{
    (void)printf("\nSluice runs.\n  address  %s\n  token    %s\n"
                 "  try      curl -H 'Authorization: Bearer TOKEN' %s/v1/whoami\n"
                 "  state    %s\n  stop     ^C\n",
                 stack->url, token, stack->url, stack->state);
    (void)fflush(stdout);
}

/* The supervisor's life. ready_fd gets a byte when all is up; -1: in the foreground. */
static int live(struct stack *stack, int ready_fd)
{
    struct err err = {0};
    TEXT_AUTO char *token = NULL;
    FD_AUTO int signals = block_signals();
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    int status = CLI_DONE;
    if (start_all(stack, &token, &err) || stack_write_status(stack, true, &err)) {
        status = cli_fail_err(CLI_REFUSED, &err);
        tell(err.text);
    } else {
        tell("ready");
        if (ready_fd >= 0) {
            fd_close(&ready_fd);
            progress_fd = STDERR_FILENO;
        } else {
            print_summary(stack, token);
        }
        status = supervise(stack, signals);
    }
    tell("stopping");
    stack_stop(stack);
    err_clear(&err);
    (void)!stack_write_status(stack, false, &err);
    return status;
}

/* In the child of --detach: own session, output to the log. */
static void leave_terminal(const struct stack *stack)
{
    struct err err = {0};
    FD_AUTO int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    FD_AUTO int dir = -1;
    FD_AUTO int log_fd = -1;
    (void)setsid();
    if (fs_make_dirs(stack->state_dir, "log", 0700, &dir, &err) == ERR_OK &&
        fs_open_beneath(dir, "dev.log", O_WRONLY | O_CREAT | O_APPEND, 0600, &log_fd, &err) ==
            ERR_OK) {
        (void)dup2(null_fd, STDIN_FILENO);
        (void)dup2(log_fd, STDOUT_FILENO);
        (void)dup2(log_fd, STDERR_FILENO);
    }
}

/* Shows what the supervisor tells until it is ready; true if it is. */
static bool relay_progress(int from)
{
    BUF_AUTO struct buf all = BUF_INIT((size_t)1024 * 1024);
    char chunk[512];
    ssize_t got = 0;
    while ((got = read(from, chunk, sizeof(chunk))) != 0) {
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            break;
        (void)fwrite(chunk, 1, (size_t)got, stderr);
        buf_add(&all, chunk, (size_t)got);
    }
    return strstr(buf_text(&all), "==> ready\n") != NULL;
}

static int detach(struct stack *stack, int *lock_fd)
{
    int pipe_fds[2];
    if (pipe2(pipe_fds, O_CLOEXEC) != 0)
        return cli_fail(CLI_REFUSED, "no pipe");
    fd_close(lock_fd); /* record locks are not inherited: the supervisor takes its own */
    pid_t pid = fork();
    if (pid < 0)
        return cli_fail(CLI_REFUSED, "no new process");
    if (pid == 0) {
        struct err err = {0};
        (void)close(pipe_fds[0]);
        leave_terminal(stack);
        progress_fd = pipe_fds[1];
        if (take_lock(stack, lock_fd, &err) != 0)
            _exit(CLI_REFUSED);
        _exit(live(stack, pipe_fds[1]));
    }
    (void)close(pipe_fds[1]);
    bool ready = relay_progress(pipe_fds[0]);
    (void)close(pipe_fds[0]);
    return ready ? CLI_DONE
                 : cli_fail(CLI_REFUSED, "not started; logs are in %s/log", stack->state);
}

static int stop(const struct stack *stack, pid_t supervisor, int lock_fd)
{
    if (supervisor == 0)
        return cli_fail(CLI_DONE, "nothing runs in %s", stack->state);
    int64_t deadline = clock_mono_ms() + STOP_WAIT_MS;
    if (kill(supervisor, SIGTERM) != 0)
        return cli_fail(CLI_REFUSED, "process %d cannot be signalled", (int)supervisor);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    while (fcntl(lock_fd, F_SETLK, &lock) != 0) {
        if (clock_mono_ms() > deadline)
            return cli_fail(CLI_REFUSED, "process %d does not end", (int)supervisor);
        (void)poll(NULL, 0, 50);
    }
    (void)cli_fail(CLI_DONE, "stopped");
    return CLI_DONE;
}

static int show_status(const struct cli *cli, const struct stack *stack, pid_t supervisor)
{
    static const struct cli_column columns[] = {
        {"PROCESS", "name"}, {"PID", "pid"}, {"PORT", "port"}};
    char path[STACK_PATH_SIZE + 16];
    (void)snprintf(path, sizeof(path), "%s/dev.json", stack->state);
    CLI_JSON_AUTO json_t *status = json_load_file(path, 0, NULL);
    if (supervisor == 0 || !status)
        return cli_fail(CLI_REFUSED, "nothing runs in %s", stack->state);
    if (cli->output == CLI_JSON) {
        cli_print_object(cli, status, "url");
        return CLI_DONE;
    }
    cli_print_list(cli, json_object_get(status, "processes"), columns, ARRAY_LEN(columns), "name");
    (void)printf("%s, %s\n", cli_text(status, "url"),
                 json_is_true(json_object_get(status, "ready")) ? "ready" : "not ready yet");
    return CLI_DONE;
}

/* Empties the state folder; only one that a supervisor made, known by its lock file. */
static int make_fresh(const struct stack *stack)
{
    static const char *const parts[] = {"mariadb",  "rabbitmq",     "keys",       "private",
                                        "work",     "archive",      "log",        "secrets",
                                        "dev.json", "profile.json", "sluice.conf"};
    struct err err = {0};
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        if (fs_remove_tree(stack->state_dir, parts[i], &err))
            return cli_fail_err(CLI_REFUSED, &err);
    }
    return CLI_DONE;
}

int cmd_dev(struct cli *cli)
{
    struct stack stack = {0};
    struct err err = {0};
    int lock_fd = -1;
    int status = open_state(cli, &stack);
    if (status != CLI_DONE)
        return status;
    pid_t supervisor = take_lock(&stack, &lock_fd, &err);
    if (supervisor < 0)
        return cli_fail_err(CLI_REFUSED, &err);
    if (cli_has(cli, "status"))
        return show_status(cli, &stack, supervisor);
    if (cli_has(cli, "stop"))
        return stop(&stack, supervisor, lock_fd);
    if (supervisor > 0) {
        (void)cli_fail(CLI_DONE, "runs already, as process %d", (int)supervisor);
        return cli_has(cli, "fresh") ? cli_fail(CLI_REFUSED, "stop it before --fresh") : CLI_DONE;
    }
    if (cli_has(cli, "fresh") && make_fresh(&stack) != CLI_DONE)
        return CLI_REFUSED;
    if (cli_has(cli, "detach"))
        return detach(&stack, &lock_fd);
    return live(&stack, -1);
}
