/* SPDX-License-Identifier: MIT */
#ifndef WORKER_SLOTS_H
#define WORKER_SLOTS_H

/* slots: the threads that drive jobs, the deliveries that wait for one, and a mailbox for each.
 * A slot works on one delivery or one adopted run at a time. A job may go on without its delivery
 * (adopted after a restart, or its channel was closed), so the channels wanted are the slots less
 * the jobs that run without one.
 *
 * What is limited to setup.count is jobs at work: from the claim to the end of the run. A job whose
 * run has ended finishes (slot_finish(): the commit of its end, the acknowledgement, cleaning up)
 * beside the next one. While the runs are short (worker/ahead.h) setup.ahead further channels see
 * to it that the next one is there; then a delivery may wait, but no longer than AHEAD_LATE_MS
 * (or until one of the threads is through with its job): it is given back to the queue, and so are
 * those that wait when nothing is to be received. Threads: locked; calls on a struct slot are for
 * the thread that drives it. Memory:  deliveries are taken over; a slot lends what it holds. */

#include "common/bus/consumer.h"
#include "worker/runner/record.h"

#define SLOTS_MAX BUS_CHANNELS_MAX

struct slots;
struct slot;

/* What can be in a mailbox, as bits. All but EXITED stay until the slot is free again. */
enum slot_mail {
    MAIL_EXITED = 1, /* the runner told the end of the run: slot_take_exit() */
    MAIL_CANCEL = 2, /* somebody asked for the job to be cancelled */
    MAIL_FENCED = 4, /* the job, or this worker as a whole, lost its ownership: write nothing */
    MAIL_LEAVE = 8,  /* the worker stops: leave what goes on by itself, give back the rest */
    MAIL_LOST = 16,  /* the broker took the delivery back: only of interest while nothing is held */
};

struct slots_counts {
    unsigned working;   /* from the claim to the end of the run */
    unsigned finishing; /* their run has ended */
    unsigned waiting;   /* deliveries without a slot, those set aside among them */
};

struct slots_setup {
    unsigned count;   /* slots of the configuration: deliveries are taken for these */
    unsigned threads; /* at least count; more when more runs were found than there are slots */
    unsigned ahead;   /* further deliveries, and jobs that finish beside those at work; 0: none */
    unsigned aside;   /* so many more may be set aside; 0: none */
    void *arg;
    /* Drives a delivery (slot_delivery()) or an adopted run (adopted, given to it). */
    void (*work)(void *arg, struct slot *slot, void *adopted);
    void (*set_channels)(void *arg, unsigned wanted);
    /* Gives back a delivery that has waited for too long; NULL if ahead is 0. */
    void (*give_back)(void *arg, struct slot *slot);
    /* After each change, and under the lock: for metrics. May be NULL. */
    void (*counted)(void *arg, const struct slots_counts *counts);
};

MUST_USE enum err_code slots_open(const struct slots_setup *setup, struct slots **ret_slots,
                                  struct err *err);
/* Waits until all threads have ended, which slots_stop() must have asked for. */
void slots_join(struct slots *slots);
void slots_free(struct slots *slots); /* joins if that was not done; NULL is allowed */
DEFINE_AUTO(struct slots *, slots_free)

/* Channels are wanted from now on (false: none, and what waits is given back), once every adopted
 * run has its slot; never again after slots_stop(). */
void slots_receive(struct slots *slots, bool receive);
/* For on_delivery: queues it. */
void slots_offer(struct slots *slots, struct bus_delivery **take_delivery);
/* For on_lost. */
void slots_lose(struct slots *slots, const struct bus_delivery *delivery);
/* A run to be driven without a delivery; the slot holds its job from the beginning. At most
 * setup.threads of them, before slots_receive(). */
void slots_adopt(struct slots *slots, void *adopted, const struct uuid *job, uint64_t fence);
/* Nothing new is begun: queued deliveries go back, idle threads end. */
void slots_stop(struct slots *slots);

/* Puts mail to the slot that holds this job; false: none does. */
bool slots_post(struct slots *slots, const struct uuid *job, unsigned mail);
void slots_post_all(struct slots *slots, unsigned mail); /* also to what begins later */
/* The end of a run, if a slot holds the job with the record's fence. */
bool slots_post_exit(struct slots *slots, const struct runner_record *record);
/* Gives the delivery of this slot to the one that holds the job. */
enum slots_handover {
    HANDOVER_DONE,      /* taken: the slot had lost its own */
    HANDOVER_DUPLICATE, /* taken, and the slot's former one acknowledged: the broker may be about to
                         * tell that it took that one back, and this is the same message */
    HANDOVER_NOBODY,    /* not taken: no slot holds the job */
    HANDOVER_LOST,      /* there is none to be given: the broker took it back meanwhile */
};
enum slots_handover slots_hand_over(struct slots *slots, struct slot *from, const struct uuid *job);
unsigned slots_busy(struct slots *slots);    /* jobs at work, jobs that finish */
unsigned slots_working(struct slots *slots); /* jobs at work */
bool slots_hold(struct slots *slots, const struct uuid *job);
/* Waits until no slot is busy; false at deadline_ms (clock_mono_ms). */
bool slots_wait_idle(struct slots *slots, int64_t deadline_ms);

/* ---- for the thread of a slot ------------------------------------------------------------- */

/* The delivery being driven, or NULL. Lent until slot_settle() or slots_hand_over(). */
struct bus_delivery *slot_delivery(struct slot *slot);
/* It was taken back by the broker, or there never was one. */
bool slot_delivery_lost(struct slot *slot);
/* This slot holds the job from now on; false when another slot does. */
MUST_USE bool slot_hold_job(struct slot *slot, const struct uuid *job);
/* The fence of the ownership; mail for former ones is not taken. */
void slot_set_fence(struct slot *slot, uint64_t fence);
void slot_release_job(struct slot *slot);
/* The run has ended and the job's process is gone: the next job may start while this one finishes
 * (unless too many do so). */
void slot_finish(struct slot *slot);
/* slot_finish() made room for another job: no process may be started in this slot any more. */
bool slot_is_finishing(struct slot *slot);
/* Waits for any of the mail in mask; what is there of it, 0 at deadline_ms (clock_mono_ms). */
unsigned slot_wait(struct slot *slot, unsigned mask, int64_t deadline_ms);
unsigned slot_mail(struct slot *slot);
/* Takes the record that MAIL_EXITED announced. */
void slot_take_exit(struct slot *slot, struct runner_record *ret_record);
/* Settles the delivery, if there is one. */
void slot_settle(struct slot *slot, enum bus_settle how);
/* Keeps the delivery until due_ms (clock_mono_ms), when a slot is given it again: this one is free
 * for another meanwhile, and a further channel is wanted. false: as many are kept as may be, or
 * there is none to be kept. */
MUST_USE bool slot_set_aside(struct slot *slot, int64_t due_ms);
/* Takes the delivery out of the slot, to give it to another. */
struct bus_delivery *slot_take_delivery(struct slot *slot);

#endif
