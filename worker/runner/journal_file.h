/* SPDX-License-Identifier: MIT */
#ifndef WORKER_RUNNER_JOURNAL_FILE_H
#define WORKER_RUNNER_JOURNAL_FILE_H

/* journal file: the frames of a journal, see journal.h.
 * Threads: any. */

#include "common/base/buf.h"
#include "common/base/err.h"

#define JOURNAL_FILES 2
#define JOURNAL_SIZE                                                                               \
    ((size_t)1024 * 1024) /* a file is filled up to here, or further if need be                    \
                           */
#define JOURNAL_MAX ((size_t)64 * 1024 * 1024)

enum journal_kind {
    JOURNAL_JOB = 1, /* a JOB */
    JOURNAL_FORGET,  /* "<uuid>.<run>" */
    JOURNAL_SEAL,    /* empty: the runs that were held are complete */
};

struct journal_frame {
    enum journal_kind kind;
    uint64_t generation;
    uint64_t number; /* in the generation, from 0 */
    struct sv text;
};

extern const char *const journal_names[JOURNAL_FILES];

/* Appends it to bytes, whose `failed` tells if memory was short. */
void journal_frame_put(struct buf *bytes, const struct journal_frame *frame);
/* Takes the frame at *io_at; false: there is none that is whole and follows `before` (NULL: any).
 */
bool journal_frame_take(struct sv bytes, size_t *io_at, const struct journal_frame *before,
                        struct journal_frame *ret_frame);
/* The file with the highest generation that is sealed; empty bytes, generation 0 and the last file
 * if there is none. */
MUST_USE enum err_code journal_files_read(int work_dir_fd, struct buf *ret_bytes,
                                          uint64_t *ret_generation, size_t *ret_file,
                                          struct err *err);

#endif
