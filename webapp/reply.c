/* SPDX-License-Identifier: MIT */
#include "webapp/problem.h"
#include "webapp/request.h"

#include "common/base/log.h"
#include "common/base/spare.h"

#define JSON_TYPE "application/json"
#define RETRY_AFTER_S "2"
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
