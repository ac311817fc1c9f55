/* SPDX-License-Identifier: MIT */
#ifndef COMMON_BUS_CALL_H
#define COMMON_BUS_CALL_H

/* call: a question or a declaration on a channel that is thrown away afterwards, so that a refusal
 * (which closes the channel) costs nothing else; any number at once, none of them waited for
 * (inside bus/ only).
 * Threads: owner (the connection's). Memory: a call is copied; its keys are lent until `done`. */

#include "common/bus/conn.h"

enum call_kind {
    CALL_DECLARE, /* a queue, its exchange (BUS_QUEUE_DEFER), and its bindings */
    CALL_LOOK,    /* a passive declaration */
    CALL_DELETE,
};

struct call_result {
    enum err_code rc;  /* ERR_OK; ERR_BROKER: refused, see code; ERR_TIMEOUT; ERR_BROKER_AWAY */
    unsigned code;     /* of the broker's refusal, else 0 */
    bool mismatch;     /* declared before with other arguments: used as it is */
    uint32_t messages; /* in the queue */
    uint32_t consumers;
    const char *text; /* of the refusal, lent for the callback */
};

typedef void call_done_fn(void *arg, const struct call_result *result);

struct call {
    enum call_kind kind;
    enum bus_queue_kind queue;
    struct topology_choice choice;
    char name[BUS_NAME_SIZE];
    const char *const *keys; /* of the bindings */
    size_t key_count;
    int64_t deadline_ms;
    call_done_fn *done;
    void *arg;
};

struct call_slot {
    enum { CALL_FREE, CALL_ASKED, CALL_ENDING } state;
    struct call call;
    unsigned answers_due;
    struct call_result result;
};

struct call_waiting {
    struct call_waiting *next;
    struct call call;
};

struct calls {
    struct conn *conn;
    struct call_slot slots[CHANNEL_CALLS_COUNT];
    struct call_waiting *first, **end;
};

void calls_init(struct calls *calls, struct conn *conn);
/* done is called later, exactly once (not within this call); it notes the result, no more: it must
 * not start a call. */
MUST_USE enum err_code calls_start(struct calls *calls, const struct call *call, struct err *err);
/* true: the frame was for a call. */
bool calls_on_frame(struct calls *calls, const amqp_frame_t *frame);
/* Ends those whose deadline has passed; returns the next deadline, or INT64_MAX. */
int64_t calls_tick(struct calls *calls, int64_t now_ms);
/* The connection is gone: all end with ERR_BROKER_AWAY. */
void calls_lost(struct calls *calls);

#endif
