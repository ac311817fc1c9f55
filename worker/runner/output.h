/* SPDX-License-Identifier: MIT */
#ifndef WORKER_RUNNER_OUTPUT_H
#define WORKER_RUNNER_OUTPUT_H

/* output: one stream of a job, kept in a file within a cap. Up to the cap the file is what the job
 * wrote, byte for byte, as it comes. What passes the cap goes round in a nameless ring file, and at
 * the end the file is replaced by its first half of the cap, a marker line, and the last half of
 * the cap that was written. So [0, cap) of the file does not change while the job runs.
 * A disk that fails never stops the job: its output is cut, and counted on.
 * Threads: owner. Memory: flat, whatever the size. */

#include "common/base/err.h"
#include "worker/runner/record.h"

struct output {
    int dir; /* borrowed */
    const char *name;
    int file;
    int ring;       /* -1 until the cap is passed */
    int fresh;      /* the file that is put together at the end */
    uint64_t cap;   /* most bytes kept */
    uint64_t head;  /* kept from the start: half of the cap */
    uint64_t total; /* written by the job */
    uint64_t end;   /* of those, on the disk or over-written in the ring */
    uint64_t kept;  /* once finished */
    uint64_t made;  /* bytes of the fresh file so far */
    int error;      /* errno of the write that failed, or 0 */
    int ring_error; /* the same, before the final file was begun */
    bool finished;
};

#define OUTPUT_NONE ((struct output){.dir = -1, .file = -1, .ring = -1, .fresh = -1})

/* Makes or empties the file; dir_fd must stay open as long as the output. */
MUST_USE enum err_code output_open(struct output *output, int dir_fd, const char *name,
                                   uint64_t cap, struct err *err);
void output_write(struct output *output, const char *bytes, size_t size_bytes);
/* Some work towards the final file (a few megabytes at most); true when it is done. */
bool output_finish(struct output *output);
struct runner_stream output_result(const struct output *output);
void output_close(struct output *output);

#endif
