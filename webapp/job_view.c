/* SPDX-License-Identifier: MIT */
#include "webapp/job_view.h"

#include "common/base/clock.h"
#include "webapp/problem.h"

#define PATH_SIZE 128

json_t *view_time(int64_t wall_us)
{
    char text[CLOCK_TEXT_SIZE];
    if (wall_us == 0)
        return json_null();
    clock_rfc3339(wall_us, text);
    return json_string(text);
}

json_t *view_text(const char *text)
{
    return text && text[0] ? problem_text(text, strlen(text)) : json_null();
}

json_t *view_uuid(const struct uuid *id)
{
    char text[UUID_TEXT_SIZE];
    return json_string(uuid_text(id, text));
}

static json_t *stream_view(const struct job_stream *stream)
{
    return json_pack("{s:I,s:I}", "bytes", (json_int_t)stream->total_bytes, "kept",
                     (json_int_t)stream->kept_bytes);
}

static json_t *links_view(const struct job *job)
{
    static const struct {
        const char *name;
        const char *behind;
    } links[] = {
        {"self", ""},
        {"events", "/events"},
        {"stdout", "/output/stdout"},
        {"stderr", "/output/stderr"},
        {"files", "/files"},
    };
    char id[UUID_TEXT_SIZE];
    char path[PATH_SIZE];
    json_t *view = json_object();
    (void)uuid_text(&job->id, id);
    for (size_t i = 0; i < ARRAY_LEN(links); i++) {
        (void)snprintf(path, sizeof(path), "/v1/jobs/%s%s", id, links[i].behind);
        json_object_set_new(view, links[i].name, json_string(path));
    }
    return view;
}

static json_t *parsed(const char *text, json_t *otherwise)
{
    json_t *value = text ? json_loads(text, JSON_DECODE_ANY, NULL) : NULL;
    if (!value)
        return otherwise;
    json_decref(otherwise);
    return value;
}

static void put_what_it_is(json_t *view, const struct job *job)
{
    json_object_set_new(view, "id", view_uuid(&job->id));
    json_object_set_new(view, "name", view_text(job->name));
    json_object_set_new(view, "owner", view_text(job->owner));
    json_object_set_new(view, "tenant", view_text(job->tenant));
    json_object_set_new(view, "appId", view_text(job->app_id));
    json_object_set_new(view, "appVersion", view_text(job->app_version));
    json_object_set_new(view, "systemId", view_text(job->system_id));
    json_object_set_new(view, "queue", view_text(job->queue));
    json_object_set_new(view, "nodeCount", json_integer(job->node_count));
    json_object_set_new(view, "coresPerNode", json_integer(job->cores_per_node));
    json_object_set_new(view, "memoryMB", json_integer(job->memory_mb));
    json_object_set_new(view, "maxSeconds", json_integer(job->max_seconds));
    json_object_set_new(view, "tags", parsed(job->tags, json_array()));
    json_object_set_new(view, "visible", json_boolean(job->visible));
}

static json_t *seconds_between(int64_t from_us, int64_t until_us)
{
    if (!from_us || !until_us)
        return json_null();
    return json_real(until_us > from_us ? (double)(until_us - from_us) / 1e6 : 0);
}

/* All three times are the database's. One that ended unstarted has waited until its end. */
static void put_durations(json_t *view, const struct job *job)
{
    int64_t waited_us = job->started_us ? job->started_us : job->ended_us;
    json_object_set_new(view, "waitSeconds", seconds_between(job->created_us, waited_us));
    json_object_set_new(view, "runSeconds", seconds_between(job->started_us, job->ended_us));
}

