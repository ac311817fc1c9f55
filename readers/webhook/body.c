/* SPDX-License-Identifier: MIT */
#include "readers/webhook/body.h"

#include "common/base/clock.h"
#include "common/model/job_state.h"

static void add_text(struct buf *buf, const char *name, const char *text)
{
    buf_addf(buf, ",\"%s\":", name);
    if (text[0])
        buf_add_json_string(buf, sv_of(text));
    else
        buf_add_text(buf, "null");
}

static void add_number(struct buf *buf, const char *name, bool has, long long number)
{
    if (has)
        buf_addf(buf, ",\"%s\":%lld", name, number);
    else
        buf_addf(buf, ",\"%s\":null", name);
}

static bool is_end(const char *status)
{
    enum job_state state;
    return job_state_parse(sv_of(status), &state) && job_state_ends(state);
}

void body_write(const struct hook_event *event, const struct uuid *delivery, struct buf *ret_body)
{
    char id[UUID_TEXT_SIZE];
    char at[CLOCK_TEXT_SIZE];
    bool ended = is_end(event->to);
    clock_rfc3339(event->at_us, at);
    buf_addf(ret_body, "{\"id\":\"%s\",\"type\":\"job.status\",\"seq\":%llu,\"at\":\"%s\"",
             uuid_text(delivery, id), (unsigned long long)event->seq, at);
    add_text(ret_body, "subscription", event->hook_name);
    add_text(ret_body, "from", event->from);
    add_text(ret_body, "to", event->to);
    add_text(ret_body, "condition", event->condition);
    add_text(ret_body, "detail", event->detail);
    buf_addf(ret_body, ",\"job\":{\"id\":\"%s\"", uuid_text(&event->job, id));
    add_text(ret_body, "tenant", event->tenant);
    add_text(ret_body, "name", event->name);
    add_text(ret_body, "owner", event->owner);
    add_text(ret_body, "queue", event->queue);
    if (ended) { /* else it may be another run's */
        add_number(ret_body, "exitCode", event->has_exit_code, event->exit_code);
        add_number(ret_body, "signal", event->term_signal != 0, event->term_signal);
        add_text(ret_body, "reason", event->reason);
    }
    buf_add_text(ret_body, "}}");
}
