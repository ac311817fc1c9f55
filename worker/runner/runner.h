/* SPDX-License-Identifier: MIT */
#ifndef WORKER_RUNNER_RUNNER_H
#define WORKER_RUNNER_RUNNER_H

/* runner: the inside of sluice-runner. The loop, one thread with one epoll, talks to the worker and
 * ends what is to be ended in time; so it waits for no disk. What may have to wait is done by
 * helper threads: starter (folders, exec), writer (output), journal (exit records). They raise one
 * wake. All times are CLOCK_BOOTTIME milliseconds (protocol_boot_ms).
 *
 * A run goes through these phases in order:
 *   STARTING  the starter has it; the program is not running yet
 *   RUNNING   the main process lives
 *   SWEEPING  it ended (and is kept as a zombie, so that its number stays its own) while the
 *             other processes of the job are ended
 *   DRAINING  nobody is left to write; the pipes are emptied
 *   FINISHING the output files get their final form, then the exit record is written
 *   EXITED    the record is on the disk; held until the worker forgets it
 * Threads: owner. Longer than 160 lines: what the parts of the loop share is in one place. */

#include "worker/runner/journal.h"
#include "worker/runner/protocol.h"
#include "worker/runner/starter.h"
#include "worker/runner/writer.h"

#define LOG_FILE "runner.log"
#define LOCK_FILE "runner.lock"
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
    struct buf out; /* to be sent by server_flush */
    bool writing;   /* the socket did not take all of it */
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
    pid_t first_pid;     /* as started; the answer to the start tells it, also afterwards */
    bool child_ended;    /* the main process is a zombie */
    json_int_t asked;    /* start request that waits for its answer, or 0 */
    int64_t tell_at;     /* it started: the answer waits until then, or its end; 0: it was told */
    json_int_t adopting; /* the same for adopt */
    uint64_t asked_by;   /* generation of the connection that sent it */
    struct runner_limits limits;
    struct start_task *task; /* while STARTING */
    struct watch child;      /* pidfd */
    struct watch streams[2]; /* stdout, stderr: until there is something to read */
    struct flow *flow;       /* NULL once its results are in the record */
    bool flowing;            /* the writer has it */
    struct journal_entry *entry;
    bool keeping;    /* the journal was asked to keep the end */
    int64_t wall_at; /* TERM for the wall limit; NEVER */
    int64_t kill_at; /* KILL to everything; NEVER until it is being ended */
    int64_t next_at; /* next try of the phase */
    int64_t until;   /* the phase gives up */
    bool killed;     /* KILL was sent */
};

struct runner {
    int work_dir;
    int lock; /* held while the runner lives; the file holds its pid */
    const char *name;
    char secret[RUNNER_SECRET_SIZE]; /* that a worker has to know */
    int epoll;
    struct watch timer;
    int64_t timer_at; /* as set last */
    struct watch signals;
    struct watch listener;
    uint64_t strangers;   /* refused since the log was told of them */
    int64_t strangers_at; /* not told before */
    int64_t listen_at;    /* it is not watched until then; 0: it is */
    struct watch helpers; /* the wake of the three */
    struct journal *journal;
    struct confine *confine;
    struct starter *starter;
    struct writer *writer;
    struct link peer;  /* the worker; its fd is -1 while none is connected */
    struct link guest; /* the newest connection that has not said hello */
    uint64_t peer_generation;
    struct run *runs;
    size_t run_count;
    bool granted; /* a ping has come */
    int64_t grant_until;
    int64_t grant_grace;
    int64_t grant_slept; /* runner_slept_ms() when it was heard */
    bool leaving;        /* exit as soon as no job runs */
    bool stopping;       /* SIGTERM: no more starts */
    uint64_t soft_files;
};

