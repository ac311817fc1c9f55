/* SPDX-License-Identifier: MIT */
/* POST /v1/dead-messages/{id}/replay. Nothing is published that could not run a job: a worker would
 * only drop it, or give it up again. The one exception is a stored body that names no job: whoever
 * sends that again wants to see what becomes of it. */
#include "webapp/dead.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/spare.h"
#include "common/model/message.h"
#include "common/store/job_store.h"
#include "common/store/queue_store.h"
#include "webapp/handlers.h"

#define PUBLISH_WAIT_MS 10000

struct replay {
    struct uuid id;
    struct dead_message old;
    char *given; /* the new body; NULL: the old one */
    struct sv body;
    char queue[QUEUE_NAME_SIZE];
    char target[BUS_NAME_SIZE]; /* its name in the broker, and the routing key */
    enum bus_queue_type type;
};

static void replay_done(struct replay *replay)
{
    dead_message_done(&replay->old);
    text_free(&replay->given);
}
#define REPLAY_AUTO __attribute__((cleanup(replay_done)))

static enum err_code read_given(const struct request *req, struct replay *replay, struct err *err)
{
    JSON_AUTO json_t *root = NULL;
    if (req->body.len == 0)
        return ERR_OK;
    enum err_code rc = request_json(req, &root, err);
    if (rc)
        return rc;
    json_t *body = json_object_get(root, "body");
    if (json_object_size(root) != (body != NULL))
        return err_set_at(err, ERR_UNKNOWN_MEMBER, "", "a replay has \"body\" and no other member");
    if (!body)
        return ERR_OK;
    if (!json_is_object(body))
        return err_set_at(err, ERR_INVALID, "/body",
                          "the body of a message is {\"v\": 1, \"job\": ID, \"epoch\": NUMBER}");
    replay->given = spare_text(json_dumps(body, JSON_COMPACT));
    return replay->given ? ERR_OK : err_set(err, ERR_NOMEM, "out of memory");
}

/* ---- may it go out? -------------------------------------------------------------------------- */

static enum err_code check_job(const struct job *job, const struct message *message,
                               struct err *err)
{
    char id[UUID_TEXT_SIZE];
    (void)uuid_text(&job->id, id);
    if (job_state_ends(job->status))
        return err_set(err, ERR_STATE,
                       "job %s has ended: it is %s %s; no message brings it back, resubmit it "
                       "(sluice resubmit %s)",
                       id, job_state_text(job->status), job_condition_text(job->condition), id);
    if (!job_state_is_active(job->status))
        return err_set(err, ERR_STATE,
                       "job %s is %s (%s); it goes on by itself once that is over, and needs no "
                       "message",
                       id, job_state_text(job->status), job_condition_text(job->condition));
    if (job->epoch != message->epoch)
        return err_set(err, ERR_STATE,
                       "the message is of epoch %u, job %s has epoch %u: a worker would drop it; "
                       "replay it with that epoch in a new body",
                       message->epoch, id, job->epoch);
    return ERR_OK;
}

static enum err_code check_body(const struct request *req, const struct replay *replay,
                                struct err *err)
{
    AUTO(job_free) struct job *job = NULL;
    struct message message = {0};
    struct err fault = {0};
    char id[UUID_TEXT_SIZE];
    char pointer[ERR_POINTER_MAX];
    enum err_code rc = message_read(replay->body, &message, &fault);
    if (rc && !replay->given)
        return ERR_OK;
    (void)snprintf(pointer, sizeof(pointer), "/body%.100s", fault.pointer);
    if (rc)
        return err_set_at(err, ERR_INVALID, pointer, "%s", fault.text);
    rc = job_store_get(req->web->store, req->who.tenant, &message.job, &job, &fault);
    if (rc == ERR_NOT_FOUND)
        return err_set_at(err, ERR_STATE, replay->given ? "/body/job" : "",
                          "the message names job %s, which is not there",
                          uuid_text(&message.job, id));
    if (rc)
        return err_set(err, rc, "%s", fault.text);
    return check_job(job, &message, err);
}

/* Where it was meant for: by its routing key, else by the queue that gave it up. */
static enum err_code find_target(const struct request *req, struct replay *replay, struct err *err)
{
    const char *const names[] = {replay->old.routing_key, replay->old.queue_name};
    char tenant[TENANT_SIZE];
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (!bus_split_submit_queue(names[i], tenant, sizeof(tenant), replay->queue,
                                    sizeof(replay->queue)) ||
            strcmp(tenant, req->who.tenant) != 0)
            continue;
        (void)bus_submit_queue(tenant, replay->queue, replay->target);
        return ERR_OK;
    }
    return err_set(err, ERR_STATE, "the message was for no submission queue: discard it");
}

