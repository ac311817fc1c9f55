/* SPDX-License-Identifier: MIT */
#include "webapp/problem.h"
#include "webapp/request.h"

#include "common/base/log.h"
#include "common/base/spare.h"

#include "common/base/openssl.h"

#define JSON_TYPE "application/json"
#define RETRY_AFTER_S "2"
#define TAG_BYTES 16 /* of a hash */
#define TAG_SIZE 48
#define REAL_DIGITS 15 /* as many as any decimal number keeps: 4.376 is not 4.3760000000000003 */

static void set_reply(struct request *req, struct reply reply)
{
    if (req->reply.response)
        MHD_destroy_response(req->reply.response);
    req->reply = reply;
}

void reply_response(struct request *req, unsigned status, struct MHD_Response *take_response)
{
    set_reply(req, (struct reply){status, take_response, .is_stream = true});
}

void reply_header(struct request *req, const char *name, const char *value)
{
    if (req->reply.response)
        (void)MHD_add_response_header(req->reply.response, name, value);
}

/* bytes come from malloc or jansson and are given away. Without memory for an answer the connection
 * is closed by the server, which finds none. */
static void reply_bytes(struct request *req, unsigned status, const char *type, char *bytes,
                        size_t size)
{
    struct MHD_Response *response =
        bytes ? MHD_create_response_from_buffer_with_free_callback(size, bytes, spare_free) : NULL;
    if (!response)
        spare_free(bytes);
    set_reply(req, (struct reply){status, response, .bytes = size});
    reply_header(req, "Content-Type", type);
}

static void reply_document(struct request *req, unsigned status, const char *type, json_t *root)
{
    char *text = root ? json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(REAL_DIGITS)) : NULL;
    json_decref(root);
    reply_bytes(req, status, type, text, text ? strlen(text) : 0);
}

/* If-None-Match compares weakly (RFC 9110, 13.1.2): W/ does not count. */
static bool is_listed(struct sv list, struct sv tag)
{
    while (list.len > 0) {
        const char *comma = memchr(list.ptr, ',', list.len);
        struct sv one = {list.ptr, comma ? (size_t)(comma - list.ptr) : list.len};
        size_t step = one.len + (comma != NULL);
        list = (struct sv){list.ptr + step, list.len - step};
        while (one.len > 0 && (*one.ptr == ' ' || *one.ptr == '\t'))
            one = (struct sv){one.ptr + 1, one.len - 1};
        while (one.len > 0 && (one.ptr[one.len - 1] == ' ' || one.ptr[one.len - 1] == '\t'))
            one.len--;
        if (one.len > 2 && memcmp(one.ptr, "W/", 2) == 0)
            one = (struct sv){one.ptr + 2, one.len - 2};
        if (sv_is(one, "*") || sv_eq(one, tag))
            return true;
    }
    return false;
}

void reply_unless_known(struct request *req)
{
    char kept[TAG_SIZE];
    const char *tag =
        req->reply.response ? MHD_get_response_header(req->reply.response, "ETag") : NULL;
    struct sv list = request_header(req, HEADER_IF_NONE_MATCH);
    if (!tag || req->reply.status != MHD_HTTP_OK || list.len == 0)
        return;
    (void)snprintf(kept, sizeof(kept), "%s", tag);
    if (!is_listed(list, sv_of(strncmp(kept, "W/", 2) == 0 ? kept + 2 : kept)))
        return;
    reply_empty(req, MHD_HTTP_NOT_MODIFIED);
    reply_header(req, "ETag", kept);
}

/* Of the text: it changes with whatever is shown. */
static bool tag_of(const char *text, size_t size, char *ret_tag)
{
    uint8_t hash[32];
    if (!text || EVP_Digest(text, size, hash, NULL, EVP_sha256(), NULL) != 1)
        return false;
    size_t used = (size_t)snprintf(ret_tag, TAG_SIZE, "W/\"");
    for (size_t i = 0; i < TAG_BYTES; i++)
        used += (size_t)snprintf(ret_tag + used, TAG_SIZE - used, "%02x", hash[i]);
    (void)snprintf(ret_tag + used, TAG_SIZE - used, "\"");
    return true;
}

void reply_json_tagged(struct request *req, json_t *root)
{
    char tag[TAG_SIZE];
    char *text = root ? json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(REAL_DIGITS)) : NULL;
    size_t size = text ? strlen(text) : 0;
    bool tagged = tag_of(text, size, tag);
    json_decref(root);
    reply_bytes(req, MHD_HTTP_OK, JSON_TYPE, text, size);
    if (tagged)
        reply_header(req, "ETag", tag);
    reply_unless_known(req);
}

void reply_json(struct request *req, unsigned status, json_t *root)
{
    reply_document(req, status, JSON_TYPE, root);
}

void reply_text(struct request *req, unsigned status, const char *type, struct buf *take_text)
{
    size_t size = take_text->len;
    reply_bytes(req, status, type, buf_take(take_text), size);
}

void reply_empty(struct request *req, unsigned status)
{
    static char nothing[] = "";
    struct MHD_Response *response =
        MHD_create_response_from_buffer(0, nothing, MHD_RESPMEM_PERSISTENT);
    set_reply(req, (struct reply){status, response, .is_stream = false});
}

void reply_problem(struct request *req, const struct err *err, json_t *problem)
{
    unsigned status = (unsigned)err_http(err->code);
    reply_document(req, status, PROBLEM_TYPE, problem);
    if (err->code == ERR_UNAUTHENTICATED)
        reply_header(req, "WWW-Authenticate", "Bearer");
    if (status == MHD_HTTP_SERVICE_UNAVAILABLE || status == MHD_HTTP_GATEWAY_TIMEOUT ||
        status == MHD_HTTP_TOO_MANY_REQUESTS)
        reply_header(req, "Retry-After", RETRY_AFTER_S);
    if (err->code == ERR_METHOD)
        reply_header(req, "Allow", req->match.allow);
}

void reply_error(struct request *req, const struct err *err)
{
    reply_problem(req, err,
                  problem_of(err, req->uri.raw ? req->uri.raw : "/",
                             req->uri.raw ? req->uri.path_length : 1, req->id));
    if (err_http(err->code) >= MHD_HTTP_INTERNAL_SERVER_ERROR)
        log_err("http.failed", err);
}