static void put_where_it_is(json_t *view, const struct job *job)
{
    json_object_set_new(view, "status", json_string(job_state_text(job->status)));
    json_object_set_new(view, "condition", view_text(job_condition_text(job->condition)));
    json_object_set_new(view, "reason", view_text(job->reason));
    json_object_set_new(view, "attempts", json_integer(job->attempts));
    json_object_set_new(view, "losses", json_integer(job->losses));
    json_object_set_new(view, "epoch", json_integer(job->epoch));
    json_object_set_new(view, "exitCode",
                        job->has_exit_code ? json_integer(job->exit_code) : json_null());
    json_object_set_new(view, "signal",
                        job->term_signal ? json_integer(job->term_signal) : json_null());
    json_object_set_new(view, "cancelRequested", json_boolean(job->cancel_requested));
    json_object_set_new(view, "worker",
                        job->has_owner ? view_uuid(&job->owner_worker) : json_null());
    json_object_set_new(view, "created", view_time(job->created_us));
    json_object_set_new(view, "updated", view_time(job->updated_us));
    json_object_set_new(view, "started", view_time(job->started_us));
    json_object_set_new(view, "ended", view_time(job->ended_us));
    put_durations(view, job);
}

static void put_text(char *ret_text, size_t size, const char *text)
{
    (void)snprintf(ret_text, size, "%s", text ? text : "");
}

/* What was sent in it is not sent back: a job may have megabytes of it. */
static void put_request(json_t *view, json_t *take_request)
{
    size_t i = 0;
    json_t *input = NULL;
    json_t *inputs = json_array();
    json_t *sizes = json_array();
    json_array_foreach(json_object_get(take_request, "fileInputs"), i, input)
    {
        json_t *copy = json_copy(input);
        const json_t *content = json_object_get(input, "content");
        if (content)
            json_array_append_new(sizes, json_pack("{s:O,s:I}", "targetPath",
                                                   json_object_get(input, "targetPath"), "bytes",
                                                   (json_int_t)json_string_length(content)));
        (void)json_object_del(copy, "content");
        json_array_append_new(inputs, copy);
    }
    json_t *shown = json_copy(take_request);
    if (json_array_size(inputs) > 0)
        (void)json_object_set(shown, "fileInputs", inputs);
    json_object_set_new(view, "request", shown);
    json_object_set_new(view, "inlineInputs", sizes);
    json_decref(inputs);
    json_decref(take_request);
}

/* request: taken; NULL leaves it out. */
static json_t *whole_view(const struct job *job, json_t *request)
{
    json_t *view = json_object();
    put_what_it_is(view, job);
    put_where_it_is(view, job);
    json_object_set_new(view, "output",
                        json_pack("{s:o,s:o}", "stdout", stream_view(&job->out), "stderr",
                                  stream_view(&job->errs)));
    if (request)
        put_request(view, request);
    json_object_set_new(view, "_links", links_view(job));
    return view;
}

json_t *job_view(const struct job *job, bool whole)
{
    return whole_view(job, whole ? parsed(job->request, json_null()) : NULL);
}

json_t *job_view_new(const struct job_new *sent, const struct job_submitted *done, json_t *request)
{
    struct job job = {
        .id = done->id,
        .status = JOB_PENDING,
        .epoch = 1,
        .node_count = sent->node_count,
        .cores_per_node = sent->cores_per_node,
        .memory_mb = sent->memory_mb,
        .max_seconds = sent->max_seconds,
        .visible = true,
        .created_us = done->created_us,
        .updated_us = done->created_us,
    };
    put_text(job.tenant, sizeof(job.tenant), sent->tenant);
    put_text(job.owner, sizeof(job.owner), sent->owner);
    put_text(job.name, sizeof(job.name), sent->name);
    put_text(job.app_id, sizeof(job.app_id), sent->app_id);
    put_text(job.app_version, sizeof(job.app_version), sent->app_version);
    put_text(job.system_id, sizeof(job.system_id), sent->system_id);
    put_text(job.queue, sizeof(job.queue), sent->queue);
    json_t *view = whole_view(&job, json_incref(request));
    json_object_set_new(view, "tags", parsed(sent->tags, json_array()));
    return view;
}
