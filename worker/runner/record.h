/* SPDX-License-Identifier: MIT */
#ifndef WORKER_RUNNER_RECORD_H
#define WORKER_RUNNER_RECORD_H

/* record: what is known of a run and of its end. The exit record is in the runner's journal (see
 * journal.h), on the disk before anybody is told of it.
 * Threads: any. Memory: records hold no pointers. */

#include "common/base/err.h"
#include "common/base/uuid.h"

#include <jansson.h>
#include <sys/types.h>

#define RUNNER_NOTE_SIZE 64
#define RUNNER_ERRNO_SIZE 24
#define RUNNER_STEP_SIZE 16
#define RUNNER_STEP_INTERPRETER "interpreter" /* the script is there, what is to read it is not */
#define RUNNER_DIR_SIZE 72                    /* "jobs/<uuid>.<run>" and its NUL fit */

enum runner_reason {
#define RUNNER_REASON(name, text, infrastructure) RUNNER_##name,
#include "worker/runner/reason.def"
#undef RUNNER_REASON
    RUNNER_REASON_COUNT
};

struct runner_stream {
    uint64_t total_bytes;          /* what the job wrote */
    uint64_t kept_bytes;           /* of those, in the file (the marker line not counted) */
    bool truncated;                /* some are left out: over the cap, or the disk failed */
    char error[RUNNER_ERRNO_SIZE]; /* "ENOSPC" if writing failed, else "" */
};

struct runner_record {
    struct uuid job;
    uint64_t fence;                      /* of the owner, as adopted last */
    uint64_t run;                        /* the fence that it was started with, if not said else */
    char start_error[RUNNER_ERRNO_SIZE]; /* "ENOENT" if it could not be started, else "" */
    char start_step[RUNNER_STEP_SIZE];   /* output, setup, chdir, limits, fork, exec, ...; or "" */
    int exit_code;                       /* 0 to 255; -1 if not started or ended by a signal */
    int signal;                          /* that ended it, or 0 */
    bool core_dumped;
    enum runner_reason reason;
    char note[RUNNER_NOTE_SIZE]; /* what runner_client_kill was given */
    int64_t started_us;          /* wall clock since 1970 UTC */
    int64_t ended_us;
    int64_t ended_boot_us; /* CLOCK_BOOTTIME; 0: read from the journal, perhaps of another boot */
    uint64_t wall_ms;      /* by a clock that nobody sets */
    uint64_t run_us;       /* the same; 0: by a runner of an earlier version */
    uint64_t user_ms;      /* cpu time of the main process and those that it waited for */
    uint64_t system_ms;
    uint64_t max_rss_bytes;
    uint64_t leftovers; /* processes of the job that could not be ended (normally 0) */
    struct runner_stream out;
    struct runner_stream err;
};

/* A run as the runner holds it. */
struct runner_job {
    struct uuid job;
    uint64_t fence;
    uint64_t run;
    pid_t pid;                   /* of the main process; 0 if it has none (any more) */
    int64_t started_us;          /* wall clock since 1970 UTC */
    int64_t started_boot_us;     /* CLOCK_BOOTTIME; 0: by a runner of an earlier version */
    bool exited;                 /* true: `record` is filled, and on the disk */
    struct runner_record record; /* only if exited */
};

const char *runner_reason_text(enum runner_reason reason); /* "wall_limit" */
bool runner_reason_is_infrastructure(enum runner_reason reason);
/* Disk full, quota or another write error cut the output (reason "output-disk-full"). */
bool runner_record_output_failed(const struct runner_record *record);

/* "jobs/<uuid>.<run>", beneath the worker's directory; ret_dir has RUNNER_DIR_SIZE bytes and is
 * returned. It is the job's default working directory. */
const char *runner_job_dir(const struct uuid *job, uint64_t run, char *ret_dir);

/* A new reference, or NULL when memory is short. */
json_t *runner_record_json(const struct runner_record *record);
MUST_USE enum err_code runner_record_parse(const json_t *json, struct runner_record *ret_record,
                                           struct err *err);
json_t *runner_job_json(const struct runner_job *job);
MUST_USE enum err_code runner_job_parse(const json_t *json, struct runner_job *ret_job,
                                        struct err *err);

#endif
