/* SPDX-License-Identifier: MIT */
#ifndef WORKER_RUNNER_WRITER_H
#define WORKER_RUNNER_WRITER_H

/* writer: a thread that reads what jobs write and keeps it in files beneath the archive root, the
 * only one of the runner that touches them. When that file system hangs, so does this thread: then
 * nothing is read, the pipes fill up and the jobs that write wait; all else goes on.
 * Threads: owner. Memory: a flow is made and freed by its owner, and the writer's from its first
 * writer call until writer_done hands it back. */

#include "worker/runner/output.h"

struct writer;
struct flow; /* both streams of one run */

/* Folder and files are made at the first byte, or by writer_open_files. */
struct flow *flow_new(void *owner, const char *output_root, const char *output_dir, uint64_t cap);
void flow_free(struct flow *flow);
void *flow_owner(const struct flow *flow);
struct runner_stream flow_result(const struct flow *flow, size_t which); /* once handed back */

/* The wake_fd (borrowed) is raised when writer_done has something to tell. */
MUST_USE enum err_code writer_open(int wake_fd, struct writer **ret_writer, struct err *err);
/* The writer holds no flow any more. */
void writer_close(struct writer *writer);
/* So that the files of an earlier run are not taken for those of this one. */
void writer_open_files(struct writer *writer, struct flow *flow);
/* From now on it reads the pipe: stdout (0) or stderr (1). */
void writer_take(struct writer *writer, struct flow *flow, size_t which, int *take_fd);
/* Nothing is to be taken any more. The files get their final form when the pipes are at their end,
 * or wait_ms later. */
void writer_end(struct writer *writer, struct flow *flow, int wait_ms);
struct flow *writer_done(struct writer *writer); /* one that is finished; NULL: no more now */

#endif
