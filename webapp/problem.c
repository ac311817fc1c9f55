/* SPDX-License-Identifier: MIT */
#include "webapp/problem.h"

#include "common/base/buf.h"

#define TEXT_LIMIT ((size_t)64 * 1024)

json_t *problem_text(const char *text, size_t length)
{
    json_t *value = json_stringn(text, length);
    if (value)
        return value;
    BUF_AUTO struct buf clean = BUF_INIT(TEXT_LIMIT);
    if (!buf_add_json_string(&clean, (struct sv){text, length}))
        return json_string("");
    value = json_loadb(clean.ptr, clean.len, JSON_DECODE_ANY, NULL);
    return value ? value : json_string("");
}

const char *problem_detail(const struct err *err)
{
    switch (err->code) {
    case ERR_DB:
        return "the database refused its part; the log of the service has the reason under this "
               "request's id";
    case ERR_DB_AWAY:
        return "the database cannot be reached, or does not answer in time; the jobs that it has "
               "are "
               "safe. Try again, with the same Idempotency-Key; administrators: 'sluice doctor', "
               "and "
               "the log of the service under this request's id";
    case ERR_BROKER:
        return "the broker refused its part; the log of the service has the reason under this "
               "request's id";
    case ERR_BROKER_AWAY:
        return "the broker cannot be reached. Try again; administrators: 'sluice doctor', and the "
               "log of the service under this request's id";
    case ERR_IO:
    case ERR_CONFIG:
    case ERR_PROTOCOL:
    case ERR_INTERNAL:
        return "the service failed; its log has the reason under this request's id";
    default:
        return err->text;
    }
}

static json_t *fault_of(const struct err *err)
{
    const char *detail = problem_detail(err);
    json_t *one = json_object();
    json_object_set_new(one, "pointer", problem_text(err->pointer, strlen(err->pointer)));
    json_object_set_new(one, "reason", problem_text(detail, strlen(detail)));
    return one;
}

static json_t *errors_of(const struct err *err)
{
    const struct err_list *all = err->list;
    json_t *list = json_array();
    if (!err->pointer[0])
        return list;
    if (!all || all->count == 0)
        json_array_append_new(list, fault_of(err));
    for (size_t i = 0; all && i < all->count; i++)
        json_array_append_new(list, fault_of(&all->items[i]));
    return list;
}

json_t *problem_of(const struct err *err, const char *instance, size_t instance_length,
                   const char *request_id)
{
    char code[24];
    char type[40];
    (void)snprintf(code, sizeof(code), "SLUICE-%d", err_number(err->code));
    (void)snprintf(type, sizeof(type), "/errors/%s", code);
    const char *detail = problem_detail(err);
    json_t *root = json_object();
    json_object_set_new(root, "type", json_string(type));
    json_object_set_new(root, "title", json_string(err_title(err->code)));
    json_object_set_new(root, "status", json_integer(err_http(err->code)));
    json_object_set_new(root, "detail", problem_text(detail, strlen(detail)));
    if (instance)
        json_object_set_new(root, "instance", problem_text(instance, instance_length));
    json_object_set_new(root, "code", json_string(code));
    json_object_set_new(root, "errors", errors_of(err));
    if (request_id)
        json_object_set_new(root, "requestId", json_string(request_id));
    return root;
}
