/* SPDX-License-Identifier: MIT */
#ifndef WORKER_RUNNER_CLIENT_INSIDE_H
#define WORKER_RUNNER_CLIENT_INSIDE_H

/* client inside: what client.c (calls) and client_open.c (coming and going) share.
 * Threads: any. */

#include "worker/runner/protocol.h"

#include <pthread.h>

/* A request that waits for its answer. */
struct call {
    struct call *next;
    json_int_t id;
    json_t *answer; /* NULL until it is there */
    pthread_cond_t done;
};

struct runner_client {
    int fd;
    pid_t pid;
    int timeout_ms;
    bool former;  /* the runner is of the version before, which confines no job */
    bool confine; /* no job may start unconfined */
    struct runner_callbacks callbacks;
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t send_lock; /* held over send: frames must not mix */
    pthread_mutex_t lock;      /* guards what follows */
    struct call *calls;
    json_int_t last_id;
    bool lost;
    bool closing;
};

/* Takes the message; *ret_answer is a new reference, or nothing is wanted of it (NULL). */
MUST_USE enum err_code runner_client_ask(struct runner_client *client, json_t *message,
                                         json_t **ret_answer, struct err *err);
void *runner_client_main(void *client); /* the client's thread */

#endif
