/* SPDX-License-Identifier: MIT */
#include "worker/runner/runner.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/wake.h"
#include "worker/runner/procs.h"

#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define EVENTS_AT_ONCE 64
#define SLEPT_MS 100 /* two clocks are read one after the other: less may be that */

enum err_code runner_watch(struct runner *runner, struct watch *watch, struct err *err)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = watch};
    if (epoll_ctl(runner->epoll, EPOLL_CTL_ADD, watch->fd, &event) != 0)
        return err_set_errno(err, ERR_IO, errno, "cannot watch a descriptor");
    return ERR_OK;
}

void runner_rewatch(struct runner *runner, struct watch *watch, bool writing)
{
    struct epoll_event event = {.events = EPOLLIN | (writing ? (uint32_t)EPOLLOUT : 0),
                                .data.ptr = watch};
    (void)epoll_ctl(runner->epoll, EPOLL_CTL_MOD, watch->fd, &event);
}

void runner_release(struct runner *runner, struct watch *watch)
{
    if (watch->fd >= 0)
        (void)epoll_ctl(runner->epoll, EPOLL_CTL_DEL, watch->fd, NULL);
}

void runner_unwatch(struct runner *runner, struct watch *watch)
{
    runner_release(runner, watch); /* a copy in a child between clone and exec would keep it */
    fd_close(&watch->fd);
}

static void timer_ready(struct runner *runner, struct watch *watch)
{
    uint64_t count = 0;
    ssize_t got = read(watch->fd, &count, sizeof(count));
    (void)got; /* it only has to wake the loop */
    (void)runner;
}

/* TERM or INT: every job is ended with its own grace, a second one ends them at once. */
static void signals_ready(struct runner *runner, struct watch *watch)
{
    struct signalfd_siginfo info;
    if (read(watch->fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
        return;
    if (info.ssi_signo == SIGCHLD)
        (void)procs_orphans(); /* zombies that came to us while their job goes on */
    if (info.ssi_signo != SIGTERM && info.ssi_signo != SIGINT)
        return;
    log_event(LOG_WARN, "runner.stop.asked", LOG_U("jobs", job_running(runner)));
    for (struct run *run = runner->runs; run; run = run->next)
        job_end(run, RUNNER_RUNNER_STOPPED, runner->stopping ? 0 : (int64_t)run->limits.grace_ms,
                "");
    runner->stopping = true;
    runner->leaving = true;
}

/* What the helper threads have done. */
static void helpers_ready(struct runner *runner, struct watch *watch)
{
    struct start_task *task = NULL;
    struct flow *flow = NULL;
    struct run *run = NULL;
    wake_drain(watch->fd);
    while ((task = starter_done(runner->starter)) != NULL)
        job_started(runner, task);
    while ((flow = writer_done(runner->writer)) != NULL)
        job_written(runner, flow);
    while ((run = journal_kept(runner->journal)) != NULL)
        job_kept(runner, run);
}

static enum err_code open_watches(struct runner *runner, struct err *err)
{
    sigset_t taken;
    (void)sigemptyset(&taken);
    (void)sigaddset(&taken, SIGTERM);
    (void)sigaddset(&taken, SIGINT);
    (void)sigaddset(&taken, SIGHUP);
    (void)sigaddset(&taken, SIGCHLD);
    (void)sigaddset(&taken, SIGPIPE);
    (void)pthread_sigmask(SIG_BLOCK, &taken, NULL);
    (void)sigdelset(&taken, SIGPIPE);
    runner->epoll = epoll_create1(EPOLL_CLOEXEC);
    runner->timer = (struct watch){timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK),
                                   timer_ready, NULL};
    runner->signals =
        (struct watch){signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK), signals_ready, NULL};
    if (runner->epoll < 0 || runner->timer.fd < 0 || runner->signals.fd < 0)
        return err_set_errno(err, ERR_IO, errno, "cannot make the event loop");
    enum err_code rc = runner_watch(runner, &runner->timer, err);
    if (rc == ERR_OK)
        rc = runner_watch(runner, &runner->signals, err);
    runner->helpers.ready = helpers_ready;
    if (rc == ERR_OK)
        rc = runner_watch(runner, &runner->helpers, err);
    return rc;
}

