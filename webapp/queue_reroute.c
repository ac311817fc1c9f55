/* SPDX-License-Identifier: MIT */
/* POST /v1/queues/{name}:reroute: jobs that wait in a queue go where the filters say now. A preview
 * tells what would be moved; its plan names the filters, the number, and the last job that was
 * looked at. The act looks again by the same filters and moves no other job. */
#include "webapp/audit_note.h"
#include "webapp/cursor.h"
#include "webapp/entity.h"
#include "webapp/handlers.h"
#include "webapp/job_view.h"
#include "webapp/jobs.h"

#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/base/log.h"
#include "common/store/job_reroute.h"

#define LOOK_MAX 1000 /* jobs in one request */
#define PAGE 100
#define STRETCH 5000
#define LOOK_MS 250
#define SAMPLE_MAX 10
#define NAME_LIMIT ((size_t)65536)

static const struct entity_rule name_rule = {"queue name", QUEUE_NAME_SIZE, true};

struct wish {
    bool dry_run;
    const char *plan; /* NULL: none */
    bool has_expected;
    uint64_t expected;
    bool has_after;
    struct uuid after;
};

struct step {
    struct uuid id;
    uint32_t epoch;
    size_t target; /* index of the routing */
};

struct plan {
    struct request *req;
    char from[QUEUE_NAME_SIZE];
    struct routing *routing;
    const struct uuid *until; /* of a preview; NULL: no end */
    struct step *steps;       /* LOOK_MAX */
    size_t count;
    size_t looked;
    size_t staying;
    size_t too_long;
    size_t unreadable;
    bool more;
    struct uuid last; /* that was looked at */
    json_t *sample;
    int64_t until_ms;
    uint64_t moved;
    uint64_t left; /* were no longer waiting there when their turn came */
};

/* ---- the body -------------------------------------------------------------------------------- */

static enum err_code read_member(const char *name, const json_t *value, struct wish *wish,
                                 struct err *err)
{
    static const char *const members[] = {"dryRun", "plan", "expectedCount", "after"};
    const char *text = json_string_value(value);
    char pointer[ERR_POINTER_MAX];
    if (strcmp(name, "dryRun") == 0 && json_is_boolean(value)) {
        wish->dry_run = json_is_true(value);
        return ERR_OK;
    }
    if (strcmp(name, "plan") == 0 && text) {
        wish->plan = text;
        return ERR_OK;
    }
    if (strcmp(name, "expectedCount") == 0 && json_is_integer(value) &&
        json_integer_value(value) >= 0) {
        wish->has_expected = true;
        wish->expected = (uint64_t)json_integer_value(value);
        return ERR_OK;
    }
    wish->has_after = text && strcmp(name, "after") == 0 && uuid_parse(sv_of(text), &wish->after);
    if (wish->has_after)
        return ERR_OK;
    bool known = false;
    for (size_t i = 0; i < ARRAY_LEN(members); i++)
        known = known || strcmp(name, members[i]) == 0;
    (void)snprintf(pointer, sizeof(pointer), "/%.40s", name);
    return err_set_at(err, known ? ERR_INVALID : ERR_UNKNOWN_MEMBER, pointer,
                      "the members are dryRun (true or false), plan (text of a preview), "
                      "expectedCount (a number of jobs) and after (the id of a job)");
}

static enum err_code read_wish(json_t *root, struct wish *wish, struct err *err)
{
    const char *name = NULL;
    json_t *value = NULL;
    json_object_foreach(root, name, value)
    {
        enum err_code rc = read_member(name, value, wish, err);
        if (rc)
            return rc;
    }
    if (!wish->dry_run && !(wish->plan && wish->has_expected))
        return err_set_at(err, ERR_INVALID, "/plan",
                          "give plan and expectedCount of a preview; dryRun makes one");
    return ERR_OK;
}

/* ---- what would go where --------------------------------------------------------------------- */

