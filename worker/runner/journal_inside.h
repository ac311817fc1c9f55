/* SPDX-License-Identifier: MIT */
#ifndef WORKER_RUNNER_JOURNAL_INSIDE_H
#define WORKER_RUNNER_JOURNAL_INSIDE_H

/* journal inside: what journal.c (opening, calls) and journal_write.c (files, thread) share.
 * Threads: each function says which lock it wants. file_lock is taken before lock. */

#include "common/base/buf.h"
#include "worker/runner/journal.h"
#include "worker/runner/journal_file.h"

#include <pthread.h>

#define FRAME_EXTRA 64 /* bytes of a frame beside its text, at most */
#define KEY_SIZE (UUID_TEXT_SIZE + 24)

enum place { AT_REST, QUEUED, WRITING, KEPT };

struct journal_entry {
    struct journal_entry *next;   /* of those held, or of those forgotten */
    struct journal_entry **at;    /* what points to it among those held */
    struct journal_entry *queued; /* the next one in the queue, the batch or among the kept */
    void *owner;
    enum place place;
    bool again;      /* asked once more while it was written */
    bool forgotten;  /* as soon as it is at rest */
    struct buf text; /* "<uuid>.<run> <JOB>"; the last one that was asked for */
    char key[KEY_SIZE];
};

struct queue {
    struct journal_entry *first;
    struct journal_entry **last;
};

struct journal {
    int wake;
    int files[JOURNAL_FILES];
    pthread_t thread;
    bool has_thread;
    /* Of the files; held over writes, so for as long as a disk hangs. */
    pthread_mutex_t file_lock;
    size_t current; /* the file that is written, or was by the former runner */
    bool fresh;     /* nothing was written yet, or a write failed: the other file is next */
    bool synced;    /* `current` has its seal on the disk */
    uint64_t generation;
    uint64_t number; /* of the next frame */
    size_t at;
    size_t room;      /* where `current` is full */
    struct buf bytes; /* frames to be written */
    /* Of the entries; held over no file. The loop takes this one only: it waits for no disk. */
    pthread_mutex_t lock;
    pthread_cond_t news;
    bool stop;
    struct journal_entry *held;
    struct journal_entry *forgotten;
    struct queue asked;
    struct queue kept;
};

void journal_queue_add(struct queue *queue, struct journal_entry *entry); /* lock is held */
/* Writes one frame of the entry's text; not synced. No lock is held. */
MUST_USE enum err_code journal_write_one(struct journal *journal, const struct journal_entry *entry,
                                         struct err *err);
/* From those held to those forgotten. lock is held. */
void journal_drop(struct journal *journal, struct journal_entry *entry);
void *journal_main(void *journal); /* the thread */

#endif
