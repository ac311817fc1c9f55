/* SPDX-License-Identifier: MIT */
#ifndef WORKER_RUNNER_JOURNAL_H
#define WORKER_RUNNER_JOURNAL_H

/* journal: what must be known of the runs when the runner or the host has died, in two files of the
 * worker's directory that are written in turn. A frame is a head (CRC, size, generation, number,
 * kind) and a JOB as JSON; the latest frame of a run counts. When a file is full, the other one
 * gets the next generation: all runs that are held, a seal, and then what comes. A reader takes the
 * highest generation that has its seal, up to the first frame that is not whole.
 *
 * What ends a run is asked to be kept; a thread writes all that was asked meanwhile and makes it
 * durable with one fdatasync, while the caller goes on. What was noted (a start) or forgotten is
 * written and not synced: after a crash of the host no process of it is left, and an end that comes
 * back is refused by its fence.
 * Threads: locked. Memory: entries belong to the journal, from note or keep to forget. */

#include "worker/runner/record.h"

struct journal;
struct journal_entry;

/* wake_fd (see wake.h, borrowed) is raised when journal_kept has something to tell. What the files
 * hold stays there until the first write, which takes over what is held by then. */
MUST_USE enum err_code journal_open(int work_dir_fd, int wake_fd, struct journal **ret_journal,
                                    struct err *err);
/* Writes what is asked still, ends the thread. */
void journal_close(struct journal *journal);

/* A new entry, empty; owner is what journal_kept answers. NULL when memory is short. */
struct journal_entry *journal_add(struct journal *journal, const struct uuid *job, uint64_t run,
                                  void *owner);
/* Read from the files: the next generation has it as well. */
MUST_USE enum err_code journal_hold(struct journal *journal, struct journal_entry *entry,
                                    const struct runner_job *job, struct err *err);
/* Written when it returns, not synced. */
MUST_USE enum err_code journal_note(struct journal *journal, struct journal_entry *entry,
                                    const struct runner_job *job, struct err *err);
/* Asks for it to be made durable, which journal_kept will tell; tried until it is done. */
MUST_USE enum err_code journal_keep(struct journal *journal, struct journal_entry *entry,
                                    const struct runner_job *job, struct err *err);
/* The owner of an entry that is on the disk as it was last asked for; NULL: no more now. */
void *journal_kept(struct journal *journal);
void journal_forget(struct journal *journal, struct journal_entry *entry);

/* Calls back for every run that the files hold, as it was written last; a callback that returns
 * false ends it. Any process may read, also while a runner writes. */
MUST_USE enum err_code journal_read(int work_dir_fd,
                                    bool (*each)(void *arg, const struct runner_job *job),
                                    void *arg, struct err *err);

#endif