static enum err_code find_type(const struct request *req, struct replay *replay, struct err *err)
{
    AUTO(routing_put) struct routing *routing = NULL;
    struct job_queue queue = {0};
    /* The tenant's default queue exists from the first look on. */
    enum err_code rc = router_get(req->web->router, req->who.tenant, &routing, err);
    if (rc == ERR_OK)
        rc = queue_store_get(req->web->store, req->who.tenant, replay->queue, &queue, err);
    if (rc == ERR_NOT_FOUND) {
        err_clear(err);
        return err_set(err, ERR_STATE, "queue %s is no more: discard the message, or make it again",
                       replay->queue);
    }
    if (rc == ERR_OK && !bus_queue_type_parse(sv_of(queue.queue_type), &replay->type))
        replay->type = BUS_QUORUM;
    job_queue_done(&queue);
    return rc;
}

static enum err_code prepare(const struct request *req, struct replay *replay, struct err *err)
{
    enum err_code rc = dead_path_id(req, &replay->id, err);
    if (rc == ERR_OK)
        rc = dead_store_get(req->web->store, req->who.tenant, &replay->id, &replay->old, err);
    if (rc == ERR_OK)
        rc = read_given(req, replay, err);
    if (rc)
        return rc;
    const struct dead_message *old = &replay->old;
    replay->body = replay->given ? sv_of(replay->given)
                                 : (struct sv){old->body ? old->body : "", (size_t)old->kept_bytes};
    if (!replay->given && old->kept_bytes < old->size_bytes)
        return err_set(err, ERR_TOO_LARGE,
                       "of its %llu bytes only the first %llu are kept: replay it with a new body, "
                       "or discard it",
                       (unsigned long long)old->size_bytes, (unsigned long long)old->kept_bytes);
    rc = check_body(req, replay, err);
    if (rc == ERR_OK)
        rc = find_target(req, replay, err);
    return rc ? rc : find_type(req, replay, err);
}

/* ---- out it goes ----------------------------------------------------------------------------- */

/* With an id of its own: if it dies again it is another message. */
static enum err_code publish(const struct request *req, const struct replay *replay,
                             uint32_t number, struct err *err)
{
    char id[UUID_TEXT_SIZE];
    char message_id[64];
    struct bus_publisher *pub = req->web->pub;
    int64_t deadline_ms = clock_mono_ms() + PUBLISH_WAIT_MS;
    (void)snprintf(message_id, sizeof(message_id), "replay-%s-%u", uuid_text(&replay->id, id),
                   number);
    const struct bus_message message = {
        .exchange = BUS_SUBMIT,
        .routing_key = replay->target,
        .body = replay->body,
        .message_id = message_id,
        .traceparent = replay->old.traceparent[0] ? replay->old.traceparent : NULL,
    };
    /* Also when we declared it before: its binding may be what was missing. */
    enum err_code rc = bus_queue_declare(pub, replay->target, replay->type, deadline_ms, err);
    return rc ? rc : bus_publish_wait(pub, &message, deadline_ms, err);
}

enum err_code dead_replay(struct request *req, struct err *err)
{
    REPLAY_AUTO struct replay replay = {0};
    struct err ended = {0};
    char text[UUID_TEXT_SIZE];
    uint32_t number = 0;
    struct store *store = req->web->store;
    enum err_code rc = prepare(req, &replay, err);
    if (rc == ERR_OK)
        rc = dead_store_replay_begin(store, req->who.tenant, &replay.id, req->who.user, &number,
                                     err);
    if (rc)
        return rc;
    rc = publish(req, &replay, number, err);
    log_event(LOG_INFO, rc ? "dead.replay.failed" : "dead.replay", LOG_S("tenant", req->who.tenant),
              LOG_S("user", req->who.user), LOG_S("id", uuid_text(&replay.id, text)),
              LOG_S("queue", replay.target), LOG_B("new_body", replay.given != NULL),
              LOG_S("detail", rc ? err->text : ""));
    /* Should this fail, the row is free again in a minute. */
    if (dead_store_replay_end(store, &replay.id, number, rc == ERR_OK, &ended))
        log_err("dead.replay.not_noted", &ended);
    return rc ? rc : dead_reply(req, &replay.id, err);
}