static void add_sample(struct plan *plan, const struct job *job, const char *to)
{
    if (json_array_size(plan->sample) < SAMPLE_MAX)
        json_array_append_new(plan->sample,
                              json_pack("{s:o,s:o,s:o,s:s}", "id", view_uuid(&job->id), "name",
                                        view_text(job->name), "owner", view_text(job->owner),
                                        "queue", to));
}

/* The attributes of time are those of the submission, so that a preview stays true. */
static const struct routing_queue *choose(const struct plan *plan, const struct job *job,
                                          const struct job_request *request, size_t *ret_index)
{
    struct routing_row row;
    routing_row_init(&row, request, job->tenant, job->owner, job->created_us);
    const struct routing_queue *queue = routing_choose(plan->routing, &row.row);
    for (size_t i = 0; queue && i < routing_count(plan->routing); i++) {
        if (routing_at(plan->routing, i) == queue)
            *ret_index = i;
    }
    return queue;
}

static void judge(struct plan *plan, const struct job *job)
{
    AUTO(job_request_free) struct job_request *request = NULL;
    struct err err = {0};
    size_t target = 0;
    plan->looked++;
    if (job_request_parse(sv_of(job->request), &request, &err) != ERR_OK) {
        plan->unreadable++;
        return;
    }
    const struct routing_queue *queue = choose(plan, job, request, &target);
    if (!queue || strcmp(queue->queue.name, plan->from) == 0) {
        plan->staying++;
    } else if (queue->queue.max_seconds && job->max_seconds > queue->queue.max_seconds) {
        plan->too_long++;
    } else {
        plan->steps[plan->count++] = (struct step){job->id, job->epoch, target};
        add_sample(plan, job, queue->queue.name);
    }
}

static bool goes_on(const struct plan *plan)
{
    return plan->looked < LOOK_MAX && clock_mono_ms() < plan->until_ms;
}

/* One page; a job that is claimed or to be cancelled waits no more. false: the plan is whole. */
static bool judge_page(struct plan *plan, const struct job_list *list, enum err_code *ret_rc,
                       struct err *err)
{
    for (size_t i = 0; i < list->count; i++) {
        AUTO(job_free) struct job *job = NULL;
        const struct job *found = list->items[i];
        if (plan->until && memcmp(&found->id, plan->until, sizeof(found->id)) > 0)
            return false;
        plan->more = !goes_on(plan);
        if (plan->more)
            return false;
        plan->last = found->id;
        *ret_rc = job_store_get(plan->req->web->store, found->tenant, &found->id, &job, err);
        if (*ret_rc == ERR_NOT_FOUND) {
            err_clear(err);
            *ret_rc = ERR_OK;
        } else if (*ret_rc == ERR_OK && job->status == JOB_PENDING && !job->has_owner &&
                   !job->cancel_requested && strcmp(job->queue, plan->from) == 0) {
            judge(plan, job);
        }
        if (*ret_rc)
            return false;
    }
    if (list->more)
        plan->last = list->last;
    plan->more = list->more && !goes_on(plan);
    return list->more && !plan->more &&
           !(plan->until && memcmp(&plan->last, plan->until, sizeof(plan->last)) >= 0);
}

static enum err_code make_plan(struct plan *plan, const struct wish *wish, struct err *err)
{
    struct job_query query = {.tenant = plan->req->who.tenant,
                              .queue = plan->from,
                              .states = 1u << JOB_PENDING,
                              .hidden_too = true,
                              .order = JOB_ORDER_CREATED_ASC,
                              .limit = PAGE,
                              .stretch = STRETCH,
                              .look_ms = LOOK_MS,
                              .after = wish->has_after ? &wish->after : NULL};
    enum err_code rc = ERR_OK;
    bool more = true;
    while (rc == ERR_OK && more) {
        struct job_list list = {0};
        rc = job_store_list(plan->req->web->store, &query, &list, err);
        more = rc == ERR_OK && judge_page(plan, &list, &rc, err);
        job_list_done(&list);
        query.after = &plan->last;
    }
    return rc;
}

/* ---- what a preview is bound to -------------------------------------------------------------- */

