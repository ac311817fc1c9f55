/* SPDX-License-Identifier: MIT */
#include "common/base/clock.h"
#include "common/bus/publisher_impl.h"

#include <stdio.h>

#define NOT_FOUND 404
#define LOCKED 405

/* The one who waits for a message's end, or has stopped waiting. */
struct waiter {
    pthread_mutex_t lock;
    pthread_cond_t ended;
    unsigned refs;
    bool done;
    enum err_code rc;
};

static void waiter_leave(struct waiter *waiter)
{
    bool last = --waiter->refs == 0;
    (void)pthread_mutex_unlock(&waiter->lock);
    if (!last)
        return;
    (void)pthread_mutex_destroy(&waiter->lock);
    (void)pthread_cond_destroy(&waiter->ended);
    free(waiter);
}

static void on_confirmed(void *arg, enum err_code rc)
{
    struct waiter *waiter = arg;
    (void)pthread_mutex_lock(&waiter->lock);
    waiter->done = true;
    waiter->rc = rc;
    (void)pthread_cond_signal(&waiter->ended);
    waiter_leave(waiter);
}

enum err_code bus_publish_wait(struct bus_publisher *pub, const struct bus_message *message,
                               int64_t deadline_ms, struct err *err)
{
    struct waiter *waiter = calloc(1, sizeof(*waiter));
    if (!waiter)
        return err_set(err, ERR_NOMEM, "no memory for a message");
    (void)pthread_mutex_init(&waiter->lock, NULL);
    clock_cond_init(&waiter->ended);
    waiter->refs = 2;
    enum err_code rc = bus_publish(pub, message, on_confirmed, waiter, err);
    (void)pthread_mutex_lock(&waiter->lock);
    if (rc) {
        waiter->refs = 1;
        waiter_leave(waiter);
        return rc;
    }
    while (!waiter->done && clock_cond_wait_until(&waiter->ended, &waiter->lock, deadline_ms))
        ;
    rc = waiter->done ? waiter->rc : ERR_TIMEOUT;
    waiter_leave(waiter);
    if (rc)
        return err_set(err, rc, "the broker did not confirm a message to %s: %s",
                       message->routing_key, err_title(rc));
    return ERR_OK;
}

static void question_leave(struct question *question)
{
    bool last = --question->refs == 0;
    (void)pthread_mutex_unlock(&question->lock);
    if (!last)
        return;
    (void)pthread_mutex_destroy(&question->lock);
    (void)pthread_cond_destroy(&question->answered);
    free(question);
}

static void on_answer(void *arg, const struct call_result *result)
{
    struct question *question = arg;
    (void)pthread_mutex_lock(&question->lock);
    question->done = true;
    question->result = *result;
    (void)snprintf(question->text, sizeof(question->text), "%s", result->text);
    question->result.text = question->text;
    (void)pthread_cond_signal(&question->answered);
    question_leave(question);
}

static struct question *take_questions(struct bus_publisher *pub)
{
    (void)pthread_mutex_lock(&pub->lock);
    struct question *first = TAKE(pub->questions);
    (void)pthread_mutex_unlock(&pub->lock);
    return first;
}

static void refuse(struct question *question, enum err_code rc)
{
    const struct call_result result = {.rc = rc, .text = err_title(rc)};
    on_answer(question, &result);
}

void publisher_start_questions(struct bus_publisher *pub)
{
    struct question *next = NULL;
    for (struct question *at = take_questions(pub); at; at = next) {
        struct err err = {0};
        next = at->next;
        if (at->call.kind == CALL_DELETE)
            publisher_forget_queue(pub, at->call.name);
        enum err_code rc =
            pub->conn.blocked ? ERR_BROKER_BLOCKED : calls_start(&pub->calls, &at->call, &err);
        if (rc)
            refuse(at, rc);
    }
}

void publisher_refuse_questions(struct bus_publisher *pub, enum err_code rc)
{
    struct question *next = NULL;
    for (struct question *at = take_questions(pub); at; at = next) {
        next = at->next;
        refuse(at, rc);
    }
}

static enum err_code submit_question(struct bus_publisher *pub, struct question *question,
                                     struct err *err)
{
    (void)pthread_mutex_lock(&pub->lock);
    enum bus_state state = atomic_load(&pub->conn.stop) ? BUS_DOWN : pub->state;
    if (state == BUS_UP) {
        question->next = pub->questions;
        pub->questions = question;
    }
    (void)pthread_mutex_unlock(&pub->lock);
    if (state == BUS_UP) {
        conn_wake(&pub->conn);
        return ERR_OK;
    }
    return err_set(err, state == BUS_BLOCKED ? ERR_BROKER_BLOCKED : ERR_BROKER_AWAY,
                   "no answer about %s: %s", question->call.name,
                   state == BUS_BLOCKED ? "the broker is short of memory or disk"
                                        : "no connection to the broker");
}

