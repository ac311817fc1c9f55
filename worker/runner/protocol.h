/* SPDX-License-Identifier: MIT */
#ifndef WORKER_RUNNER_PROTOCOL_H
#define WORKER_RUNNER_PROTOCOL_H

/* protocol: what worker and runner say to each other over the socket `runner.sock` in the worker's
 * directory (stream, mode 0600, same user only). A message is four bytes of length, highest first,
 * and that many bytes of JSON; unknown members and duplicate keys are refused.
 *
 * Requests carry `id`, which their answer repeats as `re`; `job` is a UUID, fences are integers.
 *   {"op":"hello","id":1,"version":2,"worker":UUID,"secret":HEX,"confine":{"mode":M,"read":[],
 *    "write":[],"deny":[],"uid":U,"gid":G}}   first; ends the connection of a former worker
 *        -> {"re":1,"version":2,"pid":P}
 *     The secret is what the file `runner.secret` holds, which the runner makes when it starts:
 *     jobs cannot open it. Without `confine` jobs are not confined; without `uid` and `gid` they
 *     run as the runner's user. Version 1 had neither member; a worker says it to a runner of then.
 *   {"op":"ping","until_ms":T,"grace_ms":G}  T on CLOCK_BOOTTIME, which worker and runner share
 *   {"op":"list"}                            -> "jobs":[JOB...]
 *   {"op":"start","job","fence","run","argv":[],"env":[],"working_dir","output_root","output_dir",
 *    "output_max_bytes","limits":{wall_ms,grace_ms,memory_bytes,cpu_s,processes,file_bytes,
 *    open_files}}                            -> "job":JOB,"existing":bool
 *   {"op":"adopt","job","fence","new_fence"} -> "job":JOB
 *   {"op":"signal","job","fence","signal"}, {"op":"kill","job","fence","grace_ms","note"},
 *   {"op":"forget","job","fence"}, {"op":"bye"} (exit once no job runs)
 * Any of them may be answered with {"re":N,"error":CODE,"text":...}; CODE is a name in err.def.
 * Event, from the runner: {"event":"exited","record":RECORD}. JOB and RECORD are in record.c.
 * Threads: any. Memory: see each call. */

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/model/limits.h"
#include "worker/runner/client.h"

#include <jansson.h>

#define RUNNER_PROTOCOL 2
#define RUNNER_PROTOCOL_FORMER 1
#define RUNNER_SOCKET "runner.sock"
#define RUNNER_SECRET "runner.secret"
#define RUNNER_SECRET_SIZE 65 /* 32 bytes in hexadecimal, and the end */
/* Whatever a job may ask to have launched fits: JSON writes a control character in six bytes. */
#define RUNNER_REQUEST_MAX ((size_t)6 * LIMIT_LAUNCH_BYTES + (size_t)256 * 1024)
#define RUNNER_ANSWER_MAX ((size_t)8 * 1024 * 1024)
#define RUNNER_OUTPUT_MIN 1024
#define RUNNER_JOBS_MAX 4096 /* runs held at once, running or exited */

/* Appends the message in its frame. ERR_TOO_LARGE over limit bytes. Takes no reference. */
MUST_USE enum err_code protocol_pack(struct buf *out, const json_t *message, size_t limit,
                                     struct err *err);
/* Takes the first message off the bytes that have come; *ret_message is a new reference, or NULL
 * if it is not complete yet. ERR_PROTOCOL: the connection cannot be used any more. */
MUST_USE enum err_code protocol_unpack(struct buf *in, size_t limit, json_t **ret_message,
                                       struct err *err);

/* The start request; id is added by the caller. A new reference. ERR_INVALID, ERR_TOO_LARGE. */
MUST_USE enum err_code protocol_start_json(const struct runner_start *start, json_t **ret_message,
                                           struct err *err);
/* The pointers in ret_start lead into message, and to arrays freed by protocol_start_clear. */
MUST_USE enum err_code protocol_start_parse(const json_t *message, struct runner_start *ret_start,
                                            struct err *err);
void protocol_start_clear(struct runner_start *start);

json_t *protocol_list_json(const char *const *texts); /* ended by NULL; a new reference */
json_t *protocol_error_json(json_int_t re, const struct err *error); /* a new reference */
/* ERR_OK if the answer is none of an error; else that code, with its text in err. */
enum err_code protocol_answer_error(const json_t *answer, struct err *err);

/* CLOCK_BOOTTIME goes on while the host sleeps, so a lease ends then as well. */
int64_t protocol_boot_ms(void);

#endif