static void name_plan(const struct plan *plan, const struct wish *wish, uint64_t count,
                      struct buf *name)
{
    char after[UUID_TEXT_SIZE] = "";
    if (wish->has_after)
        (void)uuid_text(&wish->after, after);
    buf_addf(name, "reroute %s %s %s %llu", plan->req->who.tenant, plan->from, after,
             (unsigned long long)count);
    for (size_t i = 0; i < routing_count(plan->routing); i++) {
        const struct job_queue *queue = &routing_at(plan->routing, i)->queue;
        buf_addf(name, " %s:%u", queue->name, queue->version);
    }
}

static enum err_code is_stale(const struct plan *plan, struct err *err)
{
    err_clear(err);
    return err_set(err, ERR_CONFLICT,
                   "queue %s, its waiting jobs or the filters are not as in the preview: look at "
                   "it again (dryRun)",
                   plan->from);
}

static enum err_code read_plan(struct plan *plan, const struct wish *wish, struct uuid *ret_until,
                               struct err *err)
{
    BUF_AUTO struct buf name = BUF_INIT(NAME_LIMIT);
    name_plan(plan, wish, wish->expected, &name);
    if (name.failed)
        return err_set(err, ERR_NOMEM, "out of memory");
    enum err_code rc =
        cursor_read(&plan->req->web->cursor_key, buf_sv(&name), sv_of(wish->plan), ret_until, err);
    if (rc == ERR_CURSOR)
        return is_stale(plan, err);
    plan->until = ret_until;
    return rc;
}

/* ---- doing it -------------------------------------------------------------------------------- */

static void send_moved(const struct plan *plan, const struct step *step, const struct job_queue *to,
                       const struct job_rerouted *done)
{
    const struct outbox_message message = {.outbox_id = done->outbox_id,
                                           .job = step->id,
                                           .epoch = done->epoch,
                                           .tenant = plan->req->who.tenant,
                                           .queue = to->name,
                                           .queue_type = to->queue_type,
                                           .traceparent = plan->req->trace};
    outbox_send(plan->req->web->outbox, &message);
}

static enum err_code move_one(struct plan *plan, const struct step *step, struct err *err)
{
    const struct request *req = plan->req;
    const struct job_queue *to = &routing_at(plan->routing, step->target)->queue;
    const struct job_reroute what = {.tenant = req->who.tenant,
                                     .id = step->id,
                                     .epoch = step->epoch,
                                     .from = plan->from,
                                     .to = to->name,
                                     .actor = req->who.user};
    struct job_rerouted done = {0};
    struct audit_entry entry;
    char subject[UUID_TEXT_SIZE + 16];
    char id[UUID_TEXT_SIZE];
    (void)snprintf(subject, sizeof(subject), "/v1/jobs/%s", uuid_text(&step->id, id));
    audit_next(req, &entry, subject);
    enum err_code rc = job_store_reroute(req->web->store, &what, &done, err);
    (void)audit_disarm();
    if (rc == ERR_OK) {
        plan->moved++;
        send_moved(plan, step, to, &done);
    } else if (rc == ERR_CONFLICT) { /* a worker was first, or it was cancelled */
        plan->left++;
        err_clear(err);
        rc = ERR_OK;
    }
    return rc;
}

static enum err_code move_all(struct plan *plan, const struct wish *wish, struct err *err)
{
    enum err_code rc = ERR_OK;
    if (plan->count > wish->expected)
        return is_stale(plan, err);
    FAULT("queue.reroute.planned");
    int64_t until_ms = clock_mono_ms() + (int64_t)plan->req->web->cfg->web_deadline_ms / 2;
    for (size_t i = 0; rc == ERR_OK && i < plan->count; i++) {
        if (clock_mono_ms() < until_ms)
            rc = move_one(plan, &plan->steps[i], err);
        else
            plan->left++; /* the client has its answer in time, and asks again */
    }
    log_event(LOG_INFO, "queue.reroute", LOG_S("tenant", plan->req->who.tenant),
              LOG_S("queue", plan->from), LOG_S("user", plan->req->who.user),
              LOG_U("moved", plan->moved), LOG_U("left", plan->left));
    return rc;
}