/* ERR_OK: there is an answer, which may be a refusal (then ret_result->code is set). */
static enum err_code ask(struct bus_publisher *pub, const struct call *call,
                         struct call_result *ret_result, struct err *err)
{
    struct question *question = calloc(1, sizeof(*question));
    if (!question)
        return err_set(err, ERR_NOMEM, "no memory for a question to the broker");
    (void)pthread_mutex_init(&question->lock, NULL);
    clock_cond_init(&question->answered);
    question->refs = 2;
    question->call = *call;
    question->call.done = on_answer;
    question->call.arg = question;
    question->key = question->call.name;
    question->call.keys = &question->key;
    question->call.key_count = 1;
    enum err_code rc = submit_question(pub, question, err);
    (void)pthread_mutex_lock(&question->lock);
    if (rc) {
        question->refs = 1;
        question_leave(question);
        return rc;
    }
    while (!question->done &&
           clock_cond_wait_until(&question->answered, &question->lock, call->deadline_ms))
        ;
    rc = question->done ? question->result.rc : ERR_TIMEOUT;
    *ret_result = question->result;
    if (rc)
        (void)err_set(err, rc, "queue %s: %s", call->name,
                      question->done ? question->text : "the broker did not answer in time");
    question_leave(question);
    ret_result->text = NULL;
    return rc == ERR_BROKER ? ERR_OK : rc;
}

static enum err_code make_call(enum call_kind kind, const char *name, int64_t deadline_ms,
                               struct call *ret_call, struct err *err)
{
    *ret_call = (struct call){.kind = kind, .queue = BUS_QUEUE_SUBMIT, .deadline_ms = deadline_ms};
    if (!sv_copy(sv_of(name), ret_call->name, sizeof(ret_call->name)))
        return err_set(err, ERR_TOO_LARGE, "a queue name of more than %d bytes", BUS_NAME_SIZE - 1);
    return ERR_OK;
}

enum err_code bus_queue_declare(struct bus_publisher *pub, const char *name,
                                enum bus_queue_type type, int64_t deadline_ms, struct err *err)
{
    struct call call;
    struct call_result result = {0};
    enum err_code rc = make_call(CALL_DECLARE, name, deadline_ms, &call, err);
    if (rc)
        return rc;
    call.choice =
        (struct topology_choice){.type = type, .delivery_limit = pub->conn.cfg.delivery_limit};
    rc = ask(pub, &call, &result, err);
    return rc ? rc : result.rc;
}

enum err_code bus_queue_depth(struct bus_publisher *pub, const char *name, int64_t deadline_ms,
                              uint32_t *ret_messages, uint32_t *ret_consumers, struct err *err)
{
    struct call call;
    struct call_result result = {0};
    struct err refusal = {0};
    enum err_code rc = make_call(CALL_LOOK, name, deadline_ms, &call, err);
    if (rc)
        return rc;
    rc = ask(pub, &call, &result, &refusal);
    if (rc == ERR_OK && result.code == NOT_FOUND)
        return err_set(err, ERR_NOT_FOUND, "the broker has no queue %s", name);
    if (rc != ERR_OK || result.rc != ERR_OK)
        return err_set(err, refusal.code, "%s", refusal.text);
    if (ret_messages)
        *ret_messages = result.messages;
    if (ret_consumers)
        *ret_consumers = result.consumers;
    return ERR_OK;
}

enum err_code bus_queue_delete(struct bus_publisher *pub, const char *name, bool if_empty,
                               int64_t deadline_ms, struct err *err)
{
    struct call call;
    struct call_result result = {0};
    struct err refusal = {0};
    uint32_t messages = 0;
    enum err_code rc = make_call(CALL_DELETE, name, deadline_ms, &call, err);
    if (rc)
        return rc;
    /* The broker's own if-empty ends the whole connection for a quorum queue: we look first. */
    rc = if_empty ? bus_queue_depth(pub, name, deadline_ms, &messages, NULL, &refusal) : ERR_OK;
    if (rc == ERR_NOT_FOUND)
        return ERR_OK;
    if (rc)
        return err_set(err, rc, "%s", refusal.text);
    if (messages > 0)
        return err_set(err, ERR_IN_USE, "queue %s holds %u messages", name, messages);
    rc = ask(pub, &call, &result, &refusal);
    if (rc == ERR_OK && (result.rc == ERR_OK || result.code == NOT_FOUND))
        return ERR_OK;
    return err_set(err, refusal.code, "%s", refusal.text);
}

enum err_code bus_queue_held(struct bus_publisher *pub, const char *name, int64_t deadline_ms,
                             bool *ret_held, struct err *err)
{
    struct call call;
    struct call_result result = {0};
    struct err refusal = {0};
    enum err_code rc = make_call(CALL_LOOK, name, deadline_ms, &call, err);
    if (rc)
        return rc;
    rc = ask(pub, &call, &result, &refusal);
    if (rc == ERR_OK && (result.code == LOCKED || result.code == NOT_FOUND)) {
        *ret_held = result.code == LOCKED;
        return ERR_OK;
    }
    if (rc == ERR_OK && result.rc == ERR_OK) /* it is there, but exclusive to nobody (or to us) */
        return err_set(err, ERR_BROKER, "queue %s is not exclusive to another connection", name);
    return err_set(err, refusal.code, "%s", refusal.text);
}
