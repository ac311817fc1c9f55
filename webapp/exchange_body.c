/* SPDX-License-Identifier: MIT */
/* The body of a request, as it arrives. */
#include "webapp/exchange.h"

#include "webapp/web.h"

#include <strings.h>

uint64_t exchange_body_size(const struct exchange *x)
{
    uint64_t size = 0;
    if (x->req.header[HEADER_TRANSFER_ENCODING])
        return UINT64_MAX;
    struct sv text = request_header(&x->req, HEADER_CONTENT_LENGTH);
    return text.len && sv_u64(text, UINT64_MAX - 1, &size) ? size : 0;
}

static bool is_json_type(struct sv type)
{
    static const char json[] = "application/json";
    size_t length = sizeof(json) - 1;
    return type.len >= length && strncasecmp(type.ptr, json, length) == 0 &&
           (type.len == length || strchr("; \t", type.ptr[length]));
}

static const char *body_limit_name(const struct request *req)
{
    return req->body.limit == req->web->cfg->web_body_max_bytes ? "web.body_max_bytes"
                                                                : "of this route";
}

enum err_code exchange_check_body(const struct exchange *x, uint64_t size, struct err *err)
{
    const struct request *req = &x->req;
    uint64_t most = req->body.limit;
    struct sv encoding = request_header(req, HEADER_CONTENT_ENCODING);
    if (encoding.len > 0 && strcasecmp(encoding.ptr, "identity") != 0)
        return err_set(err, ERR_MEDIA_TYPE, "Content-Encoding is not supported: send it plain");
    if (!is_json_type(request_header(req, HEADER_CONTENT_TYPE)))
        return err_set(err, ERR_MEDIA_TYPE, "the Content-Type of the body is application/json");
    if (size != UINT64_MAX && size > most)
        return err_set(err, ERR_TOO_LARGE, "the body has %llu bytes; the limit is %llu (%s)",
                       (unsigned long long)size, (unsigned long long)most, body_limit_name(req));
    return ERR_OK;
}

enum MHD_Result exchange_on_bytes(struct exchange *x, const char *bytes, size_t *size)
{
    struct request *req = &x->req;
    size_t count = *size;
    *size = 0;
    if (x->refusal.code || (!x->ignore_body && !conn_hold_bytes(x, count)))
        x->ignore_body = true;
    if (!x->ignore_body && buf_add(&req->body, bytes, count))
        return MHD_YES;
    if (!x->ignore_body && count <= req->body.limit - req->body.len)
        (void)err_set(&x->refusal, ERR_NOMEM, "out of memory for the body");
    else if (!x->ignore_body)
        (void)err_set(&x->refusal, ERR_TOO_LARGE,
                      "the body is larger than the limit of %llu bytes (%s)",
                      (unsigned long long)req->body.limit, body_limit_name(req));
    x->ignore_body = true;
    buf_done(&req->body);
    x->discarded += count;
    if (x->discarded <= DISCARD_MAX_BYTES)
        return MHD_YES;
    (void)err_set(&x->refusal, ERR_TOO_LARGE, "the body is too large");
    pthread_mutex_lock(&x->server->lock);
    conn_kill(x->server, x->conn, &x->refusal);
    pthread_mutex_unlock(&x->server->lock);
    return MHD_NO;
}
