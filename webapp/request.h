/* SPDX-License-Identifier: MIT */
#ifndef WEBAPP_REQUEST_H
#define WEBAPP_REQUEST_H

/* request: one HTTP request as its handler sees it, and its answer.
 * Threads: owner: the server's thread while it arrives, then one handler thread at a time.
 * Memory: everything in it lives until the answer is sent; nothing is freed by handlers. */

#include "common/auth/auth.h"
#include "common/base/buf.h"
#include "common/base/uuid.h"
#include "webapp/allowance.h"
#include "webapp/route.h"
#include "webapp/uri.h"

#include <jansson.h>
#include <microhttpd.h>

#define REQUEST_ID_SIZE 64
#define REQUEST_ADDRESS_SIZE 46
#define REQUEST_TRACE_SIZE 56 /* 55 characters and NUL */

/* A handler returns this when it has given the request to somebody who will answer it later; it
 * must not touch it any more. */
#define REQUEST_PARKED ((enum err_code)ERR_CODE_COUNT)

enum header_id {
#define HEADER(id, name) HEADER_##id,
#include "webapp/header.def"
#undef HEADER
    HEADER_COUNT
};

struct reply {
    unsigned status;
    struct MHD_Response *response; /* NULL: not answered yet */
    bool is_stream;                /* read from a file or made as it goes: no memory is held */
    uint64_t bytes;                /* held until it is sent */
};

struct web;
struct share;

struct request {
    struct web *web;
    const struct route *route;      /* NULL: none was found */
    char *header[HEADER_COUNT];     /* NULL: not sent */
    char id[REQUEST_ID_SIZE];       /* X-Request-Id */
    char trace[REQUEST_TRACE_SIZE]; /* traceparent, or "" */
    struct uri uri;
    struct route_match match;
    struct buf body;
    struct err_list faults;             /* of the body, all that were found */
    struct identity who;                /* of routes that are not public */
    char address[REQUEST_ADDRESS_SIZE]; /* of the other end of the connection */
    bool is_checked;                    /* request_check() was done */
    bool is_audited;                    /* its act is in the audit log, committed with it */
    struct share *share;                /* of the user, once it was checked */
    uint64_t share_bytes;
    route_fn *then;      /* what a handler thread calls next instead of the route's handler */
    struct uuid subject; /* of whoever parked it: the job that it waits for */
    struct reply reply;
    struct allowance_hold answer; /* of its bytes, once it is made */
};

/* Who sends it and whether he may: token, role, query parameters. ERR_UNAUTHENTICATED,
 * ERR_RATE, ERR_FORBIDDEN, ERR_UNKNOWN_MEMBER. */
MUST_USE enum err_code request_check(struct request *req, struct err *err);
/* Counts the answer among those that its user and tenant have not read. What was only asked for is
 * refused when they are too many: ERR_RATE, ERR_OVERLOADED. What was done is not. */
#define REQUEST_SMALL_ANSWER 16384u
MUST_USE enum err_code request_hold_answer(struct request *req, struct err *err);
/* Whether he may act on a job of this owner. ERR_FORBIDDEN. */
MUST_USE enum err_code request_check_owner(const struct request *req, const char *owner,
                                           struct err *err);
/* The body as a JSON object. ERR_MALFORMED, ERR_INVALID. Drop the reference. */
MUST_USE enum err_code request_json(const struct request *req, json_t **ret_root, struct err *err);
/* A whole number of the query; by_default if it is not there. ERR_INVALID. */
MUST_USE enum err_code request_number(const struct request *req, const char *name, uint64_t least,
                                      uint64_t most, uint64_t *value, struct err *err);
/* true, false, or "" for true. false if it is not there. ERR_INVALID. */
MUST_USE enum err_code request_flag(const struct request *req, const char *name, bool *ret_flag,
                                    struct err *err);
struct sv request_header(const struct request *req, enum header_id id); /* empty if not sent */
void request_set_id(struct request *req, const char *sent);
void request_set_trace(struct request *req, const char *sent);
void request_done(struct request *req);

/* ---- answers: the last one wins; each takes effect when the handler returns ERR_OK ---------- */

/* Takes the reference to root. */
void reply_json(struct request *req, unsigned status, json_t *root);
/* 200 with a weak ETag of what it says, or 304 if the client has that. Takes the reference. */
void reply_json_tagged(struct request *req, json_t *root);
/* 304 in place of an answer whose ETag the client has sent in If-None-Match. */
void reply_unless_known(struct request *req);
void reply_text(struct request *req, unsigned status, const char *type, struct buf *take_text);
void reply_empty(struct request *req, unsigned status);
/* Of a stream: the reader may take as long as it likes. */
void reply_response(struct request *req, unsigned status, struct MHD_Response *take_response);
void reply_header(struct request *req, const char *name, const char *value);
/* problem+json for err; headers that belong to its code (Retry-After, Allow...) included. */
void reply_error(struct request *req, const struct err *err);
/* As reply_error, but for the log, with a document of problem_of() to which members were added. */
void reply_problem(struct request *req, const struct err *err, json_t *problem);

#endif
