/* SPDX-License-Identifier: MIT */
#include "webapp/audit_note.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "webapp/web.h"

#include <errno.h>
#include <pthread.h>

#define LINE_MAX 4096
#define AT_ONCE 64
#define AGAIN_MS 500
#define STOP_MS 5000
/* Whoever has no token can make rows as fast as he can ask: a few tell of it as well as millions.
 */
#define STRANGERS_AT_ONCE 500
#define STRANGER_PAUSE_MS 200

struct auditor {
    struct store *store;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct audit_entry *line; /* lock: a ring of LINE_MAX; the same down to stopping */
    size_t first;
    size_t count;
    uint64_t lost;        /* since start */
    uint64_t untold;      /* of these, in no row yet */
    int64_t strangers_ms; /* paid up to then: a row without a tenant costs STRANGER_PAUSE_MS */
    bool stopping;
    pthread_t thread;
    bool has_thread;
};

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
    struct sv text = sv_of(err->text);
    (void)snprintf(entry->detail, sizeof(entry->detail), "%s",
                   sv_is_utf8(text) ? err->text : "(not text)");
}

/* ---- the line -------------------------------------------------------------------------------- */

/* The lock is held. */
static bool fits(struct auditor *auditor, const struct audit_entry *entry)
{
    const int64_t credit_ms = (int64_t)STRANGERS_AT_ONCE * STRANGER_PAUSE_MS;
    int64_t now_ms = clock_mono_ms();
    if (auditor->count >= LINE_MAX)
        return false;
    if (entry->tenant[0])
        return true;
    if (auditor->strangers_ms < now_ms - credit_ms)
        auditor->strangers_ms = now_ms - credit_ms;
    if (auditor->strangers_ms >= now_ms)
        return false;
    auditor->strangers_ms += STRANGER_PAUSE_MS;
    return true;
}

static void push(struct auditor *auditor, const struct audit_entry *entry)
{
    pthread_mutex_lock(&auditor->lock);
    if (fits(auditor, entry)) {
        auditor->line[(auditor->first + auditor->count++) % LINE_MAX] = *entry;
        pthread_cond_signal(&auditor->wake);
    } else {
        auditor->lost++;
        auditor->untold++;
    }
    pthread_mutex_unlock(&auditor->lock);
}

/* The next ones, and a row that says how many were lost before. The lock is held. */
static size_t take(struct auditor *auditor, struct audit_entry *ret_some, uint64_t *ret_untold)
{
    size_t count = 0;
    *ret_untold = auditor->untold;
    for (; count < AT_ONCE && count < auditor->count; count++)
        ret_some[count] = auditor->line[(auditor->first + count) % LINE_MAX];
    if (auditor->untold == 0)
        return count;
    struct audit_entry *lost = &ret_some[count];
    *lost = (struct audit_entry){.outcome = AUDIT_FAILED, .action = "audit.lost"};
    lost->id = uuid_v7();
    (void)snprintf(lost->detail, sizeof(lost->detail), "%llu entries were too many and are lost",
                   (unsigned long long)auditor->untold);
    return count + 1;
}

/* The lock is held, and not meanwhile. false: the database does not take them now. */
static bool write_some(struct auditor *auditor)
{
    struct audit_entry some[AT_ONCE + 1];
    struct err err = {0};
    uint64_t untold = 0;
    size_t count = take(auditor, some, &untold);
    pthread_mutex_unlock(&auditor->lock);
    enum err_code rc = audit_log_add(auditor->store, some, count, &err);
    if (rc)
        log_event(LOG_WARN, "audit.not_written", LOG_U("waiting", count),
                  LOG_S("detail", err.text));
    if (rc == ERR_OK && untold > 0)
        log_event(LOG_ERROR, "audit.lost", LOG_U("entries", untold));
    pthread_mutex_lock(&auditor->lock);
    if (rc)
        return false;
    size_t taken = count - (untold > 0);
    auditor->first = (auditor->first + taken) % LINE_MAX;
    auditor->count -= taken;
    auditor->untold -= untold;
    return true;
}

static void *auditor_main(void *arg)
{
    struct auditor *auditor = arg;
    int64_t stop_ms = 0;
    pthread_mutex_lock(&auditor->lock);
    for (;;) {
        while (auditor->count == 0 && auditor->untold == 0 && !auditor->stopping)
            pthread_cond_wait(&auditor->wake, &auditor->lock);
        if (auditor->count == 0 && auditor->untold == 0)
            break;
        if (auditor->stopping && !stop_ms)
            stop_ms = clock_mono_ms() + STOP_MS;
        if (write_some(auditor))
            continue;
        if (auditor->stopping && clock_mono_ms() >= stop_ms)
            break;
        (void)clock_cond_wait_until(&auditor->wake, &auditor->lock, clock_mono_ms() + AGAIN_MS);
    }
    if (auditor->count + auditor->untold > 0)
        log_event(LOG_ERROR, "audit.lost", LOG_U("entries", auditor->count + auditor->untold));
    pthread_mutex_unlock(&auditor->lock);
    store_thread_end();
    return NULL;
}

enum err_code auditor_open(struct store *store, struct auditor **ret_auditor, struct err *err)
{
    struct auditor *auditor = calloc(1, sizeof(*auditor));
    if (!auditor)
        return err_set(err, ERR_NOMEM, "out of memory");
    auditor->store = store;
    auditor->line = calloc(LINE_MAX, sizeof(*auditor->line));
    pthread_mutex_init(&auditor->lock, NULL);
    clock_cond_init(&auditor->wake);
    int rc = auditor->line ? pthread_create(&auditor->thread, NULL, auditor_main, auditor) : ENOMEM;
    if (rc) {
        auditor_free(auditor);
        return err_set_errno(err, ERR_NOMEM, rc, "cannot start the auditor's thread");
    }
    auditor->has_thread = true;
    *ret_auditor = auditor;
    return ERR_OK;
}

void auditor_free(struct auditor *auditor)
{
    if (!auditor)
        return;
    pthread_mutex_lock(&auditor->lock);
    auditor->stopping = true;
    pthread_cond_broadcast(&auditor->wake);
    pthread_mutex_unlock(&auditor->lock);
    if (auditor->has_thread)
        (void)pthread_join(auditor->thread, NULL);
    pthread_cond_destroy(&auditor->wake);
    pthread_mutex_destroy(&auditor->lock);
    free(auditor->line);
    free(auditor);
}

uint64_t auditor_lost(struct auditor *auditor)
{
    pthread_mutex_lock(&auditor->lock);
    uint64_t lost = auditor->lost;
    pthread_mutex_unlock(&auditor->lock);
    return lost;
}

size_t auditor_waiting(struct auditor *auditor)
{
    pthread_mutex_lock(&auditor->lock);
    size_t waiting = auditor->count;
    pthread_mutex_unlock(&auditor->lock);
    return waiting;
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
    push(req->web->auditor, &entry);
}

void audit_next(const struct request *req, struct audit_entry *entry, const char *subject)
{
    fill(req, entry);
    (void)snprintf(entry->subject, sizeof(entry->subject), "%s", subject);
    audit_arm(entry);
}

void audit_refused_one(const struct request *req, const char *subject, const struct err *err)
{
    struct audit_entry entry;
    fill(req, &entry);
    (void)snprintf(entry.subject, sizeof(entry.subject), "%s", subject);
    put_answer(&entry, (unsigned)err_http(err->code), err);
    push(req->web->auditor, &entry);
}
