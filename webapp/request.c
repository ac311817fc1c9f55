/* SPDX-License-Identifier: MIT */
#include "webapp/request.h"

#include "common/base/log.h"
#include "common/base/uuid.h"
#include "common/model/job_request.h"
#include "webapp/share.h"
#include "webapp/web.h"

#include <ctype.h>

#define DETAIL_SIZE 256
#define WHAT_SIZE 192

struct sv request_header(const struct request *req, enum header_id id)
{
    return sv_of(req->header[id]);
}

void request_set_id(struct request *req, const char *sent)
{
    size_t length = sent ? strlen(sent) : 0;
    bool good = length > 0 && length < sizeof(req->id);
    for (size_t i = 0; good && i < length; i++)
        good = isalnum((unsigned char)sent[i]) || strchr("._-", sent[i]);
    if (good) {
        memcpy(req->id, sent, length + 1);
        return;
    }
    struct uuid fresh = uuid_v7();
    (void)uuid_text(&fresh, req->id);
}

/* W3C trace context, version 00: 00-<32 hex>-<16 hex>-<2 hex>, lower case; an id of zeros is none.
 */
void request_set_trace(struct request *req, const char *sent)
{
    static const char form[] = "00-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx-xxxxxxxxxxxxxxxx-xx";
    _Static_assert(sizeof(form) == REQUEST_TRACE_SIZE, "the form of a traceparent");
    if (!sent || strlen(sent) != sizeof(form) - 1)
        return;
    for (size_t i = 0; form[i]; i++) {
        bool hex = (sent[i] >= '0' && sent[i] <= '9') || (sent[i] >= 'a' && sent[i] <= 'f');
        if (form[i] == 'x' ? !hex : sent[i] != form[i])
            return;
    }
    if (strspn(sent + 3, "0") >= 32 || strspn(sent + 36, "0") >= 16)
        return;
    memcpy(req->trace, sent, sizeof(form));
}

/* What it holds of its user's share: its body, as far as that is known. */
static uint64_t body_bytes(const struct request *req)
{
    uint64_t size = 0;
    if (!route_has_body(req->route))
        return 0;
    if (req->header[HEADER_TRANSFER_ENCODING] && req->body.len == 0)
        return req->body.limit;
    struct sv length = request_header(req, HEADER_CONTENT_LENGTH);
    return length.len && sv_u64(length, UINT64_MAX, &size) ? size : req->body.len;
}

static enum err_code take_share(struct request *req, struct err *err)
{
    char key[SHARE_KEY_SIZE];
    int length = snprintf(key, sizeof(key), "%s/%s", req->who.tenant, req->who.user);
    uint64_t bytes = body_bytes(req);
    struct share *share = share_get(req->web->users, (struct sv){key, (size_t)length});
    enum err_code rc = share_enter(req->web->users, share, bytes, err);
    if (rc) {
        share_put(req->web->users, share);
        web_count_limited(true);
        return rc;
    }
    req->share = share;
    req->share_bytes = bytes;
    return ERR_OK;
}

void request_done(struct request *req)
{
    allowance_return(&req->answer);
    if (req->share) {
        share_leave(req->web->users, req->share, req->share_bytes);
        share_put(req->web->users, req->share);
    }
    for (size_t i = 0; i < HEADER_COUNT; i++)
        free(req->header[i]);
    uri_done(&req->uri);
    buf_done(&req->body);
    err_list_done(&req->faults);
    if (req->reply.response)
        MHD_destroy_response(req->reply.response);
}

/* A request may bring an answer of megabytes: first those that wait are to be read. */
static enum err_code check_unread(const struct request *req, struct err *err)
{
    return allowance_check(req->web->allowances, ALLOWANCE_ANSWERS, &req->who, REQUEST_SMALL_ANSWER,
                           err);
}

enum err_code request_hold_answer(struct request *req, struct err *err)
{
    struct allowances *all = req->web->allowances;
    uint64_t bytes = req->reply.bytes;
    if (bytes <= REQUEST_SMALL_ANSWER || !req->who.tenant[0])
        return ERR_OK;
    if (req->route->method == METHOD_GET)
        return allowance_take(all, ALLOWANCE_ANSWERS, &req->who, bytes, &req->answer, err);
    allowance_add(all, ALLOWANCE_ANSWERS, &req->who, bytes, &req->answer);
    return ERR_OK;
}

