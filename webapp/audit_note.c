/* SPDX-License-Identifier: MIT */
#include "webapp/audit_note.h"

#include "webapp/problem.h"
#include "webapp/web.h"

/* ---- what is written ------------------------------------------------------------------------- */

/* Submissions that are taken are not: the job's row and its first event say who, when and what. */
static bool is_submission(const struct route *route)
{
    return route->id == ROUTE_job_submit || route->id == ROUTE_job_batch ||
           route->id == ROUTE_job_resubmit;
}

/* Questions have a body, but change nothing. */
static bool is_act(const struct route *route)
{
    return route && route->method != METHOD_GET && route->id != ROUTE_queue_explain &&
           route->id != ROUTE_queue_check;
}

/* A refusal that tells who tried what he may not, or what cannot be done. Of what is not there only
 * what was named counts: it may be another tenant's. */
static bool is_told(const struct request *req, unsigned status)
{
    const struct route *route = req->route;
    bool named = req->match.params[0].len > 0;
    if (!route || route->is_public)
        return false;
    switch (status) {
    case MHD_HTTP_UNAUTHORIZED:
    case MHD_HTTP_FORBIDDEN:
        return true;
    case MHD_HTTP_NOT_FOUND:
        return named;
    case MHD_HTTP_TOO_MANY_REQUESTS:
    case MHD_HTTP_REQUEST_TIMEOUT:
        return false;
    case MHD_HTTP_CONFLICT:
        return is_act(route);
    default:
        return is_act(route) && !is_submission(route);
    }
}

static void put_subject(const struct request *req, struct audit_entry *entry)
{
    struct sv path = {req->uri.raw ? req->uri.raw : "", req->uri.raw ? req->uri.path_length : 0};
    size_t length = path.len < AUDIT_SUBJECT_SIZE ? path.len : AUDIT_SUBJECT_SIZE - 1;
    for (size_t i = 0; i < length; i++) /* it is as it was sent: bytes that are no text are told */
        entry->subject[i] = path.ptr[i] > ' ' && path.ptr[i] < 0x7f ? path.ptr[i] : '?';
}

static void fill(const struct request *req, struct audit_entry *entry)
{
    *entry = (struct audit_entry){.outcome = AUDIT_DONE};
    entry->id = uuid_v7();
    (void)snprintf(entry->tenant, sizeof(entry->tenant), "%s", req->who.tenant);
    (void)snprintf(entry->actor, sizeof(entry->actor), "%s", req->who.user);
    (void)snprintf(entry->action, sizeof(entry->action), "%s", req->route->name);
    (void)snprintf(entry->method, sizeof(entry->method), "%s", method_text(req->route->method));
    (void)snprintf(entry->request_id, sizeof(entry->request_id), "%s", req->id);
    (void)snprintf(entry->address, sizeof(entry->address), "%s", req->address);
    put_subject(req, entry);
}

static void put_answer(struct audit_entry *entry, unsigned status, const struct err *err)
{
    entry->status = status;
    entry->outcome = status >= MHD_HTTP_INTERNAL_SERVER_ERROR ? AUDIT_FAILED
                     : status >= MHD_HTTP_BAD_REQUEST         ? AUDIT_REFUSED
                                                              : AUDIT_DONE;
    if (!err || !err->code)
        return;
    entry->code = (unsigned)err_number(err->code);
    const char *text = problem_detail(err);
    (void)snprintf(entry->detail, sizeof(entry->detail), "%s",
                   sv_is_utf8(sv_of(text)) ? text : "(not text)");
}

/* ---- requests -------------------------------------------------------------------------------- */

void audit_begin(struct request *req, struct audit_entry *entry)
{
    if (!is_act(req->route) || is_submission(req->route) || req->route->id == ROUTE_jobs_cancel)
        return;
    fill(req, entry);
    audit_arm(entry);
}

void audit_end(struct request *req)
{
    req->is_audited = audit_disarm() || req->is_audited;
}

void audit_answered(struct request *req, unsigned status, const struct err *err)
{
    struct audit_entry entry;
    bool refused = status >= MHD_HTTP_BAD_REQUEST;
    if (refused ? !is_told(req, status)
                : req->is_audited || !is_act(req->route) || is_submission(req->route) ||
                      req->route->id == ROUTE_jobs_cancel) /* its jobs have their rows */
        return;
    fill(req, &entry);
    put_answer(&entry, status, refused ? err : NULL);
    auditor_push(req->web->auditor, &entry);
}

void audit_next(const struct request *req, struct audit_entry *entry, const char *subject)
{
    fill(req, entry);
    (void)snprintf(entry->subject, sizeof(entry->subject), "%s", subject);
    audit_arm(entry);
}

/* ---- many refusals of one request ------------------------------------------------------------ */

static void push_about(const struct request *req, const char *subject, const struct err *err)
{
    struct audit_entry entry;
    fill(req, &entry);
    (void)snprintf(entry.subject, sizeof(entry.subject), "%s", subject);
    put_answer(&entry, (unsigned)err_http(err->code), err);
    auditor_push(req->web->auditor, &entry);
}

void audit_refusal_add(struct audit_refusals *refusals, const struct uuid *id,
                       const struct err *err)
{
    struct audit_refusal *kind = refusals->kinds;
    while (kind->count > 0 && kind->err.code != err->code &&
           kind < &refusals->kinds[AUDIT_REFUSAL_KINDS - 1])
        kind++;
    if (kind->count == 0)
        kind->err = *err;
    if (kind->count < AUDIT_REFUSAL_SAMPLE)
        kind->sample[kind->count] = *id;
    kind->count++;
}

/* The first ids stand for all: a row has room for no more. */
static void push_kind(const struct request *req, const struct audit_refusal *kind)
{
    char id[UUID_TEXT_SIZE];
    struct err about = kind->err;
    size_t at = (size_t)snprintf(about.text, sizeof(about.text), "%llu jobs, among them",
                                 (unsigned long long)kind->count);
    for (size_t i = 0; i < AUDIT_REFUSAL_SAMPLE && i < kind->count; i++)
        at += (size_t)snprintf(about.text + at, sizeof(about.text) - at, " %s",
                               uuid_text(&kind->sample[i], id));
    push_about(req, "/v1/jobs:cancel", &about);
}

void audit_refusals_end(const struct request *req, const struct audit_refusals *refusals)
{
    char subject[UUID_TEXT_SIZE + 16];
    char id[UUID_TEXT_SIZE];
    for (size_t i = 0; i < AUDIT_REFUSAL_KINDS; i++) {
        const struct audit_refusal *kind = &refusals->kinds[i];
        (void)snprintf(subject, sizeof(subject), "/v1/jobs/%s", uuid_text(&kind->sample[0], id));
        if (kind->count == 1)
            push_about(req, subject, &kind->err);
        else if (kind->count > 1)
            push_kind(req, kind);
    }
}
