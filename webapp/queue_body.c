/* SPDX-License-Identifier: MIT */
#include "webapp/queue_body.h"

#include "common/bus/bus.h"
#include "common/model/job_member.h"

struct body {
    struct job_queue *queue;
    uint32_t most_minutes;
    const char *filter; /* NULL: none */
};

static enum err_code read_priority(struct body *body, const struct member *member, struct err *err)
{
    json_int_t number = json_integer_value(member->value);
    if (!json_is_integer(member->value) || number < -QUEUE_PRIORITY_MAX ||
        number > QUEUE_PRIORITY_MAX)
        return err_set_at(err, ERR_INVALID, member->pointer,
                          "a priority is a whole number from %d to %d; higher is tried first",
                          -QUEUE_PRIORITY_MAX, QUEUE_PRIORITY_MAX);
    body->queue->priority = (int32_t)number;
    return ERR_OK;
}

static enum err_code read_filter(struct body *body, const struct member *member, struct err *err)
{
    if (json_is_null(member->value))
        return ERR_OK;
    return member_text(member, QUEUE_FILTER_MAX, &body->filter, err);
}

static enum err_code read_type(struct body *body, const struct member *member, struct err *err)
{
    const char *text = NULL;
    enum bus_queue_type type;
    enum err_code rc = member_text(member, sizeof(body->queue->queue_type) - 1, &text, err);
    if (rc)
        return rc;
    if (!bus_queue_type_parse(sv_of(text), &type))
        return err_set_at(err, ERR_INVALID, member->pointer,
                          "'%s' is not a queue type; quorum and classic are", text);
    (void)snprintf(body->queue->queue_type, sizeof(body->queue->queue_type), "%s", text);
    return ERR_OK;
}

static enum err_code read_enabled(struct body *body, const struct member *member, struct err *err)
{
    if (!json_is_boolean(member->value))
        return err_set_at(err, ERR_INVALID, member->pointer, "it is true or false");
    body->queue->enabled = json_is_true(member->value);
    return ERR_OK;
}

static enum err_code read_minutes(struct body *body, const struct member *member, struct err *err)
{
    uint32_t minutes = 0;
    if (json_is_null(member->value))
        return ERR_OK;
    enum err_code rc = member_u32(member, 1, body->most_minutes, &minutes, err);
    body->queue->max_seconds = minutes * 60;
    return rc;
}

static enum err_code read_description(struct body *body, const struct member *member,
                                      struct err *err)
{
    return member_copy(member, body->queue->description, sizeof(body->queue->description), err);
}

static enum err_code read_member(struct body *body, const char *name, json_t *value,
                                 struct err *err)
{
    static const struct {
        const char *name;
        enum err_code (*read)(struct body *body, const struct member *member, struct err *err);
    } members[] = {
        {"priority", read_priority},  {"filter", read_filter},
        {"queueType", read_type},     {"enabled", read_enabled},
        {"maxMinutes", read_minutes}, {"description", read_description},
    };
    static const char *const names[] = {"priority", "filter",     "queueType",
                                        "enabled",  "maxMinutes", "description"};
    static const struct member_names known = {"a queue", names, ARRAY_LEN(names)};
    struct member member = member_of("", name, value);
    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        if (strcmp(members[i].name, name) == 0)
            return members[i].read(body, &member, err);
    }
    return member_unknown(&member, name, &known, err);
}

enum err_code queue_body_read(json_t *root, uint32_t most_minutes, struct job_queue *ret_queue,
                              struct filter **ret_filter, struct filter_report *report,
                              struct err *err)
{
    struct body body = {.queue = ret_queue, .most_minutes = most_minutes};
    enum err_code rc = ERR_OK;
    const char *name = NULL;
    json_t *value = NULL;
    json_object_foreach(root, name, value)
    {
        enum err_code one = read_member(&body, name, value, err);
        rc = rc ? rc : one;
        if (rc && !err_wants_more(err))
            return rc;
    }
    if (!json_object_get(root, "priority"))
        rc = err_set_at(err, ERR_INVALID, "/priority", "a queue needs a priority");
    if (!body.filter)
        return rc;
    struct err refused = {0};
    struct sv text = sv_of(body.filter);
    enum err_code one = filter_compile(&filter_queue_schema, text, ret_filter, report, &refused);
    if (one)
        one = err_set_at(err, one, "/filter", "%s", refused.text);
    rc = rc ? rc : one;
    if (rc)
        return rc;
    memcpy(&ret_queue->filter, &body.filter, sizeof(ret_queue->filter)); /* borrowed, not written */
    return ERR_OK;
}
