/* SPDX-License-Identifier: MIT */
/* GET .../why of what is no job: queues, workers, groups of held jobs, dead messages. */
#include "webapp/dead.h"
#include "webapp/handlers.h"
#include "webapp/job_view.h"
#include "webapp/why_text.h"

#include "common/base/clock.h"
#include "common/store/recovery_store.h"

#define SENTENCE_MAX 4096
#define SUBJECT_SIZE 64

/* Takes the reference to data. */
static enum err_code reply_why(struct request *req, const char *kind, struct buf *text,
                               json_t *data, struct err *err)
{
    json_t *view = json_object();
    buf_add_text(text, ".");
    json_object_set_new(view, "id",
                        json_stringn(req->match.params[0].ptr, req->match.params[0].len));
    json_object_set_new(view, "kind", json_string(kind));
    json_object_set_new(view, "why", view_text(buf_text(text)));
    json_object_set_new(view, "data", data);
    if (text->starved) {
        json_decref(view);
        return err_set(err, ERR_NOMEM, "out of memory");
    }
    reply_json(req, MHD_HTTP_OK, view);
    return ERR_OK;
}

static enum err_code path_uuid(const struct request *req, const char *what, struct uuid *ret_id,
                               struct err *err)
{
    if (uuid_parse(req->match.params[0], ret_id))
        return ERR_OK;
    return err_set(err, ERR_NOT_FOUND, "a %s is named by its id, a UUID", what);
}

/* ---- queues ---------------------------------------------------------------------------------- */

static json_t *queue_data(const struct why_queue *queue)
{
    json_t *view = json_object();
    json_object_set_new(view, "waiting", json_integer(queue->ahead));
    json_object_set_new(view, "waitingIsAll", json_boolean(!queue->ahead_more));
    json_object_set_new(view, "enabled", json_boolean(queue->enabled));
    json_object_set_new(view, "workers", json_integer(queue->workers));
    json_object_set_new(view, "silent", json_integer(queue->silent));
    json_object_set_new(view, "drained", json_integer(queue->drained));
    json_object_set_new(view, "slots", json_integer(queue->slots));
    json_object_set_new(view, "busy", json_integer(queue->busy));
    return view;
}

enum err_code queue_why(struct request *req, struct err *err)
{
    const struct config *cfg = req->web->cfg;
    BUF_AUTO struct buf text = BUF_INIT(SENTENCE_MAX);
    struct why why = {.lease_ms = cfg->fleet_lease_ms, .now_us = clock_wall_us()};
    /* Before a job that would be submitted now. */
    struct job next = {.status = JOB_PENDING, .id = uuid_v7(), .updated_us = why.now_us};
    const struct why_facts facts = {.job = &next,
                                    .why = &why,
                                    .broker = bus_publisher_state(req->web->pub),
                                    .asker = &req->who};
    (void)snprintf(next.tenant, sizeof(next.tenant), "%s", req->who.tenant);
    if (!sv_copy(req->match.params[0], next.queue, sizeof(next.queue)))
        next.queue[0] = 0;
    enum err_code rc = why_queue_read(req->web->store, next.tenant, next.queue, cfg->fleet_lease_ms,
                                      &why.queue, err);
    if (rc == ERR_OK && !why.queue.exists)
        rc = err_set(err, ERR_NOT_FOUND, "there is no queue %s", next.queue);
    if (rc == ERR_OK)
        rc = why_queue_ahead(req->web->store, &next, &why.queue, err);
    if (rc)
        return rc;
    why_tell_queue(&facts, &text);
    return reply_why(req, "queue", &text, queue_data(&why.queue), err);
}

/* ---- workers --------------------------------------------------------------------------------- */

static enum err_code read_drain(const struct request *req, const struct worker_row *worker,
                                struct audit_act *ret_act, struct err *err)
{
    char subject[SUBJECT_SIZE];
    char id[UUID_TEXT_SIZE];
    struct err missing = {0};
    if (!worker->draining)
        return ERR_OK;
    (void)snprintf(subject, sizeof(subject), "/v1/workers/%s/drain", uuid_text(&worker->id, id));
    enum err_code rc = audit_log_newest(req->web->store, req->who.tenant, "worker_drain", subject,
                                        ret_act, &missing);
    if (rc == ERR_OK || rc == ERR_NOT_FOUND)
        return ERR_OK;
    *err = missing;
    return rc;
}

enum err_code worker_why(struct request *req, struct err *err)
{
    const struct config *cfg = req->web->cfg;
    BUF_AUTO struct buf text = BUF_INIT(SENTENCE_MAX);
    struct why_worker worker = {.lease_ms = cfg->fleet_lease_ms, .asker = &req->who};
    struct uuid id;
    enum err_code rc = path_uuid(req, "worker", &id, err);
    if (rc == ERR_OK)
        rc = worker_store_get(req->web->store, req->who.tenant, &id, &worker.row, err);
    if (rc == ERR_OK)
        rc = why_queue_read(req->web->store, req->who.tenant, worker.row.queue, cfg->fleet_lease_ms,
                            &worker.queue, err);
    if (rc == ERR_OK)
        rc = read_drain(req, &worker.row, &worker.drain, err);
    if (rc)
        return rc;
    why_tell_worker(&worker, &text);
    return reply_why(req, "worker", &text,
                     json_pack("{s:s,s:s,s:s,s:b,s:i,s:i,s:f}", "name", worker.row.name, "queue",
                               worker.row.queue, "state", worker_state_text(worker.row.state),
                               "draining", worker.row.draining, "slots", (int)worker.row.slots,
                               "busy", (int)worker.row.busy, "beatAgeSeconds",
                               (double)worker.row.beat_age_us / 1e6),
                     err);
}

/* ---- groups of held jobs --------------------------------------------------------------------- */

enum err_code recovery_why(struct request *req, struct err *err)
{
    BUF_AUTO struct buf text = BUF_INIT(SENTENCE_MAX);
    struct recovery group;
    struct uuid id;
    enum err_code rc = path_uuid(req, "group of blocked jobs", &id, err);
    if (rc == ERR_OK)
        rc = recovery_store_get(req->web->store, req->who.tenant, &id, &group, err);
    if (rc)
        return rc;
    why_tell_group(&group, &req->who, &text);
    return reply_why(
        req, "recovery", &text,
        json_pack("{s:s,s:I,s:i,s:o,s:o}", "condition", job_condition_text(group.condition),
                  "blocked", (json_int_t)group.blocked, "tries", (int)group.tries, "nextCheck",
                  view_time(group.next_us), "lastDetail", view_text(group.last_detail)),
        err);
}

/* ---- dead messages --------------------------------------------------------------------------- */

enum err_code dead_why(struct request *req, struct err *err)
{
    DEAD_MESSAGE_AUTO struct dead_message message = {0};
    BUF_AUTO struct buf text = BUF_INIT(SENTENCE_MAX);
    struct uuid id;
    enum err_code rc = dead_path_id(req, &id, err);
    if (rc == ERR_OK)
        rc = dead_store_get(req->web->store, req->who.tenant, &id, &message, err);
    if (rc)
        return rc;
    why_tell_dead(&message, &req->who, &text);
    return reply_why(req, "dead-message", &text,
                     json_pack("{s:s,s:s,s:o,s:o,s:o}", "state", dead_state_text(message.state),
                               "reason", message.reason, "queue", view_text(message.queue_name),
                               "outcome", view_text(dead_outcome_text(message.outcome)), "job",
                               message.has_job ? view_uuid(&message.job) : json_null()),
                     err);
}
