/* SPDX-License-Identifier: MIT */
/* POST /v1/jobs:cancel: many jobs in one request, each in a transaction of its own. */
#include "webapp/audit_note.h"
#include "webapp/filter_view.h"
#include "webapp/handlers.h"
#include "webapp/job_search.h"
#include "webapp/job_view.h"
#include "webapp/jobs.h"
#include "webapp/problem.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/model/job_member.h"

#define COUNT_MAX 10000u /* jobs are counted so far */

struct wish {
    const json_t *ids; /* NULL: those that the search finds */
    bool has_expected;
    uint64_t expected;
    bool dry_run;
};

struct tally {
    uint64_t matched;
    uint64_t looked_at;
    uint64_t cancelled;
    uint64_t asked;
    json_t *failures;
    json_t *found; /* of a dry run of a search: what it would act on */
    char cursor[CURSOR_TEXT_SIZE];
    struct audit_refusals refusals;
    int64_t until_ms; /* what is not done then is left for another request */
};

/* ---- the body -------------------------------------------------------------------------------- */

static enum err_code read_ids(const json_t *ids, struct err *err)
{
    size_t index = 0;
    const json_t *item = NULL;
    struct uuid id;
    char pointer[ERR_POINTER_MAX];
    if (!json_is_array(ids) || json_array_size(ids) < 1 ||
        json_array_size(ids) > JOB_STORE_PAGE_MAX)
        return err_set_at(err, ERR_INVALID, "/ids", "ids is a list of 1 to %d ids of jobs",
                          JOB_STORE_PAGE_MAX);
    json_array_foreach(ids, index, item)
    {
        if (json_is_string(item) && uuid_parse(sv_of(json_string_value(item)), &id))
            continue;
        (void)snprintf(pointer, sizeof(pointer), "/ids/%zu", index);
        return err_set_at(err, ERR_INVALID, pointer, "the id of a job is a UUID");
    }
    return ERR_OK;
}

static enum err_code read_member(const char *name, const json_t *value, struct wish *wish,
                                 struct err *err)
{
    static const char *const names[] = {"ids", "expectedCount", "dryRun"};
    static const struct member_names known = {"a request to cancel jobs", names, ARRAY_LEN(names)};
    char pointer[ERR_POINTER_MAX];
    if (strcmp(name, "ids") == 0) {
        wish->ids = value;
        return read_ids(value, err);
    }
    if (strcmp(name, "dryRun") == 0 && json_is_boolean(value)) {
        wish->dry_run = json_is_true(value);
        return ERR_OK;
    }
    if (strcmp(name, "expectedCount") == 0 && json_is_integer(value) &&
        json_integer_value(value) >= 0) {
        wish->has_expected = true;
        wish->expected = (uint64_t)json_integer_value(value);
        return ERR_OK;
    }
    (void)snprintf(pointer, sizeof(pointer), "/%.40s", name);
    if (strcmp(name, "dryRun") == 0 || strcmp(name, "expectedCount") == 0)
        return err_set_at(err, ERR_INVALID, pointer,
                          "dryRun is true or false, expectedCount a number of jobs");
    const struct member member = member_of("", name, NULL);
    return member_unknown(&member, name, &known, err);
}

static enum err_code read_wish(const struct request *req, json_t *root, struct wish *wish,
                               struct err *err)
{
    enum err_code rc = ERR_OK;
    const char *name = NULL;
    json_t *value = NULL;
    json_object_foreach(root, name, value)
    {
        enum err_code one = read_member(name, value, wish, err);
        rc = rc ? rc : one;
        if (rc && !err_wants_more(err))
            return rc;
    }
    if (rc)
        return rc;
    if (wish->ids && req->uri.query_count > 0)
        return err_set_at(err, ERR_INVALID, "/ids", "either ids or a search, not both");
    if (!wish->ids && !wish->has_expected && !wish->dry_run)
        return err_set_at(err, ERR_INVALID, "/expectedCount",
                          "say how many jobs you expect the search to find; dryRun tells");
    return ERR_OK;
}

/* ---- doing it -------------------------------------------------------------------------------- */

static void add_failure(const struct request *req, struct tally *tally, const struct uuid *id,
                        const struct err *err)
{
    audit_refusal_add(&tally->refusals, id, err);
    json_array_append_new(tally->failures,
                          json_pack("{s:o,s:o}", "id", view_uuid(id), "problem",
                                    problem_of(err, req->uri.raw, req->uri.path_length, req->id)));
}