/* loop.c */
MUST_USE enum err_code runner_watch(struct runner *runner, struct watch *watch, struct err *err);
/* Changes what is watched for: reading, and writing too if there is something to write. */
void runner_rewatch(struct runner *runner, struct watch *watch, bool writing);
void runner_unwatch(struct runner *runner, struct watch *watch); /* closes its fd */
void runner_release(struct runner *runner, struct watch *watch); /* leaves its fd open */
MUST_USE enum err_code runner_loop(struct runner *runner, struct err *err);
int64_t runner_slept_ms(void); /* how long the host has been suspended since its boot */

/* job_table.c */
struct run *job_find(const struct runner *runner, const struct uuid *job);
size_t job_running(const struct runner *runner); /* runs that have not exited */
/* A run in the table, with its entry in the journal; NULL when memory is short. */
struct run *job_add(struct runner *runner, const struct uuid *job, uint64_t fence, uint64_t number);
/* Takes over an exit record that a former runner left; ERR_DUPLICATE: a later one is held. */
MUST_USE enum err_code job_hold(struct runner *runner, const struct runner_record *record,
                                struct run **ret_run, struct err *err);
/* Answered when it is on the disk. */
MUST_USE enum err_code job_adopt(struct runner *runner, struct run *run, uint64_t fence,
                                 struct err *err);
void job_forget(struct runner *runner, struct run *run); /* an exited one */

/* job_start.c */
/* Adds a run and asks for its process; start leads into message. One that could not be started is
 * about to exit. */
MUST_USE enum err_code job_start(struct runner *runner, json_t *message,
                                 struct runner_start *take_start, struct run **ret_run,
                                 struct err *err);
void job_started(struct runner *runner, struct start_task *task); /* takes it */
/* Answers the start request when that is due; when it will be. */
int64_t job_tell_start(struct runner *runner, struct run *run, int64_t now);
void job_set_end(struct run *run);

/* job.c */
void job_stream_ready(struct runner *runner, struct watch *watch);
/* To the main process's group; a process that is not there yet is called off. */
void job_signal(const struct run *run, int signal_number);
/* TERM now, KILL after grace_ms; the first reason stays, an earlier KILL counts. */
void job_end(struct run *run, enum runner_reason reason, int64_t grace_ms, const char *note);
/* Moves on as far as it can; when it wants to be called again at the latest. */
int64_t job_advance(struct runner *runner, struct run *run, int64_t now);
void job_written(struct runner *runner, struct flow *flow); /* takes it */
/* What the journal is to say of it now, on the disk. */
MUST_USE enum err_code job_keep(struct runner *runner, struct run *run, struct err *err);
void job_kept(struct runner *runner, struct run *run); /* it does */

/* lost.c */
/* At the start: ends what is left of runs whose runner died, and writes their records. */
void lost_settle(struct runner *runner);

/* request.c */
/* Serves one message of the worker; true: *ret_answer (a new reference) is to be sent now. */
bool request_serve(struct runner *runner, json_t *message, json_t **ret_answer);
json_t *request_start_answer(const struct run *run, bool existing);

/* peer.c */
/* What a hello must bring, made anew: in a file that jobs cannot open. */
MUST_USE enum err_code peer_make_secret(struct runner *runner, struct err *err);
bool peer_knows_secret(const struct runner *runner, const char *secret);
/* A process of a job, or one that is gone: everything that a job starts stays below the runner. */
bool peer_is_job(pid_t pid);

/* server.c */
MUST_USE enum err_code server_open(struct runner *runner, struct err *err);
void server_close(struct runner *runner);
int64_t server_listen(struct runner *runner, int64_t now); /* when to call it again */
void server_hear(struct runner *runner); /* what the worker has sent already, without waiting */
void server_started(struct runner *runner, struct run *run); /* answers the start request */
void server_exited(struct runner *runner, struct run *run);  /* answers it, or sends the event */
void server_adopted(struct runner *runner, struct run *run); /* answers the adopt request */
void server_flush(struct runner *runner);                    /* sends what was said since */

#endif
