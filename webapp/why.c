/* SPDX-License-Identifier: MIT */
#include "common/base/last_line.h"
#include "webapp/handlers.h"
#include "webapp/job_run.h"
#include "webapp/job_view.h"
#include "webapp/jobs.h"
#include "webapp/why_look.h"

#define SENTENCE_MAX 4096

static const char *broker_word(enum bus_state state)
{
    return state == BUS_UP ? "up" : state == BUS_BLOCKED ? "blocked" : "down";
}

static json_t *queue_view(const struct why_facts *facts)
{
    const struct why_queue *queue = &facts->why->queue;
    json_t *view = json_object();
    json_object_set_new(view, "name", view_text(facts->job->queue));
    json_object_set_new(view, "exists", json_boolean(queue->exists));
    if (facts->job->status == JOB_PENDING) {
        json_object_set_new(view, "ahead", json_integer(queue->ahead));
        json_object_set_new(view, "aheadIsAll", json_boolean(!queue->ahead_more));
    }
    json_object_set_new(view, "workers", json_integer(queue->workers));
    json_object_set_new(view, "silent", json_integer(queue->silent));
    json_object_set_new(view, "slots", json_integer(queue->slots));
    json_object_set_new(view, "busy", json_integer(queue->busy));
    json_object_set_new(view, "drained", json_integer(queue->drained));
    json_object_set_new(view, "enabled", json_boolean(queue->enabled));
    json_object_set_new(view, "beatAgeSeconds",
                        queue->workers > queue->silent ? json_real((double)queue->beat_age_us / 1e6)
                                                       : json_null());
    json_object_set_new(view, "broker", json_string(broker_word(facts->broker)));
    return view;
}

static json_t *owner_view(const struct worker_row *worker)
{
    json_t *view = json_object();
    json_object_set_new(view, "id", view_uuid(&worker->id));
    json_object_set_new(view, "name", view_text(worker->name));
    json_object_set_new(view, "host", view_text(worker->host));
    json_object_set_new(view, "state", json_string(worker_state_text(worker->state)));
    json_object_set_new(view, "beatAgeSeconds", json_real((double)worker->beat_age_us / 1e6));
    return view;
}

static json_t *blocked_view(const struct why_blocked *blocked)
{
    json_t *view = json_object();
    json_t *params = json_loads(blocked->params, 0, NULL);
    json_object_set_new(view, "recovery", view_uuid(&blocked->recovery));
    json_object_set_new(view, "resumeStatus", json_string(job_state_text(blocked->resume)));
    json_object_set_new(view, "since", view_time(blocked->blocked_us));
    json_object_set_new(view, "tester", view_text(blocked->tester));
    json_object_set_new(view, "params", params ? params : json_null());
    json_object_set_new(view, "tests", json_integer(blocked->tests));
    json_object_set_new(view, "tries", json_integer(blocked->tries));
    json_object_set_new(view, "nextCheck", view_time(blocked->next_us));
    json_object_set_new(view, "lastResult", view_text(blocked->last_result));
    json_object_set_new(view, "lastDetail", view_text(blocked->last_detail));
    json_object_set_new(view, "ramp", json_integer(blocked->ramp));
    return view;
}

static json_t *outcome_view(const struct job *job, const struct why *why)
{
    json_t *view = json_object();
    json_object_set_new(view, "since", view_time(why->since_us));
    json_object_set_new(view, "condition", view_text(job_condition_text(job->condition)));
    json_object_set_new(view, "reason", view_text(job->reason));
    json_object_set_new(view, "exitCode",
                        job->has_exit_code ? json_integer(job->exit_code) : json_null());
    json_object_set_new(view, "signal",
                        job->term_signal ? json_integer(job->term_signal) : json_null());
    json_object_set_new(view, "cancelRequested", json_boolean(job->cancel_requested));
    json_object_set_new(view, "cancelBy", view_text(job->cancel_by));
    return view;
}

/* The newest of them, in the order of time. */
static json_t *losses_view(const struct why *why)
{
    json_t *list = json_array();
    for (size_t i = 0; i < why->run.loss_count; i++) {
        const struct why_loss *loss = &why->run.losses[i];
        json_array_append_new(list,
                              json_pack("{s:o,s:o,s:o,s:o}", "at", view_time(loss->at_us), "worker",
                                        view_text(loss->worker), "host", view_text(loss->host),
                                        "detail", view_text(loss->detail)));
    }
    return list;
}

