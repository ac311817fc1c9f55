/* SPDX-License-Identifier: MIT */
#include "common/service/daemon.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/openssl.h"
#include "common/base/spare.h"
#include "common/service/watchdog.h"

#include <errno.h>
#include <jansson.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>
#ifdef SLUICE_SYSTEMD
#include <systemd/sd-daemon.h>
#endif

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t stopped;
static volatile bool stopping; /* written under the mutex; read without it as a hint */
static struct daemon_calls calls_of_program;
static sigset_t our_signals;

bool daemon_stopping(void)
{
    return __atomic_load_n(&stopping, __ATOMIC_ACQUIRE);
}

const volatile bool *daemon_stop_flag(void)
{
    return &stopping;
}

void daemon_ask_stop(void)
{
    pthread_mutex_lock(&mutex);
    bool first = !stopping;
    __atomic_store_n(&stopping, true, __ATOMIC_RELEASE);
    pthread_cond_broadcast(&stopped);
    pthread_mutex_unlock(&mutex);
    if (!first)
        return;
    log_event(LOG_INFO, "daemon.stopping");
    daemon_notify("STOPPING=1");
    if (calls_of_program.stop)
        calls_of_program.stop(calls_of_program.arg);
}

/* The next signal. Whoever takes it also tells the watchdog: a process that cannot be ended by a
 * signal is not in order either. */
static int next_signal(siginfo_t *ret_info)
{
    static int64_t interval_ms = -1;
    if (interval_ms < 0)
        interval_ms = watchdog_interval_ms();
    if (interval_ms == 0)
        return sigwaitinfo(&our_signals, ret_info);
    const struct timespec pause = {.tv_sec = interval_ms / 1000,
                                   .tv_nsec = (interval_ms % 1000) * 1000000};
    if (watchdog_look())
        daemon_notify("WATCHDOG=1");
    return sigtimedwait(&our_signals, ret_info, &pause);
}

static void *signal_main(void *unused)
{
    (void)unused;
    for (;;) {
        siginfo_t info;
        int signo = next_signal(&info);
        if (signo < 0)
            continue;
        if (signo == SIGHUP) {
            log_event(LOG_INFO, "daemon.reload");
            if (calls_of_program.reload)
                calls_of_program.reload(calls_of_program.arg);
            continue;
        }
        if (daemon_stopping()) {
            log_event(LOG_WARN, "daemon.ended_at_once", LOG_I("signal", signo));
            _exit(1);
        }
        log_event(LOG_INFO, "daemon.signal", LOG_I("signal", signo),
                  LOG_I("from_pid", info.si_pid));
        daemon_ask_stop();
    }
    return NULL;
}

/* A job may run as our user: it must not read our secrets in /proc or attach to us. The leak
 * sanitizer attaches to its own process, so its builds do without. */
static void close_to_others(void)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
#endif
}

static void *crypto_malloc(size_t size, const char *file, int line)
{
    (void)file;
    (void)line;
    return spare_try(size);
}

static void *crypto_realloc(void *block, size_t size, const char *file, int line)
{
    (void)file;
    (void)line;
    return spare_grow(block, size);
}

static void crypto_free(void *block, const char *file, int line)
{
    (void)file;
    (void)line;
    spare_free(block);
}

/* What is half a document, or no digest, for want of memory would be taken for a whole one. */
static void set_spare(void)
{
    json_set_alloc_funcs(spare_malloc, spare_free);
    (void)CRYPTO_set_mem_functions(crypto_malloc, crypto_realloc, crypto_free);
}

enum err_code daemon_start(const struct daemon_calls *calls, struct err *err)
{
    pthread_t thread;
    close_to_others();
    set_spare();
    calls_of_program = *calls;
    clock_cond_init(&stopped);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)sigemptyset(&our_signals);
    (void)sigaddset(&our_signals, SIGTERM);
    (void)sigaddset(&our_signals, SIGINT);
    (void)sigaddset(&our_signals, SIGHUP);
    int rc = pthread_sigmask(SIG_BLOCK, &our_signals, NULL);
    if (rc == 0)
        rc = pthread_create(&thread, NULL, signal_main, NULL);
    if (rc != 0)
        return err_set_errno(err, ERR_IO, rc, "cannot start the signal thread");
    (void)pthread_detach(thread);
    return ERR_OK;
}

void daemon_wait_stop(void)
{
    pthread_mutex_lock(&mutex);
    while (!stopping)
        pthread_cond_wait(&stopped, &mutex);
    pthread_mutex_unlock(&mutex);
}

bool daemon_sleep_until(int64_t deadline_ms)
{
    pthread_mutex_lock(&mutex);
    while (!stopping && clock_cond_wait_until(&stopped, &mutex, deadline_ms))
        continue;
    bool asked = stopping;
    pthread_mutex_unlock(&mutex);
    return asked;
}

void daemon_notify(const char *state)
{
#ifdef SLUICE_SYSTEMD
    (void)sd_notify(0, state);
#else
    (void)state;
#endif
}
