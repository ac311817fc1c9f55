/* SPDX-License-Identifier: MIT */
#ifndef WORKER_RUNNER_RUNNER_H
#define WORKER_RUNNER_RUNNER_H

/* runner: the inside of sluice-runner. One thread, one epoll; all times are CLOCK_BOOTTIME
 * milliseconds (protocol_boot_ms).
 *
 * A run goes through the phases in order, moved on by job_advance only:
 *   STARTING  forked; the program is not running yet
 *   RUNNING   the main process lives
 *   SWEEPING  it ended (and is kept as a zombie, so that its number stays its own) while the
 *             other processes of the job are ended
 *   DRAINING  nobody is left to write; the pipes are read to their end
 *   FINISHING the output files get their final form, then the exit record is written
 *   EXITED    the record is on the disk; held until the worker forgets it
 * Threads: owner. */

#include "worker/runner/output.h"
#include "worker/runner/protocol.h"

#define LOG_FILE "runner.log"
#define LOCK_FILE "runner.lock"
#define START_FILE "start.json"
#define EXIT_LOCKED 75 /* another runner of this name lives */
#define NEVER INT64_MAX

struct runner;
struct run;
/* Something that epoll watches. fd is owned; -1 when it is not watched. */
struct watch {
    int fd;
    void (*ready)(struct runner *runner, struct watch *watch);
    struct run *run;
};

/* A connection. */
struct link {
    struct watch watch;
    struct buf in;
    struct buf out; /* what the socket did not take yet */
};

enum run_phase {
    RUN_STARTING,
    RUN_RUNNING,
    RUN_SWEEPING,
    RUN_DRAINING,
    RUN_FINISHING,
    RUN_EXITED,
};

struct run {
    struct run *next;
    struct runner_job job;
    struct runner_record record; /* grows; copied to job when it is on the disk */
    enum run_phase phase;
    bool child_ended;  /* the main process is a zombie */
    json_int_t asked;  /* start request that waits for its answer, or 0 */
    uint64_t asked_by; /* generation of the connection that sent it */
    struct runner_limits limits;
    struct watch child;      /* pidfd */
    struct watch report;     /* what the child says of its exec */
    struct watch streams[2]; /* stdout, stderr */
    struct output outputs[2];
    int output_dir;
    int64_t started_ms;
    int64_t wall_at; /* TERM for the wall limit; NEVER */
    int64_t kill_at; /* KILL to everything; NEVER until it is being ended */
    int64_t next_at; /* next try of the phase */
    int64_t until;   /* the phase gives up */
    bool killed;     /* KILL was sent */
    bool record_failed;
};

struct runner {
    int work_dir;
    int lock; /* held while the runner lives; the file holds its pid */
    const char *name;
    int epoll;
    struct watch timer;
    struct watch signals;
    struct watch listener;
    struct link peer;  /* the worker; its fd is -1 while none is connected */
    struct link guest; /* the newest connection that has not said hello */
    uint64_t peer_generation;
    struct run *runs;
    size_t run_count;
    bool granted; /* a ping has come */
    int64_t grant_until;
    int64_t grant_grace;
    bool leaving;  /* exit as soon as no job runs */
    bool stopping; /* SIGTERM: no more starts */
    uint64_t soft_files;
};

/* loop.c */
MUST_USE enum err_code runner_watch(struct runner *runner, struct watch *watch, struct err *err);
/* Changes what is watched for: reading, and writing too if there is something to write. */
void runner_rewatch(struct runner *runner, struct watch *watch, bool writing);
void runner_unwatch(struct runner *runner, struct watch *watch); /* closes its fd */
MUST_USE enum err_code runner_loop(struct runner *runner, struct err *err);

/* job_table.c */
struct run *job_find(const struct runner *runner, const struct uuid *job);
size_t job_running(const struct runner *runner); /* runs that have not exited */
/* An empty run in the table; NULL when memory is short. */
struct run *job_add(struct runner *runner, const struct uuid *job, uint64_t fence, uint64_t number);
/* Takes over an exit record that is on the disk. */
MUST_USE enum err_code job_hold(struct runner *runner, const struct runner_record *record,
                                struct err *err);
MUST_USE enum err_code job_adopt(struct runner *runner, struct run *run, uint64_t fence,
                                 struct err *err);
void job_forget(struct runner *runner, struct run *run); /* an exited one */

/* job_start.c */
/* Always adds a run, if memory allows: one that could not be started is about to exit. */
MUST_USE enum err_code job_start(struct runner *runner, const struct runner_start *start,
                                 struct run **ret_run, struct err *err);
void job_report_ready(struct runner *runner, struct watch *watch);
void job_set_end(struct run *run, int64_t now);

/* job.c */
void job_stream_ready(struct runner *runner, struct watch *watch);
void job_signal(const struct run *run, int signal_number); /* to the main process's group */
/* TERM now, KILL after grace_ms; the first reason stays, an earlier KILL counts. */
void job_end(struct run *run, enum runner_reason reason, int64_t grace_ms, const char *note);
/* Moves on as far as it can, but waits for no disk before it has been in FINISHING when called;
 * when it wants to be called again at the latest. */
int64_t job_advance(struct runner *runner, struct run *run, int64_t now);
/* Zombies that the runner adopted while their job goes on. */
void job_reap_orphans(const struct runner *runner);

/* lost.c */
/* Notes on the disk that a run was started, so that the next runner knows of it. */
MUST_USE enum err_code lost_note(struct runner *runner, const struct run *run, struct err *err);
/* At the start: ends what is left of runs whose runner died, and writes their records. */
void lost_settle(struct runner *runner);

/* request.c */
/* Serves one message of the worker; true: *ret_answer (a new reference) is to be sent now. */
bool request_serve(struct runner *runner, json_t *message, json_t **ret_answer);
json_t *request_start_answer(const struct run *run, bool existing);

/* server.c */
MUST_USE enum err_code server_open(struct runner *runner, struct err *err);
void server_close(struct runner *runner);
void server_hear(struct runner *runner); /* what the worker has sent already, without waiting */
void server_started(struct runner *runner, struct run *run); /* answers the start request */
void server_exited(struct runner *runner, struct run *run);  /* answers it, or sends the event */

#endif