/* What is not known is null. */
static void put_estimate(const struct why_facts *facts, json_t *view)
{
    const struct why_queue *queue = &facts->why->queue;
    int64_t at_us = why_estimate_us(facts);
    json_object_set_new(view, "estimatedStart", view_time(at_us));
    json_object_set_new(
        view, "estimateBasis",
        at_us
            ? json_pack("{s:I,s:I,s:f,s:I,s:i}", "jobsBefore", (json_int_t)queue->ahead, "slots",
                        (json_int_t)queue->usable, "medianRunSeconds", (double)queue->run_us / 1e6,
                        "runs", (json_int_t)queue->runs, "windowSeconds", 3600)
            : json_null());
}

static json_t *data_view(const struct why_facts *facts)
{
    const struct job *job = facts->job;
    const struct why *why = facts->why;
    json_t *view = outcome_view(job, why);
    if (job_state_is_active(job->status) && !job->has_owner)
        json_object_set_new(view, "queue", queue_view(facts));
    if (job->status == JOB_PENDING)
        put_estimate(facts, view);
    if (why->has_worker)
        json_object_set_new(view, "worker", owner_view(&why->worker));
    if (job->losses > 0)
        json_object_set_new(view, "losses", losses_view(why));
    if (job->status == JOB_RUNNING && why->since_us != 0) {
        double ran_s = (double)(why->now_us - why_run_since_us(facts)) / 1e6;
        json_object_set_new(view, "limitSeconds", json_integer(job->max_seconds));
        json_object_set_new(view, "leftSeconds", json_real((double)job->max_seconds - ran_s));
    }
    if (why->has_blocked)
        json_object_set_new(view, "blocked", blocked_view(&why->blocked));
    return view;
}

/* Who may read why may read the output as well. Only the end of the file is read. */
static bool read_last_line(const struct request *req, const struct job *job,
                           char ret_line[LAST_LINE_SIZE])
{
    FD_AUTO int run_fd = -1;
    FD_AUTO int fd = -1;
    uint64_t number = 0;
    struct err err = {0};
    if (job->status != JOB_FAILED || job->errs.kept_bytes == 0)
        return false;
    return job_run_open(req->web->archive_fd, job, &run_fd, &number, &err) == ERR_OK &&
           job_run_file(run_fd, "stderr", &fd, &number, &err) == ERR_OK &&
           last_line_read(fd, ret_line);
}

enum err_code job_why(struct request *req, struct err *err)
{
    AUTO(job_free) struct job *job = NULL;
    BUF_AUTO struct buf text = BUF_INIT(SENTENCE_MAX);
    struct why why;
    struct why_held held;
    char line[LAST_LINE_SIZE];
    enum err_code rc = job_of_path(req, &job, err);
    if (rc == ERR_OK)
        rc = why_store_read(req->web->store, job, req->web->cfg->fleet_lease_ms, &why, err);
    if (rc)
        return rc;
    if (why.has_blocked)
        why_look(req->web, job, &why.blocked, &held);
    const struct why_facts facts = {
        .job = job,
        .why = &why,
        .broker = bus_publisher_state(req->web->pub),
        .asker = &req->who,
        .last_line = read_last_line(req, job, line) ? line : NULL,
        .held = why.has_blocked ? &held : NULL,
        .most_seconds = req->web->cfg->limits_max_minutes * 60u,
        .grace_ms = req->web->cfg->worker_grace_ms,
        .stage_s = req->web->cfg->worker_stage_timeout_ms / 1000,
        .max_losses = req->web->cfg->worker_max_losses,
    };
    why_tell(&facts, &text);
    if (text.starved)
        return err_set(err, ERR_NOMEM, "out of memory");
    json_t *view = json_object();
    json_object_set_new(view, "id", view_uuid(&job->id));
    json_object_set_new(view, "status", json_string(job_state_text(job->status)));
    json_object_set_new(view, "why", view_text(buf_text(&text)));
    json_object_set_new(view, "data", data_view(&facts));
    reply_json(req, MHD_HTTP_OK, view);
    return ERR_OK;
}
