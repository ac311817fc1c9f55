/* SPDX-License-Identifier: MIT */
#include "webapp/handlers.h"
#include "webapp/job_view.h"
#include "webapp/web.h"

#include "common/base/log.h"
#include "common/store/worker_store.h"

#define COMMAND_SIZE 64

static json_t *worker_view(const struct worker_row *row)
{
    json_t *view = json_object();
    json_object_set_new(view, "id", view_uuid(&row->id));
    json_object_set_new(view, "name", view_text(row->name));
    json_object_set_new(view, "host", view_text(row->host));
    json_object_set_new(view, "pid", json_integer(row->pid));
    json_object_set_new(view, "version", view_text(row->version));
    json_object_set_new(view, "queue", view_text(row->queue));
    json_object_set_new(view, "state", json_string(worker_state_text(row->state)));
    json_object_set_new(view, "draining", json_boolean(row->draining));
    json_object_set_new(view, "slots", json_integer(row->slots));
    json_object_set_new(view, "busy", json_integer(row->busy));
    json_object_set_new(view, "beat", json_integer((json_int_t)row->beat));
    json_object_set_new(view, "beatAgeSeconds", json_real((double)row->beat_age_us / 1e6));
    json_object_set_new(view, "started", view_time(row->started_us));
    return view;
}

enum err_code worker_list(struct request *req, struct err *err)
{
    struct worker_row *rows = NULL;
    size_t count = 0;
    enum err_code rc = worker_store_list(req->web->store, req->who.tenant, &rows, &count, err);
    if (rc)
        return rc;
    json_t *workers = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(workers, worker_view(&rows[i]));
    free(rows);
    reply_json(req, MHD_HTTP_OK, json_pack("{s:o}", "workers", workers));
    return ERR_OK;
}

static enum err_code path_id(const struct request *req, struct uuid *ret_id, struct err *err)
{
    if (uuid_parse(req->match.params[0], ret_id))
        return ERR_OK;
    return err_set(err, ERR_NOT_FOUND, "a worker is named by its id, a UUID");
}

static enum err_code reply_worker(struct request *req, const struct uuid *id, struct err *err)
{
    struct worker_row row = {0};
    enum err_code rc = worker_store_get(req->web->store, req->who.tenant, id, &row, err);
    if (rc == ERR_OK)
        reply_json(req, MHD_HTTP_OK, worker_view(&row));
    return rc;
}

enum err_code worker_get(struct request *req, struct err *err)
{
    struct uuid id;
    enum err_code rc = path_id(req, &id, err);
    return rc ? rc : reply_worker(req, &id, err);
}

/* ---- draining -------------------------------------------------------------------------------- */

/* A wake-up; should it be lost, the worker reads its row with its next beat. */
static void tell_worker(const struct request *req, const struct uuid *id, const char *command)
{
    char body[COMMAND_SIZE];
    char key[UUID_TEXT_SIZE];
    struct err err = {0};
    int length = snprintf(body, sizeof(body), "{\"v\":1,\"command\":\"%s\"}", command);
    const struct bus_message message = {
        .exchange = BUS_COMMAND,
        .routing_key = uuid_text(id, key),
        .body = {body, (size_t)length},
        .transient = true,
    };
    if (bus_publish(req->web->pub, &message, NULL, NULL, &err) != ERR_OK)
        log_event(LOG_DEBUG, "worker.command.not_told", LOG_S("worker", key),
                  LOG_S("detail", err.text));
}

static enum err_code set_draining(struct request *req, bool draining, struct err *err)
{
    const char *command = draining ? "drain" : "undrain";
    char text[UUID_TEXT_SIZE];
    struct uuid id;
    enum err_code rc = path_id(req, &id, err);
    if (rc == ERR_OK)
        rc = worker_store_set_draining(req->web->store, req->who.tenant, &id, draining, err);
    if (rc)
        return rc;
    tell_worker(req, &id, command);
    log_event(LOG_INFO, "worker.draining", LOG_S("tenant", req->who.tenant),
              LOG_S("worker", uuid_text(&id, text)), LOG_S("command", command),
              LOG_S("user", req->who.user));
    return reply_worker(req, &id, err);
}

enum err_code worker_drain(struct request *req, struct err *err)
{
    return set_draining(req, true, err);
}

enum err_code worker_undrain(struct request *req, struct err *err)
{
    return set_draining(req, false, err);
}