/* ---- the answer ------------------------------------------------------------------------------ */

static json_t *moves_view(const struct plan *plan)
{
    json_t *moves = json_array();
    for (size_t t = 0; t < routing_count(plan->routing); t++) {
        const char *name = routing_at(plan->routing, t)->queue.name;
        size_t count = 0;
        for (size_t i = 0; i < plan->count; i++)
            count += plan->steps[i].target == t;
        if (count > 0)
            json_array_append_new(
                moves,
                json_pack("{s:s,s:I,s:b}", "queue", name, "count", (json_int_t)count, "isServed",
                          router_serves(plan->req->web->router, plan->req->who.tenant, name)));
    }
    return moves;
}

static void reply_plan(const struct plan *plan, const struct wish *wish)
{
    BUF_AUTO struct buf name = BUF_INIT(NAME_LIMIT);
    char text[CURSOR_TEXT_SIZE] = "";
    if (wish->dry_run && plan->count > 0) {
        name_plan(plan, wish, plan->count, &name);
        cursor_write(&plan->req->web->cursor_key, buf_sv(&name), &plan->last, text);
    }
    reply_json(plan->req, MHD_HTTP_OK,
               json_pack("{s:s,s:I,s:I,s:o,s:I,s:I,s:I,s:O,s:o,s:o,s:I,s:I}", "queue", plan->from,
                         "looked", (json_int_t)plan->looked, "count", (json_int_t)plan->count,
                         "moves", moves_view(plan), "staying", (json_int_t)plan->staying, "tooLong",
                         (json_int_t)plan->too_long, "unreadable", (json_int_t)plan->unreadable,
                         "sample", plan->sample, "plan", view_text(text), "next",
                         plan->more ? view_uuid(&plan->last) : json_null(), "moved",
                         (json_int_t)plan->moved, "left", (json_int_t)plan->left));
}

static enum err_code run_plan(struct plan *plan, const struct wish *wish, struct err *err)
{
    ALLOWANCE_AUTO struct allowance_hold hold = {0};
    struct uuid until = {{0}};
    struct request *req = plan->req;
    plan->until_ms = clock_mono_ms() + (int64_t)req->web->cfg->web_deadline_ms / 2;
    enum err_code rc = wish->dry_run ? ERR_OK : read_plan(plan, wish, &until, err);
    if (rc == ERR_OK)
        rc = allowance_take(req->web->allowances, ALLOWANCE_SEARCHES, &req->who, 1, &hold, err);
    if (rc == ERR_OK)
        rc = make_plan(plan, wish, err);
    if (rc == ERR_OK && !wish->dry_run)
        rc = move_all(plan, wish, err);
    if (rc == ERR_OK)
        reply_plan(plan, wish);
    plan->until = NULL; /* it ends with this call */
    return rc;
}

enum err_code queue_reroute(struct request *req, struct err *err)
{
    JSON_AUTO json_t *root = NULL;
    JSON_AUTO json_t *sample = json_array();
    AUTO(routing_put) struct routing *routing = NULL;
    struct job_queue queue = {0};
    struct wish wish = {0};
    struct plan plan = {.req = req, .sample = sample};
    enum err_code rc = entity_name(req, 0, &name_rule, plan.from, err);
    if (rc == ERR_OK)
        rc = request_json(req, &root, err);
    if (rc == ERR_OK)
        rc = read_wish(root, &wish, err);
    if (rc == ERR_OK)
        rc = router_get(req->web->router, req->who.tenant, &routing, err);
    if (rc == ERR_OK)
        rc = queue_store_get(req->web->store, req->who.tenant, plan.from, &queue, err);
    if (rc)
        return rc;
    job_queue_done(&queue);
    plan.routing = routing;
    plan.steps = malloc(LOOK_MAX * sizeof(*plan.steps));
    rc = plan.steps ? run_plan(&plan, &wish, err) : err_set(err, ERR_NOMEM, "out of memory");
    free(plan.steps);
    return rc;
}
