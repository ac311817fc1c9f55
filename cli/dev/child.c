/* SPDX-License-Identifier: MIT */
#include "cli/dev/child.h"

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/uuid.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define STEP_MS 20
#define KILLED_MS 10000 /* most that a killed process takes to be gone */
/* below what the kernel gives to outgoing connections (net.ipv4.ip_local_port_range) */
#define PORT_FIRST 20000
#define PORT_LAST 32000
#define PORT_TRIES 200
#define TASKS_TEXT_MAX ((size_t)64 * 1024)

static void pause_ms(int ms)
{
    (void)poll(NULL, 0, ms);
}

/* In the child: only async-signal-safe calls; a failure is told by the exit status 127. */
static void become(const struct child_start *start, int log_fd, pid_t parent)
{
    sigset_t none;
    (void)sigemptyset(&none);
    (void)pthread_sigmask(SIG_SETMASK, &none, NULL);
    (void)signal(SIGPIPE, SIG_DFL);
    (void)setsid();
    /* sound here: the signal is bound to the parent's thread, and the supervisor has only one */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (getppid() != parent)
        _exit(127);
    int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null_fd < 0 || dup2(null_fd, 0) < 0 || dup2(log_fd, 1) < 0 || dup2(log_fd, 2) < 0 ||
        chdir(start->folder) != 0)
        _exit(127);
    (void)execve(start->argv[0], (char *const *)(uintptr_t)start->argv,
                 (char *const *)(uintptr_t)start->env);
    _exit(127);
}

enum err_code child_start(struct child *child, const struct child_start *start, struct err *err)
{
    char file[80];
    FD_AUTO int log_fd = -1;
    (void)snprintf(file, sizeof(file), "%s.log", child->name);
    enum err_code rc =
        fs_open_beneath(start->log_dir, file, O_WRONLY | O_CREAT | O_APPEND, 0600, &log_fd, err);
    if (rc)
        return rc;
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid < 0)
        return err_set_errno(err, ERR_IO, errno, "cannot start %s", child->name);
    if (pid == 0)
        become(start, log_fd, parent);
    child->pid = pid;
    child->started_ms = clock_mono_ms();
    return ERR_OK;
}

static void note_end(struct child *children, size_t count, pid_t pid, int status)
{
    for (size_t i = 0; i < count; i++) {
        if (children[i].pid == pid) {
            children[i].pid = 0;
            children[i].status = status;
        }
    }
}

void child_reap(struct child *children, size_t count)
{
    int status = 0;
    pid_t pid = 0;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        note_end(children, count, pid, status);
}

bool child_runs(const struct child *child)
{
    return child->pid > 0;
}

/* True once it is gone. */
static bool wait_gone(struct child *child, int64_t timeout_ms)
{
    int64_t deadline = clock_mono_ms() + timeout_ms;
    while (child->pid > 0) {
        pid_t got = waitpid(child->pid, &child->status, WNOHANG);
        if (got == child->pid || (got < 0 && errno == ECHILD))
            child->pid = 0;
        else if (clock_mono_ms() >= deadline)
            return false;
        else
            pause_ms(STEP_MS);
    }
    return true;
}

void child_end(struct child *child, int first_signal, int64_t grace_ms)
{
    if (child->pid <= 0)
        return;
    (void)kill(child->pid, first_signal);
    if (wait_gone(child, grace_ms))
        return;
    (void)kill(child->pid, SIGKILL);
    (void)wait_gone(child, KILLED_MS);
}

static bool in_table(const struct child *children, size_t count, pid_t pid)
{
    for (size_t i = 0; i < count; i++) {
        if (children[i].pid == pid)
            return true;
    }
    return false;
}

/* /proc/PID/task/TID/children (proc(5)): our children as a list of numbers. */
size_t child_orphans(const struct child *children, size_t count, pid_t *ret_pids, size_t max)
{
    char path[64];
    size_t found = 0;
    struct err ignored = {0};
    FD_AUTO int root = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    BUF_AUTO struct buf text = BUF_INIT(TASKS_TEXT_MAX);
    (void)snprintf(path, sizeof(path), "%d/task/%d/children", (int)getpid(), (int)getpid());
    if (root < 0 || fs_read(root, path, &text, &ignored))
        return 0;
    const char *at = buf_text(&text);
    while (*at && found < max) {
        char *end = NULL;
        pid_t pid = (pid_t)strtol(at, &end, 10);
        if (end == at)
            break;
        if (!in_table(children, count, pid))
            ret_pids[found++] = pid;
        at = end + strspn(end, " ");
    }
    return found;
}

void child_end_orphans(const struct child *children, size_t count, int64_t grace_ms)
{
    pid_t pids[64];
    int64_t deadline = clock_mono_ms() + grace_ms;
    int signo = SIGTERM;
    size_t left = child_orphans(children, count, pids, ARRAY_LEN(pids));
    for (size_t i = 0; i < left; i++)
        (void)kill(pids[i], signo);
    while ((left = child_orphans(children, count, pids, ARRAY_LEN(pids))) > 0) {
        bool late = clock_mono_ms() >= deadline;
        if (late && signo == SIGKILL)
            return;
        for (size_t i = 0; i < left; i++) {
            if (late)
                (void)kill(pids[i], SIGKILL);
            (void)waitpid(pids[i], NULL, WNOHANG);
        }
        if (late) {
            signo = SIGKILL;
            deadline += KILLED_MS;
        }
        pause_ms(STEP_MS);
    }
}

static bool answers(uint16_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    FD_AUTO int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0;
}

enum err_code child_wait_port(struct child *child, int64_t timeout_ms, struct err *err)
{
    int64_t deadline = clock_mono_ms() + timeout_ms;
    while (!answers(child->port)) {
        if (waitpid(child->pid, &child->status, WNOHANG) == child->pid) {
            child->pid = 0;
            return err_set(err, ERR_IO, "%s ended early with status %d; its log tells why",
                           child->name, WIFEXITED(child->status) ? WEXITSTATUS(child->status) : -1);
        }
        if (clock_mono_ms() >= deadline)
            return err_set(err, ERR_TIMEOUT, "%s does not answer on port %u after %lld ms",
                           child->name, child->port, (long long)timeout_ms);
        pause_ms(STEP_MS);
    }
    return ERR_OK;
}

static bool port_is_free(uint16_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    int one = 1;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    FD_AUTO int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) == 0 &&
           bind(fd, (const struct sockaddr *)&address, sizeof(address)) == 0;
}

/* A port out of the kernel's own range may become that of an outgoing connection, ours above all,
 * before the program that we choose it for listens. */
uint16_t child_free_port(uint16_t wanted)
{
    uint16_t port = wanted;
    for (int tries = 0; tries < PORT_TRIES; tries++) {
        if (port >= PORT_FIRST && port <= PORT_LAST && port_is_free(port))
            return port;
        random_bytes(&port, sizeof(port));
        port = (uint16_t)(PORT_FIRST + port % (PORT_LAST - PORT_FIRST + 1));
    }
    return port; /* who cannot listen there says so */
}