static enum err_code check_query(const struct request *req, struct err *err)
{
    for (size_t i = 0; i < req->uri.query_count; i++) {
        struct sv name = req->uri.query[i].name;
        if (route_takes(req->route, name))
            continue;
        char pointer[ERR_POINTER_MAX];
        (void)snprintf(pointer, sizeof(pointer), "?%.*s", (int)(name.len < 64 ? name.len : 64),
                       name.ptr);
        return err_set_at(err, ERR_UNKNOWN_MEMBER, pointer, "unknown query parameter; known: %s",
                          req->route->query[0] ? req->route->query : "none");
    }
    return ERR_OK;
}

/* The strongest that the token has. */
static const char *role_held(const struct request *req)
{
    for (int role = ROLE_COUNT - 1; role >= 0; role--)
        if (auth_has_role(&req->who, (enum role)role))
            return role_name((enum role)role);
    return "none";
}

static enum err_code forbidden(const struct request *req, enum role needed, const char *what,
                               struct err *err)
{
    log_event(LOG_INFO, "http.forbidden", LOG_S("tenant", req->who.tenant),
              LOG_S("user", req->who.user), LOG_S("route", req->route->name),
              LOG_S("needed", role_name(needed)));
    return err_set(err, ERR_FORBIDDEN,
                   "%s you need the role %s, and your token has %s: ask your administrator", what,
                   role_name(needed), role_held(req));
}

/* "to submit a job", of the summary of the route up to its first mark. */
static enum err_code forbidden_route(const struct request *req, struct err *err)
{
    const char *summary = req->route->summary;
    char what[WHAT_SIZE];
    if (req->route->method == METHOD_GET)
        return forbidden(req, req->route->least, "to look at this", err);
    (void)snprintf(what, sizeof(what), "to %c%.*s", tolower((unsigned char)summary[0]),
                   (int)strcspn(summary + 1, ";:,("), summary + 1);
    for (size_t end = strlen(what); end > 0 && what[end - 1] == ' '; end--)
        what[end - 1] = '\0';
    return forbidden(req, req->route->least, what, err);
}

enum err_code request_check(struct request *req, struct err *err)
{
    req->is_checked = true;
    if (!req->route->is_public) {
        char detail[DETAIL_SIZE];
        enum err_code rc = auth_check(req->web->auth, request_header(req, HEADER_AUTHORIZATION),
                                      &req->who, detail, sizeof(detail), err);
        if (rc) {
            log_event(LOG_INFO, "http.unauthenticated", LOG_S("route", req->route->name),
                      LOG_S("detail", detail));
            return rc;
        }
        rc = take_share(req, err);
        if (rc)
            return rc;
        rc = check_unread(req, err);
        if (rc)
            return rc;
        if (!auth_has_role(&req->who, req->route->least))
            return forbidden_route(req, err);
    }
    return check_query(req, err);
}

enum err_code request_check_owner(const struct request *req, const char *owner, struct err *err)
{
    char what[WHAT_SIZE];
    if (strcmp(owner, req->who.user) == 0 || auth_has_role(&req->who, req->route->others))
        return ERR_OK;
    (void)snprintf(what, sizeof(what), "to act on the jobs of %s", owner);
    return forbidden(req, req->route->others, what, err);
}

enum err_code request_json(const struct request *req, json_t **ret_root, struct err *err)
{
    JSON_AUTO json_t *root = NULL;
    enum err_code rc = job_json_read(buf_sv(&req->body), &root, err);
    if (rc)
        return rc;
    if (!json_is_object(root))
        return err_set(err, ERR_INVALID, "the body is not a JSON object");
    *ret_root = TAKE(root);
    return ERR_OK;
}

enum err_code request_number(const struct request *req, const char *name, uint64_t least,
                             uint64_t most, uint64_t *value, struct err *err)
{
    struct sv text;
    uint64_t number = 0;
    char pointer[ERR_POINTER_MAX];
    if (!uri_query(&req->uri, name, &text))
        return ERR_OK;
    (void)snprintf(pointer, sizeof(pointer), "?%s", name);
    if (!sv_u64(text, UINT64_MAX, &number) || number < least || number > most)
        return err_set_at(err, ERR_INVALID, pointer, "%s is a whole number from %llu to %llu", name,
                          (unsigned long long)least, (unsigned long long)most);
    *value = number;
    return ERR_OK;
}

enum err_code request_flag(const struct request *req, const char *name, bool *ret_flag,
                           struct err *err)
{
    struct sv text;
    char pointer[ERR_POINTER_MAX];
    *ret_flag = false;
    if (!uri_query(&req->uri, name, &text) || sv_is(text, "false"))
        return ERR_OK;
    (void)snprintf(pointer, sizeof(pointer), "?%s", name);
    if (text.len > 0 && !sv_is(text, "true"))
        return err_set_at(err, ERR_INVALID, pointer, "%s is true or false", name);
    *ret_flag = true;
    return ERR_OK;
}
