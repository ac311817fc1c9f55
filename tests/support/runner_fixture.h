/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_RUNNER_FIXTURE_H
#define TESTS_SUPPORT_RUNNER_FIXTURE_H

/* runner fixture: a real runner in a directory of its own, and a client that remembers the ends
 * it was told of. */

#include "tests/support/test.h"

#include "common/base/buf.h"
#include "worker/runner/client.h"

#include <pthread.h>

#define ENDS_MAX 256
#define WAIT_MS 30000 /* a test that waits this long has failed */

struct site {
    char root[64]; /* holds work/ and archive/ */
    char work[256];
    char archive[96];
    int work_dir;
    int archive_dir;
    struct runner_client *client;
    const struct runner_confine *confine; /* of the clients that come */
    pid_t runner;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct runner_record ends[ENDS_MAX];
    size_t end_count;
    bool lost;
};

void site_on_exit(void *site, const struct runner_record *record); /* callbacks of a client */
void site_on_lost(void *site, const struct err *err);
int site_set_up(void **state); /* with a runner, and a long grant */
int site_tear_down(void **state);
void site_connect(struct site *site); /* a client; starts a runner if none lives */
void site_leave(struct site *site);   /* as a worker that died */
void site_grant(struct site *site, int ms, int grace_ms);
/* A start with everything but argv filled in; environment as a worker gives it. */
struct runner_start site_start(struct site *site, const char *const *argv);
/* Starts and expects it to run. */
struct runner_job site_run(struct site *site, const struct runner_start *start);
/* `sh -c script`, started, as a run of its own; the job is kept until the next call. */
struct runner_job site_shell(struct site *site, const char *script);
struct runner_record site_end(struct site *site, const struct uuid *job); /* waits for it */
/* Runs the script to its end. */
struct runner_record site_shell_end(struct site *site, const char *script);
struct runner_job site_only_job(struct site *site); /* the only one that the runner holds */
size_t site_job_count(struct site *site);
void site_kill_runner(struct site *site); /* and the client with it */
void site_wait_lost(struct site *site);
void site_wait_gone(pid_t pid); /* no process has this number (a zombie counts as gone) */
bool site_alive(pid_t pid);
/* Waits for the file in the job's working directory and reads a number from it. */
pid_t site_wait_pid(struct site *site, const struct runner_job *job, const char *file);
/* Content of `stdout` or `stderr`, or of another file that the job's directory holds. */
void site_read_output(struct site *site, const struct runner_record *record, const char *name,
                      struct buf *ret_bytes);

#endif
