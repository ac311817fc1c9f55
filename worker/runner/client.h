/* SPDX-License-Identifier: MIT */
#ifndef WORKER_RUNNER_CLIENT_H
#define WORKER_RUNNER_CLIENT_H

/* runner client: how a worker talks to its runner, the small process beside it that is the parent
 * of the job processes and survives the worker.
 *
 * Usual course: open, list (adopt or kill what is there), ping every beat; then per job: start,
 * wait for on_exit, record the result in the database, forget. A run whose result was not
 * forgotten stays in the runner's list and as exit.json on the disk, through every restart.
 *
 * Threads: any, except open and close. The client owns one thread, which reads the answers and
 * runs the callbacks; a callback must not call the client and must not wait long.
 * Memory:  everything given to a call is borrowed for the call; records are copied out.
 * Errors:  ERR_FENCED       the run is held with another fence: it is not yours
 *          ERR_NOT_FOUND    the runner does not hold this job
 *          ERR_STATE        not in this state (no grant for a start, signal to a run that ended)
 *          ERR_INVALID      an argument is refused; ERR_TOO_LARGE: message over 1 MiB
 *          ERR_TIMEOUT      no answer in time: what became of the call is unknown, list tells
 *          ERR_IO           the connection is lost (on_lost was called or will be). */

#include "common/base/err.h"
#include "common/base/uuid.h"
#include "worker/runner/record.h"

#include <sys/types.h>

struct runner_client;

struct runner_callbacks {
    void *arg;
    /* A run ended; its record is on the disk. Called once for each run that start, list or adopt
     * showed as running to this client (a doubled call for one run is possible only after a
     * reconnect). An on_exit may come before the start that it belongs to (or open) has
     * returned. */
    void (*on_exit)(void *arg, const struct runner_record *record);
    /* The connection ended otherwise than by close: the runner died (its job processes are then
     * killed by the kernel, and the next runner sweeps what they left and shows those runs as
     * exited, reason RUNNER_LOST), or another client took over. Called once, nothing after it.
     * Close this client from another thread and open a new one. */
    void (*on_lost)(void *arg, const struct err *err);
};

enum runner_confine_mode {
    RUNNER_CONFINE_OFF,
    RUNNER_CONFINE_AUTO,     /* where the kernel can */
    RUNNER_CONFINE_REQUIRED, /* no job starts without */
};

/* What the jobs of a runner may reach beside their own folders; lists end with NULL, paths are
 * absolute. What is denied wins over what is allowed. */
struct runner_confine {
    enum runner_confine_mode mode;
    const char *const *read;  /* also to be executed */
    const char *const *write; /* also to be read and executed */
    const char *const *deny;
    bool other_user; /* jobs run as the next two, which needs a runner that is root */
    uid_t uid;
    gid_t gid;
};

struct runner_client_config {
    const char *work_dir;    /* <work_root>/<worker name>: exists, writable, one per worker name */
    const char *worker_name; /* for the logs */
    const char *runner_path; /* the program sluice-runner */
    struct uuid worker_id;   /* of this incarnation */
    const struct runner_confine *confine; /* NULL: jobs are not confined */
    int timeout_ms;                       /* for each call and for the start of a runner; 0: 5000 */
};

/* 0 means no limit, for each. memory, cpu, processes and files are rlimits, so memory and cpu
 * count per process, and processes per user (not for root). */
struct runner_limits {
    uint64_t wall_ms;      /* then TERM to the group; KILL to everything grace_ms later */
    uint64_t grace_ms;     /* 0: KILL at once */
    uint64_t memory_bytes; /* RLIMIT_DATA: writable private memory, not reserved addresses */
    uint64_t cpu_s;        /* SIGXCPU, and KILL one second later */
    uint64_t processes;
    uint64_t file_bytes; /* largest file that the job may write */
    uint64_t open_files;
};