/* Only a fault of ours ends the whole; a job that cannot be cancelled is a line of the answer. */
static enum err_code cancel_one(const struct request *req, const struct job *job,
                                struct tally *tally, struct err *err)
{
    struct job_cancelled done = {0};
    struct err why = {0};
    struct audit_entry entry;
    char subject[UUID_TEXT_SIZE + 16];
    char id[UUID_TEXT_SIZE];
    (void)snprintf(subject, sizeof(subject), "/v1/jobs/%s", uuid_text(&job->id, id));
    audit_next(req, &entry, subject);
    enum err_code rc = job_cancel_one(req, job, &done, &why);
    (void)audit_disarm();
    if (rc && err_http(rc) >= MHD_HTTP_INTERNAL_SERVER_ERROR) {
        *err = why;
        return rc;
    }
    tally->looked_at++;
    tally->cancelled += rc == ERR_OK && done.done;
    tally->asked += rc == ERR_OK && !done.done;
    if (rc)
        add_failure(req, tally, &job->id, &why);
    return ERR_OK;
}

static bool has_time(const struct tally *tally)
{
    return clock_mono_ms() < tally->until_ms;
}

static enum err_code cancel_named(const struct request *req, const json_t *ids, struct tally *tally,
                                  struct err *err)
{
    size_t index = 0;
    const json_t *item = NULL;
    enum err_code rc = ERR_OK;
    json_array_foreach(ids, index, item)
    {
        AUTO(job_free) struct job *job = NULL;
        struct uuid id = {{0}};
        struct err why = {0};
        if (rc || !has_time(tally) || !uuid_parse(sv_of(json_string_value(item)), &id))
            break;
        rc = job_store_get(req->web->store, req->who.tenant, &id, &job, &why);
        if (rc == ERR_NOT_FOUND) {
            tally->looked_at++;
            add_failure(req, tally, &id, &why);
            rc = ERR_OK;
            continue;
        }
        if (rc)
            *err = why;
        else
            rc = cancel_one(req, job, tally, err);
    }
    return rc;
}

static enum err_code check_count(const struct wish *wish, uint64_t matched, struct err *err)
{
    if (matched <= wish->expected + wish->expected / 10)
        return ERR_OK;
    return err_set(
        err, ERR_CONFLICT,
        "the search finds %s%llu, and you expected %llu jobs: none was cancelled; look at "
        "the search again, and send the number that it finds",
        matched > COUNT_MAX ? "more than " : "",
        (unsigned long long)(matched > COUNT_MAX ? COUNT_MAX : matched),
        (unsigned long long)wish->expected);
}

/* Whoever may only act on his own jobs searches only among them. */
static enum err_code narrow(const struct request *req, struct job_search *search, struct err *err)
{
    struct job_query *query = &search->query;
    unsigned live = 0;
    struct sv limit;
    for (int i = 0; i < JOB_STATE_COUNT; i++)
        live |= (unsigned)!job_state_ends((enum job_state)i) << i;
    if (query->states && !(query->states & live))
        return err_set_at(err, ERR_INVALID, "?status", "jobs in these states have ended");
    query->states = query->states ? query->states & live : live;
    query->order = JOB_ORDER_CREATED_ASC;
    if (!uri_query(&req->uri, "limit", &limit))
        query->limit = JOB_STORE_PAGE_MAX;
    if (query->owner)
        return request_check_owner(req, query->owner, err);
    if (!auth_has_role(&req->who, req->route->others))
        query->owner = req->who.user;
    return ERR_OK;
}

/* By these ids a caller acts on what a person has seen, and on nothing that came since. */
static void preview(const struct request *req, const struct job_search *search,
                    const struct job_list *list, struct tally *tally)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct job *job = list->items[i];
        json_array_append_new(tally->found,
                              json_pack("{s:o,s:s,s:s,s:s}", "id", view_uuid(&job->id), "name",
                                        job->name, "owner", job->owner, "status",
                                        job_state_text(job->status)));
    }
    if (list->more)
        cursor_write(&req->web->cursor_key, buf_sv(&search->name), &list->last, tally->cursor);
}

