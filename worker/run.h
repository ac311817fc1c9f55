/* SPDX-License-Identifier: MIT */
#ifndef WORKER_RUN_H
#define WORKER_RUN_H

/* run: one job as a slot drives it, from its claim to its end. The phases note the states that they
 * reach; notes become rows (several moves in one transaction) when a commit is due: a claim with
 * what follows at once, RUNNING if it lasts, the end.
 * Threads: owner (the slot's thread).
 * Memory:  run_open() takes the job; run_close() frees all of it. */

#include "common/model/job_request.h"
#include "common/store/gate_store.h"
#include "common/store/job_store.h"
#include "worker/environment.h"
#include "worker/outcome.h"
#include "worker/runner/client.h"
#include "worker/worker.h"

#define RUN_DELAY_SIZE 300

enum phase_result {
    PHASE_DONE,    /* on to the next phase */
    PHASE_ENDED,   /* the job ends here, as run->end says */
    PHASE_LOST,    /* the infrastructure ended the run: charge a loss, run again */
    PHASE_FENCED,  /* somebody else may own the job: kill, write nothing */
    PHASE_LEFT,    /* the worker stops: leave the job as it is */
    PHASE_BLOCKED, /* it waits for something: recovery has it now */
    PHASE_SHORT,   /* the host is short of something: the phase is tried again soon */
};

struct run {
    struct worker *w;
    struct slot *slot;
    struct job *job;             /* as read before the claim; status is kept to what is recorded */
    struct job_request *request; /* NULL if it cannot be read */
    char id_text[UUID_TEXT_SIZE];
    char traceparent[64];
    struct job_hold hold;
    struct job_gate gate;                 /* what it needs, as read before the claim */
    bool looked;                          /* the gate was read with the job, just now */
    struct job_move notes[JOB_MOVES_MAX]; /* reached, not recorded yet */
    size_t note_count;
    uint64_t run;                /* names directories: the fence that the run was started with */
    char dir[RUNNER_DIR_SIZE];   /* beneath the worker's directory */
    char home[WORKER_PATH_SIZE]; /* absolute: where the job starts */
    bool adopted;                /* the runner had it when this worker came */
    uint64_t runner_fence;       /* as the runner knows it */
    unsigned runner_opened;      /* runner_link_opened() when the runner had it */
    bool started;                /* the runner holds it, or may: it was asked */
    bool exited;                 /* record is filled */
    int64_t started_us;          /* of its process, clock_boot_us(); 0: not known */
    struct runner_record record;
    struct environment environment;
    bool patient;               /* a shortage of the host ends nothing yet */
    bool disk;                  /* ... its disk is full, which never does */
    char delay[RUN_DELAY_SIZE]; /* the shortage, for people */
    struct outcome end;
};

struct phase {
    enum job_state state;
    enum phase_result (*step)(struct run *run);
};

/* ret_run is of the caller's stack. Reads the request; a request that cannot be read is no error
 * here. */
void run_open(struct run *ret_run, struct worker *w, struct slot *slot, struct job **take_job);
/* What was read with the job. */
void run_looked(struct run *run, const struct job_gate *gate);
/* A run that the runner holds already: before the claim. */
void run_found(struct run *run, const struct runner_job *found);
void run_close(struct run *run);

/* Claims it, with the moves that follow at once. from_owner: a takeover from the row's owner.
 * ERR_CONFLICT: read the row again. */
MUST_USE enum err_code run_claim(struct run *run, bool from_owner, bool charge_loss,
                                 const char *detail, struct err *err);
/* The same in two steps, for a job that nobody owns and whose gate was read: the claim, which leads
 * into the run, and what follows once it was made. */
void run_plan_claim(struct run *run, struct job_claim *ret_claim);
void run_claimed(struct run *run, const struct job_claim *claim, uint64_t fence);
/* Drives a claimed job until it ended or is left; false: it was fenced, and a delivery that the
 * slot still holds has to be looked at again. */
bool run_drive(struct run *run);

/* ---- for the phases ------------------------------------------------------------------------ */

void run_note(struct run *run, enum job_state state);
/* Writes the notes. ERR_FENCED; others may pass. */
MUST_USE enum err_code run_commit(struct run *run, struct err *err);
/* As run_commit, tried again until it is written, fenced or left. */
MUST_USE enum phase_result run_commit_now(struct run *run);
/* Something that ends the phase early: cancel (the end is filled), fence, stop. */
MUST_USE enum phase_result run_interrupted(struct run *run);
/* Fills the end: FAILED for this condition, with a reason. Answers PHASE_ENDED; or PHASE_SHORT, and
 * fills nothing, if memory, descriptors, threads or processes ran out and might come back. */
enum phase_result run_fail(struct run *run, enum job_condition condition, const struct err *why);
/* Fills the end: CANCELLED, and by whom. Answers PHASE_ENDED. */
enum phase_result run_cancelled(struct run *run);
/* Fills the end by the runner's record of it (run_judge.c). */
void run_judge(struct run *run);
/* The disk of the worker's folder is full: that is no fault of the job, which waits for room. Fills
 * run->delay; answers PHASE_SHORT. */
enum phase_result run_disk_full(struct run *run);
/* Runs a phase, or what comes before them, as often as the host is short of something. */
enum phase_result run_step(struct run *run, enum phase_result (*go)(struct run *run));
/* Waits; what came of FENCED and LEAVE, or DONE after pause_ms. */
MUST_USE enum phase_result run_pause(struct run *run, int64_t pause_ms);
/* Something is to be fetched, which may take a while. */
bool run_has_remote_inputs(const struct run *run);

/* run_end.c */
/* Records the end, tells it, acknowledges, cleans up. */
enum phase_result run_finish(struct run *run);
/* Kills what runs, removes it, logs both fences. */
void run_drop(struct run *run);
/* The worker stops: gives back what has no process. */
void run_leave(struct run *run);
/* Charges the loss and makes the run ready to begin again (DONE). */
enum phase_result run_lose(struct run *run);
/* The run's directory, once nobody needs it. */
void run_remove_dir(struct run *run);
/* kept_output.c: the output of the last run that was lost, for a job that ends without one. */
void kept_output_find(const struct run *run, struct job_outcome *row);

#define PHASE(state, function) enum phase_result phase_##function(struct run *run);
#include "worker/phase.def"
#undef PHASE

#endif
