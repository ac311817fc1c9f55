/* SPDX-License-Identifier: MIT */
/* GET /v1/events */
#include "webapp/handlers.h"
#include "webapp/listen.h"

#include "common/store/feed_store.h"
#include "common/store/job_store.h"
#include "common/store/queue_store.h"
#include "common/store/retention_store.h"

static const char *const kinds[] = {
#define EVENT_KIND(text) text,
#include "common/model/event_kind.def"
#undef EVENT_KIND
};

#define EVENT_KIND(text) " " text
static const char all_kinds[] =
#include "common/model/event_kind.def"
    ;
#undef EVENT_KIND

static bool is_kind(struct sv word)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (sv_is(word, kinds[i]))
            return true;
    }
    return false;
}

static enum err_code add_type(struct listen_filter *filter, struct sv word, struct err *err)
{
    enum job_state state;
    if (job_state_parse(word, &state)) {
        filter->states |= 1u << state;
        return ERR_OK;
    }
    if (!is_kind(word))
        return err_set_at(err, ERR_INVALID, "?type",
                          "'%.*s' is neither a state of a job (FINISHED) nor a kind of event; "
                          "there are%s",
                          (int)(word.len < 40 ? word.len : 40), word.ptr, all_kinds);
    if (filter->kind_count == LISTEN_KINDS_MAX)
        return err_set_at(err, ERR_INVALID, "?type", "at most %d kinds of events",
                          LISTEN_KINDS_MAX);
    filter->kind_count += sv_copy(word, filter->kinds[filter->kind_count], LISTEN_KIND_SIZE);
    return ERR_OK;
}

/* "type=FINISHED,FAILED,blocked", and as often as one likes. */
static enum err_code read_types(const struct request *req, struct listen_filter *filter,
                                struct err *err)
{
    struct sv list;
    for (size_t n = 0; uri_query_at(&req->uri, "type", n, &list); n++) {
        while (list.len > 0) {
            const char *comma = memchr(list.ptr, ',', list.len);
            struct sv word = {list.ptr, comma ? (size_t)(comma - list.ptr) : list.len};
            enum err_code rc = add_type(filter, word, err);
            if (rc)
                return rc;
            size_t step = word.len + (comma != NULL);
            list = (struct sv){list.ptr + step, list.len - step};
        }
    }
    return ERR_OK;
}

static enum err_code check_queue(const struct request *req, const char *name, struct err *err)
{
    struct job_queue queue = {0};
    enum err_code rc = queue_store_get(req->web->store, req->who.tenant, name, &queue, err);
    job_queue_done(&queue);
    if (rc != ERR_NOT_FOUND)
        return rc;
    err_clear(err);
    return err_set_at(err, ERR_NOT_FOUND, "?queue", "there is no queue %s", name);
}

static enum err_code read_filter(const struct request *req, struct listen_filter *filter,
                                 struct err *err)
{
    AUTO(job_free) struct job *job = NULL;
    struct sv text;
    (void)snprintf(filter->tenant, sizeof(filter->tenant), "%s", req->who.tenant);
    if (uri_query(&req->uri, "queue", &text) &&
        (text.len == 0 || !sv_copy(text, filter->queue, sizeof(filter->queue))))
        return err_set_at(err, ERR_INVALID, "?queue", "a queue's name has 1 to %d bytes",
                          QUEUE_NAME_SIZE - 1);
    enum err_code rc = filter->queue[0] ? check_queue(req, filter->queue, err) : ERR_OK;
    if (rc == ERR_OK)
        rc = read_types(req, filter, err);
    if (rc || !uri_query(&req->uri, "job", &text))
        return rc;
    filter->has_job = true;
    if (!uuid_parse(text, &filter->job))
        return err_set_at(err, ERR_INVALID, "?job", "the id of a job is a UUID");
    return job_store_get(req->web->store, req->who.tenant, &filter->job, &job, err);
}

/* after 0: he wants all that there is. Whoever comes back after long may have missed events that
 * nobody can tell him any more; and the newest of all may be one of these. */
static enum err_code check_place(const struct request *req, const char *pointer, uint64_t after,
                                 struct err *err)
{
    uint64_t newest = 0;
    struct retention_row row;
    enum err_code rc = feed_newest(req->web->store, &newest, err);
    if (rc || after == 0)
        return rc;
    rc = retention_store_get(req->web->store, &row, err);
    if (rc)
        return rc;
    if (after < row.events_upto)
        return err_set_at(err, ERR_GONE, pointer,
                          "events up to %llu may have been removed: begin again without it, and "
                          "read the jobs anew",
                          (unsigned long long)row.events_upto);
    if (after <= newest || after == row.events_upto)
        return ERR_OK;
    return err_set_at(err, ERR_INVALID, pointer,
                      "there is no event %llu yet; the newest is %llu: begin again without it",
                      (unsigned long long)after, (unsigned long long)newest);
}

/* Last-Event-ID wins: a client that reconnects sends the query that it began with. */
static enum err_code read_place(const struct request *req, uint64_t *after, struct err *err)
{
    struct sv last = request_header(req, HEADER_LAST_EVENT_ID);
    if (last.len > 0) {
        if (!sv_u64(last, INT64_MAX, after))
            return err_set_at(err, ERR_INVALID, "Last-Event-ID",
                              "it is the id of an event: a number");
        return check_place(req, "Last-Event-ID", *after, err);
    }
    enum err_code rc = request_number(req, "after", 0, INT64_MAX, after, err);
    return rc || *after == LISTEN_FROM_NOW ? rc : check_place(req, "?after", *after, err);
}

enum err_code events(struct request *req, struct err *err)
{
    struct listen_filter filter = {.kind_count = 0};
    uint64_t after = LISTEN_FROM_NOW;
    enum err_code rc = read_filter(req, &filter, err);
    if (rc == ERR_OK)
        rc = read_place(req, &after, err);
    return rc ? rc : listen_start(req, &filter, after, err);
}
