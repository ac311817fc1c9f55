/* SPDX-License-Identifier: MIT */
#ifndef WORKER_RUNNER_LINK_H
#define WORKER_RUNNER_LINK_H

/* runner_link: the worker's hold on its runner. It opens the client again when the runner was
 * lost, and pings it: each ping says until when the job processes may live without another one.
 * The pinging thread reads only what the witnesses noted, and waits for nothing but the runner.
 * Threads: locked. Errors: those of runner/client.h; ERR_IO while there is no connection. */

#include "worker/heart.h"
#include "worker/runner/client.h"

struct runner_link;

struct runner_link_setup {
    struct runner_client_config client;
    struct witness *witness;
    unsigned beat_ms;
    unsigned lease_ms;
    unsigned grace_ms;
    void *arg;
    /* A run ended; also told again after the connection was lost and is back. */
    void (*on_exit)(void *arg, const struct runner_record *record);
    /* The grant is over: both witnesses were silent for too long. On the pinging
     * thread, with every ping while it lasts. */
    void (*on_silence)(void *arg);
};

/* Connects (starting a runner if none lives); no pings yet. */
MUST_USE enum err_code runner_link_open(const struct runner_link_setup *setup,
                                        struct runner_link **ret_link, struct err *err);
/* Pings from now on; the first one is sent before it returns, unless the runner has died meanwhile:
 * then another one is started soon. */
MUST_USE enum err_code runner_link_ping(struct runner_link *link, struct bus_consumer *consumer,
                                        struct err *err);
/* A witness has just spoken: ping at once. */
void runner_link_hurry(struct runner_link *link);
/* A ping was answered: what the runner grants is what this incarnation said, and nothing longer
 * that a former one had said. */
bool runner_link_granted(struct runner_link *link);
/* Names the runner's process for all time: boot, pid and start. "" if that cannot be known. Before
 * runner_link_ping(). */
void runner_link_name(struct runner_link *link, const char *boot_id, char *ret_text, size_t size);
/* Ends the pings; calls go on. */
void runner_link_hush(struct runner_link *link);
/* How often a runner was connected: another number than before may mean another runner, and what it
 * knows has been told by then. */
unsigned runner_link_opened(struct runner_link *link);
/* stop_if_idle: the runner ends if it has no job. NULL is allowed. */
void runner_link_close(struct runner_link *link, bool stop_if_idle);

MUST_USE enum err_code runner_link_list(struct runner_link *link, struct runner_job **ret_jobs,
                                        size_t *ret_count, struct err *err);
MUST_USE enum err_code runner_link_start(struct runner_link *link, const struct runner_start *start,
                                         struct runner_job *ret_job, bool *ret_existing,
                                         struct err *err);
MUST_USE enum err_code runner_link_adopt(struct runner_link *link, const struct uuid *job,
                                         uint64_t old_fence, uint64_t new_fence,
                                         struct runner_job *ret_job, struct err *err);
MUST_USE enum err_code runner_link_kill(struct runner_link *link, const struct uuid *job,
                                        uint64_t fence, int grace_ms, const char *note,
                                        struct err *err);
MUST_USE enum err_code runner_link_forget(struct runner_link *link, const struct uuid *job,
                                          uint64_t fence, struct err *err);
MUST_USE enum err_code runner_link_forget_soon(struct runner_link *link, const struct uuid *job,
                                               uint64_t fence, struct err *err);

#endif