static enum err_code cancel_found(const struct request *req, const struct wish *wish,
                                  const struct job_search *search, struct tally *tally,
                                  struct err *err)
{
    const struct job_query *query = &search->query;
    struct job_list list = {0};
    enum err_code rc = job_store_count(req->web->store, query, COUNT_MAX + 1, &tally->matched, err);
    if (rc == ERR_OK && !wish->dry_run)
        rc = check_count(wish, tally->matched, err);
    if (rc == ERR_OK)
        rc = job_store_list(req->web->store, query, &list, err);
    if (rc == ERR_OK && wish->dry_run)
        preview(req, search, &list, tally);
    for (size_t i = 0; rc == ERR_OK && !wish->dry_run && i < list.count && has_time(tally); i++)
        rc = cancel_one(req, list.items[i], tally, err);
    job_list_done(&list);
    return rc;
}

/* ---- the answer ------------------------------------------------------------------------------ */

static json_t *count_view(uint64_t count)
{
    bool more = count > COUNT_MAX;
    return json_pack("{s:I,s:b}", "count", (json_int_t)(more ? COUNT_MAX : count), "isMore", more);
}

static void reply_tally(struct request *req, const struct wish *wish, struct tally *tally)
{
    uint64_t left = tally->matched > tally->looked_at ? tally->matched - tally->looked_at : 0;
    size_t failed = json_array_size(tally->failures);
    if (!wish->dry_run)
        log_event(LOG_INFO, "jobs.cancel", LOG_S("tenant", req->who.tenant),
                  LOG_S("user", req->who.user), LOG_U("matched", tally->matched),
                  LOG_U("cancelled", tally->cancelled), LOG_U("asked", tally->asked),
                  LOG_U("failed", failed));
    json_t *view =
        json_pack("{s:o,s:I,s:I,s:I,s:O,s:o}", "matched", count_view(tally->matched), "cancelled",
                  (json_int_t)tally->cancelled, "asked", (json_int_t)tally->asked, "failed",
                  (json_int_t)failed, "failures", tally->failures, "remaining", count_view(left));
    if (wish->dry_run && !wish->ids) {
        json_object_set(view, "found", tally->found);
        json_object_set_new(view, "nextCursor", view_text(tally->cursor));
    }
    reply_json(req, MHD_HTTP_OK, view);
}

static enum err_code search_and_cancel(struct request *req, const struct wish *wish,
                                       struct tally *tally, struct err *err)
{
    JOB_SEARCH_AUTO struct job_search search = {0};
    struct filter_report report = {0};
    enum err_code rc = job_search_read(req, &search, &report, err);
    if (rc == ERR_FILTER) {
        reply_filter_problem(req, err, &report);
        return ERR_OK;
    }
    if (rc == ERR_OK)
        rc = narrow(req, &search, err);
    search.is_costly = true; /* it counts 10,000 jobs, whatever the filter is */
    ALLOWANCE_AUTO struct allowance_hold hold = {0};
    if (rc == ERR_OK)
        rc = job_search_begin(req, &search, &hold, err);
    if (rc == ERR_OK)
        rc = cancel_found(req, wish, &search, tally, err);
    audit_refusals_end(req, &tally->refusals);
    if (rc == ERR_OK)
        reply_tally(req, wish, tally);
    return rc;
}

enum err_code jobs_cancel(struct request *req, struct err *err)
{
    JSON_AUTO json_t *root = NULL;
    JSON_AUTO json_t *failures = json_array();
    JSON_AUTO json_t *found = json_array();
    struct wish wish = {0};
    struct tally tally = {.failures = failures,
                          .found = found,
                          .until_ms =
                              clock_mono_ms() + (int64_t)req->web->cfg->web_deadline_ms / 2};
    enum err_code rc = request_json(req, &root, err);
    if (rc == ERR_OK)
        rc = read_wish(req, root, &wish, err);
    if (rc)
        return rc;
    if (!wish.ids)
        return search_and_cancel(req, &wish, &tally, err);
    tally.matched = json_array_size(wish.ids);
    if (!wish.dry_run)
        rc = cancel_named(req, wish.ids, &tally, err);
    audit_refusals_end(req, &tally.refusals);
    if (rc == ERR_OK)
        reply_tally(req, &wish, &tally);
    return rc;
}
