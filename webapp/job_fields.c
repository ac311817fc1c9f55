/* SPDX-License-Identifier: MIT */
#include "webapp/job_fields.h"

#include "common/model/job_request.h"
#include "webapp/job_view.h"

static enum err_code add_name(const json_t *known, struct sv word, json_t *names, struct err *err)
{
    char name[32];
    if (!sv_copy(word, name, sizeof(name)) || !json_object_get(known, name))
        return err_set_at(err, ERR_INVALID, "?fields",
                          "'%.*s' is not a member of a job; GET /v1/jobs/ID shows them all",
                          (int)(word.len < 40 ? word.len : 40), word.ptr);
    if (json_object_set_new(names, name, json_true()) != 0)
        return err_set(err, ERR_NOMEM, "out of memory");
    return ERR_OK;
}

enum err_code job_fields_read(const struct request *req, json_t **ret_names, struct err *err)
{
    const struct job blank = {.epoch = 0};
    struct sv list;
    if (!uri_query(&req->uri, "fields", &list))
        return ERR_OK;
    JSON_AUTO json_t *known = job_view(&blank, true);
    JSON_AUTO json_t *names = json_object();
    enum err_code rc = ERR_OK;
    for (size_t n = 0; uri_query_at(&req->uri, "fields", n, &list); n++) {
        do {
            const char *comma = memchr(list.ptr, ',', list.len);
            struct sv word = {list.ptr, comma ? (size_t)(comma - list.ptr) : list.len};
            rc = add_name(known, word, names, err);
            if (rc)
                return rc;
            size_t step = word.len + (comma != NULL);
            list = (struct sv){list.ptr + step, list.len - step};
        } while (list.len > 0);
    }
    *ret_names = json_incref(names);
    return ERR_OK;
}

void job_fields_pick(json_t *view, const json_t *names)
{
    const char *name = NULL;
    void *next = NULL;
    json_t *value = NULL;
    if (!names)
        return;
    json_object_foreach_safe(view, next, name, value)
    {
        if (!json_object_get(names, name))
            (void)json_object_del(view, name);
    }
}
