/* SPDX-License-Identifier: MIT */
#include "webapp/handlers.h"
#include "webapp/job_view.h"
#include "webapp/web.h"

#include "common/store/worker_store.h"

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

enum err_code worker_get(struct request *req, struct err *err)
{
    struct worker_row row = {0};
    struct uuid id;
    if (!uuid_parse(req->match.params[0], &id))
        return err_set(err, ERR_NOT_FOUND, "a worker is named by its id, a UUID");
    enum err_code rc = worker_store_get(req->web->store, req->who.tenant, &id, &row, err);
    if (rc)
        return rc;
    reply_json(req, MHD_HTTP_OK, worker_view(&row));
    return ERR_OK;
}