int64_t runner_slept_ms(void)
{
    int64_t boot_ms = protocol_boot_ms(); /* first: a stop between the two is no sleep */
    return boot_ms - clock_mono_ms();
}

/* The grant nears its end: TERM a grace before it, KILL at it. A job that got its TERM is not
 * spared by a later ping: nobody knows what it has given up already. So the pings that wait are
 * heard first, as this process may have been the one that hung (a slow disk, SIGSTOP). Not so when
 * the whole host was suspended for longer than the grant: no process can have sent one since. */
static int64_t advance_lease(struct runner *runner, int64_t now)
{
    bool slept = now >= runner->grant_until && runner_slept_ms() - runner->grant_slept >= SLEPT_MS;
    if (!slept && now >= runner->grant_until - runner->grant_grace)
        server_hear(runner);
    int64_t warn_at = runner->grant_until - runner->grant_grace;
    if (now < warn_at)
        return warn_at;
    int64_t left = runner->grant_until > now ? runner->grant_until - now : 0;
    for (struct run *run = runner->runs; run; run = run->next) {
        if (run->phase <= RUN_RUNNING && run->kill_at > now + left)
            job_end(run, RUNNER_LEASE_EXPIRED, left, "");
    }
    return left > 0 ? runner->grant_until : NEVER;
}

static int64_t sooner(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Everything that is due; the time of the next thing. */
static int64_t advance(struct runner *runner)
{
    int64_t now = protocol_boot_ms();
    int64_t due = sooner(advance_lease(runner, now), server_listen(runner, now));
    procs_refresh();
    for (struct run *run = runner->runs; run; run = run->next) {
        due = sooner(due, job_advance(runner, run, now));
        due = sooner(due, job_tell_start(runner, run, now));
    }
    return due;
}

static bool may_leave(const struct runner *runner)
{
    if (job_running(runner) > 0)
        return false;
    return runner->leaving ||
           (runner->peer.watch.fd < 0 && protocol_boot_ms() >= runner->grant_until);
}

static void set_timer(struct runner *runner, int64_t due)
{
    struct itimerspec when = {0};
    if (due == runner->timer_at && due > protocol_boot_ms())
        return;
    runner->timer_at = due;
    if (due != NEVER) {
        due = due > 0 ? due : 1;
        when.it_value.tv_sec = (time_t)(due / 1000);
        when.it_value.tv_nsec = (long)(due % 1000) * 1000000;
    }
    (void)timerfd_settime(runner->timer.fd, TFD_TIMER_ABSTIME, &when, NULL);
}

static enum err_code turn(struct runner *runner, struct err *err)
{
    struct epoll_event events[EVENTS_AT_ONCE];
    int count = epoll_wait(runner->epoll, events, EVENTS_AT_ONCE, -1);
    if (count < 0 && errno == EINTR) /* after SIGCONT, whatever has come meanwhile */
        count = epoll_wait(runner->epoll, events, EVENTS_AT_ONCE, 0);
    if (count < 0 && errno != EINTR)
        return err_set_errno(err, ERR_IO, errno, "cannot wait for events");
    /* This process may wake from a stop of any length: first of all end what may not live on. */
    if (protocol_boot_ms() >= runner->grant_until - runner->grant_grace)
        (void)advance(runner);
    for (int i = 0; i < count; i++) {
        struct watch *watch = events[i].data.ptr;
        if (watch->fd >= 0) /* an event before it may have closed it */
            watch->ready(runner, watch);
    }
    return ERR_OK;
}

enum err_code runner_loop(struct runner *runner, struct err *err)
{
    enum err_code rc = open_watches(runner, err);
    if (rc == ERR_OK)
        rc = server_open(runner, err);
    while (rc == ERR_OK) {
        int64_t due = advance(runner);
        if (may_leave(runner))
            break;
        server_flush(runner);
        set_timer(runner, due);
        rc = turn(runner, err);
    }
    server_close(runner);
    return rc;
}