struct runner_start {
    struct uuid job;
    uint64_t fence;
    uint64_t run; /* names the run's directory; 0: the fence */
    /* Both ended by NULL. argv[0] without '/' is looked for in PATH of env. env is the whole
     * environment; with SLUICE_JOB_ID=<uuid> and SLUICE_FENCE=<run> in it, processes that left
     * the job's session are found as well when the job ends. */
    const char *const *argv;
    const char *const *env;
    const char *working_dir;   /* beneath work_dir, made if missing; NULL: runner_job_dir */
    const char *output_root;   /* the archive root, which exists */
    const char *output_dir;    /* beneath it, made if missing; gets `stdout` and `stderr` */
    uint64_t output_max_bytes; /* for each stream, at least 1024: the first half and the last half
                                * of it are kept, with a marker line between */
    struct runner_limits limits;
};

/* Connects to the runner of work_dir, starting one if none lives. */
MUST_USE enum err_code runner_client_open(const struct runner_client_config *cfg,
                                          const struct runner_callbacks *callbacks,
                                          struct runner_client **ret_client, struct err *err);
/* Ends the connection and the thread; callbacks are over when it returns. The runner goes on with
 * its jobs while the grant lasts. stop_if_idle: it exits at once if it runs no job. */
void runner_client_close(struct runner_client *client, bool stop_if_idle);
void runner_client_free(struct runner_client *client); /* close(client, false); NULL is allowed */
DEFINE_AUTO(struct runner_client *, runner_client_free)

pid_t runner_client_pid(const struct runner_client *client); /* of the runner */

/* All runs that it holds; ret_jobs is to be freed with free(). */
MUST_USE enum err_code runner_client_list(struct runner_client *client,
                                          struct runner_job **ret_jobs, size_t *ret_count,
                                          struct err *err);
/* The job processes may live until until_ms (clock_boot_ms, as the runner's own times are); TERM
 * goes out grace_ms before it, KILL at it. The last ping counts, also if it says an earlier time.
 * Being absolute, a ping that was delayed grants nothing more. A start needs a grant that is not
 * over. */
MUST_USE enum err_code runner_client_ping(struct runner_client *client, int64_t until_ms,
                                          int grace_ms, struct err *err);
/* ret_job is the run: running (or it ran: on_exit follows), or exited with start_error in its
 * record when it could not be started (no on_exit then). If the runner holds this job already,
 * running or exited, nothing is started, *ret_existing is true and ret_job is what it holds (look
 * at its fence and run). */
MUST_USE enum err_code runner_client_start(struct runner_client *client,
                                           const struct runner_start *start,
                                           struct runner_job *ret_job, bool *ret_existing,
                                           struct err *err);
/* The run, running or exited, has new_fence (which is higher) from now on, its record too. May be
 * asked again. */
MUST_USE enum err_code runner_client_adopt(struct runner_client *client, const struct uuid *job,
                                           uint64_t old_fence, uint64_t new_fence,
                                           struct runner_job *ret_job, struct err *err);
/* To the main process's group. */
MUST_USE enum err_code runner_client_signal(struct runner_client *client, const struct uuid *job,
                                            uint64_t fence, int signal_number, struct err *err);
/* TERM to the group now, KILL to everything of the job after grace_ms (0: at once); on_exit tells
 * when it is over. Again with a shorter grace hastens it. No error if it has exited already. */
MUST_USE enum err_code runner_client_kill(struct runner_client *client, const struct uuid *job,
                                          uint64_t fence, int grace_ms, const char *note,
                                          struct err *err);
/* The result is recorded: drops an exited run and its exit record. The rest of the run's directory
 * is the worker's to remove. ERR_STATE if it still runs. */
MUST_USE enum err_code runner_client_forget(struct runner_client *client, const struct uuid *job,
                                            uint64_t fence, struct err *err);
/* The same without waiting for it: ERR_OK says only that it was sent. What is not heard leaves a
 * record that the list shows again. */
MUST_USE enum err_code runner_client_forget_soon(struct runner_client *client,
                                                 const struct uuid *job, uint64_t fence,
                                                 struct err *err);

#endif
